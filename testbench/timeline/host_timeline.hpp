#pragma once

#include <array>
#include <cstdint>

#include "testbench/timeline/life_sink.hpp"
#include "testbench/timeline/nic_listener.hpp"
#include "testbench/timeline/packet_book.hpp"
#include "testbench/timeline/request_book.hpp"

namespace rnic::testbench {

/// What one host has to say for the timeline: hears its NIC, and hands what it says to the books.
class HostTimeline final : public NicListener {
 public:
  explicit HostTimeline(unsigned host) : requests_(sinks_, host), packets_(sinks_, requests_, host) {}

  /// Who hears it.
  [[nodiscard]] LifeSinks& sinks() { return sinks_; }
  [[nodiscard]] RequestBook& requests() { return requests_; }
  [[nodiscard]] PacketBook& packets() { return packets_; }
  /// Tells what there is.
  void finish();

  // NicListener
  void cycle(std::uint64_t now_ps) override { now_ = now_ps; }
  void nic_reset() override;
  void turn(std::uint8_t qp) override { packets_.turn(qp, now_); }
  void stalled(std::uint8_t qp, StallReason reason) override;
  void fetch_asked(const rtl::WqeFetchReq& fetch) override { requests_.fetch_asked(fetch, now_); }
  void fetch_issued() override { requests_.fetch_issued(now_); }
  void fetch_answered() override { requests_.fetch_answered(now_); }
  void packet_made(std::uint8_t qp) override;
  void inflight(const rtl::Inflight& wqe) override { requests_.inflight(wqe, packets_.last_turn(wqe.qp), now_); }
  void packet_taken(const rtl::TxDesc& packet) override { packets_.taken(packet, now_); }
  void part_asked(bool read) override { packets_.part_asked(read); }
  void part_translated() override { packets_.part_translated(now_); }
  void packet_dropped() override { packets_.dropped(); }
  void packet_gathered() override { packets_.gathered(now_); }
  void packet_judged(const rtl::RxDesc& packet, RxReason reason) override { packets_.judged(packet, reason, now_); }
  void packet_planned() override { packets_.planned(); }
  void packet_left(const rtl::RxDone* done) override { packets_.placed(done, now_); }
  void went_back(std::uint8_t qp, StallReason cause) override;
  void retired(std::uint8_t qp, std::uint16_t index, bool failed) override;
  void cqe(const CqeWrite& cqe) override;
  void qp_forgotten(std::uint8_t qp) override;
  void tlb_missed() override;
  void waits(bool for_tag, bool for_link) override;
  void counted(hw::Counter counter) override { sinks_.counted(counter); }
  [[nodiscard]] BlockUsage* usage() override { return sinks_.usage(); }

 private:
  struct Stall {
    std::uint64_t since = 0;  ///< 0: there is none
    StallReason reason{};
    RequestPtr request;
  };

  void end_stall(std::uint8_t qp);
  void level(std::uint64_t& since, bool on, WaitKind what);

  LifeSinks sinks_;
  RequestBook requests_;
  PacketBook packets_;
  std::uint64_t now_ = 0;
  std::array<Stall, 256> stalls_{};
  std::uint64_t tag_wait_ = 0, link_wait_ = 0;  ///< Since when; 0: not
};

}  // namespace rnic::testbench
