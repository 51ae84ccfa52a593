#include "testbench/server/listener.hpp"

#include <fcntl.h>
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

/// Since Linux 6.16, whose headers not everybody has.
constexpr int kPassRights = 83;
/// Since Linux 6.5.
constexpr int kPeerPidfd = 77;

remote::Descriptor new_reserve() { return remote::Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

/// Of the process that has connected, not of one that has its number since.
remote::Descriptor process_of(int socket, pid_t number) {
  int descriptor = -1;
  socklen_t size = sizeof descriptor;
  if (getsockopt(socket, SOL_SOCKET, kPeerPidfd, &descriptor, &size) == 0) return remote::Descriptor(descriptor);
  return remote::Descriptor(static_cast<int>(syscall(SYS_pidfd_open, number, 0)));
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

Listener::Listener(std::string path, Rights rights) : path_(std::move(path)), reserve_(new_reserve()) {
  const sockaddr_un address = address_of(path_);
  clear_way(path_, address);
  socket_ = remote::Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) no_listener(path_, std::strerror(errno));
  const mode_t before = umask(0177);
  const int bound = bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = errno;
  umask(before);
  if (bound != 0) no_listener(path_, std::strerror(error));
  // Descriptors that a process sends along are ended where they are received, and the end of a socket may take as long
  // as its owner likes (SO_LINGER).
  const int none = 0;
  if (rights == Rights::kRefused) setsockopt(socket_.get(), SOL_SOCKET, kPassRights, &none, sizeof none);
  if (listen(socket_.get(), SOMAXCONN) != 0) no_listener(path_, std::strerror(errno));
}

Listener::~Listener() { unlink(path_.c_str()); }

int Listener::accept_one() {
  for (;;) {
    const int one = accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (one >= 0) return one;
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno != EMFILE || !reserve_) return -1;
    // Who waits would not be announced again.
    reserve_ = {};
    const bool any = static_cast<bool>(remote::Descriptor(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
    reserve_ = new_reserve();
    if (!any) return -1;
  }
}

std::optional<Listener::Peer> Listener::accept() {
  Peer peer;
  peer.socket = remote::Descriptor(accept_one());
  if (!peer.socket) return {};
  ucred who{};
  socklen_t size = sizeof who;
  if (getsockopt(peer.socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.pid <= 0) return peer;
  if (who.uid != geteuid()) return peer;
  peer.number = who.pid;
  peer.process = process_of(peer.socket.get(), who.pid);
  return peer;
}

}  // namespace rnic::testbench
