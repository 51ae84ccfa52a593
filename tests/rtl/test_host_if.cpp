#include <Vhost_if.h>

#include <map>

#include "driver/generated/host_interface.hpp"
#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/host/host_if.sv as a driver sees it: bring-up by registers, an admin command with its interrupt, doorbells,
// counters.
using namespace rnic::test;
namespace hw = rnic::hw;
namespace reg = rnic::hw::reg;
namespace rtl = rnic::rtl;

namespace {
/// Registers by blocking calls, host memory behind the DMA ports, and nothing else of the NIC.
struct World : Agent {
  explicit World(std::uint64_t seed_value) : bench(seed_value) {
    auto& dut = *bench.dut;
    dut.contexts_ready_i = dut.reg_req_valid_i = dut.uar_req_valid_i = dut.msix_valid_i = 0;
    dut.cfg_msix_enable_i = 1;
    dut.cfg_msix_mask_i = 0;
    dut.rd_rsp_valid_i = dut.admin_wr_done_i = dut.msix_wr_done_i = 0;
    dut.acq_ready_i = dut.ctx_valid_i = dut.rel_ready_i = 0;
    dut.mpt_req_ready_i = dut.mpt_rsp_valid_i = 0;
    dut.mem_op_ready_i = dut.mem_op_rsp_valid_i = dut.multicast_done_i = 0;
    dut.drain_ready_i = dut.qp_reset_ready_i = dut.qp_error_ready_i = dut.flushing_i = 0;
    dut.sq_doorbell_ready_i = dut.rq_doorbell_ready_i = dut.cq_doorbell_ready_i = dut.eq_doorbell_ready_i =
        dut.srq_doorbell_ready_i = 1;
    dut.wqe_push_ready_i = 1;
    set_port_bits(dut.event_i, std::bitset<hw::kCounterNames.size()>{});
    set_port_bits(dut.qp_event_i, std::bitset<5 * hw::kQpCounters>{});
    dut.moved_i = dut.quiet_i = dut.link_up_i = 0;
    bench.reset();
    bench.add(*this);
  }
  void drive() override {
    auto& dut = *bench.dut;
    const std::array<unsigned, 6> now{dut.cfg_msix_enable_i, dut.cfg_msix_mask_i, dut.link_up_i,
                                      dut.contexts_ready_i,  dut.device_enable_o, dut.ready_o};
    dut.moved_i = std::exchange(levels, now) != now;  // as nic_rest tells it
    dut.event_i = events;
    dut.rd_req_ready_i = bench.chance(0.7);
    if (!beats.empty()) put(dut.rd_rsp_data_i, beats.front());
    dut.rd_rsp_valid_i = !beats.empty();
    dut.admin_wr_ready_i = bench.chance(0.7);
    dut.admin_wr_done_i = std::exchange(written, false);
    dut.msix_wr_ready_i = bench.chance(0.7);
  }
  void sample() override {
    auto& dut = *bench.dut;
    events = dut.event_o;
    if (dut.rd_rsp_valid_i && dut.rd_rsp_ready_o) beats.pop_front();
    if (dut.rd_req_valid_o && dut.rd_req_ready_i) {
      const auto request = get<rtl::DmaRdReq>(dut.rd_req_data_o);
      for (unsigned i = 0; i < request.length / 64u; ++i) {
        rtl::DmaRdRsp beat;
        beat.data = memory[request.addr + 64 * i];
        beat.bytes = 64;
        beat.last = i + 1 == request.length / 64u;
        beats.push_back(beat);
      }
    }
    if (dut.admin_wr_valid_o && dut.admin_wr_ready_i) {
      const auto write = get<rtl::DmaWr>(dut.admin_wr_data_o);
      memory[write.addr] = write.data;
      written = true;
    }
    if (dut.msix_wr_valid_o && dut.msix_wr_ready_i) {
      const auto write = get<rtl::DmaWr>(dut.msix_wr_data_o);
      std::uint32_t data = 0;
      std::memcpy(&data, write.data.data() + write.addr % 64, 4);
      messages.emplace_back(write.addr, data);
    }
    for (const bool valid : {dut.sq_doorbell_valid_o != 0, dut.rq_doorbell_valid_o != 0, dut.cq_doorbell_valid_o != 0,
                             dut.eq_doorbell_valid_o != 0, dut.srq_doorbell_valid_o != 0})
      doorbells += valid;
  }
  void access(const rtl::RegReq& request) {
    auto& dut = *bench.dut;
    put(dut.reg_req_data_i, request);
    dut.reg_req_valid_i = 1;
    for (bool taken = false; !taken;) {
      dut.eval();
      taken = dut.reg_req_ready_o;
      bench.tick();
    }
    dut.reg_req_valid_i = 0;
  }
  void write(std::uint32_t address, std::uint64_t data) {
    access({.write = 1, .addr = static_cast<std::uint16_t>(address), .data = data, .be = 0xff});
  }
  std::uint64_t read(std::uint32_t address) {
    access({.write = 0, .addr = static_cast<std::uint16_t>(address), .data = 0, .be = 0xff});
    bench.run_until([&] { return bench.dut->reg_rsp_valid_o != 0; }, 20, "answer");
    const std::uint64_t data = bench.dut->reg_rsp_data_o;
    bench.tick();
    return data;
  }
  std::uint64_t counter(hw::Counter index) { return read(reg::kCounterBase + 8 * static_cast<std::uint32_t>(index)); }
  void uar(unsigned page, std::uint32_t address, std::uint64_t value) {
    rtl::UarReq request;
    request.uar = static_cast<std::uint8_t>(page);
    request.addr = static_cast<std::uint16_t>(address);
    std::memcpy(request.data.data() + address % 64, &value, 8);
    put(bench.dut->uar_req_data_i, request);
    bench.dut->uar_req_valid_i = 1;
    bench.tick();
    bench.dut->uar_req_valid_i = 0;
    bench.run(3);
  }
  void bring_up() {
    bench.dut->contexts_ready_i = 1;
    bench.run_until([&] { return read(reg::kDeviceStatus) == 1; }, 2000, "ready");
    write(reg::kAdminCommandBase, kCommands);
    write(reg::kAdminCompletionBase, kCompletions);
    hw::RegAdminConfig config;
    config.log_depth = 4;
    config.interrupt_vector = 3;
    config.interrupt_enable = 1;
    write(reg::kAdminConfig, config.word());
    write(reg::kMsixTable + 16 * 3, kMessageAddress);
    write(reg::kMsixTable + 16 * 3 + 8, kMessageData);  // and not masked
  }
  static constexpr std::uint64_t kCommands = 0x10000, kCompletions = 0x20000, kMessageAddress = 0xfee01004,
                                 kMessageData = 0x4321;
  std::array<unsigned, 6> levels{};
  Bench<Vhost_if> bench;
  std::map<std::uint64_t, std::array<std::uint8_t, 64>> memory;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> messages;
  std::deque<rtl::DmaRdRsp> beats;
  std::remove_reference_t<decltype(Vhost_if::event_i)> events{};
  unsigned doorbells = 0;
  bool written = false;
};
}  // namespace

TEST_CASE("host_if: not ready until every context is cleared", "[rtl]") {
  World world(seed());
  world.bench.run(1100);
  CHECK(world.read(reg::kDeviceStatus) == 0);
  world.bench.dut->contexts_ready_i = 1;
  CHECK(world.read(reg::kDeviceStatus) == 1);
}

TEST_CASE("host_if: an admin command from doorbell to interrupt", "[rtl]") {
  World world(seed());
  world.bring_up();
  hw::AdminCommand command;
  command.opcode = static_cast<std::uint8_t>(hw::AdminOpcode::kQueryCapabilities);
  command.command_id = 0x55aa;
  std::array<std::uint8_t, 128> bytes{};
  command.encode(bytes);
  std::copy_n(bytes.begin(), 64, world.memory[World::kCommands].begin());
  std::copy_n(bytes.begin() + 64, 64, world.memory[World::kCommands + 64].begin());
  world.write(reg::kAdminDoorbell, 1);
  world.bench.run(100);
  CHECK(world.messages.empty());  // the device is not enabled
  world.write(reg::kDeviceControl, 1);
  world.bench.run_until([&] { return !world.messages.empty(); }, 200, "interrupt");
  const auto completion =
      hw::AdminCompletion::decode(std::span<const std::uint8_t, 64>(world.memory[World::kCompletions]));
  CHECK(completion.phase == 1);
  CHECK(completion.status == static_cast<std::uint8_t>(hw::AdminStatus::kSuccess));
  CHECK(completion.command_id == 0x55aa);
  CHECK(hw::AdminCapabilities::decode(std::span<const std::uint8_t, 48>(completion.result)).clock_mhz == 250);
  CHECK(world.messages.front() == std::pair<std::uint64_t, std::uint32_t>{World::kMessageAddress, World::kMessageData});
  CHECK(world.counter(hw::Counter::kAdminCommands) == 1);
  CHECK(world.counter(hw::Counter::kMsixMessages) == 1);
}

TEST_CASE("host_if: events ask for messages, a masked vector shows as pending", "[rtl]") {
  World world(seed());
  world.bring_up();
  auto ask = [&](unsigned vector) {
    world.bench.dut->msix_valid_i = 1;
    world.bench.dut->msix_vector_i = static_cast<std::uint8_t>(vector);
    bool taken = false;
    while (!taken) {
      world.bench.dut->eval();
      taken = world.bench.dut->msix_ready_o;
      world.bench.tick();
    }
    world.bench.dut->msix_valid_i = 0;
    world.bench.run(30);
  };
  ask(3);
  CHECK(world.messages.size() == 1);
  ask(4);
  CHECK(world.messages.size() == 1);
  CHECK(world.read(reg::kMsixPending) == 1u << 4);
  world.write(reg::kMsixTable + 16 * 4, 0xfee02000);
  world.write(reg::kMsixTable + 16 * 4 + 8, 9);
  world.bench.run(30);
  CHECK(world.messages.back() == std::pair<std::uint64_t, std::uint32_t>{0xfee02000, 9});
  CHECK(world.read(reg::kMsixPending) == 0);
}

TEST_CASE("host_if: doorbells pass once the device is enabled", "[rtl]") {
  World world(seed());
  world.bring_up();
  for (std::uint32_t a = 0; a < 0x28; a += 8) world.uar(2, a, 1);
  CHECK(world.doorbells == 0);
  world.write(reg::kDeviceControl, 1);
  for (std::uint32_t a = 0; a < 0x28; a += 8) world.uar(2, a, 1);
  CHECK(world.doorbells == 5);
  world.write(reg::kPortMac, 0x0200deadbeefULL);
  CHECK(world.bench.dut->port_mac_o == 0x0200deadbeefULL);
}
