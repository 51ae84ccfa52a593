#include "testbench/server/host_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "testbench/app_runner.hpp"
#include "testbench/server/socket_session.hpp"

namespace rnic::testbench {
namespace {

/// Of one process.
constexpr std::ptrdiff_t kMostConnections = 16;

std::uint64_t host_page(const std::uint8_t* at) { return reinterpret_cast<std::uint64_t>(at) / model::kPageBytes; }

}  // namespace

HostServer::HostServer(Host& host, Poller& poller, CallThreads& calls, Log log, EventLogWriter* events,
                       MemoryHelpers* helpers)
    : host_(host), poller_(poller), calls_(calls), log_(std::move(log)), events_(events), helpers_(helpers) {
  host_.root_complex().set_write_tap([this](const std::uint8_t* at) { written(at); });
  host_.device().observe_forbidden([this](std::int32_t memory) {
    if (std::exchange(forbidden_, memory) == memory) return;
    const auto whose = std::find_if(sessions_.begin(), sessions_.end(),
                                    [memory](const auto& session) { return session->memory() == memory; });
    if (whose == sessions_.end()) return;
    this->log(
        fmt::format("process {}: the system does not let this one reach its memory "
                    "(/proc/sys/kernel/yama/ptrace_scope, or it is not dumpable): it can register none",
                    (*whose)->process()));
  });
}

HostServer::~HostServer() {
  host_.root_complex().set_write_tap({});
  host_.device().observe_forbidden({});
}

void HostServer::bring_up(kmd::KernelOptions options, const ProcessQuota& quota) {
  options.find_neighbour = [this](const kmd::Gid& gid) -> Result<std::uint64_t> {
    if (network_ == nullptr) return Error::kNotFound;
    return network_->network().find(gid);
  };
  auto kernel = kmd::KernelDevice::open(host_.device(), options);
  if (!kernel)
    throw std::runtime_error(
        fmt::format("{}: the device does not come up: {}", host_.basename(), describe(kernel.error())));
  kernel_ = kernel.take();
  quota_ = quota.on(kernel_->limits());
  sc_core::sc_spawn_options thread;
  thread.set_stack_size(kAppStackBytes);
  sc_core::sc_spawn([this] { serve_interrupts(); }, sc_core::sc_gen_unique_name("interrupts"), &thread);
  management_ = std::make_unique<ManagementThread>(*kernel_, host_.device());
}

void HostServer::begin_network(std::set<ip::Address> settled) {
  network_ = std::make_unique<NetworkThread>(*kernel_, host_.device(), std::move(settled));
}

/// Puts the device's events where processes find them.
void HostServer::serve_interrupts() {
  while (kernel_ != nullptr) {
    const std::uint64_t seen = host_.device().wake_count();
    kernel_->dispatch_events();
    if (!host_.device().wait(seen, kForever)) return;
  }
}

void HostServer::listen(const std::string& path) {
  listener_ = std::make_unique<Listener>(path);
  listener_watch_ = poller_.add(listener_->descriptor(), [this] { accept(); });
}

void HostServer::accept() {
  while (auto peer = listener_->accept()) {
    if (!peer->process) continue;
    const auto is_of_it = [number = peer->number](const auto& session) { return session->process() == number; };
    if (std::count_if(sessions_.begin(), sessions_.end(), is_of_it) >= kMostConnections) {
      log(fmt::format("process {}: no connection beside its {}", peer->number, kMostConnections));
      continue;
    }
    try {
      sessions_.push_back(SocketSession::open(*this, std::move(*peer), events_));
    } catch (const std::system_error& error) {
      log(fmt::format("a process cannot be taken: {}", error.what()));
    }
  }
}

std::shared_ptr<kmd::Account> HostServer::account_of(std::int32_t process) {
  std::erase_if(accounts_, [](const auto& one) { return one.second.expired(); });
  auto& known = accounts_[process];
  auto account = known.lock();
  if (account == nullptr) known = account = std::make_shared<kmd::Account>(quota_);
  return account;
}

std::optional<model::HostMemory::Shared> HostServer::share(const std::uint8_t* at, std::size_t bytes,
                                                           Session& session) {
  const auto shared = host_.memory().share(at);
  if (shared && bytes != 0) {
    for (std::uint64_t page = host_page(at); page <= host_page(at + bytes - 1); ++page)
      rings_[page] = session.weak_from_this();
  }
  return shared;
}

void HostServer::written(const std::uint8_t* at) {
  const auto found = rings_.find(host_page(at));
  if (found == rings_.end()) return;
  if (const auto session = found->second.lock()) session->written();
}

bool HostServer::take_all() {
  bool any = false;
  for (const auto& session : sessions_) any = session->take() || any;
  if (std::erase_if(sessions_, [](const auto& session) { return session->over(); }) != 0)
    std::erase_if(rings_, [](const auto& ring) { return ring.second.expired(); });
  return any;
}

std::uint64_t HostServer::awaited_ns() const {
  std::uint64_t latest = 0;
  for (const auto& session : sessions_) latest = std::max(latest, session->awaited_ns());
  return latest;
}

void HostServer::show_simulated(const SimulatedInstant& now) {
  simulated_ = now;
  for (const auto& session : sessions_) session->show_simulated(now);
}

void HostServer::hold_clocks() {
  for (const auto& session : sessions_) session->hold_clock();
}

void HostServer::show(std::uint64_t now_ns, std::uint64_t still_since) {
  const bool woken = std::exchange(seen_wakes_, host_.device().wake_count()) != host_.device().wake_count();
  for (const auto& session : sessions_) {
    session->show(now_ns, still_since);
    if (woken) session->wake();
  }
}

bool HostServer::fall_asleep() {
  bool any = false;
  for (const auto& session : sessions_) any = session->fall_asleep() || any;
  return any;
}

void HostServer::wake_up() {
  for (const auto& session : sessions_) session->wake_up();
}

void HostServer::end_all() {
  if (network_ != nullptr) network_->network().stop();
  if (listener_ != nullptr) poller_.remove(listener_->descriptor(), listener_watch_);
  listener_.reset();
  for (const auto& session : sessions_) {
    session->say_goodbye();
    session->end("");
  }
}

}  // namespace rnic::testbench
