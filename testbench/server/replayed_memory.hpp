#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/memory_witness.hpp"
#include "testbench/host.hpp"
#include "testbench/server/log_follower.hpp"

namespace rnic::testbench {

/// Gives the NIC of a host, and its driver, what they met in memory of processes when the log was written.
class ReplayedMemory : public model::MemoryWitness {
 public:
  /// From now on, as long as it is there. `host` and `follower` outlive it.
  ReplayedMemory(Host& host, LogFollower& follower) : host_(host), follower_(follower) {
    host.set_memory_witness(this);
  }
  ~ReplayedMemory() override { host_.set_memory_witness(nullptr); }

  [[nodiscard]] bool read(const model::DmaRequest& request, const model::Iommu::Place& from,
                          std::vector<std::uint8_t>& data, const std::function<bool()>& memory) override;
  [[nodiscard]] bool write(const model::DmaRequest& request, const model::Iommu::Place& to,
                           const std::function<bool()>& memory) override;
  [[nodiscard]] model::ProcessMemory::Reach reach(std::int32_t process, std::uint64_t address, std::uint64_t length,
                                                  bool writable,
                                                  const std::function<model::ProcessMemory::Reach()>& memory) override;

 private:
  [[nodiscard]] LogRecord met(LogKind kind, const model::DmaRequest& request, const model::Iommu::Place& place) const;

  Host& host_;
  LogFollower& follower_;
};

}  // namespace rnic::testbench
