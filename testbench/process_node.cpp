#include "testbench/process_node.hpp"

#include <set>
#include <systemc>
#include <utility>

#include "driver/kmd/client.hpp"
#include "driver/kmd/local_node.hpp"

namespace rnic::testbench {

/// The machine as threads of the process see it: once that has ended, or all are being stopped, none of them comes back
/// from it.
class ProcessNode::View final : public Machine {
 public:
  explicit View(Machine& machine) : machine_(machine) {}

  void write64(std::uint64_t offset, std::uint64_t value) override { machine_.write64(offset, value); }
  void write_burst64(std::uint64_t offset, std::span<const std::uint8_t, 64> data) override {
    machine_.write_burst64(offset, data);
  }
  [[nodiscard]] std::uint64_t wake_count() override { return machine_.wake_count(); }
  void wake() override { machine_.wake(); }
  [[nodiscard]] bool wait(std::uint64_t seen, std::uint64_t timeout_ns) override {
    const bool woken = machine_.wait(seen, timeout_ns);
    stay_if_over();
    return woken;
  }
  [[nodiscard]] bool removed() override { return machine_.removed(); }
  void report(DeviceOddity oddity, std::uint32_t number) override { machine_.report(oddity, number); }
  void elapse(std::uint64_t ns) override {
    machine_.elapse(ns);
    stay_if_over();
  }
  void relax() override { machine_.relax(); }
  [[nodiscard]] std::uint64_t now_ns() override { return machine_.now_ns(); }

  void end() { ended_ = true; }

 private:
  /// Not what the tool does with objects that a program has left, when time is over.
  void stay_if_over() {
    if (!sc_core::sc_get_current_process_handle().valid() || sc_core::sc_is_unwinding()) return;
    while (ended_ || machine_.removed()) sc_core::wait(never_);
  }

  Machine& machine_;
  bool ended_ = false;
  sc_core::sc_event never_;
};

/// Threads of simulated time run one at a time, so nothing of it is locked. Ports that the process has forgotten keep
/// it.
struct ProcessNode::Inside {
  explicit Inside(kmd::KernelDevice& with) : kernel(with), view(with.device()) {}

  kmd::KernelDevice& kernel;
  View view;
  std::set<Port*> open;
  bool ended = false;
};

/// A port that is known to its process.
class ProcessNode::Port final : public KernelPort {
 public:
  using KernelPort::call;
  Port(std::unique_ptr<kmd::Client> client, std::shared_ptr<Inside> inside)
      : inside_(std::move(inside)), local_(inside_->kernel, std::move(client)) {
    inside_->open.insert(this);
  }
  ~Port() override { inside_->open.erase(this); }

  void call(std::span<const std::byte> request, std::span<std::byte> answer) override { local_.call(request, answer); }
  [[nodiscard]] Result<std::shared_ptr<std::uint8_t>> map(const calls::MemoryRange& range) override {
    return local_.map(range);
  }
  [[nodiscard]] Result<int> descriptor(calls::Handle channel) override { return local_.descriptor(channel); }
  [[nodiscard]] Machine& machine() override { return inside_->view; }
  [[nodiscard]] kmd::Client& client() { return local_.client(); }

 private:
  const std::shared_ptr<Inside> inside_;
  kmd::LocalPort local_;
};

ProcessNode::ProcessNode(kmd::KernelDevice& kernel) : inside_(std::make_shared<Inside>(kernel)) {}

ProcessNode::~ProcessNode() = default;

Machine& ProcessNode::machine() { return inside_->view; }

Result<std::unique_ptr<KernelPort>> ProcessNode::open() {
  return or_out_of_memory([&]() -> Result<std::unique_ptr<KernelPort>> {
    if (auto well = inside_->kernel.recover(); !well) return well.error();
    auto client = kmd::Client::create(inside_->kernel, false);
    if (!client) return client.error();
    // The process may have ended while the device was brought up.
    if (inside_->ended) return Error::kDeviceFailed;
    return std::unique_ptr<KernelPort>(std::make_unique<Port>(client.take(), inside_));
  });
}

std::uint32_t ProcessNode::listening() {
  std::uint32_t endpoints = 0;
  for (Port* port : inside_->open) endpoints += port->client().listening();
  return endpoints;
}

void ProcessNode::end() {
  inside_->ended = true;
  inside_->view.end();
  // A port that goes meanwhile has closed its client itself.
  for (const auto ports = inside_->open; Port * port : ports) {
    if (inside_->open.contains(port)) port->client().close();
  }
}

}  // namespace rnic::testbench
