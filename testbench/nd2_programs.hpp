#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "driver/nd2/framework.hpp"
#include "driver/win32/surroundings.hpp"

namespace rnic::testbench {

/// Programs of NetworkDirect in simulated time: what they call (windows.h, ndsupport.h) is that of the host on which
/// they run. One at a time in a process; it outlives the programs.
class Nd2Programs final : public win32::Surroundings {
 public:
  /// A program as a process.
  class Process;

  Nd2Programs();
  ~Nd2Programs() override;

  /// Runs `program` in the calling thread of simulated time, as a process that finds the device of `node`. Threads that
  /// it starts belong to the process; it waits for them itself. `node` outlives them and all that they open.
  void run(DeviceNode& node, const std::function<void()>& program);

  /// Runs `main` in a thread of its own, as a process that ends with it, or by exit(). `node` outlives the process;
  /// what the process leaves there is its to take back. `name` is for whoever asks whose thread it is.
  std::shared_ptr<Process> start(DeviceNode& node, std::string name, std::function<int()> main);
  /// In a thread that is none of it, on `machine`, that of its host: waits until it has ended, at most `timeout_ns`.
  /// Its exit code.
  static std::optional<int> wait(Process& process, Machine& machine, std::uint64_t timeout_ns);

  /// No thread of it goes on, wherever it is.
  static void stop(Process& process);

  /// Ends the process of the calling thread, which stays where it is. False: the thread is none of a process.
  static bool exit(int code);
  /// Of the calling thread's process; empty: of none, or of one without a name.
  [[nodiscard]] static std::string name_of_caller();

  // Surroundings: those of the calling thread's process.
  win32::Waiter& waiter() override;
  std::uint64_t now_ns() override;
  bool start_thread(std::function<void()> body) override;
  void pause() override;
  void yield() override;
  bool threads_are_separate() override { return false; }

 private:
  [[nodiscard]] std::shared_ptr<Process> current();
  void run_as(const std::shared_ptr<Process>& process, const std::function<void()>& body);
  void spawn(const std::shared_ptr<Process>& process, std::function<void()> body);
  void spin(std::uint64_t ns);

  static Nd2Programs* instance_;
  std::map<const void*, std::shared_ptr<Process>> threads_;  ///< By thread of simulated time
  nd2::Framework outside_;                                   ///< Of who is none of them
};

}  // namespace rnic::testbench
