#include <fmt/format.h>

#include <algorithm>

#include "driver/umd/queue_pair.hpp"
#include "testbench/fuzz/fuzz_episode.hpp"
#include "testbench/side_by_side.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kLookNs = 30'000;  ///< Between two looks at a pair that seems to live

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
  options.set_bits = static_cast<std::uint8_t>(~FuzzProcess::kPlainBits);
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
         {side.process->shown_key(), side.process->shown(), FuzzProcess::kShownBytes},
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
  auto target = target_of(host, qp.qp->qpn(), parameters);
  target.psn = receive_psn;
  target.sent_psn = (send_psn - 1) & 0xffffff;
  target.rkey = sides_[host].process->key();
  target.va = sides_[host].process->granted();
  target.bytes = FuzzProcess::kGrantedBytes;
  target.mtu = parameters.mtu;
  // A quarter of them, and those of special kinds, meet malformed requests alone: no third party disturbs them, so they
  // get further.
  qp.framed = pair < FuzzProcess::kPlainQps && pair % 4 != 3;
  target.victim = !qp.framed;
  target.alive = false;
  // From RTR on it takes requests: of its peer, which may be in RTS already, before we know of it here.
  sides_[host].targets[pair] = target;
  sides_[host].answers[pair].begin(receive_psn, sides_[host].endpoint->device().now_ns());
  require_success(qp.qp->to_rtr(connection), "RTR of an attacker's queue pair");
  // A frame in the name of the peer may have brought it to the error state since RTR; it is then made anew at the next
  // look.
  const auto sending = qp.qp->to_rts(connection);
  if (!sending.ok() && sending.error() != Error::kInvalidState)
    require_success(sending, "RTS of an attacker's queue pair");
  sides_[host].targets[pair].alive = sending.ok();
  qp.honest = qp.honest && !qp.lied_early;
  qp.changing = qp.lied_early = false;
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
    auto& device = sides_[host].endpoint->device();
    const std::uint64_t asked = device.now_ns();
    states[host] = query(pair, host);
    lost[host] = states[host].state != static_cast<std::uint8_t>(hw::QpState::kRts);
    if (!lost[host] && sides_[host].process->qp(pair).framed)
      judge_answer(pair, host, sides_[host].answers[pair].expects(states[host].rq_psn, asked, device.now_ns()));
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

}  // namespace rnic::testbench
