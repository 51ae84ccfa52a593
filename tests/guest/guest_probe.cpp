// A program for a Linux guest, which finds the NIC as any program of its root does (sysfs), and looks whether it is
// what docs/host_interface.md and docs/guest.md say. usage: guest_probe; exit code 0: it is; 1: it is not, and says
// what.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>

#include "driver/generated/host_interface.hpp"

namespace hw = rnic::hw;
using namespace std::chrono_literals;

namespace {

const std::filesystem::path kDevices = "/sys/bus/pci/devices";
constexpr std::size_t kBarBytes = std::size_t{hw::kUarPageBytes} << hw::kUarIndexBits;
constexpr std::size_t kPage = 4096;
constexpr auto kPatience = 30s;

void check(bool right, const std::string& what) {
  if (!right) throw std::runtime_error(what);
  std::printf("%s\n", what.c_str());
  std::fflush(stdout);
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  return text;
}

void write_to(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

std::filesystem::path find_device() {
  for (const auto& one : std::filesystem::directory_iterator(kDevices)) {
    if (text_of(one.path() / "vendor") == "0x1234" && text_of(one.path() / "device") == "0x524e") return one.path();
  }
  return {};
}

/// The kernel's file of the configuration space.
class Config {
 public:
  explicit Config(const std::filesystem::path& device) : file_(open((device / "config").c_str(), O_RDWR | O_CLOEXEC)) {
    if (file_ < 0) throw std::runtime_error("no configuration space");
  }
  ~Config() { close(file_); }
  Config(const Config&) = delete;
  Config& operator=(const Config&) = delete;
  [[nodiscard]] std::uint32_t read(off_t at, std::size_t bytes) const {
    std::uint32_t value = 0;
    if (pread(file_, &value, bytes, at) != static_cast<ssize_t>(bytes)) throw std::runtime_error("config read");
    return value;
  }
  void write(off_t at, std::uint32_t value, std::size_t bytes) const {
    if (pwrite(file_, &value, bytes, at) != static_cast<ssize_t>(bytes)) throw std::runtime_error("config write");
  }
  /// Where a capability is; 0: nowhere.
  [[nodiscard]] off_t find(std::uint32_t id) const {
    off_t at = read(0x34, 1);
    for (unsigned steps = 0; at != 0 && steps < 48; at = read(at + 1, 1), ++steps) {
      if (read(at, 1) == id) return at;
    }
    return 0;
  }

 private:
  int file_;
};

/// BAR0, as sysfs maps it.
class Bar {
 public:
  explicit Bar(const std::filesystem::path& device) {
    const int file = open((device / "resource0").c_str(), O_RDWR | O_CLOEXEC | O_SYNC);
    at_ = mmap(nullptr, kBarBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (at_ == MAP_FAILED) throw std::runtime_error("BAR0 cannot be mapped");
  }
  ~Bar() { munmap(at_, kBarBytes); }
  Bar(const Bar&) = delete;
  Bar& operator=(const Bar&) = delete;
  [[nodiscard]] std::uint64_t read64(std::size_t at) const { return *pointer<std::uint64_t>(at); }
  [[nodiscard]] std::uint32_t read32(std::size_t at) const { return *pointer<std::uint32_t>(at); }
  void write64(std::size_t at, std::uint64_t value) const { *pointer<std::uint64_t>(at) = value; }
  void write32(std::size_t at, std::uint32_t value) const { *pointer<std::uint32_t>(at) = value; }

 private:
  template <typename Word>
  [[nodiscard]] volatile Word* pointer(std::size_t at) const {
    return reinterpret_cast<volatile Word*>(static_cast<char*>(at_) + at);
  }
  void* at_;
};

/// A page that stays where it is, with its address for a device.
class DmaPage {
 public:
  DmaPage() : at_(mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)) {
    if (at_ == MAP_FAILED || mlock(at_, kPage) != 0) throw std::runtime_error("no memory");
    std::memset(at_, 0, kPage);
    const int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    std::uint64_t entry = 0;
    const auto index = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(at_) / kPage * sizeof entry);
    if (pread(map, &entry, sizeof entry, index) != sizeof entry || (entry & ((std::uint64_t{1} << 55) - 1)) == 0)
      throw std::runtime_error("the kernel does not say where memory is");
    close(map);
    address_ = (entry & ((std::uint64_t{1} << 55) - 1)) * kPage;
  }
  ~DmaPage() { munmap(at_, kPage); }
  DmaPage(const DmaPage&) = delete;
  DmaPage& operator=(const DmaPage&) = delete;
  [[nodiscard]] std::uint8_t* data() const { return static_cast<std::uint8_t*>(at_); }
  [[nodiscard]] std::uint64_t address() const { return address_; }

 private:
  void* at_;
  std::uint64_t address_;
};

template <typename Condition>
bool soon(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

void check_config(const std::filesystem::path& device) {
  const Config config(device);
  check(text_of(device / "class") == "0x020000", "lspci: Ethernet controller 1234:524e");
  check(config.find(1) != 0 && config.find(0x10) != 0, "it has power management and PCI Express");
  const off_t msix = config.find(0x11);
  check(msix != 0 && (config.read(msix + 2, 2) & 0x7FF) == hw::kMsixVectors - 1 &&
            config.read(msix + 4, 4) == hw::reg::kMsixTable && config.read(msix + 8, 4) == hw::reg::kMsixPending,
        "MSI-X has 32 vectors, with table and pending bits in BAR0");
  check(text_of(device / "resource").size() > 0 && std::filesystem::file_size(device / "resource0") == kBarBytes,
        "BAR0 has 512 KiB");
}

void enable(const std::filesystem::path& device) {
  if (text_of(device / "enable") == "0") write_to(device / "enable", "1");
  const Config config(device);
  config.write(4, 6, 2);
}

void check_registers(const Bar& bar) {
  check(soon([&] { return (bar.read64(hw::reg::kDeviceStatus) & 1) != 0; }), "the device is ready");
  check(bar.read64(hw::reg::kIdentity) ==
            (std::uint64_t{hw::kPciDeviceId} << 48 | std::uint64_t{hw::kPciVendorId} << 32 | hw::kDeviceMagic),
        "Identity is that of the host interface");
  check(bar.read32(hw::reg::kIdentity + 4) == (hw::kPciDeviceId << 16 | hw::kPciVendorId), "a half of it, too");
  bar.write64(hw::reg::kPortMac, 0x0200'0000'0001);
  check(bar.read64(hw::reg::kPortMac) == 0x0200'0000'0001, "a register keeps what is written");
  const std::size_t unsupported = hw::reg::kCounterBase + 8 * static_cast<std::size_t>(hw::Counter::kHostUnsupported);
  const std::uint64_t before = bar.read64(unsupported);
  bar.write32(hw::kUarPageBytes, 1);
  check(bar.read64(unsupported) == before + 1, "half a doorbell arrives at the RTL, which counts it");
}

void check_dma(const Bar& bar) {
  const DmaPage commands, completions;
  bar.write64(hw::reg::kAdminCommandBase, commands.address());
  bar.write64(hw::reg::kAdminCompletionBase, completions.address());
  bar.write64(hw::reg::kAdminConfig, 0);
  bar.write64(hw::reg::kDeviceControl, 1);
  hw::AdminCommand command;
  command.opcode = static_cast<std::uint8_t>(hw::AdminOpcode::kQueryCapabilities);
  command.command_id = 0x1234;
  command.encode(std::span<std::uint8_t, hw::AdminCommand::kBytes>(commands.data(), hw::AdminCommand::kBytes));
  bar.write64(hw::reg::kAdminDoorbell, 1);
  const volatile std::uint8_t* const phase = completions.data() + hw::AdminCompletion::kBytes - 1;
  check(soon([&] { return (*phase & 1) != 0; }), "a command is read, and its completion written, by DMA");
  const auto completion = hw::AdminCompletion::decode(
      std::span<const std::uint8_t, hw::AdminCompletion::kBytes>(completions.data(), hw::AdminCompletion::kBytes));
  check(completion.status == 0 && completion.command_id == 0x1234, "QueryCapabilities is answered");
  bar.write64(hw::reg::kDeviceControl, 0);
  check(bar.read64(hw::reg::kDeviceControl) == 0, "the device is quiet");
}

}  // namespace

int main() {
  try {
    auto device = find_device();
    check(!device.empty(), "the device is on the bus");
    for (const std::string pass : {"first", "after a function reset", "after removal and rescan"}) {
      std::printf("-- %s\n", pass.c_str());
      check_config(device);
      enable(device);
      {
        const Bar bar(device);
        check_registers(bar);
        check_dma(bar);
      }
      if (pass == "first") {
        write_to(device / "reset", "1");
        enable(device);
        const Bar bar(device);
        check(bar.read64(hw::reg::kPortMac) == 0, "a function reset clears the registers");
      } else if (pass == "after a function reset") {
        write_to(device / "remove", "1");
        check(find_device().empty(), "the device is removed");
        write_to("/sys/bus/pci/rescan", "1");
        device = find_device();
        check(!device.empty(), "a rescan finds it again");
      }
    }
    return 0;
  } catch (const std::exception& error) {
    std::printf("guest_probe: not so: %s\n", error.what());
    return 1;
  }
}
