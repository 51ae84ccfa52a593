// The calls of a client about the device, its port, and events.
#include "driver/costs.hpp"
#include "driver/kmd/client.hpp"

namespace rnic::kmd {

Result<void> Client::perform(const calls::QueryDevice&, calls::QueryDevice::Answer& a) {
  const Limits& limits = kernel_.limits();
  a.mac = kernel_.mac();
  a.max_region = limits.max_region;
  a.vendor_id = limits.vendor_id;
  a.device_id = limits.device_id;
  a.max_qp = limits.max_qp;
  a.max_cq = limits.max_cq;
  a.max_eq = limits.max_eq;
  a.max_mr = limits.max_mr;
  a.max_queue_depth = limits.max_queue_depth;
  a.max_cq_depth = limits.max_cq_depth;
  a.max_eq_depth = limits.max_eq_depth;
  a.max_sge = limits.max_sge;
  a.max_inline = limits.max_inline;
  a.max_rd_atomic = limits.max_rd_atomic;
  a.max_mtu = limits.max_mtu;
  a.uar_count = limits.uar_count;
  a.msix_vectors = limits.msix_vectors;
  a.max_message = limits.max_message;
  a.clock_mhz = limits.clock_mhz;
  a.max_mw = limits.max_mw;
  a.max_fast_pages = limits.max_fast_pages;
  a.max_srq = limits.max_srq;
  a.max_srq_depth = limits.max_srq_depth;
  a.max_multicast_groups = limits.max_multicast_groups;
  a.window_type1 = limits.window_type1;
  a.window_type2 = limits.window_type2;
  return {};
}

Result<void> Client::perform(const calls::OpenContext& m, calls::OpenContext::Answer& a) {
  if (m.kernel_uar != 0 && !trusted_) return Error::kNotSupported;
  const SleepLock::Guard guard(open_lock_);
  if (!guard) return Error::kDeviceFailed;
  if (uar_) return Error::kInvalidState;
  SharedRegion status(regions_, std::shared_ptr<std::uint8_t>(life_, reinterpret_cast<std::uint8_t*>(&life_->failed)),
                      sizeof life_->failed);
  Charge charge;
  if (m.kernel_uar == 0) {
    auto taken = Charge::take(account_, Account::Of::kContexts, 1);
    if (!taken) return Error::kOutOfResources;
    charge = taken.take();
  }
  auto uar = m.kernel_uar != 0 ? Result<std::uint32_t>(hw::kKernelUar) : kernel_.acquire_uar();
  if (!uar) return uar.error();
  uar_ = *uar;
  uar_charge_ = std::move(charge);
  status_ = std::move(status);
  a.status = status_.range();
  a.uar = *uar;
  a.channel = first_channel_handle_;
  a.kernel = trusted_;
  return {};
}

Result<void> Client::perform(const calls::CheckDevice&, calls::CheckDevice::Answer&) {
  kernel_.check_health(*life_);
  return life_->alive() ? Result<void>() : Error::kDeviceFailed;
}

Result<void> Client::perform(const calls::QueryPort&, calls::QueryPort::Answer& a) {
  a.mac = kernel_.mac();
  a.gids = kernel_.port_tables().gids();
  a.pkeys = kernel_.port_tables().pkeys();
  a.link_up = kernel_.link_up();
  return {};
}

/// Beyond the last entry the table is empty.
Result<void> Client::perform(const calls::QueryGid& m, calls::QueryGid::Answer& a) {
  if (m.index >= PortTables::kMaxGids) return Error::kInvalidParameter;
  const auto own = kernel_.port_tables().own_address(m.index);
  a.type = static_cast<std::uint8_t>(own ? calls::GidType::kRoceV2 : calls::GidType::kNone);
  if (own) {
    a.gid = own->gid;
    a.vlan = own->vlan;
  }
  return {};
}

Result<void> Client::perform(const calls::QueryPkey& m, calls::QueryPkey::Answer& a) {
  if (m.index >= PortTables::kMaxPkeys) return Error::kInvalidParameter;
  const auto pkey = kernel_.port_tables().pkey(m.index);
  a.pkey = pkey ? *pkey : std::uint16_t{0};
  return {};
}

Result<void> Client::perform(const calls::QueryCounter& m, calls::QueryCounter::Answer& a) {
  if (m.counter >= hw::kCounterNames.size()) return Error::kInvalidParameter;
  auto value = kernel_.counter(static_cast<hw::Counter>(m.counter));
  if (!value) return value.error();
  a.value = *value;
  return {};
}

Result<void> Client::perform(const calls::ResolveGid& m, calls::ResolveGid::Answer& a) {
  auto mac = station_of(m.gid);
  if (!mac) return mac.error();
  a.mac = *mac;
  return {};
}

Result<std::uint64_t> Client::station_of(const Gid& gid) {
  auto mac = kernel_.port_tables().station(gid);
  if (!mac && kernel_.options().find_neighbour) mac = kernel_.options().find_neighbour(gid);
  return mac;
}

Result<void> Client::perform(const calls::CreateChannel&, calls::CreateChannel::Answer& a) {
  auto place = handles_.reserve(calls::ObjectKind::kChannel);
  if (!place) return place.error();
  a.channel = place->handle();
  place->fill(std::make_shared<ClientChannel>(kernel_.device()));
  return {};
}

Result<void> Client::perform(const calls::ReadEvents& m, calls::ReadEvents::Answer& a) {
  const auto from = channel(m.channel);
  if (from == nullptr) return Error::kNotFound;
  if (kernel_.usable(*life_)) {
    const EventSource::Reading reading(this);
    kernel_.dispatch_events();
  }
  a.count = static_cast<std::uint32_t>(from->take(std::span(a.events).first(m.most)));
  for (std::uint32_t i = 0; i < a.count; ++i) {
    if (a.events[i].type == static_cast<std::uint8_t>(calls::KernelEvent::kRegion)) settle(a.events[i].object);
  }
  return {};
}

}  // namespace rnic::kmd
