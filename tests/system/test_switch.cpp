// Three hosts on a learning switch (model/ethernet_switch.hpp): queue pairs of each host with each other, all at once;
// what the switch drops is repaired, what it does not drop needs no repair, and what is for one host disturbs no other.
// RNIC_SEED=n replays a failure.
#include <array>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "model/random.hpp"
#include "testbench/nic_counters.hpp"
#include "testbench/roce_frame.hpp"
#include "testbench/traffic/traffic.hpp"
#include "tests/system/unreliable_world.hpp"

using namespace rnic;
using namespace rnic::test;
using testbench::Traffic;
using testbench::TrafficOptions;

namespace {

constexpr std::size_t kHosts = 3;
using Endpoints = std::array<std::unique_ptr<Endpoint>, kHosts>;

WorldOptions three_hosts(const std::string& name) {
  auto options = WorldOptions::from_environment("switch_" + name);
  options.hosts = kHosts;
  options.wire.delay_ns = 50;
  options.ethernet_switch.latency_ns = 300;
  return options;
}

void in_one_thread(World& world, const std::function<void()>& body) {
  world.add_app(0, "test", [&](Host&) { body(); });
  world.run();
}

/// Brings the three hosts up, runs `body` in one thread of simulated time, and takes them down.
void with_hosts(World& world, const std::function<void(Endpoints&)>& body) {
  in_one_thread(world, [&] {
    Endpoints ends;
    for (std::size_t i = 0; i < kHosts; ++i) ends[i] = std::make_unique<Endpoint>(world.host(i));
    body(ends);
  });
}

std::uint64_t count(Endpoint& endpoint, Counter counter) { return must(endpoint.kernel().counter(counter)); }

/// Frames that the switch had to drop.
std::uint64_t dropped(World& world) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < kHosts; ++i) all += world.ethernet_switch().statistics(i).overflow;
  return all;
}

/// What the NICs had to repair, dropped or refused, in words.
std::vector<std::string> troubles(Endpoints& ends) {
  std::vector<std::string> all;
  for (auto& end : ends) {
    for (const auto& trouble : testbench::trouble(testbench::read_counters(*end))) {
      for (const auto& text : trouble.counts)
        all.push_back(std::string(end->host().basename()) + ' ' + trouble.what + ' ' + text);
    }
  }
  return all;
}

/// The addresses of a RoCEv2 packet.
struct Addresses {
  std::vector<std::uint8_t> source_ip, dest_ip;
  std::uint64_t source_mac, dest_mac;
  std::uint16_t source_port;
};

Addresses addresses_in(const std::vector<std::uint8_t>& frame) {
  const bool ipv6 = roce::read_big(frame, 12, 2) == 0x86DD;
  const auto ip = [&](std::ptrdiff_t at) {
    const auto first = frame.begin() + at;
    return std::vector<std::uint8_t>(first, first + (ipv6 ? 16 : 4));
  };
  return {ipv6 ? ip(22) : ip(26), ipv6 ? ip(38) : ip(30), roce::read_big(frame, 6, 6), roce::read_big(frame, 0, 6),
          static_cast<std::uint16_t>(roce::read_big(frame, ipv6 ? 54 : 34, 2))};
}

TrafficOptions work(std::uint32_t pairs, std::uint64_t requests) {
  TrafficOptions options;
  options.pairs = pairs;
  options.pairs_per_thread = pairs;
  options.requests = requests;
  options.most_bytes = 9'000;
  options.big_bytes = 60'000;
  options.own_addresses = true;
  return options;
}

/// Random work on queue pairs of each host with each of the others, all at once.
struct Mesh {
  Mesh(World& of, const TrafficOptions& options, std::uint64_t seed) : world(of) {
    in_one_thread(world, [&] {
      for (std::size_t i = 0; i < kHosts; ++i) ends[i] = std::make_unique<Endpoint>(world.host(i));
      for (std::size_t a = 0; a < kHosts; ++a) {
        for (std::size_t b = a + 1; b < kHosts; ++b) {
          TrafficOptions own = options;
          own.connection.subnet = static_cast<std::uint8_t>(1 + traffic.size() * options.pairs);
          const auto name = "hosts " + std::to_string(a) + " and " + std::to_string(b);
          traffic.push_back(std::make_unique<Traffic>(*ends[a], *ends[b], own, model::Random(seed, name).next()));
        }
      }
    });
  }

  void run(const TrafficOptions& options) {
    for (auto& one : traffic) {
      for (std::size_t thread = 0; thread < one->threads(); ++thread)
        world.add_app(0, "traffic", [&one, thread](Host&) { one->run(thread); });
    }
    world.run();
    for (auto& one : traffic) {
      const auto& report = one->report();
      for (const auto& text : report.messages) UNSCOPED_INFO(text);
      CHECK(report.wrong == 0);
      CHECK(report.hung == 0);
      CHECK(report.total() >= 2 * options.pairs * options.requests);
      for (const auto completed : report.completed) CHECK(completed != 0);
      CHECK(report.receives == report.completed[0] + report.completed[3]);
    }
  }

  void close() {
    in_one_thread(world, [&] {
      traffic.clear();
      for (auto& end : ends) end.reset();
    });
    for (std::size_t host = 0; host < kHosts; ++host) {
      CHECK(world.host(host).iommu().fault_count() == 0);
      CHECK(world.host(host).memory().used() == 0);
    }
  }

  World& world;
  Endpoints ends;
  std::vector<std::unique_ptr<Traffic>> traffic;
};

}  // namespace

TEST_CASE("three hosts work with each other, each queue pair with addresses of its own, and nothing needs repair") {
  const auto options = three_hosts("mesh");
  INFO("seed " << options.seed);
  World& world = fresh_world(options);
  // Source and destination address of a packet to the UDP source ports that were seen with them.
  std::map<std::string, std::set<std::uint16_t>> ways;
  std::set<std::uint16_t> ports;
  world.observe_frames([&](const model::FrameRecord& record) {
    const auto seen = addresses_in(record.bytes);
    std::string way(seen.source_ip.begin(), seen.source_ip.end());
    ways[way.append(seen.dest_ip.begin(), seen.dest_ip.end())].insert(seen.source_port);
    ports.insert(seen.source_port);
    CHECK(seen.source_mac == 0x0200'0000'0001 + record.from);
    CHECK(seen.source_ip.back() == record.from + 1);
    CHECK(seen.dest_ip.back() == seen.dest_mac - 0x0200'0000'0000);
  });
  constexpr std::uint32_t kPairs = 3;
  const auto what = work(kPairs, 40);
  Mesh mesh(world, what, options.seed);
  mesh.run(what);
  world.observe_frames({});
  // Three pairs of hosts, kPairs queue pairs each, two directions: no address twice.
  CHECK(ways.size() == 3 * kPairs * 2);
  for (const auto& [way, of_it] : ways) CHECK(of_it.size() == 1);
  CHECK(ports.size() >= 3 * kPairs * 2 - 2);  // 14 random bits: hardly ever the same
  CHECK(dropped(world) == 0);
  in_one_thread(world, [&] {
    CHECK(troubles(mesh.ends) == std::vector<std::string>{});
    for (auto& one : mesh.traffic) one->check_orderly();
  });
  for (auto& one : mesh.traffic) CHECK(one->report().messages == std::vector<std::string>{});
  mesh.close();
}

TEST_CASE("three hosts work with each other, and what the switch drops for want of room is repaired") {
  auto options = three_hosts("mesh_loss");
  options.ethernet_switch.buffer_bytes = 10'000;
  INFO("seed " << options.seed);
  World& world = fresh_world(options);
  auto what = work(3, 30);
  what.mixes = 1;                   // shared receive queues, UC and UD too
  what.connection.ack_timeout = 4;  // 65 us
  Mesh mesh(world, what, options.seed);
  mesh.run(what);
  CHECK(dropped(world) != 0);
  for (auto& one : mesh.traffic) {
    const auto& mix = one->report().mix;
    CHECK(mix.requests != 0);
    CHECK(mix.repeated == 0);  // the switch loses, but repeats nothing
    CHECK(mix.unreliable_received <= mix.unreliable_sent);
    CHECK(mix.datagrams_received <= mix.datagrams_sent);
  }
  in_one_thread(world, [&] {
    std::uint64_t repaired = 0;
    for (auto& end : mesh.ends) repaired += count(*end, Counter::kSequenceRetries) + count(*end, Counter::kAckTimeouts);
    CHECK(repaired != 0);
  });
  mesh.close();
}

TEST_CASE("two hosts write to one: with room in the switch nothing is lost, without it everything comes all the same") {
  constexpr std::size_t kBytes = 256 << 10;
  for (const bool room : {true, false}) {
    auto options = three_hosts("incast");
    // In step with each other both would keep their turns, and all that is dropped would be of one of them.
    options.each_wire[2] = options.wire;
    options.each_wire[2]->rate_gbps = 90;
    if (!room) options.ethernet_switch.buffer_bytes = 20'000;
    INFO((room ? "room" : "no room"));
    World& world = fresh_world(options);
    with_hosts(world, [&](Endpoints& ends) {
      std::vector<std::unique_ptr<Pair>> pairs;
      std::vector<std::uint8_t*> source;
      auto* const target = static_cast<std::uint8_t*>(ends[0]->host().memory().allocate(2 * kBytes));
      const auto target_region =
          ends[0]->register_memory(target, 2 * kBytes, ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_WRITE);
      std::vector<ComPtr<IND2MemoryRegion>> regions;
      ConnectParameters connection{4096};
      connection.ack_timeout = 4;
      for (std::size_t from = 1; from < kHosts; ++from) {
        connection.subnet = static_cast<std::uint8_t>(from);
        pairs.push_back(std::make_unique<Pair>(*ends[from], *ends[0], PairSpec{{}, connection}));
        source.push_back(static_cast<std::uint8_t*>(ends[from]->host().memory().allocate(kBytes)));
        model::Random random(options.seed, "incast" + std::to_string(from));
        for (std::size_t i = 0; i < kBytes; ++i) source.back()[i] = static_cast<std::uint8_t>(random.next());
        regions.push_back(ends[from]->register_memory(source.back(), kBytes, 0));
      }
      for (std::size_t i = 0; i < 2; ++i) {
        const ND2_SGE sge{source[i], kBytes, regions[i]->GetLocalToken()};
        REQUIRE(pairs[i]->ends[0].qp->Write(nullptr, &sge, 1, reinterpret_cast<UINT64>(target + i * kBytes),
                                            target_region->GetRemoteToken(), 0) == ND_SUCCESS);
      }
      for (std::size_t i = 0; i < 2; ++i) {
        ND2_RESULT result{};
        REQUIRE(take_result(*ends[i + 1], *pairs[i]->ends[0].initiator_cq, result, 5'000'000));
        CHECK(result.Status == ND_SUCCESS);
      }
      ends[0]->device().elapse(3'000);  // the last writes are on their way to memory
      for (std::size_t i = 0; i < 2; ++i) CHECK(std::memcmp(target + i * kBytes, source[i], kBytes) == 0);
      if (room) {
        CHECK(dropped(world) == 0);
        CHECK(troubles(ends) == std::vector<std::string>{});
        // The frames of both had to pass one cable one after the other, so they waited.
        CHECK(world.ethernet_switch().statistics(0).most_bytes > kBytes / 2);
      } else {
        CHECK(dropped(world) == world.ethernet_switch().statistics(0).overflow);
        CHECK(dropped(world) != 0);
        CHECK(count(*ends[0], Counter::kRxPsnError) != 0);
        CHECK(count(*ends[1], Counter::kSequenceRetries) + count(*ends[2], Counter::kSequenceRetries) != 0);
      }
    });
  }
}

TEST_CASE("a host gets frames for others until the switch has learned where these are; its NIC refuses them") {
  const auto options = three_hosts("learning");
  World& world = fresh_world(options);
  // By port: unicast frames for its host, and for others.
  std::array<std::uint64_t, kHosts> own{}, foreign{};
  world.observe_cables([&](std::size_t port, const model::FrameRecord& record) {
    if (record.from == 0) return;
    ++(addresses_in(record.bytes).dest_mac == 0x0200'0000'0001 + port ? own : foreign)[port];
  });
  with_hosts(world, [&](Endpoints& ends) {
    UnreliableSide a(*ends[0]), b(*ends[1]), c(*ends[2]);
    auto& from = a.add_qp(QpType::kRc);
    auto& to = b.add_qp(QpType::kRc);
    testbench::connect_pair(*ends[0], from, *ends[1], to, {1024});
    for (std::size_t i = 0; i < UnreliableSide::kBytes; ++i) a.memory[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
    const auto write = [&](std::size_t bytes) {
      const auto segment = a.segment(0, bytes);
      must(from.post_send({.opcode = WqeOpcode::kWrite,
                           .segments = {&segment, 1},
                           .remote_address = b.at(0),
                           .remote_key = b.region->key()}));
      CHECK(a.sent().status == CqeStatus::kSuccess);
      a.endpoint.device().elapse(2'000);
      CHECK(std::memcmp(a.memory, b.memory, bytes) == 0);
    };
    // Nobody knows where host 1 is: the packet goes to host 2 too. Its ACK tells, and goes to host 0 alone.
    write(1000);
    CHECK(own == std::array<std::uint64_t, 3>{1, 1, 0});
    CHECK(foreign == std::array<std::uint64_t, 3>{0, 0, 1});
    CHECK(c.counter(Counter::kRxFrames) == 1);
    CHECK(c.counter(Counter::kRxNotRoce) == 1);
    CHECK(c.counter(Counter::kRxRoce) == 0);
    CHECK(world.ethernet_switch().statistics(0).flooded == 1);
    for (std::size_t i = 0; i < 2; ++i) CHECK(world.ethernet_switch().port_of(testbench::mac_of(*ends[i])) == i);
    CHECK(world.ethernet_switch().port_of(testbench::mac_of(*ends[2])) == std::nullopt);
    write(200'000);
    CHECK(own[1] == 1 + 196);
    CHECK(foreign == std::array<std::uint64_t, 3>{0, 0, 1});
    // The link of host 1 goes down and comes up again: the switch has forgotten it, until it sends.
    world.ethernet_switch().cable(1).set_link(false);
    a.endpoint.device().elapse(1'000);
    world.ethernet_switch().cable(1).set_link(true);
    write(1000);
    CHECK(foreign == std::array<std::uint64_t, 3>{0, 0, 2});
    CHECK(c.counter(Counter::kRxNotRoce) == 2);
    CHECK(troubles(ends) == std::vector<std::string>{});
    CHECK(c.quiet());
    CHECK(c.untouched(0, UnreliableSide::kBytes));
  });
  world.observe_cables({});
}

TEST_CASE("one UD queue pair sends to two hosts, and each gets what is for it; they answer") {
  constexpr std::uint32_t kQkey = 0x11223344;
  constexpr std::size_t kEach = 8, kGrh = hw::kGrhBytes, kRoom = 2048;
  const auto options = three_hosts("datagrams");
  World& world = fresh_world(options);
  with_hosts(world, [&](Endpoints& ends) {
    std::vector<std::unique_ptr<UnreliableSide>> sides;
    std::vector<umd::QueuePair*> qps;
    for (auto& end : ends) {
      sides.push_back(std::make_unique<UnreliableSide>(*end));
      qps.push_back(&sides.back()->add_datagram_qp(kQkey));
    }
    const auto length = [](std::size_t to, std::size_t i) { return 1 + 100 * to + 137 * i; };
    const auto send = [&](std::size_t from, std::size_t to, bool ipv6, std::size_t offset, std::size_t bytes) {
      const auto address = must(umd::AddressHandle::create(testbench::address_of(*ends[to], ipv6)));
      const auto segment = sides[from]->segment(offset, bytes);
      must(qps[from]->post_send({.opcode = WqeOpcode::kSend,
                                 .segments = {&segment, 1},
                                 .address = &address,
                                 .dest_qpn = qps[to]->qpn(),
                                 .qkey = kQkey}));
      CHECK(sides[from]->sent().status == CqeStatus::kSuccess);
    };
    model::Random random(options.seed, "datagrams");
    for (std::size_t i = 0; i < UnreliableSide::kBytes; ++i)
      sides[0]->memory[i] = static_cast<std::uint8_t>(random.next());
    for (std::size_t to = 1; to < kHosts; ++to) {
      for (std::size_t i = 0; i < kEach; ++i) sides[to]->post_receive(*qps[to], i, i * kRoom, kRoom);
    }
    for (std::size_t i = 0; i < kEach; ++i) {
      for (std::size_t to = 1; to < kHosts; ++to) send(0, to, i % 2 == 1, (to * kEach + i) * kRoom, length(to, i));
    }
    for (std::size_t to = 1; to < kHosts; ++to) {
      for (std::size_t i = 0; i < kEach; ++i) {
        const auto got = sides[to]->received();
        CHECK(got.id == i);
        CHECK(got.source_qpn == qps[0]->qpn());
        CHECK(got.byte_count == kGrh + length(to, i));
        CHECK(std::memcmp(sides[to]->memory + i * kRoom + kGrh, sides[0]->memory + (to * kEach + i) * kRoom,
                          length(to, i)) == 0);
      }
      CHECK(sides[to]->quiet());
      sides[0]->post_receive(*qps[0], 100 + to, 200'000 + to * kRoom, kRoom);
      send(to, 0, to == 1, 0, 500);
      const auto answer = sides[0]->received();
      CHECK(answer.id == 100 + to);
      CHECK(answer.source_qpn == qps[to]->qpn());
      CHECK(std::memcmp(sides[0]->memory + 200'000 + to * kRoom + kGrh, sides[to]->memory, 500) == 0);
    }
    CHECK(troubles(ends) == std::vector<std::string>{});
  });
}
