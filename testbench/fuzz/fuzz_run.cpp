#include "testbench/fuzz/fuzz_run.hpp"

#include <algorithm>

#include "testbench/fuzz/fuzz_episode.hpp"
#include "testbench/interrupt.hpp"

namespace rnic::testbench {

FuzzReport run_fuzz(World& world, const WorldOptions& world_options, const FuzzOptions& options,
                    const std::function<void(std::uint64_t)>& progress) {
  FuzzReport report;
  const std::vector<CorpusEntry> nothing;
  while (report.frames < options.frames && !report.stopped && !interrupted()) {
    WorldOptions episode_options = world_options;
    episode_options.seed += report.episodes;
    if (report.episodes != 0) world.reset(episode_options);
    const auto frames = std::min(options.episode_frames, options.frames - report.frames);
    const std::uint64_t before = report.frames;
    FuzzEpisode(world, {episode_options.seed, frames, options.planted}, report.episodes == 0 ? options.corpus : nothing,
                report, progress)
        .run();
    ++report.episodes;
    if (report.violations.size() >= options.most_violations || report.frames == before) break;
  }
  report.interrupted = interrupted() && report.frames < options.frames;
  return report;
}

}  // namespace rnic::testbench
