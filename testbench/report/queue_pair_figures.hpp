#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "testbench/report/sketch.hpp"
#include "testbench/timeline/run_observer.hpp"

namespace rnic::testbench {

/// A packet on the wire, for a reader of the capture.
struct PacketMark {
  std::uint8_t opcode{};
  std::uint32_t psn{};
  std::uint64_t frame{};    ///< Number in the capture, from 1 on; 0: not known
  std::uint64_t sent_ns{};  ///< End of its frame, simulated time since the reset
};

/// A request packet that its receiver has not executed.
struct Refusal {
  unsigned host{};        ///< Of the receiver
  std::uint32_t qpn{};    ///< The same
  RxReason reason{};      ///< kNone: it could not be placed
  std::uint64_t va{};     ///< RETH or AtomicETH
  std::uint32_t rkey{};   ///< The same
  std::uint32_t asked{};  ///< The same: bytes
  PacketMark packet;
};

/// A NAK or an RNR NAK.
struct NegativeAnswer {
  std::uint8_t syndrome{};  ///< AETH (InfiniBand specification 9.7.5.2)
  PacketMark packet;
};

/// A work request that ended with an error, and what is known of the reason.
struct FailedRequest {
  std::string kind;  ///< As request_name
  std::uint16_t wqe{};
  std::uint8_t status{};  ///< hw::CqeStatus
  std::uint32_t bytes{}, first_psn{}, last_psn{};
  std::uint32_t packets{}, repeated{};
  bool receive{};
  std::uint64_t posted_ns{}, ended_ns{};  ///< Simulated time since the reset; ended: its CQE is made
  std::optional<Refusal> refusal;
  std::optional<NegativeAnswer> answer;
};

/// The work of one queue pair.
struct QueuePairWork {
  struct Kind {
    std::uint64_t count = 0, bytes = 0;
    std::uint64_t failed = 0, flushed = 0, unfinished = 0;  ///< Of `count`
  };
  unsigned host{};
  std::uint32_t qpn{};
  std::map<std::string, Kind> kinds;            ///< By name of request; Receives too
  Sketch latency_ns{Sketch::kLatencyStepBits};  ///< Of requests that succeeded, without Receives
  std::uint64_t bytes = 0;                      ///< The same
  std::uint64_t from_ns = 0, to_ns = 0;         ///< First doorbell, last completion of those
  std::uint64_t repeated = 0;                   ///< Packets that were sent again
  std::optional<FailedRequest> failure;         ///< The first
};

/// Follows the work requests of each queue pair of each host: an observer of a World that costs less than RunReport.
class QueuePairFigures final : public RunObserver {
 public:
  QueuePairFigures();
  ~QueuePairFigures() override;

  [[nodiscard]] std::vector<LifeSink*> begin(const WorldOptions& options, std::uint64_t epoch_ps) override;
  void end(std::uint64_t, const std::vector<std::uint64_t>&) override {}

  /// The work of a queue pair up to now: requests that are complete, and those that ended with it. Nothing: it has
  /// posted nothing, or its figures are among the oldest, which are dropped (kMost).
  [[nodiscard]] std::optional<QueuePairWork> find(unsigned host, std::uint32_t qpn) const;

  /// So many queue pairs are kept.
  static constexpr std::size_t kMost = 1024;

 private:
  class HostSink;
  struct Pair;
  using Key = std::pair<unsigned, std::uint32_t>;

  Pair& pair(unsigned host, std::uint32_t qpn);

  /// `request` is over, or as good as that: adds it to `work`.
  void add(QueuePairWork& work, const Request& request, const Pair& pair) const;
  [[nodiscard]] FailedRequest failed(const Request& request, const Pair& pair) const;
  [[nodiscard]] std::uint64_t ns(std::uint64_t ps) const;

  std::uint64_t epoch_ps_ = 0;
  std::map<Key, std::unique_ptr<Pair>> pairs_;
  std::vector<Key> order_;  ///< In which they came
  std::vector<std::unique_ptr<HostSink>> sinks_;
};

}  // namespace rnic::testbench
