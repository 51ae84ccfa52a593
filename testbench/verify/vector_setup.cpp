#include "testbench/verify/vector_setup.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "testbench/verify/vector_names.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;
using Reader = VectorReader;

void read_regions(Reader& setup, VectorSetup& to) {
  constexpr std::uint32_t kAll =
      ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE;
  const json* regions = setup.find("regions");
  if (!regions) {
    to.regions = {VectorRegion{.host = 0, .name = "a", .size = 65536, .flags = kAll, .pattern = true, .memory_of = {}},
                  VectorRegion{.host = 1, .name = "b", .size = 65536, .flags = kAll, .memory_of = {}}};
    return;
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < setup.list(*regions, "regions").size(); ++i) {
    Reader from = setup.element((*regions)[i], "regions", i);
    VectorRegion region;
    region.host = static_cast<std::size_t>(from.name("host", kHosts));
    region.name = from.text("name");
    region.size = from.number<std::uint64_t>("size");
    region.flags = from.flags("flags", kAtomicFlags);
    region.pattern = from.name("fill", kFills, 0) != 0;
    region.remote_atomic = (region.flags & kRemoteAtomic) != 0;
    region.flags &= ~kRemoteAtomic;
    region.other_domain = from.name("domain", {{"own", 0}, {"other", 1}}, 0) != 0;
    if (from.find("memory_of")) {
      region.memory_of = from.text("memory_of");
      if (!names.contains(region.memory_of)) from.fail(fmt::format("no region \"{}\" before it", region.memory_of));
    }
    if (from.find("reads")) region.reads = static_cast<model::PcieFault>(from.name("reads", kReadFaults));
    if (from.find("list_reads"))
      region.list_reads = static_cast<model::PcieFault>(from.name("list_reads", kReadFaults));
    if (region.list_reads && region.other_domain) from.fail("\"list_reads\" and \"domain\" exclude each other");
    if (!names.insert(region.name).second) from.fail(fmt::format("a second region \"{}\"", region.name));
    from.finish();
    to.regions.push_back(std::move(region));
  }
}

void read_srq(Reader from, VectorSetup& to) {
  VectorSrq& srq = to.srq.emplace();
  srq.depth = from.number<std::uint32_t>("depth", srq.depth);
  srq.sge = from.number<std::uint32_t>("sge", srq.sge);
  srq.threshold = from.number<std::uint32_t>("threshold", srq.threshold);
  srq.other_domain = from.name("domain", {{"own", 0}, {"other", 1}}, 0) != 0;
  from.finish();
}

void read_type(Reader& from, VectorSetup& to) {
  enum Type : std::int64_t { kRc, kUc, kUd, kQp1, kRawPacket };
  const auto type =
      from.name("type", {{"RC", kRc}, {"UC", kUc}, {"UD", kUd}, {"QP1", kQp1}, {"RAW_PACKET", kRawPacket}}, kRc);
  switch (type) {
    case kRc: to.type = hw::QpType::kRc; break;
    case kUc: to.type = hw::QpType::kUc; break;
    case kRawPacket: to.type = hw::QpType::kRawPacket; break;
    default: to.type = hw::QpType::kUd;
  }
  to.general_service = type == kQp1;
  if (to.general_service) to.hosts[0].qkey = kGeneralServiceQkey;
  to.fast_register = from.boolean("fast_register", to.fast_register);
  to.queue_pairs = from.number<std::size_t>("queue_pairs", to.queue_pairs);
  if (to.queue_pairs == 0 || to.queue_pairs > 8) from.fail("\"queue_pairs\" is 1 to 8");
  if (to.general_service && to.queue_pairs != 1) from.fail("there is one QP1");
  if (from.find("srq")) read_srq(from.object("srq"), to);
  if (to.srq && (type != kRc && type != kUd)) from.fail("\"srq\" is for queue pairs of type RC and UD");
  if (to.srq && to.fast_register) from.fail("\"srq\" is for queue pairs without \"fast_register\"");
}

/// A number that need not be whole; nothing if the key is missing.
std::optional<double> read_amount(Reader& from, const char* key) {
  const json* value = from.find(key);
  if (!value) return std::nullopt;
  if (!value->is_number() || value->get<double>() < 0)
    from.fail(fmt::format("\"{}\" must be a number, not negative", key));
  return value->get<double>();
}

/// What both hosts have alike or one has by itself.
void read_host(Reader& from, VectorHostSetup& to) {
  to.mtu = from.number<std::uint32_t>("mtu", to.mtu);
  if (to.mtu != 256 && to.mtu != 512 && to.mtu != 1024 && to.mtu != 2048 && to.mtu != 4096)
    from.fail("\"mtu\" must be 256, 512, 1024, 2048 or 4096");
  to.initiator_depth = from.number<std::uint32_t>("initiator_depth", to.initiator_depth);
  to.receive_depth = from.number<std::uint32_t>("receive_depth", to.receive_depth);
  to.initiator_sge = from.number<std::uint32_t>("initiator_sge", to.initiator_sge);
  to.receive_sge = from.number<std::uint32_t>("receive_sge", to.receive_sge);
  to.inline_size = from.number<std::uint32_t>("inline_size", to.inline_size);
  if (const json* limit = from.find("read_limit"))
    to.initiator_reads = to.responder_reads = from.to_number<std::uint32_t>(*limit, "read_limit");
  to.initiator_reads = from.number<std::uint32_t>("initiator_reads", to.initiator_reads);
  to.responder_reads = from.number<std::uint32_t>("responder_reads", to.responder_reads);
  to.cq_depth = from.number<std::uint32_t>("cq_depth", to.cq_depth);
  if (from.find("quota")) {
    Reader quota = from.object("quota");
    if (quota.find("pinned_bytes")) to.pinned_quota = quota.number<std::uint64_t>("pinned_bytes");
    if (quota.find("ring_bytes")) to.ring_quota = quota.number<std::uint64_t>("ring_bytes");
    quota.finish();
  }
  to.ack_timeout = from.number_up_to<std::uint8_t>("ack_timeout", 31, to.ack_timeout);
  to.retry_count = from.number_up_to<std::uint8_t>("retry_count", 7, to.retry_count);
  to.rnr_retry = from.number_up_to<std::uint8_t>("rnr_retry", 7, to.rnr_retry);
  to.min_rnr_timer = from.number_up_to<std::uint8_t>("min_rnr_timer", 31, to.min_rnr_timer);
  to.remote_read = from.boolean("remote_read", to.remote_read);
  to.remote_write = from.boolean("remote_write", to.remote_write);
  to.remote_atomic = from.boolean("remote_atomic", to.remote_atomic);
  if (const json* psn = from.find("first_psn")) {
    to.first_psn = from.to_number<std::uint32_t>(*psn, "first_psn");
    if (*to.first_psn > 0xffffff) from.fail("\"first_psn\" has 24 bits");
  }
  to.pkey = from.number<std::uint16_t>("pkey", to.pkey);
  to.traffic_class = from.number<std::uint8_t>("traffic_class", to.traffic_class);
  to.hop_limit = from.number<std::uint8_t>("hop_limit", to.hop_limit);
  to.flow_label = from.number<std::uint32_t>("flow_label", to.flow_label);
  to.vlan = from.number_up_to<std::uint16_t>("vlan", kHighestVid, to.vlan);
  to.sl = from.number_up_to<std::uint8_t>("sl", kHighestPriority, to.sl);
  to.qkey = from.number<std::uint32_t>("qkey", to.qkey);
}

}  // namespace

VectorSetup read_vector_setup(Reader from) {
  VectorSetup to;
  read_type(from, to);
  to.one_cq = from.boolean("one_cq", to.one_cq);
  if (to.one_cq && to.is_kernels()) from.fail("QP1 and RAW_PACKET have two completion queues");
  to.connected = from.boolean("connected", to.connected);
  to.connections = from.boolean("connections", to.connections);
  if (to.connections && (to.type != hw::QpType::kRc || to.fast_register))
    from.fail("\"connections\" are for queue pairs of type RC without \"fast_register\"");
  to.connected = to.connected && !to.connections;
  to.ipv6 = from.boolean("ipv6", to.ipv6);
  to.iommu_faults = from.boolean("iommu_faults", to.iommu_faults);
  to.split_completions = from.boolean("split_completions", to.split_completions);
  to.ordinary_world = from.boolean("ordinary_world", to.ordinary_world);
  to.link_gbps = read_amount(from, "link_gbps");
  to.link_delay_ns = read_amount(from, "link_delay_ns");
  if (to.link_gbps && *to.link_gbps <= 0) from.fail("\"link_gbps\" is above 0");
  if (from.find("completion_timeout"))
    to.completion_timeout =
        static_cast<hw::CompletionTimeoutRange>(from.name("completion_timeout", kCompletionTimeouts));
  read_host(from, to.hosts[0]);
  to.hosts[1] = to.hosts[0];
  for (const auto& [name, host] : kHosts) {
    const std::string key(name);
    if (!from.find(key.c_str())) continue;
    Reader own = from.object(key.c_str());
    read_host(own, to.hosts.at(static_cast<std::size_t>(host)));
    own.finish();
  }
  read_regions(from, to);
  from.finish();
  return to;
}

}  // namespace rnic::testbench
