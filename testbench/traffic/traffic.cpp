#include "testbench/traffic/traffic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "testbench/nd2_results.hpp"
#include "testbench/side_by_side.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint32_t kSges = 16, kInline = 200;
constexpr std::uint64_t kPollNs = 100;

std::size_t arena_bytes(const TrafficOptions& options) {
  // Both directions of a pair have memory in each arena; a few long messages fit besides.
  const std::size_t usual = std::size_t{options.pairs} * 2 * options.window * (options.most_bytes / 4 + 600);
  return usual + 8 * std::size_t{options.big_bytes} + (256 << 10);
}

}  // namespace

Traffic::Traffic(Endpoint& a, Endpoint& b, const TrafficOptions& options, std::uint64_t seed)
    : endpoints_{&a, &b}, options_(options), random_(seed, "traffic") {
  plan();
  std::vector<std::function<void()>> tasks;
  for (std::size_t host = 0; host < 2; ++host) {
    tasks.emplace_back(
        [this, host] { arenas_[host] = std::make_unique<TrafficArena>(*endpoints_[host], arena_bytes(options_)); });
    for (auto& group : groups_) {
      const auto entries = static_cast<ULONG>(group.pairs.size() * options.window);
      for (auto* const cq : {&group.sides[host].initiator_cq, &group.sides[host].receive_cq})
        tasks.emplace_back([this, host, cq, entries] { *cq = endpoints_[host]->create_cq(entries); });
    }
  }
  side_by_side(tasks);
  tasks.clear();
  for (auto& group : groups_) {
    for (const auto number : group.pairs) tasks.emplace_back([this, &group, number] { make_pair(group, number); });
  }
  mixes_.resize(options.mixes);
  for (std::uint32_t number = 0; number < options.mixes; ++number) {
    tasks.emplace_back([this, number, seed_of_mix = random_.next()] {
      mixes_[number] = std::make_unique<TrafficMix>(*endpoints_[number % 2], *endpoints_[1 - number % 2], number,
                                                    options_, seed_of_mix, report_);
    });
  }
  shares_.resize(options.shares);
  for (std::uint32_t number = 0; number < options.shares; ++number) {
    tasks.emplace_back([this, number, seed_of_share = random_.next()] {
      shares_[number] = std::make_unique<TrafficShare>(*endpoints_[number % 2], *endpoints_[1 - number % 2], number,
                                                       options_, seed_of_share, report_);
    });
  }
  side_by_side(tasks);
}

/// Draws what each pair is like.
void Traffic::plan() {
  pairs_.resize(options_.pairs);
  for (std::uint32_t number = 0; number < options_.pairs; ++number) {
    if (number % options_.pairs_per_thread == 0) groups_.emplace_back();
    groups_.back().pairs.push_back(number);
    auto& pair = pairs_[number];
    pair.depth = static_cast<std::uint32_t>(1 + random_.below(options_.window));
    pair.connection = options_.connection;
    if (options_.own_addresses) pair.connection.subnet = static_cast<std::uint8_t>(pair.connection.subnet + number);
    pair.connection.mtu = 256u << random_.below(5);
    pair.connection.ipv6 = random_.chance(0.5);
    pair.connection.read_limit = static_cast<std::uint32_t>(1 + random_.below(16));
    for (auto& end : pair.ends) end.seed = random_.next();
  }
}

void Traffic::make_pair(Group& group, std::size_t number) {
  auto& pair = pairs_[number];
  for (std::size_t host = 0; host < 2; ++host) {
    const Endpoint::QpSpec spec{options_.window, pair.depth, kSges, kSges, kInline, reinterpret_cast<void*>(number)};
    pair.ends[host].qp =
        endpoints_[host]->create_qp(*group.sides[host].receive_cq, *group.sides[host].initiator_cq, spec);
  }
  connect_pair(*endpoints_[0], *pair.ends[0].qp, *endpoints_[1], *pair.ends[1].qp, pair.connection);
  for (std::size_t host = 0; host < 2; ++host) {
    const TrafficStream::Ends ends{fmt::format("pair {}, requests of host {}", number, host),
                                   *arenas_[host],
                                   *arenas_[1 - host],
                                   *pair.ends[host].qp,
                                   *pair.ends[1 - host].qp,
                                   kInline,
                                   kSges};
    pair.ends[host].stream = std::make_unique<TrafficStream>(ends, options_, pair.ends[host].seed, report_);
  }
}

Traffic::~Traffic() {
  std::vector<std::function<void()>> tasks;
  for (auto& pair : pairs_) {
    tasks.emplace_back([&pair] {
      for (auto& end : pair.ends) end.stream.reset();
      for (auto& end : pair.ends) end.qp.reset();
    });
  }
  for (auto& mix : mixes_) tasks.emplace_back([&mix] { mix.reset(); });
  for (auto& share : shares_) tasks.emplace_back([&share] { share.reset(); });
  side_by_side(tasks);
  tasks.clear();
  for (auto& group : groups_) {
    for (auto& side : group.sides) {
      for (auto* const cq : {&side.initiator_cq, &side.receive_cq}) tasks.emplace_back([cq] { cq->reset(); });
    }
  }
  for (auto& arena : arenas_) tasks.emplace_back([&arena] { arena.reset(); });
  side_by_side(tasks);
}

void Traffic::run(std::size_t thread) {
  ++running_;
  try {
    if (thread >= groups_.size() + mixes_.size()) {
      const std::size_t number = thread - groups_.size() - mixes_.size();
      shares_[number / TrafficShare::kThreads]->work(number % TrafficShare::kThreads);
    } else if (thread >= groups_.size()) {
      mixes_[thread - groups_.size()]->work();
    } else {
      work(thread);
      if (++groups_done_ == groups_.size()) stop();  // the mixes have no number of requests of their own
    }
  } catch (const EndpointError& error) {
    ++report_.wrong;
    report_.note(error.what());
  }
  if (--running_ == 0) finish();
}

void Traffic::work(std::size_t thread) {
  auto& group = groups_.at(thread);
  bool finished = false;
  while (!finished) {
    finished = true;
    for (const auto number : group.pairs) {
      for (auto& end : pairs_[number].ends) {
        end.stream->step();
        finished = finished && end.stream->finished();
      }
    }
    for (std::size_t host = 0; host < 2; ++host) take_results(group, host);
    endpoints_[thread % 2]->device().elapse(kPollNs);
  }
}

void Traffic::take_results(Group& group, std::size_t host) {
  std::array<ND2_RESULT, 16> results{};
  for (const bool receive : {false, true}) {
    auto& cq = receive ? *group.sides[host].receive_cq : *group.sides[host].initiator_cq;
    const ULONG count = cq.GetResults(results.data(), results.size());
    for (ULONG i = 0; i < count; ++i) {
      auto& pair = pairs_[reinterpret_cast<std::uintptr_t>(results[i].QueuePairContext)];
      if (!is_listed(results[i])) {
        ++report_.wrong;
        report_.note(fmt::format("a request of type {} has the status {:#x}, which ND2_RESULT does not list",
                                 static_cast<int>(results[i].RequestType),
                                 static_cast<std::uint32_t>(results[i].Status)));
      }
      const bool window =
          results[i].RequestType == Nd2RequestTypeBind || results[i].RequestType == Nd2RequestTypeInvalidate;
      if (!receive && window)
        pair.ends[1 - host].stream->on_window(results[i]);
      else if (receive)
        pair.ends[1 - host].stream->on_receive(results[i]);
      else
        pair.ends[host].stream->on_request(results[i]);
    }
  }
}

void Traffic::check_orderly() {
  const auto count = [this](const std::string& where, std::string_view what, std::uint64_t times) {
    if (times == 0) return;
    ++report_.wrong;
    report_.note(fmt::format("{}: {} {}, over a link that loses nothing", where, what, times));
  };
  bool overflowed = false;
  for (std::size_t host = 0; host < 2; ++host) {
    for (const auto which : {hw::Counter::kTxDropped, hw::Counter::kRxMalformed, hw::Counter::kRxBadIcrc,
                             hw::Counter::kRxOverflow, hw::Counter::kRxNoQp}) {
      const auto times = endpoints_[host]->kernel().counter(which);
      if (!times.ok()) throw EndpointError(fmt::format("counters of a host: {}", describe(times.error())));
      if (which == hw::Counter::kRxOverflow && options_.may_overflow && *times != 0) {
        overflowed = true;
        report_.note(fmt::format(
            "host {}: {} frames found its receive buffer full, which this world may do: repairs are not judged", host,
            *times));
        continue;
      }
      count(fmt::format("host {}", host), hw::kCounterNames[static_cast<std::size_t>(which)], *times);
    }
  }
  if (overflowed) return;
  const auto judge = [&](const std::string& where, umd::QueuePair& qp, std::span<const hw::QpCounter> allowed) {
    const auto counters = qp.kernel_qp().counters();
    if (!counters.ok()) throw EndpointError(fmt::format("counters of a queue pair: {}", describe(counters.error())));
    for (std::size_t i = 0; i < hw::kQpCounters; ++i) {
      const auto which = static_cast<hw::QpCounter>(i);
      if (std::find(allowed.begin(), allowed.end(), which) == allowed.end())
        count(where, fmt::format("queue pair counter {}", i), (*counters)[which]);
    }
  };
  constexpr std::array kWaits = {hw::QpCounter::kNoReceive, hw::QpCounter::kRnrNaksSent,
                                 hw::QpCounter::kRnrNaksReceived};
  for (std::size_t number = 0; number < pairs_.size(); ++number) {
    for (std::size_t host = 0; host < 2; ++host) {
      judge(fmt::format("pair {}, host {}", number, host), core_of(*pairs_[number].ends[host].qp),
            std::span(kWaits).first(options_.late_receive_chance > 0 ? kWaits.size() : 0));
    }
  }
  constexpr std::array kOrder = {hw::QpCounter::kHeld};  // repairs nothing
  for (auto& share : shares_)
    share->for_each_qp([&](const std::string& name, umd::QueuePair& qp) { judge(name, qp, kOrder); });
}

void Traffic::finish() {
  for (std::size_t host = 0; host < 2; ++host) {
    const auto strays = arenas_[host]->check_free();
    if (strays == 0) continue;
    report_.wrong += strays;
    report_.note(fmt::format("host {}: {} bytes changed that belong to no request", host, strays));
  }
}

}  // namespace rnic::testbench
