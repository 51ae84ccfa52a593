#include <catch2/catch.hpp>

#include <algorithm>
#include <deque>
#include <set>

#include "driver/kmd/kernel_fast_mr.hpp"
#include "driver/kmd/kernel_mr.hpp"
#include "driver/kmd/kernel_mw.hpp"
#include "driver/umd/kernel_mr.hpp"
#include "driver/umd/kernel_mw.hpp"
#include "tests/driver/driver_fixture.hpp"

using namespace rnic;
using test::DriverFixture;

namespace {

alignas(4096) std::array<std::uint8_t, 1 << 16> g_window_memory;

std::vector<std::uint64_t> some_pages(std::size_t count) {
  std::vector<std::uint64_t> pages;
  for (std::size_t i = 0; i < count; ++i) pages.push_back(0x5'0000'0000 + (i * 7919 % 1024) * 4096);
  return pages;
}

FastRange some_range(std::span<const std::uint64_t> pages) {
  return {.pages = pages,
          .first_offset = 0x123,
          .length = pages.size() * 4096 - 0x123,
          .base = 0x7000'0123,
          .local_write = true,
          .remote_read = true};
}

}  // namespace

TEST_CASE("limits tell of windows and fast registration") {
  DriverFixture fixture;
  const auto& limits = fixture.kernel->limits();
  CHECK(limits.window_type1);
  CHECK(limits.window_type2);
  CHECK(limits.max_mw == (1U << hw::kMptIndexBits) - 1);
  CHECK(limits.max_fast_pages == hw::kMaxFastPages);
  CHECK(limits.max_fast_pages >= 256);
}

TEST_CASE("a device without windows and fast registration has none") {
  test::FakeDevice device;
  device.capabilities.window_type1 = device.capabilities.window_type2 = 0;
  device.capabilities.max_fast_pages = 0;
  auto kernel = kmd::KernelDevice::open(device).take();
  CHECK(kernel->limits().max_mw == 0);
  CHECK(kernel->create_mw({.pd = 1}).error() == Error::kNotSupported);
  CHECK(kernel->create_mw({.pd = 1, .type = hw::MptType::kWindow1}).error() == Error::kNotSupported);
  CHECK(kernel->create_fast_mr({.pd = 1, .max_pages = 1}).error() == Error::kNotSupported);
}

TEST_CASE("a window is allocated unbound and draws another key for each bind") {
  DriverFixture fixture;
  const auto type = GENERATE(hw::MptType::kWindow1, hw::MptType::kWindow2);
  auto window = fixture.process->create_mw({.type = type}).take();
  const std::uint32_t index = window->key() >> 8;
  REQUIRE(fixture.device.windows.contains(index));
  CHECK(fixture.device.windows.at(index).pd == fixture.process->pd_number());
  CHECK(fixture.device.windows.at(index).window_type == static_cast<std::uint8_t>(type));
  CHECK(fixture.device.commands.back().number == window->key());

  std::set<std::uint32_t> tags;
  std::deque<std::uint32_t> recent;
  std::uint32_t last = window->key();
  for (int i = 0; i < 2000; ++i) {
    if (i % 3 == 0) CHECK(window->draw_key() != last);  // for a bind that was not posted in the end
    const std::uint32_t drawn = window->draw_key();
    CHECK(drawn >> 8 == index);
    CHECK(drawn != last);
    CHECK((drawn & 0xFF) != 0);
    CHECK(window->key() == last);  // until the bind has been posted
    window->keys()->posted(drawn);
    CHECK(window->key() == drawn);
    // A peer may still have the keys of many binds before.
    CHECK(std::find(recent.begin(), recent.end(), drawn) == recent.end());
    recent.push_back(drawn);
    if (recent.size() > 48) recent.pop_front();
    tags.insert(drawn & 0xFF);
    last = drawn;
  }
  CHECK(tags.size() > 250);  // unpredictable, not a counter of few values

  // The next object at that index does not begin with a key that a peer may still have.
  CHECK(window->destroy().ok());
  CHECK(window->destroy().ok());
  CHECK(fixture.device.windows.empty());
  CHECK(fixture.device.commands.back().opcode == static_cast<std::uint8_t>(hw::AdminOpcode::kDestroyMw));
}

TEST_CASE("windows are refused what they cannot be") {
  DriverFixture fixture;
  CHECK(fixture.kernel->create_mw({.pd = 1, .type = hw::MptType::kRegion}).error() == Error::kInvalidParameter);
  CHECK(fixture.kernel->create_mw({.pd = 1, .type = hw::MptType::kFastRegion}).error() == Error::kInvalidParameter);
  CHECK(fixture.device.commands.empty());
  fixture.device.next_status.push_back(hw::AdminStatus::kBadParameter);
  CHECK(fixture.kernel->create_mw({.pd = 1}).error() == Error::kInvalidParameter);
  CHECK(fixture.device.windows.empty());
}

TEST_CASE("a region is busy while a window is bound to it, and its window's end frees it") {
  DriverFixture fixture;
  auto region =
      fixture.process->create_mr({.address = g_window_memory.data(), .length = 4096, .window_bind = true}).take();
  auto window = fixture.process->create_mw({}).take();
  window->keys()->posted(window->draw_key());
  fixture.device.bound[window->key() >> 8] = region->key() >> 8;
  CHECK(window->query()->valid == 1);
  CHECK(window->query()->mr_index == region->key() >> 8);
  CHECK(window->query()->mpt_type == static_cast<std::uint8_t>(hw::MptType::kWindow2));
  CHECK(region->query()->bound_windows == 1);
  CHECK(region->query()->mpt_type == static_cast<std::uint8_t>(hw::MptType::kRegion));
  CHECK(region->destroy().error() == Error::kBusy);
  CHECK(fixture.device.mapped_pages == 1);
  window.reset();
  CHECK(region->destroy().ok());
  CHECK(fixture.device.mapped_pages == 0);
}

TEST_CASE("regions, windows and fast-register regions share the keys") {
  DriverFixture fixture;
  std::vector<std::unique_ptr<kmd::KernelMw>> windows;
  std::vector<std::unique_ptr<kmd::KernelMr>> regions;
  std::vector<std::unique_ptr<kmd::KernelFastMr>> fast;
  std::set<std::uint32_t> indexes;
  for (int i = 0; i < 200; ++i) {
    windows.push_back(fixture.kernel->create_mw({.pd = 1}).take());
    regions.push_back(fixture.kernel->create_mr({.address = g_window_memory.data(), .length = 1, .pd = 1}).take());
    fast.push_back(fixture.kernel->create_fast_mr({.pd = 1, .max_pages = 8}).take());
    indexes.insert({windows.back()->key() >> 8, regions.back()->key() >> 8, fast.back()->key() >> 8});
  }
  CHECK(indexes.size() == 600);
}

TEST_CASE("a fast registration has its own key and its own page list") {
  DriverFixture fixture;
  const std::uint32_t most = GENERATE(1U, 256U, hw::kMaxFastPages);
  auto region =
      fixture.kernel->create_fast_mr({.pd = 9, .max_pages = most, .remote_access = true, .window_bind = true}).take();
  const std::uint32_t index = region->key() >> 8;
  const auto& body = fixture.device.fast_regions.at(index);
  CHECK(body.pd == 9);
  CHECK(body.max_pages == most);
  CHECK(body.remote_access == 1);
  CHECK(body.window_bind == 1);

  // Several may be posted one behind the other, with an Invalidate between.
  const auto pages = some_pages(most);
  std::map<std::uint32_t, FastRegistration> made;
  for (int i = 0; i < 5; ++i) {
    auto registration = region->prepare(some_range(pages));
    REQUIRE(registration.ok());
    CHECK(registration->key >> 8 == index);
    CHECK(registration->page_count == most);
    CHECK(registration->log_page == 12);
    CHECK(registration->page_list % 8 == 0);
    CHECK(region->key() != registration->key);
    region->register_posted(registration->key);
    CHECK(region->key() == registration->key);
    for (const auto& [key, other] : made) {
      CHECK(registration->key != key);
      CHECK(registration->page_list != other.page_list);
    }
    made[registration->key] = *registration;
    const auto* list = reinterpret_cast<const std::uint64_t*>(fixture.device.pointer(registration->page_list));
    CHECK(std::equal(pages.begin(), pages.end(), list));
  }
  // A list that was given back is used again, without another allocation.
  const auto allocations = fixture.device.live_allocations();
  for (const auto& [key, registration] : made) CHECK(region->release(key).ok());
  CHECK(region->release(region->key()).error() == Error::kNotFound);
  for (int i = 0; i < 1000; ++i) {
    auto registration = region->prepare(some_range(pages));
    REQUIRE(registration.ok());
    CHECK(region->release(registration->key).ok());
  }
  CHECK(fixture.device.live_allocations() == allocations);
  REQUIRE(region->prepare(some_range(pages)).ok());
  CHECK(region->query()->max_pages == most);
  CHECK(region->destroy().ok());
  CHECK(fixture.device.fast_regions.empty());
}

TEST_CASE("a short page list goes in the request, if the region has lines and the request has room (decisions 68)") {
  DriverFixture fixture;
  const std::uint32_t most = GENERATE(1U, 2U, 3U, 10U, 11U, 26U, 27U, 300U);
  auto region =
      fixture.kernel->create_fast_mr({.pd = 9, .max_pages = most, .remote_access = true, .window_bind = true}).take();
  const auto& body = fixture.device.fast_regions.at(region->key() >> 8);
  // What the pages need, and no more than a WQE of the window has.
  CHECK(body.list_lines == std::min(4U, (most + 6 + 7) / 8));
  CHECK(body.list_line + body.list_lines <= hw::kListLines);
  CHECK(fixture.kernel->held().lines == body.list_lines);
  const std::uint32_t on_chip = 8U * body.list_lines - 6;
  for (const std::uint32_t room : {0U, 2U, 10U, 26U, 58U}) {
    for (std::uint32_t count = 1; count <= std::min(most, 60U); ++count) {
      const auto pages = some_pages(count);
      auto registration = region->prepare(some_range(pages), room);
      REQUIRE(registration.ok());
      CHECK(registration->inline_list == (count <= room && count <= on_chip));
      CHECK((registration->page_list == 0) == registration->inline_list);
      CHECK(registration->page_count == count);
      CHECK(region->release(registration->key).ok());
    }
  }
  CHECK(region->destroy().ok());
  region.reset();
  CHECK(fixture.kernel->held().lines == 0);
}

TEST_CASE("lines on chip are shared by nobody, and a region without any takes its lists by pointer (decisions 68)") {
  DriverFixture fixture;
  std::vector<std::unique_ptr<kmd::KernelFastMr>> regions;
  std::set<std::uint32_t> taken;
  for (int i = 0; i < 300; ++i) {
    regions.push_back(fixture.kernel->create_fast_mr({.pd = 9, .max_pages = 26, .remote_access = true}).take());
    const auto& body = fixture.device.fast_regions.at(regions.back()->key() >> 8);
    for (std::uint32_t line = 0; line < body.list_lines; ++line) CHECK(taken.insert(body.list_line + line).second);
  }
  CHECK(taken.size() == hw::kListLines);
  const auto pages = some_pages(3);
  auto last = regions.back()->prepare(some_range(pages), 26);
  REQUIRE(last.ok());
  CHECK_FALSE(last->inline_list);
  CHECK(last->page_list != 0);
  regions.clear();
  CHECK(fixture.kernel->held().lines == 0);
  // Where the device has none, everything goes by pointer.
  test::FakeDevice device;
  device.capabilities.list_lines = 0;
  auto kernel = kmd::KernelDevice::open(device).take();
  auto region = kernel->create_fast_mr({.pd = 1, .max_pages = 3, .remote_access = true}).take();
  CHECK(device.fast_regions.at(region->key() >> 8).list_lines == 0);
  CHECK_FALSE(region->prepare(some_range(pages), 26)->inline_list);
}

TEST_CASE("no two registrations that have their list share a key") {
  DriverFixture fixture;
  auto region = fixture.kernel->create_fast_mr({.pd = 9, .max_pages = 1, .remote_access = true}).take();
  const auto pages = some_pages(1);
  std::vector<std::uint32_t> keys;
  for (;;) {
    auto registration = region->prepare(some_range(pages));
    if (!registration) {
      CHECK(registration.error() == Error::kOutOfResources);
      break;
    }
    keys.push_back(registration->key);
  }
  CHECK(keys.size() >= 64);
  CHECK(std::set<std::uint32_t>(keys.begin(), keys.end()).size() == keys.size());
  CHECK(region->release(keys[3]).ok());
  CHECK(region->prepare(some_range(pages)).ok());
}

TEST_CASE("fast registrations are checked before they are posted (decisions 21, 39)") {
  DriverFixture fixture;
  CHECK(fixture.kernel->create_fast_mr({.pd = 1, .max_pages = 0}).error() == Error::kInvalidParameter);
  CHECK(fixture.kernel->create_fast_mr({.pd = 1, .max_pages = hw::kMaxFastPages + 1}).error() ==
        Error::kInvalidParameter);
  auto region = fixture.kernel->create_fast_mr({.pd = 1, .max_pages = 4, .remote_access = true}).take();
  const auto pages = some_pages(5);
  const auto four = std::span(pages).first(4);
  auto range = some_range(four);
  Error expected = Error::kInvalidParameter;
  auto odd = some_pages(4);
  SECTION("more pages than initialized") { range = some_range(pages); }
  SECTION("no page") { range.pages = {}; }
  SECTION("a page that is not aligned") {
    odd[2] += 8;
    range.pages = odd;
  }
  SECTION("first offset beyond the page") { range.first_offset = 0x1123; }
  SECTION("base and first offset differ") { range.base += 1; }
  SECTION("base 0 with an offset") { range.base = 0; }
  SECTION("nothing") { range.length = 0; }
  SECTION("one byte too many") { ++range.length; }
  SECTION("a length that wraps") { range.length = ~0ULL; }
  SECTION("round the end of the address space") { range.base = ~0xFFFULL | 0x123; }
  SECTION("remote write without local write") {
    range.local_write = false;
    range.remote_write = true;
  }
  SECTION("atomics without local write") {
    range.local_write = false;
    range.remote_atomic = true;
  }
  SECTION("remote rights without remote access") {
    region = fixture.kernel->create_fast_mr({.pd = 1, .max_pages = 4}).take();
    expected = Error::kAccessViolation;
  }
  CHECK(region->prepare(range).error() == expected);
  auto good = some_range(four);
  good.remote_read = false;
  CHECK(region->prepare(good).ok());
  good.first_offset = 0;
  good.base = 0;  // legal with first offset 0 (decisions 22)
  CHECK(region->prepare(good).ok());
}

TEST_CASE("a fast-register region that cannot be made or ended leaves nothing behind, or everything") {
  DriverFixture fixture;
  const auto before = fixture.device.live_allocations();
  SECTION("no memory") {
    fixture.device.dma_allocations_left = 0;
    CHECK(fixture.kernel->create_fast_mr({.pd = 1, .max_pages = 4096}).error() == Error::kOutOfMemory);
    CHECK(fixture.device.live_allocations() == before);
  }
  SECTION("refused") {
    fixture.device.next_status.push_back(hw::AdminStatus::kBadParameter);
    CHECK(fixture.kernel->create_fast_mr({.pd = 1, .max_pages = 4096}).error() == Error::kInvalidParameter);
    CHECK(fixture.device.live_allocations() == before);
  }
  SECTION("windows are bound to it") {
    auto region = fixture.kernel->create_fast_mr({.pd = 1, .max_pages = 4096}).take();
    fixture.device.bound[5] = region->key() >> 8;
    CHECK(region->destroy().error() == Error::kBusy);
    CHECK(fixture.device.live_allocations() == before + 1);
    fixture.device.bound.clear();
    CHECK(region->destroy().ok());
    CHECK(fixture.device.live_allocations() == before);
  }
  SECTION("the device does not answer") {
    auto region = fixture.kernel->create_fast_mr({.pd = 1, .max_pages = 4096}).take();
    fixture.device.admin_hangs = true;
    region.reset();
    CHECK(fixture.device.resets == 1);  // so that the page lists are the kernel's again
    CHECK(fixture.device.live_allocations() == before);
  }
}

TEST_CASE("who is read into is written: memory that may only be read is no sink of Reads (decisions 57)") {
  DriverFixture fixture;
  fixture.device.read_only = g_window_memory.data();
  const umd::MrSpec plain{.address = g_window_memory.data(), .length = 4096};
  auto sink = plain;
  sink.read_sink = true;
  CHECK(fixture.process->create_mr(sink).error() == Error::kAccessViolation);
  CHECK(fixture.process->create_mr(plain).ok());
}
