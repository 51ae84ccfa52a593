#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "driver/generated/kernel_calls.hpp"

namespace rnic::kmd {

/// Regions of memory that a client shares with the kernel driver, by their numbers. Thread safe; lets no time pass.
class SharedRegions {
 public:
  /// Throws std::bad_alloc.
  [[nodiscard]] std::uint32_t add(std::uint8_t* pointer, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::uint32_t region = ++last_;
    regions_.emplace(region, Region{pointer, bytes});
    return region;
  }
  void set(std::uint32_t region, std::uint8_t* pointer, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    regions_.find(region)->second = {pointer, bytes};
  }
  void remove(std::uint32_t region) noexcept {
    const std::lock_guard lock(mutex_);
    regions_.erase(region);
  }
  /// Errors: kAccessViolation (no such region, or not all of the range is inside it).
  [[nodiscard]] Result<std::uint8_t*> find(const calls::MemoryRange& range) {
    const std::lock_guard lock(mutex_);
    const auto found = regions_.find(range.region);
    if (found == regions_.end()) return Error::kAccessViolation;
    const Region& region = found->second;
    if (range.offset > region.bytes || range.bytes > region.bytes - range.offset) return Error::kAccessViolation;
    return region.pointer + range.offset;
  }

 private:
  struct Region {
    std::uint8_t* pointer{};
    std::uint64_t bytes{};
  };
  std::mutex mutex_;
  std::map<std::uint32_t, Region> regions_;
  std::uint32_t last_{};
};

/// Owns one of them; the memory itself belongs to somebody else, who keeps it longer.
class SharedRegion {
 public:
  SharedRegion() = default;
  /// Throws std::bad_alloc.
  SharedRegion(SharedRegions& regions, std::uint8_t* pointer, std::uint64_t bytes)
      : regions_(&regions), region_(regions.add(pointer, bytes)), bytes_(bytes) {}
  SharedRegion(SharedRegion&& other) noexcept
      : regions_(std::exchange(other.regions_, nullptr)), region_(other.region_), bytes_(other.bytes_) {}
  SharedRegion& operator=(SharedRegion&& other) noexcept {
    std::swap(regions_, other.regions_);
    std::swap(region_, other.region_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~SharedRegion() {
    if (regions_ != nullptr) regions_->remove(region_);
  }

  /// Says where the memory is, for one that was made without. Needs no memory.
  void is_at(std::uint8_t* pointer, std::uint64_t bytes) {
    regions_->set(region_, pointer, bytes);
    bytes_ = bytes;
  }

  [[nodiscard]] calls::MemoryRange range() const { return {.region = region_, .offset = 0, .bytes = bytes_}; }
  [[nodiscard]] calls::MemoryRange range(std::uint64_t offset, std::uint64_t bytes) const {
    return {.region = region_, .offset = offset, .bytes = bytes};
  }

 private:
  SharedRegions* regions_{};
  std::uint32_t region_{};
  std::uint64_t bytes_{};
};

}  // namespace rnic::kmd
