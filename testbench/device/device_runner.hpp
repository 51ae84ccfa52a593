#pragma once

#include <array>
#include <string>

#include "testbench/device/device_session.hpp"
#include "testbench/verify/vector.hpp"

namespace rnic::testbench {

enum class DeviceVerdict : std::uint8_t { kPassed, kFailed, kSkipped };

struct DeviceOutcome {
  DeviceVerdict verdict = DeviceVerdict::kPassed;
  std::string message;  ///< What came out otherwise, parts with " | " between them; or what the device lacks
};

/// Runs a vector of the grade `verbs` on devices of libibverbs: of host A and of host B. Throws DeviceError when they
/// cannot be used at all.
[[nodiscard]] DeviceOutcome run_on_devices(const std::array<std::string, 2>& devices, const Vector& vector,
                                           DeviceTimes times);

}  // namespace rnic::testbench
