#include "testbench/fuzz/answer_check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "testbench/fuzz/packet_opcodes.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint32_t kPsns = 0xffffff, kHalf = 0x800000;
constexpr std::uint64_t kUnderWayNs = 20'000;  ///< What was sent before that has come, or never will
constexpr std::uint64_t kNearNs = 2'000;       ///< From the wire to the queue pair
constexpr std::uint32_t kLongRead = 1'024;     ///< Its responses take longer than an answer may

bool before(std::uint32_t a, std::uint32_t b) { return a != b && ((b - a) & kPsns) < kHalf; }

/// Those with one PSN, for the reader.
std::string describe(const std::vector<FrameVerdict>& requests) {
  std::string text;
  for (const auto& one : requests)
    text += fmt::format("{}opcode {:#04x} at {} ns", text.empty() ? " (" : ", ", one.opcode, one.at_ns);
  return text + ")";
}

using Requests = AnswerCheck::Requests;

/// Discards those that arrived before `ns`.
void forget_before(Requests& requests, std::uint64_t ns) {
  for (auto& [number, list] : requests) std::erase_if(list, [ns](const FrameVerdict& one) { return one.at_ns < ns; });
  std::erase_if(requests, [](const auto& one) { return one.second.empty(); });
}

/// Whether it is known what message a queue pair is in the middle of when it expects `psn`.
bool sequence_known(const Requests& requests, std::uint32_t psn, FrameVerdict::Inside& inside) {
  const auto found = requests.find((psn - 1) & kPsns);
  if (found == requests.end()) return false;
  bool any = false;
  for (const auto& one : found->second) {
    if (one.wild) return false;
    if (!one.takes) continue;
    if (any && one.leaves != inside) return false;
    inside = one.leaves;
    any = true;
  }
  return any;
}

/// NAK codes that one of the requests with this PSN earns: bit n for code n. Nothing: any.
std::optional<unsigned> earned(const Requests& requests, std::uint32_t psn) {
  const auto found = requests.find(psn);
  unsigned codes = 0;
  if (found == requests.end()) return codes;
  for (const auto& one : found->second) {
    if (one.wild) return std::nullopt;
    codes |= one.naks;
    FrameVerdict::Inside inside{};
    if (!sequence_known(requests, psn, inside) || inside != one.wants) codes |= 1U << 1;  // out of sequence
  }
  return codes;
}

bool earns(const std::optional<unsigned>& codes, unsigned code) { return !codes || (*codes >> code & 1) != 0; }

/// `ns` before `now_ns`, or the beginning.
std::uint64_t earlier(std::uint64_t now_ns, std::uint64_t ns) { return now_ns - std::min(now_ns, ns); }

}  // namespace

void AnswerCheck::begin(std::uint32_t psn, std::uint64_t now_ns) {
  for (const auto& [number, list] : requests_) {
    auto& former = former_[number];
    former.insert(former.end(), list.begin(), list.end());
  }
  forget_before(former_, earlier(now_ns, answer_ns_));
  forget_before(requests_, earlier(now_ns, kUnderWayNs));
  next_ = psn;
  expected_ns_ = 0;
  busy_ns_ = kNever;
}

void AnswerCheck::request(const FrameVerdict& verdict) {
  requests_[verdict.psn].push_back(verdict);
  if (verdict.opcode == opcode::kReadRequest && (verdict.wild || verdict.psns >= kLongRead))
    busy_ns_ = std::min(busy_ns_, verdict.at_ns);
  // A Read has the PSNs of its responses, too; one that lies may have many.
  constexpr std::uint32_t kMost = 64;
  const std::uint32_t psns = verdict.wild && verdict.opcode == opcode::kReadRequest ? kMost : verdict.psns;
  if (!verdict.wild && !verdict.takes) return;
  FrameVerdict response = verdict;
  response.waits = true;
  response.naks = 0;
  for (std::uint32_t i = 1; i < std::min(psns, kMost); ++i) {
    response.psn = (verdict.psn + i) & kPsns;
    requests_[response.psn].push_back(response);
  }
}

std::optional<std::string> AnswerCheck::answer(std::uint32_t psn, std::uint8_t syndrome, std::uint64_t now_ns) {
  forget_before(former_, earlier(now_ns, answer_ns_));
  const bool of_former = former_.contains(psn);
  const unsigned type = syndrome >> 5, code = syndrome & 0x1f;
  if (type != 3 || code == 0) {
    // The wire does not show whether it is an answer to what was taken before: it tells nothing of what is taken now.
    if (of_former || (!former_.empty() && !requests_.contains(psn))) return std::nullopt;
    return taken_up_to(type == 0 ? (psn + 1) & kPsns : psn);
  }
  const auto found = requests_.find(psn);
  if (found == requests_.end() && !of_former) return std::nullopt;  // inside of a Read, or older than it
  const auto codes = earned(requests_, psn);
  if (!codes) return std::nullopt;
  ++judged_;
  if (of_former && earns(earned(former_, psn), code)) return std::nullopt;
  if (earns(codes, code)) return taken_up_to(psn);
  return fmt::format("PSN {}: NAK with code {}, which no request with this PSN can earn{}", psn, code,
                     describe(found == requests_.end() ? former_.at(psn) : found->second));
}

/// All before `next` were executed.
std::optional<std::string> AnswerCheck::taken_up_to(std::uint32_t next) {
  for (; before(next_, next); next_ = (next_ + 1) & kPsns) {
    const auto found = requests_.find(next_);
    if (found == requests_.end()) continue;
    ++judged_;
    const bool possible = std::any_of(found->second.begin(), found->second.end(),
                                      [](const FrameVerdict& one) { return one.wild || one.takes; });
    if (!possible)
      return fmt::format("PSN {}: taken, and every request with this PSN must be refused{}", next_,
                         describe(found->second));
  }
  return std::nullopt;
}

std::optional<std::string> AnswerCheck::expects(std::uint32_t psn, std::uint64_t from_ns, std::uint64_t to_ns) {
  // One that came just now may be expected no more, and be refused for its key all the same.
  std::uint32_t settled = next_;
  while (before(settled, psn) && !came_since(settled, earlier(from_ns, answer_ns_))) settled = (settled + 1) & kPsns;
  if (auto wrong = taken_up_to(settled)) return wrong;
  if (expected_ns_ == 0 || psn != expected_) {
    expected_ = psn;
    expected_ns_ = to_ns;
    return std::nullopt;
  }
  const auto found = requests_.find(psn);
  if (found == requests_.end()) return std::nullopt;
  for (const auto& one : found->second) {
    // What it may wait with, it may wait with for long; and all waits behind a Read that it may take for a duplicate.
    if (one.at_ns + answer_ns_ > busy_ns_) continue;
    if (one.wild || one.waits || !one.arrives || one.at_ns < expected_ns_ + kNearNs || one.at_ns + answer_ns_ > from_ns)
      continue;
    return fmt::format("PSN {}: a request that came {} ns ago, as it was expected, was neither taken nor refused{}",
                       psn, from_ns - one.at_ns, describe(found->second));
  }
  return std::nullopt;
}

bool AnswerCheck::came_since(std::uint32_t psn, std::uint64_t ns) const {
  const auto found = requests_.find(psn);
  return found != requests_.end() && std::any_of(found->second.begin(), found->second.end(),
                                                 [ns](const FrameVerdict& one) { return one.at_ns >= ns; });
}

}  // namespace rnic::testbench
