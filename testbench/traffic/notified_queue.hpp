#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "driver/event_sink.hpp"
#include "driver/umd/completion_queue.hpp"
#include "testbench/traffic/traffic_report.hpp"

namespace rnic::testbench {

/// A completion queue whose owner takes entries only when an event has told of them: it arms the queue, and sleeps
/// (InfiniBand specification 11.4.2.2; docs/host_interface.md, CqArm). So an event that does not come is a hang. One
/// that comes without an arm, or about nothing that the queue was armed for, is wrong.
///
/// Lives where a shared_ptr holds it: events come as long as it does.
class NotifiedQueue final : public EventSink {
 public:
  /// `name`: in messages. The report outlives it.
  static std::shared_ptr<NotifiedQueue> make(std::string name, std::shared_ptr<umd::ProcessContext> process,
                                             std::shared_ptr<umd::CompletionQueue> queue, const TrafficOptions& options,
                                             TrafficReport& report);
  ~NotifiedQueue() override;
  NotifiedQueue(const NotifiedQueue&) = delete;
  NotifiedQueue& operator=(const NotifiedQueue&) = delete;

  [[nodiscard]] umd::CompletionQueue& queue() { return *queue_; }
  [[nodiscard]] const std::shared_ptr<umd::CompletionQueue>& shared() const { return queue_; }

  /// Wants one event. While another arm waits: the stronger one counts (CqArm).
  void arm(hw::CqArm kind);
  [[nodiscard]] bool armed() const { return armed_ != hw::CqArm::kNone; }
  /// An event has come, and take has not been called since.
  [[nodiscard]] bool told() const { return told_.has_value(); }
  /// It was about the end of the queue.
  [[nodiscard]] bool overrun() const { return overrun_; }
  /// What has come, after an event.
  [[nodiscard]] std::vector<umd::Completion> take();
  /// Looks whether an event is due for too long; then it is reported, once.
  void watch(std::uint64_t now_ns);

  void on_event(const hw::Eqe& eqe) override;

 private:
  NotifiedQueue(std::string name, std::shared_ptr<umd::ProcessContext> process,
                std::shared_ptr<umd::CompletionQueue> queue, const TrafficOptions& options, TrafficReport& report);
  void wrong(const std::string& text);

  const std::string name_;
  const std::shared_ptr<umd::ProcessContext> process_;
  const std::shared_ptr<umd::CompletionQueue> queue_;
  const TrafficOptions& options_;
  TrafficReport& report_;
  hw::CqArm armed_ = hw::CqArm::kNone;
  std::optional<hw::CqArm> told_;  ///< What it was armed for
  bool overrun_ = false, broken_ = false;
  /// Taken with the last event of each kind, and not what that was about: they may have come behind it, and so be what
  /// the next one is about.
  std::size_t spare_ = 0, spare_solicited_ = 0;
  std::optional<std::uint64_t> due_since_ns_;
};

}  // namespace rnic::testbench
