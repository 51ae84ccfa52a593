// What a device and its port can do.
#include <endian.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "driver/verbs/objects.hpp"

// A macro of verbs.h stands in front of the function that old programs call.
#undef ibv_query_port

namespace rnic::verbs {
namespace {

// Address handles are the process's own memory, without a limit.
constexpr int kMaxAh = 65536;
// Of the 1024 that a client may have (kmd::Quota) the process's first is one.
constexpr int kMaxPd = 1023;
constexpr std::uint64_t kPageSizes = 0xFFFF'F000;

constexpr unsigned kCapabilities = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT |
                                   IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE |
                                   IBV_DEVICE_MEM_MGT_EXTENSIONS;

// Values of PortInfo (InfiniBand specification 14.2.5.6).
constexpr std::uint8_t kWidth4x = 2;
constexpr std::uint8_t kSpeedEdr = 32;
constexpr std::uint8_t kPhysicalLinkUp = 5;
constexpr std::uint8_t kPhysicalDisabled = 3;
constexpr std::uint8_t kOneLane = 1;  // VL0

ibv_device_attr attributes_of(Context& context) {
  const Limits& limits = context.process->limits();
  const std::uint64_t guid = htobe64(context.device->guid());
  ibv_device_attr a{};
  std::snprintf(a.fw_ver, sizeof a.fw_ver, "%s", kFirmwareVersion);
  a.node_guid = guid;
  a.sys_image_guid = guid;
  a.max_mr_size = limits.max_region;
  a.page_size_cap = kPageSizes;
  a.vendor_id = limits.vendor_id;
  a.vendor_part_id = limits.device_id;
  a.max_qp = static_cast<int>(limits.max_qp);
  a.max_qp_wr = static_cast<int>(limits.max_queue_depth);
  a.device_cap_flags = kCapabilities;
  if (limits.window_type1) a.device_cap_flags |= IBV_DEVICE_MEM_WINDOW;
  if (limits.window_type2) a.device_cap_flags |= IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  a.max_sge = static_cast<int>(limits.max_sge);
  a.max_sge_rd = static_cast<int>(limits.max_sge);
  a.max_cq = static_cast<int>(limits.max_cq);
  a.max_cqe = static_cast<int>(umd::CompletionQueue::max_entries(limits));
  a.max_mr = static_cast<int>(limits.max_mr);
  a.max_pd = kMaxPd;
  a.max_qp_rd_atom = static_cast<int>(limits.max_rd_atomic);
  a.max_res_rd_atom = static_cast<int>(limits.max_rd_atomic * limits.max_qp);
  a.max_qp_init_rd_atom = static_cast<int>(limits.max_rd_atomic);
  a.atomic_cap = IBV_ATOMIC_HCA;
  a.max_mw = static_cast<int>(limits.max_mw);
  a.max_mcast_grp = static_cast<int>(limits.max_multicast_groups);
  a.max_mcast_qp_attach = static_cast<int>(limits.max_qp);
  a.max_total_mcast_qp_attach = static_cast<int>(limits.max_multicast_groups * limits.max_qp);
  a.max_ah = kMaxAh;
  a.max_srq = static_cast<int>(limits.max_srq);
  a.max_srq_wr = static_cast<int>(limits.max_srq_depth);
  a.max_srq_sge = static_cast<int>(limits.max_sge);
  a.max_pkeys = 1;
  a.local_ca_ack_delay = 0;
  a.phys_port_cnt = 1;
  return a;
}

/// Of what a program of another age knows: the first `length` bytes; the rest of it is 0.
template <typename Whole>
void give(void* to, std::size_t length, const Whole& whole) {
  std::memset(to, 0, length);
  std::memcpy(to, &whole, std::min(length, sizeof whole));
}

}  // namespace

int query_device_ex(ibv_context* face, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attributes,
                    std::size_t length) {
  if (input != nullptr && input->comp_mask != 0) return EINVAL;
  if (length < sizeof attributes->orig_attr) return EINVAL;
  auto& context = Context::of(face);
  ibv_device_attr_ex a{};
  a.orig_attr = attributes_of(context);
  a.completion_timestamp_mask = ~std::uint64_t{0};
  a.hca_core_clock = std::uint64_t{context.process->limits().clock_mhz} * 1000;
  a.device_cap_flags_ex = a.orig_attr.device_cap_flags;
  a.cq_mod_caps = {.max_cq_count = 0xFFFF, .max_cq_period = 0xFFFF};
  a.phys_port_cnt_ex = 1;
  give(attributes, length, a);
  return 0;
}

int query_port(ibv_context* face, std::uint8_t port, ibv_port_attr* attributes, std::size_t length) {
  if (port != kPort) return EINVAL;
  auto& context = Context::of(face);
  const auto is = context.process->call(calls::QueryPort{});
  if (!is) return errno_of(is.error());
  const Limits& limits = context.process->limits();
  ibv_port_attr a{};
  a.state = is->link_up != 0 ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  a.max_mtu = static_cast<ibv_mtu>(limits.max_mtu);
  a.active_mtu = a.max_mtu;
  a.gid_tbl_len = static_cast<int>(gid_table_length(*is));
  a.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  a.max_msg_sz = limits.max_message;
  a.pkey_tbl_len = is->pkeys;
  a.max_vl_num = kOneLane;
  a.active_width = kWidth4x;
  a.active_speed = kSpeedEdr;
  a.phys_state = is->link_up != 0 ? kPhysicalLinkUp : kPhysicalDisabled;
  a.link_layer = IBV_LINK_LAYER_ETHERNET;
  give(attributes, length, a);
  return 0;
}

/// In cycles of the device's clock, as the timestamps of completions.
int query_rt_values(ibv_context* face, ibv_values_ex* values) {
  auto& context = Context::of(face);
  const std::uint32_t asked = values->comp_mask;
  values->comp_mask = asked & IBV_VALUES_MASK_RAW_CLOCK;
  if ((asked & IBV_VALUES_MASK_RAW_CLOCK) == 0) return 0;
  const std::uint64_t now = context.process->machine().device_ns();
  const std::uint64_t cycles =
      now / 1000 * context.process->limits().clock_mhz + now % 1000 * context.process->limits().clock_mhz / 1000;
  values->raw_clock = {.tv_sec = 0, .tv_nsec = static_cast<long>(cycles)};
  return 0;
}

}  // namespace rnic::verbs

using namespace rnic::verbs;

extern "C" {

int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) {
  *attributes = attributes_of(Context::of(context));
  return 0;
}

/// The structure ended before port_cap_flags2 when this was its only function.
int ibv_query_port(ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* attributes) {
  return query_port(context, port, reinterpret_cast<ibv_port_attr*>(attributes),
                    offsetof(ibv_port_attr, port_cap_flags2));
}

}  // extern "C"
