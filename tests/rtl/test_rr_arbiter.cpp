#include <Vrr_arbiter.h>

#include "tests/support/rtl_bench.hpp"

// rtl/common/rr_arbiter.sv: a requester waits at most N - 1 other grants.
using namespace rnic::test;

TEST_CASE("rr_arbiter: one grant, only to a requester, within one round", "[rtl]") {
  constexpr int kN = 4;
  Bench<Vrr_arbiter> bench(seed());
  auto& dut = *bench.dut;
  dut.request_i = 0;
  dut.advance_i = 0;
  bench.reset();
  std::array<int, kN> waited{};
  std::uint32_t request = 0;
  for (int cycle = 0; cycle < 20000; ++cycle) {
    request |= static_cast<std::uint32_t>(bench.uniform(0, 15) & bench.uniform(0, 15));
    dut.request_i = static_cast<CData>(request);
    dut.advance_i = bench.chance(0.7);
    dut.clk_i = 0;
    dut.eval();
    const std::uint32_t grant = dut.grant_o;
    REQUIRE(__builtin_popcount(grant) == (request != 0));
    REQUIRE((grant & ~request) == 0);
    if (dut.advance_i) {
      for (int i = 0; i < kN; ++i) {
        waited[i] = (grant >> i & 1) || !(request >> i & 1) ? 0 : waited[i] + 1;
        REQUIRE(waited[i] < kN);
      }
      request &= ~grant;
    }
    dut.clk_i = 1;
    dut.eval();
  }
}
