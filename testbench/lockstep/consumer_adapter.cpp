#include "testbench/lockstep/consumer_adapter.hpp"

#include "driver/kmd/local_node.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kIdleLookNs = 1'000;
constexpr std::uint64_t kIdleLooks = 10'000;  ///< What was closed has ended by then

}  // namespace

ConsumerAdapter::ConsumerAdapter(Endpoint& endpoint)
    : device_(endpoint.device()),
      adapter_(require_success(ndk::Adapter::open(endpoint.kernel()), "opening a kernel adapter")) {
  thread_.emplace(endpoint.host().device(), KernelThread::Job{.run = [this] { adapter_->run(); },
                                                              .running = [this] { return adapter_->running(); },
                                                              .stop = [this] { adapter_->stop(); }});
}

void ConsumerAdapter::close() {
  if (closed_) return;
  closed_ = true;
  for (std::uint64_t i = 0; i < kIdleLooks && !adapter_->idle() && !device_.removed(); ++i) device_.elapse(kIdleLookNs);
  left_ = !adapter_->idle();
  if (left_) client().close();
}

ConsumerAdapter::~ConsumerAdapter() {
  close();
  thread_.reset();
  // Objects that were left know their adapter, and nobody knows them.
  if (left_) static_cast<void>(adapter_.release());
}

/// The adapter is opened on the kernel's own node, whose ports are of this kind.
kmd::Client& ConsumerAdapter::client() { return static_cast<kmd::LocalPort&>(adapter_->context()->port()).client(); }

}  // namespace rnic::testbench
