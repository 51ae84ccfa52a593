#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "driver/remote/connection_memory.hpp"
#include "driver/remote/fork.hpp"
#include "driver/remote/protocol.hpp"
#include "driver/result.hpp"

namespace rnic::remote {

/// The process's end of its connection with a host. Thread safe: of the threads that wait for answers one reads for all
/// of them, so the process has no thread of ours.
///
/// A child of fork has none: for it the machine has ended (gone), and it holds nothing of the parent's connection. For
/// a process that has closed the connection's descriptors with all that it has, as daemons do, it has ended too; what
/// the process opens under their numbers stays untouched.
///
/// What it does is no cancellation point, and leaves errno as it is.
class Connection {
 public:
  /// Errors: those of attach.
  static Result<std::shared_ptr<Connection>> open(const std::string& socket, Purpose purpose = Purpose::kDevice);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  struct Answer {
    calls::Status status = calls::Status::kDeviceFailed;
    std::uint32_t client{};
    std::size_t bytes{};  ///< Of the answer's buffer that were written; what had no room is lost
    Descriptors descriptors;
  };
  /// Sends a request and waits for its answer, whose body goes to `body`. kDeviceFailed: there is none, because the
  /// machine has gone, or this is another process than the one that connected.
  [[nodiscard]] Answer request(FrameKind kind, std::uint32_t client, std::span<const std::byte> message,
                               std::span<std::byte> body);

  [[nodiscard]] ConnectionMemory& memory() { return memory_; }
  /// The machine has ended, as far as is known: it has said so, or the connection has broken.
  [[nodiscard]] bool gone() const { return broken_.load(std::memory_order_relaxed) || memory_.gone.load() != 0; }
  /// The same, and looks whether the connection still is; for who has waited for long.
  [[nodiscard]] bool look_whether_gone();
  /// The machine sleeps, and a doorbell has been left for it.
  void ring_bell();

 private:
  struct Pending {
    std::span<std::byte> body;
    Answer answer;
    bool there = false;
  };

  Connection(Descriptor socket, Descriptor bell, std::shared_ptr<SharedMapping> mapping);
  [[nodiscard]] bool has_its_descriptors() const;
  [[nodiscard]] bool look_whether_lost();
  [[nodiscard]] bool receive_one();
  void wait_for(std::unique_lock<std::mutex>& lock, const Pending& mine);
  void break_up();
  void leave_to_parent();

  Descriptor socket_;
  Descriptor bell_;
  /// Of a file that is open.
  struct Inode {
    dev_t device{};
    ino_t number{};
    bool operator==(const Inode&) const = default;
  };
  static Inode inode_of(const Descriptor& descriptor);
  const Inode inode_;  ///< Of the socket: who has closed it may have another file under its number
  const std::shared_ptr<SharedMapping> mapping_;
  ConnectionMemory& memory_;
  const pid_t process_;
  std::atomic<bool> broken_{};
  std::mutex send_mutex_;
  std::mutex mutex_;  ///< Of all below
  std::condition_variable changed_;
  bool somebody_reads_ = false;
  std::uint32_t last_number_{};
  std::map<std::uint32_t, Pending*> pending_;  ///< By number
  const ForkHook hook_;
};

}  // namespace rnic::remote
