#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "testbench/fuzz/frame_verdict.hpp"

namespace rnic::testbench {

/// What an attacker's queue pair answers to requests, of whomever they are. Nothing is concluded from what it might
/// have got: a refusal must be one that a packet with its PSN can earn, what it acknowledges must be what it may
/// execute, and what it expects for long must not have come.
///
/// A queue pair that is reset leaves answers behind that are on their way out. Until they have left, an answer may be
/// to a request of before.
class AnswerCheck {
 public:
  using Requests = std::map<std::uint32_t, std::vector<FrameVerdict>>;  ///< By PSN
  static constexpr std::uint64_t kAnswerNs = 60'000;                    ///< On the wire of an ordinary world

  /// An answer leaves no later than `answer_ns` after its request arrived.
  explicit AnswerCheck(std::uint64_t answer_ns = kAnswerNs) : answer_ns_(answer_ns) {}

  /// It begins anew, and expects `psn`.
  void begin(std::uint32_t psn, std::uint64_t now_ns);
  void request(const FrameVerdict& verdict);
  /// An acknowledge packet (`syndrome`: of its AETH) has left at `now_ns`. Gives what is wrong with it.
  [[nodiscard]] std::optional<std::string> answer(std::uint32_t psn, std::uint8_t syndrome, std::uint64_t now_ns);
  /// It lives, and expects `psn`, as the device said at some moment between `from_ns` and `to_ns`. Gives what is wrong.
  [[nodiscard]] std::optional<std::string> expects(std::uint32_t psn, std::uint64_t from_ns, std::uint64_t to_ns);
  /// Answers that have been judged.
  [[nodiscard]] std::uint64_t judged() const { return judged_; }

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  [[nodiscard]] std::optional<std::string> taken_up_to(std::uint32_t next);
  [[nodiscard]] bool came_since(std::uint32_t psn, std::uint64_t ns) const;

  std::uint64_t answer_ns_;
  Requests requests_;               ///< Since it began
  Requests former_;                 ///< Before, and maybe not answered yet
  std::uint32_t next_ = 0;          ///< Before this one all were taken
  std::uint32_t expected_ = 0;      ///< As the device last said
  std::uint64_t expected_ns_ = 0;   ///< Since when at the latest; 0: it has not said
  std::uint64_t busy_ns_ = kNever;  ///< Since when it may be answering a Read for long
  std::uint64_t judged_ = 0;
};

}  // namespace rnic::testbench
