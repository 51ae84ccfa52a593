#include "testbench/kernel_thread.hpp"

#include "testbench/app_runner.hpp"

namespace rnic::testbench {
namespace {

// It has a call of the device at most to finish.
constexpr std::uint64_t kPatienceNs = 10'000'000;
constexpr std::uint64_t kLookNs = 100;

}  // namespace

KernelThread::KernelThread(SimDevice& device, Job job) : device_(device), job_(std::move(job)) {
  sc_core::sc_spawn_options options;
  options.set_stack_size(kAppStackBytes);
  thread_ = sc_core::sc_spawn([this] { job_.run(); }, sc_core::sc_gen_unique_name("kernel"), &options);
  // It is inside before anybody may ask it to stop.
  while (!job_.running() && !thread_.terminated() && !device_.removed()) device_.elapse(kLookNs);
}

KernelThread::~KernelThread() {
  job_.stop();
  for (std::uint64_t waited = 0; !thread_.terminated() && waited < kPatienceNs && !device_.removed(); waited += kLookNs)
    device_.elapse(kLookNs);
  // Outside of simulated time it stays where it waits: nobody runs any more.
  const bool inside = sc_core::sc_get_current_process_handle().valid();
  if (inside && !thread_.terminated()) thread_.kill();
}

}  // namespace rnic::testbench
