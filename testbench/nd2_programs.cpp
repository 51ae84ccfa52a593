#include "testbench/nd2_programs.hpp"

#include <systemc>
#include <utility>
#include <vector>

#include "driver/costs.hpp"
#include "driver/nd2/handles.hpp"
#include "driver/umd/waiting.hpp"
#include "testbench/app_runner.hpp"
#include "testbench/sim_device.hpp"

namespace rnic::testbench {
namespace {

/// One pause instruction and a look at memory.
constexpr std::uint64_t kPauseNs = 10;
/// A program has the stack of a process, of which it gets the pages that it touches.
constexpr int kMainStackBytes = 8 << 20;

const void* this_thread() { return sc_core::sc_get_current_process_handle().get_process_object(); }

}  // namespace

class Nd2Programs::Process {
 public:
  Process(DeviceNode& with, std::string called)
      : node(with),
        name(std::move(called)),
        waiter(nd2::waiter_of(with)),
        framework([this] { return nd2::DeviceNodes{&node}; }) {}

  void end(int with) {
    if (!code) code = with;
    node.machine().wake();
  }

  DeviceNode& node;
  const std::string name;
  const std::shared_ptr<win32::Waiter> waiter;
  nd2::Framework framework;
  umd::SpinLook spins;
  std::optional<int> code;
  std::vector<sc_core::sc_process_handle> threads;
  sc_core::sc_event never;
};

Nd2Programs* Nd2Programs::instance_ = nullptr;

Nd2Programs::Nd2Programs() : outside_([] { return nd2::DeviceNodes{}; }) {
  win32::set_surroundings(this);
  nd2::set_framework([this]() -> nd2::Framework& {
    const auto process = current();
    return process != nullptr ? process->framework : outside_;
  });
  instance_ = this;
}

Nd2Programs::~Nd2Programs() {
  instance_ = nullptr;
  nd2::set_framework({});
  win32::set_surroundings(nullptr);
}

std::shared_ptr<Nd2Programs::Process> Nd2Programs::current() {
  const auto found = threads_.find(this_thread());
  return found != threads_.end() ? found->second : nullptr;
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
  run_as(std::make_shared<Process>(node, ""), program);
}

void Nd2Programs::spawn(const std::shared_ptr<Process>& process, std::function<void()> body) {
  sc_core::sc_spawn_options options;
  options.set_stack_size(kMainStackBytes);
  process->threads.push_back(sc_core::sc_spawn(
      [this, process, body = std::move(body)] {
        try {
          run_as(process, body);
        } catch (const SimDevice::Stopped&) {
          // The simulation ends, and the thread with it.
        }
      },
      sc_core::sc_gen_unique_name("program"), &options));
}

std::shared_ptr<Nd2Programs::Process> Nd2Programs::start(DeviceNode& node, std::string name,
                                                         std::function<int()> main) {
  const auto process = std::make_shared<Process>(node, std::move(name));
  spawn(process, [process, main = std::move(main)] { process->end(main()); });
  return process;
}

std::optional<int> Nd2Programs::wait(Process& process, Machine& machine, std::uint64_t timeout_ns) {
  const std::uint64_t begun = machine.now_ns();
  for (;;) {
    const std::uint64_t seen = machine.wake_count();
    const std::uint64_t passed = machine.now_ns() - begun;
    if (process.code || passed >= timeout_ns) return process.code;
    if (machine.wait(seen, timeout_ns == kForever ? kForever : timeout_ns - passed)) continue;
    if (machine.removed()) throw SimDevice::Stopped();
  }
}

void Nd2Programs::stop(Process& process) {
  for (auto& thread : process.threads)
    if (thread.valid() && !thread.terminated()) thread.suspend();
}

bool Nd2Programs::exit(int code) {
  const auto process = instance_ != nullptr ? instance_->current() : nullptr;
  if (process == nullptr) return false;
  process->end(code);
  for (;;) sc_core::wait(process->never);
}

std::string Nd2Programs::name_of_caller() {
  const auto process = instance_ != nullptr ? instance_->current() : nullptr;
  return process != nullptr ? process->name : "";
}

win32::Waiter& Nd2Programs::waiter() {
  const auto process = current();
  return process != nullptr ? *process->waiter : Surroundings::waiter();
}

std::uint64_t Nd2Programs::now_ns() {
  const auto process = current();
  return process != nullptr ? process->node.machine().now_ns() : Surroundings::now_ns();
}

bool Nd2Programs::start_thread(std::function<void()> body) {
  const auto process = current();
  if (process == nullptr) return Surroundings::start_thread(std::move(body));
  spawn(process, std::move(body));
  return true;
}

void Nd2Programs::spin(std::uint64_t ns) {
  const auto process = current();
  if (process == nullptr) return;
  process->node.machine().elapse(ns);
  process->spins.look(process->node);
}

void Nd2Programs::pause() { spin(kPauseNs); }

void Nd2Programs::yield() { spin(cost::kControlCallNs); }

}  // namespace rnic::testbench
