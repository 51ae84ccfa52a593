#include "testbench/timeline/timeline.hpp"

#include <exception>
#include <utility>

#include "model/bth.hpp"
#include "model/time.hpp"
#include "model/wire_faults.hpp"
#include "testbench/host.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

Timeline::Timeline(const WorldOptions& options, std::uint64_t epoch_ps, std::vector<Host*> hosts)
    : observers_(options.observers), hosts_(std::move(hosts)) {
  if (!options.timeline_path.empty())
    file_ = std::make_unique<TraceFile>(options.timeline_path, options.timeline_window, epoch_ps);
  std::vector<std::vector<LifeSink*>> observing;
  for (auto* observer : observers_) observing.push_back(observer->begin(options, epoch_ps));
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const auto number = static_cast<unsigned>(i);
    lives_.push_back(std::make_unique<HostTimeline>(number));
    HostTimeline& life = *lives_.back();
    if (file_) {
      writers_.push_back(std::make_unique<LifeWriter>(*file_, number));
      life.sinks().add(*writers_.back());
    }
    for (const auto& sinks : observing) life.sinks().add(*sinks.at(i));
    auto& root_complex = hosts_[i]->root_complex();
    root_complex.request_taps().add(
        this, [&life](const model::HostRequest& request) { life.requests().sent_to_nic(request, model::now_ps()); });
    root_complex.set_tlp_tap([&life](const model::TlpSeen& tlp) {
      life.requests().passed(tlp, model::now_ps());
      life.sinks().tlp(tlp, model::now_ps());
    });
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
  std::vector<std::uint64_t> cycles;
  for (Host* host : std::exchange(hosts_, {})) {
    cycles.push_back(host->nic().cycles());
    host->root_complex().request_taps().remove(this);
    host->root_complex().set_tlp_tap({});
    host->nic().listen(nullptr);
  }
  for (const auto& life : lives_) life->finish();
  for (auto* observer : std::exchange(observers_, {})) observer->end(model::now_ps(), cycles);
  if (file_) file_->close();
}

/// Where a frame goes: the last byte of a host's MAC is its number from one on.
std::size_t Timeline::receiver_of(const model::FrameRecord& record) const {
  constexpr std::size_t kMacBytes = 6;
  const std::size_t named = record.bytes.size() < kMacBytes ? 0 : record.bytes[kMacBytes - 1];
  if (named != 0 && named <= lives_.size() && named - 1 != record.from) return named - 1;
  return lives_.size() == 2 ? 1 - record.from : record.from;
}

void Timeline::frame(const model::FrameRecord& record, std::uint64_t number) {
  if (record.bad) return;
  HostTimeline& sender = *lives_.at(record.from);
  Frame frame{record.start, record.end, record.bytes.size(), false, 0, 0, 0, record.injected, record.faults};
  const auto roce = model::find_roce_packet(record.bytes);
  if (!roce) return sender.sinks().frame(frame, nullptr);
  frame.roce = true;
  frame.opcode = roce->opcode;
  frame.psn = roce->psn;
  frame.dest_qpn = roce->dest_qpn;
  const PacketPtr packet = record.injected ? nullptr : sender.packets().left(roce->opcode, roce->psn);
  if (packet) {
    packet->frame = number;
    packet->wire_start = record.start;
    packet->wire_end = record.end;
    packet->dest_qpn = roce->dest_qpn;
    packet->lost = (record.faults >> static_cast<unsigned>(model::WireFault::kDrop) & 1) != 0;
    const RequestPtr& request = packet->request;
    if (request && request->ends_with(packet->psn)) {
      if (request->when(Stage::kSent) == 0) request->last_sent = packet->times();
      request->mark(Stage::kSent, record.end);
    }
  }
  sender.sinks().frame(frame, packet.get());
  if (!packet) return;
  if (packet->lost) return sender.sinks().packet_over(*packet);
  lives_.at(receiver_of(record))->packets().arrives(packet);
}

}  // namespace rnic::testbench
