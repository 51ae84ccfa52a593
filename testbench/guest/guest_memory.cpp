#include "testbench/guest/guest_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "model/pcie.hpp"
#include "testbench/guest/guest_link_error.hpp"

namespace rnic::testbench {
namespace {

struct Region {
  std::uint64_t address, bytes, offset;
};

void check_region(const Region& region, int descriptor) {
  const auto wrong = [&](const char* why) {
    throw GuestLinkError(
        fmt::format("the guest's memory of {:#x} bytes at {:#x}: {}", region.bytes, region.address, why));
  };
  if (region.bytes == 0 || (region.address | region.bytes | region.offset) % model::kPageBytes != 0 ||
      region.address + region.bytes < region.address || region.offset + region.bytes < region.offset)
    wrong("it is not of whole pages");
  // Seals first: only memory has them, and whose file this is otherwise may let who asks for its size wait.
  const int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals < 0) wrong("there is no file of memory to it (memory-backend-memfd is one)");
  if ((seals & F_SEAL_SHRINK) == 0) wrong("its file is not sealed against shrinking (memory-backend-memfd is)");
  struct stat file {};
  if (fstat(descriptor, &file) != 0 || !S_ISREG(file.st_mode)) wrong("there is no file to it");
  if (static_cast<std::uint64_t>(file.st_size) < region.offset + region.bytes) wrong("it is longer than its file");
}

}  // namespace

GuestMemory::GuestMemory(const proxy::SyncMemory& regions, const std::vector<remote::Descriptor>& descriptors) {
  try {
    for (std::size_t i = 0; i < descriptors.size(); ++i) {
      const Region region{regions.address.at(i), regions.bytes.at(i), regions.offset.at(i)};
      check_region(region, descriptors[i].get());
      void* const at = mmap(nullptr, region.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptors[i].get(),
                            static_cast<off_t>(region.offset));
      if (at == MAP_FAILED)
        throw GuestLinkError(fmt::format("the guest's memory cannot be mapped: {}", std::strerror(errno)));
      windows_.push_back({region.address, region.bytes, static_cast<std::uint8_t*>(at)});
    }
  } catch (...) {
    unmap();
    throw;
  }
}

GuestMemory::~GuestMemory() { unmap(); }

void GuestMemory::unmap() {
  for (const auto& window : windows_) munmap(window.host, window.bytes);
  windows_.clear();
}

std::uint64_t GuestMemory::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& window : windows_) sum += window.bytes;
  return sum;
}

}  // namespace rnic::testbench
