#include "testbench/traffic/quiet_queue.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "testbench/cqe_status_text.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint32_t kQuietEntries = 8;
constexpr std::uint64_t kPauseNs = 60'000;
constexpr double kOverrunChance = 0.3;

}  // namespace

QuietQueue::QuietQueue(std::string name, MixSide& from, MixSide& to, const ConnectParameters& connection,
                       const TrafficOptions& options, std::uint64_t seed, TrafficReport& report)
    : name_(std::move(name)),
      from_(from),
      to_(to),
      connection_(connection),
      options_(options),
      random_(seed),
      report_(report),
      bytes_(to.take(sizeof(std::uint64_t))) {
  make();
}

QuietQueue::~QuietQueue() { unmake(); }

void QuietQueue::make() {
  const auto cq =
      require_success(umd::CompletionQueue::create(from_.process(), kQuietEntries), "creating a completion queue");
  sink_cq_ = require_success(umd::CompletionQueue::create(to_.process(), 1), "creating a completion queue");
  queue_ = NotifiedQueue::make(name_, from_.process(), cq, options_, report_);
  const auto pair = [&](MixSide& side, const std::shared_ptr<umd::CompletionQueue>& own) {
    const umd::QueuePair::Spec spec{.send_cq = own,
                                    .receive_cq = own,
                                    .capacity = {.send_depth = cq->depth() + 1, .receive_depth = 1, .inline_bytes = 8}};
    return require_success(umd::QueuePair::create_idle(side.process(), spec), "creating a queue pair");
  };
  source_ = pair(from_, cq);
  sink_ = pair(to_, sink_cq_);
  connect_pair(from_.endpoint(), *source_, to_.endpoint(), *sink_, connection_);
  queue_->arm(hw::CqArm::kErrors);
  state_ = State::kEmpty;
  posted_ = 0;
}

void QuietQueue::unmake() {
  static_cast<void>(source_->close().ok());
  static_cast<void>(sink_->close().ok());
  source_.reset();
  sink_.reset();
  queue_.reset();
  sink_cq_.reset();
}

void QuietQueue::step() {
  if (broken_) return;
  const std::uint64_t now = from_.now();
  if (state_ == State::kEmpty) {
    if (report_.stopping || now < pause_until_ns_) return;
    state_ = State::kFilling;
    began_ns_ = now;
  }
  if (state_ == State::kOverrunning) {
    check_overrun();
  } else {
    if (queue_->told()) return wrong("an event came, and the queue is not overrun");
    fill();
    if (posted_ == queue_->queue().depth() && queue_->queue().waiting() == posted_) empty();
  }
  if (state_ == State::kEmpty || broken_ || from_.now() - began_ns_ < options_.hang_ns) return;
  ++report_.hung;
  report_.note(
      fmt::format("{}: {} for {} us", name_,
                  state_ == State::kOverrunning ? "nobody has been told of an overrun" : "requests have not completed",
                  options_.hang_ns / 1000));
  broken_ = true;
}

/// Writes of eight bytes, as many as the queue has entries.
void QuietQueue::fill() {
  const std::uint64_t word = random_.next();
  const umd::Segment segment{reinterpret_cast<std::uint64_t>(&word), sizeof word, 0};
  const std::uint32_t most = queue_->queue().depth() + (state_ == State::kOverrunning ? 1 : 0);
  while (posted_ < most) {
    umd::SendRequest write{.opcode = hw::WqeOpcode::kWrite, .id = posted_, .segments = std::span(&segment, 1)};
    write.remote_address = reinterpret_cast<std::uint64_t>(bytes_.data());
    write.remote_key = to_.key();
    write.inline_data = true;
    require_success(source_->post_send(write), "posting a request");
    ++posted_;
  }
}

/// All entries are there, and nobody has been told.
void QuietQueue::empty() {
  report_.share.quiet_entries += posted_;
  if (!report_.stopping && random_.chance(kOverrunChance)) {
    state_ = State::kOverrunning;
    began_ns_ = from_.now();
    return fill();
  }
  std::array<umd::Completion, 64> taken;
  const auto count = queue_->queue().poll(taken);
  for (std::size_t i = 0; i < count; ++i) {
    if (taken[i].status != hw::CqeStatus::kSuccess || taken[i].id != i)
      return wrong(fmt::format("entry {}: request {}, {}", i, taken[i].id, cqe_status_text(taken[i].status)));
  }
  if (count != posted_) return wrong(fmt::format("{} entries, and {} requests have completed", count, posted_));
  posted_ = 0;
  state_ = State::kEmpty;
  pause_until_ns_ = from_.now() + random_.below(kPauseNs);
}

void QuietQueue::check_overrun() {
  if (!queue_->told()) return;
  if (!queue_->overrun()) return wrong("an event came that tells of no overrun");
  // What was written before the overrun is true (decisions 26).
  const auto taken = queue_->take();
  if (taken.size() + 1 != posted_)
    return wrong(fmt::format("{} entries of a queue of {} that has overrun", taken.size(), posted_ - 1));
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (taken[i].status != hw::CqeStatus::kSuccess || taken[i].id != i)
      return wrong(fmt::format("entry {} of a queue that has overrun: request {}, {}", i, taken[i].id,
                               cqe_status_text(taken[i].status)));
  }
  ++report_.share.overruns;
  unmake();
  make();
}

void QuietQueue::wrong(const std::string& text) {
  ++report_.wrong;
  report_.note(fmt::format("{}: {}", name_, text));
  broken_ = true;
}

}  // namespace rnic::testbench
