// What completions of an attacker's queue pairs must be.
#include <fmt/format.h>

#include <optional>
#include <string>

#include "testbench/cqe_status_text.hpp"
#include "testbench/fuzz/fuzz_process.hpp"

namespace rnic::testbench {
namespace {

/// `a` comes before `b`, modulo 2^16.
bool precedes(std::uint16_t a, std::uint16_t b) { return a != b && static_cast<std::uint16_t>(b - a) < 0x8000; }

/// What stands in a place of the send queue now.
std::string describe_slot(const FuzzProcess::Qp& qp, std::uint16_t index) {
  constexpr std::size_t kStride = 1U << FuzzProcess::kLogStride, kShown = 96;
  const std::uint8_t* const slot = qp.qp->send_ring() + (index % (1U << FuzzProcess::kLogDepth)) * kStride;
  std::string text = " (";
  for (std::size_t i = 0; i < kShown; ++i) text += fmt::format("{:02x}", slot[i]);
  return text + "...)";
}

}  // namespace

void FuzzProcess::judge_send(Qp& qp, const hw::Cqe& cqe) {
  const auto status = static_cast<hw::CqeStatus>(cqe.status);
  const auto say = [&](const std::string& what) {
    violation_(fmt::format("host {}: queue pair {:#x} of kind {}, request {}: {}{}", endpoint_.host().index(), cqe.qpn,
                           static_cast<int>(qp.kind), cqe.wqe_index, what, describe_slot(qp, cqe.wqe_index)));
  };
  const auto written = qp.expected.find(cqe.wqe_index);
  const std::optional<Expected> expected = written == qp.expected.end() ? std::nullopt : std::optional(written->second);
  if (expected && !expected->statuses.empty()) {
    ++judged_;
    // Where the device may have fetched it before it was written, or half overwritten, it may fail in any way.
    if (!expected->statuses.has(status) && (qp.honest || status == hw::CqeStatus::kSuccess)) {
      say(status == hw::CqeStatus::kSuccess ? std::string("success of a malformed or forbidden request")
                                            : fmt::format("{}, which it cannot have", cqe_status_text(status)));
    }
  }
  if (qp.honest) {
    if (precedes(cqe.wqe_index, qp.sq_next)) say("a second completion, or one out of order");
    for (std::uint16_t index = qp.sq_next; precedes(index, cqe.wqe_index); ++index) {
      const auto skipped = qp.expected.find(index);
      if (skipped != qp.expected.end() && (!skipped->second.silent || qp.sq_failed))
        say(fmt::format("completed, and request {} in front of it has no completion", index));
    }
    // In the error state requests are flushed that nobody rang for yet, too.
    if (!precedes(cqe.wqe_index, qp.sq_producer))
      say(fmt::format("completed ({}), and was never written", cqe_status_text(status)));
  }
  while (!qp.expected.empty() && !precedes(cqe.wqe_index, qp.expected.begin()->first))
    qp.expected.erase(qp.expected.begin());
  qp.sq_next = static_cast<std::uint16_t>(cqe.wqe_index + 1);
  qp.sq_failed = qp.sq_failed || status != hw::CqeStatus::kSuccess;
}

void FuzzProcess::judge_receive(Qp& qp, const hw::Cqe& cqe) {
  if (qp.kind == Kind::kShared) return;
  if (qp.honest && cqe.wqe_index != qp.rq_next)
    violation_(fmt::format("host {}: queue pair {:#x}: Receive {} completed when {} was due", endpoint_.host().index(),
                           cqe.qpn, cqe.wqe_index, qp.rq_next));
  qp.rq_next = static_cast<std::uint16_t>(cqe.wqe_index + 1);
}

/// It has been reset or destroyed, so everything that was rung for has completed.
void FuzzProcess::check_flushed(Qp& qp) {
  if (!qp.honest) return;
  const auto say = [&](const char* what, std::uint16_t index) {
    violation_(
        fmt::format("host {}: queue pair {:#x} of kind {}: {} {} was rung for, and has no completion (of {} and "
                    "{} that were written, {} and {} rung for)",
                    endpoint_.host().index(), qp.qp->qpn(), static_cast<int>(qp.kind), what, index, qp.sq_producer,
                    qp.rq_producer, qp.sq_rung, qp.rq_rung));
  };
  for (std::uint16_t index = qp.sq_next; precedes(index, qp.sq_rung); ++index) {
    const auto left = qp.expected.find(index);
    if (left != qp.expected.end() && (!left->second.silent || qp.sq_failed)) return say("request", index);
  }
  if (qp.kind != Kind::kShared && precedes(qp.rq_next, qp.rq_rung)) say("Receive", qp.rq_next);
}

}  // namespace rnic::testbench
