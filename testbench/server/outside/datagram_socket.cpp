#include "testbench/server/outside/datagram_socket.hpp"

#include <cerrno>
#include <utility>

namespace rnic::testbench {

DatagramSocket::DatagramSocket(SocketAddress local, SocketAddress peer, Poller& poller, std::function<void()> came)
    : local_(std::move(local)),
      peer_(std::move(peer)),
      poller_(poller),
      socket_(bind_socket(local_, SOCK_DGRAM)),
      watch_(poller.add(socket_.get(), std::move(came))) {}

DatagramSocket::~DatagramSocket() {
  poller_.remove(socket_.get(), watch_);
  if (local_.is_path()) unlink(local_.text().c_str());
}

bool DatagramSocket::receive(std::vector<std::uint8_t>& frame) {
  for (;;) {
    frame.resize(kMostOutsideFrameBytes + 1);
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    const ssize_t got =
        recvfrom(socket_.get(), frame.data(), frame.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
    // An error of an earlier datagram, such as a port at which nobody was, is none of this one.
    if (got < 0 && (errno == EINTR || errno == ECONNREFUSED)) continue;
    if (got < 0) return false;
    if (!local_.is_path() && !(peer_ == from)) continue;
    frame.resize(static_cast<std::size_t>(got));
    return true;
  }
}

FrameSocket::Sending DatagramSocket::send(std::span<const std::uint8_t> frame) {
  for (;;) {
    const ssize_t sent = sendto(socket_.get(), frame.data(), frame.size(), MSG_NOSIGNAL, peer_.get(), peer_.size());
    if (sent >= 0) return Sending::kDone;
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == ENOBUFS ? Sending::kLater : Sending::kNobody;
  }
}

}  // namespace rnic::testbench
