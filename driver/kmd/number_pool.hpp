#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "driver/device.hpp"
#include "driver/fresh_numbers.hpp"
#include "driver/spin_lock.hpp"

namespace rnic::kmd {

/// Object numbers that a peer or another process cannot guess (decisions 16): a random free index, and an unpredictable
/// tag beside it, so that a stale or invented number does not name a live object. A tag of an index returns only after
/// a quarter of all tags (FreshNumbers). Thread safe; lets no time pass.
class NumberPool {
 public:
  /// Indexes 0 to count - 1 except those below `reserved`; tags of `tag_bits` bits: none, or 2 to 32.
  NumberPool(Device& device, std::uint32_t count, std::uint32_t reserved, unsigned tag_bits);

  struct Number {
    std::uint32_t index{};
    std::uint32_t tag{};  ///< Never 0 (if there are tag bits)
    /// The number of a queue: the index in its low `index_bits`, the tag above.
    [[nodiscard]] constexpr std::uint32_t over(unsigned index_bits) const { return tag << index_bits | index; }
  };

  /// Errors: kOutOfResources. The caller gives the index back with release.
  [[nodiscard]] Result<Number> acquire();
  void release(std::uint32_t index) noexcept;
  /// How many are given out.
  [[nodiscard]] std::size_t in_use();
  /// Another tag for an index that is in use. Precondition: there are tag bits.
  [[nodiscard]] std::uint32_t renew(std::uint32_t index);

 private:
  std::uint32_t next_tag(std::uint32_t index);

  Device& device_;
  const std::size_t count_;  ///< Of those that can be given out
  const unsigned tag_bits_;
  const std::uint64_t key_;  ///< Of the order of tags
  SpinLock lock_;
  std::vector<std::uint32_t> free_;   ///< Has room for all indexes: a release needs no memory
  std::vector<std::uint32_t> drawn_;  ///< Tags that each index has had
};

/// Owns one index of a pool, which outlives it.
class OwnedNumber {
 public:
  OwnedNumber() = default;
  OwnedNumber(NumberPool& pool, NumberPool::Number number) : pool_(&pool), number_(number) {}
  OwnedNumber(OwnedNumber&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)), number_(std::exchange(other.number_, {})) {}
  OwnedNumber& operator=(OwnedNumber&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(number_, other.number_);
    return *this;
  }
  ~OwnedNumber() {
    if (pool_ != nullptr) pool_->release(number_.index);
  }

  /// Errors: kOutOfResources.
  static Result<OwnedNumber> acquire(NumberPool& pool) {
    auto number = pool.acquire();
    if (!number) return number.error();
    return OwnedNumber(pool, *number);
  }

  /// The same index with another tag.
  void renew() { number_.tag = pool_->renew(number_.index); }
  /// Never gives it back, because the device still has an object of that number.
  void abandon() { pool_ = nullptr; }
  [[nodiscard]] const NumberPool::Number& number() const { return number_; }
  [[nodiscard]] std::uint32_t index() const { return number_.index; }
  [[nodiscard]] std::uint32_t tag() const { return number_.tag; }

 private:
  NumberPool* pool_{};
  NumberPool::Number number_{};
};

}  // namespace rnic::kmd
