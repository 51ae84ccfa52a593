#pragma once

#include "tests/rtl/rx_models.hpp"
#include "tests/support/credits.hpp"

/// What a queue pair must make of the packets it receives, written from InfiniBand specification 9.7 (responder 9.7.4
/// and 9.7.5, requester 9.7.6), 9.8.2.2 (UC), 9.8.3.2 (UD) and rtl/streams.toml. One packet at a time, memory left to
/// PlaceModel.
namespace rnic::test {

/// A Read that the QP has sent and whose data has not all arrived.
struct AwaitedRead {
  std::uint16_t wqe_idx = 0;
  std::uint32_t first_psn = 0, length = 0, offset = 0;
  bool replayed = false, atomic = false;
  std::uint32_t expected(std::uint32_t mtu) const { return (first_psn + offset / mtu) & 0xffffff; }
};

struct QpModel {
  rtl::RecvCtx recv;
  rtl::SendCtx send;
  rtl::Path path;
  rtl::Reach reach;
  std::deque<AwaitedRead> awaited;
  bool requests_killed = false, responses_killed = false;
  std::map<std::uint16_t, ScatterList> receive_lists, read_lists;
  std::uint16_t tag = 0;  ///< On an SRQ: of the WQE of the message under way
  std::uint32_t mtu() const { return 128u << recv.mtu; }
};

/// A shared receive queue, and what was posted, by index.
struct SrqModel {
  rtl::SrqCtx ctx;
  std::map<std::uint16_t, ScatterList> lists;
  std::uint64_t limits = 0;  ///< WQEs taken while fewer than the limit were left
};

class ProtocolModel {
 public:
  explicit ProtocolModel(PlaceModel& place_model) : place_(place_model) {}
  std::map<std::uint8_t, QpModel> qps;
  std::map<std::uint8_t, SrqModel> srqs;
  std::array<std::uint64_t, hw::kCounterNames.size()> counters{};
  std::map<std::uint8_t, std::array<std::uint64_t, hw::kQpCounters>> qp_counters;

  struct Result {
    std::optional<rtl::RxDone> done;
    bool executed = false;  ///< Request executed, or response accepted
    bool held = false;      ///< Request that must come again
  };

  Result receive(const rtl::RxDesc& d, const Bytes& payload) {
    rtl::RxPlan plan;
    plan.qp = static_cast<std::uint8_t>(d.dest_qpn);
    plan.qpn = d.dest_qpn;
    plan.psn = d.psn;
    plan.payload_length = static_cast<std::uint16_t>(payload.size());
    const ScatterList* list = nullptr;
    Result result;
    counted_qp_ = plan.qp;
    const bool response = d.opcode >= 0x0d && d.opcode <= 0x12;
    held_ = false;
    if (auto* qp = admit(d, response)) {
      plan.pd = response ? qp->send.pd : qp->recv.pd;
      if (response)
        result.executed = requester(*qp, d, payload.size(), plan, list);
      else if (qp->recv.qp_type != 0)
        result.executed = unreliable(*qp, d, payload.size(), plan, list);
      else
        result.executed = responder(*qp, d, payload.size(), plan, list);
    }
    // What must wait leaves nothing here but its number.
    result.held = held_;
    if (held_) return result;
    const auto faults = place_.faults;
    result.done = place_.place(plan, payload, list);
    if (place_.faults != faults) count(hw::Counter::kRxPlaceFaults);
    return result;
  }

  std::map<unsigned, unsigned> established;  // first packets in RTR, by QP

 private:
  static constexpr std::size_t index(hw::Counter counter) { return static_cast<std::size_t>(counter); }
  /// Of the NIC, and of the QP that the packet names.
  void count(hw::Counter counter) {
    static const std::map<hw::Counter, hw::QpCounter> kOfQp{
        {hw::Counter::kRxBadPeer, hw::QpCounter::kBadPeer},
        {hw::Counter::kRxBadQkey, hw::QpCounter::kBadQkey},
        {hw::Counter::kRxBadState, hw::QpCounter::kBadState},
        {hw::Counter::kRxDuplicate, hw::QpCounter::kDuplicates},
        {hw::Counter::kRxPsnError, hw::QpCounter::kPsnErrors},
        {hw::Counter::kRxHeld, hw::QpCounter::kHeld},
        {hw::Counter::kRxInvalidRequest, hw::QpCounter::kInvalidRequests},
        {hw::Counter::kRxForbidden, hw::QpCounter::kForbidden},
        {hw::Counter::kRxRnr, hw::QpCounter::kNoReceive},
        {hw::Counter::kRxBrokenMessages, hw::QpCounter::kBrokenMessages},
        {hw::Counter::kRxPlaceFaults, hw::QpCounter::kPlaceFaults},
        {hw::Counter::kRxNoRoom, hw::QpCounter::kNoRoom},
        {hw::Counter::kRxGaps, hw::QpCounter::kGaps},
        {hw::Counter::kRxStrayResponses, hw::QpCounter::kStrayResponses},
        {hw::Counter::kRxBadResponses, hw::QpCounter::kBadResponses},
        {hw::Counter::kRxSrqErrors, hw::QpCounter::kSrqErrors}};
    ++counters[index(counter)];
    if (const auto found = kOfQp.find(counter); found != kOfQp.end()) count(found->second);
  }
  void count(hw::QpCounter counter) { ++qp_counters[counted_qp_][static_cast<std::size_t>(counter)]; }
  static std::uint32_t psn24(std::uint32_t value) { return value & 0xffffff; }

  QpModel* admit(const rtl::RxDesc& d, bool response) {
    const auto found = qps.find(static_cast<std::uint8_t>(d.dest_qpn));
    if (found == qps.end() || !found->second.recv.in_use || found->second.recv.qpn != d.dest_qpn)
      return count(hw::Counter::kRxNoQp), nullptr;
    auto& qp = found->second;
    const auto& path = qp.path;
    const bool ud = qp.recv.qp_type == 3, raw = qp.recv.qp_type == 2 || ((d.opcode >> 5) & 3) == 2;
    // 10.9.3: the same partition, and not both limited members.
    const bool pkey_ok =
        ((path.pkey ^ d.pkey) & 0x7fff) == 0 && (d.pkey & 0x7fff) != 0 && ((path.pkey | d.pkey) & 0x8000) != 0;
    // A tag of VID 0 is of no VLAN (802.1Q 9.6).
    const auto vid = [](bool tag, unsigned tci) { return tag ? tci & 0xfff : 0; };
    const bool vlan = vid(path.vlan, path.vlan_id) == vid(d.vlan, d.vlan_tci);
    // What comes to a group, the front end has judged.
    const bool own =
        d.multicast || ((d.dest_ip == path.source_ip || d.dest_ip == path.dest_ip) && d.ipv6 != mapped(d.dest_ip));
    const bool peer = path.ipv6 == d.ipv6 && path.dest_ip == d.source_ip && path.source_ip == d.dest_ip && vlan;
    // An Ethernet frame has none of these (host_interface.md, Ethernet).
    if (!raw && (!pkey_ok || !(ud ? own : peer))) return count(hw::Counter::kRxBadPeer), nullptr;
    if (ud && d.opcode >> 5 == 3 && d.qkey != qp.recv.qkey) return count(hw::Counter::kRxBadQkey), nullptr;
    const auto state = static_cast<hw::QpState>(response ? qp.send.state : qp.recv.state);
    const bool killed = response ? qp.responses_killed : qp.requests_killed;
    if (d.opcode >> 5 != qp.recv.qp_type || killed ||
        !(state == hw::QpState::kRts || state == hw::QpState::kSqd || (state == hw::QpState::kRtr && !response)))
      return count(hw::Counter::kRxBadState), nullptr;
    if (state == hw::QpState::kRtr && !qp.recv.established) {
      qp.recv.established = 1;
      ++established[static_cast<std::uint8_t>(d.dest_qpn)];
    }
    return &qp;
  }
  static bool mapped(const std::array<std::uint8_t, 16>& ip) {
    static constexpr std::array<std::uint8_t, 12> kPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return std::equal(kPrefix.begin(), kPrefix.end(), ip.begin());
  }

  /// The next WQE of an SRQ.
  static const ScatterList* take(QpModel& qp, SrqModel& srq, rtl::RxPlan& plan) {
    const auto& list = srq.lists.at(srq.ctx.head);
    plan.takes = 1;
    qp.tag = plan.wqe_idx = list.tag;
    ++srq.ctx.head;
    if (static_cast<std::uint16_t>(srq.ctx.pi - srq.ctx.head) < srq.ctx.limit) srq.ctx.limit_hit = 1;
    srq.limits += srq.ctx.limit_hit;
    return &list;
  }

  // ---- Responder of UC, UD and Ethernet frames ----
  bool unreliable(QpModel& qp, const rtl::RxDesc& d, std::size_t size, rtl::RxPlan& plan, const ScatterList*& list) {
    auto& c = qp.recv;
    const bool ud = c.qp_type == 3, raw = c.qp_type == 2;
    plan.unreliable = 1;
    plan.take = c.take;
    plan.wqe_idx = c.rq_head;
    plan.srq = c.srq;
    plan.srqn = c.srqn;
    SrqModel* srq = c.srq ? &srqs.at(c.srqn) : nullptr;
    const int operation = d.opcode & 0x1f;
    const bool supported = operation <= 0x0b;
    const bool write = operation >= 0x06;
    const int position =
        write ? operation - 6 : operation;  // First, Middle, Last, Last with immediate, Only, Only with immediate
    const bool starts = supported && (position == 0 || position >= 4), ends = supported && position >= 2;
    const bool immediate = supported && (position == 3 || position == 5);
    const bool follows = supported && !starts && d.psn == c.epsn && c.msg == (write ? 2 : 1);
    const bool in_place = starts || follows;
    const bool under_way = c.msg == 1 || c.msg == 2;
    if ((under_way && (starts || !in_place)) || (c.msg == 0 && supported && !in_place))
      count(hw::Counter::kRxBrokenMessages);
    // 9.8.2.2: any packet sets the PSN that is expected next; one that is not executed takes the rest of its message
    // with it.
    if (!ud && !raw) {
      c.epsn = psn24(d.psn + 1);
      c.msg = ends ? 0 : 3;
    }
    if (!in_place) return false;
    const std::uint64_t mtu = qp.mtu(), total = starts ? d.dma_length : c.remain;
    bool length_ok = size == mtu;
    if (ends) length_ok = size <= (raw ? hw::kMaxFrameBytes : mtu + (ud ? 40 : 0)) && (starts || size > 0);
    if (write)
      length_ok = length_ok && total <= 1ULL << 31 && (ends ? size == total : size < total);
    else
      length_ok = length_ok && (starts ? 0 : c.received) + std::uint64_t{size} <= 1ULL << 31;
    if (!length_ok || (write && !c.remote_write)) return count(hw::Counter::kRxInvalidRequest), false;
    const bool wants = (!write && starts) || (write && immediate);
    // An SRQ in error is the responder's own fault.
    if (wants && srq && srq->ctx.error) {
      count(hw::Counter::kRxSrqErrors);
      qp.requests_killed = true;
      plan.action = static_cast<std::uint8_t>(rtl::RxAction::kNak);
      plan.syndrome = 0x63;
      return false;
    }
    if (wants && (srq ? srq->ctx.head == srq->ctx.pi : c.rq_head == c.rq_pi)) return count(hw::Counter::kRxRnr), false;
    if (wants && srq) list = take(qp, *srq, plan);

    const auto before = starts ? 0 : c.received;
    if (!ends) c.msg = write ? 2 : 1;
    c.received = ends ? 0 : static_cast<std::uint32_t>(before + size);
    plan.msg_last = ends;
    plan.first_byte = before;
    plan.byte_count = static_cast<std::uint32_t>(before + size);
    if (write) {
      plan.key = starts ? d.rkey : c.rkey;
      plan.va = starts ? d.va : c.va;
      plan.check_length = static_cast<std::uint32_t>(starts ? d.dma_length : size);
      if (size) plan.target = static_cast<std::uint8_t>(rtl::PlaceTarget::kWrite);
      c.rkey = plan.key;
      c.va = plan.va + size;
      c.remain = static_cast<std::uint32_t>(total - size);
    } else {
      if (size) plan.target = static_cast<std::uint8_t>(rtl::PlaceTarget::kReceive);
      if (starts && size && !srq) list = &qp.receive_lists.at(c.rq_head);
    }
    if (srq) plan.pd = srq->ctx.pd;
    if (ends && (!write || immediate)) {
      plan.action = static_cast<std::uint8_t>(rtl::RxAction::kReceiveDone);
      plan.solicited = d.solicited;
      plan.write_imm = write;
      plan.with_imm = immediate;
      plan.immediate = d.immediate;
      plan.grh = ud;
      plan.source_qpn = d.source_qpn;
      if (ud) plan.vlan = d.vlan, plan.vlan_tci = d.vlan_tci;
      plan.l3_ok = d.l3_ok;
      plan.l4_ok = d.l4_ok;
      if (!srq) ++c.rq_head;
    }
    return true;
  }

  // ---- Responder ----
  enum class Position { kFirst, kMiddle, kLast, kOnly };
  bool responder(QpModel& qp, const rtl::RxDesc& d, std::size_t size, rtl::RxPlan& plan, const ScatterList*& list) {
    auto& c = qp.recv;
    plan.psn = c.epsn;
    plan.ack_req = d.ack_req;
    plan.wqe_idx = c.srq ? qp.tag : c.rq_head;
    plan.srq = c.srq;
    plan.srqn = c.srqn;
    SrqModel* srq = c.srq ? &srqs.at(c.srqn) : nullptr;
    const auto nak = [&](std::uint8_t syndrome) {
      plan.action = static_cast<std::uint8_t>(rtl::RxAction::kNak);
      plan.syndrome = syndrome;
      c.nak_sent = 1;
      return false;
    };
    const auto fatal = [&](std::uint8_t syndrome, hw::Counter counter = hw::Counter::kRxInvalidRequest) {
      qp.requests_killed = true;
      count(counter);
      return nak(syndrome);
    };
    enum class Kind { kSend, kWrite, kRead } kind{};
    Position position{};
    bool supported = true, immediate = false, invalidate = false, atomic = false;
    switch (d.opcode) {
      case 0x00: kind = Kind::kSend, position = Position::kFirst; break;
      case 0x01: kind = Kind::kSend, position = Position::kMiddle; break;
      case 0x02: kind = Kind::kSend, position = Position::kLast; break;
      case 0x03: kind = Kind::kSend, position = Position::kLast, immediate = true; break;
      case 0x04: kind = Kind::kSend, position = Position::kOnly; break;
      case 0x05: kind = Kind::kSend, position = Position::kOnly, immediate = true; break;
      case 0x09: kind = Kind::kWrite, position = Position::kLast, immediate = true; break;
      case 0x0b: kind = Kind::kWrite, position = Position::kOnly, immediate = true; break;
      case 0x13:
      case 0x14: kind = Kind::kRead, position = Position::kOnly, atomic = true; break;
      case 0x16: kind = Kind::kSend, position = Position::kLast, invalidate = true; break;
      case 0x17: kind = Kind::kSend, position = Position::kOnly, invalidate = true; break;
      case 0x06: kind = Kind::kWrite, position = Position::kFirst; break;
      case 0x07: kind = Kind::kWrite, position = Position::kMiddle; break;
      case 0x08: kind = Kind::kWrite, position = Position::kLast; break;
      case 0x0a: kind = Kind::kWrite, position = Position::kOnly; break;
      case 0x0c: kind = Kind::kRead, position = Position::kOnly; break;
      default: supported = false;
    }

    // 9.5, C9-28: what comes behind a request that waits waits too; of those that come again each is judged as the
    // first time.
    const std::uint32_t age = psn24(c.epsn - d.psn);
    const bool duplicate = age != 0 && age <= 0x800000;
    const std::uint8_t waiting = c.parked;
    const auto hold = [&](hw::Counter counter) {
      held_ = true;
      c.parked = static_cast<std::uint8_t>(waiting + !d.parked);
      if (!d.parked) count(counter);
      return false;
    };
    if (!duplicate && c.parked != 0 && !d.parked) return hold(hw::Counter::kRxHeld);
    if (d.parked && c.parked != 0) --c.parked;

    // PSN
    if (d.psn != c.epsn) {
      if (duplicate) {
        count(hw::Counter::kRxDuplicate);
        // C9-105: a Read or an atomic is answered by its data alone, so the ACK names the newest SEND or WRITE; behind
        // 2^23 PSNs of Reads there is none to name.
        if (supported && kind != Kind::kRead && c.reads_since < 0x800000) {
          plan.action = static_cast<std::uint8_t>(rtl::RxAction::kExecuted);
          plan.psn = psn24(c.epsn - 1 - c.reads_since);
          plan.ack_req = 1;
        }
        // 9.7.5.1.3: answered again, if it is a Read that may have been executed, and there is room.
        const std::uint64_t packets =
            std::max<std::uint64_t>(1, (std::uint64_t{d.dma_length} + qp.mtu() - 1) / qp.mtu());
        // An atomic is answered from its saved result (9.7.5.1.2).
        const bool allowed = atomic ? c.remote_atomic && d.va % 8 == 0 : c.remote_read && d.dma_length <= 1u << 31;
        if (supported && kind == Kind::kRead && size == 0 && allowed && packets <= age &&
            c.rd_inflight + c.rp_inflight < 32 && c.rp_inflight < 31) {
          ++c.rp_inflight;
          read_plan(qp, d, plan);
          plan.target = static_cast<std::uint8_t>(
              rtl::PlaceTarget::kNone);  // what is left of its key shows when the answer leaves
          plan.psn = d.psn;
          return true;
        }
        return false;
      }
      count(hw::Counter::kRxPsnError);
      return c.nak_sent ? false : nak(0x60);
    }
    // Opcode sequence and support
    const bool starts = position == Position::kFirst || position == Position::kOnly;
    const bool ends = position == Position::kLast || position == Position::kOnly;
    if (!supported) return fatal(0x61);
    if (starts && c.msg != 0) return fatal(0x61);
    if (!starts && c.msg != (kind == Kind::kSend ? 1 : 2)) return fatal(0x61);
    // Lengths
    const std::uint64_t mtu = qp.mtu();
    bool length_ok = true;
    if (atomic) {
      length_ok = size == 0 && d.va % 8 == 0;  // 9.4.5: naturally aligned
    } else if (kind == Kind::kRead) {
      length_ok = size == 0 && d.dma_length <= 1u << 31;
    } else {
      if (!ends) length_ok = size == mtu;
      if (position == Position::kLast) length_ok = size >= 1 && size <= mtu;
      if (position == Position::kOnly) length_ok = size <= mtu;
      if (kind == Kind::kSend) length_ok = length_ok && (starts ? 0 : c.received) + std::uint64_t{size} <= 1ULL << 31;
      if (kind == Kind::kWrite) {
        const std::uint64_t total = starts ? d.dma_length : c.remain;
        length_ok = length_ok && total <= 1ULL << 31 && (ends ? size == total : size < total);
      }
    }
    if (!length_ok) return fatal(0x61);
    // 9.7.4.1.3: what the QP is not set up for is an invalid request.
    if ((kind == Kind::kWrite && !c.remote_write) ||
        (kind == Kind::kRead && !(atomic ? c.remote_atomic : c.remote_read))) {
      return fatal(0x61, hw::Counter::kRxForbidden);
    }
    // Resources
    if (kind == Kind::kRead && c.rd_inflight >= c.max_dest_rd) return fatal(0x61);
    if (kind == Kind::kRead && (c.rd_inflight + c.rp_inflight >= 32 || c.rp_inflight == 31))
      return hold(hw::Counter::kRxNoRoom);  // beside repeated ones
    // SENDs, WRITEs and atomics are executed in their order; what is in sequence is not NAKed for that (9.7.5.2.2).
    // 9.9.3.1: nor is anything while an invalidation in front of it may still be refused.
    if (kind != Kind::kRead && (c.atomics_due != 0 || c.invalidating)) return hold(hw::Counter::kRxHeld);
    // 9.4.3: a WRITE with immediate data needs its receive WQE at its last packet.
    const bool write_imm = kind == Kind::kWrite && immediate;
    const bool wants = (kind == Kind::kSend && starts) || write_imm;
    // 10.2.9.2: an SRQ in error gives nothing; it is the responder's fault.
    if (wants && srq && srq->ctx.error) {
      count(hw::Counter::kRxSrqErrors);
      qp.requests_killed = true;
      return nak(0x63);
    }
    if (wants && (srq ? srq->ctx.head == srq->ctx.pi : c.rq_head == c.rq_pi)) {
      count(hw::Counter::kRxRnr);
      return nak(static_cast<std::uint8_t>(0x20 | c.min_rnr_timer));
    }

    if (wants && srq) list = take(qp, *srq, plan);
    c.nak_sent = 0;
    const std::uint32_t first = c.epsn;
    c.epsn = psn24(c.epsn + 1);
    plan.action = static_cast<std::uint8_t>(rtl::RxAction::kExecuted);
    plan.msg_last = ends;
    plan.write_imm = write_imm;
    plan.with_imm = immediate;
    plan.with_invalidate = invalidate;
    plan.immediate = d.immediate;
    if (kind == Kind::kRead) {
      if (d.dma_length > mtu) c.epsn = psn24(c.epsn + static_cast<std::uint32_t>((d.dma_length + mtu - 1) / mtu) - 1);
      ++c.rd_inflight;
      c.atomics_due += atomic;
      const std::uint32_t taken = psn24(c.epsn - first);
      c.reads_since =
          c.reads_since + taken >= 0x800000 ? (c.reads_since + taken) % 0x800000 | 0x800000 : c.reads_since + taken;
      read_plan(qp, d, plan);
    } else if (kind == Kind::kWrite) {
      c.reads_since = 0;
      plan.key = starts ? d.rkey : c.rkey;
      plan.va = starts ? d.va : c.va;
      plan.check_length = static_cast<std::uint32_t>(starts ? d.dma_length : size);
      if (size) plan.target = static_cast<std::uint8_t>(rtl::PlaceTarget::kWrite);
      c.remain = static_cast<std::uint32_t>((starts ? d.dma_length : c.remain) - size);
      c.va = plan.va + size;
      c.rkey = plan.key;
      c.msg = ends ? 0 : 2;
      const auto total = static_cast<std::uint32_t>((starts ? 0 : c.received) + size);
      c.received = ends ? 0 : total;
      if (write_imm) {
        plan.action = static_cast<std::uint8_t>(rtl::RxAction::kReceiveDone);
        plan.byte_count = total;
        plan.solicited = d.solicited;
        if (!srq) ++c.rq_head;
      }
    } else {
      c.reads_since = 0;
      c.invalidating = invalidate;
      plan.first_byte = starts ? 0 : c.received;
      plan.byte_count = static_cast<std::uint32_t>(plan.first_byte + size);
      plan.solicited = d.solicited;
      if (srq) plan.pd = srq->ctx.pd;
      if (size) plan.target = static_cast<std::uint8_t>(rtl::PlaceTarget::kReceive);
      if (starts && size && !srq) list = &qp.receive_lists.at(c.rq_head);
      c.received = ends ? 0 : plan.byte_count;
      c.msg = ends ? 0 : 1;
      if (ends) {
        plan.action = static_cast<std::uint8_t>(rtl::RxAction::kReceiveDone);
        if (!srq) ++c.rq_head;
      }
    }
    return true;
  }

  static void read_plan(const QpModel& qp, const rtl::RxDesc& d, rtl::RxPlan& plan) {
    plan.immediate = psn24(
        d.psn + std::max(1u, static_cast<std::uint32_t>((std::uint64_t{d.dma_length} + qp.mtu() - 1) / qp.mtu())) - 1);
    plan.action = static_cast<std::uint8_t>(rtl::RxAction::kReadRequest);
    plan.ack_req = d.ack_req;
    plan.key = d.rkey;
    plan.va = d.va;
    plan.byte_count = plan.check_length = d.dma_length;
    if (d.dma_length) plan.target = static_cast<std::uint8_t>(rtl::PlaceTarget::kCheckRead);
    if (d.opcode == 0x13 || d.opcode == 0x14) {
      plan.target = static_cast<std::uint8_t>(rtl::PlaceTarget::kCheckAtomic);
      plan.check_length = 8;
      plan.atomic = 1;
      plan.fetch_add = d.opcode == 0x14;
      plan.swap_add = d.swap_add;
      plan.compare = d.compare;
    }
  }

  // ---- Requester ----
  bool requester(QpModel& qp, const rtl::RxDesc& d, std::size_t size, rtl::RxPlan& plan, const ScatterList*& list) {
    auto& c = qp.send;
    const auto stray = [&] { return count(hw::Counter::kRxStrayResponses), false; };
    // Where the PSN stands: from the oldest unacknowledged to the newest ever sent, and beyond the awaited response or
    // not. A packet that has its PSN and has not left is not sent.
    const std::uint32_t reach = qp.reach.known ? psn24(qp.reach.next_psn - c.una_psn) : 0;
    const std::uint32_t distance = psn24(d.psn - c.una_psn), repeated = psn24(c.next_psn - c.una_psn),
                        window = std::min(reach, psn24(c.max_psn - c.una_psn)), sent = std::min(reach, repeated);
    const int kind = d.opcode == 0x11 ? d.syndrome >> 5 : 0;
    // 9.7.7.2: every AETH with an ACK has credits, those in the middle of a Read's responses have no AETH.
    plan.with_imm = d.opcode != 0x0e && d.syndrome >> 5 == 0;
    if (plan.with_imm && d.syndrome != kNoCredits) plan.immediate = 1u << 24 | psn24(d.msn + kCredits[d.syndrome]);
    const bool is_fatal = kind == 3 && d.syndrome != 0x60;
    if (!qp.awaited.empty() && distance < window) {
      const auto& read = qp.awaited.front();
      const std::uint32_t expected = read.expected(qp.mtu()), beyond = psn24(d.psn - expected);
      // Settled point 46: a NAK that ends a request belongs to the one whose PSN it names.
      const std::uint32_t to_come = std::max<std::uint32_t>(1, (read.length - read.offset + qp.mtu() - 1) / qp.mtu());
      // 9.7.5.2.8: an RNR NAK of the very request is an answer to it.
      const bool refused = (is_fatal && beyond < to_come) || (kind == 1 && beyond == 0);
      if (beyond < 0x800000 && !refused && (beyond != 0 || d.opcode == 0x11)) {
        count(hw::Counter::kRxGaps);
        const bool told = c.recovering && c.rec_psn == expected;
        plan.action = static_cast<std::uint8_t>(told ? rtl::RxAction::kAck : rtl::RxAction::kGap);
        plan.psn = told ? psn24(expected - 1) : expected;
        return false;
      }
    }
    if (d.opcode == 0x11) {
      if (kind == 0 && (distance < window || d.psn == psn24(c.una_psn - 1))) {
        count(hw::Counter::kRxAcks);
        plan.action = static_cast<std::uint8_t>(rtl::RxAction::kAck);
        if (distance >= repeated && distance < window) plan.psn = psn24(c.next_psn - 1);
      } else if ((kind == 1 || kind == 3) && distance < (is_fatal || kind == 1 ? window : sent)) {
        count(hw::Counter::kRxNaks);
        count(kind == 1 ? hw::QpCounter::kRnrNaksReceived : hw::QpCounter::kNaksReceived);
        plan.action = static_cast<std::uint8_t>(rtl::RxAction::kNakReceived);
        plan.syndrome = d.syndrome;
      } else {
        return stray();
      }
      return true;
    }
    if (qp.awaited.empty()) return stray();
    auto& read = qp.awaited.front();
    if (d.psn != read.expected(qp.mtu()) || distance >= reach) return stray();
    const std::uint32_t left = read.length - read.offset;
    const bool last = left <= qp.mtu();
    const std::uint8_t opcode = read.offset == 0 ? (last ? 0x10 : 0x0d) : (last ? 0x0f : 0x0e);
    const bool legal = read.atomic
                           ? d.opcode == 0x12
                           : d.opcode == opcode || (read.replayed && (last ? d.opcode == 0x0f || d.opcode == 0x10
                                                                           : d.opcode == 0x0d || d.opcode == 0x0e));
    // Settled point 44: an AETH that is no ACK is a bad response. Middle ones have none.
    const bool positive = d.opcode == 0x0e || d.syndrome >> 5 == 0;
    if (!legal || !positive || size != std::min(left, qp.mtu())) {
      count(hw::Counter::kRxBadResponses);
      qp.responses_killed = true;
      plan.action = static_cast<std::uint8_t>(rtl::RxAction::kBadResponse);
      return false;
    }
    count(hw::Counter::kRxReadResponses);
    plan.action = static_cast<std::uint8_t>(last ? rtl::RxAction::kReadDone : rtl::RxAction::kReadData);
    plan.first_byte = read.offset;
    plan.wqe_idx = read.wqe_idx;
    plan.atomic = read.atomic;
    if (size) plan.target = static_cast<std::uint8_t>(rtl::PlaceTarget::kResponse);
    if (read.offset == 0 && size) list = &qp.read_lists.at(read.wqe_idx);
    read.offset += static_cast<std::uint32_t>(size);
    c.rd_off = read.offset;
    c.una_psn = psn24(d.psn + 1);
    c.recovering = 0;
    c.retry_left = c.retry_count;
    c.rnr_left = c.rnr_retry;
    if (last) {
      qp.awaited.pop_front();
      c.rd_head = (c.rd_head + 1) % 32;
      c.rd_off = 0;
    }
    return true;
  }

  PlaceModel& place_;
  std::uint8_t counted_qp_ = 0;
  bool held_ = false;
};

/// Only what the contract gives a meaning for this action.
inline rtl::RxDone meaningful(rtl::RxDone d) {
  const auto action = static_cast<rtl::RxAction>(d.action);
  const bool executed = action == rtl::RxAction::kExecuted || action == rtl::RxAction::kReceiveDone ||
                        action == rtl::RxAction::kReadRequest;
  if (action != rtl::RxAction::kReadRequest) d.key = 0, d.va = 0;
  if (action != rtl::RxAction::kReadRequest && action != rtl::RxAction::kReceiveDone) d.byte_count = 0;
  if (action != rtl::RxAction::kReceiveDone) d.solicited = 0;
  if (!executed) d.ack_req = d.msg_last = 0;
  if (action != rtl::RxAction::kReceiveDone)
    d.grh = d.l3_ok = d.l4_ok = 0, d.source_qpn = 0, d.vlan = 0, d.vlan_tci = 0;
  if (action == rtl::RxAction::kGiveBack) d.psn = 0, d.wqe_idx = 0;
  if (action != rtl::RxAction::kReceiveDone) d.write_imm = d.with_invalidate = 0;
  if (action == rtl::RxAction::kAck || action == rtl::RxAction::kReadDone) {
    if (!d.with_imm || d.immediate >> 24 == 0) d.immediate = 0;
  } else if (action == rtl::RxAction::kReadRequest && !d.atomic) {
    d.with_imm = 0;
  } else if (action != rtl::RxAction::kReceiveDone) {
    d.with_imm = 0, d.immediate = 0;
  }
  if (action != rtl::RxAction::kReadRequest) d.atomic = 0;
  if (!d.atomic) d.fetch_add = 0, d.swap_add = d.compare = 0;
  if (d.atomic) d.byte_count = 0;
  if (action != rtl::RxAction::kNak && action != rtl::RxAction::kNakReceived) d.syndrome = 0;
  const auto target = static_cast<rtl::PlaceTarget>(d.target);
  const bool receives = action == rtl::RxAction::kReceiveDone || action == rtl::RxAction::kReceiveFlush || d.takes;
  if (!receives && target != rtl::PlaceTarget::kReceive && target != rtl::PlaceTarget::kResponse) d.wqe_idx = 0;
  if (d.wqe_lost) d.wqe_idx = 0;
  return d;
}

}  // namespace rnic::test
