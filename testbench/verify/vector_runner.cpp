#include "testbench/verify/vector_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "testbench/verify/vector_packets.hpp"
#include "testbench/verify/vector_session.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kLimitNs = 3'000'000'000;
constexpr std::uint64_t kStillNs = 2'000, kSettleNs = 10'000;  // Longer than a NIC needs between any two of its moves

void check_packets(const Vector& vector, const VectorSession& session, const std::vector<VectorPacket>& seen) {
  const auto check = [&](const std::optional<PacketPatterns>& expected, const std::vector<VectorPacket>& of) {
    if (!expected) return;
    if (const auto difference = compare_packets(session.resolved(*expected), of); !difference.empty())
      throw VectorFailure(difference);
  };
  check(vector.packets, seen);
  for (std::size_t host = 0; host < vector.packets_from.size(); ++host) {
    std::vector<VectorPacket> own;
    std::copy_if(seen.begin(), seen.end(), std::back_inserter(own),
                 [&](const VectorPacket& packet) { return packet.from == host; });
    check(vector.packets_from[host], own);
  }
  std::vector<VectorPacket> forbidden;
  for (const auto& packet : vector.no_packets) forbidden.push_back(session.resolved(packet));
  if (const auto found = find_forbidden(forbidden, seen); !found.empty()) throw VectorFailure(found);
}

/// A time-out of a queue pair would be over before an answer can come: what the vector says of it needs a short wire.
bool outpaced(const VectorSetup& setup, const model::WireOptions& wire) {
  constexpr double kUnitNs = 4096, kWays = 4;
  return std::any_of(setup.hosts.begin(), setup.hosts.end(), [&](const auto& host) {
    return host.ack_timeout != 0 && kUnitNs * std::exp2(host.ack_timeout) < kWays * (wire.delay_ns + wire.jitter_ns);
  });
}

/// Faults, files and what the NICs are stay.
WorldOptions in_ordinary_world(WorldOptions options) {
  const model::WireOptions ordinary;
  options.wire.rate_gbps = ordinary.rate_gbps;
  options.wire.delay_ns = ordinary.delay_ns;
  options.wire.jitter_ns = ordinary.jitter_ns;
  options.each_host = {};
  return options;
}

}  // namespace

VectorOutcome VectorRunner::run(const Vector& vector) {
  VectorOutcome outcome;
  std::vector<model::FrameRecord> frames;
  auto options = vector.setup.ordinary_world ? in_ordinary_world(options_) : options_;
  if (vector.setup.link_gbps) options.wire.rate_gbps = *vector.setup.link_gbps;
  if (vector.setup.link_delay_ns) options.wire.delay_ns = *vector.setup.link_delay_ns;
  if (vector.setup.split_completions) {
    options.host.root_complex.split_probability = 1;
    for (auto& host : options.each_host)
      if (host) host->root_complex.split_probability = 1;
  }
  if (outpaced(vector.setup, options.wire)) options.wire.delay_ns = options.wire.jitter_ns = 0;
  // Who gets no answer of a connection manager asks again and again.
  if (vector.setup.connections) options.hang_ns = kLimitNs;
  world_.reset(options);
  if (vector.setup.iommu_faults) world_.declare(Violation::kIommuFault);
  world_.observe_frames([&](const model::FrameRecord& frame) { frames.push_back(frame); });
  world_.add_app(0, "vector", [&](Host& a) {
    VectorSession session(world_, vector);
    const std::uint64_t start = a.device().now_ns();
    outcome.set_up_ns = start;
    for (const auto& step : vector.steps) session.run(step);
    outcome.simulated_ns = a.device().now_ns() - start;
    // What is under way reaches the wire before the packets are counted.
    world_.settle(kStillNs, kSettleNs);
    std::vector<VectorPacket> packets;
    for (const auto& frame : frames) packets.push_back(describe_packet(frame, session.numbers()));
    check_packets(vector, session, packets);
    session.expect_nothing_left();
  });
  try {
    world_.run(kLimitNs);
    outcome.passed = true;
  } catch (const sc_core::sc_report& report) {
    outcome.message = fmt::format("the simulation stopped: {}", report.get_msg());
    outcome.failed_ns = world_.now_ns();
    outcome.stopped = true;
  } catch (const std::exception& error) {
    outcome.message = error.what();
    outcome.failed_ns = world_.now_ns();
  }
  // Of the steps that were run, when one of them failed.
  if (outcome.simulated_ns == 0 && outcome.set_up_ns != 0 && outcome.failed_ns > outcome.set_up_ns)
    outcome.simulated_ns = outcome.failed_ns - outcome.set_up_ns;
  world_.observe_frames({});
  outcome.cycles = world_.host(0).nic().cycles();
  return outcome;
}

}  // namespace rnic::testbench
