#include "testbench/tool/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace rnic::testbench {

std::string clock_text(std::uint64_t seconds) {
  const std::uint64_t hours = seconds / 3600, minutes = seconds / 60 % 60;
  if (hours != 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, seconds % 60);
  return fmt::format("{}:{:02}", minutes, seconds % 60);
}

Progress::Progress(std::string label, std::uint64_t total)
    : label_(std::move(label)), total_(total), terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (terminal_ && shown_ >= 0) std::fputs("\r\033[K", stderr);
}

void Progress::update(std::uint64_t done) {
  if (!terminal_) return;
  const int percent = total_ == 0 ? 100 : static_cast<int>(done * 100 / total_);
  const auto now = Clock::now();
  if (percent == shown_ && now - shown_at_ < std::chrono::seconds(1)) return;
  shown_ = percent;
  shown_at_ = now;
  constexpr int kWidth = 40;
  const int filled = percent * kWidth / 100;
  std::string left;
  if (done != 0 && done <= total_) {
    const double passed = std::chrono::duration<double>(now - start_).count();
    const double rest = passed * static_cast<double>(total_ - done) / static_cast<double>(done);
    left = "  " + clock_text(static_cast<std::uint64_t>(rest + 0.5)) + " left";
  }
  fmt::print(stderr, "\r{} [{:#<{}}{:.<{}}] {:3}%{}\033[K", label_, "", filled, "", kWidth - filled, percent, left);
  std::fflush(stderr);
}

}  // namespace rnic::testbench
