// Unreliable multicast (InfiniBand specification volume 1, 10.5.2, 9.8.3, 11.3; annex A17.4.6) and what a NIC sends
// to itself. RNIC_SEED=n replays a failure.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "model/random.hpp"
#include "testbench/roce_frame.hpp"
#include "tests/system/unreliable_world.hpp"

using namespace rnic;
using namespace rnic::test;
using umd::AddressHandle;
using umd::SendRequest;

namespace {

using Gid = std::array<std::uint8_t, 16>;

constexpr std::uint32_t kQkey = 0x11223344;
constexpr std::size_t kGrh = hw::kGrhBytes;

/// A group's address, 239.n or ff1e::n, and the MAC that belongs to it (RFC 1112 6.4, RFC 2464 7).
Gid group_gid(std::uint32_t number, bool ipv6) {
  Gid gid{};
  if (ipv6) {
    gid[0] = 0xFF;
    gid[1] = 0x1E;
    gid[12] = static_cast<std::uint8_t>(number >> 24);
  } else {
    gid[10] = gid[11] = 0xFF;
    gid[12] = 239;
  }
  for (unsigned i = 0; i < 3; ++i) gid[15 - i] = static_cast<std::uint8_t>(number >> 8 * i);
  return gid;
}
std::uint64_t group_mac(const Gid& gid) {
  std::uint64_t last = 0;
  for (unsigned i = 12; i < 16; ++i) last = last << 8 | gid[i];
  return gid[0] == 0xFF ? 0x3333'0000'0000 | last : 0x0100'5E00'0000 | (last & 0x7F'FFFF);
}
AddressHandle group_address(std::uint32_t number, bool ipv6) {
  const auto gid = group_gid(number, ipv6);
  return AddressHandle::create({.dest_ip = gid, .dest_mac = group_mac(gid), .second_source = ipv6}).take();
}

SendRequest datagram(const AddressHandle& to, const umd::Segment& segment, std::uint64_t id) {
  return {.opcode = WqeOpcode::kSendImmediate,
          .id = id,
          .segments = {&segment, 1},
          .immediate = static_cast<std::uint32_t>(id),
          .address = &to,
          .dest_qpn = hw::kMulticastQpn,
          .qkey = kQkey};
}

}  // namespace

TEST_CASE("a datagram to a group comes to every attached queue pair, those of the sender's NIC too (10.5.2)") {
  const auto options = WorldOptions::from_environment("multicast");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UnreliableSide a(endpoint_a), b(endpoint_b);
    auto& from = a.add_datagram_qp(kQkey);  // attached itself
    auto& near = a.add_datagram_qp(kQkey);
    std::vector<umd::QueuePair*> far;
    for (int i = 0; i < 10; ++i) far.push_back(&b.add_datagram_qp(kQkey));
    auto& stranger = b.add_datagram_qp(kQkey);
    auto& other_key = b.add_datagram_qp(kQkey + 1);
    auto& hungry = b.add_datagram_qp(kQkey);
    model::Random random(options.seed, "multicast");
    for (std::size_t i = 0; i < 65536; ++i) a.memory[i] = static_cast<std::uint8_t>(random.below(256));
    std::uint64_t id = 0;
    for (const bool ipv6 : {false, true}) {
      const auto gid = group_gid(0x123456, ipv6);
      const auto group = group_address(0x123456, ipv6);
      for (auto* qp : {&from, &near}) must(qp->attach_multicast(gid));
      for (auto* qp : far) must(qp->attach_multicast(gid));
      for (auto* qp : {&other_key, &hungry}) must(qp->attach_multicast(gid));
      for (const std::size_t bytes : {0, 1, 63, 1000, 4096}) {
        INFO("ipv6 " << ipv6 << ", " << bytes << " bytes");
        ++id;
        // A receive buffer each, named by its place.
        const std::size_t room = 5000;
        a.post_receive(from, 100, 100 * 1024, bytes + kGrh);
        a.post_receive(near, 101, 100 * 1024 + room, bytes + kGrh);
        for (std::size_t i = 0; i < far.size(); ++i) b.post_receive(*far[i], i, i * room, bytes + kGrh);
        b.post_receive(stranger, 200, 200 * 1024, 4096 + kGrh);
        b.post_receive(other_key, 201, 210 * 1024, 4096 + kGrh);
        const auto segment = a.segment(id * 8, bytes);
        must(from.post_send(datagram(group, segment, id)));
        CHECK(a.sent().status == CqeStatus::kSuccess);
        const auto check = [&](UnreliableSide& side, std::size_t copies, auto&& offset_of) {
          std::set<std::uint64_t> ids;
          for (std::size_t i = 0; i < copies; ++i) {
            const auto got = side.received();
            REQUIRE(got.status == CqeStatus::kSuccess);
            ids.insert(got.id);
            CHECK(got.byte_count == bytes + kGrh);
            CHECK(got.grh);
            CHECK(got.with_immediate);
            CHECK(got.immediate == id);
            CHECK(got.source_qpn == from.qpn());
            const auto* buffer = side.memory + offset_of(got.id);
            CHECK(std::memcmp(buffer + kGrh, a.memory + id * 8, bytes) == 0);
            // The destination of the IP header is the group.
            CHECK(std::memcmp(buffer + (ipv6 ? 24 : 36), gid.data() + (ipv6 ? 0 : 12), ipv6 ? 16 : 4) == 0);
            CHECK(buffer[ipv6 ? 0 : 20] >> 4 == (ipv6 ? 6 : 4));
          }
          CHECK(ids.size() == copies);
        };
        check(a, 2, [&](std::uint64_t which) { return 100 * 1024 + (which - 100) * room; });
        check(b, far.size(), [&](std::uint64_t which) { return which * room; });
        CHECK(a.quiet());
        CHECK(b.quiet());
      }
      CHECK(b.untouched(200 * 1024, 20 * 1024));
      for (auto* qp : {&from, &near}) must(qp->detach_multicast(gid));
      for (auto* qp : far) must(qp->detach_multicast(gid));
      for (auto* qp : {&other_key, &hungry}) must(qp->detach_multicast(gid));
    }
    // The one with another Q_Key and the one without a receive have hindered nobody, and each has counted its own.
    CHECK(must(other_key.kernel_qp().counters())[hw::QpCounter::kBadQkey] == 10);
    CHECK(must(hungry.kernel_qp().counters())[hw::QpCounter::kNoReceive] == 10);
    CHECK(b.counter(Counter::kMulticastCopies) == 10 * 12);
    CHECK(a.counter(Counter::kMulticastCopies) == 10 * 2);
  });
}

TEST_CASE("what is for no group of the NIC is dropped and counted, and nothing comes back to a sender without groups") {
  auto& world = fresh_world(WorldOptions::from_environment("multicast_nobody"));
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UnreliableSide a(endpoint_a), b(endpoint_b);
    auto& from = a.add_datagram_qp(kQkey);
    auto& to = b.add_datagram_qp(kQkey);
    b.post_receive(to, 1, 0, 4096 + kGrh);
    const auto segment = a.segment(0, 100);
    const auto send = [&](const AddressHandle& group) {
      must(from.post_send(datagram(group, segment, 1)));
      CHECK(a.sent().status == CqeStatus::kSuccess);
      endpoint_a.device().elapse(5000);
    };
    const auto frames = a.counter(Counter::kRxFrames), none = b.counter(Counter::kRxNoQp);
    send(group_address(5, false));
    CHECK(b.counter(Counter::kRxNoQp) == none + 1);
    must(to.attach_multicast(group_gid(5, false)));
    // Another group, and one whose MAC is the same: 239.0.0.5 and 239.128.0.5 differ in a bit that no MAC has.
    send(group_address(6, false));
    send(group_address(5, true));
    send(group_address(0x800005, false));
    CHECK(b.counter(Counter::kRxNoQp) == none + 4);
    CHECK(a.counter(Counter::kRxFrames) == frames);
    // The MAC of another group, and the NIC's own: not the way of a datagram to the group.
    const auto gid = group_gid(5, false);
    for (const std::uint64_t mac : {group_mac(group_gid(6, false)), testbench::address_of(endpoint_b, false).dest_mac})
      send(AddressHandle::create({.dest_ip = gid, .dest_mac = mac}).take());
    CHECK(b.quiet());
    send(group_address(5, false));
    CHECK(b.received().id == 1);
    must(to.detach_multicast(gid));
    send(group_address(5, false));
    CHECK(b.quiet());
  });
}

TEST_CASE("groups are 16, a queue pair in one is busy, and whoever goes leaves them (11.3.1, 11.3.2)") {
  auto& world = fresh_world(WorldOptions::from_environment("multicast_table"));
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint&) {
    UnreliableSide a(endpoint_a);
    auto& qp = a.add_datagram_qp(kQkey);
    CHECK(a.process->limits().max_multicast_groups == hw::kMulticastGroups);
    for (std::uint32_t i = 0; i < hw::kMulticastGroups; ++i) must(qp.attach_multicast(group_gid(i, i % 2 != 0)));
    CHECK(qp.attach_multicast(group_gid(99, false)).error() == Error::kOutOfResources);
    CHECK(qp.attach_multicast(group_gid(3, true)).error() == Error::kExists);
    CHECK(qp.detach_multicast(group_gid(3, false)).error() == Error::kNotFound);
    CHECK(qp.close().error() == Error::kBusy);
    must(qp.detach_multicast(group_gid(3, true)));
    must(qp.attach_multicast(group_gid(99, false)));
    {
      // A process of its own: it dies with its queue pair in a group that is no other's.
      must(qp.detach_multicast(group_gid(0, false)));
      UnreliableSide mortal(endpoint_a);
      must(mortal.add_datagram_qp(kQkey).attach_multicast(group_gid(50, true)));
      CHECK(qp.attach_multicast(group_gid(0, false)).error() == Error::kOutOfResources);
    }
    must(qp.attach_multicast(group_gid(0, false)));
    // Of UD alone.
    auto& rc = a.add_qp(QpType::kRc);
    CHECK(rc.attach_multicast(group_gid(0, false)).error() == Error::kInvalidParameter);
  });
}

TEST_CASE("many groups, many members, both NICs sending: each gets what was sent to its groups, in order") {
  const auto options = WorldOptions::from_environment("multicast_random");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UnreliableSide a(endpoint_a), b(endpoint_b);
    UnreliableSide* sides[] = {&a, &b};
    model::Random random(options.seed, "multicast_random");
    constexpr std::size_t kQps = 6, kGroups = 5, kRounds = 40;
    struct Member {
      umd::QueuePair* qp;
      std::set<std::size_t> groups;
      std::vector<std::uint32_t> expected[2];  // immediate data, by the NIC that sends
    };
    std::vector<Member> members[2];
    for (std::size_t s = 0; s < 2; ++s) {
      for (std::size_t i = 0; i < kQps; ++i) {
        auto& qp = sides[s]->add_datagram_qp(kQkey);
        members[s].push_back({&qp, {}, {}});
        for (std::size_t g = 0; g < kGroups; ++g) {
          if (random.below(2) == 0) continue;
          must(qp.attach_multicast(group_gid(static_cast<std::uint32_t>(g), g % 2 != 0)));
          members[s].back().groups.insert(g);
        }
        for (std::size_t n = 0; n < 2 * kRounds; ++n) sides[s]->post_receive(qp, i, 65536 + i * 5000, 1024 + kGrh);
      }
    }
    std::vector<AddressHandle> groups;
    for (std::size_t g = 0; g < kGroups; ++g)
      groups.push_back(group_address(static_cast<std::uint32_t>(g), g % 2 != 0));
    for (std::uint32_t n = 0; n < kRounds; ++n) {
      for (std::size_t s = 0; s < 2; ++s) {
        const auto g = static_cast<std::size_t>(random.below(kGroups));
        const auto segment = sides[s]->segment(0, random.below(1025));
        must(members[s][0].qp->post_send(datagram(groups[g], segment, n)));
        for (auto& side : members)
          for (auto& member : side)
            if (member.groups.contains(g)) member.expected[s].push_back(n);
      }
      endpoint_a.device().elapse(random.below(1000));
    }
    for (std::size_t s = 0; s < 2; ++s) {
      std::size_t copies = 0;
      for (const auto& member : members[s]) copies += member.expected[0].size() + member.expected[1].size();
      std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<std::uint32_t>> got;
      for (std::size_t i = 0; i < copies; ++i) {
        const auto completion = sides[s]->received();
        REQUIRE(completion.status == CqeStatus::kSuccess);
        got[{completion.id, completion.source_qpn}].push_back(completion.immediate);
      }
      for (std::size_t i = 0; i < kQps; ++i) {
        for (std::size_t sender = 0; sender < 2; ++sender)
          CHECK(got[{i, members[sender][0].qp->qpn()}] == members[s][i].expected[sender]);
      }
      for (std::uint32_t n = 0; n < kRounds; ++n) CHECK(sides[s]->sent().status == CqeStatus::kSuccess);
      CHECK(sides[s]->quiet());
      CHECK(sides[s]->counter(Counter::kLoopLost) == 0);
    }
  });
}

namespace {

/// Empty datagrams to a group, without a pause, from the wire of host 0 to host 1.
struct Flood {
  explicit Flood(World& around) : world(around) {
    world.add_app(0, "flood", [this](Host& host) {
      constexpr std::uint64_t kFrames = 100;
      // Preamble, frame check sequence and gap are 24 bytes; the wire takes 12.5 bytes in a nanosecond.
      while (!over) {
        for (std::uint64_t i = 0; !frame.empty() && i < kFrames; ++i) world.wire().inject(0, frame);
        host.device().elapse(std::max<std::uint64_t>(500, kFrames * (frame.size() + 24) * 2 / 25));
      }
    });
  }
  World& world;
  std::vector<std::uint8_t> frame;  ///< Empty: none
  bool over = false;
};

}  // namespace

TEST_CASE("a flood of datagrams to a group holds up no admin command for longer than the copies of one datagram") {
  auto& world = fresh_world(WorldOptions::from_environment("multicast_flood"));
  Flood flood(world);
  const auto body = [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    const auto full = group_gid(7, false), empty = group_gid(8, false), own = group_gid(9, true);
    UnreliableSide crowd(endpoint_b), victim(endpoint_b);
    // Before the queue pairs go, whatever ends this.
    const std::unique_ptr<Flood, void (*)(Flood*)> end(&flood, [](Flood* of) { of->over = true; });
    // All queue pairs but one. They have no receives, so each copy is dropped and counted for its queue pair.
    const std::size_t members = victim.process->limits().max_qp - 1;
    for (std::size_t i = 0; i < members; ++i) must(crowd.add_datagram_qp(kQkey).attach_multicast(full));

    // What docs/architecture.md says (Who waits for whom): an operation on the table waits for the copies of one
    // datagram, each of which costs the check stage three cycles, and reads 16 words. A query of counters waits for
    // what queues before it: 5 times 17 events at most, here of one counter each.
    constexpr std::uint64_t kCycleNs = 4;
    const auto copies_ns = [&](std::size_t copies) { return kCycleNs * (3 * copies + 100); };
    constexpr std::uint64_t kCountsNs = kCycleNs * (5 * 17 + 100);
    struct Step {
      const char* name;
      std::uint64_t tables, counts;  ///< Operations on the table, queries of counters
      std::function<void()> run;
      std::uint64_t idle_ns = 0;
    };
    umd::QueuePair* qp = nullptr;
    std::vector<Step> steps{
        // Clears its counters, both halves.
        {"create", 0, 2, [&] { qp = &victim.add_qp(QpType::kUd); }},
        {"attach", 1, 0, [&] { must(qp->attach_multicast(own)); }},
        {"query", 0, 0, [&] { must(qp->kernel_qp().query()); }},
        {"counters", 0, 2, [&] { must(qp->kernel_qp().counters()); }},
        {"counters of a member", 0, 2, [&] { must(crowd.qps.front()->kernel_qp().counters(true)); }},
        {"refused destruction", 1, 0, [&] { CHECK(qp->close().error() == Error::kBusy); }},
        {"detach", 1, 0, [&] { must(qp->detach_multicast(own)); }},
        {"destroy", 1, 0,
         [&] {
           must(qp->close());
           victim.qps.clear();
         }},
    };
    auto& device = endpoint_b.device();
    const auto run = [&](Step& step) {
      const auto begin = device.now_ns();
      step.run();
      return device.now_ns() - begin;
    };
    for (auto& step : steps) step.idle_ns = run(step);

    for (const bool hit : {false, true}) {  // in this order: many datagrams wait in the buffer at the end
      auto d = packet_between(endpoint_a, endpoint_b, 0x64, hw::kMulticastQpn, 0);
      const auto& gid = hit ? full : empty;
      d.dest_ip = gid;
      d.dest_mac = group_mac(gid);
      d.ext = {0x11, 0x22, 0x33, 0x44, 0, 0, 0, 9};
      flood.frame = roce::roce_frame(d);
      const auto taken = [&] { return crowd.counter(hit ? Counter::kMulticastCopies : Counter::kRxNoQp); };
      const auto begun = [&, first = taken()] { return taken() > first + 1000; };
      for (int i = 0; i < 1000 && !begun(); ++i) device.elapse(1000);
      const auto before = taken();
      const auto begin = device.now_ns();
      for (int round = 0; round < 3; ++round) {
        for (auto& step : steps) {
          const auto took = run(step);
          // The receive side has its contexts and its part of PCI Express all the time: twice as long without a wait.
          const auto bound = 2 * step.idle_ns + step.tables * copies_ns(hit ? members : 1) + step.counts * kCountsNs;
          INFO(step.name << ", group with members " << hit << ": " << took << " ns, idle " << step.idle_ns);
          CHECK(took <= bound);
        }
      }
      // It was a flood all the time: a datagram for no queue pair costs the table four cycles.
      const auto cycles = (device.now_ns() - begin) / kCycleNs;
      CHECK((taken() - before) * 5 >= cycles);
    }
  };
  world.add_app(0, "test", [&](Host& host) {
    Endpoint a(host), b(world.host(1));
    body(a, b);
  });
  world.run(10'000'000);
}

TEST_CASE("a NIC talks to itself: a reliable connection between two of its queue pairs needs no wire") {
  auto& world = fresh_world(WorldOptions::from_environment("multicast_own"));
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint&) {
    UnreliableSide a(endpoint_a);
    auto &one = a.add_qp(QpType::kRc), &two = a.add_qp(QpType::kRc);
    testbench::connect_pair(endpoint_a, one, endpoint_a, two, {.mtu = 1024});
    const auto wire = world.wire().statistics(0).frames;
    for (std::size_t i = 0; i < 65536; ++i) a.memory[i] = static_cast<std::uint8_t>(i * 7 + (i >> 8));
    for (const std::size_t bytes : {1, 1024, 50000}) {
      std::memset(a.memory + 128 * 1024, UnreliableSide::kUntouched, 65536);
      a.post_receive(two, 5, 128 * 1024, bytes);
      const auto segment = a.segment(0, bytes);
      must(one.post_send({.opcode = WqeOpcode::kSend, .id = 1, .segments = {&segment, 1}}));
      CHECK(a.sent().status == CqeStatus::kSuccess);
      const auto got = a.received();
      CHECK(got.status == CqeStatus::kSuccess);
      CHECK(got.byte_count == bytes);
      CHECK(std::memcmp(a.memory + 128 * 1024, a.memory, bytes) == 0);
      CHECK(a.untouched(128 * 1024 + bytes, 100));
      const auto read = a.segment(200 * 1024, bytes);
      must(two.post_send({.opcode = WqeOpcode::kRead,
                          .id = 2,
                          .segments = {&read, 1},
                          .remote_address = a.at(0),
                          .remote_key = a.region->key()}));
      CHECK(a.sent().status == CqeStatus::kSuccess);
      CHECK(std::memcmp(a.memory + 200 * 1024, a.memory, bytes) == 0);
    }
    CHECK(world.wire().statistics(0).frames == wire);
    CHECK(a.counter(Counter::kSequenceRetries) == 0);
    CHECK(a.counter(Counter::kAckTimeouts) == 0);
  });
}

TEST_CASE("a queue pair sends datagrams to its own NIC and to the peer by turns: only the peer's are on the wire") {
  auto& world = fresh_world(WorldOptions::from_environment("multicast_own_datagrams"));
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UnreliableSide a(endpoint_a), b(endpoint_b);
    auto &from = a.add_datagram_qp(kQkey), &near = a.add_datagram_qp(kQkey), &far = b.add_datagram_qp(kQkey);
    const auto own = umd::AddressHandle::create(testbench::address_of(endpoint_a, false)).take();
    const auto peer = umd::AddressHandle::create(testbench::address_of(endpoint_b, false)).take();
    const auto wire = world.wire().statistics(0).frames;
    const auto segment = a.segment(0, 100);
    for (std::uint64_t id = 0; id < 9; ++id) {
      const bool out = id % 3 == 0;
      auto& side = out ? b : a;
      side.post_receive(out ? far : near, id, 4096, 1000);
      must(from.post_send({.opcode = WqeOpcode::kSend,
                           .id = id,
                           .segments = {&segment, 1},
                           .address = out ? &peer : &own,
                           .dest_qpn = out ? far.qpn() : near.qpn(),
                           .qkey = kQkey}));
      CHECK(a.sent().status == CqeStatus::kSuccess);
      CHECK(side.received().id == id);
    }
    CHECK(world.wire().statistics(0).frames == wire + 3);
  });
}
