#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "driver/generated/host_interface.hpp"
#include "driver/kmd/dma_memory.hpp"
#include "driver/kmd/kernel_device.hpp"
#include "driver/management.hpp"
#include "driver/qp_counters.hpp"
#include "driver/qp_transition.hpp"

namespace rnic::kmd {

struct QpSpec {
  std::uint32_t pd{};
  std::uint32_t uar{};
  std::uint32_t send_cqn{};
  std::uint32_t receive_cqn{};
  unsigned sq_log_depth{};
  unsigned sq_log_stride{};
  unsigned rq_log_depth{};
  unsigned rq_log_stride{};
  std::optional<std::uint32_t> srqn{};  ///< Receives come from this shared receive queue; rq_* are not used
  bool fast_register{};  ///< FastRegister requests are executed: the kernel's own queue pairs only, for they name DMA
                         ///< addresses
  hw::QpType type = hw::QpType::kRc;
  bool general_service{};              ///< QP1: type UD, on the kernel driver's UAR
  bool privileged{};                   ///< It may have a privileged Q_Key
  std::shared_ptr<Account> account{};  ///< Counts its memory and its groups, if there is one
};

/// Where a queue pair sends. Addresses in network order, first byte on the wire first; IPv4 addresses IPv4-mapped. A UD
/// queue pair takes from here its P_Key and its own addresses, a second one in `dest_ip`; where it sends, each request
/// says.
struct QpPath {
  std::array<std::uint8_t, 16> source_ip{};
  std::array<std::uint8_t, 16> dest_ip{};
  std::uint64_t dest_mac{};  ///< As a number: the first byte on the wire is bits 47:40
  bool ipv6{};
  std::uint8_t traffic_class{};
  std::uint8_t hop_limit = 64;
  std::uint16_t vlan{};             ///< VID of the tag of its packets; 0: they have none. Not of UD
  std::uint8_t pcp{};               ///< Priority in the tag
  std::uint16_t udp_source_port{};  ///< 0: from the flow label, or, if that is 0 too, from both QPNs
  std::uint32_t flow_label{};
  std::uint16_t pkey = 0xFFFF;
};

/// Everything two connected queue pairs agree on, as one of them sees it; the attributes of a queue pair.
struct QpConnection {
  QpPath path{};
  std::uint32_t dest_qpn{};
  std::uint32_t qkey{};            ///< UD
  std::uint32_t send_psn{};        ///< First PSN of this side
  std::uint32_t receive_psn{};     ///< First PSN of the peer
  std::uint8_t path_mtu = 5;       ///< ibv_mtu
  std::uint8_t inbound_reads{};    ///< max_dest_rd_atomic
  std::uint8_t outbound_reads{};   ///< max_rd_atomic
  std::uint8_t min_rnr_timer = 4;  ///< AETH timer code: 0.04 ms (InfiniBand specification 9.7.5.2.8)
  std::uint8_t ack_timeout = 14;   ///< 4.096 us * 2^n
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 6;
  bool remote_read = true;
  bool remote_write = true;
  bool remote_atomic = true;
  bool sqd_notify{};                            ///< To SQD: event SqDrained when the send queue is drained
  hw::QpState cur_state = hw::QpState::kReset;  ///< hw::QpAttr::kCurState: the state that the queue pair must be in
};

/// A queue pair on the device, its rings and its retired record.
class KernelQp {
 public:
  ~KernelQp();
  KernelQp(const KernelQp&) = delete;
  KernelQp& operator=(const KernelQp&) = delete;

  [[nodiscard]] std::uint32_t qpn() const { return qpn_; }
  [[nodiscard]] hw::QpType type() const { return type_; }
  /// Both rings and the retired record (hw::RetiredRecord, written by the device), in pages that nothing else is in.
  struct Memory {
    std::shared_ptr<DmaMemory> of{};
    std::size_t send_bytes{};
    std::size_t receive_offset{};
    std::size_t receive_bytes{};  ///< 0: receives come from a shared receive queue
    std::size_t record_offset{};
    std::size_t bytes{};
  };
  [[nodiscard]] const Memory& memory() const { return memory_; }
  [[nodiscard]] std::uint64_t* retired_record() const {
    return reinterpret_cast<std::uint64_t*>(memory_.of->data() + memory_.record_offset);
  }

  /// The attributes that the device has.
  [[nodiscard]] const QpConnection& connection() const { return connection_; }

  /// Any transition, with the attributes named. Errors: kInvalidState (not legal from the state in which the driver or
  /// the device knows the queue pair, or from cur_state), kInvalidParameter (an attribute is missing, not taken, or out
  /// of range, also a privileged Q_Key for one that may have none), those of the admin queue. ERR flushes both queues;
  /// the flush CQEs may come after the return. RESET flushes both; all CQEs are written when it returns, and all
  /// indexes, the attributes and the retired record are then as of a new queue pair.
  [[nodiscard]] Result<void> modify(hw::QpState next, QpAttributes given, const QpConnection& attributes);
  /// Errors: those of the admin queue.
  [[nodiscard]] Result<hw::AdminQpState> query();

  /// Counts since its creation, or since they were cleared last; a reset leaves them. `clear`: they begin at 0 again,
  /// and no event is lost or counted twice. The two halves (hw::AdminQueryQpCounters) are of two moments. Errors: those
  /// of the admin queue.
  [[nodiscard]] Result<QpCounters> counters(bool clear = false);

  /// Datagrams to a multicast group come to it too (InfiniBand specification 10.5.2), in whatever state it takes
  /// datagrams; a reset leaves it attached. Errors: kInvalidParameter (not UD, not a group's address), kExists,
  /// kOutOfResources (the device or the account has no place for another group, the account none for another member),
  /// kOutOfMemory, those of the admin
  /// queue.
  [[nodiscard]] Result<void> attach_multicast(const Gid& group);
  /// Errors: kNotFound (it is not attached), those of the admin queue.
  [[nodiscard]] Result<void> detach_multicast(const Gid& group);
  /// Detaches it from all groups. Errors: those of the admin queue. Succeeds when the device has failed.
  [[nodiscard]] Result<void> leave_groups();

  /// Destroys it now, flushing both queues; all CQEs are written when it returns. The destructor then does nothing.
  /// Errors: kBusy (attached to a multicast group: it is as before), those of the admin queue. Succeeds when the device
  /// has failed, see KernelDevice.
  [[nodiscard]] Result<void> destroy();

 private:
  friend class KernelDevice;
  KernelQp(KernelDevice& kernel, OwnedNumber number, const QpSpec& spec, Memory memory)
      : kernel_(kernel),
        life_(kernel.life()),
        number_(std::move(number)),
        qpn_(qpn_of(number_, spec)),
        type_(spec.type),
        privileged_(spec.privileged),
        memory_(std::move(memory)),
        account_(spec.account) {}
  static std::uint32_t qpn_of(const OwnedNumber& number, const QpSpec& spec);

  static void merge(QpConnection& known, QpAttributes given, const QpConnection& attributes);

  KernelDevice& kernel_;
  const std::shared_ptr<DeviceLife> life_;
  OwnedNumber number_;  ///< None of the general service interface
  const std::uint32_t qpn_;
  const hw::QpType type_;
  const bool privileged_;
  const Memory memory_;
  const std::shared_ptr<Account> account_;
  std::vector<Gid> groups_;  ///< Multicast groups that it is attached to
  QpConnection connection_;  ///< Attributes that the device has
  hw::QpState state_ =
      hw::QpState::kReset;  ///< As the driver moved it last; the device may have gone to SQE or ERR since
  bool live_ = false;       ///< The device has it
};

}  // namespace rnic::kmd
