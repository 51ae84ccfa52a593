#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <systemc>
#include <vector>

namespace rnic::testbench {

/// The applications did not end in the simulated time they were given.
class SimulationTimeout : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Runs functions as SystemC threads, beside whatever else the kernel simulates, until they have ended.
///
/// An application that must stop early (another one threw, or time is over) is unwound where it waits: its destructors run, and
/// must not wait for simulated time (sc_core::sc_is_unwinding tells them). run can be called again and again.
class AppRunner : public sc_core::sc_module {
 public:
  explicit AppRunner(const sc_core::sc_module_name& name);

  /// Adds an application to the next run. It starts when run is called, after those that were added before it.
  void add(std::string name, std::function<void()> body);

  /// Runs the kernel until all applications have ended. Rethrows the first exception that leaves one of them, after all others
  /// have been stopped. Throws SimulationTimeout, naming those that had not ended, after `limit`; and what the kernel reports.
  /// Called from outside the kernel.
  void run(const sc_core::sc_time& limit);

  /// Runs the kernel for `time` with no application. Called from outside the kernel.
  void idle(const sc_core::sc_time& time) { sc_core::sc_start(time, sc_core::SC_RUN_TO_TIME); }

 private:
  struct App {
    std::string name;
    std::function<void()> body;
    sc_core::sc_process_handle process;
    bool ended = false;
  };

  void execute(App& app);
  void supervise();
  void stop_all();
  [[nodiscard]] bool all_ended() const;
  [[nodiscard]] std::string unfinished() const;

  std::vector<std::unique_ptr<App>> apps_;
  std::exception_ptr failure_;
  bool requested_ = false;  ///< run waits for the supervisor
  bool timed_out_ = false;
  sc_core::sc_time deadline_;
  sc_core::sc_event start_event_;
  sc_core::sc_event end_event_;
};

}  // namespace rnic::testbench
