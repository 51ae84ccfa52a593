#include "testbench/verify/vector_session.hpp"

#include <fmt/format.h>

#include <utility>

#include "testbench/side_by_side.hpp"

namespace rnic::testbench {
namespace {

/// Tokens have the key's tag in the low byte of the host-order value (decisions 16); remote ones are in network order
/// (25).
UINT32 corrupted_token(UINT32 token, TokenChange change, bool remote) {
  if (!remote) return corrupted(token, change);
  return __builtin_bswap32(corrupted(__builtin_bswap32(token), change));
}

}  // namespace

VectorSession::~VectorSession() {
  for (std::size_t host = 0; host < sides_.size(); ++host) restore_function(host);
  for (auto& [name, notification] : notifications_) {
    if (notification.status == ND_PENDING && notification.object != nullptr)
      notification.object->CancelOverlappedRequests();
    Endpoint::close_event(notification.overlapped);
  }
  listeners_.clear();
  connectors_.clear();
  recorders_.clear();
  windows_.clear();
  gone_.clear();
  for_each_host([this](std::size_t host) { close_side(host); });
}

void VectorSession::close_side(std::size_t host) {
  auto& side = sides_[host];
  if (!side.endpoint) return;
  std::vector<std::function<void()>> tasks;
  for (auto& [name, entry] : regions_) {
    auto& region = entry;
    if (region.host != host) continue;
    tasks.emplace_back([this, &side, &region] {
      const bool gone = !region.fast_region || region.fast_region->destroy().ok();
      if (gone && !region.pages.empty()) side.endpoint->device().unmap_pages(region.memory, region.size, region.pages);
      if (region.device_address) world_.host(region.host).iommu().unmap_range(*region.device_address, region.size);
      region = {};
    });
  }
  for (auto& pair : side.pairs) tasks.emplace_back([&pair] { pair = {}; });
  side_by_side(tasks);
  side.pairs.clear();
  side.domains.clear();
  // What is later in the list is made of what is before.
  side.srq.reset();
  side_by_side({[&side] { side.receive_core.reset(), side.receive_cq.reset(); },
                [&side] { side.initiator_core.reset(), side.initiator_cq.reset(); }});
  side.process.reset();
  side.management.reset();
  side.endpoint.reset();
}

void VectorSession::run(const VectorStep& step) {
  switch (step.kind) {
    case StepKind::kSend:
    case StepKind::kReceive:
    case StepKind::kWrite:
    case StepKind::kRead:
    case StepKind::kCompareSwap:
    case StepKind::kFetchAdd: return post(step);
    case StepKind::kFlush: return expect_status(step, flush(step));
    case StepKind::kComplete: return complete(step);
    case StepKind::kNoCompletion: return no_completion(step);
    case StepKind::kNotify: return notify(step);
    case StepKind::kNotified: return notified(step, true);
    case StepKind::kNotNotified: return notified(step, false);
    case StepKind::kMemory: return memory(step);
    case StepKind::kUntouched: return untouched_memory(step);
    case StepKind::kRegister: return register_region(step);
    case StepKind::kDeregister: return deregister_region(step);
    case StepKind::kWait: return sides_[step.host].endpoint->device().elapse(step.within_ns + way_ns(step.host));
    case StepKind::kStore: return store(step);
    case StepKind::kFault: return fault(step);
    case StepKind::kFrame: return frame(step);
    case StepKind::kCounter: return counter(step);
    case StepKind::kState: return state(step);
    case StepKind::kBind: return bind(step);
    case StepKind::kInvalidate: return invalidate(step);
    case StepKind::kReleaseWindow: return windows_.at(step.window).window.reset();
    case StepKind::kModify: return modify(step);
    case StepKind::kAttach:
      return expect_status(step, control_status(pair(step).core().attach_multicast(step.to.group->gid)));
    case StepKind::kDetach:
      return expect_status(step, control_status(pair(step).core().detach_multicast(step.to.group->gid)));
    case StepKind::kClose: return expect_status(step, control_status(pair(step).core().close()));
    case StepKind::kRing: return pair(step).core().ring_deferred();
    case StepKind::kEvent: return event(step);
    case StepKind::kNoEvent: return no_event(step);
    case StepKind::kLink: return world_.wire().set_link(step.link_up);
    case StepKind::kResizeCq: return resize_cq(step);
    case StepKind::kModerateCq:
      return expect_status(step, control_status(core_cq(step).moderate(static_cast<std::uint16_t>(step.size),
                                                                       static_cast<std::uint16_t>(*step.value))));
    case StepKind::kModifySrq:
      return expect_status(step,
                           side(step).srq->Modify(static_cast<ULONG>(step.size), static_cast<ULONG>(*step.value)));
    case StepKind::kAdmin: return admin(step);
    case StepKind::kSpoilWqe: return spoil_wqe(step);
    case StepKind::kDoorbell: return doorbell(step);
    case StepKind::kPushWqe: return push_wqe(step);
    case StepKind::kEnable: return enable(step);
    case StepKind::kConfigure: return configure(step);
    case StepKind::kTlp: return tlp(step);
    case StepKind::kCredits: return credits(step);
    case StepKind::kFastRegister: return fast_register(step);
    case StepKind::kEndRegistration: return end_registration(step);
    case StepKind::kQueryAdapter: return query_adapter(step);
    case StepKind::kQueryAffinity: return query_affinity(step);
    case StepKind::kQueryInterface: return query_interface(step);
    case StepKind::kRelease: return release(step);
    case StepKind::kCancel: return cancel(step);
    case StepKind::kGetResults: return get_results(step);
    case StepKind::kEndDevice: return end_device(step);
    case StepKind::kRestartDevice: return restart_device(step);
    case StepKind::kReceiveEthernet: return receive_ethernet(step);
    case StepKind::kBindAddress: return bind_address(step);
    case StepKind::kListen: return expect_status(step, listener(step).Listen(step.connection.backlog));
    case StepKind::kGetRequest: return get_request(step);
    case StepKind::kConnect: return connect_to(step);
    case StepKind::kAccept: return accept(step);
    case StepKind::kReject: return reject(step);
    case StepKind::kCompleteConnect:
    case StepKind::kDisconnect:
    case StepKind::kNotifyDisconnect: return change_connection(step);
    case StepKind::kQueryConnection: return query_connection(step);
    case StepKind::kReset: return reset(step);
    case StepKind::kMake: return make(step);
    case StepKind::kRevoke: return revoke(step);
    case StepKind::kRingReads: return ring_reads(step);
  }
}

UINT32 VectorSession::token(const VectorPlace& place, bool remote) {
  const auto in_order = [remote](UINT32 of_window) { return remote ? of_window : __builtin_bswap32(of_window); };
  if (place.token == TokenChange::kWindow) return in_order(windows_.at(place.token_of).token);
  if (place.token == TokenChange::kCurrentWindow) return in_order(windows_.at(place.token_of).window->GetRemoteToken());
  if (place.token == TokenChange::kStaleWindow) return in_order(windows_.at(place.token_of).stale_token);
  const auto& of = region(place.token == TokenChange::kOther ? place.token_of : place.region);
  return corrupted_token(remote ? of.remote_token : of.local_token, place.token, remote);
}

UINT32 VectorSession::remote_token(const std::string& name) const {
  const auto of = windows_.find(name);
  return of != windows_.end() ? of->second.token : region(name).remote_token;
}

std::uint64_t VectorSession::address(const VectorPlace& place) {
  const auto& of = region(place.region);
  return place.address.value_or(of.base.value_or(reinterpret_cast<std::uint64_t>(of.memory)) +
                                static_cast<std::uint64_t>(place.offset));
}

VectorSession::Region& VectorSession::region(const std::string& name) { return regions_.at(name); }

umd::CompletionQueue& VectorSession::core_cq(const VectorStep& step) {
  return step.queue == VectorQueue::kReceive ? *side(step).receive_core : *side(step).initiator_core;
}

IND2CompletionQueue& VectorSession::cq(const VectorStep& step) {
  const auto& of = step.queue == VectorQueue::kReceive ? side(step).receive_cq : side(step).initiator_cq;
  if (!of) throw VectorFailure(fmt::format("{}: QP1 is not of NetworkDirect; give statuses of CQEs", step.text));
  return *of;
}

IND2QueuePair& VectorSession::face(const VectorStep& step) {
  if (!pair(step).face)
    throw VectorFailure(fmt::format("{}: a queue pair of this type is not of NetworkDirect", step.text));
  return *pair(step).face;
}

void VectorSession::expect_status(const VectorStep& step, HRESULT status) const {
  if (status != step.status)
    throw VectorFailure(
        fmt::format("{}: status {}, expected {}", step.text, status_name(status), status_name(step.status)));
}

void VectorSession::expect_call(const VectorStep& step, HRESULT status) const {
  if (step.call && status != *step.call)
    throw VectorFailure(
        fmt::format("{}: the call returned {}, expected {}", step.text, status_name(status), status_name(*step.call)));
}

std::deque<hw::Eqe> VectorSession::take_events(std::size_t host) {
  auto& side = sides_.at(host);
  // Those that wait in their queues are handed out.
  static_cast<void>(side.endpoint->wait_until([] { return true; }, 0));
  return std::exchange(side.events, {});
}

std::span<const std::uint8_t> VectorSession::bytes_of(const std::string& name) const {
  const auto& of = region(name);
  return {of.memory, of.size};
}

std::string VectorSession::name_of_key(std::uint32_t key) const {
  const std::uint32_t token = __builtin_bswap32(key);
  for (const auto& [name, window] : windows_) {
    if (window.token == token) return name;
  }
  for (const auto& [name, of] : regions_) {
    if (of.remote_token == token) return name;
  }
  return {};
}

VectorPacket VectorSession::resolved(VectorPacket packet) const {
  // Remote tokens are in network order (decisions 25): on the wire stands what stands in memory.
  if (!packet.rkey_of.empty()) packet.fields["rkey"] = __builtin_bswap32(remote_token(packet.rkey_of));
  return packet;
}

PacketPatterns VectorSession::resolved(PacketPatterns patterns) const {
  for (auto& pattern : patterns) {
    if (pattern.kind == PacketPattern::Kind::kPacket) pattern.packet = resolved(std::move(pattern.packet));
    for (auto& list : pattern.lists) list = resolved(std::move(list));
  }
  return patterns;
}

}  // namespace rnic::testbench
