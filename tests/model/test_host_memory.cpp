#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "model/host_memory.hpp"

using rnic::model::HostMemory;

namespace {

constexpr std::size_t kPage = 4096;

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

}  // namespace

TEST_CASE("allocations lie at the same addresses in every run") {
  HostMemory memory(3, 64 * kPage);
  REQUIRE(memory.base() == 0x2000'0000'0000 + 3 * 0x100'0000'0000ULL);
  void* const first = memory.allocate(1);
  void* const second = memory.allocate(3 * kPage);
  CHECK(address(first) == memory.base());
  CHECK(address(second) == memory.base() + 2 * kPage);  // a guard page between
  CHECK(memory.used() == 4 * kPage);
  memory.release(first);
  CHECK(memory.allocate(kPage) == first);
}

TEST_CASE("memory is zeroed, also when it is used again") {
  HostMemory memory(0, 16 * kPage);
  auto* bytes = static_cast<std::uint8_t*>(memory.allocate(2 * kPage));
  CHECK(std::vector<std::uint8_t>(bytes, bytes + 2 * kPage) == std::vector<std::uint8_t>(2 * kPage, 0));
  std::memset(bytes, 0xEE, 2 * kPage);
  memory.release(bytes);
  auto* again = static_cast<std::uint8_t*>(memory.allocate(2 * kPage));
  REQUIRE(again == bytes);
  CHECK(std::vector<std::uint8_t>(again, again + 2 * kPage) == std::vector<std::uint8_t>(2 * kPage, 0));
}

TEST_CASE("alignment, and no room left") {
  HostMemory memory(0, 64 * kPage);
  CHECK(address(memory.allocate(1, 16 * kPage)) % (16 * kPage) == 0);
  CHECK(address(memory.allocate(1, 16 * kPage)) == memory.base() + 16 * kPage);
  CHECK(memory.allocate(60 * kPage) == nullptr);
  CHECK(memory.allocate(~std::size_t{0}) == nullptr);
  CHECK_THROWS_AS(memory.allocate(1, 3), std::invalid_argument);
}

TEST_CASE("only live allocations are accessible") {
  HostMemory memory(0, 16 * kPage);
  auto* bytes = static_cast<std::uint8_t*>(memory.allocate(2 * kPage));
  CHECK(HostMemory::accessible(bytes, 2 * kPage, true));
  CHECK(HostMemory::accessible(bytes + 100, kPage, true));
  CHECK_FALSE(HostMemory::accessible(bytes, 2 * kPage + 1, false));
  memory.release(bytes);
  CHECK_FALSE(HostMemory::accessible(bytes, 1, false));
  CHECK_THROWS_AS(memory.release(bytes), std::invalid_argument);

  int local = 0;
  CHECK(HostMemory::accessible(&local, sizeof local, true));
  static const char text[] = "read only";
  CHECK(HostMemory::accessible(text, sizeof text, false));
  CHECK_FALSE(HostMemory::accessible(text, sizeof text, true));
  CHECK_FALSE(HostMemory::accessible(nullptr, 1, false));
  CHECK_FALSE(HostMemory::accessible(&local, ~std::size_t{0}, false));
}

TEST_CASE("pinned pages outlive their release") {
  HostMemory memory(0, 16 * kPage);
  auto* bytes = static_cast<std::uint8_t*>(memory.allocate(3 * kPage));
  bytes[kPage] = 7;
  memory.pin(bytes + kPage, 1);
  memory.pin(bytes + kPage, 1);
  memory.release(bytes);
  CHECK(memory.used() == 0);
  CHECK(bytes[kPage] == 7);
  CHECK(memory.allocate(1) != bytes);
  memory.unpin(bytes + kPage, 1);
  CHECK(HostMemory::accessible(bytes, kPage, true));
  memory.unpin(bytes + kPage, 1);
  CHECK_FALSE(HostMemory::accessible(bytes, kPage, false));
  CHECK_THROWS_AS(memory.unpin(bytes + kPage, 1), std::invalid_argument);
}

TEST_CASE("clear frees everything") {
  HostMemory memory(0, 16 * kPage);
  void* const first = memory.allocate(kPage);
  std::memset(first, 1, kPage);
  memory.pin(first, 1);
  memory.clear();
  CHECK(memory.used() == 0);
  REQUIRE(memory.allocate(kPage) == first);
  CHECK(*static_cast<char*>(first) == 0);
}

TEST_CASE("a range that is taken or out of bounds is refused") {
  HostMemory memory(1, kPage);
  CHECK_THROWS_AS(HostMemory(1, kPage), std::system_error);
  CHECK_THROWS_AS(HostMemory(HostMemory::kMaxHosts, kPage), std::invalid_argument);
  CHECK_THROWS_AS(HostMemory(2, 0), std::invalid_argument);
}
