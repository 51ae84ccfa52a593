#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/random.hpp"

/// What a program is drawn from: its queue pairs, and which memory each of them has for what.
namespace rnic::testbench {

enum class ProgramService : std::uint8_t { kRc, kUc, kUd, kEthernet };

/// Parts of the memory of a queue pair. All but the receives change places from batch to batch, so that what one batch
/// has written another one reads; within a batch nothing that is written is read.
enum class Zone : std::uint8_t { kSource, kSink, kWriteTarget, kReadSource, kAtomics, kReceives };
inline constexpr std::size_t kMovingZones = 5, kZones = 6;

/// A window or fast registration, and what it opens now.
struct PlannedKey {
  std::string name;
  std::size_t qp = 0;
  std::uint64_t offset = 0, length = 0;
  bool bound = false, reads = false, writes = false;
  bool lost = false;                                              ///< Nobody knows what has become of it
  std::size_t changed = ~std::size_t{0}, used = ~std::size_t{0};  ///< Batch in which that was last
};

/// A queue pair that is attached to a multicast group.
struct GroupMember {
  std::size_t host = 0, qp = 0;
  bool operator==(const GroupMember&) const = default;
};

struct PlannedGroup {
  const char* address;  ///< As steps have it
  std::vector<GroupMember> members;
};

struct PlannedPair {
  std::size_t area = 0;   ///< A queue pair that begins anew has other memory: what is in the old one nobody knows
  bool dead = false;      ///< Something has failed on it; only what needs no success is done with it
  bool attacked = false;  ///< Hand-made frames go to host B in the name of A
  /// Batch in which it fails, and one in which it must not: another queue pair tries a key that is bound on it.
  std::size_t failed = ~std::size_t{0}, must_live = ~std::size_t{0};
  std::array<bool, 2> stopped{};                        ///< SQE, perhaps
  nlohmann::json unread = nlohmann::json::array();      ///< Steps ring_reads that give its rings back
  std::array<std::uint32_t, 2> psn{};                   ///< Of the next request of each host
  std::array<std::deque<std::uint32_t>, 2> receives{};  ///< Bytes of those that wait
};

/// The whole of what stays the same in a program, and its random numbers.
struct ProgramPlan {
  model::Random random;
  ProgramService service = ProgramService::kRc;
  bool srq = false, fast = false, faults = false, scenario = false;
  std::uint32_t mtu = 1024, inline_bytes = 64;
  std::uint8_t rnr_retry = 6;
  std::array<bool, 2> remote_read{true, true}, remote_write{true, true}, remote_atomic{true, true};
  std::uint32_t zone_bytes = 8192;
  std::size_t areas = 2;
  std::vector<PlannedPair> pairs;
  std::array<std::vector<PlannedKey>, 2> keys;
  std::vector<PlannedGroup> groups;              ///< UD
  bool one_at_a_time = false;                    ///< Ethernet: a Receive is too short, perhaps
  std::array<std::size_t, 2> shared_receives{};  ///< At most so many wait in the shared queue
  std::size_t batch = 0;
  std::uint64_t next_context = 1;
  std::string host_fault;  ///< What DMA reads meet that fail, as scenarios name it

  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return random.below(bound); }
  [[nodiscard]] std::uint64_t between(std::uint64_t least, std::uint64_t most) {
    return least + below(most - least + 1);
  }
  [[nodiscard]] bool chance(double p) { return random.chance(p); }
  template <typename T>
  [[nodiscard]] const T& one_of(const std::vector<T>& list) {
    return list[below(list.size())];
  }

  /// First byte of a zone in the main region of either host.
  [[nodiscard]] std::uint64_t zone(std::size_t qp, Zone which) const {
    std::uint64_t index = static_cast<std::uint64_t>(which);
    if (which != Zone::kReceives) index = (index + batch) % kMovingZones;
    return ((qp * areas + pairs[qp].area) * kZones + index) * zone_bytes;
  }
  [[nodiscard]] std::uint64_t main_bytes() const { return pairs.size() * areas * kZones * zone_bytes; }
  [[nodiscard]] std::uint32_t packets(std::uint64_t bytes) const {
    return bytes <= mtu ? 1 : static_cast<std::uint32_t>((bytes + mtu - 1) / mtu);
  }
};

/// Bytes of the regions that lack a right, of all queue pairs, and of each queue pair's part of the one for windows.
inline constexpr std::uint32_t kSmallRegion = 4096, kWindowPart = 4096;

inline const char* host_letter(std::size_t host) { return host == 0 ? "A" : "B"; }
/// "a" is the main region of host A; "a_read" has one right, and so on.
inline std::string region_name(std::size_t host, const char* suffix = "") {
  return std::string(host == 0 ? "a" : "b") + suffix;
}

}  // namespace rnic::testbench
