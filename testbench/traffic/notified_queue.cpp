#include "testbench/traffic/notified_queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace rnic::testbench {

std::shared_ptr<NotifiedQueue> NotifiedQueue::make(std::string name, std::shared_ptr<umd::ProcessContext> process,
                                                   std::shared_ptr<umd::CompletionQueue> queue,
                                                   const TrafficOptions& options, TrafficReport& report) {
  std::shared_ptr<NotifiedQueue> made(
      new NotifiedQueue(std::move(name), std::move(process), std::move(queue), options, report));
  made->process_->events().subscribe(EventTable::Of::kCq, made->queue_->cqn(), made);
  return made;
}

NotifiedQueue::NotifiedQueue(std::string name, std::shared_ptr<umd::ProcessContext> process,
                             std::shared_ptr<umd::CompletionQueue> queue, const TrafficOptions& options,
                             TrafficReport& report)
    : name_(std::move(name)),
      process_(std::move(process)),
      queue_(std::move(queue)),
      options_(options),
      report_(report) {}

NotifiedQueue::~NotifiedQueue() { process_->events().unsubscribe(EventTable::Of::kCq, queue_->cqn()); }

void NotifiedQueue::arm(hw::CqArm kind) {
  armed_ = std::max(armed_, kind);
  due_since_ns_.reset();
  queue_->arm(kind);
}

void NotifiedQueue::on_event(const hw::Eqe& eqe) {
  const auto type = static_cast<hw::EqeType>(eqe.event_type);
  if (type == hw::EqeType::kCqError) {
    overrun_ = true;
    told_ = armed_;
    return;
  }
  if (type != hw::EqeType::kCompletion) return;  // the end of the device, which others report
  if (options_.planted == PlantedSoakFault::kLostEvent && report_.share.events > 50) return;
  if (armed_ == hw::CqArm::kNone) return wrong("an event came, and the queue was not armed");
  if (armed_ == hw::CqArm::kErrors)
    return wrong("an event came that tells of no error, and the queue was armed for errors");
  told_ = armed_;
  armed_ = hw::CqArm::kNone;
}

std::vector<umd::Completion> NotifiedQueue::take() {
  const auto kind = std::exchange(told_, std::nullopt).value_or(hw::CqArm::kNone);
  std::vector<umd::Completion> taken;
  std::array<umd::Completion, 16> some;
  for (auto count = queue_->poll(some); count != 0; count = queue_->poll(some))
    taken.insert(taken.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(count));
  if (kind < hw::CqArm::kSolicited) return taken;
  const auto solicited = static_cast<std::size_t>(std::count_if(taken.begin(), taken.end(), [](const auto& one) {
    return one.solicited || one.status != hw::CqeStatus::kSuccess;
  }));
  ++report_.share.events;
  const bool any = kind == hw::CqArm::kAny;
  if (any && taken.empty() && spare_ == 0) wrong("an event came, and no entry");
  if (!any && solicited == 0 && spare_solicited_ == 0) wrong("an event came for solicited entries, and none of them");
  report_.share.solicited_events += !any;
  // Those that were taken before this event were old when it came.
  spare_ = spare_ == 0 && !taken.empty() ? taken.size() - 1 : taken.size();
  spare_solicited_ = !any && spare_solicited_ == 0 && solicited != 0 ? solicited - 1 : solicited;
  return taken;
}

/// Half the time of a hang: before that is told of the requests.
void NotifiedQueue::watch(std::uint64_t now_ns) {
  const bool due = (armed_ == hw::CqArm::kAny && queue_->waiting() != 0) ||
                   (armed_ == hw::CqArm::kSolicited && queue_->solicited() != 0);
  if (!due || told()) {
    due_since_ns_.reset();
  } else if (!due_since_ns_) {
    due_since_ns_ = now_ns;
  } else if (now_ns - *due_since_ns_ > options_.hang_ns / 2 && !broken_) {
    ++report_.hung;
    report_.note(fmt::format("{}: {} entries wait for {} us, the queue is armed, and no event has come", name_,
                             queue_->waiting(), options_.hang_ns / 2000));
    broken_ = true;
  }
}

void NotifiedQueue::wrong(const std::string& text) {
  ++report_.wrong;
  report_.note(fmt::format("{}: {}", name_, text));
  broken_ = true;
}

}  // namespace rnic::testbench
