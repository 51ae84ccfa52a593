#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>

#include "driver/event_sink.hpp"
#include "driver/nd2/addresses.hpp"
#include "driver/nd2/com_object.hpp"
#include "driver/nd2/overlapped.hpp"
#include "driver/nd2/queue_pair.hpp"
#include "driver/sleep_lock.hpp"
#include "driver/umd/kernel_endpoint.hpp"
#include "driver/umd/process_context.hpp"

namespace rnic::nd2 {

/// Private data that is left to the application (InfiniBand specification 12.6.5, 12.6.8, 12.6.7): of a REQ 92 bytes
/// less the header of annex A11; for Accept and Reject the smaller of REP (196) and REJ (148).
inline constexpr ULONG kMaxCallerData = 92 - 36;
inline constexpr ULONG kMaxCalleeData = 148;

/// IND2Connector: one side of a connection, by the connection manager (docs/connection_manager.md).
///
/// A connection is made, and ends, by messages of which the kernel driver tells the process. What follows of each
/// (states of the queue pair, requests that are complete) is done by whichever thread waits for something of the
/// device, or calls the connector, or polls (docs/driver.md); calls and what comes are one after the other.
///
/// The connection keeps its queue pair until it is over. When the queue pair fails, is flushed or released, the peer is
/// told; when the peer ends it, or is not there any more, the queue pair is flushed (decisions 7, 9, 10).
class Connector final : public ComObject<IND2Connector, Connector>,
                        public EventSink,
                        public umd::Worker,
                        public win32::Cancellable {
 public:
  static constexpr IID kInterface = IID_IND2Connector;

  Connector(std::shared_ptr<umd::ProcessContext> process, std::shared_ptr<OverlappedFile> file)
      : process_(std::move(process)), file_(std::move(file)), steps_(process_->machine()) {}

  HRESULT CancelOverlappedRequests() override;
  HRESULT GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) override;
  HRESULT Bind(const sockaddr* address, ULONG bytes) override;
  HRESULT Connect(IUnknown* pair, const sockaddr* to, ULONG bytes, ULONG inbound, ULONG outbound, const VOID* data,
                  ULONG length, OVERLAPPED* overlapped) override;
  HRESULT CompleteConnect(OVERLAPPED* overlapped) override;
  HRESULT Accept(IUnknown* pair, ULONG inbound, ULONG outbound, const VOID* data, ULONG length,
                 OVERLAPPED* overlapped) override;
  HRESULT Reject(const VOID* data, ULONG length) override;
  HRESULT GetReadLimits(ULONG* inbound, ULONG* outbound) override;
  HRESULT GetPrivateData(VOID* data, ULONG* length) override;
  HRESULT GetLocalAddress(sockaddr* address, ULONG* bytes) override;
  HRESULT GetPeerAddress(sockaddr* address, ULONG* bytes) override;
  HRESULT NotifyDisconnect(OVERLAPPED* overlapped) override;
  HRESULT Disconnect(OVERLAPPED* overlapped) override;

  void on_event(const hw::Eqe& eqe) override;
  void work() override;
  bool cancel(const OVERLAPPED* one) override;
  void on_final_release();

  [[nodiscard]] const std::shared_ptr<umd::ProcessContext>& process() const { return process_; }

  // For the listener.

  /// A request will be its. False: it has, or had, something else, or the calling thread can wait no more.
  [[nodiscard]] bool reserve();
  /// None will.
  void release_reservation();
  /// Here it is. ND_CANCELED: the client has released the connector, and the request is refused, as it is for any
  /// other error.
  [[nodiscard]] HRESULT adopt(calls::Handle endpoint, std::span<const std::uint8_t> data);

  // For the queue pair.

  /// It ends the connection for some reason of its own. The work is done soon. Lets no time pass.
  void break_up();

 private:
  enum class State : std::uint8_t {
    kIdle,           ///< Perhaps bound
    kAwaiting,       ///< In GetConnectionRequest
    kConnecting,     ///< Connect pends
    kResponded,      ///< The peer has accepted: CompleteConnect or Reject
    kRequested,      ///< The peer has asked: Accept or Reject
    kAbandoned,      ///< And has given up
    kAccepting,      ///< Accept pends
    kConnected,      ///<
    kDisconnecting,  ///< The peer is being told
    kDisconnected,   ///<
    kFailed,         ///< For good
  };
  enum class Request : std::uint8_t { kConnect, kAccept, kNotifyDisconnect, kDisconnect };
  struct Pending {
    Request what{};
    OverlappedRequest request;
  };
  using PendingList = std::list<Pending>;  ///< Oldest first
  struct ReadLimits {
    ULONG inbound{}, outbound{};
  };

  // All below with steps_ held, unless they say otherwise.

  [[nodiscard]] HRESULT prepare(Request what, OVERLAPPED* overlapped, PendingList& request) const;
  /// From now on it pends.
  [[nodiscard]] HRESULT pend(PendingList& request);
  /// Pends and is complete.
  [[nodiscard]] HRESULT finish_at_once(PendingList& request);
  /// Those that `chosen` likes pend no longer; in their order.
  template <typename Chosen>
  [[nodiscard]] PendingList take_pending(Chosen&& chosen);
  /// Completes those of that kind that pend, with mutex_ free.
  void finish(Request what, HRESULT status);
  void finish_all(HRESULT status);

  [[nodiscard]] HRESULT open_endpoint();
  void own_endpoint(std::unique_ptr<umd::KernelEndpoint> endpoint);
  void close_endpoint();
  [[nodiscard]] HRESULT resolve(const SocketAddress& to);
  /// Throws std::bad_alloc.
  [[nodiscard]] HRESULT claim(const std::shared_ptr<QueuePair>& pair);
  void give_up_pair();
  /// Gives the queue pair up at the end of a scope, unless it is kept.
  class Claimed {
   public:
    explicit Claimed(Connector& by) : by_(by) {}
    Claimed(const Claimed&) = delete;
    Claimed& operator=(const Claimed&) = delete;
    ~Claimed() {
      if (!kept_) by_.give_up_pair();
    }
    void keep() { kept_ = true; }

   private:
    Connector& by_;
    bool kept_ = false;
  };
  [[nodiscard]] calls::ConnectionTerms terms() const;
  [[nodiscard]] Result<void> make_ready();
  [[nodiscard]] Result<void> learn();

  /// Takes what the kernel driver has to say.
  void catch_up();
  void take(const calls::TakeConnectionEvent::Answer& event);
  void take_rejection(std::uint16_t reason, bool answered);
  void take_end();
  void lose_device();
  void keep_data(std::span<const std::uint8_t> data);
  void end_connection();
  void fail();
  [[nodiscard]] HRESULT state_error() const;

  const std::shared_ptr<umd::ProcessContext> process_;
  const std::shared_ptr<OverlappedFile> file_;
  SleepLock steps_;  ///< Held by a call, or by who takes what has come
  std::atomic<State> state_{State::kIdle};
  std::atomic<bool> broken_{};  ///< The queue pair has ended the connection
  bool asked_to_end_{};         ///< Disconnect was called
  bool active_{};
  bool bound_{};
  HRESULT late_status_ = ND_CONNECTION_INVALID;  ///< kFailed, kAbandoned: what became of it before it was accepted
  std::unique_ptr<umd::KernelEndpoint> endpoint_;
  SocketAddress local_;
  std::shared_ptr<QueuePair> pair_;
  ReadLimits wish_;
  std::uint32_t psn_{};
  calls::QueryEndpoint::Answer known_{};  ///< Of the peer
  bool peer_known_{};
  std::array<std::uint8_t, 224> data_{};
  std::uint8_t data_length_{};
  bool data_known_{};

  std::mutex mutex_;  ///< Guards what follows
  PendingList pending_;
  bool dead_{};      ///< The device has failed
  bool released_{};  ///< By the client
};

}  // namespace rnic::nd2
