#pragma once

#include <string>
#include <vector>

namespace rnic::testbench {

/// Takes the programs off the command line of `rnic exec`, `rnic lockstep` and `rnic linux`: everything behind the
/// first "--". Of other commands nothing.
[[nodiscard]] std::vector<std::string> take_programs(int& argc, const char* const argv[]);

}  // namespace rnic::testbench
