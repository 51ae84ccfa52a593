#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "driver/kmd/kernel_device.hpp"
#include "testbench/host.hpp"
#include "testbench/management_thread.hpp"
#include "testbench/network_thread.hpp"
#include "testbench/server/call_threads.hpp"
#include "testbench/server/listener.hpp"
#include "testbench/server/poller.hpp"
#include "testbench/server/memory_helpers.hpp"
#include "testbench/server/process_book.hpp"
#include "testbench/server/process_quota.hpp"
#include "testbench/server/session.hpp"

namespace rnic::testbench {

class EventLogWriter;

/// A host of the machine, for the processes that come to it: its kernel driver, and their sessions.
class HostServer {
 public:
  using Log = std::function<void(const std::string&)>;

  /// `host`, `poller`, `calls`, `events` and `helpers` outlive it; what processes say goes to `events`, if there is
  /// one. `helpers` reach into the memory of processes; null: nobody does.
  HostServer(Host& host, Poller& poller, CallThreads& calls, Log log, EventLogWriter* events, MemoryHelpers* helpers);
  HostServer(const HostServer&) = delete;
  HostServer& operator=(const HostServer&) = delete;
  ~HostServer();

  /// On a thread of simulated time: brings the device up. Throws std::runtime_error.
  void bring_up(kmd::KernelOptions options, const ProcessQuota& quota);
  /// The same: it is found on its network from now on, and finds others there; `settled` as of ip::Network. Throws
  /// std::runtime_error.
  void begin_network(std::set<ip::Address> settled);
  /// Calls of processes that wait for nothing but an answer from the network.
  [[nodiscard]] std::size_t searching() const { return network_ ? network_->network().searching() : 0; }
  /// The same: shuts it down, when there are no sessions any more.
  void shut_down() {
    network_.reset();
    management_.reset();
    kernel_.reset();
  }
  /// From now on processes can come, at this socket. Throws as Listener.
  void listen(const std::string& path);

  [[nodiscard]] const std::string& socket() const { return listener_->path(); }
  [[nodiscard]] Host& host() { return host_; }
  [[nodiscard]] SimDevice& device() { return host_.device(); }
  [[nodiscard]] kmd::KernelDevice& kernel() { return *kernel_; }
  [[nodiscard]] Poller& poller() { return poller_; }
  [[nodiscard]] CallThreads& calls() { return calls_; }
  [[nodiscard]] const std::list<std::shared_ptr<Session>>& sessions() const { return sessions_; }
  /// One that has not come to the socket.
  void add(std::shared_ptr<Session> session) { sessions_.push_back(std::move(session)); }
  /// The processes that have come to it.
  [[nodiscard]] ProcessBook& book() { return book_; }
  [[nodiscard]] const ProcessBook& book() const { return book_; }
  /// Of a process: that of all of its connections. Throws std::bad_alloc.
  [[nodiscard]] std::shared_ptr<kmd::Account> account_of(std::int32_t process);
  /// For the memory of a process. Null: none can be had.
  [[nodiscard]] std::unique_ptr<MemoryHelpers::Helper> start_helper(std::int32_t process) {
    return helpers_ != nullptr ? helpers_->start(process) : nullptr;
  }
  void log(const std::string& line) { log_(host_.basename() + (": " + line)); }

  /// What a session may map of memory at `at`; from now on it is told what the device writes there. Nothing: it is no
  /// memory of the host. Throws as model::HostMemory::share.
  std::optional<model::HostMemory::Shared> share(const std::uint8_t* at, std::size_t bytes, Session& session);

  /// Takes what processes have brought. Returns whether there was anything.
  bool take_all();
  /// As of Session, the latest of all.
  [[nodiscard]] std::uint64_t awaited_ns() const;
  void show_simulated(const SimulatedInstant& now);
  /// What was shown last.
  [[nodiscard]] const SimulatedInstant& simulated() const { return simulated_; }
  void hold_clocks();
  /// Behind a while of simulated time: as Session::show, and who waits is woken.
  void show(std::uint64_t now_ns, std::uint64_t still_since);
  [[nodiscard]] bool fall_asleep();
  void wake_up();
  void end_all();

 private:
  void accept();
  void serve_interrupts();
  void written(const std::uint8_t* at);

  Host& host_;
  Poller& poller_;
  CallThreads& calls_;
  const Log log_;
  EventLogWriter* const events_;
  MemoryHelpers* const helpers_;
  std::unique_ptr<kmd::KernelDevice> kernel_;
  std::unique_ptr<ManagementThread> management_;
  std::unique_ptr<NetworkThread> network_;
  std::unique_ptr<Listener> listener_;
  Poller::Watch listener_watch_{};
  ProcessBook book_;
  std::list<std::shared_ptr<Session>> sessions_;
  std::unordered_map<std::uint64_t, std::weak_ptr<Session>> rings_;  ///< By number of the page: who has mapped it
  kmd::Quota quota_;
  std::unordered_map<std::int32_t, std::weak_ptr<kmd::Account>> accounts_;  ///< By process
  SimulatedInstant simulated_;
  std::uint64_t seen_wakes_ = 0;
  std::int32_t forbidden_ = 0;  ///< The last memory that could not be reached
};

}  // namespace rnic::testbench
