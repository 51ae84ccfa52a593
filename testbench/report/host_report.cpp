#include "testbench/report/host_report.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "model/time.hpp"
#include "testbench/limits/limits.hpp"
#include "testbench/timeline/life_names.hpp"

namespace rnic::testbench {
namespace {

/// Of a frame on the wire beside what a capture has of it: preamble, frame check sequence and gap.
constexpr std::uint64_t kWireOverhead = 24;

}  // namespace

// ---- What happens

bool HostReport::counts(const Request& request) const {
  return !shared_.is_program || (!request.receive && shared_.is_program(host_, request.qp));
}

void HostReport::request_begins(Request& request) {
  if (request.receive || !counts(request)) return;
  shared_.work_begins(model::now_ps());
}

void HostReport::request_ends(Request& request) {
  (counts(request) ? shared_.requests : shared_.other_requests).add(request, flights_);
  if (request.receive) return;
  if (request.started)
    shared_.payload.settle(host_, request.qp, request.first_psn, request.last_psn, request.status == 0);
  if (!counts(request)) return;
  shared_.work_ends(model::now_ps());
}

void HostReport::packet_received(Packet& packet) {
  shared_.packets.at(host_).received(packet);
  if (packet.reason != RxReason::kNone || packet.fault || packet.placed == 0 || packet.length == 0) return;
  const auto here = static_cast<std::uint8_t>(host_);
  const bool answer = is_response(packet.opcode), of_a_nic = packet.id != 0;
  const bool on_wire = packet.wire_end != 0;
  SeriesName name{of_a_nic && !on_wire ? SeriesKind::kLoopback : SeriesKind::kPayload, here, here, packet.qp};
  if (answer) {
    name.qp = static_cast<std::uint8_t>(packet.dest_qpn);
  } else {
    name.host = of_a_nic ? static_cast<std::uint8_t>(packet.host) : SeriesName::kOutside;
  }
  if ((answer || of_a_nic) && shared_.is_program && !shared_.is_program(name.host, name.qp)) return;
  const PayloadFigures::Part part{name.key(), packet.psn, on_wire ? packet.wire_start : packet.checked,
                                  on_wire ? packet.wire_end : packet.checked, packet.length};
  // A request without acknowledgement ends when it is sent.
  const bool ended = !answer && (!packet.request || packet.request->over);
  if (!ended) {
    shared_.payload.hold(name.host, name.qp, part);
  } else if (!packet.request || packet.request->status == 0) {
    shared_.payload.count(part);
  }
}

void HostReport::frame(const Frame& frame, Packet* packet) {
  shared_.packets.at(host_).sent(frame, packet);
  const auto here = static_cast<std::uint8_t>(host_);
  shared_.series.add(SeriesName{SeriesKind::kWire, 0, here, 0}.key(), frame.from, frame.to,
                     frame.bytes + kWireOverhead);
}

void HostReport::tlp(const model::TlpSeen& tlp, std::uint64_t at) {
  // Commands and registers, before and after the work, are not what a link is full of.
  if (!shared_.work.open()) return;
  const bool to_nic = tlp.way == model::PcieWay::kToNic;
  const bool completion = tlp.kind == model::CreditKind::kCompletion;
  const std::uint64_t bytes = tlp.bytes + (completion ? kCompletionOverhead : kRequestOverhead);
  const auto time =
      static_cast<std::uint64_t>(static_cast<double>(bytes * model::kPicosecondsPerNanosecond) / pcie_gbytes_);
  const auto here = static_cast<std::uint8_t>(host_);
  shared_.series.add(SeriesName{to_nic ? SeriesKind::kToNic : SeriesKind::kToHost, 0, here, 0}.key(),
                     at - std::min(at, time), at, bytes);
}

void HostReport::stall_over(std::uint8_t qp, StallReason reason, std::uint64_t from, std::uint64_t to, const Request*) {
  stalls_[qp][static_cast<std::size_t>(reason)].add(shared_.work.since_ps(from, to));
}

void HostReport::wait_over(WaitKind what, std::uint64_t from, std::uint64_t to) {
  const std::uint64_t during_work = shared_.work.since_ps(from, to);
  if (during_work != 0) waits_[static_cast<std::size_t>(what)].add(during_work);
}

// ---- Results

void HostReport::Waits::add(std::uint64_t ps) {
  ++count;
  total_ps += ps;
  longest_ps = std::max(longest_ps, ps);
}

nlohmann::ordered_json HostReport::Waits::json() const {
  return {{"count", count},
          {"ns", total_ps / model::kPicosecondsPerNanosecond},
          {"longest_ns", longest_ps / model::kPicosecondsPerNanosecond}};
}

nlohmann::ordered_json HostReport::json() const {
  auto stalls = nlohmann::ordered_json::array(), engines = nlohmann::ordered_json::array(),
       streams = nlohmann::ordered_json::array(), counters = nlohmann::ordered_json::object();
  for (const auto& [qp, reasons] : stalls_) {
    for (std::size_t i = 0; i < kReasons; ++i) {
      if (reasons[i].count == 0) continue;
      auto one = reasons[i].json();
      one["qp"] = qp;
      one["reason"] = name(static_cast<StallReason>(i));
      stalls.push_back(std::move(one));
    }
  }
  const BlockUsage& usage = shared_.usage.at(host_);
  for (const auto& [scope, busy] : usage.engines) {
    if (busy != 0) engines.push_back({{"engine", scope}, {"busy", busy}});
  }
  for (const auto& [stream, count] : usage.streams) {
    if (count.moves + count.waits != 0)
      streams.push_back({{"stream", stream}, {"moves", count.moves}, {"waits", count.waits}});
  }
  auto troubles = nlohmann::ordered_json::array();
  for (const auto& [what, counts] : trouble(counters_)) troubles.push_back({{"what", what}, {"counts", counts}});
  for (std::size_t i = 0; i < counters_.size(); ++i) counters[std::string(hw::kCounterNames[i])] = counters_[i];
  return {{"host", host_letter(host_)},
          {"packets", shared_.packets.at(host_).json()},
          {"stalls", std::move(stalls)},
          {"waits",
           {{"DMA reads: no free tag or buffer", waits_[static_cast<std::size_t>(WaitKind::kTag)].json()},
            {"TLPs: no credits or buffer", waits_[static_cast<std::size_t>(WaitKind::kLink)].json()}}},
          {"engines", std::move(engines)},
          {"streams", std::move(streams)},
          {"counters", std::move(counters)},
          {"trouble", std::move(troubles)}};
}

}  // namespace rnic::testbench
