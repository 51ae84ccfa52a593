// The steps of a VectorSession about what comes back: completions, notifications, events.
#include "testbench/verify/vector_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "driver/nd2/shared_receive_queue.hpp"
#include "testbench/nd2_results.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kPollNs = 100;

std::string type_name(std::uint32_t type) {
  constexpr const char* kNames[] = {"Receive", "Send", "Bind", "Invalidate", "Read", "Write"};
  return type < std::size(kNames) ? kNames[type] : fmt::format("type {}", type);
}

template <typename T>
bool is_one_of(const std::vector<T>& all, T one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

/// "a or b", and what leaves it open.
template <typename T, typename Name>
std::string names_of(const std::vector<T>& all, const std::string& open_by, const Name& name) {
  std::string text;
  for (const T one : all) text.append(text.empty() ? "" : " or ").append(name(one));
  return open_by.empty() ? text : fmt::format("{} (open by {})", text, open_by);
}

/// Of a failure that has one.
std::string syndrome(std::uint8_t number) { return number == 0 ? "" : fmt::format(", syndrome {:#04x}", number); }

}  // namespace

void VectorSession::complete(const VectorStep& step) {
  auto& device = sides_[step.host].endpoint->host().device();
  const std::uint64_t begin = device.now_ns();
  // Repairs take a few round trips, each longer in a world that is slower than the ordinary one.
  constexpr std::uint64_t kRoundTrips = 8;
  const std::uint64_t within_ns = step.within_ns + kRoundTrips * (way_ns(0) + way_ns(1));
  std::vector<VectorResult> expected = step.results;
  for (std::size_t i = 0; i < step.results.size(); ++i) {
    const std::uint64_t end = device.now_ns() + within_ns;
    for (auto look = device.look(); !(!expected.front().cqe_statuses.empty() ? take_completion(step, i + 1, expected)
                                                                             : take_result(step, i + 1, expected));
         look = device.look()) {
      if (device.now_ns() >= end) {
        throw VectorFailure(fmt::format("{}: result {} ({} {}) did not come within {} us", step.text, i + 1,
                                        kind_name(expected.front().kind), expected.front().context,
                                        step.within_ns / 1000));
      }
      device.look_again(look, kPollNs, end);
    }
    if (device.now_ns() < begin + step.not_before_ns) {
      throw VectorFailure(fmt::format("{}: result {} came after {} ns, not before {} us expected", step.text, i + 1,
                                      device.now_ns() - begin, step.not_before_ns / 1000));
    }
  }
}

VectorResult VectorSession::next_of(std::vector<VectorResult>& expected,
                                    const std::function<bool(std::size_t)>& is_of) {
  const auto fits = [&](const VectorResult& one) { return !one.qp || is_of(*one.qp); };
  auto it = std::find_if(expected.begin(), expected.end(), fits);
  if (it == expected.end()) it = expected.begin();
  const VectorResult taken = *it;
  expected.erase(it);
  return taken;
}

bool VectorSession::take_result(const VectorStep& step, std::size_t number, std::vector<VectorResult>& all) {
  ND2_RESULT result{};
  if (cq(step).GetResults(&result, 1) == 0) return false;
  check_result(step, number, result,
               next_of(all, [&](std::size_t qp) { return context_pointer(qp + 1) == result.QueuePairContext; }));
  return true;
}

void VectorSession::check_result(const VectorStep& step, std::size_t number, const ND2_RESULT& result,
                                 const VectorResult& expected) const {
  if (!is_listed(result)) {
    throw VectorFailure(fmt::format("{}: result {} is {} {}, which ND2_RESULT does not list", step.text, number,
                                    type_name(static_cast<std::uint32_t>(result.RequestType)),
                                    status_name(result.Status)));
  }
  const auto context = reinterpret_cast<std::uintptr_t>(result.RequestContext);
  const bool same = result.RequestType == nd2::request_type(expected.kind) && context == expected.context &&
                    is_one_of(expected.statuses, result.Status) &&
                    (!expected.bytes || *expected.bytes == result.BytesTransferred) &&
                    (!expected.qp || context_pointer(*expected.qp + 1) == result.QueuePairContext);
  if (!same) {
    throw VectorFailure(fmt::format("{}: result {} is {} {} {} ({} bytes, queue pair {}), expected {} {} {}{}{}",
                                    step.text, number, type_name(static_cast<std::uint32_t>(result.RequestType)),
                                    context, status_name(result.Status), result.BytesTransferred,
                                    reinterpret_cast<std::uintptr_t>(result.QueuePairContext), kind_name(expected.kind),
                                    expected.context, names_of(expected.statuses, expected.open_by, status_name),
                                    expected.bytes ? fmt::format(" ({} bytes)", *expected.bytes) : "",
                                    expected.qp ? fmt::format(" of queue pair {}", *expected.qp + 1) : ""));
  }
}

bool VectorSession::take_completion(const VectorStep& step, std::size_t number, std::vector<VectorResult>& all) {
  umd::Completion result;
  if (core_cq(step).poll({&result, 1}) == 0) return false;
  const auto expected =
      next_of(all, [&](std::size_t qp) { return result.qpn == side(step).pairs.at(qp).core().qpn(); });
  bool with_expected =
      expected.immediate ? result.with_immediate && result.immediate == *expected.immediate : !result.with_immediate;
  if (!expected.invalidated.empty())
    with_expected = result.with_invalidate && result.immediate == __builtin_bswap32(remote_token(expected.invalidated));
  else if (result.with_invalidate)
    with_expected = false;
  const bool same =
      result.kind == expected.kind && result.id == expected.context &&
      is_one_of(expected.cqe_statuses, result.status) && (!expected.bytes || *expected.bytes == result.byte_count) &&
      with_expected && (!expected.qp || result.qpn == side(step).pairs.at(*expected.qp).core().qpn()) &&
      (!expected.source_qp ||
       (result.grh && result.source_qpn == sides_[1 - step.host].pairs.at(*expected.source_qp).core().qpn())) &&
      (!expected.tag || *expected.tag == result.vlan) &&
      (!expected.vlan || *expected.vlan == (result.vlan_tci & 0xfff)) &&
      (!expected.sl || *expected.sl == result.vlan_tci >> 13) && (!expected.l3_ok || *expected.l3_ok == result.l3_ok) &&
      (!expected.l4_ok || *expected.l4_ok == result.l4_ok) &&
      (!expected.syndrome || *expected.syndrome == result.syndrome);
  if (!same) {
    const auto with = [](bool there, std::uint32_t value) {
      return there ? fmt::format(", immediate {:#x}", value) : std::string();
    };
    const auto checksum = [](const char* name, std::optional<bool> ok) {
      return ok ? fmt::format(", {} {}", name, *ok) : std::string();
    };
    throw VectorFailure(
        fmt::format("{}: result {} is {} {} {} ({} bytes{}{}{}{}{}{}), QPN {:#x}, expected {} {} {}{}{}{}{}{}{}{}",
                    step.text, number, kind_name(result.kind), result.id, cqe_status_name(result.status),
                    result.byte_count, with(result.with_immediate, result.immediate),
                    result.grh ? fmt::format(", from QPN {:#x}", result.source_qpn) : "",
                    result.vlan ? fmt::format(", tag {:#06x}", result.vlan_tci) : "",
                    checksum("l3_ok", expected.l3_ok ? std::optional(result.l3_ok) : std::nullopt),
                    checksum("l4_ok", expected.l4_ok ? std::optional(result.l4_ok) : std::nullopt),
                    syndrome(result.syndrome), result.qpn, kind_name(expected.kind), expected.context,
                    names_of(expected.cqe_statuses, expected.open_by, cqe_status_name),
                    expected.bytes ? fmt::format(" ({} bytes)", *expected.bytes) : "",
                    with(expected.immediate.has_value(), expected.immediate.value_or(0)),
                    expected.qp ? fmt::format(", queue pair {}", *expected.qp + 1) : "",
                    expected.tag ? fmt::format(", tag {}, VLAN {}", *expected.tag, expected.vlan.value_or(0)) : "",
                    checksum("l3_ok", expected.l3_ok), checksum("l4_ok", expected.l4_ok),
                    expected.syndrome ? fmt::format(", syndrome {:#04x}", *expected.syndrome) : std::string()));
  }
  release_list(step.host, result);
  return true;
}

void VectorSession::release_list(std::size_t host, const umd::Completion& result) {
  if (result.kind != umd::RequestKind::kInvalidate || result.status != hw::CqeStatus::kSuccess) return;
  for (auto& [name, region] : regions_) {
    const auto ended = region.ending.find(result.id);
    if (region.host != host || ended == region.ending.end()) continue;
    if (region.fast_region) static_cast<void>(region.fast_region->release(ended->second).ok());
    region.ending.erase(ended);
  }
}

void VectorSession::no_completion(const VectorStep& step) {
  sides_[step.host].endpoint->device().elapse(step.within_ns);
  umd::Completion result;
  if (core_cq(step).poll({&result, 1}) != 0) {
    throw VectorFailure(fmt::format("{}: a completion came: {} {} {}{}", step.text, kind_name(result.kind), result.id,
                                    cqe_status_name(result.status), syndrome(result.syndrome)));
  }
}

void VectorSession::expect_nothing_left() {
  std::string left;
  const auto note = [&left](std::size_t host, const std::string& what) {
    left += fmt::format("{}host {}: {}", left.empty() ? "" : "; ", host == 0 ? 'A' : 'B', what);
  };
  for (std::size_t host = 0; host < sides_.size(); ++host) {
    auto& side = sides_[host];
    for (const auto& cq : {side.initiator_core, side.receive_core}) {
      for (umd::Completion result; cq && cq->poll({&result, 1}) != 0;) {
        note(host, fmt::format("{} {} {}{}", kind_name(result.kind), result.id, cqe_status_name(result.status),
                               syndrome(result.syndrome)));
      }
    }
    for (const auto& eqe : take_events(host)) note(host, describe_event(host, eqe));
  }
  if (!left.empty()) throw VectorFailure("ends with what no step takes: " + left);
}

void VectorSession::notify(const VectorStep& step) {
  if (step.queue == VectorQueue::kShared)
    return begin(step, *side(step).srq, [&](OVERLAPPED* overlapped) { return side(step).srq->Notify(overlapped); });
  begin(step, cq(step), [&](OVERLAPPED* overlapped) { return cq(step).Notify(step.flags, overlapped); });
}

void VectorSession::notified(const VectorStep& step, bool expected) {
  const auto it = notifications_.find(step.name);
  if (it == notifications_.end()) throw VectorFailure(fmt::format("{}: no notification \"{}\"", step.text, step.name));
  auto& notification = it->second;
  auto& endpoint = *sides_[step.host].endpoint;
  const auto done = [&] {
    if (notification.status == ND_PENDING && notification.object != nullptr)
      notification.status = notification.object->GetOverlappedResult(&notification.overlapped, FALSE);
    else if (notification.status == ND_PENDING)
      notification.status = static_cast<HRESULT>(notification.overlapped.Internal);
    return notification.status != ND_PENDING;
  };
  endpoint.wait_until(done, step.within_ns + (expected ? way_ns(0) + way_ns(1) : 0));
  if (expected != done())
    throw VectorFailure(
        fmt::format("{}: notification \"{}\" is {}", step.text, step.name, expected ? "still pending" : "complete"));
  if (expected) expect_status(step, notification.status);
}

void VectorSession::Recorder::on_event(const hw::Eqe& eqe) {
  const auto type = static_cast<hw::EqeType>(eqe.event_type);
  // The end of the device is told to every object; here it is one event, of the device.
  const bool told_again = type == hw::EqeType::kDeviceFatal && pass_on;
  if (type != hw::EqeType::kCompletion && !told_again) events.push_back(eqe);
  if (pass_on) pass_on(eqe);
}

std::string VectorSession::describe_event(std::size_t host, const hw::Eqe& eqe) const {
  const auto type = static_cast<hw::EqeType>(eqe.event_type);
  const auto& qps = numbers_.hosts[host];
  const auto qp = std::find_if(qps.begin(), qps.end(), [&](const auto& one) { return one.qpn == eqe.number; });
  std::string text = fmt::format("{} of {:#x}", event_name(type), eqe.number);
  if (qp != qps.end()) text += fmt::format(" (queue pair {})", qp - qps.begin() + 1);
  if (eqe.detail != 0) text += fmt::format(", cause {}", cqe_status_name(static_cast<hw::CqeStatus>(eqe.detail)));
  return text;
}

void VectorSession::event(const VectorStep& step) {
  auto& of = side(step);
  const auto type = static_cast<hw::EqeType>(*step.value);
  if (!of.endpoint->wait_until([&] { return !of.events.empty(); }, step.within_ns)) {
    throw VectorFailure(fmt::format("{}: no event, expected {}", step.text, event_name(type)));
  }
  const hw::Eqe eqe = of.events.front();
  of.events.pop_front();
  std::uint32_t number = 1;  // the port
  if (type == hw::EqeType::kCqError)
    number = core_cq(step).cqn();
  else if (type == hw::EqeType::kSrqLimit || type == hw::EqeType::kSrqError)
    number = of.srq ? static_cast<nd2::SharedReceiveQueue&>(*of.srq).core()->srqn() : 0;
  else if (type != hw::EqeType::kPortActive && type != hw::EqeType::kPortError && type != hw::EqeType::kDeviceFatal)
    number = pair(step).core().qpn();
  const bool right_cause = !step.cause || eqe.detail == static_cast<std::uint32_t>(*step.cause);
  if (eqe.event_type != static_cast<std::uint8_t>(type) || eqe.number != number || !right_cause) {
    throw VectorFailure(fmt::format("{}: the event is {}, expected {} of {:#x}{}", step.text,
                                    describe_event(step.host, eqe), event_name(type), number,
                                    step.cause ? ", cause " + cqe_status_name(*step.cause) : ""));
  }
}

void VectorSession::no_event(const VectorStep& step) {
  auto& of = side(step);
  of.endpoint->wait_until([&] { return !of.events.empty(); }, step.within_ns);
  if (!of.events.empty())
    throw VectorFailure(fmt::format("{}: an event came: {}", step.text, describe_event(step.host, of.events.front())));
}

}  // namespace rnic::testbench
