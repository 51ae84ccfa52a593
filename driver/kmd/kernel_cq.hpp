#pragma once

#include <cstdint>

#include "driver/generated/host_interface.hpp"
#include "driver/kmd/dma_memory.hpp"
#include "driver/kmd/kernel_device.hpp"

namespace rnic::kmd {

struct CqSpec {
  std::uint32_t entries{};  ///< At least so many; the ring has the next power of two
  std::uint32_t uar{};      ///< UAR that may ring its doorbell
};

/// A completion queue on the device, and its ring.
class KernelCq {
 public:
  ~KernelCq();
  KernelCq(const KernelCq&) = delete;
  KernelCq& operator=(const KernelCq&) = delete;

  [[nodiscard]] std::uint32_t cqn() const { return cqn_; }
  [[nodiscard]] std::uint32_t uar() const { return uar_; }
  [[nodiscard]] unsigned log_depth() const { return log_depth_; }
  [[nodiscard]] std::uint8_t* ring() const { return ring_.data(); }

  /// Errors: those of the admin queue.
  [[nodiscard]] Result<hw::AdminQueueState> query();

  /// Destroys it now; the destructor then does nothing. Errors: kBusy (a queue pair uses it; it stays), those of the
  /// admin queue. If the device does not answer, the ring is never freed, because it may still be written to.
  [[nodiscard]] Result<void> destroy();

 private:
  friend class KernelDevice;
  KernelCq(KernelDevice& kernel, std::uint32_t cqn, std::uint32_t uar, unsigned log_depth, DmaMemory ring)
      : kernel_(kernel), cqn_(cqn), uar_(uar), log_depth_(log_depth), ring_(std::move(ring)) {}

  KernelDevice& kernel_;
  const std::uint32_t cqn_;
  const std::uint32_t uar_;
  const unsigned log_depth_;
  DmaMemory ring_;
  bool live_ = true;
};

}  // namespace rnic::kmd
