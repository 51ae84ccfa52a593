#include "testbench/server/listener.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace rnic::testbench {
namespace {

[[noreturn]] void no_listener(const std::string& path, const char* why) {
  throw std::runtime_error(fmt::format("cannot listen at {}: {}", path, why));
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) no_listener(path, "the path is too long for a Unix socket");
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

/// Takes away a socket that nobody listens at any more.
void clear_way(const std::string& path, const sockaddr_un& address) {
  struct stat what {};
  if (lstat(path.c_str(), &what) != 0) return;
  if (!S_ISSOCK(what.st_mode)) no_listener(path, "something else is there");
  const remote::Descriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    no_listener(path, "another machine does");
  unlink(path.c_str());
}

}  // namespace

Listener::Listener(std::string path) : path_(std::move(path)) {
  const sockaddr_un address = address_of(path_);
  clear_way(path_, address);
  socket_ = remote::Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) no_listener(path_, std::strerror(errno));
  const mode_t before = umask(0177);
  const int bound = bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = errno;
  umask(before);
  if (bound != 0) no_listener(path_, std::strerror(error));
  if (listen(socket_.get(), SOMAXCONN) != 0) no_listener(path_, std::strerror(errno));
}

Listener::~Listener() { unlink(path_.c_str()); }

std::optional<Listener::Peer> Listener::accept() {
  Peer peer;
  peer.socket = remote::Descriptor(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!peer.socket) return {};
  ucred who{};
  socklen_t size = sizeof who;
  if (getsockopt(peer.socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.pid <= 0) return peer;
  if (who.uid != geteuid()) return peer;
  peer.number = who.pid;
  peer.process = remote::Descriptor(static_cast<int>(syscall(SYS_pidfd_open, who.pid, 0)));
  return peer;
}

}  // namespace rnic::testbench
