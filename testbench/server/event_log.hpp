#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// What a machine of `rnic serve` was told from outside, in a file (docs/event_log.md has the format).
namespace rnic::testbench {

inline constexpr std::array<char, 8> kEventLogMagic{'R', 'N', 'I', 'C', 'L', 'O', 'G', '\n'};
/// Of the format. What the machine makes of a log depends on its build, too.
inline constexpr std::uint32_t kEventLogVersion = 1;
/// Bytes of the longest header, and of the longest piece.
inline constexpr std::uint32_t kMostLogHeader = 1u << 24, kMostLogPiece = 1u << 26;

/// A log that is none, or not whole, or damaged. The message is a line that names the file.
class EventLogError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The machine of a log: what it was started with, and by which tool.
struct EventLogHeader {
  std::vector<std::string> arguments;        ///< Options that say what is simulated
  std::map<std::string, std::string> files;  ///< The text of each file that they name
  std::string version;                       ///< Of the tool
  std::string build;                         ///< SHA-256 of the tool
  std::uint64_t slice_ps{};                  ///< Simulated time between two looks at the processes
};

enum class LogKind : std::uint8_t {
  // From outside, between two slices of simulated time
  kAttach = 1,  ///< A process has come
  kDetach,      ///< Its connection has ended
  kDoorbell,
  kRequest,  ///< A frame of the socket
  kLook,     ///< Somebody asks for counters (`rnic ps`, `rnic stat`)
  kRest,     ///< So much time was let pass at once, by a machine that rested
  kFinish,   ///< The machine is told to end
  kFailed,   ///< The simulation has failed
  kEnd,      ///< The last: the figures of the run
  kFrame,    ///< A frame has come in at a socket
  // What the simulation met, in its order
  kReach = 16,  ///< Whether a process had the memory that it registered
  kDmaRead,
  kDmaWrite,
  kAnswer,  ///< To a request
};
/// Whether the simulation comes to it by itself.
[[nodiscard]] constexpr bool is_inner(LogKind kind) { return kind >= LogKind::kReach; }

/// Whose memory DMA has met.
enum class LogPlace : std::uint8_t {
  kOwn,      ///< The kernel driver's
  kShared,   ///< Rings that a process has mapped
  kProcess,  ///< A process's
};

/// A record. Which members count says its kind.
struct LogRecord {
  LogKind kind{};
  std::uint64_t time_ps{};
  std::uint64_t host{};            ///< kAttach, kReach, kDmaRead, kDmaWrite
  std::uint64_t session{};         ///< kAttach (counted from 0 on), kDetach, kDoorbell, kRequest, kAnswer
  std::uint64_t socket{};          ///< kFrame
  std::uint64_t process{};         ///< kAttach; kReach: its address space, by the host's number (Iommu::add_process)
  std::uint64_t address{};         ///< kReach: there; DMA: for the device; kDoorbell: offset in BAR0
  std::uint64_t length{};          ///< kReach: bytes; DMA: dwords; kRest: ps
  std::uint64_t number{};          ///< kRequest, kAnswer
  std::uint64_t client{};          ///< kRequest
  std::uint64_t code{};            ///< kRequest: FrameKind; kReach: ProcessMemory::Reach
  std::uint64_t checksum{};        ///< kDmaRead: of what was asked; kDmaWrite: and of the data; kAnswer: of all of it
  LogPlace place{};                ///< DMA
  bool good{};                     ///< DMA: the memory was there. kAnswer: it was taken
  bool flag{};                     ///< kReach: to be written. kLook: with counters
  std::vector<std::uint8_t> data;  ///< kDoorbell, kRequest, kDmaRead (not of kOwn), kFailed, kEnd, kFrame
};

/// In words: "host1 reads 64 bytes at 0x...".
[[nodiscard]] std::string describe(const LogRecord& record);

/// Text or bytes of any kind, as the file has them.
[[nodiscard]] std::span<const std::uint8_t> octets(const auto& bytes) {
  static_assert(sizeof *bytes.data() == 1);
  return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
}
/// CRC-32 (IEEE 802.3) of `bytes` behind those that have given `before`.
[[nodiscard]] std::uint32_t log_checksum(std::span<const std::uint8_t> bytes, std::uint32_t before = 0);

}  // namespace rnic::testbench
