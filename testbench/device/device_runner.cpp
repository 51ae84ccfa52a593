#include "testbench/device/device_runner.hpp"

namespace rnic::testbench {
namespace {

/// Steps that only look: what they miss changes nothing of those behind them.
bool only_looks(StepKind kind) {
  return kind == StepKind::kEvent || kind == StepKind::kNoEvent || kind == StepKind::kMemory ||
         kind == StepKind::kState || kind == StepKind::kNoCompletion;
}

}  // namespace

DeviceOutcome run_on_devices(const std::array<std::string, 2>& devices, const Vector& vector, DeviceTimes times) {
  std::string differences;
  const auto add = [&differences](const std::string& difference) {
    differences += (differences.empty() ? "" : " | ") + difference;
  };
  try {
    DeviceSession session(devices, vector, times);
    for (const auto& step : vector.steps) {
      try {
        session.run(step);
      } catch (const DeviceDisagrees& difference) {
        if (!only_looks(step.kind)) throw;
        add(difference.what());
      }
    }
    session.expect_nothing_left();
  } catch (const DeviceLacks& lack) {
    return {DeviceVerdict::kSkipped, lack.what()};
  } catch (const DeviceDisagrees& difference) {
    add(difference.what());
  }
  if (!differences.empty()) return {DeviceVerdict::kFailed, differences};
  return {};
}

}  // namespace rnic::testbench
