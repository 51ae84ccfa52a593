#include "driver/remote/machine_socket.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace rnic::remote {
namespace {

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

/// Of this user, and no other may change it.
bool is_own(const struct stat& what) { return what.st_uid == geteuid() && (what.st_mode & kOthersWrite) == 0; }

}  // namespace

Result<MachineSocket> connect_to_machine(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Error::kDeviceNotFound;
  std::memcpy(address.sun_path, path.data(), path.size());
  const auto slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  struct stat there {};
  struct stat around {};
  if (lstat(path.c_str(), &there) != 0 || stat(folder.c_str(), &around) != 0) return Error::kDeviceNotFound;
  if (!is_own(there) || !is_own(around)) return Error::kAccessViolation;
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return Error::kOutOfResources;
  while (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno != EINTR) return Error::kDeviceNotFound;
  }
  // What was looked at before may have been another socket than this.
  ucred who{};
  socklen_t size = sizeof who;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.uid != geteuid())
    return Error::kAccessViolation;
  return MachineSocket{std::move(socket), who.pid};
}

std::string_view why_no_machine(Error error) {
  return error == Error::kAccessViolation ? "what listens there is not this user's alone" : describe(error);
}

bool keeps_its_size(int descriptor, std::size_t bytes) {
  // Seals first: only memory has them, and only of memory the size is told without asking anybody else.
  constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_SEAL;
  const int seals = fcntl(descriptor, F_GET_SEALS);
  struct stat memory {};
  return seals >= 0 && (seals & kNeeded) == kNeeded && fstat(descriptor, &memory) == 0 &&
         static_cast<std::size_t>(memory.st_size) >= bytes;
}

}  // namespace rnic::remote
