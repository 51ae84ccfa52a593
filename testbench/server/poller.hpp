#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "driver/remote/descriptor.hpp"

namespace rnic::testbench {

/// Descriptors of the system (epoll), and what is to be done when one of them can be read.
class Poller {
 public:
  using Watch = std::uint64_t;

  /// Throws std::system_error.
  Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  /// From now on `readable` is called when take finds that something has come to `descriptor`, or that its other side
  /// is gone: once for what has come, also if it is not read at once. Throws std::system_error.
  [[nodiscard]] Watch add(int descriptor, std::function<void()> readable) {
    return add(descriptor, false, std::move(readable));
  }
  /// The same, and `changed` is called when the descriptor can be written again.
  [[nodiscard]] Watch add_both_ways(int descriptor, std::function<void()> changed) {
    return add(descriptor, true, std::move(changed));
  }
  /// Before the descriptor is closed.
  void remove(int descriptor, Watch watch);

  /// Waits until there is something, at most `timeout_ns` (nothing: without a limit), and calls for all of it. Throws
  /// std::system_error.
  void take(std::optional<std::uint64_t> timeout_ns);

 private:
  [[nodiscard]] Watch add(int descriptor, bool both_ways, std::function<void()> called);

  remote::Descriptor epoll_;
  std::map<Watch, std::function<void()>> watches_;
  Watch last_ = 0;
};

}  // namespace rnic::testbench
