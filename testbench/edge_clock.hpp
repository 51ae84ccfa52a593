#pragma once

#include <cmath>
#include <cstdint>

#include "model/time.hpp"

namespace rnic::testbench {

/// The edges of a NIC's clock since its power-on.
struct EdgeClock {
  model::Picoseconds epoch = 0;      ///< Power-on
  model::Picoseconds phase = 0;      ///< Of the first edge, below the period
  model::Picoseconds period = 4000;  ///< Nominal
  double ppm = 0;                    ///< The clock is so much slower

  /// Time of edge `number`.
  [[nodiscard]] model::Picoseconds edge(std::uint64_t number) const {
    model::Picoseconds time = epoch + phase + (number + 1) * period;
    if (ppm != 0) {
      const double late = static_cast<double>((number + 1) * period) * ppm * 1e-6;
      time += static_cast<model::Picoseconds>(std::llround(late));
    }
    return time;
  }
  /// The first edge at `time` or later.
  [[nodiscard]] std::uint64_t first_edge_at(model::Picoseconds time) const {
    const model::Picoseconds first = edge(0);
    if (time <= first) return 0;
    auto number = static_cast<std::uint64_t>(static_cast<double>(time - first) /
                                             (static_cast<double>(period) * (1 + ppm * 1e-6)));
    while (edge(number) < time) ++number;
    while (number > 0 && edge(number - 1) >= time) --number;
    return number;
  }
};

}  // namespace rnic::testbench
