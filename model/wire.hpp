#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <systemc>
#include <utility>
#include <vector>

#include "model/ethernet.hpp"
#include "model/taps.hpp"
#include "model/timed_event.hpp"
#include "model/wire_direction.hpp"

namespace rnic::model {

/// What is at an end of a wire and has no clock at whose edges it could look: a switch.
class WireListener {
 public:
  virtual ~WireListener() = default;
  /// The last beat of a frame has come to its port, or a frame that was held has gone on. It takes all beats there are.
  virtual void frame_came() = 0;
  /// The link went down or came up.
  virtual void link_changed() = 0;
};

/// Full duplex Ethernet link between two NICs, or a NIC and a switch.
class Wire : public sc_core::sc_module {
 public:
  using Tap = std::function<void(const FrameRecord&)>;
  using Heard = std::span<const std::uint8_t>;  ///< A frame

  /// Throws std::invalid_argument when an option is out of range.
  Wire(const sc_core::sc_module_name& name, const WireOptions& options);

  /// The end `index`, 0 or 1. Throws std::out_of_range.
  [[nodiscard]] EthernetLink& port(std::size_t index) { return ports_.at(index); }
  /// Sends a whole frame (without frame check sequence) from port `from`, right behind what that port has sent or is
  /// sending. `bad`: with a wrong frame check sequence. Throws std::invalid_argument for an empty frame.
  void inject(std::size_t from, std::span<const std::uint8_t> frame, bool bad = false);

  /// They see each frame that is given to inject at port `from`, before it is sent, padded as it will be. Throws
  /// std::out_of_range.
  [[nodiscard]] Taps<Heard>& injections(std::size_t from) { return injections_.at(from); }

  /// `tap` is called once for each frame sent, at the time of its last bit, so in the order of these times. It sees the
  /// frame as it left its port, and which faults will hit it. One tap; empty: none.
  void set_tap(Tap tap) { tap_ = std::move(tap); }
  /// They hear each frame that whoever is at port `at` has taken whole, if its frame check sequence is right. Throws
  /// std::out_of_range.
  [[nodiscard]] Taps<Heard>& ears(std::size_t at) { return ports_.at(at).ears(); }
  /// They see each frame that the NIC at port `from` has sent whole while the link was down, and that is lost. Throws
  /// std::out_of_range.
  [[nodiscard]] Taps<Heard>& losses(std::size_t from) { return losses_.at(from); }
  /// `listener` is told what happens at port `at`. It outlives the wire. Throws std::out_of_range.
  void set_listener(std::size_t at, WireListener& listener) { listeners_.at(at) = &listener; }
  /// Adds a fault for exact frames of port `from`. Throws std::invalid_argument when it is out of range.
  void arm(std::size_t from, const WireRule& rule) { directions_.at(from).arm(rule); }
  /// The direction in which port `from` sends: its faults, and what is under way.
  [[nodiscard]] const WireDirection& direction(std::size_t from) const { return directions_.at(from); }
  /// What port `from` has sent.
  [[nodiscard]] const WireStatistics& statistics(std::size_t from) const { return directions_.at(from).statistics(); }

  /// Takes the link down, or up again: both ports see it at once. Frames that start while it is down are lost: the tap
  /// does not see them, `losses` do. Those under way arrive.
  void set_link(bool up);

  /// Drops everything under way and starts again with `options` and the link up; tap, ears and listeners stay.
  void reset(const WireOptions& options);

 private:
  class Port : public EthernetLink {
   public:
    Port(Wire& wire, std::size_t index) : wire_(wire), index_(index) {}
    [[nodiscard]] bool can_transmit() const override { return wire_.directions_[index_].can_transmit(now_ps()); }
    void transmit(const FrameBeat& beat) override { wire_.transmit(index_, beat); }
    [[nodiscard]] Picoseconds transmits_from() const override { return wire_.directions_[index_].transmits_from(); }
    void transmit_frame(std::span<const std::uint8_t> frame) override { wire_.transmit_frame(index_, frame); }
    bool receive(FrameBeat& beat) override;
    bool receive_frame(std::vector<std::uint8_t>& bytes, bool& bad) override;
    [[nodiscard]] bool link_up() const override { return wire_.link_up_; }
    [[nodiscard]] std::optional<Picoseconds> next_arrival() const override {
      return wire_.directions_[1 - index_].next_beat();
    }
    [[nodiscard]] std::optional<Picoseconds> next_frame() const override {
      return wire_.directions_[1 - index_].next_frame();
    }
    using NicLink::changed;
    using NicLink::pushed;
    [[nodiscard]] Taps<Heard>& ears() { return ears_; }
    void reset() { heard_.clear(); }

   private:
    Wire& wire_;
    std::size_t index_;
    Taps<Heard> ears_;
    std::vector<std::uint8_t> heard_;  ///< Of the frame that comes, if there is an ear
  };

  struct Injected {
    std::vector<std::uint8_t> bytes;
    bool bad;
  };

  void transmit(std::size_t from, const FrameBeat& beat);
  void transmit_frame(std::size_t from, std::span<const std::uint8_t> frame);
  void lose(std::size_t from, std::span<const std::uint8_t> bytes, bool last, bool bad);
  void send_injected(std::size_t from, std::span<const std::uint8_t> frame, bool bad);
  void send_waiting(std::size_t from);
  void sent(std::size_t from, std::optional<FrameRecord> record);
  void report();
  void expect_frame(std::size_t from);
  void arrive();

  std::array<WireDirection, 2> directions_;
  std::array<Port, 2> ports_;
  std::array<Taps<Heard>, 2> injections_;
  std::array<std::deque<Injected>, 2> injected_;  ///< Wait for the end of the frame that their port sends
  Tap tap_;
  std::array<std::deque<FrameRecord>, 2> records_;  ///< Sent, not yet reported
  TimedEvent report_event_;
  std::array<WireListener*, 2> listeners_{};
  TimedEvent arrive_event_;  ///< The next frame comes to a listener
  bool link_up_ = true;
  std::array<bool, 2> losing_{};                   ///< The frame that the port sends started while the link was down
  std::array<std::vector<std::uint8_t>, 2> lost_;  ///< What it has sent of that
  std::array<Taps<Heard>, 2> losses_;
};

}  // namespace rnic::model
