#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "driver/umd/kernel_mr.hpp"
#include "driver/umd/completion_queue.hpp"
#include "driver/umd/process_context.hpp"
#include "testbench/endpoint.hpp"

namespace rnic::testbench {

/// Byte contents of message `number` of lane `lane`: its first eight bytes, if it has so many, are its number.
void fill_message(std::span<std::uint8_t> message, std::uint32_t lane, std::uint64_t number);
/// Where `message` differs from that; message.size() when nowhere.
[[nodiscard]] std::size_t compare_message(std::span<const std::uint8_t> message, std::uint32_t lane,
                                          std::uint64_t number);

/// What one host has in a TrafficMix: a process with memory, one region of it, and one completion queue for all of its
/// queues.
///
/// Made and destroyed in a thread of simulated time.
class MixSide {
 public:
  static constexpr std::uint8_t kUntouched = 0x5A;

  struct Spec {
    bool kernel = false;  ///< In the kernel driver's own context, as fast registrations need
    std::size_t bytes;
    std::uint32_t entries;
    bool shared = false;  ///< Peers may read the memory, and do atomics there, as well as write
  };
  /// Throws EndpointError, and std::bad_alloc.
  MixSide(Endpoint& endpoint, const Spec& spec);
  ~MixSide();
  MixSide(const MixSide&) = delete;
  MixSide& operator=(const MixSide&) = delete;

  [[nodiscard]] Endpoint& endpoint() { return endpoint_; }
  [[nodiscard]] std::uint64_t now() { return endpoint_.device().now_ns(); }
  [[nodiscard]] const std::shared_ptr<umd::ProcessContext>& process() const { return process_; }
  [[nodiscard]] const std::shared_ptr<umd::CompletionQueue>& cq() const { return cq_; }
  [[nodiscard]] std::uint32_t key() const { return region_->key(); }

  /// The next `bytes` of the memory, with a guard on both sides. All bytes are kUntouched. Throws EndpointError when
  /// there is no more.
  [[nodiscard]] std::span<std::uint8_t> take(std::size_t bytes);
  /// Bytes of guards that have changed.
  [[nodiscard]] std::uint64_t strays() const;

 private:
  static constexpr std::size_t kGuard = 64;

  Endpoint& endpoint_;
  const std::size_t bytes_;
  std::shared_ptr<umd::ProcessContext> process_;
  std::shared_ptr<umd::CompletionQueue> cq_;
  std::uint8_t* memory_ = nullptr;
  std::unique_ptr<umd::KernelMr> region_;
  std::vector<std::size_t> guards_;  ///< Where they start
  std::size_t used_ = 0;
};

}  // namespace rnic::testbench
