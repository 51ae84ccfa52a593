// What programs read of sysfs: of our devices made up from what the kernel driver says, of all else what is there.
#include <fcntl.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "driver/unnoticed.hpp"
#include "driver/verbs/objects.hpp"
#include "driver/verbs/undeclared.hpp"

namespace rnic::verbs {
namespace {

std::string printed(const char* format, ...) __attribute__((format(printf, 1, 2)));

std::string printed(const char* format, ...) {
  char text[128];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

std::string four_words(std::uint64_t number) {
  return printed("%04x:%04x:%04x:%04x", static_cast<unsigned>(number >> 48),
                 static_cast<unsigned>(number >> 32 & 0xFFFF), static_cast<unsigned>(number >> 16 & 0xFFFF),
                 static_cast<unsigned>(number & 0xFFFF));
}

std::string gid_text(const ibv_gid& gid) {
  std::string text;
  for (unsigned i = 0; i < sizeof gid.raw; i += 2) {
    if (i != 0) text += ':';
    text += printed("%02x%02x", gid.raw[i], gid.raw[i + 1]);
  }
  return text;
}

/// The number behind `prefix`, if that is all of `file`.
std::optional<std::uint16_t> number_behind(const std::string& file, const std::string& prefix) {
  if (file.compare(0, prefix.size(), prefix) != 0 || file.size() == prefix.size()) return {};
  char* end = nullptr;
  const unsigned long number = std::strtoul(file.c_str() + prefix.size(), &end, 10);
  if (*end != '\0' || number > 0xFFFF) return {};
  return static_cast<std::uint16_t>(number);
}

std::optional<std::string> of_gid(KernelPort& port, const std::string& file, const std::string& device) {
  for (const char* const folder : {"gids/", "gid_attrs/types/", "gid_attrs/ndevs/"}) {
    const auto index = number_behind(file, folder);
    if (!index) continue;
    const auto gid = gid_at(port, *index);
    if (!gid) return {};
    if (std::strcmp(folder, "gids/") == 0) return gid_text(*gid);
    return std::strcmp(folder, "gid_attrs/types/") == 0 ? "RoCE v2" : device;
  }
  return {};
}

std::optional<std::string> of_port(Device& device, const std::string& file) {
  if (file == "link_layer") return "Ethernet";
  if (file == "lid" || file == "sm_lid" || file == "cap_mask") return "0x0";
  if (file == "sm_sl" || file == "lid_mask_count") return "0";
  if (file == "rate") return "100 Gb/sec (4X EDR)";
  DeviceNode* const node = node_of(device);
  if (node == nullptr) return {};
  auto port = node->open();
  if (!port) return {};
  if (file == "state" || file == "phys_state") {
    const auto is = (*port)->call(calls::QueryPort{});
    if (!is) return {};
    if (file == "state") return is->link_up != 0 ? "4: ACTIVE" : "1: DOWN";
    return is->link_up != 0 ? "5: LinkUp" : "3: Disabled";
  }
  if (const auto index = number_behind(file, "pkeys/")) {
    const auto pkey = (*port)->call(calls::QueryPkey{.index = *index});
    return pkey ? printed("0x%04x", pkey->pkey) : std::optional<std::string>();
  }
  return of_gid(**port, file, device.face.name);
}

std::optional<std::string> of_device(Device& device, const std::string& file) {
  static const std::string kPorts = "ports/1/";
  if (file.compare(0, kPorts.size(), kPorts) == 0) return of_port(device, file.substr(kPorts.size()));
  if (file == "node_guid" || file == "sys_image_guid") return four_words(device.guid());
  if (file == "node_type") return "1: CA";
  if (file == "node_desc" || file == "hca_type" || file == "board_id") return "rnic";
  if (file == "fw_ver") return kFirmwareVersion;
  if (file == "hw_rev") return "0x0";
  if (file == "device/numa_node") return "-1";
  return {};
}

int copy_text(const std::string& text, char* buffer, std::size_t size) {
  if (size == 0) return -1;
  const std::size_t length = std::min(text.size(), size - 1);
  std::memcpy(buffer, text.data(), length);
  buffer[length] = '\0';
  return static_cast<int>(length);
}

int read_real_file(const std::string& path, char* buffer, std::size_t size) {
  const Uncancelled uncancelled;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  ssize_t length = read(file, buffer, size);
  close(file);
  if (length < 0) return -1;
  if (length > 0 && buffer[length - 1] == '\n') {
    buffer[--length] = '\0';
  } else if (static_cast<std::size_t>(length) < size) {
    buffer[length] = '\0';
  } else {
    return -1;
  }
  return static_cast<int>(length);
}

}  // namespace
}  // namespace rnic::verbs

using namespace rnic::verbs;

extern "C" {

const char* ibv_get_sysfs_path() {
  static const std::string* const path = [] {
    const char* const named = std::getenv("SYSFS_PATH");
    return new std::string(named != nullptr ? named : "/sys");
  }();
  return path->c_str();
}

int ibv_read_sysfs_file(const char* folder, const char* file, char* buffer, std::size_t size) {
  try {
    const std::string path = std::string(folder) + "/" + file;
    const SysfsPlace place = place_in_sysfs(path);
    if (place.device == nullptr) return read_real_file(path, buffer, size);
    if (place.uverbs) {
      if (place.file == "ibdev") return copy_text(place.device->face.name, buffer, size);
      return place.file == "abi_version" ? copy_text("1", buffer, size) : -1;
    }
    const auto text = of_device(*place.device, place.file);
    return text ? copy_text(*text, buffer, size) : -1;
  } catch (const std::bad_alloc&) {
    return -1;
  }
}

}  // extern "C"
