#include <Vport_loop.h>

#include <deque>

#include "testbench/generated/rtl_streams.hpp"
#include "tests/rtl/rx_models.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/top/port_loop.sv between a send side, a port that may stop, a wire that nothing stops, and a receive side: which
// frames go where, whole and in order, and that nothing of the wire is lost or, without frames of our own, late.
using namespace rnic;
using namespace rnic::test;

namespace {
constexpr std::uint64_t kPortMac = 0x525400000001;
constexpr std::uint64_t kOtherMac = 0x525400000002;
constexpr std::uint64_t kGroupMac = 0x01005e010203;

std::vector<rtl::FrameBeat> frame_beats(Bytes frame, std::uint64_t dest) {
  for (std::size_t i = 0; i < 6; ++i) frame[i] = static_cast<std::uint8_t>(dest >> (8 * (5 - i)));
  std::vector<rtl::FrameBeat> beats;
  for (std::size_t at = 0; at < frame.size(); at += 64) {
    rtl::FrameBeat beat;
    beat.bytes = static_cast<std::uint8_t>(std::min<std::size_t>(64, frame.size() - at));
    std::copy_n(frame.begin() + static_cast<std::ptrdiff_t>(at), beat.bytes, beat.data.begin());
    beat.last = at + 64 >= frame.size();
    beats.push_back(beat);
  }
  return beats;
}

struct World : Agent {
  explicit World(std::uint64_t value) : bench(value) {
    auto& dut = *bench.dut;
    dut.port_mac_i = kPortMac;
    dut.groups_i = 1;
    dut.eth_rx_valid_i = 0;
    for (Agent* agent : std::initializer_list<Agent*>{&tx, &eth_tx, this}) bench.add(*agent);
    eth_tx.on_item = [this](const rtl::FrameBeat& beat) {
      REQUIRE(!to_wire.empty());
      REQUIRE(beat == to_wire.front());
      to_wire.pop_front();
    };
    bench.reset();
  }
  void send(std::uint64_t dest, std::size_t size) {
    const auto beats = frame_beats(random_bytes(bench.rng, size), dest);
    for (const auto& beat : beats) tx.push(beat);
    if (dest != kPortMac) to_wire.insert(to_wire.end(), beats.begin(), beats.end());
    if (dest == kPortMac) to_loop.push_back({beats, false});
    if (dest == kGroupMac && bench.dut->groups_i) to_loop.push_back({beats, true});
  }
  void arrive(std::size_t size, double err = 0) {
    auto beats = frame_beats(random_bytes(bench.rng, size), kPortMac);
    beats.back().err = bench.chance(err);
    wire.insert(wire.end(), beats.begin(), beats.end());
  }
  void drive() override {
    auto& dut = *bench.dut;
    arrives = !wire.empty() && bench.chance(wire_rate);
    dut.eth_rx_valid_i = arrives;
    if (arrives) {
      put(dut.eth_rx_data_i, wire.front());
      from_wire.push_back(wire.front());
      wire.pop_front();
    }
  }
  void sample() override {
    auto& dut = *bench.dut;
    if (dut.lost_o) ++lost;
    if (!dut.rx_valid_o) {
      if (loops_idle() && from_wire.size() && !late) FAIL("a frame of the wire has been held up for nothing");
      return;
    }
    const auto beat = get<rtl::FrameBeat>(dut.rx_data_o);
    // A frame is one of the wire or one of ours from its first beat on.
    if (!inside) {
      ours = from_wire.empty() || !(beat == from_wire.front());
      if (ours) begin_ours(beat);
    }
    inside = !beat.last;
    if (ours) {
      REQUIRE(!to_loop.empty());
      REQUIRE(beat == to_loop.front().beats[at]);
      ++at;
      if (beat.last) {
        REQUIRE(at == to_loop.front().beats.size());
        to_loop.pop_front();
        ++looped;
      }
    } else {
      REQUIRE(!from_wire.empty());
      REQUIRE(beat == from_wire.front());
      from_wire.pop_front();
    }
    late = !from_wire.empty();
  }
  bool loops_idle() const { return to_loop.empty(); }
  /// The copies of frames for groups that were lost are in front of this one.
  void begin_ours(const rtl::FrameBeat& beat) {
    at = 0;
    while (!to_loop.empty() && to_loop.front().may_be_lost && !(to_loop.front().beats[0] == beat)) {
      to_loop.pop_front();
      ++missing;
    }
  }
  void drain(std::uint64_t limit = 1000000) {
    bench.run_until([&] { return tx.idle() && to_wire.empty() && wire.empty() && !bench.dut->busy_o; }, limit,
                    "all frames");
    bench.run(5);
    while (!to_loop.empty() && to_loop.front().may_be_lost) to_loop.pop_front(), ++missing;
    REQUIRE(to_loop.empty());
    REQUIRE(from_wire.empty());
    REQUIRE(lost == missing);
  }

  struct Ours {
    std::vector<rtl::FrameBeat> beats;
    bool may_be_lost;
  };
  Bench<Vport_loop> bench;
  Source<rtl::FrameBeat> tx{[this](bool v) { bench.dut->tx_valid_i = v; },
                            [this] { return bench.dut->tx_ready_o != 0; },
                            [this](const rtl::FrameBeat& item) { put(bench.dut->tx_data_i, item); }, bench.rng};
  Sink<rtl::FrameBeat> eth_tx{[this] { return bench.dut->eth_tx_valid_o != 0; },
                              [this](bool r) { bench.dut->eth_tx_ready_i = r; },
                              [this] { return get<rtl::FrameBeat>(bench.dut->eth_tx_data_o); }, bench.rng};
  std::deque<rtl::FrameBeat> to_wire, wire, from_wire;
  std::deque<Ours> to_loop;
  double wire_rate = 1.0;
  bool arrives = false, inside = false, ours = false, late = false;
  std::size_t at = 0;
  std::uint64_t lost = 0, missing = 0, looped = 0;
};
}  // namespace

TEST_CASE("port_loop: every frame goes where it belongs, whole and in order", "[rtl]") {
  const auto wire_rate = GENERATE(0.9, 0.5, 0.1);
  World w(seed(static_cast<std::uint64_t>(wire_rate * 10)));
  w.wire_rate = wire_rate;
  w.tx.rate = GENERATE(1.0, 0.3);
  w.eth_tx.rate = GENERATE(1.0, 0.3);
  for (int round = 0; round < 1500; ++round) {
    const auto size = w.bench.chance(0.2) ? w.bench.uniform(60, 4194) : w.bench.uniform(60, 200);
    if (w.tx.items.size() < 200) {
      const auto draw = w.bench.uniform(0, 9);
      w.send(draw < 4 ? kOtherMac : draw < 7 ? kPortMac : kGroupMac, size);
    }
    if (w.wire.size() < 200) w.arrive(w.bench.chance(0.2) ? w.bench.uniform(60, 4194) : w.bench.uniform(60, 200), 0.1);
    w.bench.run(w.bench.uniform(0, 20));
  }
  w.drain();
  CHECK(w.looped > 100);
}

TEST_CASE("port_loop: a wire without a gap loses nothing, and holds up frames for ourselves alone", "[rtl]") {
  World w(seed(3));
  for (int i = 0; i < 40; ++i) w.arrive(4194);
  for (int i = 0; i < 3; ++i) w.send(kPortMac, 4194);
  w.bench.run_until([&] { return w.wire.size() < 500; }, 10000, "most of the wire");
  CHECK(w.looped == 0);
  CHECK(!w.tx.idle());  // the others wait for room
  w.drain();
  CHECK(w.looped == 3);
}

// Of 62 beats one waits behind the buffer of 128: it has room for 67, the most that a frame has.
TEST_CASE("port_loop: the longest frame fills the buffer to its last word", "[rtl]") {
  for (const int less : {0, 1}) {
    World w(seed(7));
    for (int i = 0; i < 20; ++i) w.arrive(4194);
    w.send(kPortMac, 62 * 64);
    w.bench.run_until([&] { return w.tx.idle(); }, 100, "the first");
    w.bench.run(5);
    // One word more, and the next waits until the wire lets what is here pass.
    if (less) w.send(kPortMac, 60);
    w.send(kPortMac, 67 * 64);
    w.bench.run_until([&] { return w.wire.size() < 200; }, 10000, "most of the wire");
    CHECK(w.tx.idle() == (less == 0));
    CHECK(w.looped == 0);
    w.drain();
    CHECK(w.looped == 2u + static_cast<unsigned>(less));
  }
}

TEST_CASE("port_loop: copies for groups are lost rather than that others wait", "[rtl]") {
  World w(seed(4));
  for (int i = 0; i < 40; ++i) w.arrive(4194);
  for (int i = 0; i < 20; ++i) w.send(kGroupMac, 4194);
  for (int i = 0; i < 20; ++i) w.send(kOtherMac, 100);
  const auto beats = w.to_wire.size();
  const auto start = w.bench.cycle;
  w.bench.run_until([&] { return w.tx.idle(); }, 10000, "all of ours on the wire");
  CHECK(w.bench.cycle - start <= beats + 1);
  w.drain();
  CHECK(w.lost > 10);
  CHECK(w.looped + w.lost == 20);
}

TEST_CASE("port_loop: nothing comes back of frames for groups while nobody is attached", "[rtl]") {
  World w(seed(5));
  w.bench.dut->groups_i = 0;
  for (int i = 0; i < 20; ++i) w.send(kGroupMac, 300);
  w.drain();
  CHECK(w.looped == 0);
  CHECK(w.lost == 0);
}

TEST_CASE("port_loop: without frames of our own the wire is not late by a cycle", "[rtl]") {
  World w(seed(6));
  w.wire_rate = 0.7;
  for (int i = 0; i < 50; ++i) {
    w.arrive(w.bench.uniform(60, 1000));
    w.send(kOtherMac, w.bench.uniform(60, 1000));
  }
  while (!w.wire.empty()) {
    w.bench.tick();
    REQUIRE(w.from_wire.empty());
  }
  w.drain();
}
