#include "testbench/verify/vector_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "driver/nd2/completion_queue.hpp"
#include "testbench/verify/vector_frame.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kPollNs = 100;

/// Tokens have the key's tag in the low byte of the host-order value (decisions 16); remote ones are in network order (25).
UINT32 corrupt(UINT32 token, TokenChange change, bool remote) {
  UINT32 key = remote ? __builtin_bswap32(token) : token;
  if (change == TokenChange::kCorruptIndex) key ^= 0x00155500;
  if (change == TokenChange::kCorruptTag) key ^= 0x00000001;
  return remote ? __builtin_bswap32(key) : key;
}

void* context_pointer(std::uint64_t context) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(context)); }

std::vector<umd::Segment> segments_of(const std::vector<ND2_SGE>& list) {
  std::vector<umd::Segment> segments;
  for (const auto& sge : list) segments.push_back({reinterpret_cast<std::uint64_t>(sge.Buffer), sge.BufferLength, sge.MemoryRegionToken});
  return segments;
}

hw::WqeOpcode opcode_of(const VectorStep& step) {
  switch (step.kind) {
    case StepKind::kWrite: return step.immediate ? hw::WqeOpcode::kWriteImmediate : hw::WqeOpcode::kWrite;
    case StepKind::kRead: return hw::WqeOpcode::kRead;
    case StepKind::kCompareSwap: return hw::WqeOpcode::kCompareSwap;
    case StepKind::kFetchAdd: return hw::WqeOpcode::kFetchAdd;
    default: break;
  }
  if (!step.window.empty()) return hw::WqeOpcode::kSendInvalidate;
  return step.immediate ? hw::WqeOpcode::kSendImmediate : hw::WqeOpcode::kSend;
}

std::string type_name(std::uint32_t type) {
  constexpr const char* kNames[] = {"Receive", "Send", "Bind", "Invalidate", "Read", "Write"};
  return type < std::size(kNames) ? kNames[type] : fmt::format("type {}", type);
}

}  // namespace

VectorSession::~VectorSession() {
  for (auto& [name, notification] : notifications_) {
    if (notification.status == ND_PENDING) notification.object->CancelOverlappedRequests();
    Endpoint::close_event(notification.overlapped);
  }
  windows_.clear();
  for (auto& [name, region] : regions_) {
    auto& endpoint = *sides_[region.host].endpoint;
    const bool gone = !region.fast_region || region.fast_region->destroy().ok();
    if (gone && !region.pages.empty()) endpoint.device().unmap_pages(region.memory, region.size, region.pages);
  }
  regions_.clear();
  for (auto& side : sides_) {
    for (const auto domain : side.domains) side.endpoint->kernel().release_pd(domain);
  }
}

void VectorSession::add_region(const VectorRegion& spec) {
  auto& endpoint = *sides_[spec.host].endpoint;
  Region region;
  region.host = spec.host;
  region.size = spec.size;
  region.memory = static_cast<std::uint8_t*>(endpoint.host().memory().allocate(spec.size));
  if (!region.memory) throw VectorFailure(fmt::format("no memory for region \"{}\"", spec.name));
  for (std::uint64_t i = 0; spec.pattern && i < spec.size; ++i) region.memory[i] = pattern_byte(spec.host, i);
  auto& side = sides_[spec.host];
  if (spec.remote_atomic || spec.other_domain || !side.initiator_cq) {
    std::uint32_t pd = side.process->pd();
    if (spec.other_domain) pd = side.domains.emplace_back(take_or_fail(endpoint.kernel().acquire_pd(), "another protection domain"));
    const bool local_write = spec.remote_atomic || (spec.flags & ND_MR_FLAG_ALLOW_LOCAL_WRITE) != 0;
    region.kernel_region = take_or_fail(endpoint.kernel().create_mr({.address = region.memory, .length = spec.size, .pd = pd, .local_write = local_write,
                                                                     .remote_read = (spec.flags & ND_MR_FLAG_ALLOW_REMOTE_READ) != 0,
                                                                     .remote_write = (spec.flags & kRemoteWriteBit) != 0, .remote_atomic = spec.remote_atomic}), "registering memory");
    region.local_token = region.kernel_region->key();
    region.remote_token = __builtin_bswap32(region.kernel_region->key());
  } else {
    region.region = endpoint.register_memory(region.memory, spec.size, spec.flags);
    region.local_token = region.region->GetLocalToken();
    region.remote_token = region.region->GetRemoteToken();
  }
  regions_.emplace(spec.name, std::move(region));
}

void VectorSession::run(const VectorStep& step) {
  switch (step.kind) {
    case StepKind::kSend:
    case StepKind::kReceive:
    case StepKind::kWrite:
    case StepKind::kRead:
    case StepKind::kCompareSwap:
    case StepKind::kFetchAdd:
      return post(step);
    case StepKind::kFlush:
      return expect_status(step, flush(step));
    case StepKind::kComplete:
      return complete(step);
    case StepKind::kNoCompletion:
      return no_completion(step);
    case StepKind::kNotify:
      return notify(step);
    case StepKind::kNotified:
      return notified(step, true);
    case StepKind::kNotNotified:
      return notified(step, false);
    case StepKind::kMemory:
      return memory(step);
    case StepKind::kRegister:
      return register_region(step);
    case StepKind::kDeregister:
      return deregister_region(step);
    case StepKind::kWait:
      return sides_[step.host].endpoint->device().elapse(step.within_ns);
    case StepKind::kStore:
      return store(step);
    case StepKind::kFault:
      return fault(step);
    case StepKind::kFrame:
      return frame(step);
    case StepKind::kCounter:
      return counter(step);
    case StepKind::kState:
      return state(step);
    case StepKind::kBind:
      return bind(step);
    case StepKind::kInvalidate:
      return invalidate(step);
    case StepKind::kReleaseWindow:
      return windows_.at(step.window).window.reset();
    case StepKind::kModify:
      return modify(step);
    case StepKind::kClose:
      return expect_status(step, control_status(pair(step).core().close()));
    case StepKind::kRing:
      return pair(step).core().ring_deferred();
    case StepKind::kEvent:
      return event(step);
    case StepKind::kNoEvent:
      return no_event(step);
    case StepKind::kLink:
      return world_.wire().set_link(step.link_up);
    case StepKind::kResizeCq:
      return resize_cq(step);
    case StepKind::kModerateCq:
      return expect_status(step, control_status(core_cq(step).moderate(static_cast<std::uint16_t>(step.size), static_cast<std::uint16_t>(*step.value))));
    case StepKind::kModifySrq:
      return expect_status(step, side(step).srq->Modify(static_cast<ULONG>(step.size), static_cast<ULONG>(*step.value)));
    case StepKind::kSrqDoorbell:
      return srq_doorbell(step);
    case StepKind::kFastRegister:
      return fast_register(step);
    case StepKind::kEndRegistration:
      return end_registration(step);
    case StepKind::kQueryAdapter:
      return query_adapter(step);
  }
}

void VectorSession::post(const VectorStep& step) {
  const auto list = sges(step);
  if (step.kind == StepKind::kReceive) return expect_status(step, post_receive(step, list));
  const bool below = step.immediate || step.defer || !step.window.empty() || step.kind == StepKind::kCompareSwap || step.kind == StepKind::kFetchAdd;
  if (below || !pair(step).face) return expect_status(step, post_to_core(step, list));
  auto& qp = *pair(step).face;
  void* context = context_pointer(step.context);
  const auto count = static_cast<ULONG>(list.size());
  const ND2_SGE* sge = list.empty() ? nullptr : list.data();
  HRESULT status = ND_SUCCESS;
  if (step.kind == StepKind::kSend) status = qp.Send(context, sge, count, step.flags);
  if (step.kind == StepKind::kWrite) status = qp.Write(context, sge, count, address(step.remote), token(step.remote, true), step.flags);
  if (step.kind == StepKind::kRead) status = qp.Read(context, sge, count, address(step.remote), token(step.remote, true), step.flags);
  expect_status(step, status);
}

HRESULT VectorSession::post_receive(const VectorStep& step, const std::vector<ND2_SGE>& list) {
  auto& own = pair(step);
  void* context = context_pointer(step.context);
  const auto count = static_cast<ULONG>(list.size());
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
  umd::SendRequest request{.opcode = opcode_of(step), .id = step.context, .segments = segments, .immediate = step.immediate.value_or(0), .swap_add = step.swap_add,
                           .compare = step.compare, .silent = (step.flags & ND_OP_FLAG_SILENT_SUCCESS) != 0, .fence = (step.flags & ND_OP_FLAG_READ_FENCE) != 0,
                           .solicited = (step.flags & ND_OP_FLAG_SEND_AND_SOLICIT_EVENT) != 0, .inline_data = (step.flags & ND_OP_FLAG_INLINE) != 0, .defer = step.defer};
  if (!step.window.empty()) request.immediate = __builtin_bswap32(windows_.at(step.window).token);
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
    auto made = umd::AddressHandle::create(to);
    if (!made) return nd2::posting_status(made.error());
    handle = made.take();
    request.address = &*handle;
    request.dest_qpn = peer.pairs.at(step.to.qp).core().qpn() ^ step.to.qpn_xor;
    request.qkey = step.to.qkey;
  }
  const auto posted = qp.post_send(request);
  return posting_status(posted);
}

HRESULT VectorSession::flush(const VectorStep& step) { return pair(step).face ? pair(step).face->Flush() : control_status(pair(step).core().flush()); }

void VectorSession::complete(const VectorStep& step) {
  auto& device = sides_[step.host].endpoint->device();
  const std::uint64_t begin = device.now_ns();
  for (std::size_t i = 0; i < step.results.size(); ++i) {
    const auto& expected = step.results[i];
    const std::uint64_t end = device.now_ns() + step.within_ns;
    while (!(expected.cqe_status ? take_completion(step, i + 1, expected) : take_result(step, i + 1, expected))) {
      if (device.now_ns() >= end) {
        throw VectorFailure(fmt::format("{}: result {} ({} {}) did not come within {} us", step.text, i + 1, kind_name(expected.kind), expected.context, step.within_ns / 1000));
      }
      device.elapse(kPollNs);
    }
    if (device.now_ns() < begin + step.not_before_ns) {
      throw VectorFailure(fmt::format("{}: result {} came after {} ns, not before {} us expected", step.text, i + 1, device.now_ns() - begin, step.not_before_ns / 1000));
    }
  }
}

bool VectorSession::take_result(const VectorStep& step, std::size_t number, const VectorResult& expected) {
  ND2_RESULT result{};
  if (cq(step).GetResults(&result, 1) == 0) return false;
  const auto context = reinterpret_cast<std::uintptr_t>(result.RequestContext);
  const bool same = result.RequestType == nd2::request_type(expected.kind) && context == expected.context && result.Status == expected.status &&
                    (!expected.bytes || *expected.bytes == result.BytesTransferred) && (!expected.qp || context_pointer(*expected.qp + 1) == result.QueuePairContext);
  if (!same) {
    throw VectorFailure(fmt::format("{}: result {} is {} {} {} ({} bytes, queue pair {}), expected {} {} {}{}{}", step.text, number, type_name(static_cast<std::uint32_t>(result.RequestType)), context,
                                    status_name(result.Status), result.BytesTransferred, reinterpret_cast<std::uintptr_t>(result.QueuePairContext), kind_name(expected.kind), expected.context,
                                    status_name(expected.status), expected.bytes ? fmt::format(" ({} bytes)", *expected.bytes) : "",
                                    expected.qp ? fmt::format(" of queue pair {}", *expected.qp + 1) : ""));
  }
  return true;
}

bool VectorSession::take_completion(const VectorStep& step, std::size_t number, const VectorResult& expected) {
  umd::Completion result;
  if (core_cq(step).poll({&result, 1}) == 0) return false;
  bool with_expected = expected.immediate ? result.with_immediate && result.immediate == *expected.immediate : !result.with_immediate;
  if (!expected.invalidated.empty()) with_expected = result.with_invalidate && result.immediate == __builtin_bswap32(windows_.at(expected.invalidated).token);
  else if (result.with_invalidate) with_expected = false;
  const bool same = result.kind == expected.kind && result.id == expected.context && result.status == *expected.cqe_status && (!expected.bytes || *expected.bytes == result.byte_count) &&
                    with_expected && (!expected.qp || result.qpn == side(step).pairs.at(*expected.qp).core().qpn()) &&
                    (!expected.source_qp || (result.grh && result.source_qpn == sides_[1 - step.host].pairs.at(*expected.source_qp).core().qpn()));
  if (!same) {
    const auto with = [](bool there, std::uint32_t value) { return there ? fmt::format(", immediate {:#x}", value) : std::string(); };
    throw VectorFailure(fmt::format("{}: result {} is {} {} {} ({} bytes{}{}), QPN {:#x}, expected {} {} {}{}{}{}", step.text, number, kind_name(result.kind), result.id,
                                    cqe_status_name(result.status), result.byte_count, with(result.with_immediate, result.immediate),
                                    result.grh ? fmt::format(", from QPN {:#x}", result.source_qpn) : "", result.qpn, kind_name(expected.kind), expected.context,
                                    cqe_status_name(*expected.cqe_status), expected.bytes ? fmt::format(" ({} bytes)", *expected.bytes) : "",
                                    with(expected.immediate.has_value(), expected.immediate.value_or(0)), expected.qp ? fmt::format(", queue pair {}", *expected.qp + 1) : ""));
  }
  return true;
}

void VectorSession::no_completion(const VectorStep& step) {
  sides_[step.host].endpoint->device().elapse(step.within_ns);
  umd::Completion result;
  if (core_cq(step).poll({&result, 1}) != 0) {
    throw VectorFailure(fmt::format("{}: a completion came: {} {} {}", step.text, kind_name(result.kind), result.id, cqe_status_name(result.status)));
  }
}

void VectorSession::notify(const VectorStep& step) {
  auto [it, added] = notifications_.try_emplace(step.name);
  if (!added) throw VectorFailure(fmt::format("{}: a second notification \"{}\"", step.text, step.name));
  auto& notification = it->second;
  notification.overlapped = sides_[step.host].endpoint->open_event();
  if (step.queue == VectorQueue::kShared) {
    notification.object = side(step).srq.get();
    notification.status = side(step).srq->Notify(&notification.overlapped);
  } else {
    notification.object = &cq(step);
    notification.status = cq(step).Notify(step.flags, &notification.overlapped);
  }
  if (step.call) return expect_call(step, notification.status);
  if (FAILED(notification.status)) throw VectorFailure(fmt::format("{}: Notify returned {}", step.text, status_name(notification.status)));
}

void VectorSession::notified(const VectorStep& step, bool expected) {
  const auto it = notifications_.find(step.name);
  if (it == notifications_.end()) throw VectorFailure(fmt::format("{}: no notification \"{}\"", step.text, step.name));
  auto& notification = it->second;
  auto& endpoint = *sides_[step.host].endpoint;
  const auto done = [&] {
    if (notification.status == ND_PENDING) notification.status = notification.object->GetOverlappedResult(&notification.overlapped, FALSE);
    return notification.status != ND_PENDING;
  };
  endpoint.kernel().wait_until(done, step.within_ns);
  if (expected != done()) throw VectorFailure(fmt::format("{}: notification \"{}\" is {}", step.text, step.name, expected ? "still pending" : "complete"));
  if (expected) expect_status(step, notification.status);
}

void VectorSession::memory(const VectorStep& step) {
  const auto& here = region(step.name);
  if (step.value) {
    std::uint64_t word = 0;
    if (step.offset + sizeof word > here.size) throw VectorFailure(fmt::format("{}: outside region \"{}\"", step.text, step.name));
    std::memcpy(&word, here.memory + step.offset, sizeof word);
    if (word != *step.value) throw VectorFailure(fmt::format("{}: {:#x} at byte {} of region \"{}\", expected {:#x}", step.text, word, step.offset, step.name, *step.value));
    return;
  }
  if (!step.bytes.empty()) return memory_bytes(step);
  if (step.offset + step.length > here.size) throw VectorFailure(fmt::format("{}: outside region \"{}\"", step.text, step.name));
  for (std::uint64_t i = 0; i < step.length; ++i) {
    std::uint8_t expected = step.pattern ? pattern_byte(here.host, step.offset + i) : 0;
    if (step.equals) {
      const auto& there = region(step.equals->region);
      const auto at = static_cast<std::uint64_t>(step.equals->offset) + i;
      if (at >= there.size) throw VectorFailure(fmt::format("{}: outside region \"{}\"", step.text, step.equals->region));
      expected = there.memory[at];
    }
    if (here.memory[step.offset + i] != expected) {
      throw VectorFailure(fmt::format("{}: byte {} of region \"{}\" is {:#04x}, expected {:#04x}", step.text, step.offset + i, step.name, here.memory[step.offset + i], expected));
    }
  }
}

void VectorSession::memory_bytes(const VectorStep& step) {
  const auto& here = region(step.name);
  if (step.offset + step.bytes.size() > here.size) throw VectorFailure(fmt::format("{}: outside region \"{}\"", step.text, step.name));
  for (std::size_t i = 0; i < step.bytes.size(); ++i) {
    const auto& expected = step.bytes[i];
    if (expected && here.memory[step.offset + i] != *expected) {
      throw VectorFailure(fmt::format("{}: byte {} of region \"{}\" is {:#04x}, expected {:#04x}", step.text, step.offset + i, step.name, here.memory[step.offset + i], *expected));
    }
  }
}

void VectorSession::store(const VectorStep& step) {
  auto& here = region(step.name);
  if (step.offset + sizeof *step.value > here.size) throw VectorFailure(fmt::format("{}: outside region \"{}\"", step.text, step.name));
  std::memcpy(here.memory + step.offset, &*step.value, sizeof *step.value);
}

void VectorSession::fault(const VectorStep& step) {
  auto rule = step.rule;
  if (rule.match.psn) rule.match.psn = (*rule.match.psn + numbers_.first_psn(step.host, rule.match.opcode.value_or(0), step.qp, step.qp)) & 0xffffff;
  if (step.only_qp) rule.match.dest_qpn = sides_[1 - step.host].pairs.at(step.qp).core().qpn();
  world_.wire().arm(step.host, rule);
}

/// To `step.host`, in the name of its peer or of a stranger.
void VectorSession::frame(const VectorStep& step) {
  const std::size_t sender = 1 - step.host;
  auto& here = sides_[step.host];
  auto& there = sides_[sender];
  const auto connection = connection_to(*there.endpoint, *here.endpoint, pair(step).core().qpn(), parameters_);
  FrameTarget target;
  target.sender = sender;
  target.source_qpn = there.pairs.at(step.frame.source_qp).core().qpn();
  target.first_psn = numbers_.first_psn(sender, step.frame.opcode, step.qp, step.frame.source_qp);
  target.path.ipv6 = parameters_.ipv6;
  target.path.dest_mac = connection.path.dest_mac;
  target.path.source_mac = mac_of(*there.endpoint);
  target.path.source_ip = connection.path.source_ip;
  target.path.dest_ip = connection.path.dest_ip;
  target.path.dest_qpn = connection.dest_qpn;
  if (!step.remote.region.empty()) {
    target.va = address(step.remote);
    target.rkey = __builtin_bswap32(token(step.remote, true));
  }
  try {
    world_.wire().inject(sender, build_frame(step.frame, target), step.frame.bad_fcs);
  } catch (const VectorError& error) {
    throw VectorFailure(fmt::format("{}: {}", step.text, error.what()));
  }
  here.endpoint->device().elapse(step.within_ns);
}

void VectorSession::counter(const VectorStep& step) {
  auto& side = sides_[step.host];
  const auto now = take_or_fail(side.endpoint->kernel().counter(static_cast<hw::Counter>(step.offset)), step.text) - side.counters.at(step.offset);
  if (step.at_least ? now < *step.value : now != *step.value) {
    throw VectorFailure(fmt::format("{}: {} has counted {}, expected {}{}", step.text, step.name, now, step.at_least ? "at least " : "", *step.value));
  }
}

void VectorSession::state(const VectorStep& step) {
  const auto now = take_or_fail(pair(step).core().kernel_qp().query(), step.text).state;
  if (now != *step.value) throw VectorFailure(fmt::format("{}: the state is {}, expected {} ({})", step.text, now, step.name, *step.value));
}

void VectorSession::register_region(const VectorStep& step) {
  auto& endpoint = *sides_[step.host].endpoint;
  auto& entry = regions_[step.name];
  entry.host = step.host;
  if (!entry.region) entry.region = endpoint.create_region();
  if (step.buffer == VectorStep::Buffer::kValid && !entry.memory) {
    entry.size = std::min<std::uint64_t>(std::max<std::uint64_t>(step.size, 1), 1 << 20);
    entry.memory = static_cast<std::uint8_t*>(endpoint.host().memory().allocate(entry.size));
  }
  const void* buffer = step.buffer == VectorStep::Buffer::kNull ? nullptr : entry.memory;
  if (step.buffer == VectorStep::Buffer::kUnmapped) {
    // Past the end of what the host has: reserved address space that nobody may touch.
    buffer = reinterpret_cast<const void*>(endpoint.host().memory().base() + endpoint.host().memory().size() - (64 << 10));
  }
  OVERLAPPED overlapped = endpoint.open_event();
  const HRESULT called = entry.region->Register(buffer, step.size, step.flags, &overlapped);
  const HRESULT status = endpoint.finish(*entry.region, overlapped, called);
  Endpoint::close_event(overlapped);
  expect_call(step, called);
  expect_status(step, status);
  if (status == ND_SUCCESS) {
    entry.local_token = entry.region->GetLocalToken();
    entry.remote_token = entry.region->GetRemoteToken();
  }
}

void VectorSession::deregister_region(const VectorStep& step) {
  auto& endpoint = *sides_[step.host].endpoint;
  auto& entry = region(step.name);
  if (entry.kernel_region) return expect_status(step, control_status(entry.kernel_region->destroy()));
  OVERLAPPED overlapped = endpoint.open_event();
  const HRESULT called = entry.region->Deregister(&overlapped);
  const HRESULT status = endpoint.finish(*entry.region, overlapped, called);
  Endpoint::close_event(overlapped);
  expect_call(step, called);
  expect_status(step, status);
}

std::vector<ND2_SGE> VectorSession::sges(const VectorStep& step) {
  std::vector<ND2_SGE> list;
  for (const auto& place : step.sge) list.push_back({reinterpret_cast<void*>(address(place)), place.length, token(place, false)});
  return list;
}

VectorSession::Window& VectorSession::window(const VectorStep& step) {
  auto& entry = windows_[step.window];
  if (!entry.window) {
    require_success(sides_[step.host].endpoint->adapter().CreateMemoryWindow(IID_IND2MemoryWindow, entry.window.put()), "CreateMemoryWindow");
    entry.token = entry.window->GetRemoteToken();
  }
  return entry;
}

void VectorSession::bind(const VectorStep& step) {
  auto& entry = window(step);
  auto& from = region(step.name);
  const HRESULT status = face(step).Bind(context_pointer(step.context), from.region.get(), entry.window.get(), from.memory + step.offset, step.length, step.flags);
  if (const UINT32 token = entry.window->GetRemoteToken(); token != entry.token) entry.stale_token = std::exchange(entry.token, token);
  expect_status(step, status);
}

void VectorSession::invalidate(const VectorStep& step) {
  auto& entry = window(step);
  expect_status(step, face(step).Invalidate(context_pointer(step.context), entry.window.get(), step.flags));
}

UINT32 VectorSession::token(const VectorPlace& place, bool remote) {
  if (place.token == TokenChange::kWindow) return windows_.at(place.token_of).token;
  if (place.token == TokenChange::kStaleWindow) return windows_.at(place.token_of).stale_token;
  const auto& of = region(place.token == TokenChange::kOther ? place.token_of : place.region);
  return corrupt(remote ? of.remote_token : of.local_token, place.token, remote);
}

std::uint64_t VectorSession::address(const VectorPlace& place) {
  const auto& of = region(place.region);
  return place.address.value_or(of.base.value_or(reinterpret_cast<std::uint64_t>(of.memory)) + static_cast<std::uint64_t>(place.offset));
}

VectorSession::Region& VectorSession::region(const std::string& name) { return regions_.at(name); }

umd::CompletionQueue& VectorSession::core_cq(const VectorStep& step) { return step.queue == VectorQueue::kReceive ? *side(step).receive_core : *side(step).initiator_core; }

IND2CompletionQueue& VectorSession::cq(const VectorStep& step) {
  const auto& of = step.queue == VectorQueue::kReceive ? side(step).receive_cq : side(step).initiator_cq;
  if (!of) throw VectorFailure(fmt::format("{}: QP1 is not of NetworkDirect; give statuses of CQEs", step.text));
  return *of;
}

IND2QueuePair& VectorSession::face(const VectorStep& step) {
  if (!pair(step).face) throw VectorFailure(fmt::format("{}: a queue pair of this type is not of NetworkDirect", step.text));
  return *pair(step).face;
}

void VectorSession::expect_status(const VectorStep& step, HRESULT status) const {
  if (status != step.status) throw VectorFailure(fmt::format("{}: status {}, expected {}", step.text, status_name(status), status_name(step.status)));
}

void VectorSession::expect_call(const VectorStep& step, HRESULT status) const {
  if (step.call && status != *step.call) throw VectorFailure(fmt::format("{}: the call returned {}, expected {}", step.text, status_name(status), status_name(*step.call)));
}

}  // namespace rnic::testbench
