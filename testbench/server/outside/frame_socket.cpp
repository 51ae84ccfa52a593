#include "testbench/server/outside/frame_socket.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "testbench/server/outside/datagram_socket.hpp"
#include "testbench/server/outside/stream_socket.hpp"

namespace rnic::testbench {
namespace {

[[noreturn]] void no_address(const SocketAddress& address, const std::string& why) {
  throw std::runtime_error(fmt::format("a port cannot have its socket at {}: {}", address.text(), why));
}

/// Takes away the file of a socket that nobody has any more.
void clear_file(const SocketAddress& address, int type) {
  struct stat what {};
  if (lstat(address.text().c_str(), &what) != 0) return;
  if (!S_ISSOCK(what.st_mode)) no_address(address, "something else is there");
  const remote::Descriptor probe(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  if (connect(probe.get(), address.get(), address.size()) == 0 || errno != ECONNREFUSED)
    no_address(address, "another process has it");
  unlink(address.text().c_str());
}

}  // namespace

remote::Descriptor bind_socket(const SocketAddress& address, int type) {
  remote::Descriptor own(socket(address.family(), type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!own) no_address(address, std::strerror(errno));
  if (address.is_path()) {
    clear_file(address, type);
  } else {
    const int yes = 1;
    setsockopt(own.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  }
  const mode_t before = umask(0177);
  const int bound = bind(own.get(), address.get(), address.size());
  const int error = errno;
  umask(before);
  if (bound != 0) no_address(address, std::strerror(error));
  return own;
}

std::string FrameSocketOptions::describe() const {
  switch (kind) {
    case Kind::kDatagram: return fmt::format("datagrams at {}, to {}", local.text(), peer.text());
    case Kind::kListen: return fmt::format("listens at {}", local.text());
    case Kind::kConnect: break;
  }
  return fmt::format("connects to {}", peer.text());
}

std::unique_ptr<FrameSocket> FrameSocket::open(const FrameSocketOptions& options, Poller& poller,
                                               std::function<void()> came,
                                               std::function<void(const std::string&)> log) {
  if (options.kind == FrameSocketOptions::Kind::kDatagram)
    return std::make_unique<DatagramSocket>(options.local, options.peer, poller, std::move(came));
  return std::make_unique<StreamSocket>(options, poller, std::move(came), std::move(log));
}

}  // namespace rnic::testbench
