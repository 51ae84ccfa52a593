#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "model/time.hpp"

namespace rnic::model {

/// Behind which port of a bridge each station was last seen: its filtering database (IEEE 802.1D 7.8, 7.9), with
/// dynamic entries only, and room for all of them.
class MacTable {
 public:
  /// MAC addresses are numbers: the first byte on the wire is bits 47:40. `ageing`: an entry is valid for so long after
  /// the newest frame of its station.
  explicit MacTable(Picoseconds ageing) : ageing_(ageing) {}

  /// A frame of station `mac` has come through `port`. Group addresses are no stations.
  void learn(std::uint64_t mac, std::size_t port, Picoseconds now);
  /// The port of station `mac`. Nothing: not known, or not any more.
  [[nodiscard]] std::optional<std::size_t> find(std::uint64_t mac, Picoseconds now) const;
  /// Forgets who is behind `port`.
  void forget(std::size_t port);

 private:
  struct Entry {
    std::size_t port;
    Picoseconds seen;
  };

  Picoseconds ageing_;
  std::map<std::uint64_t, Entry> entries_;
};

/// The group bit, sent first (IEEE 802.3 3.2.3): multicast, or broadcast.
[[nodiscard]] constexpr bool is_group_address(std::uint64_t mac) { return (mac >> 40 & 1) != 0; }

}  // namespace rnic::model
