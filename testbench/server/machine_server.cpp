#include "testbench/server/machine_server.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <exception>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>

#include "testbench/server/event_log_writer.hpp"
#include "testbench/server/overseers.hpp"

namespace rnic::testbench {
namespace {

/// Simulated time in which every process's objects can be taken back.
constexpr model::Picoseconds kGoodbye = 1'000'000'000'000;
/// 256 bytes are 1 as ibv_mtu, and have 9 bits.
constexpr int kMtuBits = 8;

std::uint64_t station_of(std::size_t host) { return 0x0200'0000'0001 + host; }

std::uint64_t outside_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

}  // namespace

MachineServer::MachineServer(World& world, MachineServerOptions options, std::function<void(const std::string&)> log)
    : world_(world), options_(std::move(options)), log_(std::move(log)), paused_(options_.paused) {
  if (options_.sockets.size() != world.options().free_ends)
    throw std::invalid_argument("a machine has a socket for each free end");
  if (!options_.guests.empty() && options_.log != nullptr)
    throw std::invalid_argument("what a guest does is in no event log");
  for (std::size_t i = 0; i < world.hosts(); ++i) {
    if (options_.guests.contains(i)) {
      guests_.push_back(std::make_unique<GuestHost>(world.host(i), poller_, calls_, log_));
      guests_.back()->nic().checker().set_late_entries(options_.late_entries);
      continue;
    }
    hosts_.push_back(
        std::make_unique<HostServer>(world.host(i), poller_, calls_, log_, options_.log, options_.helpers));
    world.host(i).root_complex().set_before_write([this] {
      for (const auto& host : hosts_) host->host().root_complex().finish_writes();
    });
  }
  for (std::size_t i = 0; options_.log != nullptr && i < world.hosts(); ++i)
    recorders_.push_back(std::make_unique<MemoryRecorder>(world.host(i), *options_.log));
}

MachineServer::~MachineServer() {
  for (const auto& host : hosts_) host->host().root_complex().set_before_write({});
  // They keep what belongs to the hosts.
  calls_.forget();
}

void MachineServer::bring_up() {
  advance(kSlicePs);  // events are heard from the first delta cycle on
  for (const auto& guest : guests_) guest->power_on();
  run_job([this] {
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      kmd::KernelOptions options;
      options.mac = station_of(hosts_[i]->host().index());
      options.gids = gids(hosts_[i]->host().index());
      if (options_.mtu != 0) options.mtu = static_cast<std::uint32_t>(std::bit_width(options_.mtu) - kMtuBits);
      hosts_[i]->bring_up(std::move(options), options_.quota);
    }
    for (const auto& host : hosts_) introduce(*host);
    if (outsiders()) begin_networks();
  });
  open_sockets();
}

void MachineServer::listen() {
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    const auto record = [this, i](std::span<const std::uint8_t> frame) {
      if (options_.log != nullptr) options_.log->frame(i, frame);
    };
    sockets_[i]->open(options_.sockets[i], poller_, record,
                      [this, i](const std::string& line) { log_("socket " + std::to_string(i) + ": " + line); });
  }
  for (const auto& host : hosts_) host->listen(options_.folder + "/host" + std::to_string(host->host().index()));
  for (const auto& guest : guests_) guest->listen(options_.folder + "/guest" + std::to_string(guest->host().index()));
  overseers_ = std::make_unique<Overseers>(*this, options_.folder + "/control");
}

const std::vector<kmd::Gid>& MachineServer::gids(std::size_t index) const {
  static const std::vector<kmd::Gid> kNone;
  return index < options_.gids.size() ? options_.gids[index] : kNone;
}

bool MachineServer::had(std::size_t host, std::uint8_t qp) const {
  const auto is = [host](const auto& one) { return one->host().index() == host; };
  return std::any_of(hosts_.begin(), hosts_.end(), [&](const auto& one) { return is(one) && one->book().had(qp); }) ||
         std::any_of(guests_.begin(), guests_.end(), is);
}

/// It learns where frames for the addresses of the others go.
void MachineServer::introduce(HostServer& host) {
  const auto learn = [&host](const kmd::Gid& gid, std::size_t index) {
    if (!host.kernel().port_tables().add_neighbour(gid, station_of(index)))
      throw std::runtime_error("the hosts have too many addresses");
  };
  for (const auto& other : hosts_) {
    if (other.get() == &host) continue;
    const kmd::PortTables& tables = other->kernel().port_tables();
    for (std::size_t i = 0; i < tables.gids(); ++i) {
      if (const auto gid = tables.gid(i)) learn(*gid, other->host().index());
    }
  }
  for (const auto& guest : guests_) {
    for (const kmd::Gid& gid : gids(guest->host().index())) learn(gid, guest->host().index());
  }
}

/// The hosts learn to speak to those outside, and to guests.
void MachineServer::begin_networks() {
  std::set<kmd::Gid> settled;
  for (const auto& host : hosts_) {
    const kmd::PortTables& tables = host->kernel().port_tables();
    for (std::size_t place = 0; place < tables.gids(); ++place) {
      if (const auto gid = tables.gid(place)) settled.insert(*gid);
    }
  }
  for (const auto& host : hosts_) host->begin_network(settled);
}

void MachineServer::open_sockets() {
  std::set<std::uint64_t> stations;
  for (std::size_t i = 0; i < world_.hosts(); ++i) stations.insert(station_of(i));
  for (std::size_t i = 0; i < options_.sockets.size(); ++i) {
    const auto plug = world_.plug(world_.hosts() + i);
    sockets_.push_back(std::make_unique<OutsidePort>(OutsidePort::End{plug.wire, plug.end}, stations));
  }
}

/// On a thread of simulated time; what it throws is thrown here.
void MachineServer::run_job(const std::function<void()>& job) {
  std::exception_ptr failure;
  bool done = false;
  calls_.run([&] {
    try {
      job();
    } catch (const sc_core::sc_unwind_exception&) {
      throw;
    } catch (...) {
      failure = std::current_exception();
    }
    done = true;
  });
  run_until([&] { return done; });
  if (failure) std::rethrow_exception(failure);
}

void MachineServer::run_until(const std::function<bool()>& done) {
  const model::Picoseconds end = model::now_ps() + kGoodbye;
  while (!done()) {
    if (model::now_ps() > end) throw std::runtime_error("the machine does not come to an end with what it was to do");
    advance(kSlicePs);
  }
}

void MachineServer::advance(std::uint64_t ps) {
  // What the simulation does with what came from outside may be the end of this process.
  if (options_.log != nullptr) options_.log->write_out();
  // What a process finds written is not later than what it reads of time then.
  show_simulated({.now_ns = world_.now_ns() + ps / model::kPicosecondsPerNanosecond, .still_since = 0, .most_ns = 0});
  sc_core::sc_start(model::to_sc_time(ps), sc_core::SC_RUN_TO_TIME);
  if (after_advance_) after_advance_();
}

/// Calls that wait for an answer from outside move nothing.
bool MachineServer::moving() const {
  std::size_t searching = 0;
  for (const auto& host : hosts_) searching += host->searching();
  const bool come = std::any_of(sockets_.begin(), sockets_.end(), [](const auto& socket) { return socket->waits(); });
  return come || calls_.under_way() != searching || world_.moving() || sc_core::sc_pending_activity_at_current_time();
}

bool MachineServer::take_all() {
  bool any = false;
  // What processes and guests have rung before somebody outside sent a frame is seen when the frame has been.
  for (const auto& socket : sockets_) any = socket->take() || any;
  for (const auto& host : hosts_) any = host->take_all() || any;
  for (const auto& guest : guests_) guest->take();
  return any;
}

void MachineServer::show(std::uint64_t still_since, std::uint64_t ahead_ns) {
  for (const auto& host : hosts_) host->show(world_.now_ns() + stood_still_ns_ + ahead_ns, still_since);
}

void MachineServer::show_simulated(const SimulatedInstant& now) {
  for (const auto& host : hosts_) host->show_simulated(now);
}

/// How much simulated time processes wait for; 0: none.
std::uint64_t MachineServer::awaited_ns() const {
  std::uint64_t latest = 0;
  for (const auto& host : hosts_) latest = std::max(latest, host->awaited_ns());
  const std::uint64_t now = world_.now_ns();
  return latest > now ? latest - now : 0;
}

void MachineServer::look_now_and_then(std::uint64_t period_ns, std::function<void()> look) {
  look_period_ns_ = period_ns;
  look_ = std::move(look);
}

void MachineServer::look() {
  if (!look_ || outside_ns() - looked_at_ < look_period_ns_) return;
  looked_at_ = outside_ns();
  look_();
}

void MachineServer::serve() {
  for (;;) {
    poller_.take(0);
    look();
    if (stopped_) return;
    if (paused_) {
      wait_outside({});
      continue;
    }
    take_all();
    if (moving()) {
      move_on();
    } else {
      rest();
      pace_.begin(outside_ns());
    }
  }
}

void MachineServer::move_on() {
  flushed_ = false;
  moved_at_ns_ = outside_ns();
  if (outsiders()) {
    const std::uint64_t early_ns = pace_.early_ns(moved_at_ns_);
    if (early_ns != 0) return wait_outside(early_ns);
    pace_.passes(kSlicePs / model::kPicosecondsPerNanosecond);
  }
  advance(kSlicePs);
  show(0);
}

/// Nothing is under way but what has a deadline.
void MachineServer::rest() {
  bool left = false;
  for (const auto& host : hosts_) left = host->fall_asleep() || left;
  if (!left) {
    std::optional<std::uint64_t> deadline_ps;
    if (sc_core::sc_pending_activity()) deadline_ps = sc_core::sc_time_to_pending_activity().value();
    std::optional<std::uint64_t> deadline_ns;
    if (deadline_ps) deadline_ns = *deadline_ps / model::kPicosecondsPerNanosecond + 1;
    if (const std::uint64_t awaited = awaited_ns(); awaited != 0)
      deadline_ns = std::min(deadline_ns.value_or(awaited), awaited);
    // Who is outside lives in the time there: the machine has the same between one frame and the next.
    const bool passes = deadline_ns || outsiders();
    const std::uint64_t most_ns = deadline_ns.value_or(~std::uint64_t{0});
    const std::uint64_t since = outside_ns();
    show(since);
    show_simulated({.now_ns = world_.now_ns(), .still_since = passes ? since : 0, .most_ns = most_ns});
    wait_outside(deadline_ns);
    // Then at once: what the simulation does from now on takes longer outside than in it.
    for (const auto& host : hosts_) host->hold_clocks();
    const std::uint64_t passed = outside_ns() - since;
    show(0, passed);
    const std::uint64_t begin = world_.now_ns();
    if (passes) {
      const std::uint64_t ps = std::min(passed, most_ns) * model::kPicosecondsPerNanosecond;
      if (options_.log != nullptr) options_.log->rest(ps);
      advance(ps);
    } else {
      show_simulated({.now_ns = begin, .still_since = 0, .most_ns = 0});
    }
    stood_still_ns_ += passed - std::min(passed, world_.now_ns() - begin);
  }
  for (const auto& host : hosts_) host->wake_up();
}

/// Who stops a program to look at it finds in the files what has been by then.
void MachineServer::wait_outside(std::optional<std::uint64_t> deadline_ns) {
  constexpr std::uint64_t kStillNs = 200'000'000;
  if (look_) deadline_ns = std::min(deadline_ns.value_or(look_period_ns_), look_period_ns_);
  poller_.take(flushed_ ? deadline_ns : std::min(deadline_ns.value_or(kStillNs), kStillNs));
  if (flushed_ || outside_ns() - moved_at_ns_ < kStillNs) return;
  world_.flush_files();
  flushed_ = true;
}

void MachineServer::finish() {
  overseers_.reset();
  for (const auto& socket : sockets_) socket->close();
  if (options_.log != nullptr) options_.log->finish();
  for (const auto& guest : guests_) guest->end();
  for (const auto& host : hosts_) host->end_all();
  run_until([this] {
    take_all();
    return calls_.under_way() == 0 &&
           std::all_of(hosts_.begin(), hosts_.end(), [](const auto& host) { return host->sessions().empty(); });
  });
  run_job([this] {
    for (const auto& host : hosts_) host->shut_down();
  });
}

void MachineServer::give_up(const std::string& why) noexcept {
  try {
    if (options_.log != nullptr) options_.log->failed(why);
    for (const auto& host : hosts_) host->end_all();
  } catch (const std::exception& error) {
    log_(error.what());
  }
}

}  // namespace rnic::testbench
