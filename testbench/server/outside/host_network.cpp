#include "testbench/server/outside/host_network.hpp"

#include <span>
#include <utility>

#include "model/time.hpp"
#include "model/timed_event.hpp"

namespace rnic::testbench {
namespace {

constexpr int kQuestions = 3;
constexpr model::Picoseconds kBetweenQuestions = 1'000'000'000'000;
/// More of them at once than this are not heard, as by a stack whose queue is full.
constexpr std::size_t kMostHeard = 256;

}  // namespace

HostNetwork::HostNetwork(World::Plug plug) : plug_(plug) {
  sc_core::sc_spawn_options method;
  method.spawn_method();
  method.set_sensitivity(&came_);
  method.dont_initialize();
  sc_core::sc_spawn([this] { serve(); }, sc_core::sc_gen_unique_name("host_network"), &method);
}

HostNetwork::~HostNetwork() { plug_.wire.ears(plug_.end).remove(this); }

void HostNetwork::begin(std::uint64_t mac, std::vector<kmd::Gid> addresses, std::set<kmd::Gid> settled,
                        kmd::PortTables& tables) {
  ip::HostStack::Faces faces;
  faces.send = [this](const ip::Bytes& frame) { plug_.wire.inject(plug_.end, frame); };
  faces.learned = [this, &tables, settled = std::move(settled)](const kmd::Gid& address, std::uint64_t station) {
    if (settled.contains(address)) return;
    // A table that is full keeps what it has; the address is asked for each time.
    static_cast<void>(tables.add_neighbour(address, station).ok());
    learned_.notify(sc_core::SC_ZERO_TIME);
  };
  stack_ = std::make_unique<ip::HostStack>(mac, std::move(addresses), std::move(faces));
  plug_.wire.ears(plug_.end).add(this, [this](std::span<const std::uint8_t> frame) {
    if (heard_.size() >= kMostHeard) return;
    heard_.emplace_back(frame.begin(), frame.end());
    came_.notify(sc_core::SC_ZERO_TIME);
  });
}

void HostNetwork::serve() {
  while (!heard_.empty() && !over_) {
    const auto frame = std::move(heard_.front());
    heard_.pop_front();
    stack_->hear(frame);
  }
}

Result<std::uint64_t> HostNetwork::find(const kmd::Gid& wanted) {
  for (int question = 0; question < kQuestions; ++question) {
    if (stack_ == nullptr || !stack_->ask(wanted)) return Error::kNotFound;
    const model::Picoseconds until = model::time_in(kBetweenQuestions);
    while (!over_ && model::now_ps() < until) {
      ++searching_;
      model::wait_until(until, learned_);
      --searching_;
      if (const auto found = stack_->station(wanted)) return *found;
    }
    if (over_) return Error::kDeviceFailed;
  }
  return Error::kNotFound;
}

void HostNetwork::give_up() {
  over_ = true;
  learned_.notify(sc_core::SC_ZERO_TIME);
}

}  // namespace rnic::testbench
