#include "testbench/traffic/word_history.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rnic::testbench {

std::optional<std::string> WordHistory::add(const Operation& operation) {
  const auto at = find(operation.before);
  if (!operation.after || *operation.after == operation.before) {
    if (at) return place(operation, *at);
    looks_.emplace(operation.before, operation);
    return std::nullopt;
  }
  if (at && *at + 1 != entries_.size())
    return fmt::format("request {} of queue pair {} found {:#x}, which had been replaced by then", operation.number,
                       operation.lane, operation.before);
  if (const auto [other, is_new] = changes_.emplace(operation.before, operation); !is_new)
    return fmt::format("request {} of queue pair {} and request {} of queue pair {} both found {:#x}", operation.number,
                       operation.lane, other->second.number, other->second.lane, operation.before);
  return advance();
}

/// Gives those a place that follow the newest value.
std::optional<std::string> WordHistory::advance() {
  for (auto next = changes_.find(value()); next != changes_.end(); next = changes_.find(value())) {
    const Operation operation = next->second;
    changes_.erase(next);
    const auto late = std::max(entries_.back().posted, latest_look_);
    if (operation.completed < late)
      return fmt::format("request {} of queue pair {} found {:#x} and had completed before that was there",
                         operation.number, operation.lane, operation.before);
    const auto [newest, is_first] = newest_.emplace(operation.lane, operation.number);
    if (!is_first && newest->second >= operation.number)
      return fmt::format("request {} of queue pair {} was executed after request {}", operation.number, operation.lane,
                         newest->second);
    newest->second = operation.number;
    entries_.push_back({*operation.after, operation, std::max(entries_.back().posted, operation.posted)});
    if (entries_.size() > kRemembered) entries_.pop_front();
    const auto [first, last] = looks_.equal_range(value());
    std::vector<Operation> waited;
    for (auto look = first; look != last; ++look) waited.push_back(look->second);
    looks_.erase(first, last);
    for (const auto& look : waited) {
      if (auto wrong = place(look, entries_.size() - 1)) return wrong;
    }
  }
  return std::nullopt;
}

/// One that changes nothing, and found what entry `at` left.
std::optional<std::string> WordHistory::place(const Operation& look, std::size_t at) {
  const auto stale = [&](const Entry& entry) {
    return fmt::format("request {} of queue pair {} found {:#x}, which request {} of queue pair {} had replaced before",
                       look.number, look.lane, look.before, entry.by.number, entry.by.lane);
  };
  if (look.completed < entries_[at].posted)
    return fmt::format("request {} of queue pair {} found {:#x} before that was written", look.number, look.lane,
                       look.before);
  for (std::size_t i = at + 1; i < entries_.size(); ++i) {
    const auto& by = entries_[i].by;
    if (by.completed < look.posted || (by.lane == look.lane && by.number < look.number)) return stale(entries_[i]);
  }
  for (std::size_t i = 1; i <= at && !look.is_read; ++i) {
    const auto& by = entries_[i].by;
    if (by.lane == look.lane && by.number > look.number)
      return fmt::format("request {} of queue pair {} found what request {} behind it left", look.number, look.lane,
                         by.number);
  }
  latest_look_ = std::max(latest_look_, look.posted);
  return std::nullopt;
}

std::optional<std::size_t> WordHistory::find(std::uint64_t value) const {
  const auto found =
      std::find_if(entries_.rbegin(), entries_.rend(), [value](const Entry& entry) { return entry.value == value; });
  if (found == entries_.rend()) return std::nullopt;
  return static_cast<std::size_t>(entries_.rend() - found) - 1;
}

}  // namespace rnic::testbench
