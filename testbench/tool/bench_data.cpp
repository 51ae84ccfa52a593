#include "testbench/tool/bench_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace rnic::testbench {

void fill_bench_data(std::span<std::uint8_t> memory, std::uint64_t host) {
  for (std::size_t at = 0; at + 8 <= memory.size(); at += 8) {
    // SplitMix64 (Steele, Lea, Flood 2014) of place and host.
    std::uint64_t word = (at + 1) * 0x9E3779B97F4A7C15 + (host << 56);
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB;
    word ^= word >> 31;
    std::memcpy(memory.data() + at, &word, sizeof word);
  }
}

void require_moved(std::span<const std::uint8_t> from, std::span<const std::uint8_t> to) {
  const auto [there, here] = std::mismatch(from.begin(), from.end(), to.begin(), to.end());
  if (there == from.end()) return;
  throw std::runtime_error(fmt::format("the benchmark moved wrong data: byte {} of {} is {:#04x} and not {:#04x}",
                                       there - from.begin(), from.size(), *here, *there));
}

}  // namespace rnic::testbench
