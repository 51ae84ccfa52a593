#include <Vcq_engine.h>

#include <map>

#include "tests/rtl/completion_models.hpp"

// rtl/completion/cq_engine.sv: ring layout, order, the arm table (decisions 26 and 27), overrun, doorbell checks.
using namespace rnic;
using namespace rnic::test;

namespace {
using Dut = Vcq_engine;
constexpr std::uint64_t kSpan = 1ULL << 23;  // entries that count as newer than the last event, at most

/// The rules, with indexes that never wrap.
struct Cq {
  rtl::CqCtx ctx;  // as created
  std::uint64_t pi = 0, ci = 0, notified = 0, solicited = 0;
  unsigned arm = 0;
  bool overrun = false;
  std::uint64_t depth() const { return 1ULL << ctx.log_depth; }
  bool any_new() const { return pi > notified; }
  bool solicited_new() const { return solicited > notified; }
  bool fire() {
    if (overrun || !((arm == 3 && any_new()) || (arm == 2 && solicited_new()))) return false;
    if (ctx.moderate_count > 1 && pi - notified < ctx.moderate_count) return false;
    arm = 0;
    notified = pi;
    return true;
  }
};
struct Item {
  bool event = false;
  rtl::CqeReq req;
  bool operator==(const Item&) const = default;
};

struct World {
  explicit World(std::uint64_t s)
      : bench(s),
        items([this](bool v) { dut().item_valid_i = v; }, [this] { return dut().item_ready_o != 0; },
              [this](const Item& i) {
                dut().item_is_event_i = i.event;
                put(dut().item_data_i, i.req);
              },
              bench.rng),
        doorbells([this](bool v) { dut().doorbell_valid_i = v; }, [this] { return dut().doorbell_ready_o != 0; },
                  [this](const rtl::Doorbell& d) { put(dut().doorbell_data_i, d); }, bench.rng),
        writes([this] { return dut().wr_valid_o != 0; }, [this](bool r) { dut().wr_ready_i = r; },
               [this] { return get<rtl::DmaWr>(dut().wr_data_o); }, bench.rng),
        eqes([this] { return dut().eqe_valid_o != 0; }, [this](bool r) { dut().eqe_ready_i = r; },
             [this] { return get<rtl::EqeReq>(dut().eqe_data_o); }, bench.rng),
        monitor([this] {
          if (dut().qp_dead_valid_o) dead.push_back(dut().qp_dead_qp_o);
          if (dut().probe_valid_o && dut().probe_ready_i) probes.emplace_back(dut().probe_cqn_o, dut().probe_qp_o);
          refused += dut().event_refused_o;
        }) {
    for (Agent* a : std::initializer_list<Agent*>{&items, &doorbells, &writes, &eqes, &monitor}) bench.add(*a);
    dut().admin_acq_valid_i = dut().admin_rel_valid_i = 0;
    dut().wr_kept_i = 1;
    dut().probe_ready_i = 0;
    bench.reset();
    bench.run_until([&] { return dut().ready_o != 0; }, 1000, "ready");
  }
  Dut& dut() { return *bench.dut; }
  void tick() {
    dut().probe_ready_i = bench.chance(0.7);
    bench.tick();
  }
  /// The admin queue's client: reads the context, and writes it when `to` is given.
  rtl::CqCtx admin(unsigned cqn, const rtl::CqCtx* to = nullptr) {
    return turn(cqn, to != nullptr, [to](rtl::CqCtx& ctx) {
      if (to) ctx = *to;
    });
  }
  /// Changes the context in one turn; the context as it was.
  rtl::CqCtx modify(unsigned cqn, const std::function<void(rtl::CqCtx&)>& change) { return turn(cqn, true, change); }
  rtl::CqCtx turn(unsigned cqn, bool write, const std::function<void(rtl::CqCtx&)>& change) {
    dut().admin_acq_index_i = static_cast<std::uint8_t>(cqn);
    dut().admin_acq_valid_i = 1;
    do {
      dut().eval();
      const bool taken = dut().admin_acq_ready_o;
      tick();
      if (taken) break;
    } while (true);
    dut().admin_acq_valid_i = 0;
    while (!dut().admin_ctx_valid_o) tick();
    const auto now = get<rtl::CqCtx>(dut().admin_ctx_data_o);
    tick();
    dut().admin_rel_valid_i = 1;
    dut().admin_rel_write_i = write;
    auto changed = now;
    change(changed);
    put(dut().admin_rel_data_i, changed);
    do {
      dut().eval();
      const bool taken = dut().admin_rel_ready_o;
      tick();
      if (taken) break;
    } while (true);
    dut().admin_rel_valid_i = 0;
    return now;
  }
  /// For an admin queue that takes its turns while all else goes on.
  ContextClient<rtl::CqCtx>::Ports admin_ports() {
    return {[this](bool v) { dut().admin_acq_valid_i = v; },
            [this](bool v) { dut().admin_rel_valid_i = v; },
            [this](bool v) { dut().admin_rel_write_i = v; },
            [this](unsigned index) { dut().admin_acq_index_i = static_cast<std::uint8_t>(index); },
            [this](const rtl::CqCtx& c) { put(dut().admin_rel_data_i, c); },
            [this] { return dut().admin_acq_ready_o != 0; },
            [this] { return dut().admin_ctx_valid_o != 0; },
            [this] { return dut().admin_rel_ready_o != 0; },
            [this] { return get<rtl::CqCtx>(dut().admin_ctx_data_o); }};
  }
  void create(unsigned cqn, Cq& cq, unsigned log_depth, std::uint64_t start = 0) {
    cq.pi = cq.ci = cq.notified = cq.solicited = start;
    cq.ctx.in_use = 1;
    cq.ctx.base = 0x100000ULL * (cqn + 1);
    cq.ctx.log_depth = static_cast<std::uint8_t>(log_depth);
    cq.ctx.eqn = static_cast<std::uint8_t>(cqn % 31);  // one EQ a CQ in these tests
    cq.ctx.uar = static_cast<std::uint8_t>(1 + cqn % 100);
    cq.ctx.tag = static_cast<std::uint16_t>(tags ? bench.uniform(0, 0xffff) : 0);
    cq.ctx.pi = cq.ctx.ci = cq.ctx.notified_pi = cq.ctx.solicited_pi = start & 0xffffff;
    // Some events wait for several entries; rings begin anywhere.
    cq.ctx.moderate_count =
        static_cast<std::uint16_t>(moderation && bench.chance(0.5) ? bench.uniform(0, 1U << log_depth) : 0);
    cq.ctx.origin = static_cast<std::uint32_t>(origins ? bench.uniform(0, 0xffffff) : 0);
    admin(cqn, &cq.ctx);
  }
  void settle() {
    unsigned quiet = 0;
    while (quiet < 30) {
      const auto before = writes.items.size() + eqes.items.size();
      tick();
      quiet = items.idle() && doorbells.idle() && writes.items.size() + eqes.items.size() == before ? quiet + 1 : 0;
    }
  }
  void check_context(unsigned cqn, const Cq& cq) {
    const auto now = admin(cqn);
    CHECK(now.pi == (cq.pi & 0xffffff));
    CHECK(now.ci == (cq.ci & 0xffffff));
    CHECK(now.arm == cq.arm);
    CHECK(now.overrun == cq.overrun);
  }
  void rates(double in, double out) {
    items.rate = doorbells.rate = in;
    writes.rate = eqes.rate = out;
  }

  Bench<Dut> bench;
  Source<Item> items;
  Source<rtl::Doorbell> doorbells;
  Sink<rtl::DmaWr> writes;
  Sink<rtl::EqeReq> eqes;
  Monitor monitor;
  std::deque<unsigned> dead;
  std::vector<std::pair<unsigned, unsigned>> probes;  ///< CQ that has overrun, QP that may be of it
  unsigned refused = 0;
  bool moderation = false, origins = false, tags = false;
};

hw::CqDoorbell cq_doorbell(unsigned cqn, std::uint64_t ci, unsigned arm) {
  hw::CqDoorbell d;
  d.cqn = cqn;
  d.consumer_index = ci & 0xffffff;
  d.arm = static_cast<std::uint8_t>(arm);
  return d;
}
rtl::EqeReq completion_event(unsigned cqn, const Cq& cq, hw::EqeType type = hw::EqeType::kCompletion) {
  rtl::EqeReq e;
  e.eqn = cq.ctx.eqn;
  e.event_type = static_cast<std::uint8_t>(type);
  e.number = cqn | std::uint32_t{cq.ctx.tag} << 8;
  return e;
}
hw::Cqe entry(const rtl::CqeReq& r) {
  hw::Cqe c;
  c.status = r.status;
  c.opcode = r.opcode;
  c.wqe_index = r.wqe_index;
  c.qpn = r.qpn;
  c.is_receive = r.is_receive;
  c.solicited = r.solicited;
  c.byte_count = r.byte_count;
  c.retired_index = r.retired_index;
  c.syndrome = r.syndrome;
  return c;
}
}  // namespace

TEST_CASE("cq_engine: random CQEs and doorbells follow the rules", "[rtl]") {
  World w(seed());
  auto& bench = w.bench;
  constexpr unsigned kCqs = 6;
  w.moderation = w.origins = w.tags = true;
  const std::array<unsigned, kCqs> number{0, 1, 77, 128, 254, 255};
  std::array<Cq, kCqs> cqs;
  // Depth 1 to 32; two start just before their index wraps.
  for (unsigned i = 0; i < kCqs; ++i) w.create(number[i], cqs[i], i, i >= 4 ? (1ULL << 24) - 20 : 0);

  struct Write {
    std::uint64_t addr;
    hw::Cqe cqe;
  };
  std::deque<Write> writes;
  std::deque<unsigned> dead;
  std::array<std::deque<rtl::EqeReq>, 32> eqes;  // by EQ: the order between CQs is not promised
  std::array<int, kCqs> pending{};               // items not yet taken
  std::deque<unsigned> taken_order;
  unsigned refused = 0, overruns = 0, fired = 0;
  int ringing = -1;

  for (unsigned step = 0; step < 40000; ++step) {
    if (step % 500 == 0) w.rates(step % 1000 ? 1.0 : 0.5, step % 1500 ? 1.0 : 0.3);
    // An overrun CQ is replaced now and then.
    const unsigned which = static_cast<unsigned>(bench.uniform(0, kCqs - 1));
    Cq& cq = cqs[which];
    const bool room = cq.pi - cq.ci < cq.depth() || bench.chance(0.01);
    if (ringing != static_cast<int>(which) && w.items.items.size() < 6 && room && bench.chance(0.6)) {
      Item item;
      item.event = bench.chance(0.05);
      auto& r = item.req;
      r.cqn = static_cast<std::uint8_t>(number[which]);
      if (bench.chance(0.05)) r.cqn = 9;  // does not exist: dropped
      r.status = static_cast<std::uint8_t>(bench.chance(0.8) ? 0 : bench.uniform(1, 19));
      r.is_receive = bench.chance(0.5);
      r.solicited = bench.chance(0.3);
      r.opcode = static_cast<std::uint8_t>(bench.uniform(0, 255));
      r.wqe_index = static_cast<std::uint16_t>(bench.uniform(0, 65535));
      r.qpn = static_cast<std::uint32_t>(bench.uniform(0, 0xffffff));
      r.byte_count = static_cast<std::uint32_t>(bench.uniform(0, 0xffffffff));
      r.retired_index = static_cast<std::uint16_t>(bench.uniform(0, 65535));
      r.syndrome = static_cast<std::uint8_t>(bench.uniform(0, 255));
      w.items.push(item);
      taken_order.push_back(which);
      ++pending[which];
      if (r.cqn != 9) {
        if (item.event) {
          rtl::EqeReq e;
          e.eqn = cq.ctx.eqn;
          e.event_type = r.opcode;
          e.number = r.qpn;
          e.detail = r.status;
          eqes[e.eqn].push_back(e);
        } else if (cq.overrun || cq.pi - cq.ci == cq.depth()) {
          if (!cq.overrun) {
            eqes[cq.ctx.eqn].push_back(completion_event(r.cqn, cq, hw::EqeType::kCqError));
            ++overruns;
          }
          cq.overrun = true;
          cq.arm = 0;
          dead.push_back(r.qpn & 0xff);
        } else {
          hw::Cqe c = entry(r);
          const std::uint64_t place = (cq.pi - cq.ctx.origin) & 0xffffff;
          c.phase = !(place / cq.depth() % 2);
          writes.push_back({cq.ctx.base + place % cq.depth() * 64, c});
          ++cq.pi;
          if (r.status != 0 || (r.is_receive && r.solicited)) cq.solicited = cq.pi;
          if (cq.fire()) {
            eqes[cq.ctx.eqn].push_back(completion_event(r.cqn, cq));
            ++fired;
          }
        }
      }
    } else if (ringing < 0 && pending[which] == 0 && bench.chance(0.7)) {
      const std::uint64_t ci = bench.chance(0.5)   ? cq.pi
                               : bench.chance(0.9) ? bench.uniform(cq.ci, cq.pi)
                               : bench.chance(0.5) ? cq.pi + bench.uniform(1, 9)
                                                   : cq.ci + 0xffffff;
      const unsigned arm = static_cast<unsigned>(bench.uniform(0, 3));
      unsigned uar = cq.ctx.uar;
      hw::CqDoorbell d = cq_doorbell(number[which] | unsigned{cq.ctx.tag} << 8, ci, arm);
      bool good = ci >= cq.ci && ci <= cq.pi;
      if (bench.chance(0.05)) uar ^= 1, good = false;
      if (bench.chance(0.05)) d.cqn ^= 1u << bench.uniform(8, 23), good = false;  // the number of an earlier CQ
      w.doorbells.push(ring(uar, d));
      ringing = static_cast<int>(which);
      if (!good) {
        ++refused;
      } else {
        cq.ci = ci;
        if (!cq.overrun) cq.arm = std::max(cq.arm, arm);
        if (cq.fire()) {
          eqes[cq.ctx.eqn].push_back(completion_event(number[which], cq));
          ++fired;
        }
      }
    }
    const auto before = w.items.accepted;
    w.tick();
    if (w.items.accepted != before) {
      --pending[taken_order.front()];
      taken_order.pop_front();
    }
    w.dut().eval();
    if (ringing >= 0 && w.doorbells.idle() && w.dut().doorbell_ready_o) ringing = -1;
    if (cq.overrun && ringing != static_cast<int>(which) && pending[which] == 0 && bench.chance(0.02)) {
      const unsigned log_depth = cq.ctx.log_depth;
      w.settle();
      taken_order.clear();
      pending.fill(0);
      ringing = -1;
      w.check_context(number[which], cq);
      cq = Cq{};
      w.create(number[which], cq, log_depth, bench.chance(0.5) ? (1ULL << 24) - bench.uniform(1, 20) : 0);
    }
  }
  w.settle();
  for (unsigned i = 0; i < kCqs; ++i) w.check_context(number[i], cqs[i]);

  std::uint64_t stamp = 0;
  REQUIRE(w.writes.items.size() == writes.size());
  for (std::size_t i = 0; i < writes.size(); ++i) {
    auto got = written_as<hw::Cqe>(w.writes.items[i]);
    REQUIRE(w.writes.items[i].addr == writes[i].addr);
    REQUIRE(got.timestamp > stamp);
    stamp = got.timestamp;
    got.timestamp = 0;
    REQUIRE(got == writes[i].cqe);
  }
  std::array<std::deque<rtl::EqeReq>, 32> got;
  for (const auto& e : w.eqes.items) got[e.eqn].push_back(e);
  for (unsigned i = 0; i < 32; ++i) {
    REQUIRE(got[i].size() == eqes[i].size());
    for (std::size_t k = 0; k < got[i].size(); ++k) REQUIRE(got[i][k] == eqes[i][k]);
  }
  CHECK(w.dead == dead);
  CHECK(w.refused == refused);
  CHECK(overruns > 10);
  CHECK(fired > 800);
  CHECK(writes.size() > 3000);
}

TEST_CASE("cq_engine: doorbells of a CQ that has been destroyed are refused, whatever its context still holds",
          "[rtl]") {
  World w(seed());
  Cq cq;
  w.create(12, cq, 4);
  w.modify(12, [](rtl::CqCtx& ctx) { ctx.in_use = 0, ctx.pi = 5; });
  const auto before = w.admin(12);
  for (const unsigned arm : {0u, 1u, 2u}) w.doorbells.push(ring(cq.ctx.uar, cq_doorbell(12, 3, arm)));
  w.settle();
  CHECK(w.refused == 3);
  CHECK(w.eqes.items.empty());
  CHECK(w.admin(12) == before);
}

TEST_CASE("cq_engine: an overrun names every queue pair once, unless the CQ is gone before that (decisions 55)",
          "[rtl]") {
  World w(seed());
  Cq first, second;
  w.create(3, first, 1);
  w.create(7, second, 1);
  const auto fill = [&w](std::uint8_t cqn, unsigned entries) {
    for (unsigned i = 0; i < entries; ++i) {
      Item item;
      item.req.cqn = cqn;
      w.items.push(item);
    }
    w.settle();
  };
  const auto pass = [&w](std::size_t probes) {
    for (int i = 0; i < 2000 && w.probes.size() < probes; ++i) w.tick();
    for (int i = 0; i < 50; ++i) w.tick();
  };
  fill(3, 2);
  fill(7, 2);
  pass(1);
  CHECK(w.probes.empty());  // exactly full is legal
  fill(3, 2);               // the second finds it overrun: nothing new
  fill(7, 1);
  pass(512);
  std::vector<std::pair<unsigned, unsigned>> all;
  for (const unsigned cqn : {3u, 7u})
    for (unsigned qp = 0; qp < 256; ++qp) all.emplace_back(cqn, qp);
  CHECK(w.probes == all);

  // A new CQ in the place of one whose sweep is under way: its queue pairs are left alone.
  w.probes.clear();
  Cq third;
  w.create(3, third, 1);
  fill(3, 3);
  while (w.probes.size() < 20) w.tick();
  Cq fourth;
  w.create(3, fourth, 1);
  const auto then = w.probes.size();
  pass(256);
  CHECK(w.probes.size() <= then + 1);
  // Who changes a CQ that has overrun (ModifyCq) ends nothing.
  w.probes.clear();
  Cq changed;
  w.create(9, changed, 1);
  fill(9, 3);
  while (w.probes.size() < 20) w.tick();
  w.modify(9, [](rtl::CqCtx& ctx) { ctx.moderate_count = 5; });
  pass(256);
  CHECK(w.probes.size() == 256);
  // And one that had to wait for its sweep.
  w.probes.clear();
  Cq fifth, sixth;
  w.create(7, fifth, 1);
  fill(3, 3);
  fill(7, 3);
  w.create(7, sixth, 1);
  pass(512);
  CHECK(w.probes.size() == 256);
  CHECK(std::all_of(w.probes.begin(), w.probes.end(), [](const auto& probe) { return probe.first == 3; }));
}

TEST_CASE("cq_engine: arms racing with entries never lose the last event", "[rtl]") {
  World w(seed(2));
  auto& bench = w.bench;
  Cq cq;
  w.create(3, cq, 6);
  w.rates(0.4, 0.7);
  for (unsigned round = 0; round < 200; ++round) {
    // As a driver does: poll, arm, poll again, sleep until the event.
    const bool solicited = bench.chance(0.5);
    w.eqes.items.clear();
    const auto before = w.writes.items.size();
    Item item;
    item.req.cqn = 3;
    item.req.is_receive = 1;
    item.req.solicited = 1;
    w.items.push(item);
    for (auto n = bench.uniform(0, 12); n > 0; --n) w.tick();
    w.doorbells.push(ring(cq.ctx.uar, cq_doorbell(3, cq.ci, solicited ? 2 : 3)));
    bench.run_until([&] { return w.eqes.items.size() == 1 && w.writes.items.size() == before + 1; }, 200,
                    "event of an arm that races with its entry");
    for (int i = 0; i < 20; ++i) w.tick();
    REQUIRE(w.eqes.items.size() == 1);  // exactly one
    ++cq.pi;
    cq.ci = cq.pi;
    w.doorbells.push(ring(cq.ctx.uar, cq_doorbell(3, cq.ci, 0)));
    for (int i = 0; i < 20; ++i) w.tick();
  }
}

TEST_CASE("cq_engine: \"newer than the last event\" survives 2^24 entries without an event", "[rtl]") {
  World w(seed(3));
  w.rates(1, 1);
  // 5 entries before the oldest unreported entry would become too old to count; then on past that point.
  for (const bool solicited_pending : {false, true}) {
    Cq cq;
    w.create(20, cq, 4, 1000);
    cq.ctx.pi = cq.ctx.ci = static_cast<std::uint32_t>(1000 + kSpan - 6);
    cq.pi = cq.ci = cq.ctx.pi;
    if (solicited_pending) cq.ctx.solicited_pi = 1002, cq.solicited = 1002;
    w.admin(20, &cq.ctx);
    for (int i = 0; i < 12; ++i) {
      Item item;
      item.req.cqn = 20;
      w.items.push(item);
    }
    w.settle();
    cq.pi += 12;
    cq.notified = cq.pi - (kSpan - 1);
    cq.solicited = std::max(cq.solicited, cq.notified);
    const auto now = w.admin(20);
    CHECK(now.pi == cq.pi);
    CHECK(now.notified_pi == cq.notified);
    CHECK(now.solicited_pi == cq.solicited);
    w.eqes.items.clear();
    w.doorbells.push(ring(cq.ctx.uar, cq_doorbell(20, cq.pi, 2)));
    w.settle();
    CHECK(w.eqes.items.empty());  // nothing solicited among the entries that count
    w.doorbells.push(ring(cq.ctx.uar, cq_doorbell(20, cq.pi, 3)));
    w.settle();
    CHECK(w.eqes.items.size() == 1);
  }
}

TEST_CASE("cq_engine: a CQE takes few cycles", "[rtl]") {
  World w(seed(4));
  w.rates(1, 1);
  Cq cq;
  w.create(1, cq, 10);
  w.settle();
  for (int i = 0; i < 100; ++i) {
    Item item;
    item.req.cqn = 1;
    w.items.push(item);
  }
  const auto start = w.bench.cycle;
  while (w.writes.items.empty()) w.tick();
  const auto first = w.bench.cycle - start;
  while (w.writes.items.size() < 100) w.tick();
  std::printf("cq_engine: first CQE after %llu cycles, then %.1f cycles a CQE\n",
              static_cast<unsigned long long>(first), static_cast<double>(w.bench.cycle - start - first) / 99);
  CHECK(first <= 6);
  CHECK(w.bench.cycle - start - first <= 99 * 8);
}

TEST_CASE("cq_engine: the ring is replaced under traffic; nothing is lost, doubled or out of order (decisions 28)",
          "[rtl]") {
  World w(seed(5));
  auto& bench = w.bench;
  Cq cq;
  w.create(9, cq, 5, (1ULL << 24) - 700);
  const std::uint64_t start = cq.pi;
  struct Ring {
    std::uint64_t origin, base;
    unsigned log_depth;
  };
  std::vector<Ring> rings{{start, cq.ctx.base, cq.ctx.log_depth}};
  rings[0].origin = 0;  // as created
  std::uint64_t pushed = start, last_arm = start;
  unsigned arms = 0;
  for (int step = 0; step < 20000; ++step) {
    w.rates(step % 600 < 300 ? 1 : 0.4, step % 900 < 500 ? 1 : 0.3);
    const std::uint64_t written = start + w.writes.items.size();
    if (pushed - cq.ci < 8 && bench.chance(0.5)) {
      Item item;
      item.req.cqn = 9;
      item.req.byte_count = static_cast<std::uint32_t>(pushed++ - start);
      w.items.push(item);
    }
    // Consumed, and armed when the event of the last arm has come.
    if (w.doorbells.idle() && bench.chance(0.1)) {
      cq.ci = written;
      const bool arm = w.eqes.items.size() == arms;
      arms += arm;
      w.doorbells.push(ring(cq.ctx.uar, cq_doorbell(9, cq.ci, arm ? 3 : 0)));
      last_arm = arm ? cq.ci : last_arm;
    }
    if (bench.chance(0.01)) {
      // As the admin queue does it, in one turn with the context: entries go on meanwhile.
      // 8 entries may be under way, and the doorbell that gives 8 others back.
      const unsigned log_depth = static_cast<unsigned>(bench.uniform(4, 7));
      const std::uint64_t base = 0x40000000ULL + 0x10000 * rings.size();
      const auto now = w.modify(9, [&](rtl::CqCtx& ctx) {
        ctx.origin = ctx.pi;
        ctx.base = base;
        ctx.log_depth = static_cast<std::uint8_t>(log_depth);
      });
      const std::uint64_t seen = start + w.writes.items.size();
      const std::uint64_t origin = seen + (((now.pi - seen) & 0xffffff) ^ 0x800000) - 0x800000;
      rings.push_back({origin, base, log_depth});
    }
    w.tick();
  }
  w.settle();
  REQUIRE(w.writes.items.size() == pushed - start);
  std::size_t ring_index = 0;
  for (std::size_t i = 0; i < w.writes.items.size(); ++i) {
    const std::uint64_t index = start + i;
    while (ring_index + 1 < rings.size() && rings[ring_index + 1].origin <= index) ++ring_index;
    const auto& at = rings[ring_index];
    const std::uint64_t place = (index - at.origin) & 0xffffff;
    const auto cqe = written_as<hw::Cqe>(w.writes.items[i]);
    REQUIRE(cqe.byte_count == i);
    REQUIRE(w.writes.items[i].addr == at.base + 64 * (place & ((1u << at.log_depth) - 1)));
    REQUIRE(cqe.phase == !(place >> at.log_depth & 1));
  }
  CHECK(rings.size() > 100);
  CHECK(w.refused == 0);
  CHECK(arms > 300);
  // The last arm, if it has not fired, is still pending.
  CHECK((w.eqes.items.size() == arms || w.admin(9).arm == 3));
  CHECK(arms - w.eqes.items.size() <= 1);
}

TEST_CASE("cq_engine: an event waits for its count, or for its period", "[rtl]") {
  World w(seed(6));
  Cq cq;
  w.create(200, cq, 6);
  const auto moderate = [&](unsigned count, unsigned period) {
    w.modify(200, [&](rtl::CqCtx& ctx) {
      ctx.moderate_count = static_cast<std::uint16_t>(count), ctx.moderate_period = static_cast<std::uint16_t>(period);
    });
  };
  const auto add = [&](unsigned count, bool solicited = false) {
    for (unsigned i = 0; i < count; ++i, ++cq.pi) {
      Item item;
      item.req.cqn = 200;
      item.req.is_receive = item.req.solicited = solicited;
      w.items.push(item);
    }
    w.settle();
  };
  const auto arm = [&](unsigned kind) {
    cq.ci = cq.pi;
    w.doorbells.push(ring(cq.ctx.uar, cq_doorbell(200, cq.ci, kind)));
    w.settle();
  };
  const auto events = [&] { return std::exchange(w.eqes.items, {}).size(); };
  constexpr std::uint64_t kMicrosecond = 250;

  // Count alone: the fourth entry, however long that takes.
  moderate(4, 0);
  arm(3);
  add(3);
  for (std::uint64_t i = 0; i < 20 * kMicrosecond; ++i) w.tick();
  CHECK(events() == 0);
  add(1);
  CHECK(events() == 1);
  // Entries that came before the arm count.
  add(3);
  arm(3);
  CHECK(events() == 0);
  add(1);
  CHECK(events() == 1);
  add(5);
  CHECK(events() == 0);  // not armed
  arm(3);
  CHECK(events() == 1);
  // Period alone: that long after the first entry, once.
  for (const unsigned period : {1u, 7u, 40u}) {
    moderate(0, period);
    arm(3);
    const auto begin = w.bench.cycle;
    add(1);
    CHECK(events() == 0);
    w.bench.run_until([&] { return !w.eqes.items.empty(); }, (period + 5) * kMicrosecond, "event of the period");
    CHECK(w.bench.cycle - begin >= period * kMicrosecond);
    CHECK(w.bench.cycle - begin <= (period + 3) * kMicrosecond);
    add(2);
    CHECK(events() == 1);
  }
  // Both: whatever is first; the timer of an event that has gone starts no other.
  moderate(3, 10);
  arm(3);
  CHECK(events() == 0);  // two entries are new
  add(1);
  CHECK(events() == 1);
  for (std::uint64_t i = 0; i < 20 * kMicrosecond; ++i) w.tick();
  CHECK(events() == 0);
  // A solicited entry makes the event due; those that follow fill the count.
  moderate(3, 0);
  arm(2);
  add(1);
  add(1, true);
  CHECK(events() == 0);
  add(1);
  CHECK(events() == 1);
  // An error is told at once: the queue overruns.
  moderate(1000, 0);
  arm(3);
  events();
  add(65);
  REQUIRE(w.eqes.items.size() == 1);
  CHECK(w.eqes.items[0].event_type == static_cast<std::uint8_t>(hw::EqeType::kCqError));
}

TEST_CASE("cq_engine: without a place for an entry no CQ is held: its doorbells are answered (PCI Express 2.4.1)",
          "[rtl]") {
  World w(seed());
  Cq cq;
  w.create(9, cq, 4);
  for (int i = 0; i < 3; ++i) {
    Item item;
    item.req.cqn = 9;
    w.items.push(item);
  }
  w.settle();
  REQUIRE(w.writes.items.size() == 3);
  w.dut().wr_kept_i = 0;
  for (int i = 0; i < 3; ++i) {
    Item item;
    item.req.cqn = 9;
    w.items.push(item);
  }
  for (int i = 0; i < 100; ++i) w.tick();
  CHECK(w.writes.items.size() == 3);
  for (unsigned ci = 1; ci <= 3; ++ci) {
    w.doorbells.push(ring(cq.ctx.uar, cq_doorbell(9, ci, 0)));
    const auto start = w.bench.cycle;
    while (!w.doorbells.idle()) w.tick();
    CHECK(w.bench.cycle - start < 12);
  }
  for (int i = 0; i < 12; ++i) w.tick();
  CHECK(w.admin(9).ci == 3);
  w.dut().wr_kept_i = 1;
  w.settle();
  CHECK(w.writes.items.size() == 6);
}

TEST_CASE("cq_engine: the expiry of a timer does not wait for the doorbells of others to end", "[rtl]") {
  World w(seed());
  Cq cq, other;
  w.create(5, cq, 4);
  w.create(6, other, 4);
  w.modify(5, [](rtl::CqCtx& ctx) { ctx.moderate_period = 1; });
  Item item;
  item.req.cqn = 5;
  w.items.push(item);
  w.settle();
  w.doorbells.push(ring(cq.ctx.uar, cq_doorbell(5, 0, 3)));
  // Doorbells without a pause, for longer than period and round of the timers.
  for (int i = 0; i < 3000 && w.eqes.items.empty(); ++i) {
    while (w.doorbells.items.size() < 3) w.doorbells.push(ring(other.ctx.uar, cq_doorbell(6, 0, 1)));
    w.tick();
  }
  REQUIRE(w.eqes.items.size() == 1);
  CHECK(w.eqes.items[0].number == 5);
}

TEST_CASE("cq_engine: entries, doorbells, expiries and the admin queue at the same time", "[rtl]") {
  World w(seed(7));
  auto& bench = w.bench;
  constexpr unsigned kCqs = 4, kTotal = 6000;
  const std::array<unsigned, kCqs> number{0, 9, 128, 255};
  std::array<Cq, kCqs> cqs;
  std::array<std::uint64_t, kCqs> written{};
  std::array<unsigned, kCqs> arms{}, events{};
  unsigned asked = 0, told = 0;  // events of queue pairs
  for (unsigned i = 0; i < kCqs; ++i) {
    w.create(number[i], cqs[i], 8, i == 2 ? (1ULL << 24) - 300 : 0);
    written[i] = cqs[i].pi;
  }
  const auto at = [&](unsigned cqn) {
    return static_cast<unsigned>(std::find(number.begin(), number.end(), cqn) - number.begin());
  };
  ContextClient<rtl::CqCtx> admin(w.admin_ports(), bench.rng);
  bench.add(admin);
  w.eqes.on_item = [&](const rtl::EqeReq& e) {
    if (e.event_type == raw(hw::EqeType::kQpFatal)) {
      REQUIRE(e.number == told++);
      return;
    }
    const unsigned i = at(e.number);
    REQUIRE(i < kCqs);
    REQUIRE(e.event_type == raw(hw::EqeType::kCompletion));
    REQUIRE(++events[i] <= arms[i]);
  };
  w.writes.on_item = [&](const rtl::DmaWr& x) {
    const unsigned i = at(static_cast<unsigned>(x.addr / 0x100000 - 1));
    REQUIRE(i < kCqs);
    const auto cqe = written_as<hw::Cqe>(x);
    REQUIRE(x.addr == cqs[i].ctx.base + written[i] % 256 * 64);
    REQUIRE(cqe.byte_count == (written[i] & 0xffffffff));
    REQUIRE(cqe.phase == !(written[i] / 256 % 2));
    ++written[i];
  };
  for (unsigned step = 0; w.items.accepted < kTotal; ++step) {
    REQUIRE(step < 200'000);
    // Nobody takes events for a while now and then; entries end up waiting behind them.
    w.rates(step % 900 < 600 ? 1 : 0.3, step % 700 < 450 ? 1 : 0.4);
    if (step % 1100 < 150) w.eqes.rate = 0;
    admin.rate = step % 500 < 300 ? 1.0 : 0.1;
    const unsigned i = step % 2000 < 600 ? 0 : static_cast<unsigned>(bench.uniform(0, kCqs - 1));
    Cq& cq = cqs[i];
    if (w.items.idle() && cq.pi - cq.ci < 250) {
      Item item;
      item.req.cqn = static_cast<std::uint8_t>(number[i]);
      item.event = bench.chance(0.3);
      if (item.event) {
        item.req.opcode = raw(hw::EqeType::kQpFatal);
        item.req.qpn = asked++;
      } else {
        item.req.byte_count = static_cast<std::uint32_t>(cq.pi++);
      }
      w.items.push(item);
    }
    if (w.doorbells.idle()) {
      cq.ci = written[i];
      const bool arm = events[i] == arms[i] && bench.chance(0.7);
      arms[i] += arm;
      w.doorbells.push(ring(cq.ctx.uar, cq_doorbell(number[i], cq.ci, arm ? 3 : 0)));
    }
    if (admin.idle()) {
      const unsigned period = bench.chance(0.3);
      admin.push(number[i], [change = bench.chance(0.2), period](rtl::CqCtx& c) {
        if (change) c.moderate_period = static_cast<std::uint16_t>(period);
        return change;
      });
    }
    w.tick();
  }
  w.rates(1, 1);
  w.settle();
  for (int i = 0; i < 1500; ++i) w.tick();  // the timers
  unsigned all = 0;
  for (unsigned i = 0; i < kCqs; ++i) {
    rtl::CqCtx now;
    admin.push(number[i], [&now](rtl::CqCtx& c) { return now = c, false; });
    while (!admin.idle()) w.tick();
    CHECK(written[i] == cqs[i].pi);
    CHECK(now.pi == (cqs[i].pi & 0xffffff));
    CHECK(now.ci == (cqs[i].ci & 0xffffff));
    CHECK(events[i] + (now.arm == 3) == arms[i]);
    if (now.arm == 3) CHECK(now.notified_pi == now.pi);
    all += events[i];
  }
  CHECK(all > 500);
  CHECK(told == asked);
  CHECK(w.refused == 0);
  CHECK(admin.turns > 1000);
}

TEST_CASE("cq_engine: CQs overrun while sweeps end and CQs that wait for theirs are made anew (decisions 55)",
          "[rtl]") {
  World w(seed(8));
  constexpr unsigned kCqs = 40, kAnew = 10, kRounds = 12;
  ContextClient<rtl::CqCtx> admin(w.admin_ports(), w.bench.rng);
  w.bench.add(admin);
  const auto create = [&](unsigned cqn) {  // with room for one entry
    admin.push(cqn, [cqn](rtl::CqCtx& c) {
      c = {.in_use = 1, .base = 0x100000ULL * (cqn + 1), .eqn = static_cast<std::uint8_t>(cqn % 31)};
      return true;
    });
  };
  const auto created = [&] { w.bench.run_until([&] { return admin.idle(); }, 2000, "admin queue"); };
  for (unsigned round = 0; round < kRounds; ++round) {
    for (unsigned i = 0; i < kCqs; ++i) create(i);
    created();
    w.probes.clear();
    w.dead.clear();
    w.eqes.items.clear();
    const auto before = w.items.accepted;
    for (unsigned i = 0; i < kCqs; ++i) {
      for (const unsigned qpn : {100u, i}) {  // the second has no room
        Item item;
        item.req.cqn = static_cast<std::uint8_t>(i);
        item.req.qpn = qpn;
        w.items.push(item);
      }
      for (auto n = w.bench.uniform(0, 12); n > 0 && i > kAnew; --n) w.tick();
      if (i != kAnew) continue;
      // The first is being swept, those behind it wait: they are gone before their sweep begins.
      w.bench.run_until([&] { return w.items.accepted - before >= 2 * kAnew; }, 1000, "entries");
      for (unsigned k = 1; k < kAnew; ++k) create(k);
    }
    w.settle();
    for (unsigned k = kAnew + 1; k < kCqs; ++k) create(k);
    for (unsigned quiet = 0; quiet < 40; ++quiet) {
      const auto seen = w.probes.size();
      w.tick();
      if (w.probes.size() != seen || !admin.idle()) quiet = 0;
    }
    // In order, each from queue pair 0 on; to the end of those that are still there.
    std::map<unsigned, unsigned> swept;
    unsigned last = 0;
    for (const auto& [cqn, qp] : w.probes) {
      REQUIRE(cqn >= last);
      REQUIRE(swept[cqn]++ == qp);
      last = cqn;
    }
    CHECK(swept[0] == 256);
    CHECK(swept[kAnew] == 256);
    for (unsigned k = 1; k < kAnew; ++k) CHECK(swept[k] == 0);
    REQUIRE(w.dead.size() == kCqs);
    REQUIRE(w.eqes.items.size() == kCqs);
    for (unsigned i = 0; i < kCqs; ++i) {
      REQUIRE(w.dead[i] == i);
      REQUIRE(w.eqes.items[i].event_type == raw(hw::EqeType::kCqError));
      REQUIRE((w.eqes.items[i].number == i && w.eqes.items[i].eqn == i % 31));
    }
  }
}
