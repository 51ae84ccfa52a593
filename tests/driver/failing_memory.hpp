#pragma once

#include <catch2/catch.hpp>
#include <functional>

#include "driver/nd2/ndstatus.h"

namespace rnic::test {

/// Counts the allocations of the driver (not those of a fake device) in the calling thread, while it lives, and lets
/// one of them fail. failing_memory.cpp replaces operator new. One at a time.
class FailingMemory {
 public:
  /// `fail_at`: the one that fails, from 1 on; 0: none.
  explicit FailingMemory(unsigned fail_at);
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;
  ~FailingMemory();

  [[nodiscard]] static unsigned count();
};

/// Calls `attempt` with its n-th allocation failing, for every n, and once more with none. `failed` is called after
/// each that failed. Returns how many there are.
template <typename Attempt, typename Failed>
unsigned fail_each(Attempt&& attempt, Failed&& failed) {
  for (unsigned fail_at = 1;; ++fail_at) {
    bool ended_well = false, hit = false;
    {
      const FailingMemory failing(fail_at);
      ended_well = attempt();
      hit = FailingMemory::count() >= fail_at;
    }
    INFO("allocation " << fail_at);
    if (!hit) {
      REQUIRE(ended_well);
      return fail_at - 1;
    }
    REQUIRE_FALSE(ended_well);
    failed();
  }
}

/// The same for a call of the API, which must answer `no_memory`.
template <typename Call>
unsigned fail_each_call(
    HRESULT no_memory, HRESULT good, Call&& call, const std::function<void()>& failed = [] {}) {
  HRESULT status{};
  return fail_each(
      [&] {
        status = call();
        return status == good;
      },
      [&] {
        CHECK(status == no_memory);
        failed();
      });
}

}  // namespace rnic::test
