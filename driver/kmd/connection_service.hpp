#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>

#include "driver/cm/manager.hpp"
#include "driver/kmd/event_channel.hpp"
#include "driver/kmd/port_tables.hpp"

namespace rnic::kmd {

class KernelDevice;

/// The connection manager of a host, for the clients of its kernel driver and for the agent that carries its datagrams
/// (driver/gsi). Thread safe; lets no time pass.
class ConnectionService final : private cm::Manager::Surroundings {
 public:
  /// `kernel` outlives it.
  explicit ConnectionService(KernelDevice& kernel);
  ConnectionService(const ConnectionService&) = delete;
  ConnectionService& operator=(const ConnectionService&) = delete;
  ~ConnectionService() override;

  // For clients: wishes as those of cm::Manager, at this moment. Errors: also kNotSupported (create: there is no
  // agent), kDeviceFailed (connect: there is none any more).

  [[nodiscard]] Result<cm::EndpointId> create();
  /// From now on events of it are announced in `channel`, as events of the object `handle`; those that wait already,
  /// too. Errors: kOutOfMemory.
  [[nodiscard]] Result<void> announce(cm::EndpointId id, calls::Handle handle, std::shared_ptr<EventChannel> channel);
  void destroy(cm::EndpointId id);
  [[nodiscard]] Result<std::uint16_t> bind(cm::EndpointId id, cm::PortSpace space, const Gid& address,
                                           std::uint16_t port);
  [[nodiscard]] Result<void> listen(cm::EndpointId id, std::uint32_t backlog,
                                    std::uint8_t services = cm::kEveryService);
  [[nodiscard]] Result<void> connect(cm::EndpointId id, const cm::ConnectSpec& spec, bool datagram);
  [[nodiscard]] Result<void> accept(cm::EndpointId id, const cm::AcceptSpec& spec);
  [[nodiscard]] Result<void> reject(cm::EndpointId id, std::span<const std::uint8_t> data);
  [[nodiscard]] Result<void> establish(cm::EndpointId id);
  [[nodiscard]] Result<void> disconnect(cm::EndpointId id);
  [[nodiscard]] Result<void> post(cm::EndpointId id, const cm::Event& event);
  /// Announced once more if others wait behind it.
  [[nodiscard]] cm::Event take_event(cm::EndpointId id);
  [[nodiscard]] Result<cm::Facts> facts(cm::EndpointId id);
  /// As cm::Manager::remembers.
  [[nodiscard]] bool remembers(std::uint32_t qpn);
  /// The device says so of a queue pair.
  void communication_established(std::uint32_t qpn);

  /// Own address from which a peer is reached, and its place in the table: `wish` if it is one of the port's, any if it
  /// is all zero. Errors: kNotFound.
  struct Source {
    Gid address{};
    std::uint16_t index{};
  };
  [[nodiscard]] Result<Source> source_for(const Gid& remote, const Gid& wish) const;

  // For the agent.

  struct Outgoing {
    Gid local{};
    Gid remote{};
    std::uint64_t mac{};
    cm::Mad mad{};
  };
  /// There is one, which sends and receives from now on, or no longer does.
  void attach(bool attached);
  /// The next datagram to send.
  [[nodiscard]] std::optional<Outgoing> next_outgoing();
  void receive(const Gid& local, const Gid& remote, std::span<const std::uint8_t> mad);
  /// Does what is due. Returns in how many nanoseconds something will be; kForever: nothing waits for time.
  std::uint64_t run_timers();
  /// The device has failed: all connections are over.
  void lose_device();

  [[nodiscard]] cm::Counters counters();
  [[nodiscard]] std::size_t endpoints();
  [[nodiscard]] cm::Manager::Held held();

 private:
  /// Who is told of an endpoint.
  struct Announcement {
    std::shared_ptr<EventChannel> channel;
    PendingEvent place;
  };
  class Call;
  static constexpr std::size_t kMostOutgoing = 1024;

  void send(const cm::Gid& local, const cm::Gid& remote, const cm::Mad& mad) override;
  void tell(cm::EndpointId endpoint) override;
  [[nodiscard]] std::uint64_t random() override;
  [[nodiscard]] bool is_own(const cm::Gid& gid) override;
  [[nodiscard]] bool is_in_partition(std::uint16_t pkey) override;

  KernelDevice& kernel_;
  std::mutex mutex_;  ///< Guards all below
  cm::Manager manager_;
  std::unordered_map<cm::EndpointId, std::unique_ptr<Announcement>> announcements_;
  std::deque<Outgoing> outgoing_;
  bool attached_ = false;
  bool wake_ = false;  ///< Somebody has something to do
};

}  // namespace rnic::kmd
