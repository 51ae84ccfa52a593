#include "model/reference/requester.hpp"

#include <algorithm>

#include "model/reference/nic.hpp"

namespace rnic::reference {
namespace {

constexpr std::size_t kBurstBytes = 32768, kBurstPackets = 16;
constexpr unsigned kReadAhead = 8;
constexpr std::uint32_t kPsnWindow = 1u << 23;  ///< PSNs that may be unacknowledged (9.7.2, decisions 69)

std::uint32_t packets_of(std::uint32_t bytes, std::size_t mtu) {
  return std::max<std::uint32_t>(1, static_cast<std::uint32_t>((bytes + mtu - 1) / mtu));
}

/// PSNs that a request takes.
std::uint32_t psns_of(const Qp& qp, const SendWqe& wqe) {
  if (wqe.is_memory()) return 0;
  return wqe.is_atomic() ? 1 : packets_of(wqe.length, qp.mtu());
}

/// Opcode of packet `number` of a SEND or WRITE of `packets` packets.
std::uint8_t kind_of(const SendWqe& wqe, std::uint32_t number, std::uint32_t packets) {
  const bool first = number == 0, last = number + 1 == packets;
  const bool immediate = (wqe.opcode & 0x10) != 0;
  if (wqe.is_send()) {
    if (!last) return first ? op::SendFirst : op::SendMiddle;
    if (wqe.opcode == wqe::SendInvalidate) return first ? op::SendOnlyInvalidate : op::SendLastInvalidate;
    if (first) return immediate ? op::SendOnlyImmediate : op::SendOnly;
    return immediate ? op::SendLastImmediate : op::SendLast;
  }
  if (!last) return first ? op::WriteFirst : op::WriteMiddle;
  if (first) return immediate ? op::WriteOnlyImmediate : op::WriteOnly;
  return immediate ? op::WriteLastImmediate : op::WriteLast;
}

}  // namespace

Task<Done> Requester::send(QpPtr qp) {
  while (!qp->gone) {
    const Step step = next(*qp);
    if (step == Step::Rest) {
      co_await qp->send_signal.wait();
      continue;
    }
    AtWork work(qp);
    if (step == Step::Packets) co_await send_packets(qp);
    if (step == Step::Fetch) co_await fetch(qp);
    if (step == Step::Begin) co_await begin(qp);
    if (step == Step::Flush) flush(*qp);
  }
  co_return Done{};
}

/// What the send queue does now.
Requester::Step Requester::next(Qp& qp) {
  if (qp.state == QpState::Err || qp.state == QpState::Sqe)
    return qp.sq_retired != qp.sq_producer ? Step::Flush : Step::Rest;
  if ((qp.state != QpState::Rts && qp.state != QpState::Sqd) || qp.rnr_wait) return Step::Rest;
  if (qp.send_psn != qp.next_psn) {
    const Request* request = holder(qp, qp.send_psn);
    if (request == nullptr || request->failed != Status::Success) return Step::Rest;
    // Beyond the credits only the first packet of a SEND goes, until its ACK says that there is a Receive (9.7.7.2.5).
    if (qp.first_only && request->end() == qp.next_psn && qp.send_psn != request->first_psn &&
        ahead(request->first_psn, qp.una_psn) < kPsnWindow)
      return Step::Rest;
    return ahead(qp.send_psn, qp.una_psn) < kPsnWindow ? Step::Packets : Step::Rest;
  }
  if (qp.state == QpState::Sqd || qp.sq_next == qp.sq_producer) return Step::Rest;
  if (!qp.requests.empty() && qp.requests.back().failed != Status::Success) return Step::Rest;
  if (qp.requests.size() >= kSqWindow) {
    nic_.count(Count::WindowStalls);
    return Step::Rest;
  }
  const auto it = qp.fetched.find(qp.sq_next);
  if (it == qp.fetched.end()) return Step::Fetch;
  SendWqe wqe;
  if (!wqe.decode(it->second, qp.type, qp.sq_next, qp.number)) return Step::Begin;
  return may_begin(qp, wqe) ? Step::Begin : Step::Rest;
}

/// Reads WQEs from the ring, some ahead.
Task<Done> Requester::fetch(QpPtr qp) {
  const std::uint64_t life = qp->life;
  const std::uint16_t slots = static_cast<std::uint16_t>(1u << qp->sq_log_depth), first = qp->sq_next;
  const std::uint16_t slot = first % slots;
  const unsigned posted = static_cast<std::uint16_t>(qp->sq_producer - first);
  const unsigned count = std::min({posted, kReadAhead, unsigned{slots} - slot});
  const std::size_t stride = std::size_t{1} << qp->sq_log_stride;
  const std::uint64_t from = qp->sq_base + slot * stride;
  nic_.count(Count::WqeFetches);
  auto bytes = co_await nic_.pcie.read(from, count * stride);
  if (qp->life != life || qp->sq_next != first || qp->state == QpState::Err) co_return Done{};
  if (!bytes) {
    Request request;
    request.wqe.opcode = cqe::Flush;
    request.wqe.index = first;
    request.first_psn = qp->next_psn;
    qp->requests.push_back(request);
    ++qp->sq_next;
    fail(*qp, qp->requests.back(), Status::FatalErr, 0);
    co_return Done{};
  }
  for (unsigned i = 0; i < count; ++i) {
    const auto begin = bytes->begin() + static_cast<std::ptrdiff_t>(i * stride);
    qp->fetched[static_cast<std::uint16_t>(first + i)] = Bytes(begin, begin + static_cast<std::ptrdiff_t>(stride));
  }
  co_return Done{};
}

/// Fence (10.8.3.3), Read limit (decisions 5), half of the PSNs (9.7.2), credits (9.7.7.2.5). What may not begin waits,
/// and all behind it.
bool Requester::may_begin(Qp& qp, const SendWqe& wqe) {
  const auto reads = std::count_if(qp.requests.begin(), qp.requests.end(),
                                   [](const Request& request) { return request.awaits_data(); });
  if ((wqe.fence && reads != 0) || (wqe.is_memory() && !qp.requests.empty())) {
    nic_.count(Count::FenceStalls);
    return false;
  }
  if ((wqe.is_read() || wqe.is_atomic()) && qp.a.max_rd_atomic != 0 && reads >= qp.a.max_rd_atomic) {
    nic_.count(Count::ReadLimitStalls);
    return false;
  }
  if (ahead(qp.next_psn, qp.una_psn) + psns_of(qp, wqe) > kPsnWindow) return false;
  qp.first_only = false;
  if (qp.type != QpType::Rc || !qp.limited || !wqe.takes_receive()) return true;
  const std::uint32_t ssn = (qp.ssn + 1) & kMask24;
  if (ahead(qp.limit_ssn, ssn) < kPsnWindow) return true;
  if (ssn == ((qp.limit_ssn + 1) & kMask24) || qp.requests.empty()) {
    qp.first_only = wqe.is_send();
    return true;
  }
  nic_.count(Count::CreditStalls);
  return false;
}

/// Takes the next WQE for a request, and gives it its PSNs (9.7.2).
Task<Done> Requester::begin(QpPtr qp) {
  Request request;
  SendWqe& wqe = request.wqe;
  bool good = wqe.decode(qp->fetched.at(qp->sq_next), qp->type, qp->sq_next, qp->number);
  good = good && (wqe.opcode != wqe::FastRegister || qp->fast_register);
  // Waiting for a Read to be allowed would never end.
  good = good && (!(wqe.is_read() || wqe.is_atomic()) || qp->a.max_rd_atomic != 0);
  if (!good) nic_.count(Count::WqeErrors);
  wqe.index = qp->sq_next;
  qp->fetched.erase(qp->sq_next);
  ++qp->sq_next;
  request.first_psn = qp->next_psn;
  if (good && !wqe.is_memory()) {
    request.packets = psns_of(*qp, wqe);
    request.ssn = qp->ssn = (qp->ssn + 1) & kMask24;
  }
  const bool one_packet = qp->type == QpType::Ud || qp->type == QpType::RawPacket;
  if (good && one_packet &&
      (wqe.length > qp->mtu() || (qp->type == QpType::RawPacket && wqe.length < kEthernetHeader))) {
    request.packets = 0;
    qp->requests.push_back(std::move(request));
    fail(*qp, qp->requests.back(), Status::LocLenErr, 0);
    co_return Done{};
  }
  qp->next_psn = (qp->next_psn + request.packets) & kMask24;
  qp->requests.push_back(std::move(request));
  if (good && nic_.observer != nullptr) nic_.observer->begins(*qp, qp->requests.back());
  if (!good) {
    fail(*qp, qp->requests.back(), Status::LocQpOpErr, 0);
  } else if (qp->requests.back().wqe.is_memory()) {
    co_await operate_memory(qp);
  }
  co_return Done{};
}

/// Bind, invalidation, fast registration: everything in front has retired, so none is ever done twice.
Task<Done> Requester::operate_memory(QpPtr qp) {
  const std::uint64_t life = qp->life;
  SendWqe wqe = qp->requests.back().wqe;
  MemOp outcome{};
  if (wqe.opcode == wqe::LocalInvalidate) {
    outcome = co_await nic_.memory.invalidate(wqe.immediate, qp->pd, qp->index(), false);
  } else if (wqe.opcode == wqe::FastRegister) {
    wqe.fast.pd = qp->pd;
    outcome = nic_.memory.fast_register(wqe.fast);
  } else {
    wqe.bind.pd = qp->pd;
    wqe.bind.qp = qp->index();
    outcome = co_await nic_.memory.bind(wqe.bind);
  }
  nic_.count(outcome == MemOp::Ok ? Count::MemoryOps : Count::MemoryOpsRefused);
  if (qp->life != life) co_return Done{};
  if (qp->state == QpState::Err) {
    // What is flushed has not been executed (decisions 17): a bind is undone, and what took access away completes as
    // such. The failure may come from a peer that no longer has it.
    nic_.memory.unbind(qp->index());
    if (outcome != MemOp::Ok) co_return Done{};
    if (!wqe.takes_away()) {
      nic_.memory.undo_bind(wqe.bind.new_key);
      co_return Done{};
    }
    Request done;
    done.wqe = wqe;
    done.done = true;
    qp->requests.push_back(done);
    retire(*qp);
    co_return Done{};
  }
  Request& request = qp->requests.back();
  if (outcome != MemOp::Ok) {
    const bool protection = outcome == MemOp::BadKey || outcome == MemOp::BadAccess || outcome == MemOp::BadRange;
    fail(*qp, request, protection ? Status::LocProtErr : Status::LocQpOpErr, static_cast<std::uint8_t>(outcome));
    co_return Done{};
  }
  request.done = true;
  retire(*qp);
  co_return Done{};
}

Request* Requester::holder(Qp& qp, std::uint32_t psn) {
  for (Request& request : qp.requests)
    if (request.holds(psn)) return &request;
  return nullptr;
}

/// Packets from send_psn on: a Read request, an atomic, or some of a SEND or WRITE, whose payload is read first.
Task<Done> Requester::send_packets(QpPtr qp) {
  const std::uint64_t life = qp->life, try_no = qp->try_no;
  const auto valid = [&] {
    return qp->life == life && qp->try_no == try_no && (qp->state == QpState::Rts || qp->state == QpState::Sqd) &&
           !qp->rnr_wait;
  };
  Request* request = holder(*qp, qp->send_psn);
  if (request->wqe.is_read() || request->wqe.is_atomic()) {
    while (!nic_.port.has_room()) co_await nic_.port.room.wait();
    request = holder(*qp, qp->send_psn);
    if (valid() && request != nullptr) send_one(qp, *request, qp->send_psn, {}, 0);
    co_return Done{};
  }
  const std::uint32_t first = ahead(qp->send_psn, request->first_psn);
  std::size_t count = std::min<std::size_t>({request->packets - first, kBurstPackets, kBurstBytes / qp->mtu()});
  if (qp->first_only && first == 0 && request->end() == qp->next_psn) count = 1;
  const std::size_t from = first * qp->mtu(), to = std::min<std::size_t>(from + count * qp->mtu(), request->wqe.length);
  Bytes data;
  std::vector<KeyUse> uses;
  Status fault{};
  std::uint8_t syndrome = 0;
  if (request->wqe.inline_data) {
    data.assign(request->wqe.data.begin() + static_cast<std::ptrdiff_t>(from),
                request->wqe.data.begin() + static_cast<std::ptrdiff_t>(to));
  } else if (to > from) {
    Access access;
    access.pd = qp->pd;
    access.qp = qp->index();
    access.right = Right::LocalRead;
    std::vector<Segment> segments = request->wqe.segments;
    Moved moved = co_await gather(nic_, std::move(segments), from, to - from, access);
    request = holder(*qp, qp->send_psn);
    if (!valid() || request == nullptr) co_return Done{};
    if (moved.status != Status::Success) count = moved.bytes.size() / qp->mtu();  // those in front of the fault
    fault = moved.status;
    syndrome = static_cast<std::uint8_t>(moved.xlate);
    data = std::move(moved.bytes);
    uses = std::move(moved.uses);
  }
  for (std::size_t i = 0; i < count; ++i) {
    while (!nic_.port.has_room()) co_await nic_.port.room.wait();
    // An acknowledgement of what was sent before may have overtaken this packet.
    request = holder(*qp, qp->send_psn);
    if (!valid() || request == nullptr || ahead(qp->send_psn, request->first_psn) != first + i) co_return Done{};
    send_one(qp, *request, qp->send_psn, data, i * qp->mtu());
  }
  if (fault == Status::Success) co_return Done{};
  request = holder(*qp, qp->send_psn);
  if (!valid() || request == nullptr) co_return Done{};
  nic_.count(Count::TxDropped);
  nic_.count(*qp, QpCount::SendFaults);
  fail(*qp, *request, fault, syndrome);
  co_return Done{};
}

void Requester::send_one(const QpPtr& qp, Request& request, std::uint32_t psn, const Bytes& data, std::size_t from) {
  const SendWqe& wqe = request.wqe;
  const std::uint32_t number = ahead(psn, request.first_psn);
  const std::size_t mtu = qp->mtu();
  Packet packet;
  packet.psn = psn;
  packet.pkey = qp->a.pkey;
  packet.path = qp->a.path;
  packet.path.source_mac = nic_.mac;
  packet.dest_qpn = qp->a.dest_qpn;
  packet.rkey = wqe.rkey;
  packet.va = wqe.va;
  packet.length = wqe.length;
  std::uint32_t end = (psn + 1) & kMask24;
  std::uint8_t kind = 0;
  if (wqe.is_read()) {
    kind = op::ReadRequest;
    packet.va += number * mtu;
    packet.length -= static_cast<std::uint32_t>(number * mtu);
    request.starts.insert(psn);
    end = request.end();
  } else if (wqe.is_atomic()) {
    kind = wqe.opcode == wqe::CompareSwap ? op::CompareSwap : op::FetchAdd;
    packet.swap_add = wqe.swap_add;
    packet.compare = wqe.compare;
  } else {
    kind = kind_of(wqe, number, request.packets);
    packet.immediate = wqe.immediate;
    const bool last = number + 1 == request.packets;
    packet.solicited = wqe.solicited && last && wqe.takes_receive();
    packet.ack_request = qp->type == QpType::Rc && (last || (qp->first_only && number == 0));
    const auto begin = data.begin() + static_cast<std::ptrdiff_t>(from);
    packet.payload.assign(begin, begin + static_cast<std::ptrdiff_t>(std::min(mtu, data.size() - from)));
  }
  if (qp->type == QpType::Ud) nic_.datagrams.address(packet, *qp, wqe);
  packet.ip_csum = wqe.ip_csum;
  packet.opcode = static_cast<std::uint8_t>(static_cast<unsigned>(qp->type) << 5 | kind);
  qp->send_psn = end;
  if (qp->type != QpType::RawPacket) nic_.count(Count::TxRequests);
  const std::uint64_t life = qp->life, try_no = qp->try_no;
  if (nic_.observer != nullptr) nic_.observer->sends(*qp, packet, &request);
  Packet head = packet;
  head.payload.clear();
  nic_.port.send(build(packet),
                 [this, qp, head, end, life, try_no] { has_left(qp, head, end, life, qp->try_no == try_no); });
}

/// The packet is on the wire. What may be acknowledged is what has left (9.7.6); UC and UD requests end so (9.8.2.2).
/// `awaited`: the requester has not gone back since the packet was made. If it has, the time-out is that of the packet
/// that is sent again.
void Requester::has_left(const QpPtr& qp, const Packet& packet, std::uint32_t end, std::uint64_t life, bool awaited) {
  if (qp->life != life) return;
  const std::uint32_t distance = ahead(end, qp->una_psn);
  if (distance <= ahead(qp->next_psn, qp->una_psn) && distance > ahead(qp->sent_psn, qp->una_psn)) qp->sent_psn = end;
  qp->went_back.reset();
  if (qp->type == QpType::Rc) {
    const std::uint8_t kind = packet.kind();
    const bool asks = packet.ack_request || kind == op::ReadRequest || kind == op::CompareSwap || kind == op::FetchAdd;
    if (asks && awaited && !qp->ack_timer.runs() && qp->una_psn != qp->sent_psn) start_timer(*qp);
    return;
  }
  if (Request* request = holder(*qp, packet.psn); request != nullptr && request->end() == end) {
    qp->una_psn = end;
    request->done = true;
    retire(*qp);
  }
}

/// The request completes with an error when all before it have completed.
void Requester::fail(Qp& qp, Request& request, Status status, std::uint8_t syndrome) {
  if (request.failed != Status::Success) return;
  request.failed = status;
  request.syndrome = syndrome;
  retire(qp);
}

void Requester::retire(Qp& qp) {
  bool record = false;
  while (!qp.requests.empty()) {
    Request& request = qp.requests.front();
    if (!request.done && request.failed == Status::Success) break;
    const bool failed = request.failed != Status::Success;
    qp.sq_retired = static_cast<std::uint16_t>(request.wqe.index + 1);
    record = request.wqe.silent && !failed;
    if (nic_.observer != nullptr) nic_.observer->retires(qp, request);
    if (!record) {
      Completion entry;
      entry.status = request.failed;
      const std::uint8_t opcode = request.wqe.opcode;
      entry.opcode = opcode == cqe::Flush ? opcode : opcode & 0xf;
      entry.wqe_index = request.wqe.index;
      entry.qpn = qp.number;
      entry.byte_count = request.wqe.length;
      entry.retired_index = qp.sq_retired;
      entry.syndrome = request.syndrome;
      qp.requests.pop_front();
      if (failed) nic_.qps.send_failed(qp);
      nic_.queues.complete(qp.send_cqn, entry);
      if (failed) return;
      continue;
    }
    qp.requests.pop_front();
  }
  if (record) {
    Bytes bytes;
    append_little(bytes, qp.sq_retired, 8);
    nic_.pcie.write(qp.retired_address, bytes);
    nic_.count(Count::RetiredRecords);
  }
  look_drained(qp);
  qp.send_signal.raise();
}

void Requester::look_drained(Qp& qp) {
  if (qp.state != QpState::Sqd || !qp.drain_notify || !qp.requests.empty()) return;
  qp.drain_notify = false;
  nic_.qps.event(qp, Event::SqDrained);
}

/// One entry for each WQE that was posted (10.3.1.6, 10.8.3.1).
void Requester::flush(Qp& qp) {
  Completion entry;
  entry.status = Status::WrFlushErr;
  entry.opcode = cqe::Flush;
  entry.wqe_index = qp.sq_retired++;
  entry.qpn = qp.number;
  entry.retired_index = qp.sq_retired;
  qp.sq_next = qp.sq_retired;
  nic_.count(Count::FlushedWqes);
  nic_.queues.complete(qp.send_cqn, entry);
}

}  // namespace rnic::reference
