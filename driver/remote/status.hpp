#pragma once

#include "driver/generated/kernel_calls.hpp"
#include "driver/result.hpp"

namespace rnic::remote {

/// The error that a status other than success stands for.
[[nodiscard]] inline Error error_of(calls::Status status) { return static_cast<Error>(static_cast<int>(status) - 1); }
[[nodiscard]] inline calls::Status status_of(Error error) {
  return static_cast<calls::Status>(static_cast<int>(error) + 1);
}

}  // namespace rnic::remote
