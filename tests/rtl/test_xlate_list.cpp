#include <Vxlate_list.h>

#include <deque>
#include <map>

#include "driver/generated/host_interface.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/xlate/xlate_list.sv: what was written comes back, under the id with which it was asked for, in order, and holds
// until it is taken.
using namespace rnic;
using namespace rnic::test;

namespace {

using Line = std::array<std::uint64_t, 8>;
constexpr std::size_t kEntries = 16;

struct World : Agent {
  explicit World(std::uint64_t s) : bench(s) {
    auto& d = *bench.dut;
    d.wr_valid_i = d.req_valid_i = d.rsp_ready_i = 0;
    bench.reset();
    bench.add(*this);
  }
  void drive() override {
    auto& d = *bench.dut;
    d.wr_valid_i = bench.chance(0.3);
    const auto line =
        static_cast<std::uint32_t>(bench.chance(0.5) ? bench.uniform(0, 7) : hw::kListLines - 1 - bench.uniform(0, 7));
    // Nobody writes what somebody is reading.
    for (const auto& [id, asked] : under_way) {
      if (asked == line) d.wr_valid_i = 0;
    }
    written_line = line;
    for (auto& page : written) page = bench.rng();
    d.wr_line_i = static_cast<std::uint16_t>(line);
    port_from_bytes(d.wr_data_i, std::span(reinterpret_cast<const std::uint8_t*>(written.data()), 64));
    d.req_valid_i = 0;
    if (under_way.size() < kEntries && !lines.empty() && bench.chance(ask_rate)) {
      auto at = lines.begin();
      std::advance(at, static_cast<std::ptrdiff_t>(bench.uniform(0, lines.size() - 1)));
      if (!(d.wr_valid_i && at->first == line)) {
        d.req_valid_i = 1;
        d.req_id_i = static_cast<std::uint8_t>(bench.uniform(0, kEntries - 1));
        d.req_line_i = static_cast<std::uint16_t>(at->first);
      }
    }
    d.rsp_ready_i = bench.chance(take_rate);
  }
  void sample() override {
    auto& d = *bench.dut;
    if (d.rsp_valid_o) {
      REQUIRE_FALSE(under_way.empty());
      const auto [id, line] = under_way.front();
      Line got{};
      port_to_bytes(d.rsp_data_o, std::span(reinterpret_cast<std::uint8_t*>(got.data()), 64));
      REQUIRE(d.rsp_id_o == id);
      REQUIRE(got == lines.at(line));
      if (d.rsp_ready_i) {
        under_way.pop_front();
        ++answers;
      }
    }
    if (d.req_valid_i) under_way.emplace_back(d.req_id_i, d.req_line_i);
    if (d.wr_valid_i) {
      // Pages are aligned to 4 KiB at least.
      for (auto& page : written) page &= ~0xfffull;
      lines[written_line] = written;
    }
  }

  Bench<Vxlate_list> bench;
  std::map<std::uint32_t, Line> lines;
  std::deque<std::pair<unsigned, std::uint32_t>> under_way;
  Line written{};
  std::uint32_t written_line = 0;
  std::uint64_t answers = 0;
  double ask_rate = 0.5, take_rate = 0.5;
};

}  // namespace

TEST_CASE("xlate_list: lines come back in order, under their ids, with any back-pressure", "[rtl]") {
  World w(seed());
  for (const auto& [ask, take] : {std::pair{0.5, 0.5}, {1.0, 0.2}, {0.1, 1.0}, {1.0, 1.0}}) {
    w.ask_rate = ask;
    w.take_rate = take;
    w.bench.run(4000);
  }
  CHECK(w.answers > 4000);
  // A line a cycle.
  const auto before = w.answers;
  w.bench.run(1000);
  CHECK(w.answers - before > 800);
}
