#pragma once

#include <cstddef>
#include <cstdint>

namespace rnic::test {

/// From now on nobody answers who touches these pages of the calling process, whole ones of anonymous memory
/// (userfaultfd whose events nobody reads). Returns 0, or the errno: not every user may keep the kernel waiting so.
int silence(std::uint8_t* memory, std::size_t bytes);

}  // namespace rnic::test
