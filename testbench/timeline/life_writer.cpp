#include "testbench/timeline/life_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "testbench/timeline/life_names.hpp"

namespace rnic::testbench {
namespace {

/// A part of a life: its name, and the stage that ends it.
struct Phase {
  Stage end;
  std::string_view name;
};
constexpr std::array kSendPhases = {Phase{Stage::kDoorbell, "doorbell"},
                                    Phase{Stage::kFetchIssued, "waits"},
                                    Phase{Stage::kFetchAnswered, "WQE read"},
                                    Phase{Stage::kTurn, "waits for a turn"},
                                    Phase{Stage::kJudged, "turn"},
                                    Phase{Stage::kSent, "packets"},
                                    Phase{Stage::kChecked, "to the peer"},
                                    Phase{Stage::kPlaced, "placing"},
                                    Phase{Stage::kAckMade, "waits for ACK"},
                                    Phase{Stage::kAckBack, "ACK"},
                                    Phase{Stage::kRetired, "retires"},
                                    Phase{Stage::kCqeWritten, "CQE"},
                                    Phase{Stage::kPolled, "waits to be polled"}};
constexpr std::array kAskPhases = {Phase{Stage::kDoorbell, "doorbell"},
                                   Phase{Stage::kFetchIssued, "waits"},
                                   Phase{Stage::kFetchAnswered, "WQE read"},
                                   Phase{Stage::kTurn, "waits for a turn"},
                                   Phase{Stage::kJudged, "turn"},
                                   Phase{Stage::kSent, "request packet"},
                                   Phase{Stage::kChecked, "to the peer"},
                                   Phase{Stage::kAckMade, "responses"},
                                   Phase{Stage::kAckBack, "last response"},
                                   Phase{Stage::kPlaced, "placing"},
                                   Phase{Stage::kRetired, "retires"},
                                   Phase{Stage::kCqeWritten, "CQE"},
                                   Phase{Stage::kPolled, "waits to be polled"}};
constexpr std::array kReceivePhases = {Phase{Stage::kDoorbell, "doorbell"},
                                       Phase{Stage::kPlaced, "waits for a message"}, Phase{Stage::kCqeWritten, "CQE"},
                                       Phase{Stage::kPolled, "waits to be polled"}};

std::span<const Phase> phases_of(const Request& request) {
  if (request.receive) return kReceivePhases;
  return request.asks() ? std::span<const Phase>(kAskPhases) : std::span<const Phase>(kSendPhases);
}

constexpr unsigned kBlockOrder = 1, kQpOrder = 100;
/// Arrows to CQEs have numbers above those of packets.
constexpr std::uint64_t kArrows = std::uint64_t{1} << 56;

void append_time(std::string& text, std::string_view name, std::uint64_t ns) {
  text += fmt::format(R"({}"{}":{})", text.empty() ? "" : ",", name, ns);
}

std::string stages_of(const TraceFile& file, const Request& request) {
  std::string text;
  for (std::size_t i = 0; i < kStages; ++i) {
    if (request.at[i] != 0) append_time(text, name(static_cast<Stage>(i)), file.ns(request.at[i]));
  }
  return text;
}

std::string stages_of(const TraceFile& file, const Packet& packet) {
  std::string text;
  const std::array stages = {std::pair{"made", packet.made},
                             std::pair{"taken", packet.taken},
                             std::pair{"translated", packet.translated},
                             std::pair{"gathered", packet.gathered},
                             std::pair{"wire", packet.wire_start},
                             std::pair{"sent", packet.wire_end},
                             std::pair{"checked", packet.checked},
                             std::pair{"placed", packet.placed}};
  for (const auto& [what, at] : stages) {
    if (at != 0) append_time(text, what, file.ns(at));
  }
  return text;
}

std::string title(const Packet& packet) {
  return fmt::format("{} {}{}{}{}", opcode_name(packet.opcode), packet.psn, packet.repeated ? " repeated" : "",
                     packet.dropped ? " dropped" : "", packet.lost ? " lost" : "");
}

std::string details(const TraceFile& file, const Packet& packet) {
  return fmt::format(
      R"("packet":{},"host":{},"qp":{},"opcode":{},"psn":{},"dest_qpn":{},"bytes":{},"responder":{},"repeated":{},)"
      R"("dropped":{},"lost":{},"fault":{},"verdict":"{}","tlb_misses":{}{},"stages":{{{}}})",
      packet.id, packet.host, packet.qp, packet.opcode, packet.psn, packet.dest_qpn, packet.length, packet.responder,
      packet.repeated, packet.dropped, packet.lost, packet.fault, name(packet.reason), packet.tlb_misses,
      packet.request && !packet.responder ? fmt::format(R"(,"wqe":{})", packet.request->index) : "",
      stages_of(file, packet));
}

}  // namespace

LifeWriter::LifeWriter(TraceFile& file, unsigned host) : file_(file), host_(host) {
  file_.name_process(host, "host " + host_letter(host));
}

// ---- Requests

void LifeWriter::request_begins(Request& request) {
  request.lane = (request.receive ? receives_ : requests_)[request.qp].take();
  const unsigned order = kQpOrder * (request.qp + 1u) + (request.receive ? kQpOrder / 2 : 1);
  request.track = file_.track(
      host_, fmt::format("QP {} {} {}", request.qp, request.receive ? "receives" : "requests", request.lane),
      order + std::min(request.lane, kQpOrder / 2 - 2));
}

void LifeWriter::request_ends(Request& request) {
  (request.receive ? receives_ : requests_)[request.qp].give(request.lane);
  std::uint64_t from = 0, to = 0;
  for (const std::uint64_t at : request.at) {
    if (at == 0) continue;
    from = from == 0 ? at : std::min(from, at);
    to = std::max(to, at);
  }
  if (from == 0) return;
  file_.slice(
      request.track, from, to,
      fmt::format("{} {}{}", request_name(request), request.index, request.status != 0 ? " failed" : ""),
      fmt::format(R"("request":"{}","host":{},"qp":{},"qpn":{},"wqe":{},"first_psn":{},"last_psn":{},"bytes":{},)"
                  R"("packets":{},"repeated":{},"silent":{},"status":{},"stages":{{{}}})",
                  request_name(request), request.host, request.qp, request.qpn, request.index, request.first_psn,
                  request.last_psn, request.length, request.packets, request.repeated, request.silent, request.status,
                  stages_of(file_, request)));
  for (const auto& phase : phases_of(request)) {
    const std::uint64_t until = request.when(phase.end);
    if (until <= from) continue;
    file_.slice(request.track, from, until, phase.name, "");
    from = until;
  }
  write_cqe(request);
}

/// The CQE, and the arrow to it from the packet that acknowledges the request.
void LifeWriter::write_cqe(const Request& request) {
  const std::uint64_t written = request.when(Stage::kCqeWritten), retired = request.when(Stage::kRetired);
  if (written != 0) {
    file_.instant(file_.track(host_, "CQEs", kBlockOrder + 4), written, "CQE",
                  fmt::format(R"("qp":{},"wqe":{})", request.qp, request.index));
  }
  if (request.answer.thread == 0 || retired == 0) return;
  using Flow = TraceFile::Flow;
  const std::uint64_t id = kArrows + (std::uint64_t{host_} << 48) + ++arrows_;
  file_.flow(Flow::kStart, request.answer, request.when(Stage::kAckBack), id);
  file_.flow(written != 0 ? Flow::kStep : Flow::kEnd, request.track, retired, id);
  if (written != 0) file_.flow(Flow::kEnd, request.track, written, id);
}

// ---- Packets

void LifeWriter::send_begins(Packet& packet) {
  packet.tx_lane = tx_.take();
  packet.tx = file_.track(host_, fmt::format("send path {}", packet.tx_lane), kBlockOrder);
}
void LifeWriter::send_ends(Packet& packet) { tx_.give(packet.tx_lane); }
void LifeWriter::receive_begins(Packet& packet) {
  packet.rx_lane = rx_.take();
  packet.rx = file_.track(host_, fmt::format("receive path {}", packet.rx_lane), kBlockOrder + 2);
}
void LifeWriter::receive_ends(Packet& packet) { rx_.give(packet.rx_lane); }

void LifeWriter::packet_over(Packet& packet) {
  file_.slice(packet.tx, packet.taken, packet.gathered, title(packet), details(file_, packet));
  std::uint64_t from = packet.taken;
  if (packet.translated != 0) file_.slice(packet.tx, from, packet.translated, "translate", "");
  if (packet.translated != 0) from = packet.translated;
  if (packet.length != 0) file_.slice(packet.tx, from, packet.gathered, "gather", "");
  using Flow = TraceFile::Flow;
  if (packet.request && !packet.responder) {
    file_.flow(Flow::kStart, packet.request->track, packet.made, packet.id);
  } else if (packet.answers != 0) {
    file_.flow(Flow::kStart, packet.answers_track, packet.answers_at, packet.id);
  } else {
    return;
  }
  file_.flow(Flow::kStep, packet.tx, packet.taken, packet.id);
  if (packet.wire_start != 0) file_.flow(Flow::kStep, packet.wire, packet.wire_start, packet.id);
  if (packet.checked != 0) file_.flow(Flow::kEnd, packet.rx, packet.checked, packet.id);
}

void LifeWriter::packet_received(Packet& packet) {
  const std::uint64_t end = std::max(packet.placed, packet.checked);
  const std::string verdict = packet.reason == RxReason::kNone ? "" : fmt::format(": {}", name(packet.reason));
  file_.slice(packet.rx, packet.checked, end, title(packet) + verdict + (packet.fault ? ": fault" : ""),
              fmt::format(R"("received":{},"verdict":"{}","fault":{})", packet.id, name(packet.reason), packet.fault));
}

void LifeWriter::frame(const Frame& frame, Packet* packet) {
  if (!frame.roce) return;
  const auto wire = file_.track(host_, "wire, sent", kBlockOrder + 1);
  if (packet != nullptr) packet->wire = wire;
  const bool lost = packet != nullptr && packet->lost;
  file_.slice(wire, frame.from, frame.to,
              packet != nullptr ? title(*packet) : fmt::format("{} {}", opcode_name(frame.opcode), frame.psn),
              fmt::format(R"("frame":{},"packet":{},"opcode":{},"psn":{},"dest_qpn":{},"lost":{},"injected":{},)"
                          R"("end_ns":{})",
                          frame.bytes, packet != nullptr ? packet->id : 0, frame.opcode, frame.psn, frame.dest_qpn,
                          lost, frame.injected, file_.ns(frame.to)));
  if (lost) file_.instant(wire, frame.to, "lost", "");
}

// ---- Waiting

void LifeWriter::stall_over(std::uint8_t qp, StallReason reason, std::uint64_t from, std::uint64_t to,
                            const Request* request) {
  file_.slice(file_.track(host_, fmt::format("QP {} stalls", qp), kQpOrder * (qp + 1u)), from, to, name(reason),
              fmt::format(R"("stall":"{}","qp":{}{})", name(reason), qp,
                          request != nullptr ? fmt::format(R"(,"wqe":{})", request->index) : ""));
}

void LifeWriter::wait_over(WaitKind what, std::uint64_t from, std::uint64_t to) {
  const char* block = what == WaitKind::kTag ? "DMA reads, no tag or place" : "PCI Express, no credits or room";
  file_.slice(file_.track(host_, block, kBlockOrder + 5), from, to, "waits", "");
}

void LifeWriter::tlb_missed(std::uint64_t at) {
  file_.instant(file_.track(host_, "translation", kBlockOrder + 6), at, "TLB miss", "");
}

}  // namespace rnic::testbench
