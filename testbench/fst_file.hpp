#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace rnic::testbench {

struct FstSignal {
  std::string scope;  ///< Of the whole file: "host0_nic.rnic_top.u_send_side"
  std::string name;   ///< Without its range
  std::string range;  ///< "[7:0]", or empty
  std::uint32_t bits = 0;
  bool has_names = false;  ///< The file has names for its values: an enumeration

  [[nodiscard]] std::string path() const { return scope + "." + name; }
};

/// What a closed FST file says about its signals, without their values.
struct FstFile {
  std::uint64_t start_ps = 0, end_ps = 0;
  std::vector<FstSignal> signals;

  /// Nothing (no signals) for a file that cannot be read.
  [[nodiscard]] static FstFile read(const std::filesystem::path& path);
};

}  // namespace rnic::testbench
