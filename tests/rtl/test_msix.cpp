#include <Vmsix.h>

#include <array>
#include <map>

#include "driver/generated/host_interface.hpp"
#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/host/msix.sv (PCI Express base specification 6.1.4, 7.7.2): messages, masks, pending bits, table.
using namespace rnic::test;
using rnic::rtl::DmaWr;

namespace {
constexpr unsigned kVectors = rnic::hw::kMsixVectors;

/// The two request streams, the write port, the table, and what is expected of them.
struct World : Agent {
  explicit World(std::uint64_t seed_value) : bench(seed_value) {
    auto& dut = *bench.dut;
    dut.cfg_enable_i = 0;
    dut.cfg_mask_i = 0;
    dut.table_wr_en_i = dut.table_rd_en_i = 0;
    dut.req_valid_i = 0;
    dut.wr_ready_i = 0;
    bench.reset();
    bench.add(*this);
  }

  void drive() override {
    auto& dut = *bench.dut;
    std::uint32_t valid = 0, vectors = dut.req_vector_i;
    for (unsigned s = 0; s < 2; ++s) {
      if (!offering[s] && !queue[s].empty() && bench.chance(rate)) {
        offering[s] = true;
        vectors = (vectors & ~(0xffu << (8 * s))) | (std::uint32_t{queue[s].front()} << (8 * s));
      }
      valid |= std::uint32_t{offering[s]} << s;
    }
    dut.req_valid_i = static_cast<std::uint8_t>(valid);
    dut.req_vector_i = static_cast<std::uint16_t>(vectors);
    dut.wr_ready_i = bench.chance(ready_rate);
  }

  void sample() override {
    auto& dut = *bench.dut;
    for (unsigned s = 0; s < 2; ++s) {
      if (!offering[s] || !(dut.req_ready_o >> s & 1)) continue;
      const unsigned vector = queue[s].front();
      queue[s].pop_front();
      offering[s] = false;
      if (vector < kVectors) {
        ++asked[vector];
        last_asked[vector] = bench.cycle;
      }
    }
    CHECK(static_cast<bool>(dut.sent_o) == (dut.wr_valid_o && dut.wr_ready_i));
    if (dut.wr_valid_o && dut.wr_ready_i) take(get<DmaWr>(dut.wr_data_o));
  }

  void take(const DmaWr& write) {
    REQUIRE(write.length == 4);
    REQUIRE(write.last == 1);
    REQUIRE(write.addr % 4 == 0);
    const std::size_t lane = write.addr % 64;
    std::uint32_t data = 0;
    std::memcpy(&data, write.data.data() + lane, 4);
    const auto found = by_address.find(write.addr);
    REQUIRE(found != by_address.end());
    const unsigned vector = found->second;
    REQUIRE(data == message[vector]);
    ++sent[vector];
    REQUIRE(sent[vector] <= asked[vector]);
    last_sent[vector] = bench.cycle;
  }

  void write(unsigned index, std::uint64_t data, std::uint8_t enables = 0xff) {
    auto& dut = *bench.dut;
    dut.table_wr_en_i = 1;
    dut.table_index_i = static_cast<std::uint8_t>(index);
    dut.table_wr_data_i = data;
    dut.table_be_i = enables;
    bench.tick();
    dut.table_wr_en_i = 0;
  }
  std::uint64_t read(unsigned index) {
    auto& dut = *bench.dut;
    dut.table_rd_en_i = 1;
    dut.table_index_i = static_cast<std::uint8_t>(index);
    bench.tick();
    dut.table_rd_en_i = 0;
    return dut.table_rd_data_o;
  }
  void mask(unsigned vector, bool on) { write(2 * vector + 1, std::uint64_t{on} << 32, 0x10); }
  void fill_table(bool mask_all) {
    for (unsigned v = 0; v < kVectors; ++v) {
      const std::uint64_t address = (bench.rng() & ~0xfffULL) | (v << 2) | (bench.rng() & 0xf80);
      message[v] = static_cast<std::uint32_t>(bench.rng());
      by_address[address] = v;
      write(2 * v, address);
      write(2 * v + 1, std::uint64_t{mask_all} << 32 | message[v]);
    }
  }
  bool served(unsigned vector) const { return asked[vector] == 0 || last_sent[vector] > last_asked[vector]; }
  bool idle() const { return queue[0].empty() && queue[1].empty() && !offering[0] && !offering[1]; }

  Bench<Vmsix> bench;
  double rate = 1, ready_rate = 1;
  std::deque<std::uint8_t> queue[2];
  bool offering[2] = {};
  std::map<std::uint64_t, unsigned> by_address;
  std::array<std::uint32_t, kVectors> message{};
  std::array<std::uint64_t, kVectors> asked{}, sent{}, last_asked{}, last_sent{};
};
}  // namespace

TEST_CASE("msix: the table keeps bytes, and all vectors are masked after reset", "[rtl]") {
  World world(seed());
  std::array<std::uint64_t, 2 * kVectors> expected{};
  for (unsigned i = 0; i < 2 * kVectors; ++i) {
    if (i % 2) CHECK((world.read(i) >> 32) == 1);
    world.write(i, 0);
  }
  for (int round = 0; round < 2000; ++round) {
    const auto index = static_cast<unsigned>(world.bench.uniform(0, 2 * kVectors - 1));
    const std::uint64_t data = world.bench.rng();
    const auto enables = static_cast<std::uint8_t>(world.bench.rng());
    world.write(index, data, enables);
    for (unsigned b = 0; b < 8; ++b) {
      if (!(enables >> b & 1)) continue;
      expected[index] = (expected[index] & ~(0xffULL << (8 * b))) | (data & 0xffULL << (8 * b));
    }
    if (index % 2) expected[index] &= 0x1ffffffffULL;  // vector control has one bit
    const auto look = static_cast<unsigned>(world.bench.uniform(0, 2 * kVectors - 1));
    REQUIRE(world.read(look) == expected[look]);
  }
}

TEST_CASE("msix: an open vector sends one message a request", "[rtl]") {
  World world(seed());
  world.fill_table(false);
  world.bench.dut->cfg_enable_i = 1;
  world.rate = 0.6;
  world.ready_rate = 0.4;
  for (int i = 0; i < 1500; ++i) {
    world.queue[world.bench.uniform(0, 1)].push_back(
        static_cast<std::uint8_t>(world.bench.uniform(0, world.bench.chance(0.5) ? 2 : 40)));
  }
  for (int i = 0; i < 30000; ++i) {
    if (world.bench.chance(0.2)) {
      world.read(static_cast<unsigned>(world.bench.uniform(0, 2 * kVectors - 1)));  // host reads compete for the table
    } else {
      world.bench.tick();
    }
  }
  REQUIRE(world.idle());
  CHECK(world.sent == world.asked);
  CHECK(world.bench.dut->pending_o == 0);
}

TEST_CASE("msix: what is masked or disabled stays pending, merges, and leaves when the last obstacle goes", "[rtl]") {
  World world(seed());
  auto& dut = *world.bench.dut;
  world.fill_table(true);
  dut.cfg_enable_i = 0;
  for (int i = 0; i < 3; ++i) world.queue[1].push_back(7);
  world.queue[0].push_back(7);
  world.queue[0].push_back(9);
  world.bench.run(50);
  REQUIRE(world.idle());
  CHECK(dut.pending_o == (1u << 7 | 1u << 9));
  dut.cfg_enable_i = 1;
  world.bench.run(50);
  dut.cfg_mask_i = 1;
  world.mask(7, false);
  world.bench.run(50);
  CHECK(dut.pending_o == (1u << 7 | 1u << 9));
  CHECK(world.sent[7] == 0);
  dut.cfg_mask_i = 0;
  world.bench.run(50);
  CHECK(dut.pending_o == 1u << 9);
  CHECK(world.sent[7] == 1);
  CHECK(world.sent[9] == 0);
  world.mask(9, false);
  world.bench.run(50);
  CHECK(dut.pending_o == 0);
  CHECK(world.sent[9] == 1);
}

TEST_CASE("msix: each obstacle alone holds a message back (7.7.2.2, 7.7.3.4)", "[rtl]") {
  World world(seed());
  auto& dut = *world.bench.dut;
  world.fill_table(false);
  const auto open = [&](bool enabled, bool function_masked, bool vector_masked) {
    dut.cfg_enable_i = enabled;
    dut.cfg_mask_i = function_masked;
    world.mask(5, vector_masked);
  };
  const std::array<std::array<bool, 3>, 3> obstacles{{{false, false, false}, {true, true, false}, {true, false, true}}};
  std::uint64_t sent = 0;
  for (const auto& [enabled, function_masked, vector_masked] : obstacles) {
    open(enabled, function_masked, vector_masked);
    world.queue[1].push_back(5);
    world.bench.run(50);
    CHECK(dut.pending_o == 1u << 5);
    CHECK(world.sent[5] == sent);
    open(true, false, false);
    world.bench.run(50);
    CHECK(dut.pending_o == 0);
    CHECK(world.sent[5] == ++sent);
  }
}

TEST_CASE("msix: random masking loses nothing", "[rtl]") {
  World world(seed());
  auto& bench = world.bench;
  world.fill_table(false);
  bench.dut->cfg_enable_i = 1;
  world.rate = 0.3;
  for (int i = 0; i < 30000; ++i) {
    world.ready_rate = bench.chance(0.5) ? 0.2 : 1.0;
    if (world.queue[1].size() < 4) world.queue[1].push_back(static_cast<std::uint8_t>(bench.uniform(0, 7)));
    if (world.queue[0].empty()) world.queue[0].push_back(static_cast<std::uint8_t>(bench.uniform(0, 7)));
    if (bench.chance(0.05)) world.mask(static_cast<unsigned>(bench.uniform(0, 7)), bench.chance(0.5));
    if (bench.chance(0.02)) bench.dut->cfg_mask_i = bench.chance(0.3);
    if (bench.chance(0.02)) bench.dut->cfg_enable_i = bench.chance(0.8);
    bench.tick();
  }
  const auto sent_before = world.sent;
  bench.dut->cfg_enable_i = 1;
  bench.dut->cfg_mask_i = 0;
  const std::uint32_t pending = bench.dut->pending_o;
  for (unsigned v = 0; v < 8; ++v) world.mask(v, false);
  world.ready_rate = 1;
  bench.run(400);
  REQUIRE(world.idle());
  CHECK(bench.dut->pending_o == 0);
  for (unsigned v = 0; v < 8; ++v) {
    CHECK(world.sent[v] > 10);
    CHECK(world.sent[v] <= world.asked[v]);
    if (pending >> v & 1) CHECK(world.sent[v] > sent_before[v]);
    // The last request of a vector is always followed by a message.
    CHECK(world.served(v));
  }
}
