#include <Vscatter_align.h>

#include "tests/rtl/rx_models.hpp"

// rtl/rx/scatter_align.sv: every piece becomes one address-aligned write with the right bytes; a line a cycle.
using namespace rnic;
using namespace rnic::test;

namespace {
struct Bed {
  explicit Bed(std::uint64_t value) : bench(value), writes(bench) {
    bench.add(pieces);
    bench.add(payload);
    bench.reset();
  }
  /// Cuts a random payload of `size` bytes into pieces of random or given lengths.
  void packet(std::size_t size, std::vector<std::size_t> lengths = {}, std::optional<std::uint64_t> addr = {}) {
    const Bytes data = random_bytes(bench.rng, size);
    for (std::size_t at = 0; at < size;) {
      std::size_t length = lengths.empty() ? bench.uniform(1, bench.chance(0.5) ? 80 : 4096) : lengths.front();
      if (!lengths.empty()) lengths.erase(lengths.begin());
      length = std::min(length, size - at);
      rtl::ScatterPiece piece;
      piece.addr = addr ? *addr + at : bench.uniform(0, 1u << 20);
      piece.length = static_cast<std::uint16_t>(length);
      piece.last = at + length == size;
      pieces.push(piece);
      const auto from = data.begin() + static_cast<std::ptrdiff_t>(at);
      expected.push_back({piece.addr, Bytes(from, from + static_cast<std::ptrdiff_t>(length))});
      at += length;
    }
    for (const auto& beat : payload_beats(data, bench.rng)) payload.push(beat);
  }
  void finish(std::uint64_t limit) {
    bench.run_until([&] { return writes.writes.size() == expected.size() && writes.idle(); }, limit, "all writes");
    bench.run(20);
    REQUIRE(writes.writes.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      REQUIRE(writes.writes[i].addr == expected[i].addr);
      REQUIRE(writes.writes[i].data == expected[i].data);
    }
    CHECK(pieces.idle());
    CHECK(payload.idle());
  }
  Bench<Vscatter_align> bench;
  WritePort<Vscatter_align> writes;
  Source<rtl::ScatterPiece> pieces{
      [this](bool v) { bench.dut->piece_valid_i = v; }, [this] { return bench.dut->piece_ready_o != 0; },
      [this](const rtl::ScatterPiece& item) { put(bench.dut->piece_data_i, item); }, bench.rng};
  Source<rtl::PayloadBeat> payload{
      [this](bool v) { bench.dut->payload_valid_i = v; }, [this] { return bench.dut->payload_ready_o != 0; },
      [this](const rtl::PayloadBeat& item) { put(bench.dut->payload_data_i, item); }, bench.rng};
  std::vector<WritePort<Vscatter_align>::Write> expected;
};
}  // namespace

TEST_CASE("scatter_align: random pieces and payloads, random back-pressure", "[rtl]") {
  Bed bed(seed());
  for (int round = 0; round < 40; ++round) {
    bed.pieces.rate = bed.bench.uniform(1, 10) / 10.0;
    bed.payload.rate = bed.bench.uniform(1, 10) / 10.0;
    bed.writes.rate = bed.bench.uniform(1, 10) / 10.0;
    for (int i = 0; i < 15; ++i) bed.packet(bed.bench.uniform(1, bed.bench.chance(0.5) ? 130 : 4096));
    bed.finish(200000);
  }
}

TEST_CASE("scatter_align: every lane and every offset in the payload", "[rtl]") {
  Bed bed(seed());
  for (std::uint64_t lane = 0; lane < 64; ++lane) {
    for (std::size_t offset = 0; offset < 64; offset += 1 + lane % 3)
      bed.packet(offset + 130, {offset ? offset : 1, 65, 1}, 4096 * 64 + lane - offset);
  }
  bed.finish(200000);
}

TEST_CASE("scatter_align: a line a cycle", "[rtl]") {
  Bed bed(seed());
  const auto lane = GENERATE(0u, 1u, 37u, 63u);
  for (int i = 0; i < 20; ++i) bed.packet(4096, {}, 0x10000 + lane);
  bed.expected.clear();
  const auto start = bed.bench.cycle;
  bed.bench.run_until([&] { return bed.writes.lines >= 20 * 64 && bed.pieces.idle() && bed.payload.idle(); }, 3000,
                      "20 packets");
  bed.bench.run(10);
  const double per_packet = static_cast<double>(bed.writes.last_line - start) / 20;
  std::printf("scatter_align: lane %u, random pieces: %.1f cycles, %.1f lines for 4096 bytes\n", lane, per_packet,
              static_cast<double>(bed.writes.lines) / 20);
  CHECK(per_packet <= static_cast<double>(bed.writes.lines) / 20 + 2.5);
}
