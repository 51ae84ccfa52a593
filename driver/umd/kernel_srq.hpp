#pragma once

#include <cstdint>

#include "driver/umd/kernel_object.hpp"

namespace rnic::umd {

struct SrqSpec {
  calls::Handle pd{};  ///< Protection domain of the buffers, whatever queue pair takes them; 0: the process's first
  unsigned log_depth{};
  unsigned log_stride{};
  std::uint64_t affinity{};  ///< As create_srq says
};

/// A shared receive queue of the kernel driver, and its ring as the process sees it.
class KernelSrq final : public KernelObject {
 public:
  [[nodiscard]] std::uint32_t srqn() const { return srqn_; }
  /// As KernelCq.
  [[nodiscard]] std::uint64_t affinity() const { return affinity_; }
  [[nodiscard]] unsigned log_depth() const { return log_depth_; }
  [[nodiscard]] unsigned log_stride() const { return log_stride_; }
  [[nodiscard]] std::uint8_t* ring() const { return ring_.get(); }

  /// One event kSrqLimit once the device has fewer requests left than `limit`, at once if it has; 0: none. Replaces
  /// the limit before. Errors: those of the admin queue.
  [[nodiscard]] Result<void> arm(std::uint16_t limit);

  /// Memory for a ring of 2^log_depth slots, of the same stride. Errors: kInvalidParameter (it is not larger, or beyond
  /// the limit), kOutOfMemory.
  [[nodiscard]] Result<std::shared_ptr<std::uint8_t>> prepare(unsigned log_depth);
  /// The device takes the prepared ring in the place of the present one. Its requests have the same indexes there: the
  /// caller has copied them, tells the device of none meanwhile, and has this object adopt the ring. Errors:
  /// kInvalidParameter (more is posted than fits), those of the admin queue; the ring stays then.
  [[nodiscard]] Result<void> use();
  /// It is ring() from now on. Gives the one before, whose end may take a while.
  [[nodiscard]] std::shared_ptr<std::uint8_t> adopt(std::shared_ptr<std::uint8_t> ring, unsigned log_depth);

  /// Errors: those of the admin queue.
  [[nodiscard]] Result<calls::QuerySrq::Answer> query();

 private:
  friend class KernelObject;
  explicit KernelSrq(std::shared_ptr<ProcessContext> context)
      : KernelObject(std::move(context), calls::ObjectKind::kSrq) {}
  Result<void> begin(const calls::CreateSrq& request, const calls::CreateSrq::Answer& answer);

  std::uint32_t srqn_{};
  std::uint64_t affinity_{};
  unsigned log_depth_{};
  unsigned log_stride_{};
  std::shared_ptr<std::uint8_t> ring_;
};

}  // namespace rnic::umd
