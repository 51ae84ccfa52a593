#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace rnic::model {

/// Who watches something that happens: any number, in the order in which they came.
template <typename... Seen>
class Taps {
 public:
  using Tap = std::function<void(Seen...)>;

  /// `tap` is called from now on, in the name of `who`, which has one tap.
  void add(const void* who, Tap tap) {
    remove(who);
    taps_.emplace_back(who, std::move(tap));
  }
  void remove(const void* who) {
    std::erase_if(taps_, [who](const auto& tap) { return tap.first == who; });
  }
  [[nodiscard]] bool empty() const { return taps_.empty(); }
  void operator()(Seen... seen) const {
    for (const auto& [who, tap] : taps_) tap(seen...);
  }

 private:
  std::vector<std::pair<const void*, Tap>> taps_;
};

}  // namespace rnic::model
