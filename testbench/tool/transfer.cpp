#include "testbench/tool/transfer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "driver/costs.hpp"
#include "testbench/timeline/life_names.hpp"

namespace rnic::testbench {
namespace {

/// Between two looks at an empty completion queue: the granularity of a latency figure.
constexpr std::uint64_t kResultPollNs = 50;

}  // namespace

Transfer::Transfer(Endpoint& endpoint, IND2CompletionQueue& cq, std::vector<IND2QueuePair*> qps, std::uint32_t depth)
    : endpoint_(endpoint), cq_(cq), qps_(std::move(qps)), depth_(depth) {}

std::uint64_t Transfer::run(Direction direction, const Range& range, std::uint64_t message,
                            const std::function<void(std::uint64_t)>& progress) {
  auto& device = endpoint_.host().device();
  const std::uint64_t start = device.now_ns();
  const std::uint64_t total = std::max<std::uint64_t>(1, (range.bytes + message - 1) / message);
  std::vector<Slot> slots(total);
  std::vector<std::uint32_t> outstanding(qps_.size());
  std::uint64_t posted = 0, done = 0, bytes_done = 0;
  std::array<ND2_RESULT, 32> results{};

  while (done < total) {
    // Each message has its queue pair by its number, so the order of posting is the same whatever completes first.
    while (posted < total && outstanding[posted % qps_.size()] < depth_) {
      const std::uint64_t at = posted * message;
      auto& slot = slots[posted];
      slot = {0, static_cast<std::uint32_t>(posted % qps_.size()), std::min(message, range.bytes - at)};
      const ND2_SGE sge{range.local + at, static_cast<ULONG>(slot.bytes), range.local_token};
      auto* const context = reinterpret_cast<void*>(static_cast<std::uintptr_t>(posted));
      const ULONG count = slot.bytes == 0 ? 0 : 1;
      auto& qp = *qps_[slot.qp];
      const HRESULT status = direction == Direction::kWrite
                                 ? qp.Write(context, &sge, count, range.remote + at, range.remote_token, range.flags)
                                 : qp.Read(context, &sge, count, range.remote + at, range.remote_token, range.flags);
      require_success(status, direction == Direction::kWrite ? "IND2QueuePair::Write" : "IND2QueuePair::Read");
      // The doorbell ends the call: a report (docs/report.md) takes the same time from what the NIC sees.
      slot.posted_ns = device.now_ns();
      ++outstanding[slot.qp];
      ++posted;
    }
    const auto look = device.look();
    const ULONG count = cq_.GetResults(results.data(), results.size());
    // The entries cost their time behind the doorbell that takes them.
    const std::uint64_t taken_ns = device.now_ns() - count * cost::kPollEntryNs;
    for (ULONG i = 0; i < count; ++i) {
      const auto number = reinterpret_cast<std::uintptr_t>(results[i].RequestContext);
      require_success(results[i].Status,
                      fmt::format("host {}: completion of message {}",
                                  host_letter(static_cast<unsigned>(endpoint_.host().index())), number));
      const auto& slot = slots.at(number);
      latencies_.push_back(taken_ns - slot.posted_ns);
      --outstanding[slot.qp];
      ++done;
      bytes_done += slot.bytes;
      bytes_ += slot.bytes;
    }
    if (count != 0) running_ns_ = device.now_ns() - start;
    if (count == 0) device.look_again(look, kResultPollNs);
    if (count != 0 && progress) progress(bytes_done);
  }
  const std::uint64_t passed = device.now_ns() - start;
  ended_ns_ += passed;
  running_ns_ = 0;
  return passed;
}

}  // namespace rnic::testbench
