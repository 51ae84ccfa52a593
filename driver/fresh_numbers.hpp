#pragma once

#include <algorithm>
#include <cstdint>

namespace rnic {

/// An order of numbers for what others still name when its object is gone: a peer in TimeWait, an event or a packet
/// under way. A number returns late, and without the key none can be predicted.
class FreshNumbers {
 public:
  /// Numbers of `bits` bits, 2 to 32. `key`: random.
  FreshNumbers(std::uint64_t key, unsigned bits) : key_(key), quarter_(std::uint64_t{1} << (bits - 2)) {}

  /// The number of a draw, 1 to 2^bits - 1. It differs from the numbers of the 2^(bits - 2) draws before it; a caller
  /// that knows all earlier draws still has to guess among as many.
  [[nodiscard]] std::uint32_t at(std::uint64_t draw) const {
    // Each quarter of the draws takes half of the numbers of one half, in an order of its own; halves alternate.
    const std::uint64_t turn = draw / quarter_;
    const std::uint64_t half = turn % 2 * 2 * quarter_;
    const std::uint64_t number = half + shuffled(turn, draw % quarter_);
    return static_cast<std::uint32_t>(number != 0 ? number : half + shuffled(turn, quarter_));
  }

 private:
  static constexpr unsigned kRounds = 12;
  static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15ULL;

  /// Finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
  static constexpr std::uint64_t mixed(std::uint64_t value) {
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9ULL;
    value = (value ^ value >> 27) * 0x94D049BB133111EBULL;
    return value ^ value >> 31;
  }

  /// A permutation of half of the numbers, another one in each turn (Hoang, Morris, Rogaway: An Enciphering Scheme
  /// Based on a Card Shuffle).
  [[nodiscard]] std::uint64_t shuffled(std::uint64_t turn, std::uint64_t place) const {
    const std::uint64_t mask = 2 * quarter_ - 1;
    std::uint64_t seed = mixed(key_ + turn * kStep);
    for (unsigned round = 0; round < kRounds; ++round) {
      const std::uint64_t salt = mixed(seed += kStep);
      const std::uint64_t partner = (salt - place) & mask;
      if ((mixed(salt + std::max(place, partner)) & 1) != 0) place = partner;
    }
    return place;
  }

  std::uint64_t key_;
  std::uint64_t quarter_;
};

}  // namespace rnic
