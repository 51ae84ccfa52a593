#include "testbench/timeline/request_book.hpp"

#include <algorithm>
#include <span>

#include "driver/generated/host_interface.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kPageMask = hw::kUarPageBytes - 1;
constexpr std::uint32_t kCqIndexMask = 0xff;

template <typename T>
T decode(const model::HostRequest& request) {
  return T::decode(std::span<const std::uint8_t, T::kBytes>(request.data.data(), T::kBytes));
}

}  // namespace

// ---- The processor

void RequestBook::sent_to_nic(const model::HostRequest& request, std::uint64_t now) {
  if (request.kind != model::TlpKind::kMemoryWrite) return;
  Write write{request.address, {}, {}};
  const std::uint64_t page = request.address & ~kPageMask, offset = request.address & kPageMask;
  const bool whole = page != 0 && request.data.size() >= sizeof(std::uint64_t);
  if (whole && offset == hw::uar::kSendDoorbell) {
    const auto doorbell = decode<hw::SendDoorbell>(request);
    post(send_[doorbell.qpn & 0xff], doorbell.qpn, doorbell.producer_index, false, now, write);
  } else if (whole && offset == hw::uar::kReceiveDoorbell) {
    const auto doorbell = decode<hw::ReceiveDoorbell>(request);
    post(receive_[doorbell.qpn & 0xff], doorbell.qpn, doorbell.producer_index, true, now, write);
  } else if (whole && offset == hw::uar::kCqDoorbell) {
    const auto doorbell = decode<hw::CqDoorbell>(request);
    polled(doorbell.cqn & kCqIndexMask, doorbell.consumer_index, now);
  } else if (whole && offset >= hw::uar::kWqeWindow && offset < hw::uar::kWqeWindow + hw::kUarWqeWindowBytes) {
    write_window(windows_[page], offset - hw::uar::kWqeWindow, request, now, write);
  }
  writes_.push_back(std::move(write));
}

/// The piece that completes a WQE posts it; of one whose pieces come in another order the first word, or the piece that
/// does not continue it (docs/host_interface.md, UarWqeWindow).
void RequestBook::write_window(Window& window, std::size_t offset, const model::HostRequest& request, std::uint64_t now,
                               Write& write) {
  constexpr std::size_t kUnit = 16;
  const bool continues = offset == window.next;
  if (offset == 0) {
    model::HostRequest head = request;
    head.data.resize(hw::WqeControl::kBytes);
    const auto control = decode<hw::WqeControl>(head);
    Write posts{};
    post(send_[control.qpn & 0xff], control.qpn, static_cast<std::uint16_t>(control.wqe_index + 1), false, now, posts);
    write.posts = std::move(window.posts);  // one that was never completed
    window.posts = std::move(posts.posts);
    const std::size_t size = control.size * kUnit;
    window.bytes = size <= hw::kUarWqeWindowBytes ? size : 0;
    window.next = request.data.size();
    if (!window.early && window.next < window.bytes) {
      write.pieces = window.posts;
      return;
    }
    window.early = false;
  } else if (continues) {
    window.next += request.data.size();
    if (window.next < window.bytes) {
      write.pieces = window.posts;
      return;
    }
  } else if (window.posts.empty()) {
    window.early = true;
  }
  write.posts.insert(write.posts.end(), window.posts.begin(), window.posts.end());
  window.posts.clear();
}

void RequestBook::post(Queue& queue, std::uint32_t qpn, std::uint16_t producer, bool receive, std::uint64_t now,
                       Write& write) {
  // A queue pair of another number: what was there before is gone.
  if (queue.qpn != qpn) {
    end_all(queue);
    queue = {qpn, 0, {}};
  }
  constexpr std::uint16_t kHalf = 0x8000;
  if (static_cast<std::uint16_t>(producer - queue.producer) >= kHalf) return;
  for (; queue.producer != producer; ++queue.producer) {
    const RequestPtr request = add(queue, qpn, queue.producer, receive);
    request->mark(Stage::kPosted, now);
    write.posts.push_back(request);
  }
}

void RequestBook::passed(const model::TlpSeen& tlp, std::uint64_t now) {
  if (tlp.kind != model::CreditKind::kPosted) return;
  if (tlp.way == model::PcieWay::kToHost) {
    const auto found = cqe_writes_.find(tlp.address);
    if (found == cqe_writes_.end()) return;
    found->second->mark(Stage::kCqeWritten, now);
    cqe_writes_.erase(found);
    return;
  }
  // Posted writes keep their order; those that a reset of the function took never pass.
  while (!writes_.empty()) {
    const Write write = std::move(writes_.front());
    writes_.pop_front();
    if (write.address != tlp.address) continue;
    for (const auto& request : write.pieces) request->piece = now;
    for (const auto& request : write.posts) request->mark(Stage::kDoorbell, now);
    return;
  }
}

void RequestBook::polled(std::uint32_t cqn, std::uint32_t consumer, std::uint64_t now) {
  auto& entries = cqs_[cqn];
  for (; !entries.empty() && reaches(consumer, entries.front().end); entries.pop_front()) {
    entries.front().request->mark(Stage::kPolled, now);
    sink_.request_ends(*entries.front().request);
  }
}

// ---- Requests by queue pair and index

RequestPtr RequestBook::add(Queue& queue, std::uint32_t qpn, std::uint16_t index, bool receive) {
  const auto request = std::make_shared<Request>();
  request->host = host_;
  request->qpn = qpn;
  request->qp = static_cast<std::uint8_t>(qpn);
  request->index = index;
  request->receive = receive;
  sink_.request_begins(*request);
  queue.open.push_back(request);
  return request;
}

RequestPtr RequestBook::find(const Queue& queue, std::uint16_t index) {
  const auto& open = queue.open;
  if (open.empty()) return nullptr;
  const std::size_t at = static_cast<std::uint16_t>(index - open.front()->index);
  if (at < open.size() && open[at]->index == index) return open[at];
  const auto found = std::find_if(open.begin(), open.end(), [&](const auto& r) { return r->index == index; });
  return found == open.end() ? nullptr : *found;
}

/// One whose doorbell nobody has understood, of a shared receive queue, begins now.
RequestPtr RequestBook::find_or_add(Queue& queue, std::uint8_t qp, std::uint16_t index, bool receive) {
  const RequestPtr found = find(queue, index);
  return found ? found : add(queue, queue.qpn != 0 ? queue.qpn : qp, index, receive);
}

RequestPtr RequestBook::request(std::uint8_t qp, std::uint16_t index) const { return find(send_[qp], index); }

RequestPtr RequestBook::current(std::uint8_t qp) const {
  const auto& open = send_[qp].open;
  const auto found = std::find_if(open.begin(), open.end(), [](const auto& r) { return !r->started; });
  return found == open.end() ? nullptr : *found;
}

// ---- The NIC

void RequestBook::mark(const Fetch& fetch, Stage stage, std::uint64_t now) {
  for (std::uint16_t i = 0; i < fetch.count; ++i) {
    if (const RequestPtr known = request(fetch.qp, static_cast<std::uint16_t>(fetch.index + i)))
      known->mark(stage, now);
  }
}

void RequestBook::fetch_asked(const rtl::WqeFetchReq& fetch, std::uint64_t now) {
  asked_.push_back({fetch.qp, fetch.index, fetch.count});
  mark(asked_.back(), Stage::kFetchAsked, now);
}

void RequestBook::fetch_issued(std::uint64_t now) {
  if (asked_.empty()) return;
  mark(asked_.front(), Stage::kFetchIssued, now);
  issued_.push_back(asked_.front());
  asked_.pop_front();
}

void RequestBook::fetch_answered(std::uint64_t now) {
  if (issued_.empty()) return;
  mark(issued_.front(), Stage::kFetchAnswered, now);
  issued_.pop_front();
}

void RequestBook::inflight(const rtl::Inflight& wqe, std::uint64_t turn, std::uint64_t now) {
  const RequestPtr known = request(wqe.qp, wqe.wqe_idx);
  if (!known) return;
  known->started = true;
  known->opcode = wqe.opcode;
  known->silent = wqe.silent != 0;
  known->first_psn = wqe.first_psn;
  known->last_psn = wqe.last_psn;
  known->length = wqe.length;
  if (!known->is_local()) return;
  known->mark(Stage::kTurn, turn);
  known->mark(Stage::kJudged, now);
}

void RequestBook::answered(std::uint8_t qp, const PacketPtr& packet, std::uint8_t syndrome, std::uint64_t now) {
  const bool nak = packet->opcode == kAckOpcode && syndrome >> 5 != 0;
  const bool has_data = packet->opcode != kAckOpcode;
  const std::uint32_t psn = nak ? packet->psn - 1 : packet->psn;
  for (const auto& request : send_[qp].open) {
    if (!request->started) break;
    if (request->when(Stage::kAckBack) != 0 || request->is_local()) continue;
    if (request->asks() ? !has_data || nak || packet->psn != request->last_psn : !reaches(psn, request->last_psn))
      continue;
    if (packet->taken != 0) request->mark(Stage::kAckMade, packet->taken);
    request->mark(Stage::kAckBack, now);
    request->answered = packet->times();
    if (request->asks()) packet->request = request;
    request->answer = packet->rx;
  }
}

void RequestBook::received(std::uint8_t qp, std::uint16_t index, std::uint64_t now) {
  find_or_add(receive_[qp], qp, index, true)->mark(Stage::kPlaced, now);
}

void RequestBook::drop(Queue& queue, const RequestPtr& request) {
  // Requests end in their order: those in front have no CQE.
  const auto at = std::find(queue.open.begin(), queue.open.end(), request);
  if (at == queue.open.end()) return;
  std::for_each(queue.open.begin(), at, [this](const auto& before) {
    if (!before->has_cqe) sink_.request_ends(*before);
  });
  queue.open.erase(queue.open.begin(), at + 1);
}

void RequestBook::retired(std::uint8_t qp, std::uint16_t index, bool failed, std::uint64_t now) {
  const RequestPtr known = request(qp, index);
  if (!known) return;
  known->mark(Stage::kRetired, now);
  if (failed || !known->started || !known->silent) return;
  sink_.request_ends(*known);
  std::erase(send_[qp].open, known);  // those in front may still wait for their CQEs
}

void RequestBook::cqe(const CqeWrite& cqe, std::uint64_t now) {
  const auto qp = static_cast<std::uint8_t>(cqe.qpn);
  Queue& queue = (cqe.receive ? receive_ : send_)[qp];
  const RequestPtr known = find_or_add(queue, qp, cqe.wqe_index, cqe.receive);
  known->mark(Stage::kCqeMade, now);
  known->status = cqe.status;
  known->has_cqe = true;
  sink_.request_completes(*known);
  cqe_writes_[cqe.address] = known;
  auto& entries = cqs_[cqe.cqn];
  if (!entries.empty() && cqe.end != ((entries.back().end + 1) & kPsnMask24)) {
    // Another CQ has this index now.
    for (const auto& entry : entries) sink_.request_ends(*entry.request);
    entries.clear();
  }
  entries.push_back({cqe.end, known});
  drop(queue, known);
}

// ---- The end

void RequestBook::end_all(Queue& queue) {
  for (const auto& request : queue.open) sink_.request_ends(*request);
  queue.open.clear();
}

void RequestBook::forget(std::uint8_t qp) {
  for (Queue* queue : {&send_[qp], &receive_[qp]}) {
    end_all(*queue);
    *queue = {};
  }
}

void RequestBook::finish() {
  for (auto& [cqn, entries] : cqs_) {
    for (const auto& entry : entries) sink_.request_ends(*entry.request);
  }
  for (std::size_t qp = 0; qp < send_.size(); ++qp) forget(static_cast<std::uint8_t>(qp));
  cqs_.clear();
  cqe_writes_.clear();
  writes_.clear();
  windows_.clear();
  asked_.clear();
  issued_.clear();
}

}  // namespace rnic::testbench
