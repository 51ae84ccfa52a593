// Connections over the NIC: processes on two hosts connect by kernel calls, through QP1, and then move data
// (docs/connection_manager.md; InfiniBand specification volume 1, chapter 12; annex A11).
#include <catch2/catch.hpp>

#include "driver/umd/address_handle.hpp"
#include "tests/system/connection_world.hpp"

using namespace rnic;
using namespace rnic::test;

namespace {

/// Connects the queue pairs; returns the endpoints of client and server.
std::pair<calls::Handle, calls::Handle> connect(Process& client, umd::QueuePair& client_qp, Process& server,
                                                umd::QueuePair& server_qp, calls::Handle listener, bool ipv6) {
  const auto from = client.endpoint();
  client.resolve(from, server, ipv6);
  client.connect(from, client_qp, 0x111111);
  const auto to = server.expect(listener, ConnectionEvent::kConnectRequest).incoming;
  server.make_ready(to, server_qp, 0x222222);
  server.accept(to, server_qp, 0x222222);
  client.expect(from, ConnectionEvent::kConnectResponse);
  client.make_ready(from, client_qp, 0x111111);
  must(client.process->call(calls::Establish{.endpoint = from}));
  server.expect(to, ConnectionEvent::kEstablished);
  return {from, to};
}

}  // namespace

TEST_CASE("processes connect through QP1 and move data, over IPv4 and IPv6") {
  const bool ipv6 = GENERATE(false, true);
  with_management(WorldOptions::from_environment("connections"), [&](Endpoint& host_a, Endpoint& host_b) {
    Process a(host_a), b(host_b);
    const auto listener = b.listener();
    const auto qp_a = a.make_qp(), qp_b = b.make_qp();
    const auto segment_b = b.segment(4096);
    must(qp_b->post_receive({.id = 1, .segments = {&segment_b, 1}}));
    const auto [from, to] = connect(a, *qp_a, b, *qp_b, listener, ipv6);
    for (std::size_t i = 0; i < 4096; ++i) a.memory[i] = static_cast<std::uint8_t>(i * 7);
    const auto segment_a = a.segment(4096);
    must(qp_a->post_send({.opcode = hw::WqeOpcode::kSend, .id = 2, .segments = {&segment_a, 1}}));
    CHECK(a.completion().status == hw::CqeStatus::kSuccess);
    CHECK(b.completion().byte_count == 4096);
    CHECK(a.memory == b.memory);
    must(b.process->call(calls::Disconnect{.endpoint = to}));
    a.expect(from, ConnectionEvent::kDisconnected);
    b.expect(to, ConnectionEvent::kDisconnected);
    a.end(from);
    b.end(to);
  });
}

TEST_CASE("a process that dies is missed by its peer; a listener that is not there refuses") {
  with_management(WorldOptions::from_environment("connections_death"), [&](Endpoint& host_a, Endpoint& host_b) {
    Process b(host_b);
    const auto listener = b.listener();
    const auto qp_b = b.make_qp();
    calls::Handle to = 0;
    {
      Process a(host_a);
      const auto qp_a = a.make_qp();
      to = connect(a, *qp_a, b, *qp_b, listener, false).second;
    }
    b.expect(to, ConnectionEvent::kDisconnected);
    b.end(listener);
    Process a(host_a);
    const auto qp_a = a.make_qp();
    const auto from = a.endpoint();
    a.resolve(from, b, false);
    a.connect(from, *qp_a, 1);
    CHECK(a.expect(from, ConnectionEvent::kRejected).reason == 8);
  });
}

TEST_CASE("a datagram service is found, and served") {
  with_management(WorldOptions::from_environment("connections_datagram"), [&](Endpoint& host_a, Endpoint& host_b) {
    Process a(host_a), b(host_b);
    const auto listener = b.listener(kUdp);
    const auto qp_a = a.make_qp(hw::QpType::kUd), qp_b = b.make_qp(hw::QpType::kUd);
    for (auto [process, qp] : {std::pair(&a, qp_a), std::pair(&b, qp_b)})
      must(qp->connect(testbench::datagram_attributes(process->host, 0x01234567, 1024)));
    const auto segment_b = b.segment(1064);
    must(qp_b->post_receive({.id = 1, .segments = {&segment_b, 1}}));
    const auto from = a.endpoint(kUdp);
    a.resolve(from, b, false);
    a.connect(from, *qp_a, 0);
    const auto asked = b.expect(listener, ConnectionEvent::kConnectRequest);
    CHECK(asked.datagram == 1);
    b.accept(asked.incoming, *qp_b, 0);
    a.expect(from, ConnectionEvent::kEstablished);
    const auto known = must(a.process->call(calls::QueryEndpoint{.endpoint = from}));
    const auto peer = must(umd::AddressHandle::create(testbench::address_of(host_b, false)));
    const auto segment_a = a.segment(256);
    umd::SendRequest request;
    request.segments = {&segment_a, 1};
    request.address = &peer;
    request.dest_qpn = known.remote_qpn;
    request.qkey = known.qkey;
    must(qp_a->post_send(request));
    CHECK(a.completion().status == hw::CqeStatus::kSuccess);
    CHECK(b.completion().byte_count == 256 + 40);
  });
}

TEST_CASE("a connection that is asked for while the cable is out is made when it is in") {
  auto options = WorldOptions::from_environment("connections_cable_out");
  options.hang_ns = kPatienceNs;  // what is lost comes again after a third of a second
  auto& world = fresh_world(options);
  with_management(world, [&](Endpoint& host_a, Endpoint& host_b) {
    Process a(host_a), b(host_b);
    const auto listener = b.listener();
    const auto qp_a = a.make_qp(), qp_b = b.make_qp();
    const auto from = a.endpoint();
    a.resolve(from, b, false);
    world.wire().set_link(false);
    a.connect(from, *qp_a, 0x111111);
    host_a.device().elapse(100'000);
    world.wire().set_link(true);
    const auto to = b.expect(listener, ConnectionEvent::kConnectRequest).incoming;
    b.make_ready(to, *qp_b, 0x222222);
    b.accept(to, *qp_b, 0x222222);
    a.expect(from, ConnectionEvent::kConnectResponse);
  });
}

TEST_CASE("processes of one host connect, and then with the peer: what a NIC sends to itself is on no wire") {
  with_management(WorldOptions::from_environment("connections_own"), [&](Endpoint& host_a, Endpoint& host_b) {
    must(host_a.kernel().port_tables().add_neighbour(testbench::ip_of(host_a, false), testbench::mac_of(host_a)));
    Process a(host_a), c(host_a), b(host_b);
    const auto of_c = c.listener(), of_b = b.listener();
    for (int round = 0; round < 2; ++round) {
      const auto qp_a = a.make_qp(), qp_c = c.make_qp(), other = a.make_qp(), qp_b = b.make_qp();
      connect(a, *qp_a, c, *qp_c, of_c, false);
      connect(a, *other, b, *qp_b, of_b, false);
    }
  });
}

TEST_CASE("a thousand connections a second of simulated time, each made and ended, and nothing is left") {
  with_management(WorldOptions::from_environment("connections_rate"), [&](Endpoint& host_a, Endpoint& host_b) {
    Process a(host_a), b(host_b);
    const auto listener = b.listener();
    constexpr unsigned kConnections = 50;
    const std::uint64_t start = host_a.device().now_ns();
    for (unsigned i = 0; i < kConnections; ++i) {
      const auto qp_a = a.make_qp(), qp_b = b.make_qp();
      const auto [from, to] = connect(a, *qp_a, b, *qp_b, listener, false);
      must(a.process->call(calls::Disconnect{.endpoint = from}));
      a.expect(from, ConnectionEvent::kDisconnected);
      b.expect(to, ConnectionEvent::kDisconnected);
      a.end(from);
      b.end(to);
    }
    const double seconds = static_cast<double>(host_a.device().now_ns() - start) * 1e-9;
    std::printf("%.0f connections a second\n", kConnections / seconds);
    CHECK(kConnections / seconds >= 1000);
    host_a.device().elapse(200'000'000);  // TimeWait
    CHECK(host_a.kernel().connections().endpoints() == 0);
    CHECK(host_b.kernel().connections().endpoints() == 1);
    // Nothing was sent twice.
    CHECK(host_a.kernel().connections().counters().repeated == 0);
  });
}

TEST_CASE("one frame of ten lost: every connection is made all the same") {
  auto options = WorldOptions::from_environment("connections_loss");
  options.hang_ns = kPatienceNs;  // what is lost comes again after a third of a second
  for (auto* direction : {&options.wire.faults[0], &options.wire.faults[1]}) {
    direction->drop = 0.1;
    direction->duplicate = 0.05;
    direction->reorder = 0.05;
  }
  with_management(
      options,
      [&](Endpoint& host_a, Endpoint& host_b) {
        Process a(host_a), b(host_b);
        const auto listener = b.listener();
        const auto connect_once = [&] {
          const auto qp_a = a.make_qp(), qp_b = b.make_qp();
          const auto from = a.endpoint();
          a.resolve(from, b, false);
          a.connect(from, *qp_a, 0x111111);
          const auto to = b.expect(listener, ConnectionEvent::kConnectRequest).incoming;
          b.make_ready(to, *qp_b, 0x222222);
          b.accept(to, *qp_b, 0x222222);
          a.expect(from, ConnectionEvent::kConnectResponse);
          a.make_ready(from, *qp_a, 0x111111);
          must(a.process->call(calls::Establish{.endpoint = from}));
          b.expect(to, ConnectionEvent::kEstablished);
          must(a.process->call(calls::Disconnect{.endpoint = from}));
          a.expect(from, ConnectionEvent::kDisconnected);
          b.expect(to, ConnectionEvent::kDisconnected);
          a.end(from);
          b.end(to);
        };
        for (int i = 0; i < 20; ++i) connect_once();
        host_a.device().elapse(200'000'000);
        CHECK(host_a.kernel().connections().endpoints() == 0);
        CHECK(host_b.kernel().connections().endpoints() == 1);
        CHECK(host_a.kernel().connections().counters().malformed == 0);
      },
      60'000'000'000);
}
