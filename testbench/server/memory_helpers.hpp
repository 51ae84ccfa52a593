#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "driver/remote/descriptor.hpp"
#include "testbench/server/memory_channel.hpp"

namespace rnic::testbench {

/// Processes that reach into the memory of others on behalf of a machine, one for each of them: an access lasts as long
/// as the other process likes (a page that it brings by userfaultfd, a file of a file system that does not answer), and
/// no process can give up a system call of its own. It can end a helper.
class MemoryHelpers {
 public:
  /// Makes the process that makes them: a copy of this one, which must have one thread, and should be small. Throws
  /// std::system_error.
  MemoryHelpers();
  MemoryHelpers(const MemoryHelpers&) = delete;
  MemoryHelpers& operator=(const MemoryHelpers&) = delete;
  /// All of them end.
  ~MemoryHelpers();

  /// A helper, which ends with this.
  class Helper {
   public:
    Helper(const Helper&) = delete;
    Helper& operator=(const Helper&) = delete;
    ~Helper();

    [[nodiscard]] MemoryChannel& channel() { return *channel_; }
    /// It sleeps in a system call: whom it waits for is not the processor.
    [[nodiscard]] bool blocked() const;
    [[nodiscard]] bool ended() const;
    void end();

   private:
    friend class MemoryHelpers;
    Helper() = default;
    pid_t number_{};
    remote::Descriptor process_;
    MemoryChannel* channel_ = nullptr;
  };
  /// One for the memory of `process`. Null: the system cannot make one.
  [[nodiscard]] std::unique_ptr<Helper> start(std::int32_t process);

 private:
  remote::Descriptor socket_;
  pid_t maker_ = -1;
};

}  // namespace rnic::testbench
