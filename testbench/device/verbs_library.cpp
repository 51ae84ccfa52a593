#include "testbench/device/verbs_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace rnic::testbench {
namespace {

constexpr const char* kLibrary = "libibverbs.so.1";

/// The device list of the library, while it is looked at.
class DeviceList {
 public:
  explicit DeviceList(const VerbsLibrary& library) : library_(library), first_(library.get_device_list(&count_)) {
    if (first_ == nullptr) count_ = 0;
  }
  ~DeviceList() {
    if (first_ != nullptr) library_.free_device_list(first_);
  }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;
  [[nodiscard]] ibv_device** begin() const { return first_; }
  [[nodiscard]] ibv_device** end() const { return first_ + count_; }

 private:
  const VerbsLibrary& library_;
  int count_ = 0;
  ibv_device** first_;
};

}  // namespace

void* VerbsLibrary::symbol(const char* name) {
  static void* const kHandle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (kHandle == nullptr) throw DeviceError(fmt::format("{} cannot be loaded: {}", kLibrary, dlerror()));
  void* const found = dlsym(kHandle, name);
  if (found == nullptr) throw DeviceError(fmt::format("{} has no {}", kLibrary, name));
  return found;
}

const VerbsLibrary& VerbsLibrary::get() {
  static const VerbsLibrary kInstance;
  return kInstance;
}

std::vector<std::string> VerbsLibrary::device_names() const {
  std::vector<std::string> names;
  for (ibv_device* const device : DeviceList(*this)) names.emplace_back(get_device_name(device));
  return names;
}

ibv_context* VerbsLibrary::open(const std::string& name) const {
  for (ibv_device* const device : DeviceList(*this)) {
    if (name != get_device_name(device)) continue;
    ibv_context* const context = open_device(device);
    if (context == nullptr) throw DeviceError(fmt::format("{}: ibv_open_device: {}", name, std::strerror(errno)));
    return context;
  }
  std::string all;
  for (const auto& one : device_names()) all += (all.empty() ? "" : ", ") + one;
  throw DeviceError(
      fmt::format("no device '{}' of libibverbs; there {}", name, all.empty() ? "is none" : "are: " + all));
}

}  // namespace rnic::testbench
