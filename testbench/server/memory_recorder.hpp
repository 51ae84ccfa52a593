#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/memory_witness.hpp"
#include "testbench/host.hpp"
#include "testbench/server/event_log_writer.hpp"

namespace rnic::testbench {

/// Writes to the event log what the NIC of a host, and its driver, have met in memory.
class MemoryRecorder : public model::MemoryWitness {
 public:
  /// From now on, as long as it is there. `host` and `log` outlive it.
  MemoryRecorder(Host& host, EventLogWriter& log) : host_(host), log_(log) { host.set_memory_witness(this); }
  ~MemoryRecorder() override { host_.set_memory_witness(nullptr); }

  [[nodiscard]] bool read(const model::DmaRequest& request, const model::Iommu::Place& from,
                          std::vector<std::uint8_t>& data, const std::function<bool()>& memory) override;
  [[nodiscard]] bool write(const model::DmaRequest& request, const model::Iommu::Place& to,
                           const std::function<bool()>& memory) override;
  [[nodiscard]] model::ProcessMemory::Reach reach(std::int32_t process, std::uint64_t address, std::uint64_t length,
                                                  bool writable,
                                                  const std::function<model::ProcessMemory::Reach()>& memory) override;

 private:
  [[nodiscard]] LogPlace place_of(const model::Iommu::Place& place) const;

  Host& host_;
  EventLogWriter& log_;
};

}  // namespace rnic::testbench
