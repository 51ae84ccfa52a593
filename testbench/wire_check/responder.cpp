#include "testbench/wire_check/responder.hpp"

#include <algorithm>
#include <utility>

namespace rnic::wire_check {
Responder::Responder(const Attributes& attributes, const ComplainOf& complain)
    : attributes_(attributes),
      complain_(&complain),
      expected_(attributes.receive_psn),
      beyond_(attributes.receive_psn) {}

void Responder::received(const Packet& packet) {
  if (distrusted_) return;
  if (gap_ == packet.psn) gap_.reset();
  came_.push_back(packet.psn);
  if (came_.size() > kRemembered) came_.pop_front();
  Asked asked{packet.psn, 1, packet.length, packet.is_atomic()};
  if (packet.operation == Operation::kReadRequest) {
    if (packet.length != 0)
      asked.span = static_cast<std::uint32_t>((std::uint64_t{packet.length} + attributes_.mtu - 1) / attributes_.mtu);
  }
  if (asked.atomic || packet.operation == Operation::kReadRequest) {
    asked_.push_back(asked);
    if (asked_.size() > kRemembered) asked_.pop_front();
  }
  const std::uint32_t behind = (packet.psn + asked.span) & kMask24;
  // A Read may take half of the PSNs (9.7.3.1): its end is then as far behind as ahead.
  if (not_behind(packet.psn, beyond_) || not_behind(behind, beyond_)) beyond_ = behind;
  if (packet.psn != expected_) return;
  expected_ = behind;
  if (!packet.ends()) return;
  msn_ = (msn_ + 1) & kMask24;
  ends_.push_back({(behind - 1) & kMask24, msn_});
  if (ends_.size() > kRemembered) ends_.pop_front();
}

std::ptrdiff_t Responder::times_come(std::uint32_t psn) const { return std::count(came_.begin(), came_.end(), psn); }

/// It has refused what came with `psn`, so that what came behind was not taken.
void Responder::go_back(std::uint32_t psn) {
  expected_ = psn;
  while (!ends_.empty() && not_behind(ends_.back().psn, psn)) {
    msn_ = (ends_.back().msn - 1) & kMask24;
    ends_.pop_back();
  }
}

void Responder::sent(const Packet& packet, const Moment& now) {
  if (distrusted_) return;
  if (attributes_.service != Service::kRc)
    return complain(packet, "an unreliable service answers nothing (9.8.2, 9.8.3)");
  if (refused_ != 0 && now.at > refused_ + kGrace)
    complain(packet, "sent after a NAK that ended the connection (9.9.3.1)");
  if (packet.operation == Operation::kAcknowledge) return check_acknowledge(packet, now.at);
  check_data(packet);
}

void Responder::check_acknowledge(const Packet& packet, Picoseconds now) {
  const unsigned type = packet.syndrome >> 5, code = packet.syndrome & 0x1f;
  if (type == 0) {
    if (not_behind(packet.psn, expected_)) return complain(packet, "acknowledges what has not come (9.7.5.1.1)");
    return check_msn(packet, (packet.psn + 1) & kMask24);
  }
  if (packet.psn != expected_ && not_behind(packet.psn, expected_))
    return complain(packet, "refuses what has not come (9.7.5.2)");
  check_msn(packet, packet.psn);
  if (type == 3 && code == 0) {
    if (gap_ == packet.psn) complain(packet, "a second NAK for one gap (9.7.5.2.2)");
    if (packet.psn == beyond_) complain(packet, "a sequence error though nothing behind this PSN has come (9.7.5.2.2)");
    // A refusal is older than what came while it was on its way out.
    if (times_come(packet.psn) == 0) gap_ = packet.psn;
  } else if (packet.psn == beyond_) {
    complain(packet, "refuses what has not come (9.7.5.2)");
  }
  if (times_come(packet.psn) == 1 && (type != 3 || code != 0)) go_back(packet.psn);
  came_.clear();
  if (type == 3 && code != 0) refused_ = now;
}

/// The MSN counts at least the messages that end before `before`, and at most all that came (9.7.7.1).
void Responder::check_msn(const Packet& packet, std::uint32_t before) {
  std::uint32_t least = ends_.empty() ? msn_ : (ends_.front().msn - 1) & kMask24;
  const auto it =
      std::partition_point(ends_.begin(), ends_.end(), [&](const End& end) { return !not_behind(end.psn, before); });
  if (it != ends_.begin()) least = std::prev(it)->msn;
  if (ends_.size() == kRemembered && it == ends_.begin()) return;  // older than is remembered
  if (ahead(packet.msn, least) > ahead(msn_, least))
    complain(packet, "MSN, of " + std::to_string(least) + " to " + std::to_string(msn_) + " messages (9.7.7.1)");
}

/// 9.7.5.1.3, 9.4.4: the data of a Read in as many full packets as it takes; that of an atomic in one.
void Responder::check_data(const Packet& packet) {
  const bool atomic = packet.operation == Operation::kAtomicAcknowledge;
  if (packet.begins()) {
    const auto it = std::find_if(asked_.rbegin(), asked_.rend(), [&](const Asked& asked) {
      return asked.psn == packet.psn && asked.atomic == atomic &&
             (asked.span == 1) == (packet.operation != Operation::kReadResponseFirst);
    });
    if (it == asked_.rend()) return complain(packet, "answers what has not been asked (9.7.5.1.3)");
    giving_ = *it;
    given_ = 0;
  } else if (!giving_ || packet.psn != ((giving_->psn + given_) & kMask24)) {
    return complain(packet, "does not follow the response before it (9.7.5.1.3)");
  }
  if (packet.has_aeth()) check_msn(packet, giving_->psn);
  ++given_;
  if (packet.ends() != (given_ == giving_->span))
    complain(packet, "a Read has as many responses as its length asks for (9.7.5.1.3)");
  if (!atomic) {
    const std::uint64_t behind = std::uint64_t{given_} * attributes_.mtu;
    const std::uint64_t bytes = packet.ends() ? giving_->length - (behind - attributes_.mtu) : attributes_.mtu;
    if (packet.bytes != bytes)
      complain(packet, std::to_string(packet.bytes) + " bytes instead of " + std::to_string(bytes) + " (9.4.4)");
  }
  if (packet.ends()) giving_.reset();
}

}  // namespace rnic::wire_check
