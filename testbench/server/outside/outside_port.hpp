#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <span>
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
  /// Nobody is outside. The end must stay as long as the simulation goes on, and so must this.
  OutsidePort(End end, std::set<std::uint64_t> stations);
  OutsidePort(const OutsidePort&) = delete;
  OutsidePort& operator=(const OutsidePort&) = delete;
  ~OutsidePort() override;

  /// From now on frames for the stations and for groups come in from the socket; `coming` is told of each before it is
  /// on the cable. Throws as FrameSocket::open, and std::system_error. `poller` outlives it.
  void open(const FrameSocketOptions& options, Poller& poller,
            std::function<void(std::span<const std::uint8_t>)> coming, std::function<void(const std::string&)> log);
  /// Nobody is outside any more.
  void close();
  /// A frame as from outside: it begins on the cable.
  void inject(std::span<const std::uint8_t> frame) { end_.wire.inject(end_.port, frame); }

  /// What has come by now begins on the cable, as much of it as there is room for, kBehind from now: a doorbell that a
  /// process rang before somebody outside sent may not have been seen yet, and comes to the NIC before the frame so.
  /// To be called before doorbells are looked for. Returns whether there was anything.
  bool take();
  static constexpr model::Picoseconds kBehind = 1'000'000;
  /// Frames wait for their moment to begin.
  [[nodiscard]] bool waits() const { return !arrived_.empty(); }

  void frame_came() override;
  void link_changed() override {}

  [[nodiscard]] const OutsideCounts& counts() const { return counts_; }
  [[nodiscard]] const FrameSocketOptions& options() const { return options_; }

 private:
  [[nodiscard]] bool room() const;
  bool receive_all();
  bool admit(const std::vector<std::uint8_t>& frame);
  void leave(std::vector<std::uint8_t> frame);
  void send_waiting();
  void ring();
  void set_clock();

  const End end_;
  const std::set<std::uint64_t> stations_;
  FrameSocketOptions options_;
  std::function<void(std::span<const std::uint8_t>)> coming_;
  Poller* poller_ = nullptr;
  std::unique_ptr<FrameSocket> socket_;  ///< None: nobody is outside
  remote::Descriptor clock_;             ///< For what must be tried again
  Poller::Watch clock_watch_{};
  bool looking_ = false;  ///< For a peer
  bool readable_ = true;
  struct Arrived {
    model::Picoseconds begins;
    std::vector<std::uint8_t> frame;
  };
  std::deque<Arrived> arrived_;
  std::size_t arrived_bytes_ = 0;
  std::vector<std::uint8_t> leaving_;              ///< The frame that comes to this end
  std::deque<std::vector<std::uint8_t>> waiting_;  ///< For room in the socket
  std::size_t waiting_bytes_ = 0;
  OutsideCounts counts_;
};

}  // namespace rnic::testbench
