#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/pcie.hpp"

namespace rnic::model {

/// Memory of another process as a device of this one reaches it. The process need not share it or know of it, and it
/// may change what is where at any moment: so an access may fail, and how long it takes is not known. Accesses happen
/// in the order in which they begin.
class ProcessMemory {
 public:
  ProcessMemory() = default;
  ProcessMemory(const ProcessMemory&) = delete;
  ProcessMemory& operator=(const ProcessMemory&) = delete;
  virtual ~ProcessMemory() = default;

  /// A read or write that has begun. What it came to can be seen behind `finish`.
  struct Access {
    bool done = false;
    bool good = false;  ///< All of it was there, and could be read or written
    std::vector<std::uint8_t> data;
  };

  /// `bytes` from `address` on; they are in the data of the access.
  [[nodiscard]] virtual std::shared_ptr<Access> read(std::uint64_t address, std::size_t bytes) = 0;
  /// What a write request enables, its first byte at `address`. Of one that fails some may have been written.
  [[nodiscard]] virtual std::shared_ptr<Access> write(std::uint64_t address, const DmaRequest& request) = 0;
  /// Waits for the end of an access of this memory. A process that does not answer fails it.
  virtual void finish(Access& access) = 0;

  enum class Reach : std::uint8_t {
    kYes,
    kNo,         ///< Not all of it is there, or not all of it may be written
    kForbidden,  ///< The system does not let this process look there
  };
  /// Whether all of [address, address + length) may be read, and written if `writable`. What has never been used the
  /// process gets now.
  [[nodiscard]] virtual Reach reach(std::uint64_t address, std::uint64_t length, bool writable) = 0;
};

}  // namespace rnic::model
