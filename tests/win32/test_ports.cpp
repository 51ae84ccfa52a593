#include <windows.h>
#include <ntstatus.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <mutex>
#include <thread>
#include <vector>

#include "driver/win32/completion_port.hpp"
#include "driver/win32/waitable.hpp"

// Expectations: the documented behaviour of the functions of these names.

namespace {

using rnic::win32::OverlappedFile;

constexpr DWORD kSoon = 20;
constexpr DWORD kGenerous = 20000;

struct Port {
  explicit Port(DWORD threads = 0) : handle(CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, threads)) {
    REQUIRE(handle != nullptr);
  }
  ~Port() { CloseHandle(handle); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  /// By any thread: what is not posted is missed by whoever takes.
  void post(ULONG_PTR key, DWORD bytes = 0, OVERLAPPED* overlapped = nullptr) const {
    PostQueuedCompletionStatus(handle, bytes, key, overlapped);
  }
  /// The key of the next packet; 0 when there is none.
  ULONG_PTR take(DWORD milliseconds = 0) const {
    DWORD bytes{};
    ULONG_PTR key{};
    OVERLAPPED* overlapped{};
    return GetQueuedCompletionStatus(handle, &bytes, &key, &overlapped, milliseconds) ? key : 0;
  }
  const HANDLE handle;
};

void complete(OverlappedFile& file, OVERLAPPED& overlapped, NTSTATUS status, std::uintptr_t bytes = 0) {
  rnic::win32::CompletionPort::Packets packet{{.key = 0, .overlapped = &overlapped, .status = status, .bytes = bytes}};
  file.post(std::move(packet), [] {});
}

template <typename Condition>
void wait_for(Condition&& condition) {
  while (!condition()) std::this_thread::yield();
}

}  // namespace

TEST_CASE("a port gives its packets in their order, once") {
  const Port port;
  OVERLAPPED overlapped{};
  port.post(7, 100, &overlapped);
  port.post(8);
  DWORD bytes{};
  ULONG_PTR key{};
  OVERLAPPED* got{};
  CHECK(GetQueuedCompletionStatus(port.handle, &bytes, &key, &got, INFINITE));
  CHECK(bytes == 100);
  CHECK(key == 7);
  CHECK(got == &overlapped);
  CHECK(port.take() == 8);
  CHECK_FALSE(GetQueuedCompletionStatus(port.handle, &bytes, &key, &got, 0));
  CHECK(GetLastError() == WAIT_TIMEOUT);
  CHECK(got == nullptr);
}

TEST_CASE("several packets come at once") {
  const Port port;
  for (ULONG_PTR key = 1; key <= 5; ++key) port.post(key, static_cast<DWORD>(key * 10));
  OVERLAPPED_ENTRY entries[3];
  ULONG count = 77;
  CHECK(GetQueuedCompletionStatusEx(port.handle, entries, 3, &count, INFINITE, FALSE));
  REQUIRE(count == 3);
  for (ULONG i = 0; i < 3; ++i) {
    CHECK(entries[i].lpCompletionKey == i + 1);
    CHECK(entries[i].dwNumberOfBytesTransferred == (i + 1) * 10);
  }
  CHECK(GetQueuedCompletionStatusEx(port.handle, entries, 3, &count, 0, FALSE));
  CHECK(count == 2);
  CHECK_FALSE(GetQueuedCompletionStatusEx(port.handle, entries, 3, &count, kSoon, FALSE));
  CHECK(GetLastError() == WAIT_TIMEOUT);
  CHECK(count == 0);
}

TEST_CASE("a file has one port, and its finished operations go there with its key") {
  const Port port, other;
  const auto object = std::make_shared<OverlappedFile>();
  const HANDLE file = rnic::win32::open_handle(object);
  CHECK(CreateIoCompletionPort(file, port.handle, 99, 0) == port.handle);
  CHECK(CreateIoCompletionPort(file, other.handle, 1, 0) == nullptr);
  CHECK(GetLastError() == ERROR_INVALID_PARAMETER);
  OVERLAPPED good{}, bad{};
  complete(*object, good, STATUS_SUCCESS, 12);
  complete(*object, bad, STATUS_CANCELLED);
  CHECK(CloseHandle(file));
  DWORD bytes{};
  ULONG_PTR key{};
  OVERLAPPED* got{};
  CHECK(GetQueuedCompletionStatus(port.handle, &bytes, &key, &got, 0));
  CHECK((key == 99 && got == &good && bytes == 12));
  // One that has failed is taken all the same.
  CHECK_FALSE(GetQueuedCompletionStatus(port.handle, &bytes, &key, &got, 0));
  CHECK(GetLastError() == ERROR_OPERATION_ABORTED);
  CHECK((key == 99 && got == &bad));
  CHECK(port.take() == 0);
}

TEST_CASE("a port is made together with the binding of its first file") {
  const HANDLE file = rnic::win32::open_handle(std::make_shared<OverlappedFile>());
  const HANDLE port = CreateIoCompletionPort(file, nullptr, 5, 1);
  REQUIRE(port != nullptr);
  CHECK(CreateIoCompletionPort(file, nullptr, 5, 1) == nullptr);
  CHECK(CreateIoCompletionPort(port, nullptr, 5, 1) == nullptr);
  CHECK(GetLastError() == ERROR_INVALID_HANDLE);
  CHECK(CreateIoCompletionPort(INVALID_HANDLE_VALUE, port, 5, 1) == nullptr);
  CHECK(GetLastError() == ERROR_INVALID_PARAMETER);
  CHECK(CloseHandle(port));
  CHECK_FALSE(PostQueuedCompletionStatus(port, 0, 0, nullptr));
  CHECK(GetLastError() == ERROR_INVALID_HANDLE);
  CHECK(CloseHandle(file));
}

TEST_CASE("closing a port ends the waits for it") {
  const HANDLE port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, nullptr, 0, 0);
  std::atomic<int> ended{};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      DWORD bytes{};
      ULONG_PTR key{};
      OVERLAPPED* overlapped{};
      if (!GetQueuedCompletionStatus(port, &bytes, &key, &overlapped, kGenerous))
        ended += GetLastError() == ERROR_ABANDONED_WAIT_0 ? 1 : 0;
    });
  Sleep(kSoon);
  CHECK(ended == 0);
  CloseHandle(port);
  for (auto& thread : threads) thread.join();
  CHECK(ended == 3);
}

TEST_CASE("every packet of many threads is taken once, and those of one thread in order") {
  const Port port(4);
  constexpr ULONG_PTR kPosters = 4, kEach = 2000;
  std::mutex mutex;
  std::vector<ULONG_PTR> last(kPosters);
  std::atomic<ULONG_PTR> taken{};
  std::vector<std::thread> threads;
  for (ULONG_PTR poster = 0; poster < kPosters; ++poster) {
    threads.emplace_back([&, poster] {
      for (ULONG_PTR i = 1; i <= kEach; ++i) port.post(poster << 32 | i);
    });
    threads.emplace_back([&] {
      while (taken < kPosters * kEach)
        if (port.take(kSoon) != 0) ++taken;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(taken == kPosters * kEach);
  // With one taker their order can be seen.
  std::thread poster([&] {
    for (ULONG_PTR i = 1; i <= kEach; ++i) port.post(i);
  });
  bool in_order = true;
  for (ULONG_PTR i = 1; i <= kEach; ++i) in_order = in_order && port.take(kGenerous) == i;
  poster.join();
  CHECK(in_order);
}

TEST_CASE("the thread that began to wait last gets the next packet") {
  const Port port(0);
  std::atomic<int> waiting{};
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      ++waiting;
      if (port.take(kGenerous) == 0) return;
      const std::lock_guard lock(mutex);
      order.push_back(i);
    });
    wait_for([&] { return waiting == i + 1; });
    Sleep(kSoon);
  }
  for (std::size_t i = 1; i <= 3; ++i) {
    port.post(i);
    wait_for([&] {
      const std::lock_guard lock(mutex);
      return order.size() == i;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(order == std::vector<int>{2, 1, 0});
}

TEST_CASE("no more threads work at a time than the port was made for") {
  const Port port(2);
  std::atomic<int> working{}, most{}, done{};
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&] {
      while (port.take(kGenerous) == 1) {
        const int now = ++working;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));  // busy, as far as the port can know
        --working;
        ++done;
      }
    });
  for (int i = 0; i < 60; ++i) port.post(1);
  wait_for([&] { return done == 60; });
  CHECK(most == 2);
  for (int i = 0; i < 6; ++i) port.post(2);
  for (auto& thread : threads) thread.join();
}

TEST_CASE("a thread that waits for something else makes room for another") {
  const Port port(1);
  const HANDLE go = CreateEvent(nullptr, TRUE, FALSE, nullptr);
  std::atomic<int> begun{}, ended{};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      if (port.take(kGenerous) == 0) return;
      ++begun;
      WaitForSingleObject(go, kGenerous);
      ++ended;
    });
  for (ULONG_PTR key = 1; key <= 3; ++key) port.post(key);
  wait_for([&] { return begun == 3; });  // and none has ended, nor come back for more
  CHECK(ended == 0);
  SetEvent(go);
  for (auto& thread : threads) thread.join();
  CloseHandle(go);
}

TEST_CASE("a thread that ends works no more") {
  const Port port(1);
  port.post(1);
  port.post(2);
  ULONG_PTR first = 0;
  std::thread([&] { first = port.take(kGenerous); }).join();
  CHECK(first == 1);
  CHECK(port.take(kGenerous) == 2);
}

TEST_CASE("GetOverlappedResult says how an operation has ended, or waits for its event") {
  OVERLAPPED overlapped{};
  overlapped.hEvent = CreateEvent(nullptr, TRUE, FALSE, nullptr);
  overlapped.Internal = static_cast<ULONG_PTR>(STATUS_PENDING);
  DWORD bytes = 0;
  CHECK_FALSE(HasOverlappedIoCompleted(&overlapped));
  CHECK_FALSE(GetOverlappedResult(nullptr, &overlapped, &bytes, FALSE));
  CHECK(GetLastError() == ERROR_IO_INCOMPLETE);
  const auto event = rnic::win32::find_handle_as<rnic::win32::Event>(overlapped.hEvent);
  std::thread ends([&] {
    event->set([&] {
      overlapped.InternalHigh = 12;
      __atomic_store_n(&overlapped.Internal, ULONG_PTR{STATUS_SUCCESS}, __ATOMIC_RELEASE);
    });
  });
  CHECK(GetOverlappedResult(nullptr, &overlapped, &bytes, TRUE));
  ends.join();
  CHECK(bytes == 12);
  CHECK(HasOverlappedIoCompleted(&overlapped));
  overlapped.Internal = static_cast<std::uint32_t>(STATUS_CONNECTION_REFUSED);
  CHECK_FALSE(GetOverlappedResult(nullptr, &overlapped, &bytes, TRUE));
  CHECK(GetLastError() == ERROR_CONNECTION_REFUSED);
  CloseHandle(overlapped.hEvent);
  overlapped = {};
  overlapped.Internal = static_cast<ULONG_PTR>(STATUS_PENDING);
  CHECK_FALSE(GetOverlappedResult(nullptr, &overlapped, &bytes, TRUE));
  CHECK(GetLastError() == ERROR_INVALID_HANDLE);
}

TEST_CASE("CancelIoEx cancels what pends on a file, one or all") {
  struct Source final : rnic::win32::Cancellable {
    bool cancel(const OVERLAPPED* one) override {
      const auto before = pending.size();
      std::erase_if(pending, [&](const OVERLAPPED* each) { return one == nullptr || each == one; });
      return pending.size() != before;
    }
    std::vector<const OVERLAPPED*> pending;
  };
  const auto object = std::make_shared<OverlappedFile>();
  const HANDLE file = rnic::win32::open_handle(object);
  const auto source = std::make_shared<Source>();
  object->add(source);
  object->add(std::make_shared<Source>());  // gone already
  OVERLAPPED one{}, two{}, three{};
  source->pending = {&one, &two, &three};
  CHECK(CancelIoEx(file, &two));
  CHECK(source->pending == std::vector<const OVERLAPPED*>{&one, &three});
  CHECK_FALSE(CancelIoEx(file, &two));
  CHECK(GetLastError() == ERROR_NOT_FOUND);
  CHECK(CancelIoEx(file, nullptr));
  CHECK(source->pending.empty());
  CloseHandle(file);
  CHECK_FALSE(CancelIoEx(file, nullptr));
  CHECK(GetLastError() == ERROR_INVALID_HANDLE);
}
