#pragma once

#include <string>

#include "testbench/coverage/reached_points.hpp"

namespace rnic::testbench {

/// A page of HTML about cover points, whole in itself, in the style of docs/report.md: sums by clause and by block, and
/// every point that is not reached.
[[nodiscard]] std::string coverage_page(const ReachedPoints& reached);

}  // namespace rnic::testbench
