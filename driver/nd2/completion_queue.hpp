#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "driver/nd2/com_object.hpp"
#include "driver/nd2/overlapped.hpp"
#include "driver/event_sink.hpp"
#include "driver/umd/completion_queue.hpp"
#include "driver/umd/process_context.hpp"

namespace rnic::nd2 {

/// IND2CompletionQueue.
///
/// Notify (decisions 27): the device keeps the arm and knows which entries are newer than the last event, so a
/// Notify is an arm, and an event finishes every Notify that is pending. An event that finds none (its Notify was
/// cancelled, or two arms were under way at once) is kept for the next one, for the device will not repeat it: for one
/// of any entry, and for one of solicited entries if such an entry waits to be read. The arm of a Notify that was
/// cancelled stays in the device too: an event behind which no solicited entry stands is then none for a Notify of
/// solicited entries, which goes on to pend.
///
/// When the device has failed, every Notify that is pending ends with ND_INTERNAL_ERROR, and calls answer
/// ND_DEVICE_REMOVED (decisions 58).
class CompletionQueue final : public ComObject<IND2CompletionQueue, CompletionQueue>,
                              public EventSink,
                              public win32::Cancellable {
 public:
  static constexpr IID kInterface = IID_IND2CompletionQueue;

  CompletionQueue(std::shared_ptr<umd::ProcessContext> process, std::shared_ptr<OverlappedFile> file,
                  std::shared_ptr<umd::CompletionQueue> core)
      : process_(std::move(process)), file_(std::move(file)), core_(std::move(core)) {}

  HRESULT CancelOverlappedRequests() override;
  HRESULT GetOverlappedResult(OVERLAPPED* overlapped, BOOL wait) override;
  HRESULT GetNotifyAffinity(USHORT* group, KAFFINITY* affinity) override;
  HRESULT Resize(ULONG depth) override;
  HRESULT Notify(ULONG type, OVERLAPPED* overlapped) override;
  ULONG GetResults(ND2_RESULT results[], ULONG count) override;

  void on_event(const hw::Eqe& eqe) override;
  bool cancel(const OVERLAPPED* one) override;
  void on_final_release();

  [[nodiscard]] const std::shared_ptr<umd::CompletionQueue>& core() const { return core_; }
  [[nodiscard]] const std::shared_ptr<umd::ProcessContext>& process() const { return process_; }

 private:
  /// What becomes of a new Notify.
  enum class Admission : std::uint8_t { kArm, kPend, kFire, kOverrun, kDead };

  Admission admit(hw::CqArm kind, OverlappedRequests& request, std::uint64_t solicited);
  [[nodiscard]] OverlappedRequests& pending(hw::CqArm kind) { return pending_.at(static_cast<std::size_t>(kind)); }
  [[nodiscard]] hw::CqArm strongest() const;
  [[nodiscard]] bool is_for_pending();
  [[nodiscard]] bool takes_unclaimed_event(hw::CqArm kind);
  void finish_all(HRESULT status);
  [[gnu::cold, gnu::noinline]] HRESULT take_failure(hw::CqeStatus status, umd::RequestKind kind, std::uint32_t qpn);

  const std::shared_ptr<umd::ProcessContext> process_;
  const std::shared_ptr<OverlappedFile> file_;
  const std::shared_ptr<umd::CompletionQueue> core_;
  std::mutex mutex_;
  std::array<OverlappedRequests, 4> pending_;  ///< By hw::CqArm
  std::uint64_t solicited_{};                  ///< That had arrived when the first of kSolicited began to pend
  std::uint64_t polled_solicited_{};           ///< Given by GetResults, with failed ones; under the lock of core_
  bool unclaimed_event_{};
  bool overrun_{};
  bool dead_{};
};

}  // namespace rnic::nd2
