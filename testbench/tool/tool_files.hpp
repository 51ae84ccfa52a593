#pragma once

#include <filesystem>

namespace rnic::testbench {

/// Where the tool is, from the program that runs: <prefix>/bin/rnic or <prefix>/libexec/rnic/rnic-*. Throws
/// std::filesystem::filesystem_error without /proc.
std::filesystem::path tool_prefix();

}  // namespace rnic::testbench
