#pragma once

#include <array>
#include <deque>
#include <optional>

#include "model/reference/admin.hpp"
#include "model/reference/clock.hpp"
#include "model/reference/datagrams.hpp"
#include "model/reference/ethernet.hpp"
#include "model/reference/memory.hpp"
#include "model/reference/observer.hpp"
#include "model/reference/outside.hpp"
#include "model/reference/pcie.hpp"
#include "model/reference/port.hpp"
#include "model/reference/qps.hpp"
#include "model/reference/queues.hpp"
#include "model/reference/registers.hpp"
#include "model/reference/requester.hpp"
#include "model/reference/responder.hpp"

/// The reference NIC: what the NIC is to do, transaction by transaction (docs/reference_nic.md).
namespace rnic::reference {

/// A NIC from one reset to the next. Whoever plugs it in gives it what has come, and then lets it run; it takes from
/// `pcie.out` and `port.out` what may leave (`may_request`, `enabled`), in order, and says so (`pcie.left`,
/// `port.left`).
class Nic {
 public:
  Nic();
  ~Nic() { clock.stop(); }
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  // What comes, at the time of the last `run`.
  void configure(const Settings& changed);
  std::optional<HostAnswer> host_request(const HostRequest& request) { return registers.request(request); }
  void dma_answer(const DmaAnswer& answer) { pcie.answer(answer); }
  /// `bad`: the MAC says that it is damaged.
  void frame(Bytes bytes, bool bad) {
    if (enabled()) port.receive(std::move(bytes), bad);
  }

  /// Everything happens that is due by `time`.
  void run(Time time) { clock.run(time); }
  /// When something is due. Nothing: nothing happens before something comes.
  [[nodiscard]] std::optional<Time> next() const { return clock.next(); }
  [[nodiscard]] bool may_request() const { return enable && settings.bus_master; }
  [[nodiscard]] bool enabled() const { return enable; }
  [[nodiscard]] bool quiet() const { return pcie.quiet() && port.out.empty(); }
  void set_enable(bool on);

  void count(Count counter) {
    ++counters_[static_cast<std::size_t>(counter)];
    if (observer != nullptr) observer->counts(counter);
  }
  /// Counters of a queue pair stay at their greatest.
  void count(Qp& qp, QpCount counter) {
    if (auto& value = qp.counters[static_cast<std::size_t>(counter)]; value != ~std::uint32_t{0}) ++value;
  }
  void count(Qp& qp, Count counter, QpCount own) {
    count(counter);
    count(qp, own);
    if (observer != nullptr) observer->counts(qp, counter);
  }
  [[nodiscard]] std::uint64_t counter(std::size_t index) const { return counters_[index]; }

  Observer* observer = nullptr;  ///< Or none
  Settings settings;
  Clock clock;
  std::uint64_t mac = 0;
  bool enable = false;
  Pcie pcie;
  Memory memory;
  Queues queues;
  Interrupts interrupts;
  Port port;
  Datagrams datagrams;
  Ethernet ethernet;
  Requester requester;
  Responder responder;
  Qps qps;
  Admin admin;
  Registers registers;

 private:
  std::array<std::uint64_t, kCounters> counters_{};
};

}  // namespace rnic::reference
