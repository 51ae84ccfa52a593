#include "model/wire_fault_injector.hpp"

#include <algorithm>
#include <string>

#include "model/bth.hpp"
#include "model/ethernet.hpp"

namespace rnic::model {
namespace {

bool matches(const FrameMatch& match, const std::optional<RocePacket>& packet, bool injected) {
  if (injected && match.spare_injected) return false;
  if (!match.opcode && !match.dest_qpn && !match.psn) return true;
  if (!packet) return false;
  return (!match.opcode || *match.opcode == packet->opcode) &&
         (!match.dest_qpn || *match.dest_qpn == packet->dest_qpn) && (!match.psn || *match.psn == packet->psn);
}

}  // namespace

WireFaultInjector::WireFaultInjector(const WireFaultOptions& options, std::uint64_t seed, std::size_t from)
    : options_((check(options), options)), seed_(seed), from_(from) {
  for (std::size_t i = 0; i < kWireFaults; ++i) {
    const auto fault = static_cast<WireFault>(i);
    random_.emplace_back(seed, "wire/" + std::to_string(from) + '/' + name(fault));
    active_ = active_ || options_.chance(fault) > 0;
  }
  for (const auto& rule : options_.rules) arm(rule);
}

void WireFaultInjector::arm(const WireRule& rule) {
  check(rule);
  const std::string part = "wire/" + std::to_string(from_) + "/rule/" + std::to_string(rules_.size());
  rules_.push_back({rule, Random(seed_, part)});
  active_ = true;
}

std::array<WireFaultInjector::Hit, kWireFaults> WireFaultInjector::hits(const std::vector<std::uint8_t>& frame,
                                                                        bool injected) {
  std::array<Hit, kWireFaults> hits;
  for (std::size_t i = 0; i < kWireFaults; ++i) {
    if (random_[i].chance(options_.chance(static_cast<WireFault>(i)))) hits[i] = {&options_.parameters, true};
  }
  if (rules_.empty()) return hits;
  const auto packet = find_roce_packet(frame);
  for (auto& [rule, random, seen] : rules_) {
    if (!matches(rule.match, packet, injected)) continue;
    ++seen;
    if (seen >= rule.nth && seen - rule.nth < rule.count && random.chance(rule.probability))
      hits[static_cast<std::size_t>(rule.fault)] = {&rule.parameters, false};
  }
  return hits;
}

std::uint64_t WireFaultInjector::amount(WireFault fault, const Hit& hit, std::uint64_t least, std::uint64_t most) {
  return hit.by_chance ? least + random(fault).below(most - least + 1) : most;
}

FrameFate WireFaultInjector::judge(std::vector<std::uint8_t>& frame, bool injected) {
  const auto hits = this->hits(frame, injected);
  FrameFate fate;
  // Faults that would follow a drop still take their choices, so that these do not depend on the drop.
  const auto each = [&](WireFault fault, auto&& apply) {
    const Hit& hit = hits[static_cast<std::size_t>(fault)];
    if (hit.parameters == nullptr || !apply(hit) || fate.dropped) return;
    ++counts_[static_cast<std::size_t>(fault)];
    fate.faults = static_cast<std::uint8_t>(fate.faults | 1u << static_cast<unsigned>(fault));
  };
  const auto hold = [&](WireFault fault, const Hit& hit, std::uint32_t least, std::uint32_t most, double longest_ns) {
    return FrameFate::Hold{static_cast<std::uint32_t>(amount(fault, hit, least, most)), from_ns(longest_ns)};
  };
  each(WireFault::kDrop, [&](const Hit&) { return true; });
  fate.dropped = fate.faults != 0;
  each(WireFault::kEcn, [&](const Hit& hit) { return mark_congestion(frame, hit.parameters->only_ect); });
  each(WireFault::kTruncate, [&](const Hit& hit) {
    if (!truncate(frame, hit)) return false;
    fate.bad = fate.bad || hit.parameters->truncate_bad_fcs ||
               frame.size() < kMinFrameBytes;  // fragments never reach a station (IEEE 802.3 4.2.4.2.2)
    return true;
  });
  each(WireFault::kCorrupt, [&](const Hit& hit) {
    if (!corrupt(frame, hit)) return false;
    fate.bad = fate.bad || hit.parameters->corrupt_bad_fcs;
    return true;
  });
  each(WireFault::kDelay, [&](const Hit& hit) {
    fate.delay = amount(WireFault::kDelay, hit, 0, from_ns(hit.parameters->delay_ns));
    return true;
  });
  each(WireFault::kReorder, [&](const Hit& hit) {
    fate.hold = hold(WireFault::kReorder, hit, 1, hit.parameters->reorder_frames, hit.parameters->reorder_hold_ns);
    return true;
  });
  each(WireFault::kDuplicate, [&](const Hit& hit) {
    fate.copy =
        hold(WireFault::kDuplicate, hit, 0, hit.parameters->duplicate_frames, hit.parameters->duplicate_hold_ns);
    return true;
  });
  return fate;
}

bool WireFaultInjector::corrupt(std::vector<std::uint8_t>& frame, const Hit& hit) {
  const auto flip = [&](std::uint64_t bit) {
    frame[bit / 8] = static_cast<std::uint8_t>(frame[bit / 8] ^ 1u << (bit % 8));
  };
  const std::uint64_t bits = 8 * frame.size();
  if (const auto bit = hit.parameters->corrupt_bit) {
    if (*bit >= bits) return false;
    flip(*bit);
    return true;
  }
  // Different bits: an even number of hits on one bit would change nothing.
  std::vector<std::uint64_t> chosen;
  const std::uint64_t wanted = std::min(amount(WireFault::kCorrupt, hit, 1, hit.parameters->corrupt_bits), bits);
  while (chosen.size() < wanted) {
    const std::uint64_t bit = random(WireFault::kCorrupt).below(bits);
    if (std::find(chosen.begin(), chosen.end(), bit) != chosen.end()) continue;
    chosen.push_back(bit);
    flip(bit);
  }
  return true;
}

bool WireFaultInjector::truncate(std::vector<std::uint8_t>& frame, const Hit& hit) {
  const std::uint64_t bytes = hit.parameters->truncate_bytes ? *hit.parameters->truncate_bytes
                                                             : 1 + random(WireFault::kTruncate).below(frame.size() - 1);
  if (bytes >= frame.size()) return false;
  frame.resize(bytes);
  return true;
}

}  // namespace rnic::model
