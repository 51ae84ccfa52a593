#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "testbench/timeline/life.hpp"
#include "testbench/timeline/life_sink.hpp"
#include "testbench/timeline/request_book.hpp"

namespace rnic::testbench {

/// The packets of one host that are under way: those that its NIC makes, until they are on the wire, and those that
/// come to it, until the last TLP of their payload has left.
class PacketBook {
 public:
  PacketBook(LifeSink& sink, RequestBook& requests, unsigned host) : sink_(sink), requests_(requests), host_(host) {}

  // Made here
  void turn(std::uint8_t qp, std::uint64_t now) { turns_[qp] = now; }
  [[nodiscard]] std::uint64_t last_turn(std::uint8_t qp) const { return turns_[qp]; }
  void made(std::uint8_t qp, std::uint64_t now) { made_.push_back({now, turns_[qp]}); }
  void taken(const rtl::TxDesc& head, std::uint64_t now);
  void part_asked(bool read);
  void part_translated(std::uint64_t now);
  void tlb_missed();
  void dropped();
  void gathered(std::uint64_t now);
  /// The packet that this frame carries; null: it is not of this NIC. Those in front of it do not go to the wire: they
  /// are on their way back into the NIC (loopback), or dropped.
  [[nodiscard]] PacketPtr left(std::uint8_t opcode, std::uint32_t psn);

  // Come here
  void arrives(const PacketPtr& packet);
  void judged(const rtl::RxDesc& head, RxReason reason, std::uint64_t now);
  void planned();
  void placed(const rtl::RxDone* done, std::uint64_t now);

  /// The NIC has been reset: nothing goes on.
  void forget();
  /// Tells what there is.
  void finish();

 private:
  struct Made {
    std::uint64_t at{}, turn{};
  };
  /// What the responder of a queue pair executed last.
  struct Executed {
    std::uint64_t id{}, at{};
    TraceFile::Track track{};
  };
  struct Newest {
    bool any{};
    std::uint32_t psn{};
  };

  void count(Packet& packet, std::uint32_t last_psn);
  [[nodiscard]] PacketPtr find_arriving(const rtl::RxDesc& head) const;
  [[nodiscard]] PacketPtr take_loopback(const rtl::RxDesc& head);
  void expire(std::uint64_t now);
  void settle_judged();

  LifeSink& sink_;
  RequestBook& requests_;
  unsigned host_;
  std::uint64_t ids_ = 0;
  std::array<std::uint64_t, 256> turns_{};
  std::deque<Made> made_;
  std::deque<PacketPtr> gathering_, parts_, ready_;  ///< In their order
  std::array<std::array<Newest, 2>, 256> newest_{};  ///< PSN of requests and of responses
  std::deque<PacketPtr> looping_;                    ///< Frames behind them left by the wire
  std::deque<PacketPtr> arriving_, placing_;
  PacketPtr judged_;
  std::uint8_t judged_syndrome_{};
  std::array<Executed, 256> executed_{};
};

}  // namespace rnic::testbench
