#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "driver/device.hpp"
#include "driver/kmd/account.hpp"

namespace rnic::kmd {

/// Owns one DMA buffer.
class DmaMemory {
 public:
  DmaMemory() = default;
  DmaMemory(DmaMemory&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)),
        buffer_(std::exchange(other.buffer_, {})),
        charge_(std::move(other.charge_)) {}
  DmaMemory& operator=(DmaMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(buffer_, other.buffer_);
    std::swap(charge_, other.charge_);
    return *this;
  }
  ~DmaMemory() {
    if (device_ != nullptr) device_->dma_free(buffer_);
  }

  /// Errors: kOutOfMemory.
  static Result<DmaMemory> allocate(Device& device, std::size_t bytes);
  /// For memory that a client may keep longer than its object; `account` counts it. Errors: kOutOfMemory.
  static Result<std::shared_ptr<DmaMemory>> share(Device& device, std::size_t bytes,
                                                  const std::shared_ptr<Account>& account = {});

  [[nodiscard]] std::uint8_t* data() const { return static_cast<std::uint8_t*>(buffer_.pointer); }
  [[nodiscard]] std::uint64_t iova() const { return buffer_.iova; }
  [[nodiscard]] std::size_t size() const { return buffer_.size; }

  /// Gives the memory up without freeing it, because the device refuses to let go of it.
  void abandon() { device_ = nullptr; }

 private:
  Device* device_{};
  DmaBuffer buffer_{};
  Charge charge_;
};

/// A piece of DMA memory of a pool, aligned to 64 bytes or to its size if that is less than a page.
struct DmaBlock {
  std::uint8_t* pointer{};
  std::uint64_t iova{};
  std::size_t size{};  ///< As granted: a power of two up to a page, whole pages above
};

/// Small DMA allocations (page lists, retired records): size classes of 64 bytes to 2 KiB cut from pages, larger
/// ones taken from the device. Blocks come zeroed. Thread safe; lets no time pass.
class DmaPool {
 public:
  explicit DmaPool(Device& device) : device_(device) {}
  DmaPool(const DmaPool&) = delete;
  DmaPool& operator=(const DmaPool&) = delete;

  /// Errors: kOutOfMemory. The caller gives the block back with free, before the pool goes.
  [[nodiscard]] Result<DmaBlock> allocate(std::size_t bytes);
  void free(const DmaBlock& block) noexcept;

 private:
  static constexpr std::size_t kSmallest = 64;
  static constexpr std::size_t kLargest = 2048;

  /// Blocks of one size. `free` has room for every block that was ever cut, so that giving one back needs no memory.
  struct SizeClass {
    std::vector<DmaBlock> free;
    std::size_t cut{};
  };
  Result<void> cut_page(SizeClass& blocks, std::size_t size);

  Device& device_;
  std::mutex mutex_;
  std::vector<DmaMemory> pages_;
  std::map<std::size_t, SizeClass> small_;
  std::map<std::uint64_t, DmaMemory> large_;
};

/// Owns one block of a pool.
class PoolMemory {
 public:
  PoolMemory() = default;
  PoolMemory(PoolMemory&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)),
        block_(std::exchange(other.block_, {})),
        charge_(std::move(other.charge_)) {}
  PoolMemory& operator=(PoolMemory&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(block_, other.block_);
    std::swap(charge_, other.charge_);
    return *this;
  }
  ~PoolMemory() {
    if (pool_ != nullptr) pool_->free(block_);
  }

  /// `account` counts it. Errors: kOutOfMemory. `pool` outlives it.
  static Result<PoolMemory> allocate(DmaPool& pool, std::size_t bytes, const std::shared_ptr<Account>& account = {});

  /// As DmaMemory::abandon.
  void abandon() { pool_ = nullptr; }
  [[nodiscard]] std::uint8_t* data() const { return block_.pointer; }
  [[nodiscard]] std::uint64_t iova() const { return block_.iova; }

 private:
  DmaPool* pool_{};
  DmaBlock block_{};
  Charge charge_;
};

}  // namespace rnic::kmd
