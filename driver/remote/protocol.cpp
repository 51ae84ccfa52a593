#include "driver/remote/protocol.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace rnic::remote {
namespace {

constexpr std::size_t kControlBytes = CMSG_SPACE(sizeof(int) * kMostDescriptors);

void take_descriptors(msghdr& message, Descriptors& beside) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr; control = CMSG_NXTHDR(&message, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(control) + i * sizeof number, sizeof number);
      Descriptor one(number);
      for (Descriptor& room : beside) {
        if (room) continue;
        room = std::move(one);
        break;
      }
    }
  }
}

}  // namespace

bool send_all(int socket, std::span<const std::byte> bytes, std::span<const int> beside) {
  alignas(cmsghdr) std::array<std::byte, kControlBytes> control{};
  while (!bytes.empty()) {
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!beside.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(beside.size_bytes());
      cmsghdr* const rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(beside.size_bytes());
      std::memcpy(CMSG_DATA(rights), beside.data(), beside.size_bytes());
    }
    const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
    beside = {};
  }
  return true;
}

bool receive_all(int socket, std::span<std::byte> bytes, Descriptors& beside) {
  alignas(cmsghdr) std::array<std::byte, kControlBytes> control{};
  while (!bytes.empty()) {
    iovec part{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    take_descriptors(message, beside);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

}  // namespace rnic::remote
