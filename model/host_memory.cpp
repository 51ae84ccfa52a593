#include "model/host_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "model/memory_file.hpp"
#include "model/pcie.hpp"

namespace rnic::model {
namespace {

std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

void* to_pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }
std::uint64_t to_address(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

void protect(std::uint64_t start, std::size_t bytes, int protection) {
  if (mprotect(to_pointer(start), bytes, protection) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot change the protection of host memory");
  }
}

}  // namespace

HostMemory::HostMemory(std::size_t host, std::size_t bytes)
    : base_(kFirstBase + host * kHostStride), size_(align_up(bytes, kPageBytes)) {
  if (host >= kMaxHosts) throw std::invalid_argument("host number " + std::to_string(host) + " is out of range");
  if (size_ == 0 || size_ > kHostStride)
    throw std::invalid_argument("host memory of " + std::to_string(bytes) + " bytes is out of range");
  void* const got = mmap(to_pointer(base_), size_, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != to_pointer(base_)) {
    const int error = got == MAP_FAILED ? errno : EEXIST;  // a kernel without MAP_FIXED_NOREPLACE maps elsewhere
    if (got != MAP_FAILED) munmap(got, size_);
    std::ostringstream text;
    text << "cannot reserve " << size_ << " bytes at 0x" << std::hex << base_ << " for host " << std::dec << host;
    throw std::system_error(error, std::generic_category(), text.str());
  }
}

HostMemory::~HostMemory() {
  for (const auto& [start, block] : blocks_) {
    if (block.descriptor >= 0) close(block.descriptor);
  }
  munmap(to_pointer(base_), size_);
}

void* HostMemory::allocate(std::size_t bytes, std::size_t alignment) {
  if (!std::has_single_bit(alignment)) throw std::invalid_argument("alignment must be a power of two");
  if (bytes > size_) return nullptr;
  const std::uint64_t step = std::max<std::uint64_t>(alignment, kPageBytes);
  const std::size_t pages = align_up(std::max<std::size_t>(bytes, 1), kPageBytes);
  std::uint64_t start = align_up(base_, step);
  for (const auto& [address, block] : blocks_) {
    if (start + pages + kPageBytes <= address) break;  // the gap also holds the guard page
    start = align_up(address + block.bytes + kPageBytes, step);
  }
  if (start < base_ || start + pages + kPageBytes > base_ + size_) return nullptr;
  protect(start, pages, PROT_READ | PROT_WRITE);
  blocks_.emplace(start, Block{pages, false, -1});
  used_ += pages;
  return to_pointer(start);
}

void HostMemory::release(void* pointer) {
  const auto found = blocks_.find(to_address(pointer));
  if (found == blocks_.end() || found->second.released) {
    throw std::invalid_argument("pointer was not allocated in this host memory, or is released twice");
  }
  used_ -= found->second.bytes;
  if (pinned(found->first, found->second.bytes)) {
    found->second.released = true;
    return;
  }
  decommit(found->first, found->second);
  blocks_.erase(found);
}

std::optional<HostMemory::Shared> HostMemory::share(const void* pointer) {
  const std::uint64_t address = to_address(pointer);
  auto found = blocks_.upper_bound(address);
  if (found == blocks_.begin()) return {};
  --found;
  auto& [start, block] = *found;
  if (address - start >= block.bytes) return {};
  if (block.descriptor < 0) {
    const int descriptor = memfd_create("rnic_host_memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const auto fail = [descriptor] {
      const int error = errno;
      if (descriptor >= 0) close(descriptor);
      throw std::system_error(error, std::generic_category(), "cannot share host memory");
    };
    if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(block.bytes)) != 0 ||
        // Whoever maps it could cut off what the host uses.
        fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
      fail();
    for (std::size_t done = 0; done < block.bytes;) {
      const ssize_t written =
          pwrite(descriptor, to_pointer(start + done), block.bytes - done, static_cast<off_t>(done));
      if (written <= 0) fail();
      done += static_cast<std::size_t>(written);
    }
    if (mmap(to_pointer(start), block.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0) ==
        MAP_FAILED)
      fail();
    block.descriptor = descriptor;
  }
  return Shared{block.descriptor, address - start};
}

bool HostMemory::shared(const void* pointer) const {
  const std::uint64_t address = to_address(pointer);
  const auto behind = blocks_.upper_bound(address);
  if (behind == blocks_.begin()) return false;
  const auto& [start, block] = *std::prev(behind);
  return address - start < block.bytes && block.descriptor >= 0;
}

template <typename Action>
void HostMemory::for_pages(const void* pointer, std::size_t length, Action action) {
  if (length == 0) return;
  const std::uint64_t first = to_address(pointer) & ~(kPageBytes - 1);
  const std::uint64_t end = to_address(pointer) + length;
  for (std::uint64_t page = first; page < end; page += kPageBytes) {
    if (contains(page)) action(page);
  }
}

void HostMemory::pin(const void* pointer, std::size_t length) {
  for_pages(pointer, length, [this](std::uint64_t page) { ++pins_[page]; });
}

void HostMemory::unpin(const void* pointer, std::size_t length) {
  for_pages(pointer, length, [this](std::uint64_t page) {
    const auto found = pins_.find(page);
    if (found == pins_.end()) throw std::invalid_argument("unpin of a page that is not pinned");
    if (--found->second == 0) pins_.erase(found);
  });
  if (length == 0) return;
  auto block = blocks_.upper_bound(to_address(pointer));
  if (block != blocks_.begin()) --block;
  const std::uint64_t end = to_address(pointer) + length;
  while (block != blocks_.end() && block->first < end) {
    if (block->second.released && !pinned(block->first, block->second.bytes)) {
      decommit(block->first, block->second);
      block = blocks_.erase(block);
    } else {
      ++block;
    }
  }
}

bool HostMemory::pinned(std::uint64_t start, std::size_t bytes) const {
  const auto found = pins_.lower_bound(start);
  return found != pins_.end() && found->first < start + bytes;
}

/// The next use reads zeros. What others have mapped stays theirs.
void HostMemory::decommit(std::uint64_t start, const Block& block) {
  if (block.descriptor < 0) {
    madvise(to_pointer(start), block.bytes, MADV_DONTNEED);
    return protect(start, block.bytes, PROT_NONE);
  }
  close(block.descriptor);
  if (mmap(to_pointer(start), block.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
      MAP_FAILED)
    throw std::system_error(errno, std::generic_category(), "cannot take back host memory");
}

bool HostMemory::accessible(const void* pointer, std::size_t length, bool writable) {
  const std::uint64_t start = to_address(pointer), end = start + length;
  if (end < start) return false;
  std::ifstream maps("/proc/self/maps");
  return map_has(maps, start, end, writable);
}

void HostMemory::clear() {
  pins_.clear();
  for (const auto& [start, block] : blocks_) decommit(start, block);
  blocks_.clear();
  used_ = 0;
}

}  // namespace rnic::model
