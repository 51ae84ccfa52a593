#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "driver/umd/address_handle.hpp"
#include "driver/umd/memory_request.hpp"
#include "model/bth.hpp"
#include "testbench/roce_frame.hpp"
#include "tests/system/unreliable_world.hpp"

/// Requests of a queue pair whose peer is not there: what it says comes from the test.
namespace rnic::test {

using hw::QpState;

inline constexpr std::uint32_t kPsn = 0x700, kMtu = 1024, kPeer = 0x00123456, kQkey = 0x1234;
inline constexpr std::array kMemoryRequests = {WqeOpcode::kBindWindow1, WqeOpcode::kBindWindow2,
                                               WqeOpcode::kLocalInvalidate, WqeOpcode::kFastRegister};
inline constexpr std::array kAllTypes = {QpType::kRc, QpType::kUc, QpType::kUd};
inline constexpr std::array kRcRequests = {
    WqeOpcode::kSend,           WqeOpcode::kSendImmediate, WqeOpcode::kSendInvalidate, WqeOpcode::kWrite,
    WqeOpcode::kWriteImmediate, WqeOpcode::kRead,          WqeOpcode::kCompareSwap,    WqeOpcode::kFetchAdd};

inline bool reads(WqeOpcode opcode) { return opcode == WqeOpcode::kRead; }
inline bool changes(WqeOpcode opcode) { return opcode == WqeOpcode::kCompareSwap || opcode == WqeOpcode::kFetchAdd; }
inline std::vector<WqeOpcode> requests(QpType type) {
  std::vector<WqeOpcode> list(kRcRequests.begin(), kRcRequests.end());
  if (type == QpType::kUc) {
    list = {WqeOpcode::kSend, WqeOpcode::kSendImmediate, WqeOpcode::kWrite, WqeOpcode::kWriteImmediate};
  } else if (type == QpType::kUd) {
    list = {WqeOpcode::kSend, WqeOpcode::kSendImmediate};
  }
  return list;
}

/// Of the data of a request.
struct Shape {
  std::size_t offset = 0, bytes = 8;
  std::uint32_t wrong_key = 0;  ///< Changes the local key
  bool silent = false, inline_data = false, defer = false;
};

/// A queue pair of host A whose peer is not there: what it says comes from the test.
struct RequesterLab {
  RequesterLab(World& of, Endpoint& end_a, Endpoint& end_b)
      : world(of),
        a(end_a, must(umd::ProcessContext::open(end_a.kernel().kernel_node()))),  // it may do fast registrations
        b(end_b),
        windows(must(a.process->create_mr(
            {.address = a.memory, .length = UnreliableSide::kBytes, .local_write = true, .window_bind = true}))),
        to(must(umd::AddressHandle::create(testbench::address_of(end_b, false)))) {}

  std::shared_ptr<umd::QueuePair> open(QpType type, QpState state, std::uint8_t ack_timeout = 0) {
    const umd::QueuePair::Spec spec{.send_cq = a.cq,
                                    .receive_cq = a.receive_cq,
                                    .type = type,
                                    .capacity = {.send_depth = 8,
                                                 .receive_depth = 8,
                                                 .send_segments = 4,
                                                 .receive_segments = 4,
                                                 .inline_bytes = 64},
                                    .fast_register = true};
    if (state == QpState::kReset) return must(umd::QueuePair::create(a.process, spec));
    auto qp = must(umd::QueuePair::create_idle(a.process, spec));
    if (state == QpState::kInit) return qp;
    const auto c = connection(type, ack_timeout);
    must(qp->to_ready(c));
    if (state == QpState::kRtr) return qp;
    must(qp->to_connected(c));
    if (state == QpState::kSqd) must(qp->drain(false));
    if (state == QpState::kSqe || state == QpState::kErr) fail(*qp);
    return qp;
  }
  umd::QpConnection connection(QpType type, std::uint8_t ack_timeout = 0) {
    if (type == QpType::kUd) return testbench::datagram_attributes(a.endpoint, kQkey, kMtu);
    auto c = testbench::connection_to(a.endpoint, b.endpoint, kPeer,
                                      {.mtu = kMtu, .ack_timeout = ack_timeout, .retry_count = 1, .rnr_retry = 0});
    c.receive_psn = c.send_psn = kPsn;
    return c;
  }
  /// A request without the right to its memory: ERR on RC, SQE on UC and UD (10.3.1.7, 10.3.1.8). Nobody has polled
  /// yet.
  void fail(umd::QueuePair& qp) {
    post(qp, WqeOpcode::kSend, {.wrong_key = 1});
    pass(10'000);
  }
  void post(umd::QueuePair& qp, WqeOpcode opcode, const Shape& shape = {}) {
    auto segment = a.segment(shape.offset, shape.bytes);
    segment.key ^= shape.wrong_key;
    umd::SendRequest request{.opcode = opcode,
                             .id = 1,
                             .segments = {&segment, 1},
                             .remote_address = b.at(64),
                             .remote_key = b.region->key(),
                             .silent = shape.silent,
                             .inline_data = shape.inline_data,
                             .defer = shape.defer};
    if (qp.type() == QpType::kUd) {
      request.address = &to;
      request.dest_qpn = kPeer;
      request.qkey = kQkey;
    }
    must(qp.post_send(request));
  }
  /// A request about keys that is never executed, or refused.
  void post_memory(umd::QueuePair& qp, WqeOpcode opcode, bool defer = false) {
    must(qp.post_memory({.opcode = opcode, .id = 1, .key = 0x100, .region_key = 0x200, .defer = defer}));
  }
  /// From the peer.
  void answer(umd::QueuePair& qp, std::uint8_t opcode, roce::Bytes ext, std::size_t bytes = 0,
              std::uint32_t psn = kPsn) {
    auto f = packet_between(b.endpoint, a.endpoint, opcode, qp.qpn(), psn);
    f.ext = std::move(ext);
    f.payload.assign(bytes, 0xee);
    world.wire().inject(1, roce::roce_frame(f));
  }
  void accept(umd::QueuePair& qp, WqeOpcode opcode) {
    if (reads(opcode)) return answer(qp, 0x10, roce::aeth(0x1f, 1), 8);
    if (changes(opcode)) return answer(qp, 0x12, roce::aeth(0x1f, 1), 8);
    answer(qp, 0x11, roce::aeth(0x1f, 1));
  }
  CqeStatus status() { return a.sent().status; }
  void pass(std::uint64_t ns) { a.endpoint.device().elapse(ns); }
  void forget() {
    umd::Completion left;
    while (a.receive_cq->poll({&left, 1}) != 0 || a.cq->poll({&left, 1}) != 0) continue;
  }

  World& world;
  UnreliableSide a, b;
  std::unique_ptr<umd::KernelMr> windows;  ///< Windows may be bound to it
  umd::AddressHandle to;
};

inline void with_lab(const std::string& name, const std::function<void(RequesterLab&)>& body) {
  auto options = WorldOptions::from_environment("requests_" + name);
  INFO(name << ", seed " << options.seed);
  World& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& a, Endpoint& b) {
    RequesterLab lab(world, a, b);
    body(lab);
  });
}

}  // namespace rnic::test
