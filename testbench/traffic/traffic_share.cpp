#include "testbench/traffic/traffic_share.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "testbench/side_by_side.hpp"
#include "testbench/traffic/fence_lane.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint32_t kShareEntries = 256;
constexpr std::size_t kShareBytes = 1 << 20;
/// A thread that has work to post sleeps no longer than that.
constexpr std::uint64_t kLeastSleepNs = 500, kSleepNs = 4'000;

enum class ShareKind : std::uint8_t { kAtomics, kCells, kFence, kOverwrite };
struct LanePlan {
  ShareKind kind;
  std::size_t from;
};
/// Two of the other host, and one of the host itself, which goes through its port's way back.
constexpr LanePlan kLanePlans[] = {{ShareKind::kAtomics, 0}, {ShareKind::kAtomics, 0},  {ShareKind::kAtomics, 1},
                                   {ShareKind::kCells, 0},   {ShareKind::kCells, 0},    {ShareKind::kCells, 1},
                                   {ShareKind::kFence, 0},   {ShareKind::kOverwrite, 0}};

}  // namespace

TrafficShare::TrafficShare(Endpoint& from, Endpoint& to, std::uint32_t number, const TrafficOptions& options,
                           std::uint64_t seed, TrafficReport& report)
    : number_(number), report_(report), random_(seed) {
  Endpoint* const endpoints[] = {&from, &to};
  for (std::size_t host = 0; host < 2; ++host) {
    sides_[host] = std::make_unique<MixSide>(
        *endpoints[host], MixSide::Spec{.bytes = kShareBytes, .entries = kShareEntries, .shared = true});
    auto& side = *sides_[host];
    const auto receives =
        require_success(umd::CompletionQueue::create(side.process(), kShareEntries), "creating a completion queue");
    const auto name = [&](const char* what) { return fmt::format("share {}, {} of its host {}", number, what, host); };
    queues_[host] = {NotifiedQueue::make(name("requests"), side.process(), side.cq(), options, report),
                     NotifiedQueue::make(name("Receives"), side.process(), receives, options, report)};
    for (const auto& queue : {queues_[host].requests, queues_[host].receives}) {
      if (!random_.chance(0.3)) continue;
      require_success(queue->queue().moderate(static_cast<std::uint16_t>(random_.below(5)),
                                              static_cast<std::uint16_t>(1 + random_.below(20))),
                      "moderating events");
    }
  }
  words_ = std::make_unique<AtomicWords>(*sides_[1]);
  cells_ = std::make_unique<SharedCells>(*sides_[1]);
  make_lanes(options);
}

void TrafficShare::make_lanes(const TrafficOptions& options) {
  lanes_.resize(std::size(kLanePlans));
  std::vector<std::function<void()>> tasks;
  const auto host = [this](std::size_t index) {
    return ShareLane::Host{*sides_[index], *queues_[index].requests, *queues_[index].receives};
  };
  const auto connection = [&] {
    auto drawn = options.connection;
    drawn.mtu = 256u << random_.below(5);
    drawn.ipv6 = random_.chance(0.5);
    drawn.read_limit = static_cast<std::uint32_t>(1 + random_.below(16));
    drawn.rnr_retry = 7;
    return drawn;
  };
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    constexpr const char* kNames[] = {"atomics", "cells", "fence", "overwrite"};
    const auto [kind, from] = kLanePlans[i];
    const ShareLane::Spec spec{
        .name = fmt::format("share {}, {} of queue pair {}", number_, kNames[static_cast<std::size_t>(kind)], i + 1),
        .number = static_cast<std::uint32_t>(number_ * lanes_.size() + i + 1),
        .from = host(from),
        .to = host(1),
        .connection = connection()};
    tasks.emplace_back([this, i, kind = kind, from = from, spec, seed = random_.next(), &options] {
      lanes_[i].from = from;
      auto& lane = lanes_[i].lane;
      switch (kind) {
        case ShareKind::kAtomics:
          lane = std::make_unique<AtomicLane>(spec, *words_, clock_, options, seed, report_);
          break;
        case ShareKind::kCells: lane = std::make_unique<CellLane>(spec, *cells_, clock_, options, seed, report_); break;
        case ShareKind::kFence: lane = std::make_unique<FenceLane>(spec, clock_, options, seed, report_); break;
        case ShareKind::kOverwrite: lane = std::make_unique<OverwriteLane>(spec, clock_, options, seed, report_); break;
      }
    });
  }
  tasks.emplace_back([this, &options, connection = connection(), seed = random_.next()] {
    quiet_ = std::make_unique<QuietQueue>(fmt::format("share {}, the quiet queue", number_), *sides_[0], *sides_[1],
                                          connection, options, seed, report_);
  });
  side_by_side(tasks);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (kLanePlans[i].kind == ShareKind::kCells && kLanePlans[i].from == 1)
      looks_ = static_cast<CellLane*>(lanes_[i].lane.get());
  }
}

TrafficShare::~TrafficShare() {
  std::vector<std::function<void()>> tasks;
  for (auto& lane : lanes_) tasks.emplace_back([&lane] { lane.lane.reset(); });
  tasks.emplace_back([this] { quiet_.reset(); });
  side_by_side(tasks);
}

void TrafficShare::work(std::size_t thread) {
  auto& side = *sides_[thread];
  auto& queues = queues_[thread];
  const auto told = [&] {
    return queues.requests->told() || queues.receives->told() || (thread == 0 && quiet_->told());
  };
  for (const bool of_receives : {false, true}) arm(of_receives ? *queues.receives : *queues.requests, of_receives);
  while (!finished()) {
    if (queues.requests->told()) take(*queues.requests, false);
    if (queues.receives->told()) take(*queues.receives, true);
    for (auto& lane : lanes_) {
      if (lane.from == thread) lane.lane->step();
      if (thread == 1) lane.lane->step_sink();
    }
    if (thread == 0) quiet_->step();
    if (thread == 1 && random_.chance(0.3)) looks_->look();
    for (auto* const queue : {queues.requests.get(), queues.receives.get()}) queue->watch(side.now());
    side.endpoint().wait_until(told, kLeastSleepNs + random_.below(kSleepNs));
  }
  if (--working_ == 0) finish();
}

void TrafficShare::for_each_qp(const std::function<void(const std::string&, umd::QueuePair&)>& look) {
  for (auto& one : lanes_) {
    look(one.lane->name() + ", requester", one.lane->source());
    look(one.lane->name() + ", responder", one.lane->sink());
  }
}

void TrafficShare::take(NotifiedQueue& queue, bool of_receives) {
  for (const auto& completion : queue.take())
    static_cast<ShareLane*>(completion.qp_context)->on_completion(completion, of_receives);
  arm(queue, of_receives);
}

/// Requests are never solicited. A weaker arm may stand before the one that counts.
void TrafficShare::arm(NotifiedQueue& queue, bool of_receives) {
  if (random_.chance(0.2)) queue.arm(hw::CqArm::kErrors);
  const bool solicited = random_.chance(of_receives ? 0.6 : 0.2);
  if (solicited) queue.arm(hw::CqArm::kSolicited);
  if (!queue.told() && (!of_receives || !solicited)) queue.arm(hw::CqArm::kAny);
}

bool TrafficShare::finished() const {
  return quiet_->finished() &&
         std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& one) { return one.lane->finished(); });
}

void TrafficShare::finish() {
  if (report_.wrong != 0 || report_.hung != 0) return;
  static_cast<void>(sides_[1]->endpoint().device().read64(hw::reg::kPortStatus));  // behind what is on its way
  const auto text = words_->check_end();
  const auto strays = sides_[0]->strays() + sides_[1]->strays();
  if (!text && strays == 0) return;
  report_.wrong += strays + (text ? 1 : 0);
  report_.note(text ? fmt::format("share {}: {}", number_, *text)
                    : fmt::format("share {}: {} bytes changed that belong to no request", number_, strays));
}

}  // namespace rnic::testbench
