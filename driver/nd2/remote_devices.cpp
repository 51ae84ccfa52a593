// The device of a program that is a process of its own: that of the host whose socket RNIC_HOST names (docs/server.md).
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "driver/nd2/framework.hpp"
#include "driver/nd2/process_surroundings.hpp"
#include "driver/remote/attach.hpp"
#include "driver/remote/machine_socket.hpp"

namespace rnic::nd2 {
namespace {

/// What a process has found. Never destroyed: nobody says when a program has forgotten its adapters.
struct Found {
  std::shared_ptr<DeviceNode> node;
  ProcessSurroundings surroundings{*node};
};

/// Without the variable there is no device. A host that does not answer is said aloud, once: the program will only say
/// that it has no adapter.
DeviceNodes find_devices() {
  static std::mutex mutex;
  static const Found* found = nullptr;
  static pid_t process = 0;
  const char* const host = std::getenv("RNIC_HOST");
  if (host == nullptr || *host == '\0') return {};
  const std::lock_guard lock(mutex);
  // A child of fork finds its way anew.
  if (found != nullptr && process == getpid() && !found->node->machine().removed()) return {found->node.get()};
  auto node = remote::attach(host);
  if (!node) {
    static bool said = false;
    if (!said) {
      const auto why = remote::why_no_machine(node.error());
      std::fprintf(stderr, "librnic_nd2: host %s: %.*s\n", host, static_cast<int>(why.size()), why.data());
    }
    said = true;
    return {};
  }
  auto* const now = new Found{.node = node.take()};
  win32::set_surroundings(&now->surroundings);
  found = now;
  process = getpid();
  return {found->node.get()};
}

[[maybe_unused]] const bool kAnnounced = [] {
  set_process_devices(find_devices);
  return true;
}();

}  // namespace
}  // namespace rnic::nd2
