#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace rnic::testbench {

/// Progress bar on standard error with the time that is left, when that is a terminal; silent otherwise.
class Progress {
 public:
  Progress(std::string label, std::uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Redraws when a whole percent or a second has passed.
  void update(std::uint64_t done);

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  std::uint64_t total_;
  int shown_ = -1;
  Clock::time_point start_ = Clock::now(), shown_at_;
  bool terminal_;
};

/// "0:07", "12:34", "3:25:00": seconds as a person reads them.
[[nodiscard]] std::string clock_text(std::uint64_t seconds);

}  // namespace rnic::testbench
