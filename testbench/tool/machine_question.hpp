#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "driver/remote/descriptor.hpp"

namespace rnic::testbench {

/// Connects to a socket of a machine of the same user. Nothing: none listens there. Throws UsageError for what is
/// another user's.
[[nodiscard]] std::optional<remote::Descriptor> find_machine(const std::string& socket);
/// Says so. Throws UsageError.
[[noreturn]] void no_machine(const std::string& folder);

/// What the machine whose sockets are in `folder` answers to a line at its control socket (docs/server.md). Throws
/// UsageError when there is no machine, or it is another user's.
[[nodiscard]] nlohmann::ordered_json ask_machine(const std::string& folder, const std::string& question);

}  // namespace rnic::testbench
