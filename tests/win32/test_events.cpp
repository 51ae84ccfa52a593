#include <windows.h>
#include <process.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "driver/win32/surroundings.hpp"
#include "driver/win32/waitable.hpp"

// Expectations: the documented behaviour of the functions of these names.

namespace {

constexpr DWORD kSoon = 20;         // ms: long enough to see that something does not happen
constexpr DWORD kGenerous = 20000;  // and that something does

struct Handle {
  explicit Handle(HANDLE of) : handle(of) { REQUIRE(of != nullptr); }
  ~Handle() { CloseHandle(handle); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator HANDLE() const { return handle; }
  HANDLE handle;
};

HANDLE automatic(bool set = false) { return CreateEvent(nullptr, FALSE, set ? TRUE : FALSE, nullptr); }
HANDLE manual(bool set = false) { return CreateEvent(nullptr, TRUE, set ? TRUE : FALSE, nullptr); }

}  // namespace

TEST_CASE("a manual event stays set until it is reset") {
  const Handle event(manual());
  CHECK(WaitForSingleObject(event, 0) == WAIT_TIMEOUT);
  CHECK(SetEvent(event));
  CHECK(WaitForSingleObject(event, 0) == WAIT_OBJECT_0);
  CHECK(WaitForSingleObject(event, INFINITE) == WAIT_OBJECT_0);
  CHECK(ResetEvent(event));
  CHECK(WaitForSingleObject(event, 0) == WAIT_TIMEOUT);
}

TEST_CASE("an automatic event releases one wait") {
  const Handle event(automatic(true));
  CHECK(WaitForSingleObject(event, 0) == WAIT_OBJECT_0);
  CHECK(WaitForSingleObject(event, 0) == WAIT_TIMEOUT);
  SetEvent(event);
  SetEvent(event);  // it is set already
  CHECK(WaitForSingleObject(event, 0) == WAIT_OBJECT_0);
  CHECK(WaitForSingleObject(event, 0) == WAIT_TIMEOUT);
}

TEST_CASE("a wait ends when its time is over, and not before") {
  const Handle event(automatic());
  LARGE_INTEGER begin{}, end{}, frequency{};
  QueryPerformanceFrequency(&frequency);
  QueryPerformanceCounter(&begin);
  CHECK(WaitForSingleObject(event, kSoon) == WAIT_TIMEOUT);
  QueryPerformanceCounter(&end);
  CHECK((end.QuadPart - begin.QuadPart) * 1000 >= LONGLONG{kSoon} * frequency.QuadPart);
}

TEST_CASE("each set of an automatic event releases exactly one of the threads that wait") {
  const Handle event(automatic());
  std::atomic<int> released{};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      while (WaitForSingleObject(event, kGenerous) == WAIT_OBJECT_0 && ++released < 4) {
      }
    });
  SetEvent(event);
  while (released < 1) std::this_thread::yield();
  Sleep(kSoon);
  CHECK(released == 1);
  // The others, and those that wait again.
  for (int i = 1; i < 8; ++i) {
    const int before = released;
    SetEvent(event);
    while (released == before) std::this_thread::yield();
    if (released >= 7) break;
  }
  for (auto& thread : threads) thread.join();
}

TEST_CASE("a manual event releases all") {
  const Handle event(manual());
  std::atomic<int> released{};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { released += WaitForSingleObject(event, kGenerous) == WAIT_OBJECT_0 ? 1 : 0; });
  SetEvent(event);
  for (auto& thread : threads) thread.join();
  CHECK(released == 4);
}

TEST_CASE("a wait for any takes the first that is signaled, and no other") {
  const Handle one(automatic()), other(automatic());
  const HANDLE both[] = {one, other};
  CHECK(WaitForMultipleObjects(2, both, FALSE, 0) == WAIT_TIMEOUT);
  SetEvent(other);
  CHECK(WaitForMultipleObjects(2, both, FALSE, 0) == WAIT_OBJECT_0 + 1);
  SetEvent(one);
  SetEvent(other);
  CHECK(WaitForMultipleObjects(2, both, FALSE, 0) == WAIT_OBJECT_0);
  CHECK(WaitForSingleObject(other, 0) == WAIT_OBJECT_0);
  CHECK(WaitForSingleObject(one, 0) == WAIT_TIMEOUT);
}

TEST_CASE("a wait for all takes all at one moment or none") {
  const Handle one(automatic()), other(automatic());
  const HANDLE both[] = {one, other};
  SetEvent(one);
  CHECK(WaitForMultipleObjects(2, both, TRUE, kSoon) == WAIT_TIMEOUT);
  CHECK(WaitForSingleObject(one, 0) == WAIT_OBJECT_0);  // it has not been taken
  std::atomic<bool> done{};
  std::thread waits([&] { done = WaitForMultipleObjects(2, both, TRUE, kGenerous) == WAIT_OBJECT_0; });
  SetEvent(one);
  Sleep(kSoon);
  CHECK_FALSE(done);
  CHECK(WaitForSingleObject(one, 0) == WAIT_OBJECT_0);  // from under the thread that waits for both
  SetEvent(other);
  Sleep(kSoon);
  CHECK_FALSE(done);
  SetEvent(one);
  waits.join();
  CHECK(done);
  CHECK(WaitForMultipleObjects(2, both, FALSE, 0) == WAIT_TIMEOUT);
}

TEST_CASE("threads that wait for all of the same objects in other orders do not wait for each other") {
  const Handle one(automatic()), other(automatic());
  std::atomic<int> taken{};
  std::vector<std::thread> threads;
  constexpr int kRounds = 500;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      const HANDLE order[] = {i % 2 == 0 ? one : other, i % 2 == 0 ? other : one};
      while (taken < kRounds)
        if (WaitForMultipleObjects(2, order, TRUE, kSoon) == WAIT_OBJECT_0) ++taken;
    });
  while (taken < kRounds) {
    SetEvent(one);
    SetEvent(other);
    std::this_thread::yield();
  }
  for (auto& thread : threads) thread.join();
  CHECK(taken >= kRounds);
}

TEST_CASE("a wait for what is no object fails and says why") {
  const Handle event(manual(true));
  HANDLE gone = manual();
  REQUIRE(CloseHandle(gone));
  CHECK_FALSE(CloseHandle(gone));
  CHECK(GetLastError() == ERROR_INVALID_HANDLE);
  CHECK(WaitForSingleObject(gone, INFINITE) == WAIT_FAILED);
  CHECK(GetLastError() == ERROR_INVALID_HANDLE);
  CHECK_FALSE(SetEvent(gone));
  CHECK_FALSE(ResetEvent(gone));
  const HANDLE twice[] = {event, event};
  CHECK(WaitForMultipleObjects(2, twice, TRUE, 0) == WAIT_FAILED);
  CHECK(GetLastError() == ERROR_INVALID_PARAMETER);
  CHECK(WaitForMultipleObjects(2, twice, FALSE, 0) == WAIT_OBJECT_0);
  CHECK(WaitForMultipleObjects(0, twice, FALSE, 0) == WAIT_FAILED);
  CHECK(WaitForMultipleObjects(MAXIMUM_WAIT_OBJECTS + 1, twice, FALSE, 0) == WAIT_FAILED);
  CHECK(CreateEvent(nullptr, FALSE, FALSE, "name") == nullptr);
  CHECK(GetLastError() == ERROR_NOT_SUPPORTED);
}

TEST_CASE("the two low bits of a handle are the program's") {
  const Handle event(manual());
  const auto marked = reinterpret_cast<HANDLE>(reinterpret_cast<ULONG_PTR>(event.handle) | 3);
  CHECK(SetEvent(marked));
  CHECK(WaitForSingleObject(event, 0) == WAIT_OBJECT_0);
}

TEST_CASE("a handle may be closed while a thread waits for its object") {
  const HANDLE event = automatic();
  const auto object = rnic::win32::find_handle_as<rnic::win32::Event>(event);
  std::atomic<DWORD> result{WAIT_FAILED};
  std::thread waits([&] { result = WaitForSingleObject(event, kGenerous); });
  Sleep(kSoon);
  CHECK(CloseHandle(event));
  object->set();
  waits.join();
  CHECK(result == WAIT_OBJECT_0);
}

TEST_CASE("a thread is signaled when it has ended, and leaves its result") {
  struct Work {
    HANDLE go = manual();
    DWORD thread{};
  } work;
  DWORD id = 0;
  const Handle thread(CreateThread(
      nullptr, 0,
      [](LPVOID argument) -> DWORD {
        auto& of = *static_cast<Work*>(argument);
        of.thread = GetCurrentThreadId();
        WaitForSingleObject(of.go, INFINITE);
        return 17;
      },
      &work, 0, &id));
  DWORD code = 0;
  CHECK(GetExitCodeThread(thread, &code));
  CHECK(code == STILL_ACTIVE);
  CHECK(WaitForSingleObject(thread, kSoon) == WAIT_TIMEOUT);
  SetEvent(work.go);
  CHECK(WaitForSingleObject(thread, kGenerous) == WAIT_OBJECT_0);
  CHECK(WaitForSingleObject(thread, 0) == WAIT_OBJECT_0);
  CHECK(GetExitCodeThread(thread, &code));
  CHECK(code == 17);
  CHECK(work.thread == id);
  CHECK(id != GetCurrentThreadId());
  CloseHandle(work.go);
  CHECK(CreateThread(nullptr, 0, nullptr, nullptr, 0, nullptr) == nullptr);
  CHECK(GetLastError() == ERROR_INVALID_PARAMETER);
}

TEST_CASE("threads of the C library are threads") {
  unsigned value = 4;
  const Handle thread(reinterpret_cast<HANDLE>(_beginthreadex(
      nullptr, 0, [](void* argument) -> unsigned { return ++*static_cast<unsigned*>(argument); }, &value, 0, nullptr)));
  CHECK(WaitForSingleObject(thread, kGenerous) == WAIT_OBJECT_0);
  DWORD code = 0;
  GetExitCodeThread(thread, &code);
  CHECK(code == 5);
}

TEST_CASE("the last error is the thread's own") {
  SetLastError(1);
  DWORD other = 1;
  std::thread([&] {
    other = GetLastError();
    SetLastError(2);
  }).join();
  CHECK(other == ERROR_SUCCESS);
  CHECK(GetLastError() == 1);
}

namespace {

/// A machine whose time goes on when somebody waits, a microsecond a look.
class PretendedWaiter final : public rnic::win32::Waiter {
 public:
  rnic::win32::Waited wait_until(const std::function<bool()>& done, std::uint64_t timeout_ns) override {
    for (std::uint64_t passed = 0;; passed += 1000, now += 1000) {
      if (done()) return rnic::win32::Waited::kDone;
      if (gone) return rnic::win32::Waited::kGone;
      if (passed >= timeout_ns) return rnic::win32::Waited::kTimeout;
    }
  }
  void wake() override { ++wakes; }
  std::uint64_t now = 5'000'000'000;
  int wakes = 0;
  bool gone = false;
};

class PretendedMachine final : public rnic::win32::Surroundings {
 public:
  PretendedMachine() { rnic::win32::set_surroundings(this); }
  ~PretendedMachine() override { rnic::win32::set_surroundings(nullptr); }
  rnic::win32::Waiter& waiter() override { return own; }
  std::uint64_t now_ns() override { return own.now; }
  bool start_thread(std::function<void()>) override { return false; }
  bool threads_are_separate() override { return false; }
  PretendedWaiter own;
};

}  // namespace

TEST_CASE("waits and clocks are those of the surroundings") {
  PretendedMachine machine;
  const Handle event(automatic());
  const ULONGLONG begin = GetTickCount64();
  CHECK(begin == 5000);
  CHECK(WaitForSingleObject(event, 250) == WAIT_TIMEOUT);
  CHECK(GetTickCount64() - begin == 250);
  Sleep(1000);
  CHECK(GetTickCount64() - begin == 1250);
  CHECK(CreateThread(
            nullptr, 0, [](LPVOID) -> DWORD { return 0; }, nullptr, 0, nullptr) == nullptr);
  machine.own.gone = true;
  CHECK(WaitForSingleObject(event, INFINITE) == WAIT_FAILED);
  CHECK(GetLastError() == ERROR_OPERATION_ABORTED);
  CHECK(WaitForSingleObject(event, 100) == WAIT_FAILED);
}

TEST_CASE("an object with a waiter of its own is waited for through that one") {
  const auto own = std::make_shared<PretendedWaiter>();
  const Handle event(rnic::win32::open_handle(std::make_shared<rnic::win32::Event>(own, false)));
  CHECK(WaitForSingleObject(event, 3) == WAIT_TIMEOUT);
  CHECK(own->now == 5'003'000'000);
  SetEvent(event);
  CHECK(own->wakes == 1);
}
