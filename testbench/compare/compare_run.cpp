#include "testbench/compare/compare_run.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "testbench/compare/outcome.hpp"
#include "testbench/compare/program_vector.hpp"
#include "testbench/compare/shrink.hpp"
#include "testbench/compare/world_process.hpp"
#include "testbench/interrupt.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;

constexpr auto kShrinkTime = std::chrono::minutes{10};

bool has_ended(const json& outcome) {
  const auto& failures = outcome.at("failures");
  return std::none_of(failures.begin(), failures.end(), [](const json& one) { return one.at("sort") == kNotEnded; });
}

bool is_model(const WorldOptions& world) {
  return std::all_of(world.nics.begin(), world.nics.begin() + World::kHosts,
                     [&](const auto& nic) { return nic.value_or(world.host.nic.kind) == NicKind::kModel; });
}

/// Two worlds that run the same program at a time.
class Lane {
 public:
  explicit Lane(const CompareOptions& options)
      : first_(options.worlds[0], options.planted),
        second_(options.worlds[1], PlantedDifference::kNone),
        second_is_quick_(is_model(options.worlds[1])) {}

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
  [[nodiscard]] bool quick_ended(const json& first, const json& second) const {
    return has_ended(second_is_quick_ ? second : first);
  }
  /// First on the faster world, and on the other one only if the requests of `program` end there: those of half a
  /// program often do not (a SEND that is sent again for ever, without its Receive), and the RTL is at it for minutes.
  std::optional<std::pair<json, json>> run_if_it_ends(const RandomProgram& program) {
    WorldProcess& quick = second_is_quick_ ? second_ : first_;
    WorldProcess& other = second_is_quick_ ? first_ : second_;
    quick.give(program, false);
    json outcome = quick.take();
    if (!has_ended(outcome)) return std::nullopt;
    other.give(program, false);
    json others = other.take();
    if (second_is_quick_) std::swap(outcome, others);
    return std::pair{std::move(outcome), std::move(others)};
  }

 private:
  WorldProcess first_, second_;
  bool second_is_quick_;
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
      if (given >= options_.operations || report_.differences.size() >= options_.most_differences || interrupted())
        return;
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
      if (const auto difference = find_difference(program, first, second))
        add(*lane, std::move(program), *difference, lane->quick_ended(first, second));
      if (progress_) progress_(report_.operations);
      give(lane);
    }
    report_.interrupted = interrupted() && report_.operations < options_.operations;
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

  /// `ends`: on the faster world.
  void add(Lane& lane, RandomProgram program, const Difference& found, bool ends) {
    FoundDifference entry{program.seed, 0, found, found, {}};
    const auto stop = std::chrono::steady_clock::now() + kShrinkTime;
    const auto shows = [&](const RandomProgram& one) {
      if (interrupted() || std::chrono::steady_clock::now() > stop) return false;
      const auto outcome = ends ? lane.run_if_it_ends(one) : lane.run(one);
      if (!outcome || outcome->first.contains("malformed")) return false;
      const auto difference = find_difference(one, outcome->first, outcome->second);
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
