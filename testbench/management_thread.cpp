#include "testbench/management_thread.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace rnic::testbench {
namespace {

std::unique_ptr<gsi::Agent> open_agent(kmd::KernelDevice& kernel) {
  auto agent = gsi::Agent::open(kernel);
  if (!agent) throw std::runtime_error(fmt::format("QP1 cannot be had: {}", describe(agent.error())));
  return agent.take();
}

}  // namespace

ManagementThread::ManagementThread(kmd::KernelDevice& kernel, SimDevice& device)
    : agent_(open_agent(kernel)),
      thread_(device, {.run = [this] { agent_->run(); },
                       .running = [this] { return agent_->running(); },
                       .stop = [this] { agent_->stop(); }}) {}

}  // namespace rnic::testbench
