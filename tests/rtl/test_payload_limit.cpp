#include <Vpayload_limit.h>

#include <deque>

#include "tests/support/rtl_bench.hpp"

// rtl/common/payload_limit.sv: how much is between the two points, packet by packet; two more come when below_o has
// gone.
using namespace rnic::test;

TEST_CASE("payload_limit: below while less than the limit is inside", "[rtl]") {
  constexpr std::uint64_t kLimit = 8192;
  Bench<Vpayload_limit> bench(seed());
  auto& dut = *bench.dut;
  dut.in_valid_i = dut.out_valid_i = 0;
  bench.reset();
  std::deque<std::uint16_t> inside;
  std::uint64_t bytes = 0, full = 0, most = 0;
  unsigned late = 0;  // packets that have come since there was no room
  double rate = 0.5;
  for (int cycle = 0; cycle < 50'000; ++cycle) {
    if (cycle % 500 == 0) rate = bench.uniform(1, 9) / 10.0;
    dut.eval();
    REQUIRE((dut.below_o != 0) == (bytes < kLimit));
    full += bytes == kLimit;
    if (dut.below_o) late = 0;
    dut.in_valid_i = bench.chance(rate) && (dut.below_o || late++ < 2);
    dut.in_bytes_i = static_cast<std::uint16_t>(bench.chance(0.3)   ? 4096
                                                : bench.chance(0.2) ? 0
                                                                    : bench.uniform(1, 4096));
    dut.out_valid_i = !inside.empty() && bench.chance(0.5);
    if (dut.out_valid_i) {
      dut.out_bytes_i = inside.front();
      bytes -= inside.front();
      inside.pop_front();
    }
    if (dut.in_valid_i) {
      inside.push_back(static_cast<std::uint16_t>(dut.in_bytes_i));
      bytes += dut.in_bytes_i;
    }
    most = std::max(most, bytes);
    bench.tick();
  }
  CHECK(full > 0);
  CHECK(most > kLimit + 2 * 4096);
}
