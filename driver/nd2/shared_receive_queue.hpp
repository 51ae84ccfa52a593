#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "driver/nd2/com_object.hpp"
#include "driver/nd2/overlapped.hpp"
#include "driver/umd/shared_receive_queue.hpp"

namespace rnic::nd2 {

/// IND2SharedReceiveQueue.
///
/// Notify arms the device's limit with the threshold, if there is one; the event, or an error of the queue, finishes
/// every Notify that is pending. A queue that is below its threshold already has its event at once, as NDK says.
/// An event that finds no Notify (it was cancelled) is dropped: the next one arms anew. A device that has failed: as
/// for completion queues.
class SharedReceiveQueue final : public ComObject<IND2SharedReceiveQueue, SharedReceiveQueue>,
                                 public EventSink,
                                 public win32::Cancellable {
 public:
  static constexpr IID kInterface = IID_IND2SharedReceiveQueue;

  SharedReceiveQueue(std::shared_ptr<OverlappedFile> file, std::shared_ptr<umd::SharedReceiveQueue> core,
                     std::uint16_t threshold)
      : file_(std::move(file)), core_(std::move(core)), threshold_(threshold) {}

  HRESULT CancelOverlappedRequests() override;
  HRESULT GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) override;
  HRESULT GetNotifyAffinity(USHORT* group, KAFFINITY* affinity) override;
  HRESULT Modify(ULONG depth, ULONG threshold) override;
  HRESULT Notify(OVERLAPPED* overlapped) override;
  HRESULT Receive(VOID* context, const ND2_SGE sge[], ULONG count) override;

  void on_event(const hw::Eqe& eqe) override;
  bool cancel(const OVERLAPPED* one) override;
  void on_final_release();

  [[nodiscard]] const std::shared_ptr<umd::SharedReceiveQueue>& core() const { return core_; }

 private:
  HRESULT arm();
  void finish_all(HRESULT status);
  [[nodiscard]] umd::ProcessContext& process() const { return *core_->process(); }

  const std::shared_ptr<OverlappedFile> file_;
  const std::shared_ptr<umd::SharedReceiveQueue> core_;
  std::mutex mutex_;
  OverlappedRequests pending_;
  std::uint16_t threshold_;  ///< 0: no notifications but of errors
  bool failed_{};
  bool dead_{};
};

}  // namespace rnic::nd2
