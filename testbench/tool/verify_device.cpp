#include "testbench/tool/verify_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "testbench/device/device_runner.hpp"
#include "testbench/interrupt.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/terminal.hpp"
#include "testbench/verify/vector_grade.hpp"

namespace rnic::testbench {
namespace {

VerifyLine verdict_line(const Vector& vector, const DeviceOutcome& outcome) {
  VerifyLine line{&vector, {}, outcome.verdict == DeviceVerdict::kSkipped};
  line.outcome.passed = outcome.verdict != DeviceVerdict::kFailed;
  line.outcome.message = outcome.message;
  return line;
}

}  // namespace

std::vector<VerifyLine> verify_on_device(const DeviceArguments& device, const std::vector<Vector>& vectors) {
  const std::array<std::string, 2> names{device.names.front(), device.names.back()};
  const DeviceTimes times{std::chrono::seconds(device.patience_s), std::chrono::milliseconds(device.settle_ms)};
  std::vector<VerifyLine> lines;
  try {
    if (vectors.size() > 1) catch_interrupts();
    for (const auto& vector : vectors) {
      if (interrupted()) break;
      const auto grading = grade_of(vector);
      const bool whole = grading.grade == VectorGrade::kVerbs;
      if (!whole && !(device.in_part && grading.doing == VectorGrade::kVerbs)) continue;
      const auto start = std::chrono::steady_clock::now();
      const auto outcome = run_on_devices(names, vector, times);
      const char* const word = outcome.verdict == DeviceVerdict::kFailed    ? "FAIL"
                               : outcome.verdict == DeviceVerdict::kSkipped ? "skip"
                               : whole                                      ? "pass"
                                                                            : "part";
      const bool failed = outcome.verdict == DeviceVerdict::kFailed;
      if (failed || !device.quiet)
        fmt::print("{} {}{}\n", toned(word, failed ? Tone::kBad : Tone::kGood), vector.file.string(),
                   outcome.message.empty() ? "" : ": " + outcome.message);
      std::fflush(stdout);
      lines.push_back(verdict_line(vector, outcome));
      lines.back().outcome.wall_seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
  } catch (const DeviceError& error) {
    throw UsageError(fmt::format("--device: {}", error.what()));
  }
  if (lines.empty() && !interrupted()) throw UsageError("--device: none of these vectors is of the grade verbs");
  return lines;
}

}  // namespace rnic::testbench
