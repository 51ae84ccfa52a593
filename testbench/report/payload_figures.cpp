#include "testbench/report/payload_figures.hpp"

#include "testbench/timeline/life.hpp"

namespace rnic::testbench {

void PayloadFigures::settle(unsigned host, std::uint8_t qp, std::uint32_t first, std::uint32_t last, bool good) {
  const auto found = held_.find({host, qp});
  if (found == held_.end()) return;
  std::erase_if(found->second, [&](const Part& part) {
    if (!reaches(last, part.psn)) return false;
    const bool older = !reaches(part.psn, first);
    if (good || older) count(part);
    return true;
  });
}

}  // namespace rnic::testbench
