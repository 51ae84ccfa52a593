#include "driver/nd2/handles.hpp"

#include "driver/umd/waiting.hpp"

namespace rnic::nd2 {
namespace {

static_assert(win32::kForever == kForever);

class NodeWaiter final : public win32::Waiter {
 public:
  explicit NodeWaiter(DeviceNode& node) : node_(node) {}

  win32::Waited wait_until(const std::function<bool()>& done, std::uint64_t timeout_ns) override {
    const std::uint64_t begun = node_.machine().now_ns();
    if (umd::wait_until(node_, done, timeout_ns)) return win32::Waited::kDone;
    if (timeout_ns == 0) umd::poll_in_vain(node_.machine());
    return node_.machine().now_ns() - begun >= timeout_ns ? win32::Waited::kTimeout : win32::Waited::kGone;
  }
  void wake() override { node_.machine().wake(); }

 private:
  DeviceNode& node_;
};

}  // namespace

std::shared_ptr<win32::Waiter> waiter_of(DeviceNode& node) { return std::make_shared<NodeWaiter>(node); }

HANDLE create_event(DeviceNode& node, bool manual_reset) {
  return open_handle(std::make_shared<Event>(waiter_of(node), manual_reset));
}

HANDLE create_completion_port(DeviceNode& node) {
  return open_handle(std::make_shared<CompletionPort>(waiter_of(node)));
}

}  // namespace rnic::nd2
