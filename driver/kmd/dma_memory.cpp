#include "driver/kmd/dma_memory.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace rnic::kmd {

Result<DmaMemory> DmaMemory::allocate(Device& device, std::size_t bytes) {
  auto buffer = device.dma_alloc(bytes);
  if (!buffer) return buffer.error();
  DmaMemory memory;
  memory.device_ = &device;
  memory.buffer_ = *buffer;
  return memory;
}

Result<std::shared_ptr<DmaMemory>> DmaMemory::share(Device& device, std::size_t bytes,
                                                    const std::shared_ptr<Account>& account) {
  return or_out_of_memory([&]() -> Result<std::shared_ptr<DmaMemory>> {
    auto charge = Charge::take(account, Account::Of::kRingBytes, bytes);
    if (!charge) return charge.error();
    auto shared = std::make_shared<DmaMemory>();
    auto memory = allocate(device, bytes);
    if (!memory) return memory.error();
    *shared = memory.take();
    shared->charge_ = charge.take();
    return shared;
  });
}

Result<DmaBlock> DmaPool::allocate(std::size_t bytes) {
  return or_out_of_memory([&]() -> Result<DmaBlock> {
    const std::lock_guard lock(mutex_);
    if (bytes > kLargest) {
      auto memory = DmaMemory::allocate(device_, bytes);
      if (!memory) return memory.error();
      const DmaBlock block{memory->data(), memory->iova(), memory->size()};
      large_.emplace(block.iova, memory.take());
      return block;
    }
    const std::size_t size = std::bit_ceil(std::max(bytes, kSmallest));
    auto& blocks = small_[size];
    if (blocks.free.empty()) {
      if (auto done = cut_page(blocks, size); !done) return done.error();
    }
    const DmaBlock block = blocks.free.back();
    blocks.free.pop_back();
    std::memset(block.pointer, 0, block.size);
    return block;
  });
}

/// All room first: once a block of the page is in the list, nothing may fail.
Result<void> DmaPool::cut_page(SizeClass& blocks, std::size_t size) {
  const std::size_t count = kDevicePageBytes / size;
  blocks.free.reserve(blocks.cut + count);
  pages_.reserve(pages_.size() + 1);
  auto page = DmaMemory::allocate(device_, kDevicePageBytes);
  if (!page) return page.error();
  for (std::size_t i = count; i != 0; --i) {
    const std::size_t offset = (i - 1) * size;
    blocks.free.push_back({page->data() + offset, page->iova() + offset, size});
  }
  blocks.cut += count;
  pages_.push_back(page.take());
  return {};
}

void DmaPool::free(const DmaBlock& block) noexcept {
  const std::lock_guard lock(mutex_);
  if (block.size > kLargest) {
    large_.erase(block.iova);
  } else if (block.size != 0) {
    small_.find(block.size)->second.free.push_back(block);
  }
}

Result<PoolMemory> PoolMemory::allocate(DmaPool& pool, std::size_t bytes, const std::shared_ptr<Account>& account) {
  auto charge = Charge::take(account, Account::Of::kRingBytes, bytes);
  if (!charge) return charge.error();
  auto block = pool.allocate(bytes);
  if (!block) return block.error();
  PoolMemory memory;
  memory.pool_ = &pool;
  memory.block_ = *block;
  memory.charge_ = charge.take();
  return memory;
}

}  // namespace rnic::kmd
