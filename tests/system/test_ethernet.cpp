// Ethernet frames that are not RoCEv2: queue pairs of type RawPacket and the kernel driver's port on them
// (docs/host_interface.md, Ethernet). RNIC_SEED=n replays a failure.
#include <algorithm>
#include <random>
#include <vector>

#include "driver/ethernet/ethernet_port.hpp"
#include "model/random.hpp"
#include "tests/support/ip_checksums.hpp"
#include "tests/system/unreliable_world.hpp"

using namespace rnic;
using namespace rnic::test;
using ethernet::EthernetPort;

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t kBroadcast = 0xFFFF'FFFF'FFFF, kStranger = 0x0200'0000'00AA;
constexpr std::uint64_t kGroup = 0x0100'5E00'00FB, kGroup6 = 0x3333'0000'0001;
constexpr std::size_t kShortest = 60;  // on the wire, without frame check sequence (IEEE 802.3 clause 4A.4.2)

/// A frame of the local experimental EtherType (IEEE 802).
Bytes frame_of(model::Random& random, std::uint64_t dest, std::uint64_t source, std::size_t bytes) {
  Bytes frame(bytes);
  for (auto& byte : frame) byte = static_cast<std::uint8_t>(random.below(256));
  for (unsigned i = 0; i < 6; ++i) {
    frame[i] = static_cast<std::uint8_t>(dest >> 8 * (5 - i));
    frame[6 + i] = static_cast<std::uint8_t>(source >> 8 * (5 - i));
  }
  frame[12] = 0x88;
  frame[13] = 0xB5;
  return frame;
}

/// A UDP datagram of IPv4 that fills the frame; its checksums are random.
Bytes udp_frame(model::Random& random, std::uint64_t dest, std::uint64_t source, std::size_t bytes) {
  auto frame = frame_of(random, dest, source, bytes);
  IpChecksums::put(frame, 12, 0x0800);
  frame[14] = 0x45;
  IpChecksums::put(frame, 16, bytes - 14);
  IpChecksums::put(frame, 20, 0x4000);
  frame[23] = 17;
  IpChecksums::put(frame, 38, bytes - 34);
  return frame;
}

/// A port, and what has come to it.
struct Station {
  explicit Station(Endpoint& at) : endpoint(at) {
    port = must(EthernetPort::open(at.kernel(), [this](auto frame, auto vouched) {
      came.emplace_back(frame.begin(), frame.end());
      checksums.push_back(vouched);
    }));
  }
  void send(const Bytes& frame, bool ip_csum = false) {
    for (auto sent = port->send(frame, ip_csum); !sent.ok(); sent = port->send(frame, ip_csum)) {
      REQUIRE(sent.error() == Error::kQueueFull);
      endpoint.device().elapse(100);
      port->poll();
    }
  }
  [[nodiscard]] std::uint64_t mac() const { return endpoint.kernel().mac(); }
  [[nodiscard]] std::uint64_t counter(Counter which) { return must(endpoint.kernel().counter(which)); }

  Endpoint& endpoint;
  std::unique_ptr<EthernetPort> port;
  std::vector<Bytes> came;
  std::vector<EthernetPort::Checksums> checksums;
};

void settle(Station& a, Station& b, std::uint64_t ns = 20'000) {
  for (const auto end = a.endpoint.device().now_ns() + ns; a.endpoint.device().now_ns() < end;) {
    a.endpoint.device().elapse(500);
    a.port->poll();
    b.port->poll();
  }
}

Bytes padded(Bytes frame) {
  frame.resize(std::max(frame.size(), kShortest));
  return frame;
}

}  // namespace

TEST_CASE("frames of 14 to 4096 bytes come as they were sent, padded to 60") {
  const auto options = WorldOptions::from_environment("ethernet");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    Station a(endpoint_a), b(endpoint_b);
    model::Random random(options.seed, "ethernet");
    std::vector<Bytes> sent;
    for (const std::size_t bytes : {14, 15, 59, 60, 61, 63, 64, 65, 77, 78, 79, 128, 1514, 4032, 4095, 4096}) {
      sent.push_back(frame_of(random, b.mac(), a.mac(), bytes));
      a.send(sent.back());
    }
    settle(a, b);
    REQUIRE(b.came.size() == sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      INFO("frame of " << sent[i].size() << " bytes");
      CHECK(b.came[i] == padded(sent[i]));
    }
    CHECK(a.came.empty());
    CHECK(a.port->counters().sent == sent.size());
    CHECK(a.port->counters().failed == 0);
    CHECK(b.counter(Counter::kRxEthernet) == sent.size());
    CHECK(b.counter(Counter::kRxNotRoce) == sent.size());
    CHECK(b.counter(Counter::kRxEthernetLost) == 0);
    CHECK(a.counter(Counter::kTxFrames) == sent.size());
    CHECK(a.counter(Counter::kTxRequests) == 0);
    CHECK(a.port->send(Bytes(13)).error() == Error::kInvalidParameter);
    CHECK(a.port->send(Bytes(4097)).error() == Error::kInvalidParameter);
  });
}

TEST_CASE("the filter: own and broadcast address, groups by hash, all groups, everything; never what is our own") {
  const auto options = WorldOptions::from_environment("ethernet_filter");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    Station a(endpoint_a), b(endpoint_b);
    model::Random random(options.seed, "ethernet");
    // By the definition in host_interface.md (PortGroups), reckoned apart from the driver.
    REQUIRE(ethernet::group_bit(kGroup) == 15);
    REQUIRE(ethernet::group_bit(kGroup6) == 62);
    const auto taken = [&](std::uint64_t dest, const kmd::EthernetReceive& also) {
      b.port->receive_also(also);
      b.came.clear();
      const auto frame = frame_of(random, dest, a.mac(), 200);
      a.send(frame);
      settle(a, b, 5000);
      if (b.came.empty()) return false;
      REQUIRE(b.came.size() == 1);
      REQUIRE(b.came[0] == frame);
      return true;
    };
    const kmd::EthernetReceive group{.groups = std::uint64_t{1} << ethernet::group_bit(kGroup)};
    CHECK(taken(b.mac(), {}));
    CHECK(taken(kBroadcast, {}));
    CHECK_FALSE(taken(kStranger, {}));
    CHECK_FALSE(taken(kGroup, {}));
    CHECK(taken(kGroup, group));
    CHECK_FALSE(taken(kGroup6, group));
    CHECK_FALSE(taken(kStranger, group));
    CHECK(taken(kGroup6, {.all_groups = true}));
    CHECK_FALSE(taken(kStranger, {.all_groups = true}));
    CHECK(taken(kStranger, {.promiscuous = true}));
    CHECK(taken(kGroup6, {.promiscuous = true}));
    // To our own address: back in. A group's frame with our own address as its source: one of ours.
    a.came.clear();
    a.port->receive_also({.all_groups = true, .promiscuous = true});
    const auto own = frame_of(random, a.mac(), a.mac(), 100);
    a.send(own);
    b.send(frame_of(random, kGroup, a.mac(), 100));
    settle(a, b, 5000);
    CHECK(a.came == std::vector<Bytes>{own});
  });
}

TEST_CASE("the NIC refuses raw requests that are none, and takes raw queue pairs from the kernel alone") {
  const auto options = WorldOptions::from_environment("ethernet_refused");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UnreliableSide user(endpoint_a);
    const auto refused = umd::QueuePair::create_idle(
        user.process,
        {.send_cq = user.cq, .receive_cq = user.cq, .type = QpType::kRawPacket, .capacity = {4, 4, 1, 1, 0}});
    CHECK_FALSE(refused.ok());
    UnreliableSide a(endpoint_a, must(umd::ProcessContext::open_for_management(endpoint_a.kernel().kernel_node())));
    for (const std::size_t bytes : {0, 13, 4097, 5000}) {
      INFO(bytes << " bytes");
      auto& qp = a.add_qp(QpType::kRawPacket);
      must(qp.connect({}));
      const auto segment = a.segment(0, bytes);
      must(qp.post_send({.opcode = WqeOpcode::kSend, .id = 7, .segments = {&segment, 1}}));
      const auto completion = a.sent();
      CHECK(completion.id == 7);
      CHECK(completion.status == CqeStatus::kLocLenErr);
    }
    auto& qp = a.add_qp(QpType::kRawPacket);
    must(qp.connect({}));
    const auto segment = a.segment(0, 100);
    for (const auto opcode :
         {WqeOpcode::kSendImmediate, WqeOpcode::kWrite, WqeOpcode::kRead, WqeOpcode::kSendInvalidate})
      CHECK(qp.post_send({.opcode = opcode, .id = 8, .segments = {&segment, 1}}).error() == Error::kInvalidParameter);
    CHECK(must(endpoint_b.kernel().counter(Counter::kRxFrames)) == 0);
  });
}

TEST_CASE("without a receive WQE a frame is dropped, and those behind it come") {
  const auto options = WorldOptions::from_environment("ethernet_no_receive");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    Station a(endpoint_a);
    UnreliableSide b(endpoint_b, must(umd::ProcessContext::open_for_management(endpoint_b.kernel().kernel_node())));
    auto& qp = b.add_qp(QpType::kRawPacket);
    must(qp.connect({}));
    endpoint_b.kernel().receive_ethernet({.qpn = qp.qpn(), .enable = true});
    model::Random random(options.seed, "ethernet");
    const auto lost = frame_of(random, endpoint_b.kernel().mac(), a.mac(), 300);
    const auto kept = frame_of(random, endpoint_b.kernel().mac(), a.mac(), 301);
    a.send(lost);
    endpoint_a.device().elapse(5000);
    CHECK(must(qp.kernel_qp().counters())[hw::QpCounter::kNoReceive] == 1);
    b.post_receive(qp, 1, 0, 4096);
    endpoint_b.device().elapse(2000);
    a.send(kept);
    const auto got = b.received();
    CHECK(got.status == CqeStatus::kSuccess);
    CHECK(got.byte_count == kept.size());
    CHECK_FALSE(got.grh);
    CHECK(std::equal(kept.begin(), kept.end(), b.memory));
    CHECK(b.untouched(kept.size(), 1000));
    // A QPN that names nobody.
    endpoint_b.kernel().receive_ethernet({.qpn = qp.qpn() ^ 0x10000, .enable = true});
    const auto nobody = b.counter(Counter::kRxNoQp);
    a.send(lost);
    endpoint_a.device().elapse(5000);
    CHECK(b.counter(Counter::kRxNoQp) == nobody + 1);
    // And nobody at all.
    endpoint_b.kernel().receive_ethernet({});
    const auto before = b.counter(Counter::kRxEthernet);
    a.send(lost);
    endpoint_a.device().elapse(5000);
    CHECK(b.counter(Counter::kRxEthernet) == before);
    endpoint_b.kernel().receive_ethernet({});
  });
}

TEST_CASE("checksums are put in when asked for, and vouched for when they are right") {
  const auto options = WorldOptions::from_environment("ethernet_checksums");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    Station a(endpoint_a), b(endpoint_b);
    std::mt19937_64 rng(options.seed);
    std::vector<Bytes> expected;
    for (std::size_t i = 0; i < 400; ++i) {
      auto frame = IpChecksums::random_frame(rng, i % 4 == 0 ? ethernet::kMaxFrameBytes : 200);
      for (unsigned byte = 0; byte < 6; ++byte) {
        frame[byte] = static_cast<std::uint8_t>(b.mac() >> 8 * (5 - byte));
        frame[6 + byte] = static_cast<std::uint8_t>(a.mac() >> 8 * (5 - byte));
      }
      const bool ip_csum = rng() % 2 == 0;
      a.send(frame, ip_csum);
      expected.push_back(ip_csum ? IpChecksums::inserted(padded(frame)) : padded(frame));
      if (i % 50 == 49) settle(a, b);
    }
    settle(a, b);
    REQUIRE(b.came.size() == expected.size());
    std::size_t right = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      INFO("frame " << i);
      REQUIRE(b.came[i] == expected[i]);
      const auto found = IpChecksums::of(expected[i]);
      CHECK(b.checksums[i].l3_ok == found.l3_ok);
      CHECK(b.checksums[i].l4_ok == found.l4_ok);
      right += found.l4_ok;
    }
    CHECK(right > 100);
    CHECK(b.counter(Counter::kRxEthernetLost) == 0);
  });
}

namespace {

/// Share of the wire that frames of 1514 bytes fill, from `queues` send queues of a host into one receive queue of the
/// other. With frame check sequence, preamble and gap (IEEE 802.3 clause 4A.4.2).
double share_of_wire(const WorldOptions& options, std::size_t queues, bool ip_csum) {
  constexpr std::size_t kFrames = 600;
  auto& world = fresh_world(options);
  std::unique_ptr<Station> stations[2];
  std::size_t ready = 0;
  std::uint64_t first_ns = 0, last_ns = 0;
  const auto on_host = [&](std::size_t own, const std::function<void(Station&, Station&)>& work) {
    world.add_app(own, "network stack", [&, own, work](Host& host) {
      Endpoint endpoint(host);
      stations[own] = std::make_unique<Station>(endpoint);
      ++ready;
      while (ready < 2) endpoint.device().elapse(1000);
      work(*stations[own], *stations[1 - own]);
      ++ready;
      while (ready < 4) endpoint.device().elapse(1000);
      stations[own].reset();
    });
  };
  on_host(0, [&](Station& a, Station& b) {
    model::Random random(options.seed, "ethernet");
    const auto frame = ip_csum ? udp_frame(random, b.mac(), a.mac(), 1514) : frame_of(random, b.mac(), a.mac(), 1514);
    std::vector<std::unique_ptr<Station>> more;
    for (std::size_t i = 1; i < queues; ++i) more.push_back(std::make_unique<Station>(a.endpoint));
    const auto queue = [&](std::size_t i) -> Station& { return i == 0 ? a : *more[i - 1]; };
    for (std::size_t i = 0; i < kFrames; ++i) queue(i % queues).send(frame, ip_csum);
    for (std::size_t i = 0; i < queues; ++i) {
      while (queue(i).port->counters().sent < kFrames / queues) {
        a.endpoint.device().elapse(100);
        queue(i).port->poll();
      }
    }
  });
  on_host(1, [&](Station& b, Station&) {
    auto& device = b.endpoint.device();
    for (const auto end = device.now_ns() + 1'000'000; b.came.size() < kFrames && device.now_ns() < end;) {
      const auto before = b.came.size();
      if (!b.port->poll()) device.elapse(20);
      if (b.came.size() == before) continue;
      if (before == 0) first_ns = device.now_ns();
      last_ns = device.now_ns();
    }
    REQUIRE(b.came.size() == kFrames);
    CHECK(b.counter(Counter::kRxEthernetLost) == 0);
    if (ip_csum) {
      for (const auto& checksums : b.checksums) REQUIRE((checksums.l3_ok && checksums.l4_ok));
    }
  });
  world.run(10'000'000);
  const double wire_ns = static_cast<double>((kFrames - 1) * (1514 + 24) * 8) / options.wire.rate_gbps;
  return wire_ns / static_cast<double>(last_ns - first_ns);
}

}  // namespace

TEST_CASE("frames of 1514 bytes from one send queue fill nine tenths of the wire, with checksums of the NIC's too") {
  const bool ip_csum = GENERATE(false, true);
  CHECK(share_of_wire(WorldOptions::from_environment("ethernet_rate"), 1, ip_csum) >= 0.9);
}

TEST_CASE("frames of 1514 bytes from two send queues fill nine tenths of the wire, into one receive queue") {
  CHECK(share_of_wire(WorldOptions::from_environment("ethernet_rate"), 2, false) >= 0.9);
}

// Send queues that always have something to send have a turn each, and a turn is a packet here (docs/architecture.md,
// Turns of the send queues): of each one's share of the wire nine tenths are asked for.
TEST_CASE("a queue pair of RDMA and a send queue of frames that both have all to do share the wire") {
  constexpr std::size_t kMessages = 64, kBytes = 65536, kWindow = 8;
  const std::uint32_t mtu = GENERATE(1024, 4096);
  const auto options = WorldOptions::from_environment("ethernet_share");
  auto& world = fresh_world(options);
  std::unique_ptr<Endpoint> a, b;
  std::unique_ptr<Station> stack_a, stack_b;
  bool ready = false, done = false;
  std::uint64_t took_ns = 0, frames = 0;
  const auto wait_for = [](Host& host, const bool& what) {
    while (!what) host.device().elapse(1000);
  };
  world.add_app(0, "rdma", [&](Host& host) {
    a = std::make_unique<Endpoint>(host);
    b = std::make_unique<Endpoint>(world.host(1));
    stack_a = std::make_unique<Station>(*a);
    stack_b = std::make_unique<Station>(*b);
    auto* const from = host.memory().allocate(kBytes);
    auto* const to = world.host(1).memory().allocate(kBytes);
    auto source = a->register_memory(from, kBytes, 0);
    auto sink = b->register_memory(to, kBytes, ND_MR_FLAG_ALLOW_REMOTE_WRITE);
    const Pair pair(*a, *b, {.qp = {.initiator_depth = kWindow}, .connection = {.mtu = mtu}});
    ready = true;
    host.device().elapse(20'000);
    const std::uint64_t begin = host.device().now_ns(), before = stack_a->port->counters().sent;
    std::size_t posted = 0;
    for (std::size_t taken = 0; taken < kMessages; ++taken) {
      const ND2_SGE sge{from, kBytes, source->GetLocalToken()};
      for (; posted < kMessages && posted - taken < kWindow; ++posted)
        REQUIRE(pair.ends[0].qp->Write(nullptr, &sge, 1, reinterpret_cast<std::uint64_t>(to), sink->GetRemoteToken(),
                                       0) == ND_SUCCESS);
      ND2_RESULT result{};
      REQUIRE(take_result(*a, *pair.ends[0].initiator_cq, result, 1'000'000));
      REQUIRE(result.Status == ND_SUCCESS);
    }
    took_ns = host.device().now_ns() - begin;
    frames = stack_a->port->counters().sent - before;
    done = true;
    host.device().elapse(50'000);
    CHECK(stack_a->counter(Counter::kSequenceRetries) == 0);
  });
  world.add_app(0, "network stack", [&](Host& host) {
    wait_for(host, ready);
    model::Random random(options.seed, "ethernet");
    const auto frame = frame_of(random, stack_b->mac(), stack_a->mac(), 1514);
    while (!done) stack_a->send(frame);
  });
  world.add_app(1, "network stack", [&](Host& host) {
    wait_for(host, ready);
    while (!done) {
      if (!stack_b->port->poll()) host.device().elapse(20);
      stack_b->came.clear();
    }
  });
  world.run(10'000'000);
  stack_a.reset();
  stack_b.reset();
  constexpr std::size_t kHeaders = 14 + 20 + 8 + 12 + 4 + 24;  // Ethernet, IPv4, UDP, BTH, ICRC; FCS, preamble, gap
  const double wire_bytes = static_cast<double>(took_ns) * options.wire.rate_gbps / 8;
  const double rdma = static_cast<double>(kMessages * (kBytes + kBytes / mtu * kHeaders)) / wire_bytes;
  const double ethernet = static_cast<double>(frames * (1514 + 24)) / wire_bytes;
  INFO("path MTU " << mtu << ": share of RDMA " << rdma << ", of frames " << ethernet);
  const double rdma_turn = static_cast<double>(mtu + kHeaders), frame_turn = 1514 + 24;
  CHECK(rdma >= 0.9 * rdma_turn / (rdma_turn + frame_turn));
  CHECK(ethernet >= 0.9 * frame_turn / (rdma_turn + frame_turn));
}
