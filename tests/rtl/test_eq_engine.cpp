#include <Veq_engine.h>

#include "tests/rtl/completion_models.hpp"

// rtl/completion/eq_engine.sv: ring layout, order, full EQ, doorbells from the kernel's UAR only.
using namespace rnic;
using namespace rnic::test;

namespace {
/// The rules, with indexes that never wrap.
struct Eq {
  std::uint64_t base = 0, pi = 0, ci = 0;
  unsigned log_depth = 0, vector = 0;
  std::uint64_t depth() const { return 1ULL << log_depth; }
};
struct Write {
  rtl::DmaWr wr;
  unsigned vector = 0;
  bool operator==(const Write&) const = default;
};
}  // namespace

TEST_CASE("eq_engine: random events and doorbells follow the rules", "[rtl]") {
  Bench<Veq_engine> bench(seed());
  auto& dut = *bench.dut;
  RNIC_SOURCE(events, rtl::EqeReq, bench, eqe, 1.0);
  RNIC_SOURCE(doorbells, rtl::Doorbell, bench, doorbell, 1.0);
  Sink<Write> writes([&] { return dut.wr_valid_o != 0; }, [&](bool r) { dut.wr_ready_i = r; },
                     [&] {
                       return Write{get<rtl::DmaWr>(dut.wr_data_o), dut.wr_vector_o};
                     },
                     bench.rng);
  bench.add(writes);
  unsigned refused = 0, lost = 0;
  Monitor monitor([&] {
    refused += dut.event_refused_o;
    lost += dut.event_overrun_o;
  });
  bench.add(monitor);
  const auto tick = [&] { bench.tick(); };
  dut.admin_acq_valid_i = dut.admin_rel_valid_i = 0;
  dut.wr_kept_i = 1;
  bench.reset();
  bench.run_until([&] { return dut.ready_o != 0; }, 100, "ready");

  const auto admin = [&](unsigned eqn, const rtl::EqCtx* to) {
    dut.admin_acq_index_i = static_cast<std::uint8_t>(eqn);
    dut.admin_acq_valid_i = 1;
    for (bool taken = false; !taken;) {
      dut.eval();
      taken = dut.admin_acq_ready_o;
      tick();
    }
    dut.admin_acq_valid_i = 0;
    while (!dut.admin_ctx_valid_o) tick();
    const auto now = get<rtl::EqCtx>(dut.admin_ctx_data_o);
    tick();
    dut.admin_rel_valid_i = 1;
    dut.admin_rel_write_i = to != nullptr;
    if (to) put(dut.admin_rel_data_i, *to);
    for (bool taken = false; !taken;) {
      dut.eval();
      taken = dut.admin_rel_ready_o;
      tick();
    }
    dut.admin_rel_valid_i = 0;
    return now;
  };

  constexpr unsigned kEqs = 4;
  const std::array<unsigned, kEqs> number{0, 1, 17, 31};
  std::array<Eq, kEqs> eqs;
  for (unsigned i = 0; i < kEqs; ++i) {
    eqs[i].base = 0x7000000000ULL + 0x1000 * i;
    eqs[i].log_depth = i * 2;
    eqs[i].vector = 3 + 9 * i;
    eqs[i].pi = eqs[i].ci = i == 2 ? (1ULL << 24) - 10 : 0;
    rtl::EqCtx c;
    c.in_use = 1;
    c.base = eqs[i].base;
    c.log_depth = static_cast<std::uint8_t>(eqs[i].log_depth);
    c.msix_vector = static_cast<std::uint8_t>(eqs[i].vector);
    c.pi = c.ci = static_cast<std::uint32_t>(eqs[i].pi & 0xffffff);
    admin(number[i], &c);
  }

  struct Expected {
    std::uint64_t addr;
    unsigned vector;
    hw::Eqe eqe;
  };
  std::deque<Expected> expected;
  unsigned expect_refused = 0, expect_lost = 0;
  for (unsigned step = 0; step < 8000; ++step) {
    if (step % 400 == 0) {
      events.rate = step % 800 ? 1.0 : 0.4;
      writes.rate = step % 1200 ? 1.0 : 0.3;
    }
    const unsigned which = static_cast<unsigned>(bench.uniform(0, kEqs - 1));
    Eq& eq = eqs[which];
    if (bench.chance(0.6)) {
      rtl::EqeReq e;
      e.eqn = static_cast<std::uint8_t>(number[which]);
      e.event_type = static_cast<std::uint8_t>(bench.uniform(1, 3));
      e.number = static_cast<std::uint32_t>(bench.uniform(0, 0xffffff));
      e.detail = static_cast<std::uint32_t>(bench.uniform(0, 0xffffffff));
      const bool exists = !bench.chance(0.05);
      if (!exists) e.eqn = 5;
      events.push(e);
      if (exists && eq.pi - eq.ci == eq.depth()) {
        ++expect_lost;
      } else if (exists) {
        Expected x{eq.base + eq.pi % eq.depth() * 64, eq.vector, {}};
        x.eqe.event_type = e.event_type;
        x.eqe.number = e.number;
        x.eqe.detail = e.detail;
        x.eqe.phase = !(eq.pi / eq.depth() % 2);
        expected.push_back(x);
        ++eq.pi;
      }
      while (!events.idle()) tick();
    } else {
      hw::EqDoorbell d;
      std::uint64_t ci = bench.chance(0.9) ? bench.uniform(eq.ci, eq.pi) : eq.pi + bench.uniform(1, 5);
      d.eqn = number[which];
      unsigned uar = 1;
      bool good = ci <= eq.pi;
      if (bench.chance(0.05)) d.eqn |= 1u << bench.uniform(5, 23), good = false;
      if (bench.chance(0.05)) uar = static_cast<unsigned>(bench.uniform(2, 127)), good = false;
      d.consumer_index = static_cast<std::uint32_t>(ci & 0xffffff);
      doorbells.push(ring(uar, d));
      if (good) eq.ci = ci;
      if (!good) ++expect_refused;
    }
    // One thing at a time on the rings: the order of an event and a doorbell is the test's.
    tick();
    while (!doorbells.idle()) tick();
    while (dut.eval(), !dut.doorbell_ready_o) tick();
  }
  for (int i = 0; i < 50; ++i) tick();
  // An EQ that was never created, and one that has been destroyed, whatever its context still holds.
  rtl::EqCtx gone;
  gone.pi = 3;
  admin(6, &gone);
  for (const unsigned eqn : {5u, 6u}) {
    hw::EqDoorbell d;
    d.eqn = eqn;
    d.consumer_index = eqn - 5;
    doorbells.push(ring(1, d));
    ++expect_refused;
    while (!doorbells.idle()) tick();
    for (int i = 0; i < 50; ++i) tick();
  }
  CHECK(admin(6, nullptr) == gone);
  REQUIRE(writes.items.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    auto got = written_as<hw::Eqe>(writes.items[i].wr);
    REQUIRE(writes.items[i].wr.addr == expected[i].addr);
    REQUIRE(writes.items[i].vector == expected[i].vector);
    REQUIRE(got.timestamp != 0);
    got.timestamp = 0;
    REQUIRE(got == expected[i].eqe);
  }
  for (unsigned i = 0; i < kEqs; ++i) {
    const auto now = admin(number[i], nullptr);
    CHECK(now.pi == (eqs[i].pi & 0xffffff));
    CHECK(now.ci == (eqs[i].ci & 0xffffff));
  }
  CHECK(lost == expect_lost);
  CHECK(expect_lost > 50);
  CHECK(refused == expect_refused);
  CHECK(expect_refused > 50);
}

TEST_CASE("eq_engine: events, doorbells and the admin queue at the same time lose no entry", "[rtl]") {
  constexpr unsigned kEqs = 4, kLogDepth = 5, kTotal = 4000;
  Bench<Veq_engine> bench(seed(2));
  auto& dut = *bench.dut;
  RNIC_SOURCE(events, rtl::EqeReq, bench, eqe, 1.0);
  RNIC_SOURCE(doorbells, rtl::Doorbell, bench, doorbell, 1.0);
  Sink<Write> writes([&] { return dut.wr_valid_o != 0; }, [&](bool r) { dut.wr_ready_i = r; },
                     [&] {
                       return Write{get<rtl::DmaWr>(dut.wr_data_o), dut.wr_vector_o};
                     },
                     bench.rng);
  ContextClient<rtl::EqCtx> admin(
      {[&](bool v) { dut.admin_acq_valid_i = v; }, [&](bool v) { dut.admin_rel_valid_i = v; },
       [&](bool v) { dut.admin_rel_write_i = v; },
       [&](unsigned index) { dut.admin_acq_index_i = static_cast<std::uint8_t>(index); },
       [&](const rtl::EqCtx& c) { put(dut.admin_rel_data_i, c); }, [&] { return dut.admin_acq_ready_o != 0; },
       [&] { return dut.admin_ctx_valid_o != 0; }, [&] { return dut.admin_rel_ready_o != 0; },
       [&] { return get<rtl::EqCtx>(dut.admin_ctx_data_o); }},
      bench.rng);
  bench.add(writes);
  bench.add(admin);
  unsigned refused = 0, lost = 0, moved = 0, renewed = 0;
  std::array<std::uint32_t, 32> consumed{};
  Monitor monitor([&] {
    refused += dut.event_refused_o;
    lost += dut.event_overrun_o;
    moved += dut.ci_valid_o;
    renewed += dut.ci_valid_o && dut.ci_renew_o;
    if (dut.ci_valid_o) consumed[dut.ci_eqn_o] = dut.ci_index_o;
  });
  bench.add(monitor);
  dut.wr_kept_i = 1;
  bench.reset();
  bench.run_until([&] { return dut.ready_o != 0; }, 100, "ready");

  const std::array<unsigned, kEqs> number{0, 1, 17, 31};
  std::array<Eq, kEqs> eqs;
  for (unsigned i = 0; i < kEqs; ++i) {
    eqs[i] = {.base = 0x7000000000ULL + 0x1000 * i, .log_depth = kLogDepth, .vector = 3 + 9 * i};
    eqs[i].pi = eqs[i].ci = i == 2 ? (1ULL << 24) - 100 : 0;
    admin.push(number[i], [eq = eqs[i]](rtl::EqCtx& c) {
      c.in_use = 1;
      c.base = eq.base;
      c.log_depth = kLogDepth;
      c.msix_vector = static_cast<std::uint8_t>(eq.vector);
      c.pi = c.ci = static_cast<std::uint32_t>(eq.pi);
      return true;
    });
  }
  bench.run_until([&] { return admin.idle(); }, 200, "admin queue");
  std::array<std::uint64_t, kEqs> first{}, rung{}, written{};
  for (unsigned i = 0; i < kEqs; ++i) first[i] = rung[i] = written[i] = eqs[i].pi;
  std::array<std::deque<rtl::EqeReq>, kEqs> asked;
  unsigned rings = 0, looks = 0, made = 0;
  writes.on_item = [&](const Write& x) {
    const auto i = static_cast<unsigned>((x.wr.addr - eqs[0].base) / 0x1000);
    REQUIRE(i < kEqs);
    const auto& e = asked[i].front();
    const auto eqe = written_as<hw::Eqe>(x.wr);
    REQUIRE(x.wr.addr == eqs[i].base + written[i] % 32 * 64);
    REQUIRE(x.vector == eqs[i].vector);
    REQUIRE(eqe.phase == !(written[i] / 32 % 2));
    REQUIRE((eqe.event_type == e.event_type && eqe.number == e.number && eqe.detail == e.detail));
    asked[i].pop_front();
    ++written[i];
  };
  for (unsigned step = 0; events.accepted < kTotal; ++step) {
    REQUIRE(step < 200'000);
    writes.rate = step % 1200 < 900 ? 1.0 : 0.3;
    events.rate = doorbells.rate = step % 2000 < 1000 ? 1.0 : 0.2;
    admin.rate = step % 700 < 400 ? 1.0 : 0.1;
    // One EQ alone, or any.
    const unsigned which = step % 3000 < 1500 ? 2 : static_cast<unsigned>(bench.uniform(0, kEqs - 1));
    Eq& eq = eqs[which];
    rung[which] += (consumed[number[which]] - rung[which]) & 0xffffff;  // given back for sure
    if (events.idle() && eq.pi - rung[which] < eq.depth()) {
      rtl::EqeReq e;
      e.eqn = static_cast<std::uint8_t>(number[which]);
      e.event_type = static_cast<std::uint8_t>(bench.uniform(1, 3));
      e.number = static_cast<std::uint32_t>(bench.uniform(0, 0xffffff));
      e.detail = static_cast<std::uint32_t>(bench.uniform(0, 0xffffffff));
      events.push(e);
      asked[which].push_back(e);
      ++eq.pi;
    }
    if (doorbells.idle()) {
      hw::EqDoorbell d;
      d.eqn = number[which];
      d.consumer_index = static_cast<std::uint32_t>(written[which] & 0xffffff);
      eq.ci = written[which];
      doorbells.push(ring(1, d));
      ++rings;
    }
    if (admin.idle()) {
      ++looks;
      if (bench.chance(0.2)) {  // makes and destroys others meanwhile
        ++made;
        admin.push(5, [](rtl::EqCtx& c) { return c.in_use = !c.in_use, true; });
      } else {
        admin.push(number[which], [&eq](rtl::EqCtx& c) {
          REQUIRE(((c.pi - c.ci) & 0xffffff) <= eq.depth());
          return false;
        });
      }
    }
    bench.tick();
  }
  bench.run_until([&] { return events.idle() && doorbells.idle() && admin.idle(); }, 1000, "end");
  bench.run(50);
  for (unsigned i = 0; i < kEqs; ++i) {
    REQUIRE(asked[i].empty());
    rtl::EqCtx now;
    admin.push(number[i], [&now](rtl::EqCtx& c) { return now = c, false; });
    bench.run_until([&] { return admin.idle(); }, 100, "admin queue");
    CHECK(now.pi == (eqs[i].pi & 0xffffff));
    CHECK(now.ci == (eqs[i].ci & 0xffffff));
    CHECK(consumed[number[i]] == now.ci);
  }
  CHECK(written[2] - first[2] > 1000);
  CHECK(lost == 0);
  CHECK(refused == 0);
  CHECK(renewed == made + kEqs);
  CHECK(moved == rings + renewed);
  CHECK(looks > 1000);
}
