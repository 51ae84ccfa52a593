#include "testbench/endpoint.hpp"

#include <fmt/format.h>
#include <netinet/in.h>

#include <cstring>
#include <vector>

#include "driver/nd2/adapter.hpp"
#include "driver/nd2/handles.hpp"
#include "driver/nd2/queue_pair.hpp"
#include "driver/nd2/status_name.hpp"
#include "driver/umd/waiting.hpp"
#include "testbench/timeline/life_names.hpp"

namespace rnic::testbench {
namespace {

std::uint64_t mac_of(std::size_t host) { return 0x0200'0000'0000ULL + host + 1; }

/// IPv4 addresses as IPv4-mapped, network order.
std::array<std::uint8_t, 16> ip_of(std::size_t host, bool ipv6, std::uint8_t subnet = 0) {
  std::array<std::uint8_t, 16> ip{};
  if (ipv6) {
    ip[0] = 0xfd;
  } else {
    ip[10] = ip[11] = 0xff;
    ip[12] = 10;
  }
  ip[13] = subnet;
  ip[15] = static_cast<std::uint8_t>(host + 1);
  return ip;
}

std::vector<sockaddr_storage> addresses_of(std::size_t host) {
  std::vector<sockaddr_storage> addresses(2);
  const auto v4 = ip_of(host, false);
  const auto v6 = ip_of(host, true);
  auto& in = reinterpret_cast<sockaddr_in&>(addresses[0]);
  in.sin_family = AF_INET;
  std::memcpy(&in.sin_addr, v4.data() + 12, 4);
  auto& in6 = reinterpret_cast<sockaddr_in6&>(addresses[1]);
  in6.sin6_family = AF_INET6;
  std::memcpy(&in6.sin6_addr, v6.data(), 16);
  return addresses;
}

std::uint8_t ibv_mtu(std::uint32_t bytes) {
  std::uint8_t code = 1;
  while ((128u << code) < bytes) ++code;
  return code;
}

void require(const Result<void>& result, const char* what) {
  if (!result.ok()) throw EndpointError(fmt::format("{}: {}", what, describe(result.error())));
}

}  // namespace

void require_success(HRESULT status, const std::string& what) {
  if (status != ND_SUCCESS) throw EndpointError(fmt::format("{}: {}", what, nd2::describe_status(status)));
}

void require_success(const Result<void>& result, const std::string& what) {
  if (!result.ok()) throw EndpointError(fmt::format("{}: {}", what, describe(result.error())));
}

Endpoint::Endpoint(Host& host, const kmd::KernelOptions& options, bool of_kernel, Device* device)
    : host_(host), of_kernel_(of_kernel) {
  kmd::KernelOptions with_mac = options;
  with_mac.mac = mac_of(host.index());
  for (const bool ipv6 : {false, true}) with_mac.gids.push_back(ip_of(host.index(), ipv6));
  auto kernel = kmd::KernelDevice::open(device != nullptr ? *device : host.device(), with_mac);
  if (!kernel.ok())
    throw EndpointError(fmt::format("{}: {}", of_host("bringing up the device"), describe(kernel.error())));
  kernel_ = kernel.take();
  reopen();
  require_success(adapter_->CreateOverlappedFile(&file_), of_host("CreateOverlappedFile"));
}

std::string Endpoint::of_host(const char* what) const {
  return fmt::format("host {}: {}", host_letter(static_cast<unsigned>(host_.index())), what);
}

void Endpoint::reopen() {
  require_success(nd2::open_adapter(of_kernel_ ? kernel_->kernel_node() : kernel_->node(), addresses_of(host_.index()),
                                    IID_IND2Adapter, adapter_.put()),
                  of_host("opening the adapter"));
}

Endpoint::~Endpoint() { nd2::close_handle(file_); }

umd::ProcessContext& Endpoint::process() { return *static_cast<nd2::Adapter&>(*adapter_).process(); }

bool Endpoint::wait_until(const std::function<bool()>& done, std::uint64_t timeout_ns) {
  return umd::wait_until(kernel_->node(), done, timeout_ns);
}

std::uint16_t Endpoint::gid_index(bool ipv6, std::uint8_t subnet, std::uint16_t vlan) {
  return require_success(kernel_->port_tables().add_gid(ip_of(host_.index(), ipv6, subnet), vlan),
                         of_host("GID table"));
}

std::uint16_t Endpoint::pkey_index(std::uint16_t pkey) {
  return require_success(kernel_->port_tables().add_pkey(pkey), of_host("P_Key table"));
}

std::uint32_t Endpoint::first_psn() {
  constexpr std::uint32_t kLastPsn = 0xffffff, kNear = 64;
  const std::uint32_t psn = kernel_->random_psn();
  const double chance = host_.psn_near_wrap();
  if (chance <= 0) return psn;
  const auto die = static_cast<double>(device().random64() >> 11) / static_cast<double>(1ULL << 53);
  return die < chance ? kLastPsn - psn % kNear : psn;
}

ComPtr<IND2CompletionQueue> Endpoint::create_cq(ULONG depth) {
  ComPtr<IND2CompletionQueue> cq;
  require_success(adapter_->CreateCompletionQueue(IID_IND2CompletionQueue, file_, depth, 0, 0, cq.put()),
                  of_host("CreateCompletionQueue"));
  return cq;
}

ComPtr<IND2QueuePair> Endpoint::create_qp(IND2CompletionQueue& receive_cq, IND2CompletionQueue& initiator_cq,
                                          const QpSpec& spec) {
  ComPtr<IND2QueuePair> qp;
  require_success(adapter_->CreateQueuePair(IID_IND2QueuePair, &receive_cq, &initiator_cq, spec.context,
                                            spec.receive_depth, spec.initiator_depth, spec.receive_sge,
                                            spec.initiator_sge, spec.inline_bytes, qp.put()),
                  of_host("CreateQueuePair"));
  return qp;
}

ComPtr<IND2MemoryRegion> Endpoint::create_region() {
  ComPtr<IND2MemoryRegion> region;
  require_success(adapter_->CreateMemoryRegion(IID_IND2MemoryRegion, file_, region.put()),
                  of_host("CreateMemoryRegion"));
  return region;
}

ComPtr<IND2MemoryRegion> Endpoint::register_memory(const void* pointer, std::size_t bytes, ULONG flags) {
  auto region = create_region();
  OVERLAPPED overlapped = open_event();
  const HRESULT status = finish(*region, overlapped, region->Register(pointer, bytes, flags, &overlapped));
  close_event(overlapped);
  require_success(status, of_host("IND2MemoryRegion::Register"));
  return region;
}

void Endpoint::deregister(IND2MemoryRegion& region) {
  OVERLAPPED overlapped = open_event();
  const HRESULT status = finish(region, overlapped, region.Deregister(&overlapped));
  close_event(overlapped);
  require_success(status, of_host("IND2MemoryRegion::Deregister"));
}

HRESULT Endpoint::finish(IND2Overlapped& object, OVERLAPPED& overlapped, HRESULT status) {
  return status == ND_PENDING ? object.GetOverlappedResult(&overlapped, TRUE) : status;
}

OVERLAPPED Endpoint::open_event() {
  OVERLAPPED overlapped{};
  overlapped.hEvent = nd2::create_event(kernel_->node());
  return overlapped;
}

void Endpoint::close_event(const OVERLAPPED& overlapped) { nd2::close_handle(overlapped.hEvent); }

umd::QueuePair& core_of(IND2QueuePair& qp) { return *static_cast<nd2::QueuePair&>(qp).core(); }

std::array<std::uint8_t, 16> ip_of(Endpoint& endpoint, bool ipv6, std::uint8_t subnet) {
  return ip_of(endpoint.host().index(), ipv6, subnet);
}

std::uint64_t mac_of(Endpoint& endpoint) { return mac_of(endpoint.host().index()); }

umd::QpConnection connection_to(Endpoint& from, Endpoint& to, std::uint32_t dest_qpn, const ConnectParameters& p) {
  umd::QpConnection c;
  c.path.sgid_index = from.gid_index(p.ipv6, p.subnet);
  c.path.dest_gid = ip_of(to.host().index(), p.ipv6, p.subnet);
  c.path.dest_mac = mac_of(to.host().index());
  c.path.udp_source_port = static_cast<std::uint16_t>(0xC000 | (from.device().random64() & 0x3FFF));
  c.dest_qpn = dest_qpn;
  c.path_mtu = ibv_mtu(p.mtu);
  c.ack_timeout = p.ack_timeout;
  c.retry_count = p.retry_count;
  c.rnr_retry = p.rnr_retry;
  c.min_rnr_timer = p.min_rnr_timer;
  c.remote_read = p.remote_read;
  c.remote_write = p.remote_write;
  c.remote_atomic = p.remote_atomic;
  c.inbound_reads = c.outbound_reads = static_cast<std::uint8_t>(p.read_limit);
  return c;
}

umd::QpConnection datagram_attributes(Endpoint& at, std::uint32_t qkey, std::uint32_t mtu) {
  umd::QpConnection c;
  c.path.sgid_index = at.gid_index(false);
  c.path.second_sgid_index = at.gid_index(true);
  c.path_mtu = ibv_mtu(mtu);
  c.qkey = qkey;
  return c;
}

umd::AddressHandle::Spec address_of(Endpoint& to, bool ipv6) {
  return {.dest_ip = ip_of(to.host().index(), ipv6), .dest_mac = mac_of(to.host().index()), .second_source = ipv6};
}

void connect_pair(Endpoint& a, IND2QueuePair& qp_a, Endpoint& b, IND2QueuePair& qp_b,
                  const ConnectParameters& parameters) {
  connect_pair(a, core_of(qp_a), b, core_of(qp_b), parameters);
}

void connect_pair(Endpoint& a, umd::QueuePair& qp_a, Endpoint& b, umd::QueuePair& qp_b,
                  const ConnectParameters& parameters) {
  auto to_b = connection_to(a, b, qp_b.qpn(), parameters);
  auto to_a = connection_to(b, a, qp_a.qpn(), parameters);
  to_b.send_psn = to_a.receive_psn = parameters.first_psn.value_or(a.first_psn());
  to_a.send_psn = to_b.receive_psn = parameters.first_psn.value_or(b.first_psn());
  require(qp_a.to_ready(to_b), "RTR of host A's queue pair");
  require(qp_b.to_ready(to_a), "RTR of host B's queue pair");
  require(qp_a.to_connected(to_b), "RTS of host A's queue pair");
  require(qp_b.to_connected(to_a), "RTS of host B's queue pair");
}

}  // namespace rnic::testbench
