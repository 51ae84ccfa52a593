#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>

#include "driver/win32/last_error.hpp"
#include "driver/win32/surroundings.hpp"

using namespace rnic::win32;

namespace {

constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr std::uint64_t kNanosecondsPerMillisecond = 1'000'000;
constexpr std::uint64_t kTicksPerSecond = 10'000'000;     // FILETIME counts 100 ns
constexpr std::uint64_t kSecondsTo1970 = 11'644'473'600;  // from 1601

FILETIME file_time(std::uint64_t ticks) {
  return {.dwLowDateTime = static_cast<DWORD>(ticks), .dwHighDateTime = static_cast<DWORD>(ticks >> 32)};
}

}  // namespace

BOOL QueryPerformanceCounter(LARGE_INTEGER* count) {
  if (count == nullptr) return fail(ERROR_NOACCESS);
  count->QuadPart = static_cast<LONGLONG>(surroundings().now_ns());
  return TRUE;
}

BOOL QueryPerformanceFrequency(LARGE_INTEGER* frequency) {
  if (frequency == nullptr) return fail(ERROR_NOACCESS);
  frequency->QuadPart = static_cast<LONGLONG>(kNanosecondsPerSecond);
  return TRUE;
}

DWORD GetTickCount() { return static_cast<DWORD>(GetTickCount64()); }

ULONGLONG GetTickCount64() { return surroundings().now_ns() / kNanosecondsPerMillisecond; }

void GetSystemTimeAsFileTime(FILETIME* time) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const auto seconds = static_cast<std::uint64_t>(now.tv_sec) + kSecondsTo1970;
  *time = file_time(seconds * kTicksPerSecond + static_cast<std::uint64_t>(now.tv_nsec) / 100);
}

BOOL GetSystemTimes(FILETIME* idle, FILETIME* kernel, FILETIME* user) {
  std::ifstream stat("/proc/stat");
  std::string name;
  std::uint64_t user_ticks{}, nice{}, system{}, idle_ticks{};
  if (!(stat >> name >> user_ticks >> nice >> system >> idle_ticks)) return fail(ERROR_GEN_FAILURE);
  const std::uint64_t scale = kTicksPerSecond / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  if (idle != nullptr) *idle = file_time(idle_ticks * scale);
  if (kernel != nullptr) *kernel = file_time((system + idle_ticks) * scale);
  if (user != nullptr) *user = file_time((user_ticks + nice) * scale);
  return TRUE;
}

void GetSystemInfo(SYSTEM_INFO* info) {
  const unsigned processors = std::max(std::thread::hardware_concurrency(), 1U);
  const auto page = static_cast<DWORD>(sysconf(_SC_PAGESIZE));
  const DWORD_PTR all = ~DWORD_PTR{0};
  *info = {.dwPageSize = page,
           .dwNumberOfProcessors = processors,
           .dwActiveProcessorMask = processors >= 8 * sizeof all ? all : (DWORD_PTR{1} << processors) - 1,
           .dwAllocationGranularity = page};
}
