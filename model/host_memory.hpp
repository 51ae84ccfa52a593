#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace rnic::model {

/// Memory of one host: an address range of this process at a fixed place, so that pointers into it, and with them the
/// virtual addresses in packets, are the same in every run.
///
/// Allocations are page granular, zeroed, first fit by address, and followed by a page that cannot be accessed; so are
/// free pages. A stray access by an application faults as it would on a real machine.
class HostMemory {
 public:
  static constexpr std::uint64_t kFirstBase = 0x2000'0000'0000;
  static constexpr std::uint64_t kHostStride = 0x100'0000'0000;
  static constexpr std::size_t kMaxHosts = 64;
  static constexpr std::size_t kDefaultBytes = std::size_t{1} << 30;

  /// Reserves `bytes` (rounded up to pages) for host number `host`. Nothing is committed until it is used.
  /// Throws std::invalid_argument for a host or size out of range, std::system_error when the address range is taken.
  explicit HostMemory(std::size_t host, std::size_t bytes = kDefaultBytes);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  /// Zeroed memory of at least `bytes`, aligned to `alignment` (a power of two; at least a page is used).
  /// Null when no room is left. The caller gives it back with release.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = 1);
  /// Gives back what allocate returned. Pages that are pinned stay accessible, and are not reused, until they are
  /// unpinned. Throws std::invalid_argument for any other pointer.
  void release(void* pointer);

  /// Memory as another process can map it.
  struct Shared {
    int descriptor;        ///< Stays the memory's; there as long as the allocation
    std::uint64_t offset;  ///< Of the pointer
  };
  /// Makes an allocation one that others can map, if it is none yet; it stays where it is, with what is in it. Nothing:
  /// the pointer is in no allocation of this memory. Throws std::system_error when the system has no room, or no
  /// descriptor.
  [[nodiscard]] std::optional<Shared> share(const void* pointer);

  /// Others may have mapped what is at `pointer`.
  [[nodiscard]] bool shared(const void* pointer) const;

  /// Keeps the pages of [pointer, pointer + length) alive until the matching unpin. Pages elsewhere in the process are
  /// ignored.
  void pin(const void* pointer, std::size_t length);
  void unpin(const void* pointer, std::size_t length);

  /// True when every page of [pointer, pointer + length), anywhere in this process, may be read (and written, if
  /// `writable`).
  [[nodiscard]] static bool accessible(const void* pointer, std::size_t length, bool writable);

  /// Frees and unpins everything.
  void clear();

  [[nodiscard]] std::uint64_t base() const { return base_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Bytes of live allocations, whole pages.
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  struct Block {
    std::size_t bytes;  ///< Whole pages, without the guard page
    bool released;      ///< Waits for its last unpin
    int descriptor;     ///< Of what is shared; -1
  };

  [[nodiscard]] bool contains(std::uint64_t address) const { return address - base_ < size_; }
  [[nodiscard]] bool pinned(std::uint64_t start, std::size_t bytes) const;
  void decommit(std::uint64_t start, const Block& block);
  template <typename Action>
  void for_pages(const void* pointer, std::size_t length, Action action);

  std::uint64_t base_;
  std::size_t size_;
  std::size_t used_ = 0;
  std::map<std::uint64_t, Block> blocks_;      ///< By address
  std::map<std::uint64_t, std::size_t> pins_;  ///< Page address to count
};

}  // namespace rnic::model
