#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "driver/kmd/client_object.hpp"
#include "driver/kmd/connection_service.hpp"
#include "driver/kmd/event_source.hpp"
#include "driver/kmd/handle_table.hpp"
#include "driver/kmd/kernel_cq.hpp"
#include "driver/kmd/kernel_device.hpp"
#include "driver/kmd/kernel_fast_mr.hpp"
#include "driver/kmd/kernel_mr.hpp"
#include "driver/kmd/kernel_mw.hpp"
#include "driver/kmd/kernel_qp.hpp"
#include "driver/kmd/kernel_srq.hpp"
#include "driver/kmd/protection_domain.hpp"
#include "driver/kmd/shared_region.hpp"

// What stands behind the handles of a client: an object of the kernel driver, what it needs, the memory of it that the
// client sees, and where its events go.

namespace rnic::kmd {

struct ClientChannel final : ClientObject {
  static constexpr auto kKind = calls::ObjectKind::kChannel;
  explicit ClientChannel(Machine& machine) : ClientObject(machine, kKind) {}
  Result<void> destroy(bool) override { return {}; }

  const std::shared_ptr<EventChannel> channel = std::make_shared<EventChannel>();
};

struct ClientPd final : ClientObject {
  static constexpr auto kKind = calls::ObjectKind::kPd;
  ClientPd(Machine& machine, std::shared_ptr<ProtectionDomain> domain)
      : ClientObject(machine, kKind), pd(std::move(domain)) {}
  Result<void> destroy(bool) override { return {}; }

  const std::shared_ptr<ProtectionDomain> pd;
};

/// An object of the kernel driver that is destroyed by its destroy().
template <typename Object, calls::ObjectKind Kind>
struct ClientOf : ClientObject {
  static constexpr auto kKind = Kind;
  explicit ClientOf(Machine& machine) : ClientObject(machine, Kind) {}
  Result<void> destroy(bool) override { return object->destroy(); }

  std::unique_ptr<Object> object;
};

struct ClientCq final : ClientOf<KernelCq, calls::ObjectKind::kCq>, EventSource {
  ClientCq(KernelDevice& owner, const void* reader, std::shared_ptr<EventChannel> completions,
           std::shared_ptr<EventChannel> others)
      : ClientOf(owner.device()),
        EventSource({hw::EqeType::kCompletion, hw::EqeType::kCqError}, owner.device(), reader, std::move(completions),
                    std::move(others)),
        kernel(owner) {}
  Result<void> destroy(bool) override {
    auto done = object->destroy();
    if (done) kernel.events().unsubscribe(EventTable::Of::kCq, object->cqn());
    return done;
  }

  KernelDevice& kernel;
  HandleTable::Use channel;
  SharedRegion ring;
  SharedRegion next_ring;
};

struct ClientSrq final : ClientOf<KernelSrq, calls::ObjectKind::kSrq>, EventSource {
  ClientSrq(KernelDevice& owner, const void* reader, const std::shared_ptr<EventChannel>& channel)
      : ClientOf(owner.device()),
        EventSource({hw::EqeType::kSrqLimit, hw::EqeType::kSrqError}, owner.device(), reader, channel, channel),
        kernel(owner) {}
  Result<void> destroy(bool) override {
    auto done = object->destroy();
    if (done) kernel.events().unsubscribe(EventTable::Of::kSrq, object->srqn());
    return done;
  }

  KernelDevice& kernel;
  HandleTable::Use pd;
  SharedRegion ring;
  std::shared_ptr<DmaMemory> prepared;
  unsigned prepared_log_depth{};  ///< 0: none is
  SharedRegion prepared_ring;
};

struct ClientQp final : ClientOf<KernelQp, calls::ObjectKind::kQp>, EventSource {
  ClientQp(KernelDevice& owner, const void* reader, const std::shared_ptr<EventChannel>& channel)
      : ClientOf(owner.device()),
        EventSource({hw::EqeType::kQpFatal, hw::EqeType::kQpRequestError, hw::EqeType::kQpAccessError,
                     hw::EqeType::kCommEstablished, hw::EqeType::kSqDrained, hw::EqeType::kLastWqeReached},
                    owner.device(), reader, channel, channel),
        kernel(owner) {}
  Result<void> destroy(bool leave_groups) override {
    auto done = leave_groups ? object->leave_groups() : Result<void>();
    if (done) done = object->destroy();
    if (done) kernel.events().unsubscribe(EventTable::Of::kQp, object->qpn());
    return done;
  }

  /// A packet of the peer stands for the message that it is ready, if that was lost.
  void on_event(const hw::Eqe& eqe) override {
    if (eqe.event_type == static_cast<std::uint8_t>(hw::EqeType::kCommEstablished))
      kernel.connections().communication_established(eqe.number);
    EventSource::on_event(eqe);
  }

  KernelDevice& kernel;
  HandleTable::Use pd;
  HandleTable::Use send_cq;
  HandleTable::Use receive_cq;
  HandleTable::Use srq;
  SharedRegion memory;
  /// As the client named them last.
  std::uint16_t pkey_index{};
  std::uint16_t sgid_index{};
  std::uint16_t second_sgid_index{};
};

struct ClientMr final : ClientOf<KernelMr, calls::ObjectKind::kMr> {
  /// A command for it that nobody waits for. Until it is answered only destroy does something with the region. One that
  /// has not come to be, or has ended, goes with its handle when the client reads the event that says so.
  class Command final : public AdminQueue::Later {
   public:
    enum class Of : std::uint8_t { kCreation, kDestruction };
    Command(Of of, std::shared_ptr<ClientMr> region) : of_(of), machine_(region->machine), region_(std::move(region)) {}
    void on_answer(const Result<AdminQueue::Reply>& answer) override;
    /// The device was not asked after all.
    void forget() {
      region_.reset();
      answered_ = true;
    }
    /// From then on nothing of the client is touched by it.
    [[nodiscard]] bool answered() const { return answered_; }

   private:
    const Of of_;
    Machine& machine_;
    std::shared_ptr<ClientMr> region_;
    std::atomic<bool> answered_{};
  };

  ClientMr(Machine& owner, HandleTable& table, std::shared_ptr<EventChannel> events)
      : ClientOf(owner), machine(owner), handles(table), channel(std::move(events)) {}
  ~ClientMr() override { channel->remove(place); }

  Result<void> destroy(bool when_unbound) override {
    if (busy() && !object->wait_for([this] { return !busy(); })) return Error::kDeviceFailed;
    auto done = object->destroy();
    if (done || !when_unbound || done.error() != Error::kBusy) return done;
    KernelMr::dispose(std::move(object));
    return {};
  }

  [[nodiscard]] bool busy() const { return command != nullptr && !command->answered(); }
  /// `number`: what the event says that tells the answer. Throws std::bad_alloc.
  std::shared_ptr<Command> begin(Command::Of of, std::uint32_t number, std::shared_ptr<ClientMr> self) {
    command = std::make_shared<Command>(of, std::move(self));
    channel->remove(place);
    place.event = {.type = static_cast<std::uint8_t>(calls::KernelEvent::kRegion), .number = number, .object = handle};
    return command;
  }
  /// Unless it is ending already.
  void end_handle() {
    if (handles.begin_end(handle, kKind)) handles.end(*this);
  }

  Machine& machine;
  HandleTable& handles;
  const std::shared_ptr<EventChannel> channel;
  PendingEvent place;
  HandleTable::Use pd;
  MrSpec spec;
  calls::Handle handle{};
  std::shared_ptr<Command> command;  ///< The last one
  std::atomic<bool> over{};          ///< Since its answer
};

struct ClientMw final : ClientOf<KernelMw, calls::ObjectKind::kMw> {
  using ClientOf::ClientOf;
  HandleTable::Use pd;
};

struct ClientFastMr final : ClientOf<KernelFastMr, calls::ObjectKind::kFastMr> {
  using ClientOf::ClientOf;
  HandleTable::Use pd;
};

/// An endpoint of the connection manager. Its events wait there; that they do waits in its channel.
struct ClientEndpoint final : ClientObject {
  static constexpr auto kKind = calls::ObjectKind::kEndpoint;
  ClientEndpoint(Machine& machine, ConnectionService& service, cm::EndpointId endpoint)
      : ClientObject(machine, kKind), connections(service), id(endpoint) {}
  ~ClientEndpoint() override { static_cast<void>(ClientEndpoint::destroy(false).ok()); }
  Result<void> destroy(bool) override {
    connections.destroy(id);
    return {};
  }

  ConnectionService& connections;
  const cm::EndpointId id;
  cm::PortSpace space{};
  calls::Handle channel_handle{};
  HandleTable::Use channel;
  /// As resolved; all zero: not yet.
  Gid local{};
  Gid remote{};
  std::uint16_t remote_port{};
};

}  // namespace rnic::kmd
