#pragma once

#include <cstdint>
#include <span>

namespace rnic {

/// What a fast registration opens.
struct FastRange {
  std::span<const std::uint64_t> pages;  ///< DMA addresses of 4 KiB pages
  std::uint32_t first_offset{};          ///< Of the first byte in the first page
  std::uint64_t length{};                ///< Bytes
  std::uint64_t base{};                  ///< Virtual address of the first byte: first_offset modulo 4 KiB
  bool local_write{};
  bool read_sink{};  ///< Reads may write to it though local_write is false; nothing else may (decisions 57)
  bool remote_read{};
  bool remote_write{};   ///< Needs local_write
  bool remote_atomic{};  ///< Needs local_write
};

/// What a FastRegister work request carries beside range and rights.
struct FastRegistration {
  std::uint32_t key{};
  std::uint64_t page_list{};  ///< DMA address; with inline_list 0
  std::uint32_t page_count{};
  std::uint8_t log_page{};
  bool inline_list{};  ///< The request carries the pages themselves
};

/// Pages that a FastRegister request of so many lines of 64 bytes can carry; also what so many lines on chip hold.
constexpr std::uint32_t inline_pages_in(std::uint32_t lines) { return lines == 0 ? 0 : 8 * lines - 6; }
/// Lines that so many pages need: the inverse.
constexpr std::uint32_t inline_lines_for(std::uint32_t pages) { return (pages + 13) / 8; }

}  // namespace rnic
