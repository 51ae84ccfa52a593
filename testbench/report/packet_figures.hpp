#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>

#include "model/wire_faults.hpp"
#include "testbench/timeline/life_sink.hpp"

namespace rnic::testbench {

/// The packets of one host: those that it has sent, by opcode, with what became of them; and what its NIC said of those
/// that came.
class PacketFigures {
 public:
  void sent(const Frame& frame, const Packet* packet);
  /// Nothing more comes of a packet that this host has made.
  void over(const Packet& packet);
  void received(const Packet& packet);

  [[nodiscard]] std::uint64_t frames() const { return frames_; }
  /// {"frames", "bytes", "not_roce", "sent": [{"opcode", "frames", ...}], "faults": {...}, "verdicts": {...}}.
  [[nodiscard]] nlohmann::ordered_json json() const;

 private:
  struct Row {
    std::uint64_t frames = 0, bytes = 0, payload = 0;
    std::uint64_t repeated = 0;   ///< Sent before
    std::uint64_t lost = 0;       ///< The wire has dropped it
    std::uint64_t lost_here = 0;  ///< Of those the ones that this NIC has made
    std::uint64_t unjudged = 0;   ///< It did not come to the packet check: lost, damaged, or under way at the end
    std::uint64_t unsent = 0;     ///< The NIC dropped it on its way out
    std::uint64_t injected = 0;   ///< By the testbench
  };

  std::uint64_t frames_ = 0, bytes_ = 0, not_roce_ = 0;
  std::map<std::uint8_t, Row> rows_;
  std::array<std::uint64_t, model::kWireFaults> faults_{};
  std::array<std::uint64_t, static_cast<std::size_t>(RxReason::kCount)> verdicts_{};
  std::uint64_t faulty_ = 0;  ///< Good, and could not be placed
};

}  // namespace rnic::testbench
