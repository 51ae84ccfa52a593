#include "testbench/compare/program_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "testbench/compare/packet_record.hpp"
#include "testbench/side_by_side.hpp"
#include "testbench/verify/vector_names.hpp"
#include "testbench/verify/vector_session.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;

constexpr std::uint64_t kLimitNs = 20'000'000'000;
constexpr std::uint64_t kStillNs = 2'000, kSettleNs = 100'000, kLookNs = 100'000;
/// In a slow world, too, an event has come by then.
constexpr std::uint64_t kEventNs = 20'000;
/// Longer than all retries of a request take: its requester gives up after them.
constexpr std::uint64_t kBatchNs = 60'000'000;

std::string qp_name(std::size_t host, std::size_t qp) { return fmt::format("{} {}", host == 0 ? 'A' : 'B', qp + 1); }

std::string state_name(std::uint64_t state) {
  constexpr std::array<const char*, 7> kNames = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return state < kNames.size() ? kNames[state] : fmt::format("state {}", state);
}

bool posts(const VectorStep& step) {
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

/// One program on one world.
class Recording {
 public:
  Recording(World& world, const Vector& vector, const RandomProgram& program, json& to,
            std::vector<model::FrameRecord>& frames)
      : vector_(vector),
        program_(program),
        to_(to),
        frames_(frames),
        world_(world),
        session_(world, vector),
        packets_(session_) {
    to_["batches"] = json::array();
    for (const auto& region : vector.setup.regions) {
      if (region.memory_of.empty()) names_.push_back(region.name);
    }
  }

  void run(bool with_details) {
    with_details_ = with_details;
    frames_.clear();
    for (std::size_t i = 0; i < vector_.steps.size();) {
      const std::size_t batch = program_.steps[i].batch;
      touched_.clear();
      for (; i < vector_.steps.size() && program_.steps[i].batch == batch; ++i) perform(vector_.steps[i]);
      finish_batch(batch);
    }
    read_counters();
    if (with_details) read_bytes();
  }

 private:
  struct Posted {
    const VectorStep* step;
    bool completed;
  };
  struct Span {
    const std::uint8_t* first;
    std::size_t bytes;
  };

  void fail(const std::string& sort, const std::string& text) { to_["failures"].push_back(failure_entry(sort, text)); }

  void perform(const VectorStep& step) {
    if (step.kind != StepKind::kWait && step.kind != StepKind::kFault) {
      touched_.insert({step.host, step.qp});
      touched_.insert({1 - step.host, step.qp});
    }
    try {
      session_.run(step);
      if (step.kind == StepKind::kReset) begin_anew(step.host, step.qp);
    } catch (const VectorFailure& failure) {
      fail("refused " + step.text.substr(step.text.find('(')), failure.what());  // "step 3 (send)"
      return;
    }
    const bool receives = step.kind == StepKind::kReceive;
    if (!posts(step) && !receives) return;
    posted_[step.host][step.context] = {&step, false};
    if (receives && !vector_.setup.srq) receives_[{step.host, step.qp}].insert(step.context);
    if (!receives && (step.flags & ND_OP_FLAG_SILENT_SUCCESS) == 0) ++outstanding_;
  }

  /// A queue pair goes on as new; the reset has flushed what was posted.
  void begin_anew(std::size_t host, std::size_t qp) {
    packets_.restart(host, qp);
    first_error_.erase({host, qp});
    receives_.erase({host, qp});
  }

  void finish_batch(std::size_t number) {
    json batch;
    json& completions = batch["completions"] = json::object();
    const std::uint64_t end = now() + kBatchNs;
    for (;;) {
      world_.settle(kStillNs, kSettleNs);
      take_completions(completions);
      if (outstanding_ <= 0 && retired()) break;
      if (now() > end) {
        fail("requests have not ended", fmt::format("batch {}: {} requests have not ended", number + 1, outstanding_));
        break;
      }
      session_.endpoint(0).device().elapse(kLookNs);
    }
    world_.settle(kStillNs, kSettleNs);
    take_completions(completions);
    static_cast<void>(retired());  // one host may have gone on while the other was asked
    batch["events"] = {{"A", json::array()}, {"B", json::array()}};
    // The next event of an object comes when the one before it has been taken.
    while (take_events(0, batch) + take_events(1, batch) != 0) session_.endpoint(0).device().elapse(kEventNs);
    batch["states"] = states_;
    batch["psns"] = psns_;
    hash_memory(batch);
    if (with_details_) list_frames();
    batch["packets"] = packets_.of(std::exchange(frames_, {}));
    to_["batches"].push_back(std::move(batch));
  }

  [[nodiscard]] std::uint64_t now() { return session_.endpoint(0).device().now_ns(); }

  void take_completions(json& to) {
    for (std::size_t host = 0; host < 2; ++host) {
      for (const auto queue : {VectorQueue::kInitiator, VectorQueue::kReceive}) {
        for (umd::Completion result; session_.completions(host, queue).poll({&result, 1}) != 0;)
          take(host, queue, result, to);
      }
    }
  }

  void take(std::size_t host, VectorQueue queue, const umd::Completion& result, json& to) {
    const auto qp = reinterpret_cast<std::uintptr_t>(result.qp_context);
    const auto posted = posted_[host].find(result.id);
    const VectorStep* const step = posted == posted_[host].end() ? nullptr : posted->second.step;
    json entry = {{"type", kind_name(result.kind)},
                  {"context", result.id},
                  {"status", cqe_status_name(result.status)},
                  {"qp", qp}};
    const bool receives = queue == VectorQueue::kReceive;
    if (receives) receives_[{host, qp == 0 ? 0 : qp - 1}].erase(result.id);
    if (result.status == hw::CqeStatus::kSuccess) {
      // What a Send or a memory request reports as its length the specification leaves open.
      if (receives || result.kind == umd::RequestKind::kRead) entry["bytes"] = result.byte_count;
      if (result.with_immediate) entry["immediate"] = result.immediate;
      if (result.with_invalidate) entry["invalidated"] = session_.name_of_key(result.immediate);
      if (result.grh) entry["source_qp"] = source_of(host, result.source_qpn);
    } else {
      if (result.syndrome != 0) entry["syndrome"] = result.syndrome;
      note_failure(host, receives ? nullptr : step, qp == 0 ? 0 : qp - 1, result.status);
    }
    if (posted == posted_[host].end() || std::exchange(posted->second.completed, true))
      fail("a completion of no request",
           fmt::format("host {}: a completion of no request: {}", host == 0 ? 'A' : 'B', entry.dump()));
    else if (!receives && (step->flags & ND_OP_FLAG_SILENT_SUCCESS) == 0)
      --outstanding_;
    if (receives && result.status != hw::CqeStatus::kSuccess && step != nullptr) {
      for (const auto& place : step->sge) leave_open(place.region, place.offset, place.length);
    }
    to[fmt::format("{} {} {}", host == 0 ? 'A' : 'B', receives ? "receive" : "initiator", qp)].push_back(
        std::move(entry));
  }

  [[nodiscard]] std::size_t source_of(std::size_t host, std::uint32_t qpn) const {
    const auto& qps = session_.numbers().hosts[1 - host];
    const auto it = std::find_if(qps.begin(), qps.end(), [&](const auto& one) { return one.qpn == qpn; });
    return it == qps.end() ? 0 : static_cast<std::size_t>(it - qps.begin()) + 1;
  }

  /// A request has failed, or was flushed behind one that has: what memory it may have left in between.
  void note_failure(std::size_t host, const VectorStep* step, std::size_t qp, hw::CqeStatus status) {
    failed_.insert(qp);
    const auto first = first_error_.try_emplace({host, qp}, status).first->second;
    if (step == nullptr) return;
    // A responder has refused the first; it executes nothing behind it (9.9.3).
    const bool refused = first == hw::CqeStatus::kRemAccessErr || first == hw::CqeStatus::kRemInvReqErr ||
                         first == hw::CqeStatus::kRemOpErr;
    if (status == hw::CqeStatus::kWrFlushErr && refused) return;
    if (step->kind == StepKind::kRead || step->kind == StepKind::kCompareSwap || step->kind == StepKind::kFetchAdd) {
      for (const auto& place : step->sge) leave_open(place.region, place.offset, place.length);
    }
    if (step->kind == StepKind::kCompareSwap || step->kind == StepKind::kFetchAdd)
      leave_open(step->remote.region, step->remote.offset, 8);
    if (step->kind == StepKind::kWrite) {
      std::uint64_t length = 0;
      for (const auto& place : step->sge) length += place.length;
      leave_open(step->remote.region, step->remote.offset, length);
    }
  }

  void leave_open(const std::string& name, std::int64_t offset, std::uint64_t length) {
    if (name.empty()) return;
    const auto bytes = session_.bytes_of(name);
    const auto first = static_cast<std::uint64_t>(std::max<std::int64_t>(offset, 0));
    if (first >= bytes.size()) return;
    open_.push_back({bytes.data() + first, std::min<std::uint64_t>(length, bytes.size() - first)});
  }

  /// All that was posted has retired, silent requests too, and the Receives of queue pairs that have failed: one that
  /// waits for memory which does not answer is flushed when its time is over, long after the requests.
  bool retired() {
    states_ = psns_ = json::object();
    bool all = true;
    for (const auto& [host, qp] : touched_) {
      auto& core = session_.queue_pair(host, qp);
      if (core.state() == umd::QueuePair::State::kClosed) continue;
      const auto answer = core.kernel_qp().query();
      if (!answer) {
        fail("query", fmt::format("query of queue pair {}: {}", qp_name(host, qp), describe(answer.error())));
        continue;
      }
      const auto& now = *answer;
      const auto rts = static_cast<std::uint8_t>(hw::QpState::kRts);
      if (now.state == rts && now.sq_retired != now.sq_producer) all = false;
      if (now.state == static_cast<std::uint8_t>(hw::QpState::kErr) && !receives_[{host, qp}].empty()) all = false;
      states_[qp_name(host, qp)] = state_name(now.state);
      const auto& numbers = session_.numbers().hosts;
      if (now.state == rts && core.type() == hw::QpType::kRc)
        psns_[qp_name(host, qp)] = {(now.sq_psn - numbers[host].at(qp).first_psn) & 0xffffff,
                                    (now.rq_psn - numbers[1 - host].at(qp).first_psn) & 0xffffff};
    }
    return all;
  }

  /// Gives how many there were.
  std::size_t take_events(std::size_t host, json& batch) {
    json& list = batch["events"][host == 0 ? "A" : "B"];
    const auto events = session_.take_events(host);
    for (const auto& eqe : events) {
      const auto type = static_cast<hw::EqeType>(eqe.event_type);
      json entry = {{"type", event_name(type)}};
      const auto& qps = session_.numbers().hosts[host];
      const auto qp = std::find_if(qps.begin(), qps.end(), [&](const auto& one) { return one.qpn == eqe.number; });
      if (type == hw::EqeType::kQpFatal || type == hw::EqeType::kQpRequestError ||
          type == hw::EqeType::kQpAccessError) {
        if (eqe.detail != 0) entry["cause"] = cqe_status_name(static_cast<hw::CqeStatus>(eqe.detail));
        if (qp != qps.end()) failed_.insert(static_cast<std::size_t>(qp - qps.begin()));
      }
      if (qp != qps.end() && type != hw::EqeType::kCqError && type != hw::EqeType::kSrqLimit &&
          type != hw::EqeType::kSrqError && type != hw::EqeType::kPortActive && type != hw::EqeType::kPortError)
        entry["qp"] = qp - qps.begin() + 1;
      list.push_back(std::move(entry));
    }
    return events.size();
  }

  /// What is open of the receives that no message has ended on a queue pair that has failed: parts of one.
  void leave_receives_open() {
    if (failed_.empty() && vector_.setup.type == hw::QpType::kRc) return;
    for (std::size_t host = 0; host < 2; ++host) {
      for (auto& [context, posted] : posted_[host]) {
        if (posted.step->kind != StepKind::kReceive || posted.completed) continue;
        if (!vector_.setup.srq && vector_.setup.type == hw::QpType::kRc && !failed_.contains(posted.step->qp)) continue;
        for (const auto& place : posted.step->sge) leave_open(place.region, place.offset, place.length);
      }
    }
  }

  void hash_memory(json& batch) {
    leave_receives_open();
    json& memory = batch["memory"] = json::object();
    std::vector<std::uint8_t> block(kHashedBytes);
    for (const auto& name : names_) {
      const auto bytes = session_.bytes_of(name);
      auto& last = hashes_[name];
      last.resize((bytes.size() + kHashedBytes - 1) / kHashedBytes);
      std::vector<Span> open;
      for (const auto& span : open_) {
        if (span.first >= bytes.data() && span.first < bytes.data() + bytes.size()) open.push_back(span);
      }
      for (std::size_t i = 0; i < last.size(); ++i) {
        const std::uint8_t* const first = bytes.data() + i * kHashedBytes;
        const std::size_t count = std::min(kHashedBytes, bytes.size() - i * kHashedBytes);
        std::uint64_t hash = 0;
        const bool touched = std::any_of(open.begin(), open.end(), [&](const Span& span) {
          return span.first < first + count && span.first + span.bytes > first;
        });
        if (touched) {
          std::copy_n(first, count, block.begin());
          for (const auto& span : open) clear(span, first, count, block);
          hash = hash_of(block.data(), count);
        } else {
          hash = hash_of(first, count);
        }
        if (std::exchange(last[i], hash) != hash) memory[name][std::to_string(i)] = hash;
      }
    }
  }

  static void clear(const Span& span, const std::uint8_t* first, std::size_t count, std::vector<std::uint8_t>& block) {
    const std::uint8_t* const from = std::max(span.first, first);
    const std::uint8_t* const to = std::min(span.first + span.bytes, first + count);
    for (const std::uint8_t* at = from; at < to; ++at) block[static_cast<std::size_t>(at - first)] = 0;
  }

  void read_counters() {
    std::array<json, 2> counters = {json::object(), json::object()};
    std::array<std::vector<json>, 2> of_pairs;
    std::vector<std::function<void()>> tasks;
    for (std::size_t host = 0; host < 2; ++host) {
      for (std::size_t i = 0; i < hw::kCounterNames.size(); ++i) {
        tasks.emplace_back([this, host, i, &counters] {
          const auto count = session_.endpoint(host).kernel().counter(static_cast<hw::Counter>(i));
          if (count) counters[host][std::string(hw::kCounterNames[i])] = *count;
        });
      }
      of_pairs[host].resize(vector_.setup.queue_pairs);
      for (std::size_t qp = 0; qp < vector_.setup.queue_pairs; ++qp) {
        if (session_.queue_pair(host, qp).state() == umd::QueuePair::State::kClosed) continue;
        tasks.emplace_back([this, host, qp, &of_pairs] {
          const auto counts = session_.queue_pair(host, qp).kernel_qp().counters();
          for (std::size_t i = 0; counts && i < hw::kQpCounters; ++i)
            of_pairs[host][qp][std::string(hw::kQpCounterNames[i])] = counts->counts[i];
        });
      }
    }
    side_by_side(tasks);
    for (std::size_t host = 0; host < 2; ++host) {
      to_["counters"][host == 0 ? "A" : "B"] = counters[host];
      for (std::size_t qp = 0; qp < of_pairs[host].size(); ++qp)
        to_["qp_counters"][qp_name(host, qp)] = of_pairs[host][qp];
    }
  }

  void list_frames() {
    for (const auto& frame : frames_) {
      const auto packet = describe_packet(frame, session_.numbers());
      if (packet.fields.contains("opcode")) to_["frames"][frame.from == 0 ? "A" : "B"].push_back(packet.text);
    }
  }

  void read_bytes() {
    for (const auto& name : names_) {
      const auto bytes = session_.bytes_of(name);
      std::string text;
      for (const auto byte : bytes) text += fmt::format("{:02x}", byte);
      for (const auto& span : open_) {
        for (const std::uint8_t* at = span.first; at < span.first + span.bytes; ++at) {
          if (at >= bytes.data() && at < bytes.data() + bytes.size())
            text.replace(2 * static_cast<std::size_t>(at - bytes.data()), 2, "??");
        }
      }
      to_["bytes"][name] = text;
    }
  }

  const Vector& vector_;
  const RandomProgram& program_;
  json& to_;
  std::vector<model::FrameRecord>& frames_;
  World& world_;
  VectorSession session_;
  PacketRecord packets_;
  std::vector<std::string> names_;  ///< Of regions with memory of their own
  std::array<std::map<std::uint64_t, Posted>, 2> posted_;
  std::map<std::pair<std::size_t, std::size_t>, std::set<std::uint64_t>> receives_;  ///< That have not ended
  std::int64_t outstanding_ = 0;
  bool with_details_ = false;
  std::set<std::pair<std::size_t, std::size_t>> touched_;  ///< Host and queue pair, of the batch
  json states_, psns_;
  std::set<std::size_t> failed_;  ///< Queue pairs, on either host
  std::map<std::pair<std::size_t, std::size_t>, hw::CqeStatus> first_error_;
  std::vector<Span> open_;  ///< Memory of which the specification does not say what is in it
  std::map<std::string, std::vector<std::uint64_t>> hashes_;
};

void plant(PlantedDifference planted, VectorSetup& setup) {
  constexpr std::uint64_t kMainBytes = 64 << 10;
  for (auto& region : setup.regions) {
    if (planted == PlantedDifference::kExtraRight) region.flags |= ND_MR_FLAG_ALLOW_REMOTE_WRITE;
    if (planted == PlantedDifference::kLongRegion && region.size < kMainBytes) region.size += 64;
  }
  for (auto& host : setup.hosts) {
    if (planted == PlantedDifference::kShortQueue) host.initiator_depth = 2;
  }
}

/// What it says on its first two lines, but for all numbers, is its sort: the rule that was broken, or that nothing
/// moves.
json end_of_run(const std::string& text) {
  std::string sort(kRunEnded);
  std::size_t lines = 0;
  for (const char letter : text) {
    if (letter == '\n' && ++lines == 2) break;
    if (letter != '\n' && (letter < '0' || letter > '9')) sort += letter;
  }
  return failure_entry(sort, std::string(kRunEnded) + text);
}

}  // namespace

json ProgramRunner::run(const RandomProgram& program, bool with_details) {
  Vector vector = parse_vector(program.vector_text(), "program");
  plant(planted_, vector.setup);
  json to = {{"failures", json::array()}};
  auto options = options_;
  if (vector.setup.link_gbps) options.wire.rate_gbps = *vector.setup.link_gbps;
  if (vector.setup.link_delay_ns) options.wire.delay_ns = *vector.setup.link_delay_ns;
  std::vector<model::FrameRecord> frames;
  try {
    world_.reset(options);
    world_.observe_frames([&](const model::FrameRecord& frame) { frames.push_back(frame); });
    world_.add_app(0, "program", [&](Host&) { Recording(world_, vector, program, to, frames).run(with_details); });
    world_.run(kLimitNs);
  } catch (const sc_core::sc_report& report) {
    to["stopped"] = report.what();
  } catch (const std::exception& error) {
    to["failures"].push_back(end_of_run(error.what()));
  }
  world_.observe_frames({});
  return to;
}

}  // namespace rnic::testbench
