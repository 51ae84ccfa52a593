#pragma once

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "driver/umd/kernel_mr.hpp"
#include "driver/umd/process_context.hpp"
#include "driver/umd/queue_pair.hpp"
#include "testbench/roce_frame.hpp"
#include "tests/system/system_world.hpp"

/// What the tests of UC and UD share: a process on each host with memory and queue pairs of any type.
namespace rnic::test {

using hw::Counter;
using hw::CqeStatus;
using hw::QpType;
using hw::WqeOpcode;

template <typename T>
T must(Result<T> result) {
  if (!result.ok()) FAIL(describe(result.error()));
  return result.take();
}
inline void must(const Result<void>& result) {
  if (!result.ok()) FAIL(describe(result.error()));
}

/// The headers of a packet of IPv4 that one host sends to a queue pair of the other.
inline roce::RoceFields packet_between(Endpoint& from, Endpoint& to, std::uint8_t opcode, std::uint32_t dest_qpn,
                                       std::uint32_t psn) {
  roce::RoceFields f;
  f.dest_mac = testbench::mac_of(to);
  f.source_mac = testbench::mac_of(from);
  f.source_ip = testbench::ip_of(from, false);
  f.dest_ip = testbench::ip_of(to, false);
  f.opcode = opcode;
  f.dest_qpn = dest_qpn;
  f.psn = psn;
  return f;
}

/// One host's side.
struct UnreliableSide {
  static constexpr std::size_t kBytes = 256 << 10;
  static constexpr std::uint8_t kUntouched = 0x5A;
  static constexpr std::uint64_t kWaitNs = 200'000;

  explicit UnreliableSide(Endpoint& at) : UnreliableSide(at, must(umd::ProcessContext::open(at.kernel().node()))) {}
  UnreliableSide(Endpoint& at, std::shared_ptr<umd::ProcessContext> owner) : endpoint(at), process(std::move(owner)) {
    memory = static_cast<std::uint8_t*>(at.host().memory().allocate(kBytes));
    std::memset(memory, kUntouched, kBytes);
    region = must(process->create_mr(
        {.address = memory, .length = kBytes, .local_write = true, .remote_read = true, .remote_write = true}));
    cq = must(umd::CompletionQueue::create(process, 1024));
    receive_cq = must(umd::CompletionQueue::create(process, 1024));
  }

  umd::QueuePair& add_qp(QpType type, bool general_service = false) {
    qps.push_back(must(umd::QueuePair::create_idle(process, {.send_cq = cq,
                                                             .receive_cq = receive_cq,
                                                             .type = type,
                                                             .general_service = general_service,
                                                             .capacity = {.send_depth = 64,
                                                                          .receive_depth = 256,
                                                                          .send_segments = 4,
                                                                          .receive_segments = 4,
                                                                          .inline_bytes = 128}})));
    return *qps.back();
  }
  umd::QueuePair& add_datagram_qp(std::uint32_t qkey, std::uint32_t mtu = 4096, bool general_service = false) {
    auto& qp = add_qp(QpType::kUd, general_service);
    must(qp.connect(testbench::datagram_attributes(endpoint, qkey, mtu)));
    return qp;
  }

  [[nodiscard]] std::uint64_t at(std::size_t offset) const { return reinterpret_cast<std::uint64_t>(memory) + offset; }
  [[nodiscard]] umd::Segment segment(std::size_t offset, std::size_t bytes) const {
    return {at(offset), static_cast<std::uint32_t>(bytes), region->key()};
  }
  void post_receive(umd::QueuePair& qp, std::uint64_t id, std::size_t offset, std::size_t bytes) {
    const auto one = segment(offset, bytes);
    must(qp.post_receive({.id = id, .segments = {&one, 1}}));
  }
  [[nodiscard]] bool untouched(std::size_t offset, std::size_t bytes) const {
    return std::all_of(memory + offset, memory + offset + bytes, [](std::uint8_t byte) { return byte == kUntouched; });
  }
  [[nodiscard]] std::uint64_t counter(Counter which) { return must(endpoint.kernel().counter(which)); }

  /// The next completion of `from`, if one comes.
  bool poll(umd::CompletionQueue& from, umd::Completion& completion, std::uint64_t wait_ns = kWaitNs) {
    const auto end = endpoint.device().now_ns() + wait_ns;
    while (from.poll({&completion, 1}) == 0) {
      if (endpoint.device().now_ns() >= end) return false;
      endpoint.device().elapse(200);
    }
    return true;
  }
  umd::Completion take(umd::CompletionQueue& from) {
    umd::Completion completion;
    if (!poll(from, completion)) FAIL("no completion");
    return completion;
  }
  umd::Completion sent() { return take(*cq); }
  umd::Completion received() { return take(*receive_cq); }
  /// Nothing more comes.
  bool quiet() {
    umd::Completion completion;
    return !poll(*receive_cq, completion, 20'000) && !poll(*cq, completion, 1000);
  }

  Endpoint& endpoint;
  std::shared_ptr<umd::ProcessContext> process;
  std::uint8_t* memory;
  std::unique_ptr<umd::KernelMr> region;
  std::shared_ptr<umd::CompletionQueue> cq, receive_cq;
  std::vector<std::shared_ptr<umd::QueuePair>> qps;
};

}  // namespace rnic::test
