#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "driver/kernel_calls/kernel_port.hpp"
#include "driver/umd/kernel_mr.hpp"
#include "driver/umd/queue_pair.hpp"

namespace rnic::test {

/// A program on a host of a server: a queue pair, and memory that its peer may write, read and change.
class RemotePeer {
 public:
  static constexpr std::size_t kBytes = std::size_t{1} << 16;
  static constexpr std::uint32_t kDepth = 64;

  /// Comes to the host. Throws std::runtime_error for what does not succeed, here and below.
  RemotePeer(const std::string& socket, unsigned host);

  /// What a peer must know.
  struct Address {
    unsigned host{};
    std::uint32_t qpn{};
    std::uint32_t key{};
    std::uint64_t memory{};
  };
  [[nodiscard]] Address address() const;
  void connect(const Address& peer);

  void post(const umd::SendRequest& request);
  void post_receive(std::uint64_t id, std::uint32_t offset, std::uint32_t length);
  /// Polls until there is one.
  umd::Completion poll();
  /// Waits for one without polling.
  umd::Completion wait();

  [[nodiscard]] std::uint8_t* memory() { return memory_.get(); }
  [[nodiscard]] umd::Segment segment(std::uint32_t offset, std::uint32_t length) const;
  [[nodiscard]] DeviceNode& node() { return *node_; }
  [[nodiscard]] umd::ProcessContext& context() { return *context_; }
  [[nodiscard]] umd::CompletionQueue& cq() { return *cq_; }
  [[nodiscard]] umd::QueuePair& qp() { return *qp_; }

 private:
  const unsigned host_;
  std::shared_ptr<DeviceNode> node_;
  std::shared_ptr<umd::ProcessContext> context_;
  std::unique_ptr<std::uint8_t[]> memory_;
  std::unique_ptr<umd::KernelMr> region_;
  std::shared_ptr<umd::CompletionQueue> cq_;
  std::shared_ptr<umd::QueuePair> qp_;
};

}  // namespace rnic::test
