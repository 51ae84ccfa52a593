#include "testbench/server/memory_recorder.hpp"

namespace rnic::testbench {

LogPlace MemoryRecorder::place_of(const model::Iommu::Place& place) const {
  if (place.process != 0) return LogPlace::kProcess;
  return host_.memory().shared(place.at) ? LogPlace::kShared : LogPlace::kOwn;
}

bool MemoryRecorder::read(const model::DmaRequest& request, const model::Iommu::Place& from,
                          std::vector<std::uint8_t>& data, const std::function<bool()>& memory) {
  const bool good = memory();
  log_.dma_read(host_.index(), request, place_of(from), good, data);
  return good;
}

bool MemoryRecorder::write(const model::DmaRequest& request, const model::Iommu::Place& to,
                           const std::function<bool()>& memory) {
  const bool good = memory();
  log_.dma_write(host_.index(), request, place_of(to), good);
  return good;
}

model::ProcessMemory::Reach MemoryRecorder::reach(std::int32_t process, std::uint64_t address, std::uint64_t length,
                                                  bool writable,
                                                  const std::function<model::ProcessMemory::Reach()>& memory) {
  const auto answer = memory();
  log_.reach(host_.index(), process, address, length, writable, answer);
  return answer;
}

}  // namespace rnic::testbench
