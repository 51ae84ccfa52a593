#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "driver/event_sink.hpp"
#include "driver/sleep_lock.hpp"
#include "driver/umd/completion_queue.hpp"
#include "driver/umd/kernel_qp.hpp"
#include "driver/umd/process_context.hpp"
#include "driver/umd/receive_queue.hpp"
#include "driver/umd/request.hpp"
#include "driver/umd/send_queue.hpp"
#include "driver/umd/shared_receive_queue.hpp"

namespace rnic::umd {

/// A queue pair of a process: its queues, its completion queues, and its state as the
/// driver moves it. Thread safe; control functions let time pass.
class QueuePair final : public EventSink {
 public:
  /// From kIdle on receives may be posted.
  enum class State : std::uint8_t {
    kClosed,     ///< Gone from the device
    kNew,        ///< RESET: nothing may be posted
    kIdle,       ///< INIT
    kReady,      ///< RTR: the peer's requests are served
    kEnded,      ///< ERR, and nothing may be sent any more
    kConnected,  ///< RTS, SQD, SQE, or ERR since: sends may be posted; in ERR the device flushes them
  };

  struct Spec {
    std::shared_ptr<CompletionQueue> send_cq{};
    std::shared_ptr<CompletionQueue> receive_cq{};
    calls::Handle pd{};                                     ///< 0: the process's first
    std::shared_ptr<SharedReceiveQueue> shared_receives{};  ///< Receives come from it; the receive capacity is not used
    hw::QpType type = hw::QpType::kRc;
    bool general_service{};    ///< QP1: type UD, in a context of the kernel's own
    QueueCapacity capacity{};  ///< Exact, except at least 4 segments (decisions 37)
    void* context{};           ///< Comes back in the completions
    /// Called with every event of the queue pair, as EventSink.
    std::function<void(const hw::Eqe&)> on_event{};
    /// Fast registrations may be posted. They name DMA addresses, so this is for the kernel's own queue pairs only.
    bool fast_register{};
  };

  /// The queue pair is new. Errors: kInvalidParameter (beyond the limits), those of ProcessContext::create_qp.
  static Result<std::shared_ptr<QueuePair>> create(std::shared_ptr<ProcessContext> process, const Spec& spec);
  /// The same, and it is idle: for who has receives posted at once. Errors: also those of to_idle.
  static Result<std::shared_ptr<QueuePair>> create_idle(std::shared_ptr<ProcessContext> process, const Spec& spec);
  ~QueuePair() override;
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  [[nodiscard]] const std::shared_ptr<ProcessContext>& process() const { return process_; }
  [[nodiscard]] KernelQp& kernel_qp() { return *kernel_qp_; }
  [[nodiscard]] hw::QpType type() const { return type_; }
  [[nodiscard]] std::uint32_t qpn() const { return kernel_qp_->qpn(); }
  [[nodiscard]] const QueueCapacity& granted() const { return granted_; }
  [[nodiscard]] bool shares_receives() const { return shared_receives_ != nullptr; }
  [[nodiscard]] State state() const { return state_.load(); }
  /// The device moved it to the error state for something that no completion tells, and the driver has seen the event.
  [[nodiscard]] bool failed() const { return failed_.load(); }
  /// On a shared receive queue, and in the error state: it has completed the last receive it had taken, and the driver
  /// has seen the event.
  [[nodiscard]] bool last_wqe_reached() const { return last_wqe_reached_.load(); }

  /// Errors: kInvalidState (not connected), kDeviceFailed, those of SendQueue::post.
  [[nodiscard]] Result<void> post_send(const SendRequest& request);
  /// Several under one lock, with one doorbell; `posted` says how many, from the first on, whatever becomes of the
  /// rest. Errors: those of the one that was not posted.
  [[nodiscard]] Result<void> post_sends(std::span<const SendRequest> requests, std::size_t& posted);
  /// The same, compiled into the caller (driver/umd/post_send.hpp).
  [[nodiscard]] Result<void> post_here(const SendRequest& request);
  /// The same for binds, invalidations, fast registrations.
  [[nodiscard]] Result<void> post_memory(const MemoryRequest& request);
  /// Pages that a FastRegister request of this queue pair has room for.
  [[nodiscard]] std::uint32_t inline_pages() const { return send_->inline_pages(); }
  /// Whether so many sends could be posted now. Lets no time pass.
  [[nodiscard]] bool has_room(std::size_t requests);
  /// Errors: kInvalidState (closed), kDeviceFailed, kNotSupported (receives are shared), those of ReceiveQueue::post.
  [[nodiscard]] Result<void> post_receive(const ReceiveRequest& request);
  /// Several, as post_sends.
  [[nodiscard]] Result<void> post_receives(std::span<const ReceiveRequest> requests, std::size_t& posted);
  /// Rings for what was posted with `defer`.
  void ring_deferred();
  /// Tells every KeyWatch what has become of its requests by now. Lets no time pass. Needs no memory.
  void settle() { send_->settle(); }

  /// Any transition, with the attributes named (ibv_modify_qp). To RESET everything posted is flushed, and nobody may
  /// post meanwhile. Errors: kInvalidState (also: closed), those of KernelQp::modify.
  [[nodiscard]] Result<void> modify(hw::QpState next, QpAttributes given, const QpConnection& attributes);
  /// New to idle, idle to ready, ready to connected, and the last two. A UD queue pair has no peer: `connection` has
  /// its own addresses, P_Key, Q_Key. Errors: kInvalidState, those of KernelQp.
  [[nodiscard]] Result<void> to_idle(const QpConnection& connection);
  [[nodiscard]] Result<void> to_ready(const QpConnection& connection);
  [[nodiscard]] Result<void> to_connected(const QpConnection& connection);
  [[nodiscard]] Result<void> connect(const QpConnection& connection);

  /// Stops the send queue behind what it has started (SQD), and lets it go on. Sends may be posted meanwhile. `notify`:
  /// an event SqDrained when what was started is complete. Errors: kInvalidState (not connected), those of KernelQp.
  [[nodiscard]] Result<void> drain(bool notify);
  [[nodiscard]] Result<void> resume();

  /// As KernelQp. Errors: also kInvalidState (closed).
  [[nodiscard]] Result<void> attach_multicast(const std::array<std::uint8_t, 16>& group);
  [[nodiscard]] Result<void> detach_multicast(const std::array<std::uint8_t, 16>& group);

  /// Cancels everything posted (decisions 9): an idle queue pair stays usable, any other goes to the error state.
  [[nodiscard]] Result<void> flush();

  /// Flushes both queues for good: ERR, in which receives may be posted, and sends are refused (decisions 8). Errors:
  /// kInvalidState (it was never ready), those of KernelQp.
  [[nodiscard]] Result<void> end();

  /// Flushes both queues and leaves the device. Completions not polled can still be polled. Nothing may be posted
  /// afterwards. Errors: kBusy (attached to a multicast group; it is as before), those of KernelQp::destroy.
  Result<void> close();
  /// The same, but completions not polled are gone (ibv_destroy_qp).
  Result<void> close_and_forget();

  void on_event(const hw::Eqe& eqe) override;

 private:
  QueuePair(std::shared_ptr<ProcessContext> process, const Spec& spec, const QueueCapacity& granted)
      : process_(std::move(process)),
        type_(spec.type),
        send_cq_(spec.send_cq),
        receive_cq_(spec.receive_cq),
        shared_receives_(spec.shared_receives),
        on_event_(spec.on_event),
        granted_(granted),
        change_lock_(process_->machine()) {}

  Result<void> refuse_to_post();
  template <typename Request>
  Result<void> post_after_decoding(const Request& request);
  Result<void> build(const Spec& spec);
  Result<void> flush_idle();
  /// How it is left.
  struct Leaving {
    bool groups_too{};  ///< Also multicast groups
    bool forgetting{};  ///< Completions not polled are gone
  };
  Result<void> leave(Leaving how);
  Result<void> enter_reset(QpAttributes given);
  [[nodiscard]] ReceiveSource* receive_source() const;
  void ring_receives();
  void decode();
  void leave_queues(Leaving how);
  /// Runs `body` while no other control function runs. kInvalidState if the queue pair is closed.
  template <typename Body>
  Result<void> change(Body&& body);

  const std::shared_ptr<ProcessContext> process_;
  const hw::QpType type_;
  const std::shared_ptr<CompletionQueue> send_cq_;
  const std::shared_ptr<CompletionQueue> receive_cq_;
  const std::shared_ptr<SharedReceiveQueue> shared_receives_;
  const std::function<void(const hw::Eqe&)> on_event_;
  const QueueCapacity granted_;
  std::unique_ptr<KernelQp> kernel_qp_;
  std::unique_ptr<SendQueue> send_;
  std::unique_ptr<ReceiveQueue> receive_;  ///< Null when receives are shared
  std::atomic<State> state_{State::kNew};
  std::atomic<bool> failed_{};
  std::atomic<bool> last_wqe_reached_{};
  bool on_shared_receives_{};  ///< Attached to shared_receives_
  SleepLock change_lock_;      ///< Held by a control function
};

}  // namespace rnic::umd
