#include "testbench/compare/compare_run.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "testbench/compare/program_vector.hpp"
#include "testbench/compare/shrink.hpp"
#include "testbench/compare/world_process.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;

/// Two worlds that run the same program at a time.
class Lane {
 public:
  explicit Lane(const CompareOptions& options)
      : first_(options.worlds[0], options.planted), second_(options.worlds[1], PlantedDifference::kNone) {}

  void give(const RandomProgram& program, bool with_details = false) {
    first_.give(program, with_details);
    second_.give(program, with_details);
  }
  std::pair<json, json> take() {
    json first = first_.take();
    return {std::move(first), second_.take()};
  }
  std::pair<json, json> run(const RandomProgram& program, bool with_details = false) {
    give(program, with_details);
    return take();
  }

 private:
  WorldProcess first_, second_;
};

class Compare {
 public:
  Compare(const CompareOptions& options, const std::function<void(std::uint64_t)>& progress)
      : options_(options), progress_(progress) {
    for (unsigned i = 0; i < std::max(1u, options.jobs); ++i) lanes_.push_back(std::make_unique<Lane>(options));
  }

  CompareReport run() {
    std::uint64_t seed = options_.seed, given = 0;
    std::deque<std::pair<Lane*, RandomProgram>> under_way;
    const auto give = [&](Lane* lane) {
      if (given >= options_.operations || report_.differences.size() >= options_.most_differences) return;
      RandomProgram program = make_program(seed++, options_.limits);
      given += program.operations();
      lane->give(program);
      under_way.emplace_back(lane, std::move(program));
    };
    for (auto& lane : lanes_) give(lane.get());
    while (!under_way.empty()) {
      auto [lane, program] = std::move(under_way.front());
      under_way.pop_front();
      const auto [first, second] = lane->take();
      note(program, second);
      if (const auto difference = find_difference(program, first, second)) add(*lane, std::move(program), *difference);
      if (progress_) progress_(report_.operations);
      give(lane);
    }
    return std::move(report_);
  }

 private:
  void note(const RandomProgram& program, const json& outcome) {
    ++report_.programs;
    report_.operations += program.operations();
    program.count(report_.drawn);
    for (const auto& failure : outcome.at("failures")) ++report_.failures[failure.at("sort").get<std::string>()];
    for (const auto& batch : outcome.at("batches")) {
      for (const auto& [name, list] : batch.at("completions").items()) {
        report_.completions += list.size();
        for (const auto& one : list) ++report_.outcomes[one.at("status").get<std::string>()];
      }
      for (const auto& [way, lists] : batch.at("packets").items()) {
        for (const char* const kind : {"requests", "answers"}) {
          if (const auto it = lists.find(kind); it != lists.end()) report_.packets += it->size();
        }
      }
    }
  }

  void add(Lane& lane, RandomProgram program, const Difference& found) {
    FoundDifference entry{program.seed, 0, found, found, {}};
    const auto difference_of = [&lane](const RandomProgram& one) -> std::optional<Difference> {
      const auto [first, second] = lane.run(one);
      if (first.contains("malformed")) return std::nullopt;
      return find_difference(one, first, second);
    };
    const auto shows = [&](const RandomProgram& one) {
      const auto difference = difference_of(one);
      return difference && difference->is_like(found);
    };
    if (options_.shrinks) program = shrink(std::move(program), shows);
    const auto [first, second] = lane.run(program, true);
    if (const auto difference = find_difference(program, first, second)) entry.difference = *difference;
    entry.operations = program.operations();
    entry.vector = program_vector(program, entry.difference, first, second);
    report_.differences.push_back(std::move(entry));
  }

  const CompareOptions& options_;
  const std::function<void(std::uint64_t)>& progress_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  CompareReport report_;
};

}  // namespace

CompareReport run_compare(const CompareOptions& options, const std::function<void(std::uint64_t)>& progress) {
  return Compare(options, progress).run();
}

}  // namespace rnic::testbench
