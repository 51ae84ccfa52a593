#pragma once

#include <cstdint>
#include <istream>
#include <span>

#include "model/pcie.hpp"

namespace rnic::model {

/// Whether the map of a process, in the format of /proc/PID/maps, has all of [next, end) with these rights.
[[nodiscard]] bool map_has(std::istream& maps, std::uint64_t next, std::uint64_t end, bool writable);

/// Memory of another process, reached by the system (process_vm_readv, process_vm_writev): the process need not share
/// it or know of it, and it may change what is where at any moment.
class ProcessMemory {
 public:
  explicit ProcessMemory(std::int32_t process) : process_(process) {}

  /// All of `data`, from `address` on. False: not all of it is there to be read.
  [[nodiscard]] bool read(std::uint64_t address, std::span<std::uint8_t> data) const;
  /// What a write request enables, its first byte at `address`. False: not all of that can be written; some of it may
  /// have been.
  [[nodiscard]] bool write(std::uint64_t address, const DmaRequest& request) const;

  enum class Reach : std::uint8_t {
    kYes,
    kNo,         ///< Not all of it is there, or not all of it may be written
    kForbidden,  ///< The system does not let this process look there
  };
  /// Whether all of [address, address + length) may be read, and written if `writable`. What has never been used the
  /// process gets now.
  [[nodiscard]] Reach reach(std::uint64_t address, std::uint64_t length, bool writable) const;

 private:
  std::int32_t process_;
};

}  // namespace rnic::model
