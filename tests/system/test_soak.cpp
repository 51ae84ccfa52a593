// The work of rnic soak finds what it is there for: faults that it plants itself. On the reference NIC, for it is the
// checkers that are judged.
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

namespace {

World& soak_world(const WorldOptions& options) {
  static World world(options);
  world.reset(options);
  return world;
}

}  // namespace

TEST_CASE("what has completed may be long on its way to memory over a slow link of PCI Express (decisions 66)") {
  auto options = WorldOptions::from_environment("soak_slow");
  options.host.nic.kind = NicKind::kModel;
  options.host.root_complex.bandwidth_gbytes = 0.25;  // generation 1, one lane
  auto& world = soak_world(options);
  SoakOptions soak;
  soak.cycles = 400'000;
  soak.traffic.pairs = 16;
  soak.traffic.shares = 1;
  soak.traffic.may_overflow = true;
  const auto report = run_soak(world, soak, options.seed);
  INFO((report.traffic.messages.empty() ? "" : report.traffic.messages.front()));
  CHECK(report.good());
  CHECK(report.traffic.total() > 100);
}

TEST_CASE("a planted fault of the work is reported; without one nothing is") {
  auto options = WorldOptions::from_environment("soak");
  options.host.nic.kind = NicKind::kModel;
  INFO("seed " << options.seed);
  constexpr Planted kFaults[] = {{PlantedSoakFault::kNone, ""},
                                 {PlantedSoakFault::kLostAdd, "replaced"},
                                 {PlantedSoakFault::kStaleCell, "had replaced before"},
                                 {PlantedSoakFault::kTornCell, "which nobody wrote"},
                                 {PlantedSoakFault::kNoFence, "in front of it"},
                                 {PlantedSoakFault::kWrongOrder, "of the area that was written in front of it"},
                                 {PlantedSoakFault::kLostEvent, "and no event has come"},
                                 {PlantedSoakFault::kSpoiltWrite, "must be 0x"}};
  for (const auto& [fault, what] : kFaults) {
    DYNAMIC_SECTION("fault " << static_cast<int>(fault)) {
      auto& world = soak_world(options);
      SoakOptions soak;
      soak.cycles = 100'000;
      soak.orderly = true;
      soak.traffic.pairs = 1;
      soak.traffic.shares = 2;
      soak.traffic.planted = fault;
      if (fault == PlantedSoakFault::kLostEvent || fault == PlantedSoakFault::kSpoiltWrite)
        soak.traffic.hang_ns = 1'000'000;
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
