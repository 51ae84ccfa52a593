#include <catch2/catch.hpp>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "driver/remote/doorbell_ring.hpp"

using rnic::remote::Doorbell;
using rnic::remote::DoorbellRing;

// The doorbells of a process for its machine: docs/server.md, Between a process and its host.

namespace {

std::unique_ptr<DoorbellRing> empty_ring() {
  // As in a fresh memfd.
  auto ring = std::make_unique<DoorbellRing>();
  std::memset(static_cast<void*>(ring.get()), 0, sizeof *ring);
  return ring;
}

void put(DoorbellRing& ring, std::uint64_t offset, std::uint64_t value) {
  const std::uint32_t ticket = ring.draw();
  while (!ring.free_for(ticket)) ring.wait_for_room(ticket, 1'000'000);
  ring.put(ticket, offset, {reinterpret_cast<const std::uint8_t*>(&value), sizeof value});
}

}  // namespace

TEST_CASE("doorbells come out as they went in, in their order") {
  const auto ring = empty_ring();
  Doorbell doorbell;
  CHECK_FALSE(ring->take(0, doorbell));
  CHECK_FALSE(ring->waits(0));
  put(*ring, 0x2010, 0x1122'3344'5566'7788);
  std::array<std::uint8_t, 64> burst;
  for (std::size_t i = 0; i < burst.size(); ++i) burst[i] = static_cast<std::uint8_t>(3 * i);
  const std::uint32_t ticket = ring->draw();
  REQUIRE(ring->free_for(ticket));
  ring->put(ticket, 0x2040, burst);
  CHECK(ring->waits(0));
  REQUIRE(ring->take(0, doorbell));
  CHECK(doorbell.offset == 0x2010);
  CHECK(doorbell.bytes == 8);
  CHECK(doorbell.data[0] == 0x1122'3344'5566'7788);
  REQUIRE(ring->take(1, doorbell));
  CHECK(doorbell.offset == 0x2040);
  CHECK(doorbell.bytes == 64);
  CHECK(std::memcmp(doorbell.data.data(), burst.data(), burst.size()) == 0);
  CHECK_FALSE(ring->take(2, doorbell));
}

TEST_CASE("a writer finds no room in a full ring until something is taken") {
  const auto ring = empty_ring();
  for (std::uint32_t i = 0; i < DoorbellRing::kSlots; ++i) put(*ring, 8 * i, i);
  const std::uint32_t ticket = ring->draw();
  CHECK_FALSE(ring->free_for(ticket));
  ring->wait_for_room(ticket, 1'000'000);
  CHECK_FALSE(ring->free_for(ticket));
  bool was_there = false;
  std::thread taker([&] {
    Doorbell doorbell;
    was_there = ring->take(0, doorbell);
    ring->taken();
  });
  while (!ring->free_for(ticket)) ring->wait_for_room(ticket, 1'000'000'000);
  taker.join();
  CHECK(was_there);
  // Of a place that is not the oldest nothing is taken before its time.
  Doorbell doorbell;
  CHECK_FALSE(ring->take(ticket, doorbell));
}

TEST_CASE("an unfinished doorbell holds up those behind it") {
  const auto ring = empty_ring();
  const std::uint32_t first = ring->draw();
  put(*ring, 16, 2);
  Doorbell doorbell;
  CHECK_FALSE(ring->take(0, doorbell));
  const std::uint64_t value = 1;
  ring->put(first, 8, {reinterpret_cast<const std::uint8_t*>(&value), sizeof value});
  REQUIRE(ring->take(0, doorbell));
  CHECK(doorbell.data[0] == 1);
  REQUIRE(ring->take(1, doorbell));
  CHECK(doorbell.data[0] == 2);
}

TEST_CASE("many writers lose nothing and keep each its order") {
  constexpr std::uint32_t kWriters = 4, kEach = 50'000;
  const auto ring = empty_ring();
  std::vector<std::thread> writers;
  for (std::uint32_t w = 0; w < kWriters; ++w)
    writers.emplace_back([&ring, w] {
      for (std::uint32_t i = 0; i < kEach; ++i) put(*ring, 8 * w, i);
    });
  std::vector<std::uint64_t> next(kWriters);
  std::uint32_t wrong = 0;
  Doorbell doorbell;
  for (std::uint32_t taken = 0; taken < kWriters * kEach;) {
    if (!ring->take(taken, doorbell)) {
      std::this_thread::yield();
      continue;
    }
    ++taken;
    if (taken % 64 == 0) ring->taken();
    const std::uint32_t writer = doorbell.offset / 8;
    if (writer >= kWriters || doorbell.data[0] != next[writer]++) ++wrong;
  }
  for (auto& writer : writers) writer.join();
  CHECK(wrong == 0);
}
