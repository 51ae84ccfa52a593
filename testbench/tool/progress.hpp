#pragma once

#include <cstdint>
#include <string>

namespace rnic::testbench {

/// Progress bar on standard error, when that is a terminal; silent otherwise.
class Progress {
 public:
  Progress(std::string label, std::uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Redraws when a whole percent has been gained.
  void update(std::uint64_t done);

 private:
  std::string label_;
  std::uint64_t total_;
  int shown_ = -1;
  bool terminal_;
};

}  // namespace rnic::testbench
