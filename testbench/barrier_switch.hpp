#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "driver/barrier_hook.hpp"

namespace rnic::testbench {

/// A barrier of the driver, where it stands.
struct BarrierPlace {
  std::string file;  ///< From driver/ on
  unsigned line{};
  Barrier kind{};
  auto operator<=>(const BarrierPlace&) const = default;
};

/// The barriers that drivers of this process pass, if they are compiled with RNIC_BARRIER_HOOK: tells who listens, but
/// not of the one that a test has taken out.
class BarrierSwitch {
 public:
  using Listener = std::function<void(Barrier)>;

  static BarrierSwitch& instance();

  /// `owner` hears of every barrier until it is forgotten.
  void listen(const void* owner, Listener listener) { listeners_[owner] = std::move(listener); }
  void forget(const void* owner) { listeners_.erase(owner); }

  /// From now on this barrier is not there; nothing: all are.
  void take_out(std::optional<BarrierPlace> place) { out_ = std::move(place); }
  /// How often each has been passed, the one that is taken out too.
  [[nodiscard]] const std::map<BarrierPlace, std::uint64_t>& passed() const { return passed_; }

  void pass(const BarrierPlace& place);

 private:
  BarrierSwitch() = default;

  std::map<const void*, Listener> listeners_;
  std::map<BarrierPlace, std::uint64_t> passed_;
  std::optional<BarrierPlace> out_;
};

}  // namespace rnic::testbench
