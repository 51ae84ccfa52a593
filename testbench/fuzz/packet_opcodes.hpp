#pragma once

#include <cstdint>

namespace rnic::testbench::opcode {

// RC opcodes (InfiniBand specification 9.2.1, table 38).
inline constexpr std::uint8_t kSendFirst = 0x00, kSendMiddle = 0x01, kSendLast = 0x02, kSendOnly = 0x04,
                              kSendOnlyImmediate = 0x05, kWriteFirst = 0x06, kWriteMiddle = 0x07, kWriteLast = 0x08;
inline constexpr std::uint8_t kWriteOnly = 0x0a, kWriteOnlyImmediate = 0x0b, kReadRequest = 0x0c,
                              kReadResponseFirst = 0x0d, kReadResponseLast = 0x0f, kReadResponseOnly = 0x10;
inline constexpr std::uint8_t kAcknowledge = 0x11, kAtomicAcknowledge = 0x12, kCompareSwap = 0x13, kFetchAdd = 0x14,
                              kLastRc = 0x17;
inline constexpr std::uint8_t kDatagram = 0x64, kDatagramImmediate = 0x65;

}  // namespace rnic::testbench::opcode
