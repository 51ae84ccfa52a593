#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <vector>

#include "model/timed_event.hpp"
#include "model/memory_order.hpp"
#include "testbench/app_runner.hpp"

using namespace rnic::model;

namespace {

constexpr std::size_t kWords = 64;
constexpr double kLongest = 2'000;
using Words = std::array<std::uint64_t, kWords>;

struct Machine {
  rnic::testbench::AppRunner runner{"runner"};
  MemoryOrder order{"memory_order", {.weak = true}};
};
Machine& machine() {
  static Machine instance;
  return instance;
}

alignas(kPageBytes) std::array<std::uint64_t, 2 * kPageBytes / 8> g_memory;

/// Runs `body` with a weak order in which g_memory, all zero, is shared.
void run(const std::function<void(MemoryOrder&)>& body, std::uint64_t seed = 1) {
  INFO("seed " << seed);
  auto& order = machine().order;
  order.reset({.weak = true, .longest_store_ns = kLongest, .longest_arrival_ns = kLongest, .seed = seed});
  g_memory.fill(0);
  order.share(g_memory.data(), sizeof g_memory);
  machine().runner.add("test", [&] { body(order); });
  machine().runner.run(sc_core::sc_time(10, sc_core::SC_MS));
}

void wait_ns(double ns) { wait_until(time_in(from_ns(ns))); }

Words seen_by_device(MemoryOrder& order) {
  Words words;
  order.read(reinterpret_cast<const std::uint8_t*>(g_memory.data()),
             std::span(reinterpret_cast<std::uint8_t*>(words.data()), sizeof words));
  return words;
}

std::size_t count(const Words& words, std::uint64_t value) {
  return static_cast<std::size_t>(std::count(words.begin(), words.end(), value));
}

void store(std::uint64_t value) { std::fill_n(g_memory.begin(), kWords, value); }

/// A DMA write of `bytes` bytes of `value` at `offset`.
std::size_t write(MemoryOrder& order, std::size_t offset, std::size_t bytes, std::uint8_t value) {
  const DwordRange range = covering_dwords(offset, static_cast<std::uint32_t>(bytes));
  DmaRequest tlp{TlpKind::kMemoryWrite, range.address, range.length_dw, range.first_be, range.last_be, 0, {}};
  tlp.data.assign(std::size_t{range.length_dw} * 4, value);
  return order.write(reinterpret_cast<std::uint8_t*>(g_memory.data()) + range.address, tlp);
}

std::size_t arrived(std::uint64_t value) {
  return static_cast<std::size_t>(std::count(g_memory.begin(), g_memory.begin() + kWords, value));
}

constexpr std::uint64_t kEach = 0x0101010101010101;

}  // namespace

TEST_CASE("a store that nothing orders is seen by chance, word by word, and at last by time") {
  run([](MemoryOrder& order) {
    store(1);
    const Words at_once = seen_by_device(order);
    CHECK(count(at_once, 1) > kWords / 4);
    CHECK(count(at_once, 0) > kWords / 4);
    const Words again = seen_by_device(order);
    CHECK(count(again, 1) > count(at_once, 1));
    CHECK(count(again, 0) > 0);
    for (std::size_t i = 0; i < kWords; ++i) CHECK(again[i] >= at_once[i]);  // what has been seen stays seen
    wait_ns(kLongest);
    CHECK(count(seen_by_device(order), 1) == kWords);
  });
}

TEST_CASE("what stands in front of a barrier is seen before the next write to the device") {
  run([](MemoryOrder& order) {
    store(1);
    order.stores_barrier();
    CHECK(count(seen_by_device(order), 0) > 0);  // a barrier orders; it does not hurry
    store(2);
    order.device_write();
    const Words words = seen_by_device(order);
    CHECK(count(words, 0) == 0);
    CHECK(count(words, 1) > 0);  // the later store is not covered
    order.device_write();
    CHECK(count(seen_by_device(order), 1) > 0);
    order.stores_barrier();
    order.device_write();
    CHECK(count(seen_by_device(order), 2) == kWords);
  });
}

TEST_CASE("DMA writes appear word by word in any order, after a barrier all of them, and at last by time") {
  run([](MemoryOrder& order) {
    write(order, 0, sizeof(Words) / 2, 1);
    write(order, sizeof(Words) / 2, sizeof(Words) / 2, 1);
    CHECK(arrived(0) == kWords);
    CHECK(count(seen_by_device(order), kEach) == kWords);  // the device sees its own at once
    wait_ns(kLongest / 2);
    CHECK(arrived(kEach) > kWords / 4);
    CHECK(arrived(0) > kWords / 4);
    bool overtaken = false;
    for (std::size_t i = 0; i < kWords / 2; ++i)
      overtaken = overtaken || (g_memory[i] == 0 && g_memory[i + kWords / 2] != 0);
    CHECK(overtaken);
    order.loads_barrier();
    CHECK(arrived(kEach) == kWords);
    write(order, 0, sizeof(Words), 2);
    wait_ns(kLongest + 100);
    CHECK(arrived(2 * kEach) == kWords);
    write(order, 0, 8, 3);  // a word that is written in one piece arrives in one piece
    while (g_memory[0] == 2 * kEach) wait_ns(10);
    CHECK(g_memory[0] == 3 * kEach);
  });
}

TEST_CASE("an interrupt takes its time and brings what was written before it") {
  run([](MemoryOrder& order) {
    std::vector<int> came;
    const double start = sc_core::sc_time_stamp().to_double();
    for (int i = 0; i < 2; ++i) {
      write(order, 0, sizeof(Words), static_cast<std::uint8_t>(i + 1));
      order.interrupt([&came, i] { came.push_back(i); });
    }
    CHECK(came.empty());
    while (came.empty()) wait_ns(10);
    CHECK(arrived(2 * kEach) == kWords);
    while (came.size() < 2) wait_ns(10);
    CHECK(came == std::vector<int>{0, 1});
    CHECK(sc_core::sc_time_stamp().to_double() - start < (kLongest + 100) * kPicosecondsPerNanosecond);
    order.interrupt([&came] { came.push_back(2); });
    order.settle();
    CHECK(came.size() == 3);
  });
}

TEST_CASE("bytes of one word that processor and device store to are not lost") {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    run(
        [](MemoryOrder& order) {
          auto* const bytes = reinterpret_cast<std::uint8_t*>(g_memory.data());
          bytes[0] = 1;
          CHECK(write(order, 5, 2, 2) == 2);
          bytes[7] = 3;
          if (seen_by_device(order)[0] == 0) wait_ns(700);
          order.stores_barrier();
          order.device_write();
          order.loads_barrier();
          const std::array<std::uint8_t, 8> expected{1, 0, 0, 0, 0, 2, 2, 3};
          CHECK(std::memcmp(bytes, expected.data(), 8) == 0);
          const auto seen = seen_by_device(order);
          CHECK(std::memcmp(seen.data(), expected.data(), 8) == 0);
        },
        seed);
  }
}

TEST_CASE("what is shared is seen; a page that is shared no more is settled, its last share counts") {
  run([](MemoryOrder& order) {
    store(1);
    order.share(g_memory.data(), 8);
    CHECK(count(seen_by_device(order), 1) == kWords);
    write(order, 0, sizeof(Words), 2);
    order.unshare(g_memory.data(), 8);
    CHECK(arrived(1) == kWords);
    order.unshare(g_memory.data(), sizeof g_memory);
    CHECK(arrived(2 * kEach) == kWords);
    write(order, 0, sizeof(Words), 3);  // of no page that is shared: nothing is between
    CHECK(arrived(3 * kEach) == kWords);
    CHECK(count(seen_by_device(order), 3 * kEach) == kWords);
  });
}

TEST_CASE("an order that is not weak keeps nothing back") {
  auto& order = machine().order;
  order.reset({});
  g_memory.fill(0);
  order.share(g_memory.data(), sizeof g_memory);
  store(1);
  CHECK(count(seen_by_device(order), 1) == kWords);
  write(order, 0, sizeof(Words), 2);
  CHECK(arrived(2 * kEach) == kWords);
  bool came = false;
  order.interrupt([&] { came = true; });
  CHECK(came);
  CHECK_THROWS_AS(order.reset({.weak = true, .longest_store_ns = 0}), std::invalid_argument);
  CHECK_THROWS_AS(order.reset({.weak = true, .longest_arrival_ns = 0}), std::invalid_argument);
}
