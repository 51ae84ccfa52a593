#include "testbench/compare/shrink.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

namespace rnic::testbench {
namespace {

using nlohmann::json;

class Shrinker {
 public:
  Shrinker(RandomProgram program, const std::function<bool(const RandomProgram&)>& shows, std::size_t most_runs)
      : program_(std::move(program)), shows_(shows), runs_left_(most_runs) {}

  RandomProgram run() {
    take_steps_out();
    simplify_steps();
    simplify_setup();
    take_steps_out();
    return std::move(program_);
  }

 private:
  /// Keeps `smaller` if it shows the same.
  bool try_one(RandomProgram smaller) {
    if (runs_left_ == 0) return false;
    --runs_left_;
    if (!shows_(smaller)) return false;
    program_ = std::move(smaller);
    return true;
  }

  void take_steps_out() {
    std::size_t size = std::max<std::size_t>(1, program_.steps.size() / 2);
    while (size > 0) {
      bool any = false;
      for (std::size_t at = 0; at < program_.steps.size() && runs_left_ > 0;) {
        RandomProgram smaller = program_;
        const auto first = smaller.steps.begin() + static_cast<std::ptrdiff_t>(at);
        smaller.steps.erase(first, first + static_cast<std::ptrdiff_t>(std::min(size, smaller.steps.size() - at)));
        if (!smaller.steps.empty() && try_one(std::move(smaller)))
          any = true;
        else
          at += size;
      }
      if (!any || size > 1) size /= 2;
      if (runs_left_ == 0) return;
    }
  }

  void simplify_steps() {
    constexpr std::array<const char*, 5> kOptional = {"flags", "immediate", "address", "solicited", "notify"};
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      for (const char* const key : kOptional) {
        if (!program_.steps[i].step.contains(key)) continue;
        RandomProgram smaller = program_;
        smaller.steps[i].step.erase(key);
        try_one(std::move(smaller));
      }
      while (program_.steps[i].step.contains("sge") && program_.steps[i].step["sge"].size() > 1) {
        RandomProgram smaller = program_;
        smaller.steps[i].step["sge"].erase(0);
        if (!try_one(std::move(smaller))) break;
      }
    }
  }

  void simplify_setup() {
    std::size_t most_qp = 0;
    std::set<std::string> named;
    for (const auto& one : program_.steps) {
      most_qp = std::max(most_qp, qp_of(one.step));
      note_regions(one.step, named);
    }
    RandomProgram fewer = program_;
    fewer.setup["queue_pairs"] = most_qp + 1;
    try_one(std::move(fewer));
    RandomProgram unused = program_;
    json& regions = unused.setup["regions"];
    json kept = json::array();
    for (const auto& region : regions) {
      if (named.contains(region.at("name").get<std::string>())) kept.push_back(region);
    }
    regions = kept;
    try_one(std::move(unused));
    const json setup = program_.setup;
    for (const auto& [key, value] : setup.items()) {
      if (key == "rnr_retry") continue;           // with fewer, what comes of a late Receive is a matter of time
      if (key == "completion_timeout") continue;  // what is never answered holds up a world for 30 ms without it
      if (key == "regions" || key == "type") continue;
      RandomProgram smaller = program_;
      smaller.setup.erase(key);
      if (try_one(std::move(smaller)) || !value.is_object()) continue;
      for (const auto& [inner, ignored] : value.items()) {
        RandomProgram less = program_;
        less.setup[key].erase(inner);
        try_one(std::move(less));
      }
    }
  }

  static void note_regions(const json& value, std::set<std::string>& named) {
    for (const auto& [key, inner] : value.items()) {
      if (inner.is_string()) named.insert(inner.get<std::string>());
      if (inner.is_structured()) note_regions(inner, named);
    }
  }

  RandomProgram program_;
  const std::function<bool(const RandomProgram&)>& shows_;
  std::size_t runs_left_;
};

}  // namespace

RandomProgram shrink(RandomProgram program, const std::function<bool(const RandomProgram&)>& shows,
                     std::size_t most_runs) {
  return Shrinker(std::move(program), shows, most_runs).run();
}

}  // namespace rnic::testbench
