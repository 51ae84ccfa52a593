#include <Vbar_regs.h>

#include <map>
#include <set>

#include "driver/generated/host_interface.hpp"
#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/host/bar_regs.sv against the register table of the host interface.
using namespace rnic::test;
namespace hw = rnic::hw;
namespace reg = rnic::hw::reg;
using rnic::rtl::RegReq;

namespace {
/// The register page with a stand-in for the MSI-X table (64 words) and the counters (their number times 1000).
struct World : Agent {
  explicit World(std::uint64_t seed_value) : bench(seed_value) {
    auto& dut = *bench.dut;
    dut.reg_req_valid_i = 0;
    dut.ready_i = dut.fatal_i = dut.quiet_i = 0;
    dut.pending_i = 0;
    dut.counter_done_i = 0;
    bench.reset();
    bench.add(*this);
  }
  void drive() override {
    auto& dut = *bench.dut;
    dut.table_rd_data_i = table_word;
    dut.counter_done_i = 0;
    if (dut.counter_valid_o && bench.chance(0.4)) {
      dut.counter_done_i = 1;
      dut.counter_data_i = 1000u * dut.counter_index_o;
    }
  }
  void sample() override {
    auto& dut = *bench.dut;
    if (dut.table_wr_en_o) {
      auto& word = table[dut.table_index_o];
      for (unsigned b = 0; b < 8; ++b) {
        if (dut.table_be_o >> b & 1) word = (word & ~(0xffULL << 8 * b)) | (dut.table_wr_data_o & 0xffULL << 8 * b);
      }
    }
    if (dut.table_rd_en_o) table_word = table[dut.table_index_o];
    restarts += dut.admin_restart_o;
  }
  void access(const RegReq& request) {
    auto& dut = *bench.dut;
    put(dut.reg_req_data_i, request);
    dut.reg_req_valid_i = 1;
    for (bool taken = false; !taken;) {
      dut.eval();
      taken = dut.reg_req_ready_o;
      REQUIRE(!dut.reg_rsp_valid_o);
      bench.tick();
    }
    dut.reg_req_valid_i = 0;
  }
  void write(std::uint32_t address, std::uint64_t data, std::uint8_t enables = 0xff) {
    RegReq request;
    request.write = 1;
    request.addr = static_cast<std::uint16_t>(address);
    request.data = data;
    request.be = enables;
    access(request);
  }
  std::uint64_t read(std::uint32_t address, std::uint8_t enables = 0xff) {
    RegReq request;
    request.addr = static_cast<std::uint16_t>(address);
    request.be = enables;
    request.data = bench.rng();
    access(request);
    const std::uint64_t start = bench.cycle;
    bench.run_until([&] { return bench.dut->reg_rsp_valid_o != 0; }, 50, "answer to a read");
    latency = bench.cycle - start + 1;
    const std::uint64_t data = bench.dut->reg_rsp_data_o;
    bench.tick();
    REQUIRE(!bench.dut->reg_rsp_valid_o);
    return data;
  }
  Bench<Vbar_regs> bench;
  std::array<std::uint64_t, 64> table{};
  std::uint64_t table_word = 0, restarts = 0, latency = 0;
};

std::uint64_t merge(std::uint64_t old, std::uint64_t data, std::uint8_t enables) {
  for (unsigned b = 0; b < 8; ++b) {
    if (enables >> b & 1) old = (old & ~(0xffULL << 8 * b)) | (data & 0xffULL << 8 * b);
  }
  return old;
}
}  // namespace

TEST_CASE("bar_regs: a driver finds every block by the headers", "[rtl]") {
  World world(seed());
  std::map<unsigned, std::uint32_t> found;
  std::uint32_t offset = 0;
  do {
    const auto header = hw::RegIdentityHeader::from_word(world.read(offset));
    CHECK(header.version == hw::kBlockVersion);
    found[header.block_type] = offset;
    offset = header.next_offset;
  } while (offset != 0 && found.size() < 10);
  CHECK(found == std::map<unsigned, std::uint32_t>{{hw::kBlockTypeIdentity, reg::kIdentityHeader},
                                                   {hw::kBlockTypeAdmin, reg::kAdminHeader},
                                                   {hw::kBlockTypePort, reg::kPortHeader},
                                                   {hw::kBlockTypeMsix, reg::kMsixHeader},
                                                   {hw::kBlockTypeCounters, reg::kCountersHeader}});
  const auto identity = hw::RegIdentity::from_word(world.read(reg::kIdentity));
  CHECK(identity.magic == hw::kDeviceMagic);
  CHECK(identity.vendor_id == hw::kPciVendorId);
  CHECK(identity.device_id == hw::kPciDeviceId);
  CHECK(world.latency <= 2);
}

TEST_CASE("bar_regs: registers keep their bytes, read-only ones do not change", "[rtl]") {
  World world(seed());
  auto& dut = *world.bench.dut;
  // Writable bits of each register; what is not listed reads as it did before any write.
  const std::map<std::uint32_t, std::uint64_t> writable = {
      {reg::kDeviceControl, 1},       {reg::kAdminCommandBase, ~0ULL}, {reg::kAdminCompletionBase, ~0ULL},
      {reg::kAdminConfig, 0x1fff},    {reg::kAdminDoorbell, 0xffff},   {reg::kPortMac, 0xffffffffffffULL},
      {reg::kCompletionTimeout, 0xf}, {reg::kPortEthernet, 0x7ffffff}, {reg::kPortGroups, ~0ULL}};
  // Time-out ranges of PCI Express Device Control 2 (7.5.3.16) in us; others are not taken. Of the default range, 50 us
  // to 50 ms, less than 10 ms is not recommended.
  struct Range {
    std::uint64_t from_us, to_us;
  };
  const std::map<std::uint64_t, Range> ranges = {
      {0, {10'000, 50'000}},  {1, {50, 100}},          {2, {1000, 10'000}},         {5, {16'000, 55'000}},
      {6, {65'000, 210'000}}, {9, {260'000, 900'000}}, {10, {1'000'000, 3'500'000}}};
  std::set<std::uint64_t> ranges_seen;
  std::map<std::uint32_t, std::uint64_t> expected;
  auto dynamic = [](std::uint32_t a) { return a == reg::kCycleCounter || a >= reg::kMsixTable; };
  for (std::uint32_t a = 0; a < hw::kUarPageBytes; a += 8) {
    if (!dynamic(a)) expected[a] = world.read(a);
  }
  std::uint64_t restarts = 0;
  for (int round = 0; round < 6000; ++round) {
    std::uint32_t address = static_cast<std::uint32_t>(world.bench.uniform(0, 0x7f)) * 8;
    if (world.bench.chance(0.5))
      address = std::next(writable.begin(), static_cast<long>(world.bench.uniform(0, writable.size() - 1)))->first;
    if (dynamic(address)) continue;
    if (world.bench.chance(0.5)) {
      const std::uint64_t data = world.bench.rng();
      const auto enables = static_cast<std::uint8_t>(world.bench.chance(0.3) ? 0xff : world.bench.rng());
      world.write(address, data, enables);
      const bool refused = address == reg::kCompletionTimeout && !ranges.contains(data & 0xf);
      if (writable.contains(address) && !refused) {
        const std::uint64_t keep = writable.at(address);
        expected[address] = (merge(expected[address], data, enables) & keep) | (expected[address] & ~keep);
      }
      if (address == reg::kAdminConfig && enables) {
        expected[reg::kAdminDoorbell] = 0;  // the indexes begin again
        ++restarts;
      }
    } else {
      REQUIRE(world.read(address) == expected[address]);
    }
    REQUIRE(dut.device_enable_o == expected[reg::kDeviceControl]);
    // Near the middle: a quarter of the range away from its ends, in cycles of 4 ns.
    const auto [from_us, to_us] = ranges.at(expected[reg::kCompletionTimeout]);
    const std::uint64_t timeout_ns = dut.completion_timeout_o * 4ull, quarter_ns = (to_us - from_us) * 250;
    REQUIRE(timeout_ns > from_us * 1000 + quarter_ns);
    REQUIRE(timeout_ns < to_us * 1000 - quarter_ns);
    ranges_seen.insert(expected[reg::kCompletionTimeout]);
    REQUIRE(dut.port_mac_o == expected[reg::kPortMac]);
    const auto control = hw::RegPortEthernet::from_word(expected[reg::kPortEthernet]);
    const rnic::rtl::Ethernet ethernet{.qpn = control.qpn,
                                       .enable = static_cast<std::uint8_t>(control.enable),
                                       .all_groups = static_cast<std::uint8_t>(control.all_groups),
                                       .promiscuous = static_cast<std::uint8_t>(control.promiscuous),
                                       .groups = expected[reg::kPortGroups]};
    REQUIRE(get<rnic::rtl::Ethernet>(dut.ethernet_o) == ethernet);
    REQUIRE(dut.command_base_o == expected[reg::kAdminCommandBase]);
    REQUIRE(dut.completion_base_o == expected[reg::kAdminCompletionBase]);
    REQUIRE(dut.admin_config_o == expected[reg::kAdminConfig]);
    REQUIRE(dut.producer_index_o == expected[reg::kAdminDoorbell]);
  }
  world.bench.tick();
  CHECK(world.restarts == restarts);
  CHECK(ranges_seen.size() == ranges.size());
}

TEST_CASE("bar_regs: status, cycles, MSI-X table, pending bits, counters", "[rtl]") {
  World world(seed());
  auto& dut = *world.bench.dut;
  for (unsigned bits = 0; bits < 8; ++bits) {
    dut.ready_i = bits & 1;
    dut.fatal_i = bits >> 1 & 1;
    dut.quiet_i = bits >> 2;
    CHECK(world.read(reg::kDeviceStatus) == bits);
  }
  for (const std::uint64_t up : {0, 1}) {
    dut.link_up_i = up != 0;
    CHECK(world.read(reg::kPortStatus) == up);
  }
  const std::uint64_t first = world.read(reg::kCycleCounter), at = world.bench.cycle;
  world.bench.run(100);
  const std::uint64_t second = world.read(reg::kCycleCounter);
  CHECK(second - first == world.bench.cycle - at);
  // Since the reset, whatever the time was.
  world.bench.reset();
  const std::uint64_t begin = world.bench.cycle;
  world.bench.run(10);
  const std::uint64_t since = world.read(reg::kCycleCounter);
  CHECK(since >= 10);
  CHECK(since <= world.bench.cycle - begin);
  dut.pending_i = 0x80000005;
  CHECK(world.read(reg::kMsixPending) == 0x80000005);
  std::array<std::uint64_t, 64> table{};
  for (int round = 0; round < 1000; ++round) {
    const auto index = static_cast<std::uint32_t>(world.bench.uniform(0, 63));
    const std::uint64_t data = world.bench.rng();
    const auto enables = static_cast<std::uint8_t>(world.bench.rng());
    world.write(reg::kMsixTable + 8 * index, data, enables);
    table[index] = merge(table[index], data, enables);
    const auto look = static_cast<std::uint32_t>(world.bench.uniform(0, 63));
    REQUIRE(world.read(reg::kMsixTable + 8 * look) == table[look]);
  }
  CHECK(world.table == table);
  for (std::uint32_t i = 0; i < 128; ++i) {
    CHECK(world.read(reg::kCounterBase + 8 * i) == (i < hw::kCounterNames.size() ? 1000 * i : 0));
  }
  for (std::uint32_t a = reg::kCounterBase + 8 * 128; a < hw::kUarPageBytes; a += 8) CHECK(world.read(a) == 0);
}
