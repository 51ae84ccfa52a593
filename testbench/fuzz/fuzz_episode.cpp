#include "testbench/fuzz/fuzz_episode.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "driver/umd/queue_pair.hpp"
#include "model/bth.hpp"
#include "testbench/side_by_side.hpp"

namespace rnic::testbench {
namespace {

constexpr std::size_t kPairs = FuzzProcess::kQps, kPairsPerKeeper = 4;  ///< Of the attackers
constexpr std::uint64_t kLookNs = 30'000;  ///< Between two looks at a pair that seems to live
constexpr std::size_t kHistory = 64;
constexpr std::size_t kLeakRun = 8;  ///< So many secret bytes in a row are no accident
constexpr std::uint64_t kSettleNs = 20'000;
constexpr std::uint64_t kPollNs = 5'000;
constexpr std::uint64_t kLimitNs = 10'000'000'000;
constexpr std::uint64_t kWaitNs = 300;  ///< When all that could be attacked have failed
constexpr double kByteNs = 0.16;        ///< Half the rate of the wire: the victims have the other half

/// The victims: short messages, without haste, so that most of the time on the wire and in the simulator is the
/// attackers'.
TrafficOptions victim_options() {
  TrafficOptions options;
  options.pairs = 6;
  options.pairs_per_thread = 3;
  options.window = 4;
  options.most_bytes = 3'000;
  options.big_bytes = 20'000;
  options.gap_ns = 6'000;
  options.hang_ns = 5'000'000;
  return options;
}

ConnectParameters sacrifice_parameters(std::size_t pair) {
  ConnectParameters parameters;
  parameters.mtu = 256u << pair % 5;
  parameters.ipv6 = pair / 2 % 2 != 0;
  parameters.read_limit = static_cast<std::uint32_t>(4 + 5 * pair % 13);
  // A request whose answer was spoilt fails soon.
  parameters.ack_timeout = 4;
  parameters.retry_count = 3;
  parameters.min_rnr_timer = 1;
  return parameters;
}

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
      random_(seed_, "fuzz") {}

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

void FuzzEpisode::set_up() {
  side_by_side({[&] { sides_[0].endpoint = std::make_unique<Endpoint>(world_.host(0)); },
                [&] { sides_[1].endpoint = std::make_unique<Endpoint>(world_.host(1)); }});
  victims_ = std::make_unique<Traffic>(*sides_[0].endpoint, *sides_[1].endpoint, victim_options(), seed_);
  for_each_side([this](Side& side) {
    side.process =
        std::make_unique<FuzzProcess>(*side.endpoint, planted_, [this](const std::string& text) { violation(text); });
    side.targets.resize(kPairs);
    std::vector<std::function<void()>> tasks;
    for (std::size_t pair = 0; pair < kPairs; ++pair) {
      tasks.emplace_back(
          [&side, pair] { require_success(side.process->qp(pair).qp->to_init({}), "INIT of a queue pair"); });
    }
    side_by_side(tasks);
  });
  std::vector<std::function<void()>> tasks;
  for (std::size_t pair = 0; pair < kPairs; ++pair) tasks.emplace_back([this, pair] { connect(pair); });
  side_by_side(tasks);
  for (std::size_t host = 0; host < 2; ++host) {
    auto& side = sides_[host];
    std::vector<std::uint32_t> others = {0, 1, 0xffffff};
    for (std::size_t pair = 0; pair < victim_options().pairs; ++pair) {
      auto& qp = core_of(victims_->qp(pair, host));
      auto target = target_of(host, qp.qpn(), victims_->connection(pair));
      target.victim = true;
      target.mtu = victims_->connection(pair).mtu;
      target.rkey = __builtin_bswap32(victims_->arena(host).remote_token());
      target.va = reinterpret_cast<std::uint64_t>(victims_->arena(host).base());
      target.bytes = static_cast<std::uint32_t>(std::min<std::size_t>(victims_->arena(host).size(), 0x7fffffff));
      if (const auto state = qp.kernel_qp().query(); state.ok()) target.psn = state.value().rq_psn;
      side.targets.push_back(target);
      others.push_back(qp.qpn());
    }
    side.frames = std::make_unique<FrameFuzzer>(seed_, fmt::format("frames{}", host));
    side.frames->set_foreign_memory(
        {{side.process->foreign_key(), side.process->foreign(), FuzzProcess::kOtherBytes},
         {side.process->read_only_key(), side.process->read_only(), FuzzProcess::kOtherBytes},
         {side.targets.back().rkey, side.targets.back().va, side.targets.back().bytes}});
    side.wqes = std::make_unique<WqeFuzzer>(seed_, fmt::format("wqes{}", host), *side.process,
                                            *sides_[1 - host].process, others);
    for (const auto& group : FuzzProcess::kGroups) side.targets.push_back(group_of(host, group));
  }
}

/// The target that a queue pair of `host` is, as a third party sees it: it plays the peer on the other host.
FuzzTarget FuzzEpisode::target_of(std::size_t host, std::uint32_t qpn, const ConnectParameters& parameters) {
  const auto connection = connection_to(*sides_[1 - host].endpoint, *sides_[host].endpoint, qpn, parameters);
  FuzzTarget target;
  auto& path = target.path;
  path.ipv6 = parameters.ipv6;
  path.dest_mac = connection.path.dest_mac;
  path.source_mac = mac_of(*sides_[1 - host].endpoint);
  path.source_ip = ip_of(*sides_[1 - host].endpoint, parameters.ipv6, parameters.subnet);
  path.dest_ip = connection.path.dest_gid;
  path.udp_source_port = connection.path.udp_source_port;
  path.dest_qpn = qpn;
  return target;
}

/// A group with members on `host`, to which somebody on the other host sends.
FuzzTarget FuzzEpisode::group_of(std::size_t host, const kmd::Gid& group) {
  constexpr std::size_t kIpv4At = 12;
  auto& there = *sides_[1 - host].endpoint;
  FuzzTarget target;
  target.group = true;
  target.qkey = FuzzProcess::kQkey;
  target.path.ipv6 = group[0] == 0xFF;
  // RFC 1112 6.4, RFC 2464 7.
  const std::uint64_t low = roce::read_big(group, kIpv4At, 4);
  target.path.dest_mac = target.path.ipv6 ? 0x3333'0000'0000 | low : 0x0100'5E00'0000 | (low & 0x7F'FFFF);
  target.path.source_mac = mac_of(there);
  target.path.source_ip = ip_of(there, target.path.ipv6, ConnectParameters{}.subnet);
  target.path.dest_ip = group;
  target.path.dest_qpn = roce::kPsnMask;  // the QPN of every group (InfiniBand specification 10.5.2)
  return target;
}

/// Takes the two queue pairs of a sacrificed connection from INIT to RTS.
void FuzzEpisode::connect(std::size_t pair) {
  std::array<std::uint32_t, 2> psns{};
  for (std::size_t host = 0; host < 2; ++host) psns[host] = sides_[host].endpoint->first_psn();
  for (std::size_t host = 0; host < 2; ++host) connect_side(pair, host, psns[host], psns[1 - host]);
}

void FuzzEpisode::connect_side(std::size_t pair, std::size_t host, std::uint32_t send_psn, std::uint32_t receive_psn) {
  const auto parameters = sacrifice_parameters(pair);
  auto& there = sides_[1 - host];
  auto& qp = sides_[host].process->qp(pair);
  auto connection =
      connection_to(*sides_[host].endpoint, *there.endpoint, there.process->qp(pair).qp->qpn(), parameters);
  connection.send_psn = send_psn;
  connection.receive_psn = receive_psn;
  if (qp.kind == FuzzProcess::Kind::kUd) {
    connection = datagram_attributes(*sides_[host].endpoint, FuzzProcess::kQkey, parameters.mtu);
    connection.send_psn = send_psn;
  }
  qp.mtu = parameters.mtu;
  require_success(qp.qp->to_rtr(connection), "RTR of an attacker's queue pair");
  // A frame in the name of the peer may have brought it to the error state since RTR; it is then made anew at the next
  // look.
  const auto sending = qp.qp->to_rts(connection);
  if (!sending.ok() && sending.error() != Error::kInvalidState)
    require_success(sending, "RTS of an attacker's queue pair");
  auto target = target_of(host, qp.qp->qpn(), parameters);
  target.psn = receive_psn;
  target.sent_psn = (send_psn - 1) & 0xffffff;
  target.rkey = sides_[host].process->key();
  target.va = sides_[host].process->granted();
  target.bytes = FuzzProcess::kGrantedBytes;
  target.mtu = parameters.mtu;
  target.alive = sending.ok();
  // A quarter of them, and those of special kinds, meet malformed requests alone: no third party disturbs them, so they
  // get further.
  qp.framed = pair < FuzzProcess::kPlainQps && pair % 4 != 3;
  target.victim = !qp.framed;
  sides_[host].targets[pair] = target;
  qp.changing = false;
}

calls::QueryQp::Answer FuzzEpisode::query(std::size_t pair, std::size_t host) {
  const auto state = sides_[host].process->qp(pair).qp->query();
  if (!state.ok()) throw EndpointError(fmt::format("query of an attacker's queue pair: {}", describe(state.error())));
  return state.value();
}

void FuzzEpisode::refresh(std::size_t pair, bool anew) {
  std::array<bool, 2> lost{};
  std::array<calls::QueryQp::Answer, 2> states{};
  for (std::size_t host = 0; host < 2; ++host) {
    auto& target = sides_[host].targets[pair];
    const auto frames = target.frames;
    states[host] = query(pair, host);
    lost[host] = states[host].state != static_cast<std::uint8_t>(hw::QpState::kRts);
    if (lost[host]) {
      target.alive = false;
    } else if (target.frames == frames || !target.alive) {  // nothing was on its way meanwhile: this is where it stands
      target.expect(states[host].rq_psn, true);
      target.alive = true;
      sides_[host].process->qp(pair).failed = false;
    }
  }
  if (!lost[0] && !lost[1] && !anew) return;
  ++report_.renewals;
  const bool both = anew || (lost[0] && lost[1]) || random_.chance(0.2);
  if (both) {
    for (auto& side : sides_) {
      side.process->qp(pair).changing = true;
      side.targets[pair].alive = false;
    }
    for (auto& side : sides_) side.process->renew(pair, random_.chance(0.3));
    return connect(pair);
  }
  // The other one lives on: it is told nothing, and this one begins where it stands.
  const std::size_t host = lost[1];
  sides_[host].process->qp(pair).changing = true;
  sides_[host].process->renew(pair, false);
  connect_side(pair, host, states[1 - host].rq_psn, states[1 - host].una_psn);
}

/// Those that have failed are made anew at once; the others are looked at now and then, and made anew seldom.
void FuzzEpisode::keep(std::size_t first) {
  auto& device = sides_[0].endpoint->device();
  std::uint64_t looked = device.now_ns();
  std::size_t turn = 0;
  while (!done_) {
    for (std::size_t pair = first; pair < first + kPairsPerKeeper && !done_; ++pair) {
      if (failed(pair)) refresh(pair, false);
    }
    if (device.now_ns() - looked >= kLookNs / kPairsPerKeeper && !done_) {
      refresh(first + turn++ % kPairsPerKeeper, random_.chance(0.02));
      looked = device.now_ns();
    }
    device.elapse(500);
  }
}

void FuzzEpisode::inject(std::size_t host) {
  ++injecting_;
  auto& side = sides_[host];
  model::Random gaps(seed_, fmt::format("gaps{}", host));
  if (host == 0) replay();
  while (sent_ < frames_ && !failed_) {
    auto frame = side.frames->next(side.targets);
    if (!frame) {
      side.endpoint->device().elapse(kWaitNs);
      continue;
    }
    const double wire_ns = static_cast<double>(frame->bytes.size() + 24) * kByteNs;
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
      const double wire_ns = static_cast<double>(frame.bytes.size() + 24) * kByteNs;
      send(one.host, std::move(frame));
      sides_[0].endpoint->device().elapse(static_cast<std::uint64_t>(wire_ns) + 16);
    }
  }
}

void FuzzEpisode::send(std::size_t host, FuzzFrame frame) {
  world_.wire().inject(1 - host, frame.bytes, frame.bad_fcs);
  sides_[host].injected.push_back(frame.bytes);
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

void FuzzEpisode::monitor() {
  const auto look = [this](bool memory) {
    for (std::size_t host = 0; host < 2; ++host) {
      sides_[host].process->poll();
      for (std::size_t pair = 0; pair < kPairs; ++pair) {
        const auto& qp = sides_[host].process->qp(pair);
        if (qp.failed && !qp.changing) sides_[host].targets[pair].alive = false;
      }
      if (memory) sides_[host].process->check_memory();
      const auto& iommu = world_.host(host).iommu();
      if (iommu.fault_count() == 0) continue;
      const auto& fault = iommu.fault_log().front();
      violation(fmt::format("host {}: DMA {} of {:#x}, which is not granted", host,
                            fault.access == model::Iommu::Access::kWrite ? "write" : "read", fault.iova));
    }
    if (victims_->stopping() && !done_) violation("the victims' work has failed");
  };
  auto& device = sides_[1].endpoint->device();
  for (std::uint64_t round = 0; !failed_ && (injecting_ != 0 || round < 4); ++round) {
    device.elapse(kPollNs);
    look(round % 8 == 0);
  }
  done_ = true;
  victims_->stop();
  device.elapse(kSettleNs);
  if (!failed_) look(true);
}

/// Every frame on the wire: none may carry what is secret; those that are not the attacker's own are learnt from.
void FuzzEpisode::watch(const model::FrameRecord& record) {
  auto& side = sides_[1 - record.from];
  if (!side.injected.empty()) {
    const auto& own = side.injected.front();
    if (record.bytes.size() == std::max(own.size(), model::kMinFrameBytes) &&
        std::equal(own.begin(), own.end(), record.bytes.begin())) {
      side.injected.pop_front();
      return;
    }
  }
  std::size_t run = 0;
  for (const auto byte : record.bytes) {
    run = byte == FuzzProcess::kSecret ? run + 1 : 0;
    if (run == kLeakRun) return violation(fmt::format("host {}: secret bytes on the wire", record.from));
  }
  side.frames->observe(record.bytes);
  learn(record);
}

/// What the queue pairs on both ends of a sacrificed connection say by it: what they expect, that they have failed,
/// what they have sent.
void FuzzEpisode::learn(const model::FrameRecord& record) {
  const auto packet = model::find_roce_packet(record.bytes);
  if (!packet) return;
  const auto& receivers = sides_[1 - record.from].targets;
  const auto pair = static_cast<std::size_t>(
      std::find_if(receivers.begin(), receivers.begin() + kPairs,
                   [&](const FuzzTarget& target) { return target.path.dest_qpn == packet->dest_qpn; }) -
      receivers.begin());
  if (pair == kPairs) return;
  auto& sender = sides_[record.from].targets[pair];
  auto& receiver = sides_[1 - record.from].targets[pair];
  const bool response = packet->opcode >= 0x0d && packet->opcode <= 0x12;
  if (!response) {
    sender.sent_psn = packet->psn;
    if (packet->psn == receiver.psn && packet->opcode != 0x0c) receiver.expect((packet->psn + 1) & 0xffffff, false);
    return;
  }
  if (packet->opcode != 0x11) return;
  const std::size_t aeth = 14 + (sender.path.ipv6 ? 40 : 20) + 8 + 12;
  if (record.bytes.size() <= aeth) return;
  const std::uint8_t syndrome = record.bytes[aeth];
  const bool fatal = syndrome >> 5 == 3 && syndrome != 0x60;
  if (fatal)
    sender.alive = false;
  else if (syndrome >> 5 == 0)
    sender.expect((packet->psn + 1) & 0xffffff, false);
  else
    sender.expect(packet->psn, true);
}

void FuzzEpisode::read_counters() {
  static constexpr std::pair<const char*, hw::Counter> kCounters[] = {
      {"rx_frames", hw::Counter::kRxFrames},
      {"rx_roce", hw::Counter::kRxRoce},
      {"rx_not_roce", hw::Counter::kRxNotRoce},
      {"rx_malformed", hw::Counter::kRxMalformed},
      {"rx_bad_icrc", hw::Counter::kRxBadIcrc},
      {"rx_overflow", hw::Counter::kRxOverflow},
      {"rx_no_qp", hw::Counter::kRxNoQp},
      {"rx_bad_peer", hw::Counter::kRxBadPeer},
      {"rx_bad_state", hw::Counter::kRxBadState},
      {"rx_duplicate", hw::Counter::kRxDuplicate},
      {"rx_psn_error", hw::Counter::kRxPsnError},
      {"rx_invalid_request", hw::Counter::kRxInvalidRequest},
      {"rx_stray_responses", hw::Counter::kRxStrayResponses},
      {"doorbells_refused", hw::Counter::kDoorbellsRefused},
      {"memory_ops", hw::Counter::kMemoryOps},
      {"memory_ops_refused", hw::Counter::kMemoryOpsRefused},
      {"rx_bad_qkey", hw::Counter::kRxBadQkey},
      {"window_wqes", hw::Counter::kWindowWqes},
      {"multicast_copies", hw::Counter::kMulticastCopies}};
  for (auto& side : sides_) {
    for (const auto& [name, counter] : kCounters) {
      if (const auto count = side.endpoint->kernel().counter(counter); count.ok())
        report_.counters[name] += count.value();
    }
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
