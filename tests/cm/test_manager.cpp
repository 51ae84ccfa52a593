// Two connection managers over a wire that loses, doubles and delays (InfiniBand specification volume 1, chapter 12;
// annex A11).
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include "tests/cm/wire.hpp"

using namespace rnic;
using namespace rnic::cm;
using rnic::test::CmWire;

namespace {

constexpr std::uint16_t kPort = 7174;
constexpr Gid kAll{};

template <typename T>
T must(Result<T> result) {
  REQUIRE(result.ok());
  return result.take();
}
void must(Result<void> result) { REQUIRE(result.ok()); }

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
std::string text_of(const Event& event) {
  const std::string all(reinterpret_cast<const char*>(event.data.data()), event.data_length);
  return all.substr(0, all.find('\0'));
}

/// A server on host 1 that listens, and clients on host 0.
struct Pair {
  explicit Pair(std::uint64_t seed = 1, const Config& config = {}) : wire(seed, config) {
    listener = must(wire[1].create());
    must(wire[1].bind(listener, PortSpace::kTcp, kAll, kPort));
    must(wire[1].listen(listener, 0));
  }

  ConnectSpec spec(std::uint32_t qpn, const std::string& data = "") {
    text = data;
    return {.local = CmWire::gid(0),
            .remote = CmWire::gid(1),
            .remote_port = kPort,
            .qpn = qpn,
            .receive_psn = qpn + 1,
            .responder_resources = 4,
            .initiator_depth = 3,
            .retry_count = 6,
            .rnr_retry = 5,
            .path_mtu = 4,
            .data = bytes_of(text)};
  }
  /// Sends a request and runs until the server's consumer is asked.
  EndpointId request(std::uint32_t qpn, const std::string& data = "") {
    const auto client = must(wire[0].create());
    must(wire[0].connect(client, spec(qpn, data), wire.now()));
    wire.run();
    return client;
  }
  EndpointId taken() {
    const Event event = wire[1].take_event(listener);
    REQUIRE(event.type == EventType::kConnectRequest);
    return event.incoming;
  }
  Event next(int host, EndpointId id) { return wire[host].take_event(id); }
  State state(int host, EndpointId id) { return must(wire[host].facts(id)).state; }
  /// Connects them whole; returns client and server.
  std::pair<EndpointId, EndpointId> connect(std::uint32_t qpn) {
    const auto client = request(qpn);
    const auto server = taken();
    must(wire[1].accept(server, {.qpn = qpn + 1000, .receive_psn = 7}, wire.now()));
    wire.run();
    REQUIRE(next(0, client).type == EventType::kConnectResponse);
    must(wire[0].establish(client, wire.now()));
    wire.run();
    REQUIRE(next(1, server).type == EventType::kEstablished);
    return {client, server};
  }
  void destroy_all(std::initializer_list<std::pair<int, EndpointId>> all) {
    for (const auto& [host, id] : all) wire[host].destroy(id, wire.now());
  }
  /// Everything is given back: nothing is left but what the test still has.
  void check_empty() {
    wire[1].destroy(listener, wire.now());
    wire.run_out();
    for (const int host : {0, 1}) {
      CHECK(wire[host].held() == Manager::Held{});
      CHECK(wire[host].next_deadline() == Manager::kNever);
    }
  }

  CmWire wire;
  EndpointId listener{};
  std::string text;
};

Message message_of(const CmWire::Sent& sent) {
  const auto decoded = decode(sent.mad);
  REQUIRE(decoded.message);
  return *decoded.message;
}

}  // namespace

TEST_CASE("a connection is made and ended with the messages of the specification") {
  Pair p;
  const auto client = p.request(100, "please");
  CHECK(p.state(0, client) == State::kReqSent);
  const Event asked = p.wire[1].take_event(p.listener);
  REQUIRE(asked.type == EventType::kConnectRequest);
  CHECK(text_of(asked) == "please");
  CHECK(asked.data_length == 56);
  const auto server = asked.incoming;
  const Facts known = must(p.wire[1].facts(server));
  CHECK(known.remote == CmWire::gid(0));
  CHECK(known.local == CmWire::gid(1));
  CHECK(known.local_port == kPort);
  CHECK(known.remote_port >= PortNumbers::kFirstEphemeral);
  CHECK(known.remote_qpn == 100);
  CHECK(known.send_psn == 101);
  CHECK(known.responder_resources == 4);
  CHECK(known.initiator_depth == 3);
  CHECK(known.retry_count == 6);
  CHECK(known.rnr_retry == 5);
  CHECK(known.path_mtu == 4);
  CHECK(known.pkey == 0xFFFF);
  must(p.wire[1].accept(
      server,
      {.qpn = 200, .receive_psn = 201, .responder_resources = 3, .initiator_depth = 2, .data = bytes_of("welcome")},
      p.wire.now()));
  p.wire.run();
  const Event answer = p.next(0, client);
  CHECK(answer.type == EventType::kConnectResponse);
  CHECK(text_of(answer) == "welcome");
  CHECK(must(p.wire[0].facts(client)).remote_qpn == 200);
  CHECK(must(p.wire[0].facts(client)).send_psn == 201);
  CHECK(must(p.wire[0].facts(client)).responder_resources == 3);
  must(p.wire[0].establish(client, p.wire.now()));
  p.wire.run();
  CHECK(p.next(1, server).type == EventType::kEstablished);
  must(p.wire[0].disconnect(client, p.wire.now()));
  p.wire.run();
  CHECK(p.next(0, client).type == EventType::kDisconnected);
  CHECK(p.next(1, server).type == EventType::kDisconnected);
  CHECK(p.state(0, client) == State::kTimeWait);
  CHECK(p.state(1, server) == State::kTimeWait);
  must(p.wire[1].disconnect(server, p.wire.now()));  // the peer was first
  std::vector<Attribute> kinds;
  for (const auto& sent : p.wire.log) kinds.push_back(static_cast<Attribute>(sent.mad[17]));
  CHECK(kinds == std::vector{Attribute::kReq, Attribute::kRep, Attribute::kRtu, Attribute::kDreq, Attribute::kDrep});
  // One transaction until the connection stands, another for its end.
  const auto transaction = [&](int i) { return message_of(p.wire.log[static_cast<std::size_t>(i)]).transaction; };
  CHECK(transaction(0) == transaction(1));
  CHECK(transaction(0) == transaction(2));
  CHECK(transaction(3) == transaction(4));
  CHECK(transaction(0) != transaction(3));
  const auto req = std::get<Req>(message_of(p.wire.log[0]).body);
  CHECK(req.service_id == service_id_of(PortSpace::kTcp, kPort));
  CHECK(req.primary.local_gid == CmWire::gid(0));
  CHECK(req.primary.remote_gid == CmWire::gid(1));
  CHECK(read_ip_header(req.data) == IpHeader{known.remote_port, CmWire::gid(0), CmWire::gid(1)});
  p.wire.run_out();
  CHECK(p.next(0, client).type == EventType::kTimeWaitExit);
  CHECK(p.state(0, client) == State::kIdle);
  p.destroy_all({{0, client}, {1, server}});
  p.check_empty();
}

TEST_CASE("each message may be lost, and is sent again until it is answered") {
  for (const auto lost : {Attribute::kReq, Attribute::kRep, Attribute::kRtu, Attribute::kDreq, Attribute::kDrep}) {
    for (const int times : {1, 5}) {
      INFO("attribute " << static_cast<int>(lost) << ", " << times << " times");
      Pair p;
      int left = times;
      p.wire.lose = [&](const CmWire::Sent& sent) {
        return sent.mad[17] == static_cast<std::uint8_t>(lost) && left-- > 0;
      };
      const auto client = must(p.wire[0].create());
      must(p.wire[0].connect(client, p.spec(100), p.wire.now()));
      p.wire.run(10'000'000'000);
      const auto server = p.taken();
      must(p.wire[1].accept(server, {.qpn = 200}, p.wire.now()));
      p.wire.run(lost == Attribute::kRep ? 4'000'000'000 : 0);
      REQUIRE(p.next(0, client).type == EventType::kConnectResponse);
      must(p.wire[0].establish(client, p.wire.now()));
      p.wire.run(10'000'000'000);
      CHECK(p.next(1, server).type == EventType::kEstablished);
      must(p.wire[0].disconnect(client, p.wire.now()));
      p.wire.run(lost == Attribute::kDreq || lost == Attribute::kDrep ? 4'000'000'000 : 0);
      CHECK(p.next(0, client).type == EventType::kDisconnected);
      CHECK(p.next(1, server).type == EventType::kDisconnected);
      // No request was asked about twice.
      CHECK_FALSE(p.wire[1].has_events(p.listener));
      p.destroy_all({{0, client}, {1, server}});
      p.check_empty();
    }
  }
}

TEST_CASE("every message twice is one message") {
  Pair p;
  const auto client = must(p.wire[0].create());
  const auto echo = [&] {
    // What was sent so far once more, in its order.
    const auto sent = p.wire.log;
    for (const auto& one : sent) p.wire.inject(one.from, one.to, one.mad);
    p.wire.run();
  };
  must(p.wire[0].connect(client, p.spec(100), p.wire.now()));
  p.wire.run();
  echo();
  const auto server = p.taken();
  CHECK_FALSE(p.wire[1].has_events(p.listener));
  CHECK(p.state(1, server) == State::kMraReqSent);  // a REQ that comes again learns that it takes time (12.6.6)
  CHECK(p.state(0, client) == State::kMraReqReceived);
  must(p.wire[1].accept(server, {.qpn = 200}, p.wire.now()));
  p.wire.run();
  echo();
  CHECK(p.state(0, client) == State::kMraRepSent);
  REQUIRE(p.next(0, client).type == EventType::kConnectResponse);
  must(p.wire[0].establish(client, p.wire.now()));
  p.wire.run();
  echo();
  CHECK(p.next(1, server).type == EventType::kEstablished);
  CHECK(p.state(0, client) == State::kEstablished);
  CHECK(p.state(1, server) == State::kEstablished);
  must(p.wire[1].disconnect(server, p.wire.now()));
  p.wire.run();
  echo();
  CHECK(p.next(0, client).type == EventType::kDisconnected);
  CHECK(p.next(1, server).type == EventType::kDisconnected);
  CHECK(p.next(0, client).type == EventType::kNone);
  CHECK(p.next(1, server).type == EventType::kNone);
  // A DREQ that comes again means that the answer was lost.
  const auto answers = p.wire.count(Attribute::kDrep);
  const auto dreq = std::find_if(p.wire.log.begin(), p.wire.log.end(), [](const CmWire::Sent& sent) {
    return sent.mad[17] == static_cast<std::uint8_t>(Attribute::kDreq);
  });
  p.wire.inject(dreq->from, dreq->to, Mad(dreq->mad));
  p.wire.run();
  CHECK(p.wire.count(Attribute::kDrep) == answers + 1);
  p.destroy_all({{0, client}, {1, server}});
  p.check_empty();
}

TEST_CASE("a refusal that is lost is said again, and the consumer is not asked again") {
  // Beyond those that are remembered to the end, each REQ keeps the refusal until the next one may come.
  const std::uint32_t remembered = GENERATE(0U, 16U);
  const bool patient = GENERATE(false, true);
  CAPTURE(remembered, patient);
  Pair p(1, {.max_remembered = remembered});
  int lost = patient ? 1 : 3;
  p.wire.lose = [&](const CmWire::Sent& sent) {
    return sent.mad[17] == static_cast<std::uint8_t>(Attribute::kRej) && lost-- > 0;
  };
  const auto client = p.request(100);
  const auto server = p.taken();
  if (patient) {
    p.wire.run(1'000'000'000);
    REQUIRE(p.state(0, client) == State::kMraReqReceived);
  }
  must(p.wire[1].reject(server, bytes_of("no"), p.wire.now()));
  p.wire[1].destroy(server, p.wire.now());
  p.wire.run(30'000'000'000);
  const Event answer = p.next(0, client);
  CHECK(answer.type == EventType::kRejected);
  CHECK(text_of(answer) == "no");
  CHECK_FALSE(p.wire[1].has_events(p.listener));
  p.destroy_all({{0, client}});
  p.check_empty();
}

TEST_CASE("nobody waits for longer than the longest wait, whatever the peer asks for (12.6.6)") {
  Pair p;
  p.wire.lose = [](const CmWire::Sent& sent) { return sent.from == CmWire::gid(0); };
  const auto client = p.request(100);
  const Message asked = message_of(p.wire.log.at(0));
  const Mra forever{
      .local_id = 77, .remote_id = std::get<Req>(asked.body).local_id, .about = About::kReq, .service_timeout = 31};
  p.wire.inject(CmWire::gid(1), CmWire::gid(0), encode({asked.transaction, forever}));
  p.wire.run();
  CHECK(p.state(0, client) == State::kMraReqReceived);
  CHECK(p.wire[0].next_deadline() < p.wire.now() + 20'000'000'000);
  p.destroy_all({{0, client}});
  p.check_empty();
}

TEST_CASE("a server that takes its time keeps the client waiting, not failing (12.6.6)") {
  Pair p;
  const auto client = p.request(100);
  const auto server = p.taken();
  p.wire.run(60'000'000'000);  // sixteen answers would have been late long ago
  CHECK(p.state(0, client) == State::kMraReqReceived);
  CHECK(p.wire.count(Attribute::kMra) >= 2);
  must(p.wire[1].accept(server, {.qpn = 200}, p.wire.now()));
  p.wire.run();
  CHECK(p.next(0, client).type == EventType::kConnectResponse);
  p.destroy_all({{0, client}, {1, server}});
  p.check_empty();
}

TEST_CASE("nobody answers: unreachable after all retries, and the rest is quiet") {
  Pair p;
  p.wire.lose = [](const CmWire::Sent&) { return true; };
  const auto client = must(p.wire[0].create());
  must(p.wire[0].connect(client, p.spec(100), p.wire.now()));
  p.wire.run_out();
  CHECK(p.wire.count(Attribute::kReq) == 16);
  CHECK(p.wire.count(Attribute::kRej) == 1);
  const Event event = p.next(0, client);
  CHECK(event.type == EventType::kUnreachable);
  CHECK(event.reason == static_cast<std::uint16_t>(Reason::kTimeout));
  CHECK(p.state(0, client) == State::kIdle);
  // It may try again, with the same queue pair.
  p.wire.lose = [](const CmWire::Sent&) { return false; };
  must(p.wire[0].connect(client, p.spec(100), p.wire.now()));
  p.wire.run();
  const auto server = p.taken();
  CHECK(p.state(1, server) == State::kReqReceived);
  p.destroy_all({{0, client}, {1, server}});
  p.check_empty();
}

TEST_CASE("not more refusals than so many are remembered until their request cannot come again") {
  Pair p(1, {.max_remembered = 2});
  std::vector<EndpointId> clients;
  for (std::uint32_t i = 0; i < 5; ++i) {
    clients.push_back(p.request(100 + i));
    const auto server = p.taken();
    must(p.wire[1].reject(server, {}, p.wire.now()));
    p.wire[1].destroy(server, p.wire.now());
    p.wire.run();
  }
  CHECK(p.wire[1].endpoints() == 6);  // the listener among them
  p.wire.run(600'000'000);
  CHECK(p.wire[1].endpoints() == 3);
  p.wire.run(6'000'000'000);
  CHECK(p.wire[1].endpoints() == 1);
  for (const auto client : clients) p.wire[0].destroy(client, p.wire.now());
  p.check_empty();
}

TEST_CASE("a communication ID that the peer still keeps is not drawn again") {
  // 127 IDs. The server keeps each for 6 s, in which 20 others are drawn: a request under one of them would be taken
  // for a repetition.
  Pair p(1, {.id_bits = 7});
  for (std::uint32_t i = 0; i < 300; ++i) {
    const auto client = p.request(100 + i);
    const auto server = p.taken();
    must(p.wire[1].reject(server, {}, p.wire.now()));
    p.wire[1].destroy(server, p.wire.now());
    p.wire.run();
    REQUIRE(p.next(0, client).type == EventType::kRejected);
    p.wire[0].destroy(client, p.wire.now());
    p.wire.run(300'000'000);
  }
  p.check_empty();
}

TEST_CASE("refusals: no listener, by the consumer, no room, no more patience") {
  Pair p;
  SECTION("no listener") {
    const auto client = must(p.wire[0].create());
    auto spec = p.spec(100);
    spec.remote_port = kPort + 1;
    must(p.wire[0].connect(client, spec, p.wire.now()));
    p.wire.run();
    const Event event = p.next(0, client);
    CHECK(event.type == EventType::kRejected);
    CHECK(event.reason == static_cast<std::uint16_t>(Reason::kInvalidServiceId));
    CHECK(p.wire[1].endpoints() == 1);
    p.destroy_all({{0, client}});
  }
  SECTION("the consumer, with its reasons; a lost REJ is sent again for a REQ that comes again") {
    bool lost = false;
    p.wire.lose = [&](const CmWire::Sent& sent) {
      return sent.mad[17] == static_cast<std::uint8_t>(Attribute::kRej) && !std::exchange(lost, true);
    };
    const auto client = p.request(100);
    const auto server = p.taken();
    must(p.wire[1].reject(server, bytes_of("no"), p.wire.now()));
    p.wire.run();
    CHECK(p.next(0, client).type == EventType::kNone);
    // The answer of the first REQ would have to come within 335 ms, TimeWait is 134 ms: the peer asks the consumer
    // again.
    p.wire.run(100'000'000);
    const auto req = p.wire.log.front();
    p.wire.inject(req.from, req.to, req.mad);
    p.wire.run();
    const Event event = p.next(0, client);
    CHECK(event.type == EventType::kRejected);
    CHECK(event.reason == static_cast<std::uint16_t>(Reason::kConsumer));
    CHECK(text_of(event) == "no");
    CHECK(event.data_length == 148);
    CHECK_FALSE(p.wire[1].has_events(p.listener));
    p.destroy_all({{0, client}, {1, server}});
  }
  SECTION("whatever is lost of a refusal and of the REQs that follow it, the consumer is asked once") {
    // As many REQs as there are, and the answers to all but the last.
    for (int lost = 1; lost <= 14; ++lost) {
      INFO(lost << " messages");
      for (const auto kind : {Attribute::kRej, Attribute::kReq}) {
        int left = lost;
        bool refused = false;
        p.wire.lose = [&](const CmWire::Sent& sent) {
          const bool is_rej = sent.mad[17] == static_cast<std::uint8_t>(Attribute::kRej);
          if (is_rej && !std::exchange(refused, true)) return true;
          return refused && sent.mad[17] == static_cast<std::uint8_t>(kind) && left-- > 0;
        };
        const auto client = p.request(100);
        const auto server = p.taken();
        must(p.wire[1].reject(server, bytes_of("no"), p.wire.now()));
        p.wire.run(7'000'000'000);
        CHECK(p.next(0, client).type == EventType::kRejected);
        CHECK_FALSE(p.wire[1].has_events(p.listener));
        p.destroy_all({{0, client}, {1, server}});
      }
    }
    p.wire.lose = [](const CmWire::Sent&) { return false; };
  }
  SECTION("nor when the consumer was slow, accepted, and has gone before its answer came") {
    bool deaf = false;
    p.wire.lose = [&](const CmWire::Sent& sent) {
      return deaf && sent.mad[17] != static_cast<std::uint8_t>(Attribute::kReq);
    };
    const auto client = p.request(100);
    const auto server = p.taken();
    SECTION("told to wait") {
      p.wire.run(400'000'000);
      REQUIRE(p.state(1, server) == State::kMraReqSent);
      must(p.wire[1].reject(server, {}, p.wire.now()));
    }
    SECTION("accepted") {
      deaf = true;
      must(p.wire[1].accept(server, {.qpn = 200}, p.wire.now()));
      p.wire.run(100'000'000);
    }
    deaf = true;
    p.wire[1].destroy(server, p.wire.now());
    p.wire.run(2'000'000'000);
    deaf = false;
    p.wire.run(20'000'000'000);
    CHECK(p.next(0, client).type == EventType::kRejected);
    CHECK_FALSE(p.wire[1].has_events(p.listener));
    p.destroy_all({{0, client}});
  }
  SECTION("the same queue pair may ask again at once") {
    const auto client = p.request(100);
    const auto first = p.taken();
    must(p.wire[1].reject(first, {}, p.wire.now()));
    p.wire.run();
    CHECK(p.next(0, client).type == EventType::kRejected);
    must(p.wire[0].connect(client, p.spec(100), p.wire.now()));
    p.wire.run();
    const auto second = p.taken();
    CHECK(second != first);
    p.destroy_all({{0, client}, {1, first}, {1, second}});
  }
  SECTION("backlog") {
    must(p.wire[1].listen(p.listener, 2));
    std::vector<EndpointId> clients;
    for (std::uint32_t i = 0; i < 3; ++i) clients.push_back(p.request(100 + i));
    const Event event = p.next(0, clients[2]);
    CHECK(event.type == EventType::kRejected);
    CHECK(event.reason == static_cast<std::uint16_t>(Reason::kNoResources));
    const auto server = p.taken();
    clients.push_back(p.request(200));  // there is room again
    CHECK(p.state(0, clients[3]) == State::kReqSent);
    for (const auto client : clients) p.wire[0].destroy(client, p.wire.now());
    p.destroy_all({{1, server}});
  }
  SECTION("a listener that goes refuses who waits at it") {
    const auto client = p.request(100);
    p.wire[1].destroy(p.listener, p.wire.now());
    p.wire.run();
    CHECK(p.next(0, client).type == EventType::kRejected);
    p.destroy_all({{0, client}});
  }
  SECTION("the active side rejects the answer") {
    const auto client = p.request(100);
    const auto server = p.taken();
    must(p.wire[1].accept(server, {.qpn = 200}, p.wire.now()));
    p.wire.run();
    must(p.wire[0].reject(client, bytes_of("changed my mind"), p.wire.now()));
    p.wire.run();
    const Event event = p.next(1, server);
    CHECK(event.type == EventType::kRejected);
    CHECK(text_of(event) == "changed my mind");
    p.destroy_all({{0, client}, {1, server}});
  }
  SECTION("the client gives up before it is answered") {
    const auto client = p.request(100);
    const auto server = p.taken();
    p.wire[0].destroy(client, p.wire.now());
    p.wire.run();
    CHECK(p.next(1, server).type == EventType::kRejected);
    CHECK(p.wire[1].accept(server, {.qpn = 200}, p.wire.now()).error() == Error::kInvalidState);
    p.destroy_all({{1, server}});
  }
  SECTION("the client never says that it is ready") {
    const auto client = p.request(100);
    const auto server = p.taken();
    p.wire.lose = [](const CmWire::Sent& sent) { return sent.from == CmWire::gid(0); };
    must(p.wire[1].accept(server, {.qpn = 200}, p.wire.now()));
    p.wire.run(20'000'000'000);
    CHECK(p.wire.count(Attribute::kRep) == 16);
    CHECK(p.next(1, server).type == EventType::kUnreachable);
    p.destroy_all({{0, client}, {1, server}});
  }
  p.check_empty();
}

TEST_CASE("a packet of the peer stands for a lost RTU (communication established)") {
  Pair p;
  const auto client = p.request(100);
  const auto server = p.taken();
  must(p.wire[1].accept(server, {.qpn = 200}, p.wire.now()));
  p.wire.run();
  p.wire.lose = [](const CmWire::Sent& sent) { return sent.mad[17] == static_cast<std::uint8_t>(Attribute::kRtu); };
  must(p.wire[0].establish(client, p.wire.now()));
  p.wire.run();
  CHECK(p.next(1, server).type == EventType::kNone);
  p.wire[1].communication_established(200, p.wire.now());
  CHECK(p.next(1, server).type == EventType::kEstablished);
  p.wire[1].communication_established(200, p.wire.now());
  p.wire[1].communication_established(999, p.wire.now());
  CHECK(p.next(1, server).type == EventType::kNone);
  p.destroy_all({{0, client}, {1, server}});
  p.check_empty();
}

TEST_CASE("both disconnect at the same time (12.9)") {
  Pair p;
  const auto [client, server] = p.connect(100);
  must(p.wire[0].disconnect(client, p.wire.now()));
  must(p.wire[1].disconnect(server, p.wire.now()));
  p.wire.run();
  CHECK(p.next(0, client).type == EventType::kDisconnected);
  CHECK(p.next(1, server).type == EventType::kDisconnected);
  CHECK(p.wire.count(Attribute::kDreq) == 2);
  CHECK(p.wire.count(Attribute::kDrep) == 2);
  p.destroy_all({{0, client}, {1, server}});
  p.check_empty();
}

TEST_CASE("a peer that is gone: disconnection ends by itself") {
  Pair p;
  const auto [client, server] = p.connect(100);
  p.wire.lose = [](const CmWire::Sent&) { return true; };
  must(p.wire[0].disconnect(client, p.wire.now()));
  p.wire.run_out();
  CHECK(p.wire.count(Attribute::kDreq) == 16);
  CHECK(p.next(0, client).type == EventType::kDisconnected);
  CHECK(p.state(1, server) == State::kEstablished);
  // The server learns it when it asks: nobody knows the connection any more.
  p.wire.lose = [](const CmWire::Sent&) { return false; };
  must(p.wire[1].disconnect(server, p.wire.now()));
  p.wire.run();
  CHECK(p.next(1, server).type == EventType::kDisconnected);
  p.destroy_all({{0, client}, {1, server}});
  p.check_empty();
}

TEST_CASE("an owner that dies: its connections are ended with the peer") {
  Pair p;
  const auto [client, server] = p.connect(100);
  bool lost = false;
  p.wire.lose = [&](const CmWire::Sent&) { return !std::exchange(lost, true); };  // and the first DREQ is lost
  p.wire[0].destroy(client, p.wire.now());
  p.wire.run(1'000'000'000);
  CHECK(p.next(1, server).type == EventType::kDisconnected);
  CHECK(p.wire[0].endpoints() == 0);
  p.destroy_all({{1, server}});
  p.check_empty();
}

TEST_CASE("a stale connection is refused, and ended (12.9.8)") {
  Pair p;
  const auto [client, server] = p.connect(100);
  // The host of the client starts anew, and gives the queue pair its number again.
  const auto req = std::get<Req>(message_of(p.wire.log.front()).body);
  auto again = req;
  again.local_id = req.local_id + 1;
  p.wire.log.clear();
  p.wire.inject(CmWire::gid(0), CmWire::gid(1), encode({5, again}));
  p.wire.run();
  const auto rej = std::get<Rej>(message_of(*std::find_if(p.wire.log.begin(), p.wire.log.end(), [](const auto& sent) {
                                   return sent.mad[17] == static_cast<std::uint8_t>(Attribute::kRej);
                                 })).body);
  CHECK(rej.reason == Reason::kStale);
  CHECK(rej.remote_id == again.local_id);
  CHECK(p.next(1, server).type == EventType::kDisconnected);
  CHECK(p.wire.count(Attribute::kDreq) == 1);
  p.destroy_all({{0, client}, {1, server}});
  p.check_empty();
}

TEST_CASE("connections cross: each side asks the other") {
  Pair p;
  const auto other = must(p.wire[0].create());
  must(p.wire[0].bind(other, PortSpace::kTcp, CmWire::gid(0), kPort));
  must(p.wire[0].listen(other, 4));
  const auto from0 = must(p.wire[0].create());
  const auto from1 = must(p.wire[1].create());
  must(p.wire[0].connect(from0, p.spec(100), p.wire.now()));
  auto back = p.spec(101);
  std::swap(back.local, back.remote);
  must(p.wire[1].connect(from1, back, p.wire.now()));
  p.wire.run();
  const auto at1 = p.taken();
  const auto at0 = p.wire[0].take_event(other).incoming;
  must(p.wire[1].accept(at1, {.qpn = 201}, p.wire.now()));
  must(p.wire[0].accept(at0, {.qpn = 202}, p.wire.now()));
  p.wire.run();
  CHECK(p.next(0, from0).type == EventType::kConnectResponse);
  CHECK(p.next(1, from1).type == EventType::kConnectResponse);
  must(p.wire[0].establish(from0, p.wire.now()));
  must(p.wire[1].establish(from1, p.wire.now()));
  p.wire.run();
  CHECK(p.next(1, at1).type == EventType::kEstablished);
  CHECK(p.next(0, at0).type == EventType::kEstablished);
  p.destroy_all({{0, from0}, {0, at0}, {0, other}, {1, from1}, {1, at1}});
  p.check_empty();
}

TEST_CASE("a host connects to itself") {
  Pair p;
  const auto client = must(p.wire[1].create());
  auto spec = p.spec(100);
  spec.local = CmWire::gid(1);
  must(p.wire[1].connect(client, spec, p.wire.now()));
  p.wire.run();
  const auto server = p.taken();
  must(p.wire[1].accept(server, {.qpn = 200}, p.wire.now()));
  p.wire.run();
  CHECK(p.next(1, client).type == EventType::kConnectResponse);
  must(p.wire[1].establish(client, p.wire.now()));
  p.wire.run();
  CHECK(p.next(1, server).type == EventType::kEstablished);
  must(p.wire[1].disconnect(server, p.wire.now()));
  p.wire.run();
  CHECK(p.next(1, client).type == EventType::kDisconnected);
  p.destroy_all({{1, client}, {1, server}});
  p.check_empty();
}

TEST_CASE("alternate paths are refused (12.8)") {
  Pair p;
  const auto [client, server] = p.connect(100);
  const auto rtu = std::get<Rtu>(message_of(p.wire.log.back()).body);
  p.wire.inject(CmWire::gid(0), CmWire::gid(1), encode({9, Lap{.local_id = rtu.local_id, .remote_id = rtu.remote_id}}));
  p.wire.run();
  const auto apr = std::get<Apr>(message_of(p.wire.log.back()).body);
  CHECK(apr.status == Apr::kNotSupported);
  CHECK(apr.local_id == rtu.remote_id);
  CHECK(p.state(1, server) == State::kEstablished);
  p.destroy_all({{0, client}, {1, server}});
  p.check_empty();
}

TEST_CASE("a datagram service says which queue pair serves it (12.11)") {
  Pair p;
  const auto service = must(p.wire[1].create());
  must(p.wire[1].bind(service, PortSpace::kUdp, CmWire::gid(1), kPort));
  must(p.wire[1].listen(service, 1));
  const auto client = must(p.wire[0].create());
  must(p.wire[0].bind(client, PortSpace::kUdp, CmWire::gid(0), 0));
  SECTION("yes, with losses") {
    int lost = 0;
    p.wire.lose = [&](const CmWire::Sent&) { return lost++ % 2 == 0; };
    must(p.wire[0].ask(client, p.spec(100, "who?"), p.wire.now()));
    p.wire.run(1'000'000'000);
    const Event asked = p.wire[1].take_event(service);
    REQUIRE(asked.type == EventType::kConnectRequest);
    CHECK(asked.datagram);
    CHECK(text_of(asked) == "who?");
    CHECK(asked.data_length == 180);
    must(p.wire[1].accept(asked.incoming, {.qpn = 300, .qkey = 0x1234567, .data = bytes_of("me")}, p.wire.now()));
    p.wire.run(100'000'000);
    const auto req =
        std::find_if(p.wire.log.begin(), p.wire.log.end(), [](const auto& sent) { return sent.mad[17] == 0x17; });
    p.wire.inject(req->from, req->to, req->mad);
    p.wire.run(1'000'000'000);
    const Event answer = p.next(0, client);
    CHECK(answer.type == EventType::kEstablished);
    CHECK(text_of(answer) == "me");
    CHECK(must(p.wire[0].facts(client)).remote_qpn == 300);
    CHECK(must(p.wire[0].facts(client)).qkey == 0x1234567);
    CHECK(p.wire[1].take_event(service).type == EventType::kNone);
    p.destroy_all({{1, asked.incoming}});
  }
  SECTION("yes, but the answer is lost: it is said again, and the service is not asked again") {
    bool lost = false;
    p.wire.lose = [&](const CmWire::Sent& sent) { return sent.from == CmWire::gid(1) && !std::exchange(lost, true); };
    must(p.wire[0].ask(client, p.spec(100), p.wire.now()));
    p.wire.run();
    const Event asked = p.wire[1].take_event(service);
    must(p.wire[1].accept(asked.incoming, {.qpn = 300}, p.wire.now()));
    p.wire[1].destroy(asked.incoming, p.wire.now());
    p.wire.run(2'000'000'000);
    CHECK(p.next(0, client).type == EventType::kEstablished);
    CHECK(p.wire[1].take_event(service).type == EventType::kNone);
  }
  SECTION("no") {
    must(p.wire[0].ask(client, p.spec(100), p.wire.now()));
    p.wire.run();
    const auto asked = p.wire[1].take_event(service).incoming;
    must(p.wire[1].reject(asked, {}, p.wire.now()));
    p.wire.run();
    const Event answer = p.next(0, client);
    CHECK(answer.type == EventType::kRejected);
    CHECK(answer.reason == static_cast<std::uint16_t>(SidrRep::Status::kRejected));
    p.destroy_all({{1, asked}});
  }
  SECTION("there is no such service") {
    auto spec = p.spec(100);
    spec.remote_port = 5;
    must(p.wire[0].ask(client, spec, p.wire.now()));
    p.wire.run();
    CHECK(p.next(0, client).reason == static_cast<std::uint16_t>(SidrRep::Status::kUnsupportedService));
  }
  SECTION("nobody is there") {
    p.wire.lose = [](const CmWire::Sent&) { return true; };
    must(p.wire[0].ask(client, p.spec(100), p.wire.now()));
    p.wire.run_out();
    CHECK(p.wire.count(Attribute::kSidrReq) == 16);
    CHECK(p.next(0, client).type == EventType::kUnreachable);
  }
  p.destroy_all({{0, client}, {1, service}});
  p.check_empty();
}

TEST_CASE("wishes that cannot be") {
  Pair p;
  const auto client = must(p.wire[0].create());
  auto& m = p.wire[0];
  const auto error = [&](auto&& change) {
    auto spec = p.spec(100);
    change(spec);
    return m.connect(client, spec, p.wire.now()).error();
  };
  CHECK(error([](ConnectSpec& s) { s.remote = {0xFF, 0x02}; }) == Error::kInvalidParameter);  // unicast only
  CHECK(error([](ConnectSpec& s) { s.remote[12] = 224; }) == Error::kInvalidParameter);
  CHECK(error([](ConnectSpec& s) { s.remote = {0xFE, 0x80}; }) == Error::kInvalidParameter);  // of another kind of IP
  CHECK(error([](ConnectSpec& s) { s.local = CmWire::gid(1); }) == Error::kNotFound);
  CHECK(error([](ConnectSpec& s) { s.remote_port = 0; }) == Error::kInvalidParameter);
  CHECK(error([](ConnectSpec& s) { s.qpn = 1; }) == Error::kInvalidParameter);
  CHECK(error([](ConnectSpec& s) { s.path_mtu = 6; }) == Error::kInvalidParameter);
  CHECK(error([](ConnectSpec& s) { s.receive_psn = 1U << 24; }) == Error::kInvalidParameter);
  CHECK(error([](ConnectSpec& s) { s.retry_count = 8; }) == Error::kInvalidParameter);
  CHECK(error([](ConnectSpec& s) { s.service = Service::kRd; }) == Error::kInvalidParameter);
  const std::vector<std::uint8_t> much(57);
  CHECK(error([&](ConnectSpec& s) { s.data = much; }) == Error::kInvalidParameter);
  CHECK(m.connect(client + 1, p.spec(100), 0).error() == Error::kNotFound);
  CHECK(m.accept(client, {.qpn = 100}, 0).error() == Error::kInvalidState);
  CHECK(m.reject(client, {}, 0).error() == Error::kInvalidState);
  CHECK(m.disconnect(client, 0).error() == Error::kInvalidState);
  CHECK(m.establish(client, 0).error() == Error::kInvalidState);
  CHECK(m.listen(client, 1).error() == Error::kInvalidState);  // not bound
  CHECK(m.bind(client, PortSpace::kTcp, CmWire::gid(1), 5).error() == Error::kNotFound);
  CHECK(must(m.bind(client, PortSpace::kTcp, kAll, 0)) >= PortNumbers::kFirstEphemeral);
  CHECK(m.bind(client, PortSpace::kTcp, kAll, 6).error() == Error::kInvalidState);
  must(m.connect(client, p.spec(100), p.wire.now()));
  CHECK(m.connect(client, p.spec(101), p.wire.now()).error() == Error::kInvalidState);
  const auto second = must(m.create());
  CHECK(m.connect(second, p.spec(100), p.wire.now()).error() == Error::kBusy);  // the queue pair is in use
  p.destroy_all({{0, client}, {0, second}});
  p.wire.run();
  p.check_empty();
}

TEST_CASE("ports") {
  PortNumbers ports;
  const Gid one = CmWire::gid(0), two = CmWire::gid(1);
  CHECK(must(ports.bind(1, PortSpace::kTcp, one, 5)) == 5);
  CHECK(ports.bind(2, PortSpace::kTcp, one, 5).error() == Error::kExists);
  CHECK(ports.bind(2, PortSpace::kTcp, kAll, 5).error() == Error::kExists);
  CHECK(must(ports.bind(2, PortSpace::kTcp, two, 5)) == 5);
  CHECK(must(ports.bind(3, PortSpace::kUdp, kAll, 5)) == 5);
  CHECK(ports.bind(4, PortSpace::kUdp, one, 5).error() == Error::kExists);
  CHECK(ports.find({PortSpace::kTcp, 5}, one) == 1);
  CHECK(ports.find({PortSpace::kTcp, 5}, two) == 2);
  CHECK(ports.find({PortSpace::kUdp, 5}, two) == 3);
  CHECK_FALSE(ports.find({PortSpace::kTcp, 6}, one));
  ports.release(2, PortSpace::kTcp, one, 5);  // not its own
  CHECK(ports.find({PortSpace::kTcp, 5}, one) == 1);
  ports.release(1, PortSpace::kTcp, one, 5);
  CHECK_FALSE(ports.find({PortSpace::kTcp, 5}, one));
  for (unsigned i = 0; i < 0x4000; ++i) must(ports.bind(9, PortSpace::kTcp, kAll, 0));
  CHECK(ports.bind(9, PortSpace::kTcp, kAll, 0).error() == Error::kOutOfResources);
}

TEST_CASE("the device goes: every connection is over and told so, listeners stay") {
  Pair p;
  const auto [client, server] = p.connect(100);
  const auto waiting = p.request(102);
  p.wire[0].lose_device();
  CHECK(p.next(0, client).type == EventType::kDeviceRemoved);
  CHECK(p.next(0, waiting).type == EventType::kDeviceRemoved);
  CHECK(p.state(0, client) == State::kIdle);
  CHECK(p.wire[0].next_deadline() == Manager::kNever);
  p.wire[1].lose_device();
  CHECK(must(p.wire[1].facts(p.listener)).listening);
  CHECK(p.next(1, server).type == EventType::kDeviceRemoved);
  p.destroy_all({{0, client}, {0, waiting}, {1, server}, {1, p.taken()}});
  p.check_empty();
}

TEST_CASE("ten thousand connections in a row, with one message of ten lost, and nothing is left") {
  Pair p(7);
  p.wire.keep_log = false;
  std::mt19937 dice(11);
  p.wire.lose = [&](const CmWire::Sent&) { return dice() % 10 == 0; };
  unsigned connected = 0;
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    const std::uint32_t qpn = 2 + i % 0x7FFFF0;
    const auto client = must(p.wire[0].create());
    must(p.wire[0].connect(client, p.spec(qpn), p.wire.now()));
    EndpointId server = 0;
    Event end;
    // Both consumers do at once what they are told.
    for (int steps = 0; end.type == EventType::kNone && steps < 1000; ++steps) {
      p.wire.run(10'000'000);
      if (const Event asked = p.wire[1].take_event(p.listener); asked.type == EventType::kConnectRequest) {
        REQUIRE(server == 0);
        server = asked.incoming;
        must(p.wire[1].accept(server, {.qpn = 0x800000 + i}, p.wire.now()));
      }
      if (const Event told = p.next(0, client); told.type == EventType::kConnectResponse) {
        must(p.wire[0].establish(client, p.wire.now()));
      } else if (told.type != EventType::kNone) {
        end = told;
      }
      if (server != 0 && p.next(1, server).type == EventType::kEstablished) {
        ++connected;
        must(p.wire[1].disconnect(server, p.wire.now()));
      }
    }
    REQUIRE((end.type == EventType::kDisconnected || end.type == EventType::kUnreachable));
    p.wire[0].destroy(client, p.wire.now());
    p.wire[1].destroy(server, p.wire.now());
  }
  CHECK(connected == 10'000);
  CHECK(p.wire[0].endpoints() < 100);  // those of TimeWait
  p.check_empty();
}
