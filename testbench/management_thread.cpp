#include "testbench/management_thread.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "testbench/app_runner.hpp"

namespace rnic::testbench {
namespace {

// It has a call of the device at most to finish.
constexpr std::uint64_t kPatienceNs = 10'000'000;
constexpr std::uint64_t kLookNs = 100;

}  // namespace

ManagementThread::ManagementThread(kmd::KernelDevice& kernel, SimDevice& device) : device_(device) {
  auto agent = gsi::Agent::open(kernel);
  if (!agent) throw std::runtime_error(fmt::format("QP1 cannot be had: {}", describe(agent.error())));
  agent_ = agent.take();
  sc_core::sc_spawn_options options;
  options.set_stack_size(kAppStackBytes);
  thread_ =
      sc_core::sc_spawn([agent = agent_.get()] { agent->run(); }, sc_core::sc_gen_unique_name("management"), &options);
  // It is inside before anybody may ask it to stop.
  while (!agent_->running() && !thread_.terminated() && !device_.removed()) device_.elapse(kLookNs);
}

ManagementThread::~ManagementThread() {
  agent_->stop();
  for (std::uint64_t waited = 0; !thread_.terminated() && waited < kPatienceNs && !device_.removed(); waited += kLookNs)
    device_.elapse(kLookNs);
  // Outside of simulated time it stays where it waits: nobody runs any more.
  const bool inside = sc_core::sc_get_current_process_handle().valid();
  if (inside && !thread_.terminated()) thread_.kill();
}

}  // namespace rnic::testbench
