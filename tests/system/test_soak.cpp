// The work on shared memory finds what it is there for: faults that it plants itself. On the reference NIC, for it is
// the checkers that are judged.
#include <catch2/catch.hpp>
#include <cstdio>
#include <string>

#include "testbench/traffic/soak_run.hpp"
#include "testbench/world.hpp"

using namespace rnic::testbench;

namespace {

struct Planted {
  PlantedSoakFault fault;
  const char* what;  ///< In the message; empty: nothing may be wrong
};

}  // namespace

TEST_CASE("a planted fault of the work on shared memory is reported; without one nothing is") {
  auto options = WorldOptions::from_environment("soak");
  options.host.nic.kind = NicKind::kModel;
  INFO("seed " << options.seed);
  static World world(options);
  constexpr Planted kFaults[] = {{PlantedSoakFault::kNone, ""},
                                 {PlantedSoakFault::kLostAdd, "replaced"},
                                 {PlantedSoakFault::kStaleCell, "had replaced before"},
                                 {PlantedSoakFault::kTornCell, "which nobody wrote"},
                                 {PlantedSoakFault::kNoFence, "in front of it"},
                                 {PlantedSoakFault::kWrongOrder, "of the area that was written in front of it"},
                                 {PlantedSoakFault::kLostEvent, "and no event has come"}};
  for (const auto& [fault, what] : kFaults) {
    DYNAMIC_SECTION("fault " << static_cast<int>(fault)) {
      world.reset(options);
      SoakOptions soak;
      soak.cycles = 100'000;
      soak.orderly = true;
      soak.traffic.pairs = 1;
      soak.traffic.shares = 2;
      soak.traffic.planted = fault;
      if (fault == PlantedSoakFault::kLostEvent) soak.traffic.hang_ns = 1'000'000;
      const auto report = run_soak(world, soak, options.seed);
      const auto& share = report.traffic.share;
      const std::string note = report.traffic.messages.empty() ? "" : report.traffic.messages.front();
      std::printf("planted fault %d: %llu cycles: %s\n", static_cast<int>(fault),
                  static_cast<unsigned long long>(report.cycles), note.c_str());
      INFO(note);
      if (fault != PlantedSoakFault::kNone) {
        CHECK_FALSE(report.good());
        CHECK(note.find(what) != std::string::npos);
        continue;
      }
      CHECK(report.good());
      for (const auto count :
           {share.adds, share.swaps, share.swapped, share.word_reads, share.cell_writes, share.cell_reads,
            share.cell_looks, share.fenced, share.overwrites, share.events, share.quiet_entries})
        CHECK(count > 50);
      CHECK(share.solicited_events > 5);
      CHECK(share.overruns > 0);
    }
  }
}
