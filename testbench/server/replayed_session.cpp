#include "testbench/server/replayed_session.hpp"

#include <algorithm>

#include "testbench/server/event_log_writer.hpp"

namespace rnic::testbench {

void ReplayedSession::say(const LogRecord& record) {
  if (record.kind == LogKind::kDetach) return end("");
  if (record.kind == LogKind::kDoorbell) {
    remote::Doorbell doorbell;
    doorbell.offset = static_cast<std::uint32_t>(record.address);
    doorbell.bytes = static_cast<std::uint32_t>(record.data.size());
    std::memcpy(doorbell.data.data(), record.data.data(), std::min(record.data.size(), sizeof doorbell.data));
    return ring(doorbell);
  }
  RequestFrame frame;
  frame.header = {.bytes = static_cast<std::uint32_t>(record.data.size()),
                  .kind = static_cast<remote::FrameKind>(record.code),
                  .number = static_cast<std::uint32_t>(record.number),
                  .client = static_cast<std::uint32_t>(record.client)};
  const auto body = std::as_bytes(std::span(record.data));
  frame.body.assign(body.begin(), body.end());
  perform(frame);
}

bool ReplayedSession::send(const Answer& answer) {
  LogRecord met;
  met.kind = LogKind::kAnswer;
  met.session = number_;
  met.number = answer.to.number;
  met.checksum = checksum_of(answer.status, answer.client, answer.body);
  // Of the others the log has those that were not taken.
  const auto logged = of_kernel(answer.to.kind) ? follower_.follow(met) : follower_.follow_if(met);
  return !logged || logged->good;
}

}  // namespace rnic::testbench
