#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "testbench/server/outside/frame_socket.hpp"

namespace rnic::testbench {

/// A datagram is a frame. What comes by UDP from anybody but the peer is not taken; a path lets only its user in.
class DatagramSocket : public FrameSocket {
 public:
  /// As FrameSocket::open.
  DatagramSocket(SocketAddress local, SocketAddress peer, Poller& poller, std::function<void()> came);
  ~DatagramSocket() override;

  bool receive(std::vector<std::uint8_t>& frame) override;
  Sending send(std::span<const std::uint8_t> frame) override;

 private:
  const SocketAddress local_;
  const SocketAddress peer_;
  Poller& poller_;
  remote::Descriptor socket_;
  Poller::Watch watch_;
};

}  // namespace rnic::testbench
