#include "driver/umd/address_handle.hpp"

#include "driver/path_entropy.hpp"

namespace rnic::umd {
namespace {

constexpr std::uint8_t kHighestPriority = 7;

}  // namespace

Result<AddressHandle> AddressHandle::create(const Spec& spec) {
  if (spec.flow_label >> 20 != 0 || spec.dest_mac >> 48 != 0 || spec.hop_limit == 0) return Error::kInvalidParameter;
  if (spec.vlan >= hw::kReservedVid || spec.sl > kHighestPriority) return Error::kInvalidParameter;
  return AddressHandle(spec);
}

hw::WqeAddress AddressHandle::segment(std::uint32_t source_qpn, std::uint32_t dest_qpn, std::uint32_t qkey) const {
  hw::WqeAddress segment;
  segment.dest_ip = spec_.dest_ip;
  segment.dest_mac = spec_.dest_mac;
  segment.traffic_class = spec_.traffic_class;
  segment.hop_limit = spec_.hop_limit;
  segment.vlan = spec_.vlan != 0;
  segment.vlan_id = spec_.vlan;
  segment.pcp = spec_.sl;
  segment.dest_qpn = dest_qpn;
  segment.second_source = spec_.second_source;
  segment.qkey = qkey;
  segment.flow_label = spec_.flow_label != 0 ? spec_.flow_label : flow_label_for(source_qpn, dest_qpn);
  return segment;
}

}  // namespace rnic::umd
