// The device behind all ids, errors, and lists of devices.
#include "driver/rdmacm/objects.hpp"
#include "driver/verbs/kernel_port.hpp"

namespace rnic::rdmacm {

int refuse(Error error) {
  switch (error) {
    case Error::kOutOfMemory:
    case Error::kOutOfResources:
    case Error::kQueueFull: return refuse(ENOMEM);
    case Error::kAccessViolation: return refuse(EFAULT);
    case Error::kBusy: return refuse(EBUSY);
    case Error::kExists: return refuse(EADDRINUSE);
    case Error::kNotSupported: return refuse(EOPNOTSUPP);
    case Error::kTimeout: return refuse(ETIMEDOUT);
    case Error::kDeviceNotFound: return refuse(ENODEV);
    case Error::kVersionMismatch: return refuse(EPROTONOSUPPORT);
    case Error::kDeviceFailed: return refuse(EIO);
    case Error::kNotFound: return refuse(EADDRNOTAVAIL);
    default: return refuse(EINVAL);
  }
}

Device* Device::open() {
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  if (list == nullptr) return nullptr;
  ibv_context* const verbs = count != 0 ? ibv_open_device(list[0]) : nullptr;
  const int error = count != 0 ? errno : ENODEV;
  ibv_free_device_list(list);
  if (verbs == nullptr) {
    errno = error;
    return nullptr;
  }
  ibv_device_attr attributes{};
  if (const int failed = ibv_query_device(verbs, &attributes); failed != 0) {
    ibv_close_device(verbs);
    errno = failed;
    return nullptr;
  }
  return new (std::nothrow) Device(verbs, *rnic_kernel_port(verbs), attributes);
}

Device* Device::get() {
  static std::mutex mutex;
  static Device* device = nullptr;
  const std::lock_guard lock(mutex);
  if (device == nullptr) device = open();
  return device;
}

ibv_pd* Device::pd() {
  const std::lock_guard lock(mutex_);
  if (pd_ == nullptr) pd_ = ibv_alloc_pd(verbs_);
  return pd_;
}

Result<Gid> Device::own_address(bool ipv4) const {
  const auto tables = port_.call(calls::QueryPort{});
  if (!tables) return tables.error();
  for (std::uint16_t i = 0; i < tables->gids; ++i) {
    const auto entry = port_.call(calls::QueryGid{.index = i});
    if (!entry) return entry.error();
    const Gid& gid = entry->gid;
    const bool mapped = gid[0] == 0 && gid[10] == 0xFF && gid[11] == 0xFF;
    if (mapped == ipv4) return gid;
  }
  return Error::kNotFound;
}

}  // namespace rnic::rdmacm

using namespace rnic::rdmacm;

extern "C" {

ibv_context** rdma_get_devices(int* count) {
  Device* const device = Device::get();
  if (count != nullptr) *count = 0;
  if (device == nullptr) return nullptr;
  auto* const list = new (std::nothrow) ibv_context* [2] { device->verbs(), nullptr };
  if (list == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  if (count != nullptr) *count = 1;
  return list;
}

void rdma_free_devices(ibv_context** list) { delete[] list; }

}  // extern "C"
