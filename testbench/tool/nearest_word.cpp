#include "testbench/tool/nearest_word.hpp"

#include <algorithm>

namespace rnic::testbench {
namespace {

/// Damerau and Levenshtein's distance, of neighbours that change places once.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string nearest_word(const std::string& word, const std::vector<std::string>& names) {
  std::string best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const auto& name : names) {
    const std::size_t d = distance(word, name);
    if (d < least) {
      least = d;
      best = name;
    }
  }
  if (!best.empty() || word.size() < 2) return best;
  const auto begins = [&](const std::string& name) { return name.starts_with(word); };
  const auto first = std::find_if(names.begin(), names.end(), begins);
  return first == names.end() ? "" : *first;
}

}  // namespace rnic::testbench
