#include <Vsge_seek.h>

#include <array>
#include <numeric>

#include "tests/support/rtl_bench.hpp"

// rtl/sq/sge_seek.sv: the entry and offset in it where a message goes on.
using namespace rnic::test;

TEST_CASE("sge_seek: the byte that comes next, past empty entries and over line borders", "[rtl]") {
  Bench<Vsge_seek> bench(seed());
  auto& dut = *bench.dut;
  dut.start_i = 0;
  bench.reset();
  int borders = 0, empty = 0;
  for (int round = 0; round < 5000; ++round) {
    const auto header = static_cast<unsigned>(bench.uniform(1, 4));
    const auto count = static_cast<unsigned>(bench.uniform(1, 16));
    std::array<std::uint32_t, 32> words;
    for (auto& word : words) word = static_cast<std::uint32_t>(bench.rng());
    std::uint64_t total = 0;
    for (unsigned i = 0; i < count; ++i) {
      auto& length = words[header + i];
      length = static_cast<std::uint32_t>(bench.chance(0.25)  ? 0
                                          : bench.chance(0.2) ? 0x40000000
                                                              : bench.uniform(1, 5000));
      if (total + length > 0x80000000) length = 0;
      total += length;
    }
    if (total == 0) continue;
    const bool at_border = bench.chance(0.5);
    std::uint64_t offset = bench.uniform(0, total - 1);
    if (at_border) {  // the first byte of an entry, or the last
      offset = 0;
      for (unsigned i = 0, stop = static_cast<unsigned>(bench.uniform(0, count - 1)); i < stop; ++i)
        offset += words[header + i];
      if (offset > 0 && (offset == total || bench.chance(0.5))) --offset;
    }
    // The same by counting bytes.
    unsigned index = 0;
    std::uint64_t left = offset;
    while (left >= words[header + index]) left -= words[header + index++];
    empty += words[header + (index ? index - 1 : 0)] == 0;
    borders += (header + index) / 4 > 0;

    dut.header_segments_i = static_cast<CData>(header);
    dut.offset_i = static_cast<IData>(offset);
    dut.start_i = 1;
    bench.tick();
    dut.start_i = 0;
    dut.offset_i = static_cast<IData>(bench.rng());
    bool done = false;
    int reading = -1;
    for (int cycle = 0; cycle < 30 && !done; ++cycle) {
      dut.clk_i = 0;
      dut.eval();
      if (dut.done_o) {
        done = true;
        CHECK(dut.sge_index_o == index);
        CHECK(dut.sge_offset_o == left);
      }
      reading = dut.rd_en_o ? dut.rd_line_o : -1;
      bench.tick();
      if (reading >= 0) {
        for (unsigned i = 0; i < 16; ++i) dut.line_i[i] = static_cast<std::uint32_t>(bench.rng());
        for (unsigned i = 0; i < 4; ++i) dut.line_i[i * 4 + 2] = words[static_cast<unsigned>(reading) * 4 + i];
      }
    }
    REQUIRE(done);
  }
  CHECK(borders > 1000);
  CHECK(empty > 100);
}
