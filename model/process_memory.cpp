#include "model/process_memory.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace rnic::model {
bool map_has(std::istream& maps, std::uint64_t next, std::uint64_t end, bool writable) {
  for (std::string line; next < end && std::getline(maps, line);) {
    std::istringstream fields(line);
    std::uint64_t low{}, high{};
    char dash{};
    std::string rights;
    if (!(fields >> std::hex >> low >> dash >> high >> rights) || high <= next) continue;
    if (low > next || rights[0] != 'r' || (writable && rights[1] != 'w')) return false;
    next = high;
  }
  return next >= end;
}

bool ProcessMemory::read(std::uint64_t address, std::span<std::uint8_t> data) const {
  const iovec to{data.data(), data.size()}, from{reinterpret_cast<void*>(address), data.size()};
  return process_vm_readv(process_, &to, 1, &from, 1, 0) == static_cast<ssize_t>(data.size());
}

bool ProcessMemory::write(std::uint64_t address, const DmaRequest& request) const {
  // A request has at most two dwords with holes, its first and its last.
  constexpr std::size_t kMostRuns = 8;
  std::array<iovec, kMostRuns> from{}, to{};
  std::size_t runs = 0;
  ssize_t bytes = 0;
  const auto enabled = [&](std::size_t i) {
    return byte_enabled(i, request.length_dw, request.first_be, request.last_be);
  };
  for (std::size_t i = 0; i < request.data.size();) {
    if (!enabled(i)) {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    while (end < request.data.size() && enabled(end)) ++end;
    from[runs] = {const_cast<std::uint8_t*>(request.data.data()) + i, end - i};
    to[runs] = {reinterpret_cast<void*>(address + i), end - i};
    ++runs;
    bytes += static_cast<ssize_t>(end - i);
    i = end;
  }
  if (runs == 0) return true;
  return process_vm_writev(process_, from.data(), runs, to.data(), runs, 0) == bytes;
}

ProcessMemory::Reach ProcessMemory::reach(std::uint64_t address, std::uint64_t length, bool writable) const {
  const std::uint64_t end = address + length;
  if (length == 0) return Reach::kYes;
  if (end < address) return Reach::kNo;
  // A look at each page says what the map does not: what the system does not let anybody have, and the end of a file.
  std::array<std::uint8_t, IOV_MAX> bytes{};
  const iovec to{bytes.data(), bytes.size()};
  std::array<iovec, IOV_MAX> from{};
  for (std::uint64_t next = address; next < end;) {
    std::size_t count = 0;
    for (; count < from.size() && next < end; next = next / kPageBytes * kPageBytes + kPageBytes)
      from[count++] = {reinterpret_cast<void*>(next), 1};
    const ssize_t got = process_vm_readv(process_, &to, 1, from.data(), count, 0);
    if (got < 0 && errno == EPERM) return Reach::kForbidden;
    if (got != static_cast<ssize_t>(count)) return Reach::kNo;
  }
  std::ifstream maps("/proc/" + std::to_string(process_) + "/maps");
  if (!maps) return Reach::kForbidden;
  return map_has(maps, address, end, writable) ? Reach::kYes : Reach::kNo;
}

}  // namespace rnic::model
