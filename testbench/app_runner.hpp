#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <systemc>
#include <vector>

namespace rnic::testbench {

/// Applications and test frameworks need more than the 64 KiB that SystemC gives a thread.
inline constexpr int kAppStackBytes = 1 << 20;

/// The applications did not end in the simulated time they were given.
class SimulationTimeout : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The applications did not end, and nothing that could make them end moved any more.
class Hang : public SimulationTimeout {
 public:
  using SimulationTimeout::SimulationTimeout;
};

/// Runs functions as SystemC threads, beside whatever else the kernel simulates, until they have ended.
///
/// Applications that must stop early (another one threw, or time is over) are asked to, and have some simulated time to
/// come to their end. One that does not is unwound where it waits: its destructors run, and must not wait for simulated
/// time (sc_core::sc_is_unwinding tells them). run can be called again and again.
class AppRunner : public sc_core::sc_module {
 public:
  explicit AppRunner(const sc_core::sc_module_name& name);

  /// Adds an application to the next run. It starts when run is called, after those that were added before it.
  void add(std::string name, std::function<void()> body);

  /// Looks at the world now and then while applications run.
  struct Watch {
    sc_core::sc_time period;      ///< Zero: nobody looks
    std::function<bool()> stuck;  ///< True: the run is over
  };

  /// How applications are stopped.
  struct Stop {
    std::function<void()> late;  ///< Called first, when it is for the time or because they are stuck
    std::function<void()> ask;   ///< Makes them end. Empty: they are unwound at once
  };

  /// Runs the kernel until all applications have ended. Rethrows the first exception that leaves one of them, after all
  /// others have been stopped. Throws SimulationTimeout, naming those that had not ended, after `limit`; Hang when
  /// `watch` says so; and what the kernel reports. Called from outside the kernel.
  void run(const sc_core::sc_time& limit, const Watch& watch = {}, const Stop& stop = {});

  /// Runs the kernel for `time` with no application. Called from outside the kernel.
  void idle(const sc_core::sc_time& time) { sc_core::sc_start(time, sc_core::SC_RUN_TO_TIME); }

 private:
  struct App {
    std::string name;
    std::function<void()> body;
    sc_core::sc_process_handle process;
    std::uint64_t rank = 0;  ///< In the order in which they were added
    bool ended = false;
  };

  void execute(App& app);
  void supervise();
  void ask_all();
  void stop_all();
  void wait_for_apps();
  [[nodiscard]] bool all_ended() const;
  [[nodiscard]] std::string unfinished() const;

  std::vector<std::unique_ptr<App>> apps_;
  std::exception_ptr failure_;
  bool requested_ = false;  ///< run waits for the supervisor
  bool timed_out_ = false;
  bool stuck_ = false;
  sc_core::sc_time deadline_;
  Watch watch_;
  Stop stop_;
  std::string unfinished_;  ///< Who had not ended when they were asked to
  sc_core::sc_event start_event_;
  sc_core::sc_event end_event_;
};

}  // namespace rnic::testbench
