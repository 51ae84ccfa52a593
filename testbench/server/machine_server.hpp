#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "testbench/guest/guest_host.hpp"
#include "testbench/server/call_threads.hpp"
#include "testbench/server/host_server.hpp"
#include "testbench/server/memory_recorder.hpp"
#include "testbench/server/outside/outside_port.hpp"
#include "testbench/server/pace.hpp"
#include "testbench/server/poller.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

class Overseers;

struct MachineServerOptions {
  std::vector<FrameSocketOptions> sockets;          ///< At the free ends of the world, in their order
  std::string folder;                               ///< Of the sockets, one a host: host0, host1, ...
  std::vector<std::vector<kmd::Gid>> gids;          ///< Of each host, beside its link-local one
  ProcessQuota quota{};                             ///< Of each process on a host
  std::set<std::size_t> guests;                     ///< Hosts that are guests' (docs/guest.md), by number
  bool late_entries = false;                        ///< Guests see an entry's phase before the rest of it
  std::uint64_t mtu{};                              ///< Of every port, bytes; 0: what its device can
  bool paused = false;                              ///< Time stands still until the first pause()
  std::function<nlohmann::ordered_json()> figures;  ///< Answers the question "figures" at the control socket
  std::function<void(nlohmann::ordered_json)> run;  ///< Takes what the line "run JSON" there says
  MemoryHelpers* helpers = nullptr;  ///< For the memory of processes; outlives the server. Null: it is out of reach
  EventLogWriter* log = nullptr;     ///< Hears all that comes from outside, if it is there; outlives the server
};

/// A world that runs by itself, for processes that come to its hosts (docs/server.md), or once more as a log says
/// (EventLogReplay).
///
/// Simulated time runs as fast as it can while something is under way. With nothing under way but deadlines (timers of
/// the NICs, and instants that processes wait for) it goes no faster than the time outside, and with nothing at all it
/// stands still; in both cases the thread
/// sleeps until a process, or somebody at a socket, speaks. Where there are sockets or guests simulated time goes as
/// the time outside does while nothing is under way, and no faster while something is.
class MachineServer {
 public:
  /// Before the simulation has begun; `world` outlives it. `log` takes lines for the user.
  MachineServer(World& world, MachineServerOptions options, std::function<void(const std::string&)> log);
  MachineServer(const MachineServer&) = delete;
  MachineServer& operator=(const MachineServer&) = delete;
  ~MachineServer();

  /// How much simulated time passes between two looks at the processes.
  static constexpr std::uint64_t kSlicePs = 100'000;

  /// Brings the hosts up. Throws std::runtime_error.
  void bring_up();
  /// From then on processes can come, and frames. Throws as Listener and OutsidePort::open.
  void listen();
  /// Serves until stop is called. Throws what the simulation does; then nothing goes on but `give_up`.
  void serve();
  /// Says goodbye to all processes, takes back what they had, and shuts the hosts down.
  void finish();
  /// The same for a simulation that cannot go on, and why: the processes are told, and nothing else.
  void give_up(const std::string& why) noexcept;

  /// For who replays a log: lets so much simulated time pass. `serve` does so by itself.
  void advance(std::uint64_t ps);
  /// Called when simulated time has passed, before anything else happens. Empty: nothing.
  void set_after_advance(std::function<void()> look) { after_advance_ = std::move(look); }

  /// For what `poller` watches.
  void stop() { stopped_ = true; }
  void pause() { paused_ = !paused_; }
  [[nodiscard]] bool paused() const { return paused_; }
  [[nodiscard]] Poller& poller() { return poller_; }
  /// `look` is called again and again, at least every `period_ns` of outside time.
  void look_now_and_then(std::uint64_t period_ns, std::function<void()> look);

  /// Outside time that has passed while simulated time stood still.
  [[nodiscard]] std::uint64_t stood_still_ns() const { return stood_still_ns_; }
  [[nodiscard]] CallThreads& calls() { return calls_; }
  [[nodiscard]] World& world() { return world_; }
  [[nodiscard]] const MachineServerOptions& options() const { return options_; }
  [[nodiscard]] EventLogWriter* event_log() { return options_.log; }
  /// Whether a process has had the queue pair of this index on this host; others are the kernel drivers'. All of a
  /// guest count as those of its processes.
  [[nodiscard]] bool had(std::size_t host, std::uint8_t qp) const;
  /// Those that are not guests'.
  [[nodiscard]] const std::vector<std::unique_ptr<HostServer>>& hosts() const { return hosts_; }
  [[nodiscard]] const std::vector<std::unique_ptr<GuestHost>>& guests() const { return guests_; }
  /// Where frames come from outside, and go to it.
  [[nodiscard]] const std::vector<std::unique_ptr<OutsidePort>>& sockets() const { return sockets_; }

 private:
  void introduce(HostServer& host);
  [[nodiscard]] const std::vector<kmd::Gid>& gids(std::size_t index) const;
  /// Somebody is outside who lives in the time there.
  [[nodiscard]] bool outsiders() const { return !options_.sockets.empty() || !guests_.empty(); }
  void begin_networks();
  void open_sockets();
  void move_on();
  void run_job(const std::function<void()>& job);
  void run_until(const std::function<bool()>& done);
  void rest();
  void wait_outside(std::optional<std::uint64_t> deadline_ns);
  /// `ahead_ns`: as much later than simulated time and what it has stood still.
  void show(std::uint64_t still_since, std::uint64_t ahead_ns = 0);
  void show_simulated(const SimulatedInstant& now);
  [[nodiscard]] std::uint64_t awaited_ns() const;
  bool take_all();
  [[nodiscard]] bool moving() const;
  void look();

  World& world_;
  const MachineServerOptions options_;
  const std::function<void(const std::string&)> log_;
  Poller poller_;
  CallThreads calls_;
  std::vector<std::unique_ptr<HostServer>> hosts_;
  std::vector<std::unique_ptr<GuestHost>> guests_;
  std::vector<std::unique_ptr<OutsidePort>> sockets_;
  Pace pace_;
  std::vector<std::unique_ptr<MemoryRecorder>> recorders_;
  std::unique_ptr<Overseers> overseers_;
  std::function<void()> after_advance_;
  bool stopped_ = false;
  bool paused_ = false;
  bool flushed_ = true;  ///< Nothing has moved since the files of the run were
  std::uint64_t moved_at_ns_ = 0;
  std::uint64_t stood_still_ns_ = 0;  ///< Outside time that has passed while simulated time stood still
  std::function<void()> look_;
  std::uint64_t look_period_ns_ = 0;
  std::uint64_t looked_at_ = 0;
};

}  // namespace rnic::testbench
