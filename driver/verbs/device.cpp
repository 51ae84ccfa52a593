// The list of devices.
#include <arpa/inet.h>
#include <endian.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "driver/verbs/devices.hpp"
#include "driver/verbs/errors.hpp"

namespace rnic::verbs {
namespace {

/// All that a process has ever found. Never destroyed: a program may look at a device while the process ends.
struct Known {
  explicit Known(const Known* before) : of_parent(before) {}

  const pid_t process = getpid();
  const Known* const of_parent;  ///< Of a child of fork; a thread of the parent may have been about to change them
  std::mutex mutex;
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::shared_ptr<DeviceNode>> lost;  ///< Former ways to them, which contexts may still have
};

/// A child of fork begins anew, for the lock of its parent may be taken for ever.
Known& known() {
  static std::atomic<Known*> current{};
  Known* found = current.load();
  if (found != nullptr && found->process == getpid()) return *found;
  auto own = std::make_unique<Known>(found);
  if (!current.compare_exchange_strong(found, own.get())) return *found;
  return *own.release();
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

bool is_there(DeviceNode& node) {
  Machine& machine = node.machine();
  static_cast<void>(machine.wait(machine.wake_count(), 0));  // it looks
  return !machine.removed();
}

/// The way to a device that was found before. A daemon that has closed all its descriptors since then has none, and
/// finds it anew.
DeviceNode* way_to(Known& all, Device& device) {
  if (is_there(*device.found.node)) return device.found.node.get();
  for (auto& found : find_devices()) {
    if (found.name != device.found.name) continue;
    all.lost.push_back(std::exchange(device.found.node, std::move(found.node)));
  }
  return device.found.node.get();
}

}  // namespace

DeviceNode* node_of(Device& device) {
  auto& all = known();
  const std::lock_guard lock(all.mutex);
  const auto find = [&](auto&& is_it) -> DeviceNode* {
    const auto found = std::find_if(all.devices.begin(), all.devices.end(), is_it);
    return found == all.devices.end() ? nullptr : way_to(all, **found);
  };
  if (DeviceNode* const own = find([&](const auto& one) { return one.get() == &device; }); own != nullptr) return own;
  look(all);
  return find([&](const auto& one) { return one->found.name == device.found.name; });
}

SysfsPlace place_in_sysfs(const std::string& path) {
  auto& all = known();
  const std::lock_guard lock(all.mutex);
  if (all.of_parent != nullptr) look(all);  // the path may be of a device that the parent found
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
