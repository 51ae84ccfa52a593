#include "driver/gsi/agent.hpp"

#include <algorithm>
#include <cstring>

#include "driver/management.hpp"
#include "driver/umd/address_handle.hpp"
#include "driver/umd/waiting.hpp"

namespace rnic::gsi {
namespace {

constexpr std::uint32_t kReceives = 256, kSends = 128;
constexpr std::uint32_t kGrhBytes = 40;    // in front of every datagram (annex A17.4.5.1)
constexpr std::uint32_t kSlotBytes = 512;  // 40 + 256, so that no slot lies in two pages
constexpr std::size_t kIpv4At = 20;        // in the GRH
constexpr std::size_t kIpv4SourceAt = kIpv4At + 12, kIpv4DestinationAt = kIpv4At + 16;
constexpr std::size_t kIpv6SourceAt = 8, kIpv6DestinationAt = 24;
constexpr std::size_t kMappedAt = 12;  // of an IPv4 address in a GID

kmd::Gid mapped(const std::uint8_t* ipv4) {
  kmd::Gid gid{};
  gid[10] = gid[11] = 0xFF;
  std::copy_n(ipv4, 4, gid.begin() + kMappedAt);
  return gid;
}

kmd::Gid ipv6_at(const std::uint8_t* at) {
  kmd::Gid gid;
  std::copy_n(at, gid.size(), gid.begin());
  return gid;
}

}  // namespace

Result<std::unique_ptr<Agent>> Agent::open(kmd::KernelDevice& kernel) {
  return or_out_of_memory([&]() -> Result<std::unique_ptr<Agent>> {
    std::unique_ptr<Agent> agent(new Agent(kernel));
    if (auto begun = agent->begin(); !begun) return begun.error();
    return agent;
  });
}

Result<void> Agent::begin() {
  auto process = umd::ProcessContext::open_for_management(kernel_.kernel_node());
  if (!process) return process.error();
  process_ = process.take();
  constexpr std::uint64_t kBytes = (kReceives + kSends) * kSlotBytes;
  static_assert(kBytes % sizeof(Page) == 0);
  memory_.resize(kBytes / sizeof(Page));
  auto region = process_->create_mr({.address = slot(0), .length = kBytes, .local_write = true});
  if (!region) return region.error();
  region_ = region.take();
  auto cq = umd::CompletionQueue::create(process_, kReceives + kSends);
  if (!cq) return cq.error();
  cq_ = cq.take();
  signal_.emplace(*process_, cq_);
  auto qp = umd::QueuePair::create_idle(process_, {.send_cq = cq_,
                                                   .receive_cq = cq_,
                                                   .type = hw::QpType::kUd,
                                                   .general_service = true,
                                                   .capacity = {kSends, kReceives, 1, 1, 0}});
  if (!qp) return qp.error();
  qp_ = qp.take();
  umd::QpConnection attributes;
  attributes.qkey = kGeneralServiceQkey;
  kmd::PortTables& tables = kernel_.port_tables();
  for (std::uint16_t i = tables.gids(); i-- > 0;) {
    const auto gid = tables.gid(i);
    if (!gid || !kmd::is_ipv4_mapped(*gid)) continue;
    attributes.path.second_sgid_index = i;
    second_ = *gid;
  }
  for (std::uint64_t i = 0; i < kReceives; ++i) {
    if (auto posted = post_receive(i); !posted) return posted;
  }
  for (std::uint64_t i = 0; i < kSends; ++i) free_.push_back(kReceives + i);
  if (auto connected = qp_->connect(attributes); !connected) return connected;
  kernel_.connections().attach(true);
  return {};
}

Agent::~Agent() {
  kernel_.connections().attach(false);
  qp_.reset();
  signal_.reset();
  cq_.reset();
  region_.reset();
}

void Agent::stop() {
  stop_ = true;
  kernel_.device().wake();
}

void Agent::run() {
  running_ = true;
  auto& connections = kernel_.connections();
  while (!stop_ && process_->alive()) {
    // Whoever gives it something to do wakes it, and so does a datagram, if it was asked for.
    signal_->ask();
    const std::uint64_t seen = kernel_.device().wake_count();
    process_->take_events();
    const std::uint64_t patience = connections.run_timers();
    if (take_completions() || send_datagrams() || signal_->came() || stop_) continue;
    if (!kernel_.device().wait(seen, patience) && patience == kForever) break;
  }
  if (!process_->alive()) connections.lose_device();
  running_ = false;
}

std::uint8_t* Agent::slot(std::uint64_t number) { return memory_.front().bytes.data() + number * kSlotBytes; }

Result<void> Agent::post_receive(std::uint64_t number) {
  // What an IPv4 datagram leaves alone tells it from an IPv6 one.
  std::memset(slot(number), 0, kGrhBytes);
  const umd::Segment segment{
      .address = reinterpret_cast<std::uint64_t>(slot(number)), .length = kSlotBytes, .key = region_->key()};
  return qp_->post_receive({.id = number, .segments = {&segment, 1}});
}

bool Agent::take_completions() {
  std::array<umd::Completion, 16> batch;
  bool any = false;
  for (std::size_t got = batch.size(); got == batch.size();) {
    got = cq_->poll(batch);
    for (const auto& completion : std::span(batch).first(got)) {
      any = true;
      if (completion.id >= kReceives) {
        free_.push_back(completion.id);
        continue;
      }
      take_datagram(completion.id, completion);
      static_cast<void>(post_receive(completion.id).ok());
    }
  }
  return any;
}

void Agent::take_datagram(std::uint64_t number, const umd::Completion& completion) {
  const std::uint8_t* const at = slot(number);
  const bool whole = completion.status == hw::CqeStatus::kSuccess && completion.grh &&
                     completion.byte_count == kGrhBytes + cm::kMadBytes;
  if (!whole || completion.source_qpn != kGeneralServiceQpn) {
    ++counters_.strange;
    return;
  }
  const std::span<const std::uint8_t> mad(at + kGrhBytes, cm::kMadBytes);
  const bool ipv6 = at[0] >> 4 == 6;
  ++counters_.received;
  kernel_.connections().receive(ipv6 ? ipv6_at(at + kIpv6DestinationAt) : mapped(at + kIpv4DestinationAt),
                                ipv6 ? ipv6_at(at + kIpv6SourceAt) : mapped(at + kIpv4SourceAt), mad);
}

bool Agent::send_datagrams() {
  bool any = false;
  while (!free_.empty()) {
    const auto next = kernel_.connections().next_outgoing();
    if (!next) break;
    any = true;
    const bool second = kmd::is_ipv4_mapped(next->local);
    const auto to =
        umd::AddressHandle::create({.dest_ip = next->remote, .dest_mac = next->mac, .second_source = second});
    if (!to) continue;
    const std::uint64_t number = free_.back();
    std::copy(next->mad.begin(), next->mad.end(), slot(number));
    const umd::Segment segment{.address = reinterpret_cast<std::uint64_t>(slot(number)),
                               .length = static_cast<std::uint32_t>(next->mad.size()),
                               .key = region_->key()};
    umd::SendRequest request;
    request.opcode = hw::WqeOpcode::kSend;
    request.id = number;
    request.segments = {&segment, 1};
    request.address = &*to;
    request.dest_qpn = kGeneralServiceQpn;
    request.qkey = kGeneralServiceQkey;
    if (!qp_->post_send(request)) continue;
    free_.pop_back();
    ++counters_.sent;
  }
  return any;
}

}  // namespace rnic::gsi
