#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "testbench/fuzz/fuzz_corpus.hpp"
#include "testbench/fuzz/fuzz_process.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

struct FuzzOptions {
  std::uint64_t frames = 100'000;
  std::uint64_t episode_frames = 50'000;  ///< After so many frames the world starts anew, with the next seed
  std::vector<CorpusEntry> corpus;        ///< Replayed at the start of the first episode
  PlantedFault planted = PlantedFault::kNone;
  std::size_t most_violations = 20;  ///< Then it ends
};

struct FuzzReport {
  std::uint64_t frames = 0;
  std::uint64_t live = 0;  ///< Frames that were made for a live queue pair, with the PSN that it expected
  std::uint64_t wqes = 0;
  std::uint64_t judged = 0;                      ///< Packets that may carry no secret byte, looked through byte by byte
  std::uint64_t accesses = 0;                    ///< Of the attacking processes to their pages
  std::uint64_t renewals = 0;                    ///< Connections of the attackers made anew
  std::uint64_t completions = 0, successes = 0;  ///< Of the attackers
  std::uint64_t outcomes = 0;                    ///< Of the completions, those of which was known what they may say
  std::uint64_t victim_requests = 0;             ///< Done and checked meanwhile
  std::uint64_t episodes = 0;
  std::uint64_t set_up_cycles = 0, cycles = 0, tear_down_cycles = 0;  ///< Of all episodes; `cycles` with frames
  std::uint64_t answers = 0;  ///< Of the sacrificed queue pairs, those of which was known what they may be
  std::map<std::string, std::uint64_t> counters;  ///< Of both NICs
  std::vector<CorpusEntry> violations;
  bool stopped = false;      ///< The RTL itself reported an error: the world cannot go on
  bool interrupted = false;  ///< By the user: nothing more was sent, and what was there was checked
};

/// Frames from a third party on the wire in both directions, and malformed requests of a process on each host, while
/// others work on the same NICs. What must hold is judged from outside: no byte changes, and none leaves, that was not
/// granted; no DMA misses what the IOMMU maps; the work of the others goes on and is right; no success of a request
/// that cannot succeed; the driver gets its answers. An episode ends at its first violation. `progress` is called with
/// the frames sent.
FuzzReport run_fuzz(World& world, const WorldOptions& world_options, const FuzzOptions& options,
                    const std::function<void(std::uint64_t)>& progress = {});

}  // namespace rnic::testbench
