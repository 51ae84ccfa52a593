#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "driver/nd2/ndsupport.h"
#include "driver/nd2/provider.hpp"

namespace rnic::nd2 {

/// What stands behind the helpers (ndsupport.h) in one process, or in one of the processes of a simulated machine.
/// Thread safe.
class Framework {
 public:
  /// The devices of the host, at each call anew. Throws std::bad_alloc.
  using Finder = std::function<DeviceNodes()>;

  explicit Framework(Finder finder) : finder_(std::move(finder)) {}

  HRESULT startup();
  HRESULT cleanup();
  void flush_providers();
  HRESULT query_address_list(DWORD flags, SOCKET_ADDRESS_LIST* list, SIZE_T* bytes);
  HRESULT resolve_address(const sockaddr* remote, SIZE_T remote_bytes, sockaddr* local, SIZE_T* local_bytes);
  HRESULT check_address(const sockaddr* address, SIZE_T bytes);
  HRESULT open_adapter(REFIID iid, const sockaddr* address, SIZE_T bytes, VOID** adapter);
  HRESULT open_v1_adapter(const sockaddr* address, SIZE_T bytes, INDAdapter** adapter);
  HRESULT class_object(REFCLSID class_id, REFIID iid, VOID** provider);

 private:
  [[nodiscard]] std::shared_ptr<Provider> provider();

  const Finder finder_;
  std::mutex mutex_;
  unsigned startups_{};
  std::shared_ptr<Provider> provider_;  ///< While somebody has started, and until it is flushed
};

/// The one of the calling thread, for which the helpers work.
[[nodiscard]] Framework& framework();
/// From now on `of_thread` says which one that is; empty: the process has one. Nobody uses a helper meanwhile.
void set_framework(std::function<Framework&()> of_thread);
/// How the one of the process finds devices. Without it there are none. Before the first use.
void set_process_devices(Framework::Finder finder);

}  // namespace rnic::nd2
