// The steps of a VectorSession about the wire, and what the NIC has counted.
#include "testbench/verify/vector_session.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "testbench/verify/vector_frame.hpp"

namespace rnic::testbench {

void VectorSession::fault(const VectorStep& step) {
  auto rule = step.rule;
  if (rule.match.psn)
    rule.match.psn =
        (*rule.match.psn + numbers_.first_psn(step.host, rule.match.opcode.value_or(0), step.qp, step.qp)) & 0xffffff;
  if (step.only_qp) rule.match.dest_qpn = sides_[1 - step.host].pairs.at(step.qp).core().qpn();
  world_.wire().arm(step.host, rule);
}

/// As the vector gives it, or in the name of the peer or of a stranger.
std::vector<std::uint8_t> VectorSession::frame_of(const VectorStep& step) {
  if (!step.frame.bytes.empty()) {
    auto bytes = step.frame.bytes;
    bytes.resize(bytes.size() + step.frame.append);
    return bytes;
  }
  const std::size_t sender = 1 - step.host;
  auto& here = sides_[step.host];
  auto& there = sides_[sender];
  const auto connection =
      connection_to(*there.endpoint, *here.endpoint, pair(step).core().qpn(), {.ipv6 = step.frame.ipv6});
  FrameTarget target;
  target.payload = payload_pattern(sender, step.qp, step.frame.psn);
  target.source_qpn = there.pairs.at(step.frame.source_qp).core().qpn();
  target.first_psn = numbers_.first_psn(sender, step.frame.opcode, step.qp, step.frame.source_qp);
  target.path.ipv6 = step.frame.ipv6;
  target.path.dest_mac = connection.path.dest_mac;
  target.path.source_mac = mac_of(*there.endpoint);
  target.path.source_ip = ip_of(*there.endpoint, step.frame.ipv6);
  target.path.dest_ip = connection.path.dest_gid;
  target.path.dest_qpn = connection.dest_qpn;
  if (!step.remote.region.empty()) {
    target.va = address(step.remote);
    target.rkey = __builtin_bswap32(token(step.remote, true));
  }
  try {
    return build_frame(step.frame, target);
  } catch (const VectorError& error) {
    throw VectorFailure(fmt::format("{}: {}", step.text, error.what()));
  }
}

/// To `step.host`.
void VectorSession::frame(const VectorStep& step) {
  world_.wire().inject(1 - step.host, frame_of(step), step.frame.bad_fcs);
  // With no time in between, frames come back to back in every world.
  if (step.within_ns != 0) sides_[step.host].endpoint->device().elapse(step.within_ns + way_ns(step.host));
}

void VectorSession::receive_ethernet(const VectorStep& step) {
  const auto& wanted = step.ethernet;
  sides_[step.host].endpoint->kernel().receive_ethernet({.qpn = pair(step).core().qpn() ^ step.frame.qpn_xor,
                                                         .enable = wanted.enable,
                                                         .all_groups = wanted.all_groups,
                                                         .promiscuous = wanted.promiscuous,
                                                         .groups = wanted.groups});
}

/// What a frame and the DMA for it take longer than in an ordinary world, in which the times of vectors are reckoned.
/// A vector that sets the delay of the wire has reckoned with it.
std::uint64_t VectorSession::way_ns(std::size_t to) const {
  const auto& wire = world_.options().wire;
  const auto root = world_.host_options(to).root_complex;
  const double late = root.reorder_probability > 0 || root.pass_probability > 0 ? 2 * root.reorder_window_ns : 0;
  const double delay = setup_.link_delay_ns ? 0 : wire.delay_ns;
  const double ways = delay + wire.jitter_ns + 2 * root.jitter_ns + late;
  const double slower = std::max(0.0, root.read_latency_ns - model::RootComplexOptions{}.read_latency_ns);
  constexpr double kReads = 3;  // of page lists, the WQE, the data
  return static_cast<std::uint64_t>(ways + kReads * slower);
}

/// Each takes a round trip of PCI Express, so no others.
void VectorSession::read_counters(const std::vector<VectorStep>& steps, std::size_t host) {
  auto& of = sides_[host];
  for (const auto& step : steps) {
    if (step.kind != StepKind::kCounter || step.host != host || step.only_qp) continue;
    if (step.no_other && !of.all_counters) of.all_counters = testbench::read_counters(*of.endpoint);
    if (of.counters.contains(step.offset)) continue;
    of.counters[step.offset] =
        take_or_fail(of.endpoint->kernel().counter(static_cast<hw::Counter>(step.offset)), "counter");
  }
}

void VectorSession::counter(const VectorStep& step) {
  auto& side = sides_[step.host];
  const auto now =
      step.only_qp ? take_or_fail(pair(step).core().kernel_qp().counters(), step.text).counts.at(step.offset)
                   : take_or_fail(side.endpoint->kernel().counter(static_cast<hw::Counter>(step.offset)), step.text) -
                         side.counters.at(step.offset);
  const bool right = step.exact ? now == *step.value : now >= *step.value && now <= step.most.value_or(now);
  if (right) return step.no_other ? no_other_counter(side, step) : void();
  const std::string expected = step.exact  ? fmt::format("{}", *step.value)
                               : step.most ? fmt::format("{} to {}", *step.value, *step.most)
                                           : fmt::format("at least {}", *step.value);
  throw VectorFailure(fmt::format("{}: {} has counted {}, expected {}", step.text, step.name, now, expected));
}

/// Of what a NIC had to mend or did not take, only what steps name has counted.
void VectorSession::no_other_counter(const Side& side, const VectorStep& step) {
  NicCounters now = testbench::read_counters(*side.endpoint);
  for (std::size_t i = 0; i < now.size(); ++i)
    now[i] = side.counters.contains(i) ? 0 : now[i] - side.all_counters->at(i);
  for (const auto& found : trouble(now))
    throw VectorFailure(fmt::format("{}: beside {} other counters have counted: {}", step.text, step.name,
                                    fmt::join(found.counts, ", ")));
}

}  // namespace rnic::testbench
