#include <Vuar_pages.h>

#include <algorithm>
#include <map>

#include "driver/generated/host_interface.hpp"
#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/host/uar_pages.sv and wqe_window.sv: doorbells to their owners, WQEs out of the windows.
using namespace rnic::test;
namespace hw = rnic::hw;
using rnic::rtl::Doorbell;
using rnic::rtl::UarReq;
using rnic::rtl::WqePush;

namespace {
using Wqe = std::vector<std::uint8_t>;

UarReq word_write(unsigned uar, std::uint32_t address, std::uint64_t value) {
  UarReq request;
  request.uar = static_cast<std::uint8_t>(uar);
  request.addr = static_cast<std::uint16_t>(address);
  std::memcpy(request.data.data() + address % 64, &value, 8);
  return request;
}
/// 8, 16, 32 or 64 bytes, in their lanes.
UarReq piece_write(unsigned uar, std::uint32_t address, const std::uint8_t* bytes, unsigned log_words) {
  UarReq request;
  request.uar = static_cast<std::uint8_t>(uar);
  request.addr = static_cast<std::uint16_t>(address);
  request.log_words = static_cast<std::uint8_t>(log_words);
  std::memcpy(request.data.data() + address % 64, bytes, 8u << log_words);
  return request;
}
UarReq burst_write(unsigned uar, std::uint32_t address, const std::uint8_t* bytes) {
  return piece_write(uar, address, bytes, 3);
}

struct World {
  explicit World(std::uint64_t seed_value, double rate = 1.0)
      : bench(seed_value),
        requests([this](bool v) { bench.dut->uar_req_valid_i = v; }, [this] { return bench.dut->uar_req_ready_o != 0; },
                 [this](const UarReq& item) { put(bench.dut->uar_req_data_i, item); }, bench.rng, rate),
        pushes([this] { return bench.dut->push_valid_o != 0; }, [this](bool r) { bench.dut->push_ready_i = r; },
               [this] { return get<WqePush>(bench.dut->push_data_o); }, bench.rng, rate) {
    for (unsigned i = 0; i < 5; ++i) {
      doorbells.push_back(std::make_unique<Sink<Doorbell>>(
          [this, i] { return (bench.dut->doorbell_valid_o >> i & 1) != 0; },
          [this, i](bool r) {
            bench.dut->doorbell_ready_i =
                static_cast<std::uint8_t>((bench.dut->doorbell_ready_i & ~(1u << i)) | unsigned{r} << i);
          },
          [this, i] { return get_slice<Doorbell>(bench.dut->doorbell_data_o, i); }, bench.rng, rate));
    }
    bench.dut->uar_req_valid_i = 0;
    bench.dut->enable_i = 1;
    bench.reset();
    bench.add(requests);
    bench.add(pushes);
    for (auto& d : doorbells) bench.add(*d);
  }
  void settle() {
    bench.run_until([&] { return requests.idle(); }, 200000, "end of the requests");
    for (auto& d : doorbells) d->rate = 1;
    pushes.rate = 1;
    bench.run(40);
  }
  /// A WQE of `units` 16-byte units with random content.
  Wqe wqe(unsigned units) {
    Wqe bytes(256);
    for (auto& b : bytes) b = static_cast<std::uint8_t>(bench.rng());
    bytes[7] = static_cast<std::uint8_t>(units);  // wqe_control.size
    return bytes;
  }
  /// The next pushed WQE must be this one.
  void expect(unsigned uar, const Wqe& wqe, unsigned units) {
    for (unsigned at = 0; at < 16 * units; at += 64) {
      REQUIRE(!pushes.items.empty());
      const auto beat = pushes.items.front();
      pushes.items.pop_front();
      REQUIRE(beat.uar == uar);
      REQUIRE(beat.whole == 1);
      REQUIRE(beat.last == (at + 64 >= 16 * units));
      REQUIRE(std::memcmp(beat.data.data(), wqe.data() + at, std::min(64u, 16 * units - at)) == 0);
    }
  }
  /// The next one must be told by its first word.
  void expect_word(unsigned uar, const Wqe& wqe) {
    REQUIRE(!pushes.items.empty());
    const auto beat = pushes.items.front();
    pushes.items.pop_front();
    REQUIRE(beat.uar == uar);
    REQUIRE(beat.last == 1);
    REQUIRE(beat.whole == 0);
    REQUIRE(std::memcmp(beat.data.data(), wqe.data(), 8) == 0);
  }
  Bench<Vuar_pages> bench;
  Source<UarReq> requests;
  Sink<WqePush> pushes;
  std::vector<std::unique_ptr<Sink<Doorbell>>> doorbells;
};
}  // namespace

TEST_CASE("uar_pages: doorbells reach their owners in order, other writes nobody", "[rtl]") {
  World world(seed(), 0.5);
  std::array<std::deque<Doorbell>, 5> expected;
  for (int i = 0; i < 3000; ++i) {
    const auto uar = static_cast<unsigned>(world.bench.uniform(1, 127));
    std::uint32_t address = static_cast<std::uint32_t>(world.bench.uniform(0, 0x1ff)) * 8;
    if (world.bench.chance(0.7)) address &= 0x3f;
    if (address / 256 == hw::uar::kWqeWindow / 256) continue;
    const std::uint64_t value = world.bench.rng();
    world.requests.push(word_write(uar, address, value));
    if (address < 0x28)
      expected[address / 8].push_back(Doorbell{.uar = static_cast<std::uint8_t>(uar), .value = value});
  }
  world.settle();
  for (unsigned i = 0; i < 5; ++i) CHECK(world.doorbells[i]->items == expected[i]);
  CHECK(world.pushes.items.empty());
}

TEST_CASE("uar_pages: a line that is written over the doorbells rings none", "[rtl]") {
  World world(seed());
  const Wqe line = world.wqe(4);
  for (const std::uint32_t address : {0x000u, 0x020u}) {
    world.requests.push(piece_write(9, address, line.data(), 1));
    world.requests.push(piece_write(9, address, line.data(), 2));
  }
  world.requests.push(burst_write(9, 0, line.data()));
  world.settle();
  for (auto& d : world.doorbells) CHECK(d->items.empty());
  CHECK(world.pushes.items.empty());
}

TEST_CASE("uar_pages: nothing passes while the device is not enabled", "[rtl]") {
  World world(seed());
  world.bench.dut->enable_i = 0;
  const Wqe wqe = world.wqe(4);
  for (std::uint32_t a = 0; a < 0x28; a += 8) world.requests.push(word_write(3, a, 1));
  world.requests.push(burst_write(3, hw::uar::kWqeWindow, wqe.data()));
  world.settle();
  for (auto& d : world.doorbells) CHECK(d->items.empty());
  CHECK(world.pushes.items.empty());
}

TEST_CASE("uar_pages: a doorbell that waits for its owner is lost when the device is disabled", "[rtl]") {
  // host_interface.md, Quiescing: doorbells that were not taken yet are lost.
  World world(seed());
  for (unsigned i = 0; i < 5; ++i) {
    INFO("doorbell " << i);
    world.doorbells[i]->rate = 0;
    for (std::uint64_t n = 0; n < 4; ++n) world.requests.push(word_write(3, 8 * i, n));
    world.bench.run(10);
    REQUIRE_FALSE(world.requests.idle());
    world.bench.dut->enable_i = 0;
    world.settle();
    world.bench.dut->enable_i = 1;
    world.requests.push(word_write(4, 8 * i, 9));
    world.settle();
    const std::deque<Doorbell> taken{{.uar = 3, .value = 0}, {.uar = 3, .value = 1}, {.uar = 4, .value = 9}};
    CHECK(world.doorbells[i]->items == taken);
  }
}

TEST_CASE("uar_pages: a WQE that waits for the window is lost when the device is disabled", "[rtl]") {
  World world(seed());
  const auto window = hw::uar::kWqeWindow;
  const Wqe wqe = world.wqe(4), other = world.wqe(4);
  world.pushes.rate = 0;
  for (int n = 0; n < 5; ++n) world.requests.push(burst_write(3, window, wqe.data()));
  world.bench.run(20);
  REQUIRE_FALSE(world.requests.idle());
  world.bench.dut->enable_i = 0;
  world.settle();
  world.bench.dut->enable_i = 1;
  world.requests.push(burst_write(4, window, other.data()));
  world.settle();
  // Three were taken: two wait for their owner, one in the window.
  for (int n = 0; n < 3; ++n) world.expect(3, wqe, 4);
  world.expect(4, other, 4);
  CHECK(world.pushes.items.empty());
}

TEST_CASE("uar_pages: disabled and enabled at any time, a write is passed on whole or not at all", "[rtl]") {
  World world(seed(), 0.5);
  auto& bench = world.bench;
  std::uint64_t written = 0;
  for (int step = 0; step < 4000; ++step) {
    const auto uar = static_cast<unsigned>(bench.uniform(1, 5));
    if (bench.chance(0.5)) {
      world.requests.push(word_write(uar, 8 * static_cast<std::uint32_t>(bench.uniform(0, 4)), written++));
    } else {
      Wqe wqe = world.wqe(4);
      std::memcpy(wqe.data() + 8, &written, 8);
      ++written;
      world.requests.push(burst_write(uar, hw::uar::kWqeWindow, wqe.data()));
    }
    if (bench.chance(0.2)) bench.dut->enable_i = bench.dut->enable_i == 0;
    bench.run(static_cast<unsigned>(bench.uniform(0, 3)));
  }
  world.settle();
  std::size_t rung = 0;
  for (auto& d : world.doorbells) {
    rung += d->items.size();
    for (std::size_t n = 1; n < d->items.size(); ++n) CHECK(d->items[n - 1].value < d->items[n].value);
  }
  std::uint64_t last = 0;
  for (std::size_t n = 0; n < world.pushes.items.size(); ++n) {
    const auto& beat = world.pushes.items[n];
    CHECK(beat.whole == 1);
    CHECK(beat.last == 1);
    std::uint64_t number = 0;
    std::memcpy(&number, beat.data.data() + 8, 8);
    if (n != 0) CHECK(number > last);
    last = number;
  }
  // Both halves of the time are there.
  CHECK(rung + world.pushes.items.size() > written / 4);
  CHECK(rung + world.pushes.items.size() < written * 3 / 4);
}

TEST_CASE("uar_pages: WQEs of every size, in aligned pieces of 8 to 64 bytes, from many UARs at once", "[rtl]") {
  World world(seed(), 0.8);
  auto& bench = world.bench;
  struct Open {
    Wqe wqe;
    unsigned units = 0, done = 0;
    bool beyond = false;  ///< More was written behind the WQE before
  };
  std::map<unsigned, Open> open;
  struct Posted {
    unsigned uar;
    Wqe wqe;
    unsigned units;
    bool whole;
  };
  std::vector<Posted> posted;
  for (int step = 0; step < 20000; ++step) {
    const auto uar = static_cast<unsigned>(bench.chance(0.5) ? bench.uniform(1, 4) : bench.uniform(1, 127));
    auto& o = open[uar];
    if (o.done == 0) {
      o.units = static_cast<unsigned>(bench.uniform(1, 16));
      o.wqe = world.wqe(o.units);
    }
    const std::uint32_t address = hw::uar::kWqeWindow + o.done;
    // The largest aligned piece, or any smaller one.
    unsigned log_words = 3;
    while (o.done % (8u << log_words) != 0 || (log_words != 0 && bench.chance(0.4))) --log_words;
    world.requests.push(piece_write(uar, address, o.wqe.data() + o.done, log_words));
    o.done += 8u << log_words;
    if (o.done == 8u << log_words && o.beyond) {
      // It may be a piece of this one that came first: one that is not here at once is told by its first word.
      o.beyond = false;
      if (o.done < 16 * o.units) {
        posted.push_back({uar, o.wqe, o.units, false});
        o.done = 0;
        continue;
      }
    }
    if (o.done >= 16 * o.units) {
      posted.push_back({uar, o.wqe, o.units, true});
      // What a driver writes beyond the WQE, in whole lines, changes nothing.
      while (o.done % 64 != 0 && bench.chance(0.5)) {
        world.requests.push(word_write(uar, hw::uar::kWqeWindow + o.done, bench.rng()));
        o.done += 8;
        o.beyond = true;
      }
      o.done = 0;
    }
  }
  world.settle();
  REQUIRE(posted.size() > 1000);
  for (const auto& p : posted) p.whole ? world.expect(p.uar, p.wqe, p.units) : world.expect_word(p.uar, p.wqe);
  CHECK(world.pushes.items.empty());
}

TEST_CASE("uar_pages: no WQE is lost whatever the order of the pieces of its lines (decisions 52)", "[rtl]") {
  World world(seed(), 0.8);
  auto& bench = world.bench;
  struct Posted {
    Wqe wqe;
    unsigned units;
  };
  std::map<unsigned, std::deque<Posted>> posted;
  for (int i = 0; i < 3000; ++i) {
    const auto uar = static_cast<unsigned>(bench.uniform(1, 3));
    const auto units = static_cast<unsigned>(bench.uniform(1, 16));
    const Wqe wqe = world.wqe(units);
    // Lines one after the other, as a fence between bursts sees to.
    for (std::uint32_t line = 0; line < 16 * units; line += 64) {
      std::vector<std::pair<std::uint32_t, unsigned>> pieces{{0, 3}};
      for (std::size_t at = 0; at < pieces.size();) {
        auto& [from, log_words] = pieces[at];
        if (log_words == 0 || bench.chance(0.5)) {
          ++at;
          continue;
        }
        --log_words;
        pieces.emplace_back(from + (8u << log_words), log_words);
      }
      std::shuffle(pieces.begin(), pieces.end(), bench.rng);
      for (const auto& [from, log_words] : pieces) {
        world.requests.push(piece_write(uar, hw::uar::kWqeWindow + line + from, wqe.data() + line + from, log_words));
      }
    }
    posted[uar].push_back({wqe, units});
  }
  world.settle();
  unsigned whole = 0, told = 0;
  while (!world.pushes.items.empty()) {
    const unsigned uar = world.pushes.items.front().uar;
    REQUIRE(!posted[uar].empty());
    const auto next = posted[uar].front();
    posted[uar].pop_front();
    if (world.pushes.items.front().whole) {
      ++whole;
      world.expect(uar, next.wqe, next.units);
    } else {
      ++told;
      world.expect_word(uar, next.wqe);
    }
  }
  for (const auto& [uar, left] : posted) CHECK(left.empty());
  CHECK(whole > 500);
  CHECK(told > 500);
}

TEST_CASE("uar_pages: after a gap, a step back or a beginning anew a WQE is told by its first word", "[rtl]") {
  World world(seed());
  const auto window = hw::uar::kWqeWindow;
  auto words = [&](unsigned uar, const Wqe& wqe, std::initializer_list<unsigned> offsets) {
    for (unsigned at : offsets) {
      std::uint64_t value = 0;
      std::memcpy(&value, wqe.data() + at, 8);
      world.requests.push(word_write(uar, window + at, value));
    }
  };
  const Wqe two = world.wqe(2), eight = world.wqe(8);
  words(5, two, {0, 8, 24, 16, 24});  // a gap
  words(5, two, {8, 16, 24});         // no beginning
  words(5, two, {0, 8, 8, 16, 24});   // a word twice
  world.requests.push(burst_write(5, window, eight.data()));
  world.requests.push(burst_write(5, window + 128, eight.data()));  // a line left out
  world.requests.push(burst_write(5, window + 64, eight.data()));
  world.requests.push(word_write(5, hw::uar::kSendDoorbell, 77));
  world.requests.push(piece_write(5, window, eight.data(), 2));
  world.requests.push(piece_write(5, window + 48, eight.data(), 1));  // 16 bytes left out
  world.requests.push(piece_write(5, window + 32, eight.data(), 1));
  words(6, two, {0, 8, 16});  // not finished, then begun again
  words(6, eight, {0, 8, 16});
  words(6, two, {0, 8, 16, 24});
  world.settle();
  world.expect_word(5, two);
  world.expect_word(5, two);
  world.expect_word(5, eight);
  world.expect_word(5, eight);
  world.expect_word(6, two);
  world.expect_word(6, eight);
  world.expect(6, two, 2);
  CHECK(world.pushes.items.empty());
  CHECK(world.doorbells[0]->items.size() == 1);
}

TEST_CASE("uar_pages: a WQE of a size that no WQE has is told at once, by its first word (decisions 52)", "[rtl]") {
  World world(seed());
  const auto window = hw::uar::kWqeWindow;
  const Wqe eight = world.wqe(8), two = world.wqe(2);
  for (const unsigned units : {0u, 17u, 34u, 128u, 255u}) {
    INFO(units << " units");
    const Wqe wrong = world.wqe(units);
    world.requests.push(burst_write(5, window, wrong.data()));
    world.requests.push(piece_write(5, window, wrong.data(), 2));
    // What is behind it is of no WQE, and may be of the next one.
    for (unsigned at = 0; at < 64; at += 8) world.requests.push(piece_write(5, window + at, wrong.data() + at, 0));
    // It ends one that was not finished.
    world.requests.push(burst_write(6, window, eight.data()));
    world.requests.push(burst_write(6, window, wrong.data()));
    world.requests.push(burst_write(6, window, two.data()));
    world.settle();
    for (int n = 0; n < 3; ++n) world.expect_word(5, wrong);
    world.expect_word(6, eight);
    world.expect_word(6, wrong);
    world.expect(6, two, 2);
    CHECK(world.pushes.items.empty());
  }
}

TEST_CASE("uar_pages: latency of a doorbell and of a WQE in one burst", "[rtl]") {
  World world(seed());
  const Wqe wqe = world.wqe(3);
  world.bench.run(5);
  world.requests.push(burst_write(1, hw::uar::kWqeWindow, wqe.data()));
  const auto start = world.bench.cycle;
  world.bench.run_until([&] { return world.bench.dut->push_valid_o != 0; }, 20, "push");
  CHECK(world.bench.cycle - start == 2);
  world.bench.run(5);
  // One of 32 bytes in a write of that size.
  const Wqe short_one = world.wqe(2);
  world.requests.push(piece_write(1, hw::uar::kWqeWindow, short_one.data(), 2));
  world.settle();
  world.expect(1, wqe, 3);
  world.expect(1, short_one, 2);
  world.bench.run(5);
  world.requests.push(word_write(1, hw::uar::kSendDoorbell, 1));
  const auto again = world.bench.cycle;
  world.bench.run_until([&] { return (world.bench.dut->doorbell_valid_o & 1) != 0; }, 20, "doorbell");
  CHECK(world.bench.cycle - again == 1);
}
