#include <Vsrq_engine.h>

#include <map>
#include <optional>

#include "tests/rtl/completion_models.hpp"

// rtl/srq/srq_engine.sv: doorbells, limit and error events against a model, with the receive engine taking WQEs all the
// while. InfiniBand specification 10.2.9 (SRQ), 11.6.3.2 and 11.6.3.3 (its events).
using namespace rnic;
using namespace rnic::test;
using Dut = Vsrq_engine;

namespace {
struct World {
  explicit World(std::uint64_t s)
      : bench(s),
        doorbells([this](bool v) { dut().doorbell_valid_i = v; }, [this] { return dut().doorbell_ready_o != 0; },
                  [this](const rtl::Doorbell& d) { put(dut().doorbell_data_i, d); }, bench.rng),
        eqes([this] { return dut().eqe_valid_o != 0; }, [this](bool r) { dut().eqe_ready_i = r; },
             [this] { return get<rtl::EqeReq>(dut().eqe_data_o); }, bench.rng),
        monitor([this] {
          taken += dut().event_taken_o;
          refused += dut().event_refused_o;
        }) {
    for (Agent* a : std::initializer_list<Agent*>{&doorbells, &eqes, &monitor}) bench.add(*a);
    dut().acq_valid_i = dut().rel_valid_i = dut().rel_write_i = dut().limit_valid_i = dut().error_valid_i = 0;
    bench.reset();
    bench.run_until([&] { return dut().ready_o != 0; }, 400, "ready");
  }
  Dut& dut() { return *bench.dut; }
  /// Client 0 (admin queue) or 1 (receive engine) looks at a context and may change it.
  rtl::SrqCtx access(unsigned client, unsigned srqn, const std::function<bool(rtl::SrqCtx&)>& change = {}) {
    const unsigned bit = 1u << client;
    dut().acq_index_i = static_cast<std::uint16_t>(srqn << (8 * client));
    dut().acq_valid_i = static_cast<std::uint8_t>(bit);
    handshake([&] { return (dut().acq_ready_o & bit) != 0; });
    dut().acq_valid_i = 0;
    while (!(dut().ctx_valid_o & bit)) bench.tick();
    auto ctx = get<rtl::SrqCtx>(dut().ctx_data_o);
    const auto before = ctx;
    bench.tick();
    const bool write = change && change(ctx);
    put_slice(dut().rel_data_i, client, ctx);
    dut().rel_write_i = static_cast<std::uint8_t>(write ? bit : 0);
    dut().rel_valid_i = static_cast<std::uint8_t>(bit);
    if (client == 1 && write && ctx.limit_hit) {
      // The receive engine tells in the cycle in which it gives the context back.
      handshake([&] {
        const bool now = (dut().rel_ready_o & bit) != 0;
        dut().limit_valid_i = now;
        dut().limit_srq_i = static_cast<std::uint8_t>(srqn);
        return now;
      });
      dut().limit_valid_i = 0;
    } else {
      handshake([&] { return (dut().rel_ready_o & bit) != 0; });
    }
    dut().rel_valid_i = 0;
    return before;
  }
  void handshake(const std::function<bool()>& ready) {
    for (;;) {
      dut().eval();
      const bool now = ready();
      bench.tick();
      if (now) return;
    }
  }
  void create(unsigned srqn, rtl::SrqCtx ctx) {
    ctx.in_use = 1;
    access(0, srqn, [&](rtl::SrqCtx& c) { return c = ctx, true; });
  }
  /// The receive engine takes the next WQE, as rx_request does.
  bool take(unsigned srqn) {
    bool got = false;
    access(1, srqn, [&](rtl::SrqCtx& c) {
      got = c.in_use && !c.error && c.head != c.pi;
      if (!got) return false;
      ++c.head;
      if (static_cast<std::uint16_t>(c.pi - c.head) < c.limit) c.limit_hit = 1;
      return true;
    });
    return got;
  }
  void arm(unsigned srqn, std::uint16_t limit) {
    access(0, srqn, [&](rtl::SrqCtx& c) { return c.limit = limit, c.limit_hit = 0, true; });
  }
  void post(unsigned srqn, unsigned uar, unsigned index) {
    hw::SrqDoorbell d;
    d.srqn = srqn;
    d.producer_index = static_cast<std::uint16_t>(index);
    doorbells.push(ring(uar, d));
  }
  void settle() {
    bench.run_until([&] { return doorbells.idle(); }, 10000, "doorbells");
    bench.run(80);
  }
  std::size_t events(hw::EqeType type) const {
    std::size_t n = 0;
    for (const auto& e : eqes.items) n += e.event_type == static_cast<std::uint8_t>(type);
    return n;
  }

  Bench<Dut> bench;
  Source<rtl::Doorbell> doorbells;
  Sink<rtl::EqeReq> eqes;
  Monitor monitor;
  unsigned taken = 0, refused = 0;
};
}  // namespace

TEST_CASE("srq_engine: doorbells are checked (o10-18: a consumer reaches its own SRQ only)", "[rtl]") {
  World w(seed());
  constexpr unsigned kTag = 0x8102'00;
  w.create(200, {.uar = 5, .log_depth = 3, .pi = 65530, .head = 65530, .tag = kTag >> 8});
  const auto post = [&](unsigned srqn, unsigned uar, unsigned index) {
    w.post(srqn < 256 ? srqn | kTag : srqn, uar, index);
    w.settle();
    return static_cast<std::uint16_t>(w.access(0, 200).pi - 65530);
  };
  CHECK(post(200, 5, 65530 + 2) == 2);
  CHECK(post(201, 5, 65530 + 3) == 2);              // no such SRQ
  CHECK(post(200 | 0x8302'00, 5, 65530 + 3) == 2);  // nor this one: another tag
  CHECK(post(200, 6, 65530 + 3) == 2);              // not this UAR's
  CHECK(post(200, 5, 65530 + 1) == 2);              // back
  CHECK(post(200, 5, 65530 + 9) == 2);              // more than the ring holds
  // One that has been destroyed, whatever its context still holds.
  w.create(202, {.uar = 5, .log_depth = 3, .tag = kTag >> 8});
  w.access(0, 202, [](rtl::SrqCtx& c) { return c.in_use = 0, true; });
  CHECK(post(202, 5, 2) == 2);
  CHECK(w.access(0, 202).pi == 0);
  CHECK(post(200, 5, 65530 + 8) == 8);
  for (int i = 0; i < 8; ++i) CHECK(w.take(200));
  CHECK(!w.take(200));
  CHECK(post(200, 5, 65530 + 16) == 16);
  CHECK(w.taken == 9);
  CHECK(w.refused == 6);
  CHECK(w.eqes.items.empty());
}

TEST_CASE("srq_engine: the limit event comes once, when fewer are left; at once if they are (11.6.3.2)", "[rtl]") {
  World w(seed());
  w.create(7, {.eqn = 3, .uar = 2, .log_depth = 5, .tag = 0xfedc});
  w.settle();
  CHECK(w.eqes.items.empty());
  w.post(0xfedc'07, 2, 10);
  w.settle();
  w.arm(7, 4);
  w.settle();
  CHECK(w.eqes.items.empty());
  for (int i = 0; i < 6; ++i) w.take(7);
  w.settle();
  CHECK(w.eqes.items.empty());  // four are left: not fewer
  w.take(7);
  w.settle();
  REQUIRE(w.eqes.items.size() == 1);
  CHECK(w.eqes.items[0].eqn == 3);
  CHECK(w.eqes.items[0].event_type == static_cast<std::uint8_t>(hw::EqeType::kSrqLimit));
  CHECK(w.eqes.items[0].number == 0xfedc'07);
  CHECK(w.access(0, 7).limit == 0);
  w.take(7);
  w.settle();
  CHECK(w.eqes.items.size() == 1);  // disarmed
  w.arm(7, 3);
  w.settle();
  CHECK(w.eqes.items.size() == 2);  // two are left already
  w.arm(7, 2);
  w.settle();
  CHECK(w.eqes.items.size() == 2);
  // It counts that fewer were left, even if more have been posted before anybody looked.
  w.eqes.rate = 0;
  w.take(7);
  w.post(0xfedc'07, 2, 20);
  w.settle();
  w.eqes.rate = 1;
  w.settle();
  CHECK(w.eqes.items.size() == 3);
  CHECK(w.access(0, 7).limit == 0);
  // With its creation, on an SRQ that is empty.
  w.create(8, {.eqn = 3, .uar = 2, .log_depth = 5, .limit = 1});
  w.settle();
  CHECK(w.eqes.items.size() == 4);
}

TEST_CASE("srq_engine: an SRQ that has lost a WQE gives no more, and says so once (11.6.3.3)", "[rtl]") {
  World w(seed());
  w.create(255, {.eqn = 1, .uar = 2, .log_depth = 5, .pi = 8});
  for (int i = 0; i < 3; ++i) {
    w.dut().error_valid_i = 1;
    w.dut().error_srq_i = 255;
    w.bench.tick();
    w.dut().error_valid_i = 0;
    w.settle();
  }
  REQUIRE(w.eqes.items.size() == 1);
  CHECK(w.eqes.items[0].event_type == static_cast<std::uint8_t>(hw::EqeType::kSrqError));
  CHECK(w.eqes.items[0].number == 255);
  CHECK(w.access(0, 255).error == 1);
  CHECK(!w.take(255));
  w.arm(255, 20);
  w.settle();
  CHECK(w.eqes.items.size() == 1);
  // One that does not exist has no events.
  w.dut().error_valid_i = 1;
  w.dut().error_srq_i = 4;
  w.bench.tick();
  w.dut().error_valid_i = 0;
  w.settle();
  CHECK(w.eqes.items.size() == 1);
  CHECK(w.access(0, 4).error == 0);
}

TEST_CASE("srq_engine: random posting, taking and arming", "[rtl]") {
  World w(seed());
  struct Model {
    std::uint16_t pi = 0, head = 0;
    std::uint64_t armed = 0;
  };
  std::map<unsigned, Model> model;
  for (const unsigned srqn : {0u, 1u, 17u, 63u, 64u, 128u, 200u, 255u}) {
    const auto start = static_cast<std::uint16_t>(w.bench.uniform(0xfff0, 0xffff));
    model[srqn] = {start, start};
    w.create(srqn, {.eqn = static_cast<std::uint8_t>(srqn % 32), .uar = 9, .log_depth = 4, .pi = start, .head = start});
  }
  std::map<unsigned, std::uint64_t> told;
  w.eqes.on_item = [&](const rtl::EqeReq& e) {
    REQUIRE(e.eqn == e.number % 32);
    ++told[e.number];
  };
  for (int i = 0; i < 4000; ++i) {
    auto at = model.begin();
    std::advance(at, static_cast<long>(w.bench.uniform(0, model.size() - 1)));
    auto& [srqn, m] = *at;
    w.eqes.rate = w.bench.chance(0.2) ? 0.1 : 1;
    const auto left = static_cast<std::uint16_t>(m.pi - m.head);
    if (w.bench.chance(0.3)) {
      m.pi = static_cast<std::uint16_t>(m.pi + w.bench.uniform(0, 16u - left));
      w.post(srqn, 9, m.pi);
    } else if (w.bench.chance(0.1)) {
      w.bench.run_until([&] { return w.doorbells.idle(); }, 10000, "doorbells");
      w.arm(srqn, static_cast<std::uint16_t>(w.bench.uniform(1, 17)));
      ++m.armed;
    } else {
      w.bench.run_until([&] { return w.doorbells.idle(); }, 10000, "doorbells");
      w.bench.run(12);
      REQUIRE(w.take(srqn) == (left != 0));
      m.head = static_cast<std::uint16_t>(m.head + (left != 0));
    }
    if (i % 100 == 0) {
      w.eqes.rate = 1;
      w.settle();
      for (const auto& [number, expected] : model) {
        const auto ctx = w.access(0, number);
        REQUIRE(ctx.pi == expected.pi);
        REQUIRE(ctx.head == expected.head);
        // Armed and not told, or told for it: never more events than arms.
        REQUIRE(told[number] <= expected.armed);
        if (ctx.limit != 0) REQUIRE(static_cast<std::uint16_t>(ctx.pi - ctx.head) >= ctx.limit);
      }
    }
  }
  for (const auto& [number, count] : told) CHECK(count > 3);
  CHECK(w.refused == 0);
}

// 10.2.9.4: whoever takes, posts, arms or loses a WQE at the same time, of the same SRQ or another, loses no event.
TEST_CASE("srq_engine: admin queue, receive engine, doorbells and events at the same time", "[rtl]") {
  struct Model {
    std::uint16_t pi = 0, head = 0;
    unsigned armed = 0, limits = 0, errors = 0;
    bool lost = false;
  };
  constexpr unsigned kSteps = 600;
  const std::array<unsigned, 5> numbers{0, 1, 17, 128, 255};
  const auto first_seed = seed(2);
  unsigned limits = 0, errors = 0, taken = 0;
  for (unsigned round = 0; round < 120; ++round) {
    INFO("round " << round);
    World w(first_seed + round);
    auto& bench = w.bench;
    auto& dut = w.dut();
    std::map<unsigned, Model> model;
    for (const unsigned srqn : numbers) {
      const auto start = static_cast<std::uint16_t>(bench.uniform(0xfff0, 0xffff));
      model[srqn] = {start, start};
      w.create(srqn,
               {.eqn = static_cast<std::uint8_t>(srqn % 32), .uar = 9, .log_depth = 5, .pi = start, .head = start});
      bench.run(20);
    }
    const auto client = [&dut](unsigned i) {
      const auto set = [i](CData& port, bool on) {
        port = static_cast<CData>((port & ~(1u << i)) | unsigned{on} << i);
      };
      return ContextClient<rtl::SrqCtx>::Ports{
          [&dut, set](bool v) { set(dut.acq_valid_i, v); },
          [&dut, set](bool v) { set(dut.rel_valid_i, v); },
          [&dut, set](bool v) { set(dut.rel_write_i, v); },
          [&dut, i](unsigned index) {
            dut.acq_index_i = static_cast<SData>((dut.acq_index_i & ~(0xffu << (8 * i))) | index << (8 * i));
          },
          [&dut, i](const rtl::SrqCtx& c) { put_slice(dut.rel_data_i, i, c); },
          [&dut, i] { return (dut.acq_ready_o >> i & 1) != 0; },
          [&dut, i] { return (dut.ctx_valid_o >> i & 1) != 0; },
          [&dut, i] { return (dut.rel_ready_o >> i & 1) != 0; },
          [&dut] { return get<rtl::SrqCtx>(dut.ctx_data_o); }};
    };
    ContextClient<rtl::SrqCtx> admin(client(0), bench.rng), receive(client(1), bench.rng);
    admin.pause = 12;  // its next command comes many cycles later
    bool hit = false;
    std::optional<unsigned> tell;
    receive.on_release = [&](unsigned srqn) {
      if (hit) tell = srqn;
      hit = false;
    };
    bench.add(admin);
    bench.add(receive);
    // Half of the rounds with one SRQ alone; in every fourth nobody takes events for a while.
    for (unsigned step = 0; step < kSteps || !admin.idle() || !receive.idle() || !w.doorbells.idle(); ++step) {
      REQUIRE(step < 20 * kSteps);
      const bool busy = step < kSteps;
      // All of them; hardly anybody but the admin queue; doorbells without a pause.
      const double takes = round % 3 == 0 ? 0.5 : 0.03, posts = std::array{0.15, 0.003, 1.0}[round % 3];
      w.eqes.rate = round % 4 == 3 && busy ? 0.02 : 0.5;
      const unsigned srqn = numbers[round % 2 ? bench.uniform(0, numbers.size() - 1) : 0];
      auto& m = model[srqn];
      if (busy && w.doorbells.items.size() < 2 && bench.chance(posts)) {
        const auto posted = static_cast<std::uint16_t>(m.pi - m.head);
        m.pi = static_cast<std::uint16_t>(m.pi + bench.uniform(0, std::min(2u, 32u - posted)));
        w.post(srqn, 9, m.pi);
      }
      if (busy && admin.idle() && bench.chance(0.3)) {
        const auto limit = static_cast<std::uint16_t>(bench.uniform(1, 30));
        admin.push(srqn, [&m, limit](rtl::SrqCtx& c) {
          if (c.error || c.limit != 0) return false;
          ++m.armed;
          c.limit = limit;
          return true;
        });
      }
      if (busy && receive.idle() && bench.chance(takes)) {
        receive.push(srqn, [&hit, &taken, &m](rtl::SrqCtx& c) {
          if (c.error || c.head == c.pi) return false;
          ++taken;
          m.head = ++c.head;
          hit = static_cast<std::uint16_t>(c.pi - c.head) < c.limit;
          if (hit) c.limit_hit = 1;
          return true;
        });
      }
      dut.limit_valid_i = tell.has_value();
      if (tell) dut.limit_srq_i = static_cast<CData>(*std::exchange(tell, {}));
      // WQEs are lost towards the end, for then an SRQ gives no more; again and again, and told once.
      dut.error_valid_i = busy && step + 100 > kSteps && bench.chance(0.2);
      if (dut.error_valid_i) {
        const unsigned which = numbers[bench.uniform(0, numbers.size() - 1)];
        dut.error_srq_i = static_cast<CData>(which);
        model[which].lost = true;
      }
      bench.tick();
    }
    dut.error_valid_i = 0;
    dut.limit_valid_i = tell.has_value();
    if (tell) dut.limit_srq_i = static_cast<CData>(*tell);
    bench.tick();
    dut.limit_valid_i = 0;
    w.eqes.rate = 1;
    bench.run(400);
    for (const auto& e : w.eqes.items) {
      const bool error = e.event_type == raw(hw::EqeType::kSrqError);
      REQUIRE((error || e.event_type == raw(hw::EqeType::kSrqLimit)));
      auto& m = model.at(e.number);
      REQUIRE(e.eqn == e.number % 32);
      REQUIRE(m.errors == 0);  // an SRQ in error has no more events
      ++(error ? m.errors : m.limits);
    }
    for (const auto& [number, m] : model) {
      INFO("SRQ " << number);
      rtl::SrqCtx now;
      admin.push(number, [&now](rtl::SrqCtx& c) { return now = c, false; });
      while (!admin.idle()) bench.tick();
      REQUIRE((now.pi == m.pi && now.head == m.head));
      REQUIRE(now.error == m.lost);
      REQUIRE(m.errors == m.lost);
      if (!m.lost) {
        REQUIRE(m.limits + (now.limit != 0) == m.armed);
        if (now.limit != 0) REQUIRE(static_cast<std::uint16_t>(now.pi - now.head) >= now.limit);
      }
      limits += m.limits;
      errors += m.errors;
    }
    REQUIRE(w.refused == 0);
  }
  CHECK(limits > 100);
  CHECK(errors > 50);
  CHECK(taken > 1000);
}
