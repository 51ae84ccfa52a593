#pragma once

#include <cstddef>
#include <functional>

#include "testbench/compare/program.hpp"

namespace rnic::testbench {

/// The shortest program that still shows what is looked for: steps are taken out (delta debugging, Zeller and
/// Hildebrandt 2002), then what they and the setup say beyond need. `shows` runs a program; it may be asked at most
/// `most_runs` times.
[[nodiscard]] RandomProgram shrink(RandomProgram program, const std::function<bool(const RandomProgram&)>& shows,
                                   std::size_t most_runs = 600);

}  // namespace rnic::testbench
