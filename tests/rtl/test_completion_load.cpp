#include "tests/rtl/completion_world.hpp"

#include <set>

// rtl/completion/completion.sv under random load: a driver that sleeps until events, a network that acknowledges and
// fails, QPs that die and are made anew. Whatever is posted has exactly one outcome, in order.
using namespace rnic;
using namespace rnic::test;

namespace {
using Status = hw::CqeStatus;
using Action = rtl::RxAction;
struct SendWqe {
  bool silent, read;
  std::uint32_t last_psn;
  bool acked = false;  // may retire from now on
};
/// One life of a QP, as its owner sees it. Indexes do not wrap.
struct Life {
  std::uint32_t qpn = 0;
  std::uint64_t sends = 0, receives = 0;          // posted
  std::uint64_t next_send = 0, next_receive = 0;  // next outcome
  std::uint64_t sent = 0, acked = 0;
  std::uint16_t send_base = 0, recv_base = 0;
  std::deque<SendWqe> wqes;           // all that were sent
  std::deque<std::uint32_t> lengths;  // of the SENDs that arrived, in order
  bool broken = false;                // something that ends this life was done
  bool unanswered = false;            // the peer acknowledges nothing more
  bool recv_faulted = false;          // the receive engine drops what follows a fault
  bool send_flushing = false, recv_flushing = false, send_failed = false;
  unsigned late = 0, patience = 5;  // posts after the end; looks at the end
};

struct Load {
  static constexpr unsigned kQps = 6, kCqs = 3;
  explicit Load(std::uint64_t s) : w(s) {
    for (unsigned i = 0; i < 2; ++i) w.create_eq(i, 5 + i);
    for (unsigned i = 0; i < kCqs; ++i) {
      w.create_cq(cqn[i], 9, i % 2);
      w.ring_cq(cqn[i], 3);
    }
    for (unsigned i = 0; i < kQps; ++i) renew(i);
  }
  void renew(unsigned i) {
    auto& l = lives[i];
    l = Life{};
    const unsigned qp = index[i];
    l.qpn = static_cast<std::uint32_t>(++serial << 8 | qp);
    w.create_qp(qp, l.qpn, cqn[i % kCqs], cqn[(i + i / 3) % kCqs], 6);
    l.send_base = w.send.contexts[qp].pi;
    l.recv_base = w.recv.contexts[qp].rq_pi;
    by_qpn[l.qpn] = i;
  }
  /// The driver: events wake it, it polls, arms, and goes back to sleep.
  void serve_events() {
    while (!w.events.empty()) {
      const auto e = w.events.front();
      w.events.pop_front();
      if (e.event_type == raw(hw::EqeType::kQpFatal) || e.event_type == raw(hw::EqeType::kQpRequestError) ||
          e.event_type == raw(hw::EqeType::kQpAccessError)) {
        ++fatal;
        continue;
      }
      REQUIRE(e.event_type == raw(hw::EqeType::kCompletion));
      for (const auto& c : w.poll(e.number)) outcome(c);
      w.ring_cq(e.number, 3);
      ++wakeups;
    }
  }
  void outcome(const hw::Cqe& c) {
    const auto at = by_qpn.find(c.qpn);
    REQUIRE(at != by_qpn.end());
    auto& l = lives[at->second];
    REQUIRE(l.qpn == c.qpn);  // nothing of an earlier life
    ++outcomes;
    const bool flushed = c.status == raw(Status::kWrFlushErr);
    if (flushed) REQUIRE(l.broken);
    if (c.is_receive) {
      REQUIRE(c.wqe_index == static_cast<std::uint16_t>(l.recv_base + l.next_receive));
      REQUIRE(l.next_receive < l.receives);
      ++l.next_receive;
      if (l.recv_flushing) REQUIRE(flushed);
      if (c.status == 0) {
        REQUIRE(!l.lengths.empty());
        REQUIRE(c.byte_count == l.lengths.front());
        l.lengths.pop_front();
      } else {
        l.recv_flushing = true;
      }
      return;
    }
    while (c.wqe_index != static_cast<std::uint16_t>(l.send_base + l.next_send)) {
      REQUIRE(l.next_send < l.acked);  // silent ones that succeeded have no CQE
      REQUIRE(l.wqes[l.next_send].silent);
      REQUIRE(!l.send_flushing);
      ++l.next_send;
    }
    REQUIRE(l.next_send < l.sends);
    REQUIRE(c.retired_index == static_cast<std::uint16_t>(c.wqe_index + 1));
    if (l.send_flushing) REQUIRE(flushed);
    if (c.status == 0) {
      REQUIRE(l.next_send < l.acked);
      REQUIRE(!l.wqes[l.next_send].silent);
    } else {
      if (!flushed) {
        REQUIRE(l.broken);
        ++errors;
      }
      l.send_flushing = true;
    }
    ++l.next_send;
  }
  rtl::RxDone packet(unsigned i, Action action, std::uint32_t psn = 0) {
    rtl::RxDone d;
    d.qp = static_cast<std::uint8_t>(index[i]);
    d.qpn = lives[i].qpn;
    d.action = raw(action);
    d.psn = psn;
    return d;
  }
  void act(unsigned i);
  void end(unsigned i);

  CompletionWorld w;
  const std::array<unsigned, kQps> index{0, 3, 128, 129, 254, 255};
  const std::array<unsigned, kCqs> cqn{0, 9, 255};
  std::array<Life, kQps> lives;
  std::map<std::uint32_t, unsigned> by_qpn;
  std::uint64_t serial = 1, outcomes = 0, wakeups = 0, fatal = 0, errors = 0, ended = 0, quiet = 0;
  double breakage = 0.04;
};

void Load::act(unsigned i) {
  auto& l = lives[i];
  auto& bench = w.bench;
  const unsigned qp = index[i];
  auto& s = w.send.contexts[qp];
  auto& r = w.recv.contexts[qp];
  const bool send_err = s.state == raw(hw::QpState::kErr), recv_err = r.state == raw(hw::QpState::kErr);
  const double what = std::uniform_real_distribution<>(0, 1)(bench.rng);
  if (send_err && recv_err && what < 0.45 && ++l.late > 20) return;  // the owner gives up posting
  if (what < 0.2) {
    const auto n = bench.uniform(1, 4);
    if (l.receives + n - l.next_receive <= 40 && w.rq_doorbells.items.size() < 3) {
      w.post_receives(qp, static_cast<unsigned>(n));
      l.receives += n;
    }
  } else if (what < 0.45) {
    if (l.sends - l.next_send > 40 || l.sends - l.acked > 40 || !w.send.is_free(qp)) return;
    if (send_err) {  // the send queue moves the producer index and asks for a flush
      s.pi = static_cast<std::uint16_t>(s.pi + 1);
      ++l.sends;
      w.flushes.push(qp);
      return;
    }
    if (l.broken) return;
    const bool read = bench.chance(0.25) && s.rd_outstanding < 16, silent = bench.chance(0.4);
    const auto packets = static_cast<unsigned>(bench.uniform(1, 5));
    w.sent(qp, read ? hw::WqeOpcode::kRead : hw::WqeOpcode::kWrite, silent, packets);
    l.wqes.push_back({silent, read, (s.next_psn - 1) & 0xffffff});
    ++l.sends;
    ++l.sent;
  } else if (what < 0.65) {
    if (w.dones.items.size() > 8 || l.acked == l.sent || l.unanswered) return;
    // Acknowledge up to the next Read, or finish it.
    auto last = l.acked;
    if (l.wqes[last].read) {
      w.dones.push(packet(i, Action::kReadDone, l.wqes[last].last_psn));
    } else {
      while (last + 1 < l.sent && !l.wqes[last + 1].read && bench.chance(0.5)) ++last;
      w.dones.push(packet(i, Action::kAck, l.wqes[last].last_psn));
    }
    l.acked = last + 1;
  } else if (what < 0.9) {
    if (w.dones.items.size() > 8 || !w.recv.is_free(qp) || recv_err || l.recv_faulted || r.rq_head == r.rq_pi) return;
    auto d = packet(i, bench.chance(0.2) ? Action::kExecuted : Action::kReceiveDone);
    d.ack_req = d.msg_last = 1;
    if (d.action == raw(Action::kReceiveDone)) {
      d.wqe_idx = r.rq_head++;
      d.byte_count = static_cast<std::uint32_t>(bench.uniform(0, 1 << 20));
      d.solicited = bench.chance(0.5);
      d.target = raw(rtl::PlaceTarget::kReceive);
      l.lengths.push_back(d.byte_count);
    }
    w.dones.push(d);
  } else if (!l.broken && bench.chance(breakage)) {
    l.broken = true;
    switch (bench.uniform(0, 5)) {
      case 0: {  // the peer refuses a request
        auto d = packet(i, Action::kNakReceived, l.acked < l.sent ? l.wqes[l.acked].last_psn : 0);
        d.syndrome = 0x62;
        l.broken = l.unanswered = l.acked < l.sent;
        if (l.broken) w.dones.push(d);
        break;
      }
      case 1: {  // its payload could not be fetched
        rtl::TxFault f;
        f.qp = static_cast<std::uint8_t>(qp);
        f.wqe_idx = static_cast<std::uint16_t>(l.send_base + l.acked);
        f.status = 4;
        l.broken = l.unanswered = l.acked < l.sent;
        if (l.broken) w.tx_faults.push(f);
        break;
      }
      case 2: {  // a malformed WQE
        if (!w.send.is_free(qp)) {
          l.broken = false;
          break;
        }
        s.pi = static_cast<std::uint16_t>(s.pi + 1);
        s.fault = 1;
        s.fault_idx = s.exec_idx;
        ++l.sends;
        rtl::RetireCmd c;
        c.qp = static_cast<std::uint8_t>(qp);
        c.command = raw(rtl::RetireCommand::kFailWqe);
        c.wqe_idx = s.exec_idx;
        c.status = raw(Status::kLocQpOpErr);
        w.retire_cmds.push(c);
        break;
      }
      case 3: {  // a SEND does not fit
        if (!w.recv.is_free(qp) || r.rq_head == r.rq_pi || recv_err) {
          l.broken = false;
          break;
        }
        auto d = packet(i, Action::kExecuted);
        d.fault = d.overflow = 1;
        l.recv_faulted = true;
        d.wqe_idx = r.rq_head++;
        d.target = raw(rtl::PlaceTarget::kReceive);
        w.dones.push(d);
        break;
      }
      case 4: {  // a WRITE is refused
        auto d = packet(i, Action::kExecuted);
        d.fault = 1;
        l.recv_faulted = true;
        d.status = 5;
        d.target = raw(rtl::PlaceTarget::kWrite);
        w.dones.push(d);
        break;
      }
      default:  // the host's own wish
        w.errors.push({static_cast<std::uint8_t>(qp), 0, 1});
        ++quiet;
    }
  }
}

/// A QP that broke: when both sides are flushed the host resets it, looks at what is there, and makes a new one.
void Load::end(unsigned i) {
  auto& l = lives[i];
  const unsigned qp = index[i];
  if (!l.broken || !w.send.is_free(qp) || !w.recv.is_free(qp)) return;
  for (const auto& d : w.dones.items)
    if (d.qp == qp) return;
  for (const auto& f : w.flushes.items)
    if (f == qp) return;
  auto& s = w.send.contexts[qp];
  auto& r = w.recv.contexts[qp];
  if (s.state != raw(hw::QpState::kErr) || r.state != raw(hw::QpState::kErr)) return;
  if (s.pi != s.retire_idx || r.rq_pi != r.rq_done) return;
  if (r.rq_pi != static_cast<std::uint16_t>(l.recv_base + l.receives)) return;  // a doorbell is on its way
  if (l.patience-- > 0) return;
  w.reset_qp(qp);
  serve_events();
  for (const auto c : cqn)
    for (const auto& x : w.poll(c)) outcome(x);
  REQUIRE(l.next_receive == l.receives);
  while (l.next_send < l.sends) {  // silent successes at the end, if no flush came after
    REQUIRE(l.next_send < l.acked);
    REQUIRE(l.wqes[l.next_send].silent);
    ++l.next_send;
  }
  s = {};
  r = {};
  ++ended;
  by_qpn.erase(l.qpn);
  renew(i);
}
}  // namespace

TEST_CASE("completion: under random load every WQE has one outcome, in order", "[rtl]") {
  Load x(seed());
  auto& w = x.w;
  auto& bench = w.bench;
  for (unsigned step = 0; step < 100000; ++step) {
    if (step % 2000 == 0) {
      const bool easy = step / 2000 % 3 == 0;
      w.queue_writes.rate = w.record_writes.rate = easy ? 1 : 0.4;
      w.queue_writes.max_delay = w.record_writes.max_delay = easy ? 0 : 40;
      w.send.stall_rate = w.recv.stall_rate = easy ? 0 : 0.3;
      w.rsps.rate = w.msix.rate = easy ? 1 : 0.3;
      w.dones.rate = easy ? 1 : 0.5;
    }
    const auto i = static_cast<unsigned>(bench.uniform(0, Load::kQps - 1));
    if (bench.chance(0.5)) x.act(i);
    x.end(i);
    x.serve_events();
    w.tick();
  }
  // Everything that was sent is acknowledged; then nothing may be left without an outcome.
  x.breakage = 0;
  for (unsigned i = 0; i < Load::kQps; ++i) {
    auto& l = x.lives[i];
    for (; l.acked < l.sent && !l.broken; ++l.acked)
      w.dones.push(x.packet(i, l.wqes[l.acked].read ? Action::kReadDone : Action::kAck, l.wqes[l.acked].last_psn));
  }
  for (int i = 0; i < 3000; ++i) {
    x.serve_events();
    w.tick();
  }
  w.settle();
  x.serve_events();
  for (const auto c : x.cqn) CHECK(w.poll(c).empty());  // no entry without its event
  std::set<std::uint64_t> told;
  for (const auto& r : w.records) told.insert(r.first);
  for (unsigned i = 0; i < Load::kQps; ++i) {
    const auto& l = x.lives[i];
    const auto& s = w.send.contexts[x.index[i]];
    if (l.broken) continue;
    CHECK(s.retire_idx == s.pi);
    CHECK(s.rd_outstanding == 0);
    CHECK(s.silent_run == 0);  // the host knows of every retirement
  }
  std::printf(
      "completion: %llu outcomes, %llu lives ended (%llu quietly), %llu QpFatal events, %llu wake-ups, %zu records\n",
      static_cast<unsigned long long>(x.outcomes), static_cast<unsigned long long>(x.ended),
      static_cast<unsigned long long>(x.quiet), static_cast<unsigned long long>(x.fatal),
      static_cast<unsigned long long>(x.wakeups), w.records.size());
  CHECK(x.outcomes > 5000);
  CHECK(x.ended > 50);
  CHECK(x.errors > 10);
  CHECK(x.fatal > 10);
  CHECK(w.records.size() > 20);
  CHECK(told.size() == Load::kQps);
  CHECK(w.counts[raw(hw::Counter::kCqOverruns)] == 0);
  CHECK(w.counts[raw(hw::Counter::kDoorbellsRefused)] == 0);
  CHECK(w.counts[raw(hw::Counter::kCqes)] == x.outcomes);
  CHECK(w.counts[raw(hw::Counter::kRetiredRecords)] == w.records.size());
}

TEST_CASE("completion: cycles from a packet to its consequences", "[rtl]") {
  CompletionWorld w(seed(2));
  w.create_eq(0, 1);
  w.create_cq(1, 10, 0);
  for (unsigned qp = 0; qp < 16; ++qp) w.create_qp(qp, 0x100 + qp, 1, 1);
  for (unsigned qp = 0; qp < 16; ++qp) w.post_receives(qp, 40);
  w.settle(20);
  const auto receive = [&](unsigned qp, Action action) {
    rtl::RxDone d;
    d.qp = static_cast<std::uint8_t>(qp);
    d.action = raw(action);
    d.ack_req = d.msg_last = 1;
    if (action == Action::kReceiveDone) d.wqe_idx = w.recv.contexts[qp].rq_head++;
    w.dones.push(d);
  };
  // Latencies, from the cycle in which the packet is offered.
  const auto until = [&](auto&& done) {
    const auto start = w.bench.cycle;
    while (!done()) w.tick();
    return static_cast<unsigned long long>(w.bench.cycle - start);
  };
  receive(0, Action::kExecuted);
  const auto ack = until([&] { return !w.rsps.items.empty(); });
  w.rsps.items.clear();
  receive(0, Action::kReceiveDone);
  const auto cqe = until([&] { return w.queue_writes.accepted == 1; });
  const auto ack_after = until([&] { return !w.rsps.items.empty(); });
  w.settle(20);
  const auto psn = w.send.contexts[1].next_psn;
  w.send.contexts[1].stalled = 1;
  w.sent(1, hw::WqeOpcode::kWrite, false, 1);
  auto d = rtl::RxDone{};
  d.qp = 1;
  d.action = raw(Action::kAck);
  d.psn = psn;
  w.dones.push(d);
  const auto retired = until([&] { return w.queue_writes.accepted == 2; });
  const auto woken = until([&] { return w.wakes[1] == 1; });
  w.settle(20);
  // Rates: small SENDs, small WRITEs, and ACKs, over 16 QPs.
  for (int i = 0; i < 160; ++i) receive(static_cast<unsigned>(i % 16), Action::kReceiveDone);
  const double each_receive = static_cast<double>(until([&] { return w.dones.idle(); })) / 160;
  w.settle(20);
  for (int i = 0; i < 160; ++i) receive(static_cast<unsigned>(i % 16), Action::kExecuted);
  const double each_write = static_cast<double>(until([&] { return w.dones.idle(); })) / 160;
  for (int i = 0; i < 160; ++i) {
    const auto qp = static_cast<unsigned>(i % 16);
    d.qp = static_cast<std::uint8_t>(qp);
    d.psn = w.send.contexts[qp].next_psn;
    w.sent(qp, hw::WqeOpcode::kWrite, false, 1);
    w.dones.push(d);
  }
  const auto before = w.queue_writes.accepted;
  const auto left = w.dones.items.size();
  const double each_ack = static_cast<double>(until([&] { return w.dones.idle(); })) / static_cast<double>(left);
  w.settle(20);
  CHECK(w.queue_writes.accepted > before);
  std::printf(
      "completion: WRITE to ACK command %llu, SEND to CQE %llu (ACK command no later than +%llu), ACK to CQE %llu, "
      "wake +%llu; "
      "cycles each: SEND %.1f, WRITE %.1f, ACK %.1f\n",
      ack, cqe, ack_after, retired, woken, each_receive, each_write, each_ack);
  CHECK(ack <= 4);
  CHECK(cqe <= 20);
  CHECK(retired <= 20);
  CHECK(each_receive <= 10);
  CHECK(each_write <= 4);
  CHECK(each_ack <= 10);
}
