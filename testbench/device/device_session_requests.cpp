// The steps of a DeviceSession that post requests.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "driver/nd2/ndspi.h"
#include "testbench/device/device_session.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint8_t kAddressPort = 1;

umd::RequestKind kind_of(const VectorStep& step) {
  switch (step.kind) {
    case StepKind::kWrite: return umd::RequestKind::kWrite;
    case StepKind::kRead: return umd::RequestKind::kRead;
    case StepKind::kCompareSwap: return umd::RequestKind::kCompareSwap;
    case StepKind::kFetchAdd: return umd::RequestKind::kFetchAdd;
    default: return umd::RequestKind::kSend;
  }
}

ibv_wr_opcode opcode_for(const VectorStep& step) {
  switch (step.kind) {
    case StepKind::kWrite: return step.immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    case StepKind::kRead: return IBV_WR_RDMA_READ;
    case StepKind::kCompareSwap: return IBV_WR_ATOMIC_CMP_AND_SWP;
    case StepKind::kFetchAdd: return IBV_WR_ATOMIC_FETCH_AND_ADD;
    default: break;
  }
  if (!step.invalidate.empty()) return IBV_WR_SEND_WITH_INV;
  return step.immediate ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
}

unsigned send_flags(std::uint32_t flags) {
  unsigned to = (flags & ND_OP_FLAG_SILENT_SUCCESS) != 0 ? 0 : static_cast<unsigned>(IBV_SEND_SIGNALED);
  if ((flags & ND_OP_FLAG_READ_FENCE) != 0) to |= IBV_SEND_FENCE;
  if ((flags & ND_OP_FLAG_SEND_AND_SOLICIT_EVENT) != 0) to |= IBV_SEND_SOLICITED;
  if ((flags & ND_OP_FLAG_INLINE) != 0) to |= IBV_SEND_INLINE;
  return to;
}

}  // namespace

std::uint64_t DeviceSession::note(umd::RequestKind kind, std::uint64_t context) {
  requests_.push_back({kind, context});
  return requests_.size() - 1;
}

/// The list is the caller's again as soon as the call has returned: it is overwritten.
void DeviceSession::post(const VectorStep& step) {
  auto list = sges(step);
  const auto forget = [&list] {
    if (!list.empty()) std::memset(list.data(), 0xA5, list.size() * sizeof list.front());
  };
  if (step.kind == StepKind::kReceive) {
    post_receive(step, list);
    return forget();
  }
  ibv_send_wr request{}, *bad = nullptr;
  request.wr_id = note(kind_of(step), step.context);
  request.sg_list = list.data();
  request.num_sge = static_cast<int>(list.size());
  request.opcode = opcode_for(step);
  request.send_flags = send_flags(step.flags);
  if (step.immediate) request.imm_data = htonl(*step.immediate);
  if (!step.invalidate.empty()) request.invalidate_rkey = remote_key(step.invalidate);
  aim(step, request);
  const int error = ibv_post_send(pair(step).qp.get(), &request, &bad);
  forget();
  expect_call(step, "ibv_post_send", error);
}

/// Where a request goes.
void DeviceSession::aim(const VectorStep& step, ibv_send_wr& request) {
  if (step.kind == StepKind::kCompareSwap || step.kind == StepKind::kFetchAdd) {
    request.wr.atomic.remote_addr = address(step.remote);
    request.wr.atomic.rkey = key(step.remote, true);
    request.wr.atomic.compare_add = step.kind == StepKind::kFetchAdd ? step.swap_add : step.compare;
    request.wr.atomic.swap = step.swap_add;
  } else if (step.kind != StepKind::kSend) {
    request.wr.rdma.remote_addr = address(step.remote);
    request.wr.rdma.rkey = key(step.remote, true);
  }
  if (setup_.type != hw::QpType::kUd) return;
  auto& own = side(step);
  const auto& peer = sides_.at(1 - step.host);
  const std::size_t which = step.to.ipv6 ? 1 : 0;
  if (own.gid_index.at(which) < 0 || peer.gid_index.at(which) < 0)
    throw DeviceLacks("no RoCE v2 GID of that version of IP");
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = kAddressPort;
  attr.grh = {.dgid = peer.gid.at(which),
              .flow_label = step.to.flow_label,
              .sgid_index = static_cast<std::uint8_t>(own.gid_index.at(which)),
              .hop_limit = step.to.hop_limit,
              .traffic_class = step.to.traffic_class};
  if (step.to.group) std::copy(step.to.group->gid.begin(), step.to.group->gid.end(), attr.grh.dgid.raw);
  ibv_ah* const handle = verbs_.create_ah(own.pd.get(), &attr);
  if (handle == nullptr) throw DeviceDisagrees(fmt::format("{}: ibv_create_ah: {}", step.text, std::strerror(errno)));
  own.handles.emplace_back(handle, verbs_.destroy_ah);
  request.wr.ud.ah = handle;
  request.wr.ud.remote_qpn = (step.to.group ? hw::kMulticastQpn : peer.pairs.at(step.to.qp).qpn) ^ step.to.qpn_xor;
  request.wr.ud.remote_qkey = step.to.qkey;
}

void DeviceSession::post_receive(const VectorStep& step, std::vector<ibv_sge>& list) {
  ibv_recv_wr request{}, *bad = nullptr;
  request.wr_id = note(umd::RequestKind::kReceive, step.context);
  request.sg_list = list.data();
  request.num_sge = static_cast<int>(list.size());
  auto& of = side(step);
  const int error =
      of.srq ? ibv_post_srq_recv(of.srq.get(), &request, &bad) : ibv_post_recv(pair(step).qp.get(), &request, &bad);
  expect_call(step, of.srq ? "ibv_post_srq_recv" : "ibv_post_recv", error);
}

/// Made with its first use.
DeviceSession::Window& DeviceSession::window(const VectorStep& step) {
  auto& of = side(step);
  auto& entry = windows_[step.window];
  if (entry.mw) return entry;
  if ((of.limits.device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)) == 0)
    throw DeviceLacks("no memory windows of type 2");
  ibv_mw* const mw = ibv_alloc_mw(of.pd.get(), IBV_MW_TYPE_2);
  if (mw == nullptr) throw DeviceDisagrees(fmt::format("{}: ibv_alloc_mw: {}", step.text, std::strerror(errno)));
  entry.mw = {mw, [](ibv_mw* one) { return ibv_dealloc_mw(one); }};
  entry.key = mw->rkey;
  return entry;
}

void DeviceSession::bind(const VectorStep& step) {
  auto& entry = window(step);
  const auto& from = regions_.at(step.name);
  ibv_send_wr request{}, *bad = nullptr;
  request.wr_id = note(umd::RequestKind::kBind, step.context);
  request.opcode = IBV_WR_BIND_MW;
  request.send_flags = send_flags(step.flags & ~std::uint32_t{ND_OP_FLAG_INLINE});
  request.bind_mw.mw = entry.mw.get();
  request.bind_mw.rkey = ibv_inc_rkey(entry.key);
  unsigned access = 0;
  if ((step.flags & ND_OP_FLAG_ALLOW_READ) != 0) access |= IBV_ACCESS_REMOTE_READ;
  if ((step.flags & ND_OP_FLAG_ALLOW_WRITE) != 0) access |= IBV_ACCESS_REMOTE_WRITE;
  request.bind_mw.bind_info = {.mr = from.mr.get(),
                               .addr = reinterpret_cast<std::uint64_t>(from.memory.get()) + step.offset,
                               .length = step.length,
                               .mw_access_flags = access};
  const int error = ibv_post_send(pair(step).qp.get(), &request, &bad);
  if (error == 0) entry.stale_key = std::exchange(entry.key, request.bind_mw.rkey);
  expect_call(step, "ibv_post_send of a bind", error);
}

void DeviceSession::invalidate(const VectorStep& step) {
  ibv_send_wr request{}, *bad = nullptr;
  request.wr_id = note(umd::RequestKind::kInvalidate, step.context);
  request.opcode = IBV_WR_LOCAL_INV;
  request.send_flags = send_flags(step.flags);
  request.invalidate_rkey = window(step).key;
  expect_call(step, "ibv_post_send of an invalidation", ibv_post_send(pair(step).qp.get(), &request, &bad));
}

std::vector<ibv_sge> DeviceSession::sges(const VectorStep& step) {
  std::vector<ibv_sge> list;
  for (const auto& place : step.sge) list.push_back({address(place), place.length, key(place, false)});
  return list;
}

std::uint32_t DeviceSession::key(const VectorPlace& place, bool remote) {
  if (place.token == TokenChange::kWindow) return windows_.at(place.token_of).key;
  if (place.token == TokenChange::kStaleWindow) return windows_.at(place.token_of).stale_key;
  const auto& of = regions_.at(place.token == TokenChange::kOther ? place.token_of : place.region);
  return corrupted(remote ? of.remote_key : of.local_key, place.token);
}

std::uint64_t DeviceSession::address(const VectorPlace& place) {
  const auto& of = regions_.at(place.region);
  return place.address.value_or(reinterpret_cast<std::uint64_t>(of.memory.get()) +
                                static_cast<std::uint64_t>(place.offset));
}

std::uint32_t DeviceSession::remote_key(const std::string& name) {
  const auto it = windows_.find(name);
  return it != windows_.end() ? it->second.key : regions_.at(name).remote_key;
}

}  // namespace rnic::testbench
