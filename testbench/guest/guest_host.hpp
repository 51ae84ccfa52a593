#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "testbench/guest/guest_link.hpp"
#include "testbench/guest/guest_nic.hpp"
#include "testbench/host.hpp"
#include "testbench/server/call_threads.hpp"
#include "testbench/server/listener.hpp"
#include "testbench/server/poller.hpp"

namespace rnic::testbench {

/// A host of the machine whose processor and memory are a guest's: a QEMU that comes to its sockets, one at a time
/// (docs/guest.md). Without one the NIC is there, in the state after its reset.
class GuestHost {
 public:
  using Log = std::function<void(const std::string&)>;

  /// All outlive it.
  GuestHost(Host& host, Poller& poller, CallThreads& calls, Log log);
  GuestHost(const GuestHost&) = delete;
  GuestHost& operator=(const GuestHost&) = delete;
  ~GuestHost();

  /// When simulated time has begun.
  void power_on() { nic_.power_on(); }
  /// From now on a guest can come: its device to `path`, its interrupts to `path`.interrupts. Throws as Listener.
  void listen(const std::string& path);
  /// Does what the guest has asked for. A guest that breaks the protocol, or has ended, is gone afterwards, and its
  /// NIC as after power-on.
  void take();
  /// The guest is to go, and none can come any more.
  void end();

  [[nodiscard]] const std::string& socket() const { return device_->path(); }
  [[nodiscard]] Host& host() { return host_; }
  [[nodiscard]] GuestNic& nic() { return nic_; }
  /// Of the guest that is there. Null: none is.
  [[nodiscard]] const GuestFigures* figures() const { return link_ == nullptr ? nullptr : &link_->figures(); }
  /// How many there have been.
  [[nodiscard]] std::uint64_t guests() const { return guests_; }

 private:
  void accept_device();
  void accept_interrupts();
  void tell_fault(const model::Iommu::Fault& fault);
  void part(const std::string& why);
  void log(const std::string& line) { log_(host_.basename() + (": " + line)); }

  Host& host_;
  Poller& poller_;
  const Log log_;
  GuestNic nic_;
  std::unique_ptr<Listener> device_, interrupts_;
  Poller::Watch device_watch_{}, interrupts_watch_{};
  std::shared_ptr<GuestLink> link_;
  Poller::Watch link_watch_{}, line_watch_{};
  std::string failure_;  ///< Of an interrupt message, until somebody looks
  bool fault_told_ = false;
  std::uint64_t guests_ = 0;
};

}  // namespace rnic::testbench
