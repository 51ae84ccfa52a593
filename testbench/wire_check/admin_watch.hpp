#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <vector>

namespace rnic::wire_check {

/// Reads `bytes` at a DMA address of a host. Empty: nothing is there.
using ReadMemory = std::function<std::vector<std::uint8_t>(std::uint64_t address, std::size_t bytes)>;

/// A command that the NIC has answered with success (docs/host_interface.md).
struct AdminCommand {
  std::uint8_t opcode{};
  std::uint32_t number{};
  std::vector<std::uint8_t> body;  ///< 120 bytes

  /// Little-endian number at byte `at` of the body.
  [[nodiscard]] std::uint64_t field(std::size_t at, std::size_t bytes) const;
};

/// Follows the admin queue of a NIC from its link: what the driver writes to registers, and what then is in the rings.
class AdminWatch {
 public:
  using Done = std::function<void(const AdminCommand&)>;
  AdminWatch(ReadMemory memory, Done done, std::function<void()> reset);

  /// The processor writes to BAR0: dwords of `data` from `offset` on, of which the bytes are enabled that `enabled`
  /// says.
  void written(std::uint64_t offset, std::span<const std::uint8_t> data, const std::vector<bool>& enabled);
  /// Takes the answers that are there by now.
  void catch_up();

  /// A driver has begun.
  [[nodiscard]] bool configured() const { return configured_; }
  /// PortMac; 0: not written yet.
  [[nodiscard]] std::uint64_t mac() const { return reg(0x108) & 0xffff'ffff'ffff; }

 private:
  [[nodiscard]] std::uint64_t reg(std::uint64_t offset) const;
  void configure();
  void posted();

  struct Posted {
    std::uint16_t id{};
    AdminCommand command;
  };

  ReadMemory memory_;
  Done done_;
  std::function<void()> reset_;
  std::map<std::uint64_t, std::uint8_t> registers_;  ///< Bytes that were written, below the doorbells
  std::deque<Posted> posted_;
  std::uint16_t producer_ = 0;  ///< Commands that were posted
  std::uint32_t answered_ = 0;  ///< Answers that were taken
  bool configured_ = false;
};

}  // namespace rnic::wire_check
