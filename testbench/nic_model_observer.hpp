#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "model/reference/observer.hpp"
#include "testbench/timeline/nic_listener.hpp"

namespace rnic::testbench {

/// Translates what the reference NIC reports of itself into what a Verilated NIC shows: requests, packets, completions
/// and counters. It has no blocks, so it reports no fetches, stalls and waits.
class NicModelObserver final : public reference::Observer {
 public:
  /// `now_ps`: the time of what the NIC reports.
  NicModelObserver(NicListener& listener, std::function<std::uint64_t()> now_ps)
      : listener_(listener), now_ps_(std::move(now_ps)) {}

  /// The NIC is in reset.
  void reset();

  // reference::Observer
  void begins(const reference::Qp& qp, const reference::Request& request) override;
  void retires(const reference::Qp& qp, const reference::Request& request) override;
  void sends(const reference::Qp& qp, const reference::Packet& packet, const reference::Request* request) override;
  void takes(const reference::Packet& packet) override;
  void taken(const reference::Qp& qp, bool response) override;
  void drops(const reference::Packet& packet, reference::Count why) override;
  void completes(const reference::Cq& cq, std::uint64_t address, const reference::Completion& entry) override;
  void resets(const reference::Qp& qp) override;
  void counts(reference::Count counter) override;
  void counts(const reference::Qp& qp, reference::Count counter) override;

 private:
  /// What a queue pair is working on, of one direction.
  struct Work {
    rtl::RxDesc packet;
    RxReason reason{};
    bool fault{};
  };

  void now() { listener_.cycle(now_ps_()); }
  void report(const Work& work);

  NicListener& listener_;
  std::function<std::uint64_t()> now_ps_;
  std::map<std::pair<std::uint32_t, bool>, Work> works_;  ///< By number of the queue pair; true: a response
};

}  // namespace rnic::testbench
