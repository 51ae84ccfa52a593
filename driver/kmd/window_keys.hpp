#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <vector>

namespace rnic::kmd {

/// The keys of a memory window that binds under way may leave it with: the one that it has, and those of the binds that
/// have been posted since. A bind that is refused or flushed leaves the window with the key before (decisions 54).
/// Thread safe.
class WindowKeys {
 public:
  explicit WindowKeys(std::uint32_t first) : keys_{first} {}

  /// Of the newest bind that was posted and has not failed.
  [[nodiscard]] std::uint32_t newest() const {
    const std::lock_guard lock(mutex_);
    return keys_.back();
  }
  [[nodiscard]] bool contains(std::uint32_t key) const {
    const std::lock_guard lock(mutex_);
    return std::find(keys_.begin(), keys_.end(), key) != keys_.end();
  }
  /// Throws std::bad_alloc; then nothing has changed.
  void posted(std::uint32_t key) {
    const std::lock_guard lock(mutex_);
    keys_.push_back(key);
  }
  /// The bind has executed: the keys before are gone.
  void accepted(std::uint32_t key) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find(keys_.begin(), keys_.end(), key);
    if (found != keys_.end()) keys_.erase(keys_.begin(), found);
  }
  void refused(std::uint32_t key) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find(keys_.begin() + 1, keys_.end(), key);
    if (found != keys_.end()) keys_.erase(found);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::uint32_t> keys_;  ///< Oldest first, never empty
};

}  // namespace rnic::kmd
