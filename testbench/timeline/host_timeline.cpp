#include "testbench/timeline/host_timeline.hpp"

namespace rnic::testbench {

void HostTimeline::finish() {
  for (std::size_t qp = 0; qp < stalls_.size(); ++qp) end_stall(static_cast<std::uint8_t>(qp));
  waits(false, false);
  packets_.finish();
  requests_.finish();
}

void HostTimeline::nic_reset() {
  finish();
  packets_.forget();
}

void HostTimeline::stalled(std::uint8_t qp, StallReason reason) {
  Stall& stall = stalls_[qp];
  if (stall.since != 0 && stall.reason == reason) return;
  // A queue pair without requests waits for nothing.
  if (!requests_.has_requests(qp)) return;
  end_stall(qp);
  stall = {now_, reason, requests_.current(qp)};
}

void HostTimeline::packet_made(std::uint8_t qp) {
  end_stall(qp);
  packets_.made(qp, now_);
}

void HostTimeline::went_back(std::uint8_t qp, StallReason cause) {
  // That the wait after an RNR NAK is over is no reason of its own.
  if (stalls_[qp].since != 0 && stalls_[qp].reason == StallReason::kRnr) return;
  stalled(qp, cause);
}

void HostTimeline::end_stall(std::uint8_t qp) {
  const Stall stall = stalls_[qp];
  stalls_[qp] = {};
  if (stall.since != 0) sinks_.stall_over(qp, stall.reason, stall.since, now_, stall.request.get());
}

void HostTimeline::retired(std::uint8_t qp, std::uint16_t index, bool failed) {
  requests_.retired(qp, index, failed, now_);
  if (!requests_.has_requests(qp)) end_stall(qp);
}

void HostTimeline::cqe(const CqeWrite& cqe) {
  requests_.cqe(cqe, now_);
  const auto qp = static_cast<std::uint8_t>(cqe.qpn);
  if (!requests_.has_requests(qp)) end_stall(qp);
}

void HostTimeline::qp_forgotten(std::uint8_t qp) {
  end_stall(qp);
  requests_.forget(qp);
}

void HostTimeline::tlb_missed() {
  packets_.tlb_missed();
  sinks_.tlb_missed(now_);
}

void HostTimeline::level(std::uint64_t& since, bool on, WaitKind what) {
  if (on == (since != 0)) return;
  if (!on) sinks_.wait_over(what, since, now_);
  since = on ? now_ : 0;
}

void HostTimeline::waits(bool for_tag, bool for_link) {
  level(tag_wait_, for_tag, WaitKind::kTag);
  level(link_wait_, for_link, WaitKind::kLink);
}

}  // namespace rnic::testbench
