#include "testbench/compare/request_record.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "testbench/compare/outcome.hpp"
#include "testbench/verify/vector_names.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;

bool is_request(const VectorStep& step) {
  switch (step.kind) {
    case StepKind::kSend:
    case StepKind::kWrite:
    case StepKind::kRead:
    case StepKind::kCompareSwap:
    case StepKind::kFetchAdd:
    case StepKind::kBind:
    case StepKind::kInvalidate:
    case StepKind::kFastRegister:
    case StepKind::kEndRegistration: return true;
    default: return false;
  }
}

bool is_silent(const VectorStep& step) { return (step.flags & ND_OP_FLAG_SILENT_SUCCESS) != 0; }

}  // namespace

void RequestRecord::add(const VectorStep& step) {
  const bool receives = step.kind == StepKind::kReceive;
  if (!is_request(step) && !receives) return;
  posted_[step.host][step.context] = {&step, false};
  if (receives && !setup_.srq) receives_[{step.host, step.qp}].insert(step.context);
  if (!receives && !is_silent(step)) ++outstanding_;
}

void RequestRecord::restart(std::size_t host, std::size_t qp) {
  first_error_.erase({host, qp});
  receives_.erase({host, qp});
}

void RequestRecord::take_completions(json& to) {
  for (std::size_t host = 0; host < 2; ++host) {
    for (const auto queue : {VectorQueue::kInitiator, VectorQueue::kReceive}) {
      for (umd::Completion result; session_.completions(host, queue).poll({&result, 1}) != 0;)
        take(host, queue, result, to);
    }
  }
}

bool RequestRecord::has_receives(std::size_t host, std::size_t qp) const {
  const auto it = receives_.find({host, qp});
  return it != receives_.end() && !it->second.empty();
}

void RequestRecord::leave_receives_open() {
  const bool whole = setup_.type == hw::QpType::kRc || is_ethernet();  // no part of one that is dropped
  if (failed_.empty() && whole) return;
  for (const auto& of_host : posted_) {
    for (const auto& [context, posted] : of_host) {
      if (posted.step->kind != StepKind::kReceive || posted.completed) continue;
      if (!setup_.srq && whole && !failed_.contains(posted.step->qp)) continue;
      leave_open(*posted.step);
    }
  }
}

void RequestRecord::take(std::size_t host, VectorQueue queue, const umd::Completion& result, json& to) {
  const auto qp = reinterpret_cast<std::uintptr_t>(result.qp_context);
  const auto posted = posted_[host].find(result.id);
  const VectorStep* const step = posted == posted_[host].end() ? nullptr : posted->second.step;
  json entry = {
      {"type", kind_name(result.kind)}, {"context", result.id}, {"status", cqe_status_name(result.status)}, {"qp", qp}};
  const bool receives = queue == VectorQueue::kReceive;
  if (receives) receives_[{host, qp == 0 ? 0 : qp - 1}].erase(result.id);
  if (result.status == hw::CqeStatus::kSuccess) {
    // What a Send or a memory request reports as its length the specification leaves open.
    if (receives || result.kind == umd::RequestKind::kRead) entry["bytes"] = result.byte_count;
    if (result.with_immediate) entry["immediate"] = result.immediate;
    if (result.with_invalidate) entry["invalidated"] = session_.name_of_key(result.immediate);
    if (receives && is_ethernet()) entry.update({{"l3_ok", result.l3_ok}, {"l4_ok", result.l4_ok}});
    if (result.grh) entry["source_qp"] = source_of(host, result.source_qpn);
  } else {
    if (result.syndrome != 0) entry["syndrome"] = result.syndrome;
    note_failure(host, receives ? nullptr : step, qp == 0 ? 0 : qp - 1, result.status);
  }
  if (step == nullptr || std::exchange(posted->second.completed, true))
    failures_.push_back(
        failure_entry("a completion of no request",
                      fmt::format("host {}: a completion of no request: {}", host == 0 ? 'A' : 'B', entry.dump())));
  else if (!receives && !is_silent(*step))
    --outstanding_;
  if (receives && result.status != hw::CqeStatus::kSuccess && step != nullptr) leave_open(*step);
  to[fmt::format("{} {} {}", host == 0 ? 'A' : 'B', receives ? "receive" : "initiator", qp)].push_back(
      std::move(entry));
}

/// A request has failed, or was flushed behind one that has: what memory it may have left in between.
void RequestRecord::note_failure(std::size_t host, const VectorStep* step, std::size_t qp, hw::CqeStatus status) {
  failed_.insert(qp);
  const auto first = first_error_.try_emplace({host, qp}, status).first->second;
  if (step == nullptr) return;
  // A responder has refused the first; it executes nothing behind it (9.9.3).
  const bool refused = first == hw::CqeStatus::kRemAccessErr || first == hw::CqeStatus::kRemInvReqErr ||
                       first == hw::CqeStatus::kRemOpErr;
  if (status == hw::CqeStatus::kWrFlushErr && refused) return;
  const bool is_atomic = step->kind == StepKind::kCompareSwap || step->kind == StepKind::kFetchAdd;
  if (step->kind == StepKind::kRead || is_atomic) leave_open(*step);
  if (is_atomic) memory_.leave_open(step->remote.region, step->remote.offset, 8);
  if (step->kind == StepKind::kWrite) {
    std::uint64_t length = 0;
    for (const auto& place : step->sge) length += place.length;
    memory_.leave_open(step->remote.region, step->remote.offset, length);
  }
}

void RequestRecord::leave_open(const VectorStep& step) {
  for (const auto& place : step.sge) memory_.leave_open(place.region, place.offset, place.length);
}

/// Number of the queue pair of the other host that has this QPN, from 1; 0: none.
std::size_t RequestRecord::source_of(std::size_t host, std::uint32_t qpn) const {
  const auto& qps = session_.numbers().hosts[1 - host];
  const auto it = std::find_if(qps.begin(), qps.end(), [&](const auto& one) { return one.qpn == qpn; });
  return it == qps.end() ? 0 : static_cast<std::size_t>(it - qps.begin()) + 1;
}

}  // namespace rnic::testbench
