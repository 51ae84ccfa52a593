#pragma once

#include <cstdint>

#include "testbench/compare/program.hpp"

namespace rnic::testbench {

struct ProgramLimits {
  std::size_t operations = 120;  ///< About so many in a program
  bool wire_faults = true;       ///< Steps that make the wire lose or damage frames are drawn
  bool scenario = false;         ///< The wire has faults by chance: reliable connections alone, and all of them live
};

/// Draws a program. The same seed and limits give the same one, on every machine.
[[nodiscard]] RandomProgram make_program(std::uint64_t seed, const ProgramLimits& limits);

}  // namespace rnic::testbench
