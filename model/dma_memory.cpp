#include "model/dma_memory.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

namespace rnic::model {
namespace {

/// Writes to memory of other processes that are under way at once.
constexpr std::size_t kMostWrites = 32;

/// Stores what the request enables, aligned words in one piece each, and the last one behind all others: somebody may
/// look at the memory meanwhile.
void store(std::uint8_t* to, const DmaRequest& request) {
  constexpr std::size_t kDword = 4, kWord = 8;
  const std::size_t size = request.data.size();
  const auto whole = [&](std::size_t dword) {
    return (dword != 0 || request.first_be == 0xF) &&
           (dword + kDword != size || size == kDword || request.last_be == 0xF);
  };
  const auto store_word = [&](std::size_t at) {
    std::uint64_t value{};
    std::memcpy(&value, request.data.data() + at, kWord);
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(to + at), value, __ATOMIC_RELAXED);
  };
  for (std::size_t i = 0; i < size;) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(to + i) % kWord == 0;
    if (aligned && whole(i)) {
      // Those before the last are whole.
      for (; i + 2 * kWord <= size; i += kWord) store_word(i);
    }
    const std::uint8_t* const from = request.data.data() + i;
    const bool word = aligned && i + kWord <= size && whole(i) && whole(i + kDword);
    const std::size_t bytes = word ? kWord : kDword;
    if (i + bytes == size) std::atomic_thread_fence(std::memory_order_release);
    if (word) {
      store_word(i);
    } else if (whole(i)) {
      std::uint32_t value{};
      std::memcpy(&value, from, kDword);
      __atomic_store_n(reinterpret_cast<std::uint32_t*>(to + i), value, __ATOMIC_RELAXED);
    } else {
      for (std::size_t k = 0; k < kDword; ++k) {
        if (byte_enabled(i + k, request.length_dw, request.first_be, request.last_be)) to[i + k] = from[k];
      }
    }
    i += bytes;
  }
}

}  // namespace

std::size_t enabled_bytes(const DmaRequest& request) {
  return std::size_t{request.length_dw} * 4 - static_cast<std::size_t>(std::popcount(0xFu & ~request.first_be)) -
         (request.length_dw > 1 ? static_cast<std::size_t>(std::popcount(0xFu & ~request.last_be)) : 0);
}

bool DmaMemory::read(const DmaRequest& request, const Iommu::Place& from, std::vector<std::uint8_t>& data) {
  data.resize(std::size_t{request.length_dw} * 4);
  const auto memory = [&] { return copy_from(from, data); };
  if (witness_ != nullptr ? witness_->read(request, from, data, memory) : memory()) return true;
  iommu_.gone(request.address, Iommu::Access::kRead);
  return false;
}

bool DmaMemory::copy_from(const Iommu::Place& from, std::vector<std::uint8_t>& data) {
  if (from.process != 0) {
    const auto memory = iommu_.process(from.process);
    if (memory == nullptr) return false;
    const auto access = memory->read(reinterpret_cast<std::uint64_t>(from.at), data.size());
    memory->finish(*access);
    data = std::move(access->data);
    return access->good;
  }
  std::copy_n(from.at, data.size(), data.begin());
  if (weak_order()) order_->read(from.at, data);
  return true;
}

std::function<bool(std::vector<std::uint8_t>&)> DmaMemory::begin_read(const DmaRequest& request,
                                                                      const Iommu::Place& from) {
  auto memory = iommu_.process(from.process);
  if (memory == nullptr) {
    iommu_.gone(request.address, Iommu::Access::kRead);
    return {};
  }
  // What was written before it through another process may be the same memory.
  if (std::any_of(writes_.begin(), writes_.end(), [&](const Write& one) { return one.memory != memory; }))
    finish_writes();
  auto access = memory->read(reinterpret_cast<std::uint64_t>(from.at), std::size_t{request.length_dw} * 4);
  return [this, address = request.address, memory = std::move(memory),
          access = std::move(access)](std::vector<std::uint8_t>& data) {
    memory->finish(*access);
    data = std::move(access->data);
    if (!access->good) iommu_.gone(address, Iommu::Access::kRead);
    return access->good;
  };
}

bool DmaMemory::write(const DmaRequest& request, const Iommu::Place& to) {
  const bool in_process = to.process != 0;
  if (!in_process) before_write_ ? before_write_() : finish_writes();
  const auto memory = [&] { return copy_to(to, request); };
  const bool good = witness_ != nullptr ? witness_->write(request, to, memory)
                    : in_process        ? begin_write(request, to)
                                        : memory();
  if (!good) iommu_.gone(request.address, Iommu::Access::kWrite);
  return good;
}

/// False: the process is not there any more.
bool DmaMemory::begin_write(const DmaRequest& request, const Iommu::Place& to) {
  auto memory = iommu_.process(to.process);
  if (memory == nullptr) return false;
  auto access = memory->write(reinterpret_cast<std::uint64_t>(to.at), request);
  writes_.push_back({std::move(memory), std::move(access), request.address, enabled_bytes(request)});
  if (writes_.size() >= kMostWrites) finish_writes();
  return true;
}

void DmaMemory::finish_writes() {
  for (const Write& one : std::exchange(writes_, {})) {
    one.memory->finish(*one.access);
    if (one.access->good) continue;
    iommu_.gone(one.address, Iommu::Access::kWrite);
    if (on_lost_write_) on_lost_write_(one.bytes);
  }
}

bool DmaMemory::copy_to(const Iommu::Place& to, const DmaRequest& request) {
  if (to.process != 0) {
    const auto memory = iommu_.process(to.process);
    if (memory == nullptr) return false;
    const auto access = memory->write(reinterpret_cast<std::uint64_t>(to.at), request);
    memory->finish(*access);
    return access->good;
  }
  if (weak_order()) {
    order_->write(to.at, request);
  } else {
    store(to.at, request);
  }
  return true;
}

}  // namespace rnic::model
