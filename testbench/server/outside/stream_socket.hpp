#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "testbench/server/outside/frame_socket.hpp"

namespace rnic::testbench {

/// Frames behind their lengths on a stream, with one peer at a time: it listens for one (others wait until that has
/// gone), or looks for one again and again. A peer that says a length which no frame has is sent away.
class StreamSocket : public FrameSocket {
 public:
  /// As FrameSocket::open.
  StreamSocket(const FrameSocketOptions& options, Poller& poller, std::function<void()> came,
               std::function<void(const std::string&)> log);
  ~StreamSocket() override;

  bool receive(std::vector<std::uint8_t>& frame) override;
  Sending send(std::span<const std::uint8_t> frame) override;
  bool tend() override;

 private:
  void accept();
  void connect();
  void take_peer(remote::Descriptor peer);
  void drop(const std::string& why);
  bool flush();
  bool take_frame(std::vector<std::uint8_t>& frame);

  const FrameSocketOptions options_;
  Poller& poller_;
  const std::function<void()> came_;
  const std::function<void(const std::string&)> log_;
  remote::Descriptor listener_;
  Poller::Watch listener_watch_{};
  remote::Descriptor calling_;  ///< Its connection is not there yet
  remote::Descriptor peer_;
  Poller::Watch peer_watch_{};
  std::vector<std::uint8_t> in_;  ///< Received; taken up to in_at_
  std::size_t in_at_ = 0;
  std::vector<std::uint8_t> out_;  ///< Of a frame, what is still to be sent
};

}  // namespace rnic::testbench
