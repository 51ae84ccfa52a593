#pragma once

#include <catch2/catch.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "testbench/management_thread.hpp"
#include "tests/system/system_world.hpp"

/// What the tests of connections share: processes on two hosts that connect by kernel calls.
namespace rnic::test {

using calls::ConnectionEvent;
using testbench::ManagementThread;

inline constexpr std::uint16_t kTcp = 0x0106, kUdp = 0x0111, kPort = 7174;
inline constexpr std::uint64_t kPatienceNs = 30'000'000'000;

template <typename T>
T must(Result<T> result) {
  REQUIRE(result.ok());
  return result.take();
}
inline void must(Result<void> result) { REQUIRE(result.ok()); }

/// A process on a host, with what it connects.
struct Process {
  explicit Process(Endpoint& on) : host(on), process(must(umd::ProcessContext::open(on.kernel().node()))) {
    channel = must(process->call(calls::CreateChannel{})).channel;
    cq = must(umd::CompletionQueue::create(process, 64));
    region = must(process->create_mr({.address = memory.data(), .length = memory.size(), .local_write = true}));
  }

  std::shared_ptr<umd::QueuePair> make_qp(hw::QpType type = hw::QpType::kRc) {
    auto qp = must(umd::QueuePair::create_idle(
        process, {.send_cq = cq, .receive_cq = cq, .type = type, .capacity = {4, 4, 1, 1, 0}}));
    return qp;
  }
  calls::Handle endpoint(std::uint16_t space = kTcp) {
    return must(process->call(calls::CreateEndpoint{.channel = channel, .port_space = space})).endpoint;
  }
  calls::Handle listener(std::uint16_t space = kTcp) {
    const auto made = endpoint(space);
    must(process->call(calls::BindEndpoint{.endpoint = made, .port = kPort}));
    must(process->call(calls::Listen{.endpoint = made, .backlog = 16}));
    return made;
  }
  using Heard = std::pair<calls::Handle, calls::TakeConnectionEvent::Answer>;
  /// An event of any endpoint, if one waits.
  std::optional<Heard> poll() {
    const auto read = must(process->call(calls::ReadEvents{.channel = channel, .most = 1}));
    if (read.count == 0) return std::nullopt;
    const auto of = read.events[0].object;
    return std::pair(of, must(process->call(calls::TakeConnectionEvent{.endpoint = of})));
  }
  /// The next event; nothing within `limit_ns`: none.
  std::optional<Heard> next(std::uint64_t limit_ns) {
    const std::uint64_t end = host.device().now_ns() + limit_ns;
    for (;;) {
      const std::uint64_t seen = host.device().wake_count();
      if (auto event = poll()) return event;
      const std::uint64_t now = host.device().now_ns();
      if (now >= end) return std::nullopt;
      static_cast<void>(host.device().wait(seen, end - now));
    }
  }
  calls::TakeConnectionEvent::Answer expect(calls::Handle of, ConnectionEvent type) {
    const auto got = next(kPatienceNs);
    REQUIRE(got);
    CHECK(got->first == of);
    REQUIRE(static_cast<ConnectionEvent>(got->second.type) == type);
    return got->second;
  }
  /// An address at which the connection manager is reached (docs/connection_manager.md, Limits).
  [[nodiscard]] kmd::Gid address(bool ipv6) const {
    return ipv6 ? must(host.kernel().port_tables().gid(0)) : testbench::ip_of(host, false);
  }
  void resolve(calls::Handle of, Process& peer, bool ipv6, std::uint16_t port = kPort) {
    must(process->call(calls::ResolveAddress{.remote = peer.address(ipv6), .endpoint = of, .remote_port = port}));
    expect(of, ConnectionEvent::kAddressResolved);
    must(process->call(calls::ResolveRoute{.endpoint = of}));
    expect(of, ConnectionEvent::kRouteResolved);
  }
  static calls::ConnectionTerms terms(umd::QueuePair& qp, std::uint32_t psn) {
    return {.qp = qp.kernel_qp().handle(),
            .receive_psn = psn,
            .qkey = 0x01234567,
            .responder_resources = 4,
            .initiator_depth = 4,
            .retry_count = 7,
            .rnr_retry = 7};
  }
  void connect(calls::Handle of, umd::QueuePair& qp, std::uint32_t psn) {
    must(process->call(calls::Connect{.terms = terms(qp, psn), .endpoint = of}));
  }
  void accept(calls::Handle of, umd::QueuePair& qp, std::uint32_t psn) {
    must(process->call(calls::Accept{.terms = terms(qp, psn), .endpoint = of}));
  }
  /// The queue pair goes to RTS with what the connection manager knows.
  void make_ready(calls::Handle of, umd::QueuePair& qp, std::uint32_t psn) {
    const auto known = must(process->call(calls::QueryEndpoint{.endpoint = of}));
    umd::QpConnection c;
    c.path.sgid_index = known.sgid_index;
    c.path.dest_gid = known.remote;
    c.path.dest_mac = known.remote_mac;
    c.path.hop_limit = known.hop_limit;
    c.dest_qpn = known.remote_qpn;
    c.send_psn = known.send_psn;
    c.receive_psn = psn;
    c.path_mtu = known.path_mtu;
    c.inbound_reads = c.outbound_reads = 4;
    must(qp.connect(c));
  }
  void end(calls::Handle endpoint) {
    must(process->call(
        calls::Destroy{.object = endpoint, .kind = static_cast<std::uint8_t>(calls::ObjectKind::kEndpoint)}));
  }
  umd::Completion completion() {
    umd::Completion got;
    REQUIRE(host.wait_until(
        [&] {
          return cq->poll(std::span(&got, 1)) == 1 || (cq->arm(hw::CqArm::kAny), cq->poll(std::span(&got, 1)) == 1);
        },
        1'000'000'000));
    return got;
  }
  umd::Segment segment(std::uint32_t bytes) {
    return {.address = reinterpret_cast<std::uint64_t>(memory.data()), .length = bytes, .key = region->key()};
  }

  Endpoint& host;
  std::array<std::uint8_t, 4096> memory{};
  std::shared_ptr<umd::ProcessContext> process;
  calls::Handle channel{};
  std::shared_ptr<umd::CompletionQueue> cq;
  std::unique_ptr<umd::KernelMr> region;
};

/// Both hosts with their management threads, and each with the other as its neighbour.
inline void with_management(World& world, const std::function<void(Endpoint&, Endpoint&)>& body,
                            std::uint64_t limit_ns = 10'000'000'000) {
  with_endpoints(
      world,
      [&](Endpoint& a, Endpoint& b) {
        must(a.kernel().port_tables().add_neighbour(testbench::ip_of(b, false), testbench::mac_of(b)));
        must(b.kernel().port_tables().add_neighbour(testbench::ip_of(a, false), testbench::mac_of(a)));
        const ManagementThread of_a(a.kernel(), a.host().device()), of_b(b.kernel(), b.host().device());
        body(a, b);
      },
      limit_ns);
}
inline void with_management(const WorldOptions& options, const std::function<void(Endpoint&, Endpoint&)>& body,
                            std::uint64_t limit_ns = 10'000'000'000) {
  with_management(fresh_world(options), body, limit_ns);
}

}  // namespace rnic::test
