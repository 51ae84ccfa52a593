#include "testbench/server/outside/stream_socket.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace rnic::testbench {
namespace {

constexpr std::size_t kLengthBytes = 4;
/// QEMU sends no longer packets: what says so is no stream of frames.
constexpr std::size_t kMostLength = 69632;

/// Frames go at once.
void send_at_once(int socket, const SocketAddress& address) {
  const int yes = 1;
  if (!address.is_path()) setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

}  // namespace

StreamSocket::StreamSocket(const FrameSocketOptions& options, Poller& poller, std::function<void()> came,
                           std::function<void(const std::string&)> log)
    : options_(options), poller_(poller), came_(std::move(came)), log_(std::move(log)) {
  if (options_.kind != FrameSocketOptions::Kind::kListen) return;
  listener_ = bind_socket(options_.local, SOCK_STREAM);
  if (listen(listener_.get(), 1) != 0)
    throw std::runtime_error(fmt::format("cannot listen at {}: {}", options_.local.text(), std::strerror(errno)));
  listener_watch_ = poller_.add(listener_.get(), [this] { accept(); });
}

StreamSocket::~StreamSocket() {
  if (peer_) poller_.remove(peer_.get(), peer_watch_);
  if (!listener_) return;
  poller_.remove(listener_.get(), listener_watch_);
  if (options_.local.is_path()) unlink(options_.local.text().c_str());
}

/// Who comes while there is a peer waits until that has gone.
void StreamSocket::accept() {
  if (peer_ || !listener_) return;
  remote::Descriptor peer(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (peer) take_peer(std::move(peer));
}

void StreamSocket::take_peer(remote::Descriptor peer) {
  peer_ = std::move(peer);
  send_at_once(peer_.get(), options_.kind == FrameSocketOptions::Kind::kListen ? options_.local : options_.peer);
  peer_watch_ = poller_.add(peer_.get(), came_);
  log_("the peer has come");
}

void StreamSocket::drop(const std::string& why) {
  poller_.remove(peer_.get(), peer_watch_);
  peer_ = remote::Descriptor();
  in_.clear();
  in_at_ = 0;
  out_.clear();
  log_(why);
  accept();
}

void StreamSocket::connect() {
  if (!calling_) {
    calling_ = remote::Descriptor(socket(options_.peer.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!calling_) return;
    if (::connect(calling_.get(), options_.peer.get(), options_.peer.size()) == 0)
      return take_peer(std::exchange(calling_, {}));
    if (errno != EINPROGRESS) calling_ = remote::Descriptor();
    return;
  }
  pollfd state{calling_.get(), POLLOUT, 0};
  if (poll(&state, 1, 0) != 1) return;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(calling_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  auto called = std::exchange(calling_, {});
  if (error == 0) take_peer(std::move(called));
}

bool StreamSocket::tend() {
  if (options_.kind != FrameSocketOptions::Kind::kConnect) return false;
  if (!peer_) connect();
  return !peer_;
}

bool StreamSocket::take_frame(std::vector<std::uint8_t>& frame) {
  const std::size_t have = in_.size() - in_at_;
  if (have < kLengthBytes) return false;
  std::size_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length = length << 8 | in_[in_at_ + i];
  if (length == 0 || length > kMostLength) {
    drop(fmt::format("the peer says that a frame has {} bytes: it is sent away", length));
    return false;
  }
  if (have < kLengthBytes + length) return false;
  const auto begin = in_.begin() + static_cast<std::ptrdiff_t>(in_at_ + kLengthBytes);
  frame.assign(begin, begin + static_cast<std::ptrdiff_t>(std::min(length, kMostOutsideFrameBytes + 1)));
  in_at_ += kLengthBytes + length;
  return true;
}

bool StreamSocket::receive(std::vector<std::uint8_t>& frame) {
  std::array<std::uint8_t, 65536> piece;
  while (peer_) {
    if (take_frame(frame)) return true;
    if (!peer_) return false;
    in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(std::exchange(in_at_, 0)));
    const ssize_t got = recv(peer_.get(), piece.data(), piece.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return false;
    if (got <= 0) {
      drop("the peer has gone");
      return false;
    }
    in_.insert(in_.end(), piece.begin(), piece.begin() + got);
  }
  return false;
}

/// False: there is no room. What was for a peer that has gone is lost.
bool StreamSocket::flush() {
  while (!out_.empty()) {
    const ssize_t sent = ::send(peer_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) {
      drop("the peer has gone");
      return true;
    }
    if (sent < 0) return false;
    out_.erase(out_.begin(), out_.begin() + sent);
  }
  return true;
}

FrameSocket::Sending StreamSocket::send(std::span<const std::uint8_t> frame) {
  if (!peer_) return Sending::kNobody;
  if (!flush()) return Sending::kLater;
  if (!peer_) return Sending::kNobody;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    out_.push_back(static_cast<std::uint8_t>(frame.size() >> 8 * (kLengthBytes - 1 - i)));
  out_.insert(out_.end(), frame.begin(), frame.end());
  static_cast<void>(flush());
  return peer_ ? Sending::kDone : Sending::kNobody;
}

}  // namespace rnic::testbench
