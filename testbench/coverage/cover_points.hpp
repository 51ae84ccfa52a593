#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

namespace rnic::testbench {

/// Whether a point of the RTL (a statement, a branch, a bit that changed, a cover point) has been reached. What
/// Verilator generates calls it as the counter that it would have.
class CoverPoint {
 public:
  /// Looked at first: processes share the memory, and those that write it take it from each other's caches.
  void fetch_add(std::uint32_t, std::memory_order) {
    if (reached_.load(std::memory_order_relaxed) == 0) reached_.store(1, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint8_t> reached_;
};
static_assert(sizeof(CoverPoint) == 1);

/// The points of a model, all zero at first: the file MODEL.hits in the folder that the environment variable
/// RNIC_COVERAGE names, which all processes share, so that nothing is lost however one ends. Without the variable they
/// are kept nowhere. Ends the process when the file cannot be made. Never given back: models come and go.
inline CoverPoint* cover_points(const char* model, std::size_t count) {
  const char* folder = std::getenv("RNIC_COVERAGE");
  int file = -1;
  if (folder != nullptr) {
    const std::string path = std::string(folder) + "/" + model + ".hits";
    file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0 || ftruncate(file, static_cast<off_t>(count)) != 0) {
      std::fprintf(stderr, "rnic: cannot write '%s', where RNIC_COVERAGE wants what is reached of the RTL\n",
                   path.c_str());
      std::_Exit(2);
    }
  }
  void* const points =
      mmap(nullptr, count, PROT_READ | PROT_WRITE, file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0);
  if (file >= 0) close(file);
  if (points == MAP_FAILED) throw std::bad_alloc();
  return static_cast<CoverPoint*>(points);
}

}  // namespace rnic::testbench
