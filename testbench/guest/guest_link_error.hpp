#pragma once

#include <stdexcept>

namespace rnic::testbench {

/// Who stands at the other end of a guest link does what no QEMU does; it says what.
class GuestLinkError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace rnic::testbench
