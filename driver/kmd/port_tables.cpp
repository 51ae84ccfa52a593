#include "driver/kmd/port_tables.hpp"

#include <algorithm>

#include "driver/generated/host_interface.hpp"

namespace rnic::kmd {
namespace {

constexpr std::uint16_t kFullMember = 0x8000;

template <typename T>
Result<std::uint16_t> place_of(std::vector<T>& table, const T& entry, std::size_t most) {
  return or_out_of_memory([&]() -> Result<std::uint16_t> {
    const auto found = std::find(table.begin(), table.end(), entry);
    const auto place = static_cast<std::uint16_t>(found - table.begin());
    if (found != table.end()) return place;
    if (table.size() == most) return Error::kOutOfResources;
    table.push_back(entry);
    return place;
  });
}

/// Bytes `from` to 15 of the address, in the low bits.
std::uint64_t tail_of(const Gid& gid, std::size_t from) {
  std::uint64_t tail = 0;
  for (std::size_t i = from; i < gid.size(); ++i) tail = tail << 8 | gid[i];
  return tail;
}

/// Whose interface identifier is made of a station address: the address. 0: it is not.
std::uint64_t station_of_link_local(const Gid& gid) {
  std::uint64_t mac = gid[8] ^ 2U;
  for (const std::size_t i : {9, 10, 13, 14, 15}) mac = mac << 8 | gid[i];
  return link_local_gid(mac) == gid ? mac : 0;
}

}  // namespace

bool is_ipv4_mapped(const Gid& gid) {
  return std::all_of(gid.begin(), gid.begin() + 10, [](std::uint8_t byte) { return byte == 0; }) && gid[10] == 0xFF &&
         gid[11] == 0xFF;
}

bool is_multicast(const Gid& gid) { return gid[0] == 0xFF || (is_ipv4_mapped(gid) && gid[12] >> 4 == 0xE); }

Gid link_local_gid(std::uint64_t mac) {
  const auto byte = [mac](unsigned i) { return static_cast<std::uint8_t>(mac >> 8 * (5 - i)); };
  Gid gid{0xFE, 0x80};
  gid[8] = byte(0) ^ 2;
  gid[9] = byte(1);
  gid[10] = byte(2);
  gid[11] = 0xFF;
  gid[12] = 0xFE;
  gid[13] = byte(3);
  gid[14] = byte(4);
  gid[15] = byte(5);
  return gid;
}

Result<std::uint16_t> PortTables::add_gid(const Gid& gid, std::uint16_t vlan) {
  if (vlan >= hw::kReservedVid) return Error::kInvalidParameter;
  const std::lock_guard lock(mutex_);
  return place_of(gids_, {.gid = gid, .vlan = vlan}, kMaxGids);
}

Result<std::uint16_t> PortTables::add_pkey(std::uint16_t pkey) {
  const std::lock_guard lock(mutex_);
  return place_of(pkeys_, pkey, kMaxPkeys);
}

Result<void> PortTables::add_neighbour(const Gid& gid, std::uint64_t mac) {
  return or_out_of_memory([&]() -> Result<void> {
    const std::lock_guard lock(mutex_);
    if (neighbours_.size() == kMaxNeighbours && !neighbours_.contains(gid)) return Error::kOutOfResources;
    neighbours_[gid] = mac;
    return {};
  });
}

Result<std::uint64_t> PortTables::station(const Gid& gid) const {
  {
    const std::lock_guard lock(mutex_);
    const auto is_it = [&gid](const OwnAddress& own) { return own.gid == gid; };
    if (std::any_of(gids_.begin(), gids_.end(), is_it)) return mac_;
    if (const auto known = neighbours_.find(gid); known != neighbours_.end()) return known->second;
  }
  if (gid[0] == 0xFF) return 0x3333'0000'0000 | tail_of(gid, 12);
  if (is_ipv4_mapped(gid) && gid[12] >> 4 == 0xE) return 0x0100'5E00'0000 | (tail_of(gid, 13) & 0x7F'FFFF);
  if (const std::uint64_t mac = station_of_link_local(gid); mac != 0) return mac;
  return Error::kNotFound;
}

Result<Gid> PortTables::gid(std::size_t index) const {
  const auto own = own_address(index);
  if (!own) return own.error();
  return own->gid;
}

Result<OwnAddress> PortTables::own_address(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  if (index >= gids_.size()) return Error::kNotFound;
  return gids_[index];
}

Result<std::uint16_t> PortTables::pkey(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  if (index >= pkeys_.size()) return Error::kNotFound;
  return pkeys_[index];
}

Result<std::uint16_t> PortTables::pkey_index_for(std::uint16_t pkey) const {
  const std::uint16_t full = pkey | kFullMember;
  if (full == kFullMember) return Error::kNotFound;  // no partition has number 0
  const std::lock_guard lock(mutex_);
  auto found = std::find(pkeys_.begin(), pkeys_.end(), full);
  if (found == pkeys_.end())  // the other membership: of two limited members neither speaks
    found = std::find(pkeys_.begin(), pkeys_.end(), static_cast<std::uint16_t>(pkey ^ kFullMember));
  if (found == pkeys_.end()) return Error::kNotFound;
  return static_cast<std::uint16_t>(found - pkeys_.begin());
}

std::uint16_t PortTables::gids() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::uint16_t>(gids_.size());
}

std::uint16_t PortTables::pkeys() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::uint16_t>(pkeys_.size());
}

}  // namespace rnic::kmd
