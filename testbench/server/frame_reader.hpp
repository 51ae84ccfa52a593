#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "driver/remote/protocol.hpp"

namespace rnic::testbench {

/// A request of a process.
struct RequestFrame {
  remote::FrameHeader header;
  std::vector<std::byte> body;
};

/// Requests out of a socket that does not wait, piece by piece as they come.
class FrameReader {
 public:
  enum class Came : std::uint8_t { kAll, kSome, kEnd };
  /// Takes in what the socket has, but not much more than a frame. kSome: there may be more. kEnd: the other side is
  /// gone.
  [[nodiscard]] Came receive(int socket);
  /// The next whole frame.
  [[nodiscard]] std::optional<RequestFrame> next();
  /// What comes next is longer than a frame may be.
  [[nodiscard]] bool too_long() const;

 private:
  [[nodiscard]] std::optional<remote::FrameHeader> header() const;

  std::vector<std::byte> bytes_;
};

}  // namespace rnic::testbench
