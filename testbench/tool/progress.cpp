#include "testbench/tool/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace rnic::testbench {

Progress::Progress(std::string label, std::uint64_t total)
    : label_(std::move(label)), total_(total), terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (terminal_ && shown_ >= 0) std::fputs("\r\033[K", stderr);
}

void Progress::update(std::uint64_t done) {
  if (!terminal_) return;
  const int percent = total_ == 0 ? 100 : static_cast<int>(done * 100 / total_);
  if (percent == shown_) return;
  shown_ = percent;
  constexpr int kWidth = 40;
  const int filled = percent * kWidth / 100;
  fmt::print(stderr, "\r{} [{:#<{}}{:.<{}}] {:3}%", label_, "", filled, "", kWidth - filled, percent);
  std::fflush(stderr);
}

}  // namespace rnic::testbench
