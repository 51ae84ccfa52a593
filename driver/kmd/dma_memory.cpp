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

Result<DmaBlock> DmaPool::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > kLargest) {
    auto memory = DmaMemory::allocate(device_, bytes);
    if (!memory) return memory.error();
    const DmaBlock block{memory->data(), memory->iova(), memory->size()};
    large_.emplace(block.iova, memory.take());
    return block;
  }
  const std::size_t size = std::bit_ceil(std::max(bytes, kSmallest));
  auto& list = free_[size];
  if (list.empty()) {
    auto page = DmaMemory::allocate(device_, kDevicePageBytes);
    if (!page) return page.error();
    for (std::size_t offset = page->size(); offset != 0; offset -= size) {
      list.push_back({page->data() + offset - size, page->iova() + offset - size, size});
    }
    pages_.push_back(page.take());
  }
  const DmaBlock block = list.back();
  list.pop_back();
  std::memset(block.pointer, 0, block.size);
  return block;
}

void DmaPool::free(const DmaBlock& block) {
  const std::lock_guard lock(mutex_);
  if (block.size > kLargest) {
    large_.erase(block.iova);
  } else if (block.size != 0) {
    free_[block.size].push_back(block);
  }
}

}  // namespace rnic::kmd
