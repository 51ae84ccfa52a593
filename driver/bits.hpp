#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

/// Layouts in byte buffers, a 64-bit word at a time. Word w of a buffer is the number in its bits 64 w to 64 w + 63,
/// counted from bit 0 of byte 0 (kLittle), or from the last bit of the last byte (kBig: the first byte holds the most
/// significant bits). The last word may be shorter. With the offsets known to the compiler a field costs a shift and a
/// mask, a word one load or store.
namespace rnic::bits {

enum class Order : std::uint8_t { kLittle, kBig };

constexpr std::uint64_t mask(std::size_t width) { return width >= 64 ? ~0ULL : (1ULL << width) - 1; }

/// Bytes of a word, where they are.
template <Order order, std::size_t Word, std::size_t Bytes>
struct Place {
  static_assert(8 * Word < Bytes);
  static constexpr std::size_t kCount = Bytes - 8 * Word < 8 ? Bytes - 8 * Word : 8;
  static constexpr std::size_t kFirst = order == Order::kLittle ? 8 * Word : Bytes - 8 * Word - kCount;
  /// Byte i in memory holds bits kShift(i) to kShift(i) + 7 of the word.
  static constexpr std::size_t shift(std::size_t i) { return 8 * (order == Order::kLittle ? i : kCount - 1 - i); }
  static constexpr bool kSwapped = (order == Order::kLittle) != (std::endian::native == std::endian::little);
  /// A word in the byte order of the other kind of processor.
  static constexpr std::uint64_t swap(std::uint64_t word) { return kSwapped ? __builtin_bswap64(word) : word; }
  /// A word that is copied from memory, or to it, with its first byte first, has these bits too many at its low end.
  static constexpr std::size_t kSpare = order == Order::kLittle ? 0 : 64 - 8 * kCount;
};

template <Order order, std::size_t Word, std::size_t Bytes>
constexpr std::uint64_t load(std::span<const std::uint8_t, Bytes> from) {
  using At = Place<order, Word, Bytes>;
  std::uint64_t word = 0;
  if (std::is_constant_evaluated()) {
    for (std::size_t i = 0; i < At::kCount; ++i) word |= std::uint64_t{from[At::kFirst + i]} << At::shift(i);
    return word;
  }
  std::memcpy(&word, from.data() + At::kFirst, At::kCount);
  return At::swap(word) >> At::kSpare;
}

template <Order order, std::size_t Word, std::size_t Bytes>
constexpr void store(std::span<std::uint8_t, Bytes> to, std::uint64_t word) {
  using At = Place<order, Word, Bytes>;
  if (std::is_constant_evaluated()) {
    for (std::size_t i = 0; i < At::kCount; ++i) to[At::kFirst + i] = static_cast<std::uint8_t>(word >> At::shift(i));
    return;
  }
  word = At::swap(word << At::kSpare);
  std::memcpy(to.data() + At::kFirst, &word, At::kCount);
}

/// The low `Width` bits of a value, at bit `Shift` of a word.
template <std::size_t Shift, std::size_t Width>
constexpr std::uint64_t put(std::uint64_t value) {
  static_assert(Width > 0 && Shift + Width <= 64);
  return (value & mask(Width)) << Shift;
}

/// Bits `Shift` to `Shift + Width - 1` of a word.
template <std::size_t Shift, std::size_t Width>
constexpr std::uint64_t get(std::uint64_t word) {
  static_assert(Width > 0 && Shift + Width <= 64);
  return word >> Shift & mask(Width);
}

}  // namespace rnic::bits
