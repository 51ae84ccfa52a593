// The steps of a VectorSession about the interfaces of NetworkDirect themselves.
#include "testbench/verify/vector_session.hpp"

#include <fmt/format.h>

#include <cstring>
#include <map>

#include "driver/nd2/completion_queue.hpp"
#include "driver/nd2/queue_pair.hpp"

namespace rnic::testbench {
namespace {

/// Every field of ND2_ADAPTER_INFO by its name.
std::map<std::string, std::uint64_t> fields_of(const ND2_ADAPTER_INFO& info) {
  return {{"VendorId", info.VendorId},
          {"DeviceId", info.DeviceId},
          {"AdapterId", info.AdapterId},
          {"MaxRegistrationSize", info.MaxRegistrationSize},
          {"MaxWindowSize", info.MaxWindowSize},
          {"MaxInitiatorSge", info.MaxInitiatorSge},
          {"MaxReceiveSge", info.MaxReceiveSge},
          {"MaxReadSge", info.MaxReadSge},
          {"MaxTransferLength", info.MaxTransferLength},
          {"MaxInlineDataSize", info.MaxInlineDataSize},
          {"MaxInboundReadLimit", info.MaxInboundReadLimit},
          {"MaxOutboundReadLimit", info.MaxOutboundReadLimit},
          {"MaxReceiveQueueDepth", info.MaxReceiveQueueDepth},
          {"MaxInitiatorQueueDepth", info.MaxInitiatorQueueDepth},
          {"MaxSharedReceiveQueueDepth", info.MaxSharedReceiveQueueDepth},
          {"MaxCompletionQueueDepth", info.MaxCompletionQueueDepth},
          {"InlineRequestThreshold", info.InlineRequestThreshold},
          {"LargeRequestThreshold", info.LargeRequestThreshold},
          {"MaxCallerData", info.MaxCallerData},
          {"MaxCalleeData", info.MaxCalleeData},
          {"InOrderDma", (info.AdapterFlags & ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED) != 0},
          {"CqResize", (info.AdapterFlags & ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED) != 0}};
}

constexpr std::uint8_t kUntouched = 0x5A;

template <typename T>
bool untouched(const T& value) {
  T before;
  std::memset(static_cast<void*>(&before), kUntouched, sizeof before);
  return std::memcmp(&value, &before, sizeof value) == 0;
}

}  // namespace

void VectorSession::query_adapter(const VectorStep& step) {
  ND2_ADAPTER_INFO info;
  std::memset(&info, kUntouched, sizeof info);
  info.InfoVersion = static_cast<ULONG>(*step.value);
  const ND2_ADAPTER_INFO before = info;
  auto size = static_cast<ULONG>(step.size);
  expect_status(step, side(step).endpoint->adapter().Query(step.null == "info" ? nullptr : &info,
                                                           step.null == "size" ? nullptr : &size));
  if (step.needs && size != *step.needs)
    throw VectorFailure(fmt::format("{}: size {} came back, expected {}", step.text, size, *step.needs));
  if (step.status != ND_SUCCESS) {
    if (std::memcmp(&info, &before, sizeof info) != 0)
      throw VectorFailure(fmt::format("{}: it failed, and the structure has changed", step.text));
    return;
  }
  if (info.InfoVersion != *step.value)
    throw VectorFailure(fmt::format("{}: version {:#x} came back", step.text, info.InfoVersion));
  const auto fields = fields_of(info);
  for (const auto& [name, range] : step.fields) {
    const std::uint64_t value = fields.at(name);
    if (value < range.least || value > range.most)
      throw VectorFailure(
          fmt::format("{}: {} is {}, expected {} to {}", step.text, name, value, range.least, range.most));
  }
}

void VectorSession::query_affinity(const VectorStep& step) {
  USHORT group = 0xffff;
  KAFFINITY affinity = 0;
  std::memset(&affinity, kUntouched, sizeof affinity);
  USHORT* const to_group = step.null == "group" ? nullptr : &group;
  KAFFINITY* const to_affinity = step.null == "affinity" ? nullptr : &affinity;
  expect_status(step, step.queue == VectorQueue::kShared ? side(step).srq->GetNotifyAffinity(to_group, to_affinity)
                                                         : cq(step).GetNotifyAffinity(to_group, to_affinity));
  if (step.status != ND_SUCCESS) {
    if (group != 0xffff || !untouched(affinity))
      throw VectorFailure(fmt::format("{}: it failed, and gave something", step.text));
    return;
  }
  if (untouched(affinity)) throw VectorFailure(fmt::format("{}: no affinity came back", step.text));
  if (step.value && group != *step.value)
    throw VectorFailure(fmt::format("{}: processor group {}, expected {}", step.text, group, *step.value));
}

IUnknown& VectorSession::object(const VectorStep& step) {
  auto& of = side(step);
  IUnknown* found = nullptr;
  switch (step.object) {
    case VectorObject::kAdapter: found = &of.endpoint->adapter(); break;
    case VectorObject::kQueuePair: found = &face(step); break;
    case VectorObject::kWindow: found = windows_.at(step.window).window.get(); break;
    default: found = &overlapped_object(step); break;
  }
  if (found == nullptr) throw VectorFailure(step.text + ": it was released");
  return *found;
}

IND2Overlapped& VectorSession::overlapped_object(const VectorStep& step) {
  auto& of = side(step);
  IND2Overlapped* found = nullptr;
  switch (step.object) {
    case VectorObject::kInitiatorQueue: found = of.initiator_cq.get(); break;
    case VectorObject::kReceiveQueue: found = of.receive_cq.get(); break;
    case VectorObject::kSharedQueue: found = of.srq.get(); break;
    case VectorObject::kConnector: found = &connector(step, step.connection.object); break;
    case VectorObject::kListener: found = &listener(step); break;
    default: found = region(step.name).region.get(); break;
  }
  if (found == nullptr) throw VectorFailure(step.text + ": there is no such object of NetworkDirect");
  return *found;
}

/// What an object gives is the same object, by the rules of COM: one more reference, and the same IUnknown.
void VectorSession::query_interface(const VectorStep& step) {
  auto& asked = object(step);
  void* given = this;
  expect_status(step, asked.QueryInterface(step.interface, step.null == "object" ? nullptr : &given));
  if (step.status != S_OK) {
    if (step.null.empty() && given != nullptr)
      throw VectorFailure(fmt::format("{}: it failed, and gave an object", step.text));
    return;
  }
  auto* const other = static_cast<IUnknown*>(given);
  void* first = nullptr;
  void* second = nullptr;
  const bool same = asked.QueryInterface(IID_IUnknown, &first) == S_OK &&
                    other->QueryInterface(IID_IUnknown, &second) == S_OK && first == second;
  if (!same) throw VectorFailure(fmt::format("{}: another object", step.text));
  asked.Release();
  other->Release();
  if (const ULONG left = other->Release(); left != 1)
    throw VectorFailure(fmt::format("{}: {} references are left, expected 1", step.text, left));
}

/// The last reference goes. What is below the interface stays for the steps about wire and events.
void VectorSession::release(const VectorStep& step) {
  auto& of = side(step);
  ULONG left = 0;
  const auto release_overlapped = [&](auto& owner) {
    for (auto& [name, notification] : notifications_) {
      if (notification.object == owner.get()) notification.object = nullptr;
    }
    left = owner.release();
  };
  switch (step.object) {
    case VectorObject::kQueuePair: {
      auto& own = pair(step);
      own.below = static_cast<nd2::QueuePair&>(face(step)).core();
      left = own.face.release();
      break;
    }
    case VectorObject::kInitiatorQueue: release_overlapped(of.initiator_cq); break;
    case VectorObject::kReceiveQueue: release_overlapped(of.receive_cq); break;
    case VectorObject::kConnector: release_overlapped(connectors_.at(step.connection.object)); break;
    case VectorObject::kListener: release_overlapped(listeners_.at(step.connection.object)); break;
    default: left = region(step.name).region.release(); break;
  }
  if (left != 0) throw VectorFailure(fmt::format("{}: {} references are left", step.text, left));
}

void VectorSession::cancel(const VectorStep& step) {
  expect_status(step, overlapped_object(step).CancelOverlappedRequests());
}

/// One call gives these results, in this order, and touches nothing behind them.
void VectorSession::get_results(const VectorStep& step) {
  std::vector<ND2_RESULT> results(step.size + 1);
  for (auto& result : results) std::memset(static_cast<void*>(&result), kUntouched, sizeof result);
  const ULONG count = cq(step).GetResults(results.data(), static_cast<ULONG>(step.size));
  if (count != step.results.size())
    throw VectorFailure(fmt::format("{}: {} results, expected {}", step.text, count, step.results.size()));
  for (std::size_t i = 0; i < count; ++i) check_result(step, i + 1, results[i], step.results[i]);
  for (std::size_t i = count; i < results.size(); ++i) {
    if (!untouched(results[i]))
      throw VectorFailure(fmt::format("{}: element {} has changed, behind {} results", step.text, i, count));
  }
}

/// As if the machine had taken it away: the driver may do nothing but clean up.
void VectorSession::end_device(const VectorStep& step) {
  auto& kernel = side(step).endpoint->kernel();
  kernel.fail(*kernel.life());
}

/// Everything that was made before is gone, for the driver and for the NIC.
void VectorSession::restart_device(const VectorStep& step) {
  auto& kernel = side(step).endpoint->kernel();
  kernel.fail(*kernel.life());
  if (const auto done = kernel.recover(); !done)
    throw VectorFailure(fmt::format("{}: the driver cannot start the device: {}", step.text, describe(done.error())));
  for (auto& [name, count] : side(step).counters) count = 0;
  side(step).disabled = false;
}

}  // namespace rnic::testbench
