#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "driver/remote/descriptor.hpp"

namespace rnic::testbench {

/// Interrupt messages into a guest: writes to its interrupt controller by QEMU's test protocol (-qtest), a line each,
/// each answered with "OK".
///
/// A message that waits and one like it are one, as they are at the interrupt controller. So a guest that stands still
/// costs a place for each message that it has in its table, and no more.
class InterruptLine {
 public:
  /// Messages that have been sent and not answered.
  static constexpr std::size_t kMostUnanswered = 64;
  /// Different ones that wait behind them: more than a function has vectors, twice over.
  static constexpr std::size_t kMostWaiting = 4096;

  /// From now on messages go there, those that have waited first. The socket does not wait.
  void connect(remote::Descriptor socket) { socket_ = std::move(socket); }
  [[nodiscard]] bool connected() const { return static_cast<bool>(socket_); }
  [[nodiscard]] int descriptor() const { return socket_.get(); }

  /// The write of `data` to `address`. Throws GuestLinkError when too many wait.
  void raise(std::uint64_t address, std::uint32_t data);
  /// Takes answers, and sends what waits. False: the other side has ended. Throws GuestLinkError when it says anything
  /// but OK.
  bool tend();

  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  [[nodiscard]] std::size_t unanswered() const { return unanswered_; }

 private:
  struct Message {
    std::uint64_t address;
    std::uint32_t data;
    bool operator==(const Message&) const = default;
  };
  bool hear();
  bool send();

  remote::Descriptor socket_;
  std::deque<Message> waiting_;
  std::size_t unanswered_ = 0;
  std::string line_;    ///< An answer that has come in part
  std::string output_;  ///< What the socket had no room for
};

}  // namespace rnic::testbench
