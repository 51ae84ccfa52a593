#include <Vrx_park.h>

#include <map>

#include "testbench/generated/rtl_streams.hpp"
#include "tests/rtl/rx_models.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/rx/rx_park.sv before a stand-in for the receive engine, which judges packets after some cycles as rx_request
// does: those of a queue pair with an atomic that is not executed are held, and so is what comes behind them. The order
// of each queue pair, payload and neighbours are checked.
using namespace rnic;
using namespace rnic::test;

namespace {
constexpr unsigned kQps = 8;

struct World : Agent {
  explicit World(std::uint64_t value) : bench(value) {
    auto& dut = *bench.dut;
    dut.judged_valid_i = dut.held_i = dut.retry_i = dut.clear_valid_i = 0;
    for (Agent* agent : std::initializer_list<Agent*>{&descs, &payload, &offered, &beats, this}) bench.add(*agent);
    offered.on_item = [this](const rtl::RxDesc& d) { checking.push_back({d, bench.cycle + bench.uniform(3, 9)}); };
    beats.on_item = [this](const rtl::PayloadBeat& beat) {
      REQUIRE(!expected.empty());
      REQUIRE(beat == expected.front());
      expected.pop_front();
    };
    bench.reset();
  }

  void send(unsigned qp, std::size_t size) {
    rtl::RxDesc d;
    d.dest_qpn = 0x123400 | qp;
    d.psn = next_psn[qp]++;
    d.immediate = life[qp];
    d.payload_length = static_cast<std::uint16_t>(size);
    descs.push(d);
    auto& kept = data[{qp, d.psn}];
    for (const auto& beat : payload_beats(random_bytes(bench.rng, size), bench.rng)) {
      kept.push_back(beat);
      payload.push(beat);
    }
  }
  /// The atomic in front of a queue pair begins to be awaited, or is answered.
  void block(unsigned qp) { blocked[qp] = true; }
  void unblock(unsigned qp, bool tell = true) {
    blocked[qp] = false;
    retry = tell;
  }

  void drive() override {
    auto& dut = *bench.dut;
    dut.retry_i = retry;
    dut.clear_valid_i = clear.has_value();
    dut.clear_qp_i = clear.value_or(static_cast<std::uint8_t>(bench.rng()));
    // Nothing is judged while a queue pair is cleared: the engine clears when its check stage is idle.
    judging = !clear && !checking.empty() && bench.cycle >= checking.front().second;
    dut.judged_valid_i = judging;
    held = judging && must_wait(checking.front().first);
    dut.held_i = judging ? held : bench.chance(0.5);
    retry = false;
    clear.reset();
  }
  bool must_wait(const rtl::RxDesc& d) const {
    const unsigned qp = d.dest_qpn & 0xff;
    if (d.immediate != life[qp]) return false;  // its queue pair is in RESET, or another: it is dropped
    return blocked[qp] || (parked[qp] != 0 && !d.parked);
  }
  void sample() override {
    if (!judging) return;
    const auto d = checking.front().first;
    checking.pop_front();
    const unsigned qp = d.dest_qpn & 0xff;
    ++judged;
    REQUIRE(d.dest_qpn == (0x123400 | qp));
    if (held) {
      if (d.parked)
        ++asked_in_vain;
      else
        ++parked[qp], ++total_parked;
      return;
    }
    if (d.immediate != life[qp]) {
      ++stale;
      REQUIRE((!d.parked || stale_allowed));
    } else {
      if (d.parked) REQUIRE(parked[qp]-- > 0);
      REQUIRE(d.psn == wanted[qp]++);
      ++passed[qp];
    }
    auto& kept = data[{qp, d.psn}];
    REQUIRE(kept.size() == (d.payload_length + 63u) / 64);
    for (const auto& beat : kept) expected.push_back(beat);
    data.erase({qp, d.psn});
  }
  /// Begins a new life of a queue pair: what it has in the lot is thrown away.
  void renew(unsigned qp) {
    ++life[qp];
    parked[qp] = 0;
    blocked[qp] = false;
    wanted[qp] = next_psn[qp];
    clear = static_cast<std::uint8_t>(qp);
  }
  bool idle() const { return descs.idle() && payload.idle() && checking.empty() && expected.empty(); }
  void drain(std::uint64_t limit = 100000) {
    bench.run_until(
        [&] {
          if (!idle()) return false;
          for (unsigned qp = 0; qp < kQps; ++qp)
            if (wanted[qp] != next_psn[qp]) return false;
          return true;
        },
        limit, "all packets");
    bench.run(300);
    REQUIRE(idle());
  }

  Bench<Vrx_park> bench;
  Source<rtl::RxDesc> descs{[this](bool v) { bench.dut->desc_valid_i = v; },
                            [this] { return bench.dut->desc_ready_o != 0; },
                            [this](const rtl::RxDesc& item) { put(bench.dut->desc_data_i, item); }, bench.rng};
  Source<rtl::PayloadBeat> payload{
      [this](bool v) { bench.dut->payload_valid_i = v; }, [this] { return bench.dut->payload_ready_o != 0; },
      [this](const rtl::PayloadBeat& item) { put(bench.dut->payload_data_i, item); }, bench.rng};
  Sink<rtl::RxDesc> offered{[this] { return bench.dut->desc_valid_o != 0; },
                            [this](bool r) { bench.dut->desc_ready_i = r; },
                            [this] { return get<rtl::RxDesc>(bench.dut->desc_data_o); }, bench.rng};
  Sink<rtl::PayloadBeat> beats{[this] { return bench.dut->payload_valid_o != 0; },
                               [this](bool r) { bench.dut->payload_ready_i = r; },
                               [this] { return get<rtl::PayloadBeat>(bench.dut->payload_data_o); }, bench.rng};
  std::deque<std::pair<rtl::RxDesc, std::uint64_t>> checking;  // offered, and when each is judged
  std::deque<rtl::PayloadBeat> expected;
  std::map<std::pair<unsigned, std::uint32_t>, std::vector<rtl::PayloadBeat>> data;
  std::array<std::uint32_t, kQps> next_psn{}, wanted{}, life{};
  std::array<bool, kQps> blocked{};
  std::array<unsigned, kQps> parked{};
  std::array<std::uint64_t, kQps> passed{};
  std::uint64_t judged = 0, total_parked = 0, asked_in_vain = 0, stale = 0;
  bool retry = false, judging = false, held = false, stale_allowed = false;
  std::optional<std::uint8_t> clear;
};
}  // namespace

TEST_CASE("rx_park: whatever waits comes again in the order of its queue pair, with its payload", "[rtl]") {
  const auto rate = GENERATE(1.0, 0.4);
  World w(seed(static_cast<std::uint64_t>(rate * 10)));
  w.descs.rate = w.payload.rate = w.offered.rate = w.beats.rate = rate;
  for (int round = 0; round < 3000; ++round) {
    const auto qp = static_cast<unsigned>(w.bench.uniform(0, kQps - 1));
    if (w.bench.chance(0.15)) w.blocked[qp] ? w.unblock(qp, w.bench.chance(0.7)) : w.block(qp);
    const auto longest = w.bench.chance(0.1) ? 4096u : 200u;
    const auto size = w.bench.chance(0.3) ? 0 : w.bench.uniform(1, longest);
    w.send(qp, size);
    if (w.bench.chance(0.5)) w.bench.run(w.bench.uniform(0, 30));
    if (w.bench.chance(0.02)) w.bench.run(w.bench.uniform(0, 400));
  }
  for (unsigned qp = 0; qp < kQps; ++qp) w.unblock(qp);
  w.drain();
  CHECK(w.total_parked > 500);
  CHECK(w.asked_in_vain > 20);
}

TEST_CASE("rx_park: a queue pair that waits holds up no other, until the lot is full", "[rtl]") {
  World w(seed(3));
  w.block(1);
  for (int i = 0; i < 100; ++i) {
    w.send(1, 300);
    for (int other = 0; other < 3; ++other) w.send(2, 1024);
  }
  w.bench.run_until([&] { return w.passed[2] == 300; }, 20000, "the neighbour's packets");
  CHECK(w.passed[1] == 0);
  CHECK(w.parked[1] == 100);
  // Full, of packets or of payload: nothing is lost, and nothing passes.
  for (const std::size_t size : {std::size_t{64}, std::size_t{4096}}) {
    for (int i = 0; i < 60; ++i) w.send(1, size);
  }
  w.bench.run(2000);
  w.send(2, 10);
  const auto before = w.judged, in_vain = w.asked_in_vain;
  w.bench.run(3000);
  CHECK(w.passed[2] == 300);
  CHECK(w.parked[1] <= 128);
  CHECK(w.judged - before == w.asked_in_vain - in_vain);
  w.unblock(1, false);
  w.drain();
  CHECK(w.passed[2] == 301);
  CHECK(w.passed[1] == 220);
}

// The worst for the payload: packets of the greatest MTU.
TEST_CASE("rx_park: the lot never takes more than it has room for", "[rtl]") {
  World w(seed(4));
  for (int round = 0; round < 20; ++round) {
    w.block(1);
    for (int i = 0; i < 40; ++i) {
      w.send(static_cast<unsigned>(i % 3), w.bench.chance(0.8) ? 4096 : w.bench.uniform(0, 4096));
    }
    w.bench.run(w.bench.uniform(500, 4000));
    w.unblock(1);
    w.bench.run(w.bench.uniform(0, 300));
  }
  w.drain(200000);
}

TEST_CASE("rx_park: what waits for a queue pair that is reset is thrown away", "[rtl]") {
  World w(seed(5));
  w.stale_allowed = true;
  for (int round = 0; round < 60; ++round) {
    w.block(3);
    w.block(4);
    const auto n = w.bench.uniform(1, 20);
    for (std::uint64_t i = 0; i < n; ++i) {
      for (const unsigned qp : {3u, 4u, 5u}) w.send(qp, w.bench.chance(0.5) ? 0 : w.bench.uniform(1, 500));
    }
    // All of it is inside, and nobody is being judged.
    const auto inside = [&] {
      return w.descs.idle() && w.payload.idle() && w.checking.empty() && w.parked[3] == n && w.parked[4] == n;
    };
    w.bench.run_until(inside, 20000, "waiting");
    const auto stale = w.stale;
    w.renew(3);
    w.bench.run(1);
    w.block(3);
    w.send(3, 100);
    w.bench.run(w.bench.uniform(0, 600));
    w.unblock(4);
    w.unblock(3);
    w.drain();
    CHECK(w.stale - stale <= 1);  // one may have been on its way
  }
}

// Nothing that could move waits for what moves: while packets come out of the lot, others go in.
TEST_CASE("rx_park: a stream of packets, some of which wait, is as fast as without", "[rtl]") {
  World w(seed(7));
  constexpr int kRounds = 20, kPackets = 8, kLines = 64;
  for (int i = 0; i < kRounds * kPackets; ++i) w.send(1, 64 * kLines);
  const auto start = w.bench.cycle;
  constexpr std::uint64_t kWait = 2 * kLines;
  for (std::uint64_t i = 1; i <= kRounds; ++i) {
    w.bench.run_until([&] { return w.passed[1] + 1 >= i * kPackets; }, 20000, "the packets before");
    w.block(1);
    w.bench.run(kWait);
    w.unblock(1);
  }
  w.drain();
  const auto cycles = w.bench.cycle - 300 - start;
  std::printf("rx_park: %.2f cycles a line where one packet of %d waits %llu cycles\n",
              static_cast<double>(cycles) / (kRounds * kPackets * kLines), kPackets,
              static_cast<unsigned long long>(kWait));
  CHECK(cycles <= kRounds * kPackets * kLines * 11 / 10);
}

TEST_CASE("rx_park: cycles of a packet that need not wait, and its rate", "[rtl]") {
  World w(seed(6));
  const auto start = w.bench.cycle;
  std::uint64_t first = 0;
  w.offered.on_item = [&](const rtl::RxDesc& d) {
    if (!first) first = w.bench.cycle;
    w.checking.push_back({d, w.bench.cycle + 4});
  };
  for (int i = 0; i < 200; ++i) w.send(1, 256);
  w.drain();
  std::printf("rx_park: %llu cycles to the engine, %.2f cycles a packet of 256 bytes\n",
              static_cast<unsigned long long>(first - start), static_cast<double>(w.bench.cycle - 300 - start) / 200);
  CHECK(first - start <= 4);
  CHECK(w.bench.cycle - 300 - start <= 200 * 4 + 40);
}
