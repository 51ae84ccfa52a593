#include <ws2tcpip.h>
#include <tchar.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

// Expectations: the documented behaviour of the functions of these names.

namespace {

std::string address_text(const sockaddr* address, DWORD bytes) {
  char text[64];
  DWORD room = sizeof text;
  REQUIRE(WSAAddressToString(address, bytes, nullptr, text, &room) == 0);
  CHECK(room == std::strlen(text) + 1);
  return text;
}

}  // namespace

TEST_CASE("types have the widths of Windows") {
  STATIC_REQUIRE(sizeof(ULONG) == 4);
  STATIC_REQUIRE(sizeof(LONG) == 4);
  STATIC_REQUIRE(sizeof(DWORD) == 4);
  STATIC_REQUIRE(sizeof(SIZE_T) == sizeof(void*));
  STATIC_REQUIRE(sizeof(SYSTEM_INFO::dwActiveProcessorMask) == sizeof(void*));
  LARGE_INTEGER number{};
  number.QuadPart = 0x1'0000'0002;
  CHECK(number.LowPart == 2);
  CHECK(number.HighPart == 1);
}

TEST_CASE("interlocked operations answer what Windows' answer, and lose nothing") {
  LONG value = 5;
  CHECK(InterlockedIncrement(&value) == 6);
  CHECK(InterlockedDecrement(&value) == 5);
  CHECK(InterlockedExchangeAdd(&value, 3) == 5);
  CHECK(InterlockedExchange(&value, 1) == 8);
  CHECK(InterlockedCompareExchange(&value, 9, 2) == 1);
  CHECK(InterlockedCompareExchange(&value, 9, 1) == 1);
  CHECK(value == 9);
  CHECK(InterlockedAnd(&value, 8) == 9);
  CHECK(InterlockedOr(&value, 2) == 8);
  CHECK(value == 10);
  LONGLONG wide = 1LL << 40;
  CHECK(InterlockedExchangeAdd64(&wide, 1) == 1LL << 40);
  CHECK(InterlockedIncrement64(&wide) == (1LL << 40) + 2);
  CHECK(InterlockedCompareExchange64(&wide, 0, (1LL << 40) + 2) == (1LL << 40) + 2);
  CHECK(InterlockedExchange64(&wide, 4) == 0);
  CHECK(InterlockedDecrement64(&wide) == 3);
  volatile long as_written = 0;
  CHECK(InterlockedIncrement(&as_written) == 1);
  CHECK(InterlockedCompareExchange(&as_written, 5, 1) == 1);
  PVOID pointer = nullptr;
  CHECK(InterlockedCompareExchangePointer(&pointer, &value, nullptr) == nullptr);
  CHECK(InterlockedExchangePointer(&pointer, nullptr) == &value);
  volatile LONG count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 10000; ++k) InterlockedIncrement(&count);
    });
  for (auto& thread : threads) thread.join();
  CHECK(count == 40000);
}

TEST_CASE("clocks go on") {
  const ULONGLONG begin = GetTickCount64();
  Sleep(5);
  CHECK(GetTickCount64() - begin >= 4);
  FILETIME idle{}, kernel{}, user{}, now{};
  CHECK(GetSystemTimes(&idle, &kernel, &user));
  const auto ticks = [](const FILETIME& of) { return ULONGLONG{of.dwHighDateTime} << 32 | of.dwLowDateTime; };
  CHECK(ticks(kernel) >= ticks(idle));
  GetSystemTimeAsFileTime(&now);
  CHECK(ticks(now) > 133'000'000'000'000'000);  // 2022
}

TEST_CASE("memory is given and taken back") {
  auto* bytes = static_cast<unsigned char*>(HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, 100));
  REQUIRE(bytes != nullptr);
  CHECK(std::all_of(bytes, bytes + 100, [](unsigned char byte) { return byte == 0; }));
  CHECK(HeapFree(GetProcessHeap(), 0, bytes));
  CHECK(HeapAlloc(nullptr, 0, 100) == nullptr);
  CHECK(GetLastError() == ERROR_INVALID_HANDLE);

  SYSTEM_INFO info;
  GetSystemInfo(&info);
  CHECK(info.dwNumberOfProcessors >= 1);
  void* pages = VirtualAlloc(nullptr, 3 * info.dwPageSize, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
  REQUIRE(pages != nullptr);
  CHECK(reinterpret_cast<std::uintptr_t>(pages) % info.dwPageSize == 0);
  ZeroMemory(pages, 3 * info.dwPageSize);
  DWORD before{};
  CHECK(VirtualProtect(pages, 1, PAGE_NOACCESS, &before));
  CHECK_FALSE(VirtualFree(pages, 1, MEM_RELEASE));
  CHECK(VirtualFree(pages, 0, MEM_RELEASE));
  CHECK_FALSE(VirtualFree(pages, 0, MEM_RELEASE));
  CHECK(GetLastError() == ERROR_INVALID_ADDRESS);
  CHECK(VirtualAlloc(nullptr, 0, MEM_COMMIT, PAGE_READWRITE) == nullptr);
  CHECK(GetLastError() == ERROR_INVALID_PARAMETER);

  void* aligned = _aligned_malloc(100, 4096);
  CHECK(reinterpret_cast<std::uintptr_t>(aligned) % 4096 == 0);
  _aligned_free(aligned);
}

TEST_CASE("the affinity of a thread is what was asked for") {
  const DWORD_PTR before = SetThreadAffinityMask(GetCurrentThread(), 1);
  if (before == 0) return;  // not ours to choose here
  CHECK(SetThreadAffinityMask(GetCurrentThread(), before) == 1);
  CHECK(SetThreadAffinityMask(GetCurrentThread(), 0) == 0);
  CHECK(GetLastError() == ERROR_INVALID_PARAMETER);
}

TEST_CASE("Winsock is started as often as it is ended") {
  WSADATA data;
  CHECK(WSAStartup(MAKEWORD(0, 1), &data) == WSAVERNOTSUPPORTED);
  CHECK(WSAStartup(MAKEWORD(2, 2), nullptr) == WSAEFAULT);
  CHECK(WSAStartup(MAKEWORD(1, 1), &data) == 0);
  CHECK(data.wVersion == MAKEWORD(1, 1));
  CHECK(WSAStartup(MAKEWORD(3, 0), &data) == 0);
  CHECK(data.wVersion == MAKEWORD(2, 2));
  CHECK(WSACleanup() == 0);
  CHECK(WSACleanup() == 0);
  CHECK(WSACleanup() == SOCKET_ERROR);
  CHECK(WSAGetLastError() == WSANOTINITIALISED);
}

TEST_CASE("addresses are read from text and written as text") {
  sockaddr_storage storage{};
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  for (const char* text : {"10.1.2.3", "10.1.2.3:5000", "127.0.0.1:65535"}) {
    CAPTURE(text);
    INT length = sizeof storage;
    REQUIRE(WSAStringToAddress(text, AF_INET, nullptr, address, &length) == 0);
    CHECK(length == sizeof(sockaddr_in));
    CHECK(address_text(address, static_cast<DWORD>(length)) == text);
  }
  for (const char* text : {"fd00::1", "[fd00::1]:5000", "fe80::1%2", "[fe80::1%2]:80"}) {
    CAPTURE(text);
    INT length = sizeof storage;
    REQUIRE(WSAStringToAddress(text, AF_INET6, nullptr, address, &length) == 0);
    CHECK(length == sizeof(sockaddr_in6));
    CHECK(address_text(address, static_cast<DWORD>(length)) == text);
  }
  for (const char* text : {"", "10.1.2", "10.1.2.3:", "10.1.2.3:65536", "10.1.2.3:x", "host", "fd00::1"}) {
    CAPTURE(text);
    INT length = sizeof storage;
    CHECK(WSAStringToAddress(text, AF_INET, nullptr, address, &length) == SOCKET_ERROR);
    CHECK(WSAGetLastError() == WSAEINVAL);
  }
  INT length = sizeof storage;
  CHECK(WSAStringToAddress("[fd00::1", AF_INET6, nullptr, address, &length) == SOCKET_ERROR);
  CHECK(WSAStringToAddress("10.1.2.3", AF_UNIX, nullptr, address, &length) == SOCKET_ERROR);
  length = 4;
  CHECK(WSAStringToAddress("10.1.2.3", AF_INET, nullptr, address, &length) == SOCKET_ERROR);
  CHECK(WSAGetLastError() == WSAEFAULT);
  CHECK(length == sizeof(sockaddr_in));
  char small[4];
  DWORD room = sizeof small;
  sockaddr_in in{};
  in.sin_family = AF_INET;
  CHECK(WSAAddressToString(reinterpret_cast<sockaddr*>(&in), sizeof in, nullptr, small, &room) == SOCKET_ERROR);
  CHECK(WSAGetLastError() == WSAEFAULT);
  CHECK(room == sizeof "0.0.0.0");
}

TEST_CASE("bare addresses, too, narrow and wide") {
  in_addr v4{};
  CHECK(InetPton(AF_INET, "1.2.3.4", &v4) == 1);
  CHECK(ntohl(v4.s_addr) == 0x01020304);
  CHECK(InetPton(AF_INET, L"1.2.3", &v4) == 0);
  CHECK(InetPton(AF_UNIX, "1.2.3.4", &v4) == -1);
  CHECK(WSAGetLastError() == WSAEAFNOSUPPORT);
  char text[INET_ADDRSTRLEN];
  CHECK(std::string(InetNtop(AF_INET, &v4, text, sizeof text)) == "1.2.3.4");
  wchar_t wide[INET_ADDRSTRLEN];
  CHECK(std::wstring(InetNtop(AF_INET, &v4, wide, INET_ADDRSTRLEN)) == L"1.2.3.4");
  CHECK(InetNtop(AF_INET, &v4, text, 3) == nullptr);
  CHECK(WSAGetLastError() == WSAEINVAL);
  CHECK(InetNtop(AF_INET, &v4, wide, 7) == nullptr);
}

TEST_CASE("macros compute what Windows' compute") {
  struct Outer {
    int first;
    OVERLAPPED overlapped;
  } outer{};
  CHECK(CONTAINING_RECORD(&outer.overlapped, Outer, overlapped) == &outer);
  int array[7];
  CHECK(_countof(array) == 7);
  CHECK(MAKEWORD(1, 2) == 0x0201);
  CHECK(min(DWORD{7}, 3) == 3);
  CHECK(max(1, LONGLONG{1} << 40) == LONGLONG{1} << 40);
  CHECK(_tcsicmp("AbC", "aBc") == 0);
  CHECK(_ttol("-12") == -12);
}
