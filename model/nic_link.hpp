#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

namespace rnic::model {

/// What both links of a NIC tell whoever stops its clock.
class NicLink {
 public:
  virtual ~NicLink() = default;
  /// Before this time, in picoseconds, nothing comes that is not known yet. Nothing: nothing is under way to the NIC.
  /// Something that is pushed may come earlier.
  [[nodiscard]] virtual std::optional<std::uint64_t> next_arrival() const = 0;
  /// `told` is called when something was pushed (false), or the NIC sees something else change at once (true). One;
  /// empty: nobody.
  void set_waker(std::function<void(bool)> told) { waker_ = std::move(told); }

 protected:
  void pushed() const {
    if (waker_) waker_(false);
  }
  void changed() const {
    if (waker_) waker_(true);
  }

 private:
  std::function<void(bool)> waker_;
};

}  // namespace rnic::model
