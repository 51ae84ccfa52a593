#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>

#include "driver/generated/host_interface.hpp"
#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/qp_attributes.hpp"

/// What the admin commands mean, written from the tables of the host interface: the objects that exist and the contexts
/// they should have.
namespace rnic::test {

using hw::AdminOpcode;
using hw::AdminStatus;
using hw::QpState;

template <typename Body>
Body body_of(const hw::AdminCommand& command) {
  return Body::decode(std::span<const std::uint8_t, 120>(command.body));
}
template <typename Body>
void set_body(hw::AdminCommand& command, const Body& body) {
  body.encode(std::span<std::uint8_t, 120>(command.body));
}

struct AdminModel {
  using Result = std::array<std::uint8_t, 48>;
  struct Qp {
    rtl::SendCtx send;
    rtl::RecvCtx recv;
  };
  std::map<std::uint32_t, rtl::EqCtx> eqs;
  std::map<std::uint32_t, rtl::CqCtx> cqs;
  std::map<std::uint32_t, rtl::SrqCtx> srqs;
  std::map<std::uint32_t, rtl::Mpt> regions;
  std::map<std::uint32_t, Qp> qps;
  std::map<std::uint32_t, rtl::Path> paths;
  std::map<std::array<std::uint8_t, 16>, std::set<std::uint32_t>> groups;  // QPNs that are attached to it
  std::map<std::uint32_t, std::array<std::uint32_t, hw::kQpCounters>>
      counters;  // by index; of one that was never created: nothing is known
  Result result{};

  /// CQs and SRQs are kept by index; a number names one when it has its tag too.
  template <typename Map>
  static bool named(const Map& map, std::uint32_t number) {
    const auto at = map.find(number & 0xff);
    return at != map.end() && at->second.tag == number >> 8;
  }

  /// Status of a command, and its effect.
  AdminStatus apply(const hw::AdminCommand& command) {
    result.fill(0);
    switch (static_cast<AdminOpcode>(command.opcode)) {
      case AdminOpcode::kQueryCapabilities: return capabilities();
      case AdminOpcode::kCreateEq: return create_eq(command);
      case AdminOpcode::kDestroyEq: return destroy_eq(command);
      case AdminOpcode::kQueryEq: return query_eq(command);
      case AdminOpcode::kCreateCq: return create_cq(command);
      case AdminOpcode::kDestroyCq: return destroy_cq(command);
      case AdminOpcode::kQueryCq: return query_cq(command);
      case AdminOpcode::kModifyCq: return modify_cq(command);
      case AdminOpcode::kResizeCq: return resize_cq(command);
      case AdminOpcode::kCreateMr: return create_mr(command);
      case AdminOpcode::kCreateMw: return create_mw(command);
      case AdminOpcode::kCreateFastMr: return create_fast_mr(command);
      case AdminOpcode::kDestroyMr:
      case AdminOpcode::kDestroyMw:
      case AdminOpcode::kDestroyFastMr: return destroy_key(command);
      case AdminOpcode::kQueryMr: return query_mr(command);
      case AdminOpcode::kCreateQp: return create_qp(command);
      case AdminOpcode::kDestroyQp: return destroy_qp(command);
      case AdminOpcode::kModifyQp: return modify_qp(command);
      case AdminOpcode::kQueryQp: return query_qp(command);
      case AdminOpcode::kQueryQpCounters: return query_counters(command);
      case AdminOpcode::kCreateSrq: return create_srq(command);
      case AdminOpcode::kDestroySrq: return destroy_srq(command);
      case AdminOpcode::kQuerySrq: return query_srq(command);
      case AdminOpcode::kModifySrq: return modify_srq(command);
      case AdminOpcode::kAttachMulticast:
      case AdminOpcode::kDetachMulticast: return change_group(command);
    }
    return AdminStatus::kBadOpcode;
  }

 private:
  template <typename T>
  AdminStatus answer(const T& value) {
    value.encode(result);
    return AdminStatus::kSuccess;
  }
  static bool uar_ok(unsigned uar) { return uar >= 1 && uar < 1u << hw::kUarIndexBits; }

  AdminStatus capabilities() {
    hw::AdminCapabilities c;
    c.log_max_qp = hw::kQpIndexBits;
    c.log_max_cq = hw::kCqIndexBits;
    c.log_max_eq = hw::kEqIndexBits;
    c.log_max_mr = hw::kMptIndexBits;
    c.log_max_queue_depth = hw::kMaxLogQueueDepth;
    c.log_max_cq_depth = hw::kMaxLogCqDepth;
    c.log_max_eq_depth = hw::kMaxLogEqDepth;
    c.max_sge = hw::kMaxSge;
    c.max_inline = hw::kMaxInlineBytes;
    c.max_rd_atomic = hw::kMaxReadsOutstanding;
    c.max_mtu = 5;
    c.uar_count = 127;
    c.msix_vectors = hw::kMsixVectors;
    c.max_message = hw::kMaxMessageBytes;
    c.clock_mhz = 250;
    c.max_fast_pages = hw::kMaxFastPages;
    c.log_max_mw = hw::kMptIndexBits;
    c.window_type1 = c.window_type2 = 1;
    c.max_multicast_groups = hw::kMulticastGroups;
    c.list_lines = hw::kListLines;
    c.log_max_srq = hw::kSrqIndexBits;
    c.log_max_srq_depth = hw::kMaxLogQueueDepth;
    return answer(c);
  }

  AdminStatus create_eq(const hw::AdminCommand& command) {
    const auto body = body_of<hw::AdminCreateEq>(command);
    if (command.number >= 1u << hw::kEqIndexBits) return AdminStatus::kBadNumber;
    if (body.base % 4096 || body.log_depth > hw::kMaxLogEqDepth || body.msix_vector >= hw::kMsixVectors)
      return AdminStatus::kBadParameter;
    if (eqs.contains(command.number)) return AdminStatus::kExists;
    auto& eq = eqs[command.number];
    eq.in_use = 1;
    eq.base = body.base;
    eq.log_depth = body.log_depth;
    eq.msix_vector = body.msix_vector;
    return AdminStatus::kSuccess;
  }
  AdminStatus destroy_eq(const hw::AdminCommand& command) {
    if (!eqs.contains(command.number)) return AdminStatus::kBadNumber;
    for (const auto& [number, cq] : cqs) {
      if (cq.eqn == command.number) return AdminStatus::kInUse;
    }
    for (const auto& [number, srq] : srqs) {
      if (srq.eqn == command.number) return AdminStatus::kInUse;
    }
    eqs.erase(command.number);
    return AdminStatus::kSuccess;
  }
  AdminStatus query_eq(const hw::AdminCommand& command) {
    if (!eqs.contains(command.number)) return AdminStatus::kBadNumber;
    const auto& eq = eqs[command.number];
    hw::AdminQueueState state;
    state.producer_index = eq.pi;
    state.consumer_index = eq.ci;
    state.log_depth = eq.log_depth;
    return answer(state);
  }

  AdminStatus create_cq(const hw::AdminCommand& command) {
    const auto body = body_of<hw::AdminCreateCq>(command);
    if (command.number >> 24) return AdminStatus::kBadNumber;
    if (body.base % 4096 || body.log_depth > hw::kMaxLogCqDepth || !uar_ok(body.uar)) return AdminStatus::kBadParameter;
    if (cqs.contains(command.number & 0xff)) return AdminStatus::kExists;
    if (!eqs.contains(body.eqn)) return AdminStatus::kBadNumber;
    auto& cq = cqs[command.number & 0xff];
    cq.in_use = 1;
    cq.base = body.base;
    cq.log_depth = body.log_depth;
    cq.eqn = body.eqn;
    cq.uar = body.uar;
    cq.tag = static_cast<std::uint16_t>(command.number >> 8);
    return AdminStatus::kSuccess;
  }
  AdminStatus destroy_cq(const hw::AdminCommand& command) {
    if (!named(cqs, command.number)) return AdminStatus::kBadNumber;
    for (const auto& [index, qp] : qps) {
      if (qp.send.cqn == (command.number & 0xff) || qp.recv.cqn == (command.number & 0xff)) return AdminStatus::kInUse;
    }
    cqs.erase(command.number & 0xff);
    return AdminStatus::kSuccess;
  }
  AdminStatus query_cq(const hw::AdminCommand& command) {
    if (!named(cqs, command.number)) return AdminStatus::kBadNumber;
    const auto& cq = cqs[command.number & 0xff];
    hw::AdminQueueState state;
    state.producer_index = cq.pi;
    state.consumer_index = cq.ci;
    state.log_depth = cq.log_depth;
    state.arm = cq.arm;
    state.overrun = cq.overrun;
    return answer(state);
  }

  AdminStatus create_srq(const hw::AdminCommand& command) {
    const auto body = body_of<hw::AdminCreateSrq>(command);
    if (command.number >> 24) return AdminStatus::kBadNumber;
    if (body.base % 4096 || body.log_depth > hw::kMaxLogQueueDepth || !uar_ok(body.uar))
      return AdminStatus::kBadParameter;
    if (body.log_stride < hw::kMinLogReceiveStride || body.log_stride > hw::kMaxLogStride)
      return AdminStatus::kBadParameter;
    if (srqs.contains(command.number & 0xff)) return AdminStatus::kExists;
    if (!eqs.contains(body.eqn)) return AdminStatus::kBadNumber;
    auto& srq = srqs[command.number & 0xff];
    srq.in_use = 1;
    srq.eqn = body.eqn;
    srq.uar = body.uar;
    srq.pd = body.pd;
    srq.base = body.base;
    srq.log_depth = body.log_depth;
    srq.log_stride = body.log_stride;
    srq.limit = body.limit;
    srq.tag = static_cast<std::uint16_t>(command.number >> 8);
    return AdminStatus::kSuccess;
  }
  AdminStatus destroy_srq(const hw::AdminCommand& command) {
    if (!named(srqs, command.number)) return AdminStatus::kBadNumber;
    for (const auto& [index, qp] : qps) {
      if (qp.recv.srq && qp.recv.srqn == (command.number & 0xff)) return AdminStatus::kInUse;
    }
    srqs.erase(command.number & 0xff);
    return AdminStatus::kSuccess;
  }
  AdminStatus query_srq(const hw::AdminCommand& command) {
    if (!named(srqs, command.number)) return AdminStatus::kBadNumber;
    const auto& srq = srqs[command.number & 0xff];
    hw::AdminSrqState state;
    state.producer_index = srq.pi;
    state.head = srq.head;
    state.limit = srq.limit;
    state.log_depth = srq.log_depth;
    state.error = srq.error;
    return answer(state);
  }
  AdminStatus modify_srq(const hw::AdminCommand& command) {
    const auto body = body_of<hw::AdminModifySrq>(command);
    if (command.number >> 24) return AdminStatus::kBadNumber;
    if (body.set_ring && (body.base % 4096 || body.log_depth > hw::kMaxLogQueueDepth))
      return AdminStatus::kBadParameter;
    if (!named(srqs, command.number)) return AdminStatus::kBadNumber;
    auto& srq = srqs[command.number & 0xff];
    if (body.set_ring && static_cast<std::uint16_t>(srq.pi - srq.head) > 1u << body.log_depth)
      return AdminStatus::kBadParameter;
    if (body.set_limit) srq.limit = body.limit, srq.limit_hit = 0;
    if (body.set_ring) srq.base = body.base, srq.log_depth = body.log_depth;
    return AdminStatus::kSuccess;
  }

  AdminStatus modify_cq(const hw::AdminCommand& command) {
    if (!named(cqs, command.number)) return AdminStatus::kBadNumber;
    const auto body = body_of<hw::AdminModifyCq>(command);
    cqs[command.number & 0xff].moderate_count = body.count;
    cqs[command.number & 0xff].moderate_period = body.period;
    return AdminStatus::kSuccess;
  }
  AdminStatus resize_cq(const hw::AdminCommand& command) {
    const auto body = body_of<hw::AdminResizeCq>(command);
    if (command.number >> 24) return AdminStatus::kBadNumber;
    if (body.base % 4096 || body.log_depth > hw::kMaxLogCqDepth) return AdminStatus::kBadParameter;
    if (!named(cqs, command.number)) return AdminStatus::kBadNumber;
    auto& cq = cqs[command.number & 0xff];
    if (cq.overrun) return AdminStatus::kBadState;
    if (((cq.pi - cq.ci) & 0xffffff) > 1u << body.log_depth) return AdminStatus::kTooSmall;
    cq.base = body.base;
    cq.log_depth = body.log_depth;
    cq.origin = cq.pi;
    return query_cq(command);
  }

  AdminStatus create_mr(const hw::AdminCommand& command) {
    const auto body = body_of<hw::AdminCreateMr>(command);
    const std::uint32_t index = command.number >> 8;
    if (index >= 1u << hw::kMptIndexBits) return AdminStatus::kBadNumber;
    if (body.length == 0 || body.length > 1ULL << 47) return AdminStatus::kBadParameter;
    if (body.va + (body.length - 1) < body.va) return AdminStatus::kBadParameter;
    if (body.page_list % 64 || body.log_page < 12 || body.log_page > 30) return AdminStatus::kBadParameter;
    if ((body.remote_write || body.remote_atomic) && !body.local_write) return AdminStatus::kBadParameter;
    if (regions.contains(index)) return AdminStatus::kExists;
    auto& region = regions[index];
    region.state = static_cast<std::uint8_t>(rtl::MptState::kValid);
    region.tag = static_cast<std::uint8_t>(command.number);
    region.pd = body.pd;
    region.log_page = body.log_page;
    region.local_write = body.local_write;
    region.read_sink = body.read_sink;
    region.remote_read = body.remote_read;
    region.remote_write = body.remote_write;
    region.remote_atomic = body.remote_atomic;
    region.window_bind = body.window_bind;
    region.va = body.va;
    region.length = body.length;
    region.page_list = body.page_list;
    return AdminStatus::kSuccess;
  }
  /// A free entry for the key of a create, in this state.
  AdminStatus claim(const hw::AdminCommand& command, hw::MptType type, std::uint32_t pd) {
    const std::uint32_t index = command.number >> 8;
    if (regions.contains(index)) return AdminStatus::kExists;
    auto& entry = regions[index];
    entry.mpt_type = static_cast<std::uint8_t>(type);
    entry.state = static_cast<std::uint8_t>(rtl::MptState::kInvalid);
    entry.tag = static_cast<std::uint8_t>(command.number);
    entry.pd = pd;
    return AdminStatus::kSuccess;
  }
  AdminStatus create_mw(const hw::AdminCommand& command) {
    const auto body = body_of<hw::AdminCreateMw>(command);
    if (command.number >> 8 >= 1u << hw::kMptIndexBits) return AdminStatus::kBadNumber;
    if (body.window_type != 1 && body.window_type != 2) return AdminStatus::kBadParameter;
    return claim(command, static_cast<hw::MptType>(body.window_type), body.pd);
  }
  AdminStatus create_fast_mr(const hw::AdminCommand& command) {
    const auto body = body_of<hw::AdminCreateFastMr>(command);
    if (command.number >> 8 >= 1u << hw::kMptIndexBits) return AdminStatus::kBadNumber;
    if (body.max_pages == 0 || body.max_pages > hw::kMaxFastPages) return AdminStatus::kBadParameter;
    if (body.list_lines > hw::kMaxRegionLines || body.list_line + body.list_lines > int(hw::kListLines))
      return AdminStatus::kBadParameter;
    const auto status = claim(command, hw::MptType::kFastRegion, body.pd);
    if (status != AdminStatus::kSuccess) return status;
    auto& entry = regions[command.number >> 8];
    entry.max_pages = static_cast<std::uint16_t>(body.max_pages);
    entry.remote_ok = body.remote_access;
    entry.window_bind = body.window_bind;
    entry.list_line = body.list_line;
    entry.list_lines = body.list_lines;
    return status;
  }
  static bool is_region(const rtl::Mpt& entry) {
    return entry.mpt_type == static_cast<std::uint8_t>(hw::MptType::kRegion);
  }
  static bool is_bound(const rtl::Mpt& entry) {
    const auto type = static_cast<hw::MptType>(entry.mpt_type);
    return (type == hw::MptType::kWindow1 || type == hw::MptType::kWindow2) &&
           entry.state == static_cast<std::uint8_t>(rtl::MptState::kValid);
  }
  /// The tag counts for plain regions only.
  bool has_key(std::uint32_t key) const {
    const auto found = regions.find(key >> 8);
    return found != regions.end() && (!is_region(found->second) || found->second.tag == (key & 0xff));
  }
  AdminStatus destroy_key(const hw::AdminCommand& command) {
    if (!has_key(command.number)) return AdminStatus::kBadNumber;
    auto& entry = regions[command.number >> 8];
    auto opcode = AdminOpcode::kDestroyMw;
    if (is_region(entry)) opcode = AdminOpcode::kDestroyMr;
    if (entry.mpt_type == static_cast<std::uint8_t>(hw::MptType::kFastRegion)) opcode = AdminOpcode::kDestroyFastMr;
    if (command.opcode != static_cast<std::uint8_t>(opcode)) return AdminStatus::kBadNumber;
    if (entry.bound) return AdminStatus::kInUse;
    if (is_bound(entry)) --regions[entry.mr_index].bound;
    regions.erase(command.number >> 8);
    return AdminStatus::kSuccess;
  }
  void unbind_windows(unsigned qp) {
    for (auto& [index, entry] : regions) {
      if (!is_bound(entry) || entry.mpt_type != static_cast<std::uint8_t>(hw::MptType::kWindow2) || entry.qp != qp)
        continue;
      entry.state = static_cast<std::uint8_t>(rtl::MptState::kInvalid);
      --regions[entry.mr_index].bound;
    }
  }
  AdminStatus query_mr(const hw::AdminCommand& command) {
    if (!has_key(command.number)) return AdminStatus::kBadNumber;
    const auto& region = regions[command.number >> 8];
    hw::AdminMrState state;
    state.va = region.va;
    state.length = region.length;
    state.pd = region.pd;
    state.log_page = region.log_page;
    state.local_write = region.local_write;
    state.read_sink = region.read_sink;
    state.remote_read = region.remote_read;
    state.remote_write = region.remote_write;
    state.remote_atomic = region.remote_atomic;
    state.window_bind = region.window_bind;
    state.remote_access = region.remote_ok;
    state.valid = region.state == static_cast<std::uint8_t>(rtl::MptState::kValid);
    state.mpt_type = region.mpt_type;
    state.tag = region.tag;
    state.bound_qp = region.qp;
    state.bound_windows = region.bound;
    state.max_pages = region.max_pages;
    state.mr_index = region.mr_index;
    return answer(state);
  }

  AdminStatus create_qp(const hw::AdminCommand& command) {
    const auto body = body_of<hw::AdminCreateQp>(command);
    auto depth_ok = [](unsigned depth) { return depth >= hw::kMinLogQueueDepth && depth <= hw::kMaxLogQueueDepth; };
    if (command.number >> 24) return AdminStatus::kBadNumber;
    if (body.sq_base % 4096 || body.retired_address % 8 || !uar_ok(body.uar)) return AdminStatus::kBadParameter;
    if (!depth_ok(body.sq_log_depth)) return AdminStatus::kBadParameter;
    if (body.sq_log_stride < hw::kMinLogSendStride || body.sq_log_stride > hw::kMaxLogStride)
      return AdminStatus::kBadParameter;
    if (!body.use_srq) {
      if (body.rq_base % 4096 || !depth_ok(body.rq_log_depth)) return AdminStatus::kBadParameter;
      if (body.rq_log_stride < hw::kMinLogReceiveStride || body.rq_log_stride > hw::kMaxLogStride)
        return AdminStatus::kBadParameter;
    }
    if (body.qp_type > 3) return AdminStatus::kBadParameter;
    const bool is_raw = body.qp_type == static_cast<std::uint8_t>(hw::QpType::kRawPacket);
    if (is_raw && body.uar != hw::kKernelUar) return AdminStatus::kBadParameter;
    if (body.use_srq && (is_raw || body.qp_type == 1)) return AdminStatus::kBadParameter;
    // 10.2.4.1: QP1 is a datagram queue pair of privileged software.
    if (command.number == hw::kMulticastQpn || command.number == 0) return AdminStatus::kBadParameter;  // 10.5.2
    if (command.number == 1 && (body.uar != hw::kKernelUar || body.qp_type != 3)) return AdminStatus::kBadParameter;
    if (qps.contains(command.number & 0xff)) return AdminStatus::kExists;
    if (!named(cqs, body.send_cqn) || !named(cqs, body.receive_cqn)) return AdminStatus::kBadNumber;
    if (body.use_srq && !named(srqs, body.srqn)) return AdminStatus::kBadNumber;
    counters[command.number & 0xff] = {};
    auto& [send, recv] = qps[command.number & 0xff];
    send.in_use = recv.in_use = 1;
    send.qp_type = recv.qp_type = body.qp_type;
    send.qpn = recv.qpn = command.number;
    send.pd = recv.pd = body.pd;
    send.uar = recv.uar = body.uar;
    send.cqn = static_cast<std::uint8_t>(body.send_cqn);
    recv.cqn = static_cast<std::uint8_t>(body.receive_cqn);
    send.sq_base = body.sq_base;
    recv.rq_base = body.rq_base;
    recv.srq = body.use_srq;
    recv.srqn = static_cast<std::uint8_t>(body.srqn);
    send.log_depth = body.sq_log_depth;
    recv.log_depth = body.rq_log_depth & 0xf;
    send.log_stride = body.sq_log_stride;
    recv.log_stride = body.rq_log_stride & 0xf;
    send.retired_address = body.retired_address;
    send.fast_register = body.fast_register;
    return AdminStatus::kSuccess;
  }
  bool has_qp(std::uint32_t qpn) const {
    const auto found = qps.find(qpn & 0xff);
    return found != qps.end() && found->second.send.qpn == qpn;
  }
  AdminStatus destroy_qp(const hw::AdminCommand& command) {
    if (!has_qp(command.number)) return AdminStatus::kBadNumber;
    for (const auto& [group, members] : groups)
      if (members.contains(command.number)) return AdminStatus::kInUse;
    unbind_windows(command.number & 0xff);
    qps.erase(command.number & 0xff);
    return AdminStatus::kSuccess;
  }
  AdminStatus change_group(const hw::AdminCommand& command) {
    const auto mgid = body_of<hw::AdminMulticast>(command).mgid;
    constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    const bool ipv4 = std::equal(kMapped.begin(), kMapped.end(), mgid.begin());
    if (command.number >> 24) return AdminStatus::kBadNumber;
    if (mgid[0] != 0xff && !(ipv4 && mgid[12] >> 4 == 0xe)) return AdminStatus::kBadParameter;
    if (!has_qp(command.number)) return AdminStatus::kBadNumber;
    if (qps[command.number & 0xff].send.qp_type != static_cast<std::uint8_t>(hw::QpType::kUd))
      return AdminStatus::kBadParameter;
    const auto group = groups.find(mgid);
    const bool attached = group != groups.end() && group->second.contains(command.number);
    if (static_cast<AdminOpcode>(command.opcode) == AdminOpcode::kAttachMulticast) {
      if (attached) return AdminStatus::kExists;
      if (group == groups.end() && groups.size() == hw::kMulticastGroups) return AdminStatus::kNoGroup;
      groups[mgid].insert(command.number);
      return AdminStatus::kSuccess;
    }
    if (!attached) return AdminStatus::kNotAttached;
    group->second.erase(command.number);
    if (group->second.empty()) groups.erase(group);
    return AdminStatus::kSuccess;
  }
  AdminStatus query_qp(const hw::AdminCommand& command) {
    if (!has_qp(command.number)) return AdminStatus::kBadNumber;
    const auto& [send, recv] = qps[command.number & 0xff];
    hw::AdminQpState state;
    const auto err = static_cast<std::uint8_t>(QpState::kErr);
    state.state = recv.state == err ? err : send.state;
    state.outstanding_reads = send.rd_outstanding;
    const bool drained = send.retire_idx == send.exec_idx && send.msg_active == 0 && send.next_psn == send.max_psn;
    state.sq_draining = send.state == static_cast<std::uint8_t>(QpState::kSqd) && !drained;
    state.sq_producer = send.pi;
    state.sq_executed = send.exec_idx;
    state.sq_retired = send.retire_idx;
    state.rq_producer = recv.rq_pi;
    state.rq_head = recv.rq_head;
    state.sq_psn = send.next_psn;
    state.una_psn = send.una_psn;
    state.rq_psn = recv.epsn;
    return answer(state);
  }

  AdminStatus query_counters(const hw::AdminCommand& command) {
    if (!has_qp(command.number)) return AdminStatus::kBadNumber;
    const auto body = body_of<hw::AdminQueryQpCounters>(command);
    auto& all = counters[command.number & 0xff];
    for (std::size_t i = 0; i < 12; ++i) {
      auto& one = all[(body.upper ? 12 : 0) + i];
      for (std::size_t k = 0; k < 4; ++k) result[4 * i + k] = static_cast<std::uint8_t>(one >> 8 * k);
      if (body.clear) one = 0;
    }
    return AdminStatus::kSuccess;
  }

  static bool is_ipv4(const std::array<std::uint8_t, 16>& ip) {
    return std::all_of(ip.begin(), ip.begin() + 10, [](auto b) { return b == 0; }) && ip[10] == 0xff && ip[11] == 0xff;
  }
  /// Status of a ModifyQp by the tables, and its fields.
  static AdminStatus judge(const rtl::SendCtx& send, const hw::AdminModifyQp& body) {
    const unsigned from = send.state;
    const auto type = static_cast<hw::QpType>(send.qp_type);
    const auto* row = transition_row(from, body.next_state, type);
    const std::uint32_t given = body.attr_mask & ~static_cast<std::uint32_t>(hw::QpAttr::kState);
    if (row == nullptr || (given & ~(row->required | row->optional)) != 0) return AdminStatus::kBadState;
    // What is still to be flushed in SQE has to be, before anything new can be sent.
    const auto to = static_cast<QpState>(body.next_state);
    const bool leaves = to == QpState::kErr || to == QpState::kReset;
    if (send.state == static_cast<std::uint8_t>(QpState::kSqe) && send.retire_idx != send.pi && !leaves)
      return AdminStatus::kBadState;
    const auto has = [&](hw::QpAttr attr) { return (given & static_cast<std::uint32_t>(attr)) != 0; };
    if (has(hw::QpAttr::kCurState) && body.cur_state != from) return AdminStatus::kBadState;
    if ((row->required & ~given) != 0) return AdminStatus::kBadParameter;
    if (has(hw::QpAttr::kAv) && type != hw::QpType::kUd && !body.ipv6 &&
        !(is_ipv4(body.source_ip) && is_ipv4(body.dest_ip)))
      return AdminStatus::kBadParameter;
    if (has(hw::QpAttr::kAv) && type != hw::QpType::kUd && body.vlan && body.vlan_id == 0xfff)
      return AdminStatus::kBadParameter;
    if (has(hw::QpAttr::kPathMtu) && (body.path_mtu < 1 || body.path_mtu > 5)) return AdminStatus::kBadParameter;
    if (has(hw::QpAttr::kTimeout) && body.ack_timeout > 31) return AdminStatus::kBadParameter;
    if (has(hw::QpAttr::kRetryCnt) && body.retry_count > 7) return AdminStatus::kBadParameter;
    if (has(hw::QpAttr::kRnrRetry) && body.rnr_retry > 7) return AdminStatus::kBadParameter;
    if (has(hw::QpAttr::kMaxRdAtomic) && body.max_rd_atomic > hw::kMaxReadsOutstanding)
      return AdminStatus::kBadParameter;
    if (has(hw::QpAttr::kMaxDestRdAtomic) && body.max_dest_rd_atomic > hw::kMaxReadsOutstanding)
      return AdminStatus::kBadParameter;
    if (has(hw::QpAttr::kMinRnrTimer) && body.min_rnr_timer > 31) return AdminStatus::kBadParameter;
    return AdminStatus::kSuccess;
  }
  AdminStatus modify_qp(const hw::AdminCommand& command) {
    const auto body = body_of<hw::AdminModifyQp>(command);
    if (!has_qp(command.number)) return AdminStatus::kBadNumber;
    auto& [send, recv] = qps[command.number & 0xff];
    const auto to = static_cast<QpState>(body.next_state);
    if (const auto status = judge(send, body); status != AdminStatus::kSuccess) return status;
    if (to == QpState::kReset || to == QpState::kErr) unbind_windows(command.number & 0xff);
    if (to == QpState::kReset) {
      rtl::SendCtx s;
      rtl::RecvCtx r;
      s.in_use = r.in_use = 1;
      s.qp_type = r.qp_type = send.qp_type;
      s.qpn = r.qpn = send.qpn;
      s.pd = r.pd = send.pd;
      s.uar = r.uar = send.uar;
      s.cqn = send.cqn, r.cqn = recv.cqn;
      s.sq_base = send.sq_base, r.rq_base = recv.rq_base;
      s.log_depth = send.log_depth, r.log_depth = recv.log_depth;
      s.log_stride = send.log_stride, r.log_stride = recv.log_stride;
      s.retired_address = send.retired_address;
      r.srq = recv.srq, r.srqn = recv.srqn;
      s.fast_register = send.fast_register;
      send = s;
      recv = r;
      return AdminStatus::kSuccess;
    }
    if (to == QpState::kErr) {
      send.state = recv.state = body.next_state;
      return AdminStatus::kSuccess;
    }
    const auto has = [&](hw::QpAttr attr) { return (body.attr_mask & static_cast<std::uint32_t>(attr)) != 0; };
    if (has(hw::QpAttr::kPkeyIndex) || has(hw::QpAttr::kAv) || has(hw::QpAttr::kDestQpn)) {
      paths[command.number & 0xff] = {.ipv6 = body.ipv6,
                                      .dest_qpn = body.dest_qpn,
                                      .pkey = body.pkey,
                                      .traffic_class = body.traffic_class,
                                      .hop_limit = body.hop_limit,
                                      .udp_source_port = body.udp_source_port,
                                      .flow_label = body.flow_label & 0xfffff,
                                      .dest_mac = body.dest_mac,
                                      .vlan_id = body.vlan_id,
                                      .vlan = body.vlan,
                                      .pcp = body.pcp,
                                      .source_ip = body.source_ip,
                                      .dest_ip = body.dest_ip};
    }
    if (has(hw::QpAttr::kAccessFlags)) {
      recv.remote_write = body.remote_write;
      recv.remote_read = body.remote_read;
      recv.remote_atomic = body.remote_atomic;
    }
    if (has(hw::QpAttr::kPathMtu)) send.mtu = recv.mtu = body.path_mtu;
    if (has(hw::QpAttr::kMaxDestRdAtomic)) recv.max_dest_rd = body.max_dest_rd_atomic;
    if (has(hw::QpAttr::kMinRnrTimer)) recv.min_rnr_timer = body.min_rnr_timer;
    if (has(hw::QpAttr::kRqPsn)) recv.epsn = body.rq_psn;
    if (has(hw::QpAttr::kMaxRdAtomic)) send.max_rd = body.max_rd_atomic;
    if (has(hw::QpAttr::kQkey)) send.qkey = recv.qkey = body.qkey;
    if (has(hw::QpAttr::kTimeout)) send.ack_timeout = body.ack_timeout;
    if (has(hw::QpAttr::kRetryCnt)) send.retry_count = send.retry_left = body.retry_count;
    if (has(hw::QpAttr::kRnrRetry)) send.rnr_retry = send.rnr_left = body.rnr_retry;
    if (has(hw::QpAttr::kSqPsn)) send.next_psn = send.una_psn = send.max_psn = body.sq_psn;
    if (send.state == static_cast<std::uint8_t>(QpState::kSqe)) {  // the queue begins anew where it stands
      send.exec_idx = send.retire_idx;
      send.msg_active = send.msg_off = send.resume = send.sge_idx = send.sge_off = send.buf_count = send.ahead = 0;
      send.fault = 0;
      send.turned = 1;
      send.fetch_gen = (send.fetch_gen + 1) & 15;
      send.una_psn = send.max_psn = send.next_psn;
    }
    send.sqd_notify = has(hw::QpAttr::kSqdNotify) && body.sqd_notify;
    send.state = recv.state = body.next_state;
    return AdminStatus::kSuccess;
  }
};

}  // namespace rnic::test
