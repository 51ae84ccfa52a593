#include "testbench/timeline/life_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "driver/generated/host_interface.hpp"
#include "model/bth.hpp"

namespace rnic::testbench {
namespace {

constexpr std::array<std::string_view, kStages> kStageNames = {
    "posted",  "doorbell", "fetch asked", "fetch issued", "fetch answered", "turn",     "judged",      "sent",
    "checked", "placed",   "ACK made",    "ACK back",     "retired",        "CQE made", "CQE written", "polled"};
constexpr std::array<std::string_view, static_cast<std::size_t>(StallReason::kCount)> kStallNames = {
    "fence", "Read limit", "window", "credits", "NAK", "RNR", "retry: no answer", "retry: fault", "refused"};
constexpr std::array<std::string_view, static_cast<std::size_t>(RxReason::kCount)> kReasonNames = {
    "",          "no queue pair", "bad state", "bad peer",    "bad Q_Key",  "broken message",
    "duplicate", "PSN error",     "invalid",   "forbidden",   "no Receive", "waits for an atomic",
    "NAK",       "gap in front",  "stray",     "bad response"};

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
    if (request.at[i] != 0) append_time(text, kStageNames[i], file.ns(request.at[i]));
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

std::string_view name(Stage stage) { return kStageNames[static_cast<std::size_t>(stage)]; }
std::string_view name(StallReason reason) { return kStallNames[static_cast<std::size_t>(reason)]; }
std::string_view name(RxReason reason) { return kReasonNames[static_cast<std::size_t>(reason)]; }

const std::string& opcode_name(std::uint8_t opcode) {
  static const auto names = [] {
    std::array<std::string, 256> all;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = fmt::format("opcode {:#04x}", i);
    for (const auto& known : model::opcode_names()) all[*model::opcode_by_name(known)] = known;
    return all;
  }();
  return names[opcode];
}

std::string_view request_name(const Request& request) {
  if (request.receive) return "Receive";
  if (!request.started) return "request";
  switch (static_cast<hw::CqeOpcode>(request.opcode)) {
    case hw::CqeOpcode::kSend: return "Send";
    case hw::CqeOpcode::kWrite: return "Write";
    case hw::CqeOpcode::kRead: return "Read";
    case hw::CqeOpcode::kCompareSwap: return "Compare and swap";
    case hw::CqeOpcode::kFetchAdd: return "Fetch and add";
    case hw::CqeOpcode::kBindWindow: return "Bind";
    case hw::CqeOpcode::kLocalInvalidate: return "Invalidate";
    case hw::CqeOpcode::kFastRegister: return "Fast register";
    default: return "request";
  }
}

LifeWriter::LifeWriter(TraceFile& file, unsigned host) : file_(file), host_(host) {
  file_.name_process(
      host, fmt::format("host {}", host < 26 ? std::string(1, static_cast<char>('A' + host)) : std::to_string(host)));
}

// ---- Requests

void LifeWriter::begin(Request& request) {
  request.lane = (request.receive ? receives_ : requests_)[request.qp].take();
  const unsigned order = kQpOrder * (request.qp + 1u) + (request.receive ? kQpOrder / 2 : 1);
  request.track = file_.track(
      host_, fmt::format("QP {} {} {}", request.qp, request.receive ? "receives" : "requests", request.lane),
      order + std::min(request.lane, kQpOrder / 2 - 2));
}

void LifeWriter::end(Request& request) {
  if (std::exchange(request.over, true)) return;
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

void LifeWriter::begin_send(Packet& packet) {
  packet.tx_lane = tx_.take();
  packet.tx = file_.track(host_, fmt::format("send path {}", packet.tx_lane), kBlockOrder);
}
void LifeWriter::end_send(Packet& packet) { tx_.give(packet.tx_lane); }
void LifeWriter::begin_receive(Packet& packet) {
  packet.rx_lane = rx_.take();
  packet.rx = file_.track(host_, fmt::format("receive path {}", packet.rx_lane), kBlockOrder + 2);
}
void LifeWriter::end_receive(Packet& packet) { rx_.give(packet.rx_lane); }

void LifeWriter::write_send(Packet& packet) {
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

void LifeWriter::write_receive(Packet& packet) {
  const std::uint64_t end = std::max(packet.placed, packet.checked);
  const std::string verdict = packet.reason == RxReason::kNone ? "" : fmt::format(": {}", name(packet.reason));
  file_.slice(packet.rx, packet.checked, end, title(packet) + verdict + (packet.fault ? ": fault" : ""),
              fmt::format(R"("received":{},"verdict":"{}","fault":{})", packet.id, name(packet.reason), packet.fault));
}

void LifeWriter::write_frame(Packet* packet, std::uint64_t from, std::uint64_t to, std::uint8_t opcode,
                             std::uint32_t psn, std::uint32_t dest_qpn, std::size_t bytes, bool injected) {
  const auto wire = file_.track(host_, "wire, sent", kBlockOrder + 1);
  if (packet != nullptr) packet->wire = wire;
  file_.slice(wire, from, to, packet != nullptr ? title(*packet) : fmt::format("{} {}", opcode_name(opcode), psn),
              fmt::format(R"("frame":{},"packet":{},"opcode":{},"psn":{},"dest_qpn":{},"lost":{},"injected":{},)"
                          R"("end_ns":{})",
                          bytes, packet != nullptr ? packet->id : 0, opcode, psn, dest_qpn,
                          packet != nullptr && packet->lost, injected, file_.ns(to)));
  if (packet != nullptr && packet->lost) file_.instant(wire, to, "lost", "");
}

// ---- Waiting

void LifeWriter::write_stall(std::uint8_t qp, StallReason reason, std::uint64_t from, std::uint64_t to,
                             const Request* request) {
  file_.slice(file_.track(host_, fmt::format("QP {} stalls", qp), kQpOrder * (qp + 1u)), from, to, name(reason),
              fmt::format(R"("stall":"{}","qp":{}{})", name(reason), qp,
                          request != nullptr ? fmt::format(R"(,"wqe":{})", request->index) : ""));
}

void LifeWriter::write_wait(const std::string& what, std::uint64_t from, std::uint64_t to) {
  file_.slice(file_.track(host_, what, kBlockOrder + 5), from, to, "waits", "");
}

void LifeWriter::write_instant(const std::string& block, std::uint64_t at, std::string_view what) {
  file_.instant(file_.track(host_, block, kBlockOrder + 6), at, what, "");
}

}  // namespace rnic::testbench
