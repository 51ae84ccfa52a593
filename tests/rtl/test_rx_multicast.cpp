#include <Vrx_multicast.h>

#include <map>
#include <set>

#include "driver/generated/host_interface.hpp"
#include "testbench/generated/rtl_streams.hpp"
#include "tests/rtl/rx_models.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/rx/rx_multicast.sv, with its table, between a front end and a check stage that take their time: which copies
// leave, in which order, with which payload, and what the operations on the table answer. The model below is a map from
// the address of a group to the queue pairs that are attached to it.
using namespace rnic;
using namespace rnic::test;

namespace {
using Mgid = std::array<std::uint8_t, 16>;

Mgid group_address(unsigned number, bool ipv4) {
  Mgid gid{};
  if (ipv4) {
    gid[10] = gid[11] = 0xff;
    gid[12] = 0xe0 | (number & 0xf);
  } else {
    gid[0] = 0xff;
    gid[1] = 0x15;
  }
  gid[14] = static_cast<std::uint8_t>(number >> 8);
  gid[15] = static_cast<std::uint8_t>(number);
  return gid;
}

struct World : Agent {
  explicit World(std::uint64_t value) : bench(value) {
    bench.dut->op_valid_i = 0;
    for (Agent* agent : std::initializer_list<Agent*>{&descs, &payload, &copies, &beats, this}) bench.add(*agent);
    copies.on_item = [this](const rtl::RxDesc& d) { judge(d); };
    beats.on_item = [this](const rtl::PayloadBeat& beat) {
      REQUIRE(!expected.empty());
      REQUIRE(beat == expected.front());
      expected.pop_front();
    };
    bench.reset();
  }

  struct Packet {
    rtl::RxDesc desc;
    std::vector<rtl::PayloadBeat> beats;
  };
  void send(rtl::RxDesc d, std::size_t size) {
    d.psn = next_psn++;
    d.payload_length = static_cast<std::uint16_t>(size);
    Packet packet{d, payload_beats(random_bytes(bench.rng, size), bench.rng)};
    descs.push(d);
    for (const auto& beat : packet.beats) payload.push(beat);
    waiting.push_back(std::move(packet));
  }
  void send_group(const Mgid& mgid, std::size_t size) {
    rtl::RxDesc d;
    d.multicast = 1;
    d.dest_qpn = hw::kMulticastQpn;
    d.dest_ip = mgid;
    send(d, size);
  }
  void send_plain(std::uint32_t qpn, const Mgid& dest, std::size_t size) {
    rtl::RxDesc d;
    d.dest_qpn = qpn;
    d.dest_ip = dest;
    send(d, size);
  }

  /// A descriptor has left: it must be the next copy of the oldest packet, or that packet itself.
  void judge(const rtl::RxDesc& d) {
    REQUIRE(!waiting.empty());
    const auto& packet = waiting.front();
    auto want = packet.desc;
    const auto members = table.find(want.dest_ip);
    bool last = true;
    if (want.multicast && members != table.end()) {
      if (copied == 0) next_copy = members->second.begin();
      want.dest_qpn = next_copy->second;
      ++copied;
      ++total_copies;
      last = ++next_copy == members->second.end();
    } else {
      ++passed;
    }
    REQUIRE(d == want);
    for (const auto& beat : packet.beats) expected.push_back(beat);
    if (last) {
      copied = 0;
      waiting.pop_front();
    }
  }

  void drive() override {
    auto& dut = *bench.dut;
    dut.op_valid_i = op.has_value();
    if (op) put(dut.op_i, *op);
  }
  void sample() override {
    if (bench.dut->copied_o) ++copies_told;
    if (!bench.dut->op_done_o) return;
    REQUIRE(op.has_value());
    REQUIRE(copied == 0);  // nothing changes in the middle of a datagram
    status = static_cast<rtl::MulticastStatus>(bench.dut->op_status_o);
    REQUIRE(status == apply(*op));
    op.reset();
    ++operations;
  }
  rtl::MulticastStatus apply(const rtl::MulticastOp& o) {
    const std::uint8_t index = o.qpn & 0xff;
    const auto group = table.find(o.mgid);
    const bool attached = group != table.end() && group->second.count(index);
    switch (static_cast<rtl::MulticastOpCode>(o.op)) {
      case rtl::MulticastOpCode::kAttach:
        if (attached) return rtl::MulticastStatus::kAttached;
        if (group == table.end() && table.size() == hw::kMulticastGroups) return rtl::MulticastStatus::kNoGroup;
        table[o.mgid][index] = o.qpn;
        return rtl::MulticastStatus::kDone;
      case rtl::MulticastOpCode::kDetach:
        if (!attached) return rtl::MulticastStatus::kNotAttached;
        group->second.erase(index);
        if (group->second.empty()) table.erase(group);
        return rtl::MulticastStatus::kDone;
      default:
        for (const auto& [mgid, members] : table) {
          const auto found = members.find(index);
          if (found != members.end() && found->second == o.qpn) return rtl::MulticastStatus::kAttached;
        }
        return rtl::MulticastStatus::kDone;
    }
  }
  void begin(rtl::MulticastOpCode kind, std::uint32_t qpn, const Mgid& mgid) {
    rtl::MulticastOp o;
    o.op = static_cast<std::uint8_t>(kind);
    o.qpn = qpn;
    o.mgid = mgid;
    op = o;
  }
  rtl::MulticastStatus perform(rtl::MulticastOpCode kind, std::uint32_t qpn, const Mgid& mgid) {
    begin(kind, qpn, mgid);
    bench.run_until([&] { return !op; }, 100000, "an answer of the table");
    return status;
  }
  void drain(std::uint64_t limit = 100000) {
    bench.run_until([&] { return descs.idle() && payload.idle() && waiting.empty() && expected.empty(); }, limit,
                    "all packets");
    bench.run(20);
    REQUIRE(expected.empty());
    REQUIRE(bench.dut->busy_o == 0);
    REQUIRE(copies_told == total_copies);
    REQUIRE((bench.dut->any_o != 0) == !table.empty());
  }

  Bench<Vrx_multicast> bench;
  Source<rtl::RxDesc> descs{[this](bool v) { bench.dut->desc_valid_i = v; },
                            [this] { return bench.dut->desc_ready_o != 0; },
                            [this](const rtl::RxDesc& item) { put(bench.dut->desc_data_i, item); }, bench.rng};
  Source<rtl::PayloadBeat> payload{
      [this](bool v) { bench.dut->payload_valid_i = v; }, [this] { return bench.dut->payload_ready_o != 0; },
      [this](const rtl::PayloadBeat& item) { put(bench.dut->payload_data_i, item); }, bench.rng};
  Sink<rtl::RxDesc> copies{[this] { return bench.dut->desc_valid_o != 0; },
                           [this](bool r) { bench.dut->desc_ready_i = r; },
                           [this] { return get<rtl::RxDesc>(bench.dut->desc_data_o); }, bench.rng};
  Sink<rtl::PayloadBeat> beats{[this] { return bench.dut->payload_valid_o != 0; },
                               [this](bool r) { bench.dut->payload_ready_i = r; },
                               [this] { return get<rtl::PayloadBeat>(bench.dut->payload_data_o); }, bench.rng};
  std::map<Mgid, std::map<std::uint8_t, std::uint32_t>> table;  // QPNs by their index
  std::map<std::uint8_t, std::uint32_t>::const_iterator next_copy;
  std::deque<Packet> waiting;
  std::deque<rtl::PayloadBeat> expected;
  std::optional<rtl::MulticastOp> op;
  rtl::MulticastStatus status{};
  unsigned copied = 0;
  std::uint32_t next_psn = 0;
  std::uint64_t passed = 0, total_copies = 0, copies_told = 0, operations = 0;
};

using Kind = rtl::MulticastOpCode;
using Status = rtl::MulticastStatus;
}  // namespace

TEST_CASE("rx_multicast: each attached queue pair gets its copy, whatever else comes and changes", "[rtl]") {
  const auto rate = GENERATE(1.0, 0.5, 0.2);
  World w(seed(static_cast<std::uint64_t>(rate * 10)));
  w.descs.rate = w.payload.rate = rate;
  w.copies.rate = w.beats.rate = GENERATE(1.0, 0.4);
  // The tag of a queue pair stays the same: it is not destroyed while it is attached.
  const auto qpn = [](unsigned index) { return (0x1234 + 77 * index) << 8 | index; };
  for (int round = 0; round < 4000; ++round) {
    const auto mgid = group_address(static_cast<unsigned>(w.bench.uniform(0, 20)), w.bench.chance(0.5));
    // Few queue pairs, so that they are often there already; and the two ends of the table of words.
    const auto index =
        static_cast<unsigned>(w.bench.uniform(0, 1) ? w.bench.uniform(0, 20) : w.bench.uniform(240, 255));
    if (!w.op && w.bench.chance(0.3)) {
      const auto draw = w.bench.uniform(0, 9);
      const auto kind = draw < 6 ? Kind::kAttach : draw < 9 ? Kind::kDetach : Kind::kLook;
      w.begin(kind, qpn(index), mgid);
    }
    if (w.waiting.size() < 40) {
      const auto size = w.bench.chance(0.1)   ? w.bench.uniform(1, 4136)
                        : w.bench.chance(0.2) ? 0
                                              : w.bench.uniform(1, 300);
      if (w.bench.chance(0.5))
        w.send_group(mgid, size);
      else
        w.send_plain(qpn(index), mgid, size);
    }
    w.bench.run(w.bench.uniform(0, 12));
  }
  w.drain(2000000);
  CHECK(w.operations > 300);
  CHECK(w.total_copies > 300);
  CHECK(w.passed > 500);
}

TEST_CASE("rx_multicast: groups until all are taken, and again when one is free", "[rtl]") {
  World w(seed(7));
  for (unsigned g = 0; g < hw::kMulticastGroups; ++g) {
    CHECK(w.perform(Kind::kAttach, 0x777702, group_address(g, false)) == Status::kDone);
  }
  CHECK(w.perform(Kind::kAttach, 0x777702, group_address(99, false)) == Status::kNoGroup);
  CHECK(w.perform(Kind::kAttach, 0x777703, group_address(99, true)) == Status::kNoGroup);
  CHECK(w.perform(Kind::kAttach, 0x777702, group_address(5, false)) == Status::kAttached);
  CHECK(w.perform(Kind::kAttach, 0x777703, group_address(5, false)) == Status::kDone);
  CHECK(w.perform(Kind::kDetach, 0x777704, group_address(5, false)) == Status::kNotAttached);
  CHECK(w.perform(Kind::kDetach, 0x777702, group_address(99, false)) == Status::kNotAttached);
  CHECK(w.perform(Kind::kDetach, 0x777702, group_address(5, false)) == Status::kDone);
  CHECK(w.perform(Kind::kAttach, 0x777702, group_address(99, false)) == Status::kNoGroup);  // 03 is still in group 5
  CHECK(w.perform(Kind::kDetach, 0x777703, group_address(5, false)) == Status::kDone);
  CHECK(w.perform(Kind::kAttach, 0x777702, group_address(99, false)) == Status::kDone);
  w.send_group(group_address(5, false), 100);
  w.send_group(group_address(99, false), 100);
  w.drain();
  CHECK(w.passed == 1);
  CHECK(w.total_copies == 1);
}

TEST_CASE("rx_multicast: a group takes every queue pair of the NIC", "[rtl]") {
  World w(seed(8));
  const auto mgid = group_address(1, true);
  for (unsigned qp = 0; qp < 256; ++qp) CHECK(w.perform(Kind::kAttach, 0x40000 | qp, mgid) == Status::kDone);
  w.send_group(mgid, 4136);
  w.send_group(mgid, 41);
  w.drain();
  CHECK(w.total_copies == 512);
}

TEST_CASE("rx_multicast: whose a queue pair is, is said by its whole number", "[rtl]") {
  World w(seed(9));
  CHECK(w.perform(Kind::kLook, 0x123411, {}) == Status::kDone);
  for (unsigned g = 0; g < hw::kMulticastGroups; ++g) {
    CHECK(w.perform(Kind::kAttach, 0x123411, group_address(g, true)) == Status::kDone);
    CHECK(w.perform(Kind::kLook, 0x123411, {}) == Status::kAttached);
    CHECK(w.perform(Kind::kLook, 0x123511, {}) == Status::kDone);
    CHECK(w.perform(Kind::kLook, 0x123401, {}) == Status::kDone);
    CHECK(w.perform(Kind::kLook, 0x123412, {}) == Status::kDone);
    CHECK(w.perform(Kind::kDetach, 0x123411, group_address(g, true)) == Status::kDone);
    CHECK(w.perform(Kind::kLook, 0x123411, {}) == Status::kDone);
    CHECK(w.perform(Kind::kAttach, 0x123499, group_address(g, true)) == Status::kDone);
  }
}

TEST_CASE("rx_multicast: reset empties the table", "[rtl]") {
  World w(seed(10));
  CHECK(w.perform(Kind::kAttach, 0x123411, group_address(1, true)) == Status::kDone);
  w.bench.reset();
  w.table.clear();
  w.send_group(group_address(1, true), 50);
  w.drain();
  CHECK(w.passed == 1);
  CHECK(w.perform(Kind::kLook, 0x123411, {}) == Status::kDone);
  CHECK(w.perform(Kind::kDetach, 0x123411, group_address(1, true)) == Status::kNotAttached);
}

TEST_CASE("rx_multicast: what is for no group passes in its cycle, and copies come one a cycle", "[rtl]") {
  World w(seed(11));
  const auto mgid = group_address(3, false);
  for (const unsigned qp : {1u, 2u, 9u}) CHECK(w.perform(Kind::kAttach, 0x5500 | qp, mgid) == Status::kDone);
  const auto start = w.bench.cycle;
  for (int i = 0; i < 50; ++i) w.send_plain(0x5501, mgid, 0);
  w.bench.run_until([&] { return w.waiting.empty(); }, 1000, "all packets");
  CHECK(w.bench.cycle - start == 50);
  const auto again = w.bench.cycle;
  w.send_group(mgid, 0);
  w.bench.run_until([&] { return w.waiting.empty(); }, 1000, "the copies");
  CHECK(w.bench.cycle - again <= 8);
  w.drain();
}

TEST_CASE("rx_multicast: operations and datagrams take turns, whichever of them never pause", "[rtl]") {
  World w(seed(12));
  const auto full = group_address(3, false), empty = group_address(4, false);
  constexpr unsigned kMembers = 20;
  // A Look reads the word of its queue pair in each group.
  constexpr std::uint64_t kTable = 2 * hw::kMulticastGroups + 12;
  for (unsigned qp = 0; qp < kMembers; ++qp) w.perform(Kind::kAttach, 0x5500 | qp, full);
  for (const bool hit : {false, true}) {
    INFO("members " << hit);
    const auto bound = kTable + (hit ? 3 * kMembers : 0);
    const auto more = [&] {
      while (w.waiting.size() < 4) w.send_group(hit ? full : empty, 0);
    };
    for (const auto kind : {Kind::kLook, Kind::kAttach, Kind::kDetach}) {
      for (int round = 0; round < 50; ++round) {
        const auto start = w.bench.cycle;
        w.begin(kind, 0x7700 | static_cast<unsigned>(w.bench.uniform(100, 200)), group_address(5, true));
        while (w.op) {
          more();
          w.bench.run(1);
          REQUIRE(w.bench.cycle - start <= bound);
        }
        for (auto pause = w.bench.uniform(0, 3); pause > 0; --pause) {
          more();
          w.bench.run(1);
        }
      }
    }
    // Operations one behind the other, and a datagram.
    w.drain();
    for (int round = 0; round < 50; ++round) {
      const auto start = w.bench.cycle;
      w.send_group(hit ? full : empty, 0);
      while (!w.waiting.empty()) {
        if (!w.op) w.begin(Kind::kLook, 0x7799, {});
        w.bench.run(1);
        REQUIRE(w.bench.cycle - start <= bound);
      }
      w.bench.run_until([&] { return !w.op; }, 100, "the operation");
    }
    w.drain();
  }
}
