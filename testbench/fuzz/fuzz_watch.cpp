#include <fmt/format.h>

#include <algorithm>

#include "model/bth.hpp"
#include "testbench/fuzz/frame_layout.hpp"
#include "testbench/fuzz/fuzz_episode.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kSettleNs = 20'000;
constexpr std::uint64_t kPollNs = 5'000;

}  // namespace

void FuzzEpisode::monitor() {
  const auto look = [this](bool memory) {
    for (std::size_t host = 0; host < 2; ++host) {
      sides_[host].process->poll();
      for (std::size_t pair = 0; pair < kPairs; ++pair) {
        const auto& qp = sides_[host].process->qp(pair);
        if (qp.failed && !qp.changing) sides_[host].targets[pair].alive = false;
      }
      if (memory) sides_[host].process->check_memory();
      const auto& iommu = world_.host(host).iommu();
      if (iommu.fault_count() == 0) continue;
      const auto& fault = iommu.fault_log().front();
      violation(fmt::format("host {}: DMA {} of {:#x}, which is not granted", host,
                            fault.access == model::Iommu::Access::kWrite ? "write" : "read", fault.iova));
    }
    if (victims_->stopping() && !done_) violation("the victims' work has failed");
  };
  auto& device = sides_[1].endpoint->device();
  for (std::uint64_t round = 0; !failed_ && (injecting_ != 0 || round < 4); ++round) {
    device.elapse(kPollNs);
    look(round % 8 == 0);
  }
  done_ = true;
  victims_->stop();
  device.elapse(kSettleNs);
  if (!failed_) look(true);
}

/// Every frame on the wire: none may carry what is secret; those that are not the attacker's own are learnt from.
void FuzzEpisode::watch(const model::FrameRecord& record) {
  auto& side = sides_[1 - record.from];
  if (!record.bad) note_request(record);
  if (record.injected) return;
  look_for_secrets(record);
  side.frames->observe(record.bytes);
  learn(record);
}

/// Whoever has sent it: what its receiver, if that is a sacrificed queue pair, may make of it.
void FuzzEpisode::note_request(const model::FrameRecord& record) {
  const auto packet = model::find_roce_packet(record.bytes);
  if (!packet) return;
  auto& side = sides_[1 - record.from];
  for (std::size_t pair = 0; pair < kPairs; ++pair) {
    if (side.targets[pair].path.dest_qpn != packet->dest_qpn || !side.process->qp(pair).framed) continue;
    auto verdict = judge_request(record.bytes, side.targets[pair], *side.process);
    if (!verdict) return;
    verdict->at_ns = side.endpoint->device().now_ns();
    verdict->arrives = record.faults == 0;
    side.answers[pair].request(*verdict);
  }
}

void FuzzEpisode::judge_answer(std::size_t pair, std::size_t host, const std::optional<std::string>& wrong) {
  if (wrong)
    violation(fmt::format("host {}: queue pair {:#x}: {}", host, sides_[host].targets[pair].path.dest_qpn, *wrong));
}

/// What goes to queue pairs of the attackers, or to nobody, has no secret byte behind its headers.
void FuzzEpisode::look_for_secrets(const model::FrameRecord& record) {
  const auto layout = layout_of(record.bytes);
  if (!layout) return violation(fmt::format("host {}: a frame that is no packet", record.from));
  const auto qpn = roce::read_big(record.bytes, layout->bth + 5, 3);
  const auto& receivers = sides_[1 - record.from].targets;
  const bool of_victim = std::any_of(receivers.begin() + kPairs, receivers.end(), [&](const FuzzTarget& target) {
    return !target.group && target.path.dest_qpn == qpn;
  });
  if (of_victim) return;
  const auto extended = static_cast<std::size_t>(std::max(roce::extended_bytes(record.bytes[layout->bth]), 0));
  const std::size_t first = layout->bth + roce::kBthBytes + extended, icrc = layout->end - roce::kIcrcBytes;
  for (std::size_t i = first; i < record.bytes.size(); ++i) {
    if ((i >= icrc && i < layout->end) || !FuzzProcess::is_secret(record.bytes[i])) continue;
    return violation(
        fmt::format("host {}: a secret byte, {:#04x}, on the wire, byte {} of the payload of a packet "
                    "with opcode {:#04x} to QP {:#x}",
                    record.from, record.bytes[i], i - first, record.bytes[layout->bth], qpn));
  }
  ++report_.judged;
}

/// What the queue pairs on both ends of a sacrificed connection say by it: what they expect, that they have failed,
/// what they have sent.
void FuzzEpisode::learn(const model::FrameRecord& record) {
  const auto packet = model::find_roce_packet(record.bytes);
  if (!packet) return;
  const auto& receivers = sides_[1 - record.from].targets;
  const auto pair = static_cast<std::size_t>(
      std::find_if(receivers.begin(), receivers.begin() + kPairs,
                   [&](const FuzzTarget& target) { return target.path.dest_qpn == packet->dest_qpn; }) -
      receivers.begin());
  if (pair == kPairs) return;
  auto& sender = sides_[record.from].targets[pair];
  auto& receiver = sides_[1 - record.from].targets[pair];
  const bool response = packet->opcode >= 0x0d && packet->opcode <= 0x12;
  if (!response) {
    sender.sent_psn = packet->psn;
    if (packet->psn == receiver.psn && packet->opcode != 0x0c) receiver.expect((packet->psn + 1) & 0xffffff, false);
    return;
  }
  if (packet->opcode != 0x11) return;
  const std::size_t aeth = 14 + (sender.path.ipv6 ? 40 : 20) + 8 + 12;
  if (record.bytes.size() <= aeth) return;
  std::uint8_t syndrome = record.bytes[aeth];
  if (planted_ == PlantedFault::kWrongNak && syndrome == 0x62) syndrome = 0x63;
  auto& process = *sides_[record.from].process;
  if (process.qp(pair).framed && !process.qp(pair).changing)
    judge_answer(pair, record.from,
                 sides_[record.from].answers[pair].answer(packet->psn, syndrome,
                                                          sides_[record.from].endpoint->device().now_ns()));
  const bool fatal = syndrome >> 5 == 3 && syndrome != 0x60;
  if (fatal)
    sender.alive = false;
  else if (syndrome >> 5 == 0)
    sender.expect((packet->psn + 1) & 0xffffff, false);
  else
    sender.expect(packet->psn, true);
}

void FuzzEpisode::read_counters() {
  static constexpr std::pair<const char*, hw::Counter> kCounters[] = {
      {"rx_frames", hw::Counter::kRxFrames},
      {"rx_roce", hw::Counter::kRxRoce},
      {"rx_not_roce", hw::Counter::kRxNotRoce},
      {"rx_malformed", hw::Counter::kRxMalformed},
      {"rx_bad_icrc", hw::Counter::kRxBadIcrc},
      {"rx_overflow", hw::Counter::kRxOverflow},
      {"rx_no_qp", hw::Counter::kRxNoQp},
      {"rx_bad_peer", hw::Counter::kRxBadPeer},
      {"rx_bad_state", hw::Counter::kRxBadState},
      {"rx_duplicate", hw::Counter::kRxDuplicate},
      {"rx_psn_error", hw::Counter::kRxPsnError},
      {"rx_invalid_request", hw::Counter::kRxInvalidRequest},
      {"rx_stray_responses", hw::Counter::kRxStrayResponses},
      {"doorbells_refused", hw::Counter::kDoorbellsRefused},
      {"memory_ops", hw::Counter::kMemoryOps},
      {"memory_ops_refused", hw::Counter::kMemoryOpsRefused},
      {"rx_bad_qkey", hw::Counter::kRxBadQkey},
      {"window_wqes", hw::Counter::kWindowWqes},
      {"multicast_copies", hw::Counter::kMulticastCopies}};
  for (auto& side : sides_) {
    for (const auto& [name, counter] : kCounters) {
      if (const auto count = side.endpoint->kernel().counter(counter); count.ok())
        report_.counters[name] += count.value();
    }
  }
}

}  // namespace rnic::testbench
