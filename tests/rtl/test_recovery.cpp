#include <Vrecovery.h>

#include <optional>

#include "tests/rtl/completion_models.hpp"

// rtl/completion/recovery.sv against go-back-N as InfiniBand specification 9.7.5.2.8, 9.7.6 and 9.9.2.1 have it.
using namespace rnic;
using namespace rnic::test;

namespace {

using Cause = rtl::RecoverCause;

struct Wqe {
  bool read = false;
  std::uint32_t first = 0, packets = 1;
};

struct World {
  explicit World(std::uint64_t s)
      : bench(s),
        fails([this] { return dut().fail_valid_o != 0; }, [this](bool r) { dut().fail_ready_i = r; },
              [this] { return get<rtl::RetireCmd>(dut().fail_data_o); }, bench.rng),
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
          if (dut().wake_valid_o) ++wakes;
          if (dut().wait_valid_o) wait_units = dut().wait_units_o;
          if (dut().wait_valid_o || dut().stop_valid_o) tries = dut().wait_tries_o;
          if (dut().stop_valid_o) ++stops;
          // The in-flight table answers a cycle later.
          if (dut().slot_en_o) asked = dut().slot_index_o;
        }) {
    for (Agent* a : std::initializer_list<Agent*>{&fails, &monitor, &contexts}) bench.add(*a);
    dut().cmd_valid_i = dut().expired_valid_i = dut().clear_valid_i = 0;
    dut().retire_idle_i = dut().stands_i = 1;
    bench.reset();
  }
  Vrecovery& dut() { return *bench.dut; }
  void tick() {
    bench.tick();
    dut().cmd_valid_i = 0;
    const auto at = static_cast<std::uint16_t>(asked - base);
    if (at < wqes.size()) {
      dut().slot_is_read_i = wqes[at].read;
      dut().slot_first_i = wqes[at].first;
      dut().slot_last_i = (wqes[at].first + wqes[at].packets - 1) & 0xffffff;
    }
  }

  /// Until nothing of a command is under way any more.
  void until_done() {
    for (int i = 0; i < 5000; ++i) {
      dut().eval();
      if (dut().clear_ready_o) break;
      tick();
    }
    REQUIRE(dut().clear_ready_o);
    tick();
  }

  Bench<Vrecovery> bench;
  Sink<rtl::RetireCmd> fails;
  ContextModel<rtl::SendCtx> contexts;
  Monitor monitor;
  std::vector<Wqe> wqes;  // sent whole, from retire_idx on
  std::uint16_t base = 0, asked = 0;
  unsigned wakes = 0, stops = 0;
  std::uint32_t wait_units = 0;
  std::optional<unsigned> tries;  // that the timer is told
};

}  // namespace

TEST_CASE("recovery: goes back to the packet that is missing, so often as it may", "[rtl]") {
  World w(seed());
  auto& bench = w.bench;
  std::array<unsigned, 4> went_back{}, failed{};
  unsigned ignored = 0, resumed = 0;
  for (int round = 0; round < 6000; ++round) {
    const auto qp = static_cast<std::uint8_t>(bench.uniform(0, 255));
    w.contexts.stall_rate = round % 3 ? 0 : 0.5;
    w.fails.rate = round % 2 ? 1.0 : 0.2;
    // A queue: some WQEs sent whole, the oldest partly acknowledged, and one that is partly sent.
    rtl::SendCtx c;
    c.state = static_cast<std::uint8_t>(bench.chance(0.95) ? hw::QpState::kRts : hw::QpState::kErr);
    c.in_use = 1;
    c.mtu = static_cast<std::uint8_t>(bench.uniform(1, 5));
    c.retire_idx = w.base = static_cast<std::uint16_t>(bench.uniform(0xffe0, 0x1001f));
    std::uint32_t psn = static_cast<std::uint32_t>(bench.uniform(0xffffc0, 0x1000020) & 0xffffff);
    w.wqes.clear();
    std::vector<std::uint32_t> psns;  // every PSN that is out
    for (auto n = bench.uniform(0, 12); n > 0; --n) {
      const Wqe wqe{bench.chance(0.3), psn, static_cast<std::uint32_t>(bench.uniform(1, 6))};
      for (std::uint32_t i = 0; i < wqe.packets; ++i) psns.push_back((psn + i) & 0xffffff);
      psn = (psn + wqe.packets) & 0xffffff;
      w.wqes.push_back(wqe);
    }
    c.exec_idx = static_cast<std::uint16_t>(c.retire_idx + w.wqes.size());
    const std::uint32_t partial = bench.chance(0.5) ? static_cast<std::uint32_t>(bench.uniform(1, 4)) : 0;
    const std::uint32_t partial_first = psn;
    for (std::uint32_t i = 0; i < partial; ++i) psns.push_back((psn + i) & 0xffffff);
    c.msg_active = partial != 0;
    c.msg_off = partial << (7 + c.mtu);
    c.next_psn = (psn + partial) & 0xffffff;
    c.max_psn = (c.next_psn + bench.uniform(0, 5)) & 0xffffff;
    const auto acknowledged = bench.uniform(0, psns.size());
    c.una_psn = acknowledged == psns.size() ? c.next_psn : psns[acknowledged];
    c.sge_idx = 3;
    c.sge_off = 77;
    c.buf_count = static_cast<std::uint8_t>(bench.uniform(0, 8));
    c.fetching = static_cast<std::uint8_t>(bench.uniform(0, 2));
    c.ahead = static_cast<std::uint8_t>(bench.uniform(0, 8));
    c.fetch_gen = static_cast<std::uint8_t>(bench.uniform(0, 15));
    c.rd_head = static_cast<std::uint8_t>(bench.uniform(0, 31));
    const auto awaited = bench.uniform(0, 16);
    c.rd_tail = (c.rd_head + awaited) & 31;
    c.rd_outstanding = static_cast<std::uint8_t>(bench.uniform(awaited, 16));
    c.retry_count = 7;
    c.retry_left = static_cast<std::uint8_t>(bench.uniform(0, 7));
    c.rnr_retry = static_cast<std::uint8_t>(bench.chance(0.3) ? 7 : 5);
    c.rnr_left = static_cast<std::uint8_t>(c.rnr_retry == 7 ? 7 : bench.uniform(0, 5));
    c.rnr_wait = bench.chance(0.1);
    c.turned = bench.chance(0.3);
    c.tries = static_cast<std::uint8_t>(bench.uniform(0, 15));
    c.ssn = static_cast<std::uint32_t>(bench.chance(0.5) ? bench.uniform(0, 12) : bench.uniform(0, 0xffffff));
    c.fault = bench.chance(0.1);
    c.fault_idx = static_cast<std::uint16_t>(c.retire_idx + bench.uniform(0, w.wqes.size()));
    rtl::RecoverCmd cmd;
    const auto cause = static_cast<Cause>(bench.uniform(0, 3));
    cmd.qp = qp;
    cmd.cause = static_cast<std::uint8_t>(cause);
    cmd.psn = psns.empty() || bench.chance(0.1) ? (c.max_psn + bench.uniform(0, 1)) & 0xffffff
                                                : psns[bench.uniform(0, psns.size() - 1)];
    cmd.syndrome = static_cast<std::uint8_t>(bench.uniform(0, 255));
    if (bench.chance(0.2)) {
      c.recovering = 1;
      c.rec_psn = cmd.psn;
    }
    w.contexts.contexts[qp] = c;
    // The expiry was overtaken: then it is none.
    const bool outdated = cause == Cause::kTimer && bench.chance(0.2);
    w.dut().stands_i = !outdated;

    // What must happen.
    const auto before = [](std::uint32_t x, std::uint32_t y) { return ((x - y) & 0x800000) != 0; };
    const bool own = cause == Cause::kTimer || cause == Cause::kFault;  // from the oldest unacknowledged one
    const bool stale = !own && before(cmd.psn, c.una_psn);
    const std::uint32_t target = own ? c.una_psn : cmd.psn;
    bool act = c.state == static_cast<std::uint8_t>(hw::QpState::kRts) && before(target, c.next_psn) && !stale;
    if ((c.rnr_wait && cause != Cause::kFault) || outdated) act = false;
    if (cause == Cause::kNak && c.recovering && c.rec_psn == target) act = false;
    const bool none_left = cause == Cause::kRnr ? c.rnr_left == 0 : cause != Cause::kFault && c.retry_left == 0;
    rtl::SendCtx want = c;
    bool back = act && !none_left;
    if (c.rnr_wait && cause == Cause::kTimer && !outdated && c.state == static_cast<std::uint8_t>(hw::QpState::kRts))
      want.rnr_wait = 0;
    // Packets that are made from now on are not those behind the one that failed.
    const bool tells = cause == Cause::kFault && c.state == static_cast<std::uint8_t>(hw::QpState::kRts);
    if (tells) want.turned = 1;
    if (back) {
      Wqe wqe{false, partial_first, partial};
      std::size_t at = w.wqes.size();
      for (std::size_t i = 0; i < w.wqes.size(); ++i) {
        if (((target - w.wqes[i].first) & 0xffffff) < w.wqes[i].packets) wqe = w.wqes[i], at = i;
      }
      const auto index = static_cast<std::uint16_t>(c.retire_idx + at);
      if (c.fault && static_cast<std::int16_t>(index - c.fault_idx) >= 0) {
        back = false;  // behind a failed WQE nothing is sent
      } else {
        const std::uint32_t packets = (target - wqe.first) & 0xffffff;
        want.exec_idx = index;
        want.next_psn = target;
        want.ssn = (c.ssn - static_cast<std::uint16_t>(c.exec_idx - index)) & 0xffffff;
        want.msg_off = packets << (7 + c.mtu);
        want.msg_active = packets != 0 && !wqe.read;
        want.resume = packets != 0;
        want.sge_idx = 0;
        want.sge_off = 0;
        want.buf_count = want.ahead = 0;
        want.fetch_gen = (c.fetch_gen + 1) & 15;
        want.rd_tail = c.rd_head;
        want.rd_outstanding = static_cast<std::uint8_t>(c.rd_outstanding - awaited);
        want.rec_psn = target;
        want.turned = 1;
        want.tries = (c.tries + 1) & 15;
        want.recovering = cause == Cause::kNak || cause == Cause::kFault;
        want.rnr_wait = c.rnr_wait || cause == Cause::kRnr;  // a fault does not end the wait
        if (cause == Cause::kRnr && c.rnr_retry != 7) --want.rnr_left;
        if (cause == Cause::kNak || cause == Cause::kTimer) --want.retry_left;
        ++went_back[static_cast<unsigned>(cause)];
        resumed += packets != 0;
      }
    }
    const bool fail = act && none_left;
    ignored += !act;
    failed[static_cast<unsigned>(cause)] += fail;

    w.wakes = w.stops = 0;
    w.wait_units = 0;
    w.tries.reset();
    w.fails.items.clear();
    if (cause == Cause::kTimer) {
      w.dut().expired_valid_i = 1;
      w.dut().expired_qp_i = qp;
      w.dut().retire_idle_i = 0;
      for (int i = 0; i < 3; ++i) {  // not before retire is idle, which it stays
        w.dut().eval();
        REQUIRE(!w.dut().expired_ready_o);
        REQUIRE(w.dut().hold_o);
        w.tick();
      }
      w.dut().retire_idle_i = 1;
      w.dut().eval();
      REQUIRE(w.dut().expired_ready_o);
      w.tick();
      w.dut().expired_valid_i = 0;
    } else {
      w.dut().cmd_valid_i = 1;
      put(w.dut().cmd_data_i, cmd);
      w.tick();
    }
    w.until_done();
    INFO("round " << round << ", cause " << static_cast<unsigned>(cause));
    REQUIRE((w.contexts.contexts[qp] == want));
    CHECK(w.wakes == (want == c && !tells ? 0u : 1u));
    CHECK(w.stops == (back && cause != Cause::kRnr ? 1u : 0u));  // nothing that has left is awaited any more
    CHECK(w.tries == (back ? std::optional<unsigned>(want.tries) : std::nullopt));
    REQUIRE(w.fails.items.size() == (fail ? 1u : 0u));
    if (fail) {
      const auto& f = w.fails.items[0];
      CHECK(f.qp == qp);
      CHECK(f.command == static_cast<std::uint8_t>(rtl::RetireCommand::kFail));
      CHECK(f.psn == target);
      CHECK(f.status == static_cast<std::uint8_t>(cause == Cause::kRnr ? hw::CqeStatus::kRnrRetryExcErr
                                                                       : hw::CqeStatus::kRetryExcErr));
    }
    if (back && cause == Cause::kRnr) {
      // Table 45, in units of 4.096 us, rounded up.
      constexpr double kMilliseconds[] = {655.36, 0.01,  0.02,  0.03,   0.04,   0.06,   0.08,   0.12,
                                          0.16,   0.24,  0.32,  0.48,   0.64,   0.96,   1.28,   1.92,
                                          2.56,   3.84,  5.12,  7.68,   10.24,  15.36,  20.48,  30.72,
                                          40.96,  61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};
      const double units = kMilliseconds[cmd.syndrome & 31] * 1000 / 4.096;
      CHECK(w.wait_units >= units - 1e-6);
      CHECK(w.wait_units < units + 1);
    } else {
      CHECK(w.wait_units == 0);
    }
  }
  for (unsigned cause = 0; cause < 4; ++cause) CHECK(went_back[cause] > 100);
  CHECK((failed[0] > 20 && failed[1] > 20 && failed[2] > 20 && failed[3] == 0));
  CHECK(ignored > 100);
  CHECK(resumed > 100);
}

// 9.9.2: the request that a NAK names fails, those before it have been executed. 9.7.5.2.3: but a Read or an atomic
// before it that has no answer is repeated first.
// 9.7.5.2.8, decisions 75: an RNR NAK of what is still to be sent again makes it wait, or fails it.
TEST_CASE("recovery: a refusal finds its request, sent or still to be sent again", "[rtl]") {
  World w(seed(3));
  auto& bench = w.bench;
  unsigned sent = 0, unsent = 0, inside = 0, behind_a_read = 0, not_ours = 0, put_off = 0, rnr_failed = 0;
  for (int round = 0; round < 4000; ++round) {
    const auto qp = static_cast<std::uint8_t>(bench.uniform(0, 255));
    w.contexts.stall_rate = round % 3 ? 0 : 0.5;
    w.fails.rate = round % 2 ? 1.0 : 0.2;
    rtl::SendCtx c;
    c.state = static_cast<std::uint8_t>(bench.chance(0.95) ? hw::QpState::kRts : hw::QpState::kErr);
    c.in_use = 1;
    c.mtu = 3;
    c.retire_idx = w.base = static_cast<std::uint16_t>(bench.uniform(0xffe0, 0x1001f));
    std::uint32_t psn = static_cast<std::uint32_t>(bench.uniform(0xffffc0, 0x1000020) & 0xffffff);
    w.wqes.clear();
    // All that was ever sent whole, then a part of one more; behind it what an older life has left in the table.
    struct At {
      std::size_t wqe;
      std::uint32_t number;  // of the packet in its WQE
    };
    std::vector<At> out;
    std::vector<std::uint32_t> psns;
    const auto add = [&](std::size_t wqe, std::uint32_t packets) {
      for (std::uint32_t i = 0; i < packets; ++i) {
        out.push_back({wqe, i});
        psns.push_back((psn + i) & 0xffffff);
      }
    };
    const auto whole = bench.uniform(0, 10);
    for (std::size_t n = 0; n < whole; ++n) {
      const Wqe wqe{bench.chance(0.15), psn, static_cast<std::uint32_t>(bench.uniform(1, 5))};
      add(n, wqe.packets);
      psn = (psn + wqe.packets) & 0xffffff;
      w.wqes.push_back(wqe);
    }
    add(whole, whole == 0 || bench.chance(0.5) ? static_cast<std::uint32_t>(bench.uniform(1, 4)) : 0);
    w.wqes.push_back({bench.chance(0.5), psn, static_cast<std::uint32_t>(bench.uniform(1, 9))});
    c.sent_idx = static_cast<std::uint16_t>(c.retire_idx + whole);
    c.max_psn = (psns.back() + 1) & 0xffffff;
    // Sent up to some packet, acknowledged up to an earlier one of the oldest WQE.
    const auto next = bench.uniform(0, out.size());
    const At at = next == out.size() ? At{out.back().wqe, out.back().number + 1} : out[next];
    const bool ends = at.wqe < whole && at.number == w.wqes[at.wqe].packets;
    c.exec_idx = static_cast<std::uint16_t>(c.retire_idx + at.wqe + ends);
    c.next_psn = next == out.size() ? c.max_psn : psns[next];
    c.msg_off = ends ? 0 : at.number << 10;
    c.msg_active = c.msg_off != 0;
    std::size_t una = 0;
    while (una < next && out[una].wqe == 0 && bench.chance(0.5)) ++una;
    c.una_psn = una == out.size() ? c.max_psn : psns[una];
    c.pi = static_cast<std::uint16_t>(c.retire_idx + out.back().wqe + 1 + bench.uniform(0, 3));
    c.rnr_wait = bench.chance(0.5);
    c.recovering = bench.chance(0.5);
    c.rec_psn = c.next_psn;
    c.tries = static_cast<std::uint8_t>(bench.uniform(0, 15));
    c.retry_left = static_cast<std::uint8_t>(bench.uniform(0, 1));
    c.rnr_retry = static_cast<std::uint8_t>(bench.chance(0.3) ? 7 : 5);
    c.rnr_left = static_cast<std::uint8_t>(c.rnr_retry == 7 ? 7 : bench.uniform(0, 2));
    w.contexts.contexts[qp] = c;

    rtl::RecoverCmd cmd;
    const auto named = bench.uniform(0, out.size());
    const bool never_sent = named == out.size();
    cmd.qp = qp;
    cmd.cause = static_cast<std::uint8_t>(Cause::kRefused);
    cmd.psn = never_sent ? (c.max_psn + bench.uniform(0, 3)) & 0xffffff : psns[named];
    if (bench.chance(0.05)) cmd.psn = (psns[0] - 1) & 0xffffff;
    const bool old = ((cmd.psn - psns[0]) & 0x800000) != 0;
    const bool rnr = named >= next && !old && bench.chance(0.4);
    cmd.syndrome = static_cast<std::uint8_t>(bench.uniform(0x61, 0x7f));
    cmd.status = static_cast<std::uint8_t>(bench.uniform(7, 11));
    auto status = cmd.status;
    if (rnr) {
      cmd.cause = static_cast<std::uint8_t>(Cause::kRnr);
      cmd.syndrome = static_cast<std::uint8_t>(bench.uniform(0x20, 0x3f));
      status = static_cast<std::uint8_t>(hw::CqeStatus::kRnrRetryExcErr);
    }

    bool finds = c.state == static_cast<std::uint8_t>(hw::QpState::kRts) && !never_sent && !old;
    not_ours += !finds;
    if (rnr && c.rnr_wait) finds = false;
    for (std::size_t n = 0; finds && n < out[named].wqe; ++n) {
      if (w.wqes[n].read) finds = false, ++behind_a_read;
    }
    // Acknowledged already, and of a WQE that was not sent whole: nobody can refuse it any more.
    if (finds && out[named].wqe == whole && named < una) finds = false;
    rtl::SendCtx want = c;
    const bool waits = finds && rnr && c.rnr_left != 0;
    if (waits) {
      want.rnr_wait = 1;
      want.rnr_left = static_cast<std::uint8_t>(c.rnr_left - (c.rnr_retry != 7));
      finds = false;
      ++put_off;
    } else if (finds && named >= next) {
      const auto wqe = out[named].wqe;
      const bool all = wqe < whole;
      want.una_psn = cmd.psn;
      want.next_psn = all ? (w.wqes[wqe].first + w.wqes[wqe].packets) & 0xffffff : (cmd.psn + 1) & 0xffffff;
      want.exec_idx = static_cast<std::uint16_t>(c.retire_idx + wqe + all);
      want.msg_active = !all;
      want.fault = 1;
      want.fault_idx = static_cast<std::uint16_t>(c.retire_idx + wqe);
      want.fault_status = status;
      want.fault_syndrome = cmd.syndrome;
      rnr_failed += rnr;
      ++unsent;
      inside += !all;
    } else {
      sent += finds;
    }

    w.wakes = 0;
    w.wait_units = 0;
    w.tries.reset();
    w.fails.items.clear();
    w.dut().cmd_valid_i = 1;
    put(w.dut().cmd_data_i, cmd);
    w.tick();
    w.until_done();
    INFO("round " << round);
    CHECK((w.wait_units != 0) == waits);
    CHECK(w.tries == (waits ? std::optional<unsigned>(c.tries) : std::nullopt));  // it does not go back
    REQUIRE((w.contexts.contexts[qp] == want));
    REQUIRE(w.fails.items.size() == (finds ? 1u : 0u));
    if (finds) {
      const auto& f = w.fails.items[0];
      CHECK((f.qp == qp && f.psn == cmd.psn && f.status == status && f.syndrome == cmd.syndrome));
      CHECK(f.command == static_cast<std::uint8_t>(rtl::RetireCommand::kFail));
    }
  }
  CHECK(sent > 300);
  CHECK(unsent > 300);
  CHECK(inside > 50);
  CHECK(behind_a_read > 100);
  CHECK(not_ours > 100);
  CHECK(put_off > 100);
  CHECK(rnr_failed > 20);
}
