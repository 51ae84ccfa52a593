#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace rnic::testbench {

/// What the blocks of a NIC did, in clock cycles: engines that do not rest, and streams on which an item moves or
/// waits. NicSignals counts while `on`.
struct BlockUsage {
  struct Stream {
    std::uint64_t moves = 0;  ///< Valid and ready, of any client
    std::uint64_t waits = 0;  ///< Valid, not ready, and nothing moves
  };
  bool on = false;
  std::map<std::string, std::uint64_t> engines;  ///< By the scope of a state_q: cycles out of its state of rest
  std::map<std::string, Stream> streams;         ///< By scope and name
};

}  // namespace rnic::testbench
