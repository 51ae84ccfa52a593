#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "testbench/wire_check/admin_watch.hpp"
#include "testbench/wire_check/incarnations.hpp"
#include "testbench/wire_check/packet.hpp"
#include "testbench/wire_check/queue_pair.hpp"
#include "testbench/wire_check/requester.hpp"
#include "testbench/wire_check/responder.hpp"

namespace rnic::wire_check {

/// Judges what one NIC sends, by the InfiniBand specification and annex A17: each frame by itself, and each queue pair
/// as a requester and a responder that answer to what came. What the queue pairs are it learns from the commands of
/// the driver (AdminWatch). It only looks, and shares no code with NICs, drivers and packet builders.
class PortCheck {
 public:
  PortCheck(ReadMemory memory, Complain complain);

  /// The processor writes to BAR0 (AdminWatch::written).
  void written(std::uint64_t offset, std::span<const std::uint8_t> data, const std::vector<bool>& enabled,
               Picoseconds now);
  /// The NIC has sent this frame (without frame check sequence). Not judged before a driver has begun.
  void sent(Frame frame, Picoseconds now);
  /// This frame has come to the NIC whole. `forged`: somebody who is no NIC made it. Where that is for a queue pair,
  /// the pair is not judged any more: what it must answer to a lie is not known here.
  void received(Frame frame, bool forged, Picoseconds now);

 private:
  /// A packet of the near past of a queue pair, or several of the middle of a message; told with a complaint.
  struct Event {
    Picoseconds at{};
    bool came{};
    Packet packet;
    std::uint32_t last_psn{};
  };
  struct QueuePair {
    Attributes attributes;
    std::uint8_t state = 0;
    std::uint16_t pkey{};
    Tag old_tag;  ///< Of its path before the newest one, which was given at `readdressed`
    Picoseconds readdressed{};
    ComplainOf complain;
    Incarnations<Requester> requester;
    Incarnations<Responder> responder;
    std::optional<Picoseconds> ended;  ///< When its end was answered
    /// The incarnation before, whose packets may still leave.
    struct Former {
      Attributes attributes;
      Picoseconds ended{};
    };
    std::optional<Former> former;
    bool distrusted = false;
    std::deque<Event> newest;
  };
  /// What came to the port just now, and whether it is forged or broken.
  struct Arrival {
    Packet packet;
    bool forged{};
    Moment came;
  };

  void commanded(const AdminCommand& command);
  void modify(QueuePair& qp, const AdminCommand& command);
  void unlist(std::uint32_t dest_qpn, std::uint32_t number);
  void move(QueuePair& qp, std::uint8_t state);
  void end(QueuePair& qp);
  void make_ready(QueuePair& qp);
  void settle(QueuePair& qp);
  void keep(QueuePair& qp, bool came, const Packet& packet) const;
  void complain_of(const QueuePair& qp, const Packet& packet, const std::string& what) const;
  void sent_other(Frame frame) const;
  [[nodiscard]] Moment moment() const { return {now_, bytes_}; }
  /// What a queue pair that ended then had begun.
  [[nodiscard]] bool may_leave(Picoseconds ended) const { return now_ <= ended + kGrace; }
  [[nodiscard]] QueuePair* sender_of(const Packet& packet);
  [[nodiscard]] bool has_its_tag(const QueuePair& qp, const Packet& packet) const;
  void distrust(QueuePair& qp);
  [[nodiscard]] bool is_from_its_peer(const QueuePair& qp, const Packet& packet) const;
  void take(QueuePair& qp, const Packet& packet, Moment now);

  Complain complain_;
  AdminWatch admin_;
  std::unordered_map<std::uint32_t, QueuePair> queue_pairs_;
  std::unordered_multimap<std::uint32_t, std::uint32_t> by_peer_;  ///< Its number to theirs, of the former ones too
  std::deque<Arrival> arrivals_;                                   ///< Those that may wait in the NIC
  Picoseconds now_ = 0;
  std::uint64_t bytes_ = 0;  ///< That have passed the port, both ways
};

}  // namespace rnic::wire_check
