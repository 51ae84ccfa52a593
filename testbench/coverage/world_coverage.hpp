#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "model/wire.hpp"
#include "testbench/coverage/host_coverage.hpp"
#include "testbench/host.hpp"

namespace rnic::testbench {

/// Has each host of a world looked at by a HostCoverage, and notes what they reach where RNIC_COVERAGE says (docs/
/// coverage.md). It changes nothing.
class WorldCoverage {
 public:
  /// The environment asks for it.
  [[nodiscard]] static bool wanted();

  WorldCoverage() = default;
  ~WorldCoverage();
  WorldCoverage(const WorldCoverage&) = delete;
  WorldCoverage& operator=(const WorldCoverage&) = delete;

  /// `host`, whose NIC is plugged in to end `end` of `wire`. They outlive it.
  void watch(Host& host, model::Wire& wire, std::size_t end);
  /// Host `frame.from` has sent it, or somebody in its place.
  void sent(const model::FrameRecord& frame);

 private:
  struct Watched {
    Host& host;
    model::Wire& wire;
    std::size_t end;
    std::unique_ptr<HostCoverage> coverage;
  };
  std::vector<Watched> hosts_;
};

}  // namespace rnic::testbench
