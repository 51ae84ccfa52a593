#include "testbench/nd2_programs.hpp"

#include <systemc>
#include <utility>

#include "driver/nd2/handles.hpp"
#include "testbench/app_runner.hpp"
#include "testbench/sim_device.hpp"

namespace rnic::testbench {
namespace {

const void* this_thread() { return sc_core::sc_get_current_process_handle().get_process_object(); }

}  // namespace

struct Nd2Programs::Process {
  explicit Process(DeviceNode& with)
      : node(with), waiter(nd2::waiter_of(with)), framework([this] { return nd2::DeviceNodes{&node}; }) {}

  DeviceNode& node;
  const std::shared_ptr<win32::Waiter> waiter;
  nd2::Framework framework;
};

Nd2Programs::Nd2Programs() : outside_([] { return nd2::DeviceNodes{}; }) {
  win32::set_surroundings(this);
  nd2::set_framework([this]() -> nd2::Framework& {
    Process* const process = current();
    return process != nullptr ? process->framework : outside_;
  });
}

Nd2Programs::~Nd2Programs() {
  nd2::set_framework({});
  win32::set_surroundings(nullptr);
}

Nd2Programs::Process* Nd2Programs::current() {
  const auto found = threads_.find(this_thread());
  return found != threads_.end() ? found->second.get() : nullptr;
}

void Nd2Programs::run_as(const std::shared_ptr<Process>& process, const std::function<void()>& body) {
  struct Place {
    Place(Nd2Programs& programs, const std::shared_ptr<Process>& process) : of(programs), thread(this_thread()) {
      of.threads_[thread] = process;
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() { of.threads_.erase(thread); }
    Nd2Programs& of;
    const void* const thread;
  };
  const Place place(*this, process);
  body();
}

void Nd2Programs::run(DeviceNode& node, const std::function<void()>& program) {
  run_as(std::make_shared<Process>(node), program);
}

win32::Waiter& Nd2Programs::waiter() {
  Process* const process = current();
  return process != nullptr ? *process->waiter : Surroundings::waiter();
}

std::uint64_t Nd2Programs::now_ns() {
  Process* const process = current();
  return process != nullptr ? process->node.machine().now_ns() : Surroundings::now_ns();
}

bool Nd2Programs::start_thread(std::function<void()> body) {
  const auto found = threads_.find(this_thread());
  if (found == threads_.end()) return Surroundings::start_thread(std::move(body));
  sc_core::sc_spawn_options options;
  options.set_stack_size(kAppStackBytes);
  sc_core::sc_spawn(
      [this, process = found->second, body = std::move(body)] {
        try {
          run_as(process, body);
        } catch (const SimDevice::Stopped&) {
          // The simulation ends, and the thread with it.
        }
      },
      sc_core::sc_gen_unique_name("program"), &options);
  return true;
}

}  // namespace rnic::testbench
