#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "testbench/compare/program.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

/// What one of the worlds is given that the other is not, so that a test has a difference to find.
enum class PlantedDifference : std::uint8_t {
  kNone,
  kExtraRight,  ///< Regions without the right of remote writing have it
  kLongRegion,  ///< The smaller regions of host B are 64 bytes longer
  kShortQueue,  ///< Send queues take two requests at a time
};

/// What a program did to a world, as JSON, so that it can be sent from one process to another:
///
/// - "failures" (failure_entry): steps and calls that were refused, requests that did not end; "stopped": the RTL or
///   the world reported an error, and cannot go on
/// - "batches", each: "completions" of each "A initiator 1" (host, queue, queue pair) in their order, as results of a
///   vector; "events" of each host; "states" of the queue pairs that the batch has used, "psns" of those in RTS;
///   "memory": a hash of each block of 256 bytes that has changed; "packets" of each "A 1" (who sent it, queue pair of
///   the other): "requests" (the first sending of each PSN), "answers" (responses and NAKs), "rnr" (PSNs), "msns"
///   (those of each PSN acknowledged, in their order)
/// - "counters" of each host, "qp_counters" of each queue pair
/// - "bytes": all memory in hexadecimal, "??" where the specification does not say what is there; "frames": the packets
///   of each host, as vectors name them; both with details only
class ProgramRunner {
 public:
  /// `world` must outlive the runner; `options` are those it is reset with.
  ProgramRunner(World& world, WorldOptions options, PlantedDifference planted)
      : world_(world), options_(std::move(options)), planted_(planted) {}

  /// Throws VectorError for a program that is none; nothing else.
  [[nodiscard]] nlohmann::json run(const RandomProgram& program, bool with_details);

 private:
  World& world_;
  WorldOptions options_;
  PlantedDifference planted_;
};

}  // namespace rnic::testbench
