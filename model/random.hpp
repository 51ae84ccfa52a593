#pragma once

#include <cstdint>
#include <string_view>

namespace rnic::model {

/// Seeded random numbers, the same on every machine and standard library (splitmix64).
///
/// Every part of the world has a generator of its own, derived from the one seed of the run and the name of the part,
/// so that one more choice in one part does not change the choices of another.
class Random {
 public:
  explicit Random(std::uint64_t seed = 0) : state_(seed) {}
  /// The generator of the part called `part` in a world of seed `seed`.
  Random(std::uint64_t seed, std::string_view part);

  std::uint64_t next();
  /// Uniform in [0, bound); 0 when bound is 0.
  std::uint64_t below(std::uint64_t bound);
  /// True with `probability` (0 never, 1 always). Draws nothing at 0, so a fault that is off changes nothing else.
  bool chance(double probability);

 private:
  std::uint64_t state_;
};

}  // namespace rnic::model
