#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "driver/device.hpp"
#include "driver/kmd/admin_queue.hpp"
#include "driver/kmd/dma_memory.hpp"
#include "driver/kmd/event_queue.hpp"
#include "driver/kmd/number_pool.hpp"
#include "driver/kmd/register_map.hpp"

namespace rnic::kmd {

class KernelCq;
class KernelFastMr;
class KernelMr;
class KernelMw;
class KernelQp;
class KernelSrq;
struct CqSpec;
struct FastMrSpec;
struct MrSpec;
struct MwSpec;
struct QpSpec;
struct SrqSpec;

/// What the device can do; from QueryCapabilities and the identity block.
struct Limits {
  std::uint16_t vendor_id{};
  std::uint16_t device_id{};
  std::uint32_t max_qp{};  ///< Beside QP1
  std::uint32_t max_cq{};
  std::uint32_t max_eq{};
  std::uint32_t max_mr{};
  std::uint32_t max_queue_depth{};
  std::uint32_t max_cq_depth{};
  std::uint32_t max_eq_depth{};
  std::uint32_t max_sge{};
  std::uint32_t max_inline{};
  std::uint32_t max_rd_atomic{};
  std::uint32_t max_mtu{};  ///< ibv_mtu
  std::uint32_t uar_count{};
  std::uint32_t msix_vectors{};
  std::uint32_t max_message{};
  std::uint32_t clock_mhz{};
  std::uint64_t max_region{};      ///< Bytes of one memory region
  std::uint32_t max_mw{};          ///< Memory windows; they share the keys with the regions
  bool window_type1{};
  bool window_type2{};             ///< Type 2B
  std::uint32_t max_fast_pages{};  ///< Pages of a fast-register memory region; 0: there are none
  std::uint32_t max_srq{};         ///< Shared receive queues
  std::uint32_t max_srq_depth{};
};

/// Receives the events of one object. Called without locks and without letting time pass.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_event(const hw::Eqe& eqe) = 0;
};

struct KernelOptions {
  std::uint64_t mac{};             ///< Station address; 0 keeps what the device has
  std::uint32_t event_queues = 1;  ///< Event queues, each with an MSI-X vector of its own
  /// How long a DMA read of the device may stay without its completion.
  hw::CompletionTimeoutRange completion_timeout = hw::CompletionTimeoutRange::kDefault;
};

/// A device brought up: admin queue, event queues, and the life cycle of everything else. What a kernel driver owns.
///
/// Must outlive every object that it makes. Control functions let time pass and are called without locks; all are
/// thread safe.
class KernelDevice {
 public:
  /// Discovers the device, enables it, starts the admin queue and the event queues.
  /// Errors: kDeviceNotFound, kVersionMismatch, kTimeout (not ready), kOutOfMemory, those of the admin queue.
  static Result<std::unique_ptr<KernelDevice>> open(Device& device, const KernelOptions& options = {});
  ~KernelDevice();
  KernelDevice(const KernelDevice&) = delete;
  KernelDevice& operator=(const KernelDevice&) = delete;

  [[nodiscard]] Device& device() { return device_; }
  [[nodiscard]] const Limits& limits() const { return limits_; }
  [[nodiscard]] std::uint64_t mac() const { return mac_; }
  [[nodiscard]] AdminQueue& admin() { return admin_; }
  [[nodiscard]] DmaPool& pool() { return pool_; }

  /// A user access region: BAR0 page number. Errors: kOutOfResources.
  [[nodiscard]] Result<std::uint32_t> acquire_uar();
  void release_uar(std::uint32_t uar);

  /// A protection domain: an unpredictable 24-bit number. Errors: kOutOfResources.
  [[nodiscard]] Result<std::uint32_t> acquire_pd();
  void release_pd(std::uint32_t pd);

  /// A first packet sequence number (InfiniBand specification 9.7.1: chosen by software; random, so that packets of
  /// an earlier connection do not fit).
  [[nodiscard]] std::uint32_t random_psn();

  /// Objects. Errors: kInvalidParameter, kOutOfMemory, kOutOfResources, kAccessViolation (regions), those of the
  /// admin queue. The object is destroyed with its owner, or earlier by its destroy().
  [[nodiscard]] Result<std::unique_ptr<KernelCq>> create_cq(const CqSpec& spec);
  [[nodiscard]] Result<std::unique_ptr<KernelQp>> create_qp(const QpSpec& spec);
  [[nodiscard]] Result<std::unique_ptr<KernelMr>> create_mr(const MrSpec& spec);

  /// Errors: also kNotSupported (the device has none).
  [[nodiscard]] Result<std::unique_ptr<KernelSrq>> create_srq(const SrqSpec& spec);

  /// A window that is not bound, a fast-register region that is not registered. Errors: kInvalidParameter,
  /// kNotSupported (the device has none of that kind), kOutOfResources, those of the admin queue.
  [[nodiscard]] Result<std::unique_ptr<KernelMw>> create_mw(const MwSpec& spec);
  [[nodiscard]] Result<std::unique_ptr<KernelFastMr>> create_fast_mr(const FastMrSpec& spec);

  /// Events of a CQ go to `sink` while it lives.
  void subscribe_cq(std::uint32_t cqn, std::weak_ptr<EventSink> sink);
  void unsubscribe_cq(std::uint32_t cqn);
  void subscribe_qp(std::uint32_t qpn, std::weak_ptr<EventSink> sink);
  void unsubscribe_qp(std::uint32_t qpn);
  void subscribe_srq(std::uint32_t srqn, std::weak_ptr<EventSink> sink);
  void unsubscribe_srq(std::uint32_t srqn);
  /// Events of the device and of its port go to every `sink` that lives.
  void subscribe_device(std::weak_ptr<EventSink> sink);
  /// What the port says of its link.
  [[nodiscard]] bool link_up();

  /// Takes every event there is from all event queues and hands them out. Lets no time pass. Returns the number.
  unsigned dispatch_events();

  /// Dispatches events until `done` holds or `timeout_ns` is over; returns whether it holds. Lets time pass. This is
  /// how a thread waits for anything that an interrupt announces, and the body of an interrupt thread.
  bool wait_until(const std::function<bool()>& done, std::uint64_t timeout_ns = ~0ULL);

  /// Event counter of the device, by hw::Counter. Errors: kNotSupported (no counter block).
  [[nodiscard]] Result<std::uint64_t> counter(hw::Counter which);

 private:
  friend class KernelCq;
  friend class KernelFastMr;
  friend class KernelMr;
  friend class KernelMw;
  friend class KernelQp;
  friend class KernelSrq;

  KernelDevice(Device& device, const RegisterMap& registers)
      : device_(device), registers_(registers), admin_(device, registers_), pool_(device) {}

  Result<void> bring_up(const KernelOptions& options);
  Result<void> wait_ready();
  Result<void> query_limits();
  Result<void> create_event_queue(std::uint32_t eqn);
  Result<void> destroy(hw::AdminOpcode opcode, std::uint32_t number);
  std::uint32_t next_eqn();
  void hand_out(const hw::Eqe& eqe);
  /// An event queue was full, so that events may have been lost: every CQ is looked at as if it had one.
  void rescan();

  Device& device_;
  const RegisterMap registers_;
  Limits limits_;
  std::uint64_t mac_{};
  AdminQueue admin_;
  DmaPool pool_;
  std::unique_ptr<NumberPool> qps_;
  std::unique_ptr<NumberPool> cqs_;
  std::unique_ptr<NumberPool> srqs_;
  std::unique_ptr<NumberPool> mrs_;
  std::unique_ptr<NumberPool> uars_;
  std::unique_ptr<NumberPool> pds_;
  std::vector<std::unique_ptr<EventQueue>> event_queues_;
  std::atomic<std::uint32_t> next_eq_{};
  std::mutex sinks_mutex_;
  std::map<std::uint32_t, std::weak_ptr<EventSink>> cq_sinks_;
  std::map<std::uint32_t, std::weak_ptr<EventSink>> qp_sinks_;
  std::map<std::uint32_t, std::weak_ptr<EventSink>> srq_sinks_;
  std::vector<std::weak_ptr<EventSink>> device_sinks_;
};

}  // namespace rnic::kmd
