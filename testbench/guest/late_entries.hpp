#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rnic::testbench {

/// Entries of 64 bytes of which the processor sees the last word, with the phase, at once, and the rest not before
/// something brings it: as a processor sees them that loads the rest ahead of the phase. What brings it is a read of
/// the device that is answered, or an interrupt: PCI Express lets neither pass the write (base specification 2.4.1).
class LateEntries {
 public:
  static constexpr std::size_t kBytes = 64;

  /// Writes an entry to memory that stays until it is there as a whole.
  void write(std::uint8_t* to, const std::uint8_t* entry);
  /// All that was written is there.
  void bring();
  /// Whether the rest of the entry there is still to come.
  [[nodiscard]] bool waits(const std::uint8_t* at) const;

 private:
  static constexpr std::size_t kWord = 8, kRest = kBytes - kWord;
  struct Late {
    std::uint8_t* to;
    std::array<std::uint8_t, kRest> rest;
  };
  std::vector<Late> late_;
};

}  // namespace rnic::testbench
