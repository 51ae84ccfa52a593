#include "testbench/compare/program_vector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "testbench/compare/memory_record.hpp"
#include "testbench/compare/program_runner.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::uint64_t kWithinUs = 60'000;

/// In the order in which the vectors of the project have their keys.
ordered_json in_order(const json& step) {
  ordered_json to;
  for (const char* const key : {"host", "do", "qp"}) {
    if (step.contains(key)) to[key] = step.at(key);
  }
  for (const auto& [key, value] : step.items()) {
    if (!to.contains(key)) to[key] = value;
  }
  return to;
}

/// Completions and events of a batch, each taken by a step.
void expect_batch(const json& batch, ordered_json& steps) {
  for (const char* const host : {"A", "B"}) {
    for (const char* const queue : {"initiator", "receive"}) {
      json results = json::array();
      const std::string prefix = fmt::format("{} {} ", host, queue);
      for (const auto& [name, list] : batch.at("completions").items()) {
        if (name.starts_with(prefix)) results.insert(results.end(), list.begin(), list.end());
      }
      if (results.empty()) continue;
      steps.push_back(
          {{"host", host}, {"do", "complete"}, {"queue", queue}, {"results", results}, {"within_us", kWithinUs}});
    }
  }
  for (const auto& [host, list] : batch.at("events").items()) {
    for (const auto& event : list) {
      ordered_json step = {{"host", host}, {"do", "event"}};
      for (const auto& [key, value] : event.items()) step[key] = value;
      steps.push_back(std::move(step));
    }
  }
}

/// The bytes of the first block that differs; any where both have the same, or the specification says nothing.
void expect_memory(const Difference& difference, const json& first, const json& second, ordered_json& steps) {
  const auto block = [&](const json& of) {
    const auto bytes = of.at("bytes").at(difference.region).get<std::string>();
    return bytes.size() > 2 * difference.offset ? bytes.substr(2 * difference.offset, 2 * kHashedBytes) : "";
  };
  const std::string theirs = block(first);
  std::string text = block(second);
  if (text.empty()) return;  // its region ends before
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    if (text.compare(i, 2, theirs, i, 2) == 0) text.replace(i, 2, "??");
  }
  steps.push_back({{"host", difference.region[0] == 'a' ? "A" : "B"},
                   {"do", "memory"},
                   {"region", difference.region},
                   {"offset", difference.offset},
                   {"bytes", text}});
}

}  // namespace

ordered_json program_vector(const RandomProgram& program, const Difference& difference, const json& first,
                            const json& second) {
  ordered_json steps = ordered_json::array();
  const json& batches = second.at("batches");
  std::size_t done = 0;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    steps.push_back(in_order(program.steps[i].step));
    const bool last = i + 1 == program.steps.size() || program.steps[i + 1].batch != program.steps[i].batch;
    if (!last) continue;
    steps.push_back({{"host", "A"}, {"do", "wait"}, {"us", 20}});
    if (done < batches.size()) expect_batch(batches[done], steps);
    ++done;
  }
  if (!batches.empty() && difference.kind == "states") {
    for (const auto& [name, state] : batches.back().at("states").items())
      steps.push_back({{"host", name.substr(0, 1)}, {"do", "state"}, {"qp", std::stoi(name.substr(2))}, {"is", state}});
  }
  if (difference.kind == "memory" && second.contains("bytes") && first.contains("bytes"))
    expect_memory(difference, first, second, steps);
  ordered_json vector = {{"document", "rnic compare"},
                         {"clause", fmt::format("seed {}", program.seed)},
                         {"rule", fmt::format("{} of {}: {}", difference.kind, difference.place, difference.text)},
                         {"setup", program.setup},
                         {"steps", std::move(steps)}};
  if (difference.kind == "packets" && second.contains("frames")) vector["packets"] = second.at("frames");
  return vector;
}

}  // namespace rnic::testbench
