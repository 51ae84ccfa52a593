#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "driver/kmd/connection_service.hpp"
#include "driver/kmd/kernel_device.hpp"
#include "driver/umd/completion_queue.hpp"
#include "driver/umd/completion_signal.hpp"
#include "driver/umd/kernel_mr.hpp"
#include "driver/umd/queue_pair.hpp"

/// The general service interface: QP1 of a port (InfiniBand specification volume 1, 13.5).
namespace rnic::gsi {

/// A thread of the kernel driver that has QP1: brings the management datagrams of peers to the connection manager,
/// sends its own, and does what is due. Datagrams go out from the port's link-local IPv6 address and its first IPv4
/// address, as those of every UD queue pair; to others of its addresses nobody gets an answer.
class Agent {
 public:
  /// Errors: kExists (somebody has QP1), those of its parts. Lets time pass. `kernel` outlives it.
  static Result<std::unique_ptr<Agent>> open(kmd::KernelDevice& kernel);
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  /// Gives QP1 back. Nobody is in run() any more.
  ~Agent();

  /// Works until stop(), or until the device fails: then every connection is over. On a thread of its own; lets time
  /// pass.
  void run();
  /// From any thread; run() returns soon.
  void stop();
  [[nodiscard]] bool running() const { return running_; }

  struct Counters {
    std::uint64_t received{};  ///< Datagrams that were handed on
    std::uint64_t strange{};   ///< Others: no management datagram, or not from a QP1
    std::uint64_t sent{};
  };
  [[nodiscard]] const Counters& counters() const { return counters_; }

 private:
  explicit Agent(kmd::KernelDevice& kernel) : kernel_(kernel) {}
  Result<void> begin();
  Result<void> post_receive(std::uint64_t slot);
  bool take_completions();
  void take_datagram(std::uint64_t slot, const umd::Completion& completion);
  bool send_datagrams();
  [[nodiscard]] std::uint8_t* slot(std::uint64_t number);

  kmd::KernelDevice& kernel_;
  std::shared_ptr<umd::ProcessContext> process_;
  /// Whole pages: what the device does with a slot must not hang on where the allocator has put it.
  struct Page {
    alignas(4096) std::array<std::uint8_t, 4096> bytes;
  };
  std::vector<Page> memory_;  ///< Slots: those of receives, then those of sends
  std::unique_ptr<umd::KernelMr> region_;
  std::shared_ptr<umd::CompletionQueue> cq_;
  std::optional<umd::CompletionSignal> signal_;
  std::shared_ptr<umd::QueuePair> qp_;
  std::vector<std::uint64_t> free_;  ///< Slots for sends
  kmd::Gid second_{};                ///< The IPv4 address
  std::atomic<bool> stop_ = false;
  std::atomic<bool> running_ = false;
  Counters counters_;
};

}  // namespace rnic::gsi
