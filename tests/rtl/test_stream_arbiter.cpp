#include <Vstream_arbiter.h>

#include <cstdlib>

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

TEST_CASE("stream_arbiter: sources that always have a packet get the same share, however seldom one leaves", "[rtl]") {
  constexpr int kSources = 3;
  for (const double rate : {1.0, 0.7, 0.5, 0.3, 0.1}) {
    for (const int words : {1, 3}) {
      Bench<Vstream_arbiter> bench(seed());
      auto& dut = *bench.dut;
      dut.in_valid_i = dut.out_ready_i = 0;
      bench.reset();
      std::array<int, kSources> sent{}, packets{};
      dut.in_valid_i = 7;
      dut.in_data_i = 0;
      for (int cycle = 0; cycle < 6000; ++cycle) {
        std::uint32_t last = 0;
        for (int i = 0; i < kSources; ++i) last |= static_cast<std::uint32_t>(sent[i] % words == words - 1) << i;
        dut.in_last_i = static_cast<CData>(last);
        // Every other cycle, every third: a rhythm finds more than chance.
        const int period = static_cast<int>(1 / rate);
        dut.out_ready_i = words == 1 ? cycle % period == 0 : bench.chance(rate);
        dut.clk_i = 0;
        dut.eval();
        if (dut.out_valid_o && dut.out_ready_i && dut.out_last_o) ++packets[dut.out_source_o];
        for (int i = 0; i < kSources; ++i) sent[i] += dut.in_ready_o >> i & 1;
        dut.clk_i = 1;
        dut.eval();
      }
      INFO("ready at " << rate << ", packets of " << words << ": " << packets[0] << " " << packets[1] << " "
                       << packets[2]);
      REQUIRE(packets[0] > 50);
      for (int i = 1; i < kSources; ++i) CHECK(std::abs(packets[i] - packets[0]) <= 1);
    }
  }
}
