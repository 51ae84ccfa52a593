#include "driver/nd2/framework.hpp"

#include <algorithm>

namespace rnic::nd2 {
namespace {

constexpr DWORD kQueryFlags =
    ND_QUERY_EXCLUDE_EMULATOR_ADDRESSES | ND_QUERY_EXCLUDE_NDv1_ADDRESSES | ND_QUERY_EXCLUDE_NDv2_ADDRESSES;

/// Good for the link alone (RFC 4291, 2.5.6).
bool is_link_local(const SocketAddress& address) { return address.gid[0] == 0xFE && (address.gid[1] & 0xC0) == 0x80; }

/// The own address from which `remote` is reached: itself, or the first of its family and scope, for there are no
/// routers.
const SocketAddress* source_for(const SocketAddress& remote, std::span<const FoundAdapter> adapters) {
  const SocketAddress* first = nullptr;
  for (const auto& adapter : adapters) {
    for (const auto& own : adapter.addresses) {
      if (own.family != remote.family || is_link_local(own) != is_link_local(remote)) continue;
      if (own.gid == remote.gid) return &own;
      if (first == nullptr) first = &own;
    }
  }
  return first;
}

Framework::Finder& process_finder() {
  static Framework::Finder finder;
  return finder;
}

std::function<Framework&()>& chosen() {
  static std::function<Framework&()> of_thread;
  return of_thread;
}

}  // namespace

/// Null: nobody has started.
std::shared_ptr<Provider> Framework::provider() {
  const std::lock_guard lock(mutex_);
  if (startups_ == 0) return nullptr;
  if (provider_ == nullptr) provider_ = std::make_shared<Provider>(finder_());
  return provider_;
}

HRESULT Framework::startup() {
  return guarded(
      [&] {
        const std::lock_guard lock(mutex_);
        if (provider_ == nullptr) provider_ = std::make_shared<Provider>(finder_());
        ++startups_;
        return ND_SUCCESS;
      },
      ND_NO_MEMORY);
}

HRESULT Framework::cleanup() {
  const std::lock_guard lock(mutex_);
  if (startups_ == 0) return ND_DEVICE_NOT_READY;
  if (--startups_ == 0) provider_.reset();
  return ND_SUCCESS;
}

void Framework::flush_providers() {
  const std::lock_guard lock(mutex_);
  provider_.reset();
}

HRESULT Framework::query_address_list(DWORD flags, SOCKET_ADDRESS_LIST* list, SIZE_T* bytes) {
  return guarded(
      [&] {
        const auto from = provider();
        if (from == nullptr) return ND_DEVICE_NOT_READY;
        if ((flags & ~kQueryFlags) != 0) return ND_INVALID_PARAMETER_1;
        if (bytes == nullptr) return ND_INVALID_PARAMETER_3;
        std::vector<FoundAdapter> adapters;
        if ((flags & ND_QUERY_EXCLUDE_NDv2_ADDRESSES) == 0) adapters = from->adapters();
        const auto none = [](const FoundAdapter& adapter) { return adapter.addresses.empty(); };
        if (std::all_of(adapters.begin(), adapters.end(), none)) {
          *bytes = 0;
          return ND_SUCCESS;
        }
        return write_addresses_of(adapters, list, *bytes);
      },
      ND_NO_MEMORY);
}

HRESULT Framework::resolve_address(const sockaddr* remote, SIZE_T remote_bytes, sockaddr* local, SIZE_T* local_bytes) {
  return guarded(
      [&] {
        const auto from = provider();
        if (from == nullptr) return ND_DEVICE_NOT_READY;
        if (local_bytes == nullptr) return ND_INVALID_PARAMETER_4;
        SocketAddress to;
        if (const HRESULT status = read_address(remote, remote_bytes, to); status != ND_SUCCESS) return status;
        if (to.is_any()) return ND_INVALID_ADDRESS;
        const auto adapters = from->adapters();
        const SocketAddress* const own = source_for(to, adapters);
        if (own == nullptr) return from->all_answer() ? ND_NETWORK_UNREACHABLE : ND_UNSUCCESSFUL;
        auto bytes = static_cast<ULONG>(std::min<SIZE_T>(*local_bytes, sizeof(sockaddr_storage)));
        const HRESULT status = write_address(*own, local, &bytes);
        *local_bytes = bytes;
        return status;
      },
      ND_NO_MEMORY);
}

HRESULT Framework::check_address(const sockaddr* address, SIZE_T bytes) {
  return guarded(
      [&] {
        const auto from = provider();
        if (from == nullptr) return ND_DEVICE_NOT_READY;
        SocketAddress wanted;
        if (const HRESULT status = read_address(address, bytes, wanted); status != ND_SUCCESS) return status;
        return from->find_adapter(wanted) ? ND_SUCCESS : ND_INVALID_ADDRESS;
      },
      ND_NO_MEMORY);
}

HRESULT Framework::open_adapter(REFIID iid, const sockaddr* address, SIZE_T bytes, VOID** adapter) {
  return guarded(
      [&] {
        if (adapter == nullptr) return E_POINTER;
        *adapter = nullptr;
        const auto from = provider();
        if (from == nullptr) return ND_DEVICE_NOT_READY;
        SocketAddress wanted;
        if (const HRESULT status = read_address(address, bytes, wanted, ND_INVALID_PARAMETER_2, ND_INVALID_PARAMETER_3);
            status != ND_SUCCESS)
          return status;
        const auto found = from->find_adapter(wanted);
        return found ? from->OpenAdapter(iid, found->id, adapter) : ND_INVALID_ADDRESS;
      },
      ND_NO_MEMORY);
}

HRESULT Framework::open_v1_adapter(const sockaddr* address, SIZE_T bytes, INDAdapter** adapter) {
  return guarded(
      [&] {
        if (adapter == nullptr) return E_POINTER;
        *adapter = nullptr;
        if (provider() == nullptr) return ND_DEVICE_NOT_READY;
        SocketAddress wanted;
        const HRESULT status = read_address(address, bytes, wanted);
        return status != ND_SUCCESS ? status : ND_INVALID_ADDRESS;
      },
      ND_NO_MEMORY);
}

HRESULT Framework::class_object(REFCLSID class_id, REFIID iid, VOID** provider) {
  return guarded(
      [&] {
        if (provider == nullptr) return E_POINTER;
        *provider = nullptr;
        if (class_id != CLSID_RnicProvider) return CLASS_E_CLASSNOTAVAILABLE;
        if (iid != Provider::kInterface && iid != IID_IUnknown) return E_NOINTERFACE;
        return Provider::hand_out(std::make_shared<Provider>(finder_()), iid, provider);
      },
      ND_NO_MEMORY);
}

Framework& framework() {
  if (chosen()) return chosen()();
  static Framework of_process([] { return process_finder() ? process_finder()() : DeviceNodes{}; });
  return of_process;
}

void set_framework(std::function<Framework&()> of_thread) { chosen() = std::move(of_thread); }

void set_process_devices(Framework::Finder finder) { process_finder() = std::move(finder); }

}  // namespace rnic::nd2

using rnic::nd2::framework;

extern "C" {

HRESULT NdStartup() { return framework().startup(); }
HRESULT NdCleanup() { return framework().cleanup(); }
VOID NdFlushProviders() { framework().flush_providers(); }
HRESULT NdQueryAddressList(DWORD flags, SOCKET_ADDRESS_LIST* list, SIZE_T* bytes) {
  return framework().query_address_list(flags, list, bytes);
}
HRESULT NdResolveAddress(const sockaddr* remote, SIZE_T remote_bytes, sockaddr* local, SIZE_T* local_bytes) {
  return framework().resolve_address(remote, remote_bytes, local, local_bytes);
}
HRESULT NdCheckAddress(const sockaddr* address, SIZE_T bytes) { return framework().check_address(address, bytes); }
HRESULT NdOpenAdapter(REFIID iid, const sockaddr* address, SIZE_T bytes, VOID** adapter) {
  return framework().open_adapter(iid, address, bytes, adapter);
}
HRESULT NdOpenV1Adapter(const sockaddr* address, SIZE_T bytes, INDAdapter** adapter) {
  return framework().open_v1_adapter(address, bytes, adapter);
}
HRESULT DllGetClassObject(REFCLSID class_id, REFIID iid, VOID** provider) {
  return framework().class_object(class_id, iid, provider);
}
HRESULT DllCanUnloadNow() { return rnic::nd2::live_objects.load() == 0 ? S_OK : S_FALSE; }
}
