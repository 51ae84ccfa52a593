#include "testbench/server/process_quota.hpp"

#include <algorithm>

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
// Rings are in the host's memory of 1 GiB, and for each 4 KiB that are registered there are 8 bytes in it.
constexpr std::uint64_t kPinnedMb = 4096, kRingsMb = 256;
// Each costs the machine three descriptors of the system once a process polls it.
constexpr std::uint64_t kChannels = 256;
constexpr std::uint64_t kProtectionDomains = 1024;
// Of the 65,536 of a host, those of TimeWait among them.
constexpr std::uint64_t kEndpoints = 4096;
// The NIC makes a copy for each before it takes the next packet, whoever sends.
constexpr std::uint64_t kGroupMembers = 16;

}  // namespace

kmd::Quota ProcessQuota::on(const Limits& limits) const {
  kmd::Quota quota;
  const auto set = [&quota](calls::ObjectKind kind, const Number& said, std::uint64_t otherwise) {
    quota.objects[static_cast<std::size_t>(kind) - 1] =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(said.value_or(otherwise), ~std::uint32_t{0}));
  };
  set(calls::ObjectKind::kQp, queue_pairs, limits.max_qp / 2);
  set(calls::ObjectKind::kCq, completion_queues, limits.max_cq / 2);
  set(calls::ObjectKind::kSrq, shared_receive_queues, limits.max_srq / 2);
  // They share their numbers, one of which is the host's own.
  const std::uint64_t keys = std::uint64_t{limits.max_mr} + 1;
  set(calls::ObjectKind::kMr, memory_regions, keys / 2);
  set(calls::ObjectKind::kMw, memory_windows, keys / 4);
  set(calls::ObjectKind::kPd, protection_domains, kProtectionDomains);
  set(calls::ObjectKind::kChannel, channels, kChannels);
  set(calls::ObjectKind::kEndpoint, endpoints, kEndpoints);
  quota.contexts = opens.value_or(limits.uar_count / 2);
  quota.multicast_groups = multicast_groups.value_or(limits.max_multicast_groups / 2);
  quota.group_members = group_members.value_or(kGroupMembers);
  quota.pinned_bytes = pinned_mb.value_or(kPinnedMb) * kMiB;
  quota.ring_bytes = rings_mb.value_or(kRingsMb) * kMiB;
  return quota;
}

}  // namespace rnic::testbench
