#include "driver/kmd/connection_service.hpp"

#include "driver/kmd/kernel_device.hpp"

namespace rnic::kmd {
namespace {

constexpr Gid kAny{};

bool is_link_local(const Gid& gid) { return gid[0] == 0xFE && (gid[1] & 0xC0) == 0x80; }

}  // namespace

/// A call of the manager: one at a time, and who has something to do afterwards is woken.
class ConnectionService::Call {
 public:
  explicit Call(ConnectionService& service)
      : service_(service), lock_(service.mutex_), deadline_(service.manager_.next_deadline()) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    const bool earlier = service_.manager_.next_deadline() < deadline_;
    if (std::exchange(service_.wake_, false) || earlier) service_.kernel_.device().wake();
  }
  [[nodiscard]] std::uint64_t now() const { return service_.kernel_.device().now_ns(); }

 private:
  ConnectionService& service_;
  const std::lock_guard<std::mutex> lock_;
  const std::uint64_t deadline_;
};

ConnectionService::ConnectionService(KernelDevice& kernel)
    : kernel_(kernel),
      manager_({.guid = kernel.mac(), .max_mtu = static_cast<std::uint8_t>(kernel.limits().max_mtu)}, *this) {}

ConnectionService::~ConnectionService() = default;

Result<cm::EndpointId> ConnectionService::create() {
  const Call call(*this);
  if (!attached_) return Error::kNotSupported;
  return manager_.create();
}

Result<void> ConnectionService::announce(cm::EndpointId id, calls::Handle handle,
                                         std::shared_ptr<EventChannel> channel) {
  return or_out_of_memory([&]() -> Result<void> {
    const Call call(*this);
    auto next = std::make_unique<Announcement>();
    next->channel = std::move(channel);
    next->place.event = {.type = static_cast<std::uint8_t>(calls::KernelEvent::kConnection), .object = handle};
    auto& known = announcements_[id];
    if (known != nullptr) known->channel->remove(known->place);
    known = std::move(next);
    if (manager_.has_events(id)) tell(id);
    return {};
  });
}

void ConnectionService::destroy(cm::EndpointId id) {
  const Call call(*this);
  if (const auto found = announcements_.find(id); found != announcements_.end()) {
    found->second->channel->remove(found->second->place);
    announcements_.erase(found);
  }
  manager_.destroy(id, call.now());
}

Result<std::uint16_t> ConnectionService::bind(cm::EndpointId id, cm::PortSpace space, const Gid& address,
                                              std::uint16_t port) {
  const Call call(*this);
  return manager_.bind(id, space, address, port);
}

Result<void> ConnectionService::listen(cm::EndpointId id, std::uint32_t backlog, std::uint8_t services) {
  const Call call(*this);
  return manager_.listen(id, backlog, services);
}

Result<void> ConnectionService::connect(cm::EndpointId id, const cm::ConnectSpec& spec, bool datagram) {
  const Call call(*this);
  // There was one when the endpoint was made. Nobody would send anything, or give up waiting.
  if (!attached_) return Error::kDeviceFailed;
  return datagram ? manager_.ask(id, spec, call.now()) : manager_.connect(id, spec, call.now());
}

Result<void> ConnectionService::accept(cm::EndpointId id, const cm::AcceptSpec& spec) {
  const Call call(*this);
  return manager_.accept(id, spec, call.now());
}

Result<void> ConnectionService::reject(cm::EndpointId id, std::span<const std::uint8_t> data) {
  const Call call(*this);
  return manager_.reject(id, data, call.now());
}

Result<void> ConnectionService::establish(cm::EndpointId id) {
  const Call call(*this);
  return manager_.establish(id, call.now());
}

Result<void> ConnectionService::disconnect(cm::EndpointId id) {
  const Call call(*this);
  return manager_.disconnect(id, call.now());
}

Result<void> ConnectionService::post(cm::EndpointId id, const cm::Event& event) {
  const Call call(*this);
  return manager_.post(id, event);
}

cm::Event ConnectionService::take_event(cm::EndpointId id) {
  const Call call(*this);
  const auto event = manager_.take_event(id);
  if (manager_.has_events(id)) tell(id);
  return event;
}

Result<cm::Facts> ConnectionService::facts(cm::EndpointId id) {
  const Call call(*this);
  return manager_.facts(id);
}

bool ConnectionService::remembers(std::uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  return manager_.remembers(qpn);
}

void ConnectionService::communication_established(std::uint32_t qpn) {
  const Call call(*this);
  manager_.communication_established(qpn, call.now());
}

Result<ConnectionService::Source> ConnectionService::source_for(const Gid& remote, const Gid& wish) const {
  PortTables& tables = kernel_.port_tables();
  std::optional<Source> chosen;
  for (std::uint16_t i = 0; i < tables.gids(); ++i) {
    const auto own = tables.gid(i);
    if (!own || is_ipv4_mapped(*own) != is_ipv4_mapped(remote)) continue;
    if (wish != kAny && *own != wish) continue;
    // The address itself is best, then one of the same scope, then the first. Groups are spoken to from the link-local
    // address, which every queue pair for datagrams has.
    const bool link_local = is_link_local(remote) || is_multicast(remote);
    const auto worth = [&](const Gid& gid) { return gid == remote ? 2 : is_link_local(gid) == link_local; };
    if (!chosen || worth(*own) > worth(chosen->address)) chosen = Source{*own, i};
  }
  if (!chosen) return Error::kNotFound;
  return *chosen;
}

void ConnectionService::attach(bool attached) {
  const Call call(*this);
  attached_ = attached;
  if (!attached) outgoing_.clear();
}

std::optional<ConnectionService::Outgoing> ConnectionService::next_outgoing() {
  const Call call(*this);
  if (outgoing_.empty()) return std::nullopt;
  const Outgoing next = outgoing_.front();
  outgoing_.pop_front();
  return next;
}

void ConnectionService::receive(const Gid& local, const Gid& remote, std::span<const std::uint8_t> mad) {
  const Call call(*this);
  manager_.receive(local, remote, mad, call.now());
}

std::uint64_t ConnectionService::run_timers() {
  const Call call(*this);
  const std::uint64_t now = call.now();
  manager_.run_timers(now);
  const std::uint64_t next = manager_.next_deadline();
  return next == cm::Manager::kNever ? kForever : next - std::min(now, next);
}

void ConnectionService::lose_device() {
  const Call call(*this);
  attached_ = false;
  outgoing_.clear();
  manager_.lose_device();
}

cm::Counters ConnectionService::counters() {
  const Call call(*this);
  return manager_.counters();
}

std::size_t ConnectionService::endpoints() {
  const Call call(*this);
  return manager_.endpoints();
}

cm::Manager::Held ConnectionService::held() {
  const Call call(*this);
  return manager_.held();
}

/// What finds no room or no way is lost, as on a wire: it comes again.
void ConnectionService::send(const cm::Gid& local, const cm::Gid& remote, const cm::Mad& mad) {
  const auto mac = kernel_.port_tables().station(remote);
  if (!attached_ || !mac || outgoing_.size() >= kMostOutgoing) return;
  try {
    outgoing_.push_back({local, remote, *mac, mad});
    wake_ = true;
  } catch (const std::bad_alloc&) {
  }
}

void ConnectionService::tell(cm::EndpointId endpoint) {
  const auto found = announcements_.find(endpoint);
  if (found == announcements_.end()) return;
  found->second->channel->put(found->second->place);
  wake_ = true;
}

std::uint64_t ConnectionService::random() { return kernel_.device().random64(); }

bool ConnectionService::is_own(const cm::Gid& gid) {
  PortTables& tables = kernel_.port_tables();
  for (std::uint16_t i = 0; i < tables.gids(); ++i) {
    const auto own = tables.gid(i);
    if (own && *own == gid) return true;
  }
  return false;
}

bool ConnectionService::is_in_partition(std::uint16_t pkey) { return kernel_.port_tables().pkey_index_for(pkey).ok(); }

}  // namespace rnic::kmd
