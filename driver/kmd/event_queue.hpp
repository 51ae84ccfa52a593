#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "driver/device.hpp"
#include "driver/generated/host_interface.hpp"
#include "driver/kmd/dma_memory.hpp"

namespace rnic::kmd {

/// The host's side of one event queue: takes entries and tells the device.
class EventQueue {
 public:
  EventQueue(Device& device, std::uint32_t eqn, std::uint32_t vector, unsigned log_depth, DmaMemory ring);
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  [[nodiscard]] std::uint32_t eqn() const { return eqn_; }
  [[nodiscard]] std::uint32_t vector() const { return vector_; }
  [[nodiscard]] std::uint32_t depth() const { return 1U << log_depth_; }
  [[nodiscard]] std::uint64_t base() const { return ring_.iova(); }

  /// Takes every entry and hands each to `handle`, in order, without a lock held. Returns the number taken.
  /// Lets no time pass. Nothing after close.
  unsigned drain(const std::function<void(const hw::Eqe&)>& handle);

  /// Takes and tells the device nothing any more.
  void close();

 private:
  bool take(hw::Eqe& eqe);

  Device& device_;
  const std::uint32_t eqn_;
  const std::uint32_t vector_;
  const unsigned log_depth_;
  DmaMemory ring_;
  std::mutex mutex_;
  std::uint32_t consumer_{};
  bool closed_{};
};

}  // namespace rnic::kmd
