#include "model/pcie.hpp"

#include <bit>
#include <stdexcept>
#include <string>

namespace rnic::model {

ByteRange enabled_range(std::uint64_t address, std::uint16_t length_dw, std::uint8_t first_be, std::uint8_t last_be) {
  // Table of byte count and lower address, base specification 2.3.1.1.
  if (length_dw == 1 && first_be == 0) return {address, 1};
  const auto first = static_cast<std::uint32_t>(std::countr_zero(first_be));
  const std::uint8_t final_be = length_dw == 1 ? first_be : last_be;
  const auto end = 4u * (length_dw - 1u) + static_cast<std::uint32_t>(std::bit_width(final_be));
  return {address + first, end - first};
}

DwordRange covering_dwords(std::uint64_t address, std::uint32_t length) {
  const std::uint64_t start = address & ~3ULL;
  const std::uint64_t end = address + length;
  DwordRange range{start, static_cast<std::uint16_t>((end - start + 3) / 4), 0, 0};
  const auto from_first = static_cast<std::uint8_t>(0xF << (address - start) & 0xF);
  const auto to_last = static_cast<std::uint8_t>(0xF >> ((start - end) & 3));
  range.first_be = range.length_dw == 1 ? from_first & to_last : from_first;
  range.last_be = range.length_dw == 1 ? 0 : to_last;
  return range;
}

std::uint8_t size_code(std::size_t bytes) {
  if (!std::has_single_bit(bytes) || bytes < 128 || bytes > 4096) {
    throw std::invalid_argument("PCI Express size of " + std::to_string(bytes) +
                                " bytes: a power of two from 128 to 4096 is needed");
  }
  return static_cast<std::uint8_t>(std::countr_zero(bytes) - 7);
}

}  // namespace rnic::model
