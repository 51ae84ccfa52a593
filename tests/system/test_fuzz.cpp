// The fuzzer finds what it is there for: faults that are planted in what the kernel driver grants, not in the RTL.
#include <catch2/catch.hpp>
#include <cstdio>
#include <string>
#include <utility>

#include "testbench/fuzz/fuzz_run.hpp"
#include "testbench/world.hpp"

using namespace rnic::testbench;

TEST_CASE("a planted fault is reported within a few thousand frames; without one nothing is") {
  static constexpr std::uint64_t kFrames = 6'000;
  const auto options = WorldOptions::from_environment("fuzz");
  INFO("seed " << options.seed);
  static World world(options);
  const std::pair<PlantedFault, const char*> kinds[] = {
      {PlantedFault::kNone, ""},
      {PlantedFault::kLongRegion, "the granted memory changed"},
      {PlantedFault::kWritable, "in memory without the right to write changed"},
      {PlantedFault::kSharedDomain, "in memory of another domain changed"},
      {PlantedFault::kLeakyByte, "a secret byte, 0xf5,"},
      {PlantedFault::kWrongNak, "NAK with code 3, which no request"},
      {PlantedFault::kWrongStatus, "status 0x1, which it cannot have"},
      {PlantedFault::kLostEntry, "complet"},
      {PlantedFault::kLongList, "those of the page list changed"}};
  for (const auto& [planted, what] : kinds) {
    DYNAMIC_SECTION("fault " << static_cast<int>(planted)) {
      world.reset(options);
      FuzzOptions fuzz;
      // Rare among all that the attackers do: a fast registration, a request that ends one byte too far.
      const bool rare = planted == PlantedFault::kLongList || planted == PlantedFault::kLeakyByte;
      fuzz.frames = fuzz.episode_frames = planted == PlantedFault::kNone ? 1'500 : rare ? 5 * kFrames : kFrames;
      fuzz.planted = planted;
      fuzz.most_violations = 1;
      const auto report = run_fuzz(world, options, fuzz);
      std::printf("planted fault %d: %llu frames, %llu of them live, %zu violations%s%s\n", static_cast<int>(planted),
                  static_cast<unsigned long long>(report.frames), static_cast<unsigned long long>(report.live),
                  report.violations.size(), report.violations.empty() ? "" : ": ",
                  report.violations.empty() ? "" : report.violations[0].note.c_str());
      // About half of the frames get past the check of the PSN; the others are those of strangers, damaged ones, and
      // those that lie in their PSN.
      std::fflush(stdout);
      if (report.frames >= 1'000) CHECK(report.live * 5 > report.frames * 2);
      if (planted == PlantedFault::kNone) {
        CHECK(report.violations.empty());
        // Frames to groups reach their members.
        CHECK(report.counters.at("multicast_copies") > 10);
        CHECK(report.frames == fuzz.frames);
        continue;
      }
      REQUIRE(report.violations.size() == 1);
      const std::string& note = report.violations[0].note;
      // Seen from outside as changed or leaked bytes, or as a success of a request that cannot succeed, of either end.
      const bool found = note.find(what) != std::string::npos || note.find("a secret byte") != std::string::npos ||
                         note.find("must be refused") != std::string::npos ||
                         note.find("success of a malformed or forbidden request") != std::string::npos;
      INFO(note);
      CHECK(found);
    }
  }
}
