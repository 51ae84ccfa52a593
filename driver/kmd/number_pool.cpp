#include "driver/kmd/number_pool.hpp"

#include <mutex>

namespace rnic::kmd {

NumberPool::NumberPool(Device& device, std::uint32_t count, std::uint32_t reserved, unsigned tag_bits)
    : device_(device),
      count_(count - reserved),
      tag_bits_(tag_bits),
      key_(tag_bits != 0 ? device.random64() : 0),
      drawn_(count, 0) {
  free_.reserve(count);
  for (std::uint32_t index = reserved; index < count; ++index) free_.push_back(index);
}

Result<NumberPool::Number> NumberPool::acquire() {
  const std::lock_guard lock(lock_);
  if (free_.empty()) return Error::kOutOfResources;
  // One step of a Fisher-Yates shuffle: the free list is a random permutation, made as it is used.
  std::swap(free_[device_.random64() % free_.size()], free_.back());
  const std::uint32_t index = free_.back();
  free_.pop_back();
  return Number{index, tag_bits_ != 0 ? next_tag(index) : 0};
}

void NumberPool::release(std::uint32_t index) noexcept {
  const std::lock_guard lock(lock_);
  free_.push_back(index);
}

std::size_t NumberPool::in_use() {
  const std::lock_guard lock(lock_);
  return count_ - free_.size();
}

std::uint32_t NumberPool::renew(std::uint32_t index) {
  const std::lock_guard lock(lock_);
  return next_tag(index);
}

std::uint32_t NumberPool::next_tag(std::uint32_t index) {
  return FreshNumbers(key_ + index, tag_bits_).at(drawn_[index]++);
}

}  // namespace rnic::kmd
