#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "driver/remote/descriptor.hpp"
#include "testbench/guest/proxy_protocol.hpp"

namespace rnic::test {

/// Memory of a guest, as QEMU's memory-backend-memfd makes it, and this process's view of it.
class FakeMemory {
 public:
  /// Throws std::runtime_error. `sealed`: nobody can cut it off.
  explicit FakeMemory(std::size_t bytes, bool sealed = true);
  ~FakeMemory();
  FakeMemory(const FakeMemory&) = delete;
  FakeMemory& operator=(const FakeMemory&) = delete;
  [[nodiscard]] int descriptor() const { return file_.get(); }
  [[nodiscard]] std::uint8_t* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }

 private:
  remote::Descriptor file_;
  std::size_t bytes_;
  std::uint8_t* data_;
};

/// QEMU's side of a guest link, for a test: it sends what it is told, well formed or not, and waits for answers.
class FakeQemu {
 public:
  explicit FakeQemu(remote::Descriptor socket) : socket_(std::move(socket)) {}
  /// Comes to the socket of a host. Throws std::runtime_error.
  static FakeQemu at(const std::string& path);

  /// Bytes as they are, with descriptors beside the first.
  void send(std::span<const std::byte> bytes, std::span<const int> descriptors = {}) const;
  /// A message.
  template <typename Payload>
  void send(testbench::proxy::Command command, const Payload& payload, std::span<const int> descriptors = {}) const {
    send(message(command, payload), descriptors);
  }
  template <typename Payload>
  static std::vector<std::byte> message(testbench::proxy::Command command, const Payload& payload) {
    return bytes_of(static_cast<std::int32_t>(command), std::as_bytes(std::span(&payload, 1)));
  }
  static std::vector<std::byte> message(testbench::proxy::Command command) {
    return bytes_of(static_cast<std::int32_t>(command), {});
  }
  static std::vector<std::byte> bytes_of(std::int32_t command, std::span<const std::byte> payload);

  /// Waits for an answer, and gives its value; nothing: the other side has ended, or has said nothing for ten seconds.
  [[nodiscard]] std::optional<std::uint64_t> answer() const;
  /// Whether one has come.
  [[nodiscard]] bool answered() const;
  /// Whether the other side ends within ten seconds.
  [[nodiscard]] bool ended() const;

  // As QEMU does; each waits for its answer, and throws std::runtime_error when there is none.
  std::uint64_t config_read(std::uint32_t offset, std::int32_t bytes) const;
  void config_write(std::uint32_t offset, std::uint32_t value, std::int32_t bytes) const;
  std::uint64_t read(std::uint64_t address, std::uint32_t bytes) const;
  void write(std::uint64_t address, std::uint64_t value, std::uint32_t bytes) const;
  void reset() const;
  /// No answer comes.
  void lend(const FakeMemory& memory, std::uint64_t address) const;

  [[nodiscard]] int socket() const { return socket_.get(); }
  void close() { socket_ = remote::Descriptor(); }

 private:
  std::uint64_t ask(std::span<const std::byte> message) const;

  remote::Descriptor socket_;
};

/// QEMU's side of the way of interrupts: it gets lines, and answers them.
class FakeInterrupts {
 public:
  explicit FakeInterrupts(remote::Descriptor socket) : socket_(std::move(socket)) {}
  static FakeInterrupts at(const std::string& path);
  /// The next line, without its end; nothing: none within ten seconds, or the other side has ended.
  [[nodiscard]] std::optional<std::string> line();
  void answer(const std::string& text = "OK\n") const;

 private:
  remote::Descriptor socket_;
  std::string buffer_;
};

/// Two ends of a stream; they wait.
std::pair<remote::Descriptor, remote::Descriptor> socket_pair();

}  // namespace rnic::test
