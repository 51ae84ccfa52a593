#include <Vctx_manager.h>

#include "tests/support/rtl_bench.hpp"

// rtl/common/ctx_manager.sv: exclusive ownership, no lost update, progress of every client; who holds a
// context hears that another asks for it.
using namespace rnic::test;

namespace {
constexpr int kClients = 4;
constexpr int kEntries = 16;
constexpr std::uint64_t kMask = (1ULL << 40) - 1;

/// A client that increments random contexts, holding each for a random time.
struct Client {
  enum class State { kIdle, kAsking, kWaiting, kHolding, kReleasing } state = State::kIdle;
  std::uint64_t index = 0, value = 0, update = 0, hold = 0, done = 0;
  bool write = false;
};
}  // namespace

TEST_CASE("ctx_manager: random clients never lose an update and never share a context", "[rtl]") {
  Bench<Vctx_manager> bench(seed());
  auto& dut = *bench.dut;
  std::array<Client, kClients> clients;
  std::array<std::uint64_t, kEntries> expected{};
  std::array<int, kEntries> owner;
  owner.fill(-1);
  dut.acq_valid_i = dut.rel_valid_i = dut.rel_write_i = 0;
  bench.reset();
  bench.run_until([&] { return dut.ready_o != 0; }, 100, "ready");

  std::uint32_t contended = 0, told = 0;  // clients for whose context another asked a cycle ago
  for (int cycle = 0; cycle < 20000; ++cycle) {
    std::uint32_t acquire = 0, release = 0, write = 0, indexes = 0;
    std::array<std::uint64_t, kClients> data{};
    for (int i = 0; i < kClients; ++i) {
      auto& c = clients[i];
      if (c.state == Client::State::kIdle && bench.chance(0.5)) {
        c.state = Client::State::kAsking;
        c.index = bench.uniform(0, bench.chance(0.5) ? 1 : kEntries - 1);
      }
      if (c.state == Client::State::kHolding && c.hold-- == 0) c.state = Client::State::kReleasing;
      if (c.state == Client::State::kAsking) acquire |= 1u << i;
      if (c.state == Client::State::kReleasing) {
        release |= 1u << i;
        if (c.write) write |= 1u << i;
        data[i] = c.update;
      }
      indexes |= static_cast<std::uint32_t>(c.index) << (4 * i);
    }
    dut.acq_valid_i = acquire;
    dut.acq_index_i = indexes;
    dut.rel_valid_i = release;
    dut.rel_write_i = write;
    for (std::size_t word = 0; word < 5; ++word) {
      std::uint32_t bits = 0;
      for (std::size_t bit = 0; bit < 32; ++bit) {
        const std::size_t at = word * 32 + bit;
        bits |= static_cast<std::uint32_t>(data[at / 40] >> (at % 40) & 1) << bit;
      }
      dut.rel_data_i[word] = bits;
    }
    dut.clk_i = 0;
    dut.eval();
    if (cycle > 0) REQUIRE(dut.contended_o == contended);
    contended = 0;
    for (std::size_t i = 0; i < kClients; ++i) {
      if ((acquire >> i & 1) && owner[clients[i].index] >= 0) contended |= 1u << owner[clients[i].index];
    }
    told += contended != 0;
    for (int i = 0; i < kClients; ++i) {
      auto& c = clients[i];
      if ((acquire & dut.acq_ready_o) >> i & 1) {
        REQUIRE(owner[c.index] == -1);
        owner[c.index] = i;
        c.state = Client::State::kWaiting;
      } else if (dut.ctx_valid_o >> i & 1) {
        REQUIRE(c.state == Client::State::kWaiting);
        c.value = dut.ctx_data_o;
        REQUIRE(c.value == expected[c.index]);
        c.hold = bench.uniform(0, 5);
        c.write = bench.chance(0.7);
        c.update = bench.uniform(0, kMask);
        c.state = Client::State::kHolding;
      } else if ((release & dut.rel_ready_o) >> i & 1) {
        if (c.write) expected[c.index] = c.update;
        owner[c.index] = -1;
        c.state = Client::State::kIdle;
        ++c.done;
      }
    }
    dut.clk_i = 1;
    dut.eval();
  }
  for (const auto& c : clients) CHECK(c.done > 500);
  CHECK(told > 1000);
}
