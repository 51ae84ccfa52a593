#include "tests/rtl/completion_world.hpp"

#include <algorithm>
#include <numeric>
#include <set>

// rtl/completion/completion.sv under random load: a driver that sleeps until events, a network that acknowledges and
// fails, QPs that die and are made anew. Whatever is posted has exactly one outcome, in order.
using namespace rnic;
using namespace rnic::test;

namespace {
using Status = hw::CqeStatus;
using Action = rtl::RxAction;

/// The send queue tells that a WQE is malformed.
void fail_wqe(CompletionWorld& w, unsigned qp, std::uint16_t index) {
  rtl::RetireCmd command;
  command.qp = static_cast<std::uint8_t>(qp);
  command.command = raw(rtl::RetireCommand::kFailWqe);
  command.wqe_idx = index;
  command.status = raw(Status::kLocQpOpErr);
  w.retire_cmds.push(command);
}

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
        fail_wqe(w, qp, s.exec_idx);
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

namespace {
/// Rounds in which queue pairs fail of everything at once: one of each cause in the same few cycles, or all in a heap
/// while CQs overrun, queues are long, and posts, events of queue pairs, of SRQs and of the port come in between.
struct Storm {
  enum class Fate { kNone, kMalformed, kPayload, kRequest, kResponse, kHost, kOverrun, kLongHost };
  struct Life {
    Fate fate = Fate::kNone;
    std::uint32_t qpn = 0;
    unsigned sends = 0, receives = 0, next_send = 0, next_receive = 0, drained = 0, established = 0;
    std::uint16_t send_base = 0, recv_base = 0;
    std::multiset<unsigned> events;
    bool failed() const { return fate != Fate::kNone; }
  };
  static constexpr unsigned kBig[] = {10, 11}, kSmall[] = {20, 21};

  explicit Storm(std::uint64_t s)
      : w(s),
        srq_events([this](bool v) { w.dut().srq_eqe_valid_i = v; }, [this] { return w.dut().srq_eqe_ready_o != 0; },
                   [this](const rtl::EqeReq& e) { put(w.dut().srq_eqe_data_i, e); }, w.bench.rng),
        device_events([this](bool v) { w.dut().device_eqe_valid_i = v; },
                      [this] { return w.dut().device_eqe_ready_o != 0; },
                      [this](const rtl::EqeReq& e) { put(w.dut().device_eqe_data_i, e); }, w.bench.rng) {
    w.bench.add(srq_events);
    w.bench.add(device_events);
    for (unsigned i = 0; i < 2; ++i) w.create_eq(i, 5 + i);
    for (const unsigned cqn : kBig) w.create_cq(cqn, 12, cqn % 2);
  }
  bool chance(double p) { return w.bench.chance(p); }
  unsigned pick(unsigned low, unsigned high) { return static_cast<unsigned>(w.bench.uniform(low, high)); }
  void tick() {
    w.tick();
    w.dut().drained_valid_i = w.dut().established_valid_i = 0;
    if (w.bench.cycle % 64 == 0) poll();
  }
  void poll() {
    for (const unsigned cqn : kBig) {
      for (const auto& c : w.poll(cqn)) outcome(c);
      if (w.cq_doorbells.items.size() < 2) w.ring_cq(cqn, 3);
    }
  }
  void outcome(const hw::Cqe& c);
  void begin(bool heap);
  void launch(unsigned qp);
  void notify();
  void post_nothing();
  void notice(unsigned qp);
  void disturb();
  void end();
  void round(bool heap, bool held);

  CompletionWorld w;
  Source<rtl::EqeReq> srq_events, device_events;
  std::array<Life, 256> lives;
  std::array<unsigned, 256> srq_told{};
  unsigned serial = 0, port_events = 0, failures = 0, outcomes = 0;
};

void Storm::outcome(const hw::Cqe& c) {
  auto& l = lives[c.qpn & 0xff];
  REQUIRE(l.qpn == c.qpn);
  REQUIRE(l.failed());
  ++outcomes;
  auto expected = raw(Status::kWrFlushErr);
  if (c.is_receive) {
    REQUIRE(c.wqe_index == static_cast<std::uint16_t>(l.recv_base + l.next_receive++));
  } else {
    REQUIRE(c.wqe_index == static_cast<std::uint16_t>(l.send_base + l.next_send));
    if (l.next_send == 0 && l.fate == Fate::kMalformed) expected = raw(Status::kLocQpOpErr);
    if (l.next_send == 0 && l.fate == Fate::kPayload) expected = raw(Status::kLocProtErr);
    ++l.next_send;
  }
  REQUIRE(c.status == expected);
}

void Storm::begin(bool heap) {
  ++serial;
  w.events.clear();
  w.unbinds.taken.clear();
  srq_told.fill(0);
  port_events = 0;
  if (heap)
    for (const unsigned cqn : kSmall) {
      w.cq_memory.erase(w.cq_memory.lower_bound(w.kCqBase + w.kCqStep * cqn),
                        w.cq_memory.lower_bound(w.kCqBase + w.kCqStep * (cqn + 1)));
      w.create_cq(cqn, 1, 0);
    }
  for (unsigned qp = 0; qp < 256; ++qp) {
    auto& l = lives[qp] = {};
    l.fate = static_cast<Fate>(1 + qp % 5);
    if (heap) l.fate = qp % 32 == 31 ? Fate::kLongHost : qp % 8 == 7 ? Fate::kNone : static_cast<Fate>(1 + qp % 6);
    l.qpn = serial << 8 | qp;
    const bool overrun = l.fate == Fate::kOverrun, many = l.fate == Fate::kLongHost;
    w.create_qp(qp, l.qpn, kBig[qp / 8 % 2], overrun ? kSmall[qp / 16 % 2] : kBig[qp / 64 % 2], many ? 9 : 6);
    auto& s = w.send.contexts[qp];
    auto& r = w.recv.contexts[qp];
    l.send_base = s.pi;
    l.recv_base = r.rq_pi;
    l.sends = many ? 200 : pick(1, 3);
    l.receives = many ? 150 : pick(0, 3) + overrun;
    if (l.fate == Fate::kPayload) w.sent(qp, hw::WqeOpcode::kWrite, false, 1);
    s.pi = static_cast<std::uint16_t>(l.send_base + l.sends);
    r.rq_pi = w.rq_posted[qp] = static_cast<std::uint16_t>(l.recv_base + l.receives);
    r.rq_head = static_cast<std::uint16_t>(l.recv_base + (overrun ? 1 : 0));
    if (l.fate == Fate::kMalformed) {
      s.fault = 1;
      s.fault_idx = s.exec_idx;
    }
  }
}

/// What ends the queue pair.
void Storm::launch(unsigned qp) {
  auto& l = lives[qp];
  auto& s = w.send.contexts[qp];
  rtl::RxDone d;
  d.qp = static_cast<std::uint8_t>(qp);
  d.qpn = l.qpn;
  rtl::TxFault f;
  f.qp = static_cast<std::uint8_t>(qp);
  failures += l.failed();
  switch (l.fate) {
    case Fate::kMalformed: fail_wqe(w, qp, l.send_base); break;
    case Fate::kPayload:
      f.psn = (s.next_psn - 1) & 0xffffff;
      f.wqe_idx = l.send_base;
      f.status = raw(rtl::XlateStatus::kBadRange);
      w.tx_faults.push(f);
      break;
    case Fate::kRequest:
      d.action = raw(Action::kNak);
      d.syndrome = 0x61;
      w.dones.push(d);
      break;
    case Fate::kResponse:
      f.responder = 1;
      f.status = raw(rtl::XlateStatus::kBadRange);
      w.tx_faults.push(f);
      break;
    case Fate::kOverrun:
      d.action = raw(Action::kReceiveDone);
      d.target = raw(rtl::PlaceTarget::kReceive);
      d.wqe_idx = l.recv_base;
      w.dones.push(d);
      break;
    case Fate::kHost:
    case Fate::kLongHost: w.errors.push({static_cast<std::uint8_t>(qp), 0, 1}); break;
    case Fate::kNone: break;
  }
}

/// Events of SRQs and of the port.
void Storm::notify() {
  const bool both = chance(0.01);
  if ((both || chance(0.02)) && srq_events.idle()) {
    rtl::EqeReq e{.eqn = 0, .event_type = raw(hw::EqeType::kSrqLimit), .number = pick(0, 255), .detail = 0};
    if (srq_told[e.number]++ == 0) srq_events.push(e);
  }
  if ((both || chance(0.02)) && device_events.idle()) {
    ++port_events;
    device_events.push({.eqn = 1,
                        .event_type = raw(chance(0.5) ? hw::EqeType::kPortError : hw::EqeType::kPortActive),
                        .number = 1,
                        .detail = 0});
  }
}

/// A doorbell that says what is known already, for a queue pair that has failed: it asks for a flush all the same.
void Storm::post_nothing() {
  for (unsigned tries = 0; tries < 8; ++tries) {
    const unsigned qp = pick(0, 255);
    if (w.recv.contexts[qp].state == raw(hw::QpState::kErr)) return w.post_receives(qp, 0);
  }
}

/// An event of a queue pair. With the first packet of a life what waits of an earlier one is dropped (event_gate): so
/// it comes to those alone that have no other events.
void Storm::notice(unsigned qp) {
  auto& l = lives[qp];
  ++(l.failed() ? l.drained : l.established);
  (l.failed() ? w.dut().drained_valid_i : w.dut().established_valid_i) = 1;
  (l.failed() ? w.dut().drained_qp_i : w.dut().established_qp_i) = static_cast<std::uint8_t>(qp);
}

/// Events of queue pairs; posts to those that have failed.
void Storm::disturb() {
  if (chance(0.02)) notice(chance(0.2) ? pick(0, 255) : 7 + 8 * pick(0, 31));
  const unsigned qp = chance(0.5) ? 31 + 32 * pick(0, 7) : pick(0, 255);
  auto& l = lives[qp];
  auto& s = w.send.contexts[qp];
  if ((l.fate != Fate::kHost && l.fate != Fate::kLongHost) || !w.send.is_free(qp) || !w.recv.is_free(qp)) return;
  if (s.state != raw(hw::QpState::kErr) || w.recv.contexts[qp].state != raw(hw::QpState::kErr)) return;
  if (w.flushes.items.size() < 3 && static_cast<std::uint16_t>(s.pi - s.retire_idx) < 60 && l.sends < 300) {
    s.pi = static_cast<std::uint16_t>(s.pi + 1);
    ++l.sends;
    w.flushes.push(qp);
  }
  if (w.rq_doorbells.items.size() < 2 && l.receives < 300 && l.receives - l.next_receive < 60) {
    w.post_receives(qp, 1);
    ++l.receives;
  }
}

/// Each queue pair has ended once, as it had to; all that was posted is flushed, in order.
void Storm::end() {
  const auto idle = [&] {
    return !w.dut().unbinding_o && w.unbinds.idle() && srq_events.idle() && device_events.idle() && w.send.idle() &&
           w.recv.idle();
  };
  for (unsigned quiet = 0, i = 0; quiet < 200; ++quiet, ++i) {
    REQUIRE(i < 60'000);
    const auto before = w.cqes_done + w.eqes_done;
    tick();
    if (!idle() || before != w.cqes_done + w.eqes_done) quiet = 0;
  }
  w.settle();
  poll();
  w.settle();
  unsigned ports = 0;
  std::array<unsigned, 256> srqs{};
  for (const auto& e : w.events) {
    if (e.event_type == raw(hw::EqeType::kSrqLimit)) {
      ++srqs[e.number];
    } else if (e.event_type == raw(hw::EqeType::kPortError) || e.event_type == raw(hw::EqeType::kPortActive)) {
      ++ports;
    } else if (e.event_type != raw(hw::EqeType::kCompletion) && e.event_type != raw(hw::EqeType::kCqError)) {
      auto& l = lives[e.number & 0xff];
      REQUIRE(l.qpn == e.number);
      l.events.insert(e.event_type);
    }
  }
  REQUIRE(ports <= port_events);
  REQUIRE((ports > 0) == (port_events > 0));
  std::multiset<unsigned> unbound(w.unbinds.taken.begin(), w.unbinds.taken.end());
  for (unsigned qp = 0; qp < 256; ++qp) {
    INFO("queue pair " << qp);
    const auto& l = lives[qp];
    const auto& s = w.send.contexts[qp];
    const auto& r = w.recv.contexts[qp];
    REQUIRE(srqs[qp] == (srq_told[qp] > 0));
    const bool quiet = l.fate == Fate::kHost || l.fate == Fate::kLongHost;
    REQUIRE(unbound.count(qp) == (l.failed() && !quiet));
    REQUIRE(s.state == raw(l.failed() ? hw::QpState::kErr : hw::QpState::kRts));
    REQUIRE(r.state == s.state);
    if (l.failed()) {
      REQUIRE((s.retire_idx == s.pi && r.rq_done == r.rq_pi));
      REQUIRE(l.next_send == l.sends);
      if (l.fate != Fate::kOverrun) REQUIRE(l.next_receive == l.receives);
    } else {
      REQUIRE((s.retire_idx == l.send_base && r.rq_done == l.recv_base));
    }
    // What a completion tells, and what the host has asked for, needs no event (11.6.3.2).
    REQUIRE(l.events.count(raw(hw::EqeType::kQpRequestError)) == (l.fate == Fate::kRequest));
    REQUIRE(l.events.count(raw(hw::EqeType::kQpAccessError)) == (l.fate == Fate::kResponse));
    REQUIRE(l.events.count(raw(hw::EqeType::kQpFatal)) == (l.fate == Fate::kOverrun));
    const auto drained = l.events.count(raw(hw::EqeType::kSqDrained));
    const auto established = l.events.count(raw(hw::EqeType::kCommEstablished));
    REQUIRE((drained <= l.drained && (drained > 0) == (l.drained > 0)));
    REQUIRE((established <= l.established && (established > 0) == (l.established > 0)));
  }
}

/// `held`: nobody takes writes, finishes them, or takes messages, for a few hundred cycles each.
void Storm::round(bool heap, bool held) {
  begin(heap);
  const auto hold = [&](unsigned step) {
    w.queue_writes.rate = held && step % 1500 < 400 ? 0.01 : 1;
    w.queue_writes.max_delay = held && step % 1500 >= 400 && step % 1500 < 800 ? 900 : 0;
    w.msix.rate = held && step % 1500 >= 1000 && step % 1500 < 1400 ? 0 : 1;
  };
  // Packets that have come before the errors are still in the receive engine.
  const auto inside = [&](unsigned count) {
    w.dut().rx_entered_i = 16 * serial;
    w.dut().rx_left_i = 16 * serial - count;
  };
  unsigned step = 0;
  w.send.stall_rate = w.recv.stall_rate = heap ? 0.1 : 0;
  if (heap) {
    // First events of many in a row: of queue pairs that will not fail, then of some that will.
    for (const unsigned rest : {7u, 3u}) {
      for (unsigned qp = rest; qp < 128; qp += 8, tick())
        if (lives[qp].failed() == (rest == 3)) notice(qp);
      w.run(400);
    }
    std::vector<unsigned> order(256);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), w.bench.rng);
    const auto others =
        std::partition(order.begin(), order.end(), [this](unsigned qp) { return lives[qp].fate == Fate::kOverrun; });
    for (auto at = order.begin(); at != order.end(); ++at) {
      launch(*at);
      if (at < others) continue;  // CQs overrun with all that is on its way to them
      if (at == others) w.run(300);
      for (unsigned n = pick(0, 24); n > 0; --n, ++step) {
        hold(step);
        inside(step < 2500 ? 4 : 0);
        if (step < 2500 && w.flushes.idle() && chance(0.2)) w.flushes.push(pick(0, 255));
        if (step < 2500 && w.rq_doorbells.items.size() < 2) post_nothing();
        notify();
        disturb();
        tick();
      }
    }
    for (unsigned n = 0; n < 3000; ++n, ++step) {
      hold(step);
      inside(0);
      notify();
      disturb();
      tick();
    }
  } else {
    // In the same cycle where errors meet: retirement takes six cycles to it, a packet two. All causes, most of them
    // at once and the rest later; or two, behind one that was alone and so has had its turn.
    constexpr std::array<unsigned, 5> kEarlier{6, 6, 2, 0, 0};
    const bool pairs = serial % 4 == 1;
    const unsigned count = pairs ? 10 : 5;
    for (unsigned first = 0; first + count <= 256; first += count) {
      std::array<unsigned, 10> after{};
      if (pairs) {
        constexpr std::array<unsigned, 4> kCauses{0, 2, 3, 4};
        const unsigned one = kCauses[pick(0, 3)], other = kCauses[pick(0, 3)];
        for (unsigned k = 0, next = 0; k < 10; ++k) after[k] = (k % 5 == one ? 240 : 60 * (next++ % 4)) + 400 * (k / 5);
        after[5 + one] = after[5 + other] = 330;
        for (const unsigned k : {5 + one, 5 + other}) after[k] -= kEarlier[k % 5] + (chance(0.2) ? pick(0, 2) : 1);
      } else {
        for (unsigned k = 0; k < 5; ++k) {
          after[k] = 8 - kEarlier[k] - (chance(0.3) ? pick(0, 2) : 1);
          if (chance(0.4)) after[k] += 10 * pick(8, 12);
        }
      }
      const unsigned length = pairs ? 720 : 160;
      for (unsigned t = 0; t < length; ++t, ++step) {
        for (unsigned k = 0; k < count; ++k)
          if (after[k] == t) launch(first + k);
        hold(step);
        notify();
        if (t + 20 > length) disturb();
        tick();
      }
    }
    if (pairs)
      for (unsigned qp = 250; qp < 255; ++qp) launch(qp);
    launch(255);
  }
  hold(1450);
  w.queue_writes.max_delay = 0;
  end();
}
}  // namespace

TEST_CASE("completion: whatever fails at once, each queue pair ends once, and what is posted is flushed once",
          "[rtl]") {
  Storm storm(seed(9));
  for (unsigned round = 0; round < 16; ++round) {
    INFO("round " << round);
    storm.round(round % 2 == 1, round % 4 >= 2);
  }
  std::printf("completion: %u failures at once, %u flushed\n", storm.failures, storm.outcomes);
  CHECK(storm.failures > 3500);
  CHECK(storm.outcomes > 20'000);
}
