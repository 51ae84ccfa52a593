#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "driver/nd2/addresses.hpp"
#include "driver/nd2/com_object.hpp"

namespace rnic::nd2 {

/// Devices of this host, as the process finds them. They outlive everything that is made from them.
using DeviceNodes = std::vector<DeviceNode*>;

/// A device and its addresses at present.
struct FoundAdapter {
  DeviceNode* node{};
  std::uint64_t id{};  ///< Station address
  std::vector<SocketAddress> addresses;
};

/// IND2Provider: the adapters of a host. Asks the devices at every call: addresses come and go.
class Provider final : public ComObject<IND2Provider, Provider> {
 public:
  static constexpr IID kInterface = IID_IND2Provider;

  explicit Provider(DeviceNodes nodes) : nodes_(std::move(nodes)) {}

  HRESULT QueryAddressList(SOCKET_ADDRESS_LIST* list, ULONG* size) override;
  HRESULT ResolveAddress(const sockaddr* address, ULONG bytes, UINT64* id) override;
  HRESULT OpenAdapter(REFIID iid, UINT64 id, VOID** adapter) override;

  /// Those that answer. Throws std::bad_alloc.
  [[nodiscard]] std::vector<FoundAdapter> adapters() const;
  /// There is a device that does not answer. Throws std::bad_alloc.
  [[nodiscard]] bool all_answer() const { return adapters().size() == nodes_.size(); }
  /// The one that has an address; the port does not count. Throws std::bad_alloc.
  [[nodiscard]] std::optional<FoundAdapter> find_adapter(const SocketAddress& address) const;

  /// Adapters that were opened have what they need.
  void on_final_release() {}

 private:
  const DeviceNodes nodes_;
};

/// All addresses of `adapters`, to a client who says how much room there is (write_address_list). Throws
/// std::bad_alloc.
[[nodiscard]] HRESULT write_addresses_of(std::span<const FoundAdapter> adapters, SOCKET_ADDRESS_LIST* list,
                                         SIZE_T& bytes);

}  // namespace rnic::nd2
