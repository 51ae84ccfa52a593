#include "driver/kmd/kernel_mr.hpp"

#include <cstring>

#include "driver/costs.hpp"

namespace rnic::kmd {
namespace {

constexpr unsigned kLogPage = 12;  // kDevicePageBytes
static_assert(1U << kLogPage == kDevicePageBytes);

}  // namespace

Result<std::unique_ptr<KernelMr>> KernelDevice::create_mr(const MrSpec& spec) {
  if (admin_.failed()) return Error::kDeviceFailed;
  if (spec.length == 0 || spec.length > limits_.max_region) return Error::kInvalidParameter;
  if ((spec.remote_write || spec.remote_atomic) && !spec.local_write) return Error::kInvalidParameter;
  const auto va = reinterpret_cast<std::uintptr_t>(spec.address);
  if (va + spec.length < va) return Error::kAccessViolation;

  auto pages = device_.map_pages(spec.address, spec.length, spec.local_write);
  if (!pages) return pages.error();
  device_.elapse(pages->size() * cost::kPinPageNs);
  auto list = pool_.allocate(pages->size() * sizeof(std::uint64_t));
  if (!list) {
    device_.unmap_pages(spec.address, spec.length, *pages);
    return list.error();
  }
  // Little-endian like the host (host interface, admin_create_mr).
  std::memcpy(list->pointer, pages->data(), pages->size() * sizeof(std::uint64_t));

  Error error = Error::kOutOfResources;
  if (auto number = mrs_->acquire(); number) {
    const std::uint32_t key = (number->index << 8) | number->tag;
    hw::AdminCreateMr body;
    body.va = va;
    body.length = spec.length;
    body.page_list = list->iova;
    body.pd = spec.pd;
    body.log_page = kLogPage;
    body.local_write = spec.local_write;
    body.remote_read = spec.remote_read;
    body.remote_write = spec.remote_write;
    body.remote_atomic = spec.remote_atomic;
    body.window_bind = spec.window_bind;
    auto reply = admin_.execute(hw::AdminOpcode::kCreateMr, key, body);
    if (reply) {
      return std::unique_ptr<KernelMr>(new KernelMr(*this, spec, key, *list, pages.take()));
    }
    mrs_->release(number->index);
    if (admin_.failed()) return reply.error();  // the device may use the list and the pages: they are given up
    error = reply.error();
  }
  pool_.free(*list);
  device_.unmap_pages(spec.address, spec.length, *pages);
  return error;
}

KernelMr::~KernelMr() { static_cast<void>(destroy().ok()); }

Result<hw::AdminMrState> KernelMr::query() {
  auto reply = kernel_.admin_.execute(hw::AdminOpcode::kQueryMr, key_, AdminQueue::Body{});
  if (!reply) return reply.error();
  return hw::AdminMrState::decode(*reply);
}

Result<void> KernelMr::destroy() {
  if (!live_) return {};
  if (auto done = kernel_.destroy(hw::AdminOpcode::kDestroyMr, key_); !done) return done;
  live_ = false;
  kernel_.device_.unmap_pages(spec_.address, spec_.length, pages_);
  kernel_.pool_.free(list_);
  kernel_.mrs_->release(key_ >> 8);
  return {};
}

}  // namespace rnic::kmd
