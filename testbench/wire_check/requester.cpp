#include "testbench/wire_check/requester.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace rnic::wire_check {
namespace {

constexpr std::uint32_t kPsnWindow = 0x800000;  // 9.7.3.1: at most so many PSNs are outstanding

/// Clocks that a NIC measures time with may be this much fast (and drawn worlds have slow ones).
Picoseconds nearly(Picoseconds time) { return time - time / 500; }

/// 9.7.5.2.8, table 45.
Picoseconds rnr_time(unsigned code) {
  static constexpr std::array<std::uint32_t, 32> kMicroseconds10 = {
      65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
      256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return Picoseconds{kMicroseconds10.at(code)} * 10'000'000;
}

std::uint32_t responses(std::uint32_t length, std::uint32_t mtu) {
  return length == 0 ? 1 : static_cast<std::uint32_t>((std::uint64_t{length} + mtu - 1) / mtu);
}

}  // namespace

Requester::Requester(const Attributes& attributes, const ComplainOf& complain)
    : attributes_(attributes), complain_(&complain), next_(attributes.send_psn), cursor_(attributes.send_psn) {}

void Requester::sent(const Packet& packet, const Moment& now) {
  if (distrusted_) return;
  if (attributes_.service != Service::kRc) return unreliable(packet);
  if (refused_ != 0) after_refusal_ += packet.bytes;
  if (refused_ != 0 && now.at > refused_ + kGrace && after_refusal_ > kGraceBytes)
    complain(packet, "sent after a NAK that ended the connection (9.9.2.1)");
  if (packet.psn == next_) {
    if (!goes_on(next_))
      complain(packet, "a new packet before PSN " + std::to_string(cursor_) + " was sent again (9.7.2)");
    return begin(packet, now.at);
  }
  if (not_behind(packet.psn, next_)) {
    complain(packet, "PSN " + std::to_string(next_) + " is left out (9.7.2)");
    distrusted_ = true;  // one mistake, one complaint
    return;
  }
  repeat(packet, now);
}

/// `psn` is the next; what has been acknowledged meanwhile need not be sent again, nor be asked for what of a Read has
/// come.
bool Requester::goes_on(std::uint32_t psn) const {
  return psn == cursor_ || (not_behind(psn, cursor_) && not_behind(missing(), psn));
}

void Requester::begin(const Packet& packet, Picoseconds now) {
  check_message(packet);
  Sent entry{packet.operation, packet.psn, 1, packet.va, packet.rkey, packet.length, packet.bytes, 0, now};
  if (packet.operation == Operation::kReadRequest) entry.span = responses(packet.length, attributes_.mtu);
  if (ahead((packet.psn + entry.span) & kMask24, oldest()) > kPsnWindow)
    complain(packet, "more than 2^23 PSNs outstanding (9.7.3.1)");
  if (entry.awaits_data()) {
    const auto waiting = std::count_if(window_.begin(), window_.end(), [](const Sent& s) { return s.awaits_data(); });
    if (static_cast<std::uint32_t>(waiting) >= attributes_.read_limit)
      complain(packet, "more Reads and atomics outstanding than agreed, " + std::to_string(attributes_.read_limit) +
                           " (9.4.4)");
  }
  window_.push_back(entry);
  next_ = cursor_ = (packet.psn + entry.span) & kMask24;
}

/// 9.4, 9.7.2: packets of a message follow each other, and are full but for the last.
void Requester::check_message(const Packet& packet) {
  const bool sends = packet.is_send();
  const bool follows =
      open_ && !packet.begins() && sends == (last_ == Operation::kSendFirst || last_ == Operation::kSendMiddle);
  if (packet.begins() ? open_ : !follows) complain(packet, "does not follow the packet before it (9.2.1, 9.4)");
  if (sends || packet.is_write()) {
    const bool middle = !packet.ends();
    const bool first_of_one = packet.begins() && packet.ends();
    if (middle ? packet.bytes != attributes_.mtu
               : packet.bytes > attributes_.mtu || (packet.bytes == 0 && !first_of_one))
      complain(packet, std::to_string(packet.bytes) + " bytes, MTU " + std::to_string(attributes_.mtu) + " (9.4)");
  }
  if (packet.is_write()) {
    if (packet.begins()) left_ = packet.length;
    if (packet.bytes > left_ || (packet.ends() && packet.bytes != left_))
      complain(packet, "the packets of a WRITE are not as long as it says (9.4.3)");
    left_ -= std::min<std::uint64_t>(left_, packet.bytes);
  }
  open_ = !packet.ends();
  last_ = packet.operation;
}

/// 9.8.2.2, 9.8.3: PSNs are counted, and nothing is ever sent again. Datagrams between two that are here may have gone
/// to the NIC's own station, which no wire shows (decisions 64).
void Requester::unreliable(const Packet& packet) {
  if (std::exchange(resumed_, false)) {
    open_ = false;
    if (not_behind(packet.psn, next_)) next_ = packet.psn;
  }
  const bool follows = attributes_.service == Service::kUd ? not_behind(packet.psn, next_) : packet.psn == next_;
  if (!follows) complain(packet, "expected PSN " + std::to_string(next_) + " (9.8.2.2.1, 9.8.3)");
  next_ = (packet.psn + 1) & kMask24;
  if (attributes_.service == Service::kUc) return check_message(packet);
  if (packet.bytes > attributes_.mtu) complain(packet, "a datagram longer than the MTU (9.8.3)");
}

std::uint32_t Requester::missing() const {
  return window_.empty() ? next_ : (window_.front().psn + window_.front().got) & kMask24;
}

Requester::Sent* Requester::holder(std::deque<Sent>& among, std::uint32_t psn) {
  const auto it = std::partition_point(among.begin(), among.end(), [&](const Sent& entry) {
    return ahead(psn, entry.psn) >= entry.span && not_behind(psn, entry.psn);
  });
  return it == among.end() || ahead(psn, it->psn) >= it->span ? nullptr : &*it;
}

void Requester::repeat(const Packet& packet, Moment now) {
  Sent* before = holder(window_, packet.psn);
  if (before == nullptr) before = holder(past_, packet.psn);
  if (before == nullptr) return complain(packet, "sent again, acknowledged long ago (9.7.5.1.4)");
  if (!goes_on(packet.psn) && !may_go_back(packet.psn, *before, now))
    complain(packet, "sent again without a reason: no NAK, no missing answer, no time-out (9.7.5.1.4, 9.7.6)");
  check_same(packet, *before);
  before->at = now.at;
  cursor_ = (before->psn + before->span) & kMask24;
}

void Requester::check_same(const Packet& packet, const Sent& before) {
  const std::uint32_t offset = ahead(packet.psn, before.psn) * attributes_.mtu;
  if (packet.operation != before.operation || packet.bytes != before.bytes || packet.rkey != before.rkey ||
      packet.va != before.va + offset || packet.length != before.length - offset)
    complain(packet, "another packet than the one that was sent with this PSN (9.7.2)");
}

/// A Read may be asked for whole, or from the first byte that is missing (decisions 50): when it was found that one is,
/// or when it leaves, if late responses have come since.
bool Requester::may_go_back(std::uint32_t psn, const Sent& target, Moment now) {
  // What is in front of `psn` was acknowledged, so it went on from there; `psn` itself perhaps since it has begun.
  const bool begun_before =
      !answers_.empty() && now.at <= answers_.back().came.at + kGrace && !not_behind(psn, oldest());
  for (auto it = reasons_.begin(); it != reasons_.end(); ++it) {
    const bool here = psn == it->psn || (ahead(it->psn, target.psn) < target.span && not_behind(it->psn, psn)) ||
                      ((psn == oldest() || psn == missing() || begun_before) && !not_behind(it->psn, psn));
    if (!here || now.at < it->not_before) continue;
    reasons_.erase(it);
    // Its time-out may have come before, and nothing was repeated for it yet.
    if (attributes_.ack_timeout != 0 && now.at >= target.at + time_out()) note_expiry(target, now);
    return true;
  }
  // An answer at it or behind came just now: one in front may be missing. What has not come here the NIC has not.
  const std::uint32_t missing = (target.psn + target.got) & kMask24;
  const auto asks = [&](const Answer& answer) { return may_move(answer.came, now) && not_behind(answer.psn, psn); };
  if (target.awaits_data() && not_behind(missing, psn) && std::any_of(answers_.begin(), answers_.end(), asks))
    return true;
  if (attributes_.ack_timeout == 0) return false;
  // It, or one in front, had its time-out, and nothing was sent again for that.
  const auto expired = [&](const Expiry& one) {
    return now.at >= one.at && may_move(one.noted, now) && not_behind(psn, one.psn);
  };
  if ((psn == oldest() || psn == this->missing() || begun_before) &&
      std::any_of(expiries_.begin(), expiries_.end(), expired)) {
    expiries_.clear();
    return true;
  }
  return now.at >= target.at + time_out();
}

Picoseconds Requester::time_out() const { return nearly(Picoseconds{4'096'000} << attributes_.ack_timeout); }

/// `sent` is acknowledged, or sent again for another reason: its time-out may stand all the same.
void Requester::note_expiry(const Sent& sent, const Moment& now) {
  const Picoseconds at = sent.at + time_out();
  if (attributes_.ack_timeout == 0 || at > now.at + kBacklogTime) return;
  while (!expiries_.empty() && (expiries_.size() >= kRemembered || !may_move(expiries_.front().noted, now)))
    expiries_.pop_front();
  expiries_.push_back({sent.psn, at, now});
}

void Requester::retire() {
  past_.push_back(window_.front());
  window_.pop_front();
  if (past_.size() > kRemembered) past_.pop_front();
}

/// Everything in front of `psn` is acknowledged, but for a Read or an atomic without its answer, which is an implied
/// NAK then (9.7.5.1.4). False: there is one.
bool Requester::acknowledge_before(std::uint32_t psn, const Moment& now) {
  while (!window_.empty() && window_.front().psn != psn && not_behind(psn, window_.front().psn)) {
    const Sent& front = window_.front();
    if (ahead(psn, front.psn) < front.span) break;
    if (front.awaits_data()) {
      reasons_.push_back({(front.psn + front.got) & kMask24, now.at, 0, "its answer is missing"});
      return false;
    }
    note_expiry(front, now);
    retire();
  }
  return true;
}

void Requester::received(const Packet& packet, Moment now) {
  if (distrusted_) return;
  while (!answers_.empty() && (answers_.size() >= kRemembered || !may_move(answers_.front().came, now)))
    answers_.pop_front();
  answers_.push_back({packet.psn, now});
  if (window_.empty()) return;
  constexpr std::size_t kMostReasons = 64;
  if (reasons_.size() > kMostReasons) reasons_.erase(reasons_.begin());
  if (ahead(packet.psn, oldest()) >= ahead(next_, oldest())) return;  // old, or of nothing that was sent
  if (packet.operation == Operation::kAcknowledge) {
    if (packet.syndrome >> 5 == 0) {
      acknowledge_before((packet.psn + 1) & kMask24, now);
    } else {
      refuse(packet, now);
    }
    return;
  }
  take_response(packet, now);
}

void Requester::take_response(const Packet& packet, const Moment& now) {
  const Sent* const of = holder(window_, packet.psn);
  if (of == nullptr || !of->awaits_data() || !acknowledge_before(of->psn, now)) return;
  Sent& front = window_.front();
  const std::uint32_t expected = (front.psn + front.got) & kMask24;
  if (packet.psn != expected) {
    if (not_behind(packet.psn, expected)) reasons_.push_back({expected, now.at, 0, "a response is missing"});
    return;
  }
  note_expiry(front, now);
  front.at = std::max(front.at, now.at);
  if (++front.got == front.span) retire();
}

void Requester::refuse(const Packet& packet, const Moment& now) {
  const unsigned type = packet.syndrome >> 5, value = packet.syndrome & 0x1f;
  if (type != 1 && type != 3) return;
  if (!acknowledge_before(packet.psn, now)) return;
  if (type == 1) {
    reasons_.push_back({packet.psn, now.at, now.at + nearly(rnr_time(value)), "receiver not ready"});
  } else if (value == 0) {
    reasons_.push_back({packet.psn, now.at, 0, "sequence error"});
  } else {
    refused_ = now.at;
  }
}

}  // namespace rnic::wire_check
