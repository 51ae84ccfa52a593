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
#include "driver/kmd/device_life.hpp"
#include "driver/kmd/dma_memory.hpp"
#include "driver/kmd/event_queue.hpp"
#include "driver/kmd/number_pool.hpp"
#include "driver/kmd/register_map.hpp"
#include "driver/sleep_lock.hpp"

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
  std::uint64_t max_region{};  ///< Bytes of one memory region
  std::uint32_t max_mw{};      ///< Memory windows; they share the keys with the regions
  bool window_type1{};
  bool window_type2{};             ///< Type 2B
  std::uint32_t max_fast_pages{};  ///< Pages of a fast-register memory region; 0: there are none
  std::uint32_t max_srq{};         ///< Shared receive queues
  std::uint32_t max_srq_depth{};
};

/// Receives the events of one object, and kDeviceFatal, once, when the device has failed or is gone: nothing comes from
/// it any more then. Called without locks and without letting time pass.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_event(const hw::Eqe& eqe) = 0;
};

struct KernelOptions {
  std::uint64_t mac{};             ///< Station address; 0 keeps what the device has
  std::uint32_t event_queues = 1;  ///< Event queues, each with an MSI-X vector of its own
  /// How long a DMA read of the device may stay without its completion: the range of Device Control 2. The driver's
  /// patience with a command goes by it, even while Completion Timeout Disable is set.
  hw::CompletionTimeoutRange completion_timeout = hw::CompletionTimeoutRange::kDefault;
};

/// A device brought up: admin queue, event queues, and the life cycle of everything else. What a kernel driver owns.
///
/// Must outlive every object that it makes. Control functions let time pass and are called without locks; all are
/// thread safe.
///
/// A device fails for good when it is taken away, reports a fatal error, breaks the protocol, or leaves a command
/// without an answer. Every event sink is then told, every wait ends, and whatever was made before answers
/// kDeviceFailed, but for its destruction, which succeeds: before any memory that the device knew is given back, the
/// device is reset, so it cannot touch it. `recover` begins a new life with the same device, in which everything is
/// made anew.
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
  /// The admin queue of the present life.
  [[nodiscard]] AdminQueue& admin() { return life()->admin; }
  [[nodiscard]] std::shared_ptr<DeviceLife> life();

  /// Whether the device still works for what was made in `life`. A control function asks before it promises anything;
  /// it also sees that the machine has taken the device away. Lets no time pass.
  [[nodiscard]] bool usable(DeviceLife& life);
  /// The device has failed (see above). Lets no time pass; does nothing for a life that has ended.
  void fail(DeviceLife& life);
  /// Resets a device that has failed and brings it up again; does nothing if it has not. Errors: those of open.
  [[nodiscard]] Result<void> recover();

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

  /// Dispatches events until `done` holds, `timeout_ns` is over, or the device fails; returns whether it holds. Lets
  /// time pass. This is how a thread waits for anything that an interrupt or Device::wake announces, and the body of an
  /// interrupt thread. A thread that hears nothing for long looks whether the device is still well.
  bool wait_until(const std::function<bool()>& done, std::uint64_t timeout_ns = kForever);

  /// Event counter of the device, by hw::Counter. Errors: kNotSupported (no counter block).
  [[nodiscard]] Result<std::uint64_t> counter(hw::Counter which);

 private:
  friend class KernelCq;
  friend class KernelFastMr;
  friend class KernelMr;
  friend class KernelMw;
  friend class KernelQp;
  friend class KernelSrq;

  using Sinks = std::map<std::uint32_t, std::weak_ptr<EventSink>>;

  KernelDevice(Device& device, const RegisterMap& registers, const KernelOptions& options);

  Result<void> bring_up();
  Result<std::shared_ptr<DeviceLife>> begin_life();
  Result<void> start(DeviceLife& life);
  void stop();
  Result<void> wait_ready();
  Result<void> query_limits(DeviceLife& life);
  void make_pools();
  Result<void> create_event_queues(DeviceLife& life);
  Result<AdminQueue::Command> add_event_queue(DeviceLife& life, std::uint32_t eqn);
  /// Executes a command for what was made in `life`. After an error the device does nothing for the command any more;
  /// if that is because it has failed, it has been reset.
  Result<AdminQueue::Reply> execute(DeviceLife& life, hw::AdminOpcode opcode, std::uint32_t number,
                                    const AdminQueue::Body& body);
  template <typename Request>
  Result<AdminQueue::Reply> execute(DeviceLife& life, hw::AdminOpcode opcode, std::uint32_t number,
                                    const Request& request) {
    AdminQueue::Body body{};
    static_assert(Request::kBytes == body.size());
    request.encode(body);
    return execute(life, opcode, number, body);
  }
  /// The same for several, which are under way together (AdminQueue::execute).
  void execute(DeviceLife& life, std::span<const AdminQueue::Command> commands,
               std::span<Result<AdminQueue::Reply>> answers);
  /// The same for a destruction, which succeeds with the end of the device.
  Result<void> destroy(DeviceLife& life, hw::AdminOpcode opcode, std::uint32_t number);
  /// Makes sure that the device, which has failed, touches no memory of `life` any more.
  void quiesce(DeviceLife& life);
  /// Regions that were given up while windows were bound to them are destroyed when that ends: with a window, or with
  /// the life of a queue pair in which it was bound.
  void adopt_orphan(std::unique_ptr<KernelMr> region) noexcept;
  void reap_orphans();
  void check_health(DeviceLife& life);
  Result<std::unique_ptr<KernelQp>> make_qp(const QpSpec& spec);
  std::uint32_t next_eqn(const DeviceLife& life);
  void hand_out(DeviceLife& life, const hw::Eqe& eqe);
  /// An event queue was full, so that events may have been lost: every CQ is looked at as if it had one.
  void rescan();
  void tell_all(const Sinks& of_objects, const hw::Eqe& eqe);
  void tell_everybody(const hw::Eqe& eqe);

  Device& device_;
  const RegisterMap registers_;
  const KernelOptions options_;
  Limits limits_;
  std::uint64_t mac_{};
  DmaPool pool_;
  SleepLock reset_lock_;  ///< Held by whoever resets the device; guards DeviceLife::quiet
  std::mutex life_mutex_;
  std::shared_ptr<DeviceLife> life_;
  std::unique_ptr<NumberPool> qps_;
  std::unique_ptr<NumberPool> cqs_;
  std::unique_ptr<NumberPool> srqs_;
  std::unique_ptr<NumberPool> mrs_;
  std::unique_ptr<NumberPool> uars_;
  std::unique_ptr<NumberPool> pds_;
  std::mutex orphans_mutex_;
  std::unique_ptr<KernelMr> orphans_;  ///< A list, so that adoption needs no memory
  std::atomic<std::uint32_t> next_eq_{};
  std::mutex sinks_mutex_;
  Sinks cq_sinks_;
  Sinks qp_sinks_;
  Sinks srq_sinks_;
  Sinks device_sinks_;  ///< By order of subscription
};

}  // namespace rnic::kmd
