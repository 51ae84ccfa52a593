#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace rnic::kmd {

/// The lines for page lists that the device has on chip (docs/host_interface.md, admin_create_fast_mr): a region gets
/// some that follow each other, and nobody else has them meanwhile. Thread safe; lets no time pass.
class LinePool {
 public:
  explicit LinePool(std::uint32_t count) : taken_(count) {}

  /// The first of `lines` free lines in a row, which the caller gives back with release; or none_free().
  [[nodiscard]] std::uint32_t acquire(std::uint32_t lines);
  void release(std::uint32_t first, std::uint32_t lines) noexcept;
  [[nodiscard]] std::uint32_t none_free() const { return static_cast<std::uint32_t>(taken_.size()); }
  /// How many are given out.
  [[nodiscard]] std::size_t in_use();

 private:
  std::mutex mutex_;
  std::vector<bool> taken_;
};

/// Owns lines of a pool, which outlives it; or none.
class OwnedLines {
 public:
  OwnedLines() = default;
  /// None, if so many in a row are not free.
  OwnedLines(LinePool& pool, std::uint32_t lines);
  OwnedLines(OwnedLines&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)),
        first_(std::exchange(other.first_, 0)),
        count_(std::exchange(other.count_, 0)) {}
  OwnedLines& operator=(OwnedLines&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(first_, other.first_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~OwnedLines() {
    if (count_ != 0) pool_->release(first_, count_);
  }

  /// Never gives them back, because the device still has their region.
  void abandon() { count_ = 0; }
  [[nodiscard]] std::uint32_t first() const { return first_; }
  [[nodiscard]] std::uint32_t count() const { return count_; }

 private:
  LinePool* pool_{};
  std::uint32_t first_{};
  std::uint32_t count_{};
};

}  // namespace rnic::kmd
