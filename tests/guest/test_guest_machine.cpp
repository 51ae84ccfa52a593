#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "driver/generated/host_interface.hpp"
#include "tests/guest/fake_qemu.hpp"
#include "tests/server/server_process.hpp"
#include "tests/server/tool.hpp"

using namespace rnic;
using namespace std::chrono_literals;
using test::FakeInterrupts;
using test::FakeMemory;
using test::FakeQemu;
using test::ServerProcess;

// A machine one of whose hosts is a guest's, which a test plays here, and the RTL behind it: docs/guest.md,
// docs/host_interface.md.

namespace {

constexpr std::uint32_t kCommand = 4, kBar0 = 0x10, kExpress = 0x60, kMsix = 0xA0;
constexpr std::uint64_t kBar = 0xFEA0'0000, kRam = 0x10'0000;
constexpr std::uint64_t kCommands = kRam, kCompletions = kRam + 0x1000;
constexpr std::uint8_t kVector = 3;

struct Guest {
  explicit Guest(const ServerProcess& server, unsigned host = 0)
      : path(server.folder() + "/run/guest" + std::to_string(host)),
        qemu(FakeQemu::at(path)),
        interrupts(FakeInterrupts::at(path + ".interrupts")) {
    qemu.lend(memory, kRam);
  }

  /// As firmware and driver do, up to a device that is ready.
  void begin() {
    qemu.config_write(kBar0, kBar, 4);
    qemu.config_write(kCommand, 6, 2);
    for (unsigned looks = 0; (qemu.read(kBar + hw::reg::kDeviceStatus, 8) & 1) == 0; ++looks) REQUIRE(looks < 1000);
  }

  /// An admin queue of one entry, with its interrupt.
  void begin_admin() {
    qemu.config_write(kMsix + 2, 0x8000, 2);
    qemu.write(kBar + hw::reg::kMsixTable + 16 * kVector, 0xFEE0'1000, 4);
    qemu.write(kBar + hw::reg::kMsixTable + 16 * kVector + 4, 0, 4);
    qemu.write(kBar + hw::reg::kMsixTable + 16 * kVector + 8, 0x4021, 4);
    qemu.write(kBar + hw::reg::kMsixTable + 16 * kVector + 12, 0, 4);
    qemu.write(kBar + hw::reg::kAdminCommandBase, kCommands, 8);
    qemu.write(kBar + hw::reg::kAdminCompletionBase, kCompletions, 8);
    qemu.write(kBar + hw::reg::kAdminConfig,
               hw::RegAdminConfig{.log_depth = 0, .interrupt_vector = kVector, .interrupt_enable = true}.word(), 8);
    qemu.write(kBar + hw::reg::kDeviceControl, 1, 8);
  }

  void query(std::uint16_t id) {
    hw::AdminCommand command;
    command.opcode = static_cast<std::uint8_t>(hw::AdminOpcode::kQueryCapabilities);
    command.command_id = id;
    command.encode(std::span<std::uint8_t, hw::AdminCommand::kBytes>(memory.data() + (kCommands - kRam),
                                                                     hw::AdminCommand::kBytes));
    qemu.write(kBar + hw::reg::kAdminDoorbell, ++posted, 8);
  }
  [[nodiscard]] hw::AdminCompletion completion() const {
    return hw::AdminCompletion::decode(std::span<const std::uint8_t, hw::AdminCompletion::kBytes>(
        memory.data() + (kCompletions - kRam), hw::AdminCompletion::kBytes));
  }

  std::string path;
  FakeMemory memory{1 << 20};
  FakeQemu qemu;
  FakeInterrupts interrupts;
  std::uint16_t posted = 0;
};

std::size_t descriptors_of(pid_t process) {
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(process) + "/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::size_t mappings_of(pid_t process) {
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  std::size_t guests = 0;
  for (std::string line; std::getline(maps, line);) guests += line.find("memfd:guest") != std::string::npos ? 1 : 0;
  return guests;
}

nlohmann::json guest_of(const ServerProcess& server, std::size_t host = 0) {
  test::Tool tool;
  const auto outcome = tool.run({"stat", "--json", "--dir", server.folder() + "/run"});
  INFO(outcome.output);
  REQUIRE(outcome.code == 0);
  return nlohmann::json::parse(outcome.output).at("results").at("hosts").at(host).at("guest");
}

/// The machine has noticed that its guest is gone.
void wait_until_gone(const ServerProcess& server) {
  for (unsigned i = 0; guest_of(server).at("running").get<bool>(); ++i) {
    REQUIRE(i < 100);
    std::this_thread::sleep_for(50ms);
  }
}

std::string log_of(const ServerProcess& server) {
  std::ifstream file(server.folder() + "/log");
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("registers, DMA and MSI-X of the RTL reach a guest") {
  ServerProcess server({"--guest", "0"});
  Guest guest(server);
  CHECK(guest.qemu.config_read(0, 4) == (hw::kPciDeviceId << 16 | hw::kPciVendorId));
  CHECK(guest.qemu.read(kBar, 4) == 0xFFFF'FFFF);  // no memory space yet
  guest.begin();
  const std::uint64_t identity = guest.qemu.read(kBar + hw::reg::kIdentity, 8);
  CHECK(static_cast<std::uint32_t>(identity) == hw::kDeviceMagic);
  CHECK(identity >> 32 == (hw::kPciDeviceId << 16 | hw::kPciVendorId));
  CHECK(guest.qemu.read(kBar + hw::reg::kIdentity + 6, 2) == hw::kPciDeviceId);
  CHECK(guest.qemu.read(kBar + 0x7'F000, 8) == 0);                  // the last UAR page
  CHECK(guest.qemu.read(kBar + 0x8'0000, 8) == ~std::uint64_t{0});  // behind the BAR

  guest.begin_admin();
  for (std::uint16_t id = 0x100; id < 0x108; ++id) {
    guest.query(id);
    // The completion is there when its interrupt is.
    CHECK(guest.interrupts.line() == "writel 0xfee01000 0x4021");
    guest.interrupts.answer();
    CHECK(guest.completion().status == 0);
    CHECK(guest.completion().command_id == id);
  }

  // Masked in its table an interrupt waits.
  guest.qemu.write(kBar + hw::reg::kMsixTable + 16 * kVector + 12, 1, 4);
  guest.query(0x200);
  while (guest.completion().command_id != 0x200) std::this_thread::sleep_for(1ms);
  for (unsigned looks = 0; guest.qemu.read(kBar + hw::reg::kMsixPending, 8) != 1u << kVector; ++looks)
    REQUIRE(looks < 1000);
  guest.qemu.write(kBar + hw::reg::kMsixTable + 16 * kVector + 12, 0, 4);
  CHECK(guest.interrupts.line() == "writel 0xfee01000 0x4021");
  guest.interrupts.answer();

  // A doorbell that no queue pair has is counted by the RTL.
  guest.qemu.write(kBar + hw::kUarPageBytes + 4, 1, 4);
  const auto unsupported = hw::reg::kCounterBase + 8 * static_cast<std::uint64_t>(hw::Counter::kHostUnsupported);
  CHECK(guest.qemu.read(kBar + unsupported, 8) == 1);
  CHECK(guest_of(server).at("interrupts") == 9);
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE("bus master enable gates the NIC's DMA") {
  ServerProcess server({"--guest", "0"});
  Guest guest(server);
  guest.begin();
  guest.begin_admin();
  guest.qemu.config_write(kCommand, 2, 2);
  guest.query(7);
  std::this_thread::sleep_for(100ms);
  CHECK(guest.qemu.read(kBar + hw::reg::kDeviceStatus, 8) != ~std::uint64_t{0});
  CHECK(guest.completion().command_id == 0);
  guest.qemu.config_write(kCommand, 6, 2);
  CHECK(guest.interrupts.line());
  CHECK(guest.completion().command_id == 7);
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE("wrong DMA addresses of a guest's driver are its own affair") {
  ServerProcess server({"--guest", "0"});
  Guest guest(server);
  for (const std::uint64_t address : {std::uint64_t{0x40'0000'0000}, std::uint64_t{0xFEE0'0000}}) {
    guest.begin();
    guest.begin_admin();
    guest.qemu.write(kBar + hw::reg::kAdminCommandBase, address, 8);
    guest.qemu.write(kBar + hw::reg::kAdminDoorbell, 1, 8);
    // The command cannot be read: the admin queue says so.
    for (unsigned looks = 0; (guest.qemu.read(kBar + hw::reg::kDeviceStatus, 8) & 2) == 0; ++looks)
      REQUIRE(looks < 10'000);
    guest.qemu.reset();
  }
  CHECK(guest_of(server).at("dma_faults").get<unsigned>() >= 2);
  CHECK_THAT(log_of(server), Catch::Contains("where the guest has no memory"));
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE("a function level reset, D3hot and a reset of the machine are those of the specification") {
  ServerProcess server({"--guest", "0"});
  Guest guest(server);
  guest.begin();
  guest.qemu.write(kBar + hw::reg::kPortMac, 0x0200'0000'0007, 8);
  guest.qemu.config_write(0x44, 3, 2);  // D3hot
  CHECK(guest.qemu.read(kBar + hw::reg::kPortMac, 8) == ~std::uint64_t{0});
  guest.qemu.config_write(0x44, 0, 2);
  CHECK(guest.qemu.read(kBar + hw::reg::kPortMac, 8) == 0x0200'0000'0007);

  guest.qemu.config_write(kExpress + 8, 0x8000, 2);  // function level reset
  CHECK(guest.qemu.config_read(kCommand, 2) == 0);
  guest.begin();
  CHECK(guest.qemu.read(kBar + hw::reg::kPortMac, 8) == 0);

  guest.qemu.write(kBar + hw::reg::kPortMac, 7, 8);
  guest.qemu.reset();
  CHECK(guest.qemu.config_read(kBar0, 4) == 0);
  guest.begin();
  CHECK(guest.qemu.read(kBar + hw::reg::kPortMac, 8) == 0);
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE("guests come and go in the middle of what they do, and nothing leaks") {
  ServerProcess server({"--guest", "0"});
  std::size_t descriptors = 0;
  for (unsigned round = 0; round < 20; ++round) {
    {
      Guest guest(server);
      guest.begin();
      guest.begin_admin();
      guest.query(1);
      if (round % 2 == 0) CHECK(guest.interrupts.line());
      // A read without anybody who waits for it.
      guest.qemu.send(testbench::proxy::Command::kBarRead, testbench::proxy::BarAccess{kBar + 8, 0, 8, 1, {}});
    }
    wait_until_gone(server);
    if (round == 0) descriptors = descriptors_of(server.process());
  }
  CHECK(descriptors_of(server.process()) == descriptors);
  CHECK(mappings_of(server.process()) == 0);
  CHECK(guest_of(server).at("guests") == 20);
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE("a second guest is sent away, and one that breaks the protocol; the machine lives") {
  ServerProcess server({"--guest", "0"});
  {
    Guest guest(server);
    guest.begin();
    CHECK(FakeQemu::at(guest.path).ended());
    CHECK(static_cast<std::uint32_t>(guest.qemu.read(kBar + hw::reg::kIdentity, 4)) == hw::kDeviceMagic);
    guest.qemu.send(FakeQemu::bytes_of(42, {}));
    CHECK(guest.qemu.ended());
  }
  CHECK_THAT(log_of(server), Catch::Contains("host0: a message has command 42, which there is not"));
  CHECK_THAT(log_of(server), Catch::Contains("there is a guest already"));
  Guest next(server);
  next.begin();
  CHECK(static_cast<std::uint32_t>(next.qemu.read(kBar + hw::reg::kIdentity, 4)) == hw::kDeviceMagic);
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE("two guests on two hosts, and a guest beside a process's host") {
  ServerProcess server({"--guest", "0", "--guest", "1"});
  Guest first(server, 0), second(server, 1);
  first.begin();
  second.begin();
  first.qemu.write(kBar + hw::reg::kPortMac, 1, 8);
  second.qemu.write(kBar + hw::reg::kPortMac, 2, 8);
  CHECK(first.qemu.read(kBar + hw::reg::kPortMac, 8) == 1);
  CHECK(second.qemu.read(kBar + hw::reg::kPortMac, 8) == 2);
  CHECK(server.end(SIGTERM) == 0);

  ServerProcess mixed({"--guest", "1"});
  Guest guest(mixed, 1);
  guest.begin();
  test::Tool tool;
  const auto outcome = tool.run({"ps", "--dir", mixed.folder() + "/run"});
  CHECK_THAT(outcome.output, Catch::Contains("no process") && Catch::Contains("a guest with 1 MiB"));
  CHECK(mixed.end(SIGTERM) == 0);
}

TEST_CASE("a rule that a guest's driver breaks is told on the machine's log, and by rnic ps") {
  ServerProcess server({"--guest", "0"});
  {
    Guest guest(server);
    guest.begin();
    guest.begin_admin();
    guest.query(1);
    CHECK(guest.interrupts.line());
    guest.interrupts.answer();
    auto seen = guest_of(server).at("ownership");
    CHECK(seen.at("slots") == 1);
    CHECK(seen.at("entries") == 1);
    CHECK(seen.at("broken").empty());
    CHECK_THAT(log_of(server), !Catch::Contains("the driver breaks"));

    guest.qemu.write(kBar + hw::reg::kAdminDoorbell, guest.posted + 2u, 8);
    seen = guest_of(server).at("ownership");
    CHECK(seen.at("broken") == nlohmann::json{{"ring-overrun", 1}});
    CHECK_THAT(log_of(server),
               Catch::Contains("host0: the driver breaks ring-overrun: the admin queue: 2 are posted and "
                               "not done, of 1 slots; "));
    test::Tool tool;
    CHECK_THAT(tool.run({"ps", "--dir", server.folder() + "/run"}).output,
               Catch::Contains("its driver has broken ring-overrun 1 times"));
  }
  wait_until_gone(server);
  // The next guest begins anew.
  Guest next(server);
  next.begin();
  next.begin_admin();
  CHECK(guest_of(server).at("ownership").at("broken").empty());
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE(
    "with late entries a guest sees the phase first, and the rest when it reads a register or an interrupt comes") {
  ServerProcess server({"--guest", "0", "--late-entries"});
  Guest guest(server);
  guest.begin();
  guest.begin_admin();
  guest.qemu.write(kBar + hw::reg::kAdminConfig, hw::RegAdminConfig{.log_depth = 0}.word(), 8);  // without interrupts
  guest.query(5);
  for (unsigned looks = 0; guest.completion().phase != 1; ++looks) {
    REQUIRE(looks < 10'000);
    std::this_thread::sleep_for(1ms);
  }
  CHECK(guest.completion().command_id == 0);
  CHECK(guest.qemu.read(kBar + hw::reg::kIdentity, 4) == hw::kDeviceMagic);
  CHECK(guest.completion().command_id == 5);
  CHECK(guest_of(server).at("ownership").at("broken").empty());

  std::fill_n(guest.memory.data() + (kCompletions - kRam), 64, std::uint8_t{0});
  guest.begin_admin();
  guest.posted = 0;
  guest.query(6);
  CHECK(guest.interrupts.line());
  CHECK(guest.completion().command_id == 6);
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE("a machine that has no such host, or an event log, has no guest") {
  test::Tool tool;
  auto outcome = tool.run({"serve", "--dir", tool.folder() + "/run", "--guest", "2"});
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.output, Catch::Contains("there is no host 2"));
  outcome = tool.run({"serve", "--dir", tool.folder() + "/run", "--guest", "0", "--log", tool.folder() + "/log"});
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.output, Catch::Contains("in no event log"));
}
