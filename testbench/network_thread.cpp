#include "testbench/network_thread.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace rnic::testbench {
namespace {

std::unique_ptr<ip::Network> open_network(kmd::KernelDevice& kernel, std::set<ip::Address> settled) {
  auto network = ip::Network::open(kernel, std::move(settled));
  if (!network)
    throw std::runtime_error(fmt::format("the port's own frames cannot be had: {}", describe(network.error())));
  return network.take();
}

}  // namespace

NetworkThread::NetworkThread(kmd::KernelDevice& kernel, SimDevice& device, std::set<ip::Address> settled)
    : network_(open_network(kernel, std::move(settled))),
      thread_(device, {.run = [this] { network_->run(); },
                       .running = [this] { return network_->running(); },
                       .stop = [this] { network_->stop(); }}) {}

}  // namespace rnic::testbench
