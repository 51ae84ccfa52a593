#include "tests/rtl/completion_world.hpp"

// rtl/completion/completion.sv: queue pairs on a shared receive queue. Their receive WQEs go by tags, and whoever has
// one completes it. InfiniBand specification 10.2.9 (SRQ), 10.3.1 (error state), 11.6.3.1 (last WQE reached).
using namespace rnic;
using namespace rnic::test;

namespace {
using Status = hw::CqeStatus;
using Action = rtl::RxAction;

/// A queue pair on SRQ 9, and one with a receive queue of its own.
struct SrqWorld : CompletionWorld {
  static constexpr unsigned kQp = 40, kOther = 41, kSrq = 9, kCq = 3;
  static constexpr std::uint32_t kQpn = 0xabc028;

  SrqWorld() : CompletionWorld(seed()) {
    create_eq(0, 1);
    create_cq(kCq, 8, 0);
    create_qp(kQp, kQpn, kCq, kCq);
    create_qp(kOther, 0x123029, kCq, kCq);
    recv.contexts[kQp].srq = 1;
    recv.contexts[kQp].srqn = kSrq;
    watch.look = [this] {
      if (dut().srq_error_valid_o) lost.push_back(dut().srq_error_srq_o);
    };
    bench.add(watch);
  }
  static rtl::RxDone packet(Action action, std::uint16_t tag, bool takes) {
    rtl::RxDone d;
    d.qp = kQp;
    d.qpn = kQpn;
    d.action = raw(action);
    d.target = raw(rtl::PlaceTarget::kReceive);
    d.wqe_idx = tag;
    d.byte_count = 55;
    d.srq = 1;
    d.takes = takes;
    d.srqn = kSrq;
    d.ack_req = d.msg_last = 1;
    return d;
  }
  void fail_qp(unsigned qp = kQp, bool quiet = false) {
    errors.push({static_cast<std::uint8_t>(qp), 10, quiet});
    settle();
  }
  void inside(unsigned entered, unsigned left) {
    dut().rx_entered_i = entered & 0xfffff;
    dut().rx_left_i = left & 0xfffff;
  }
  bool is_err(unsigned qp = kQp) {
    return recv.contexts[qp].state == raw(hw::QpState::kErr) && send.contexts[qp].state == raw(hw::QpState::kErr);
  }

  struct Watch : Agent {
    void drive() override {}
    void sample() override { look(); }
    std::function<void()> look;
  } watch;
  std::vector<unsigned> lost;
};
}  // namespace

TEST_CASE("completion: a receive from an SRQ completes with its tag, in the order in which messages end", "[rtl]") {
  SrqWorld w;
  const auto done = w.recv.contexts[SrqWorld::kQp].rq_done;
  w.dones.push(SrqWorld::packet(Action::kReceiveDone, 700, true));
  w.dones.push(SrqWorld::packet(Action::kExecuted, 0xffff, true));
  w.dones.push(SrqWorld::packet(Action::kReceiveDone, 0xffff, false));
  w.dones.push(SrqWorld::packet(Action::kReceiveDone, 3, true));
  w.settle();
  const auto cqes = w.poll(SrqWorld::kCq);
  REQUIRE(cqes.size() == 3);
  CHECK(cqes[0].wqe_index == 700);
  CHECK(cqes[1].wqe_index == 0xffff);
  CHECK(cqes[2].wqe_index == 3);
  for (const auto& c : cqes)
    CHECK((c.status == 0 && c.byte_count == 55 && c.is_receive == 1 && c.qpn == SrqWorld::kQpn));
  CHECK(w.recv.contexts[SrqWorld::kQp].rq_done == done);
  CHECK(w.rsps.items.size() == 4);
  w.fail_qp();
  CHECK(w.poll(SrqWorld::kCq).empty());  // nothing was left open
  REQUIRE(w.events.size() == 2);
  CHECK(w.events[1].event_type == raw(hw::EqeType::kLastWqeReached));
}

TEST_CASE(
    "completion: a QP in the error state flushes the one WQE it had taken, then says that it was the last (11.6.3.1)",
    "[rtl]") {
  SrqWorld w;
  w.dones.push(SrqWorld::packet(Action::kExecuted, 4711, true));
  w.settle();
  // Packets of the QP are still in the receive engine: until they have left, they may write to its buffers.
  w.inside(0xfffff, 0xffffc);
  w.fail_qp();
  REQUIRE(w.is_err());
  CHECK(w.poll(SrqWorld::kCq).empty());
  REQUIRE(w.events.size() == 1);
  CHECK(w.events[0].event_type == raw(hw::EqeType::kQpFatal));
  w.inside(2, 0xffffe);  // later packets do not count
  w.settle();
  CHECK(w.events.size() == 1);
  CHECK(w.recv.contexts[SrqWorld::kQp].rx_gone == 0);
  w.inside(2, 0);
  w.settle();
  const auto cqes = w.poll(SrqWorld::kCq);
  REQUIRE(cqes.size() == 1);
  CHECK(cqes[0].wqe_index == 4711);
  CHECK(cqes[0].status == raw(Status::kWrFlushErr));
  REQUIRE(w.events.size() == 2);
  CHECK(w.events[1].event_type == raw(hw::EqeType::kLastWqeReached));
  CHECK(w.events[1].number == SrqWorld::kQpn);
  CHECK(w.recv.contexts[SrqWorld::kQp].rx_gone == 1);
  // Once.
  w.fail_qp();
  w.flushes.push(SrqWorld::kQp);
  w.settle();
  CHECK(w.events.size() == 2);
  CHECK(w.poll(SrqWorld::kCq).empty());
}

TEST_CASE(
    "completion: a datagram too long for its receive from an SRQ fails that receive and nothing else (9.9.3, class E)",
    "[rtl]") {
  SrqWorld w;
  auto d = SrqWorld::packet(Action::kNak, 21, true);
  d.unreliable = d.fault = d.overflow = d.grh = 1;
  d.syndrome = raw(hw::AethSyndrome::kNakInvalidRequest);
  w.dones.push(d);
  auto next = SrqWorld::packet(Action::kReceiveDone, 22, true);
  next.unreliable = next.grh = 1;
  w.dones.push(next);
  w.settle();
  const auto cqes = w.poll(SrqWorld::kCq);
  REQUIRE(cqes.size() == 2);
  CHECK((cqes[0].wqe_index == 21 && cqes[0].status == raw(Status::kLocLenErr) && cqes[0].byte_count == 0));
  CHECK((cqes[1].wqe_index == 22 && cqes[1].status == 0 && cqes[1].grh == 1));
  CHECK(w.rsps.items.empty());
  CHECK(w.events.empty());
  CHECK(!w.is_err());
  // The SRQ is in error: that is our own fault, and the QP's end, without an answer.
  auto refused = SrqWorld::packet(Action::kNak, 0, false);
  refused.unreliable = 1;
  refused.target = raw(rtl::PlaceTarget::kNone);
  refused.syndrome = raw(hw::AethSyndrome::kNakRemoteOperational);
  w.dones.push(refused);
  w.settle();
  CHECK(w.poll(SrqWorld::kCq).empty());
  CHECK(w.rsps.items.empty());
  CHECK(w.is_err());
  REQUIRE(w.events.size() == 2);
  CHECK(w.events[0].event_type == raw(hw::EqeType::kQpFatal));
  CHECK(w.events[1].event_type == raw(hw::EqeType::kLastWqeReached));
}

// o9-5.2: after the refusal nothing of the peer's requests counts; yet what took a WQE of the SRQ must give it back.
TEST_CASE("completion: behind a refused invalidation WQEs of an SRQ are flushed, and nothing is answered", "[rtl]") {
  SrqWorld w;
  w.mem_ops.judge = [](const rtl::MemOp&) { return rtl::MemOpStatus::kBadKey; };
  auto refused = SrqWorld::packet(Action::kReceiveDone, 10, true);
  refused.with_invalidate = 1;
  auto again = SrqWorld::packet(Action::kReceiveDone, 12, true);
  again.with_invalidate = 1;
  w.inside(1, 0);  // packets of the QP are still in the receive engine
  w.dones.push(refused);
  w.dones.push(SrqWorld::packet(Action::kReceiveDone, 11, true));
  w.dones.push(again);
  w.dones.push(SrqWorld::packet(Action::kExecuted, 13, true));
  w.settle();
  w.inside(1, 1);
  w.settle();
  const auto cqes = w.poll(SrqWorld::kCq);
  REQUIRE(cqes.size() == 4);
  CHECK(cqes[0].status == raw(Status::kLocProtErr));
  for (std::size_t i = 0; i < cqes.size(); ++i) {
    CHECK(cqes[i].wqe_index == 10 + i);
    if (i > 0) CHECK(cqes[i].status == raw(Status::kWrFlushErr));
  }
  CHECK(w.mem_ops.taken.size() == 1);
  REQUIRE(w.rsps.items.size() == 1);
  CHECK(w.rsps.items[0].syndrome == 0x62);
}

TEST_CASE("completion: messages that end after the QP has failed flush their WQEs, and answer nothing", "[rtl]") {
  SrqWorld w;
  w.dones.push(SrqWorld::packet(Action::kExecuted, 1, true));
  w.settle();
  w.rsps.items.clear();
  w.inside(7, 3);
  w.fail_qp();
  w.dones.push(SrqWorld::packet(Action::kReceiveDone, 1, false));
  w.dones.push(SrqWorld::packet(Action::kReceiveDone, 2, true));
  w.dones.push(SrqWorld::packet(Action::kReceiveFlush, 3, true));
  w.settle();
  CHECK(w.rsps.items.empty());
  w.inside(7, 7);
  w.settle();
  const auto cqes = w.poll(SrqWorld::kCq);
  REQUIRE(cqes.size() == 3);
  for (unsigned i = 0; i < 3; ++i) {
    CHECK(cqes[i].wqe_index == i + 1);
    CHECK(cqes[i].status == raw(Status::kWrFlushErr));
    CHECK(cqes[i].byte_count == 0);
  }
  REQUIRE(w.events.size() == 2);
  CHECK(w.events[1].event_type == raw(hw::EqeType::kLastWqeReached));
}

TEST_CASE("completion: behind a fault, packets flush the WQEs that they had taken before", "[rtl]") {
  SrqWorld w;
  auto fault = SrqWorld::packet(Action::kNak, 0, false);
  fault.target = raw(rtl::PlaceTarget::kWrite);
  fault.fault = 1;
  fault.status = raw(rtl::XlateStatus::kBadRange);
  w.dones.push(fault);
  for (std::uint16_t tag = 10; tag < 14; ++tag) w.dones.push(SrqWorld::packet(Action::kReceiveFlush, tag, true));
  w.settle();
  const auto cqes = w.poll(SrqWorld::kCq);
  REQUIRE(cqes.size() == 4);
  for (unsigned i = 0; i < 4; ++i) CHECK((cqes[i].wqe_index == 10 + i && cqes[i].status == raw(Status::kWrFlushErr)));
  REQUIRE(w.rsps.items.size() == 1);
  CHECK(w.rsps.items[0].syndrome == 0x62);
  CHECK(w.is_err());
}

TEST_CASE("completion: a fault completes the WQE of its message, and nobody else does", "[rtl]") {
  SrqWorld w;
  w.dones.push(SrqWorld::packet(Action::kExecuted, 21, true));
  auto fault = SrqWorld::packet(Action::kNak, 21, false);
  fault.fault = fault.overflow = 1;
  w.dones.push(fault);
  w.settle();
  auto cqes = w.poll(SrqWorld::kCq);
  REQUIRE(cqes.size() == 1);
  CHECK(cqes[0].wqe_index == 21);
  CHECK(cqes[0].status == raw(Status::kLocLenErr));
  REQUIRE(w.events.size() == 1);  // the completion tells why
  CHECK(w.events[0].event_type == raw(hw::EqeType::kLastWqeReached));
}

// Whoever takes a WQE of an SRQ completes it, also when the WRITE that took it for its immediate data is refused
// (settled point 11).
TEST_CASE("completion: a refused WRITE with immediate data flushes the WQE of an SRQ that it took", "[rtl]") {
  for (const auto status : {rtl::XlateStatus::kBadTag, rtl::XlateStatus::kPageListError}) {
    SrqWorld w;
    auto fault = SrqWorld::packet(Action::kNak, 31, true);
    fault.target = raw(rtl::PlaceTarget::kWrite);
    fault.fault = fault.write_imm = 1;
    fault.status = raw(status);
    w.dones.push(fault);
    w.settle();
    const auto cqes = w.poll(SrqWorld::kCq);
    REQUIRE(cqes.size() == 1);
    CHECK(cqes[0].wqe_index == 31);
    CHECK(cqes[0].status == raw(Status::kWrFlushErr));
    REQUIRE(w.rsps.items.size() == 1);
    CHECK(w.rsps.items[0].syndrome == (status == rtl::XlateStatus::kBadTag ? 0x62 : 0x63));
    CHECK(w.is_err());
    CHECK(w.lost.empty());
    REQUIRE(w.events.size() == 2);
    CHECK(w.events[1].event_type == raw(hw::EqeType::kLastWqeReached));
  }
}

TEST_CASE("completion: a bad WQE of an SRQ fails its QP even where its buffers are not used; a lost one fails the SRQ",
          "[rtl]") {
  for (const bool lost : {false, true}) {
    SrqWorld w;
    auto fault = SrqWorld::packet(Action::kNak, 30, true);
    fault.target = raw(rtl::PlaceTarget::kWrite);
    fault.fault = fault.bad_wqe = fault.write_imm = 1;
    fault.wqe_lost = lost;
    w.dones.push(fault);
    w.settle();
    const auto cqes = w.poll(SrqWorld::kCq);
    REQUIRE(cqes.size() == (lost ? 0 : 1));
    if (!lost) CHECK((cqes[0].wqe_index == 30 && cqes[0].status == raw(Status::kLocQpOpErr)));
    CHECK(w.lost == (lost ? std::vector<unsigned>{SrqWorld::kSrq} : std::vector<unsigned>{}));
    REQUIRE(w.rsps.items.size() == 1);
    CHECK(w.rsps.items[0].syndrome == 0x63);
    CHECK(w.is_err());
  }
}

TEST_CASE("completion: a QP that is taken away makes no last-WQE event; its WQE is flushed all the same", "[rtl]") {
  SrqWorld w;
  w.dones.push(SrqWorld::packet(Action::kExecuted, 5, true));
  w.settle();
  w.recv.contexts[SrqWorld::kQp].uar = w.send.contexts[SrqWorld::kQp].uar = 0;
  w.fail_qp(SrqWorld::kQp, true);
  CHECK(w.events.empty());
  CHECK(w.recv.contexts[SrqWorld::kQp].rx_gone == 1);
  const auto cqes = w.poll(SrqWorld::kCq);
  REQUIRE(cqes.size() == 1);
  CHECK(cqes[0].wqe_index == 5);
}

TEST_CASE("completion: receives of a queue of its own too are flushed when nothing can write to them any more",
          "[rtl]") {
  SrqWorld w;
  w.post_receives(SrqWorld::kOther, 40);
  w.settle(20);
  w.inside(100, 90);
  w.fail_qp(SrqWorld::kOther);
  CHECK(w.is_err(SrqWorld::kOther));
  CHECK(w.poll(SrqWorld::kCq).empty());
  CHECK(w.events.size() == 1);
  w.inside(120, 100);
  w.settle();
  CHECK(w.poll(SrqWorld::kCq).size() == 40);
  w.inside(140, 120);
  w.post_receives(SrqWorld::kOther, 2);  // nothing of it can be inside any more
  w.settle();
  CHECK(w.poll(SrqWorld::kCq).size() == 2);
  CHECK(w.events.size() == 1);
}

TEST_CASE("completion: doorbells for the receive queue of a QP on an SRQ are refused; SRQ events reach their EQ",
          "[rtl]") {
  SrqWorld w;
  hw::ReceiveDoorbell d;
  d.qpn = SrqWorld::kQpn;
  d.producer_index = static_cast<std::uint16_t>(w.recv.contexts[SrqWorld::kQp].rq_pi + 1);
  w.rq_doorbells.push(ring(w.recv.contexts[SrqWorld::kQp].uar, d));
  w.settle();
  CHECK(w.counts[raw(hw::Counter::kDoorbellsRefused)] == 1);
  rtl::EqeReq event;
  event.eqn = 0;
  event.event_type = raw(hw::EqeType::kSrqLimit);
  event.number = 9;
  put(w.dut().srq_eqe_data_i, event);
  w.dut().srq_eqe_valid_i = 1;
  for (bool taken = false; !taken;) {
    w.dut().eval();
    taken = w.dut().srq_eqe_ready_o != 0;
    w.tick();
  }
  w.dut().srq_eqe_valid_i = 0;
  w.settle();
  REQUIRE(w.events.size() == 1);
  CHECK(w.events[0].event_type == raw(hw::EqeType::kSrqLimit));
  CHECK(w.events[0].number == 9);
}
