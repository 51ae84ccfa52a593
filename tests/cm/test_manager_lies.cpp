// Messages that lie: whatever a field of whatever message says in whatever state, the manager stays whole, drops and
// counts what is not so, and the connections of others go on.
#include <catch2/catch.hpp>

#include <algorithm>

#include "tests/cm/wire.hpp"

using namespace rnic;
using namespace rnic::cm;
using rnic::test::CmWire;

namespace {

constexpr std::uint16_t kPort = 9;

template <typename T>
T must(Result<T> result) {
  REQUIRE(result.ok());
  return result.take();
}
void must(Result<void> result) { REQUIRE(result.ok()); }

/// Host 1 with a connection to host 0, and another one in the state that is asked for; what was said about both.
struct Victim {
  explicit Victim(State wanted) {
    listener = must(wire[1].create());
    must(wire[1].bind(listener, PortSpace::kTcp, {}, kPort));
    must(wire[1].listen(listener, 8));
    std::tie(client, server) = connect(100);
    mads = wire.log;
    wire.log.clear();
    reach(wanted);
    mads.insert(mads.end(), wire.log.begin(), wire.log.end());
  }

  std::pair<EndpointId, EndpointId> connect(std::uint32_t qpn) {
    const auto from = request(0, qpn);
    const auto to = wire[1].take_event(listener).incoming;
    must(wire[1].accept(to, {.qpn = qpn + 1000}, wire.now()));
    wire.run();
    REQUIRE(wire[0].take_event(from).type == EventType::kConnectResponse);
    must(wire[0].establish(from, wire.now()));
    wire.run();
    REQUIRE(wire[1].take_event(to).type == EventType::kEstablished);
    return {from, to};
  }

  EndpointId request(int host, std::uint32_t qpn) {
    const auto id = must(wire[host].create());
    must(wire[host].connect(
        id, {.local = CmWire::gid(host), .remote = CmWire::gid(1 - host), .remote_port = kPort, .qpn = qpn},
        wire.now()));
    wire.run();
    return id;
  }

  /// The second endpoint of host 1 goes there.
  void reach(State wanted) {
    if (wanted == State::kReqSent) {
      wire.lose = [](const CmWire::Sent& sent) { return sent.from == CmWire::gid(0); };
      second = request(1, 500);
      wire.lose = [](const CmWire::Sent&) { return false; };
    } else if (wanted == State::kReqReceived || wanted == State::kRepSent) {
      peer = request(0, 500);
      second = wire[1].take_event(listener).incoming;
      if (wanted == State::kRepSent) must(wire[1].accept(second, {.qpn = 1500}, wire.now()));
      wire.run();
    } else {
      std::tie(peer, second) = connect(500);
      if (wanted == State::kEstablished) return;
      wire.lose = [&](const CmWire::Sent& sent) { return wanted == State::kDreqSent && sent.from == CmWire::gid(0); };
      must(wire[1].disconnect(second, wire.now()));
      wire.run();
      wire.lose = [](const CmWire::Sent&) { return false; };
    }
    REQUIRE(must(wire[1].facts(second)).state == wanted);
  }

  CmWire wire{3};
  EndpointId listener{}, client{}, server{}, second{}, peer{};
  std::vector<CmWire::Sent> mads;
};

constexpr State kStatesTried[] = {State::kReqSent,     State::kReqReceived, State::kRepSent,
                                  State::kEstablished, State::kDreqSent,    State::kTimeWait};

}  // namespace

TEST_CASE("a stranger who knows every number reaches nothing: messages count from the peer's address only") {
  for (const State state : kStatesTried) {
    Victim v(state);
    const Counters before = v.wire[1].counters();
    std::uint64_t given = 0;
    for (const auto& sent : v.mads) {
      if (sent.to != CmWire::gid(1)) continue;
      // A REQ is nobody's: it is refused for saying that it comes from elsewhere.
      v.wire[1].receive(CmWire::gid(1), CmWire::gid(9), sent.mad, v.wire.now());
      v.wire[1].receive(CmWire::gid(1, 1), CmWire::gid(0), sent.mad, v.wire.now());
      given += 2;
    }
    CHECK(must(v.wire[1].facts(v.server)).state == State::kEstablished);
    CHECK(must(v.wire[1].facts(v.second)).state == state);
    CHECK(v.wire[1].counters().received == before.received + given);
    CHECK_FALSE(v.wire[1].has_events(v.server));
    CHECK_FALSE(v.wire[1].has_events(v.listener));
  }
}

TEST_CASE("numbers that nearly fit: the peer's ID and the queue pair count, too") {
  Victim v(State::kEstablished);
  const auto rtu = std::find_if(v.mads.begin(), v.mads.end(), [](const CmWire::Sent& sent) {
    return sent.mad[17] == static_cast<std::uint8_t>(Attribute::kRtu);
  });
  const auto decoded = decode(rtu->mad);
  REQUIRE(decoded.message);
  const Rtu& of_client = std::get<Rtu>(decoded.message->body);
  const std::uint32_t own = of_client.local_id, of_server = of_client.remote_id;
  const std::uint32_t qpn = must(v.wire[1].facts(v.server)).local_qpn;
  const auto end = [&](std::uint32_t local_id, std::uint32_t remote_qpn) {
    v.wire.inject(CmWire::gid(0), CmWire::gid(1),
                  encode({9, Dreq{.local_id = local_id, .remote_id = of_server, .remote_qpn = remote_qpn}}));
    v.wire.run();
    return must(v.wire[1].facts(v.server)).state;
  };
  CHECK(end(own + 1, qpn) == State::kEstablished);
  CHECK(end(own, qpn + 1) == State::kEstablished);
  CHECK(end(own, qpn) == State::kTimeWait);
}

TEST_CASE("a group asks for nothing: no message of a multicast address is looked at") {
  Victim v(State::kEstablished);
  auto decoded = decode(v.mads.at(0).mad);
  REQUIRE(decoded.message);
  Req& req = std::get<Req>(decoded.message->body);
  Gid group = CmWire::gid(0);
  group[12] = 224;
  REQUIRE(is_multicast(group));
  req.local_id += 1;
  req.qpn = 800;
  req.primary.local_gid = group;
  auto header = read_ip_header(req.data);
  REQUIRE(header);
  header->source = group;
  const auto bytes = encode(*header);
  std::copy(bytes.begin(), bytes.end(), req.data.begin());
  const auto before = v.wire[1].counters().unfounded;
  v.wire[1].receive(CmWire::gid(1), group, encode(*decoded.message), v.wire.now());
  CHECK(v.wire[1].counters().unfounded == before + 1);
  CHECK_FALSE(v.wire[1].has_events(v.listener));
}

TEST_CASE("every bit of every message turned, in every state: others do not notice, and nothing is left behind") {
  for (const State state : kStatesTried) {
    const Victim model(state);
    for (std::size_t m = 0; m < model.mads.size(); ++m) {
      if (model.mads[m].to != CmWire::gid(1)) continue;
      // Private data are the consumer's, whatever they are; the header of A11 is in front of them.
      for (std::size_t bit = 0; bit < 8 * (24 + 140 + 36); ++bit) {
        Victim v(state);
        Mad mad = v.mads[m].mad;
        REQUIRE(mad == model.mads[m].mad);
        mad[bit / 8] ^= static_cast<std::uint8_t>(0x80 >> bit % 8);
        v.wire.inject(CmWire::gid(0), CmWire::gid(1), mad);
        v.wire.run();
        // What names the first connection in a message of the first connection may end it, if it is a whole message.
        const bool own = m < 3;
        if (!own) CHECK(must(v.wire[1].facts(v.server)).state == State::kEstablished);
        CHECK(v.wire[1].endpoints() <= 5);
        for (const int host : {0, 1}) {
          for (EndpointId id = 1; id < 12; ++id) v.wire[host].destroy(id, v.wire.now());
        }
        v.wire.run_out();
        REQUIRE(v.wire[0].endpoints() == 0);
        REQUIRE(v.wire[1].endpoints() == 0);
      }
    }
  }
}

namespace {

/// Of host 0 to the listener at kPort of host 1.
Req good_request(std::uint32_t id, std::uint32_t qpn) {
  Req req;
  req.local_id = id;
  req.service_id = service_id_of(PortSpace::kTcp, kPort);
  req.qpn = qpn;
  req.path_mtu = 3;
  req.primary.local_gid = CmWire::gid(0);
  req.primary.remote_gid = CmWire::gid(1);
  const auto header = encode(IpHeader{.source_port = 4, .source = CmWire::gid(0), .destination = CmWire::gid(1)});
  std::copy(header.begin(), header.end(), req.data.begin());
  return req;
}

}  // namespace

TEST_CASE("a flood of REQs leaves no more than the backlog behind, and has one answer each (12.6.7.2, reason 3)") {
  constexpr std::uint32_t kBacklog = 8, kFlood = 5'000;
  CmWire wire(4, {.max_mtu = 4});
  const auto listener = must(wire[1].create()), other = must(wire[1].create());
  must(wire[1].bind(listener, PortSpace::kTcp, {}, kPort));
  must(wire[1].listen(listener, kBacklog));
  must(wire[1].bind(other, PortSpace::kTcp, {}, kPort + 1));
  must(wire[1].listen(other, kBacklog));
  const auto idle = wire[1].held();
  const auto give = [&](const Req& req) {
    wire[1].receive(CmWire::gid(1), CmWire::gid(0), encode({1, req}), wire.now());
  };
  for (std::uint32_t i = 0; i < kFlood; ++i) give(good_request(1 + i, 2 + i));
  CHECK(wire[1].endpoints() == idle.endpoints + kBacklog);
  CHECK(wire[1].held().ids == idle.ids + kBacklog);
  CHECK(wire[1].held().timers <= idle.timers + kBacklog);
  CHECK(wire[1].counters().refused == kFlood - kBacklog);
  const auto refusals = std::count_if(wire.log.begin(), wire.log.end(), [](const auto& sent) {
    const auto answer = decode(sent.mad);
    const auto* const rej = answer.message ? std::get_if<Rej>(&answer.message->body) : nullptr;
    return rej != nullptr && rej->reason == Reason::kNoResources;
  });
  CHECK(refusals == kFlood - kBacklog);
  // Another listener has places of its own.
  Req good = good_request(kFlood + 1, kFlood + 2);
  good.service_id = service_id_of(PortSpace::kTcp, kPort + 1);
  give(good);
  CHECK(wire[1].take_event(other).type == EventType::kConnectRequest);
  // What was refused is forgotten; what was taken ends with its consumer.
  for (std::uint32_t i = 0; i < kBacklog; ++i) {
    const Event asked = wire[1].take_event(listener);
    REQUIRE(asked.type == EventType::kConnectRequest);
    wire[1].destroy(asked.incoming, wire.now());
  }
  CHECK_FALSE(wire[1].has_events(listener));
  give(good_request(kFlood, kFlood + 1));
  CHECK(wire[1].take_event(listener).type == EventType::kConnectRequest);
}

TEST_CASE("requests whose fields contradict each other or the wire") {
  CmWire wire(4, {.max_mtu = 4});
  const auto listener = must(wire[1].create());
  must(wire[1].bind(listener, PortSpace::kTcp, {}, kPort));
  must(wire[1].listen(listener, 8, 1U << static_cast<unsigned>(Service::kRc)));
  const Req good = good_request(5, 77);
  const auto give = [&](auto&& change) {
    Req req = good;
    change(req);
    wire.log.clear();
    wire[1].receive(CmWire::gid(1), CmWire::gid(0), encode({1, req}), wire.now());
    CHECK((wire.log.empty() || !wire[1].has_events(listener)));
    if (wire.log.empty()) return Reason{0};
    const auto answer = decode(wire.log.front().mad);
    REQUIRE(answer.message);
    return std::get<Rej>(answer.message->body).reason;
  };
  CHECK(give([](Req& r) { r.primary.local_gid = CmWire::gid(7); }) == Reason{0});
  CHECK(give([](Req& r) { r.primary.remote_gid = CmWire::gid(7); }) == Reason::kInvalidGid);
  CHECK(give([](Req& r) { r.local_id = 0; }) == Reason::kInvalidCommunicationId);
  for (const std::uint16_t pkey : {0, 0x8000, 0x8001, 0x7FFE}) {
    CHECK(give([&](Req& r) { r.pkey = pkey; }) == Reason::kInvalidGid);
  }
  CHECK(give([](Req& r) { r.service = Service::kUc; }) == Reason::kInvalidService);  // not of this listener
  CHECK(give([](Req& r) { r.service = Service::kRd; }) == Reason::kInvalidService);
  CHECK(give([](Req& r) { r.service = Service::kExtended; }) == Reason::kInvalidService);
  CHECK(give([](Req& r) { r.rdc_exists = true; }) == Reason::kInvalidService);
  CHECK(give([](Req& r) { r.path_mtu = 0; }) == Reason::kInvalidMtu);
  for (const std::uint8_t mtu : {5, 6, 15}) {
    CHECK(give([&](Req& r) { r.path_mtu = mtu; }) == Reason::kInvalidMtu);
  }
  for (const std::uint32_t qpn : {0U, 1U, 0xFFFFFFU}) {
    CHECK(give([&](Req& r) { r.qpn = qpn; }) == Reason::kNoQp);
  }
  CHECK(give([](Req& r) { r.service_id = 1; }) == Reason::kInvalidServiceId);
  CHECK(give([](Req& r) { r.service_id |= 1ULL << 63; }) == Reason::kInvalidServiceId);
  CHECK(give([](Req& r) { r.data[0] = 0x10; }) == Reason{0});  // version of the header
  CHECK(give([](Req& r) { r.data[19] ^= 1; }) == Reason{0});   // another address than it comes from
  CHECK(give([](Req& r) { r.data[35] ^= 1; }) == Reason{0});
  CHECK_FALSE(wire[1].has_events(listener));
  CHECK(wire[1].counters().unfounded == 4);
  CHECK(wire[1].counters().refused == 19);
  // To a group, or from one: connections are between two ports.
  wire[1].receive({0xFF, 0x0E}, CmWire::gid(0), encode({1, good}), wire.now());
  wire[1].receive(CmWire::gid(1), {0xFF, 0x0E}, encode({1, good}), wire.now());
  CHECK(wire[1].counters().unfounded == 6);
  CHECK(give([](Req&) {}) == Reason{0});
  CHECK(wire[1].has_events(listener));
}

TEST_CASE("fields of a request that any value may have: the consumer is told them") {
  CmWire wire(4);
  const auto listener = must(wire[1].create());
  must(wire[1].bind(listener, PortSpace::kTcp, {}, kPort));
  must(wire[1].listen(listener, 8));
  std::uint32_t number = 100;
  const auto header = encode(IpHeader{.source_port = 0, .source = CmWire::gid(0), .destination = CmWire::gid(1)});
  for (const bool most : {false, true}) {
    Req req{.local_id = ++number,
            .service_id = service_id_of(PortSpace::kTcp, kPort),
            .ca_guid = most ? ~0ULL : 0,
            .qkey = most ? ~0U : 0,
            .qpn = most ? 0xFFFFFEU : 2U,
            .eecn = most ? 0xFFFFFFU : 0,
            .service = most ? Service::kUc : Service::kRc,
            .path_mtu = 1};
    req.responder_resources = req.initiator_depth = most ? 0xFF : 0;
    req.remote_response_timeout = req.local_response_timeout = most ? 31 : 0;
    req.retry_count = req.rnr_retry = most ? 7 : 0;
    req.max_retries = most ? 15 : 0;
    req.psn = most ? 0xFFFFFF : 0;
    req.pkey = most ? 0xFFFF : 0x7FFF;  // a limited member speaks to a full one
    req.flow_control = req.srq = most;
    req.primary = {.local_lid = 0,
                   .remote_lid = static_cast<std::uint16_t>(most ? 7 : 0),
                   .local_gid = CmWire::gid(0),
                   .remote_gid = CmWire::gid(1),
                   .flow_label = most ? 0xFFFFFU : 0,
                   .packet_rate = static_cast<std::uint8_t>(most ? 63 : 0),
                   .traffic_class = static_cast<std::uint8_t>(most ? 0xFF : 0),
                   .hop_limit = static_cast<std::uint8_t>(most ? 0xFF : 0),
                   .ack_timeout = static_cast<std::uint8_t>(most ? 31 : 0)};
    std::copy(header.begin(), header.end(), req.data.begin());
    wire[1].receive(CmWire::gid(1), CmWire::gid(0), encode({1, req}), wire.now());
    const Event asked = wire[1].take_event(listener);
    REQUIRE(asked.type == EventType::kConnectRequest);
    const Facts facts = must(wire[1].facts(asked.incoming));
    CHECK(facts.service == req.service);
    CHECK(facts.remote_qpn == req.qpn);
    CHECK(facts.send_psn == req.psn);
    CHECK(facts.responder_resources == req.responder_resources);
    CHECK(facts.initiator_depth == req.initiator_depth);
    CHECK(facts.retry_count == req.retry_count);
    CHECK(facts.rnr_retry == req.rnr_retry);
    CHECK(facts.pkey == req.pkey);
    CHECK(facts.flow_label == req.primary.flow_label);
    CHECK(facts.traffic_class == req.primary.traffic_class);
    CHECK(facts.hop_limit == req.primary.hop_limit);
    CHECK(facts.ack_timeout == req.primary.ack_timeout);
    CHECK(facts.remote_port == 0);
  }
}

TEST_CASE("answers whose fields cannot be: they are dropped, and the right one still counts") {
  CmWire wire(4);
  const auto client = must(wire[0].create());
  const auto connect = [&](std::uint32_t qpn) {
    wire.log.clear();
    must(wire[0].connect(client, {.local = CmWire::gid(0), .remote = CmWire::gid(1), .remote_port = kPort, .qpn = qpn},
                         wire.now()));
    return std::get<Req>(decode(wire.log.front().mad).message->body);
  };
  const auto before = [&] { return wire[0].counters().unfounded; };
  const auto req = connect(100);
  const Rep good{.local_id = 9, .remote_id = req.local_id, .qpn = 0xFFFFFE, .psn = 0xFFFFFF};
  const auto give = [&](auto&& change) {
    Rep rep = good;
    change(rep);
    const auto counted = before();
    wire[0].receive(CmWire::gid(0), CmWire::gid(1), encode({1, rep}), wire.now());
    return before() == counted + 1 && !wire[0].has_events(client);
  };
  for (const std::uint32_t qpn : {0U, 1U, 0xFFFFFFU}) {
    CHECK(give([&](Rep& r) { r.qpn = qpn; }));
  }
  CHECK(give([](Rep& r) { r.local_id = 0; }));
  CHECK_FALSE(give([](Rep& r) {
    r.responder_resources = r.initiator_depth = r.target_ack_delay = r.failover = 0;
    r.rnr_retry = 0;
    r.eecn = 0xFFFFFF;
    r.qkey = ~0U;
    r.ca_guid = 0;
  }));
  CHECK(wire[0].take_event(client).type == EventType::kConnectResponse);
  CHECK(must(wire[0].facts(client)).send_psn == 0xFFFFFF);
}

TEST_CASE("fields of datagram services: a partition that is not the port's, a queue pair that cannot be") {
  CmWire wire(4);
  const auto listener = must(wire[1].create());
  must(wire[1].bind(listener, PortSpace::kUdp, {}, kPort));
  must(wire[1].listen(listener, 8));
  const auto client = must(wire[0].create());
  must(wire[0].ask(
      client,
      {.space = PortSpace::kUdp, .local = CmWire::gid(0), .remote = CmWire::gid(1), .remote_port = kPort, .qpn = 100},
      wire.now()));
  auto req = std::get<SidrReq>(decode(wire.log.front().mad).message->body);
  wire.lose = [](const CmWire::Sent& sent) { return sent.from == CmWire::gid(1); };
  for (const std::uint16_t pkey : {0, 0x8000, 0x8001}) {
    req.pkey = pkey;
    wire.log.clear();
    wire[1].receive(CmWire::gid(1), CmWire::gid(0), encode({1, req}), wire.now());
    REQUIRE(wire.log.size() == 1);
    CHECK(std::get<SidrRep>(decode(wire.log.front().mad).message->body).status == SidrRep::Status::kUnsupportedService);
    CHECK_FALSE(wire[1].has_events(listener));
  }
  for (const std::uint32_t qpn : {0U, 1U, 0xFFFFFFU}) {
    const auto counted = wire[0].counters().unfounded;
    wire[0].receive(CmWire::gid(0), CmWire::gid(1), encode({1, SidrRep{.request_id = req.request_id, .qpn = qpn}}),
                    wire.now());
    CHECK(wire[0].counters().unfounded == counted + 1);
    CHECK_FALSE(wire[0].has_events(client));
  }
  wire.lose = [](const CmWire::Sent&) { return false; };
  wire.run();
  const Event asked = wire[1].take_event(listener);
  REQUIRE(asked.type == EventType::kConnectRequest);
  for (const std::uint32_t qpn : {0U, 1U, 0xFFFFFFU})
    CHECK(wire[1].accept(asked.incoming, {.qpn = qpn}, wire.now()).error() == Error::kInvalidParameter);
  must(wire[1].accept(asked.incoming, {.qpn = 0xFFFFFE}, wire.now()));
  wire.run();
  CHECK(wire[0].take_event(client).type == EventType::kEstablished);
}

TEST_CASE("bytes without sense, many of them") {
  Victim v(State::kEstablished);
  std::mt19937_64 random(5);
  std::vector<std::uint32_t> ids;
  for (const auto& sent : v.mads) {
    for (const std::size_t at : {24, 28})
      ids.push_back(static_cast<std::uint32_t>(sent.mad[at] << 24 | sent.mad[at + 1] << 16 | sent.mad[at + 2] << 8 |
                                               sent.mad[at + 3]));
  }
  v.wire.keep_log = false;
  for (int i = 0; i < 100'000; ++i) {
    Mad mad;
    for (auto& byte : mad) byte = static_cast<std::uint8_t>(random());
    if (i % 8 != 0) {
      mad = encode({random(), Mra{}});
      mad[17] = static_cast<std::uint8_t>(0x10 + random() % 11);
      for (std::size_t at = 24; at < mad.size(); ++at) mad[at] = static_cast<std::uint8_t>(random());
      // IDs that there are, but not those of one connection together, nor in their order.
      const auto id = ids[random() % ids.size()];
      for (unsigned byte = 0; byte < 4; ++byte) mad[28 + byte] = static_cast<std::uint8_t>(id >> 8 * (3 - byte));
    }
    v.wire[1].receive(CmWire::gid(1), CmWire::gid(9), mad, v.wire.now());
  }
  CHECK(must(v.wire[1].facts(v.server)).state == State::kEstablished);
  CHECK(must(v.wire[1].facts(v.second)).state == State::kEstablished);
  CHECK(v.wire[1].endpoints() == 3);
  const Counters& counters = v.wire[1].counters();
  CHECK(counters.malformed > 10'000);
  CHECK(counters.unfounded > 40'000);
}
