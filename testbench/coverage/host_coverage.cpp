#include "testbench/coverage/host_coverage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "driver/generated/host_interface.hpp"

namespace rnic::testbench {
namespace {

using wire_check::ahead;
using wire_check::kMask24;
using wire_check::not_behind;
using wire_check::Operation;
using wire_check::Packet;

constexpr std::size_t kRemembered = 512;  // packets of a queue pair
constexpr std::size_t kEntryBytes = 64;
constexpr std::uint64_t kPageMask = hw::kUarPageBytes - 1;

template <typename T>
T decoded(std::span<const std::uint8_t> bytes) {
  return T::decode(std::span<const std::uint8_t, T::kBytes>(bytes.data(), T::kBytes));
}

template <typename E>
constexpr std::uint8_t number_of(E value) {
  return static_cast<std::uint8_t>(value);
}

std::uint32_t packets(std::uint32_t length, std::uint32_t mtu) {
  return length == 0 ? 1 : static_cast<std::uint32_t>((std::uint64_t{length} + mtu - 1) / mtu);
}

std::string_view length_class(std::uint32_t length, std::uint32_t mtu) {
  if (length < mtu) return "less than a packet";
  if (length == mtu) return "a packet";
  return length % mtu == 0 ? "whole packets" : "packets and a rest";
}

std::string_view place_class(std::uint64_t address) {
  if (address % 64 == 0) return "aligned to 64";
  return address % 4 == 0 ? "aligned to 4" : "odd";
}

/// Segments between the control segment and the data segments, 16 bytes each (docs/host_interface.md, wqe_control).
std::size_t header_segments(std::uint8_t opcode, std::uint8_t type) {
  switch (static_cast<hw::WqeOpcode>(opcode)) {
    case hw::WqeOpcode::kSend:
    case hw::WqeOpcode::kSendImmediate:
    case hw::WqeOpcode::kSendInvalidate: return type == number_of(hw::QpType::kUd) ? 4 : 1;
    case hw::WqeOpcode::kCompareSwap:
    case hw::WqeOpcode::kFetchAdd: return 3;
    default: return 2;
  }
}

bool moves_data(std::uint8_t opcode) {
  return (opcode & 0xf) <= number_of(hw::WqeOpcode::kFetchAdd);  // bits 3:0 are its CqeOpcode
}

bool asks_atomic(std::uint8_t opcode) {
  return opcode == number_of(hw::WqeOpcode::kCompareSwap) || opcode == number_of(hw::WqeOpcode::kFetchAdd);
}

/// 9.7.5.2, table 43.
std::string_view refusal(std::uint8_t syndrome) {
  if (syndrome >> 5 == 1) return "receiver not ready";
  if (syndrome >> 5 != 3) return "";
  static constexpr std::array<std::string_view, 4> kCodes = {"PSN sequence error", "invalid request",
                                                             "remote access error", "remote operational error"};
  const std::size_t code = syndrome & 0x1f;
  return code < kCodes.size() ? kCodes.at(code) : "";
}

std::string_view kind(Operation operation) {
  switch (operation) {
    case Operation::kReadRequest: return "READ";
    case Operation::kCompareSwap:
    case Operation::kFetchAdd: return "atomic";
    default: break;
  }
  return operation >= Operation::kWriteFirst && operation <= Operation::kWriteOnlyImmediate ? "WRITE" : "SEND";
}

}  // namespace

HostCoverage::HostCoverage(wire_check::ReadMemory memory, std::function<void(std::size_t)> reach)
    : memory_(memory),
      reach_(std::move(reach)),
      admin_(
          std::move(memory), [this](const wire_check::AdminCommand& command) { commanded(command); },
          [this] {
            queue_pairs_.clear();
            rings_.clear();
          }) {}

void HostCoverage::reach(const std::string& point) {
  if (const auto index = PointList::get().find(point)) reach_(*index);
}

void HostCoverage::commanded(const wire_check::AdminCommand& command) {
  const std::span<const std::uint8_t> body(command.body);
  switch (static_cast<hw::AdminOpcode>(command.opcode)) {
    case hw::AdminOpcode::kCreateCq: {
      const auto cq = decoded<hw::AdminCreateCq>(body);
      rings_[cq.base] = {kEntryBytes << cq.log_depth, false};
      break;
    }
    case hw::AdminOpcode::kResizeCq: {
      const auto cq = decoded<hw::AdminResizeCq>(body);
      rings_[cq.base] = {kEntryBytes << cq.log_depth, false};
      break;
    }
    case hw::AdminOpcode::kCreateEq: {
      const auto eq = decoded<hw::AdminCreateEq>(body);
      rings_[eq.base] = {kEntryBytes << eq.log_depth, true};
      break;
    }
    case hw::AdminOpcode::kCreateQp: {
      const auto made = decoded<hw::AdminCreateQp>(body);
      QueuePair qp;
      qp.type = made.qp_type & 3;
      qp.ring = made.sq_base;
      qp.depth = 1u << made.sq_log_depth;
      qp.stride = 1u << made.sq_log_stride;
      queue_pairs_[command.number] = std::move(qp);
      break;
    }
    case hw::AdminOpcode::kDestroyQp: queue_pairs_.erase(command.number); break;
    case hw::AdminOpcode::kModifyQp:
      if (const auto it = queue_pairs_.find(command.number); it != queue_pairs_.end()) modify(it->second, command);
      break;
    default: break;
  }
}

void HostCoverage::modify(QueuePair& qp, const wire_check::AdminCommand& command) {
  const auto change = decoded<hw::AdminModifyQp>(command.body);
  const auto given = [&](hw::QpAttr attribute) {
    return (change.attr_mask & static_cast<std::uint32_t>(attribute)) != 0;
  };
  const std::uint8_t before = qp.state;
  qp.state = change.next_state & 7;
  reach(fmt::format("transition/{}/{} to {}", point_names::service(qp.type), point_names::state(before),
                    point_names::state(qp.state)));
  if (given(hw::QpAttr::kPathMtu)) qp.mtu = 128u << change.path_mtu;
  if (given(hw::QpAttr::kRqPsn)) qp.expected = change.rq_psn;
  if (given(hw::QpAttr::kDestQpn)) qp.peer = change.dest_qpn;
  if (given(hw::QpAttr::kSqPsn)) qp.oldest = qp.unsent = change.sq_psn;
  if (qp.state == number_of(hw::QpState::kReset)) {
    qp.posted.clear();
    qp.producer = 0;
    qp.asked.clear();
    qp.asking.clear();
  }
}

void HostCoverage::fail(QueuePair& qp, std::uint8_t state) {
  if (qp.state != number_of(hw::QpState::kReset) && qp.state != number_of(hw::QpState::kErr)) qp.state = state;
}

// ---- What is posted

void HostCoverage::written(std::uint64_t offset, std::span<const std::uint8_t> data, const std::vector<bool>& enabled) {
  admin_.written(offset, data, enabled);
  if ((offset & ~kPageMask) == 0 || data.size() < hw::SendDoorbell::kBytes) return;
  admin_.catch_up();
  const std::uint64_t in_page = offset & kPageMask;
  if (in_page == hw::uar::kSendDoorbell) {
    const auto doorbell = decoded<hw::SendDoorbell>(data);
    posts(doorbell.qpn, doorbell.producer_index);
  } else if (in_page == hw::uar::kWqeWindow) {
    std::vector<std::uint8_t> head(data.begin(), data.end());
    head.resize(std::max(head.size(), hw::WqeControl::kBytes));
    const auto control = decoded<hw::WqeControl>(head);
    posts(control.qpn, static_cast<std::uint16_t>(control.wqe_index + 1));
  }
}

void HostCoverage::posts(std::uint32_t qpn, std::uint16_t producer) {
  const auto it = queue_pairs_.find(qpn);
  if (it == queue_pairs_.end()) return;
  QueuePair& qp = it->second;
  if (static_cast<std::uint16_t>(producer - qp.producer) > qp.depth) return;  // the NIC refuses it
  for (; qp.producer != producer; ++qp.producer) qp.posted.push_back(read_wqe(qp, qp.producer));
}

HostCoverage::Posted HostCoverage::read_wqe(const QueuePair& qp, std::uint16_t index) {
  Posted posted{index, 0xff, std::string(point_names::state(qp.state)), {}, false};
  const auto bytes = memory_(qp.ring + std::uint64_t{index % qp.depth} * qp.stride, qp.stride);
  if (bytes.empty()) return posted;
  const auto control = decoded<hw::WqeControl>(bytes);
  if (control.wqe_index != index) return posted;  // it has not been written
  posted.opcode = control.opcode;
  posted.silent = control.silent != 0;
  if (!moves_data(control.opcode)) return posted;
  if (control.length == 0) {
    posted.shape = "/nothing";
    return posted;
  }
  const auto length = asks_atomic(control.opcode) ? length_class(8, qp.mtu) : length_class(control.length, qp.mtu);
  if (control.inline_data != 0) {
    posted.shape = fmt::format("/{}/inline", length);
    return posted;
  }
  for (std::size_t at = 16 * header_segments(control.opcode, qp.type); at + hw::WqeData::kBytes <= bytes.size();
       at += hw::WqeData::kBytes) {
    const auto segment = decoded<hw::WqeData>(std::span(bytes).subspan(at));
    if (segment.length == 0) continue;
    posted.shape = fmt::format("/{}/{}", length, place_class(segment.va));
    break;
  }
  return posted;
}

// ---- What becomes of it

void HostCoverage::stored(std::uint64_t address, std::span<const std::uint8_t> data) {
  if (data.size() != kEntryBytes || rings_.empty()) return;
  admin_.catch_up();
  auto it = rings_.upper_bound(address);
  if (it == rings_.begin()) return;
  --it;
  if (address - it->first >= it->second.bytes) return;
  if (it->second.events) {
    happened(data);
  } else {
    completed(data);
  }
}

void HostCoverage::completed(std::span<const std::uint8_t> entry) {
  const auto cqe = decoded<hw::Cqe>(entry);
  const auto it = queue_pairs_.find(cqe.qpn);
  if (it == queue_pairs_.end()) return;
  QueuePair& qp = it->second;
  const bool bad =
      cqe.status != number_of(hw::CqeStatus::kSuccess) && cqe.status != number_of(hw::CqeStatus::kWrFlushErr);
  if (cqe.is_receive == 0) {
    retired(qp, cqe.wqe_index, cqe.status, true);
    if (bad)
      fail(qp, qp.type == number_of(hw::QpType::kRc) ? number_of(hw::QpState::kErr) : number_of(hw::QpState::kSqe));
    return;
  }
  const auto prefix = fmt::format("receive/{}/{}", point_names::service(qp.type), point_names::status(cqe.status));
  reach(prefix);
  const bool write = cqe.opcode == number_of(hw::CqeOpcode::kReceiveWrite);
  reach(fmt::format("{}/{}", prefix,
                    write                      ? "WRITE with immediate"
                    : cqe.with_invalidate != 0 ? "SEND with invalidate"
                    : cqe.with_imm != 0        ? "SEND with immediate"
                                               : "SEND"));
  if (bad) fail(qp, number_of(hw::QpState::kErr));
}

/// All in front of it have succeeded in silence.
void HostCoverage::retired(QueuePair& qp, std::uint16_t index, std::size_t status, bool with_entry) {
  constexpr std::uint16_t kHalf = 0x8000;
  while (!qp.posted.empty() && static_cast<std::uint16_t>(index - qp.posted.front().index) < kHalf) {
    const Posted request = std::move(qp.posted.front());
    qp.posted.pop_front();
    if (request.index == index && with_entry)
      return outcome(qp, request, point_names::status(status), status == number_of(hw::CqeStatus::kSuccess));
    if (request.silent) outcome(qp, request, "silent", true);
  }
}

void HostCoverage::outcome(const QueuePair& qp, const Posted& request, std::string_view what, bool done) {
  const auto prefix = fmt::format("{}/{}", point_names::service(qp.type), point_names::request(request.opcode));
  reach(fmt::format("outcome/{}/{}/{}", prefix, request.state, what));
  if (done) reach(fmt::format("request/{}{}", prefix, request.shape));
}

void HostCoverage::happened(std::span<const std::uint8_t> entry) {
  const auto eqe = decoded<hw::Eqe>(entry);
  reach(fmt::format("event/{}", point_names::event(eqe.event_type)));
  const auto type = static_cast<hw::EqeType>(eqe.event_type);
  if (type != hw::EqeType::kQpFatal && type != hw::EqeType::kQpRequestError && type != hw::EqeType::kQpAccessError)
    return;
  if (const auto it = queue_pairs_.find(eqe.number); it != queue_pairs_.end())
    fail(it->second, number_of(hw::QpState::kErr));
}

// ---- The wire

void HostCoverage::sent(wire_check::Frame frame) {
  wire_check::Faults faults;
  const auto packet = wire_check::read(frame, faults);
  if (!packet || !faults.fatal.empty() || packet->service != wire_check::Service::kRc) return;
  admin_.catch_up();
  for (auto& [number, qp] : queue_pairs_) {
    if (qp.peer != packet->dest_qpn || qp.type != number_of(hw::QpType::kRc)) continue;
    if (packet->is_response()) {
      if (packet->operation != Operation::kAcknowledge || packet->syndrome >> 5 == 0) continue;
      refused("sent", qp.asked, *packet);
      qp.expected = packet->psn;
      continue;
    }
    const std::uint32_t span = packet->operation == Operation::kReadRequest ? packets(packet->length, qp.mtu) : 1;
    qp.asking.push_back({packet->psn, span, packet->operation});
    if (qp.asking.size() > kRemembered) qp.asking.pop_front();
    const std::uint32_t behind = (packet->psn + span) & kMask24;
    if (not_behind(behind, qp.unsent)) qp.unsent = behind;
  }
}

void HostCoverage::received(wire_check::Frame frame) {
  wire_check::Faults faults;
  const auto packet = wire_check::read(frame, faults);
  if (!packet || !faults.fatal.empty()) return;
  admin_.catch_up();
  const auto it = queue_pairs_.find(packet->dest_qpn);
  if (it == queue_pairs_.end() || it->second.type != static_cast<std::uint8_t>(packet->service)) return;
  came(it->second, *packet);
}

void HostCoverage::came(QueuePair& qp, const Packet& packet) {
  const std::string_view state = point_names::state(qp.state);
  reach(fmt::format("packet/{}/{}/{}/{}", point_names::service(qp.type),
                    point_names::packet(static_cast<std::size_t>(packet.operation)), relation(qp, packet), state));
  if (packet.operation == Operation::kAcknowledge && packet.syndrome >> 5 != 0) refused("received", qp.asking, packet);
}

/// The PSN beside what the queue pair expects; where it takes no packet, or there is no order: "any".
std::string HostCoverage::relation(QueuePair& qp, const Packet& packet) {
  const auto state = static_cast<hw::QpState>(qp.state);
  const bool takes = state == hw::QpState::kRtr || state == hw::QpState::kRts || state == hw::QpState::kSqd ||
                     state == hw::QpState::kSqe;
  if (!takes || packet.service == wire_check::Service::kUd) return "any";
  if (packet.is_response()) {
    if (state == hw::QpState::kRtr) return "any";
    if (!not_behind(packet.psn, qp.oldest)) return "old";
    if (not_behind(packet.psn, qp.unsent)) return "unsent";
    const bool first = packet.psn == qp.oldest;
    const bool refuses = packet.operation == Operation::kAcknowledge && packet.syndrome >> 5 != 0;
    qp.oldest = refuses ? packet.psn : (packet.psn + 1) & kMask24;
    return first ? "oldest" : "later";
  }
  const bool read = packet.operation == Operation::kReadRequest;
  const std::uint32_t behind = (packet.psn + (read ? packets(packet.length, qp.mtu) : 1)) & kMask24;
  qp.asked.push_back({packet.psn, 1, packet.operation});
  if (qp.asked.size() > kRemembered) qp.asked.pop_front();
  const bool expected = packet.psn == qp.expected;
  if (packet.service == wire_check::Service::kUc) {
    qp.expected = behind;  // 9.8.2.2.2: a message may begin at any
    return expected ? "expected" : "other";
  }
  if (expected) {
    qp.expected = behind;
    return "expected";
  }
  return not_behind(packet.psn, qp.expected) ? "ahead" : "duplicate";
}

void HostCoverage::refused(const char* way, const std::deque<Passed>& among, const Packet& packet) {
  const auto of = std::find_if(among.rbegin(), among.rend(),
                               [&](const Passed& passed) { return ahead(packet.psn, passed.psn) < passed.span; });
  // Of a gap the packet that is missing has not come: that which came instead is refused.
  const auto& newest = of != among.rend() ? of : among.rbegin();
  if (newest == among.rend()) return;
  reach(fmt::format("NAK/{}/{}/{}", way, refusal(packet.syndrome), kind(newest->operation)));
}

}  // namespace rnic::testbench
