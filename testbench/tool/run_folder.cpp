#include "testbench/tool/run_folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "testbench/tool/report.hpp"

namespace rnic::testbench {

std::string default_run_folder() {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime != 0) return std::string(runtime) + "/rnic";
  return fmt::format("/tmp/rnic-{}", getuid());
}

void make_run_folder(const std::string& folder) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw UsageError(fmt::format("cannot make the folder '{}': {}", folder, std::strerror(errno)));
  struct stat what {};
  if (lstat(folder.c_str(), &what) != 0 || !S_ISDIR(what.st_mode))
    throw UsageError(fmt::format("'{}' is no folder", folder));
  if (what.st_uid != geteuid()) throw UsageError(fmt::format("the folder '{}' is another user's", folder));
  if ((what.st_mode & 0022) != 0) throw UsageError(fmt::format("others may write to the folder '{}'", folder));
}

}  // namespace rnic::testbench
