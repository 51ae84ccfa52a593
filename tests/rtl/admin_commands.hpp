#pragma once

#include <random>

#include "tests/rtl/admin_model.hpp"

namespace rnic::test {

/// Random admin commands: mostly legal, on few objects so that they meet, with a field spoilt now and then.
class AdminCommands {
 public:
  explicit AdminCommands(std::mt19937_64& rng) : rng_(rng) {}

  /// The number of the CQ or SRQ with this index, as these commands choose it.
  static constexpr std::uint32_t usual(std::uint32_t index) { return index | ((index % 3 * 0x4321) << 8); }

  hw::AdminCommand next(const AdminModel& model) {
    static constexpr AdminOpcode kOpcodes[] = {
        AdminOpcode::kCreateEq,        AdminOpcode::kDestroyEq,         AdminOpcode::kQueryEq,
        AdminOpcode::kCreateCq,        AdminOpcode::kCreateCq,          AdminOpcode::kDestroyCq,
        AdminOpcode::kQueryCq,         AdminOpcode::kModifyCq,          AdminOpcode::kResizeCq,
        AdminOpcode::kCreateMr,        AdminOpcode::kDestroyMr,         AdminOpcode::kQueryMr,
        AdminOpcode::kCreateQp,        AdminOpcode::kCreateQp,          AdminOpcode::kCreateQp,
        AdminOpcode::kDestroyQp,       AdminOpcode::kModifyQp,          AdminOpcode::kModifyQp,
        AdminOpcode::kModifyQp,        AdminOpcode::kModifyQp,          AdminOpcode::kModifyQp,
        AdminOpcode::kModifyQp,        AdminOpcode::kQueryQp,           AdminOpcode::kQueryQpCounters,
        AdminOpcode::kQueryQpCounters, AdminOpcode::kQueryCapabilities, AdminOpcode::kCreateMw,
        AdminOpcode::kCreateMw,        AdminOpcode::kDestroyMw,         AdminOpcode::kCreateFastMr,
        AdminOpcode::kDestroyFastMr,   AdminOpcode::kCreateSrq,         AdminOpcode::kCreateSrq,
        AdminOpcode::kDestroySrq,      AdminOpcode::kQuerySrq,          AdminOpcode::kModifySrq};
    if (chance(0.02)) return command(static_cast<AdminOpcode>(rng_()), any());
    static constexpr AdminOpcode kDestroys[] = {AdminOpcode::kDestroyQp, AdminOpcode::kDestroyCq,
                                                AdminOpcode::kDestroyEq, AdminOpcode::kDestroySrq};
    const bool destroy = shrinks && chance(0.7);
    if (destroy && !model.qps.empty() && chance(0.3)) {
      return command(
          AdminOpcode::kDestroyQp,
          std::next(model.qps.begin(), static_cast<long>(uniform(0, model.qps.size() - 1)))->second.send.qpn);
    }
    if (chance(0.15)) {
      const auto opcode = chance(0.75) ? AdminOpcode::kAttachMulticast : AdminOpcode::kDetachMulticast;
      return multicast(opcode, datagram_qpn(model), group());
    }
    if (destroy && !model.groups.empty() && chance(0.3)) {
      const auto& [group, members] = *model.groups.begin();
      return multicast(AdminOpcode::kDetachMulticast, *members.begin(), group);
    }
    switch (const auto opcode = destroy ? kDestroys[uniform(0, 3)] : kOpcodes[uniform(0, std::size(kOpcodes) - 1)]) {
      case AdminOpcode::kCreateEq: return create_eq(number(3, 32));
      case AdminOpcode::kCreateCq: return create_cq(tagged(6));
      case AdminOpcode::kCreateMr: return create_mr(key(model));
      case AdminOpcode::kCreateQp: return create_qp(qpn(model));
      case AdminOpcode::kModifyQp: return modify_qp(qpn(model), model);
      case AdminOpcode::kDestroyEq:
      case AdminOpcode::kQueryEq: return command(opcode, number(3, 32));
      case AdminOpcode::kDestroyCq:
      case AdminOpcode::kQueryCq:
      case AdminOpcode::kModifyCq: return command(opcode, tagged(6));
      case AdminOpcode::kResizeCq: return resize_cq(tagged(6));
      case AdminOpcode::kCreateSrq: return create_srq(tagged(4));
      case AdminOpcode::kModifySrq: return modify_srq(tagged(4));
      case AdminOpcode::kDestroySrq:
      case AdminOpcode::kQuerySrq: return command(opcode, tagged(4));
      case AdminOpcode::kCreateMw: return create_mw(key(model));
      case AdminOpcode::kCreateFastMr: return create_fast_mr(key(model));
      case AdminOpcode::kDestroyMr:
      case AdminOpcode::kDestroyMw:
      case AdminOpcode::kDestroyFastMr: return command(destroys(opcode), key(model));
      case AdminOpcode::kQueryMr: return command(opcode, key(model));
      default: return command(opcode, qpn(model));
    }
  }

  hw::AdminCommand command(AdminOpcode opcode, std::uint32_t number) {
    hw::AdminCommand c;
    c.opcode = static_cast<std::uint8_t>(opcode);
    c.number = number;
    for (auto& b : c.body) b = static_cast<std::uint8_t>(rng_());
    return c;
  }
  hw::AdminCommand create_eq(std::uint32_t number) {
    auto c = command(AdminOpcode::kCreateEq, number);
    hw::AdminCreateEq body;
    body.base = spoil(rng_() & ~0xfffULL);
    body.log_depth = static_cast<std::uint8_t>(spoil(uniform(0, hw::kMaxLogEqDepth)));
    body.msix_vector = static_cast<std::uint8_t>(spoil(uniform(0, hw::kMsixVectors - 1)));
    set_body(c, body);
    return c;
  }
  hw::AdminCommand create_cq(std::uint32_t number) {
    auto c = command(AdminOpcode::kCreateCq, number);
    hw::AdminCreateCq body;
    body.base = spoil(rng_() & ~0xfffULL);
    body.log_depth = static_cast<std::uint8_t>(spoil(uniform(0, hw::kMaxLogCqDepth)));
    body.eqn = static_cast<std::uint8_t>(this->number(3, 256));
    body.uar = static_cast<std::uint8_t>(spoil(uniform(1, 127)));
    set_body(c, body);
    return c;
  }
  hw::AdminCommand create_srq(std::uint32_t number) {
    auto c = command(AdminOpcode::kCreateSrq, number);
    hw::AdminCreateSrq body;
    body.base = spoil(rng_() & ~0xfffULL);
    body.pd = static_cast<std::uint32_t>(rng_() & 0xffffff);
    body.log_depth = static_cast<std::uint8_t>(spoil(uniform(0, hw::kMaxLogQueueDepth)));
    body.log_stride = static_cast<std::uint8_t>(spoil(uniform(hw::kMinLogReceiveStride, hw::kMaxLogStride)));
    body.eqn = static_cast<std::uint8_t>(this->number(3, 256));
    body.uar = static_cast<std::uint8_t>(spoil(uniform(1, 127)));
    body.limit = static_cast<std::uint16_t>(rng_());
    set_body(c, body);
    return c;
  }
  /// One of 26 addresses; now and then one beside those of groups.
  std::array<std::uint8_t, 16> group() {
    std::array<std::uint8_t, 16> gid{};
    gid[15] = static_cast<std::uint8_t>(uniform(0, 12));
    if (chance(0.5)) {
      gid[0] = 0xff;
    } else {
      gid[10] = gid[11] = 0xff;
      gid[12] = 0xe5;
    }
    if (spoils && chance(0.1)) gid[uniform(0, 12)] ^= static_cast<std::uint8_t>(1u << uniform(0, 7));
    return gid;
  }
  hw::AdminCommand multicast(AdminOpcode opcode, std::uint32_t number, const std::array<std::uint8_t, 16>& mgid) {
    auto c = command(opcode, number);
    hw::AdminMulticast body;
    body.mgid = mgid;
    set_body(c, body);
    return c;
  }
  hw::AdminCommand modify_srq(std::uint32_t number) {
    auto c = command(AdminOpcode::kModifySrq, number);
    hw::AdminModifySrq body;
    body.set_limit = chance(0.5);
    body.set_ring = chance(0.5);
    body.limit = static_cast<std::uint16_t>(rng_());
    body.base = spoil(rng_() & ~0xfffULL);
    body.log_depth = static_cast<std::uint8_t>(spoil(uniform(0, hw::kMaxLogQueueDepth)));
    set_body(c, body);
    return c;
  }
  hw::AdminCommand resize_cq(std::uint32_t number) {
    auto c = command(AdminOpcode::kResizeCq, number);
    hw::AdminResizeCq body;
    body.base = spoil(rng_() & ~0xfffULL);
    body.log_depth = static_cast<std::uint8_t>(spoil(uniform(0, chance(0.5) ? 4 : hw::kMaxLogCqDepth)));
    set_body(c, body);
    return c;
  }
  hw::AdminCommand create_mr(std::uint32_t key) {
    auto c = command(AdminOpcode::kCreateMr, key);
    hw::AdminCreateMr body;
    body.va = rng_();
    body.length = spoil(uniform(1, 1ULL << uniform(1, 47)));
    if (chance(0.1)) body.length = chance(0.5) ? 1ULL << 47 : (1ULL << 47) + 1;
    if (chance(0.2))
      body.va = std::uint64_t{0} - body.length + uniform(0, 1);  // to the end of the address space, or round it
    body.page_list = spoil(rng_() & ~0x3fULL);
    body.pd = static_cast<std::uint32_t>(rng_() & 0xffffff);
    body.log_page = static_cast<std::uint8_t>(spoil(uniform(12, 30)));
    body.local_write = chance(0.7);
    body.read_sink = chance(0.3);
    body.remote_read = chance(0.5);
    body.remote_write = chance(0.9) ? body.local_write : 1;
    body.remote_atomic = body.local_write && chance(0.5);
    if (spoils && chance(0.05)) body.remote_atomic = 1;
    body.window_bind = chance(0.8);
    set_body(c, body);
    return c;
  }
  hw::AdminCommand create_mw(std::uint32_t key) {
    auto c = command(AdminOpcode::kCreateMw, key);
    hw::AdminCreateMw body;
    body.pd = static_cast<std::uint32_t>(rng_() & 0xffffff);
    body.window_type = static_cast<std::uint8_t>(spoil(uniform(1, 2)));
    set_body(c, body);
    return c;
  }
  hw::AdminCommand create_fast_mr(std::uint32_t key) {
    auto c = command(AdminOpcode::kCreateFastMr, key);
    hw::AdminCreateFastMr body;
    body.pd = static_cast<std::uint32_t>(rng_() & 0xffffff);
    body.remote_access = chance(0.5);
    body.window_bind = chance(0.5);
    body.max_pages = static_cast<std::uint32_t>(spoil(uniform(1, hw::kMaxFastPages)));
    if (spoils && chance(0.1)) body.max_pages = hw::kMaxFastPages + static_cast<std::uint32_t>(uniform(0, 1));
    // Lines: none, some anywhere, some up to the last one; one too many, or from one too far.
    body.list_lines = static_cast<std::uint8_t>(uniform(0, hw::kMaxRegionLines));
    body.list_line = static_cast<std::uint16_t>(uniform(0, hw::kListLines - body.list_lines));
    switch (uniform(0, spoils ? 15 : 7)) {
      case 0: body.list_line = static_cast<std::uint16_t>(hw::kListLines - body.list_lines); break;
      case 14: body.list_lines = hw::kMaxRegionLines + 1; break;
      case 15: body.list_line = static_cast<std::uint16_t>(hw::kListLines - body.list_lines + 1); break;
      default: break;
    }
    set_body(c, body);
    return c;
  }
  hw::AdminCommand create_qp(std::uint32_t number) {
    auto c = command(AdminOpcode::kCreateQp, number);
    hw::AdminCreateQp body;
    body.sq_base = spoil(rng_() & ~0xfffULL);
    body.rq_base = spoil(rng_() & ~0xfffULL);
    body.retired_address = spoil(rng_() & ~0x7ULL);
    body.fast_register = rng_() & 1;
    body.pd = static_cast<std::uint32_t>(rng_() & 0xffffff);
    body.uar = static_cast<std::uint8_t>(spoil(uniform(1, 127)));
    body.send_cqn = tagged(6);
    body.receive_cqn = tagged(6);
    body.sq_log_depth = static_cast<std::uint8_t>(spoil(uniform(0, hw::kMaxLogQueueDepth)));
    body.rq_log_depth = static_cast<std::uint8_t>(spoil(uniform(0, hw::kMaxLogQueueDepth)));
    body.sq_log_stride = static_cast<std::uint8_t>(spoil(uniform(hw::kMinLogSendStride, hw::kMaxLogStride)));
    body.rq_log_stride = static_cast<std::uint8_t>(spoil(uniform(hw::kMinLogReceiveStride, hw::kMaxLogStride)));
    body.use_srq = on_srqs && chance(0.4);
    body.srqn = tagged(4);
    static constexpr std::array kTypes = {hw::QpType::kRc, hw::QpType::kRc, hw::QpType::kUc, hw::QpType::kUd};
    body.qp_type = static_cast<std::uint8_t>(kTypes[uniform(0, kTypes.size() - 1)]);
    if (spoils && chance(0.05)) body.qp_type = static_cast<std::uint8_t>(uniform(0, 5));
    if (chance(0.05)) {
      body.qp_type = static_cast<std::uint8_t>(hw::QpType::kRawPacket);
      body.use_srq = 0;
      body.uar = static_cast<std::uint8_t>(spoil(hw::kKernelUar));
    }
    // Now and then the general service interface, which belongs to the kernel's UAR.
    if (spoils && chance(0.05)) {
      c.number = 1;
      if (chance(0.7)) body.uar = hw::kKernelUar;
      if (chance(0.7)) body.qp_type = static_cast<std::uint8_t>(hw::QpType::kUd);
    }
    set_body(c, body);
    return c;
  }
  hw::AdminCommand modify_qp(std::uint32_t number, const AdminModel& model) {
    // Mostly the next step of the QP's life.
    unsigned next = static_cast<unsigned>(chance(0.1) ? uniform(0, 255) : uniform(0, 6));
    const auto found = model.qps.find(number & 0xff);
    unsigned from = 0;
    if (found != model.qps.end()) from = found->second.send.state;
    if (found != model.qps.end() && chance(0.6)) next = from < 4 ? from + 1u : 3;
    return modify_qp_to(number, next, from, found != model.qps.end() ? found->second.send.qp_type : 0);
  }
  /// With the attributes that a legal transition takes: those that it needs, and some of the others; `from` is the
  /// present state.
  hw::AdminCommand modify_qp_to(std::uint32_t number, unsigned next, unsigned from, unsigned type = 0) {
    auto c = command(AdminOpcode::kModifyQp, number);
    hw::AdminModifyQp body;
    body.next_state = static_cast<std::uint8_t>(next);
    if (const auto* row = transition_row(from, next, static_cast<hw::QpType>(type)))
      body.attr_mask = row->required | (row->optional & any());
    body.attr_mask |= any() & 1;
    if (spoils && chance(0.15)) body.attr_mask ^= 1u << uniform(0, 20);
    body.cur_state = static_cast<std::uint8_t>(spoil(from));
    body.sqd_notify = chance(0.5);
    body.path_mtu = static_cast<std::uint8_t>(spoil(uniform(1, 5)));
    body.max_dest_rd_atomic = static_cast<std::uint8_t>(spoil(uniform(0, hw::kMaxReadsOutstanding)));
    body.max_rd_atomic = static_cast<std::uint8_t>(spoil(uniform(0, hw::kMaxReadsOutstanding)));
    body.min_rnr_timer = static_cast<std::uint8_t>(spoil(uniform(0, 31)));
    body.ack_timeout = static_cast<std::uint8_t>(spoil(uniform(0, 31)));
    body.retry_count = static_cast<std::uint8_t>(spoil(uniform(0, 7)) & 0xf);
    body.rnr_retry = static_cast<std::uint8_t>(spoil(uniform(0, 7)) & 0xf);
    body.remote_write = chance(0.5);
    body.remote_read = chance(0.5);
    body.remote_atomic = chance(0.5);
    body.ipv6 = chance(0.5);
    body.qkey = static_cast<std::uint32_t>(rng_());
    body.rq_psn = static_cast<std::uint32_t>(rng_() & 0xffffff);
    body.dest_qpn = static_cast<std::uint32_t>(rng_() & 0xffffff);
    body.pkey = static_cast<std::uint16_t>(rng_());
    body.sq_psn = static_cast<std::uint32_t>(rng_() & 0xffffff);
    body.traffic_class = static_cast<std::uint8_t>(rng_());
    body.hop_limit = static_cast<std::uint8_t>(rng_());
    body.udp_source_port = static_cast<std::uint16_t>(rng_());
    body.flow_label = static_cast<std::uint32_t>(rng_() & 0xffffff);
    body.dest_mac = rng_() & 0xffffffffffffULL;
    body.vlan = chance(0.5);
    body.vlan_id = static_cast<std::uint16_t>(spoils && chance(0.05) ? 0xfff : uniform(0, 0xffe));
    body.pcp = static_cast<std::uint8_t>(uniform(0, 7));
    for (auto* ip : {&body.source_ip, &body.dest_ip}) {
      for (auto& b : *ip) b = static_cast<std::uint8_t>(rng_());
      if (body.ipv6) continue;
      std::fill_n(ip->begin(), 10, std::uint8_t{0});
      (*ip)[10] = (*ip)[11] = 0xff;
      if (spoils && chance(0.05)) (*ip)[uniform(0, 11)] ^= static_cast<std::uint8_t>(1u << uniform(0, 7));
    }
    set_body(c, body);
    return c;
  }

  bool spoils = true;    // spoil fields now and then
  bool on_srqs = false;  // some QPs use an SRQ
  bool shrinks = false;  // destroy more than is made

 private:
  bool chance(double probability) { return std::uniform_real_distribution<>(0, 1)(rng_) < probability; }
  std::uint64_t uniform(std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(rng_);
  }
  std::uint32_t any() { return static_cast<std::uint32_t>(rng_()); }
  std::uint64_t spoil(std::uint64_t value) {
    if (!spoils || !chance(0.03)) return value;
    switch (uniform(0, 3)) {
      case 0: return value ^ 1ULL << uniform(0, 7);
      case 1: return value + 1;
      case 2: return 0;
      default: return rng_();
    }
  }
  /// One of the first few numbers, rarely one up to `limit` or beyond.
  std::uint32_t number(std::uint32_t few, std::uint32_t limit) {
    if (!spoils || chance(0.94)) return static_cast<std::uint32_t>(uniform(0, few - 1));
    return chance(0.5) ? static_cast<std::uint32_t>(uniform(0, limit)) : any();
  }
  /// A number with its index's usual tag; now and then with another, so that objects meet numbers that are not theirs.
  std::uint32_t tagged(std::uint32_t few) {
    const std::uint32_t index = number(few, 256);
    return spoils && chance(0.02) ? index | static_cast<std::uint32_t>(uniform(0, 0xffff)) << 8 : usual(index);
  }
  /// The same command, mostly, or one that destroys another type of key.
  AdminOpcode destroys(AdminOpcode opcode) {
    static constexpr AdminOpcode kAll[] = {AdminOpcode::kDestroyMr, AdminOpcode::kDestroyMw,
                                           AdminOpcode::kDestroyFastMr};
    return chance(0.5) ? opcode : kAll[uniform(0, 2)];
  }
  std::uint32_t key(const AdminModel& model) {
    std::uint32_t index = number(10, 1 << hw::kMptIndexBits);
    if (chance(0.03)) index = (1u << hw::kMptIndexBits) + (index & 0xff);
    const auto found = model.regions.find(index);
    const auto tag =
        found != model.regions.end() && chance(0.8) ? found->second.tag : static_cast<std::uint32_t>(rng_() & 0xff);
    return index << 8 | tag;
  }
  /// Of a queue pair of type UD, if there is one, more often than not.
  std::uint32_t datagram_qpn(const AdminModel& model) {
    for (const auto& [index, qp] : model.qps)
      if (qp.send.qp_type == static_cast<std::uint8_t>(hw::QpType::kUd) && chance(0.6)) return qp.send.qpn;
    return qpn(model);
  }
  std::uint32_t qpn(const AdminModel& model) {
    const std::uint32_t index =
        chance(0.9) ? static_cast<std::uint32_t>(uniform(0, 3)) : static_cast<std::uint32_t>(uniform(0, 255));
    const auto found = model.qps.find(index);
    if (found != model.qps.end() && chance(0.85)) return found->second.send.qpn;
    if (chance(0.03)) return any();
    return static_cast<std::uint32_t>(rng_() & 0xffff00) | index;
  }

  std::mt19937_64& rng_;
};

}  // namespace rnic::test
