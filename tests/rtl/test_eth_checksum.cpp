#include <Veth_checksum.h>

#include <deque>

#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/ip_checksums.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/common/eth_checksum.sv: the checksums of random frames, sound ones and others, against sums of single bytes; a
// line in every cycle, and with gaps; fixed latency.
using namespace rnic;
using namespace rnic::test;

namespace {
constexpr std::uint64_t kLatency = 7;
using Frame = IpChecksums::Bytes;

struct Seen {
  unsigned l3 = 0, l4 = 0, l3_ok = 0, l4_ok = 0, all_ones = 0, nothing = 0;
};

/// Plays frames with gaps between lines (probability 1 - rate), checks values and time of each answer.
void play(Bench<Veth_checksum>& bench, const std::vector<Frame>& frames, double rate, double drops, Seen& seen) {
  auto& dut = *bench.dut;
  struct Due {
    std::uint64_t cycle;
    IpChecksums want;
  };
  std::deque<Due> due;
  const auto tick = [&] {
    dut.clk_i = 0;
    dut.eval();
    const bool now = !due.empty() && due.front().cycle == bench.cycle;
    REQUIRE(static_cast<bool>(dut.out_valid_o) == now);
    if (now) {
      const IpChecksums& want = due.front().want;
      const auto got = get<rtl::IpSums>(dut.out_sums_o);
      REQUIRE(static_cast<bool>(dut.out_l3_ok_o) == want.l3_ok);
      REQUIRE(static_cast<bool>(dut.out_l4_ok_o) == want.l4_ok);
      REQUIRE(got.l3 == want.l3_at.has_value());
      REQUIRE(got.l4 == want.l4_at.has_value());
      const auto turned = [](std::uint16_t value) { return static_cast<std::uint16_t>(value << 8 | value >> 8); };
      if (want.l3_at) REQUIRE((got.l3_word == *want.l3_at / 2 && got.l3_value == turned(want.l3)));
      if (want.l4_at) REQUIRE((got.l4_word == *want.l4_at / 2 && got.l4_value == turned(want.l4)));
      seen.l3 += got.l3, seen.l4 += got.l4, seen.l3_ok += want.l3_ok, seen.l4_ok += want.l4_ok;
      seen.all_ones += got.l4 && want.l4 == 0xFFFF;
      seen.nothing += !got.l3 && !got.l4;
      due.pop_front();
    }
    dut.clk_i = 1;
    dut.eval();
    ++bench.cycle;
  };
  for (const auto& frame : frames) {
    for (std::size_t at = 0; at < frame.size(); at += 64) {
      while (!bench.chance(rate)) {
        dut.in_valid_i = 0;
        tick();
      }
      std::array<std::uint8_t, 64> line{};
      for (auto& byte : line) byte = static_cast<std::uint8_t>(bench.rng());
      const std::size_t bytes = std::min<std::size_t>(64, frame.size() - at);
      std::copy_n(frame.begin() + static_cast<std::ptrdiff_t>(at), bytes, line.begin());
      port_from_bytes(dut.in_data_i, line);
      dut.in_bytes_i = static_cast<CData>(bytes);
      dut.in_last_i = at + 64 >= frame.size();
      dut.in_drop_i = dut.in_last_i && bench.chance(drops);
      dut.in_valid_i = 1;
      if (dut.in_last_i && !dut.in_drop_i) due.push_back({bench.cycle + kLatency, IpChecksums::of(frame)});
      tick();
    }
  }
  dut.in_valid_i = 0;
  for (unsigned i = 0; i < kLatency + 1; ++i) tick();
  REQUIRE(due.empty());
}
}  // namespace

TEST_CASE("eth_checksum: random frames, back to back and with gaps, some of them dropped", "[rtl]") {
  Bench<Veth_checksum> bench(seed(1));
  bench.dut->in_valid_i = 0;
  bench.reset();
  Seen seen;
  for (const double rate : {1.0, 0.6}) {
    for (const std::size_t most : {130u, 200u, 1518u, 4096u}) {
      std::vector<Frame> frames;
      for (int i = 0; i < 1500; ++i) frames.push_back(IpChecksums::random_frame(bench.rng, most));
      play(bench, frames, rate, 0.1, seen);
    }
  }
  // The frames were of all kinds.
  CHECK(seen.l3 > 3000);
  CHECK(seen.l4 > 5000);
  CHECK(seen.l3_ok > 2000);
  CHECK(seen.l4_ok > 2000);
  CHECK(seen.all_ones > 20);
  CHECK(seen.nothing > 500);
}

TEST_CASE("eth_checksum: every length of header and segment around the ends of lines", "[rtl]") {
  Bench<Veth_checksum> bench(seed(2));
  bench.dut->in_valid_i = 0;
  bench.reset();
  Seen seen;
  std::vector<Frame> frames;
  for (std::size_t tag = 0; tag < 2; ++tag) {
    for (std::size_t words = 5; words <= 15; ++words) {
      for (std::size_t segment = 20; segment < 150; ++segment) {
        const std::size_t ip = 14 + 4 * tag;
        Frame frame(ip + 4 * words + segment + bench.uniform(0, 3));
        for (auto& byte : frame) byte = static_cast<std::uint8_t>(bench.rng());
        IpChecksums::put(frame, 12, 0x8100);
        IpChecksums::put(frame, ip - 2, 0x0800);
        frame[ip] = static_cast<std::uint8_t>(0x40 | words);
        IpChecksums::put(frame, ip + 2, 4 * words + segment);
        IpChecksums::put(frame, ip + 6, 0);
        frame[ip + 9] = segment % 2 == 0 ? 6 : 17;
        if (frame[ip + 9] == 17) IpChecksums::put(frame, ip + 4 * words + 4, segment);
        frames.push_back(std::move(frame));
      }
    }
  }
  play(bench, frames, 1.0, 0, seen);
  REQUIRE(seen.l3 == frames.size());
  REQUIRE(seen.l4 == frames.size());
}
