#pragma once

#include <string>
#include <vector>

#include "testbench/device/device_session.hpp"
#include "testbench/tool/verify_line.hpp"
#include "testbench/verify/vector.hpp"

namespace rnic::testbench {

/// What `rnic verify --device` is told.
struct DeviceArguments {
  std::vector<std::string> names;  ///< One or two devices; none: not on a device
  bool in_part = false;            ///< Also what of higher grades can be done, without what cannot be seen
  unsigned patience_s = 10;
  unsigned settle_ms = 20;
  bool quiet = false;  ///< Lines only of those that fail
};

/// Runs the vectors of the grade `verbs` among these on devices of libibverbs, and prints a line for each. Throws
/// UsageError when the devices cannot be used, or no vector is of that grade.
[[nodiscard]] std::vector<VerifyLine> verify_on_device(const DeviceArguments& device,
                                                       const std::vector<Vector>& vectors);

}  // namespace rnic::testbench
