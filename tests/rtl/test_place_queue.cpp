#include <Vplace_queue.h>

#include "tests/support/rtl_bench.hpp"

// rtl/common/place_queue.sv: one order, nothing lost, and a source for which a place is kept is never kept waiting.
using namespace rnic::test;

namespace {
constexpr unsigned kSources = 3, kDepth = 4;

struct World {
  explicit World(std::uint64_t s) : bench(s) {
    bench.dut->in_valid_i = bench.dut->out_ready_i = 0;
    bench.reset();
  }
  /// One cycle; what each source offers is given by `offers`.
  void cycle(std::array<bool, kSources> offers, bool ready) {
    auto& dut = *bench.dut;
    std::uint64_t data = 0;
    unsigned valid = 0;
    for (unsigned i = 0; i < kSources; ++i) {
      valid |= unsigned{offers[i]} << i;
      data |= std::uint64_t{i << 12 | (sent[i] & 0xfff)} << (16 * i);
    }
    dut.in_valid_i = static_cast<CData>(valid);
    dut.in_data_i = data;
    dut.out_ready_i = ready;
    dut.clk_i = 0;
    dut.eval();
    kept = dut.kept_o;
    taken = valid & dut.in_ready_o;
    REQUIRE((taken & ~kept) == 0);
    if (dut.out_valid_o && ready) {
      REQUIRE(!order.empty());
      REQUIRE(dut.out_data_o == order.front());
      order.pop_front();
      ++left;
    }
    for (unsigned i = 0; i < kSources; ++i) {
      if (!(taken >> i & 1)) continue;
      order.push_back(i << 12 | (sent[i]++ & 0xfff));
    }
    REQUIRE(order.size() + static_cast<unsigned>(__builtin_popcount(kept)) <=
            kDepth + static_cast<unsigned>(__builtin_popcount(taken)));
    dut.clk_i = 1;
    dut.eval();
  }
  Bench<Vplace_queue> bench;
  std::array<unsigned, kSources> sent{};
  std::deque<unsigned> order;
  unsigned kept = 0, taken = 0;
  std::uint64_t left = 0;
};
}  // namespace

TEST_CASE("place_queue: one order, and a kept place is there however long nothing leaves", "[rtl]") {
  World w(seed());
  auto& bench = w.bench;
  std::array<bool, kSources> offering{};
  std::array<unsigned, kSources> waited{};
  double leaving = 1;
  std::uint64_t held = 0;
  for (unsigned step = 0; step < 40000; ++step) {
    if (step % 200 == 0) leaving = bench.chance(0.4) ? 0 : bench.chance(0.5) ? 1 : 0.3;
    for (unsigned i = 0; i < kSources; ++i) {
      // Source 2 offers whenever it likes, the others only what a place is kept for; a kept place stays.
      if (!offering[i]) offering[i] = bench.chance(i == 1 ? 0.1 : 0.6) && (i == 2 || (w.kept & ~w.taken) >> i & 1);
    }
    const unsigned before = w.kept & ~w.taken;
    w.cycle(offering, bench.chance(leaving));
    REQUIRE((before & ~w.kept) == 0);
    held += leaving == 0 && w.order.size() >= kDepth - kSources;
    for (unsigned i = 0; i < kSources; ++i) {
      if (!offering[i]) continue;
      if (w.taken >> i & 1) {
        offering[i] = false;
        waited[i] = 0;
      } else if (w.kept >> i & 1) {
        REQUIRE(++waited[i] < kSources);
      }
    }
  }
  for (const unsigned sent : w.sent) CHECK(sent > 500);
  CHECK(held > 1000);
}

TEST_CASE("place_queue: with nothing to leave every source still has one place, and no more", "[rtl]") {
  World w(seed());
  for (int i = 0; i < 20; ++i) w.cycle({}, false);
  CHECK(w.kept == 7);
  // Source 0 fills what is free; the places of the others stay theirs.
  for (int i = 0; i < 20; ++i) w.cycle({true, false, false}, false);
  CHECK(w.order.size() == kDepth - 2);
  CHECK(w.kept == 6);
  w.cycle({false, true, true}, false);
  w.cycle({false, w.taken != 2, w.taken != 4}, false);
  CHECK(w.order.size() == kDepth);
  for (int i = 0; i < 20; ++i) w.cycle({}, true);
  CHECK(w.left == kDepth);
  CHECK(w.kept == 7);
}

TEST_CASE("place_queue: one word a cycle from one source", "[rtl]") {
  World w(seed());
  for (int i = 0; i < 10; ++i) w.cycle({}, true);
  const auto before = w.left;
  for (int i = 0; i < 1000; ++i) w.cycle({true, false, false}, true);
  CHECK(w.left - before > 300);
}
