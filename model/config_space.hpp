#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "model/pcie.hpp"

namespace rnic::model {

/// What a function says of itself in its configuration space.
struct FunctionDescription {
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::uint32_t class_code = 0x02'00'00;    ///< Base class, subclass, interface: Ethernet controller
  std::uint32_t bar0_bytes = 0;             ///< A power of two, 16 to 2^30
  std::uint32_t msix_vectors = 1;           ///< 1 to 2048
  std::uint32_t msix_table = 0;             ///< Offset in BAR0, a multiple of 8
  std::uint32_t msix_pending = 0;           ///< The same
  std::size_t max_payload_supported = 128;  ///< Bytes, a power of two, 128 to 4096
};

/// Configuration space of a PCI Express function: a root complex integrated endpoint with one BAR of 32-bit memory,
/// power management, PCI Express and MSI-X capabilities, in the 256 bytes that every PCI bus reaches (PCI Express base
/// specification 7.5, 7.7.2). It has no legacy interrupt, no I/O space, and no link of its own.
class ConfigSpace {
 public:
  static constexpr std::size_t kBytes = 256;

  /// Throws std::invalid_argument when the description is out of range.
  explicit ConfigSpace(const FunctionDescription& description);

  /// `length` bytes (1, 2 or 4) from `offset` on, which they do not cross the end from; otherwise throws
  /// std::out_of_range. Little-endian.
  [[nodiscard]] std::uint32_t read(std::size_t offset, std::size_t length) const;
  /// The same: what is read-only stays, what is cleared by ones is.
  void write(std::size_t offset, std::uint32_t value, std::size_t length);

  /// As after power-on.
  void reset();
  /// As after a function level reset: what 6.6.2 lets stay stays (Max_Payload_Size).
  void reset_function();
  /// Whether a function level reset has been asked for since this was asked last.
  [[nodiscard]] bool take_reset_request();

  /// Transactions Pending of Device Status (7.5.3.5).
  void set_transactions_pending(bool pending);

  /// Memory requests are answered: Memory Space Enable, and not in D3hot.
  [[nodiscard]] bool memory_enabled() const;
  [[nodiscard]] std::uint32_t bar0() const;
  /// What the NIC sees of it. In D3hot it is no bus master (5.3.1.4.1).
  [[nodiscard]] PcieConfig config() const;

 private:
  void put(std::size_t offset, std::uint32_t value, std::size_t length, std::uint32_t writable = 0,
           std::uint32_t cleared_by_ones = 0);

  std::array<std::uint8_t, kBytes> value_{};
  std::array<std::uint8_t, kBytes> initial_{};
  std::array<std::uint8_t, kBytes> writable_{};
  std::array<std::uint8_t, kBytes> cleared_by_ones_{};
  bool reset_asked_ = false;
};

}  // namespace rnic::model
