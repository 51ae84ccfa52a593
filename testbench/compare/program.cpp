#include "testbench/compare/program.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace rnic::testbench {
namespace {

using nlohmann::json;

template <std::size_t N>
bool does_one_of(const json& step, const std::array<std::string_view, N>& names) {
  const auto& name = step.at("do").get_ref<const std::string&>();
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::size_t host_of(const json& step) { return step.at("host") == "B" ? 1 : 0; }

std::size_t qp_of(const json& step) { return step.value("qp", std::size_t{1}) - 1; }

bool posts_request(const json& step) {
  constexpr std::array<std::string_view, 9> kNames = {
      "send", "write", "read", "compare_swap", "fetch_add", "bind", "invalidate", "fast_register", "end_registration"};
  return does_one_of(step, kNames);
}

bool is_auxiliary(const json& step) {
  constexpr std::array<std::string_view, 5> kNames = {"wait", "fault", "ring", "ring_reads", "store"};
  return does_one_of(step, kNames);
}

json RandomProgram::to_json() const {
  json list = json::array();
  for (const auto& one : steps) list.push_back({one.batch, one.step});
  return {{"seed", seed}, {"setup", setup}, {"faults", faults}, {"steps", std::move(list)}};
}

RandomProgram RandomProgram::from_json(const json& value) {
  RandomProgram program;
  program.seed = value.at("seed").get<std::uint64_t>();
  program.setup = value.at("setup");
  program.faults = value.at("faults").get<bool>();
  for (const auto& one : value.at("steps")) program.steps.push_back({one.at(0).get<std::size_t>(), one.at(1)});
  return program;
}

std::string RandomProgram::vector_text() const {
  json list = json::array();
  for (const auto& one : steps) list.push_back(one.step);
  return json{{"document", "none"}, {"clause", "none"}, {"rule", "none"}, {"setup", setup}, {"steps", list}}.dump();
}

std::size_t RandomProgram::batches() const { return steps.empty() ? 0 : steps.back().batch + 1; }

std::size_t RandomProgram::operations() const {
  return static_cast<std::size_t>(
      std::count_if(steps.begin(), steps.end(), [](const auto& one) { return !is_auxiliary(one.step); }));
}

void RandomProgram::count(std::map<std::string, std::uint64_t>& drawn) const {
  for (const auto& one : steps) {
    std::string name = one.step.at("do").get<std::string>();
    if (name == "fault") name += " " + one.step.at("fault").get<std::string>();
    if (name == "ring_reads") name += " " + one.step.at("answer").get<std::string>();
    if (one.step.contains("immediate") && posts_request(one.step)) name += " with immediate";
    if (one.step.contains("invalidate")) name += " with invalidate";
    ++drawn[name];
  }
}

}  // namespace rnic::testbench
