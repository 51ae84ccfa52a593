#include "testbench/compare/program_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "testbench/compare/memory_record.hpp"
#include "testbench/compare/outcome.hpp"
#include "testbench/compare/packet_record.hpp"
#include "testbench/compare/request_record.hpp"
#include "testbench/side_by_side.hpp"
#include "testbench/verify/vector_names.hpp"
#include "testbench/verify/vector_session.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;

constexpr std::uint64_t kLimitNs = 20'000'000'000;
constexpr std::uint64_t kStillNs = 2'000, kSettleNs = 100'000, kLookNs = 100'000;
/// Longer than a NIC waits for an answer of its host (programs have completion_timeout A1).
constexpr std::uint64_t kUnansweredNs = 110'000;
/// In a slow world, too, an event has come by then.
constexpr std::uint64_t kEventNs = 20'000;
/// Longer than all retries of a request take: its requester gives up after them.
constexpr std::uint64_t kBatchNs = 60'000'000;

std::string qp_name(std::size_t host, std::size_t qp) { return fmt::format("{} {}", host == 0 ? 'A' : 'B', qp + 1); }

std::string state_name(std::uint64_t state) {
  constexpr std::array<const char*, 7> kNames = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return state < kNames.size() ? kNames[state] : fmt::format("state {}", state);
}

/// Some DMA read of a host gets no answer, perhaps.
bool never_answers(const RandomProgram& program) {
  const auto is_so = [](const json& of, const char* key) { return of.value(key, std::string()) == "timeout"; };
  const auto regions = program.setup.value("regions", json::array());
  return std::any_of(regions.begin(), regions.end(),
                     [&](const json& one) { return is_so(one, "reads") || is_so(one, "list_reads"); }) ||
         std::any_of(program.steps.begin(), program.steps.end(), [&](const ProgramStep& one) {
           return one.step.at("do") == "ring_reads" && is_so(one.step, "answer");
         });
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
        packets_(session_),
        memory_(session_, vector.setup),
        requests_(session_, vector.setup, memory_, to.at("failures")) {
    to_["batches"] = json::array();
    never_answers_ = never_answers(program);
  }

  void run(bool with_details) {
    with_details_ = with_details;
    frames_.clear();
    for (std::size_t i = 0; i < vector_.steps.size();) {
      const std::size_t batch = program_.steps[i].batch;
      touched_.clear();
      for (; i < vector_.steps.size() && program_.steps[i].batch == batch; ++i) perform(vector_.steps[i]);
      if (!finish_batch(batch)) break;  // each batch behind would take as long, of a NIC that is busy
    }
    read_counters();
    if (with_details) to_["bytes"] = memory_.bytes();
  }

 private:
  void fail(const std::string& sort, const std::string& text) { to_["failures"].push_back(failure_entry(sort, text)); }

  void perform(const VectorStep& step) {
    if (step.kind == StepKind::kFrame) by_hand_ = true;
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
    requests_.add(step);
  }

  /// A queue pair goes on as new; the reset has flushed what was posted.
  void begin_anew(std::size_t host, std::size_t qp) {
    packets_.restart(host, qp);
    requests_.restart(host, qp);
  }

  /// False: its requests have not ended.
  [[nodiscard]] bool finish_batch(std::size_t number) {
    bool ended = true;
    json batch;
    json& completions = batch["completions"] = json::object();
    const std::uint64_t end = now() + kBatchNs;
    for (;;) {
      settle();
      requests_.take_completions(completions);
      if (requests_.outstanding() <= 0 && retired()) break;
      if (now() > end) {
        fail(std::string(kNotEnded),
             fmt::format("batch {}: {} requests have not ended", number + 1, requests_.outstanding()));
        ended = false;
        break;
      }
      session_.endpoint(0).device().elapse(kLookNs);
    }
    settle();
    requests_.take_completions(completions);
    static_cast<void>(retired());  // one host may have gone on while the other was asked
    batch["events"] = {{"A", json::array()}, {"B", json::array()}};
    // The next event of an object comes when the one before it has been taken.
    while (take_events(0, batch) + take_events(1, batch) != 0) session_.endpoint(0).device().elapse(kEventNs);
    batch["states"] = states_;
    batch["psns"] = psns_;
    requests_.leave_receives_open();
    batch["memory"] = memory_.changes();
    if (with_details_) list_frames();
    batch["packets"] = packets_.of(std::exchange(frames_, {}));
    to_["batches"].push_back(std::move(batch));
    return ended;
  }

  /// What a hand-made frame asks for may wait behind a DMA read that is not answered, and nobody knows of it.
  void settle() {
    const bool long_still = never_answers_ && std::exchange(by_hand_, false);
    world_.settle(long_still ? kUnansweredNs : kStillNs, long_still ? 10 * kUnansweredNs : kSettleNs);
  }

  [[nodiscard]] std::uint64_t now() { return session_.endpoint(0).device().now_ns(); }

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
      if (now.state == static_cast<std::uint8_t>(hw::QpState::kErr) && requests_.has_receives(host, qp)) all = false;
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
        if (qp != qps.end()) requests_.failed(static_cast<std::size_t>(qp - qps.begin()));
      }
      if (qp != qps.end() && type != hw::EqeType::kCqError && type != hw::EqeType::kSrqLimit &&
          type != hw::EqeType::kSrqError && type != hw::EqeType::kPortActive && type != hw::EqeType::kPortError)
        entry["qp"] = qp - qps.begin() + 1;
      list.push_back(std::move(entry));
    }
    return events.size();
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

  const Vector& vector_;
  const RandomProgram& program_;
  json& to_;
  std::vector<model::FrameRecord>& frames_;
  World& world_;
  VectorSession session_;
  PacketRecord packets_;
  MemoryRecord memory_;
  RequestRecord requests_;
  bool with_details_ = false;
  bool never_answers_;                                     ///< One of the hosts
  bool by_hand_ = false;                                   ///< Frames since it was still
  std::set<std::pair<std::size_t, std::size_t>> touched_;  ///< Host and queue pair, of the batch
  json states_, psns_;
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
