#pragma once

#include <list>
#include <memory>
#include <mutex>

#include "driver/nd2/addresses.hpp"
#include "driver/nd2/com_object.hpp"
#include "driver/nd2/connector.hpp"
#include "driver/nd2/overlapped.hpp"

namespace rnic::nd2 {

/// IND2Listener. Requests wait in the kernel driver until somebody asks for one.
class Listener final : public ComObject<IND2Listener, Listener>,
                       public EventSink,
                       public umd::Worker,
                       public win32::Cancellable {
 public:
  static constexpr IID kInterface = IID_IND2Listener;

  Listener(std::shared_ptr<umd::ProcessContext> process, std::shared_ptr<OverlappedFile> file)
      : process_(std::move(process)), file_(std::move(file)), steps_(process_->machine()) {}

  HRESULT CancelOverlappedRequests() override;
  HRESULT GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) override;
  HRESULT Bind(const sockaddr* address, ULONG bytes) override;
  HRESULT Listen(ULONG backlog) override;
  HRESULT GetLocalAddress(sockaddr* address, ULONG* bytes) override;
  HRESULT GetConnectionRequest(IUnknown* connector, OVERLAPPED* overlapped) override;

  void on_event(const hw::Eqe& eqe) override;
  void work() override;
  bool cancel(const OVERLAPPED* one) override;
  void on_final_release();

 private:
  /// A GetConnectionRequest that pends.
  struct Pending {
    OverlappedRequest request;
    std::shared_ptr<Connector> connector;
  };
  using PendingList = std::list<Pending>;  ///< Oldest first

  /// With steps_ held.
  void hand_out_requests();
  void finish_oldest(const calls::TakeConnectionEvent::Answer& event);
  /// Those of `one`, or, with null, all; whether there was one.
  bool finish(const OVERLAPPED* one, HRESULT status);
  [[nodiscard]] PendingList take_oldest();

  const std::shared_ptr<umd::ProcessContext> process_;
  const std::shared_ptr<OverlappedFile> file_;
  SleepLock steps_;  ///< Held by a call, or by who takes what has come
  std::unique_ptr<umd::KernelEndpoint> endpoint_;
  SocketAddress local_;
  bool bound_{};
  bool listening_{};
  std::mutex mutex_;  ///< Guards what follows
  PendingList pending_;
  bool dead_{};  ///< The device has failed
};

}  // namespace rnic::nd2
