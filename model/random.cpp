#include "model/random.hpp"

namespace rnic::model {

Random::Random(std::uint64_t seed, std::string_view part) : state_(seed) {
  state_ = next();
  for (const char c : part) {  // FNV-1a over the name
    state_ ^= static_cast<unsigned char>(c);
    state_ *= 0x100000001B3;
  }
}

std::uint64_t Random::next() {
  state_ += 0x9E3779B97F4A7C15;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

std::uint64_t Random::below(std::uint64_t bound) {
  if (bound == 0) return 0;
  const std::uint64_t limit = ~0ULL - ~0ULL % bound;  // the tail would favour small values
  std::uint64_t value = next();
  while (value >= limit) value = next();
  return value % bound;
}

bool Random::chance(double probability) {
  if (probability <= 0) return false;
  return static_cast<double>(next() >> 11) * 0x1.0p-53 < probability;
}

}  // namespace rnic::model
