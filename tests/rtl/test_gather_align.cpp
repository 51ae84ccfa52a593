#include <Vgather_align.h>

#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/roce_frame.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/tx/gather_align.sv: runs at any lane become packed lines; nothing lost, nothing left from other packets; full
// rate.
using namespace rnic::test;
using rnic::rtl::DmaRdRsp;
using rnic::rtl::PayloadBeat;

namespace {
struct Packet {
  Bytes bytes;
  bool err = false;
};

struct Align {
  explicit Align(std::uint64_t seed_value) : bench(seed_value) {
    bench.dut->in_valid_i = bench.dut->out_ready_i = 0;
    bench.reset();
    bench.add(in);
    bench.add(out);
  }

  /// Adds a run of `length` random bytes at lane `offset`; the other lanes are noise.
  void run(Packet& packet, unsigned offset, unsigned length, bool last) {
    DmaRdRsp item;
    for (auto& byte : item.data) byte = static_cast<std::uint8_t>(bench.rng());
    item.offset = static_cast<std::uint8_t>(offset);
    item.bytes = static_cast<std::uint8_t>(length);
    item.last = last;
    packet.bytes.insert(packet.bytes.end(), item.data.begin() + offset, item.data.begin() + offset + length);
    in.push(item);
  }
  void finish(Packet packet) {
    if (packet.err) {
      DmaRdRsp item;
      item.last = item.err = 1;
      in.push(item);
    }
    packets.push_back(std::move(packet));
  }
  /// Runs until all is out and compares.
  void check() {
    std::size_t lines = 0;
    for (const auto& p : packets) lines += std::max<std::size_t>(1, (p.bytes.size() + 63) / 64) + p.err;
    bench.run_until([&] { return in.idle(); }, 100 * lines + 1000, "input taken");
    bench.run(100);
    for (const auto& packet : packets) {
      Bytes got;
      for (;;) {
        REQUIRE_FALSE(out.items.empty());
        const auto beat = out.items.front();
        out.items.pop_front();
        REQUIRE(beat.bytes <= 64);
        if (!beat.last) REQUIRE(beat.bytes == 64);
        if (!beat.last || !packet.err) REQUIRE(beat.bytes > 0);
        got.insert(got.end(), beat.data.begin(), beat.data.begin() + beat.bytes);
        for (std::size_t i = beat.bytes; i < 64; ++i) REQUIRE(beat.data[i] == 0);
        REQUIRE(static_cast<bool>(beat.err) == (beat.last && packet.err));
        if (beat.last) break;
      }
      REQUIRE(got == packet.bytes);
    }
    REQUIRE(out.items.empty());
    packets.clear();
  }

  Bench<Vgather_align> bench;
  Source<DmaRdRsp> in{[this](bool v) { bench.dut->in_valid_i = v; }, [this] { return bench.dut->in_ready_o != 0; },
                      [this](const DmaRdRsp& item) { put(bench.dut->in_data_i, item); }, bench.rng};
  Sink<PayloadBeat> out{[this] { return bench.dut->out_valid_o != 0; }, [this](bool r) { bench.dut->out_ready_i = r; },
                        [this] { return get<PayloadBeat>(bench.dut->out_data_o); }, bench.rng};
  std::vector<Packet> packets;
};
}  // namespace

TEST_CASE("gather_align: every pair of offset and length after every fill", "[rtl]") {
  Align align(seed());
  for (unsigned fill = 0; fill < 64; fill += 3) {
    for (unsigned offset = 0; offset < 64; offset += 5) {
      const auto length = static_cast<unsigned>(align.bench.uniform(1, 64 - offset));
      Packet packet;
      if (fill) align.run(packet, static_cast<unsigned>(align.bench.uniform(0, 64 - fill)), fill, false);
      align.run(packet, offset, length, true);
      align.finish(std::move(packet));
    }
  }
  align.check();
}

TEST_CASE("gather_align: random packets, errors and back-pressure", "[rtl]") {
  Align align(seed(3));
  for (const double rate : {1.0, 0.5}) {
    align.in.rate = rate;
    align.out.rate = 1.5 - rate;
    for (int i = 0; i < 1500; ++i) {
      Packet packet;
      packet.err = align.bench.chance(0.1);
      const auto runs = align.bench.uniform(1, 8);
      for (std::uint64_t r = 0; r < runs; ++r) {
        const auto offset = align.bench.chance(0.4) ? 0u : static_cast<unsigned>(align.bench.uniform(0, 63));
        const auto length =
            align.bench.chance(0.4) ? 64 - offset : static_cast<unsigned>(align.bench.uniform(1, 64 - offset));
        align.run(packet, offset, length, r + 1 == runs && !packet.err);
      }
      align.finish(std::move(packet));
    }
    align.check();
  }
}

TEST_CASE("gather_align: a line a cycle whatever the alignment", "[rtl]") {
  Align align(seed(4));
  for (const unsigned offset : {0u, 1u, 31u, 63u}) {
    constexpr unsigned kPackets = 20, kBytes = 4096;
    unsigned lines = 0;
    for (unsigned p = 0; p < kPackets; ++p) {
      Packet packet;
      for (unsigned left = kBytes, at = offset; left > 0; at = 0, ++lines) {
        const auto bytes = std::min(left, 64 - at);
        left -= bytes;
        align.run(packet, at, bytes, left == 0);
      }
      align.finish(std::move(packet));
    }
    const auto from = align.bench.cycle;
    align.bench.run_until([&] { return align.in.idle(); }, 10000, "input taken");
    CHECK(align.bench.cycle - from <= lines + 3);
    align.check();
  }
}
