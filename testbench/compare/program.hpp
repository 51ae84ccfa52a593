#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rnic::testbench {

/// One step of a program, as docs/vectors.md describes steps.
struct ProgramStep {
  std::size_t batch = 0;
  nlohmann::json step;
};

/// A random program of `rnic compare`: the setup of a vector and its steps, without any of those that expect.
/// Everything comes to rest behind each batch, before the next one begins.
struct RandomProgram {
  std::uint64_t seed = 0;
  nlohmann::json setup;
  std::vector<ProgramStep> steps;
  /// Frames are lost or damaged, by a step or by the scenario of the run.
  bool faults = false;

  [[nodiscard]] nlohmann::json to_json() const;
  /// Throws nlohmann::json::exception for what is no program.
  [[nodiscard]] static RandomProgram from_json(const nlohmann::json& value);

  /// The text of a vector with these steps and no expectation.
  [[nodiscard]] std::string vector_text() const;
  [[nodiscard]] std::size_t batches() const;
  /// Requests, hand-made frames and changes of state: what `operations` counts.
  [[nodiscard]] std::size_t operations() const;
  /// How often each kind of step is in it.
  void count(std::map<std::string, std::uint64_t>& drawn) const;
};

/// Host of a step (0: A), and its queue pair, from 0.
[[nodiscard]] std::size_t host_of(const nlohmann::json& step);
[[nodiscard]] std::size_t qp_of(const nlohmann::json& step);
/// The step posts a request, which ends with a completion, or silently.
[[nodiscard]] bool posts_request(const nlohmann::json& step);
/// The step is there for others only: it waits, rings, or sets a fault.
[[nodiscard]] bool is_auxiliary(const nlohmann::json& step);

}  // namespace rnic::testbench
