#include "testbench/guest/proxy_reader.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "testbench/guest/guest_link_error.hpp"

namespace rnic::testbench {
namespace {

using proxy::Command;

/// Of its payload; nothing: a guest does not say so.
std::optional<std::size_t> payload_of(std::int32_t command) {
  switch (static_cast<Command>(command)) {
    case Command::kSyncMemory: return sizeof(proxy::SyncMemory);
    case Command::kConfigWrite:
    case Command::kConfigRead: return sizeof(proxy::ConfigAccess);
    case Command::kBarWrite:
    case Command::kBarRead: return sizeof(proxy::BarAccess);
    case Command::kSetIrq:
    case Command::kReset: return 0;
    case Command::kAnswer: break;
  }
  return {};
}

/// More have room than belong to any message, so that they are seen.
constexpr std::size_t kRoom = 2 * proxy::kMostRegions;

void take_descriptors(msghdr& message, std::vector<remote::Descriptor>& to) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr; control = CMSG_NXTHDR(&message, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(control) + i * sizeof number, sizeof number);
      to.emplace_back(number);
    }
  }
}

}  // namespace

/// No more is read than the message has: what comes beside it belongs to it.
ProxyReader::Got ProxyReader::receive(std::byte* to, std::size_t bytes) {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * kRoom)> control{};
  iovec part{to, bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = recvmsg(socket_, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Got::kNothing;
  if (got <= 0) return Got::kGone;
  take_descriptors(message, message_.descriptors);
  if ((message.msg_flags & MSG_CTRUNC) != 0 || message_.descriptors.size() > proxy::kMostRegions)
    throw GuestLinkError("more descriptors come with a message than it has regions");
  have_ += static_cast<std::size_t>(got);
  return Got::kMessage;
}

void ProxyReader::check_header() const {
  const auto bytes = payload_of(header_.command);
  if (!bytes) throw GuestLinkError(fmt::format("a message has command {}, which there is not", header_.command));
  if (header_.bytes != *bytes)
    throw GuestLinkError(
        fmt::format("a message of command {} has {} bytes, not {}", header_.command, header_.bytes, *bytes));
}

void ProxyReader::check_descriptors() const {
  const auto command = static_cast<Command>(header_.command);
  if (!message_.descriptors.empty() && command != Command::kSyncMemory && command != Command::kSetIrq)
    throw GuestLinkError(fmt::format("descriptors come with a message of command {}", header_.command));
}

ProxyReader::Got ProxyReader::take(ProxyMessage& message) {
  constexpr std::size_t kHeader = sizeof header_;
  for (;;) {
    if (have_ >= kHeader) check_header();
    const std::size_t whole = kHeader + (have_ < kHeader ? 0 : static_cast<std::size_t>(header_.bytes));
    if (have_ >= kHeader && have_ == whole) {
      check_descriptors();
      message_.command = static_cast<Command>(header_.command);
      message = std::exchange(message_, {});
      have_ = 0;
      return Got::kMessage;
    }
    std::byte* const to =
        have_ < kHeader ? reinterpret_cast<std::byte*>(&header_) + have_ : message_.payload.data() + (have_ - kHeader);
    const Got got = receive(to, whole - have_);
    if (got != Got::kMessage) return got;
  }
}

}  // namespace rnic::testbench
