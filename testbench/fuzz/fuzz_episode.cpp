#include "testbench/fuzz/fuzz_episode.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "testbench/interrupt.hpp"
#include "testbench/side_by_side.hpp"

namespace rnic::testbench {
namespace {

constexpr std::size_t kHistory = 64;
constexpr std::uint64_t kLimitNs = 10'000'000'000;
constexpr std::uint64_t kWaitNs = 300;  ///< When all that could be attacked have failed
constexpr double kPortGbps = 100;       ///< Of a NIC

/// Of what the wire and both NICs can do.
double rate_gbps(const World& world) { return std::min(world.options().wire.rate_gbps, kPortGbps); }

}  // namespace

FuzzEpisode::FuzzEpisode(World& world, const Spec& spec, const std::vector<CorpusEntry>& corpus, FuzzReport& report,
                         std::function<void(std::uint64_t)> progress)
    : world_(world),
      seed_(spec.seed),
      frames_(spec.frames),
      planted_(spec.planted),
      corpus_(corpus),
      report_(report),
      progress_(std::move(progress)),
      random_(seed_, "fuzz"),
      byte_ns_(2 * 8 / rate_gbps(world)) {
  const auto answer_ns = static_cast<std::uint64_t>(AnswerCheck::kAnswerNs * kPortGbps / rate_gbps(world));
  for (auto& side : sides_) side.answers.fill(AnswerCheck(answer_ns));
}

FuzzEpisode::~FuzzEpisode() { world_.observe_frames({}); }

void FuzzEpisode::run() {
  add_app(0, "setup", [this] { set_up(); });
  if (!simulate()) return;
  const std::uint64_t start = world_.host(0).nic().cycles();
  report_.set_up_cycles += start;
  world_.observe_frames([this](const model::FrameRecord& record) { watch(record); });
  for (std::size_t thread = 0; thread < victims_->threads(); ++thread) {
    add_app(thread % 2, fmt::format("victims{}", thread), [this, thread] { victims_->run(thread); });
  }
  for (std::size_t first = 0; first < kPairs; first += kPairsPerKeeper) {
    add_app(0, fmt::format("keeper{}", first), [this, first] { keep(first); });
  }
  add_app(1, "monitor", [this] { monitor(); });
  for (std::size_t host = 0; host < 2; ++host) {
    add_app(host, "wire", [this, host] { inject(host); });
    add_app(host, "attacker", [this, host] { attack(host); });
  }
  simulate();
  world_.observe_frames({});
  report_.cycles += world_.host(0).nic().cycles() - start;
  report_.victim_requests += victims_->report().total();
  for (const auto& text : victims_->report().messages) violation("victims: " + text);
  for (const auto& side : sides_) {
    report_.completions += side.process->completions();
    report_.successes += side.process->successes();
    report_.outcomes += side.process->judged();
    for (const auto& one : side.answers) report_.answers += one.judged();
  }
  if (failed_) return;  // what is stuck may never come down
  const std::uint64_t end = world_.host(0).nic().cycles();
  add_app(0, "close", [this] {
    read_counters();
    victims_.reset();
    for (auto& side : sides_) side.wqes.reset();
    for_each_side([](Side& side) {
      side.process.reset();
      side.endpoint.reset();
    });
  });
  simulate();
  report_.tear_down_cycles += world_.host(0).nic().cycles() - end;
}

void FuzzEpisode::for_each_side(const std::function<void(Side&)>& task) {
  side_by_side({[&] { task(sides_[0]); }, [&] { task(sides_[1]); }});
}

void FuzzEpisode::add_app(std::size_t host, const std::string& name, std::function<void()> body) {
  world_.add_app(host, name, [this, name, run = std::move(body)](Host&) {
    try {
      run();
    } catch (const sc_core::sc_unwind_exception&) {
      throw;
    } catch (const std::exception& error) {
      violation(fmt::format("{}: {}", name, error.what()));
    }
  });
}

bool FuzzEpisode::simulate() {
  try {
    world_.run(kLimitNs);
  } catch (const sc_core::sc_report& error) {
    report_.stopped = true;
    violation(error.what());
  } catch (const std::exception& error) {
    violation(error.what());
  }
  return !failed_;
}

void FuzzEpisode::inject(std::size_t host) {
  ++injecting_;
  auto& side = sides_[host];
  model::Random gaps(seed_, fmt::format("gaps{}", host));
  if (host == 0) replay();
  while (sent_ < frames_ && !failed_ && !interrupted()) {
    auto frame = side.frames->next(side.targets);
    if (!frame) {
      side.endpoint->device().elapse(kWaitNs);
      continue;
    }
    const double wire_ns = static_cast<double>(frame->bytes.size() + 24) * byte_ns_;
    report_.live += frame->live;
    send(host, std::move(*frame));
    side.endpoint->device().elapse(static_cast<std::uint64_t>(wire_ns) + 16 + gaps.below(48));
  }
  --injecting_;
}

/// The corpus. Each case (from a frame with the PSN that is expected, to the next such one) goes to another target of
/// the kind it was made for.
void FuzzEpisode::replay() {
  std::size_t turn = 0;
  for (const auto& entry : corpus_) {
    for (const auto& one : entry.frames) {
      auto& targets = sides_[one.host].targets;
      const auto& seen = one.frame.target;
      std::vector<const FuzzTarget*> alike;
      for (const auto& target : targets) {
        if (target.victim == seen.victim && target.group == seen.group && target.path.ipv6 == seen.path.ipv6)
          alike.push_back(&target);
      }
      if (alike.empty()) continue;
      if (has_expected_psn(one.frame)) {
        ++turn;
        sides_[0].endpoint->device().elapse(400);
      }
      const FuzzTarget& now = *alike[turn % alike.size()];
      FuzzFrame frame{rebind(one.frame.bytes, seen, now), one.frame.bad_fcs, now};
      if (could_be_peer(frame.bytes, targets)) make_stranger(frame.bytes);
      const double wire_ns = static_cast<double>(frame.bytes.size() + 24) * byte_ns_;
      send(one.host, std::move(frame));
      sides_[0].endpoint->device().elapse(static_cast<std::uint64_t>(wire_ns) + 16);
    }
  }
}

void FuzzEpisode::send(std::size_t host, FuzzFrame frame) {
  make_plain(frame.bytes);
  world_.wire().inject(1 - host, frame.bytes, frame.bad_fcs);
  history_.push_back({host, std::move(frame)});
  if (history_.size() > kHistory) history_.pop_front();
  ++sent_;
  ++report_.frames;
  if (progress_ && sent_ % 256 == 0) progress_(report_.frames);
}

void FuzzEpisode::attack(std::size_t host) {
  auto& side = sides_[host];
  model::Random pace(seed_, fmt::format("pace{}", host));
  while (!done_ && !failed_) {
    for (std::uint64_t count = pace.below(4); count > 0; --count) report_.wqes += side.wqes->post();
    if (pace.chance(0.5)) {
      ++report_.accesses;
      if (!side.wqes->access())
        violation(fmt::format("host {}: a request to the page of a process was never answered", host));
    }
    side.endpoint->device().elapse(200 + pace.below(1'500));
  }
}

/// The first one ends the episode: all applications see it and stop. What went before it is kept.
void FuzzEpisode::violation(const std::string& text) {
  if (failed_) return;
  failed_ = done_ = true;
  if (victims_) victims_->stop();
  CorpusEntry entry{
      fmt::format("{} (after {} frames of this seed)", text, sent_), seed_, {history_.begin(), history_.end()}, {}};
  entry.at_ns = world_.now_ns();
  entry.run_frames = frames_;
  for (std::size_t host = 0; host < 2; ++host) {
    if (!sides_[host].wqes) continue;
    for (const auto& line : sides_[host].wqes->history())
      entry.actions.push_back(fmt::format("host {}: {}", host, line));
  }
  report_.violations.push_back(std::move(entry));
}

}  // namespace rnic::testbench
