#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/iommu.hpp"
#include "model/pcie.hpp"
#include "model/process_memory.hpp"

namespace rnic::model {

/// Stands between what a device does with memory and the memory, of which others may change some at any moment: it can
/// keep what the device met there, or give it the same once more. It is asked at the simulated time of the access, in
/// the order in which the accesses happen.
class MemoryWitness {
 public:
  MemoryWitness() = default;
  MemoryWitness(const MemoryWitness&) = delete;
  MemoryWitness& operator=(const MemoryWitness&) = delete;
  virtual ~MemoryWitness() = default;

  /// A DMA read that the IOMMU lets through to `from`. `memory` fills `data` and says whether it is there; what this
  /// answers, and what is in `data` then, is what the device gets.
  [[nodiscard]] virtual bool read(const DmaRequest& request, const Iommu::Place& from, std::vector<std::uint8_t>& data,
                                  const std::function<bool()>& memory) = 0;
  /// A DMA write that the IOMMU lets through to `to`. `memory` writes, and says whether it could.
  [[nodiscard]] virtual bool write(const DmaRequest& request, const Iommu::Place& to,
                                   const std::function<bool()>& memory) = 0;
  /// Whether a process has memory, as ProcessMemory::reach, which is `memory`.
  [[nodiscard]] virtual ProcessMemory::Reach reach(std::int32_t process, std::uint64_t address, std::uint64_t length,
                                                   bool writable,
                                                   const std::function<ProcessMemory::Reach()>& memory) = 0;
};

}  // namespace rnic::model
