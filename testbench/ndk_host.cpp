#include "testbench/ndk_host.hpp"

#include <algorithm>

namespace rnic::testbench {

NdkHost::NdkHost(Endpoint& endpoint)
    : endpoint_(endpoint),
      adapter_(require_success(ndk::Adapter::open(endpoint.kernel()), "opening a kernel adapter")),
      thread_(endpoint.host().device(), {.run = [this] { adapter_->run(); },
                                         .running = [this] { return adapter_->running(); },
                                         .stop = [this] { adapter_->stop(); }}) {}

NdkHost::~NdkHost() {
  constexpr std::uint64_t kEndNs = 10'000'000;
  static_cast<void>(wait_until([this] { return adapter_->idle(); }, kEndNs));
}

bool NdkHost::wait_until(const std::function<bool()>& done, std::uint64_t limit_ns) {
  Device& device = endpoint_.device();
  const std::uint64_t end = device.now_ns() + limit_ns;
  for (;;) {
    const std::uint64_t seen = device.wake_count();
    if (done()) return true;
    const std::uint64_t now = device.now_ns();
    if (now >= end || device.removed()) return false;
    static_cast<void>(device.wait(seen, end - now));
  }
}

void NdkHost::completed(PVOID context, NTSTATUS status) {
  auto& outcome = *static_cast<Outcome*>(context);
  if (outcome.done) throw std::logic_error("a request has completed twice");
  outcome.done = true;
  outcome.status = status;
  outcome.device->wake();
}

void NdkHost::created(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER* object) {
  static_cast<Outcome*>(context)->object = object;
  completed(context, status);
}

void NdkHost::closed(PVOID context) { completed(context, STATUS_SUCCESS); }

NTSTATUS NdkHost::wait(const Outcome& outcome) {
  if (!wait_until([&] { return outcome.done; })) throw EndpointError("a callback has not come");
  return outcome.status;
}

}  // namespace rnic::testbench
