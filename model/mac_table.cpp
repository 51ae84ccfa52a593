#include "model/mac_table.hpp"

namespace rnic::model {

void MacTable::learn(std::uint64_t mac, std::size_t port, Picoseconds now) {
  if (!is_group_address(mac)) entries_[mac] = {port, now};
}

std::optional<std::size_t> MacTable::find(std::uint64_t mac, Picoseconds now) const {
  const auto found = entries_.find(mac);
  if (found == entries_.end() || now - found->second.seen >= ageing_) return std::nullopt;
  return found->second.port;
}

void MacTable::forget(std::size_t port) {
  std::erase_if(entries_, [port](const auto& entry) { return entry.second.port == port; });
}

}  // namespace rnic::model
