#pragma once

#include <cstdint>
#include <istream>
#include <span>

#include "model/process_memory.hpp"

namespace rnic::model {

/// Whether the map of a process, in the format of /proc/PID/maps, has all of [next, end) with these rights.
[[nodiscard]] bool map_has(std::istream& maps, std::uint64_t next, std::uint64_t end, bool writable);

/// The address space that a process has when this is made, as the system gives it to others (/proc/PID/mem). It ends
/// when the process ends or becomes another program; a process that has its number later is another one.
///
/// A call here may last as long as the process likes: its memory may be a file of a system that never answers.
class MemoryFile {
 public:
  using Reach = ProcessMemory::Reach;

  explicit MemoryFile(std::int32_t process);
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();

  /// kNo: there is no such process.
  [[nodiscard]] Reach opened() const { return opened_; }

  /// The process has ended, or is another program: there is nothing any more.
  [[nodiscard]] bool ended() const;
  /// All of `data`, from `address` on. False: not all of it is there to be read.
  [[nodiscard]] bool read(std::uint64_t address, std::span<std::uint8_t> data) const;
  /// As ProcessMemory::write: `data` is that of a request of `length_dw` dwords with these byte enables.
  struct Enables {
    std::uint16_t length_dw{};
    std::uint8_t first{}, last{};
  };
  [[nodiscard]] bool write(std::uint64_t address, std::span<const std::uint8_t> data, const Enables& enables) const;
  /// As ProcessMemory::reach.
  [[nodiscard]] Reach reach(std::uint64_t address, std::uint64_t length, bool writable) const;

 private:
  [[nodiscard]] bool allows(std::uint64_t address, std::uint64_t length, bool writable) const;
  [[nodiscard]] bool map_allows(std::uint64_t address, std::uint64_t end, bool writable) const;
  [[nodiscard]] bool touch(std::uint64_t address, std::uint64_t length) const;
  [[nodiscard]] bool put(std::uint64_t address, std::span<const std::uint8_t> bytes) const;

  const std::int32_t process_;
  int memory_ = -1, maps_ = -1;
  Reach opened_ = Reach::kNo;
};

}  // namespace rnic::model
