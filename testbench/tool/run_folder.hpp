#pragma once

#include <string>

namespace rnic::testbench {

/// Where the machine of a user listens that says nothing else: $XDG_RUNTIME_DIR/rnic, or /tmp/rnic-UID.
[[nodiscard]] std::string default_run_folder();
/// Makes the folder, for the user alone, if it is not there. Throws UsageError when it cannot be made, or is another
/// user's, or others may enter it.
void make_run_folder(const std::string& folder);

}  // namespace rnic::testbench
