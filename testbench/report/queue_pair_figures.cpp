#include "testbench/report/queue_pair_figures.hpp"

#include <algorithm>
#include <unordered_set>

#include "driver/generated/host_interface.hpp"
#include "model/time.hpp"
#include "testbench/timeline/life_names.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {
namespace {

/// Bits 6:5 of an AETH syndrome (InfiniBand specification 9.7.5.2), and the NAK code that asks to send again.
constexpr unsigned kSyndromeKind = 5;
constexpr std::uint8_t kNakKind = 3, kRnrKind = 1, kSequenceError = 0x60;

/// Whether the receiver ends the connection, so that packets behind this one are refused for another reason.
bool is_fatal(const Packet& packet) {
  return packet.fault || packet.reason == RxReason::kInvalid || packet.reason == RxReason::kForbidden;
}

/// What a go-back-N repairs is no refusal.
bool is_refused(const Packet& packet) {
  switch (packet.reason) {
    case RxReason::kNoQp:
    case RxReason::kBadState:
    case RxReason::kBadPeer:
    case RxReason::kBadQkey:
    case RxReason::kBroken:
    case RxReason::kRnr: return true;
    default: return is_fatal(packet);
  }
}

}  // namespace

struct QueuePairFigures::Pair {
  QueuePairWork work;
  std::optional<Refusal> fatal;                 ///< The first
  std::optional<Refusal> other;                 ///< The last
  std::optional<NegativeAnswer> answer;         ///< The last
  std::unordered_set<const Request*> complete;  ///< With a CQE, not polled yet, as far as the NIC knows
};

class QueuePairFigures::HostSink final : public LifeSink {
 public:
  HostSink(QueuePairFigures& all, unsigned host) : all_(all), host_(host) {}

  void request_begins(Request&) override {}
  void request_completes(Request& request) override;
  void request_ends(Request& request) override;
  void send_begins(Packet&) override {}
  void send_ends(Packet&) override {}
  void receive_begins(Packet&) override {}
  void receive_ends(Packet&) override {}
  void packet_over(Packet&) override {}
  void packet_received(Packet& packet) override;
  void frame(const Frame&, Packet*) override {}
  void stall_over(std::uint8_t, StallReason, std::uint64_t, std::uint64_t, const Request*) override {}
  void wait_over(WaitKind, std::uint64_t, std::uint64_t) override {}
  void tlb_missed(std::uint64_t) override {}
  void tlp(const model::TlpSeen&, std::uint64_t) override {}
  void counted(hw::Counter) override {}

 private:
  [[nodiscard]] PacketMark mark(const Packet& packet) const {
    return {packet.opcode, packet.psn, packet.frame, all_.ns(packet.wire_end)};
  }

  QueuePairFigures& all_;
  unsigned host_;
};

void QueuePairFigures::HostSink::packet_received(Packet& packet) {
  if (is_response(packet.opcode)) {
    const unsigned kind = packet.syndrome >> kSyndromeKind & 3U;
    const bool refuses = kind == kRnrKind || (kind == kNakKind && packet.syndrome != kSequenceError);
    if (packet.opcode == kAckOpcode && refuses && packet.reason == RxReason::kNak)
      all_.pair(host_, packet.dest_qpn).answer = NegativeAnswer{packet.syndrome, mark(packet)};
    return;
  }
  if (!is_refused(packet) || !packet.request) return;
  Pair& sender = all_.pair(packet.host, packet.request->qpn);
  auto& place = is_fatal(packet) ? sender.fatal : sender.other;
  if (is_fatal(packet) && place) return;
  place = Refusal{host_, packet.dest_qpn, packet.reason, packet.va, packet.rkey, packet.asked, mark(packet)};
}

std::uint64_t QueuePairFigures::ns(std::uint64_t ps) const {
  return (ps - std::min(ps, epoch_ps_)) / model::kPicosecondsPerNanosecond;
}

FailedRequest QueuePairFigures::failed(const Request& request, const Pair& pair) const {
  FailedRequest one{.kind = std::string(request_name(request)),
                    .wqe = request.index,
                    .status = request.status,
                    .bytes = request.length,
                    .first_psn = request.first_psn,
                    .last_psn = request.last_psn,
                    .packets = request.packets,
                    .repeated = request.repeated,
                    .receive = request.receive,
                    .posted_ns = ns(request.when(Stage::kPosted)),
                    .ended_ns = ns(request.when(Stage::kCqeMade)),
                    .refusal = {},
                    .answer = {}};
  if (request.receive || request.is_local()) return one;
  using Status = hw::CqeStatus;
  const auto status = static_cast<Status>(request.status);
  // What its own NIC has refused never was a packet.
  if (status == Status::kLocLenErr || status == Status::kLocProtErr || status == Status::kLocQpOpErr) return one;
  one.refusal = pair.fatal ? pair.fatal : pair.other;
  one.answer = pair.answer;
  return one;
}

void QueuePairFigures::HostSink::request_completes(Request& request) {
  if (!request.over) all_.pair(host_, request.qpn).complete.insert(&request);
}

void QueuePairFigures::HostSink::request_ends(Request& request) {
  Pair& pair = all_.pair(host_, request.qpn);
  pair.complete.erase(&request);
  all_.add(pair.work, request, pair);
}

void QueuePairFigures::add(QueuePairWork& work, const Request& request, const Pair& pair) const {
  auto& kind = work.kinds[std::string(request_name(request))];
  ++kind.count;
  work.repeated += request.repeated;
  if (request.status == static_cast<std::uint8_t>(hw::CqeStatus::kWrFlushErr)) {
    ++kind.flushed;
    return;
  }
  if (request.status != 0) {
    ++kind.failed;
    if (!work.failure) work.failure = failed(request, pair);
    return;
  }
  // Not until it is polled: when a program looks is a matter of the computer that it runs on.
  const std::uint64_t end = request.silent ? request.when(Stage::kRetired)
                                           : std::max(request.when(Stage::kCqeMade), request.when(Stage::kCqeWritten));
  if (end == 0) {
    ++kind.unfinished;
    return;
  }
  if (request.receive) return;
  const std::uint64_t begin = request.when(Stage::kPosted);
  if (begin == 0 || end < begin) return;
  kind.bytes += request.length;
  work.bytes += request.length;
  work.latency_ns.add(end / model::kPicosecondsPerNanosecond - begin / model::kPicosecondsPerNanosecond);
  if (work.latency_ns.count() == 1 || ns(begin) < work.from_ns) work.from_ns = ns(begin);
  work.to_ns = std::max(work.to_ns, ns(end));
}

QueuePairFigures::QueuePairFigures() = default;
QueuePairFigures::~QueuePairFigures() = default;

std::vector<LifeSink*> QueuePairFigures::begin(const WorldOptions& options, std::uint64_t epoch_ps) {
  epoch_ps_ = epoch_ps;
  pairs_.clear();
  order_.clear();
  sinks_.clear();
  std::vector<LifeSink*> all;
  for (std::size_t i = 0; i < options.hosts; ++i) {
    sinks_.push_back(std::make_unique<HostSink>(*this, static_cast<unsigned>(i)));
    all.push_back(sinks_.back().get());
  }
  return all;
}

QueuePairFigures::Pair& QueuePairFigures::pair(unsigned host, std::uint32_t qpn) {
  auto& found = pairs_[{host, qpn}];
  if (found != nullptr) return *found;
  found = std::make_unique<Pair>();
  found->work.host = host;
  found->work.qpn = qpn;
  Pair& made = *found;
  order_.emplace_back(host, qpn);
  if (order_.size() > kMost) {
    pairs_.erase(order_.front());
    order_.erase(order_.begin());
  }
  return made;
}

std::optional<QueuePairWork> QueuePairFigures::find(unsigned host, std::uint32_t qpn) const {
  const auto found = pairs_.find({host, qpn});
  if (found == pairs_.end()) return {};
  const Pair& pair = *found->second;
  QueuePairWork work = pair.work;
  std::vector<const Request*> complete(pair.complete.begin(), pair.complete.end());
  std::sort(complete.begin(), complete.end(),
            [](const auto* a, const auto* b) { return a->when(Stage::kCqeMade) < b->when(Stage::kCqeMade); });
  for (const auto* request : complete) add(work, *request, pair);
  return work;
}

}  // namespace rnic::testbench
