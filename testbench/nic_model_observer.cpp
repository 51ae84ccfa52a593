#include "testbench/nic_model_observer.hpp"

#include <algorithm>
#include <optional>

#include "testbench/timeline/rx_reasons.hpp"

namespace rnic::testbench {
namespace {

using reference::Count;

/// Both number the counters in the order of docs/host_interface.md.
hw::Counter counter_of(Count counter) { return static_cast<hw::Counter>(counter); }

std::optional<RxReason> reason_of(Count counter) {
  const auto found = std::find_if(kRxReasons.begin(), kRxReasons.end(),
                                  [&](const auto& cause) { return cause.counter == counter_of(counter); });
  return found == kRxReasons.end() ? std::nullopt : std::optional(found->reason);
}

bool is_response(const reference::Packet& packet) {
  return packet.service() == reference::QpType::Rc && reference::is_response(packet.kind());
}

/// Counters of what only a requester takes.
bool of_response(Count counter) {
  return counter == Count::RxNaks || counter == Count::RxGaps || counter == Count::RxStrayResponses ||
         counter == Count::RxBadResponses;
}

rtl::RxDesc head_of(const reference::Packet& packet) {
  rtl::RxDesc head;
  head.opcode = packet.opcode;
  head.dest_qpn = packet.dest_qpn;
  head.psn = packet.psn;
  head.payload_length = static_cast<std::uint16_t>(packet.payload.size() + packet.grh.size());
  head.va = packet.va;
  head.rkey = packet.rkey;
  head.dma_length = packet.length;
  head.syndrome = packet.syndrome;
  head.source_ip = packet.path.source;
  head.dest_ip = packet.path.dest;
  return head;
}

}  // namespace

void NicModelObserver::reset() {
  works_.clear();
  listener_.nic_reset();
}

void NicModelObserver::begins(const reference::Qp& qp, const reference::Request& request) {
  const reference::SendWqe& wqe = request.wqe;
  constexpr unsigned kKind = 0xf;
  rtl::Inflight begun;
  begun.qp = qp.index();
  begun.wqe_idx = wqe.index;
  begun.opcode = wqe.opcode & kKind;
  begun.silent = wqe.silent;
  begun.first_psn = request.first_psn;
  begun.last_psn = request.packets == 0 ? request.first_psn : (request.end() - 1) & reference::kMask24;
  begun.length = wqe.length;
  now();
  listener_.turn(begun.qp);
  listener_.inflight(begun);
}

void NicModelObserver::retires(const reference::Qp& qp, const reference::Request& request) {
  now();
  listener_.retired(qp.index(), request.wqe.index, request.failed != reference::Status::Success);
}

void NicModelObserver::sends(const reference::Qp& qp, const reference::Packet& packet,
                             const reference::Request* request) {
  rtl::TxDesc head;
  head.qp = qp.index();
  head.responder = request == nullptr;
  head.opcode = packet.opcode;
  head.psn = packet.psn;
  head.ack_req = packet.ack_request;
  head.last_psn = packet.psn;
  head.payload_length = static_cast<std::uint16_t>(packet.payload.size());
  now();
  if (request != nullptr) {
    head.wqe_idx = request->wqe.index;
    if (request->wqe.is_read()) {
      head.ack_req = 1;
      head.last_psn = (request->end() - 1) & reference::kMask24;
    }
    listener_.packet_made(head.qp);
  }
  listener_.packet_taken(head);
  listener_.packet_gathered();
}

void NicModelObserver::takes(const reference::Packet& packet) {
  if (packet.service() == reference::QpType::RawPacket) return;
  works_[{packet.dest_qpn, is_response(packet)}] = {head_of(packet), RxReason::kNone, false};
}

void NicModelObserver::taken(const reference::Qp& qp, bool response) {
  const auto work = works_.find({qp.number, response});
  if (work == works_.end()) return;
  report(work->second);
  works_.erase(work);
}

void NicModelObserver::drops(const reference::Packet& packet, Count why) {
  if (packet.service() == reference::QpType::RawPacket) return;
  report({head_of(packet), reason_of(why).value_or(RxReason::kNone), false});
}

void NicModelObserver::report(const Work& work) {
  now();
  listener_.packet_judged(work.packet, work.reason);
  listener_.packet_planned();
  rtl::RxDone done;
  done.fault = work.fault;
  listener_.packet_left(&done);
}

void NicModelObserver::completes(const reference::Cq& cq, std::uint64_t address, const reference::Completion& entry) {
  now();
  listener_.cqe({static_cast<std::uint8_t>(cq.number), cq.producer, address, static_cast<std::uint8_t>(entry.status),
                 entry.opcode, entry.wqe_index, entry.qpn, entry.is_receive});
}

void NicModelObserver::resets(const reference::Qp& qp) {
  works_.erase({qp.number, false});
  works_.erase({qp.number, true});
  now();
  listener_.qp_forgotten(qp.index());
}

void NicModelObserver::counts(Count counter) { listener_.counted(counter_of(counter)); }

void NicModelObserver::counts(const reference::Qp& qp, Count counter) {
  const auto request = works_.find({qp.number, false}), response = works_.find({qp.number, true});
  if (counter == Count::RxPlaceFaults) {
    // Whose it is cannot be known while both are under way.
    if ((request == works_.end()) != (response == works_.end()))
      (request == works_.end() ? response : request)->second.fault = true;
    return;
  }
  const auto work = of_response(counter) ? response : request;
  const auto reason = reason_of(counter);
  if (work == works_.end() || !reason || work->second.reason != RxReason::kNone) return;
  work->second.reason = *reason;
}

}  // namespace rnic::testbench
