#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "testbench/verify/vector_session.hpp"

namespace rnic::testbench {

/// The packets of a batch, in the form in which two worlds can be held against each other: QPNs and keys by name, PSNs
/// from the first, payload as a hash.
class PacketRecord {
 public:
  /// `session` must outlive it.
  explicit PacketRecord(const VectorSession& session) : session_(session) {}

  /// Adds the frames of a batch; the hand-made ones are not of the NIC and left out. Gives "packets" of ProgramRunner.
  [[nodiscard]] nlohmann::json of(const std::vector<model::FrameRecord>& frames);
  /// Queue pair `qp` of a host begins with the first PSN again.
  void restart(std::size_t host, std::size_t qp) {
    next_[host][qp + 1] = 0;
    reads_[host][qp + 1].clear();
  }

 private:
  void add(const model::FrameRecord& frame, nlohmann::json& to);

  const VectorSession& session_;
  /// By number of the queue pair, from 1.
  std::array<std::map<std::size_t, std::uint32_t>, 2> next_;  ///< PSN of the next request that was not sent before
  /// Reads: their first PSN, and how many they have.
  std::array<std::map<std::size_t, std::vector<std::pair<std::uint32_t, std::uint32_t>>>, 2> reads_;
};

/// FNV-1a with a last mixing.
[[nodiscard]] std::uint64_t hash_of(const std::uint8_t* bytes, std::size_t count);

}  // namespace rnic::testbench
