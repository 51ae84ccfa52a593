#include "testbench/tool/result_json.hpp"

#include <array>
#include <utility>

namespace rnic::testbench {

std::string_view name(Outcome outcome) {
  constexpr std::array<std::string_view, 3> kNames = {"passed", "failed", "interrupted"};
  return kNames.at(static_cast<std::size_t>(outcome));
}

nlohmann::ordered_json result_json(const std::string& command, Outcome outcome, nlohmann::ordered_json results,
                                   nlohmann::ordered_json wall_clock) {
  return {{"schema", kResultSchema},       {"command", command},
          {"version", RNIC_VERSION},       {"outcome", name(outcome)},
          {"results", std::move(results)}, {"wall_clock", std::move(wall_clock)}};
}

}  // namespace rnic::testbench
