#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

/// Messages of multi-process QEMU (its device x-pci-proxy-dev), between the process with the machine and the one with
/// the device. Numbers are in the order of the processor that both run on. A message is a header and, behind it, a
/// payload of the length that its command has.
namespace rnic::testbench::proxy {

enum class Command : std::int32_t {
  kSyncMemory = 0,   ///< SyncMemory, with a descriptor for each region; no answer
  kAnswer = 1,       ///< Ours: the value asked for, or 0
  kConfigWrite = 2,  ///< ConfigAccess
  kConfigRead = 3,   ///< ConfigAccess
  kBarWrite = 4,     ///< BarAccess
  kBarRead = 5,      ///< BarAccess
  kSetIrq = 6,       ///< Two descriptors, for INTx; no answer
  kReset = 7,        ///< Of the machine, the device with it
};

struct Header {
  std::int32_t command{};
  std::uint32_t reserved{};
  std::uint64_t bytes{};  ///< Of the payload
};
static_assert(sizeof(Header) == 16);

inline constexpr std::size_t kMostRegions = 8;

/// The first n regions count, n descriptors being beside the message.
struct SyncMemory {
  std::array<std::uint64_t, kMostRegions> address{};  ///< In the guest
  std::array<std::uint64_t, kMostRegions> bytes{};
  std::array<std::uint64_t, kMostRegions> offset{};  ///< In what the descriptor names
};
static_assert(sizeof(SyncMemory) == 192);

struct ConfigAccess {
  std::uint32_t offset{};
  std::uint32_t value{};
  std::int32_t bytes{};  ///< 1, 2 or 4
};
static_assert(sizeof(ConfigAccess) == 12);

struct BarAccess {
  std::uint64_t address{};  ///< In the guest, where the BAR is placed
  std::uint64_t value{};
  std::uint32_t bytes{};  ///< 1, 2, 4 or 8
  std::uint8_t memory{};  ///< 0: I/O space
  std::array<std::uint8_t, 3> reserved{};
};
static_assert(sizeof(BarAccess) == 24);

struct Answer {
  Header header{static_cast<std::int32_t>(Command::kAnswer), 0, sizeof(std::uint64_t)};
  std::uint64_t value{};
};
static_assert(sizeof(Answer) == 24);

}  // namespace rnic::testbench::proxy
