#include <Vevent_gate.h>

#include <map>
#include <optional>

#include "tests/rtl/completion_models.hpp"

// rtl/completion/event_gate.sv: at most one entry of each source in an EQ that the host has not consumed, and yet no
// event is lost; an event is taken whatever happens to the writes.
using namespace rnic;
using namespace rnic::test;

namespace {
constexpr unsigned kRound = 3 * 256 + 2;  // slots

/// What makes events, and the kinds that it tells apart, in the order in which they are written.
struct Source_ {
  unsigned entity, index;
  auto operator<=>(const Source_&) const = default;
};
Source_ source_of(hw::EqeType type, std::uint32_t number) {
  switch (type) {
    case hw::EqeType::kCompletion:
    case hw::EqeType::kCqError: return {0, number & 0xff};
    case hw::EqeType::kSrqError:
    case hw::EqeType::kSrqLimit: return {2, number & 0xff};
    case hw::EqeType::kDeviceFatal: return {3, 0};
    case hw::EqeType::kPortActive:
    case hw::EqeType::kPortError: return {3, 1};
    default: return {1, number & 0xff};
  }
}
unsigned rank(hw::EqeType type) {
  switch (type) {
    case hw::EqeType::kCqError:
    case hw::EqeType::kSrqError:
    case hw::EqeType::kSqDrained: return 1;
    case hw::EqeType::kQpFatal:
    case hw::EqeType::kQpRequestError:
    case hw::EqeType::kQpAccessError: return 2;
    case hw::EqeType::kLastWqeReached: return 3;
    default: return 0;
  }
}
constexpr std::array kTypes = {
    hw::EqeType::kCompletion,  hw::EqeType::kCompletion,     hw::EqeType::kCompletion,    hw::EqeType::kCqError,
    hw::EqeType::kQpFatal,     hw::EqeType::kQpRequestError, hw::EqeType::kQpAccessError, hw::EqeType::kCommEstablished,
    hw::EqeType::kSqDrained,   hw::EqeType::kLastWqeReached, hw::EqeType::kSrqError,      hw::EqeType::kSrqLimit,
    hw::EqeType::kDeviceFatal, hw::EqeType::kPortActive,     hw::EqeType::kPortError};

struct Slot {
  std::map<unsigned, rtl::EqeReq> due;  // by rank
  std::uint32_t number = 0;
  unsigned eqn = 0;
  std::optional<std::pair<unsigned, std::uint64_t>> out;  // EQ, index
};

struct World {
  explicit World(std::uint64_t s)
      : bench(s),
        events([this](bool v) { dut().event_valid_i = v; }, [this] { return dut().event_ready_o != 0; },
               [this](const rtl::EqeReq& e) { put(dut().event_data_i, e); }, bench.rng),
        monitor([this] { watch(); }) {
    bench.add(events);
    bench.add(monitor);
    dut().eqe_ready_i = dut().ci_valid_i = 0;
    dut().wr_kept_i = 1;
    bench.reset();
    bench.run_until([&] { return dut().ready_o != 0; }, kRound + 10, "ready");
    for (unsigned eqn = 0; eqn < 32; ++eqn) consume(eqn, 0, true);
  }
  Vevent_gate& dut() { return *bench.dut; }
  void tick() {
    // eqe_writer: takes an event after a few cycles.
    dut().eqe_ready_i = writing && bench.chance(0.3);
    dut().eqe_index_i = 0;
    if (dut().eqe_valid_o)
      dut().eqe_index_i = static_cast<std::uint32_t>(pi[get<rtl::EqeReq>(dut().eqe_data_o).eqn] & 0xffffff);
    dut().eqe_written_i = 1;
    writing = dut().eqe_valid_o;
    bench.tick();
    dut().ci_valid_i = 0;
  }
  void consume(unsigned eqn, std::uint64_t to, bool renew = false) {
    dut().ci_valid_i = 1;
    dut().ci_renew_i = renew;
    dut().ci_eqn_i = static_cast<std::uint8_t>(eqn);
    dut().ci_index_i = static_cast<std::uint32_t>(to & 0xffffff);
    ci[eqn] = to;
    tick();
  }
  void watch() {
    waited = dut().event_valid_i && !dut().event_ready_o ? waited + 1 : 0;
    longest = std::max(longest, waited);
    if (dut().event_valid_i && dut().event_ready_o) {
      const auto e = get<rtl::EqeReq>(dut().event_data_i);
      const auto type = static_cast<hw::EqeType>(e.event_type);
      auto& slot = slots[source_of(type, e.number)];
      if (e.number != slot.number || type == hw::EqeType::kCommEstablished) slot.due.clear();
      slot.number = e.number;
      slot.eqn = e.eqn;
      slot.due[rank(type)] = e;
    }
    if (dut().eqe_valid_o && dut().eqe_ready_i) {
      const auto e = get<rtl::EqeReq>(dut().eqe_data_o);
      auto& slot = slots[source_of(static_cast<hw::EqeType>(e.event_type), e.number)];
      REQUIRE(!slot.due.empty());
      auto expected = slot.due.begin()->second;
      expected.eqn = static_cast<std::uint8_t>(slot.eqn);
      if (slot.due.begin()->first != 2 && source_of(static_cast<hw::EqeType>(e.event_type), 0).entity != 3)
        expected.detail = 0;
      REQUIRE(e == expected);
      // The one before has been consumed.
      if (slot.out) REQUIRE(slot.out->second < ci[slot.out->first]);
      slot.out = std::pair(unsigned{e.eqn}, pi[e.eqn]++);
      slot.due.erase(slot.due.begin());
      ++written;
    }
  }
  rtl::EqeReq event(hw::EqeType type, std::uint32_t number, unsigned eqn) {
    rtl::EqeReq e;
    e.event_type = static_cast<std::uint8_t>(type);
    e.number = number;
    e.eqn = static_cast<std::uint8_t>(eqn);
    // Only errors of QPs have a detail.
    if (rank(type) == 2) e.detail = static_cast<std::uint32_t>(bench.uniform(0, 255));
    return e;
  }
  void quiet() {
    bench.run_until([&] { return events.idle(); }, 10000, "events taken");
    for (int i = 0; i < 60; ++i) tick();
  }
  std::size_t waiting() const {
    std::size_t n = 0;
    for (const auto& [source, slot] : slots) n += slot.due.size();
    return n;
  }

  Bench<Vevent_gate> bench;
  Source<rtl::EqeReq> events;
  Monitor monitor;
  std::map<Source_, Slot> slots;
  std::array<std::uint64_t, 32> pi{}, ci{};
  bool writing = false;
  unsigned waited = 0, longest = 0, written = 0;
};
}  // namespace

TEST_CASE("event_gate: an event goes at once, the next of its source when the host has consumed it", "[rtl]") {
  World w(seed());
  const auto cq = w.event(hw::EqeType::kCompletion, 0x1234'05, 3);
  w.events.push(cq);
  w.quiet();
  CHECK(w.written == 1);
  for (int i = 0; i < 5; ++i) w.events.push(cq);
  w.quiet();
  for (unsigned i = 0; i < 3 * kRound; ++i) w.tick();
  CHECK(w.written == 1);
  CHECK(w.waiting() == 1);
  // Another source, the consumption of another EQ, and of nothing, do not matter to it.
  w.events.push(w.event(hw::EqeType::kCompletion, 6, 3));
  w.quiet();
  CHECK(w.written == 2);
  w.consume(4, 0);
  w.consume(3, 0);
  for (unsigned i = 0; i < 3 * kRound; ++i) w.tick();
  CHECK(w.written == 2);
  w.consume(3, 1);
  for (unsigned i = 0; i < kRound + 60; ++i) w.tick();
  CHECK(w.written == 3);
  CHECK(w.waiting() == 0);
}

TEST_CASE("event_gate: whatever happens to the writes, events are taken, and written when there is a place", "[rtl]") {
  World w(seed());
  w.dut().wr_kept_i = 0;
  for (unsigned i = 0; i < 256; ++i) w.events.push(w.event(hw::EqeType::kCompletion, i, i % 32));
  for (unsigned i = 0; i < 8000; ++i) w.tick();
  CHECK(w.events.idle());
  CHECK(w.written == 0);
  CHECK(w.longest < 20);  // cycles
  w.dut().wr_kept_i = 1;
  for (unsigned i = 0; i < 30 * kRound; ++i) w.tick();
  CHECK(w.written == 256);
}

TEST_CASE("event_gate: a source that never stops holds up nobody, and fills nothing", "[rtl]") {
  World w(seed());
  // One entry of the victim is out; its next event waits while another source floods.
  w.events.push(w.event(hw::EqeType::kCompletion, 200, 0));
  w.quiet();
  w.events.push(w.event(hw::EqeType::kCompletion, 200, 0));
  w.quiet();
  CHECK(w.written == 1);
  const auto flood = [&](unsigned cycles) {
    for (unsigned i = 0; i < cycles; ++i) {
      if (w.events.items.size() < 2) w.events.push(w.event(hw::EqeType::kCompletion, 7, 0));
      w.tick();
    }
  };
  flood(20000);
  CHECK(w.written == 2);
  w.consume(0, 1);
  flood(4 * kRound);  // 16 us
  CHECK(w.written == 3);
  CHECK(w.longest < 60);  // the entries of others that are written meanwhile
  CHECK(w.slots.at(source_of(hw::EqeType::kCompletion, 200)).due.empty());
}

TEST_CASE("event_gate: a new EQ knows nothing of the one before", "[rtl]") {
  World w(seed());
  for (unsigned life = 0; life < 40; ++life) {
    // One entry out, one event waiting; the EQ goes, and both with it.
    w.events.push(w.event(hw::EqeType::kCqError, 9, 17));
    w.quiet();
    CHECK(w.written == 2 * life + 1);
    w.events.push(w.event(hw::EqeType::kCompletion, 9, 17));
    w.quiet();
    CHECK(w.written == 2 * life + 1);
    for (auto& [source, slot] : w.slots) slot.due.clear(), slot.out.reset();
    w.pi[17] = 0;
    w.consume(17, 0, true);
    for (unsigned i = 0; i < kRound + 60; ++i) w.tick();
    CHECK(w.written == 2 * life + 1);
    w.events.push(w.event(hw::EqeType::kSrqLimit, life, 17));
    w.quiet();
    CHECK(w.written == 2 * life + 2);
  }
}

TEST_CASE("event_gate: random events, consumption and back-pressure", "[rtl]") {
  World w(seed());
  auto& bench = w.bench;
  std::array<std::uint16_t, 256> tag{};
  for (auto& p : w.pi) p = bench.chance(0.5) ? (1ULL << 24) - bench.uniform(1, 300) : 0;
  for (unsigned eqn = 0; eqn < 32; ++eqn) w.consume(eqn, w.pi[eqn], true);
  for (unsigned step = 0; step < 120'000; ++step) {
    if (step % 500 == 0) {
      w.dut().wr_kept_i = !bench.chance(0.2);
      w.events.rate = bench.chance(0.5) ? 1 : 0.05;
    }
    if (w.events.items.size() < 3 && bench.chance(0.3)) {
      const unsigned index = static_cast<unsigned>(bench.chance(0.7) ? bench.uniform(0, 3) : bench.uniform(0, 255));
      if (bench.chance(0.02)) ++tag[index];
      const auto type = kTypes[bench.uniform(0, kTypes.size() - 1)];
      const bool device = source_of(type, 0).entity == 3;
      const std::uint32_t number = device ? type != hw::EqeType::kDeviceFatal : index | std::uint32_t{tag[index]} << 8;
      w.events.push(w.event(type, number, device ? 0 : (index + tag[index]) % 4 * 10));
    }
    if (bench.chance(0.02)) {
      const auto eqn = static_cast<unsigned>(bench.uniform(0, 3) * 10);
      w.consume(eqn, bench.uniform(w.ci[eqn], w.pi[eqn]));
    } else {
      w.tick();
    }
  }
  w.dut().wr_kept_i = 1;
  for (int round = 0; round < 6; ++round) {
    for (unsigned eqn = 0; eqn < 32; ++eqn) w.consume(eqn, w.pi[eqn]);
    for (unsigned i = 0; i < 8 * kRound; ++i) w.tick();
  }
  CHECK(w.waiting() == 0);
  CHECK(w.written > 2000);
  CHECK(w.longest < 150);
}
