#include <Vqp_timer.h>

#include <map>
#include <optional>

#include "tests/rtl/completion_models.hpp"

// rtl/completion/qp_timer.sv: InfiniBand specification 9.7.6.1.3, C9-139 (the timer runs while an answer to what has
// left is awaited; a time-out is never early, and at most so much late), decisions 45.
using namespace rnic;
using namespace rnic::test;

namespace {

constexpr std::uint64_t kUnit = 1024;
constexpr unsigned kTries = 15;   // they are counted modulo 16
constexpr unsigned kSettled = 8;  // cycles until an event has been taken

/// The timer of one queue pair by the rules.
struct Timer {
  bool begun = false, known = false, running = false, waiting = false;
  std::uint32_t left = 0;            // newest PSN that is awaited, if `known`
  std::optional<std::uint32_t> una;  // oldest PSN that is not acknowledged
  unsigned tries = 0;                // how often the queue went back
  std::uint64_t earliest = 0, latest = 0;
};
bool before(std::uint32_t a, std::uint32_t b) { return ((a - b) & 0x800000) != 0; }

struct World {
  explicit World(std::uint64_t s) : bench(s) {
    quiet();
    bench.dut->expired_ready_i = 0;
    bench.reset();
  }
  Vqp_timer& dut() { return *bench.dut; }
  void quiet() {
    dut().begun_valid_i = dut().left_valid_i = dut().ack_valid_i = dut().wait_valid_i = dut().stop_valid_i =
        dut().clear_valid_i = 0;
  }
  /// One cycle: events as given, an expiry accepted if `ready`.
  void tick(bool ready = false) {
    dut().expired_ready_i = ready;
    dut().clk_i = 0;
    dut().eval();
    look();
    if (dut().expired_valid_o && ready) {
      ++accepted;
      pending.reset();
    }
    const bool left_taken = dut().left_valid_i && dut().left_ready_o;
    bench.tick();
    const bool keep = dut().left_valid_i && !left_taken;
    quiet();
    dut().left_valid_i = keep;
    dut().expired_ready_i = 0;
  }
  /// The clock stands still for up to `most` cycles, if the timer may rest for so long.
  void stand_still(std::uint64_t most) {
    dut().eval();
    const auto rest = get<rtl::Rest>(dut().rest_o);
    if (rest.busy) return;
    const std::uint64_t left = rest.timed ? (rest.deadline - bench.cycle) & ((1ULL << 43) - 1) : most;
    REQUIRE(left < 1ULL << 42);
    const auto cycles = bench.chance(0.3) ? std::min(left, most) : bench.uniform(0, std::min(left, most));
    bench.cycle += cycles;
    stood_still += cycles;
    bench.show_time();
    dut().eval();
  }
  void settle() {
    for (unsigned i = 0; i < kSettled; ++i) tick();
    REQUIRE(dut().left_valid_i == 0);
  }
  /// An expiry that is new has to be due.
  void look() {
    withdrawn &= dut().expired_valid_o;
    if (!watching || !dut().expired_valid_o || pending || withdrawn) return;
    const unsigned qp = dut().expired_qp_o;
    INFO("QP " << qp << " at cycle " << bench.cycle);
    auto& t = timers[qp];
    REQUIRE(t.running);
    REQUIRE(bench.cycle >= t.earliest);
    pending = {qp, t.waiting};
    t.running = t.waiting = false;
    ++expired;
  }
  void set(Timer& t, std::uint64_t units) {
    t.running = true;
    t.earliest = bench.cycle + units * kUnit;
    t.latest = bench.cycle + (units + 8) * kUnit;  // others may be in the way
  }
  void withdraw() {
    pending.reset();
    withdrawn = true;  // the timer has a few cycles to see it
  }
  void taken_back(unsigned qp) {
    if (pending && pending->first == qp && !pending->second) withdraw();
  }
  static rtl::TimerEvent event(unsigned qp, unsigned exponent, std::uint32_t psn, unsigned tries = 0) {
    return {.qp = static_cast<std::uint8_t>(qp),
            .exponent = static_cast<std::uint8_t>(exponent),
            .psn = psn & 0xffffff,
            .tries = static_cast<std::uint8_t>(tries & kTries)};
  }
  void begun(unsigned qp) {
    dut().begun_valid_i = 1;
    dut().begun_qp_i = static_cast<std::uint8_t>(qp);
    timers[qp].begun = true;
    tick();
  }
  /// `tries_ago`: the packet was made so many times of going back before.
  void left(unsigned qp, unsigned exponent, std::uint32_t psn, unsigned tries_ago = 0) {
    auto& t = timers[qp];
    put(dut().left_data_i, event(qp, exponent, psn, t.tries - tries_ago));
    dut().left_valid_i = 1;
    if (t.begun && !t.waiting && tries_ago == 0 && !(t.una && before(psn, *t.una))) {
      t.known = true;
      t.left = psn;
      if (exponent != 0 && !t.running) set(t, 1ull << exponent);
    }
    tick();
  }
  void ack(unsigned port, unsigned qp, unsigned exponent, std::uint32_t una) {
    put_slice(dut().ack_data_i, port, event(qp, exponent, una));
    dut().ack_valid_i = static_cast<std::uint8_t>(1u << port);
    taken_back(qp);
    auto& t = timers[qp];
    t.una = una & 0xffffff;
    if (!t.waiting) {
      if (t.known && !before(t.left, una) && exponent != 0)
        set(t, 1ull << exponent);
      else
        t.running = t.known = false;
    }
    tick();
  }
  void stop(unsigned qp) {
    auto& t = timers[qp];
    ++t.tries;
    dut().stop_valid_i = 1;
    dut().wait_qp_i = static_cast<std::uint8_t>(qp);
    dut().wait_tries_i = t.tries & kTries;
    taken_back(qp);
    if (!t.waiting) t.running = t.known = false;
    tick();
  }
  /// `back`: the queue goes back as well; otherwise it waits where it is.
  void wait(unsigned qp, std::uint64_t units, bool back = true) {
    auto& t = timers[qp];
    t.tries += back;
    dut().wait_valid_i = 1;
    dut().wait_qp_i = static_cast<std::uint8_t>(qp);
    dut().wait_units_i = static_cast<std::uint32_t>(units);
    dut().wait_tries_i = t.tries & kTries;
    taken_back(qp);
    set(t, units);
    t.waiting = true;
    t.known = false;
    tick();
  }
  void clear(unsigned qp) {
    dut().clear_valid_i = 1;
    dut().clear_qp_i = static_cast<std::uint8_t>(qp);
    timers[qp] = {};
    if (pending && pending->first == qp) withdraw();
    tick();
  }

  Bench<Vqp_timer> bench;
  std::map<unsigned, Timer> timers;
  std::optional<std::pair<unsigned, bool>>
      pending;  // the QP of the expiry that is out, and whether it is the end of a wait
  bool withdrawn = false;
  bool watching = true;  // the rules above hold for events that do not come as a timer expires
  std::uint64_t expired = 0, accepted = 0, stood_still = 0;
};

}  // namespace

TEST_CASE(
    "qp_timer: runs while an answer to what has left is awaited; never early, at most so much late, also when the "
    "clock "
    "stands still meanwhile",
    "[rtl]") {
  const bool stands_still = GENERATE(false, true);
  World w(seed());
  auto& bench = w.bench;
  for (std::uint64_t step = 0; step < 60'000; ++step) {
    // Often one whose expiry is out.
    const unsigned qp =
        w.pending && bench.chance(0.3) ? w.pending->first : static_cast<unsigned>(bench.uniform(0, 30) * 8);
    auto& t = w.timers[qp];
    // What is due may come at any moment; events at that moment are tried below.
    const bool close = t.running && bench.cycle + 2 * kSettled >= t.earliest;
    const auto psn = static_cast<std::uint32_t>((0xfffff8 + bench.uniform(0, 16)) & 0xffffff);
    const auto exponent = static_cast<unsigned>(bench.uniform(0, 4));
    if (!close && bench.chance(0.1)) {
      switch (bench.uniform(0, 12)) {
        case 0:
        case 1: w.begun(qp); break;
        case 2:
        case 3:
        case 4:
        case 5: w.left(qp, exponent, psn, bench.chance(0.3) ? static_cast<unsigned>(bench.uniform(1, 3)) : 0); break;
        case 6:
        case 7:
        case 8: w.ack(static_cast<unsigned>(bench.uniform(0, 1)), qp, exponent, psn); break;
        case 9: w.stop(qp); break;
        case 10: w.wait(qp, bench.uniform(1, 20), bench.chance(0.5)); break;
        default:
          if (bench.chance(0.2)) w.clear(qp);
      }
      w.settle();
      w.look();
      REQUIRE(static_cast<bool>(w.dut().expired_valid_o) == w.pending.has_value());
    } else {
      for (auto n = bench.uniform(1, 20); n > 0; --n) w.tick(bench.chance(0.05));
      if (stands_still) w.stand_still(40);
    }
    for (const auto& [index, timer] : w.timers) {
      INFO("QP " << index);
      REQUIRE((!timer.running || bench.cycle <= timer.latest));
    }
  }
  CHECK(w.accepted > 150);
  CHECK(w.expired > w.accepted);
  CHECK((w.stood_still > 10'000) == stands_still);
}

// 9.7.6.1.3: from the time-out to four of it. The sweep comes to a queue pair once a unit, wherever in it that is.
TEST_CASE("qp_timer: one timer alone is at most one unit late, whenever it is set", "[rtl]") {
  World w(seed(2));
  std::uint64_t latest = 0;
  for (int i = 0; i < 300; ++i) {
    const auto exponent = static_cast<unsigned>(w.bench.uniform(1, 4));
    const unsigned qp = static_cast<unsigned>(i < 8 ? (i % 2) * 255 : w.bench.uniform(0, 255));
    w.begun(qp);
    // Around the moment in which the sweep is there, half of the time.
    const auto until = w.bench.chance(0.5) ? 4 * qp + w.bench.uniform(0, 16) : w.bench.uniform(0, kUnit - 1);
    while (w.bench.cycle % kUnit != (until + kUnit - 8) % kUnit) w.tick();
    const auto start = w.bench.cycle;
    w.left(qp, exponent, 7);
    while (!w.dut().expired_valid_o) w.tick();
    CHECK(w.dut().expired_qp_o == qp);
    const auto took = w.bench.cycle - start;
    CHECK(took >= (kUnit << exponent));
    CHECK(took <= (kUnit << exponent) + kUnit + 8);
    latest = std::max(latest, took - (kUnit << exponent));
    w.tick(true);
    w.clear(qp);
  }
  CHECK(latest > kUnit * 9 / 10);
}

TEST_CASE(
    "qp_timer: an expiry that progress has overtaken is taken back, or does not stand, whatever the sweep is doing",
    "[rtl]") {
  World w(seed(3));
  auto& dut = w.dut();
  constexpr unsigned kQp = 77;
  w.watching = false;
  const auto begin = [&] {
    w.clear(kQp);
    w.begun(kQp);
    while (w.bench.cycle % kUnit != 5) w.tick();
    const auto from = w.bench.cycle;
    w.left(kQp, 1, 100);
    return from;
  };
  auto from = begin();
  while (!dut.expired_valid_o) w.tick();
  const auto due = w.bench.cycle - from;
  w.clear(78);
  CHECK(dut.expired_valid_o == 1);
  w.clear(kQp);  // not accepted yet: taken back
  w.tick();
  CHECK(dut.expired_valid_o == 0);
  enum class What { kProgress, kLast, kBack, kWait };
  for (const auto what : {What::kProgress, What::kLast, What::kBack, What::kWait}) {
    const auto happen = [&] {
      if (what == What::kProgress) w.ack(1, kQp, 2, 90);
      if (what == What::kLast) w.ack(0, kQp, 2, 101);
      if (what == What::kBack) w.stop(kQp);
      if (what == What::kWait) w.wait(kQp, 4);
    };
    for (auto at = due - 10; at < due + 4; ++at) {
      INFO("case " << static_cast<int>(what) << ", " << due << " at " << at);
      from = begin();
      while (w.bench.cycle - from < at) w.tick();
      happen();
      for (unsigned i = 0; i < kSettled; ++i) w.bench.tick();
      REQUIRE(dut.expired_valid_o == 0);
      const auto again = w.bench.cycle;
      while (w.bench.cycle - again < 4 * kUnit - 2 * kSettled) {
        w.bench.tick();
        REQUIRE(dut.expired_valid_o == 0);
      }
      // It runs on when something is awaited still, and in a wait.
      const bool runs = what == What::kProgress || what == What::kWait;
      for (unsigned i = 0; i < 3 * kUnit; ++i) w.bench.tick();
      REQUIRE(dut.expired_valid_o == runs);
    }
    // Accepted just before, in that cycle, or just after.
    for (unsigned accept = 0; accept < 6; ++accept) {
      INFO("case " << static_cast<int>(what) << ", accepted at " << accept);
      from = begin();
      while (!dut.expired_valid_o) w.tick();
      CHECK(dut.expired_qp_o == kQp);
      if (accept < 3) {
        w.tick(true);
        CHECK(dut.stands_o == 1);
        for (unsigned i = 0; i < accept; ++i) w.tick();
        happen();
      } else {
        happen();
        for (unsigned i = 3; i < accept; ++i) w.bench.tick();
        dut.expired_ready_i = 1;
        w.bench.tick();
        dut.expired_ready_i = 0;
      }
      w.bench.tick();
      REQUIRE(dut.stands_o == 0);
      for (unsigned i = 0; i < kSettled; ++i) w.bench.tick();
      REQUIRE(dut.stands_o == 0);
      REQUIRE(dut.expired_valid_o == 0);
    }
  }
  // The end of a wait stands, whatever is acknowledged: the queue would wait for ever.
  w.clear(kQp);
  w.wait(kQp, 2);
  while (!dut.expired_valid_o) w.tick();
  w.ack(0, kQp, 1, 5);
  w.settle();
  REQUIRE(dut.expired_valid_o == 1);
  w.tick(true);
  CHECK(dut.stands_o == 1);
  w.ack(0, kQp, 1, 5);
  w.settle();
  CHECK(dut.stands_o == 1);
}

// 9.7.6.1.3, 9.9.2.1: what is sent again has its whole time, however much of before leaves meanwhile.
TEST_CASE("qp_timer: packets that were made before the queue went back start no timer, those made since do", "[rtl]") {
  World w(seed(5));
  constexpr unsigned kQp = 9;
  const auto none_for = [&](std::uint64_t units) {
    for (std::uint64_t i = 0; i < units * kUnit; ++i) {
      w.tick();
      REQUIRE(w.dut().expired_valid_o == 0);
    }
  };
  for (const bool rnr : {false, true}) {
    for (unsigned before = 1; before <= 3; ++before) {
      w.clear(kQp);
      w.begun(kQp);
      w.left(kQp, 1, 0);
      w.settle();
      for (unsigned i = 0; i < before; ++i) w.stop(kQp);
      if (rnr) {
        w.wait(kQp, 1);
        while (!w.dut().expired_valid_o) w.tick();
        w.tick(true);
      }
      w.settle();
      for (std::uint32_t psn = 1; psn < 5; ++psn) {
        w.left(kQp, 1, psn, rnr || psn < 3 ? before : 1);
        none_for(2);
      }
      w.left(kQp, 1, 0);
      w.settle();
      CHECK(w.timers[kQp].running);
      while (!w.dut().expired_valid_o) w.tick();
      CHECK(w.dut().expired_qp_o == kQp);
      w.tick(true);
    }
  }
}

TEST_CASE("qp_timer: events of all sources at their highest rate, none is lost", "[rtl]") {
  World w(seed(4));
  auto& dut = w.dut();
  auto& bench = w.bench;
  // Every QP sends and is acknowledged all but the last packet: its timer has to expire. Reports of what has left never
  // pause.
  std::array<bool, 256> seen{};
  for (unsigned qp = 0; qp < 256; ++qp) w.begun(qp);
  unsigned next_left = 0, next_port[2] = {0, 0};
  std::array<std::uint64_t, 2> port_at{};
  std::array<bool, 256> gone{};
  unsigned wait_limit = 0;
  for (std::uint64_t cycle = 0; cycle < 20'000; ++cycle) {
    w.quiet();
    if (next_left < 256) {
      put(dut.left_data_i, World::event(next_left, 1, 50));
      dut.left_valid_i = 1;
    }
    for (unsigned port = 0; port < 2; ++port) {
      auto& qp = next_port[port];
      if (qp < 256 && bench.cycle >= port_at[port] && gone[qp]) {
        put_slice(dut.ack_data_i, port, World::event(qp, 1, port == 0 ? 40 : 50));
        dut.ack_valid_i = static_cast<std::uint8_t>(dut.ack_valid_i | 1u << port);
        port_at[port] = bench.cycle + (port == 0 ? 3 : 5);
        ++qp;
      }
    }
    dut.expired_ready_i = 1;
    dut.clk_i = 0;
    dut.eval();
    if (dut.left_valid_i && dut.left_ready_o) {
      gone[next_left++] = true;
      wait_limit = 0;
    } else if (dut.left_valid_i) {
      REQUIRE(++wait_limit < 5);
    }
    if (dut.expired_valid_o) seen[dut.expired_qp_o] = true;
    bench.tick();
  }
  for (unsigned qp = 0; qp < 256; ++qp) {
    INFO("QP " << qp);
    CHECK(seen[qp]);
  }
}
