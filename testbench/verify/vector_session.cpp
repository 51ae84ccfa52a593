#include "testbench/verify/vector_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

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

std::string type_name(std::uint32_t type) {
  constexpr const char* kNames[] = {"Receive", "Send", "Bind", "Invalidate", "Read", "Write"};
  return type < std::size(kNames) ? kNames[type] : fmt::format("type {}", type);
}

}  // namespace

VectorSession::VectorSession(Host& a, Host& b, const VectorSetup& setup) {
  for (std::size_t i = 0; i < 2; ++i) {
    auto& side = sides_[i];
    side.endpoint = std::make_unique<Endpoint>(i == 0 ? a : b);
    side.initiator_cq = side.endpoint->create_cq(setup.cq_depth);
    side.receive_cq = side.endpoint->create_cq(setup.cq_depth);
    side.qp = side.endpoint->create_qp(*side.receive_cq, *side.initiator_cq,
                                       {setup.receive_depth, setup.initiator_depth, setup.receive_sge, setup.initiator_sge, setup.inline_size});
  }
  if (setup.connected) {
    connect_pair(*sides_[0].endpoint, *sides_[0].qp, *sides_[1].endpoint, *sides_[1].qp, {setup.mtu, setup.ipv6, setup.read_limit});
  }
  for (const auto& spec : setup.regions) add_region(spec);
}

VectorSession::~VectorSession() {
  for (auto& [name, notification] : notifications_) {
    if (notification.status == ND_PENDING) notification.cq->CancelOverlappedRequests();
    Endpoint::close_event(notification.overlapped);
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
  region.region = endpoint.register_memory(region.memory, spec.size, spec.flags);
  region.local_token = region.region->GetLocalToken();
  region.remote_token = region.region->GetRemoteToken();
  regions_.emplace(spec.name, std::move(region));
}

void VectorSession::run(const VectorStep& step) {
  switch (step.kind) {
    case StepKind::kSend:
    case StepKind::kReceive:
    case StepKind::kWrite:
    case StepKind::kRead:
      return post(step);
    case StepKind::kFlush:
      return expect_status(step, sides_[step.host].qp->Flush());
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
  }
}

void VectorSession::post(const VectorStep& step) {
  auto list = sges(step);
  auto& qp = *sides_[step.host].qp;
  void* context = context_pointer(step.context);
  const auto count = static_cast<ULONG>(list.size());
  const ND2_SGE* sge = list.empty() ? nullptr : list.data();
  HRESULT status = ND_SUCCESS;
  if (step.kind == StepKind::kSend) status = qp.Send(context, sge, count, step.flags);
  if (step.kind == StepKind::kReceive) status = qp.Receive(context, sge, count);
  if (step.kind == StepKind::kWrite) status = qp.Write(context, sge, count, address(step.remote), token(step.remote, true), step.flags);
  if (step.kind == StepKind::kRead) status = qp.Read(context, sge, count, address(step.remote), token(step.remote, true), step.flags);
  expect_status(step, status);
}

void VectorSession::complete(const VectorStep& step) {
  auto& device = sides_[step.host].endpoint->device();
  auto& queue = cq(step);
  for (std::size_t i = 0; i < step.results.size(); ++i) {
    const auto& expected = step.results[i];
    ND2_RESULT result{};
    const std::uint64_t end = device.now_ns() + step.within_ns;
    while (queue.GetResults(&result, 1) == 0) {
      if (device.now_ns() >= end) {
        throw VectorFailure(fmt::format("{}: result {} ({} {}) did not come within {} us", step.text, i + 1, type_name(expected.type), expected.context, step.within_ns / 1000));
      }
      device.elapse(kPollNs);
    }
    const auto context = reinterpret_cast<std::uintptr_t>(result.RequestContext);
    const bool same = static_cast<std::uint32_t>(result.RequestType) == expected.type && context == expected.context && result.Status == expected.status &&
                      (!expected.bytes || *expected.bytes == result.BytesTransferred);
    if (!same) {
      throw VectorFailure(fmt::format("{}: result {} is {} {} {} ({} bytes), expected {} {} {}{}", step.text, i + 1, type_name(static_cast<std::uint32_t>(result.RequestType)), context,
                                      status_name(result.Status), result.BytesTransferred, type_name(expected.type), expected.context, status_name(expected.status),
                                      expected.bytes ? fmt::format(" ({} bytes)", *expected.bytes) : ""));
    }
  }
}

void VectorSession::no_completion(const VectorStep& step) {
  sides_[step.host].endpoint->device().elapse(step.within_ns);
  ND2_RESULT result{};
  if (cq(step).GetResults(&result, 1) != 0) {
    throw VectorFailure(fmt::format("{}: a completion came: {} {} {}", step.text, type_name(static_cast<std::uint32_t>(result.RequestType)), reinterpret_cast<std::uintptr_t>(result.RequestContext),
                                    status_name(result.Status)));
  }
}

void VectorSession::notify(const VectorStep& step) {
  auto [it, added] = notifications_.try_emplace(step.name);
  if (!added) throw VectorFailure(fmt::format("{}: a second notification \"{}\"", step.text, step.name));
  auto& notification = it->second;
  notification.cq = &cq(step);
  notification.overlapped = sides_[step.host].endpoint->open_event();
  notification.status = notification.cq->Notify(step.flags, &notification.overlapped);
  if (FAILED(notification.status)) throw VectorFailure(fmt::format("{}: Notify returned {}", step.text, status_name(notification.status)));
}

void VectorSession::notified(const VectorStep& step, bool expected) {
  const auto it = notifications_.find(step.name);
  if (it == notifications_.end()) throw VectorFailure(fmt::format("{}: no notification \"{}\"", step.text, step.name));
  auto& notification = it->second;
  auto& endpoint = *sides_[step.host].endpoint;
  const auto done = [&] {
    if (notification.status == ND_PENDING) notification.status = notification.cq->GetOverlappedResult(&notification.overlapped, FALSE);
    return notification.status != ND_PENDING;
  };
  endpoint.kernel().wait_until(done, step.within_ns);
  if (expected != done()) throw VectorFailure(fmt::format("{}: notification \"{}\" is {}", step.text, step.name, expected ? "still pending" : "complete"));
  if (expected) expect_status(step, notification.status);
}

void VectorSession::memory(const VectorStep& step) {
  const auto& here = region(step.name);
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
  const HRESULT status = endpoint.finish(*entry.region, overlapped, entry.region->Register(buffer, step.size, step.flags, &overlapped));
  Endpoint::close_event(overlapped);
  expect_status(step, status);
  if (status == ND_SUCCESS) {
    entry.local_token = entry.region->GetLocalToken();
    entry.remote_token = entry.region->GetRemoteToken();
  }
}

void VectorSession::deregister_region(const VectorStep& step) {
  auto& endpoint = *sides_[step.host].endpoint;
  auto& entry = region(step.name);
  OVERLAPPED overlapped = endpoint.open_event();
  const HRESULT status = endpoint.finish(*entry.region, overlapped, entry.region->Deregister(&overlapped));
  Endpoint::close_event(overlapped);
  expect_status(step, status);
}

std::vector<ND2_SGE> VectorSession::sges(const VectorStep& step) {
  std::vector<ND2_SGE> list;
  for (const auto& place : step.sge) list.push_back({reinterpret_cast<void*>(address(place)), place.length, token(place, false)});
  return list;
}

UINT32 VectorSession::token(const VectorPlace& place, bool remote) {
  const auto& of = region(place.token == TokenChange::kOther ? place.token_of : place.region);
  return corrupt(remote ? of.remote_token : of.local_token, place.token, remote);
}

std::uint64_t VectorSession::address(const VectorPlace& place) {
  return place.address.value_or(reinterpret_cast<std::uint64_t>(region(place.region).memory) + static_cast<std::uint64_t>(place.offset));
}

VectorSession::Region& VectorSession::region(const std::string& name) { return regions_.at(name); }

IND2CompletionQueue& VectorSession::cq(const VectorStep& step) {
  auto& side = sides_[step.host];
  return step.receive_queue ? *side.receive_cq : *side.initiator_cq;
}

void VectorSession::expect_status(const VectorStep& step, HRESULT status) const {
  if (status != step.status) throw VectorFailure(fmt::format("{}: status {}, expected {}", step.text, status_name(status), status_name(step.status)));
}

}  // namespace rnic::testbench
