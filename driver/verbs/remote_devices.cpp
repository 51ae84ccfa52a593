// The devices of libibverbs.so.1: that of the host whose socket RNIC_HOST names (docs/server.md).
#include <cstdio>
#include <cstdlib>

#include "driver/remote/attach.hpp"
#include "driver/remote/machine_socket.hpp"
#include "driver/unnoticed.hpp"
#include "driver/verbs/devices.hpp"

namespace rnic::verbs {

/// Without the variable there are none. A host that does not answer is said aloud, once: the program will only say that
/// it has no device.
std::vector<FoundDevice> find_devices() {
  const char* const host = std::getenv("RNIC_HOST");
  if (host == nullptr || *host == '\0') return {};
  auto node = remote::attach(host);
  if (!node) {
    static bool said = false;
    if (!said) {
      const Unnoticed unnoticed;
      const auto why = remote::why_no_machine(node.error());
      std::fprintf(stderr, "libibverbs (rnic): host %s: %.*s\n", host, static_cast<int>(why.size()), why.data());
    }
    said = true;
    return {};
  }
  std::vector<FoundDevice> devices;
  devices.push_back({.name = "rnic0", .node = node.take()});
  return devices;
}

}  // namespace rnic::verbs
