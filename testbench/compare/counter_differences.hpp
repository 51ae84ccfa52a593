#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "testbench/compare/differences.hpp"

namespace rnic::testbench {

/// The first counter, of a host or of a queue pair, in which two outcomes (ProgramRunner) differ, but for those that
/// are free (Freedom::kCounters). `clean`: nothing has failed, no frame was lost and no Receive came late, so that
/// those of refusals and repairs are compared, too.
[[nodiscard]] std::optional<Difference> find_counter_difference(const nlohmann::json& first,
                                                                const nlohmann::json& second, bool clean);

}  // namespace rnic::testbench
