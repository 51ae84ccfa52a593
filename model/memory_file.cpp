#include "model/memory_file.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <sstream>
#include <string>

namespace rnic::model {
namespace {

/// PROCMAP_QUERY of Linux 6.11, whose headers not everybody has.
struct MapQuery {
  std::uint64_t size = sizeof(MapQuery);
  std::uint64_t flags{};
  std::uint64_t address{};
  std::uint64_t start{}, end{};
  std::uint64_t rights{};
  std::uint64_t page_size{}, offset{}, inode{};
  std::uint32_t device_major{}, device_minor{};
  std::uint32_t name_size{}, build_id_size{};
  std::uint64_t name{}, build_id{};
};
static_assert(sizeof(MapQuery) == 104);
constexpr unsigned long kMapQuery = _IOWR('f', 17, MapQuery);
constexpr std::uint64_t kReadable = 1, kWritable = 2;

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

int open_of(std::int32_t process, const char* name, int flags) {
  const std::string path = "/proc/" + std::to_string(process) + name;
  return ::open(path.c_str(), flags | O_CLOEXEC);
}

std::string all_of(int file) {
  std::string text;
  std::array<char, 65536> piece;
  for (;;) {
    const ssize_t got = pread(file, piece.data(), piece.size(), static_cast<off_t>(text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

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

MemoryFile::MemoryFile(std::int32_t process) : process_(process), memory_(open_of(process, "/mem", O_RDWR)) {
  if (memory_ >= 0) maps_ = open_of(process, "/maps", O_RDONLY);
  if (maps_ >= 0) {
    opened_ = Reach::kYes;
  } else if (errno == EACCES || errno == EPERM) {
    opened_ = Reach::kForbidden;
  }
}

MemoryFile::~MemoryFile() {
  if (memory_ >= 0) close(memory_);
  if (maps_ >= 0) close(maps_);
}

bool MemoryFile::ended() const {
  // Of an address space that is there this is an error, but for a page that is there, too.
  std::uint8_t byte{};
  return opened_ == Reach::kYes && pread(memory_, &byte, 1, 0) == 0;
}

/// The system lets this process pass over the rights of the pages, which the device may not.
bool MemoryFile::allows(std::uint64_t address, std::uint64_t length, bool writable) const {
  const std::uint64_t end = address + length;
  if (end < address) return false;
  for (std::uint64_t next = address; next < end;) {
    MapQuery query{.flags = writable ? kReadable | kWritable : kReadable, .address = next};
    if (ioctl(maps_, kMapQuery, &query) != 0) {
      if (errno == EINTR) continue;
      return errno != ENOENT && errno != ESRCH && map_allows(next, end, writable);
    }
    next = query.end;
  }
  return true;
}

/// For a system that has to be asked for all of the map.
bool MemoryFile::map_allows(std::uint64_t address, std::uint64_t end, bool writable) const {
  std::istringstream maps(all_of(maps_));
  return map_has(maps, address, end, writable);
}

/// Has the process get what it has not had yet. What is there of another program since is not taken for it: only the
/// file says that.
bool MemoryFile::touch(std::uint64_t address, std::uint64_t length) const {
  std::array<std::uint8_t, IOV_MAX> bytes{};
  const iovec to{bytes.data(), bytes.size()};
  std::array<iovec, IOV_MAX> from{};
  const std::uint64_t end = address + length;
  for (std::uint64_t next = address; next < end;) {
    std::size_t count = 0;
    for (; count < from.size() && next < end; next = next / kPageBytes * kPageBytes + kPageBytes)
      from[count++] = {pointer(next), 1};
    const ssize_t got = process_vm_readv(process_, &to, 1, from.data(), count, 0);
    // Who may not call this may still have the file.
    if (got < 0 && errno == EPERM) return true;
    if (got != static_cast<ssize_t>(count)) return false;
  }
  return true;
}

bool MemoryFile::read(std::uint64_t address, std::span<std::uint8_t> data) const {
  if (!allows(address, data.size(), false)) return false;
  const auto got = [&] {
    return pread(memory_, data.data(), data.size(), static_cast<off_t>(address)) == static_cast<ssize_t>(data.size());
  };
  // Memory that somebody in the process has still to bring there (userfaultfd) is not waited for by the file.
  return got() || (touch(address, data.size()) && got());
}

bool MemoryFile::put(std::uint64_t address, std::span<const std::uint8_t> bytes) const {
  const auto put = [&] {
    return pwrite(memory_, bytes.data(), bytes.size(), static_cast<off_t>(address)) ==
           static_cast<ssize_t>(bytes.size());
  };
  return put() || (touch(address, bytes.size()) && put());
}

bool MemoryFile::write(std::uint64_t address, std::span<const std::uint8_t> data, const Enables& enables) const {
  const auto enabled = [&](std::size_t i) { return byte_enabled(i, enables.length_dw, enables.first, enables.last); };
  const auto next = [&](std::size_t from, bool wanted) {
    while (from < data.size() && enabled(from) != wanted) ++from;
    return from;
  };
  for (std::size_t begin = next(0, true), end = 0; begin < data.size(); begin = next(end, true)) {
    end = next(begin, false);
    if (!allows(address + begin, end - begin, true) || !put(address + begin, data.subspan(begin, end - begin)))
      return false;
  }
  return true;
}

MemoryFile::Reach MemoryFile::reach(std::uint64_t address, std::uint64_t length, bool writable) const {
  if (opened_ != Reach::kYes) return opened_;
  if (length == 0) return Reach::kYes;
  if (!allows(address, length, writable)) return Reach::kNo;
  // What the map does not say: what the system does not let anybody have, and the end of a file.
  std::uint8_t last{};
  const bool there = touch(address, length) && pread(memory_, &last, 1, static_cast<off_t>(address + length - 1)) == 1;
  return there ? Reach::kYes : Reach::kNo;
}

}  // namespace rnic::model
