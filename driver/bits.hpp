#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

/// Bit fields in byte buffers. `Offset` counts from bit 0 of byte 0 (Little) or from the last bit of the buffer (Big,
/// so that the first byte holds the most significant bits). Integers hold fields up to 64 bits; wider fields are byte
/// arrays in memory order.
namespace rnic::bits {

template <typename T>
inline constexpr bool kIsArray = !std::is_integral_v<T>;

constexpr std::uint64_t mask(std::size_t width) { return width >= 64 ? ~0ULL : (1ULL << width) - 1; }

template <std::size_t Offset, std::size_t Width, std::size_t Bytes>
constexpr void put_integer(std::span<std::uint8_t, Bytes> to, std::uint64_t value, bool big) {
  value &= mask(Width);
  for (std::size_t done = 0; done < Width;) {
    const std::size_t bit = Offset + done;
    const std::size_t index = big ? Bytes - 1 - bit / 8 : bit / 8;
    const std::size_t shift = bit % 8;
    const std::size_t count = Width - done < 8 - shift ? Width - done : 8 - shift;
    const auto field = static_cast<std::uint8_t>(mask(count) << shift);
    to[index] = static_cast<std::uint8_t>((to[index] & ~field) | (((value >> done) << shift) & field));
    done += count;
  }
}

template <std::size_t Offset, std::size_t Width, std::size_t Bytes>
constexpr std::uint64_t get_integer(std::span<const std::uint8_t, Bytes> from, bool big) {
  std::uint64_t value = 0;
  for (std::size_t done = 0; done < Width;) {
    const std::size_t bit = Offset + done;
    const std::size_t index = big ? Bytes - 1 - bit / 8 : bit / 8;
    const std::size_t shift = bit % 8;
    const std::size_t count = Width - done < 8 - shift ? Width - done : 8 - shift;
    value |= static_cast<std::uint64_t>((from[index] >> shift) & mask(count)) << done;
    done += count;
  }
  return value;
}

template <std::size_t Offset, std::size_t Width, std::size_t Bytes, typename T, bool Big, std::size_t... I>
constexpr void put_array(std::span<std::uint8_t, Bytes> to, const T& value, std::index_sequence<I...>) {
  (put_integer<Offset + 8 * (Big ? Width / 8 - 1 - I : I), 8>(to, value[I], Big), ...);
}

template <std::size_t Offset, std::size_t Width, std::size_t Bytes, typename T, bool Big, std::size_t... I>
constexpr void get_array(std::span<const std::uint8_t, Bytes> from, T& value, std::index_sequence<I...>) {
  ((value[I] = static_cast<std::uint8_t>(get_integer<Offset + 8 * (Big ? Width / 8 - 1 - I : I), 8>(from, Big))), ...);
}

template <std::size_t Offset, std::size_t Width, std::size_t Bytes, typename T>
constexpr void put_little(std::span<std::uint8_t, Bytes> to, const T& value) {
  if constexpr (kIsArray<T>) {
    put_array<Offset, Width, Bytes, T, false>(to, value, std::make_index_sequence<Width / 8>{});
  } else {
    put_integer<Offset, Width>(to, value, false);
  }
}

template <std::size_t Offset, std::size_t Width, std::size_t Bytes, typename T>
constexpr void put_big(std::span<std::uint8_t, Bytes> to, const T& value) {
  if constexpr (kIsArray<T>) {
    put_array<Offset, Width, Bytes, T, true>(to, value, std::make_index_sequence<Width / 8>{});
  } else {
    put_integer<Offset, Width>(to, value, true);
  }
}

template <std::size_t Offset, std::size_t Width, std::size_t Bytes, typename T>
constexpr void get_little(std::span<const std::uint8_t, Bytes> from, T& value) {
  if constexpr (kIsArray<T>) {
    get_array<Offset, Width, Bytes, T, false>(from, value, std::make_index_sequence<Width / 8>{});
  } else {
    value = static_cast<T>(get_integer<Offset, Width>(from, false));
  }
}

template <std::size_t Offset, std::size_t Width, std::size_t Bytes, typename T>
constexpr void get_big(std::span<const std::uint8_t, Bytes> from, T& value) {
  if constexpr (kIsArray<T>) {
    get_array<Offset, Width, Bytes, T, true>(from, value, std::make_index_sequence<Width / 8>{});
  } else {
    value = static_cast<T>(get_integer<Offset, Width>(from, true));
  }
}

}  // namespace rnic::bits
