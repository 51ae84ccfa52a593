#include "testbench/timeline/packet_book.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace rnic::testbench {
namespace {

/// A packet that has not been judged for so long has been lost, or was no good when it came.
constexpr std::uint64_t kLostAfterPs = 1'000'000'000;

/// Whether a packet that is not planned is over: otherwise it waits, and is judged again.
bool ends(RxReason reason) { return reason != RxReason::kNone && reason != RxReason::kWaits; }

}  // namespace

// ---- Made here

void PacketBook::taken(const rtl::TxDesc& head, std::uint64_t now) {
  const auto packet = std::make_shared<Packet>();
  packet->id = (std::uint64_t{host_} << 48) + ++ids_;
  packet->host = host_;
  packet->qp = head.qp;
  packet->responder = head.responder != 0;
  packet->opcode = head.opcode;
  packet->psn = head.psn;
  packet->length = head.payload_length;
  packet->made = packet->taken = now;
  count(*packet, !packet->responder && head.ack_req != 0 ? head.last_psn : head.psn);
  if (packet->responder) {
    const Executed& executed = executed_[head.qp];
    packet->answers = executed.id;
    packet->answers_at = executed.at;
    packet->answers_track = executed.track;
  } else if (!made_.empty()) {
    packet->made = made_.front().at;
    if (const RequestPtr request = requests_.request(head.qp, head.wqe_idx)) {
      request->mark(Stage::kTurn, made_.front().turn);
      request->mark(Stage::kJudged, made_.front().at);
      ++request->packets;
      request->repeated += packet->repeated;
      packet->request = request;
    }
    made_.pop_front();
  }
  sink_.send_begins(*packet);
  gathering_.push_back(packet);
}

void PacketBook::count(Packet& packet, std::uint32_t last_psn) {
  Newest& newest = newest_[packet.qp][packet.responder];
  packet.repeated = newest.any && reaches(newest.psn, packet.psn);
  // The ACKs of a responder repeat PSNs of Read responses, and each other's, as often as they are asked for.
  if (packet.responder && packet.length == 0) packet.repeated = false;
  if (!newest.any || reaches(last_psn, newest.psn)) newest = {true, last_psn};
}

void PacketBook::part_asked(bool read) {
  if (read && !gathering_.empty()) parts_.push_back(gathering_.back());
}

void PacketBook::part_translated(std::uint64_t now) {
  if (parts_.empty()) return;
  parts_.front()->translated = now;
  parts_.pop_front();
}

void PacketBook::tlb_missed() {
  if (!parts_.empty()) ++parts_.front()->tlb_misses;
}

void PacketBook::dropped() {
  if (!gathering_.empty()) gathering_.front()->dropped = true;
}

void PacketBook::gathered(std::uint64_t now) {
  if (gathering_.empty()) return;
  const PacketPtr packet = gathering_.front();
  gathering_.pop_front();
  packet->gathered = now;
  sink_.send_ends(*packet);
  if (packet->dropped) {
    sink_.packet_over(*packet);
  } else {
    ready_.push_back(packet);
  }
}

PacketPtr PacketBook::left(std::uint8_t opcode, std::uint32_t psn) {
  const auto found = std::find_if(ready_.begin(), ready_.end(),
                                  [&](const auto& packet) { return packet->opcode == opcode && packet->psn == psn; });
  if (found == ready_.end()) return nullptr;
  const PacketPtr packet = *found;
  std::move(ready_.begin(), found, std::back_inserter(looping_));
  ready_.erase(ready_.begin(), found + 1);
  return packet;
}

// ---- Come here

void PacketBook::arrives(const PacketPtr& packet) {
  expire(packet->wire_end);
  arriving_.push_back(packet);
}

void PacketBook::expire(std::uint64_t now) {
  const auto is_old = [now](const Packet& packet) {
    return std::max(packet.gathered, packet.wire_end) + kLostAfterPs < now;
  };
  for (; !arriving_.empty() && is_old(*arriving_.front()); arriving_.pop_front()) {
    arriving_.front()->lost = arriving_.front()->checked == 0;
    if (arriving_.front()->receiving) sink_.receive_ends(*arriving_.front());
    sink_.packet_over(*arriving_.front());
  }
  for (; !looping_.empty() && is_old(*looping_.front()); looping_.pop_front()) sink_.packet_over(*looping_.front());
}

PacketPtr PacketBook::find_arriving(const rtl::RxDesc& head) const {
  const auto found = std::find_if(arriving_.begin(), arriving_.end(), [&](const auto& packet) {
    return packet->opcode == head.opcode && packet->psn == head.psn && packet->dest_qpn == head.dest_qpn;
  });
  return found == arriving_.end() ? nullptr : *found;
}

/// A packet of this NIC to itself, which the wire does not see. Such packets arrive in the order in which they are
/// made.
PacketPtr PacketBook::take_loopback(const rtl::RxDesc& head) {
  if (head.source_ip != head.dest_ip) return nullptr;
  for (auto* packets : {&looping_, &ready_}) {
    const auto found = std::find_if(packets->begin(), packets->end(), [&](const auto& packet) {
      return packet->opcode == head.opcode && packet->psn == head.psn;
    });
    if (found == packets->end()) continue;
    const PacketPtr packet = *found;
    packets->erase(found);
    packet->dest_qpn = head.dest_qpn;
    // It may be held, and validated again.
    arriving_.push_back(packet);
    const RequestPtr& request = packet->request;
    if (request && request->ends_with(packet->psn) && request->last_sent.taken == 0)
      request->last_sent = packet->times();
    return packet;
  }
  return nullptr;
}

void PacketBook::judged(const rtl::RxDesc& head, RxReason reason, std::uint64_t now) {
  settle_judged();
  judged_syndrome_ = head.syndrome;
  judged_ = find_arriving(head);
  if (!judged_) judged_ = take_loopback(head);
  if (!judged_) {
    // Injected, or a copy of one that has come before.
    judged_ = std::make_shared<Packet>();
    judged_->opcode = head.opcode;
    judged_->psn = head.psn;
    judged_->dest_qpn = head.dest_qpn;
    judged_->length = head.payload_length;
  }
  judged_->syndrome = head.syndrome;
  judged_->va = head.va;
  judged_->rkey = head.rkey;
  judged_->asked = head.dma_length;
  judged_->checked = now;
  judged_->reason = reason;
  judged_->receiver = host_;
  // Now, and not when it is planned: the one in front may still be here.
  if (!std::exchange(judged_->receiving, true)) sink_.receive_begins(*judged_);
}

/// The packet judged last was not planned.
void PacketBook::settle_judged() {
  if (!judged_) return;
  const PacketPtr packet = std::move(judged_);
  judged_ = nullptr;
  if (!ends(packet->reason)) {
    // It waits, and is judged again; one that nobody knows is another one then.
    if (packet->id == 0) sink_.receive_ends(*packet);
    return;
  }
  std::erase(arriving_, packet);
  sink_.receive_ends(*packet);
  sink_.packet_received(*packet);
  if (packet->id != 0) sink_.packet_over(*packet);
}

void PacketBook::planned() {
  if (!judged_) return;
  const PacketPtr packet = std::move(judged_);
  judged_ = nullptr;
  std::erase(arriving_, packet);
  placing_.push_back(packet);
  const auto qp = static_cast<std::uint8_t>(packet->dest_qpn);
  if (is_response(packet->opcode)) {
    // What has a gap in front is asked for again.
    if (packet->reason == RxReason::kNone || packet->reason == RxReason::kNak)
      requests_.answered(qp, packet, judged_syndrome_, packet->checked);
    return;
  }
  if (packet->reason == RxReason::kNone && packet->request && packet->request->ends_with(packet->psn))
    packet->request->mark(Stage::kChecked, packet->checked);
}

void PacketBook::placed(const rtl::RxDone* done, std::uint64_t now) {
  if (placing_.empty()) return;
  const PacketPtr packet = placing_.front();
  placing_.pop_front();
  packet->placed = now;
  packet->fault = done != nullptr && done->fault != 0;
  sink_.receive_ends(*packet);
  const auto qp = static_cast<std::uint8_t>(packet->dest_qpn);
  if (done != nullptr && static_cast<rtl::RxAction>(done->action) == rtl::RxAction::kReceiveDone)
    requests_.received(qp, done->wqe_idx, now);
  const bool response = is_response(packet->opcode);
  const RequestPtr& request = packet->request;
  const bool good = packet->reason == RxReason::kNone && !packet->fault;
  if (good && request && request->asks() == response && (response || request->ends_with(packet->psn)))
    request->mark(Stage::kPlaced, now);
  if (!response) executed_[qp] = {packet->id, packet->checked, packet->rx};
  sink_.packet_received(*packet);
  if (packet->id != 0) sink_.packet_over(*packet);
}

// ---- The end

void PacketBook::forget() {
  finish();
  made_.clear();
  turns_ = {};
  newest_ = {};
  executed_ = {};
  judged_ = nullptr;
}

void PacketBook::finish() {
  settle_judged();
  for (const auto& packet : gathering_) sink_.send_ends(*packet);
  for (auto* packets : {&ready_, &looping_, &arriving_, &placing_}) {
    for (const auto& packet : *packets) sink_.packet_over(*packet);
  }
  for (auto* packets : {&arriving_, &placing_}) {
    for (const auto& packet : *packets) {
      if (packet->receiving) sink_.receive_ends(*packet);
    }
  }
  gathering_.clear();
  parts_.clear();
  ready_.clear();
  looping_.clear();
  arriving_.clear();
  placing_.clear();
}

}  // namespace rnic::testbench
