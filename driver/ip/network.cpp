#include "driver/ip/network.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace rnic::ip {
namespace {

constexpr int kQuestions = 3;
constexpr std::uint64_t kBetweenQuestionsNs = 1'000'000'000;
/// More of them at once than this are lost, as by a stack whose queue is full.
constexpr std::size_t kMostOutgoing = 256;

std::vector<Address> own_addresses(const kmd::PortTables& tables) {
  std::vector<Address> addresses;
  for (std::size_t i = 0; i < tables.gids(); ++i) {
    const auto own = tables.own_address(i);
    if (own && own->vlan == 0 && !kmd::is_multicast(own->gid)) addresses.push_back(own->gid);
  }
  return addresses;
}

/// In which neighbour solicitations and unsolicited advertisements come (RFC 4861 4.3, 7.2.6).
std::uint64_t groups_of(const std::vector<Address>& addresses) {
  std::uint64_t groups = std::uint64_t{1} << ethernet::group_bit(group_mac(kAllNodes));
  for (const auto& address : addresses) {
    if (!kmd::is_ipv4_mapped(address))
      groups |= std::uint64_t{1} << ethernet::group_bit(group_mac(solicited_node(address)));
  }
  return groups;
}

}  // namespace

Network::Network(kmd::KernelDevice& kernel, std::set<Address> settled)
    : kernel_(kernel),
      settled_(std::move(settled)),
      stack_(kernel.mac(), own_addresses(kernel.port_tables()),
             {.send =
                  [this](const Bytes& frame) {
                    if (outgoing_.size() < kMostOutgoing) outgoing_.push_back(frame);
                  },
              .learned = [this](const Address& address, std::uint64_t mac) { learned(address, mac); }}) {}

Result<std::unique_ptr<Network>> Network::open(kmd::KernelDevice& kernel, std::set<Address> settled) {
  return or_out_of_memory([&]() -> Result<std::unique_ptr<Network>> {
    std::unique_ptr<Network> network(new Network(kernel, std::move(settled)));
    if (auto begun = network->begin(); !begun) return begun.error();
    return network;
  });
}

Result<void> Network::begin() {
  auto port = ethernet::EthernetPort::open(kernel_, [this](std::span<const std::uint8_t> frame, auto) {
    const std::lock_guard lock(mutex_);
    stack_.hear(frame);
  });
  if (!port) return port.error();
  port_ = port.take();
  port_->receive_also({.groups = groups_of(own_addresses(kernel_.port_tables()))});
  return {};
}

void Network::learned(const Address& address, std::uint64_t mac) {
  // A table that is full keeps what it has.
  if (!settled_.contains(address)) static_cast<void>(kernel_.port_tables().add_neighbour(address, mac).ok());
  kernel_.device().wake();
}

void Network::run() {
  running_ = true;
  while (!stop_ && port_->alive()) {
    port_->ask();
    const std::uint64_t seen = kernel_.device().wake_count();
    const bool due = port_->asked_for();
    if (port_->poll() || send_frames() || due || stop_) continue;
    if (!kernel_.device().wait(seen, kForever)) break;
  }
  running_ = false;
  stop();
}

void Network::stop() {
  stop_ = true;
  kernel_.device().wake();
}

/// Returns whether there was anything that could leave.
bool Network::send_frames() {
  bool any = false;
  for (;;) {
    Bytes frame;
    {
      const std::lock_guard lock(mutex_);
      if (outgoing_.empty()) return any;
      frame = std::move(outgoing_.front());
      outgoing_.pop_front();
    }
    const auto sent = port_->send(frame);
    any = any || sent.ok();
    if (sent || sent.error() != Error::kQueueFull) continue;
    // The next one that has left makes room, and ends the wait for it.
    const std::lock_guard lock(mutex_);
    outgoing_.push_front(std::move(frame));
    return any;
  }
}

Result<std::uint64_t> Network::await_station(const Address& wanted, std::uint64_t until_ns) {
  Device& device = kernel_.device();
  for (;;) {
    const std::uint64_t seen = device.wake_count();
    {
      const std::lock_guard lock(mutex_);
      if (const auto station = stack_.station(wanted)) return *station;
    }
    if (stop_ || device.removed()) return Error::kDeviceFailed;
    const std::uint64_t now = device.now_ns();
    if (now >= until_ns) return Error::kNotFound;
    ++searching_;
    static_cast<void>(device.wait(seen, until_ns - now));
    --searching_;
  }
}

Result<std::uint64_t> Network::find(const Address& wanted) {
  Result<std::uint64_t> station = await_station(wanted, 0);
  for (int question = 0; question < kQuestions && !station && station.error() == Error::kNotFound; ++question) {
    {
      const std::lock_guard lock(mutex_);
      if (!stack_.ask(wanted)) return Error::kNotFound;
    }
    kernel_.device().wake();
    station = await_station(wanted, kernel_.device().now_ns() + kBetweenQuestionsNs);
  }
  return station;
}

}  // namespace rnic::ip
