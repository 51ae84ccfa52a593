#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "testbench/tool/copy.hpp"

namespace rnic::testbench {

/// Something the user asked for cannot be done (a file, an option): exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Something is missing on this machine that Debian has: exit code 77, as of a test that is skipped.
class MissingError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// 0 when no time has passed.
inline double per_second(std::uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

/// Throws UsageError when `path` cannot be written. An empty path is fine. An existing file keeps its content.
void check_writable(const std::filesystem::path& path, const char* option);
/// Throws UsageError.
void write_json(const std::filesystem::path& path, const nlohmann::ordered_json& value);

/// The table at the end of `rnic copy`.
void print_copy(const CopyReport& report, const CopyOptions& options, double link_gbps);
/// "results" of `rnic copy` (docs/results.md).
nlohmann::ordered_json copy_json(const CopyReport& report, const CopyOptions& options, double link_gbps,
                                 std::uint64_t seed);
/// "wall_clock" of it.
nlohmann::ordered_json copy_wall_clock(const CopyReport& report);

/// How often each fault of the scenario has hit: {"wire": {"a_to_b": {"drop": 3}}, "pcie": {"a": {...}}}. Only what has
/// happened.
nlohmann::ordered_json faults_json(World& world);
/// `why` a run failed, and behind it the faults of the scenario that have hit until now, if any.
std::string with_faults(World& world, const std::string& why);

}  // namespace rnic::testbench
