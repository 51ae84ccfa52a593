#include "driver/kmd/kernel_fast_mr.hpp"

#include <algorithm>
#include <cstring>

namespace rnic::kmd {
namespace {

constexpr std::uint8_t kLogPage = 12;  // kDevicePageBytes
static_assert(1U << kLogPage == kDevicePageBytes);
// Of the 255 tags, so that a free one is found soon.
constexpr std::size_t kMaxRegistrations = 128;

}  // namespace

Result<std::unique_ptr<KernelFastMr>> KernelDevice::create_fast_mr(const FastMrSpec& spec) {
  if (admin_.failed()) return Error::kDeviceFailed;
  if (limits_.max_fast_pages == 0) return Error::kNotSupported;
  if (spec.max_pages == 0 || spec.max_pages > limits_.max_fast_pages) return Error::kInvalidParameter;
  auto list = pool_.allocate(spec.max_pages * sizeof(std::uint64_t));
  if (!list) return list.error();
  Error error = Error::kOutOfResources;
  if (auto number = mrs_->acquire(); number) {
    const std::uint32_t key = (number->index << 8) | number->tag;
    hw::AdminCreateFastMr body;
    body.pd = spec.pd;
    body.max_pages = spec.max_pages;
    body.remote_access = spec.remote_access;
    body.window_bind = spec.window_bind;
    auto reply = admin_.execute(hw::AdminOpcode::kCreateFastMr, key, body);
    if (reply) return std::unique_ptr<KernelFastMr>(new KernelFastMr(*this, spec, key, *list));
    mrs_->release(number->index);
    error = reply.error();
  }
  pool_.free(*list);
  return error;
}

KernelFastMr::~KernelFastMr() { static_cast<void>(destroy().ok()); }

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

Result<FastRegistration> KernelFastMr::prepare(const FastRange& range) {
  if (auto good = check(range); !good) return good.error();
  const std::lock_guard lock(mutex_);
  if (used_.size() >= kMaxRegistrations) return Error::kOutOfResources;
  if (free_.empty()) {
    auto list = kernel_.pool_.allocate(spec_.max_pages * sizeof(std::uint64_t));
    if (!list) return list.error();
    free_.push_back(*list);
  }
  const DmaBlock list = free_.back();
  free_.pop_back();
  const std::uint32_t index = key_ >> 8;
  std::uint32_t key{};
  do {
    key = (index << 8) | kernel_.mrs_->renew(index);
  } while (key == key_ || used_.contains(key));
  used_[key] = list;
  // Little-endian like the host.
  std::memcpy(list.pointer, range.pages.data(), range.pages.size_bytes());
  return FastRegistration{.key = key,
                          .page_list = list.iova,
                          .page_count = static_cast<std::uint32_t>(range.pages.size()),
                          .log_page = kLogPage};
}

Result<void> KernelFastMr::release(std::uint32_t key) {
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(key);
  if (found == used_.end()) return Error::kNotFound;
  free_.push_back(found->second);
  used_.erase(found);
  return {};
}

Result<hw::AdminMrState> KernelFastMr::query() {
  auto reply = kernel_.admin_.execute(hw::AdminOpcode::kQueryMr, key_, AdminQueue::Body{});
  if (!reply) return reply.error();
  return hw::AdminMrState::decode(*reply);
}

Result<void> KernelFastMr::destroy() {
  if (!live_) return {};
  if (auto done = kernel_.destroy(hw::AdminOpcode::kDestroyFastMr, key_); !done) return done;
  live_ = false;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, list] : used_) kernel_.pool_.free(list);
  for (const auto& list : free_) kernel_.pool_.free(list);
  used_.clear();
  free_.clear();
  kernel_.mrs_->release(key_ >> 8);
  return {};
}

}  // namespace rnic::kmd
