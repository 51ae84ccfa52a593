#include <Vstream_arbiter.h>

#include "tests/support/rtl_bench.hpp"

// rtl/common/stream_arbiter.sv and rr_arbiter.sv: packets stay whole, sources in order, nobody starves.
using namespace rnic::test;

TEST_CASE("stream_arbiter: packets of three sources never mix", "[rtl]") {
  constexpr int kSources = 3;
  Bench<Vstream_arbiter> bench(seed());
  auto& dut = *bench.dut;
  dut.in_valid_i = dut.out_ready_i = 0;
  bench.reset();
  std::array<int, kSources> next{}, seen{}, left{}, packets{};
  std::array<bool, kSources> offering{};
  std::array<int, kSources> length{};
  int owner = -1;
  for (int cycle = 0; cycle < 30000; ++cycle) {
    std::uint32_t valid = 0, last = 0, data = 0;
    for (int i = 0; i < kSources; ++i) {
      if (left[i] == 0) left[i] = length[i] = static_cast<int>(bench.uniform(1, 5));
      if (!offering[i]) offering[i] = bench.chance(i == 0 ? 1.0 : 0.5);
      valid |= static_cast<std::uint32_t>(offering[i]) << i;
      last |= static_cast<std::uint32_t>(left[i] == 1) << i;
      data |= static_cast<std::uint32_t>(next[i] & 0xff) << (8 * i);
    }
    dut.in_valid_i = static_cast<CData>(valid);
    dut.in_last_i = static_cast<CData>(last);
    dut.in_data_i = data;
    dut.out_ready_i = bench.chance(0.8);
    dut.clk_i = 0;
    dut.eval();
    REQUIRE(__builtin_popcount(valid & dut.in_ready_o) <= 1);
    if (dut.out_valid_o && dut.out_ready_i) {
      const int source = dut.out_source_o;
      REQUIRE((owner == -1 || owner == source));
      REQUIRE(dut.out_data_o == (seen[source] & 0xff));
      ++seen[source];
      owner = dut.out_last_o ? -1 : source;
      packets[source] += dut.out_last_o;
    }
    for (int i = 0; i < kSources; ++i) {
      if (offering[i] && (dut.in_ready_o >> i & 1)) {
        ++next[i];
        --left[i];
        offering[i] = false;
      }
    }
    dut.clk_i = 1;
    dut.eval();
  }
  for (int i = 0; i < kSources; ++i) CHECK(packets[i] > 1000);
}
