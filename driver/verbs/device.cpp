// The list of devices.
#include <arpa/inet.h>
#include <endian.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "driver/verbs/devices.hpp"
#include "driver/verbs/errors.hpp"

namespace rnic::verbs {
namespace {

/// All that were ever found. Never destroyed: a program may look at a device while the process ends.
struct Known {
  std::mutex mutex;
  std::vector<std::unique_ptr<Device>> devices;
};

Known& known() {
  static auto* const all = new Known;
  return *all;
}

std::unique_ptr<Device> device_of(FoundDevice found, int index) {
  auto port = found.node->open();
  if (!port) return nullptr;
  const auto limits = (*port)->call(calls::QueryDevice{});
  if (!limits) return nullptr;
  auto device = std::make_unique<Device>();
  ibv_device& face = device->face;
  face.node_type = IBV_NODE_CA;
  face.transport_type = IBV_TRANSPORT_IB;
  std::snprintf(face.name, sizeof face.name, "%s", found.name.c_str());
  std::snprintf(face.dev_name, sizeof face.dev_name, "uverbs%d", index);
  std::snprintf(face.dev_path, sizeof face.dev_path, "/sys/class/infiniband_verbs/%s", face.dev_name);
  std::snprintf(face.ibdev_path, sizeof face.ibdev_path, "/sys/class/infiniband/%s", face.name);
  device->index = index;
  device->mac = limits->mac;
  device->found = std::move(found);
  return device;
}

/// Looks for devices until there are some. Those that were found stay.
void look(Known& all) {
  if (!all.devices.empty()) return;
  for (auto& found : find_devices()) {
    if (auto device = device_of(std::move(found), static_cast<int>(all.devices.size())); device != nullptr)
      all.devices.push_back(std::move(device));
  }
}

}  // namespace

SysfsPlace place_in_sysfs(const std::string& path) {
  auto& all = known();
  const std::lock_guard lock(all.mutex);
  const auto below = [&](const char* folder) {
    const std::string prefix = std::string(folder) + "/";
    return path.compare(0, prefix.size(), prefix) == 0 ? path.substr(prefix.size()) : std::string();
  };
  for (const auto& device : all.devices) {
    if (auto file = below(device->face.ibdev_path); !file.empty()) return {device.get(), false, file};
    if (auto file = below(device->face.dev_path); !file.empty()) return {device.get(), true, file};
  }
  return {};
}

}  // namespace rnic::verbs

using namespace rnic::verbs;

extern "C" {

ibv_device** ibv_get_device_list(int* num_devices) {
  if (num_devices != nullptr) *num_devices = 0;
  return or_null([&]() -> ibv_device** {
    auto& all = known();
    const std::lock_guard lock(all.mutex);
    look(all);
    auto** const list = static_cast<ibv_device**>(std::calloc(all.devices.size() + 1, sizeof(ibv_device*)));
    if (list == nullptr) return refuse(ENOMEM);
    for (std::size_t i = 0; i < all.devices.size(); ++i) list[i] = &all.devices[i]->face;
    if (num_devices != nullptr) *num_devices = static_cast<int>(all.devices.size());
    return list;
  });
}

void ibv_free_device_list(ibv_device** list) { std::free(list); }

const char* ibv_get_device_name(ibv_device* device) { return device->name; }

int ibv_get_device_index(ibv_device* device) { return Device::of(device).index; }

__be64 ibv_get_device_guid(ibv_device* device) { return htobe64(Device::of(device).guid()); }

}  // extern "C"
