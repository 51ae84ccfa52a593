#pragma once

#include <sys/types.h>

#include <array>
#include <functional>

#include "tests/server/remote_peer.hpp"

namespace rnic::test {

/// A child process on host 0 whose queue pair is connected with `peer`, and which has said what its peer must know. It
/// is killed with this.
class ChildPeer {
 public:
  /// In the child: `prepare` gives the memory that `peer` may use, `body` does what the child is for and gives its exit
  /// code. Throws std::runtime_error.
  struct Memory {
    std::uint8_t* at{};
    std::size_t bytes{};
  };
  ChildPeer(const std::string& socket, RemotePeer& peer, const std::function<Memory()>& prepare,
            const std::function<int(RemotePeer&, const Memory&)>& body);
  ChildPeer(const ChildPeer&) = delete;
  ChildPeer& operator=(const ChildPeer&) = delete;
  ~ChildPeer();

  [[nodiscard]] const RemotePeer::Address& address() const { return address_; }
  [[nodiscard]] pid_t process() const { return process_; }
  /// Lets `body` begin.
  void begin();
  /// Waits for its end.
  int end();

 private:
  std::array<int, 2> to_child_{}, from_child_{};
  pid_t process_ = -1;
  RemotePeer::Address address_;
};

}  // namespace rnic::test
