#include <Vqp_timer.h>

#include <map>
#include <optional>

#include "tests/rtl/completion_models.hpp"

// rtl/completion/qp_timer.sv: InfiniBand specification 9.7.6.1.3 (a time-out is never early, and at most so much late).
using namespace rnic;
using namespace rnic::test;

namespace {

constexpr unsigned kPorts = 3;
constexpr std::uint64_t kUnit = 1024;

struct Timer {
  std::uint64_t earliest = 0, latest = 0;
  bool waiting = false;  // an RNR wait: acknowledgements do not touch it
};

struct World {
  explicit World(std::uint64_t s) : bench(s) {
    auto& dut = *bench.dut;
    dut.ack_valid_i = dut.wait_valid_i = dut.clear_valid_i = dut.expired_ready_i = 0;
    bench.reset();
  }
  void set(unsigned qp, std::uint64_t units, bool wait) {
    timers[qp] = Timer{bench.cycle + units * kUnit, bench.cycle + (units + 8) * kUnit, wait};  // others may be in the way
  }
  /// One cycle: events as given, an expiry accepted if `ready`.
  void tick(bool ready) {
    auto& dut = *bench.dut;
    dut.expired_ready_i = ready;
    dut.clk_i = 0;
    dut.eval();
    if (dut.expired_valid_o && ready) {
      const unsigned qp = dut.expired_qp_o;
      INFO("QP " << qp << " at cycle " << bench.cycle);
      auto& slot = timers[qp];
      const bool due = slot && bench.cycle >= slot->earliest;
      REQUIRE((due || late[qp]));
      // One that was on its way out when the timer was set again leaves the new one running.
      if (late[qp]) late[qp] = false;
      else slot.reset();
      ++expired;
    }
    bench.tick();
    dut.ack_valid_i = dut.wait_valid_i = dut.clear_valid_i = 0;
  }

  Bench<Vqp_timer> bench;
  std::map<unsigned, std::optional<Timer>> timers;
  std::map<unsigned, bool> late;
  std::uint64_t expired = 0;
};

}  // namespace

TEST_CASE("qp_timer: never early, at most two units late, not at all when cleared", "[rtl]") {
  World w(seed());
  auto& bench = w.bench;
  auto& dut = *bench.dut;
  std::array<std::uint64_t, kPorts> next{};
  for (std::uint64_t step = 0; step < 400'000; ++step) {
    std::uint32_t used = 0;
    bool set = false;
    for (unsigned port = 0; port < kPorts; ++port) {
      if (bench.cycle < next[port] || !bench.chance(0.002)) continue;
      next[port] = bench.cycle + 4;
      rtl::TimerEvent event;
      event.qp = static_cast<std::uint8_t>(bench.uniform(0, 40) * 6);
      event.exponent = static_cast<std::uint8_t>(bench.uniform(0, 4));
      put_slice(dut.ack_data_i, port, event);
      used |= 1u << port;
      // Events of one QP in one cycle have no order.
      bool alone = true;
      for (unsigned other = 0; other < port; ++other) alone = alone && !((used >> other & 1) && get_slice<rtl::TimerEvent>(dut.ack_data_i, other).qp == event.qp);
      if (!alone) {
        used &= ~(1u << port);
        continue;
      }
      const auto& slot = w.timers[event.qp];
      if (event.exponent != 0 && !(slot && slot->waiting)) w.set(event.qp, 1ull << event.exponent, false);
    }
    dut.ack_valid_i = static_cast<std::uint8_t>(used);
    if (used == 0 && bench.chance(0.0005)) {
      const auto qp = static_cast<std::uint8_t>(bench.uniform(0, 40) * 6);
      const auto units = bench.uniform(1, 20);
      dut.wait_valid_i = 1;
      dut.wait_qp_i = qp;
      dut.wait_units_i = static_cast<std::uint32_t>(units);
      w.set(qp, units, true);
      set = true;
    } else if (used == 0 && bench.chance(0.0005)) {
      const auto qp = static_cast<std::uint8_t>(bench.uniform(0, 40) * 6);
      dut.clear_valid_i = 1;
      dut.clear_qp_i = qp;
      w.timers[qp].reset();
      w.late[qp] = false;
    }
    w.tick(dut.clear_valid_i == 0 && used == 0 && !set && bench.chance(0.5));
    // Quiet cycles between, so that one event has been taken before the next of its QP. What has expired by then did so before it.
    if (used != 0 || set) {
      for (int i = 0; i < 4; ++i) w.tick(false);
      const unsigned out = dut.expired_qp_o;
      if (dut.expired_valid_o && w.timers[out] && bench.cycle < w.timers[out]->earliest) w.late[out] = true;
    }
    for (const auto& [qp, slot] : w.timers) {
      INFO("QP " << qp);
      REQUIRE((!slot || bench.cycle <= slot->latest));
    }
  }
  CHECK(w.expired > 300);
}

TEST_CASE("qp_timer: one timer alone is at most two units late", "[rtl]") {
  World w(seed(2));
  for (unsigned exponent = 1; exponent < 5; ++exponent) {
    rtl::TimerEvent event;
    event.qp = static_cast<std::uint8_t>(w.bench.uniform(0, 255));
    event.exponent = static_cast<std::uint8_t>(exponent);
    put_slice(w.bench.dut->ack_data_i, 1, event);
    w.bench.dut->ack_valid_i = 2;
    const auto start = w.bench.cycle;
    w.tick(false);
    while (!w.bench.dut->expired_valid_o) w.tick(false);
    CHECK(w.bench.dut->expired_qp_o == event.qp);
    CHECK(w.bench.cycle - start >= (kUnit << exponent));
    CHECK(w.bench.cycle - start <= (kUnit << exponent) + 2 * kUnit + 8);
    w.late[event.qp] = true;
    w.tick(true);
  }
}

TEST_CASE("qp_timer: a timer that is started again, or cleared, does not expire any more, whatever the sweep is doing", "[rtl]") {
  World w(seed(3));
  auto& dut = *w.bench.dut;
  const auto start = [&](unsigned exponent) {
    put_slice(dut.ack_data_i, 1, rtl::TimerEvent{.qp = 77, .exponent = static_cast<std::uint8_t>(exponent)});
    dut.ack_valid_i = 2;
    w.tick(false);
  };
  const auto clear = [&](std::uint8_t qp) {
    dut.clear_valid_i = 1;
    dut.clear_qp_i = qp;
    w.tick(false);
  };
  const auto begin = [&] {
    while (w.bench.cycle % kUnit != 5) w.tick(false);
    const auto from = w.bench.cycle;
    start(1);
    return from;
  };
  auto from = begin();
  while (!dut.expired_valid_o) w.tick(false);
  const auto due = w.bench.cycle - from;
  clear(78);
  CHECK(dut.expired_valid_o == 1);
  clear(77);  // not accepted yet: taken back
  CHECK(dut.expired_valid_o == 0);
  unsigned in_time = 0;
  for (auto at = due - 8; at < due + 2; ++at) {
    from = begin();
    while (w.bench.cycle - from < at) w.tick(false);
    start(2);
    const auto again = w.bench.cycle;
    // An expiry that is out by now was before the start.
    if (!dut.expired_valid_o) {
      ++in_time;
      while (w.bench.cycle - again < 4 * kUnit - 8) {
        w.tick(false);
        REQUIRE(dut.expired_valid_o == 0);
      }
    }
    clear(77);
    CHECK(dut.expired_valid_o == 0);
  }
  CHECK(in_time > 4);
  CHECK(in_time < 10);
}
