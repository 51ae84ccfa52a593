#include <Vcq_timer.h>

#include <map>
#include <optional>

#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/completion/cq_timer.sv with 20 cycles a microsecond: every start is answered once, not before its period, and not
// much later.
using namespace rnic::test;

namespace {
constexpr std::uint64_t kMicrosecond = 20;
constexpr std::uint64_t kScan = 256;  // a CQ a cycle

/// What it says of its rest: it may stand still until that cycle. Nothing: it may not.
std::optional<std::uint64_t> rests_until(Vcq_timer& dut, std::uint64_t now) {
  const auto rest = get<rnic::rtl::Rest>(dut.rest_o);
  if (rest.busy) return {};
  if (!rest.timed) return ~0ULL;
  const std::uint64_t left = (rest.deadline - now) & ((1ULL << 43) - 1);
  REQUIRE(left < 1ULL << 42);
  return now + left;
}
}  // namespace

TEST_CASE("cq_timer: random starts expire once, in time, also when the clock stands still meanwhile", "[rtl]") {
  const bool stands_still = GENERATE(false, true);
  std::uint64_t stood_still = 0;
  Bench<Vcq_timer> bench(seed());
  auto& dut = *bench.dut;
  dut.start_valid_i = 0;
  dut.expired_ready_i = 1;
  bench.reset();
  struct Timer {
    std::uint64_t begin, period;
  };
  std::map<unsigned, Timer> running;
  unsigned expiries = 0, restarts = 0;
  std::uint64_t stalled = 0;  // cycles in which nobody took an expiry, since a timer began
  for (int i = 0; i < 300000; ++i) {
    dut.start_valid_i = 0;
    if (bench.chance(0.01)) {
      const unsigned port = static_cast<unsigned>(bench.uniform(0, 1));
      const auto cqn = static_cast<unsigned>(bench.chance(0.5) ? bench.uniform(0, 3) : bench.uniform(0, 255));
      const auto period = bench.uniform(1, bench.chance(0.1) ? 2000 : 50);
      dut.start_valid_i = static_cast<std::uint8_t>(1u << port);
      dut.start_cqn_i = static_cast<std::uint16_t>(cqn << (8 * port));
      dut.start_period_i = static_cast<std::uint32_t>(period << (16 * port));
      restarts += running.contains(cqn);
      running[cqn] = {bench.cycle, period};
    }
    dut.expired_ready_i = bench.chance(0.8);
    dut.eval();
    if (stands_still && dut.start_valid_i == 0) {
      if (const auto until = rests_until(dut, bench.cycle)) {
        const auto most = std::min<std::uint64_t>(*until - bench.cycle, 200);
        const auto cycles = bench.chance(0.3) ? most : bench.uniform(0, most);
        bench.cycle += cycles;
        stood_still += cycles;
        bench.show_time();
        dut.eval();
      }
    }
    if (dut.expired_valid_o && !dut.expired_ready_i) ++stalled;
    if (dut.expired_valid_o && dut.expired_ready_i) {
      const unsigned cqn = dut.expired_cqn_o;
      const auto found = running.find(cqn);
      // One that had expired when it was started again may be named for the old start.
      const bool old =
          found != running.end() && bench.cycle - found->second.begin < found->second.period * kMicrosecond;
      if (!old) {
        REQUIRE(found != running.end());
        const auto passed = bench.cycle - found->second.begin;
        REQUIRE(passed <= (found->second.period + 1) * kMicrosecond + 4 * kScan);
        running.erase(found);
        ++expiries;
      } else {
        REQUIRE(bench.cycle - found->second.begin < 50);
      }
    }
    bench.tick();
  }
  CHECK(expiries > 1500);
  CHECK(restarts > 50);
  CHECK(stalled > 100);
  dut.start_valid_i = 0;
  dut.expired_ready_i = 1;
  for (std::uint64_t i = 0; i < 2100 * kMicrosecond; ++i) {
    dut.eval();
    if (dut.expired_valid_o) running.erase(dut.expired_cqn_o);
    bench.tick();
  }
  CHECK(running.empty());
  CHECK((stood_still > 20000) == stands_still);
  CHECK(rests_until(dut, bench.cycle) == ~0ULL);
}
