#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace rnic::test {

/// Receive WQEs that the credit codes 0 to 30 of an AETH stand for (InfiniBand specification 9.7.7.2.2, table 46).
inline constexpr std::array<std::uint16_t, 31> kCredits = {0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,  192,
                                                           256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};
/// The code of a responder that does not count.
inline constexpr std::uint8_t kNoCredits = 31;

/// Code of a responder that has `wqes` receive WQEs posted, 0 to 32768: it promises as many as it can, and no more than there are.
inline std::uint8_t credit_code(std::uint32_t wqes) {
  return static_cast<std::uint8_t>(std::upper_bound(kCredits.begin(), kCredits.end(), wqes) - kCredits.begin() - 1);
}

}  // namespace rnic::test
