#include <Vram_zeroed.h>

#include <array>
#include <optional>

#include "tests/support/rtl_bench.hpp"

// rtl/common/ram_zeroed.sv: every word is zero after a reset until it is written; else a ram_1r1w.
using namespace rnic::test;

namespace {
constexpr unsigned kDepth = 512, kClearCycles = 16;

struct Ram {
  Bench<Vram_zeroed> bench{seed()};
  std::array<std::uint16_t, kDepth> words{};
  std::uint16_t read = 0;

  Ram() { reset(); }
  void reset() {
    bench.dut->wr_en_i = bench.dut->rd_en_i = 0;
    bench.reset();
    bench.run_until([&] { return bench.dut->ready_o != 0; }, kClearCycles + 1, "ready");
    words.fill(0);
  }
  /// One cycle with a write and a read; what is read is as before the write, and stays until the next read.
  void cycle(std::optional<std::pair<unsigned, std::uint16_t>> write, std::optional<unsigned> address) {
    auto& dut = *bench.dut;
    dut.wr_en_i = write.has_value();
    dut.rd_en_i = address.has_value();
    if (address) dut.rd_addr_i = *address;
    if (address) read = words[*address];
    if (write) {
      dut.wr_addr_i = write->first;
      dut.wr_data_i = write->second;
      words[write->first] = write->second;
    }
    bench.tick();
    REQUIRE(dut.rd_data_o == read);
  }
};
}  // namespace

TEST_CASE("ram_zeroed: words that are not written since the reset read as zero, all others as written", "[rtl]") {
  Ram ram;
  for (int life = 0; life < 6; ++life) {
    // Few addresses near each other, so that writes and reads of one word and of its neighbours meet in every distance.
    for (int step = 0; step < 4000; ++step) {
      const unsigned base = ram.bench.uniform(0, 3) * 128;
      const auto near = [&] { return (base + ram.bench.uniform(0, 40)) % kDepth; };
      std::optional<std::pair<unsigned, std::uint16_t>> write;
      if (ram.bench.uniform(0, 99) < 50) write = {near(), static_cast<std::uint16_t>(ram.bench.uniform(1, 65535))};
      std::optional<unsigned> address;
      if (ram.bench.uniform(0, 99) < 70)
        address = write && ram.bench.uniform(0, 3) == 0 ? write->first : static_cast<unsigned>(near());
      ram.cycle(write, address);
    }
    ram.reset();
    for (unsigned address = 0; address < kDepth; ++address) ram.cycle({}, address);
  }
}

TEST_CASE("ram_zeroed: a mark is set beside its neighbours, back to back", "[rtl]") {
  Ram ram;
  for (unsigned address = 0; address < kDepth; ++address) {
    ram.cycle({{address, static_cast<std::uint16_t>(address + 1)}}, address == 0 ? 0 : address - 1);
  }
  for (unsigned address = 0; address < kDepth; ++address) ram.cycle({}, address);
}
