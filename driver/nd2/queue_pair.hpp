#pragma once

#include <memory>

#include "driver/nd2/com_object.hpp"
#include "driver/umd/queue_pair.hpp"

namespace rnic::nd2 {

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

  /// The queue pair behind the interface; whoever makes connections moves its state.
  [[nodiscard]] const std::shared_ptr<umd::QueuePair>& core() const { return core_; }

 private:
  HRESULT post(hw::WqeOpcode opcode, VOID* context, const ND2_SGE sge[], ULONG count, UINT64 remote_address,
               UINT32 remote_token, ULONG flags);

  const std::shared_ptr<umd::QueuePair> core_;
};

}  // namespace rnic::nd2
