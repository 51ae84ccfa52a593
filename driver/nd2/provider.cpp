#include "driver/nd2/provider.hpp"

#include <algorithm>
#include <new>

#include "driver/nd2/adapter.hpp"

namespace rnic::nd2 {
namespace {

/// A client of its own for as long as the questions take. Nothing: it does not answer. Throws std::bad_alloc.
std::optional<FoundAdapter> ask(DeviceNode& node) {
  const auto port = node.open();
  if (!port) {
    if (port.error() == Error::kOutOfMemory) throw std::bad_alloc();
    return std::nullopt;
  }
  const auto tables = (*port)->call(calls::QueryPort{});
  if (!tables) return std::nullopt;
  auto addresses = own_addresses(**port);
  if (!addresses) return std::nullopt;
  return FoundAdapter{.node = &node, .id = tables->mac, .addresses = addresses.take()};
}

sockaddr_storage generic(const SocketAddress& address) {
  sockaddr_storage storage{};
  put_address(address, &storage);
  return storage;
}

}  // namespace

std::vector<FoundAdapter> Provider::adapters() const {
  std::vector<FoundAdapter> found;
  for (DeviceNode* const node : nodes_) {
    if (auto adapter = ask(*node)) found.push_back(std::move(*adapter));
  }
  return found;
}

std::optional<FoundAdapter> Provider::find_adapter(const SocketAddress& address) const {
  for (auto& adapter : adapters()) {
    const auto same = [&](const SocketAddress& own) { return own.family == address.family && own.gid == address.gid; };
    if (std::any_of(adapter.addresses.begin(), adapter.addresses.end(), same)) return std::move(adapter);
  }
  return std::nullopt;
}

HRESULT write_addresses_of(std::span<const FoundAdapter> adapters, SOCKET_ADDRESS_LIST* list, SIZE_T& bytes) {
  std::vector<sockaddr_storage> all;
  for (const auto& adapter : adapters) {
    for (const auto& address : adapter.addresses) all.push_back(generic(address));
  }
  return write_address_list(all, list, bytes);
}

HRESULT Provider::QueryAddressList(SOCKET_ADDRESS_LIST* list, ULONG* size) {
  return guarded(
      [&] {
        if (size == nullptr) return ND_INVALID_PARAMETER_2;
        SIZE_T bytes = *size;
        const HRESULT status = write_addresses_of(adapters(), list, bytes);
        *size = static_cast<ULONG>(bytes);
        return status;
      },
      ND_NO_MEMORY);
}

HRESULT Provider::ResolveAddress(const sockaddr* address, ULONG bytes, UINT64* id) {
  return guarded(
      [&] {
        if (id == nullptr) return ND_INVALID_PARAMETER_3;
        SocketAddress wanted;
        if (const HRESULT status = read_address(address, bytes, wanted); status != ND_SUCCESS) return status;
        const auto found = find_adapter(wanted);
        if (!found) return ND_INVALID_ADDRESS;
        *id = found->id;
        return ND_SUCCESS;
      },
      ND_NO_MEMORY);
}

HRESULT Provider::OpenAdapter(REFIID iid, UINT64 id, VOID** adapter) {
  return guarded(
      [&] {
        if (adapter == nullptr) return E_POINTER;
        *adapter = nullptr;
        if (iid != Adapter::kInterface && iid != IID_IUnknown) return E_NOINTERFACE;
        for (const auto& found : adapters()) {
          if (found.id != id) continue;
          std::vector<sockaddr_storage> addresses;
          for (const auto& address : found.addresses) addresses.push_back(generic(address));
          return open_adapter(*found.node, addresses, iid, adapter);
        }
        return ND_INVALID_PARAMETER;
      },
      ND_NO_MEMORY);
}

}  // namespace rnic::nd2
