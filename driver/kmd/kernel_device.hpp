#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "driver/device.hpp"
#include "driver/kmd/account.hpp"
#include "driver/kmd/admin_queue.hpp"
#include "driver/event_table.hpp"
#include "driver/kernel_calls/kernel_port.hpp"
#include "driver/kmd/device_life.hpp"
#include "driver/kmd/dma_memory.hpp"
#include "driver/kmd/event_queue.hpp"
#include "driver/kmd/line_pool.hpp"
#include "driver/kmd/number_pool.hpp"
#include "driver/kmd/port_tables.hpp"
#include "driver/kmd/register_map.hpp"
#include "driver/limits.hpp"
#include "driver/sleep_lock.hpp"

namespace rnic::kmd {

class ConnectionService;
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

struct KernelOptions {
  std::uint64_t mac{};             ///< Station address; 0 keeps what the device has
  std::uint32_t event_queues = 1;  ///< Event queues, each with an MSI-X vector of its own
  /// How long a DMA read of the device may stay without its completion: the range of Device Control 2. The driver's
  /// patience with a command goes by it, even while Completion Timeout Disable is set.
  hw::CompletionTimeoutRange completion_timeout = hw::CompletionTimeoutRange::kDefault;
  /// Own addresses beside the link-local one, in the order of the GID table.
  std::vector<Gid> gids{};
  /// Of the port, as ibv_mtu: queue pairs have no longer path MTU. 0: what the device can.
  std::uint32_t mtu{};
  /// Asks the network for the station of an address that no table of the port knows; lets time pass. Empty: nobody can
  /// be asked. Errors: kNotFound, kDeviceFailed.
  std::function<Result<std::uint64_t>(const Gid&)> find_neighbour{};
  /// What one client may have, unless it comes with an account.
  Quota quota{};
  /// Path MTU that requests for connections ask for, 256 to 4096; the default fits Ethernet frames of 1500 bytes.
  std::uint32_t connection_mtu = 1024;
  /// Bits of a QPN above the index, at most all of them. Fewer make numbers scarce.
  unsigned qp_tag_bits = 24 - hw::kQpIndexBits;
};

/// Which Ethernet frames that are not RoCEv2 the device receives, and for whom (host_interface.md, Ethernet).
struct EthernetReceive {
  std::uint32_t qpn{};  ///< Queue pair of type RawPacket
  bool enable{};
  bool all_groups{};
  bool promiscuous{};
  std::uint64_t groups{};  ///< Bit ethernet::group_bit() of each group address
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
  /// From the next frame on. Ends with the life of the device, as the queue pair does. Lets time pass.
  void receive_ethernet(const EthernetReceive& what);
  /// Own addresses and P_Keys of the port.
  [[nodiscard]] PortTables& port_tables() { return *port_tables_; }
  /// Connections of its clients (docs/connection_manager.md).
  [[nodiscard]] ConnectionService& connections() { return *connections_; }
  /// Where everybody opens the device, and where the kernel's own clients do.
  [[nodiscard]] DeviceNode& node() { return *node_; }
  [[nodiscard]] DeviceNode& kernel_node() { return *kernel_node_; }
  [[nodiscard]] const KernelOptions& options() const { return options_; }
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

  /// A protection domain: an unpredictable 24-bit number, see ProtectionDomain. Errors: kOutOfResources.
  [[nodiscard]] Result<std::uint32_t> acquire_pd();
  void release_pd(std::uint32_t pd);

  /// A first packet sequence number (InfiniBand specification 9.7.1: chosen by software; random, so that packets of
  /// an earlier connection do not fit).
  [[nodiscard]] std::uint32_t random_psn();

  /// What is given out at this moment, for who looks for leaks.
  struct Held {
    std::size_t qps{}, cqs{}, srqs{}, regions{}, lines{}, contexts{}, domains{};
    bool operator==(const Held&) const = default;
  };
  [[nodiscard]] Held held();

  /// Objects. Errors: kInvalidParameter, kOutOfMemory, kOutOfResources, kAccessViolation (regions), those of the
  /// admin queue. The object is destroyed with its owner, or earlier by its destroy().
  [[nodiscard]] Result<std::unique_ptr<KernelCq>> create_cq(const CqSpec& spec);
  [[nodiscard]] Result<std::unique_ptr<KernelQp>> create_qp(const QpSpec& spec);
  [[nodiscard]] Result<std::unique_ptr<KernelMr>> create_mr(const MrSpec& spec);
  /// A region that the device does not have yet, and what it would be told (KernelMr::begin_creation).
  [[nodiscard]] Result<std::unique_ptr<KernelMr>> prepare_mr(const MrSpec& spec, hw::AdminCreateMr& body);

  /// Errors: also kNotSupported (the device has none).
  [[nodiscard]] Result<std::unique_ptr<KernelSrq>> create_srq(const SrqSpec& spec);

  /// A window that is not bound, a fast-register region that is not registered. Errors: kInvalidParameter,
  /// kNotSupported (the device has none of that kind), kOutOfResources, those of the admin queue.
  [[nodiscard]] Result<std::unique_ptr<KernelMw>> create_mw(const MwSpec& spec);
  [[nodiscard]] Result<std::unique_ptr<KernelFastMr>> create_fast_mr(const FastMrSpec& spec);

  /// Whom events are handed to.
  [[nodiscard]] EventTable& events() { return events_; }
  /// What the port says of its link.
  [[nodiscard]] bool link_up();

  /// Takes every event there is from all event queues and hands them out, and tells the answers of commands for which
  /// nobody waits. Lets no time pass. Returns the number of events.
  unsigned dispatch_events();

  /// Fails a device that is no longer well (it reads all ones, or reports a fatal error). Lets time pass.
  void check_health(DeviceLife& life);

  /// Event counter of the device, by hw::Counter. Errors: kNotSupported (no counter block).
  [[nodiscard]] Result<std::uint64_t> counter(hw::Counter which);

 private:
  friend class KernelCq;
  friend class KernelFastMr;
  friend class KernelMr;
  friend class KernelMw;
  friend class KernelQp;
  friend class KernelSrq;

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
  /// The same, not waited for (AdminQueue::execute_later).
  Result<void> execute_later(DeviceLife& life, const AdminQueue::Command& command,
                             std::shared_ptr<AdminQueue::Later> later);
  /// The same for a destruction, which succeeds with the end of the device.
  Result<void> destroy(DeviceLife& life, hw::AdminOpcode opcode, std::uint32_t number);
  /// Makes sure that the device, which has failed, touches no memory of `life` any more.
  void quiesce(DeviceLife& life);
  /// Regions that were given up while windows were bound to them are destroyed when that ends: with a window, or with
  /// the life of a queue pair in which it was bound.
  void adopt_orphan(std::unique_ptr<KernelMr> region) noexcept;
  void reap_orphans();
  Result<std::unique_ptr<KernelQp>> make_qp(const QpSpec& spec);
  /// A QPN that no connection of the connection manager has. Throws std::bad_alloc.
  Result<OwnedNumber> draw_qpn();
  /// An event queue for a new object: one of those of the processors in `affinity`, in turn; of all, if there is none
  /// of them. Then `affinity` is the processor of the one that was chosen.
  std::uint32_t next_eqn(const DeviceLife& life, std::uint64_t& affinity);
  void hand_out(DeviceLife& life, const hw::Eqe& eqe);
  Device& device_;
  const RegisterMap registers_;
  const KernelOptions options_;
  Limits limits_;
  std::uint64_t mac_{};
  DmaPool pool_;
  SleepLock reset_lock_;  ///< Held by whoever resets the device; guards DeviceLife::quiet
  std::mutex life_mutex_;
  std::shared_ptr<DeviceLife> life_;
  EventTable events_;  ///< Told of a failure, which the last orphan may find
  std::unique_ptr<NumberPool> qps_;
  std::unique_ptr<NumberPool> cqs_;
  std::unique_ptr<NumberPool> srqs_;
  std::unique_ptr<NumberPool> mrs_;      ///< Of regions and windows
  std::unique_ptr<NumberPool> own_mrs_;  ///< Of MrSpec::management
  std::unique_ptr<LinePool> lines_;      ///< For page lists on chip
  std::unique_ptr<NumberPool> uars_;
  std::unique_ptr<NumberPool> pds_;
  std::mutex orphans_mutex_;
  std::unique_ptr<KernelMr> orphans_;  ///< A list, so that adoption needs no memory
  std::atomic<std::uint32_t> next_eq_{};
  std::unique_ptr<PortTables> port_tables_;
  std::unique_ptr<ConnectionService> connections_;
  EventTakers takers_;  ///< Of the process in which all of this runs
  std::unique_ptr<DeviceNode> node_;
  std::unique_ptr<DeviceNode> kernel_node_;
};

}  // namespace rnic::kmd
