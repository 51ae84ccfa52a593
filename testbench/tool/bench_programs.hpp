#pragma once

namespace rnic::testbench {

/// What a program of libibverbs on a machine of its own (`rnic serve`) waits for, on the clock on the wall.
struct ProgramTimes {
  double us_per_small_write = 0;  ///< 8 bytes inline, one after the other, posting to completion
  double mb_per_s = 0;            ///< 64 KiB Writes, 16 at once; 10^6 bytes
};

/// Runs testbench/programs/verbs_writes on two hosts. Throws std::runtime_error when it fails, UsageError when there is
/// no machine.
[[nodiscard]] ProgramTimes time_programs();

}  // namespace rnic::testbench
