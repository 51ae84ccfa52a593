#pragma once

#include <cstdint>

#include "driver/nd2/ndspi.h"
#include "driver/result.hpp"

namespace rnic::nd2 {

/// Status of a Bind, of connector or listener, that failed; `port` is the one that was asked for.
[[nodiscard]] HRESULT bind_status(Error error, std::uint16_t port);

}  // namespace rnic::nd2
