#include "driver/kmd/kernel_fast_mr.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace rnic::kmd {
namespace {

// Of the 255 tags, so that a free one is found soon.
constexpr std::size_t kMaxRegistrations = 128;
// Of one region: what a WQE has that goes through the window. A longer one would have to be fetched, and cost what it
// saves.
constexpr std::uint32_t kMostLines = hw::kUarWqeWindowBytes / 64;
static_assert(kMostLines <= hw::kMaxRegionLines);

}  // namespace

Result<KernelFastMr::PageLists> KernelFastMr::make_lists(DmaPool& pool, std::uint32_t max_pages, std::uint32_t count) {
  PageLists lists;
  for (std::uint32_t i = 0; i < count; ++i) {
    auto memory = PoolMemory::allocate(pool, max_pages * sizeof(std::uint64_t));
    if (!memory) return memory.error();
    lists.push_back({.key = 0, .memory = memory.take()});
  }
  return lists;
}

Result<std::unique_ptr<KernelFastMr>> KernelDevice::create_fast_mr(const FastMrSpec& spec) {
  return or_out_of_memory([&]() -> Result<std::unique_ptr<KernelFastMr>> {
    if (limits_.max_fast_pages == 0) return Error::kNotSupported;
    if (spec.max_pages == 0 || spec.max_pages > limits_.max_fast_pages) return Error::kInvalidParameter;
    if (spec.registrations > kMaxRegistrations) return Error::kInvalidParameter;
    auto lists = KernelFastMr::make_lists(pool_, spec.max_pages, std::max(spec.registrations, 1U));
    if (!lists) return lists.error();
    auto number = OwnedNumber::acquire(*mrs_);
    if (!number) return number.error();
    OwnedLines lines(*lines_, std::min(kMostLines, inline_lines_for(spec.max_pages)));
    std::unique_ptr<KernelFastMr> region(new KernelFastMr(*this, spec, number.take(), std::move(lines), lists.take()));
    hw::AdminCreateFastMr body;
    body.pd = spec.pd;
    body.max_pages = spec.max_pages;
    body.remote_access = spec.remote_access;
    body.window_bind = spec.window_bind;
    body.list_line = static_cast<std::uint16_t>(region->lines_.first());
    body.list_lines = static_cast<std::uint8_t>(region->lines_.count());
    auto reply = execute(*region->life_, hw::AdminOpcode::kCreateFastMr, region->key_, body);
    if (!reply) return reply.error();
    region->live_ = true;
    return region;
  });
}

KernelFastMr::~KernelFastMr() {
  if (destroy()) return;
  for (auto* lists : {&free_, &used_}) {
    for (auto& list : *lists) list.memory.abandon();
  }
  lines_.abandon();
  number_.abandon();
}

Result<void> KernelFastMr::check(const FastRange& range) const {
  constexpr std::uint64_t kOffsetMask = kDevicePageBytes - 1;
  const std::uint64_t room = range.pages.size() * kDevicePageBytes;
  if (range.pages.empty() || range.pages.size() > spec_.max_pages) return Error::kInvalidParameter;
  if (range.first_offset > kOffsetMask) return Error::kInvalidParameter;
  if ((range.base & kOffsetMask) != range.first_offset) return Error::kInvalidParameter;
  if (range.length == 0 || range.length > room - range.first_offset) return Error::kInvalidParameter;
  if (range.base + (range.length - 1) < range.base) return Error::kInvalidParameter;
  const auto misaligned = [](std::uint64_t page) { return (page & kOffsetMask) != 0; };
  if (std::any_of(range.pages.begin(), range.pages.end(), misaligned)) return Error::kInvalidParameter;
  if ((range.remote_write || range.remote_atomic) && !range.local_write) return Error::kInvalidParameter;
  const bool remote = range.remote_read || range.remote_write || range.remote_atomic;
  if (remote && !spec_.remote_access) return Error::kAccessViolation;
  return {};
}

Result<FastRegistration> KernelFastMr::prepare(const FastRange& range, std::uint32_t inline_pages) {
  return or_out_of_memory([&]() -> Result<FastRegistration> {
    if (auto good = check(range); !good) return good.error();
    auto taken = take_list();
    if (!taken) return taken.error();
    PageLists one = taken.take();
    const bool in_request = range.pages.size() <= std::min(inline_pages, inline_pages_in(lines_.count()));
    // Little-endian like the host.
    if (!in_request) std::memcpy(one.front().memory.data(), range.pages.data(), range.pages.size_bytes());
    const std::uint32_t index = number_.index();
    std::uint32_t key{};
    const std::lock_guard lock(lock_);
    do {
      key = (index << 8) | kernel_.mrs_->renew(index);
    } while (key == key_ || find_used(key) != used_.end());
    one.front().key = key;
    used_.splice(used_.end(), one);
    return FastRegistration{.key = key,
                            .page_list = in_request ? 0 : used_.back().memory.iova(),
                            .page_count = static_cast<std::uint32_t>(range.pages.size()),
                            .log_page = kLogDevicePage,
                            .inline_list = in_request};
  });
}

/// One that no registration uses.
Result<KernelFastMr::PageLists> KernelFastMr::take_list() {
  {
    const std::lock_guard lock(lock_);
    if (used_.size() >= kMaxRegistrations) return Error::kOutOfResources;
    if (!free_.empty()) {
      PageLists one;
      one.splice(one.end(), free_, free_.begin());
      return one;
    }
  }
  if (spec_.registrations != 0) return Error::kOutOfResources;
  return make_lists(kernel_.pool_, spec_.max_pages, 1);
}

KernelFastMr::PageLists::iterator KernelFastMr::find_used(std::uint32_t key) {
  return std::find_if(used_.begin(), used_.end(), [key](const auto& list) { return list.key == key; });
}

Result<void> KernelFastMr::release(std::uint32_t key) noexcept {
  const std::lock_guard lock(lock_);
  const auto found = find_used(key);
  if (found == used_.end()) return Error::kNotFound;
  free_.splice(free_.end(), used_, found);
  return {};
}

Result<hw::AdminMrState> KernelFastMr::query() {
  auto reply = kernel_.execute(*life_, hw::AdminOpcode::kQueryMr, key_, AdminQueue::Body{});
  if (!reply) return reply.error();
  return hw::AdminMrState::decode(*reply);
}

Result<void> KernelFastMr::destroy() {
  if (!live_) return {};
  if (auto done = kernel_.destroy(*life_, hw::AdminOpcode::kDestroyFastMr, key_); !done) return done;
  live_ = false;
  PageLists used, free;  // their end may take a while
  const std::lock_guard lock(lock_);
  used_.swap(used);
  free_.swap(free);
  return {};
}

}  // namespace rnic::kmd
