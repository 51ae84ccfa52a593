#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "driver/generated/kernel_calls.hpp"
#include "driver/kmd/client_objects.hpp"
#include "driver/kmd/event_source.hpp"
#include "driver/kmd/handle_table.hpp"
#include "driver/kmd/kernel_device.hpp"
#include "driver/kmd/shared_region.hpp"
#include "driver/qp_counters.hpp"

namespace rnic::kmd {

/// A client of the kernel driver: judges its calls, and owns in its name what they make (docs/kernel_calls.md).
/// Thread safe; calls let time pass.
class Client {
 public:
  /// `trusted`: it belongs to the kernel. What it has, `account` counts; null: one of its own. Errors: kOutOfMemory,
  /// kOutOfResources (the account has no channel). `kernel` outlives it.
  static Result<std::unique_ptr<Client>> create(KernelDevice& kernel, bool trusted, const AddressSpace& memory = {},
                                                std::shared_ptr<Account> account = {});
  /// As close.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Judges a message, does what it asks for, and writes the answer. `message` does not change meanwhile. An answer for
  /// which there is no room is lost, and so is one of a message without a whole header.
  void call(std::span<const std::byte> message, std::span<std::byte> answer);

  /// Memory that it shares with the kernel driver; kept, it stays. Errors: kAccessViolation.
  [[nodiscard]] Result<std::shared_ptr<std::uint8_t>> map(const calls::MemoryRange& range) {
    return regions_.find(range);
  }

  /// It goes: calls that come are refused, those under way end, and everything is taken back.
  void close();

  /// A channel of it, for who waits for its events; null if it has no such channel. Lives as long as it is kept.
  [[nodiscard]] std::shared_ptr<EventChannel> channel(calls::Handle handle);

  /// Its user access region, once it has one.
  [[nodiscard]] std::optional<std::uint32_t> uar() const { return uar_; }

  /// A queue pair of it, for who looks after the machine.
  struct QpFigures {
    std::uint32_t qpn{};
    hw::QpType type{};
    hw::QpState state{};
    QpCounters counters;
  };
  /// Those that there are, as the device has them. Lets time pass. Throws std::bad_alloc.
  [[nodiscard]] std::vector<QpFigures> queue_pairs();

  [[nodiscard]] std::uint32_t count(calls::ObjectKind kind) { return handles_.count(kind); }
  /// Endpoints at which it listens for connections. Throws std::bad_alloc.
  [[nodiscard]] std::uint32_t listening();

 private:
  class DeviceSource;
  class UnderWay;

  Client(KernelDevice& kernel, bool trusted, const AddressSpace& memory, std::shared_ptr<Account> account);

  template <typename Request>
  calls::Status take(std::span<const std::byte> message, std::span<std::byte> answer);
  /// Whether a call is refused because the device has failed for this client.
  [[nodiscard]] bool device_failed(calls::Call call);

  /// What each call does: client_queues.cpp, client_keys.cpp, client_device.cpp, client_connections.cpp.
  Result<void> perform(const calls::QueryDevice& m, calls::QueryDevice::Answer& a);
  Result<void> perform(const calls::OpenContext& m, calls::OpenContext::Answer& a);
  Result<void> perform(const calls::CheckDevice& m, calls::CheckDevice::Answer& a);
  Result<void> perform(const calls::QueryPort& m, calls::QueryPort::Answer& a);
  Result<void> perform(const calls::QueryGid& m, calls::QueryGid::Answer& a);
  Result<void> perform(const calls::QueryPkey& m, calls::QueryPkey::Answer& a);
  Result<void> perform(const calls::QueryCounter& m, calls::QueryCounter::Answer& a);
  Result<void> perform(const calls::ResolveGid& m, calls::ResolveGid::Answer& a);
  Result<void> perform(const calls::CreateChannel& m, calls::CreateChannel::Answer& a);
  Result<void> perform(const calls::ReadEvents& m, calls::ReadEvents::Answer& a);
  Result<void> perform(const calls::Destroy& m, calls::Destroy::Answer& a);
  Result<void> perform(const calls::AllocPd& m, calls::AllocPd::Answer& a);
  Result<void> perform(const calls::CreateCq& m, calls::CreateCq::Answer& a);
  Result<void> perform(const calls::ResizeCq& m, calls::ResizeCq::Answer& a);
  Result<void> perform(const calls::AdoptCqRing& m, calls::AdoptCqRing::Answer& a);
  Result<void> perform(const calls::ModifyCq& m, calls::ModifyCq::Answer& a);
  Result<void> perform(const calls::QueryCq& m, calls::QueryCq::Answer& a);
  Result<void> perform(const calls::CreateSrq& m, calls::CreateSrq::Answer& a);
  Result<void> perform(const calls::ArmSrq& m, calls::ArmSrq::Answer& a);
  Result<void> perform(const calls::PrepareSrqRing& m, calls::PrepareSrqRing::Answer& a);
  Result<void> perform(const calls::UseSrqRing& m, calls::UseSrqRing::Answer& a);
  Result<void> perform(const calls::QuerySrq& m, calls::QuerySrq::Answer& a);
  Result<void> perform(const calls::CreateQp& m, calls::CreateQp::Answer& a);
  Result<void> perform(const calls::ModifyQp& m, calls::ModifyQp::Answer& a);
  Result<void> perform(const calls::QueryQp& m, calls::QueryQp::Answer& a);
  Result<void> perform(const calls::QueryQpCounters& m, calls::QueryQpCounters::Answer& a);
  Result<void> perform(const calls::AttachMulticast& m, calls::AttachMulticast::Answer& a);
  Result<void> perform(const calls::DetachMulticast& m, calls::DetachMulticast::Answer& a);
  Result<void> perform(const calls::RegisterMr& m, calls::RegisterMr::Answer& a);
  Result<void> perform(const calls::BeginRegisterMr& m, calls::BeginRegisterMr::Answer& a);
  Result<void> perform(const calls::BeginDestroyMr& m, calls::BeginDestroyMr::Answer& a);
  Result<void> perform(const calls::ReregisterMr& m, calls::ReregisterMr::Answer& a);
  Result<void> perform(const calls::QueryKey& m, calls::QueryKey::Answer& a);
  Result<void> perform(const calls::CreateMw& m, calls::CreateMw::Answer& a);
  Result<void> perform(const calls::CreateFastMr& m, calls::CreateFastMr::Answer& a);
  Result<void> perform(const calls::PrepareFastMr& m, std::span<const std::uint64_t> pages,
                       calls::PrepareFastMr::Answer& a);
  Result<void> perform(const calls::ReleaseFastMr& m, calls::ReleaseFastMr::Answer& a);

  Result<void> perform(const calls::CreateEndpoint& m, calls::CreateEndpoint::Answer& a);
  Result<void> perform(const calls::BindEndpoint& m, calls::BindEndpoint::Answer& a);
  Result<void> perform(const calls::Listen& m, calls::Listen::Answer& a);
  Result<void> perform(const calls::ResolveAddress& m, calls::ResolveAddress::Answer& a);
  Result<void> perform(const calls::ResolveRoute& m, calls::ResolveRoute::Answer& a);
  Result<void> perform(const calls::Connect& m, calls::Connect::Answer& a);
  Result<void> perform(const calls::Accept& m, calls::Accept::Answer& a);
  Result<void> perform(const calls::Reject& m, calls::Reject::Answer& a);
  Result<void> perform(const calls::Establish& m, calls::Establish::Answer& a);
  Result<void> perform(const calls::Disconnect& m, calls::Disconnect::Answer& a);
  Result<void> perform(const calls::TakeConnectionEvent& m, calls::TakeConnectionEvent::Answer& a);
  Result<void> perform(const calls::QueryEndpoint& m, calls::QueryEndpoint::Answer& a);
  Result<void> perform(const calls::MoveEndpoint& m, calls::MoveEndpoint::Answer& a);
  Result<void> perform(const calls::JoinGroup& m, calls::JoinGroup::Answer& a);

  /// Runs `body` with an object of this client, while no other call works on it. Errors: kNotFound, those of body.
  template <typename Object, typename Body>
  Result<void> with(calls::Handle handle, Body&& body);
  template <typename Object>
  static Object& as(const HandleTable::Use& use) {
    return static_cast<Object&>(*use.get());
  }
  template <typename Object>
  static std::uint32_t pd_of(const Object& object) {
    return as<ClientPd>(object.pd).pd->number();
  }
  Result<void> destroy(const std::shared_ptr<ClientObject>& object, bool when_unbound);
  template <typename Request>
  Result<std::shared_ptr<ClientMr>> region_of(const Request& m);
  /// The station behind an address, asked for if nobody knows it yet. Errors: kNotFound.
  [[nodiscard]] Result<std::uint64_t> station_of(const Gid& gid);
  /// The queue pair that terms name, which must be of a service that the endpoint's port space has. Errors: kNotFound,
  /// kInvalidParameter.
  [[nodiscard]] Result<hw::QpType> type_of_terms(const calls::ConnectionTerms& terms, cm::PortSpace space,
                                                 std::uint32_t& qpn);
  /// A region whose event has been read.
  void settle(calls::Handle region);
  [[nodiscard]] Result<QpConnection> connection_of(const calls::ModifyQp& m, hw::QpType type);

  KernelDevice& kernel_;
  const bool trusted_;
  const AddressSpace memory_;
  const std::shared_ptr<DeviceLife> life_;
  const std::shared_ptr<Account> account_;
  std::shared_ptr<EventChannel> first_channel_;
  calls::Handle first_channel_handle_{};
  std::shared_ptr<DeviceSource> device_events_;
  SharedRegions regions_;  ///< Outlives the objects
  HandleTable handles_;
  SleepLock open_lock_;
  std::optional<std::uint32_t> uar_;
  Charge uar_charge_;
  SharedRegion status_;
  std::atomic<std::uint32_t> calls_{};  ///< Under way
  std::atomic<bool> closed_{};
};

// For the files of the calls.

/// Also when the thread is ended by its machine in the middle of the call.
class Client::UnderWay {
 public:
  explicit UnderWay(Client& client) : client_(client) { ++client_.calls_; }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
  ~UnderWay() {
    if (--client_.calls_ == 0 && client_.closed_) client_.kernel_.device().wake();
  }

 private:
  Client& client_;
};

template <typename Object, typename Body>
Result<void> Client::with(calls::Handle handle, Body&& body) {
  auto found = handles_.find(handle, Object::kKind);
  if (!found) return found.error();
  const auto object = found.take();
  const SleepLock::Guard guard(object->lock());
  if (!guard) return Error::kDeviceFailed;
  // It may have ended while this call waited for it.
  if (!handles_.find(handle, Object::kKind)) return Error::kNotFound;
  return body(static_cast<Object&>(*object));
}

}  // namespace rnic::kmd
