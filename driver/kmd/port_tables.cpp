#include "driver/kmd/port_tables.hpp"

#include <algorithm>

namespace rnic::kmd {
namespace {

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

Result<std::uint16_t> PortTables::add_gid(const Gid& gid) {
  const std::lock_guard lock(mutex_);
  return place_of(gids_, gid, kMaxGids);
}

Result<std::uint16_t> PortTables::add_pkey(std::uint16_t pkey) {
  const std::lock_guard lock(mutex_);
  return place_of(pkeys_, pkey, kMaxPkeys);
}

Result<Gid> PortTables::gid(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  if (index >= gids_.size()) return Error::kNotFound;
  return gids_[index];
}

Result<std::uint16_t> PortTables::pkey(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  if (index >= pkeys_.size()) return Error::kNotFound;
  return pkeys_[index];
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
