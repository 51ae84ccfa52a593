#pragma once

#include <functional>
#include <map>
#include <memory>

#include "driver/nd2/framework.hpp"
#include "driver/win32/surroundings.hpp"

namespace rnic::testbench {

/// Programs of NetworkDirect in simulated time: what they call (windows.h, ndsupport.h) is that of the host on which
/// they run. One at a time in a process; it outlives the programs.
class Nd2Programs final : public win32::Surroundings {
 public:
  Nd2Programs();
  ~Nd2Programs() override;

  /// Runs `program` in the calling thread of simulated time, as a process that finds the device of `node`. Threads that
  /// it starts belong to the process; it waits for them itself. `node` outlives them and all that they open.
  void run(DeviceNode& node, const std::function<void()>& program);

  // Surroundings: those of the calling thread's process.
  win32::Waiter& waiter() override;
  std::uint64_t now_ns() override;
  bool start_thread(std::function<void()> body) override;
  bool threads_are_separate() override { return false; }

 private:
  struct Process;
  [[nodiscard]] Process* current();
  void run_as(const std::shared_ptr<Process>& process, const std::function<void()>& body);

  std::map<const void*, std::shared_ptr<Process>> threads_;  ///< By thread of simulated time
  nd2::Framework outside_;                                   ///< Of who is none of them
};

}  // namespace rnic::testbench
