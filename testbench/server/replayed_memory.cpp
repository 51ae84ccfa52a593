#include "testbench/server/replayed_memory.hpp"

#include <utility>

#include "testbench/server/event_log_writer.hpp"

namespace rnic::testbench {

LogRecord ReplayedMemory::met(LogKind kind, const model::DmaRequest& request, const model::Iommu::Place& place) const {
  LogRecord record;
  record.kind = kind;
  record.host = host_.index();
  record.address = request.address;
  record.length = request.length_dw;
  record.checksum = checksum_of(request);
  record.place = place.process != 0 ? LogPlace::kProcess : LogPlace::kOwn;
  record.good = true;
  return record;
}

bool ReplayedMemory::read(const model::DmaRequest& request, const model::Iommu::Place& from,
                          std::vector<std::uint8_t>& data, const std::function<bool()>& memory) {
  // There is no process; of a ring the memory is asked all the same, for what else that does.
  if (from.process == 0) static_cast<void>(memory());
  auto logged = follower_.follow(met(LogKind::kDmaRead, request, from));
  if (!logged) return true;
  if (logged->data.size() == data.size()) data = std::move(logged->data);
  return logged->good;
}

bool ReplayedMemory::write(const model::DmaRequest& request, const model::Iommu::Place& to,
                           const std::function<bool()>& memory) {
  if (to.process == 0) static_cast<void>(memory());
  const auto logged = follower_.follow(met(LogKind::kDmaWrite, request, to));
  return !logged || logged->good;
}

model::ProcessMemory::Reach ReplayedMemory::reach(std::int32_t process, std::uint64_t address, std::uint64_t length,
                                                  bool writable,
                                                  const std::function<model::ProcessMemory::Reach()>& /*memory*/) {
  LogRecord record;
  record.kind = LogKind::kReach;
  record.host = host_.index();
  record.process = static_cast<std::uint64_t>(process);
  record.address = address;
  record.length = length;
  record.flag = writable;
  const auto logged = follower_.follow(record);
  return logged ? static_cast<model::ProcessMemory::Reach>(logged->code) : model::ProcessMemory::Reach::kNo;
}

}  // namespace rnic::testbench
