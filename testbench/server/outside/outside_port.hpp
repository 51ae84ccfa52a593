#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "driver/remote/descriptor.hpp"
#include "model/wire.hpp"
#include "testbench/server/outside/frame_socket.hpp"
#include "testbench/server/poller.hpp"

namespace rnic::testbench {

/// Frames at a socket. Those that came in are those that went on and those dropped, by reason; the same for out.
struct OutsideCounts {
  std::uint64_t in = 0;         ///< Came, and went on to the machine
  std::uint64_t too_short = 0;  ///< Came with less than an Ethernet header: dropped
  std::uint64_t too_long = 0;   ///< Came with more than kMostOutsideFrameBytes: dropped
  std::uint64_t foreign = 0;    ///< Came for a station that is no host of the machine: dropped
  std::uint64_t out = 0;        ///< Went out
  std::uint64_t bad = 0;        ///< Were to go out with a wrong frame check sequence: dropped
  std::uint64_t lost = 0;       ///< Were to go out, and there was no peer, or no room: dropped
};

/// Each with its name, for people.
[[nodiscard]] std::array<std::pair<const char*, std::uint64_t>, 7> named(const OutsideCounts& counts);

/// The free end of a cable (World::plug) at a socket of the system: a port whose other side is the world outside.
///
/// It is what MAC and PHY are there: frames come in without frame check sequence and get a right one, short ones are
/// padded; frames that leave lose theirs, if it is right. A frame leaves when its last bit has come to this end.
class OutsidePort : public model::WireListener {
 public:
  struct End {
    model::Wire& wire;
    std::size_t port;
  };
  /// Frames for `stations` and for groups come in. Throws as FrameSocket::open, and std::system_error. All that is
  /// passed by reference outlives it.
  OutsidePort(End end, const FrameSocketOptions& options, std::set<std::uint64_t> stations, Poller& poller,
              std::function<void(const std::string&)> log);
  OutsidePort(const OutsidePort&) = delete;
  OutsidePort& operator=(const OutsidePort&) = delete;
  ~OutsidePort() override;

  /// What has come by now begins on the cable, as much of it as there is room for. Returns whether there was anything.
  bool take();

  void frame_came() override;
  void link_changed() override {}

  [[nodiscard]] const OutsideCounts& counts() const { return counts_; }
  [[nodiscard]] const FrameSocketOptions& options() const { return options_; }

 private:
  [[nodiscard]] bool room() const;
  bool admit(const std::vector<std::uint8_t>& frame);
  void leave(std::vector<std::uint8_t> frame);
  void send_waiting();
  void ring();
  void set_clock();

  const End end_;
  const FrameSocketOptions options_;
  const std::set<std::uint64_t> stations_;
  Poller& poller_;
  std::unique_ptr<FrameSocket> socket_;
  remote::Descriptor clock_;  ///< For what must be tried again
  Poller::Watch clock_watch_;
  bool looking_ = false;  ///< For a peer
  bool readable_ = true;
  std::vector<std::uint8_t> leaving_;              ///< The frame that comes to this end
  std::deque<std::vector<std::uint8_t>> waiting_;  ///< For room in the socket
  std::size_t waiting_bytes_ = 0;
  OutsideCounts counts_;
};

}  // namespace rnic::testbench
