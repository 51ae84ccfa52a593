#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "driver/generated/kernel_calls.hpp"
#include "driver/kmd/dma_memory.hpp"

namespace rnic::kmd {

/// Regions of memory that a client shares with the kernel driver, by their numbers. Thread safe; lets no time pass.
class SharedRegions {
 public:
  /// Throws std::bad_alloc.
  [[nodiscard]] std::uint32_t add(std::shared_ptr<std::uint8_t> pointer, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::uint32_t region = ++last_;
    regions_.emplace(region, Region{std::move(pointer), bytes});
    return region;
  }
  void set(std::uint32_t region, std::shared_ptr<std::uint8_t> pointer, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    regions_.find(region)->second = {std::move(pointer), bytes};
  }
  void remove(std::uint32_t region) noexcept {
    std::shared_ptr<std::uint8_t> last;  // goes without the lock
    const std::lock_guard lock(mutex_);
    const auto found = regions_.find(region);
    last = std::move(found->second.pointer);
    regions_.erase(found);
  }
  /// Errors: kAccessViolation (no such region, or not all of the range is inside it).
  [[nodiscard]] Result<std::shared_ptr<std::uint8_t>> find(const calls::MemoryRange& range) {
    const std::lock_guard lock(mutex_);
    const auto found = regions_.find(range.region);
    if (found == regions_.end()) return Error::kAccessViolation;
    const Region& region = found->second;
    if (range.offset > region.bytes || range.bytes > region.bytes - range.offset) return Error::kAccessViolation;
    return std::shared_ptr<std::uint8_t>(region.pointer, region.pointer.get() + range.offset);
  }

 private:
  struct Region {
    std::shared_ptr<std::uint8_t> pointer;
    std::uint64_t bytes{};
  };
  std::mutex mutex_;
  std::map<std::uint32_t, Region> regions_;
  std::uint32_t last_{};
};

/// Owns one of them: as long as it is there, the client may map the memory. What is mapped keeps the memory.
class SharedRegion {
 public:
  SharedRegion() = default;
  /// Throws std::bad_alloc.
  SharedRegion(SharedRegions& regions, std::shared_ptr<std::uint8_t> pointer, std::uint64_t bytes)
      : regions_(&regions), region_(regions.add(std::move(pointer), bytes)), bytes_(bytes) {}
  SharedRegion(SharedRegions& regions, const std::shared_ptr<DmaMemory>& memory)
      : SharedRegion(regions, std::shared_ptr<std::uint8_t>(memory, memory->data()), memory->size()) {}
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
  void is_at(const std::shared_ptr<DmaMemory>& memory) {
    bytes_ = memory->size();
    regions_->set(region_, std::shared_ptr<std::uint8_t>(memory, memory->data()), bytes_);
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
