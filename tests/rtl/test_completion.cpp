#include "tests/rtl/completion_world.hpp"

#include <set>

// rtl/completion/completion.sv: what follows each kind of packet, error and flush, CQ overrun, events, QP reset, and
// all of it at once under random load.
using namespace rnic;
using namespace rnic::test;

namespace {
using Status = hw::CqeStatus;
using Action = rtl::RxAction;
using Target = rtl::PlaceTarget;

std::uint64_t count(const CompletionWorld& w, hw::Counter c) { return w.counts[raw(c)]; }

/// One line of the table "a placed packet and what follows". -1: nothing of the kind.
struct Row {
  const char* name;
  Action action;
  bool fault;
  rtl::XlateStatus status;
  bool overflow, bad_wqe, unread;
  Target target;
  unsigned syndrome;
  int rsp, rsp_syndrome;        // command to the responder's output
  int receive, send, qp_error;  // CqeStatus of the CQEs and of the error that ends the QP
};
constexpr int kNone = -1;
constexpr auto kOk = rtl::XlateStatus::kOk;
constexpr auto kBad = rtl::XlateStatus::kBadRange, kOurs = rtl::XlateStatus::kPageListError;
constexpr int kExecuted = 0, kRead = 1, kNak = 2;
const Row kRows[] = {
    {"executed", Action::kExecuted, false, kOk, false, false, false, Target::kWrite, 0, kExecuted, 0, kNone, kNone,
     kNone},
    {"receive done", Action::kReceiveDone, false, kOk, false, false, false, Target::kReceive, 0, kExecuted, 0, 0, kNone,
     kNone},
    {"receive done, no payload", Action::kReceiveDone, false, kOk, false, false, false, Target::kNone, 0, kExecuted, 0,
     0, kNone, kNone},
    {"Read request", Action::kReadRequest, false, kOk, false, false, false, Target::kCheckRead, 0, kRead, 0, kNone,
     kNone, kNone},
    {"NAK sequence", Action::kNak, false, kOk, false, false, false, Target::kNone, 0x60, kNak, 0x60, kNone, kNone,
     kNone},
    {"RNR NAK", Action::kNak, false, kOk, false, false, false, Target::kNone, 0x2a, kNak, 0x2a, kNone, kNone, kNone},
    {"NAK invalid request", Action::kNak, false, kOk, false, false, false, Target::kNone, 0x61, kNak, 0x61, kNone,
     kNone, 9},
    {"NAK remote access", Action::kNak, false, kOk, false, false, false, Target::kNone, 0x62, kNak, 0x62, kNone, kNone,
     10},
    {"NAK remote operational", Action::kNak, false, kOk, false, false, false, Target::kNone, 0x63, kNak, 0x63, kNone,
     kNone, 11},
    {"acknowledged", Action::kAck, false, kOk, false, false, false, Target::kNone, 0x1f, kNone, 0, kNone, 0, kNone},
    {"Read data", Action::kReadData, false, kOk, false, false, false, Target::kResponse, 0, kNone, 0, kNone, kNone,
     kNone},
    {"nothing", Action::kNone, false, kOk, false, false, false, Target::kNone, 0, kNone, 0, kNone, kNone, kNone},
    {"got NAK sequence", Action::kNakReceived, false, kOk, false, false, false, Target::kNone, 0x60, kNone, 0, kNone,
     12, 12},
    {"got RNR NAK", Action::kNakReceived, false, kOk, false, false, false, Target::kNone, 0x3f, kNone, 0, kNone, 13,
     13},
    {"got NAK invalid request", Action::kNakReceived, false, kOk, false, false, false, Target::kNone, 0x61, kNone, 0,
     kNone, 9, 9},
    {"got NAK remote access", Action::kNakReceived, false, kOk, false, false, false, Target::kNone, 0x62, kNone, 0,
     kNone, 10, 10},
    {"got NAK remote operational", Action::kNakReceived, false, kOk, false, false, false, Target::kNone, 0x63, kNone, 0,
     kNone, 11, 11},
    {"got unknown NAK", Action::kNakReceived, false, kOk, false, false, false, Target::kNone, 0x65, kNone, 0, kNone, 7,
     7},
    {"bad response", Action::kBadResponse, false, kOk, false, false, false, Target::kNone, 0, kNone, 0, kNone, 7, 7},
    {"WRITE fault", Action::kExecuted, true, kBad, false, false, false, Target::kWrite, 0, kNak, 0x62, kNone, kNone,
     10},
    {"READ fault", Action::kReadRequest, true, kBad, false, false, false, Target::kCheckRead, 0, kNak, 0x62, kNone,
     kNone, 10},
    {"WRITE, our page list fails", Action::kExecuted, true, kOurs, false, false, false, Target::kWrite, 0, kNak, 0x63,
     kNone, kNone, 19},
    {"READ, our page list fails", Action::kReadRequest, true, kOurs, false, false, false, Target::kCheckRead, 0, kNak,
     0x63, kNone, kNone, 19},
    {"atomic, our page list fails", Action::kReadRequest, true, kOurs, false, false, false, Target::kCheckAtomic, 0,
     kNak, 0x63, kNone, kNone, 19},
    {"atomic fault", Action::kReadRequest, true, kBad, false, false, false, Target::kCheckAtomic, 0, kNak, 0x62, kNone,
     kNone, 10},
    {"SEND too long", Action::kReceiveDone, true, kOk, true, false, false, Target::kReceive, 0, kNak, 0x61, 1, kNone,
     1},
    {"SEND too long, not the last packet", Action::kExecuted, true, kOk, true, false, false, Target::kReceive, 0, kNak,
     0x61, 1, kNone, 1},
    {"SEND, bad local key", Action::kReceiveDone, true, kBad, false, false, false, Target::kReceive, 0, kNak, 0x63, 4,
     kNone, 4},
    {"SEND, malformed receive WQE", Action::kExecuted, true, kOk, false, true, false, Target::kReceive, 0, kNak, 0x63,
     2, kNone, 2},
    {"Read data, bad local key", Action::kReadData, true, kBad, false, false, false, Target::kResponse, 0, kNone, 0,
     kNone, 4, 4},
    {"Read data, too long", Action::kReadDone, true, kOk, true, false, false, Target::kResponse, 0, kNone, 0, kNone, 1,
     1},
    {"Read data, malformed WQE", Action::kReadDone, true, kOk, false, true, false, Target::kResponse, 0, kNone, 0,
     kNone, 2, 2},
    {"SEND, receive WQE can't be read", Action::kReceiveDone, true, kOk, false, true, true, Target::kReceive, 0, kNak,
     0x63, 19, kNone, 19},
    {"SEND, our page list fails", Action::kReceiveDone, true, kOurs, false, false, false, Target::kReceive, 0, kNak,
     0x63, 19, kNone, 19},
    {"Read data, WQE can't be read", Action::kReadDone, true, kOk, false, true, true, Target::kResponse, 0, kNone, 0,
     kNone, 19, 19},
    {"Read data, our page list fails", Action::kReadData, true, kOurs, false, false, false, Target::kResponse, 0, kNone,
     0, kNone, 19, 19},
};

/// InfiniBand specification 11.6.3.2: an error that a completion tells needs no event.
bool has_event(const Row& row) { return row.qp_error != kNone && row.send == kNone && row.receive == kNone; }

/// What the peer has asked for wrongly has an event of its own.
hw::EqeType event_of(const Row& row) {
  if (row.qp_error == raw(Status::kRemInvReqErr)) return hw::EqeType::kQpRequestError;
  if (row.qp_error == raw(Status::kRemAccessErr)) return hw::EqeType::kQpAccessError;
  return hw::EqeType::kQpFatal;
}

/// CQEs of one QP since the last look, split by queue.
struct Seen {
  std::vector<hw::Cqe> send, receive;
};
Seen take(CompletionWorld& w, unsigned cqn, std::uint32_t qpn) {
  Seen s;
  for (const auto& c : w.poll(cqn)) {
    REQUIRE(c.qpn == qpn);
    (c.is_receive ? s.receive : s.send).push_back(c);
  }
  return s;
}
}  // namespace

TEST_CASE("completion: each kind of packet has its consequences", "[rtl]") {
  CompletionWorld w(seed());
  w.create_eq(2, 17);
  unsigned index = 0;
  for (const auto& row : kRows) {
    INFO(row.name);
    const unsigned qp = index++;
    const std::uint32_t qpn = 0xabc00 + qp;
    w.create_cq(qp, 4, 2);
    w.create_qp(qp, qpn, qp, qp);
    auto& s = w.send.contexts[qp];
    auto& r = w.recv.contexts[qp];
    const auto psn = s.next_psn;
    const auto first_send = s.pi, first_recv = r.rq_pi;
    w.sent(qp, hw::WqeOpcode::kWrite, false, 1, 1234);
    s.pi = static_cast<std::uint16_t>(first_send + 3);
    w.post_receives(qp, 3);
    w.settle(20);
    REQUIRE(r.rq_pi == static_cast<std::uint16_t>(first_recv + 3));
    ++r.rq_head;
    w.events.clear();
    w.rsps.items.clear();
    w.msix.items.clear();

    rtl::RxDone d;
    d.qp = static_cast<std::uint8_t>(qp);
    d.qpn = qpn;
    d.action = raw(row.action);
    d.fault = row.fault;
    d.status = raw(row.status);
    d.overflow = row.overflow;
    d.bad_wqe = row.bad_wqe;
    d.wqe_unread = row.unread;
    d.target = raw(row.target);
    d.syndrome = static_cast<std::uint8_t>(row.syndrome);
    d.psn = psn;
    d.wqe_idx = first_recv;
    d.byte_count = 777;
    d.solicited = d.ack_req = d.msg_last = 1;
    d.key = 0x1234567;
    d.va = 0xfeed00000000;
    d.immediate = 0xabcdef;
    w.dones.push(d);
    w.settle();

    REQUIRE(w.rsps.items.size() == (row.rsp == kNone ? 0 : 1));
    if (row.rsp != kNone) {
      const auto& x = w.rsps.items[0];
      CHECK(x.qp == qp);
      CHECK(x.command == row.rsp);
      CHECK(x.psn == psn);
      if (row.rsp == kNak) CHECK(x.syndrome == row.rsp_syndrome);
      if (row.rsp == kExecuted) CHECK((x.ack_req == 1 && x.msg_last == 1));
      if (row.rsp == kRead) CHECK((x.va == d.va && x.key == d.key && x.length == 777 && x.last_psn == 0xabcdef));
    }
    auto seen = take(w, qp, qpn);
    std::size_t at = 0;
    if (row.receive != kNone) {
      REQUIRE(!seen.receive.empty());
      const auto& c = seen.receive[at++];
      CHECK(c.status == row.receive);
      CHECK(c.opcode == raw(hw::CqeOpcode::kReceive));
      CHECK(c.wqe_index == first_recv);
      if (row.receive == 0) CHECK((c.byte_count == 777 && c.solicited == 1));
      CHECK(r.rq_done == static_cast<std::uint16_t>(first_recv + (row.qp_error == kNone ? 1 : 3)));
    }
    const std::size_t flushed_receives = row.qp_error == kNone ? 0 : 3 - at;
    REQUIRE(seen.receive.size() == at + flushed_receives);
    for (; at < seen.receive.size(); ++at) {
      CHECK(seen.receive[at].status == raw(Status::kWrFlushErr));
      CHECK(seen.receive[at].opcode == raw(hw::CqeOpcode::kReceive));
      CHECK(seen.receive[at].wqe_index == static_cast<std::uint16_t>(first_recv + at));
    }
    at = 0;
    if (row.send != kNone) {
      REQUIRE(!seen.send.empty());
      const auto& c = seen.send[at++];
      CHECK(c.status == row.send);
      CHECK(c.opcode == raw(hw::CqeOpcode::kWrite));
      CHECK(c.byte_count == 1234);
      CHECK(c.wqe_index == first_send);
      CHECK(c.retired_index == static_cast<std::uint16_t>(first_send + 1));
      if (row.send) CHECK(c.syndrome == (row.fault ? raw(row.status) : row.syndrome));
    }
    const std::size_t flushed_sends = row.qp_error == kNone ? 0 : 3 - at;
    REQUIRE(seen.send.size() == at + flushed_sends);
    for (; at < seen.send.size(); ++at) {
      CHECK(seen.send[at].status == raw(Status::kWrFlushErr));
      CHECK(seen.send[at].opcode == raw(hw::CqeOpcode::kFlush));
      CHECK(seen.send[at].wqe_index == static_cast<std::uint16_t>(first_send + at));
      CHECK(seen.send[at].retired_index == static_cast<std::uint16_t>(first_send + at + 1));
    }
    REQUIRE(w.events.size() == (has_event(row) ? 1 : 0));
    const auto state = raw(row.qp_error == kNone ? hw::QpState::kRts : hw::QpState::kErr);
    CHECK(s.state == state);
    CHECK(r.state == state);
    if (has_event(row)) {
      CHECK(w.events[0].event_type == raw(event_of(row)));
      CHECK(w.events[0].number == qpn);
      CHECK(w.events[0].detail == static_cast<std::uint32_t>(row.qp_error));
      REQUIRE(w.msix.items.size() == 1);
      CHECK(w.msix.items[0] == 17);
    }
    if (row.qp_error != kNone) {
      CHECK((s.retire_idx == s.pi && s.exec_idx == s.pi && s.rd_outstanding == 0 && s.msg_active == 0));
      CHECK((r.rq_done == r.rq_pi && r.rq_head == r.rq_pi));
    }
    // What comes for a QP in the error state has no effect but for new WQEs, which are flushed.
    if (row.qp_error != kNone) {
      w.rsps.items.clear();
      d.fault = 0;
      d.action = raw(Action::kReceiveDone);
      w.dones.push(d);
      d.action = raw(Action::kAck);
      w.dones.push(d);
      d.action = raw(Action::kNakReceived);
      w.dones.push(d);
      w.errors.push({static_cast<std::uint8_t>(qp), 10, 0});
      w.settle();
      CHECK(w.rsps.items.empty());
      seen = take(w, qp, qpn);
      CHECK(seen.send.empty());
      CHECK(seen.receive.empty());
      CHECK(w.events.size() == (has_event(row) ? 1 : 0));
      w.ring_cq(qp, 0);
      w.post_receives(qp, 2);
      s.pi = static_cast<std::uint16_t>(s.pi + 1);
      w.flushes.push(qp);
      w.settle();
      seen = take(w, qp, qpn);
      REQUIRE(seen.send.size() == 1);
      CHECK(seen.send[0].wqe_index == static_cast<std::uint16_t>(first_send + 3));
      CHECK(seen.receive.size() == 2);
    }
  }
}

TEST_CASE("completion: faults of the send path", "[rtl]") {
  CompletionWorld w(seed(2));
  w.create_eq(0, 1);
  for (const bool responder : {false, true}) {
    for (const unsigned cause : {0u, 5u, 6u}) {  // the DMA, the range, our page list
      const unsigned qp = 10 + responder * 8 + cause;
      w.create_cq(qp, 4, 0);
      w.create_qp(qp, 0x4400 + qp, qp, qp);
      auto& s = w.send.contexts[qp];
      const auto first = s.exec_idx;
      const auto psn = s.next_psn;
      w.sent(qp, hw::WqeOpcode::kSend, true, 1);
      w.sent(qp, hw::WqeOpcode::kSend, true, 1);
      s.pi = static_cast<std::uint16_t>(s.pi + 1);
      rtl::TxFault f;
      f.qp = static_cast<std::uint8_t>(qp);
      f.responder = responder;
      f.psn = (psn + 1) & 0xffffff;
      f.wqe_idx = static_cast<std::uint16_t>(first + 1);
      f.status = static_cast<std::uint8_t>(cause);
      w.events.clear();
      w.tx_faults.push(f);
      w.settle();
      if (responder) {
        // 11.6.3.2: an access error is the peer's; that our own memory failed is not.
        REQUIRE(w.events.size() == 1);
        CHECK(w.events[0].event_type == raw(cause == 5 ? hw::EqeType::kQpAccessError : hw::EqeType::kQpFatal));
        CHECK(w.events[0].detail == raw(cause == 5 ? Status::kRemAccessErr : Status::kFatalErr));
      }
      w.events.clear();
      if (!responder) {
        CHECK(w.poll(qp).empty());  // the WQE before it has not retired
        CHECK(s.fault == 1);
        rtl::RxDone d;
        d.qp = static_cast<std::uint8_t>(qp);
        d.action = raw(Action::kAck);
        d.psn = psn;
        w.dones.push(d);
        w.settle();
      }
      const auto seen = take(w, qp, 0x4400 + qp).send;
      REQUIRE(seen.size() == (responder ? 3 : 2));
      const bool own = cause != 5;  // our memory failed, whatever lay in it
      const auto status = responder ? Status::kWrFlushErr : own ? Status::kFatalErr : Status::kLocProtErr;
      CHECK(seen[0].status == raw(status));
      CHECK(seen[0].wqe_index == static_cast<std::uint16_t>(first + !responder));
      if (!responder) CHECK(seen[0].syndrome == f.status);
      CHECK(seen.back().status == raw(Status::kWrFlushErr));
      CHECK(s.state == raw(hw::QpState::kErr));
      // What a request of the peer ends answers what came before it; the first reason counts.
      CHECK(w.recv.contexts[qp].silent == !responder);
      w.errors.push({static_cast<std::uint8_t>(qp), 10, 1});
      w.settle();
      CHECK(w.recv.contexts[qp].silent == !responder);
    }
  }
}

TEST_CASE("completion: a long flush does not hold up others, and a QP reset waits for it", "[rtl]") {
  CompletionWorld w(seed(3));
  w.queue_writes.max_delay = 30;
  w.create_eq(0, 1);
  w.create_cq(1, 12, 0);
  w.create_cq(2, 8, 0);
  w.create_qp(5, 0x50005, 1, 1, 11);
  w.create_qp(6, 0x60006, 2, 2);
  auto& s = w.send.contexts[5];
  const auto first_send = s.pi, first_recv = w.recv.contexts[5].rq_pi;
  s.pi = static_cast<std::uint16_t>(s.pi + 1000);
  w.post_receives(5, 500);
  w.settle(20);
  w.errors.push({5, 10, 1});  // quiet
  // Another QP's work goes on meanwhile, and so does the error of a third.
  w.post_receives(6, 60);
  w.settle(0);
  std::uint64_t worst = 0;
  for (int i = 0; i < 40; ++i) {
    auto& r = w.recv.contexts[6];
    while (!w.recv.is_free(6) || r.rq_head == r.rq_pi) w.tick();
    rtl::RxDone d;
    d.qp = 6;
    d.action = raw(Action::kReceiveDone);
    d.wqe_idx = r.rq_head++;
    d.msg_last = 1;
    w.dones.push(d);
    const auto start = w.bench.cycle;
    while (w.poll(2).empty()) w.tick();
    worst = std::max(worst, w.bench.cycle - start);
  }
  CHECK(w.cqes_done < 1000);  // the flush is still going on
  w.create_cq(3, 4, 0);
  w.create_qp(7, 0x70007, 3, 3);
  w.errors.push({7, 10, 0});
  const auto start = w.bench.cycle;
  while (w.events.empty()) w.tick();
  std::printf("completion: CQE of another QP during a flush within %llu cycles, QpFatal event within %llu\n",
              static_cast<unsigned long long>(worst), static_cast<unsigned long long>(w.bench.cycle - start));
  CHECK(worst < 250);
  CHECK(w.bench.cycle - start < 800);
  CHECK(w.cqes_done < 1400);
  // As the host interface does: the contexts show that all is flushed, then the reset. After it nothing more is
  // written.
  while (!w.send.is_free(5) || !w.recv.is_free(5) || s.retire_idx != s.pi ||
         w.recv.contexts[5].rq_done != w.recv.contexts[5].rq_pi)
    w.tick();
  w.reset_qp(5);
  const auto seen = take(w, 1, 0x50005);
  REQUIRE(seen.send.size() == 1000);
  REQUIRE(seen.receive.size() == 500);
  for (unsigned i = 0; i < 1000; ++i) REQUIRE(seen.send[i].wqe_index == static_cast<std::uint16_t>(first_send + i));
  for (unsigned i = 0; i < 500; ++i) REQUIRE(seen.receive[i].wqe_index == static_cast<std::uint16_t>(first_recv + i));
  w.settle();
  CHECK(w.poll(1).empty());
  CHECK(w.events.size() == 1);  // none for the quiet error
  CHECK(count(w, hw::Counter::kFlushedWqes) == 1500);
}

TEST_CASE("completion: the windows of a QP that fails by itself are unbound (decisions 56)", "[rtl]") {
  CompletionWorld w(seed(12));
  w.create_eq(0, 1);
  unsigned qp = 30;
  std::vector<unsigned> failed;
  const auto fail = [&](const char* how, auto&& cause) {
    INFO(how);
    ++qp;
    w.create_cq(qp, 4, 0);
    w.create_qp(qp, 0x3000 + qp, qp, qp);
    w.post_receives(qp, 2);
    w.settle(20);
    w.unbinds.open = false;
    const auto told = w.cqes_done + w.eqes_done;
    cause();
    // The host knows of the failure only while the NIC holds back what a bound window would refuse.
    for (int i = 0; i < 2000; ++i) {
      w.tick();
      if (w.cqes_done + w.eqes_done > told) REQUIRE(w.dut().unbinding_o);
      if (i == 1000) w.rsps.rate = 1;
    }
    CHECK(w.cqes_done + w.eqes_done > told);
    CHECK(w.send.contexts[qp].state == raw(hw::QpState::kErr));
    w.unbinds.open = true;
    for (int i = 0; i < 1000 && !w.unbinds.idle(); ++i) w.tick();
    failed.push_back(qp);
    CHECK(w.unbinds.taken == failed);  // each once
    CHECK_FALSE(w.dut().unbinding_o);
  };
  rtl::RxDone d;
  fail("its request is refused by the peer", [&] {
    d.qp = static_cast<std::uint8_t>(qp);
    d.psn = w.send.contexts[qp].next_psn;
    w.sent(qp, hw::WqeOpcode::kWrite, false, 1);
    d.action = raw(Action::kNakReceived);
    d.syndrome = 0x62;
    w.dones.push(d);
  });
  fail("a Receive is too short", [&] {
    d = {};
    d.qp = static_cast<std::uint8_t>(qp);
    d.action = raw(Action::kReceiveDone);
    d.fault = d.overflow = 1;
    d.target = raw(Target::kReceive);
    d.wqe_idx = w.recv.contexts[qp].rq_head++;
    w.rsps.rate = 0;  // its CQE is there long before the NAK can leave, which goes before the error
    w.dones.push(d);
  });
  fail("the peer asks for what it may not", [&] {
    d = {};
    d.qp = static_cast<std::uint8_t>(qp);
    d.action = raw(Action::kNak);
    d.syndrome = 0x61;
    w.dones.push(d);
  });
  fail("a response cannot be read", [&] {
    rtl::TxFault f;
    f.qp = static_cast<std::uint8_t>(qp);
    f.responder = 1;
    w.tx_faults.push(f);
  });
  // Not when the host takes it out of service: the admin queue unbinds its windows by itself.
  w.create_cq(9, 4, 0);
  w.create_qp(9, 0x3009, 9, 9);
  w.errors.push({9, 5, 1});
  w.settle();
  CHECK(w.unbinds.taken == failed);
  // And not again when it has failed already.
  w.errors.push({static_cast<std::uint8_t>(qp), 10, 0});
  w.settle();
  CHECK(w.unbinds.taken == failed);
  // A QP is not reset before its windows are unbound: the next life would lose its own.
  w.create_cq(10, 4, 0);
  w.create_qp(10, 0x300a, 10, 10);
  w.unbinds.open = false;
  w.errors.push({10, 10, 0});
  w.run(400);
  w.dut().qp_reset_qp_i = 10;
  w.dut().qp_reset_valid_i = 1;
  for (int i = 0; i < 2000; ++i) {
    w.tick();
    REQUIRE_FALSE(w.dut().qp_reset_ready_o);
  }
  w.unbinds.open = true;
  w.reset_qp(10);
  CHECK(w.unbinds.idle());
  CHECK(w.unbinds.taken.back() == 10);
}

TEST_CASE("completion: a CQ overrun stops the CQ and its QPs", "[rtl]") {
  CompletionWorld w(seed(4));
  w.create_eq(0, 1);
  w.create_cq(1, 2, 0);
  w.create_cq(2, 6, 0);
  w.create_cq(3, 6, 0);
  // On CQ 1: the receives of 20 and 21, the send queue of 22; of 23 nothing, and 24 is in RESET.
  w.create_qp(20, 0x1000 + 20, 1, 1);
  w.create_qp(21, 0x1000 + 21, 2, 1);
  w.create_qp(22, 0x1000 + 22, 1, 2);
  w.create_qp(23, 0x1000 + 23, 2, 3);
  w.create_qp(24, 0x1000 + 24, 1, 1);
  for (const unsigned qp : {20u, 21u, 22u, 23u}) w.post_receives(qp, 10);
  w.send.contexts[24].state = w.recv.contexts[24].state = raw(hw::QpState::kReset);
  w.settle(20);
  const auto receive = [&](unsigned qp) {
    rtl::RxDone d;
    d.qp = static_cast<std::uint8_t>(qp);
    d.action = raw(Action::kReceiveDone);
    d.wqe_idx = w.recv.contexts[qp].rq_head++;
    d.ack_req = d.msg_last = 1;
    w.dones.push(d);
    w.settle(20);
  };
  for (int i = 0; i < 4; ++i) receive(20);
  CHECK(w.events.empty());  // exactly full is legal
  CHECK(w.recv.contexts[20].state == raw(hw::QpState::kRts));
  w.ring_cq(1, 1);  // arm for errors: stays pending
  w.settle(20);
  CHECK(w.events.empty());
  receive(20);
  w.settle();
  REQUIRE(w.events.size() >= 1);
  // decisions 56: from the event until all of them have ended, none may be thought to keep a window.
  const auto in_error = [&](unsigned qp) { return w.recv.contexts[qp].state == raw(hw::QpState::kErr); };
  for (int i = 0; !(in_error(20) && in_error(21) && in_error(22)); ++i) {
    REQUIRE(i < 12'000);
    REQUIRE(w.dut().unbinding_o);
    w.tick();
  }
  w.settle(12'000);  // 256 queue pairs are looked at
  CHECK_FALSE(w.dut().unbinding_o);
  CHECK(std::set(w.unbinds.taken.begin(), w.unbinds.taken.end()) == std::set<unsigned>{20, 21, 22});
  REQUIRE(w.events.size() == 4);
  CHECK(w.events[0].event_type == raw(hw::EqeType::kCqError));
  CHECK(w.events[0].number == 1);
  // decisions 55: every queue pair of that CQ, in both roles, whether or not it needs an entry there.
  for (const unsigned i : {1u, 2u, 3u}) {
    const unsigned qp = 19 + i;
    CHECK(w.events[i].event_type == raw(hw::EqeType::kQpFatal));
    CHECK(w.events[i].number == 0x1000 + qp);
    CHECK(w.send.contexts[qp].state == raw(hw::QpState::kErr));
    CHECK(w.recv.contexts[qp].state == raw(hw::QpState::kErr));
    CHECK(w.recv.contexts[qp].rq_done == w.recv.contexts[qp].rq_pi);
  }
  CHECK(w.send.contexts[23].state == raw(hw::QpState::kRts));
  CHECK(w.recv.contexts[23].state == raw(hw::QpState::kRts));
  CHECK(w.send.contexts[24].state == raw(hw::QpState::kReset));
  CHECK(w.recv.contexts[24].state == raw(hw::QpState::kReset));
  CHECK(w.poll(1).size() == 4);   // what was queued can be read
  CHECK(w.poll(2).size() == 10);  // the Receives of 22 are flushed to their own CQ
  w.create_qp(25, 0x1000 + 25, 2, 1);
  w.post_receives(25, 10);
  w.ring_cq(1, 3);
  receive(25);  // the CQ stays dead though it has room again
  w.settle();
  CHECK(w.poll(1).empty());
  REQUIRE(w.events.size() == 5);
  CHECK(w.events[4].number == 0x1000 + 25);
  CHECK(w.send.contexts[25].state == raw(hw::QpState::kErr));
  CHECK(count(w, hw::Counter::kCqOverruns) == 1);
}

TEST_CASE("completion: events of queue pairs, the device and the port", "[rtl]") {
  CompletionWorld w(seed(6));
  w.create_eq(0, 3);
  w.create_eq(4, 5);
  w.create_cq(1, 4, 4);
  w.create_cq(2, 4, 0);
  w.create_qp(40, 0x4028, 1, 2);
  w.create_qp(41, 0x4129, 1, 2);
  auto pulse = [&](auto& valid, auto& qp_port, unsigned qp) {
    qp_port = static_cast<std::uint8_t>(qp);
    valid = 1;
    w.tick();
    valid = 0;
  };
  // To the EQ of the send CQ; two in consecutive cycles, of two QPs and of one.
  pulse(w.dut().drained_valid_i, w.dut().drained_qp_i, 40);
  pulse(w.dut().established_valid_i, w.dut().established_qp_i, 40);
  pulse(w.dut().established_valid_i, w.dut().established_qp_i, 41);
  pulse(w.dut().established_valid_i, w.dut().established_qp_i, 42);  // there is none
  w.settle();
  std::multiset<std::pair<unsigned, unsigned>> seen;
  for (const auto& e : w.events) seen.insert({e.event_type, e.number});
  CHECK(seen == std::multiset<std::pair<unsigned, unsigned>>{{raw(hw::EqeType::kSqDrained), 0x4028},
                                                             {raw(hw::EqeType::kCommEstablished), 0x4028},
                                                             {raw(hw::EqeType::kCommEstablished), 0x4129}});
  for (const auto& e : w.events) CHECK(e.detail == 0);
  CHECK(w.eqs[4].seen == 3);
  CHECK(w.send.contexts[40].state == raw(hw::QpState::kRts));
  CHECK(w.recv.contexts[40].state == raw(hw::QpState::kRts));
  // A QP that is back in RESET has no events; its reset waits for them.
  w.events.clear();
  w.send.contexts[41].state = w.recv.contexts[41].state = raw(hw::QpState::kReset);
  pulse(w.dut().drained_valid_i, w.dut().drained_qp_i, 41);
  w.reset_qp(41);
  w.settle();
  CHECK(w.events.empty());
  pulse(w.dut().drained_valid_i, w.dut().drained_qp_i, 40);
  w.reset_qp(40);
  w.settle();
  CHECK(w.events.size() == 1);
  // The device's own go to the EQ that they name.
  w.events.clear();
  rtl::EqeReq port{.eqn = 0, .event_type = raw(hw::EqeType::kPortError), .number = 1, .detail = 0};
  put(w.dut().device_eqe_data_i, port);
  w.dut().device_eqe_valid_i = 1;
  for (bool taken = false; !taken; w.tick()) {
    w.dut().eval();
    taken = w.dut().device_eqe_ready_o;
  }
  w.dut().device_eqe_valid_i = 0;
  w.settle();
  REQUIRE(w.events.size() == 1);
  CHECK(w.events[0].event_type == raw(hw::EqeType::kPortError));
  CHECK(w.events[0].number == 1);
  CHECK(w.eqs[0].seen == 1);
}

TEST_CASE("completion: receive doorbells are checked", "[rtl]") {
  CompletionWorld w(seed(5));
  w.create_eq(0, 1);
  w.create_cq(1, 6, 0);
  w.create_qp(30, 0x771e, 1, 1, 3);
  auto& r = w.recv.contexts[30];
  const auto start = r.rq_pi;
  const auto post = [&](std::uint32_t qpn, unsigned uar, unsigned index) {
    hw::ReceiveDoorbell d;
    d.qpn = qpn;
    d.producer_index = static_cast<std::uint16_t>(index);
    w.rq_doorbells.push(ring(uar, d));
    w.settle(20);
    return static_cast<std::uint16_t>(r.rq_pi - start);
  };
  CHECK(post(0x771e, r.uar, start + 2) == 2);
  CHECK(post(0x771f, r.uar, start + 3) == 2);       // no such QP
  CHECK(post(0x881e, r.uar, start + 3) == 2);       // the tag of the QPN differs
  CHECK(post(0x771e, r.uar + 1u, start + 3) == 2);  // not this UAR's
  CHECK(post(0x771e, r.uar, start + 1) == 2);       // back
  CHECK(post(0x771e, r.uar, start + 9) == 2);       // more than the queue holds
  CHECK(post(0x771e, r.uar, start + 8) == 8);
  r.in_use = 0;
  CHECK(post(0x771e, r.uar, start + 8) == 8);
  CHECK(count(w, hw::Counter::kReceiveDoorbells) == 8);
  CHECK(count(w, hw::Counter::kDoorbellsRefused) == 6);
  // Refusals of all three kinds together are all counted.
  hw::CqDoorbell c;
  c.cqn = 99;
  hw::EqDoorbell e;
  e.eqn = 0;
  hw::ReceiveDoorbell q;
  q.qpn = 99;
  for (int i = 0; i < 20; ++i) {
    w.cq_doorbells.push(ring(1, c));
    w.eq_doorbells.push(ring(2, e));
    w.rq_doorbells.push(ring(1, q));
  }
  w.settle(20);
  CHECK(count(w, hw::Counter::kDoorbellsRefused) == 66);
}

// InfiniBand specification o9-5.2: the key is invalidated, then the Receive completes; if it may not be, the Receive
// fails and the peer gets a NAK (remote access error), and nothing of what it sent behind is acknowledged.
TEST_CASE("completion: a SEND with invalidate invalidates before its CQE, or fails", "[rtl]") {
  CompletionWorld w(seed(31));
  w.create_eq(2, 17);
  w.mem_ops.judge = [&](const rtl::MemOp& op) {
    CHECK(w.poll(op.qp).empty());
    CHECK(w.rsps.items.empty());
    return static_cast<rtl::MemOpStatus>(op.key >> 24);
  };
  unsigned index = 40;
  for (const auto status : {rtl::MemOpStatus::kOk, rtl::MemOpStatus::kBadKey, rtl::MemOpStatus::kBadAccess,
                            rtl::MemOpStatus::kBadState, rtl::MemOpStatus::kBadRequest}) {
    const unsigned qp = index++;
    const std::uint32_t qpn = 0x77700 + qp;
    w.create_cq(qp, 4, 2);
    w.create_qp(qp, qpn, qp, qp);
    w.post_receives(qp, 3);
    w.settle(20);
    auto& r = w.recv.contexts[qp];
    const auto first = r.rq_done;
    r.rq_head = static_cast<std::uint16_t>(r.rq_head + 2);
    w.rsps.items.clear();
    w.events.clear();
    w.mem_ops.taken.clear();
    rtl::RxDone d;
    d.qp = static_cast<std::uint8_t>(qp);
    d.qpn = qpn;
    d.action = raw(Action::kReceiveDone);
    d.wqe_idx = first;
    d.psn = 0x1234;
    d.ack_req = d.msg_last = 1;
    d.pd = 0xABCDEF;
    d.with_invalidate = 1;
    r.invalidating = 1;
    d.immediate = static_cast<std::uint32_t>(raw(status)) << 24 | 0x5678;
    w.dones.push(d);
    // Behind it, from the same QP: a SEND and a duplicate; and a response, which is another matter.
    auto next = d;
    next.with_invalidate = 0;
    next.wqe_idx = static_cast<std::uint16_t>(first + 1);
    next.psn = 0x1235;
    w.dones.push(next);
    next.action = raw(Action::kExecuted);
    w.dones.push(next);
    w.settle();

    REQUIRE(w.mem_ops.taken.size() == 1);
    const auto& op = w.mem_ops.taken[0];
    CHECK(op.op == raw(rtl::MemOpCode::kInvalidateRemote));
    CHECK(op.key == d.immediate);
    CHECK(op.pd == 0xABCDEF);
    CHECK(op.qp == qp);
    const auto seen = take(w, qp, qpn).receive;
    const bool good = status == rtl::MemOpStatus::kOk;
    REQUIRE(seen.size() == (good ? 2 : 3));
    CHECK(seen[0].status == raw(good ? Status::kSuccess : Status::kLocProtErr));
    CHECK(seen[0].with_invalidate == good);
    CHECK(seen[0].immediate == (good ? d.immediate : 0));
    CHECK(seen[0].syndrome == raw(status));
    if (!good) {
      CHECK(seen[1].status == raw(Status::kWrFlushErr));
      CHECK(seen[2].status == raw(Status::kWrFlushErr));
    }
    REQUIRE(w.rsps.items.size() == (good ? 3 : 1));
    CHECK(w.rsps.items[0].psn == 0x1234);
    CHECK(w.rsps.items[0].command == (good ? kExecuted : kNak));
    if (!good) CHECK(w.rsps.items[0].syndrome == 0x62);
    CHECK(w.events.empty());  // the completion of the Receive tells it (11.6.3.2)
    CHECK(r.state == raw(good ? hw::QpState::kRts : hw::QpState::kErr));
    if (good) continue;
    // A new life: nothing is left of the refusal.
    w.reset_qp(qp);
    w.create_qp(qp, qpn, qp, qp);
    w.rsps.items.clear();
    next.psn = 0x4321;
    w.dones.push(next);
    w.settle();
    REQUIRE(w.rsps.items.size() == 1);
    CHECK(w.rsps.items[0].psn == 0x4321);
  }
  CHECK(count(w, hw::Counter::kMemoryOps) == 1);
  CHECK(count(w, hw::Counter::kMemoryOpsRefused) == 4);
}

// Nothing behind a refused invalidation is executed (InfiniBand specification 9.9.3.1): what waits for it may go on
// when it is done, with the Receive of an SRQ as with one of its own, and never when it was refused or the QP has
// failed.
TEST_CASE("completion: what waits behind an invalidation goes on when it is done, and then alone", "[rtl]") {
  CompletionWorld w(seed(36));
  w.create_eq(2, 17);
  w.create_cq(9, 5, 2);
  w.mem_ops.judge = [&](const rtl::MemOp& op) {
    CHECK(w.recv.contexts[op.qp].invalidating == 1);
    CHECK(w.invalidations_over == 0);
    return static_cast<rtl::MemOpStatus>(op.key);
  };
  unsigned qp = 40;
  for (const bool srq : {false, true}) {
    for (const auto status : {rtl::MemOpStatus::kOk, rtl::MemOpStatus::kBadAccess}) {
      for (const bool failed : {false, true}) {
        ++qp;
        w.create_qp(qp, 0x900 + qp, 9, 9);
        if (!srq) w.post_receives(qp, 1);
        w.settle(20);
        auto& r = w.recv.contexts[qp];
        rtl::RxDone d;
        d.qp = static_cast<std::uint8_t>(qp);
        d.qpn = r.qpn;
        d.action = raw(Action::kReceiveDone);
        d.msg_last = d.with_invalidate = 1;
        d.srq = d.takes = srq;
        d.wqe_idx = r.rq_done;
        d.immediate = raw(status);
        r.srq = srq;
        r.invalidating = 1;
        if (!srq) ++r.rq_head;
        if (failed) {
          w.errors.push({static_cast<std::uint8_t>(qp), 10, 0});
          w.settle();
          REQUIRE(r.state == raw(hw::QpState::kErr));
        }
        const auto done = r.rq_done;
        w.invalidations_over = 0;
        w.dones.push(d);
        w.settle();
        const bool over = status == rtl::MemOpStatus::kOk && !failed;
        CHECK(w.invalidations_over == (over ? 1 : 0));
        CHECK(r.invalidating == (over ? 0 : 1));
        CHECK(r.rq_done == static_cast<std::uint16_t>(done + (!srq && !failed)));
        w.ring_cq(9, 0);
        w.poll(9);
      }
    }
  }
}

// An acknowledgement is one of all requests before it (9.7.5.1.2): none may go out behind a SEND whose Receive was
// flushed, because it would tell the peer that the SEND was received.
TEST_CASE("completion: nothing behind a SEND that came to nothing is answered", "[rtl]") {
  CompletionWorld w(seed(34));
  w.create_eq(2, 17);
  w.create_cq(9, 5, 2);
  w.create_qp(9, 0x909, 9, 9);
  w.post_receives(9, 2);
  w.settle(20);
  auto& r = w.recv.contexts[9];
  const auto first = r.rq_done;
  r.rq_head = static_cast<std::uint16_t>(r.rq_head + 1);
  w.errors.push({9, 10, 0});
  w.settle();
  CHECK(r.state == raw(hw::QpState::kErr));
  CHECK(take(w, 9, 0x909).receive.size() == 2);
  w.rsps.items.clear();
  rtl::RxDone d;
  d.qp = 9;
  d.qpn = 0x909;
  d.ack_req = d.msg_last = 1;
  const auto pass = [&](Action action, std::uint32_t psn) {
    d.action = raw(action);
    d.psn = psn;
    w.dones.push(d);
    w.settle();
    const auto answers = w.rsps.items.size();
    w.rsps.items.clear();
    return answers;
  };
  CHECK(pass(Action::kExecuted, 0x100) == 1);  // it had been executed before
  d.wqe_idx = first;
  CHECK(pass(Action::kReceiveDone, 0x101) == 0);
  CHECK(take(w, 9, 0x909).receive.empty());
  CHECK(pass(Action::kExecuted, 0x102) == 0);
  CHECK(pass(Action::kReadRequest, 0x103) == 0);
  // A new life: nothing is left of it. A packet of the old one is none of the new one's, and ends nothing there.
  w.reset_qp(9);
  r.state = raw(hw::QpState::kReset);
  CHECK(pass(Action::kReceiveDone, 0x104) == 0);
  w.create_qp(9, 0x909, 9, 9);
  CHECK(pass(Action::kExecuted, 0x105) == 1);
}

TEST_CASE("completion: a send queue with a memory operation under way is flushed when it is over", "[rtl]") {
  CompletionWorld w(seed(32));
  w.create_eq(2, 17);
  w.create_cq(9, 5, 2);
  w.create_qp(9, 0x909, 9, 9);
  auto& s = w.send.contexts[9];
  s.pi = static_cast<std::uint16_t>(s.pi + 4);
  s.mem_busy = 1;
  w.post_receives(9, 2);
  w.settle(20);
  w.errors.push({9, 10, 1});
  w.settle();
  auto seen = take(w, 9, 0x909);
  CHECK(seen.send.empty());
  CHECK(seen.receive.size() == 2);
  CHECK(s.state == raw(hw::QpState::kErr));
  s.mem_busy = 0;
  w.flushes.push(9);
  w.settle();
  seen = take(w, 9, 0x909);
  CHECK(seen.send.size() == 4);
  CHECK(seen.receive.empty());
  CHECK(s.retire_idx == s.pi);
}

// Decisions 17: a request that completes as flushed has left no key that opens anything.
TEST_CASE(
    "completion: a queue pair fails between the end of a memory operation and its retirement: it completes, then the "
    "rest is flushed",
    "[rtl]") {
  for (const auto type : {hw::QpType::kRc, hw::QpType::kUc}) {
    CompletionWorld w(seed(33));
    w.create_eq(2, 17);
    w.create_cq(9, 5, 2);
    w.create_qp(9, 0x909, 9, 9);
    auto& s = w.send.contexts[9];
    s.qp_type = w.recv.contexts[9].qp_type = static_cast<std::uint8_t>(type);
    const auto first = s.pi;
    w.sent(9, hw::WqeOpcode::kBindWindow2, false, 0);
    s.mem_done = 1;
    s.pi = static_cast<std::uint16_t>(first + 5);
    w.settle(20);
    w.errors.push({9, 10, 1});
    w.settle();
    auto seen = take(w, 9, 0x909);
    CHECK(seen.send.empty());
    CHECK(s.state == raw(hw::QpState::kErr));
    w.retire_cmds.push({.qp = 9, .command = raw(rtl::RetireCommand::kAck), .psn = (s.una_psn - 1) & 0xffffff});
    w.settle();
    seen = take(w, 9, 0x909);
    REQUIRE(seen.send.size() == 5);
    for (std::size_t i = 0; i < 5; ++i) {
      CHECK(seen.send[i].wqe_index == static_cast<std::uint16_t>(first + i));
      CHECK(seen.send[i].status == (i == 0 ? 0 : raw(Status::kWrFlushErr)));
    }
    CHECK((s.mem_done == 0 && s.retire_idx == s.pi));
  }
}

TEST_CASE("completion: UC and UD are not answered, and give receives back (9.8.2.2, 9.8.3.2, 9.9.3)", "[rtl]") {
  CompletionWorld w(seed());
  w.create_eq(2, 17);
  w.create_cq(3, 6, 2);
  w.create_qp(3, 0x700103, 3, 3);
  auto& r = w.recv.contexts[3];
  r.qp_type = w.send.contexts[3].qp_type = static_cast<std::uint8_t>(hw::QpType::kUd);
  const auto first = r.rq_pi;
  w.post_receives(3, 8);
  w.settle(20);
  rtl::RxDone d;
  d.qp = 3;
  d.qpn = 0x700103;
  d.unreliable = 1;
  const auto place = [&](Action action, std::uint16_t index) {
    d.action = raw(action);
    d.wqe_idx = index;
    w.dones.push(d);
    w.settle();
  };

  // A datagram: its CQE, and nothing to the responder's output.
  ++r.rq_head;
  d.target = raw(Target::kReceive);
  d.byte_count = 140;
  d.grh = 1;
  d.source_qpn = 0xabcdef;
  d.vlan = 1;
  d.vlan_tci = 0x6abc;
  d.l4_ok = 1;
  place(Action::kReceiveDone, first);
  auto seen = take(w, 3, 0x700103);
  REQUIRE(seen.receive.size() == 1);
  CHECK(seen.receive[0].status == 0);
  CHECK(seen.receive[0].grh == 1);
  CHECK(seen.receive[0].source_qpn == 0xabcdef);
  CHECK(seen.receive[0].vlan == 1);
  CHECK(seen.receive[0].vlan_tci == 0x6abc);
  CHECK(seen.receive[0].l3_ok == 0);
  CHECK(seen.receive[0].l4_ok == 1);
  CHECK(seen.receive[0].byte_count == 140);
  CHECK(r.rq_done == static_cast<std::uint16_t>(first + 1));

  // A message that is dropped: what was taken for it and behind it is given back.
  r.rq_head = static_cast<std::uint16_t>(first + 4);
  r.msg = raw(rtl::RecvMessage::kSend);
  place(Action::kGiveBack, static_cast<std::uint16_t>(first + 1));
  CHECK(take(w, 3, 0x700103).receive.empty());
  CHECK(r.rq_head == static_cast<std::uint16_t>(first + 1));
  CHECK(r.rq_done == static_cast<std::uint16_t>(first + 1));
  CHECK(r.msg == raw(rtl::RecvMessage::kDropped));
  CHECK(r.take == 1);
  CHECK(r.state == raw(hw::QpState::kRts));
  // The same whichever message is under way, and nothing more of one that has ended.
  for (const auto under_way : {rtl::RecvMessage::kWrite, rtl::RecvMessage::kDropped, rtl::RecvMessage::kNone}) {
    r.msg = raw(under_way);
    r.take = 0;
    place(Action::kGiveBack, static_cast<std::uint16_t>(first + 1));
    CHECK(take(w, 3, 0x700103).receive.empty());
    CHECK(r.msg == raw(under_way == rtl::RecvMessage::kNone ? under_way : rtl::RecvMessage::kDropped));
    CHECK(r.take == 1);
  }

  // A fault of our own: the receive fails, the queue pair with it, and still nobody is told.
  ++r.rq_head;
  d.fault = 1;
  d.status = raw(kBad);
  d.grh = 0;
  d.source_qpn = 0;
  place(Action::kNak, static_cast<std::uint16_t>(first + 1));
  seen = take(w, 3, 0x700103);
  REQUIRE(seen.receive.size() == 7);
  CHECK(seen.receive[0].status == raw(Status::kLocProtErr));
  CHECK(seen.receive[0].vlan == 0);
  CHECK(seen.receive[0].vlan_tci == 0);
  CHECK(seen.receive[1].status == raw(Status::kWrFlushErr));
  CHECK(r.state == raw(hw::QpState::kErr));
  CHECK(w.rsps.items.empty());

  // In the error state nothing is given back.
  d.fault = 0;
  place(Action::kGiveBack, first);
  CHECK(r.rq_head == r.rq_pi);
  CHECK(r.take == 1);
}

TEST_CASE("completion: a message of UC and UD is done when it has left, in order (9.8)", "[rtl]") {
  CompletionWorld w(seed());
  w.create_eq(2, 17);
  w.create_cq(4, 6, 2);
  w.create_qp(4, 0x700104, 4, 4);
  auto& s = w.send.contexts[4];
  s.qp_type = w.recv.contexts[4].qp_type = static_cast<std::uint8_t>(hw::QpType::kUc);
  s.ack_timeout = 0;
  const auto first = s.pi;
  std::vector<std::uint32_t> last;
  for (const unsigned packets : {1u, 5u, 1u}) {
    w.sent(4, hw::WqeOpcode::kSend, false, packets);
    last.push_back((s.next_psn - 1) & 0xffffff);
  }
  s.pi = s.exec_idx;
  const auto left = [&](unsigned index) {
    rtl::TxFault t;
    t.qp = 4;
    t.sent = 1;
    t.psn = last[index];
    t.wqe_idx = static_cast<std::uint16_t>(first + index);
    w.tx_faults.push(t);
    w.settle();
    return take(w, 4, 0x700104).send;
  };
  for (unsigned i = 0; i < 3; ++i) {
    const auto done = left(i);
    REQUIRE(done.size() == 1);
    CHECK(done[0].status == 0);
    CHECK(done[0].wqe_index == static_cast<std::uint16_t>(first + i));
  }
  CHECK(s.una_psn == s.next_psn);
  CHECK(s.state == raw(hw::QpState::kRts));
}

TEST_CASE("completion: a failed request of UC or UD stops and flushes the send queue alone (10.3.1.6)", "[rtl]") {
  CompletionWorld w(seed());
  w.create_eq(2, 17);
  w.create_cq(5, 7, 2);
  w.create_qp(5, 0x700105, 5, 5);
  auto& s = w.send.contexts[5];
  auto& r = w.recv.contexts[5];
  s.qp_type = r.qp_type = static_cast<std::uint8_t>(hw::QpType::kUd);
  s.ack_timeout = 0;
  const auto first = s.pi;
  w.post_receives(5, 4);
  for (int i = 0; i < 2; ++i) w.sent(5, hw::WqeOpcode::kSend, false, 1);
  s.pi = static_cast<std::uint16_t>(first + 40);
  // A message behind them is partly sent.
  s.msg_active = s.resume = 1, s.msg_off = 512, s.sge_idx = 2, s.sge_off = 77, s.buf_count = 3, s.ahead = 4;
  w.settle(20);
  // The first leaves; the second cannot.
  w.tx_faults.push({.qp = 5, .psn = (s.next_psn - 2) & 0xffffff, .wqe_idx = first, .sent = 1});
  w.tx_faults.push({.qp = 5,
                    .psn = (s.next_psn - 1) & 0xffffff,
                    .wqe_idx = static_cast<std::uint16_t>(first + 1),
                    .status = raw(kBad)});
  w.settle();
  auto seen = take(w, 5, 0x700105);
  REQUIRE(seen.send.size() == 40);
  CHECK(seen.send[0].status == 0);
  CHECK(seen.send[1].status == raw(Status::kLocProtErr));
  for (std::size_t i = 2; i < 40; ++i) {
    CHECK(seen.send[i].status == raw(Status::kWrFlushErr));
    CHECK(seen.send[i].wqe_index == static_cast<std::uint16_t>(first + i));
  }
  CHECK(seen.receive.empty());
  CHECK(w.events.empty());
  CHECK(s.state == raw(hw::QpState::kSqe));
  CHECK(r.state == raw(hw::QpState::kRts));
  CHECK((s.retire_idx == s.pi && s.exec_idx == s.pi));
  CHECK((s.msg_active == 0 && s.resume == 0 && s.msg_off == 0 && s.sge_idx == 0 && s.sge_off == 0 && s.buf_count == 0 &&
         s.ahead == 0));
  // What is posted now is flushed too, and the receive side goes on. Until the last of its CQEs has been handed over
  // the flush is under way.
  s.pi = static_cast<std::uint16_t>(first + 100);
  const auto done_before = w.cqes_done;
  w.bench.dut->qp_reset_qp_i = 5;
  w.flushes.push(5);
  unsigned early = 0;
  for (int i = 0; i < 4000; ++i) {
    w.tick();
    const bool all_taken = s.retire_idx == s.pi;
    if (all_taken && w.cqes_done - done_before < 60 - 24) {  // so many may be on their way behind the flush
      ++early;
      REQUIRE(w.bench.dut->flushing_o == 1);
    }
  }
  CHECK(early > 0);
  CHECK(w.bench.dut->flushing_o == 0);
  seen = take(w, 5, 0x700105);
  CHECK(seen.send.size() == 60);
  CHECK(s.state == raw(hw::QpState::kSqe));
  // An error of the queue pair still ends both sides.
  w.errors.push({.qp = 5, .status = raw(Status::kFatalErr)});
  w.settle();
  CHECK(s.state == raw(hw::QpState::kErr));
  CHECK(r.state == raw(hw::QpState::kErr));
  CHECK(take(w, 5, 0x700105).receive.size() == 4);
}

TEST_CASE("completion: while no write leaves nobody holds a context, and doorbells are taken (PCI Express 2.4.1)",
          "[rtl]") {
  constexpr unsigned kQps = 4, kSends = 12, kReceives = 10, kCqn = 9;
  CompletionWorld w(seed());
  w.create_eq(2, 17);
  w.create_cq(kCqn, 8, 2);
  for (unsigned qp = 0; qp < kQps; ++qp) {
    w.create_qp(qp, 0xabc00 + qp, kCqn, kCqn);
    for (unsigned i = 0; i < kSends; ++i) w.sent(qp, hw::WqeOpcode::kWrite, false, 1);
    w.post_receives(qp, kReceives);
  }
  w.settle();
  w.queue_writes.rate = w.record_writes.rate = 0;
  for (unsigned i = 0; i < kReceives; ++i) {
    for (unsigned qp = 0; qp < kQps; ++qp) {
      auto& c = w.send.contexts[qp];
      if (i == 0) {
        rtl::RetireCmd ack;
        ack.qp = static_cast<std::uint8_t>(qp);
        ack.command = raw(rtl::RetireCommand::kAck);
        ack.psn = (c.next_psn + 0xffffff) & 0xffffff;
        w.retire_cmds.push(ack);
      }
      rtl::RxDone d;
      d.qp = static_cast<std::uint8_t>(qp);
      d.qpn = 0xabc00 + qp;
      d.action = raw(Action::kReceiveDone);
      d.target = raw(Target::kReceive);
      d.wqe_idx = static_cast<std::uint16_t>(w.recv.contexts[qp].rq_done + i);
      d.msg_last = 1;
      w.dones.push(d);
    }
  }
  w.run(2000);
  CHECK(!w.dones.idle());
  for (int round = 0; round < 50; ++round) {
    w.ring_cq(kCqn, 3);
    for (unsigned qp = 0; qp < kQps; ++qp) w.post_receives(qp, 1);
    hw::EqDoorbell d;
    d.eqn = 2;
    d.consumer_index = static_cast<std::uint32_t>(w.eqs[2].seen & 0xffffff);
    w.eq_doorbells.push(ring(1, d));
    w.run(100);
    REQUIRE((w.cq_doorbells.idle() && w.rq_doorbells.idle() && w.eq_doorbells.idle()));
    for (unsigned qp = 0; qp < kQps; ++qp) REQUIRE((w.send.is_free(qp) && w.recv.is_free(qp)));
  }
  w.queue_writes.rate = w.record_writes.rate = 1;
  w.settle();
  CHECK(w.poll(kCqn).size() == kQps * (kSends + kReceives));
  CHECK(w.events.size() >= 1);
}
