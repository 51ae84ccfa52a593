#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "driver/spin_lock.hpp"
#include "driver/umd/key_watch.hpp"

namespace rnic::umd {

/// The keys of a memory window that binds under way may leave it with: the one that it has, and those of the binds that
/// have been posted since. A bind that is refused or flushed leaves the window with the key before (decisions 54).
/// Thread safe; allocates nothing.
class WindowKeys final : public KeyWatch {
 public:
  explicit WindowKeys(std::uint32_t first) { begin(first); }
  /// Of a window that has just been made.
  void begin(std::uint32_t first) {
    const std::lock_guard lock(lock_);
    base_ = keys_[0] = first;
    count_ = 1;
  }

  /// Of the newest bind that was posted and has not failed.
  [[nodiscard]] std::uint32_t newest() const {
    const std::lock_guard lock(lock_);
    return count_ != 0 ? keys_[count_ - 1] : base_;
  }
  [[nodiscard]] bool contains(std::uint32_t key) const {
    const std::lock_guard lock(lock_);
    return key == base_ || std::find(keys_.cbegin(), end(), key) != end();
  }
  void posted(std::uint32_t key) {
    const std::lock_guard lock(lock_);
    if (count_ == keys_.size()) erase(keys_.cbegin(), keys_.cbegin() + 1);
    keys_[count_++] = key;
  }
  /// The bind has executed: the keys before are gone.
  void accepted(std::uint32_t key) override {
    const std::lock_guard lock(lock_);
    base_ = key;
    const auto found = std::find(keys_.cbegin(), end(), key);
    if (found != end()) erase(keys_.cbegin(), found);
  }
  void refused(std::uint32_t key) override {
    const std::lock_guard lock(lock_);
    const auto found = std::find(keys_.cbegin(), end(), key);
    if (found != end()) erase(found, found + 1);
  }

 private:
  /// Binds of one window that are under way at a time; of more, the last that is known to have executed is kept.
  static constexpr std::size_t kUnderWay = 16;
  using Keys = std::array<std::uint32_t, kUnderWay>;

  [[nodiscard]] Keys::const_iterator end() const { return keys_.cbegin() + count_; }
  void erase(Keys::const_iterator first, Keys::const_iterator last) {
    const auto to = keys_.begin() + (first - keys_.cbegin());
    std::copy(last, end(), to);
    count_ -= static_cast<std::size_t>(last - first);
  }

  mutable SpinLock lock_;
  std::uint32_t base_{};  ///< Of the last bind that is known to have executed
  Keys keys_{};           ///< Of binds that have not failed, oldest first
  std::size_t count_ = 0;
};

}  // namespace rnic::umd
