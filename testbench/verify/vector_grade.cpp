#include "testbench/verify/vector_grade.hpp"

#include <algorithm>

#include "driver/nd2/ndspi.h"

namespace rnic::testbench {
namespace {

constexpr std::uint16_t kDefaultPkey = 0xffff;
constexpr std::uint32_t kDefaultMtu = 1024;

/// A call that fails in NetworkDirect fails by rules of its own; the functions of libibverbs behind these steps refuse
/// the same, with an errno.
bool may_fail(StepKind kind) {
  return kind == StepKind::kModify || kind == StepKind::kResizeCq || kind == StepKind::kModifySrq ||
         kind == StepKind::kAttach || kind == StepKind::kDetach;
}

/// Rights that libibverbs has, too: what a Read brings is written locally there.
bool has_verbs_rights(std::uint32_t flags) {
  return (flags & ND_MR_FLAG_RDMA_READ_SINK) == 0 || (flags & ND_MR_FLAG_ALLOW_LOCAL_WRITE) != 0;
}

bool is_of_window_now(const VectorPlace& place) { return place.token == TokenChange::kCurrentWindow; }

/// libibverbs has no place for VLAN tags in its completions, but for extended ones; a syndrome is every vendor's own.
bool tells_more_than_verbs(const VectorStep& step) {
  return std::any_of(step.results.begin(), step.results.end(),
                     [](const auto& result) { return result.tag || result.vlan || result.sl || result.syndrome; });
}

/// Of what the step does.
VectorGrade doing_grade(const VectorStep& step) {
  if (!step.null.empty() || step.null_sge || step.call || step.defer || step.ip_csum || step.unchecked)
    return VectorGrade::kNic;
  if (step.status != ND_SUCCESS && !may_fail(step.kind)) return VectorGrade::kNic;
  if (is_of_window_now(step.remote) || std::any_of(step.sge.begin(), step.sge.end(), is_of_window_now))
    return VectorGrade::kNic;
  switch (step.kind) {
    case StepKind::kSend: return step.to.vlan == 0 ? VectorGrade::kVerbs : VectorGrade::kNic;
    case StepKind::kReceive:
    case StepKind::kWrite:
    case StepKind::kRead:
    case StepKind::kCompareSwap:
    case StepKind::kFetchAdd:
    case StepKind::kComplete: return tells_more_than_verbs(step) ? VectorGrade::kNic : VectorGrade::kVerbs;
    case StepKind::kNoCompletion:
    case StepKind::kMemory:
    case StepKind::kStore:
    case StepKind::kWait:
    case StepKind::kState:
    case StepKind::kBind:
    case StepKind::kInvalidate:
    case StepKind::kAttach:
    case StepKind::kDetach:
    case StepKind::kEvent:
    case StepKind::kNoEvent:
    case StepKind::kCounter:
    case StepKind::kResizeCq:
    case StepKind::kModifySrq:
    case StepKind::kReset:
    case StepKind::kDeregister: return VectorGrade::kVerbs;
    case StepKind::kModify:
      return step.attributes.contains("pkey") || step.attributes.contains("vlan") ? VectorGrade::kNic
                                                                                  : VectorGrade::kVerbs;
    case StepKind::kRegister:
      return step.buffer == VectorStep::Buffer::kValid && has_verbs_rights(step.flags) ? VectorGrade::kVerbs
                                                                                       : VectorGrade::kNic;
    case StepKind::kFault:
    case StepKind::kFrame:
    case StepKind::kLink: return VectorGrade::kWire;
    default: return VectorGrade::kNic;
  }
}

VectorGrade grade_of(const VectorStep& step) {
  return step.cause || step.kind == StepKind::kCounter ? VectorGrade::kNic : doing_grade(step);
}

/// The headers of a datagram in memory have the addresses of our machine, and a queue pair of this type has the MTU of
/// its port.
bool is_of_our_network(const Vector& vector) {
  if (vector.setup.type != hw::QpType::kUd) return false;
  const auto& hosts = vector.setup.hosts;
  return hosts[0].mtu != kDefaultMtu || hosts[1].mtu != kDefaultMtu ||
         std::any_of(vector.steps.begin(), vector.steps.end(),
                     [](const auto& step) { return step.kind == StepKind::kMemory && !step.bytes.empty(); });
}

bool needs_this_nic(const VectorSetup& setup) {
  return setup.is_kernels() || setup.fast_register || setup.connections || setup.iommu_faults ||
         setup.split_completions || (setup.srq && setup.srq->other_domain) ||
         setup.completion_timeout != hw::CompletionTimeoutRange::kDefault ||
         std::any_of(setup.hosts.begin(), setup.hosts.end(),
                     [](const auto& host) {
                       return host.pinned_quota || host.ring_quota || host.pkey != kDefaultPkey || host.vlan != 0;
                     }) ||
         !std::all_of(setup.regions.begin(), setup.regions.end(), [](const auto& region) {
           return has_verbs_rights(region.flags) && !region.reads && !region.list_reads;
         });
}

}  // namespace

VectorGrading grade_of(const Vector& vector) {
  if (!vector.frame.empty()) return {VectorGrade::kNic, VectorGrade::kNic, "frame"};
  VectorGrading highest;
  const auto needs = [&highest](VectorGrade grade, std::string_view part) {
    if (grade <= highest.grade) return;
    highest.grade = grade;
    highest.reason = part;
  };
  if (is_of_our_network(vector)) needs(VectorGrade::kNic, "addresses");
  if (needs_this_nic(vector.setup)) needs(VectorGrade::kNic, "setup");
  if (vector.setup.link_gbps || vector.setup.link_delay_ns) needs(VectorGrade::kWire, "setup");
  highest.doing = highest.grade;
  for (const auto& step : vector.steps) {
    needs(grade_of(step), step.text);
    highest.doing = std::max(highest.doing, doing_grade(step));
  }
  if (vector.packets || vector.packets_from[0] || vector.packets_from[1]) needs(VectorGrade::kWire, "packets");
  if (!vector.no_packets.empty()) needs(VectorGrade::kWire, "no_packets");
  return highest;
}

}  // namespace rnic::testbench
