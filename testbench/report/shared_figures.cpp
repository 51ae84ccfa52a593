#include "testbench/report/shared_figures.hpp"

#include <algorithm>

namespace rnic::testbench {

void WorkTime::begin(std::uint64_t now_ps) {
  if (first_ == 0) first_ = now_ps;
  if (requests_++ == 0) since_ = now_ps;
}

void WorkTime::end(std::uint64_t now_ps) {
  last_ = now_ps;
  if (requests_ == 0 || --requests_ != 0) return;
  total_ += now_ps - since_;
}

std::uint64_t WorkTime::total_ps(std::uint64_t now_ps) const { return total_ + (open() ? now_ps - since_ : 0); }

std::uint64_t WorkTime::since_ps(std::uint64_t from_ps, std::uint64_t now_ps) const {
  const std::uint64_t from = std::max(from_ps, since_), to = open() ? now_ps : last_;
  return to - std::min(from, to);
}

void SharedFigures::work_begins(std::uint64_t now_ps) {
  work.begin(now_ps);
  switch_usage();
}

void SharedFigures::work_ends(std::uint64_t now_ps) {
  work.end(now_ps);
  switch_usage();
}

void SharedFigures::switch_usage() {
  for (auto& one : usage) one.on = work.open();
}

}  // namespace rnic::testbench
