#pragma once

#include <memory>
#include <mutex>

#include "driver/nd2/com_object.hpp"
#include "driver/umd/queue_pair.hpp"

namespace rnic::nd2 {

class Connector;

/// IND2QueuePair.
class QueuePair final : public ComObject<IND2QueuePair, QueuePair> {
 public:
  static constexpr IID kInterface = IID_IND2QueuePair;

  explicit QueuePair(std::shared_ptr<umd::QueuePair> core) : core_(std::move(core)) {}

  HRESULT Flush() override;
  HRESULT Send(VOID* context, const ND2_SGE sge[], ULONG count, ULONG flags) override;
  HRESULT Receive(VOID* context, const ND2_SGE sge[], ULONG count) override;
  HRESULT Bind(VOID* context, IUnknown* region, IUnknown* window, const VOID* buffer, SIZE_T length,
               ULONG flags) override;
  HRESULT Invalidate(VOID* context, IUnknown* window, ULONG flags) override;
  HRESULT Read(VOID* context, const ND2_SGE sge[], ULONG count, UINT64 remote_address, UINT32 remote_token,
               ULONG flags) override;
  HRESULT Write(VOID* context, const ND2_SGE sge[], ULONG count, UINT64 remote_address, UINT32 remote_token,
                ULONG flags) override;

  void on_final_release();

  /// Its connection is that of `connector` from now on. False: it is another one's.
  [[nodiscard]] bool claim(const std::shared_ptr<Connector>& connector);
  void let_go(const Connector& connector);

  /// The queue pair behind the interface; whoever makes connections moves its state.
  [[nodiscard]] const std::shared_ptr<umd::QueuePair>& core() const { return core_; }

 private:
  HRESULT post(hw::WqeOpcode opcode, VOID* context, const ND2_SGE sge[], ULONG count, UINT64 remote_address,
               UINT32 remote_token, ULONG flags);

  /// The connection ends.
  void break_up();

  const std::shared_ptr<umd::QueuePair> core_;
  std::mutex mutex_;
  std::weak_ptr<Connector> connector_;
};

}  // namespace rnic::nd2
