#include "driver/kmd/kernel_mr.hpp"

#include <cstring>

#include "driver/costs.hpp"

namespace rnic::kmd {

Result<PinnedPages> PinnedPages::pin(Device& device, const MrSpec& spec) {
  const AddressSpace& space = spec.space;
  const auto at = reinterpret_cast<std::uintptr_t>(spec.address);
  const bool writable = spec.local_write || spec.read_sink;
  const std::uint64_t pages = (at % kDevicePageBytes + spec.length + kDevicePageBytes - 1) / kDevicePageBytes;
  auto charge = Charge::take(spec.account, Account::Of::kPinnedBytes, pages * kDevicePageBytes);
  if (!charge) return charge.error();
  auto iovas = space.kind == AddressSpace::Kind::kOwn
                   ? device.map_pages(spec.address, spec.length, writable)
                   : device.map_process_pages(space.process, at, spec.length, writable);
  if (!iovas) return iovas.error();
  return PinnedPages(device, space, spec.address, spec.length, iovas.take(), charge.take());
}

void PinnedPages::unpin() {
  if (device_ == nullptr) return;
  if (space_.kind == AddressSpace::Kind::kOwn) {
    device_->unmap_pages(address_, length_, iovas_);
  } else {
    device_->unmap_process_pages(space_.process, reinterpret_cast<std::uintptr_t>(address_), length_, iovas_);
  }
  device_ = nullptr;
  charge_ = {};
}

Result<std::unique_ptr<KernelMr>> KernelDevice::create_mr(const MrSpec& spec) {
  hw::AdminCreateMr body;
  auto region = prepare_mr(spec, body);
  if (!region) return region;
  auto reply = execute(*(*region)->life_, hw::AdminOpcode::kCreateMr, (*region)->key_, body);
  if (!reply) return reply.error();
  (*region)->live_ = true;
  return region;
}

Result<std::unique_ptr<KernelMr>> KernelDevice::prepare_mr(const MrSpec& spec, hw::AdminCreateMr& body) {
  return or_out_of_memory([&]() -> Result<std::unique_ptr<KernelMr>> {
    if (spec.length == 0 || spec.length > limits_.max_region) return Error::kInvalidParameter;
    if ((spec.remote_write || spec.remote_atomic) && !spec.local_write) return Error::kInvalidParameter;
    reap_orphans();
    const auto at = reinterpret_cast<std::uintptr_t>(spec.address);
    if (at + spec.length < at) return Error::kAccessViolation;
    const std::uint64_t va = spec.iova.value_or(at);
    if (va + spec.length < va || (va - at) % kDevicePageBytes != 0) return Error::kInvalidParameter;

    auto pages = PinnedPages::pin(device_, spec);
    if (!pages) return pages.error();
    const auto& iovas = pages->iovas();
    device_.elapse(iovas.size() * cost::kPinPageNs);
    auto list = PoolMemory::allocate(pool_, iovas.size() * sizeof(std::uint64_t), spec.account);
    if (!list) return list.error();
    // Little-endian like the host (host interface, admin_create_mr).
    std::memcpy(list->data(), iovas.data(), iovas.size() * sizeof(std::uint64_t));
    auto number = spec.management ? OwnedNumber::acquire(*own_mrs_) : Error::kOutOfResources;
    if (!number) number = OwnedNumber::acquire(*mrs_);
    if (!number) return number.error();
    std::unique_ptr<KernelMr> region(new KernelMr(*this, spec.keeps, pages.take(), list.take(), number.take()));

    body = {};
    body.va = va;
    body.length = spec.length;
    body.page_list = region->list_.iova();
    body.pd = spec.pd;
    body.log_page = kLogDevicePage;
    body.local_write = spec.local_write;
    body.read_sink = spec.read_sink;
    body.remote_read = spec.remote_read;
    body.remote_write = spec.remote_write;
    body.remote_atomic = spec.remote_atomic;
    body.window_bind = spec.window_bind;
    return region;
  });
}

Result<void> KernelMr::begin_creation(const hw::AdminCreateMr& body, std::shared_ptr<AdminQueue::Later> later) {
  AdminQueue::Command command{.opcode = hw::AdminOpcode::kCreateMr, .number = key_, .body = {}};
  body.encode(command.body);
  live_ = true;
  auto begun = kernel_.execute_later(*life_, command, std::move(later));
  if (!begun) live_ = false;
  return begun;
}

Result<void> KernelMr::begin_destruction(std::shared_ptr<AdminQueue::Later> later) {
  return kernel_.execute_later(*life_, {.opcode = hw::AdminOpcode::kDestroyMr, .number = key_, .body = {}},
                               std::move(later));
}

void KernelMr::creation_ended(const Result<AdminQueue::Reply>& answer) {
  live_ = answer.ok() || answer.error() == Error::kDeviceFailed;
}

void KernelMr::destruction_ended(const Result<AdminQueue::Reply>& answer) {
  if (!answer) return;
  live_ = false;
  pages_.unpin();
}

bool KernelMr::wait_for(const std::function<bool()>& done) {
  Device& device = kernel_.device();
  for (;;) {
    const std::uint64_t seen = device.wake_count();
    life_->admin.tell();
    if (life_->admin.failed()) kernel_.fail(*life_);
    if (done()) return true;
    if (!device.wait(seen, cost::kAdminSleepNs) && device.removed()) return done();
  }
}

KernelMr::~KernelMr() {
  if (destroy()) return;
  pages_.abandon();
  list_.abandon();
  number_.abandon();
}

void KernelMr::dispose(std::unique_ptr<KernelMr> region) {
  if (region == nullptr || region->destroy()) return;
  region->kernel_.adopt_orphan(std::move(region));
}

void KernelDevice::adopt_orphan(std::unique_ptr<KernelMr> region) noexcept {
  const std::lock_guard lock(orphans_mutex_);
  region->next_orphan_ = std::move(orphans_);
  orphans_ = std::move(region);
}

void KernelDevice::reap_orphans() {
  std::unique_ptr<KernelMr> list;
  {
    const std::lock_guard lock(orphans_mutex_);
    list = std::move(orphans_);
  }
  while (list != nullptr) {
    auto region = std::move(list);
    list = std::move(region->next_orphan_);
    KernelMr::dispose(std::move(region));
  }
}

Result<hw::AdminMrState> KernelMr::query() {
  auto reply = kernel_.execute(*life_, hw::AdminOpcode::kQueryMr, key_, AdminQueue::Body{});
  if (!reply) return reply.error();
  return hw::AdminMrState::decode(*reply);
}

Result<void> KernelMr::destroy() {
  if (!live_) return {};
  if (auto done = kernel_.destroy(*life_, hw::AdminOpcode::kDestroyMr, key_); !done) return done;
  live_ = false;
  pages_.unpin();
  return {};
}

}  // namespace rnic::kmd
