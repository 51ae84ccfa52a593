#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "driver/generated/host_interface.hpp"
#include "driver/generated/kernel_calls.hpp"

namespace rnic::testbench {

/// A memory region that a process has registered.
struct RegionRecord {
  calls::Handle handle{};  ///< Of its client, as is `pd`
  std::uint32_t client{};
  std::uint32_t key{};
  std::uint64_t iova{}, length{};
  calls::Handle pd{};
  bool remote_read{}, remote_write{}, remote_atomic{};
  std::optional<std::uint64_t> gone_ps;  ///< Simulated time at which it was deregistered
};

/// A memory window that a process has created. Each bind changes the tag of its key, the low 8 bits.
struct WindowRecord {
  calls::Handle handle{};  ///< Of its client, as is `pd`
  std::uint32_t client{};
  std::uint32_t key{};  ///< The first; it opens nothing
  calls::Handle pd{};
  hw::MptType type{};
  std::optional<std::uint64_t> gone_ps;  ///< Simulated time at which it was deallocated

  [[nodiscard]] bool has(std::uint32_t other) const { return (other ^ key) >> 8 == 0; }
};

/// A queue pair that a process has created.
struct QueuePairRecord {
  std::uint32_t qpn{};
  hw::QpType type{};
  std::uint32_t client{};
  calls::Handle pd{};
};

/// What a process has done on a host; kept when it has ended.
struct ProcessRecord {
  std::int32_t process{};
  std::string name;                     ///< As in /proc/PID/comm
  std::vector<std::int32_t> ancestors;  ///< Its parent, the parent of that, and so on
  std::uint64_t calls = 0;
  std::map<calls::ObjectKind, std::uint64_t> created;
  std::map<std::pair<calls::Call, calls::Status>, std::uint64_t> refused;  ///< But for queries
  std::vector<QueuePairRecord> queue_pairs;                                ///< The first kMostObjects
  std::list<RegionRecord> regions;                                         ///< The last kMostObjects
  std::list<WindowRecord> windows;                                         ///< The last kMostObjects

  static constexpr std::size_t kMostObjects = 4096;
};

/// The processes that have come to a host, and the objects that each of them has made. It follows their kernel calls.
class ProcessBook {
 public:
  /// A connection of `process` begins: a new record, or that of its other connections. The book keeps the last kMost.
  [[nodiscard]] std::shared_ptr<ProcessRecord> begin(std::int32_t process);
  /// Client `client` of the process has made a call, and this is the answer.
  void called(ProcessRecord& record, std::uint32_t client, std::span<const std::byte> call,
              std::span<const std::byte> answer);

  [[nodiscard]] const std::list<std::shared_ptr<ProcessRecord>>& all() const { return all_; }
  /// Whether a process has had the queue pair of this index (the low 8 bits of its number). Others are the kernel
  /// driver's.
  [[nodiscard]] bool had(std::uint8_t index) const { return indices_[index]; }

 private:
  static constexpr std::size_t kMost = 256;

  std::list<std::shared_ptr<ProcessRecord>> all_;
  std::bitset<256> indices_;
};

/// The name that docs/kernel_calls.md has for a call that makes or changes an object; empty for others.
[[nodiscard]] std::string_view name_of(calls::Call call);

}  // namespace rnic::testbench
