#include "testbench/traffic/share_lane.hpp"

#include <fmt/format.h>

#include <utility>

#include "testbench/cqe_status_text.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint32_t kShareSegments = 3, kShareSilent = 3;
constexpr std::uint64_t kShareGapNs = 3'000;

}  // namespace

ShareLane::ShareLane(const Spec& spec, std::size_t receives, std::size_t receive_bytes, MomentClock& clock,
                     const TrafficOptions& options, std::uint64_t seed, TrafficReport& report)
    : spec_(spec), clock_(clock), options_(options), random_(seed), report_(report) {
  const auto make = [&](const Host& host) {
    umd::QueuePair::Spec qp{
        .send_cq = host.requests.shared(),
        .receive_cq = host.receives.shared(),
        .capacity = {.send_depth = kWindow,
                     .receive_depth = static_cast<std::uint32_t>(std::max<std::size_t>(receives, 1)),
                     .send_segments = kShareSegments,
                     .receive_segments = kShareSegments,
                     .inline_bytes = kShareInline}};
    qp.context = this;
    return require_success(umd::QueuePair::create_idle(host.side.process(), qp), "creating a queue pair");
  };
  source_ = make(spec.from);
  sink_ = make(spec.to);
  connect_pair(spec.from.side.endpoint(), *source_, spec.to.side.endpoint(), *sink_, spec.connection);
  for (std::size_t i = 0; i < 2 * kWindow; ++i) slots_.push_back(spec.from.side.take(kSlotBytes));
  if (receives != 0) {
    receives_ = std::make_unique<MixReceives>(
        spec.to.side, receives, receive_bytes,
        [this](const umd::ReceiveRequest& request) { return sink_->post_receive(request); });
    receives_->refill(random_, true);
  }
  last_progress_ns_ = now();
}

ShareLane::~ShareLane() {
  static_cast<void>(source_->close().ok());
  static_cast<void>(sink_->close().ok());
}

void ShareLane::step() {
  if (broken_) return;
  if (waiting_.empty()) {
    // Silent requests that nothing follows would never be known to be done, nor messages that nobody is told of.
    const bool silent_end = !outstanding_.empty() && outstanding_.back().request.send.silent;
    const bool quiet_end = quiet_run_ != 0 && under_way() != 0;
    if (!report_.stopping || silent_end || quiet_end) next(report_.stopping);
  }
  while (now() >= next_post_ns_ && post()) {
  }
  watch();
}

void ShareLane::step_sink() {
  if (!broken_ && receives_) receives_->refill(random_, true);
}

void ShareLane::plan(Request request) {
  request.send.id = planned_++;
  request.send.silent = !report_.stopping && silent_run_ < kShareSilent && random_.chance(0.25);
  silent_run_ = request.send.silent ? silent_run_ + 1 : 0;
  if (request.tells) {
    ++messages_;
    request.send.solicited = report_.stopping || quiet_run_ >= kQuietMessages || random_.chance(0.4);
    quiet_run_ = request.send.solicited ? 0 : quiet_run_ + 1;
  }
  const auto number = request.send.id;
  waiting_.push_back({std::move(request), number});
}

std::span<std::uint8_t> ShareLane::slot(std::size_t bytes) {
  return slots_[used_slots_++ % slots_.size()].first(bytes);
}

/// Posts one request, if there is one and room for it.
bool ShareLane::post() {
  if (waiting_.empty() || outstanding_.size() >= kWindow || !source_->has_room(1)) return false;
  auto& next = waiting_.front();
  auto& send = next.request.send;
  const auto memory = next.request.memory;
  const auto address = reinterpret_cast<std::uint64_t>(memory.data());
  const bool whole = send.opcode == hw::WqeOpcode::kCompareSwap || send.opcode == hw::WqeOpcode::kFetchAdd;
  const std::size_t first = whole ? memory.size() : random_.below(memory.size() + 1);
  const umd::Segment segments[] = {
      {address, static_cast<std::uint32_t>(first), spec_.from.side.key()},
      {address + first, static_cast<std::uint32_t>(memory.size() - first), spec_.from.side.key()}};
  send.segments = std::span(segments).first(whole ? 1 : 2);
  if (next.request.about_to_post) next.request.about_to_post(send, clock_.next(now()));
  require_success(source_->post_send(send), "posting a request");
  send.segments = {};
  if (outstanding_.empty()) last_progress_ns_ = now();
  outstanding_.push_back(std::move(next));
  waiting_.pop_front();
  next_post_ns_ = random_.chance(0.5) ? 0 : now() + random_.below(kShareGapNs);
  return true;
}

void ShareLane::on_completion(const umd::Completion& completion, bool of_receives) {
  if (broken_) return;
  last_progress_ns_ = now();
  if (completion.status != hw::CqeStatus::kSuccess)
    return wrong(fmt::format("{} {}: {}", of_receives ? "Receive" : "request", completion.id,
                             cqe_status_text(completion.status)));
  if (of_receives) {
    const auto buffer = receives_ ? receives_->taken(completion.id) : std::span<const std::uint8_t>();
    if (buffer.empty() || under_way() == 0) return wrong("a Receive completed, and no message was under way");
    arrived(arrived_++, completion, buffer);
    receives_->give_back(completion.id);
    return;
  }
  const auto is_next = [&] { return !outstanding_.empty() && outstanding_.front().number == completion.id; };
  while (!outstanding_.empty() && outstanding_.front().request.send.silent && !is_next() && !broken_)
    retire(outstanding_.front());
  if (broken_) return;
  if (!is_next()) return wrong(fmt::format("completion of request {} out of order", completion.id));
  if (outstanding_.front().request.send.silent)
    return wrong(fmt::format("completion of request {}, which is silent", completion.id));
  retire(outstanding_.front());
}

void ShareLane::retire(Outstanding& one) {
  if (one.request.done) one.request.done(clock_.next(now()));
  outstanding_.pop_front();
}

bool ShareLane::finished() const {
  return broken_ || (report_.stopping && waiting_.empty() && outstanding_.empty() && under_way() == 0);
}

void ShareLane::watch() {
  if (outstanding_.empty() && under_way() == 0) last_progress_ns_ = now();
  if (now() - last_progress_ns_ < options_.hang_ns || broken_) return;
  report_.hung += std::max<std::uint64_t>(outstanding_.size(), 1);
  report_.note(fmt::format("{}: no completion for {} us, {} requests outstanding, {} messages have not come",
                           spec_.name, options_.hang_ns / 1000, outstanding_.size(), under_way()));
  broken_ = true;
}

void ShareLane::wrong(const std::string& text) {
  ++report_.wrong;
  report_.note(fmt::format("{}: {}", spec_.name, text));
  broken_ = true;
}

}  // namespace rnic::testbench
