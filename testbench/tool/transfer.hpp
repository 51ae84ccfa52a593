#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "testbench/endpoint.hpp"

namespace rnic::testbench {

/// Moves ranges of memory over several queue pairs of one host: keeps every queue full and takes the completions.
class Transfer {
 public:
  enum class Direction : std::uint8_t { kWrite, kRead };

  struct Range {
    std::uint8_t* local = nullptr;
    UINT32 local_token = 0;
    std::uint64_t remote = 0;
    UINT32 remote_token = 0;
    std::uint64_t bytes = 0;
    ULONG flags = 0;  ///< ND_OP_FLAG_* of every request
  };

  /// `qps` report to `cq`; each takes `depth` requests.
  Transfer(Endpoint& endpoint, IND2CompletionQueue& cq, std::vector<IND2QueuePair*> qps, std::uint32_t depth);

  /// Moves `range` in messages of `message` bytes (the last may be shorter), round robin over the queue pairs; one
  /// message of no bytes when the range is empty. `progress` is called with the bytes done. Returns the simulated time
  /// it took, nanoseconds. Throws EndpointError when a request fails.
  std::uint64_t run(Direction direction, const Range& range, std::uint64_t message,
                    const std::function<void(std::uint64_t)>& progress = {});

  /// Latencies of all messages so far, nanoseconds.
  [[nodiscard]] const std::vector<std::uint64_t>& latencies() const { return latencies_; }
  /// Of the messages that have completed so far.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// Simulated time of all runs, of one that has not ended up to its latest completion, nanoseconds.
  [[nodiscard]] std::uint64_t nanoseconds() const { return ended_ns_ + running_ns_; }

 private:
  struct Slot {
    std::uint64_t posted_ns = 0;
    std::uint32_t qp = 0;
    std::uint64_t bytes = 0;
  };

  Endpoint& endpoint_;
  IND2CompletionQueue& cq_;
  std::vector<IND2QueuePair*> qps_;
  std::uint32_t depth_;
  std::vector<std::uint64_t> latencies_;
  std::uint64_t bytes_ = 0, ended_ns_ = 0, running_ns_ = 0;
};

}  // namespace rnic::testbench
