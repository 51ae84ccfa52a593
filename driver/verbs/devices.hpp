#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "driver/kernel_calls/kernel_port.hpp"

namespace rnic::verbs {

/// A device that the process finds on its machine.
struct FoundDevice {
  std::string name{};  ///< Less than IBV_SYSFS_NAME_MAX characters
  std::shared_ptr<DeviceNode> node{};
};

/// All devices there are, at each call anew: remote_devices.cpp for libibverbs.so.1, a fake one in tests. Throws
/// std::bad_alloc.
[[nodiscard]] std::vector<FoundDevice> find_devices();

/// A device of the list that programs get. It stays for as long as the process lives, for nobody says when a program
/// has forgotten it; a child of fork has it too, and finds its way to it anew (node_of).
struct Device {
  ibv_device face{};  ///< First: programs hold its address
  FoundDevice found;
  int index{};
  std::uint64_t mac{};

  static Device& of(ibv_device* device) { return *reinterpret_cast<Device*>(device); }
  /// EUI-64 of the station address (RFC 4291 appendix A), as a number.
  [[nodiscard]] std::uint64_t guid() const {
    return ((mac >> 24 & 0xFFFFFF) << 40 | std::uint64_t{0xFFFE} << 24 | (mac & 0xFFFFFF)) ^ std::uint64_t{2} << 56;
  }
};

/// The way of this process to the device. Null: there is no such device any more. Throws std::bad_alloc.
[[nodiscard]] DeviceNode* node_of(Device& device);

/// The device in whose virtual sysfs directory `path` is, and the rest of the path; null: none.
struct SysfsPlace {
  Device* device{};
  bool uverbs{};  ///< In the directory of the infiniband_verbs class
  std::string file{};
};
[[nodiscard]] SysfsPlace place_in_sysfs(const std::string& path);

}  // namespace rnic::verbs
