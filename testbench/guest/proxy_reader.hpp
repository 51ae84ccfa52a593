#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "driver/remote/descriptor.hpp"
#include "testbench/guest/proxy_protocol.hpp"

namespace rnic::testbench {

/// A message that has come whole, and fits its command.
struct ProxyMessage {
  proxy::Command command{};
  std::array<std::byte, sizeof(proxy::SyncMemory)> payload{};
  std::vector<remote::Descriptor> descriptors;

  template <typename Payload>
  [[nodiscard]] Payload as() const {
    static_assert(sizeof(Payload) <= sizeof payload);
    Payload value;
    std::memcpy(&value, payload.data(), sizeof value);
    return value;
  }
};

/// Takes messages from a stream socket that does not wait, in whatever pieces they come.
class ProxyReader {
 public:
  /// `socket` stays the caller's.
  explicit ProxyReader(int socket) : socket_(socket) {}

  enum class Got : std::uint8_t { kMessage, kNothing, kGone };
  /// The next message. kNothing: not all of it has come; kGone: the other side has ended. Throws GuestLinkError for a
  /// command that there is not, a payload of another length than the command has, or descriptors where none belong.
  Got take(ProxyMessage& message);

 private:
  Got receive(std::byte* to, std::size_t bytes);
  void check_header() const;
  void check_descriptors() const;

  int socket_;
  std::size_t have_ = 0;  ///< Of header and payload
  proxy::Header header_;
  ProxyMessage message_;
};

}  // namespace rnic::testbench
