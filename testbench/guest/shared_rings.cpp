#include "testbench/guest/shared_rings.hpp"

#include <algorithm>
#include <functional>
#include <string_view>

#include "model/pcie.hpp"

namespace rnic::testbench {

/// A slot lies within a page.
std::optional<std::uint64_t> print_of(const model::Iommu& memory, std::uint64_t address, std::size_t bytes) {
  const std::uint8_t* const at = memory.peek(address);
  if (at == nullptr) return {};
  return std::hash<std::string_view>{}({reinterpret_cast<const char*>(at), bytes});
}

bool is_zero(const model::Iommu& memory, std::uint64_t address, std::uint64_t bytes) {
  while (bytes != 0) {
    const std::uint64_t piece = std::min(bytes, model::kPageBytes - address % model::kPageBytes);
    const std::uint8_t* const at = memory.peek(address);
    if (at != nullptr && std::any_of(at, at + piece, [](std::uint8_t byte) { return byte != 0; })) return false;
    address += piece;
    bytes -= piece;
  }
  return true;
}

PostedRing::Doorbell PostedRing::judge(std::uint16_t producer) const {
  const auto more = static_cast<std::uint16_t>(producer - producer_);
  if (more == 0) return Doorbell::kSame;
  constexpr std::uint16_t kHalf = 0x8000;
  if (more > kHalf) return Doorbell::kBack;
  const auto all = std::uint32_t{static_cast<std::uint16_t>(producer_ - retired_)} + more;
  return all > depth() ? Doorbell::kOverrun : Doorbell::kPosts;
}

void PostedRing::hand_over(const model::Iommu& memory, bool in_place) {
  const auto print = print_of(memory, address(producer_), stride());
  if (in_place && print) prints_[producer_] = *print;
  ++producer_;
}

bool PostedRing::unchanged(const model::Iommu& memory, std::uint16_t index) {
  const auto known = prints_.find(index);
  if (known == prints_.end() || print_of(memory, address(index), stride()) == known->second) return true;
  prints_.erase(known);
  return false;
}

void PostedRing::retire_to(std::uint16_t index) {
  for (; retired_ != index; ++retired_) prints_.erase(retired_);
}

std::optional<std::uint16_t> PostedRing::owned_in(std::uint64_t slot) const {
  const auto index = static_cast<std::uint16_t>(retired_ + ((slot - retired_) & (depth() - std::uint64_t{1})));
  if (!owns(index)) return {};
  return index;
}

void PostedRing::restart() {
  producer_ = retired_ = 0;
  prints_.clear();
}

void PostedRing::move(const model::Iommu& memory, std::uint64_t base, unsigned log_depth) {
  base_ = base;
  log_depth_ = log_depth;
  for (auto& [index, print] : prints_) print = print_of(memory, address(index), stride()).value_or(print);
}

void WrittenRing::give_back(const model::Iommu& memory, std::uint32_t index) {
  if (!has(index)) return;
  if (const auto print = print_of(memory, address(index), kEntryBytes))
    prints_[(index + depth()) & kIndexMask] = *print;
}

bool WrittenRing::untouched(const model::Iommu& memory, std::uint32_t index) {
  const auto known = prints_.find(index);
  if (known == prints_.end())
    return place(index) >= depth() || !zeroed_ || is_zero(memory, address(index), kEntryBytes);
  const auto print = known->second;
  prints_.erase(known);
  const auto now = print_of(memory, address(index), kEntryBytes);
  return !now || *now == print;
}

}  // namespace rnic::testbench
