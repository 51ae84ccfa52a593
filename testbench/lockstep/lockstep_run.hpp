#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "testbench/lockstep/loaded_program.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

/// What became of programs in lockstep.
struct LockstepOutcome {
  std::vector<std::optional<int>> codes;  ///< Exit codes, by host; none: it was not started
  bool server_stayed = false;             ///< When its client had ended

  /// The client's, or, if that is 0, the server's; 1 if there was no client to start.
  [[nodiscard]] int code() const;
};

/// Runs one or two programs in the simulated time of `world`: the first on host 0, and the second on host 1 from when
/// the first one listens for connections. What two print stands behind "server | " and "client | ". A server that ends
/// before it listens has no client; one that stays when its client has ended is ended after ten simulated seconds.
/// Throws as World::run, with its limit. No simulated time passes in `world` afterwards: threads that programs have
/// left are in it.
LockstepOutcome run_lockstep(World& world, std::vector<LoadedProgram>& programs, std::uint64_t limit_ns);

}  // namespace rnic::testbench
