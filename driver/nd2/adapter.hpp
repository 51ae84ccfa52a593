#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "driver/nd2/com_object.hpp"
#include "driver/nd2/handles.hpp"
#include "driver/umd/process_context.hpp"

namespace rnic::nd2 {

/// IND2Adapter: a process's view of one device.
class Adapter final : public ComObject<IND2Adapter, Adapter> {
 public:
  static constexpr IID kInterface = IID_IND2Adapter;

  Adapter(std::shared_ptr<umd::ProcessContext> process, std::vector<sockaddr_storage> addresses)
      : process_(std::move(process)), addresses_(std::move(addresses)) {}

  HRESULT CreateOverlappedFile(HANDLE* file) override;
  HRESULT Query(ND2_ADAPTER_INFO* info, ULONG* size) override;
  HRESULT QueryAddressList(SOCKET_ADDRESS_LIST* list, ULONG* size) override;
  HRESULT CreateCompletionQueue(REFIID iid, HANDLE file, ULONG depth, USHORT group, KAFFINITY affinity,
                                VOID** queue) override;
  HRESULT CreateMemoryRegion(REFIID iid, HANDLE file, VOID** region) override;
  HRESULT CreateMemoryWindow(REFIID iid, VOID** window) override;
  HRESULT CreateSharedReceiveQueue(REFIID iid, HANDLE file, ULONG depth, ULONG sges, ULONG threshold, USHORT group,
                                   KAFFINITY affinity, VOID** queue) override;
  HRESULT CreateQueuePair(REFIID iid, IUnknown* receive_cq, IUnknown* initiator_cq, VOID* context, ULONG receive_depth,
                          ULONG initiator_depth, ULONG receive_sges, ULONG initiator_sges, ULONG inline_bytes,
                          VOID** pair) override;
  HRESULT CreateQueuePairWithSrq(REFIID iid, IUnknown* receive_cq, IUnknown* initiator_cq, IUnknown* srq, VOID* context,
                                 ULONG initiator_depth, ULONG initiator_sges, ULONG inline_bytes, VOID** pair) override;
  HRESULT CreateConnector(REFIID iid, HANDLE file, VOID** connector) override;
  HRESULT CreateListener(REFIID iid, HANDLE file, VOID** listener) override;

  [[nodiscard]] const std::shared_ptr<umd::ProcessContext>& process() const { return process_; }

  /// Children keep what they need of the adapter alive.
  void on_final_release() {}

 private:
  template <typename Object>
  HRESULT create_on_file(REFIID iid, HANDLE file, VOID** object);

  const std::shared_ptr<umd::ProcessContext> process_;
  const std::vector<sockaddr_storage> addresses_;
};

/// Opens an adapter on `node`, which must outlive everything made from it. `addresses` are the IP addresses of the
/// device's port. Gives one reference. ND_SUCCESS, E_NOINTERFACE, ND_NO_MEMORY, ND_INSUFFICIENT_RESOURCES.
HRESULT open_adapter(DeviceNode& node, const std::vector<sockaddr_storage>& addresses, REFIID iid, VOID** adapter);

}  // namespace rnic::nd2
