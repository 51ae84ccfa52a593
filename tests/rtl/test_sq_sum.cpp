#include <Vsq_sum.h>

#include <array>

#include "driver/generated/host_interface.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/sq/sq_sum.sv: the lengths of a WQE's data segments, and of nothing else in its slot.
using namespace rnic;
using namespace rnic::test;

namespace {

constexpr unsigned kSegments = 32;  // of the largest slot

struct Wqe {
  hw::WqeControl control;
  unsigned header = 0;                           // segments in front of the data segments, control included
  std::array<std::uint32_t, kSegments> words{};  // what stands where a data segment has its length
};

/// The sum as the engine asks for it: the first line with the start, the others in the cycle after they were named.
std::uint64_t sum_of(Vsq_sum& dut, const Wqe& wqe, Bench<Vsq_sum>& bench, int& lines) {
  put(dut.control_i, wqe.control);
  dut.header_segments_i = static_cast<CData>(wqe.header);
  lines = 0;
  bool more = true;
  unsigned line = 0;
  while (more) {
    REQUIRE(line < kSegments / 4);
    for (unsigned i = 0; i < 16; ++i) dut.line_i[i] = static_cast<std::uint32_t>(bench.rng());
    for (unsigned i = 0; i < 4; ++i) dut.line_i[i * 4 + 2] = wqe.words[line * 4 + i];
    dut.start_i = lines == 0;
    dut.run_i = lines != 0;
    ++lines;
    dut.clk_i = 0;
    dut.eval();
    more = dut.more_o;
    line = dut.next_line_o;
    bench.tick();
  }
  dut.start_i = dut.run_i = 0;
  return dut.sum_o;
}

}  // namespace

TEST_CASE("sq_sum: data segments add up, whatever stands before and behind them", "[rtl]") {
  Bench<Vsq_sum> bench(seed());
  auto& dut = *bench.dut;
  for (int round = 0; round < 5000; ++round) {
    Wqe wqe;
    wqe.header = static_cast<unsigned>(bench.uniform(1, 4));
    wqe.control.size = static_cast<std::uint8_t>(wqe.header + bench.uniform(0, 16));
    wqe.control.inline_data = bench.chance(0.2);
    wqe.control.opcode = static_cast<std::uint8_t>(bench.rng());
    std::uint64_t expected = 0;
    for (unsigned i = 0; i < kSegments; ++i) {
      wqe.words[i] = bench.chance(0.3) ? 0xffffffff - static_cast<std::uint32_t>(bench.uniform(0, 3))
                                       : static_cast<std::uint32_t>(bench.rng());
      if (i >= wqe.header && i < wqe.control.size) expected += wqe.words[i];
    }
    int lines = 0;
    const auto sum = sum_of(dut, wqe, bench, lines);
    // Of inline data only the first line is looked at, and the sum means nothing.
    if (wqe.control.inline_data) {
      CHECK(lines == 1);
    } else {
      CHECK(sum == expected);
      CHECK(lines == std::max(1, (wqe.control.size + 3) / 4));
    }
  }
}

TEST_CASE("sq_sum: a size beyond the slot ends at its last line", "[rtl]") {
  Bench<Vsq_sum> bench(seed(2));
  Wqe wqe;
  wqe.header = 1;
  wqe.control.size = 255;
  wqe.words.fill(0xffffffff);
  int lines = 0;
  CHECK(sum_of(*bench.dut, wqe, bench, lines) == 31 * 0xffffffffULL);
  CHECK(lines == 8);
}
