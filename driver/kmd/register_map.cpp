#include "driver/kmd/register_map.hpp"

#include "driver/generated/host_interface.hpp"

namespace rnic::kmd {
namespace {

constexpr std::uint64_t kGone = ~0ULL;  // what a read answers when nothing claims it
constexpr unsigned kMaxBlocks = 16;     // longer chains are loops

}  // namespace

Result<RegisterMap> RegisterMap::discover(Device& device) {
  // The identity block is at 0 by definition; everything else is found through it.
  const auto first = device.read64(hw::reg::kIdentityHeader);
  if (first == kGone) return Error::kDeviceNotFound;
  const auto header = hw::RegIdentityHeader::from_word(first);
  if (header.block_type != hw::kBlockTypeIdentity) return Error::kDeviceNotFound;
  const auto identity = hw::RegIdentity::from_word(device.read64(hw::reg::kIdentity));
  if (identity.magic != hw::kDeviceMagic) return Error::kDeviceNotFound;

  RegisterMap map;
  map.vendor_id_ = identity.vendor_id;
  map.device_id_ = identity.device_id;
  bool has_admin = false;
  bool has_port = false;
  std::uint64_t offset = 0;
  for (unsigned i = 0;; ++i) {
    if (i == kMaxBlocks || offset % 8 != 0 || offset >= hw::kUarPageBytes) return Error::kDeviceNotFound;
    const auto block = hw::RegIdentityHeader::from_word(device.read64(offset));
    switch (block.block_type) {
      case hw::kBlockTypeIdentity: map.identity_ = offset; break;
      case hw::kBlockTypeAdmin:
        map.admin_ = offset;
        has_admin = true;
        break;
      case hw::kBlockTypePort:
        map.port_ = offset;
        has_port = true;
        break;
      case hw::kBlockTypeMsix: map.has_msix_ = true; break;
      case hw::kBlockTypeCounters: map.has_counters_ = true; break;
      default: break;  // a block of a later device that this driver does not need
    }
    const bool known = block.block_type >= hw::kBlockTypeIdentity && block.block_type <= hw::kBlockTypeCounters;
    if (known && block.version != hw::kBlockVersion) return Error::kVersionMismatch;
    if (block.next_offset == 0) break;
    offset = block.next_offset;
  }
  if (!has_admin || !has_port || !map.has_msix_) return Error::kDeviceNotFound;
  return map;
}

std::uint64_t RegisterMap::identity(std::uint32_t reg) const { return identity_ + reg - hw::reg::kIdentityHeader; }
std::uint64_t RegisterMap::admin(std::uint32_t reg) const { return admin_ + reg - hw::reg::kAdminHeader; }
std::uint64_t RegisterMap::port(std::uint32_t reg) const { return port_ + reg - hw::reg::kPortHeader; }

}  // namespace rnic::kmd
