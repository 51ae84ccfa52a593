#include <Vstream_fifo.h>

#include "tests/support/rtl_bench.hpp"

// rtl/common/stream_fifo.sv: order, no loss, full throughput, exact count.
using namespace rnic::test;

namespace {
struct Word {
  static constexpr std::size_t kBits = 32, kBytes = 4;
  std::uint32_t value = 0;
  void encode(std::span<std::uint8_t, 4> to) const { std::memcpy(to.data(), &value, 4); }
  static Word decode(std::span<const std::uint8_t, 4> from) {
    Word w;
    std::memcpy(&w.value, from.data(), 4);
    return w;
  }
  bool operator==(const Word&) const = default;
};
}  // namespace

TEST_CASE("stream_fifo: every word comes out once, in order, under random back-pressure", "[rtl]") {
  Bench<Vstream_fifo> bench(seed());
  RNIC_SOURCE(source, Word, bench, in, 0.7);
  RNIC_SINK(sink, Word, bench, out, 0.7);
  bench.reset();
  std::uint64_t taken = 0;
  for (std::uint32_t i = 0; i < 5000; ++i) source.push({i * 2654435761u});
  while (sink.items.size() < 5000) {
    if (bench.cycle % 500 == 0) {
      source.rate = bench.uniform(1, 10) / 10.0;
      sink.rate = bench.uniform(1, 10) / 10.0;
    }
    REQUIRE(bench.dut->count_o == source.accepted - taken);
    bench.tick();
    taken = sink.items.size();
    REQUIRE(bench.cycle < 200000);
  }
  for (std::uint32_t i = 0; i < 5000; ++i) REQUIRE(sink.items[i].value == i * 2654435761u);
}

TEST_CASE("stream_fifo: one word a cycle; takes Depth words more than its output register", "[rtl]") {
  Bench<Vstream_fifo> bench(seed());
  RNIC_SOURCE(source, Word, bench, in, 1.0);
  RNIC_SINK(sink, Word, bench, out, 1.0);
  bench.reset();
  for (std::uint32_t i = 0; i < 1000; ++i) source.push({i});
  const auto start = bench.cycle;
  bench.run_until([&] { return sink.items.size() == 1000; }, 1010, "1000 words");
  CHECK(bench.cycle - start <= 1003);
  sink.rate = 0;
  for (std::uint32_t i = 0; i < 100; ++i) source.push({i});
  bench.run(60);
  CHECK(source.accepted - 1000 == 17);  // Depth 16 and the output register
}
