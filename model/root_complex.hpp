#pragma once

#include <tlm>
#include <tlm_utils/simple_target_socket.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <systemc>
#include <variant>
#include <vector>

#include "model/dma_memory.hpp"
#include "model/downstream.hpp"
#include "model/flow_control.hpp"
#include "model/iommu.hpp"
#include "model/mmio_tags.hpp"
#include "model/pcie.hpp"
#include "model/pcie_fault_injector.hpp"
#include "model/random.hpp"
#include "model/root_complex_options.hpp"
#include "model/taps.hpp"
#include "model/time.hpp"
#include "model/timed_event.hpp"
#include "model/tlp_checker.hpp"
#include "model/tlp_line.hpp"

namespace rnic::model {

struct RootComplexStatistics {
  std::uint64_t dma_reads = 0;
  std::uint64_t dma_read_bytes = 0;
  std::uint64_t dma_writes = 0;
  std::uint64_t dma_write_bytes = 0;
  std::uint64_t interrupts = 0;
  std::uint64_t forbidden_interrupts = 0;    ///< While MSI-X is off or the function masked
  std::uint64_t unsupported_reads = 0;       ///< Reads the IOMMU refused, answered with Unsupported Request
  std::uint64_t dropped_writes = 0;          ///< Writes the IOMMU refused
  std::uint64_t unexpected_completions = 0;  ///< Completions of no host request
  std::uint64_t late_completions = 0;        ///< Of a host request that was given up
  std::uint64_t packets = 0;                 ///< TLPs that have passed the NIC's ports, both ways
  Picoseconds last_withheld = 0;             ///< When a DMA read was last left without the answer that it should have
};

enum class PcieWay : std::uint8_t { kToHost, kToNic };

/// A TLP as it passes the NIC's ports.
struct TlpSeen {
  PcieWay way{};
  CreditKind kind{};
  std::uint64_t address{};  ///< Of a request: in host memory, or the offset in BAR0
  std::uint16_t tag{};      ///< Of what has one
  std::size_t bytes{};      ///< Of its payload
};

/// PCI Express root complex of one host: the NIC on one side (PcieLink), memory behind an IOMMU, interrupts and the
/// processor on the other.
///
/// The processor's accesses to BAR0 come through the TLM socket `mmio` (blocking transport): address is the offset in
/// BAR0, length 1 to the maximum payload, within 4 KiB, without TLM byte enables. Each is one TLP. A write returns at
/// once (it is posted). A read has a random traffic class and random attributes, and waits for its completion; it fills
/// its data with ones and answers TLM_ADDRESS_ERROR_RESPONSE for an error completion, TLM_GENERIC_ERROR_RESPONSE for a
/// time-out. Accesses out of these limits: TLM_BURST_ERROR_RESPONSE, or TLM_BYTE_ENABLE_ERROR_RESPONSE.
///
/// Towards the host, TLPs keep their order: a read sees every earlier write, an interrupt and a completion arrive after
/// every earlier write (base specification 2.4.1). Memory is read when the request arrives, half the read latency after
/// it was made. A write to memory that another process has mapped it sees whole words of, and the last word last;
/// memory of another process is reached through the system (ProcessMemory), while the completion is on its way, and
/// what is not there faults as behind an IOMMU.
///
/// Each kind of TLP has credits of its own, both ways (2.6.1). Of the NIC's TLPs one is taken when there are credits
/// for it; what it says of the others is PcieLink's. Of the host's Downstream knows what passes what waits.
class RootComplex : public sc_core::sc_module, public PcieLink {
 public:
  tlm_utils::simple_target_socket<RootComplex> mmio;

  /// Throws std::invalid_argument when an option is out of range.
  RootComplex(const sc_core::sc_module_name& name, Iommu& iommu, const RootComplexOptions& options);

  /// Called with address and data of each interrupt message.
  void set_interrupt_handler(std::function<void(std::uint64_t, std::uint32_t)> handler) {
    on_interrupt_ = std::move(handler);
  }

  /// They see every request that is sent to the NIC.
  [[nodiscard]] Taps<const HostRequest&>& request_taps() { return request_taps_; }
  /// They see every request of the NIC that has written to memory.
  [[nodiscard]] Taps<const DmaRequest&>& write_taps() { return write_taps_; }
  /// Called when memory has changed by a DMA write, in a host with a strong memory order.
  void set_memory_handler(std::function<void()> handler) { on_memory_ = std::move(handler); }
  /// `tap` sees every TLP as it passes the NIC's ports, both ways. One tap; empty: none.
  void set_tlp_tap(std::function<void(const TlpSeen&)> tap) { tlp_tap_ = std::move(tap); }
  /// `tap` is told where the NIC has written to memory of this process. One tap; empty: none.
  void set_write_tap(std::function<void(const std::uint8_t*)> tap) { write_tap_ = std::move(tap); }
  /// Writes to memory of processes that are on their way have arrived when this returns.
  void finish_writes() { memory_.finish_writes(); }
  /// Called before the NIC writes to memory of this process: who sees that may look for everything that was written
  /// before, on any host. Empty: finish_writes.
  void set_before_write(std::function<void()> before) { memory_.set_before_write(std::move(before)); }
  /// Memory is read and written as `order` has it, from now on. It outlives the root complex.
  void set_memory_order(MemoryOrder& order) { memory_.set_order(order); }

  /// From now on the driver is one that may do anything. What only the driver is to blame for is not the NIC's error:
  /// an address of data among those of interrupt messages is one where no memory is, and what configuration space has
  /// allowed the NIC up to kConfigGrace ago is still right.
  void distrust_driver() { distrusted_ = true; }
  [[nodiscard]] bool driver_distrusted() const { return distrusted_; }
  static constexpr Picoseconds kConfigGrace = 2'000'000;

  /// From now on DMA reaches memory through `witness`, which outlives the root complex. Null: by itself.
  void set_memory_witness(MemoryWitness* witness) { memory_.set_witness(witness); }

  /// Sends a TLP of any form to the NIC; posted, so no answer is waited for.
  void post(HostRequest request);
  /// Sends a TLP that expects a completion, with a tag of its own, and waits for it. Called from a SystemC thread.
  /// Empty after mmio_timeout_ns.
  [[nodiscard]] std::optional<HostCompletion> request(HostRequest request);

  /// The NIC has been reset: what is on the way to it is lost, and so are its reads without an answer. What it wrote
  /// before arrives, after read_latency_ns at the latest. Processor reads under way end by their time-out.
  void reset_function();

  /// Drops everything under way and starts again with `options`. No thread may be waiting in `mmio` or `request`.
  void reset(const RootComplexOptions& options);

  /// Adds a fault for exact accesses. Throws std::invalid_argument when it is out of range.
  void arm(const PcieRule& rule) { faults_.arm(rule); }
  /// Those about just these accesses go.
  void disarm(const PcieMatch& match) { faults_.disarm(match); }
  [[nodiscard]] const PcieFaultCounts& faults() const { return faults_.counts(); }

  /// Changes what the NIC sees of its configuration space. Of a NIC that may no longer be bus master the one request
  /// that it had offered by then is still taken.
  void set_config(const PcieConfig& config);
  /// From now on there are no credits for TLPs of these kinds that go this way, and enough for the others. To the
  /// host: what is half way through the NIC's port ends, and of reads the one that the NIC had offered is still taken,
  /// unless posted requests are held too. With a `duration` there are enough for all that go this way again when it is
  /// over.
  void hold(PcieWay way, const CreditKinds& kinds, std::optional<Picoseconds> duration = std::nullopt);
  [[nodiscard]] const RootComplexOptions& options() const { return options_; }
  [[nodiscard]] const RootComplexStatistics& statistics() const { return statistics_; }
  /// True while something is kept from the link.
  [[nodiscard]] bool holds_back() const {
    return !held_.empty() || !downstream_.held().empty() || now_ps() < paused_until_ || faults_.stalled(now_ps());
  }
  /// TLPs are between NIC and host.
  [[nodiscard]] bool under_way() const {
    return !upstream_.empty() || !late_reads_.empty() || downstream_.next_arrival() || outstanding_reads() != 0;
  }
  [[nodiscard]] std::size_t outstanding_reads() const { return checker_.outstanding_reads(); }

  // PcieLink
  [[nodiscard]] const PcieConfig& config() const override { return options_.config; }
  [[nodiscard]] std::optional<Picoseconds> next_arrival() const override { return downstream_.next_arrival(); }
  bool take_host_request(HostRequest& request) override;
  void host_completion(HostCompletion completion) override;
  [[nodiscard]] bool can_request() const override;
  [[nodiscard]] Picoseconds requests_from() const override;
  [[nodiscard]] bool flow_limited() const override { return credits_.limited() || !held_.empty(); }
  [[nodiscard]] bool has_credits(TlpKind kind, std::size_t payload_bytes) const override;
  [[nodiscard]] bool reads_held() const override;
  [[nodiscard]] bool can_complete() const override;
  void dma_request(DmaRequest request) override;
  bool take_dma_completion(DmaCompletion& completion) override;

 private:
  struct Upstream {
    Picoseconds arrival;
    std::variant<DmaRequest, HostCompletion> packet;
  };

  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  void send_upstream(std::variant<DmaRequest, HostCompletion> packet, CreditKind kind, std::size_t payload_bytes);
  void take_held(CreditKind kind);
  void deliver();
  void expect_delivery();
  void release();
  /// What the NIC may do, of what it is told and was told a moment ago.
  [[nodiscard]] PcieConfig allowed() const;
  [[nodiscard]] std::optional<PcieFaultInjector::Hit> judge_dma(PcieAccess access, const DmaRequest& request);
  void answer_read(const DmaRequest& request, bool good, ReadJob& job);
  void read_memory(const DmaRequest& request);
  void write_memory(const DmaRequest& request);

  Iommu& iommu_;
  DmaMemory memory_;
  RootComplexOptions options_;
  RootComplexStatistics statistics_;
  std::function<void()> on_memory_;
  std::function<void(std::uint64_t, std::uint32_t)> on_interrupt_;
  Taps<const HostRequest&> request_taps_;
  Taps<const DmaRequest&> write_taps_;
  std::function<void(const TlpSeen&)> tlp_tap_;
  std::function<void(const std::uint8_t*)> write_tap_;
  TlpChecker checker_;
  TlpLine upstream_line_;
  CreditCounter credits_;  ///< Of the NIC's TLPs
  std::deque<Upstream> upstream_;
  Picoseconds last_arrival_ = 0;                       ///< Of upstream_
  std::multimap<Picoseconds, DmaRequest> late_reads_;  ///< In front of the memory, until that time
  TimedEvent upstream_event_, release_event_;
  Random upstream_random_;
  Downstream downstream_;
  MmioTags tags_;
  PcieFaultInjector faults_;
  Random handling_;                                       ///< Of reads that come through `mmio`
  Picoseconds paused_until_ = 0;                          ///< The NIC may send no request before
  CreditKinds held_;                                      ///< Of the NIC's TLPs, by `hold`
  CreditKinds last_of_;                                   ///< Kinds of which one more is taken although they are held
  std::array<std::optional<Picoseconds>, 2> held_until_;  ///< By PcieWay
  bool distrusted_ = false;
  PcieConfig former_{};           ///< With a distrusted driver: also allowed
  Picoseconds former_until_ = 0;  ///< Up to then
  bool last_request_ = false;     ///< One more is taken although bus mastering is off
  Picoseconds silent_from_ = 0;   ///< With interrupts forbidden, those of before have all come by then
};

}  // namespace rnic::model
