#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "driver/event_table.hpp"
#include "driver/generated/host_interface.hpp"
#include "driver/kernel_calls/kernel_port.hpp"
#include "driver/limits.hpp"
#include "driver/mmio.hpp"
#include "driver/spin_lock.hpp"
#include "driver/umd/work_list.hpp"

namespace rnic::umd {

class KernelCq;
class KernelFastMr;
class KernelMr;
class KernelMw;
class KernelQp;
class KernelSrq;
class ProtectionDomain;
struct FastMrSpec;
struct MrSpec;
struct MwSpec;
struct QpSpec;
struct SrqSpec;

/// What a process has of a device: a client of the kernel driver, a user access region, and a protection domain to
/// begin with. Everything that it creates belongs to the client; the kernel driver and the device let it reach nothing
/// else. Thread safe.
class ProcessContext final : public EventTaker, public std::enable_shared_from_this<ProcessContext> {
 public:
  /// A device that has failed is brought up again first. Through the node of the kernel's own clients it is one of
  /// those. Errors: kOutOfResources, kOutOfMemory, those of DeviceNode::open. `node` outlives the context.
  static Result<std::shared_ptr<ProcessContext>> open(DeviceNode& node) { return open(node, false); }
  /// The same on the kernel driver's own UAR, for QP1. Errors: also kNotSupported (not the kernel's node).
  static Result<std::shared_ptr<ProcessContext>> open_for_management(DeviceNode& node) { return open(node, true); }
  ProcessContext(const ProcessContext&) = delete;
  ProcessContext& operator=(const ProcessContext&) = delete;

  [[nodiscard]] DeviceNode& node() { return node_; }
  [[nodiscard]] Machine& machine() { return machine_; }
  [[nodiscard]] const Limits& limits() const { return limits_; }
  /// Station address.
  [[nodiscard]] std::uint64_t mac() const { return mac_; }
  /// The device has not failed since the context was opened. If it has, nothing works any more with what belongs to the
  /// context.
  [[nodiscard]] bool alive() const {
    return __atomic_load_n(status_.load(std::memory_order_relaxed), __ATOMIC_ACQUIRE) == 0;
  }
  /// The same, and sees that the machine has taken the device away; hands out that it has failed. For control
  /// functions. Lets no time pass.
  [[nodiscard]] bool usable();
  /// The device has broken its promises to this process, for which it has failed from now on. Lets no time pass.
  void give_up();
  /// BAR0 page of the user access region.
  [[nodiscard]] std::uint32_t uar() const { return uar_; }
  /// The first channel: its events are those that take_events hands out.
  [[nodiscard]] calls::Handle channel() const { return channel_; }
  /// The first protection domain, and its number on the device.
  [[nodiscard]] calls::Handle pd() const { return pd_; }
  [[nodiscard]] std::uint32_t pd_number() const { return pd_number_; }

  /// Objects of the kernel driver that belong to this client, each destroyed with its owner. A spec without a
  /// protection domain means the first one. Errors: those of the calls (docs/kernel_calls.md), kOutOfMemory.
  [[nodiscard]] Result<std::unique_ptr<ProtectionDomain>> alloc_pd();
  [[nodiscard]] Result<std::unique_ptr<KernelCq>> create_cq(std::uint32_t entries, calls::Handle channel = 0,
                                                            std::uint64_t affinity = 0);
  [[nodiscard]] Result<std::unique_ptr<KernelSrq>> create_srq(const SrqSpec& spec);
  [[nodiscard]] Result<std::unique_ptr<KernelQp>> create_qp(const QpSpec& spec);
  [[nodiscard]] Result<std::unique_ptr<KernelMr>> create_mr(const MrSpec& spec);
  /// The same, before the device has it. That it has, or has refused, the sink of `number` (EventTable::Of::kRegion) is
  /// told by a KernelEvent::kRegion whose detail is a calls::Status; subscribe first. What was refused is
  /// KernelMr::ended.
  [[nodiscard]] Result<std::unique_ptr<KernelMr>> begin_mr(const MrSpec& spec, std::uint32_t number);
  [[nodiscard]] Result<std::unique_ptr<KernelMw>> create_mw(const MwSpec& spec);
  [[nodiscard]] Result<std::unique_ptr<KernelFastMr>> create_fast_mr(const FastMrSpec& spec);

  /// A kernel call; a failure of the device that it meets is handed out. Errors: those of the call.
  template <typename Request>
  [[nodiscard]] Result<typename Request::Answer> call(const Request& request) {
    auto answer = port_->call(request);
    if (!answer && !alive()) take_events();
    return answer;
  }
  [[nodiscard]] KernelPort& port() { return *port_; }

  /// Whom events are handed to. A device that fails tells everybody.
  [[nodiscard]] EventTable& events() { return events_; }
  unsigned take_events() override;
  /// Whoever has something to do when an event has come puts it there: threads that wait do it, and those that ask.
  [[nodiscard]] WorkList& work_list() { return work_list_; }
  void work() override { work_list_.run(); }
  /// For each object that waits for events while its owner may only poll completions (docs/driver.md): more by one, and
  /// again less.
  void expect_events(bool expected) { expected ? ++expecting_ : --expecting_; }
  /// Somebody has polled and found nothing. If events are expected, work that waits is done,
  /// and now and then they are taken.
  void polled_in_vain() {
    if (expecting_.load(std::memory_order_relaxed) != 0) look_for_events();
  }
  [[nodiscard]] bool working() override { return alive(); }
  [[nodiscard]] bool handing_out() override;
  void check_device() override;

  /// Writes a doorbell (offset of hw::uar). Lets no time pass.
  void ring(std::uint32_t doorbell, std::uint64_t value) { machine_.write64(page_ + doorbell, value); }

  /// Writes a whole WQE, padded to 64 bytes, to the window: the request with its doorbell. What was stored to DMA
  /// memory before, the device sees first. One at a time, because the queue pairs of the process share the window. Lets
  /// no time pass.
  void push_wqe(std::span<const std::uint8_t> wqe) {
    const std::lock_guard lock(window_lock_);
    window_write_barrier();
    std::size_t offset = 0;
    do {
      machine_.write_burst64(page_ + hw::uar::kWqeWindow + offset, wqe.subspan(offset).first<64>());
      window_flush_barrier();
      offset += 64;
    } while (offset < wqe.size());
  }

 private:
  ProcessContext(DeviceNode& node, std::unique_ptr<KernelPort> port)
      : node_(node), port_(std::move(port)), machine_(port_->machine()) {}
  static Result<std::shared_ptr<ProcessContext>> open(DeviceNode& node, bool kernel_uar);
  Result<void> begin(bool kernel_uar);
  Result<void> query_limits();
  unsigned hand_out_events();
  [[gnu::cold, gnu::noinline]] void look_for_events();
  [[nodiscard]] calls::Handle pd_or_first(calls::Handle pd) const { return pd != 0 ? pd : pd_; }

  DeviceNode& node_;
  const std::unique_ptr<KernelPort> port_;
  Machine& machine_;
  std::shared_ptr<std::uint8_t> status_memory_;
  std::atomic<const std::uint32_t*> status_{};  ///< The kernel driver's word, or one that says that we gave up
  std::uint64_t page_{};
  std::uint32_t uar_{};
  calls::Handle channel_{};
  calls::Handle pd_{};
  std::uint32_t pd_number_{};
  std::uint64_t mac_{};
  Limits limits_;
  EventTable events_;
  std::atomic<unsigned> handing_out_{};  ///< Threads
  std::atomic<bool> handing_awaited_{};  ///< Somebody has seen that there are some
  SpinLock window_lock_;
  WorkList work_list_;
  std::atomic<unsigned> expecting_{};   ///< Objects
  std::atomic<unsigned> vain_polls_{};  ///< While events were expected
};

}  // namespace rnic::umd
