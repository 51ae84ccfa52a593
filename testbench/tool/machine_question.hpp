#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace rnic::testbench {

/// What the machine whose sockets are in `folder` answers to a line at its control socket (docs/server.md). Throws
/// UsageError when there is no machine.
[[nodiscard]] nlohmann::ordered_json ask_machine(const std::string& folder, const std::string& question);

}  // namespace rnic::testbench
