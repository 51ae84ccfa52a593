#include <catch2/catch.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <unordered_set>

#include "driver/fresh_numbers.hpp"
#include "driver/kmd/handle_table.hpp"
#include "driver/kmd/kernel_mr.hpp"
#include "driver/kmd/number_pool.hpp"
#include "tests/driver/driver_fixture.hpp"

using namespace rnic;
using test::DriverFixture;

namespace {

std::array<std::uint8_t, 1 << 20> g_numbered_memory;

std::vector<std::uint32_t> some_keys(std::uint64_t seed, int count) {
  DriverFixture fixture(seed);
  std::vector<std::uint32_t> keys;
  std::vector<std::unique_ptr<kmd::KernelMr>> regions;
  for (int i = 0; i < count; ++i) {
    regions.push_back(fixture.kernel->create_mr({.address = g_numbered_memory.data(), .length = 100, .pd = 1}).take());
    keys.push_back(regions.back()->key());
  }
  return keys;
}

}  // namespace

TEST_CASE("a drawn number returns late, and the key decides which comes next") {
  const unsigned bits = GENERATE(2U, 3U, 8U, 12U, 16U);
  const std::uint64_t key = GENERATE(0ULL, 1ULL, 0x123456789ABCDEFULL);
  const std::uint64_t all = 1ULL << bits, late = all / 4;
  const FreshNumbers numbers(key, bits);
  const FreshNumbers others(key + 1, bits);
  std::map<std::uint32_t, std::uint64_t> last;
  std::uint64_t equal = 0, next = 0;
  const std::uint64_t draws = std::max<std::uint64_t>(8 * all, 1000);
  for (std::uint64_t draw = 0; draw < draws; ++draw) {
    const std::uint32_t number = numbers.at(draw);
    REQUIRE(number != 0);
    REQUIRE(number < all);
    if (const auto before = last.find(number); before != last.end()) REQUIRE(draw - before->second > late);
    last[number] = draw;
    equal += number == others.at(draw);
    next += draw != 0 && number == numbers.at(draw - 1) + 1;
  }
  // Of 16 quarters every number is missed with a probability of 1/256.
  if (bits >= 8) {
    CHECK(last.size() > (all - 1) * 95 / 100);
    CHECK(equal < draws / 50);
    CHECK(next < draws / 50);
  }
}

TEST_CASE("numbers of 32 bits: a million draws, none of them twice") {
  const FreshNumbers numbers(7, 32);
  std::vector<std::uint32_t> drawn;
  for (std::uint64_t draw = (1ULL << 30) - 500'000; draw < (1ULL << 30) + 500'000; ++draw)
    drawn.push_back(numbers.at(draw));
  std::sort(drawn.begin(), drawn.end());
  CHECK(std::adjacent_find(drawn.begin(), drawn.end()) == drawn.end());
  CHECK(drawn.front() != 0);
  CHECK(drawn.back() > 0xFFF00000);
}

TEST_CASE("a handle that is gone names no other object until a million others are gone") {
  kmd::HandleTable table(std::make_shared<kmd::Account>(kmd::Quota{}));
  const auto kept = table.reserve(calls::ObjectKind::kCq);
  std::unordered_set<calls::Handle> seen{kept->handle()};
  for (unsigned i = 0; i < 1U << 20; ++i) {
    const auto place = table.reserve(calls::ObjectKind::kCq);
    REQUIRE(place.ok());
    REQUIRE(seen.insert(place->handle()).second);
  }
}

TEST_CASE("a number pool hands out every index once, in an order that depends on the entropy") {
  test::FakeDevice device(1);
  test::FakeDevice other(2);
  kmd::NumberPool pool(device, 256, 2, 16);
  kmd::NumberPool other_pool(other, 256, 2, 16);
  std::set<std::uint32_t> seen;
  int ascending = 0;
  int equal = 0;
  std::uint32_t previous = 0;
  for (int i = 0; i < 254; ++i) {
    auto number = pool.acquire();
    REQUIRE(number.ok());
    CHECK(number->index >= 2);
    CHECK(number->tag != 0);
    CHECK(number->tag < (1U << 16));
    CHECK(seen.insert(number->index).second);
    ascending += number->index == previous + 1;
    previous = number->index;
    equal += number->index == other_pool.acquire()->index;
  }
  CHECK(ascending < 10);
  CHECK(equal < 10);
  CHECK(pool.acquire().error() == Error::kOutOfResources);
}

TEST_CASE("the tag of an index changes at every use") {
  test::FakeDevice device;
  kmd::NumberPool pool(device, 1, 0, 8);
  std::uint32_t previous = 0;
  std::set<std::uint32_t> tags;
  for (int i = 0; i < 2000; ++i) {
    auto number = pool.acquire();
    REQUIRE(number.ok());
    CHECK(number->tag != previous);
    CHECK(number->tag != 0);
    previous = number->tag;
    tags.insert(previous);
    pool.release(number->index);
  }
  CHECK(tags.size() == 255);
}

TEST_CASE("a stale tag fits an index only after many others, whether it was drawn or renewed") {
  test::FakeDevice device;
  kmd::NumberPool pool(device, 1, 0, 8);
  std::deque<std::uint32_t> recent;
  auto number = pool.acquire().take();
  for (int i = 0; i < 2000; ++i) {
    REQUIRE(std::find(recent.begin(), recent.end(), number.tag) == recent.end());
    recent.push_back(number.tag);
    if (recent.size() > 64) recent.pop_front();
    if (i % 3 == 0) {
      number.tag = pool.renew(number.index);
    } else {
      pool.release(number.index);
      number = pool.acquire().take();
    }
  }
}

TEST_CASE("keys are unique, inside the table, and differ from run to run") {
  const auto keys = some_keys(1, 500);
  const auto others = some_keys(2, 500);
  std::set<std::uint32_t> indexes;
  int equal = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    CHECK(keys[i] >> 8 < (1U << hw::kMptIndexBits));
    CHECK((keys[i] & 0xFF) != 0);
    CHECK(indexes.insert(keys[i] >> 8).second);
    equal += keys[i] == others[i];
  }
  CHECK(equal == 0);
  CHECK(keys == some_keys(1, 500));  // one seed, one run
}

TEST_CASE("queue pair numbers carry a random tag over the index") {
  DriverFixture fixture;
  auto cq = fixture.make_cq();
  std::set<std::uint32_t> indexes;
  std::set<std::uint32_t> tags;
  std::vector<std::shared_ptr<umd::QueuePair>> pairs;
  for (int i = 0; i < 254; ++i) {  // 256 but the indexes of QP0 and QP1
    pairs.push_back(fixture.make_qp(cq));
    CHECK(pairs.back()->qpn() < (1U << 24));
    CHECK((pairs.back()->qpn() & 0xFF) > 1);
    CHECK(indexes.insert(pairs.back()->qpn() & 0xFF).second);
    tags.insert(pairs.back()->qpn() >> 8);
  }
  CHECK(tags.size() > 240);
  auto more =
      umd::QueuePair::create_idle(fixture.process, {.send_cq = cq, .receive_cq = cq, .capacity = {1, 1, 1, 1, 0}});
  CHECK(more.error() == Error::kOutOfResources);
  const std::uint32_t old = pairs.back()->qpn();
  pairs.pop_back();
  auto again = fixture.make_qp(cq);
  CHECK((again->qpn() & 0xFF) == (old & 0xFF));
  CHECK(again->qpn() != old);
}

TEST_CASE("first sequence numbers have 24 random bits") {
  DriverFixture fixture;
  std::uint32_t ones = 0;
  std::uint32_t zeros = 0;
  for (int i = 0; i < 100; ++i) {
    const std::uint32_t psn = fixture.kernel->random_psn();
    CHECK(psn < (1U << 24));
    ones |= psn;
    zeros |= ~psn;
  }
  CHECK((ones & 0xFFFFFF) == 0xFFFFFF);
  CHECK((zeros & 0xFFFFFF) == 0xFFFFFF);
}

TEST_CASE("a region is described by its page list") {
  DriverFixture fixture;
  const std::size_t offset = GENERATE(0, 1, 4095, 5000);
  const std::size_t length = GENERATE(1, 4096, 4097, 100'000, 900'000);
  const auto* address = g_numbered_memory.data() + offset;
  auto region = fixture.kernel->create_mr(
      {.address = address, .length = length, .pd = 77, .local_write = true, .remote_read = true, .window_bind = true});
  REQUIRE(region.ok());
  const auto& body = fixture.device.regions.at((*region)->key());
  const auto va = reinterpret_cast<std::uintptr_t>(address);
  CHECK(body.va == va);
  CHECK(body.length == length);
  CHECK(body.pd == 77);
  CHECK(body.log_page == 12);
  CHECK(body.local_write == 1);
  CHECK(body.remote_read == 1);
  CHECK(body.remote_write == 0);
  CHECK(body.remote_atomic == 0);
  CHECK(body.window_bind == 1);
  CHECK(body.page_list % 64 == 0);
  const std::size_t pages = (va + length - 1) / 4096 - va / 4096 + 1;
  const auto* list = reinterpret_cast<const std::uint64_t*>(fixture.device.pointer(body.page_list));
  for (std::size_t i = 0; i < pages; ++i) CHECK(list[i] == 0x7'0000'0000'0000 + (va / 4096 + i) * 4096);
  CHECK(fixture.device.mapped_pages == pages);
  CHECK((*region)->destroy().ok());
  CHECK(fixture.device.mapped_pages == 0);
  CHECK(fixture.device.regions.empty());
}

TEST_CASE("a registration that fails leaves nothing behind") {
  DriverFixture fixture;
  const kmd::MrSpec spec{.address = g_numbered_memory.data(), .length = 1 << 20, .pd = 1, .local_write = true};
  SECTION("unmapped") {
    fixture.device.unmapped = g_numbered_memory.data();
    CHECK(fixture.kernel->create_mr(spec).error() == Error::kAccessViolation);
  }
  SECTION("read only") {
    fixture.device.read_only = g_numbered_memory.data();
    CHECK(fixture.kernel->create_mr(spec).error() == Error::kAccessViolation);
  }
  SECTION("no memory for the list") {
    fixture.device.dma_allocations_left = 0;
    CHECK(fixture.kernel->create_mr(spec).error() == Error::kOutOfMemory);
  }
  SECTION("refused") {
    const auto before = fixture.device.live_allocations();
    fixture.device.next_status.push_back(hw::AdminStatus::kBadParameter);
    CHECK(fixture.kernel->create_mr(spec).error() == Error::kInvalidParameter);
    CHECK(fixture.device.live_allocations() == before);
  }
  SECTION("wraps around") {
    CHECK(fixture.kernel->create_mr({.address = reinterpret_cast<void*>(~0ULL - 10), .length = 100, .pd = 1}).error() ==
          Error::kAccessViolation);
  }
  SECTION("remote write without local write") {
    CHECK(fixture.kernel->create_mr({.address = g_numbered_memory.data(), .length = 1, .pd = 1, .remote_write = true})
              .error() == Error::kInvalidParameter);
  }
  SECTION("atomics without local write") {
    CHECK(fixture.kernel->create_mr({.address = g_numbered_memory.data(), .length = 1, .pd = 1, .remote_atomic = true})
              .error() == Error::kInvalidParameter);
  }
  CHECK(fixture.device.mapped_pages == 0);
  CHECK(fixture.device.regions.empty());
}

TEST_CASE("pages stay pinned while the device may use them") {
  DriverFixture fixture;
  auto region = fixture.kernel->create_mr({.address = g_numbered_memory.data(), .length = 4096, .pd = 1}).take();
  const std::size_t pinned = fixture.device.mapped_pages;
  SECTION("windows are bound to it") {
    fixture.device.next_status.push_back(hw::AdminStatus::kInUse);
    CHECK(region->destroy().error() == Error::kBusy);
    CHECK(fixture.device.mapped_pages == pinned);
    CHECK(region->destroy().ok());
    CHECK(fixture.device.mapped_pages == 0);
  }
  SECTION("the device does not answer") {
    fixture.device.admin_hangs = true;
    region.reset();
    CHECK(fixture.device.resets == 1);  // it can use them no more
    CHECK(fixture.device.mapped_pages == 0);
  }
}
