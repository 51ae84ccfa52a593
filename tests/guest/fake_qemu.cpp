#include "tests/guest/fake_qemu.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <stdexcept>

namespace rnic::test {

using testbench::proxy::Answer;
using testbench::proxy::BarAccess;
using testbench::proxy::Command;
using testbench::proxy::ConfigAccess;
using testbench::proxy::Header;
using testbench::proxy::SyncMemory;

namespace {

constexpr int kPatienceMs = 10'000;
constexpr std::size_t kMostDescriptors = 32;

remote::Descriptor connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  remote::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("nobody listens at " + path);
  return socket;
}

bool wait_for(int socket) {
  pollfd state{socket, POLLIN, 0};
  return poll(&state, 1, kPatienceMs) == 1;
}

}  // namespace

FakeMemory::FakeMemory(std::size_t bytes, bool sealed)
    : file_(memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING)), bytes_(bytes), data_(nullptr) {
  if (!file_ || ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) throw std::runtime_error("no memory");
  if (sealed) fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (at == MAP_FAILED) throw std::runtime_error("no memory");
  data_ = static_cast<std::uint8_t*>(at);
}

FakeMemory::~FakeMemory() { munmap(data_, bytes_); }

FakeQemu FakeQemu::at(const std::string& path) { return FakeQemu(connect_to(path)); }

void FakeQemu::send(std::span<const std::byte> bytes, std::span<const int> descriptors) const {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * kMostDescriptors)> control{};
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  if (sendmsg(socket_.get(), &message, MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
    throw std::runtime_error("the link does not take what is sent");
}

std::vector<std::byte> FakeQemu::bytes_of(std::int32_t command, std::span<const std::byte> payload) {
  const Header header{command, 0, payload.size()};
  const auto head = std::as_bytes(std::span(&header, 1));
  std::vector<std::byte> bytes(head.begin(), head.end());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

std::optional<std::uint64_t> FakeQemu::answer() const {
  Answer answer;
  std::size_t have = 0;
  while (have < sizeof answer) {
    if (!wait_for(socket_.get())) return {};
    const ssize_t got = recv(socket_.get(), reinterpret_cast<char*>(&answer) + have, sizeof answer - have, 0);
    if (got <= 0) return {};
    have += static_cast<std::size_t>(got);
  }
  if (answer.header.command != static_cast<std::int32_t>(Command::kAnswer) || answer.header.bytes != 8)
    throw std::runtime_error("no answer as QEMU takes it");
  return answer.value;
}

bool FakeQemu::answered() const {
  pollfd state{socket_.get(), POLLIN, 0};
  return poll(&state, 1, 0) == 1;
}

bool FakeQemu::ended() const {
  char byte{};
  return wait_for(socket_.get()) && recv(socket_.get(), &byte, 1, 0) <= 0;
}

std::uint64_t FakeQemu::ask(std::span<const std::byte> message) const {
  send(message);
  const auto value = answer();
  if (!value) throw std::runtime_error("the link does not answer");
  return *value;
}

std::uint64_t FakeQemu::config_read(std::uint32_t offset, std::int32_t bytes) const {
  return ask(message(Command::kConfigRead, ConfigAccess{offset, 0, bytes}));
}

void FakeQemu::config_write(std::uint32_t offset, std::uint32_t value, std::int32_t bytes) const {
  ask(message(Command::kConfigWrite, ConfigAccess{offset, value, bytes}));
}

std::uint64_t FakeQemu::read(std::uint64_t address, std::uint32_t bytes) const {
  return ask(message(Command::kBarRead, BarAccess{address, 0, bytes, 1, {}}));
}

void FakeQemu::write(std::uint64_t address, std::uint64_t value, std::uint32_t bytes) const {
  ask(message(Command::kBarWrite, BarAccess{address, value, bytes, 1, {}}));
}

void FakeQemu::reset() const { ask(message(Command::kReset)); }

void FakeQemu::lend(const FakeMemory& memory, std::uint64_t address) const {
  SyncMemory regions;
  regions.address[0] = address;
  regions.bytes[0] = memory.size();
  const int descriptor = memory.descriptor();
  send(Command::kSyncMemory, regions, std::span(&descriptor, 1));
}

FakeInterrupts FakeInterrupts::at(const std::string& path) { return FakeInterrupts(connect_to(path)); }

std::optional<std::string> FakeInterrupts::line() {
  for (;;) {
    if (const auto end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    if (!wait_for(socket_.get())) return {};
    std::array<char, 256> piece;
    const ssize_t got = recv(socket_.get(), piece.data(), piece.size(), 0);
    if (got <= 0) return {};
    buffer_.append(piece.data(), static_cast<std::size_t>(got));
  }
}

void FakeInterrupts::answer(const std::string& text) const {
  if (::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("the way of interrupts does not take an answer");
}

std::pair<remote::Descriptor, remote::Descriptor> socket_pair() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) throw std::runtime_error("no sockets");
  return {remote::Descriptor(ends[0]), remote::Descriptor(ends[1])};
}

}  // namespace rnic::test
