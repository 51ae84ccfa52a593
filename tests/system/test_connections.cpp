// Connections over the NIC: processes on two hosts connect by kernel calls, through QP1, and then move data
// (docs/connection_manager.md; InfiniBand specification volume 1, chapter 12; annex A11).
#include <catch2/catch.hpp>
#include <cstring>
#include <optional>

#include "driver/umd/address_handle.hpp"
#include "testbench/management_thread.hpp"
#include "tests/system/system_world.hpp"

using namespace rnic;
using namespace rnic::test;
using calls::ConnectionEvent;
using testbench::ManagementThread;

namespace {

constexpr std::uint16_t kTcp = 0x0106, kUdp = 0x0111, kPort = 7174;
constexpr std::uint64_t kPatienceNs = 30'000'000'000;

template <typename T>
T must(Result<T> result) {
  REQUIRE(result.ok());
  return result.take();
}
void must(Result<void> result) { REQUIRE(result.ok()); }

/// A process on a host, with what it connects.
struct Process {
  explicit Process(Endpoint& on) : host(on), process(must(umd::ProcessContext::open(on.kernel().node()))) {
    channel = must(process->call(calls::CreateChannel{})).channel;
    cq = must(umd::CompletionQueue::create(process, 64));
    region = must(process->create_mr({.address = memory.data(), .length = memory.size(), .local_write = true}));
  }

  std::shared_ptr<umd::QueuePair> make_qp(hw::QpType type = hw::QpType::kRc) {
    auto qp = must(umd::QueuePair::create_idle(
        process, {.send_cq = cq, .receive_cq = cq, .type = type, .capacity = {4, 4, 1, 1, 0}}));
    return qp;
  }
  calls::Handle endpoint(std::uint16_t space = kTcp) {
    return must(process->call(calls::CreateEndpoint{.channel = channel, .port_space = space})).endpoint;
  }
  calls::Handle listener(std::uint16_t space = kTcp) {
    const auto made = endpoint(space);
    must(process->call(calls::BindEndpoint{.endpoint = made, .port = kPort}));
    must(process->call(calls::Listen{.endpoint = made, .backlog = 16}));
    return made;
  }
  /// The next event of any endpoint; nothing within `limit_ns`: none.
  std::optional<std::pair<calls::Handle, calls::TakeConnectionEvent::Answer>> next(std::uint64_t limit_ns) {
    const std::uint64_t end = host.device().now_ns() + limit_ns;
    for (;;) {
      const std::uint64_t seen = host.device().wake_count();
      const auto read = must(process->call(calls::ReadEvents{.channel = channel, .most = 1}));
      if (read.count != 0) {
        const auto of = read.events[0].object;
        const auto event = must(process->call(calls::TakeConnectionEvent{.endpoint = of}));
        return std::pair(of, event);
      }
      const std::uint64_t now = host.device().now_ns();
      if (now >= end) return std::nullopt;
      static_cast<void>(host.device().wait(seen, end - now));
    }
  }
  calls::TakeConnectionEvent::Answer expect(calls::Handle of, ConnectionEvent type) {
    const auto got = next(kPatienceNs);
    REQUIRE(got);
    CHECK(got->first == of);
    REQUIRE(static_cast<ConnectionEvent>(got->second.type) == type);
    return got->second;
  }
  void resolve(calls::Handle of, Process& peer, bool ipv6) {
    must(process->call(
        calls::ResolveAddress{.remote = testbench::ip_of(peer.host, ipv6), .endpoint = of, .remote_port = kPort}));
    expect(of, ConnectionEvent::kAddressResolved);
    must(process->call(calls::ResolveRoute{.endpoint = of}));
    expect(of, ConnectionEvent::kRouteResolved);
  }
  static calls::ConnectionTerms terms(umd::QueuePair& qp, std::uint32_t psn) {
    return {.qp = qp.kernel_qp().handle(),
            .receive_psn = psn,
            .qkey = 0x01234567,
            .responder_resources = 4,
            .initiator_depth = 4,
            .retry_count = 7,
            .rnr_retry = 7};
  }
  void connect(calls::Handle of, umd::QueuePair& qp, std::uint32_t psn) {
    must(process->call(calls::Connect{.terms = terms(qp, psn), .endpoint = of}));
  }
  void accept(calls::Handle of, umd::QueuePair& qp, std::uint32_t psn) {
    must(process->call(calls::Accept{.terms = terms(qp, psn), .endpoint = of}));
  }
  /// The queue pair goes to RTS with what the connection manager knows.
  void make_ready(calls::Handle of, umd::QueuePair& qp, std::uint32_t psn) {
    const auto known = must(process->call(calls::QueryEndpoint{.endpoint = of}));
    umd::QpConnection c;
    c.path.sgid_index = known.sgid_index;
    c.path.dest_gid = known.remote;
    c.path.dest_mac = known.remote_mac;
    c.path.hop_limit = known.hop_limit;
    c.dest_qpn = known.remote_qpn;
    c.send_psn = known.send_psn;
    c.receive_psn = psn;
    c.path_mtu = known.path_mtu;
    c.inbound_reads = c.outbound_reads = 4;
    must(qp.connect(c));
  }
  void end(calls::Handle endpoint) {
    must(process->call(
        calls::Destroy{.object = endpoint, .kind = static_cast<std::uint8_t>(calls::ObjectKind::kEndpoint)}));
  }
  umd::Completion completion() {
    umd::Completion got;
    REQUIRE(host.wait_until(
        [&] {
          return cq->poll(std::span(&got, 1)) == 1 || (cq->arm(hw::CqArm::kAny), cq->poll(std::span(&got, 1)) == 1);
        },
        1'000'000'000));
    return got;
  }
  umd::Segment segment(std::uint32_t bytes) {
    return {.address = reinterpret_cast<std::uint64_t>(memory.data()), .length = bytes, .key = region->key()};
  }

  Endpoint& host;
  std::array<std::uint8_t, 4096> memory{};
  std::shared_ptr<umd::ProcessContext> process;
  calls::Handle channel{};
  std::shared_ptr<umd::CompletionQueue> cq;
  std::unique_ptr<umd::KernelMr> region;
};

/// Both hosts with their management threads, and each with the other as its neighbour.
void with_management(const WorldOptions& options, const std::function<void(Endpoint&, Endpoint&)>& body,
                     std::uint64_t limit_ns = 10'000'000'000) {
  with_endpoints(
      fresh_world(options),
      [&](Endpoint& a, Endpoint& b) {
        for (const bool ipv6 : {false, true}) {
          must(a.kernel().port_tables().add_neighbour(testbench::ip_of(b, ipv6), testbench::mac_of(b)));
          must(b.kernel().port_tables().add_neighbour(testbench::ip_of(a, ipv6), testbench::mac_of(a)));
        }
        const ManagementThread of_a(a.kernel(), a.host().device()), of_b(b.kernel(), b.host().device());
        body(a, b);
      },
      limit_ns);
}

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

TEST_CASE("processes connect through QP1 and move data, over IPv4") {
  with_management(WorldOptions::from_environment("connections"), [&](Endpoint& host_a, Endpoint& host_b) {
    Process a(host_a), b(host_b);
    const auto listener = b.listener();
    const auto qp_a = a.make_qp(), qp_b = b.make_qp();
    const auto segment_b = b.segment(4096);
    must(qp_b->post_receive({.id = 1, .segments = {&segment_b, 1}}));
    const auto [from, to] = connect(a, *qp_a, b, *qp_b, listener, false);
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
