#pragma once

#include <cstdint>

#include "driver/device.hpp"

/// Registers of echo/rnic_top.sv, and helpers to use it.
namespace rnic::test {

enum EchoRegister : std::uint64_t {
  kScratch = 0x00,
  kSource = 0x08,
  kTarget = 0x10,
  kCopy = 0x18,
  kSend = 0x20,
  kReceived = 0x28,
  kLimits = 0x30,
  kStatus = 0x38,
  kSignal = 0x40,
  kFail = 0x48,
  kRefused = 0x80,  ///< Reads from here on are refused
};

/// Reads whole dwords at `source` and writes them at `target` (equal modulo 4096); they must fit one TLP.
inline void copy(Device& device, std::uint64_t source, std::uint64_t target, std::uint32_t dwords,
                 std::uint32_t tag = 3) {
  device.write64(kSource, source);
  device.write64(kTarget, target);
  const std::uint64_t enables = dwords == 1 ? 0x0F : 0xFF;
  device.write64(kCopy, std::uint64_t{tag} << 32 | enables << 16 | dwords);
  device.elapse(2'000);
}

}  // namespace rnic::test
