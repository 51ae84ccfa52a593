#pragma once

#include <deque>

#include "model/reference/clock.hpp"
#include "model/reference/outside.hpp"
#include "model/reference/qp.hpp"

namespace rnic::reference {

class Nic;

/// The Ethernet port: frames that wait to leave, and what becomes of those that come.
class Port {
 public:
  explicit Port(Nic& nic);

  /// Room for another frame; wait for `room` without.
  [[nodiscard]] bool has_room() const { return waiting_bytes_ < kRoom; }
  /// `left` is called when the frame is in the MAC.
  void send(Bytes frame, std::function<void()> left);
  /// The MAC has taken the frame at the head of `out`.
  void left();
  /// A frame that has come. It is looked at when the pipeline of a NIC would have brought it there.
  void receive(Bytes frame, bool bad);
  /// A packet, or an Ethernet frame as one, goes to its queue pair. `to_group`: it is the copy of a member.
  void deliver(const Packet& packet, bool to_group);

  std::deque<Frame> out;
  Signal room;

 private:
  static constexpr std::size_t kRoom = 16384;

  void take(const Bytes& frame, bool bad);
  void drop(const Packet& packet, Qp& qp, Count why, QpCount own);
  void drop(const Packet& packet, Count why);

  Nic& nic_;
  std::size_t waiting_bytes_ = 0;
};

}  // namespace rnic::reference
