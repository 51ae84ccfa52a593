#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace rnic::testbench {

/// Runs `tasks` as threads of simulated time beside each other, `most` at a time, and waits for all: what an
/// application with threads of its own does. They begin in their order. Rethrows the failure of the first that failed,
/// after the others have ended; those that had not begun by then never do.
///
/// A caller that cannot wait for simulated time (it is no thread of it, or is being unwound) runs them one by one.
void side_by_side(const std::vector<std::function<void()>>& tasks, std::size_t most = 16);

}  // namespace rnic::testbench
