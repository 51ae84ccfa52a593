#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "driver/win32/completion_port.hpp"
#include "driver/win32/last_error.hpp"
#include "driver/win32/waitable.hpp"

using namespace rnic::win32;

namespace {

/// A thread: signaled when it has ended.
class Thread final : public Waitable {
 public:
  void end(DWORD code) {
    {
      const std::lock_guard lock(mutex());
      code_ = code;
      ended_ = true;
      wake_waiting();
    }
    wake_own();
  }
  [[nodiscard]] DWORD code() {
    const std::lock_guard lock(mutex());
    return code_;
  }

 private:
  [[nodiscard]] bool signaled() const override { return ended_; }
  void on_taken() override {}

  DWORD code_ = STILL_ACTIVE;
  bool ended_{};
};

/// Sets its argument when the thread knows it.
struct ThreadId {
  std::atomic<DWORD> value{};
};

}  // namespace

HANDLE CreateThread(LPSECURITY_ATTRIBUTES security, SIZE_T, LPTHREAD_START_ROUTINE start, LPVOID argument, DWORD flags,
                    LPDWORD id) {
  if (start == nullptr) return fail(ERROR_INVALID_PARAMETER, HANDLE{});
  if (security != nullptr || flags != 0) return fail(ERROR_NOT_SUPPORTED, HANDLE{});
  return guarded(HANDLE{}, [&] {
    const auto thread = std::make_shared<Thread>();
    const auto known = id != nullptr ? std::make_shared<ThreadId>() : nullptr;
    const HANDLE handle = open_handle(thread);
    const auto body = [thread, known, start, argument] {
      if (known != nullptr) {
        known->value = GetCurrentThreadId();
        known->value.notify_all();
      }
      thread->end(start(argument));
    };
    if (!surroundings().start_thread(body)) {
      close_handle(handle);
      return fail(ERROR_NOT_ENOUGH_MEMORY, HANDLE{});
    }
    if (known != nullptr) {
      if (surroundings().threads_are_separate()) known->value.wait(0);
      *id = known->value;
    }
    return handle;
  });
}

BOOL GetExitCodeThread(HANDLE thread, LPDWORD code) {
  if (code == nullptr) return fail(ERROR_INVALID_PARAMETER);
  const auto object = find_handle_as<Thread>(thread);
  if (object == nullptr) return fail(ERROR_INVALID_HANDLE);
  *code = object->code();
  return TRUE;
}

DWORD GetCurrentThreadId() { return static_cast<DWORD>(syscall(SYS_gettid)); }

DWORD GetCurrentProcessId() { return static_cast<DWORD>(getpid()); }

HANDLE GetCurrentThread() { return reinterpret_cast<HANDLE>(static_cast<LONG_PTR>(-2)); }

HANDLE GetCurrentProcess() { return INVALID_HANDLE_VALUE; }

DWORD_PTR SetThreadAffinityMask(HANDLE thread, DWORD_PTR mask) {
  constexpr int kBits = 8 * sizeof mask;
  if (thread != GetCurrentThread()) return fail(ERROR_INVALID_HANDLE, DWORD_PTR{0});
  if (!surroundings().threads_are_separate()) return fail(ERROR_NOT_SUPPORTED, DWORD_PTR{0});
  cpu_set_t set;
  if (pthread_getaffinity_np(pthread_self(), sizeof set, &set) != 0) return fail(ERROR_GEN_FAILURE, DWORD_PTR{0});
  DWORD_PTR before = 0;
  for (int i = 0; i < kBits; ++i) before |= static_cast<DWORD_PTR>(CPU_ISSET(i, &set) ? 1 : 0) << i;
  CPU_ZERO(&set);
  for (int i = 0; i < kBits; ++i)
    if ((mask >> i & 1) != 0) CPU_SET(i, &set);
  if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) return fail(ERROR_INVALID_PARAMETER, DWORD_PTR{0});
  return before;
}

BOOL SwitchToThread() {
  surroundings().yield();
  return TRUE;
}

void YieldProcessor() { surroundings().pause(); }

void Sleep(DWORD milliseconds) {
  if (milliseconds == 0) return surroundings().yield();
  const CompletionPort::Pause pause;
  static_cast<void>(surroundings().waiter().wait_until([] { return false; }, nanoseconds(milliseconds)));
}
