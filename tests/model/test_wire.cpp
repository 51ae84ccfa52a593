#include <algorithm>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <vector>

#include "model/wire.hpp"
#include "testbench/app_runner.hpp"

using namespace rnic::model;

namespace {

struct Bench {
  rnic::testbench::AppRunner runner{"runner"};
  Wire wire{"wire", WireOptions{}};
};
Bench& bench() {
  static Bench instance;
  return instance;
}

void run(const std::function<void()>& body) {
  bench().runner.add("test", body);
  bench().runner.run(sc_core::sc_time(1, sc_core::SC_MS));
}

FrameBeat beat_of(std::uint8_t first, std::uint8_t bytes, bool last, bool err = false) {
  FrameBeat beat;
  for (std::size_t i = 0; i < beat.data.size(); ++i) beat.data[i] = static_cast<std::uint8_t>(first + i);
  beat.bytes = bytes;
  beat.last = last;
  beat.err = err;
  return beat;
}

/// Polls each 10 ps for the next beat at `port`; returns when it came.
Picoseconds receive(std::size_t port, FrameBeat& beat) {
  while (!bench().wire.port(port).receive(beat)) sc_core::wait(to_sc_time(10));
  return now_ps();
}

}  // namespace

TEST_CASE("a smallest frame takes its preamble, its padding and its check sequence on the wire") {
  bench().wire.reset({100, 25});
  run([] {
    const Picoseconds start = now_ps();
    auto& port = bench().wire.port(0);
    REQUIRE(port.can_transmit());
    port.transmit(beat_of(1, 50, true));
    FrameBeat got;
    // 8 preamble, 60 frame, 4 check sequence, 80 ps each; then the delay.
    CHECK(receive(1, got) - start == 72 * 80 + 25'000);
    CHECK(got.bytes == 60);
    CHECK(got.last);
    CHECK(got.data[49] == 50);
    CHECK(got.data[50] == 0);
    CHECK_FALSE(bench().wire.port(0).receive(got));
  });
  CHECK(bench().wire.statistics(0).bytes == 60);
}

TEST_CASE("beats of a long frame stream, each arriving with its last byte") {
  bench().wire.reset({100, 0});
  run([] {
    const Picoseconds start = now_ps();
    auto& port = bench().wire.port(1);
    FrameBeat got;
    port.transmit(beat_of(0, 64, false));
    port.transmit(beat_of(64, 64, false));
    CHECK(receive(0, got) - start == (8 + 64) * 80);
    CHECK_FALSE(got.last);
    port.transmit(beat_of(128, 10, true, true));
    CHECK(receive(0, got) - start == (8 + 128) * 80);
    CHECK(receive(0, got) - start == (8 + 138 + 4) * 80);
    CHECK(got.last);
    CHECK(got.err);
    CHECK(got.bytes == 10);  // no padding: the frame is long enough
  });
  CHECK(bench().wire.statistics(1).bad_frames == 1);
  CHECK(bench().wire.statistics(1).underruns == 0);
}

TEST_CASE("with jitter frames come late by up to it, and in order") {
  Picoseconds most = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    WireOptions options{100, 25};
    options.jitter_ns = 200;
    options.seed = seed;
    bench().wire.reset(options);
    run([&] {
      const Picoseconds start = now_ps();
      for (std::uint8_t i = 0; i < 3; ++i) bench().wire.port(0).transmit(beat_of(i, 60, true));
      for (std::uint8_t i = 0; i < 3; ++i) {
        FrameBeat got;
        const Picoseconds time = receive(1, got) - start;
        CHECK(got.data[0] == i);
        CHECK(time >= 72 * 80 + 25'000);
        most = std::max(most, time);
      }
    });
  }
  CHECK(most > 150'000);
  CHECK(most < 25'000 + 200'000 + 3 * 84 * 80 + 1'000);
}

TEST_CASE("the rate holds for frames back to back, in both directions at once") {
  bench().wire.reset({100, 0});
  constexpr int kFrames = 500;
  for (std::size_t from = 0; from < 2; ++from) {
    bench().runner.add("sender", [from] {
      auto& port = bench().wire.port(from);
      for (int i = 0; i < kFrames * 2; ++i) {
        while (!port.can_transmit()) sc_core::wait(sc_core::sc_time(4, sc_core::SC_NS));
        port.transmit(beat_of(0, 64, i % 2 == 1));
        sc_core::wait(sc_core::sc_time(4, sc_core::SC_NS));
      }
    });
  }
  bench().runner.run(sc_core::sc_time(1, sc_core::SC_MS));
  for (std::size_t from = 0; from < 2; ++from) {
    const auto& statistics = bench().wire.statistics(from);
    CHECK(statistics.frames == kFrames);
    CHECK(statistics.underruns == 0);
    // 128 bytes and 24 of overhead; the gap after the last frame is not counted.
    CHECK(statistics.last_end - statistics.first_start == (kFrames * 152ULL - 12) * 80);
  }
}

TEST_CASE("a beat that comes too late is counted and delays the rest") {
  bench().wire.reset({100, 0});
  run([] {
    const Picoseconds start = now_ps();
    auto& port = bench().wire.port(0);
    port.transmit(beat_of(0, 64, false));
    sc_core::wait(sc_core::sc_time(10, sc_core::SC_NS));
    port.transmit(beat_of(0, 64, true));
    FrameBeat got;
    receive(1, got);
    CHECK(receive(1, got) - start == 10'000 + 68 * 80);
  });
  CHECK(bench().wire.statistics(0).underruns == 1);
}

TEST_CASE("the transmit buffer holds two beats") {
  bench().wire.reset({10, 0});
  run([] {
    auto& port = bench().wire.port(0);
    int accepted = 0;
    for (; accepted < 10 && port.can_transmit(); ++accepted) port.transmit(beat_of(0, 64, false));
    CHECK(accepted == 2);
    sc_core::wait(sc_core::sc_time(8, sc_core::SC_NS));
    CHECK(port.can_transmit());
  });
}

TEST_CASE("the tap sees each frame at the time of its last bit, in that order") {
  bench().wire.reset({100, 1000});
  std::vector<FrameRecord> seen;
  bench().wire.set_tap([&](const FrameRecord& frame) {
    CHECK(frame.end == now_ps());
    seen.push_back(frame);
  });
  run([] {
    std::vector<std::uint8_t> frame(1000);
    for (std::size_t i = 0; i < frame.size(); ++i) frame[i] = static_cast<std::uint8_t>(i);
    bench().wire.inject(0, frame);
    frame.resize(100);
    bench().wire.inject(1, frame);
    bench().wire.inject(1, frame);
    sc_core::wait(sc_core::sc_time(2, sc_core::SC_US));
  });
  bench().wire.set_tap({});
  REQUIRE(seen.size() == 3);
  CHECK(seen[0].from == 1);
  CHECK(seen[1].from == 1);
  CHECK(seen[2].from == 0);
  CHECK(seen[1].start == seen[0].end + 12 * 80);
  REQUIRE(seen[2].bytes.size() == 1000);
  CHECK(seen[2].end - seen[2].start == 1012 * 80);
  CHECK(seen[2].bytes[999] == static_cast<std::uint8_t>(999));
}

TEST_CASE("a frame that is injected waits for the end of the frame under way") {
  bench().wire.reset({100, 0});
  std::vector<FrameRecord> seen;
  bench().wire.set_tap([&](const FrameRecord& frame) { seen.push_back(frame); });
  run([] {
    auto& port = bench().wire.port(0);
    port.transmit(beat_of(1, 64, false));
    bench().wire.inject(0, std::vector<std::uint8_t>(70, 0xAB), true);
    bench().wire.inject(0, std::vector<std::uint8_t>(61, 0xCD));
    port.transmit(beat_of(65, 6, true));
    port.transmit(beat_of(1, 62, true));
    sc_core::wait(sc_core::sc_time(1, sc_core::SC_US));
    CHECK_THROWS_AS(bench().wire.inject(0, {}), std::invalid_argument);
  });
  bench().wire.set_tap({});
  REQUIRE(seen.size() == 4);
  CHECK(seen[0].bytes.size() == 70);
  CHECK(seen[0].bytes[69] == 70);
  CHECK_FALSE(seen[0].bad);
  CHECK(seen[1].bytes == std::vector<std::uint8_t>(70, 0xAB));
  CHECK(seen[1].bad);
  CHECK(seen[2].bytes == std::vector<std::uint8_t>(61, 0xCD));
  CHECK_FALSE(seen[2].bad);
  CHECK(seen[3].bytes.size() == 62);
}

TEST_CASE("reset drops what is under way; bad options and beats are refused") {
  bench().wire.reset({100, 0});
  run([] {
    bench().wire.inject(0, std::vector<std::uint8_t>(100));
    bench().wire.reset({100, 0});
    sc_core::wait(sc_core::sc_time(1, sc_core::SC_US));
    FrameBeat got;
    CHECK_FALSE(bench().wire.port(1).receive(got));
    CHECK_THROWS_AS(bench().wire.port(0).transmit(beat_of(0, 10, false)), std::invalid_argument);
    CHECK_THROWS_AS(bench().wire.port(0).transmit(beat_of(0, 0, true)), std::invalid_argument);
  });
  CHECK_THROWS_AS(bench().wire.reset({0, 0}), std::invalid_argument);
  CHECK_THROWS_AS(bench().wire.reset({100, -1}), std::invalid_argument);
}

TEST_CASE("an ear hears what the port has taken whole, and nothing that is bad") {
  bench().wire.reset({100, 25});
  std::vector<std::size_t> heard;
  bench().wire.ears(1).add(&heard, [&](std::span<const std::uint8_t> frame) { heard.push_back(frame.size()); });
  run([&] {
    const std::vector<std::uint8_t> first(100, 1), bad(80, 2), last(64, 3);
    bench().wire.inject(0, first);
    bench().wire.inject(0, bad, true);
    bench().wire.inject(0, last);
    FrameBeat beat;
    receive(1, beat);
    CHECK(heard.empty());
    receive(1, beat);
    CHECK(heard == std::vector<std::size_t>{100});
    for (int i = 0; i < 3; ++i) receive(1, beat);
  });
  CHECK(heard == std::vector<std::size_t>{100, 64});
  bench().wire.ears(1).remove(&heard);
}

TEST_CASE("what a port sends while the link is down is lost, and told as such: whole frames that are not bad") {
  bench().wire.reset({100, 0});
  std::vector<std::vector<std::uint8_t>> lost;
  bench().wire.losses(0).add(
      &lost, [&](std::span<const std::uint8_t> frame) { lost.emplace_back(frame.begin(), frame.end()); });
  run([&] {
    auto& port = bench().wire.port(0);
    FrameBeat got;
    port.transmit(beat_of(1, 64, false));
    bench().wire.set_link(false);
    port.transmit(beat_of(65, 10, true));  // has begun: it arrives
    for (int i = 0; i < 2; ++i) receive(1, got);
    CHECK(lost.empty());
    port.transmit(beat_of(1, 64, false));
    bench().wire.set_link(true);
    port.transmit(beat_of(65, 10, true));  // began while it was down
    REQUIRE(lost.size() == 1);
    REQUIRE(lost[0].size() == 74);
    for (std::size_t i = 0; i < 74; ++i) CHECK(lost[0][i] == 1 + i);
    bench().wire.set_link(false);
    port.transmit(beat_of(1, 20, true, true));
    CHECK(lost.size() == 1);
    port.transmit_frame(std::vector<std::uint8_t>(20, 9));
    REQUIRE(lost.size() == 2);
    CHECK(lost[1].size() == 60);
    CHECK(lost[1][19] == 9);
    CHECK(lost[1][20] == 0);
    bench().wire.set_link(true);
    sc_core::wait(sc_core::sc_time(1, sc_core::SC_US));
    CHECK_FALSE(bench().wire.port(1).receive(got));
    port.transmit(beat_of(1, 20, true));
    receive(1, got);
  });
  CHECK(lost.size() == 2);
  bench().wire.losses(0).remove(&lost);
}
