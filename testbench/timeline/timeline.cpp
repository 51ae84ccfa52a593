#include "testbench/timeline/timeline.hpp"

#include <exception>
#include <utility>

#include "model/bth.hpp"
#include "model/time.hpp"
#include "model/wire_faults.hpp"
#include "testbench/host.hpp"

namespace rnic::testbench {

Timeline::Timeline(const std::string& path, const TimelineWindow& window, std::uint64_t epoch_ps,
                   std::vector<Host*> hosts)
    : file_(path, window, epoch_ps), hosts_(std::move(hosts)) {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    lives_.push_back(std::make_unique<HostTimeline>(file_, static_cast<unsigned>(i)));
    HostTimeline& life = *lives_.back();
    auto& root_complex = hosts_[i]->root_complex();
    root_complex.set_request_tap(
        [&life](const model::HostRequest& request) { life.requests().sent_to_nic(request, model::now_ps()); });
    root_complex.set_tlp_tap([&life](const model::TlpSeen& tlp) { life.requests().passed(tlp, model::now_ps()); });
    hosts_[i]->nic().listen(&life);
  }
}

Timeline::~Timeline() {
  try {
    close();
  } catch (const std::exception&) {
    // Whoever wants to know closes it first.
  }
}

void Timeline::close() {
  for (Host* host : std::exchange(hosts_, {})) {
    host->root_complex().set_request_tap({});
    host->root_complex().set_tlp_tap({});
    host->nic().listen(nullptr);
  }
  for (const auto& life : lives_) life->finish();
  file_.close();
}

/// Where a frame goes: the last byte of a host's MAC is its number from one on.
std::size_t Timeline::receiver_of(const model::FrameRecord& record) const {
  constexpr std::size_t kMacBytes = 6;
  const std::size_t named = record.bytes.size() < kMacBytes ? 0 : record.bytes[kMacBytes - 1];
  if (named != 0 && named <= lives_.size() && named - 1 != record.from) return named - 1;
  return lives_.size() == 2 ? 1 - record.from : record.from;
}

void Timeline::frame(const model::FrameRecord& record) {
  if (record.bad) return;
  const auto roce = model::find_roce_packet(record.bytes);
  if (!roce) return;
  HostTimeline& sender = *lives_.at(record.from);
  const PacketPtr packet = record.injected ? nullptr : sender.packets().left(roce->opcode, roce->psn);
  if (packet) {
    packet->wire_start = record.start;
    packet->wire_end = record.end;
    packet->dest_qpn = roce->dest_qpn;
    packet->lost = (record.faults >> static_cast<unsigned>(model::WireFault::kDrop) & 1) != 0;
    const RequestPtr& request = packet->request;
    if (request && request->ends_with(packet->psn)) request->mark(Stage::kSent, record.end);
  }
  sender.writer().write_frame(packet.get(), record.start, record.end, roce->opcode, roce->psn, roce->dest_qpn,
                              record.bytes.size(), record.injected);
  if (!packet) return;
  if (packet->lost) return sender.writer().write_send(*packet);
  lives_.at(receiver_of(record))->packets().arrives(packet);
}

}  // namespace rnic::testbench
