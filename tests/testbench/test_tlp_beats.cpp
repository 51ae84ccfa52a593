#include <catch2/catch.hpp>
#include <array>
#include <numeric>

#include "testbench/tlp_beats.hpp"

using rnic::testbench::BeatCutter;
using rnic::testbench::BeatJoiner;

TEST_CASE("each byte is in the lane of its address, and what is cut joins again") {
  for (std::uint64_t address = 0x100; address < 0x140; address += 4) {
    for (std::size_t bytes = 4; bytes <= 300; bytes += 4) {
      std::vector<std::uint8_t> data(bytes);
      std::iota(data.begin(), data.end(), std::uint8_t{1});
      BeatCutter cutter;
      BeatJoiner joiner;
      cutter.start(address, data);
      joiner.start(address, bytes);
      std::size_t beats = 0;
      bool complete = false;
      for (; cutter.active(); cutter.advance(), ++beats) {
        REQUIRE_FALSE(complete);
        std::array<std::uint8_t, 64> lanes{};
        cutter.write_lanes(lanes);
        for (std::size_t lane = 0; lane < 64; ++lane) {
          const std::uint64_t at = (address & ~63ULL) + 64 * beats + lane;
          const bool valid = at >= address && at < address + bytes;
          const std::uint8_t expected = valid ? data[at - address] : BeatCutter::kUndefined;
          REQUIRE(lanes[lane] == expected);
        }
        complete = joiner.take(lanes);
        REQUIRE(complete == cutter.last());
      }
      REQUIRE(beats == (address % 64 + bytes + 63) / 64);
      REQUIRE(joiner.finish() == data);
      REQUIRE_FALSE(joiner.active());
    }
  }
}

TEST_CASE("a TLP without payload has one beat") {
  BeatCutter cutter;
  CHECK_FALSE(cutter.active());
  cutter.start(0x3C, {});
  CHECK(cutter.active());
  CHECK(cutter.last());
  cutter.advance();
  CHECK_FALSE(cutter.active());
  BeatJoiner joiner;
  joiner.start(0x3C, 0);
  CHECK(joiner.take(std::array<std::uint8_t, 64>{}));
  CHECK(joiner.finish().empty());
}
