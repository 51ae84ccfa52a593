#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "driver/management.hpp"
#include "driver/qp_counters.hpp"
#include "driver/qp_transition.hpp"
#include "driver/umd/kernel_object.hpp"
#include "driver/umd/qp_connection.hpp"

namespace rnic::umd {

struct QpSpec {
  calls::Handle pd{};  ///< 0: the process's first
  calls::Handle send_cq{};
  calls::Handle receive_cq{};
  unsigned sq_log_depth{};
  unsigned sq_log_stride{};
  unsigned rq_log_depth{};
  unsigned rq_log_stride{};
  calls::Handle srq{};   ///< Receives come from this shared receive queue; rq_* are not used
  bool fast_register{};  ///< FastRegister requests are executed: the kernel's own queue pairs only, for they name DMA
                         ///< addresses
  hw::QpType type = hw::QpType::kRc;
  bool general_service{};  ///< QP1: type UD; the kernel's own
};

/// A queue pair of the kernel driver, its rings and its retired record as the process sees them.
class KernelQp final : public KernelObject {
 public:
  [[nodiscard]] std::uint32_t qpn() const { return qpn_; }
  [[nodiscard]] std::uint8_t* send_ring() const { return send_ring_.get(); }
  /// Null when receives come from a shared receive queue.
  [[nodiscard]] std::uint8_t* receive_ring() const { return receive_ring_.get(); }
  [[nodiscard]] std::size_t send_ring_bytes() const { return send_ring_bytes_; }
  [[nodiscard]] std::size_t receive_ring_bytes() const { return receive_ring_bytes_; }
  /// hw::RetiredRecord, written by the device.
  [[nodiscard]] const std::uint64_t* retired_record() const {
    return reinterpret_cast<const std::uint64_t*>(retired_record_.get());
  }

  /// State transitions (InfiniBand specification 10.3.1). `connection` gives what the transition takes; the rest is
  /// ignored. Errors: kInvalidState, kInvalidParameter (also a privileged Q_Key for a process, and an own address or a
  /// P_Key that there is not), those of the admin queue.
  [[nodiscard]] Result<void> to_init(const QpConnection& connection);
  [[nodiscard]] Result<void> to_rtr(const QpConnection& connection);
  [[nodiscard]] Result<void> to_rts(const QpConnection& connection);
  /// RTS to SQD: nothing new is started; `notify`: an event SqDrained when everything that was started is complete.
  [[nodiscard]] Result<void> to_sqd(bool notify);
  /// SQD, or SQE, to RTS: the send queue goes on. In SQE it waits until what was posted is flushed. Errors: also
  /// kTimeout.
  [[nodiscard]] Result<void> resume();
  /// Any transition, with the attributes named. Errors: kInvalidState (not legal from the state in which the driver or
  /// the device knows the queue pair, or from cur_state), kInvalidParameter (an attribute is missing, not taken, or out
  /// of range), those of the admin queue.
  [[nodiscard]] Result<void> modify(hw::QpState next, QpAttributes given, const QpConnection& attributes);
  /// Flushes both queues; the flush CQEs may come after the return.
  [[nodiscard]] Result<void> to_error();
  /// Flushes both queues; all CQEs are written when it returns. All indexes are then 0, and so is the retired record.
  [[nodiscard]] Result<void> to_reset();

  /// All attributes, as the device has them, and how far its queues are. Errors: those of the admin queue.
  [[nodiscard]] Result<calls::QueryQp::Answer> query();

  /// Datagrams to a multicast group (IPv6 in ff00::/8, or an IPv4 group, IPv4-mapped) come to it too, until it is
  /// detached; it can't be destroyed before. Errors: kInvalidParameter (not UD, not a group's address), kExists,
  /// kOutOfResources (the device has no place for another group, or the process has as many groups, or as many queue
  /// pairs in this one, as it may), those of the admin queue.
  [[nodiscard]] Result<void> attach_multicast(const std::array<std::uint8_t, 16>& group);
  /// Errors: kNotFound (it is not attached), those of the admin queue.
  [[nodiscard]] Result<void> detach_multicast(const std::array<std::uint8_t, 16>& group);

  /// Counts since its creation, or since they were cleared last; a reset leaves them. `clear`: they begin at 0 again,
  /// and no event is lost or counted twice. The two halves (hw::AdminQueryQpCounters) are of two moments. Errors: those
  /// of the admin queue.
  [[nodiscard]] Result<QpCounters> counters(bool clear = false);

 private:
  friend class KernelObject;
  explicit KernelQp(std::shared_ptr<ProcessContext> context)
      : KernelObject(std::move(context), calls::ObjectKind::kQp) {}
  Result<void> begin(const calls::CreateQp& request, const calls::CreateQp::Answer& answer);

  std::uint32_t qpn_{};
  hw::QpType type_{};
  std::shared_ptr<std::uint8_t> send_ring_;
  std::shared_ptr<std::uint8_t> receive_ring_;
  std::size_t send_ring_bytes_{}, receive_ring_bytes_{};
  std::shared_ptr<std::uint8_t> retired_record_;
};

}  // namespace rnic::umd
