#include "testbench/traffic/cell_history.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rnic::testbench {

void CellHistory::posted(std::uint64_t version, std::uint32_t lane, std::uint64_t moment) {
  writes_.push_back({version, lane, moment, 0, 0, 0});
  if (writes_.size() > kRemembered) writes_.pop_front();
}

void CellHistory::acknowledged(std::uint64_t version, std::uint64_t moment) {
  if (auto* const write = find(version)) {
    write->acknowledged = moment;
    replace(*write, moment);
  }
}

std::optional<std::string> CellHistory::read(std::uint64_t version, std::uint64_t posted, std::uint64_t moment,
                                             bool whole) {
  auto* const write = find(version);
  if (write == nullptr) return fmt::format("version {}, which nobody wrote", version);
  if (write->replaced != 0 && write->replaced < posted)
    return fmt::format("version {}, which version {} had replaced before", version, write->replaced_by);
  if (whole) replace(*write, moment);
  return std::nullopt;
}

/// `by` is there. What it certainly stands behind is not.
void CellHistory::replace(const Write& by, std::uint64_t moment) {
  for (auto& write : writes_) {
    if (write.version == by.version) return;
    const bool before = write.lane == by.lane || (write.is_acknowledged() && write.acknowledged < by.posted);
    if (!before || write.replaced != 0) continue;
    write.replaced = moment;
    write.replaced_by = by.version;
  }
}

CellHistory::Write* CellHistory::find(std::uint64_t version) {
  const auto found =
      std::find_if(writes_.begin(), writes_.end(), [version](const Write& write) { return write.version == version; });
  return found == writes_.end() ? nullptr : &*found;
}

}  // namespace rnic::testbench
