#include "tests/server/silent_memory.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace rnic::test {

int silence(std::uint8_t* memory, std::size_t bytes) {
  const int faults = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
  if (faults < 0) return errno;
  uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
  uffdio_register all{
      .range = {reinterpret_cast<std::uint64_t>(memory), bytes}, .mode = UFFDIO_REGISTER_MODE_MISSING, .ioctls = 0};
  if (ioctl(faults, UFFDIO_API, &api) != 0 || madvise(memory, bytes, MADV_DONTNEED) != 0 ||
      ioctl(faults, UFFDIO_REGISTER, &all) != 0)
    return errno;
  return 0;
}

}  // namespace rnic::test
