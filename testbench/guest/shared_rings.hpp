#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "model/iommu.hpp"

namespace rnic::testbench {

/// What is in memory that the device reaches, as a number by which a change is seen. Nothing: there is no memory.
[[nodiscard]] std::optional<std::uint64_t> print_of(const model::Iommu& memory, std::uint64_t address,
                                                    std::size_t bytes);
/// Whether all of it is zero; where no memory is counts as zero.
[[nodiscard]] bool is_zero(const model::Iommu& memory, std::uint64_t address, std::uint64_t bytes);

/// A ring that the driver fills (WQEs, admin commands): which slots are the device's, and what was in them when they
/// were handed over. Indexes count modulo 2^16.
class PostedRing {
 public:
  PostedRing(std::uint64_t base, unsigned log_depth, unsigned log_stride)
      : base_(base), log_depth_(log_depth), log_stride_(log_stride) {}

  enum class Doorbell : std::uint8_t { kSame, kPosts, kOverrun, kBack };
  [[nodiscard]] Doorbell judge(std::uint16_t producer) const;

  /// The next slot is the device's from now on; false in `in_place`: it is not looked at any more.
  void hand_over(const model::Iommu& memory, bool in_place);
  /// Whether that slot, which is the device's, is as it was. A slot that is not is told once.
  [[nodiscard]] bool unchanged(const model::Iommu& memory, std::uint16_t index);
  /// All before `index` are the driver's again.
  void retire_to(std::uint16_t index);
  [[nodiscard]] bool owns(std::uint16_t index) const {
    return static_cast<std::uint16_t>(index - retired_) < static_cast<std::uint16_t>(producer_ - retired_);
  }
  /// The one in that slot that the device owns, if any.
  [[nodiscard]] std::optional<std::uint16_t> owned_in(std::uint64_t slot) const;
  /// The queue begins anew, with nothing in it.
  void restart();
  /// It lies elsewhere; what is posted is there, too.
  void move(const model::Iommu& memory, std::uint64_t base, unsigned log_depth);

  [[nodiscard]] std::uint64_t base() const { return base_; }
  [[nodiscard]] std::uint64_t bytes() const { return std::uint64_t{1} << (log_depth_ + log_stride_); }
  [[nodiscard]] std::size_t stride() const { return std::size_t{1} << log_stride_; }
  [[nodiscard]] std::uint32_t depth() const { return std::uint32_t{1} << log_depth_; }
  [[nodiscard]] std::uint64_t address(std::uint16_t index) const {
    return base_ + ((index & (depth() - std::uint64_t{1})) << log_stride_);
  }
  [[nodiscard]] std::uint16_t producer() const { return producer_; }
  [[nodiscard]] std::uint16_t retired() const { return retired_; }

 private:
  std::uint64_t base_;
  unsigned log_depth_, log_stride_;
  std::uint16_t producer_ = 0, retired_ = 0;
  std::unordered_map<std::uint16_t, std::uint64_t> prints_;  ///< Of slots that are the device's, by index
};

/// A ring that the device fills with entries of 64 bytes: what was in a slot when the driver gave it back. Indexes
/// count modulo 2^24, from `origin` on.
class WrittenRing {
 public:
  static constexpr std::uint32_t kIndexMask = 0xFF'FFFF;
  static constexpr std::size_t kEntryBytes = 64;

  /// `zeroed`: all of it was when it was handed over.
  WrittenRing(std::uint64_t base, unsigned log_depth, std::uint32_t origin, bool zeroed)
      : base_(base), log_depth_(log_depth), origin_(origin), zeroed_(zeroed) {}

  /// The driver gives the slot of entry `index` back.
  void give_back(const model::Iommu& memory, std::uint32_t index);
  /// The device is about to write entry `index`: whether its slot is as it was given back.
  [[nodiscard]] bool untouched(const model::Iommu& memory, std::uint32_t index);

  [[nodiscard]] std::uint64_t base() const { return base_; }
  [[nodiscard]] std::uint64_t bytes() const { return kEntryBytes << log_depth_; }
  [[nodiscard]] std::uint32_t depth() const { return std::uint32_t{1} << log_depth_; }
  [[nodiscard]] std::uint32_t place(std::uint32_t index) const { return (index - origin_) & kIndexMask; }
  [[nodiscard]] std::uint64_t address(std::uint32_t index) const {
    return base_ + kEntryBytes * (place(index) & (depth() - 1));
  }
  /// Entry `index` lies in it, and not in the ring before.
  [[nodiscard]] bool has(std::uint32_t index) const { return place(index) <= kIndexMask / 2; }

 private:
  std::uint64_t base_;
  unsigned log_depth_;
  std::uint32_t origin_;
  bool zeroed_;
  std::unordered_map<std::uint32_t, std::uint64_t> prints_;  ///< Of slots that were given back, by the next entry
};

}  // namespace rnic::testbench
