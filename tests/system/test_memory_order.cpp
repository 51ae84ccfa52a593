// The barriers of the driver (driver/mmio.hpp), on hosts that order nothing by themselves: with all of them everything
// is right, and each one, taken out alone, is missed. RNIC_SEED=n is the first seed.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "tests/system/memory_order_work.hpp"

using namespace rnic;
using namespace rnic::test;
using testbench::BarrierPlace;
using testbench::WorldOptions;

namespace {

constexpr std::uint64_t kSeeds = 3;

WorldOptions weak_world(std::uint64_t number) {
  auto options = WorldOptions::from_environment("memory_order");
  options.seed += number;
  options.hang_ns = 1'000'000;
  options.host.memory_order.weak = true;
  return options;
}

/// Every barrier that stands in the driver's sources.
std::vector<BarrierPlace> barriers_in_sources() {
  constexpr std::pair<const char*, Barrier> kNames[] = {{"dma_write", Barrier::kDmaWrite},
                                                        {"window_write", Barrier::kWindowWrite},
                                                        {"window_flush", Barrier::kWindowFlush},
                                                        {"dma_read", Barrier::kDmaRead},
                                                        {"dma_release", Barrier::kDmaRelease}};
  const std::regex call("^ *([a-z_]+)_barrier\\(\\);");
  const std::filesystem::path root(RNIC_SOURCE_DIR);
  std::vector<BarrierPlace> places;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "driver")) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path());
    unsigned number = 1;
    for (std::string line; std::getline(file, line); ++number) {
      std::smatch match;
      if (!std::regex_search(line, match, call)) continue;
      const auto name = std::find_if(std::begin(kNames), std::end(kNames),
                                     [&](const auto& known) { return known.first == match[1].str(); });
      REQUIRE(name != std::end(kNames));
      places.push_back({entry.path().lexically_relative(root).string(), number, name->second});
    }
  }
  std::sort(places.begin(), places.end());
  return places;
}

std::string describe(const BarrierPlace& place) { return fmt::format("{}:{}", place.file, place.line); }

}  // namespace

TEST_CASE("with all its barriers the driver is right on hosts that order nothing, and passes every one of them") {
  for (std::uint64_t number = 0; number < kSeeds; ++number) {
    const auto options = weak_world(number);
    INFO("seed " << options.seed);
    auto outcome = work_apart(options, {});
    CHECK(outcome.wrong == "");
    std::sort(outcome.barriers.begin(), outcome.barriers.end());
    for (const auto& place : barriers_in_sources()) {
      INFO(describe(place));
      CHECK(std::binary_search(outcome.barriers.begin(), outcome.barriers.end(), place));
    }
  }
}

TEST_CASE("a barrier that is taken out is missed, whichever it is") {
  for (const auto& place : barriers_in_sources()) {
    // Orders what the processor combines, not memory.
    if (place.kind == Barrier::kWindowFlush) continue;
    std::string wrong;
    std::uint64_t seed = 0;
    for (std::uint64_t number = 0; number < kSeeds && wrong.empty(); ++number) {
      const auto options = weak_world(number);
      seed = options.seed;
      wrong = work_apart(options, place).wrong;
    }
    INFO(describe(place));
    CHECK(wrong != "");
    fmt::print("without {}, seed {}: {}\n", describe(place), seed, wrong.substr(0, wrong.find(';')));
  }
}
