#pragma once

#include <cstddef>

namespace rnic::nd2 {

/// Copies what a client points to. False: some of it is not there, or may not be read.
[[nodiscard]] bool copy_from_client(void* to, const void* from, std::size_t bytes);

}  // namespace rnic::nd2
