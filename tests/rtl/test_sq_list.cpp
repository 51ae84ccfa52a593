#include <Vsq_list.h>

#include <algorithm>
#include <array>
#include <optional>

#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/sq/sq_list.sv: the lines of one WQE after the other, each once and in order, whenever the buffer is free and
// whenever they are taken.
using namespace rnic;
using namespace rnic::test;

namespace {

/// The WQE buffer: 8 lines a queue pair, whose data stays until the next reading, which others do too.
struct World : Agent {
  explicit World(std::uint64_t s) : bench(s) {
    auto& d = *bench.dut;
    d.run_i = d.rd_ready_i = d.mem_list_ready_i = 0;
    for (auto& line : buffer) {
      for (auto& byte : line) byte = static_cast<std::uint8_t>(bench.rng());
    }
    bench.reset();
    bench.add(*this);
  }
  void drive() override {
    auto& d = *bench.dut;
    d.rd_ready_i = bench.chance(free_rate);
    d.mem_list_ready_i = bench.chance(take_rate);
    rtl::MemList line;
    std::copy(shown.begin(), shown.end(), line.data.begin());
    put(d.rd_data_i, line);
  }
  void sample() override {
    auto& d = *bench.dut;
    const bool reads = d.rd_valid_o && d.rd_ready_i;
    if (reads) {
      shown = buffer.at(d.rd_addr_o);
      ++readings;
    } else if (!d.rd_ready_i) {
      shown = buffer.at(bench.uniform(0, buffer.size() - 1));
    }
    // What is offered stays, as long as somebody may want it.
    if (held && d.run_i) {
      REQUIRE(d.mem_list_valid_o);
      REQUIRE(get<rtl::MemList>(d.mem_list_data_o) == *held);
    }
    held.reset();
    if (d.mem_list_valid_o && !d.mem_list_ready_i) held = get<rtl::MemList>(d.mem_list_data_o);
    if (d.mem_list_valid_o && d.mem_list_ready_i) taken.push_back(get<rtl::MemList>(d.mem_list_data_o));
  }
  void begin(unsigned qp, unsigned first, unsigned lines) {
    auto& d = *bench.dut;
    taken.clear();
    readings = 0;
    d.addr_i = static_cast<std::uint16_t>(qp * 8 + first);
    d.lines_i = static_cast<std::uint8_t>(lines);
    d.run_i = 1;
  }
  void end() {
    bench.dut->run_i = 0;
    bench.tick();
  }
  void check(unsigned qp, unsigned first) {
    for (std::size_t i = 0; i < taken.size(); ++i) {
      const auto& line = buffer.at(qp * 8 + (first + i) % 8);
      REQUIRE(std::equal(line.begin(), line.end(), taken[i].data.begin()));
    }
  }

  Bench<Vsq_list> bench;
  std::array<std::array<std::uint8_t, 64>, 2048> buffer{};
  std::array<std::uint8_t, 64> shown{};
  std::vector<rtl::MemList> taken;
  std::optional<rtl::MemList> held;
  std::size_t readings = 0;
  double free_rate = 0.4, take_rate = 0.4;
};

}  // namespace

TEST_CASE("sq_list: all lines of a WQE, each once, in order, round the ring of its queue pair; no other is read",
          "[rtl]") {
  World w(seed());
  for (int round = 0; round < 2000; ++round) {
    const auto qp = static_cast<unsigned>(w.bench.uniform(0, 255)),
               first = static_cast<unsigned>(w.bench.uniform(0, 7)),
               lines = static_cast<unsigned>(w.bench.uniform(1, 8));
    w.free_rate = w.bench.chance(0.3) ? 1 : 0.3;
    w.take_rate = w.bench.chance(0.3) ? 1 : 0.3;
    w.begin(qp, first, lines);
    // The taker stops in the middle now and then: an operation that is refused takes nothing more.
    const auto wanted = w.bench.chance(0.3) ? w.bench.uniform(0, lines) : lines;
    w.bench.run_until([&] { return w.taken.size() >= wanted; }, 1000, "lines");
    if (wanted == lines) {
      w.bench.run(w.bench.uniform(0, 20));
      CHECK(w.taken.size() == lines);
      CHECK(w.readings == lines);
    } else {
      w.bench.run(w.bench.uniform(0, 3));
    }
    w.end();
    w.check(qp, first);
    const auto before = w.taken.size();
    w.bench.run(w.bench.uniform(0, 5));
    CHECK(w.taken.size() == before);
    CHECK(w.bench.dut->mem_list_valid_o == 0);
    CHECK(w.bench.dut->rd_valid_o == 0);
  }
}
