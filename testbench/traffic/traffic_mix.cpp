#include "testbench/traffic/traffic_mix.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kMixPollNs = 200;
/// Of the shared queue: fewer than its queue pairs can have under way, so that some of them meet RNR.
constexpr std::uint32_t kSharedDepth = 12;
/// Completions that can wait in a queue at the same time, with room to spare.
constexpr std::uint32_t kEntries = 256;
constexpr double kResizeChance = 0.002;

}  // namespace

TrafficMix::TrafficMix(Endpoint& from, Endpoint& to, std::uint32_t number, const TrafficOptions& options,
                       std::uint64_t seed, TrafficReport& report)
    : number_(number),
      report_(report),
      random_(seed),
      from_(from, {.bytes = kLanes * MixLane::kSideBytes, .entries = kEntries}),
      to_(to, {.kernel = true, .bytes = (kLanes + 1) * MixLane::kSideBytes, .entries = kEntries}) {
  shared_ = require_success(umd::SharedReceiveQueue::create(to_.process(), kSharedDepth, 4),
                            "creating a shared receive queue");
  receives_ =
      std::make_unique<MixReceives>(to_, kSharedDepth, MixLane::kReceiveBytes,
                                    [this](const umd::ReceiveRequest& request) { return shared_->post(request); });
  constexpr std::array<const char*, kLanes> kNames = {"shared 0", "shared 1", "shared 2", "UC", "UD"};
  for (std::uint32_t i = 0; i < kLanes; ++i) {
    const bool shares = i < kSharedLanes;
    auto connection = options.connection;
    connection.mtu = 256u << random_.below(5);
    connection.ipv6 = random_.chance(0.5);
    connection.read_limit = static_cast<std::uint32_t>(1 + random_.below(16));
    connection.rnr_retry = 7;  // decisions 13: a peer on a shared receive queue is waited for
    connection.min_rnr_timer = 1;
    const MixLane::Spec spec{.name = fmt::format("mix {}, {}", number, kNames[i]),
                             .number = number * kLanes + i + 1,
                             .type = shares              ? hw::QpType::kRc
                                     : i == kSharedLanes ? hw::QpType::kUc
                                                         : hw::QpType::kUd,
                             .from = from_,
                             .to = to_,
                             .shared = shares ? shared_ : nullptr,
                             .receives = shares ? receives_.get() : nullptr,
                             .fast = shares,
                             .connection = connection};
    lanes_.emplace_back(spec, options, random_.next(), report);
  }
  receives_->refill(random_, true);
}

TrafficMix::~TrafficMix() {
  lanes_.clear();
  receives_.reset();
  shared_.reset();
}

void TrafficMix::work() {
  const auto finished = [](MixLane& lane) { return lane.finished(); };
  while (!std::all_of(lanes_.begin(), lanes_.end(), finished)) {
    receives_->refill(random_, report_.stopping);
    for (auto& lane : lanes_) lane.step();
    for (auto* const side : {&from_, &to_}) {
      take_completions(*side);
      if (random_.chance(kResizeChance)) resize(*side);
    }
    from_.endpoint().device().elapse(kMixPollNs);
  }
  const auto strays = from_.strays() + to_.strays();
  if (strays == 0) return;
  report_.wrong += strays;
  report_.note(fmt::format("mix {}: {} bytes changed that belong to no request", number_, strays));
}

void TrafficMix::take_completions(MixSide& side) {
  std::array<umd::Completion, 16> completions;
  const std::size_t count = side.cq()->poll(completions);
  for (std::size_t i = 0; i < count; ++i) {
    auto& lane = *static_cast<MixLane*>(completions[i].qp_context);
    if (completions[i].qpn == lane.source().qpn() && &side == &from_)
      lane.on_source(completions[i]);
    else
      lane.on_sink(completions[i]);
  }
}

void TrafficMix::resize(MixSide& side) {
  require_success(side.cq()->resize(static_cast<std::uint32_t>(kEntries + random_.below(3 * kEntries))),
                  "resizing a completion queue");
  ++report_.mix.resizes;
}

}  // namespace rnic::testbench
