#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace rnic::testbench {

/// What was done to one word by operations that each tell what they found there: atomics, and Reads.
///
/// One order must explain all of them (InfiniBand specification 9.4.5: each atomic finds what the one before it left):
/// in it those of one queue pair stand as they were posted (9.5), and none stands before one that had completed when it
/// was posted. Values that are written are all different.
class WordHistory {
 public:
  struct Operation {
    std::uint64_t before = 0;                 ///< What it found
    std::optional<std::uint64_t> after = {};  /**< What it left there; nothing: what it found */
    std::uint32_t lane = 0;                   ///< The queue pair
    std::uint64_t number = 0;                 ///< Grows from request to request of it
    bool is_read = false;                     ///< What is behind it, without a fence, may overtake it (10.8.3.3)
    std::uint64_t posted = 0, completed = 0;  ///< Moments in the order of the whole world: not after, and not before
  };

  explicit WordHistory(std::uint64_t value) { entries_.push_back({value, {}, 0}); }

  /// Nothing, or what is wrong with it. Operations may be added in any order.
  [[nodiscard]] std::optional<std::string> add(const Operation& operation);
  /// What the last of those found their place left.
  [[nodiscard]] std::uint64_t value() const { return entries_.back().value; }
  /// Operations that have no place, because nobody left what they found.
  [[nodiscard]] std::size_t without_place() const { return changes_.size() + looks_.size(); }

 private:
  struct Entry {
    std::uint64_t value;
    Operation by;          ///< Who left it
    std::uint64_t posted;  ///< The latest post of all that stand up to here
  };
  static constexpr std::size_t kRemembered = 4'096;

  [[nodiscard]] std::optional<std::string> advance();
  [[nodiscard]] std::optional<std::string> place(const Operation& look, std::size_t at);
  [[nodiscard]] std::optional<std::size_t> find(std::uint64_t value) const;

  std::deque<Entry> entries_;                             ///< The newest ones, in the order of the word
  std::unordered_map<std::uint64_t, Operation> changes_;  ///< Whose place is not known yet, by what they found
  std::unordered_multimap<std::uint64_t, Operation> looks_;
  std::map<std::uint32_t, std::uint64_t> newest_;  ///< Change of each lane
  std::uint64_t latest_look_ = 0;                  ///< Post of those that have a place
};

}  // namespace rnic::testbench
