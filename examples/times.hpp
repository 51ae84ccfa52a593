#pragma once

#include <algorithm>
#include <vector>

namespace examples {

/// Durations, as tables show them: in us.
struct Times {
  double min = 0, median = 0, mean = 0, most = 0, max = 0;  ///< `most`: 99 of a hundred are no longer
};

/// Of durations in us, of which there is one at least.
[[nodiscard]] inline Times times_of(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  const auto at = [&](double part) {
    return all[std::min(all.size() - 1, static_cast<std::size_t>(part * static_cast<double>(all.size())))];
  };
  double sum = 0;
  for (const double one : all) sum += one;
  return {.min = all.front(),
          .median = at(0.5),
          .mean = sum / static_cast<double>(all.size()),
          .most = at(0.99),
          .max = all.back()};
}

}  // namespace examples
