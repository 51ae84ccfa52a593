#pragma once

#include <nlohmann/json.hpp>

#include "testbench/compare/differences.hpp"
#include "testbench/compare/program.hpp"

namespace rnic::testbench {

/// A vector (docs/vectors.md) that expects of a program what the second world has shown, as far as it is about the
/// difference. Both outcomes are with details. Whoever has judged the difference writes document, clause and rule.
[[nodiscard]] nlohmann::ordered_json program_vector(const RandomProgram& program, const Difference& difference,
                                                    const nlohmann::json& first, const nlohmann::json& second);

}  // namespace rnic::testbench
