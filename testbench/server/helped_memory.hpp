#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "model/process_memory.hpp"
#include "testbench/server/memory_helpers.hpp"

namespace rnic::testbench {

/// Memory of a process, reached by a helper. It is lost, and nothing of it is there from then on, when the process ends
/// or becomes another program, and when it keeps the machine waiting for too long.
class HelpedMemory : public model::ProcessMemory {
 public:
  /// So long a process may keep the machine waiting at once; while it does not, it gets an eighth of the time back.
  static constexpr std::uint64_t kPatienceNs = 1'000'000'000;
  static constexpr std::uint64_t kRegained = 8;

  explicit HelpedMemory(std::unique_ptr<MemoryHelpers::Helper> helper);

  /// Whether the system lets this one reach the process.
  [[nodiscard]] Reach opened();
  /// Why it is lost; empty: it is not.
  [[nodiscard]] const std::string& lost() const { return lost_; }

  [[nodiscard]] std::shared_ptr<Access> read(std::uint64_t address, std::size_t bytes) override;
  [[nodiscard]] std::shared_ptr<Access> write(std::uint64_t address, const model::DmaRequest& request) override;
  void finish(Access& access) override;
  [[nodiscard]] Reach reach(std::uint64_t address, std::uint64_t length, bool writable) override;

 private:
  [[nodiscard]] MemoryChannel::Slot* next_slot();
  [[nodiscard]] std::shared_ptr<Access> begin();
  [[nodiscard]] bool wait();
  [[nodiscard]] bool patient(std::uint64_t blocked_ns);
  void take_answer();
  void lose(const std::string& why);

  const std::unique_ptr<MemoryHelpers::Helper> helper_;
  std::deque<std::shared_ptr<Access>> under_way_;  ///< The oldest first
  std::uint32_t asked_ = 0;
  std::uint32_t answered_ = 0;  ///< As in the channel
  std::uint32_t answer_ = 0;    ///< The last one
  std::string lost_;
  std::uint64_t waited_ns_ = 0;  ///< What the process has left of the machine's patience is less by this
  std::uint64_t since_ns_ = 0;   ///< As of this time outside
};

}  // namespace rnic::testbench
