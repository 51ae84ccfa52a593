#include "testbench/report/packet_figures.hpp"

#include <string>
#include <utility>

#include "testbench/timeline/life_names.hpp"

namespace rnic::testbench {

void PacketFigures::sent(const Frame& frame, const Packet* packet) {
  ++frames_;
  bytes_ += frame.bytes;
  for (std::size_t i = 0; i < faults_.size(); ++i) faults_[i] += frame.faults >> i & 1;
  if (!frame.roce) {
    ++not_roce_;
    return;
  }
  Row& row = rows_[frame.opcode];
  ++row.frames;
  row.bytes += frame.bytes;
  row.injected += frame.injected;
  const std::uint64_t lost = frame.faults >> static_cast<unsigned>(model::WireFault::kDrop) & 1;
  row.lost += lost;
  if (packet == nullptr) return;
  row.lost_here += lost;
  row.payload += packet->length;
  row.repeated += packet->repeated;
}

void PacketFigures::over(const Packet& packet) {
  if (packet.dropped) ++rows_[packet.opcode].unsent;
  if (packet.wire_end != 0 && packet.checked == 0) ++rows_[packet.opcode].unjudged;
}

void PacketFigures::received(const Packet& packet) {
  ++verdicts_[static_cast<std::size_t>(packet.reason)];
  faulty_ += packet.fault;
}

nlohmann::ordered_json PacketFigures::json() const {
  auto sent = nlohmann::ordered_json::array();
  for (const auto& [opcode, row] : rows_) {
    sent.push_back({{"opcode", opcode_name(opcode)},
                    {"frames", row.frames},
                    {"bytes", row.bytes},
                    {"payload", row.payload},
                    {"repeated", row.repeated},
                    {"lost", row.lost},
                    {"unjudged", row.unjudged - row.lost_here},
                    {"unsent", row.unsent},
                    {"injected", row.injected}});
  }
  auto faults = nlohmann::ordered_json::object(), verdicts = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    if (faults_[i] != 0) faults[model::name(static_cast<model::WireFault>(i))] = faults_[i];
  }
  for (std::size_t i = 0; i < verdicts_.size(); ++i) {
    const auto reason = static_cast<RxReason>(i);
    if (verdicts_[i] != 0) verdicts[reason == RxReason::kNone ? "taken" : std::string(name(reason))] = verdicts_[i];
  }
  if (faulty_ != 0) verdicts["taken, not placed"] = faulty_;
  return {{"frames", frames_},       {"bytes", bytes_},  {"not_roce", not_roce_},
          {"sent", std::move(sent)}, {"faults", faults}, {"verdicts", verdicts}};
}

}  // namespace rnic::testbench
