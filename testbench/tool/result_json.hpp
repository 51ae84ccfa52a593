#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace rnic::testbench {

/// How a command has ended.
enum class Outcome { kPassed, kFailed, kInterrupted };

/// Version of the shape that result_json gives and docs/results.schema.json describes. It goes up when a key gets
/// another meaning or goes, not when one is added.
inline constexpr int kResultSchema = 1;
/// Of a command that was interrupted: 128 and the number of SIGINT, as shells count.
inline constexpr int kInterruptedCode = 130;

[[nodiscard]] std::string_view name(Outcome outcome);
/// Of a run that may have been interrupted; what failed by then has failed.
[[nodiscard]] constexpr Outcome outcome_of(bool good, bool interrupted) {
  return !good ? Outcome::kFailed : interrupted ? Outcome::kInterrupted : Outcome::kPassed;
}
[[nodiscard]] constexpr int exit_code(Outcome outcome) {
  return outcome == Outcome::kInterrupted ? kInterruptedCode : outcome == Outcome::kFailed ? 1 : 0;
}

/// What every command writes as JSON (docs/results.md). `results` depend on options and seed only; what depends on the
/// machine that simulates is in `wall_clock`.
[[nodiscard]] nlohmann::ordered_json result_json(const std::string& command, Outcome outcome,
                                                 nlohmann::ordered_json results,
                                                 nlohmann::ordered_json wall_clock = nlohmann::ordered_json::object());

}  // namespace rnic::testbench
