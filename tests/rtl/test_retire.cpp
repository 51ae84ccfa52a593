#include <Vretire.h>

#include "tests/rtl/completion_models.hpp"

// rtl/completion/retire.sv: order, silent WQEs and retired records, Reads, failures, stale commands.
using namespace rnic;
using namespace rnic::test;

namespace {
using Cmd = rtl::RetireCommand;
constexpr unsigned kWindow = 64;

/// A posted WQE, PSNs counted without wrapping.
struct Wqe {
  unsigned opcode = 0;
  bool silent = false;
  std::uint64_t first = 0, last = 0;
  std::uint32_t length = 0;
};

/// One QP by the rules: decisions 1 and 2, and the contract of retire_cmd_t.
struct Qp {
  unsigned index = 0;
  rtl::SendCtx* ctx = nullptr;
  std::deque<Wqe> sent;       // in the in-flight table, oldest first
  std::uint64_t retired = 0;  // WQEs retired; also the index of sent.front()
  std::uint64_t posted = 0;
  std::uint64_t next_psn = 0, una = 0;  // unwrapped
  std::uint64_t partial_first = 0;
  bool partial = false;         // the WQE after `sent` is partly sent
  std::uint64_t repeated = 20;  // packets that are still to be sent again
  unsigned silent_run = 0, reads = 0;
  bool dead = false, fault = false, progress = false;
  bool stalled = false, drains = false;  // its send queue waits for what retires; for its end, in SQD
  bool credits = false;                  // the peer counts, up to `lsn`
  std::uint32_t lsn = 0;
  std::uint64_t fault_idx = 0;
  unsigned fault_status = 0, fault_syndrome = 0;
  int pending = 0;  // commands given and not finished
  std::uint64_t executed() const { return retired + sent.size(); }
};

/// Credits that come with a command.
struct Credits {
  bool come = false, limited = false;
  std::uint32_t lsn = 0;
};

struct Expect {
  std::deque<rtl::CqeReq> cqes;
  std::deque<std::pair<std::uint64_t, unsigned>> records;  // address, index
  std::deque<rtl::QpError> errors;
  std::deque<rtl::RecoverCmd> recovers;
  std::deque<std::pair<unsigned, std::uint32_t>> timers;  // QPs whose oldest unacknowledged PSN moved, and where to
  std::array<unsigned, 256> wakes{};
};

void report(Qp& q, const Wqe* wqe, unsigned status, unsigned syndrome, Expect& e) {
  rtl::CqeReq c;
  c.cqn = q.ctx->cqn;
  c.qpn = q.ctx->qpn;
  c.status = static_cast<std::uint8_t>(status);
  c.opcode = static_cast<std::uint8_t>(wqe ? wqe->opcode : 255);
  c.byte_count = wqe ? wqe->length : 0;
  c.wqe_index = static_cast<std::uint16_t>(q.retired);
  c.retired_index = static_cast<std::uint16_t>(q.retired + 1);
  c.syndrome = static_cast<std::uint8_t>(syndrome);
  e.cqes.push_back(c);
  q.silent_run = 0;
}

/// Carries out a command. `psn` and `idx` are unwrapped.
void carry_out(Qp& q, Cmd command, std::uint64_t psn, std::uint64_t idx, unsigned status, unsigned syndrome,
               const Credits& credits, Expect& e) {
  if (q.dead) return;
  const std::uint64_t una_before = q.una;
  // Whoever waits is woken by whatever comes, and nobody else.
  const bool waits = q.stalled;
  q.stalled = false;
  // What is still to be sent again cannot be acknowledged yet.
  if (command == Cmd::kAck || command == Cmd::kReadDone) q.una = std::max(q.una, std::min(psn + 1, q.next_psn));
  if (command == Cmd::kFail || command == Cmd::kRetry) q.una = std::max(q.una, psn);
  if (q.una != una_before) {
    e.timers.push_back({q.index, q.una & 0xffffff});
    q.progress = true;
  }
  // 9.7.7.2: MSN + credits; the limit of an ACK that is older than the newest one says nothing.
  if (credits.come && std::min(psn + 1, q.next_psn) >= una_before) {
    const bool counted = q.credits;
    q.credits = credits.limited;
    if (!counted || ((credits.lsn - q.lsn) & 0x800000) == 0) q.lsn = credits.lsn;
  }
  // 9.7.6: sent again, once what is acknowledged has retired; so is what a stale fault has kept from being sent. Whose
  // a refusal is, recovery finds out: here it acknowledges nothing and fails nothing.
  const bool stale = command == Cmd::kFailWqe && idx < q.retired;
  if (command == Cmd::kRetry || command == Cmd::kRefuse || stale) {
    rtl::RecoverCmd r;
    r.qp = static_cast<std::uint8_t>(q.index);
    r.psn = psn & 0xffffff;
    r.syndrome = static_cast<std::uint8_t>(syndrome);
    r.status = static_cast<std::uint8_t>(status);
    r.cause = static_cast<std::uint8_t>(command == Cmd::kRefuse ? rtl::RecoverCause::kRefused
                                        : stale                 ? rtl::RecoverCause::kFault
                                        : (syndrome >> 5) == 1  ? rtl::RecoverCause::kRnr
                                                                : rtl::RecoverCause::kNak);
    e.recovers.push_back(r);
  }
  if (command == Cmd::kReadDone && q.reads) --q.reads;
  if (command == Cmd::kFailWqe && idx >= q.retired && (!q.fault || idx <= q.fault_idx)) {
    q.fault = true;
    q.fault_idx = idx;
    q.fault_status = status;
    q.fault_syndrome = syndrome;
  }
  const auto faulted = [&] { return q.fault && q.fault_status && q.fault_idx == q.retired; };
  while (!q.sent.empty() && !faulted()) {
    const Wqe& w = q.sent.front();
    const bool done = w.opcode == 2 ? command == Cmd::kReadDone && w.last <= psn : w.last < q.una;
    if (!done) break;
    if (w.silent) {
      ++q.silent_run;
    } else {
      report(q, &w, 0, 0, e);
    }
    q.sent.pop_front();
    ++q.retired;
  }
  bool failed = faulted();
  unsigned cause = q.fault_status, detail = q.fault_syndrome;
  if (!failed && command == Cmd::kFail) {
    failed = !q.sent.empty() ? psn >= q.sent.front().first : q.partial && psn >= una_before && psn < q.next_psn;
    cause = status;
    detail = syndrome;
  }
  if (failed) {
    report(q, q.sent.empty() ? nullptr : &q.sent.front(), cause, detail, e);
    if (q.sent.empty())
      q.partial = false;
    else
      q.sent.pop_front();
    ++q.retired;
    q.dead = true;
    rtl::QpError x;
    x.qp = static_cast<std::uint8_t>(q.index);
    x.status = static_cast<std::uint8_t>(cause);
    x.told = 1;
    e.errors.push_back(x);
    if (command == Cmd::kRetry || command == Cmd::kRefuse || stale) e.recovers.pop_back();  // it has failed before
  } else if (q.silent_run >= 16 || (q.silent_run && q.retired == q.posted)) {
    e.records.push_back({q.ctx->retired_address, static_cast<std::uint16_t>(q.retired)});
    q.silent_run = 0;
  }
  if (waits || (q.drains && !failed)) ++e.wakes[q.index];
}

/// The queue of CQEs (place_queue): a place, once there, stays until it is used.
struct Places : Agent {
  explicit Places(Bench<Vretire>& b) : bench(b) {}
  void drive() override { bench.dut->cqe_kept_i = kept; }
  void sample() override {
    const bool used = bench.dut->cqe_valid_o && bench.dut->cqe_ready_i;
    if (used) REQUIRE(kept);
    if (used || !kept) kept = bench.chance(rate);
  }
  Bench<Vretire>& bench;
  double rate = 1;
  bool kept = false;
};

struct World {
  explicit World(std::uint64_t s)
      : bench(s),
        places(bench),
        cmds([this](bool v) { dut().cmd_valid_i = v; }, [this] { return dut().cmd_ready_o != 0; },
             [this](const rtl::RetireCmd& c) { put(dut().cmd_data_i, c); }, bench.rng),
        cqes([this] { return dut().cqe_valid_o != 0; }, [this](bool r) { dut().cqe_ready_i = r; },
             [this] { return get<rtl::CqeReq>(dut().cqe_data_o); }, bench.rng),
        errors([this] { return dut().error_valid_o != 0; }, [this](bool r) { dut().error_ready_i = r; },
               [this] { return get<rtl::QpError>(dut().error_data_o); }, bench.rng),
        records([this] { return dut().record_valid_o != 0; }, [this](bool r) { dut().record_ready_i = r; },
                [this] { return get<rtl::DmaWr>(dut().record_data_o); }, bench.rng),
        contexts(1,
                 {[this] { return dut().acq_valid_o; }, [this] { return dut().rel_valid_o; },
                  [this] { return dut().rel_write_o; }, [this](unsigned) { return dut().acq_index_o; },
                  [this](unsigned) { return get<rtl::SendCtx>(dut().rel_data_o); },
                  [this](std::uint32_t b) { dut().acq_ready_i = b & 1; },
                  [this](std::uint32_t b) { dut().ctx_valid_i = b & 1; },
                  [this](std::uint32_t b) { dut().rel_ready_i = b & 1; },
                  [this](const rtl::SendCtx& c) { put(dut().ctx_data_i, c); }, [this] { dut().eval(); }},
                 bench.rng),
        monitor([this] {
          if (dut().sq_wake_valid_o) ++wakes[dut().sq_wake_qp_o];
          if (dut().timer_valid_o) {
            const auto event = get<rtl::TimerEvent>(dut().timer_data_o);
            timers.push_back({event.qp, event.psn});
          }
          if (dut().recover_valid_o) recovers.push_back(get<rtl::RecoverCmd>(dut().recover_data_o));
        }) {
    for (Agent* a : std::initializer_list<Agent*>{&cmds, &cqes, &errors, &records, &monitor, &contexts, &places})
      bench.add(*a);
    dut().inflight_valid_i = 0;
    dut().hold_i = dut().peek_en_i = 0;
    bench.reset();
  }
  Vretire& dut() { return *bench.dut; }
  void sent(Qp& q, const Wqe& w) {
    rtl::Inflight f;
    f.qp = static_cast<std::uint8_t>(q.index);
    f.wqe_idx = static_cast<std::uint16_t>(q.executed());
    f.opcode = static_cast<std::uint8_t>(w.opcode);
    f.silent = w.silent;
    f.first_psn = w.first & 0xffffff;
    f.last_psn = w.last & 0xffffff;
    f.length = w.length;
    put(dut().inflight_data_i, f);
    dut().inflight_valid_i = 1;
    tick();
    dut().inflight_valid_i = 0;
  }
  void create(Qp& q, unsigned index, std::uint64_t psn, std::uint64_t wqe) {
    q = Qp{};
    q.index = index;
    q.ctx = &contexts.contexts[index];
    *q.ctx = rtl::SendCtx{};
    q.ctx->in_use = 1;
    q.drains = bench.chance(0.1);
    q.ctx->state = static_cast<std::uint8_t>(q.drains ? hw::QpState::kSqd : hw::QpState::kRts);
    q.ctx->qpn = static_cast<std::uint32_t>(bench.uniform(0, 0xffff) << 8 | index);
    q.ctx->cqn = static_cast<std::uint8_t>(bench.uniform(0, 255));
    q.ctx->retry_count = 5;
    q.ctx->rnr_retry = 3;
    q.ctx->retry_left = q.ctx->recovering = 1;
    q.ctx->retired_address = bench.uniform(1, 1ULL << 40) * 8;
    q.next_psn = q.una = psn;
    q.retired = q.posted = wqe;
    store(q);
  }
  /// The send queue's part of the context, after the model moved.
  void store(Qp& q) {
    auto& c = *q.ctx;
    c.pi = static_cast<std::uint16_t>(q.posted);
    c.exec_idx = static_cast<std::uint16_t>(q.executed());
    c.retire_idx = static_cast<std::uint16_t>(q.retired);
    c.next_psn = q.next_psn & 0xffffff;
    c.una_psn = q.una & 0xffffff;
    c.max_psn = (q.next_psn + q.repeated) & 0xffffff;
    c.msg_active = q.partial;
    c.rd_outstanding = static_cast<std::uint8_t>(q.reads);
    c.stalled = q.stalled = bench.chance(0.4);
  }
  void command(Qp& q, Cmd command, std::uint64_t psn, std::uint64_t idx, unsigned status, unsigned syndrome) {
    rtl::RetireCmd c;
    c.qp = static_cast<std::uint8_t>(q.index);
    c.command = static_cast<std::uint8_t>(command);
    c.psn = psn & 0xffffff;
    c.wqe_idx = static_cast<std::uint16_t>(idx);
    c.status = static_cast<std::uint8_t>(status);
    c.syndrome = static_cast<std::uint8_t>(syndrome);
    Credits credits;
    if (command == Cmd::kAck || command == Cmd::kReadDone) {
      credits.come = bench.chance(0.7);
      credits.limited = bench.chance(0.9);
      credits.lsn = (q.lsn + 0xfffffc + bench.uniform(0, 12)) & 0xffffff;
    }
    c.with_credits = credits.come;
    c.limited = credits.limited;
    c.lsn = credits.lsn;
    cmds.push(c);
    order.push_back(&q);
    ++q.pending;
    carry_out(q, command, psn, idx, status, syndrome, credits, expect);
  }
  void tick() {
    const auto before = cmds.accepted;
    bench.tick();
    if (cmds.accepted != before) {
      --order.front()->pending;
      order.pop_front();
    }
  }
  void settle() {
    for (int quiet = 0; quiet < 10; ++quiet) {
      if (!cmds.idle()) quiet = 0;
      tick();
    }
  }
  void check_context(const Qp& q) {
    const auto& c = *q.ctx;
    REQUIRE(c.retire_idx == static_cast<std::uint16_t>(q.retired));
    REQUIRE(c.exec_idx == static_cast<std::uint16_t>(q.executed()));
    REQUIRE(c.state == static_cast<std::uint8_t>(q.dead     ? hw::QpState::kErr
                                                 : q.drains ? hw::QpState::kSqd
                                                            : hw::QpState::kRts));
    if (q.dead) return;
    REQUIRE(c.stalled == q.stalled);
    REQUIRE(c.una_psn == (q.una & 0xffffff));
    REQUIRE(c.rd_outstanding == q.reads);
    REQUIRE(c.silent_run == q.silent_run);
    REQUIRE(c.fault == q.fault);
    REQUIRE(c.credits == q.credits);
    REQUIRE((c.lsn == q.lsn || !q.credits));
    // The retries count what comes without progress.
    REQUIRE(c.recovering == !q.progress);
    REQUIRE(c.retry_left == (q.progress ? 5 : 1));
    REQUIRE(c.rnr_left == (q.progress ? 3 : 0));
  }
  void check_outputs() {
    REQUIRE(cqes.items.size() == expect.cqes.size());
    for (std::size_t i = 0; i < cqes.items.size(); ++i) REQUIRE(cqes.items[i] == expect.cqes[i]);
    REQUIRE(errors.items == expect.errors);
    REQUIRE(records.items.size() == expect.records.size());
    for (std::size_t i = 0; i < records.items.size(); ++i) {
      REQUIRE(records.items[i].addr == expect.records[i].first);
      REQUIRE(written_as<hw::RetiredRecord>(records.items[i]).retired_index == expect.records[i].second);
    }
    REQUIRE(recovers == expect.recovers);
    REQUIRE(timers == expect.timers);
    for (unsigned i = 0; i < 256; ++i) REQUIRE(wakes[i] == expect.wakes[i]);
  }

  Bench<Vretire> bench;
  Places places;
  Source<rtl::RetireCmd> cmds;
  Sink<rtl::CqeReq> cqes;
  Sink<rtl::QpError> errors;
  Sink<rtl::DmaWr> records;
  ContextModel<rtl::SendCtx> contexts;
  Monitor monitor;
  Expect expect;
  std::deque<Qp*> order;
  std::deque<rtl::RecoverCmd> recovers;
  std::deque<std::pair<unsigned, std::uint32_t>> timers;
  std::array<unsigned, 256> wakes{};
};
}  // namespace

TEST_CASE("retire: random work, acknowledgements and failures follow the rules", "[rtl]") {
  World w(seed());
  auto& bench = w.bench;
  constexpr unsigned kQps = 5;
  std::array<Qp, kQps> qps;
  const std::array<unsigned, kQps> index{0, 1, 100, 254, 255};
  // Half of the lives cross the end of the PSN space early.
  const auto start = [&] {
    return (2ULL << 24) - (bench.chance(0.5) ? bench.uniform(1, 300) : bench.uniform(1, 0xffffff));
  };
  for (unsigned i = 0; i < kQps; ++i) w.create(qps[i], index[i], start(), (1ULL << 16) + bench.uniform(0, 65535));
  unsigned failures = 0, reads_done = 0, stale = 0, retries = 0, refusals = 0;

  for (unsigned step = 0; step < 100000; ++step) {
    if (step % 1000 == 0) {
      w.cmds.rate = step % 2000 ? 1.0 : 0.5;
      w.cqes.rate = w.records.rate = w.errors.rate = step % 3000 ? 1.0 : 0.3;
      w.contexts.stall_rate = step % 4000 ? 0 : 0.4;
      w.places.rate = step % 5000 < 2000 ? 0.05 : 1;
    }
    Qp& q = qps[bench.uniform(0, kQps - 1)];
    // The send queue moves while no command of the QP is under way, so that the model knows what each command sees.
    if (q.pending == 0 && w.contexts.is_free(q.index)) {
      w.check_context(q);
      if (q.dead) {
        w.create(q, q.index, start(), (1ULL << 16) + bench.uniform(0, 65535));
        continue;
      }
      const bool mostly_silent = q.index == 100 || q.index == 255;
      for (auto n = bench.uniform(0, 10); n > 0 && q.sent.size() < kWindow && !q.partial && !q.fault; --n) {
        Wqe x;
        x.opcode = static_cast<unsigned>(bench.uniform(0, 2));
        x.silent = bench.chance(mostly_silent ? 0.97 : 0.4);
        x.first = q.next_psn;
        x.last = x.first + (bench.chance(0.6) ? 0 : bench.uniform(1, 40));
        x.length = static_cast<std::uint32_t>(bench.uniform(0, hw::kMaxMessageBytes));
        if (x.opcode == 2 && q.reads == 16) x.opcode = 1;
        w.sent(q, x);
        q.next_psn = x.last + 1;
        q.reads += x.opcode == 2;
        q.sent.push_back(x);
      }
      if (!q.partial && !q.fault && q.sent.size() < kWindow && bench.chance(0.2)) {
        q.partial = true;
        q.partial_first = q.next_psn;
        q.next_psn += bench.uniform(1, 5);
      } else if (q.partial && bench.chance(0.5)) {
        Wqe x;
        x.opcode = static_cast<unsigned>(bench.uniform(0, 1));
        x.silent = bench.chance(0.5);
        x.first = q.partial_first;
        x.last = q.next_psn++;
        w.sent(q, x);
        q.sent.push_back(x);
        q.partial = false;
      }
      q.posted = std::max(q.posted, q.executed() + q.partial) + (bench.chance(0.3) ? bench.uniform(0, 3) : 0);
      w.store(q);
    }
    if (w.cmds.items.size() < 4 && !q.dead) {
      const double what = std::uniform_real_distribution<>(0, 1)(bench.rng);
      const auto status = static_cast<unsigned>(bench.uniform(1, 19)),
                 syndrome = static_cast<unsigned>(bench.uniform(0, 255));
      const Wqe* read = nullptr;
      for (const auto& x : q.sent)
        if (!read && x.opcode == 2) read = &x;
      if (what < 0.55 && q.next_psn > q.una) {
        // An ACK may be a duplicate, but not be ahead of what was sent.
        const auto open = q.next_psn - q.una;
        w.command(q, Cmd::kAck,
                  q.una - 1 + (bench.chance(0.2) ? open : bench.uniform(0, std::min<std::uint64_t>(open, 60))), 0, 0,
                  0);
      } else if (what < 0.9) {
        if (read) {
          ++reads_done;
          w.command(q, Cmd::kReadDone, read->last, 0, 0, 0);
        }
      } else if (what < 0.93 && q.next_psn > q.una) {
        ++failures;
        w.command(q, Cmd::kFail, bench.uniform(q.una - 2, q.next_psn - 1), 0, status, syndrome);
      } else if (what < 0.94 && q.partial) {
        ++failures;
        w.command(q, Cmd::kFail, q.next_psn - 1, 0, status, syndrome);
      } else if (what < 0.956) {
        ++failures;
        const auto idx = bench.uniform(q.retired, q.executed());
        if (idx < q.posted) w.command(q, Cmd::kFailWqe, 0, idx, status, syndrome);
      } else if (what < 0.966) {
        ++retries;
        w.command(q, Cmd::kRetry, bench.uniform(q.una, q.next_psn), 0, status,
                  bench.chance(0.5) ? 0x20 + syndrome % 32 : 0x60);
      } else if (what < 0.97) {
        ++refusals;
        w.command(q, Cmd::kRefuse, bench.uniform(q.una, q.next_psn + 5), 0, status, syndrome);
      } else if (what < 0.978) {
        ++stale;
        w.command(q, Cmd::kFailWqe, 0, q.retired - bench.uniform(1, 100), status, syndrome);
      }
    }
    w.tick();
  }
  w.settle();
  for (const auto& q : qps) w.check_context(q);
  w.check_outputs();
  std::printf("retire: %zu CQEs, %zu records, %zu errors\n", w.expect.cqes.size(), w.expect.records.size(),
              w.expect.errors.size());
  CHECK(w.expect.cqes.size() > 5000);
  CHECK(w.expect.records.size() > 200);
  CHECK(w.expect.errors.size() > 300);
  CHECK(reads_done > 1000);
  CHECK(stale > 50);
  CHECK(retries > 50);
  CHECK(refusals > 50);
}

TEST_CASE("retire: commands for a QP that may not retire do nothing", "[rtl]") {
  World w(seed(2));
  for (const auto state : {hw::QpState::kReset, hw::QpState::kErr}) {
    Qp q;
    w.create(q, 7, 100, 5);
    Wqe x;
    x.first = x.last = 100;
    w.sent(q, x);
    q.sent.push_back(x);
    q.next_psn = 101;
    q.posted = 6;
    w.store(q);
    q.ctx->state = static_cast<std::uint8_t>(state);
    const auto before = *q.ctx;
    q.dead = true;
    for (const auto c : {Cmd::kAck, Cmd::kReadDone, Cmd::kFail, Cmd::kFailWqe, Cmd::kRefuse})
      w.command(q, c, 100, 5, 9, 0x61);
    w.settle();
    CHECK(*q.ctx == before);
    q.ctx->state = static_cast<std::uint8_t>(hw::QpState::kRts);
    q.ctx->in_use = 0;
    w.command(q, Cmd::kAck, 100, 5, 0, 0);
    w.settle();
    CHECK(q.ctx->retire_idx == 5);
  }
  w.check_outputs();
  CHECK(w.cqes.items.empty());
}

TEST_CASE("retire: an acknowledgement beyond the next PSN counts up to it", "[rtl]") {
  // Recovery has gone back to PSN 102: of five packets sent once, two are sent again.
  World w(seed(5));
  Qp q;
  w.create(q, 12, 100, 5);
  q.posted = 10;
  for (unsigned i = 0; i < 2; ++i) {
    Wqe x;
    x.opcode = 1;
    x.first = x.last = 100 + i;
    w.sent(q, x);
    q.sent.push_back(x);
  }
  q.next_psn = 102;
  w.store(q);
  w.command(q, Cmd::kAck, 104, 0, 0, 0);
  w.settle();
  CHECK(q.ctx->una_psn == 102);
  CHECK(q.ctx->retire_idx == 7);
  CHECK(w.cqes.items.size() == 2);
  w.check_outputs();
  w.check_context(q);
}

TEST_CASE(
    "retire: 2^23 PSNs may be out at once (9.7.2): an acknowledgement of all, of some, and an old one are told apart",
    "[rtl]") {
  constexpr std::uint64_t kMost = 1 << 23;
  World w(seed(6));
  for (const std::uint64_t first : {std::uint64_t{100}, std::uint64_t{0x1000000 - 5}}) {
    for (const auto offset : {kMost - 1, kMost - 2, kMost / 2, std::uint64_t{0}}) {
      Qp q;
      w.create(q, 12, first, 5);
      q.posted = 10;
      q.repeated = 0;
      Wqe x;  // a message of 2^31 bytes at path MTU 256
      x.opcode = 1;
      x.first = first;
      x.last = first + kMost - 1;
      w.sent(q, x);
      q.sent.push_back(x);
      q.next_psn = first + kMost;
      w.store(q);
      w.command(q, Cmd::kAck, first - 1, 0, 0, 0);  // what was acknowledged already
      w.settle();
      CHECK(q.ctx->una_psn == (first & 0xffffff));
      CHECK(q.ctx->retire_idx == 5);
      w.command(q, Cmd::kAck, first + offset, 0, 0, 0);
      w.settle();
      CHECK(q.ctx->una_psn == ((first + offset + 1) & 0xffffff));
      CHECK(q.ctx->retire_idx == (offset == kMost - 1 ? 6 : 5));
      w.check_outputs();
      w.check_context(q);
    }
  }
}

// Decisions 17: what completes as flushed has not been executed; so what has been executed completes, before the flush.
TEST_CASE(
    "retire: a memory operation that was executed completes in the error state, and the flush is asked for behind it",
    "[rtl]") {
  World w(seed(7));
  for (const auto state : {hw::QpState::kErr, hw::QpState::kSqe}) {
    for (const bool silent : {false, true}) {
      for (const std::uint64_t behind : {0, 3}) {
        Qp q;
        w.create(q, 21, 100, 5);
        Wqe x;
        x.opcode = 8;
        x.silent = silent;
        x.first = 100;
        x.last = 99;
        w.sent(q, x);
        q.next_psn = 100;
        q.posted = 6 + behind;
        w.store(q);
        q.ctx->exec_idx = q.ctx->pi;  // as the flush has left it
        q.ctx->mem_done = 1;
        q.ctx->state = static_cast<std::uint8_t>(state);
        q.ctx->qp_type = static_cast<std::uint8_t>(state == hw::QpState::kSqe ? hw::QpType::kUc : hw::QpType::kRc);
        auto want = *q.ctx;
        want.mem_done = 0;
        want.retire_idx = 6;
        q.dead = true;
        w.cqes.items.clear(), w.errors.items.clear(), w.records.items.clear();
        w.command(q, Cmd::kAck, 99, 0, 0, 0);
        w.command(q, Cmd::kAck, 99, 0, 0, 0);
        w.settle();
        REQUIRE(w.cqes.items.size() == (silent ? 0u : 1u));
        if (!silent) {
          CHECK(w.cqes.items[0].status == 0);
          CHECK(w.cqes.items[0].wqe_index == 5);
          CHECK(w.cqes.items[0].opcode == 8);
        }
        // The host is told of a silent one if no other completion follows.
        CHECK(w.records.items.size() == (silent && behind == 0 ? 1u : 0u));
        if (silent && behind != 0) want.silent_run = 1;
        want.stalled = 0;
        CHECK((*q.ctx == want));
        REQUIRE(w.errors.items.size() == 1);
        rtl::QpError flush;
        flush.qp = 21;
        flush.status = static_cast<std::uint8_t>(hw::CqeStatus::kWrFlushErr);
        flush.quiet = flush.send_only = 1;
        CHECK(w.errors.items[0] == flush);
      }
    }
  }
}

TEST_CASE("retire: a local failure waits for the Read before it", "[rtl]") {
  World w(seed(3));
  Qp q;
  w.create(q, 9, 0xfffffe, 65535);
  Wqe read, write;
  read.opcode = 2;
  read.silent = true;
  read.first = 0xfffffe;
  read.last = 0x1000001;
  write.opcode = 1;
  write.silent = true;
  write.first = write.last = 0x1000002;
  for (const auto& x : {read, write}) {
    w.sent(q, x);
    q.sent.push_back(x);
  }
  q.reads = 1;
  q.next_psn = 0x1000003;
  q.posted += 3;
  w.store(q);
  w.command(q, Cmd::kFailWqe, 0, 65536, 4, 3);
  w.settle();
  CHECK(w.cqes.items.empty());
  CHECK(q.ctx->fault == 1);
  w.command(q, Cmd::kReadDone, 0x1000001, 0, 0, 0);
  w.settle();
  w.check_outputs();
  REQUIRE(w.cqes.items.size() == 1);
  CHECK(w.cqes.items[0].wqe_index == 0);
  CHECK(w.cqes.items[0].status == 4);
  CHECK(w.cqes.items[0].syndrome == 3);
  CHECK(w.cqes.items[0].opcode == 1);
  CHECK(w.cqes.items[0].retired_index == 1);
  CHECK(q.ctx->rd_outstanding == 0);
}

TEST_CASE("retire: an acknowledgement takes few cycles", "[rtl]") {
  World w(seed(4));
  Qp q;
  w.create(q, 3, 0, 0);
  q.posted = 60;
  for (unsigned i = 0; i < 50; ++i) {
    Wqe x;
    x.opcode = 1;
    x.first = x.last = i;
    w.sent(q, x);
    q.sent.push_back(x);
  }
  q.next_psn = 50;
  w.store(q);
  const auto start = w.bench.cycle;
  for (unsigned i = 0; i < 20; ++i) w.command(q, Cmd::kAck, i, 0, 0, 0);
  while (w.cqes.items.empty()) w.tick();
  const auto first = w.bench.cycle - start;
  while (!w.cmds.idle()) w.tick();
  const double each = static_cast<double>(w.bench.cycle - start) / 20;
  const auto burst = w.bench.cycle;
  w.command(q, Cmd::kAck, 49, 0, 0, 0);
  while (!w.cmds.idle()) w.tick();
  const auto all = w.bench.cycle - burst;
  std::printf("retire: CQE after %llu cycles; %.1f cycles an ACK of one WQE; %llu cycles for an ACK of 30\n",
              static_cast<unsigned long long>(first), each, static_cast<unsigned long long>(all));
  w.settle();
  w.check_outputs();
  CHECK(each <= 8);
  CHECK(all <= 30 + 8);
}

TEST_CASE("retire: without a place for its CQE it holds no context (PCI Express 2.4.1)", "[rtl]") {
  World w(seed(5));
  Qp q;
  w.create(q, 3, 0, 0);
  q.posted = 60;
  for (unsigned i = 0; i < 8; ++i) {
    Wqe x;
    x.opcode = i == 2 ? 2 : 1;  // a Read among them
    x.first = x.last = i;
    w.sent(q, x);
    q.sent.push_back(x);
  }
  q.next_psn = 8;
  q.reads = 1;
  w.store(q);
  w.places.rate = 0;
  w.places.kept = true;  // one
  w.command(q, Cmd::kAck, 1, 0, 0, 0);
  w.command(q, Cmd::kReadDone, 2, 0, 0, 0);
  w.command(q, Cmd::kAck, 7, 0, 0, 0);
  const auto waits = [&](unsigned after) {
    for (int i = 0; i < 200; ++i) {
      w.tick();
      if (i >= 20) REQUIRE(w.contexts.is_free(3));
    }
    REQUIRE(w.cqes.items.size() == after);
  };
  waits(1);
  for (unsigned n = 2; n <= 8; ++n) {
    w.places.kept = true;
    waits(n);
  }
  w.settle();
  w.check_outputs();
  w.check_context(q);

  SECTION("what the flush has taken meanwhile is not completed again") {
    for (unsigned i = 8; i < 12; ++i) {
      Wqe x;
      x.opcode = 1;
      x.first = x.last = i;
      w.sent(q, x);
      q.sent.push_back(x);
    }
    q.next_psn = 12;
    w.store(q);
    rtl::RetireCmd c;
    c.qp = 3;
    c.command = static_cast<std::uint8_t>(Cmd::kAck);
    c.psn = 11;
    w.cmds.push(c);
    w.order.push_back(&q);
    ++q.pending;
    w.places.kept = true;
    waits(9);
    q.ctx->state = static_cast<std::uint8_t>(hw::QpState::kErr);
    q.ctx->retire_idx = q.ctx->exec_idx;
    w.places.rate = 1;
    w.settle();
    CHECK(w.cqes.items.size() == 9);
    CHECK(w.cmds.idle());
  }
}
