#include "testbench/guest/guest_host.hpp"

#include <fmt/format.h>

#include <utility>

#include "testbench/guest/guest_link_error.hpp"

namespace rnic::testbench {

GuestHost::GuestHost(Host& host, Poller& poller, CallThreads& calls, Log log)
    : host_(host),
      poller_(poller),
      log_(std::move(log)),
      nic_(host, calls, [this](const std::string& line) { this->log(line); }) {
  host_.root_complex().distrust_driver();
  host_.root_complex().set_memory_handler({});
  host_.iommu().set_fault_handler([this](const model::Iommu::Fault& fault) { tell_fault(fault); });
  host_.root_complex().set_interrupt_handler([this](std::uint64_t address, std::uint32_t data) {
    nic_.checker().barrier();
    if (link_ == nullptr) return;
    try {
      link_->interrupt(address, data);
    } catch (const GuestLinkError& error) {
      // The simulation goes on; the guest is sent away when it stands still.
      failure_ = error.what();
    }
  });
}

GuestHost::~GuestHost() {
  host_.root_complex().set_interrupt_handler({});
  host_.iommu().set_fault_handler({});
  end();
}

/// A driver that has given a wrong address is told once; all of them are counted.
void GuestHost::tell_fault(const model::Iommu::Fault& fault) {
  if (link_ == nullptr || std::exchange(fault_told_, true)) return;
  log(fmt::format("DMA {} {:#x}, where the guest has no memory",
                  fault.access == model::Iommu::Access::kWrite ? "to" : "from", fault.iova));
}

void GuestHost::listen(const std::string& path) {
  device_ = std::make_unique<Listener>(path, Listener::Rights::kTaken);
  interrupts_ = std::make_unique<Listener>(path + ".interrupts");
  device_watch_ = poller_.add(device_->descriptor(), [this] { accept_device(); });
  interrupts_watch_ = poller_.add(interrupts_->descriptor(), [this] { accept_interrupts(); });
}

void GuestHost::accept_device() {
  while (auto peer = device_->accept()) {
    if (!peer->process) continue;
    if (link_ != nullptr) {
      log(fmt::format("process {}: there is a guest already", peer->number));
      continue;
    }
    ++guests_;
    fault_told_ = false;
    nic_.checker().begin();
    link_ = std::make_shared<GuestLink>(std::move(peer->socket), nic_);
    link_watch_ = poller_.add(link_->descriptor(), [] {});
    log("a guest has come");
  }
}

void GuestHost::accept_interrupts() {
  while (auto peer = interrupts_->accept()) {
    if (!peer->process) continue;
    if (link_ == nullptr || link_->interrupts().connected()) {
      log(fmt::format("process {}: interrupts for no guest", peer->number));
      continue;
    }
    line_watch_ = poller_.add(peer->socket.get(), [] {});
    link_->interrupts().connect(std::move(peer->socket));
  }
}

void GuestHost::take() {
  if (link_ == nullptr) return;
  try {
    if (!failure_.empty()) throw GuestLinkError(std::exchange(failure_, {}));
    if (!link_->take()) part("the guest has gone");
  } catch (const GuestLinkError& error) {
    part(error.what());
  }
}

void GuestHost::part(const std::string& why) {
  log(why);
  poller_.remove(link_->descriptor(), link_watch_);
  if (link_->interrupts().connected()) poller_.remove(link_->interrupts().descriptor(), line_watch_);
  link_.reset();
  failure_.clear();
  nic_.power_on();
}

void GuestHost::end() {
  if (device_ != nullptr) poller_.remove(device_->descriptor(), device_watch_);
  if (interrupts_ != nullptr) poller_.remove(interrupts_->descriptor(), interrupts_watch_);
  device_.reset();
  interrupts_.reset();
  if (link_ != nullptr) part("the machine ends");
}

}  // namespace rnic::testbench
