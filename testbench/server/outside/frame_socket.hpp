#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "testbench/server/outside/socket_address.hpp"
#include "testbench/server/poller.hpp"

namespace rnic::testbench {

/// Longest Ethernet frame that passes (without frame check sequence): a jumbo frame of 9000 bytes of payload, with its
/// header and a VLAN tag.
inline constexpr std::size_t kMostOutsideFrameBytes = 9018;

struct FrameSocketOptions {
  enum class Kind {
    kDatagram,  ///< A datagram is a frame, from `local` to `peer`
    kListen,    ///< A stream of frames, each behind its length (32 bits, network order), with who comes to `local`
    kConnect,   ///< The same, with who listens at `peer`
  };
  Kind kind = Kind::kDatagram;
  SocketAddress local;
  SocketAddress peer;

  /// As the machine file says it, for people.
  [[nodiscard]] std::string describe() const;
};

/// A socket of the system whose messages are Ethernet frames without frame check sequence, as QEMU's network backends
/// `socket`, `dgram` and `stream` make them. Nothing here waits; a peer that is missing, or has gone, is no error.
class FrameSocket {
 public:
  enum class Sending {
    kDone,    ///< The system has it
    kLater,   ///< There is no room now
    kNobody,  ///< There is no peer; the frame is lost
  };

  /// Opens it; files of sockets that nobody has any more are taken away. `came` is called by `poller`, which outlives
  /// it, when there may be something to receive. `log` takes lines for the user. Throws std::runtime_error when an
  /// address cannot be had.
  static std::unique_ptr<FrameSocket> open(const FrameSocketOptions& options, Poller& poller,
                                           std::function<void()> came, std::function<void(const std::string&)> log);
  FrameSocket() = default;
  FrameSocket(const FrameSocket&) = delete;
  FrameSocket& operator=(const FrameSocket&) = delete;
  virtual ~FrameSocket() = default;

  /// The next frame that has come; at most kMostOutsideFrameBytes + 1 bytes of it. False: none.
  virtual bool receive(std::vector<std::uint8_t>& frame) = 0;
  virtual Sending send(std::span<const std::uint8_t> frame) = 0;
  /// Looks for a peer that is missing. True: it wants to be called again.
  virtual bool tend() { return false; }
};

/// A socket of `type` bound to `address`, which does not wait. Its file can be used by this user only. Throws
/// std::runtime_error.
[[nodiscard]] remote::Descriptor bind_socket(const SocketAddress& address, int type);

}  // namespace rnic::testbench
