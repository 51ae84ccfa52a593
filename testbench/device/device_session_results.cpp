// The steps of a DeviceSession about what comes back: completions, memory, events.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "driver/nd2/status.hpp"
#include "testbench/device/device_names.hpp"
#include "testbench/device/device_session.hpp"

namespace rnic::testbench {
namespace {

/// The statuses of vectors that a status of libibverbs is: it calls a refused bind or invalidation by a name of its
/// own, whatever was wrong. Those of the two lists are the same numbers otherwise.
std::vector<hw::CqeStatus> statuses_of(ibv_wc_status status) {
  if (status == IBV_WC_MW_BIND_ERR) return {hw::CqeStatus::kLocQpOpErr, hw::CqeStatus::kLocProtErr};
  return {static_cast<hw::CqeStatus>(status)};
}

bool is_receive(umd::RequestKind kind) {
  return kind == umd::RequestKind::kReceive || kind == umd::RequestKind::kReceiveWrite;
}

bool has_status(const VectorResult& expected, ibv_wc_status status, umd::RequestKind kind) {
  const auto seen = statuses_of(status);
  return std::any_of(seen.begin(), seen.end(), [&](hw::CqeStatus one) {
    const auto& cqe = expected.cqe_statuses;
    if (!cqe.empty()) return std::find(cqe.begin(), cqe.end(), one) != cqe.end();
    const auto of_networkdirect = nd2::completion_status(one, kind);
    return std::find(expected.statuses.begin(), expected.statuses.end(), of_networkdirect) != expected.statuses.end();
  });
}

std::string status_names(const VectorResult& expected) {
  std::string text;
  const auto add = [&text](const std::string& name) { text += (text.empty() ? "" : " or ") + name; };
  for (const auto status : expected.cqe_statuses) add(cqe_status_name(status));
  for (const auto status : expected.statuses) add(status_name(status));
  return text;
}

}  // namespace

/// Those of different queue pairs may come in any order.
void DeviceSession::complete(const VectorStep& step) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<VectorResult> left = step.results;
  for (std::size_t number = 1; !left.empty(); ++number) {
    ibv_wc wc{};
    int count = 0;
    const auto limit = std::max<std::chrono::nanoseconds>(times_.patience, std::chrono::nanoseconds(step.within_ns));
    if (!wait_until([&] { return (count = ibv_poll_cq(cq(step), 1, &wc)) != 0; }, limit))
      throw DeviceDisagrees(fmt::format("{}: result {} ({} {}) did not come", step.text, number,
                                        kind_name(left.front().kind), left.front().context));
    if (count < 0) throw DeviceDisagrees(fmt::format("{}: ibv_poll_cq fails", step.text));
    if (std::chrono::steady_clock::now() - begin < std::chrono::nanoseconds(step.not_before_ns))
      throw DeviceDisagrees(
          fmt::format("{}: result {} came before {} us", step.text, number, step.not_before_ns / 1000));
    auto next = std::find_if(left.begin(), left.end(), [&](const VectorResult& one) {
      return !one.qp || side(step).pairs.at(*one.qp).qpn == wc.qp_num;
    });
    if (next == left.end()) next = left.begin();
    check(step, number, wc, *next);
    left.erase(next);
  }
}

/// Of a completion with an error libibverbs defines status, request and queue pair alone.
void DeviceSession::check(const VectorStep& step, std::size_t number, const ibv_wc& wc, const VectorResult& expected) {
  const Request* const request = wc.wr_id < requests_.size() ? &requests_[wc.wr_id] : nullptr;
  std::string wrong;
  const auto expect = [&wrong](bool right, const char* what) {
    if (!right) wrong += (wrong.empty() ? "" : ", ") + std::string(what);
  };
  expect(request != nullptr && request->context == expected.context, "request");
  expect(has_status(expected, wc.status, expected.kind), "status");
  expect(request != nullptr &&
             (request->kind == expected.kind || (is_receive(request->kind) && is_receive(expected.kind))),
         "type");
  expect(!expected.qp || side(step).pairs.at(*expected.qp).qpn == wc.qp_num, "queue pair");
  if (wc.status == IBV_WC_SUCCESS) {
    expect(wc.opcode == verbs_opcode(expected.kind), "opcode");
    const bool receive = is_receive(expected.kind);
    expect(!receive || !expected.bytes || *expected.bytes == wc.byte_len, "bytes");
    const bool with_immediate = (wc.wc_flags & IBV_WC_WITH_IMM) != 0, with_key = (wc.wc_flags & IBV_WC_WITH_INV) != 0;
    if (receive && !expected.cqe_statuses.empty()) {
      expect(with_immediate == expected.immediate.has_value() &&
                 (!with_immediate || ntohl(wc.imm_data) == *expected.immediate),
             "immediate");
      expect(with_key == !expected.invalidated.empty() &&
                 (!with_key || wc.invalidated_rkey == remote_key(expected.invalidated)),
             "invalidated key");
    }
    expect(!expected.source_qp || wc.src_qp == sides_.at(1 - step.host).pairs.at(*expected.source_qp).qpn,
           "source queue pair");
  }
  if (wrong.empty()) return;
  throw DeviceDisagrees(fmt::format("{}: result {} is {}, expected {} {} {}{} ({})", step.text, number, describe(wc),
                                    kind_name(expected.kind), expected.context, status_names(expected),
                                    expected.bytes ? fmt::format(", {} bytes", *expected.bytes) : "", wrong));
}

std::string DeviceSession::describe(const ibv_wc& wc) const {
  const Request* const request = wc.wr_id < requests_.size() ? &requests_[wc.wr_id] : nullptr;
  std::string text = request == nullptr ? fmt::format("wr_id {:#x}", wc.wr_id)
                                        : fmt::format("{} {}", kind_name(request->kind), request->context);
  text += fmt::format(" {}", wc.status == IBV_WC_SUCCESS ? "success" : verbs_.wc_status_str(wc.status));
  if (wc.status == IBV_WC_SUCCESS)
    text += fmt::format(", opcode {}, {} bytes, flags {:#x}", static_cast<int>(wc.opcode), wc.byte_len, wc.wc_flags);
  return text;
}

void DeviceSession::no_completion(const VectorStep& step) {
  ibv_wc wc{};
  const auto limit = std::max<std::chrono::nanoseconds>(times_.settle, std::chrono::nanoseconds(step.within_ns));
  if (wait_until([&] { return ibv_poll_cq(cq(step), 1, &wc) > 0; }, limit))
    throw DeviceDisagrees(fmt::format("{}: a completion came: {}", step.text, describe(wc)));
}

/// A host that is told of a write knows nothing of the way to this memory.
void DeviceSession::memory(const VectorStep& step) {
  std::string difference;
  if (!wait_until([&] { return (difference = memory_difference(step)).empty(); }, times_.patience / 10))
    throw DeviceDisagrees(fmt::format("{}: {}", step.text, difference));
}

std::string DeviceSession::memory_difference(const VectorStep& step) {
  const auto& here = regions_.at(step.name);
  const std::uint64_t length = step.value ? sizeof *step.value : step.bytes.empty() ? step.length : step.bytes.size();
  if (step.offset + length > here.size) return fmt::format("outside region \"{}\"", step.name);
  const std::uint8_t* const bytes = here.memory.get() + step.offset;
  if (step.value) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    return word == *step.value ? "" : fmt::format("{:#x} at byte {}, expected {:#x}", word, step.offset, *step.value);
  }
  std::vector<std::function<bool(std::uint64_t)>> all;
  if (!step.bytes.empty())
    all.emplace_back([&](std::uint64_t i) { return !step.bytes[i] || bytes[i] == *step.bytes[i]; });
  if (step.equals) {
    const auto& there = regions_.at(step.equals->region);
    const auto from = static_cast<std::uint64_t>(step.equals->offset);
    if (from + length > there.size) return fmt::format("outside region \"{}\"", step.equals->region);
    all.emplace_back([&there, bytes, from](std::uint64_t i) { return bytes[i] == there.memory.get()[from + i]; });
  }
  for (const bool pattern : step.fills)
    all.emplace_back([&here, &step, bytes, pattern](std::uint64_t i) {
      return bytes[i] == (pattern ? pattern_byte(here.pattern, step.offset + i) : 0);
    });
  std::string difference;
  for (const auto& expected : all) {
    std::uint64_t i = 0;
    while (i < length && expected(i)) ++i;
    if (i == length) return {};
    difference += fmt::format("{}byte {} of region \"{}\" is {:#04x}",
                              difference.empty() ? "" : "; or: ", step.offset + i, step.name, bytes[i]);
  }
  return difference;
}

void DeviceSession::store(const VectorStep& step) {
  auto& here = regions_.at(step.name);
  const auto bytes = step.stored();
  if (step.offset + bytes.size() > here.size)
    throw DeviceDisagrees(fmt::format("{}: outside region \"{}\"", step.text, step.name));
  std::copy(bytes.begin(), bytes.end(), here.memory.get() + step.offset);
}

void DeviceSession::take_events(Side& side) {
  for (ibv_async_event event{}; verbs_.get_async_event(side.context.get(), &event) == 0;) {
    verbs_.ack_async_event(&event);
    switch (event.event_type) {
      // News of addresses, of the subnet and of a port that comes up when it likes: no matter of vectors.
      case IBV_EVENT_PORT_ACTIVE:
      case IBV_EVENT_PORT_ERR:
      case IBV_EVENT_GID_CHANGE:
      case IBV_EVENT_LID_CHANGE:
      case IBV_EVENT_PKEY_CHANGE:
      case IBV_EVENT_SM_CHANGE:
      case IBV_EVENT_CLIENT_REREGISTER: break;
      default: side.events.push_back(event);
    }
  }
}

void DeviceSession::event(const VectorStep& step) {
  auto& of = side(step);
  const auto type = verbs_event(static_cast<hw::EqeType>(*step.value));
  const auto come = [&] {
    take_events(of);
    return !of.events.empty();
  };
  if (!wait_until(come, times_.patience))
    throw DeviceDisagrees(fmt::format("{}: no event, expected {}", step.text, verbs_.event_type_str(type)));
  const ibv_async_event event = of.events.front();
  of.events.pop_front();
  bool right = event.event_type == type;
  switch (type) {
    case IBV_EVENT_CQ_ERR: right = right && event.element.cq == cq(step); break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED: right = right && event.element.srq == of.srq.get(); break;
    case IBV_EVENT_DEVICE_FATAL: break;
    default: right = right && event.element.qp == pair(step).qp.get(); break;
  }
  if (!right)
    throw DeviceDisagrees(
        fmt::format("{}: the event is {}{}, expected {}", step.text, verbs_.event_type_str(event.event_type),
                    event.event_type == type ? " of another object" : "", verbs_.event_type_str(type)));
}

void DeviceSession::no_event(const VectorStep& step) {
  auto& of = side(step);
  std::this_thread::sleep_for(
      std::max<std::chrono::nanoseconds>(times_.settle, std::chrono::nanoseconds(step.within_ns)));
  take_events(of);
  if (!of.events.empty())
    throw DeviceDisagrees(
        fmt::format("{}: an event came: {}", step.text, verbs_.event_type_str(of.events.front().event_type)));
}

void DeviceSession::expect_nothing_left() {
  std::this_thread::sleep_for(times_.settle);
  std::string left;
  const auto add = [&left](std::size_t host, const std::string& what) {
    left += fmt::format("{}host {}: {}", left.empty() ? "" : "; ", host == 0 ? 'A' : 'B', what);
  };
  for (std::size_t host = 0; host < sides_.size(); ++host) {
    auto& of = sides_.at(host);
    for (ibv_cq* const queue : {of.initiator_cq.get(), of.receive_cq.get()}) {
      for (ibv_wc wc{}; queue != nullptr && ibv_poll_cq(queue, 1, &wc) > 0;) add(host, describe(wc));
    }
    take_events(of);
    for (const auto& event : of.events) add(host, verbs_.event_type_str(event.event_type));
  }
  if (!left.empty()) throw DeviceDisagrees("ends with what no step takes: " + left);
}

}  // namespace rnic::testbench
