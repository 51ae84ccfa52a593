#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "testbench/fuzz/frame_fuzzer.hpp"
#include "testbench/fuzz/fuzz_process.hpp"

namespace rnic::testbench {

/// What a reliable queue pair must make of a request packet that has the PSN that it expects, by the documents
/// (InfiniBand specification 9.7.4, 9.7.5.2; decisions 12, 43, 48).
struct FrameVerdict {
  std::uint32_t psn = 0, psns = 1;
  bool wild = false;   ///< Not a packet that a builder of right packets makes: nothing is said of it
  bool takes = false;  ///< It may execute it
  bool waits = false;  ///< It may answer that it has no Receive, and go on expecting this PSN
  /// Refusals that it may answer with: bit n for the NAK with code n (1: invalid request, 2: remote access error,
  /// 3: remote operational error).
  std::uint8_t naks = 0;
  std::uint8_t opcode = 0;
  bool arrives = true;  ///< No fault of the wire hits it
  std::uint64_t at_ns = 0;

  /// What message it leaves the queue pair in the middle of.
  enum class Inside : std::uint8_t { kNothing, kSend, kWrite };
  Inside wants = Inside::kNothing, leaves = Inside::kNothing;
};

/// Of a frame for queue pair `target` of `host`, right ICRC and frame check sequence. Nothing: no request, or one that
/// cannot reach it.
[[nodiscard]] std::optional<FrameVerdict> judge_request(std::span<const std::uint8_t> frame, const FuzzTarget& target,
                                                        const FuzzProcess& host);

}  // namespace rnic::testbench
