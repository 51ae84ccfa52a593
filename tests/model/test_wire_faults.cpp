#include <catch2/catch.hpp>
#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>

#include "model/wire_direction.hpp"
#include "tests/support/roce_frame.hpp"

using namespace rnic::model;
using rnic::test::Bytes;

namespace {

constexpr Picoseconds kNs = 1000;

WireFault fault_of(int i) { return static_cast<WireFault>(i); }
std::size_t index(WireFault fault) { return static_cast<std::size_t>(fault); }

/// Frame number `number`: its PSN.
Bytes frame(std::uint32_t number, std::size_t payload = 100, std::uint8_t opcode = 4, std::uint32_t qpn = 9) {
  rnic::test::RoceFields f;
  f.opcode = opcode;
  f.dest_qpn = qpn;
  f.psn = number;
  f.payload.assign(payload, static_cast<std::uint8_t>(number));
  return rnic::test::roce_frame(f);
}
/// All ones for a frame that was cut before its PSN.
std::uint32_t number_of(const Bytes& bytes) {
  return bytes.size() < 54 ? ~0u : static_cast<std::uint32_t>(rnic::test::read_big(bytes, 51, 3));
}

struct Arrival {
  Picoseconds time;
  Bytes bytes;
  bool bad;
};

/// One direction, as a sender and a receiver at 250 MHz use it.
class Link {
 public:
  explicit Link(const WireOptions& options) : direction(0, options) {}
  explicit Link(const WireFaultOptions& faults, double delay_ns = 5000, std::uint64_t seed = 1)
      : direction(0, WireOptions{100, delay_ns, {faults, {}}, seed}) {}

  FrameRecord send(const Bytes& bytes, bool bad = false, bool injected = false) {
    for (std::size_t done = 0;; done += kBeatBytes) {
      FrameBeat beat;
      const std::size_t part = std::min(kBeatBytes, bytes.size() - done);
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(done), part, beat.data.begin());
      beat.bytes = static_cast<std::uint8_t>(part);
      beat.last = done + part == bytes.size();
      beat.err = beat.last && bad;
      while (!direction.can_transmit(now)) step();
      const auto record = direction.transmit(beat, now, injected);
      step();
      if (record) return *record;
    }
  }
  void idle(Picoseconds time) {
    for (const Picoseconds end = now + time; now < end;) step();
  }
  std::vector<std::uint32_t> numbers() const {
    std::vector<std::uint32_t> all;
    for (const auto& arrival : arrivals) all.push_back(number_of(arrival.bytes));
    return all;
  }

  WireDirection direction;
  Picoseconds now = 0;
  std::vector<Arrival> arrivals;

 private:
  void step() {
    now += 4 * kNs;
    FrameBeat beat;
    while (direction.receive(beat, now)) {
      partial_.insert(partial_.end(), beat.data.begin(), beat.data.begin() + beat.bytes);
      if (!beat.last) continue;
      arrivals.push_back({now, std::exchange(partial_, {}), beat.err});
    }
  }
  Bytes partial_;
};

/// Sends `count` frames of different lengths and waits until all have come. Frames are in Link::arrivals.
void send_many(Link& link, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) link.send(frame(i, i * 37 % 1500));
  link.idle(100'000 * kNs);
}

WireRule rule(WireFault fault, std::uint64_t nth, std::uint64_t count = 1, FrameMatch match = {}) {
  WireRule rule;
  rule.fault = fault;
  rule.match = match;
  rule.nth = nth;
  rule.count = count;
  return rule;
}

}  // namespace

TEST_CASE("with faults on and none hitting, frames arrive when they do without") {
  WireFaultOptions rare;
  rare.rules = {rule(WireFault::kDrop, 1'000'000)};
  Link plain({}, 5000), judged(rare, 5000);
  for (auto* link : {&plain, &judged}) send_many(*link, 50);
  REQUIRE(plain.arrivals.size() == 50);
  REQUIRE(judged.arrivals.size() == 50);
  for (std::size_t i = 0; i < 50; ++i) {
    CHECK(judged.arrivals[i].time == plain.arrivals[i].time);
    CHECK(judged.arrivals[i].bytes == plain.arrivals[i].bytes);
  }
}

TEST_CASE("without delay a judged frame arrives as through a store-and-forward switch") {
  WireFaultOptions rare;
  rare.rules = {rule(WireFault::kDrop, 1'000'000)};
  Link link(rare, 0);
  const auto record = link.send(frame(1, 1000));
  link.idle(1000 * kNs);
  REQUIRE(link.arrivals.size() == 1);
  const Picoseconds due = record.end + (record.end - record.start);
  CHECK(link.arrivals[0].time >= due);
  CHECK(link.arrivals[0].time < due + 4 * kNs);
}

TEST_CASE("drop: the chance holds, nothing else is lost, and the record says which") {
  WireFaultOptions faults;
  faults.drop = 0.1;
  Link link(faults);
  std::vector<std::uint32_t> expected;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    if (link.send(frame(i)).faults == 0) expected.push_back(i);
  }
  link.idle(10'000 * kNs);
  CHECK(link.numbers() == expected);
  const auto dropped = link.direction.faults()[index(WireFault::kDrop)];
  CHECK(dropped + expected.size() == 5000);
  CHECK(dropped > 400);
  CHECK(dropped < 600);
}

TEST_CASE("a rule with a chance hits some of the frames that match, and no others; one seed, one choice") {
  WireFaultOptions faults;
  faults.rules = {rule(WireFault::kDrop, 101, WireRule::kAll, {.dest_qpn = 1})};
  faults.rules[0].probability = 0.1;
  const auto lost_with = [&](std::uint64_t seed) {
    Link link(faults, 5000, seed);
    std::vector<std::uint32_t> lost;
    for (std::uint32_t i = 0; i < 4000; ++i) {
      const std::uint32_t qpn = i % 2;
      if (link.send(frame(i, 10, 4, qpn)).faults != 0) lost.push_back(i);
    }
    return lost;
  };
  const auto lost = lost_with(1);
  CHECK(lost.size() > 140);
  CHECK(lost.size() < 240);
  CHECK(std::all_of(lost.begin(), lost.end(), [](std::uint32_t number) { return number % 2 == 1 && number > 200; }));
  CHECK(lost == lost_with(1));
  CHECK(lost != lost_with(2));
}

TEST_CASE("a rule hits the nth frame that matches, and count of them") {
  WireFaultOptions faults;
  faults.rules = {rule(WireFault::kDrop, 3, 1, {.opcode = 8}), rule(WireFault::kDrop, 2, 2, {.dest_qpn = 5}),
                  rule(WireFault::kDrop, 1, 100, {.psn = 77})};
  Link link(faults);
  std::vector<std::uint32_t> expected;
  for (std::uint32_t i = 0; i < 40; ++i) {
    const std::uint8_t opcode = i % 4 == 0 ? 8 : 4;
    const std::uint32_t qpn = i % 10 == 1 ? 5 : 9;
    link.send(frame(i, 64, opcode, qpn));
    if (i != 8 && i != 11 && i != 21) expected.push_back(i);
  }
  link.send(frame(77));
  link.send(frame(78));
  link.send(frame(77));
  expected.push_back(78);
  link.send(Bytes(100, 1));  // no RoCEv2 packet
  link.idle(10'000 * kNs);
  REQUIRE(link.arrivals.size() == expected.size() + 1);
  link.arrivals.pop_back();
  CHECK(link.numbers() == expected);
}

TEST_CASE("a rule without conditions counts every frame; one that is armed later counts from then on") {
  Link link(WireFaultOptions{});
  link.send(frame(1));
  link.direction.arm(rule(WireFault::kDrop, 2));
  for (std::uint32_t i = 2; i < 6; ++i) link.send(frame(i));
  link.idle(10'000 * kNs);
  CHECK(link.numbers() == std::vector<std::uint32_t>{1, 2, 4, 5});
}

TEST_CASE("duplicate: the copy follows at once, or after so many frames") {
  WireFaultOptions faults;
  faults.rules = {rule(WireFault::kDuplicate, 2)};
  faults.rules.push_back(rule(WireFault::kDuplicate, 5));
  faults.rules.back().parameters.duplicate_frames = 2;
  Link link(faults);
  for (std::uint32_t i = 1; i < 9; ++i) link.send(frame(i, 100 * i));
  link.idle(10'000 * kNs);
  CHECK(link.numbers() == std::vector<std::uint32_t>{1, 2, 2, 3, 4, 5, 6, 7, 5, 8});
  for (const auto& arrival : link.arrivals) {
    const auto number = number_of(arrival.bytes);
    CHECK(arrival.bytes == frame(number, 100 * number));
  }
  CHECK(link.direction.faults()[index(WireFault::kDuplicate)] == 2);
}

TEST_CASE("reorder: exactly so many later frames pass") {
  for (const std::uint32_t frames : {1u, 2u, 5u}) {
    WireFaultOptions faults;
    faults.rules = {rule(WireFault::kReorder, 3)};
    faults.rules[0].parameters.reorder_frames = frames;
    Link link(faults);
    std::vector<std::uint32_t> expected;
    for (std::uint32_t i = 1; i < 12; ++i) {
      link.send(frame(i));
      if (i != 3) expected.push_back(i);
      if (i == 3 + frames) expected.push_back(3);
    }
    link.idle(10'000 * kNs);
    CHECK(link.numbers() == expected);
  }
}

TEST_CASE("a held frame is not lost when nothing follows: it comes when its time is over") {
  for (const double delay_ns : {0.0, 5000.0}) {
    WireFaultOptions faults;
    faults.rules = {rule(WireFault::kReorder, 1), rule(WireFault::kDuplicate, 1)};
    for (auto& each : faults.rules) each.parameters.reorder_hold_ns = each.parameters.duplicate_hold_ns = 3000;
    faults.rules[1].parameters.duplicate_frames = 7;
    Link link(faults, delay_ns);
    const auto record = link.send(frame(1));
    CHECK(link.direction.under_way() == 2);
    link.idle(20'000 * kNs);
    CHECK(link.numbers() == std::vector<std::uint32_t>{1, 1});
    CHECK(link.direction.under_way() == 0);
    const auto length = record.end - record.start;
    const Picoseconds due = std::max(record.start + from_ns(delay_ns), record.end) + 3000 * kNs + length;
    CHECK(link.arrivals[0].time >= due);
    CHECK(link.arrivals[0].time < due + 4 * kNs);
  }
}

TEST_CASE("a frame whose time is over goes before frames that are sent later") {
  WireFaultOptions faults;
  faults.rules = {rule(WireFault::kReorder, 1)};
  faults.rules[0].parameters = {.reorder_frames = 100, .reorder_hold_ns = 1000};
  Link link(faults, 5000);
  link.send(frame(1));
  link.send(frame(2));
  link.idle(2000 * kNs);  // less than the delay of the wire: nothing has arrived yet
  link.send(frame(3));
  link.idle(10'000 * kNs);
  CHECK(link.numbers() == std::vector<std::uint32_t>{2, 1, 3});
}

TEST_CASE(
    "corrupt: so many bits, all different, or the one that is asked for; the MAC sees it only with a bad check "
    "sequence") {
  WireFaultOptions faults;
  for (std::uint64_t i = 1; i <= 3; ++i) faults.rules.push_back(rule(WireFault::kCorrupt, i));
  faults.rules[0].parameters.corrupt_bits = 60;
  faults.rules[1].parameters.corrupt_bit = 8 * 20 + 3;
  faults.rules[1].parameters.corrupt_bad_fcs = true;
  faults.rules[2].parameters.corrupt_bit = 8 * 5000;  // the frame is shorter
  Link link(faults);
  for (int i = 0; i < 4; ++i) link.send(frame(1));
  link.idle(10'000 * kNs);
  REQUIRE(link.arrivals.size() == 4);
  const Bytes original = frame(1);
  const auto changed = [&](std::size_t i) {
    int bits = 0;
    for (std::size_t at = 0; at < original.size(); ++at)
      bits += std::popcount(static_cast<unsigned>(original[at] ^ link.arrivals[i].bytes.at(at)));
    return bits;
  };
  CHECK(changed(0) == 60);
  CHECK_FALSE(link.arrivals[0].bad);
  CHECK(changed(1) == 1);
  CHECK((original[20] ^ link.arrivals[1].bytes[20]) == 8);
  CHECK(link.arrivals[1].bad);
  CHECK(changed(2) == 0);
  CHECK(changed(3) == 0);
  CHECK(link.direction.faults()[index(WireFault::kCorrupt)] == 2);
}

TEST_CASE("delay: the frame and all behind it come later, in order") {
  WireFaultOptions faults;
  faults.rules = {rule(WireFault::kDelay, 2)};
  faults.rules[0].parameters.delay_ns = 20'000;
  Link link(faults);
  for (std::uint32_t i = 1; i < 5; ++i) link.send(frame(i));
  link.idle(2000 * kNs);
  CHECK(link.direction.under_way() == 4);
  link.idle(50'000 * kNs);
  CHECK(link.numbers() == std::vector<std::uint32_t>{1, 2, 3, 4});
  const Picoseconds gap = link.arrivals[1].time - link.arrivals[0].time;
  CHECK(gap >= 20'000 * kNs);
  CHECK(gap < 20'100 * kNs);
  CHECK(link.arrivals[3].time - link.arrivals[1].time < 100 * kNs);  // those behind it had piled up
}

TEST_CASE("truncate: to so many bytes; a fragment shorter than the smallest frame has a bad check sequence") {
  WireFaultOptions faults;
  const std::uint32_t lengths[] = {100, 64, 60, 59, 1, 5000};
  for (std::uint64_t i = 0; i < 6; ++i) {
    faults.rules.push_back(rule(WireFault::kTruncate, i + 1));
    faults.rules.back().parameters.truncate_bytes = lengths[i];
  }
  Link link(faults);
  for (int i = 0; i < 7; ++i) link.send(frame(1));
  link.idle(10'000 * kNs);
  REQUIRE(link.arrivals.size() == 7);
  const Bytes original = frame(1);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(link.arrivals[i].bytes == Bytes(original.begin(), original.begin() + lengths[i]));
    CHECK(link.arrivals[i].bad == (lengths[i] < 60));
  }
  CHECK(link.arrivals[5].bytes == original);
  CHECK(link.direction.faults()[index(WireFault::kTruncate)] == 5);
}

TEST_CASE("ECN marks, of all senders or of those that are capable") {
  for (const bool only_ect : {false, true}) {
    WireFaultOptions faults;
    faults.ecn = 1;
    faults.parameters.only_ect = only_ect;
    Link link(faults);
    link.send(frame(1));
    link.idle(10'000 * kNs);
    CHECK(link.arrivals.at(0).bytes[15] == (only_ect ? 0 : 3));
    CHECK(link.direction.faults()[index(WireFault::kEcn)] == (only_ect ? 0 : 1));
  }
}

TEST_CASE("a frame sent with a bad check sequence stays bad") {
  WireFaultOptions faults;
  faults.rules = {rule(WireFault::kDuplicate, 1)};
  Link link(faults);
  link.send(frame(1), true);
  link.idle(10'000 * kNs);
  REQUIRE(link.arrivals.size() == 2);
  CHECK(link.arrivals[0].bad);
  CHECK(link.arrivals[1].bad);
}

TEST_CASE("one kind of fault does not change which frames the others hit") {
  const auto hit = [](const WireFaultOptions& faults, WireFault kind, std::uint64_t seed = 1) {
    Link link(faults, 5000, seed);
    std::vector<bool> hits;
    for (std::uint32_t i = 0; i < 2000; ++i) hits.push_back(link.send(frame(i)).faults >> index(kind) & 1);
    return hits;
  };
  for (int i = 1; i < static_cast<int>(kWireFaults); ++i) {
    WireFaultOptions alone;
    double* const chances[] = {&alone.drop,  &alone.duplicate, &alone.reorder, &alone.corrupt,
                               &alone.delay, &alone.truncate,  &alone.ecn};
    *chances[i] = 0.05;
    WireFaultOptions together = alone;
    together.drop = 0.02;
    auto expected = hit(alone, fault_of(i));
    const auto dropped = hit(together, WireFault::kDrop);
    auto found = hit(together, fault_of(i));
    for (std::size_t at = 0; at < found.size(); ++at) {
      if (dropped[at]) found[at] = expected[at];  // a dropped frame suffers nothing else
    }
    CHECK(found == expected);
    CHECK(std::count(expected.begin(), expected.end(), true) > 50);
    CHECK(hit(alone, fault_of(i), 2) != expected);
  }
}

TEST_CASE("all faults together: every frame is accounted for, and a seed repeats the run") {
  WireFaultOptions faults;
  faults.drop = faults.duplicate = faults.reorder = faults.corrupt = faults.delay = faults.truncate = faults.ecn = 0.05;
  faults.parameters.duplicate_frames = 3;
  faults.parameters.corrupt_bits = 4;
  const auto run = [&](std::uint64_t seed, double delay_ns) {
    Link link(faults, delay_ns, seed);
    send_many(link, 3000);
    const auto& counts = link.direction.faults();
    CHECK(link.direction.under_way() == 0);
    CHECK(link.direction.delivered() == 3000 - counts[index(WireFault::kDrop)] + counts[index(WireFault::kDuplicate)]);
    CHECK(link.arrivals.size() == link.direction.delivered());
    for (const auto count : counts) CHECK(count > 80);
    return link;
  };
  for (const double delay_ns : {0.0, 10'000.0}) {
    const Link first = run(1, delay_ns), again = run(1, delay_ns), other = run(2, delay_ns);
    REQUIRE(first.arrivals.size() == again.arrivals.size());
    bool equal = true;
    for (std::size_t i = 0; i < first.arrivals.size(); ++i) {
      equal = equal && first.arrivals[i].time == again.arrivals[i].time &&
              first.arrivals[i].bytes == again.arrivals[i].bytes;
    }
    CHECK(equal);
    CHECK(first.numbers() != other.numbers());
  }
}

TEST_CASE("options out of range are refused, by name") {
  const auto refused = [](const char* what, auto&& spoil) {
    WireFaultOptions faults;
    spoil(faults);
    CHECK_THROWS_WITH(Link(faults), Catch::Matchers::Contains(what));
  };
  refused("drop", [](auto& f) { f.drop = 1.1; });
  refused("ecn", [](auto& f) { f.ecn = -0.1; });
  refused("reorder_frames", [](auto& f) { f.parameters.reorder_frames = 0; });
  refused("reorder_hold_ns", [](auto& f) { f.parameters.reorder_hold_ns = 0; });
  refused("duplicate_hold_ns", [](auto& f) { f.parameters.duplicate_hold_ns = -1; });
  refused("corrupt_bits", [](auto& f) { f.parameters.corrupt_bits = 0; });
  refused("delay_ns", [](auto& f) { f.parameters.delay_ns = -1; });
  refused("truncate_bytes", [](auto& f) { f.parameters.truncate_bytes = 0; });
  refused("nth", [](auto& f) { f.rules = {rule(WireFault::kDrop, 0)}; });
  refused("count", [](auto& f) { f.rules = {rule(WireFault::kDrop, 1, 0)}; });
  refused("psn", [](auto& f) { f.rules = {rule(WireFault::kDrop, 1, 1, {.psn = 1u << 24})}; });
  refused("dest_qpn", [](auto& f) { f.rules = {rule(WireFault::kDrop, 1, 1, {.dest_qpn = 1u << 24})}; });
}

TEST_CASE("a rule can spare the frames that are injected, and does not count them") {
  for (const bool spare : {false, true}) {
    WireFaultOptions faults;
    WireRule rule;
    rule.nth = 2;
    rule.match.opcode = 4;
    rule.match.spare_injected = spare;
    faults.rules.push_back(rule);
    Link link(faults);
    const auto dropped = [&](std::uint32_t number, bool injected) {
      return link.send(frame(number), false, injected).faults != 0;
    };
    CHECK_FALSE(dropped(0, false));
    CHECK(dropped(1, true) == !spare);
    CHECK(dropped(2, false) == spare);
    CHECK_FALSE(dropped(3, true));
  }
}
