// The steps of a VectorSession that post requests.
#include "testbench/verify/vector_session.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "driver/nd2/memory_window.hpp"
#include "driver/umd/memory_request.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kPageBytes = 4096;

std::vector<umd::Segment> segments_of(const std::vector<ND2_SGE>& list) {
  std::vector<umd::Segment> segments;
  for (const auto& sge : list)
    segments.push_back({reinterpret_cast<std::uint64_t>(sge.Buffer), sge.BufferLength, sge.MemoryRegionToken});
  return segments;
}

umd::MemoryOptions options_of(const VectorStep& step) {
  return {.id = step.context,
          .silent = (step.op_flags & ND_OP_FLAG_SILENT_SUCCESS) != 0,
          .fence = (step.op_flags & ND_OP_FLAG_READ_FENCE) != 0,
          .defer = step.defer};
}

hw::WqeOpcode wqe_opcode(const VectorStep& step) {
  switch (step.kind) {
    case StepKind::kWrite: return step.immediate ? hw::WqeOpcode::kWriteImmediate : hw::WqeOpcode::kWrite;
    case StepKind::kRead: return hw::WqeOpcode::kRead;
    case StepKind::kCompareSwap: return hw::WqeOpcode::kCompareSwap;
    case StepKind::kFetchAdd: return hw::WqeOpcode::kFetchAdd;
    default: break;
  }
  if (!step.invalidate.empty()) return hw::WqeOpcode::kSendInvalidate;
  return step.immediate ? hw::WqeOpcode::kSendImmediate : hw::WqeOpcode::kSend;
}

}  // namespace

/// The list of segments is the client's again as soon as the call has returned: it is overwritten.
void VectorSession::post(const VectorStep& step) {
  auto list = sges(step);
  const auto forget = [&list] {
    if (!list.empty()) std::memset(list.data(), 0xA5, list.size() * sizeof list.front());
  };
  if (step.kind == StepKind::kReceive) {
    const HRESULT status = post_receive(step, list);
    forget();
    expect_status(step, status);
    if (status == ND_SUCCESS) (side(step).srq ? side(step).srq_has_receive : pair(step).has_receive) = true;
    // In an ordinary world its doorbell is there before a request that is posted at the peer from now on.
    if (const std::uint64_t way = way_ns(step.host); way != 0) side(step).endpoint->device().elapse(way);
    return;
  }
  const bool below = step.immediate || step.defer || step.ip_csum || !step.invalidate.empty() ||
                     step.kind == StepKind::kCompareSwap || step.kind == StepKind::kFetchAdd;
  if (below || !pair(step).face) {
    const HRESULT status = post_to_core(step, list);
    forget();
    return expect_status(step, status);
  }
  auto& qp = *pair(step).face;
  void* context = context_pointer(step.context);
  const auto count = step.null_sge.value_or(static_cast<ULONG>(list.size()));
  const ND2_SGE* sge = list.empty() ? nullptr : list.data();
  HRESULT status = ND_SUCCESS;
  if (step.kind == StepKind::kSend) status = qp.Send(context, sge, count, step.flags);
  if (step.kind == StepKind::kWrite)
    status = qp.Write(context, sge, count, address(step.remote), token(step.remote, true), step.flags);
  if (step.kind == StepKind::kRead)
    status = qp.Read(context, sge, count, address(step.remote), token(step.remote, true), step.flags);
  forget();
  expect_status(step, status);
}

HRESULT VectorSession::post_receive(const VectorStep& step, const std::vector<ND2_SGE>& list) {
  auto& own = pair(step);
  void* context = context_pointer(step.context);
  const auto count = step.null_sge.value_or(static_cast<ULONG>(list.size()));
  const ND2_SGE* sge = list.empty() ? nullptr : list.data();
  if (side(step).srq && !step.defer) return side(step).srq->Receive(context, sge, count);
  if (own.face && !step.defer) return own.face->Receive(context, sge, count);
  const auto segments = segments_of(list);
  const auto posted = own.core().post_receive({.id = step.context, .segments = segments, .defer = step.defer});
  return posting_status(posted);
}

/// What NetworkDirect has not goes to the queue pair below it.
HRESULT VectorSession::post_to_core(const VectorStep& step, const std::vector<ND2_SGE>& list) {
  const auto segments = segments_of(list);
  umd::SendRequest request{.opcode = wqe_opcode(step),
                           .id = step.context,
                           .segments = segments,
                           .immediate = step.immediate.value_or(0),
                           .swap_add = step.swap_add,
                           .compare = step.compare,
                           .silent = (step.flags & ND_OP_FLAG_SILENT_SUCCESS) != 0,
                           .fence = (step.flags & ND_OP_FLAG_READ_FENCE) != 0,
                           .solicited = (step.flags & ND_OP_FLAG_SEND_AND_SOLICIT_EVENT) != 0,
                           .inline_data = (step.flags & ND_OP_FLAG_INLINE) != 0,
                           .ip_csum = step.ip_csum,
                           .defer = step.defer};
  if (!step.invalidate.empty()) request.immediate = __builtin_bswap32(remote_token(step.invalidate));
  if (step.kind != StepKind::kSend) {
    request.remote_address = address(step.remote);
    request.remote_key = __builtin_bswap32(token(step.remote, true));
  }
  auto& qp = pair(step).core();
  std::optional<umd::AddressHandle> handle;
  if (qp.type() == hw::QpType::kUd) {
    auto& peer = sides_[1 - step.host];
    auto to = address_of(*peer.endpoint, step.to.ipv6);
    to.traffic_class = step.to.traffic_class;
    to.hop_limit = step.to.hop_limit;
    to.flow_label = step.to.flow_label;
    to.vlan = step.to.vlan;
    to.sl = step.to.sl;
    if (step.to.group) {
      to.dest_ip = step.to.group->gid;
      to.dest_mac = step.to.group->mac;
    }
    auto made = umd::AddressHandle::create(to);
    if (!made) return nd2::posting_status(made.error());
    handle = made.take();
    request.address = &*handle;
    request.dest_qpn = (step.to.group ? hw::kMulticastQpn : peer.pairs.at(step.to.qp).core().qpn()) ^ step.to.qpn_xor;
    request.qkey = step.to.qkey;
  }
  const auto posted = qp.post_send(request);
  return posting_status(posted);
}

HRESULT VectorSession::flush(const VectorStep& step) {
  return pair(step).face ? pair(step).face->Flush() : control_status(pair(step).core().flush());
}

std::vector<ND2_SGE> VectorSession::sges(const VectorStep& step) {
  std::vector<ND2_SGE> list;
  for (const auto& place : step.sge)
    list.push_back({reinterpret_cast<void*>(address(place)), place.length, token(place, false)});
  return list;
}

VectorSession::Window& VectorSession::window(const VectorStep& step) {
  auto& entry = windows_[step.window];
  if (!entry.window) {
    require_success(sides_[step.host].endpoint->adapter().CreateMemoryWindow(IID_IND2MemoryWindow, entry.window.put()),
                    "CreateMemoryWindow");
    entry.token = entry.window->GetRemoteToken();
  }
  return entry;
}

void VectorSession::bind(const VectorStep& step) {
  auto& entry = window(step);
  auto& from = region(step.name);
  const HRESULT status = step.unchecked ? bind_unchecked(step)
                                        : face(step).Bind(context_pointer(step.context),
                                                          step.null == "region" ? nullptr : from.region.get(),
                                                          step.null == "window" ? nullptr : entry.window.get(),
                                                          from.memory + step.offset, step.length, step.flags);
  if (const UINT32 token = entry.window->GetRemoteToken(); token != entry.token)
    entry.stale_token = std::exchange(entry.token, token);
  expect_status(step, status);
}

/// What NetworkDirect would refuse before the device sees it.
HRESULT VectorSession::bind_unchecked(const VectorStep& step) {
  auto& to = static_cast<nd2::MemoryWindow&>(*window(step).window).kernel_mw();
  const auto& from = region(step.name);
  const umd::WindowRange range{
      .region_key = step.key_of.empty() ? from.local_token : __builtin_bswap32(remote_token(step.key_of)),
      .address = from.base.value_or(reinterpret_cast<std::uint64_t>(from.memory)) + step.offset,
      .length = step.length,
      .remote_read = (step.flags & ND_OP_FLAG_ALLOW_READ) != 0,
      .remote_write = (step.flags & ND_OP_FLAG_ALLOW_WRITE) != 0};
  return posting_status(umd::post_bind(pair(step).core(), to, range, options_of(step)));
}

void VectorSession::invalidate(const VectorStep& step) {
  auto& entry = window(step);
  expect_status(step, face(step).Invalidate(context_pointer(step.context),
                                            step.null == "window" ? nullptr : entry.window.get(), step.flags));
}

/// Maps the pages of a range of a region and registers them under a name of their own. Those of another range that
/// had the name are not mapped any more.
void VectorSession::fast_register(const VectorStep& step) {
  auto& endpoint = *side(step).endpoint;
  const auto& from = region(step.name);
  if (step.length == 0 || step.offset + step.length > from.size)
    throw VectorFailure(fmt::format("{}: outside region \"{}\"", step.text, step.name));
  auto& entry = regions_[step.fast_region];
  if (!entry.fast_region) {
    entry.host = step.host;
    entry.fast_region =
        take_or_fail(side(step).process->create_fast_mr({.max_pages = static_cast<std::uint32_t>(step.size),
                                                         .remote_access = step.remote_access,
                                                         .window_bind = true}),
                     step.text);
    entry.pattern = region_pattern(step.host, step.fast_region);
  }
  if (entry.memory != from.memory + step.offset || entry.size != step.length) {
    if (!entry.pages.empty()) endpoint.device().unmap_pages(entry.memory, entry.size, entry.pages);
    entry.memory = from.memory + step.offset;
    entry.size = step.length;
    entry.pages = take_or_fail(endpoint.device().map_pages(entry.memory, entry.size, true), step.text);
  }
  const std::uint64_t address = reinterpret_cast<std::uint64_t>(entry.memory);
  const std::uint64_t base = step.value.value_or(address);
  const FastRange range{.pages = entry.pages,
                        .first_offset = static_cast<std::uint32_t>(address % kPageBytes),
                        .length = step.length,
                        .base = base,
                        .local_write = (step.flags & ND_MR_FLAG_ALLOW_LOCAL_WRITE) != 0,
                        .remote_read = (step.flags & ND_MR_FLAG_ALLOW_REMOTE_READ) != 0,
                        .remote_write = (step.flags & kRemoteWriteBit) != 0};
  const auto posted = umd::post_fast_register(pair(step).core(), *entry.fast_region, range, options_of(step));
  if (posted) entry.base = base;
  entry.local_token = entry.fast_region->key();
  entry.remote_token = __builtin_bswap32(entry.local_token);
  expect_status(step, posting_status(posted));
}

void VectorSession::end_registration(const VectorStep& step) {
  auto& entry = region(step.fast_region);
  const auto posted = umd::post_invalidate(pair(step).core(), entry.local_token, options_of(step));
  if (posted) entry.ending[step.context] = entry.local_token;
  expect_status(step, posting_status(posted));
}

}  // namespace rnic::testbench
