#include "driver/kmd/line_pool.hpp"

#include <algorithm>

namespace rnic::kmd {

std::uint32_t LinePool::acquire(std::uint32_t lines) {
  const std::lock_guard lock(mutex_);
  const auto found = std::search_n(taken_.begin(), taken_.end(), lines, false);
  if (found == taken_.end()) return none_free();
  std::fill_n(found, lines, true);
  return static_cast<std::uint32_t>(found - taken_.begin());
}

void LinePool::release(std::uint32_t first, std::uint32_t lines) noexcept {
  const std::lock_guard lock(mutex_);
  std::fill_n(taken_.begin() + first, lines, false);
}

std::size_t LinePool::in_use() {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::count(taken_.begin(), taken_.end(), true));
}

OwnedLines::OwnedLines(LinePool& pool, std::uint32_t lines) : pool_(&pool), first_(pool.acquire(lines)) {
  if (first_ == pool.none_free())
    first_ = 0;
  else
    count_ = lines;
}

}  // namespace rnic::kmd
