#pragma once

#include <string>
#include <string_view>

namespace rnic::testbench {

/// The scripts that make a Linux guest (testbench/guest/linux), as they were when the tool was built.
extern const std::string_view kPrepareLinux, kLinuxInit;

/// What a Linux guest boots, of Debian's packages.
struct LinuxFiles {
  std::string kernel, initrd, modules;
};

/// Makes them in the user's cache, if they are not there; `version` as uname -r has it, empty: Debian's newest.
/// `folder` is for what is needed meanwhile. Throws MissingError when something is missing that makes them, and has
/// said what on standard error; UsageError when they cannot be made.
[[nodiscard]] LinuxFiles make_linux_files(const std::string& version, const std::string& folder);

/// The program, as a shell takes it, with each argument as it is.
[[nodiscard]] std::string shell_quoted(const std::string& argument);

}  // namespace rnic::testbench
