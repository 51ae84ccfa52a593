#pragma once

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "driver/remote/connection_memory.hpp"
#include "driver/remote/protocol.hpp"

namespace rnic::test {

/// A connection by hand.
class RawPeer {
 public:
  explicit RawPeer(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  ~RawPeer() {
    if (memory_ != nullptr) munmap(memory_, sizeof *memory_);
  }
  [[nodiscard]] int socket() const { return socket_.get(); }
  bool send(remote::FrameKind kind, std::uint32_t client, std::span<const std::byte> body, std::uint32_t claimed) {
    const remote::FrameHeader header{.bytes = claimed, .kind = kind, .number = ++number_, .client = client};
    return remote::send_all(socket_.get(), std::as_bytes(std::span(&header, 1))) &&
           remote::send_all(socket_.get(), body);
  }
  bool send(remote::FrameKind kind, std::uint32_t client = 0, std::span<const std::byte> body = {}) {
    return send(kind, client, body, static_cast<std::uint32_t>(body.size()));
  }
  bool hello(const remote::Hello& hello = {}) {
    return send(remote::FrameKind::kHello, 0, std::as_bytes(std::span(&hello, 1)));
  }
  struct Answer {
    remote::AnswerFrameHeader header;
    std::vector<std::byte> body;
    remote::Descriptors beside;
  };
  /// None: the connection has ended.
  std::optional<Answer> answer() {
    Answer answer;
    if (!remote::receive_all(socket_.get(), std::as_writable_bytes(std::span(&answer.header, 1)), answer.beside))
      return {};
    answer.body.resize(answer.header.bytes);
    if (!remote::receive_all(socket_.get(), answer.body, answer.beside)) return {};
    return answer;
  }
  /// Greets, opens a client, and that its context.
  calls::OpenContext::Answer open() {
    REQUIRE(hello());
    auto welcome = answer();
    REQUIRE(welcome);
    void* const memory =
        mmap(nullptr, sizeof *memory_, PROT_READ | PROT_WRITE, MAP_SHARED, welcome->beside[0].get(), 0);
    REQUIRE(memory != MAP_FAILED);
    memory_ = static_cast<remote::ConnectionMemory*>(memory);
    bell_ = std::move(welcome->beside[1]);
    REQUIRE(send(remote::FrameKind::kOpen));
    client_ = answer()->header.client;
    calls::OpenContext request;
    request.header = {.size = sizeof request, .version = calls::kVersion, .call = calls::OpenContext::kCall};
    REQUIRE(send(remote::FrameKind::kCall, client_, std::as_bytes(std::span(&request, 1))));
    const auto opened = answer();
    calls::OpenContext::Answer of;
    REQUIRE(opened->body.size() == sizeof of);
    std::memcpy(&of, opened->body.data(), sizeof of);
    return of;
  }
  void ring(std::uint64_t offset, std::size_t bytes) {
    std::array<std::uint8_t, 64> data{};
    const std::uint32_t ticket = memory_->doorbells.draw();
    memory_->doorbells.put(ticket, offset, std::span(data).first(bytes));
    const std::uint64_t one = 1;
    REQUIRE(write(bell_.get(), &one, sizeof one) == sizeof one);
  }
  /// Whether who writes and reads the bell waits for room and rings.
  void unblock_bell(bool unblock) { REQUIRE(fcntl(bell_.get(), F_SETFL, unblock ? O_NONBLOCK : 0) == 0); }
  void ring_bell() { REQUIRE(eventfd_write(bell_.get(), 1) == 0); }
  /// Takes rings back.
  void silence_bell() {
    eventfd_t rings{};
    pollfd what{.fd = bell_.get(), .events = POLLIN, .revents = 0};
    if (poll(&what, 1, 0) == 1) static_cast<void>(eventfd_read(bell_.get(), &rings));
  }
  /// The machine does, within some seconds.
  [[nodiscard]] bool answers() {
    if (!send(remote::FrameKind::kClose, client_)) return false;
    pollfd what{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    return poll(&what, 1, 10'000) == 1 && answer().has_value();
  }
  /// Within some seconds.
  [[nodiscard]] bool ended() const {
    pollfd what{.fd = socket_.get(), .events = POLLRDHUP, .revents = 0};
    return poll(&what, 1, 10'000) == 1;
  }
  [[nodiscard]] std::uint32_t client() const { return client_; }
  [[nodiscard]] remote::ConnectionMemory& memory() { return *memory_; }

 private:
  remote::Descriptor socket_;
  remote::Descriptor bell_;
  remote::ConnectionMemory* memory_ = nullptr;
  std::uint32_t number_ = 0;
  std::uint32_t client_ = 0;
};

}  // namespace rnic::test
