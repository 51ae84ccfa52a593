// The fuzzer finds what it is there for: faults that are planted in what the kernel driver grants, not in the RTL.
#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "testbench/fuzz/fuzz_run.hpp"
#include "testbench/fuzz/wqe_verdict.hpp"
#include "testbench/side_by_side.hpp"
#include "testbench/world.hpp"

using namespace rnic::testbench;
namespace hw = rnic::hw;

namespace {

World& the_world(const WorldOptions& options) {
  static World world(options);
  return world;
}

/// A SEND of `segments`, which nothing else is wrong with.
std::vector<std::uint8_t> send_of(const FuzzProcess::Qp& qp, const std::vector<hw::WqeData>& segments) {
  std::vector<std::uint8_t> wqe(std::size_t{1} << FuzzProcess::kLogStride);
  hw::WqeControl control;
  control.qpn = qp.qp->qpn();
  std::size_t used = hw::WqeControl::kBytes;
  for (const auto& segment : segments) {
    control.length += segment.length;
    segment.encode(std::span(wqe).subspan(used).first<hw::WqeData::kBytes>());
    used += hw::WqeData::kBytes;
  }
  control.size = static_cast<std::uint8_t>(used / 16);
  control.encode(std::span(wqe).first<hw::WqeControl::kBytes>());
  return wqe;
}

}  // namespace

TEST_CASE("a SEND whose fault is not in its first packet may be refused by the peer, any other never is") {
  constexpr std::uint32_t kMtu = 256;
  const auto options = WorldOptions::from_environment("fuzz");
  auto& world = the_world(options);
  world.reset(options);
  world.add_app(0, "judge", [&](Host&) {
    std::unique_ptr<Endpoint> here, there;
    side_by_side({[&] { here = std::make_unique<Endpoint>(world.host(0)); },
                  [&] { there = std::make_unique<Endpoint>(world.host(1)); }});
    const auto none = [](const std::string& text) { FAIL(text); };
    FuzzProcess attacker(*here, PlantedFault::kNone, none), peer(*there, PlantedFault::kNone, none);
    auto& qp = attacker.qp(0);
    qp.mtu = kMtu;
    const WqeVerdict verdict(attacker, peer);
    const auto refused = [&](const std::vector<hw::WqeData>& segments) {
      const auto statuses = verdict.judge(qp, send_of(qp, segments), 0, false);
      CHECK(statuses.has(hw::CqeStatus::kLocProtErr));
      CHECK_FALSE(statuses.has(hw::CqeStatus::kSuccess));
      return statuses.has(hw::CqeStatus::kRemInvReqErr);
    };
    const auto good = [&](std::uint32_t length) {
      return hw::WqeData{.va = attacker.granted(), .length = length, .lkey = attacker.key()};
    };
    // It ends one byte behind what is granted.
    const auto long_by_one = [&](std::uint32_t length) {
      return hw::WqeData{
          .va = attacker.granted() + FuzzProcess::kGrantedBytes + 1 - length, .length = length, .lkey = attacker.key()};
    };
    const auto foreign = [&](std::uint32_t length) {
      return hw::WqeData{.va = attacker.granted(), .length = length, .lkey = attacker.foreign_key()};
    };
    CHECK_FALSE(refused({foreign(10)}));
    CHECK_FALSE(refused({foreign(3 * kMtu)}));
    CHECK_FALSE(refused({good(kMtu - 1), foreign(100)}));
    CHECK(refused({good(kMtu), foreign(100)}));
    CHECK_FALSE(refused({long_by_one(kMtu)}));
    CHECK(refused({long_by_one(kMtu + 1)}));
    CHECK_FALSE(refused({good(100), long_by_one(kMtu - 100)}));
    CHECK(refused({good(100), long_by_one(kMtu - 99)}));
  });
  world.run(1'000'000'000);
}

TEST_CASE("a planted fault is reported within a few thousand frames; without one nothing is") {
  static constexpr std::uint64_t kFrames = 6'000;
  const auto options = WorldOptions::from_environment("fuzz");
  INFO("seed " << options.seed);
  auto& world = the_world(options);
  const std::pair<PlantedFault, const char*> kinds[] = {
      {PlantedFault::kNone, ""},
      {PlantedFault::kLongRegion, "the granted memory changed"},
      {PlantedFault::kWritable, "in memory without the right to write changed"},
      {PlantedFault::kSharedDomain, "in memory of another domain changed"},
      {PlantedFault::kLeakyByte, "a secret byte, 0xf5,"},
      {PlantedFault::kWrongNak, "NAK with code 3, which no request"},
      {PlantedFault::kWrongStatus, "local length error, which it cannot have"},
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
