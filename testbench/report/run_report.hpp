#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "testbench/report/host_report.hpp"
#include "testbench/timeline/run_observer.hpp"

namespace rnic::testbench {

/// Collects what a report shows of a run (docs/report.md): an observer of a World. Its memory does not grow with the
/// run. When the world begins anew, it does so too.
class RunReport final : public RunObserver {
 public:
  [[nodiscard]] std::vector<LifeSink*> begin(const WorldOptions& options, std::uint64_t epoch_ps) override;
  /// From now on only requests of send queues of these queue pairs (of host, index) count as requests and payload;
  /// those of others (the kernel drivers'), and Receives, are "other_requests".
  void only(std::function<bool(unsigned, std::uint8_t)> is_program);
  void end(std::uint64_t now_ps, const std::vector<std::uint64_t>& cycles) override;

  /// What it has seen, of the run that began last; "series" of the busiest queue pairs, the others together. Null when
  /// none has begun. The same run gives the same. While it goes on, what there is so far.
  [[nodiscard]] nlohmann::ordered_json json() const;

 private:
  [[nodiscard]] nlohmann::ordered_json links_json() const;
  [[nodiscard]] nlohmann::ordered_json series_json() const;

  struct Link {
    double wire_gbps{}, pcie_gbytes{};
    std::uint64_t clock_period_ps{};
  };

  std::function<bool(unsigned, std::uint8_t)> is_program_;
  std::unique_ptr<SharedFigures> shared_;
  std::vector<std::unique_ptr<HostReport>> hosts_;
  std::vector<Link> links_;
  std::uint64_t epoch_ps_ = 0;
  std::optional<std::uint64_t> end_ps_;
  std::vector<std::uint64_t> cycles_;
};

}  // namespace rnic::testbench
