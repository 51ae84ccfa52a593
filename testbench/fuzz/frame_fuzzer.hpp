#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/random.hpp"
#include "testbench/roce_frame.hpp"

namespace rnic::testbench {

/// What an attacker knows of a queue pair: how its real peer reaches it, and memory that it grants.
struct FuzzTarget {
  roce::RoceFields path;   ///< Addresses and QPN of a packet of its real peer
  std::uint32_t psn = 0;   ///< Next one that it expects, as far as the attacker knows
  std::uint32_t rkey = 0;  ///< Key of the memory, as a number
  std::uint64_t va = 0;
  std::uint32_t bytes = 0;
  std::uint32_t mtu = 256;
  /// A group of queue pairs for datagrams: whoever sends to it is a stranger to its members, and they have `qkey`.
  bool group = false;
  std::uint32_t qkey = 0;
  bool victim = false;  ///< Nothing that the attacker sends may have any effect on it
  /// Of the message that the attacker is in the middle of: bytes still to come, 0 when there is none.
  std::uint32_t left = 0;
  bool is_write = false;
  /// It takes packets, as far as the attacker knows; one that has failed gets none until it is made anew.
  bool alive = true;
  std::uint32_t sent_psn = 0;  ///< Newest PSN of the requests that it has sent itself
  std::uint64_t frames = 0;    ///< That were made for it

  /// Where it stood before each of the newest packets that it should have taken.
  struct Taken {
    std::uint32_t psn = 0, left = 0;
    bool is_write = false;
  };
  std::vector<Taken> taken;

  /// It should have taken a packet with this many PSNs.
  void take(std::uint32_t psns);
  /// It says that it expects `next`: because it has taken more than the attacker knew, or (`back`) less.
  void expect(std::uint32_t next, bool back);
};

/// Last byte of an address that nobody has.
inline constexpr std::uint8_t kStranger = 66;

/// Memory that exists and that the attacker has no right to.
struct ForeignMemory {
  std::uint32_t key = 0;
  std::uint64_t va = 0;
  std::uint32_t bytes = 0;
};

/// A frame to send, without frame check sequence.
struct FuzzFrame {
  roce::Bytes bytes;
  bool bad_fcs = false;
  FuzzTarget target;  ///< Whom it was made for, as known then
  bool live = false;  ///< A request for one that is sacrificed and alive, with the PSN that it expects: it gets past
                      ///< the check of the PSN
};

/// Makes malformed and misleading frames for the queue pairs of one host: builds a right packet, or takes one that was
/// seen on the wire, and lies in some of its fields. Most have a right ICRC, so that they get past the first check.
///
/// Most frames are for those that are sacrificed and alive, with the PSN that is expected, and many tell one lie only:
/// so they reach the check that this lie is for. Lies that cost a queue pair its life are rarer than the others,
/// because it takes time to make it anew.
///
/// A frame that a real peer of a victim could have sent is never made: such a frame is no attack that a NIC could see.
/// Its sender is then a stranger. Towards other queue pairs, those that are sacrificed, the attacker plays the peer.
class FrameFuzzer {
 public:
  FrameFuzzer(std::uint64_t seed, std::string_view part) : random_(seed, part) {}

  void set_foreign_memory(std::vector<ForeignMemory> memory) { foreign_ = std::move(memory); }
  /// A frame that was sent towards this host. The newest few are kept.
  void observe(std::span<const std::uint8_t> frame);

  /// `targets` is not empty. Moves the PSN of the target on when the frame looks like one that it takes. Nothing: all
  /// that are sacrificed have failed; wait.
  std::optional<FuzzFrame> next(std::span<FuzzTarget> targets);

 private:
  /// kBelow: in bytes, below the fields that a builder of packets has.
  enum class Lie : std::uint8_t { kNone, kHarmless, kDeadly, kSeveral, kBelow };

  [[nodiscard]] Lie choose_lie(bool victim);
  FuzzTarget* choose(std::span<FuzzTarget> targets);
  void build(FuzzFrame& made, FuzzTarget& target);
  std::uint32_t valid_request(roce::RoceFields& fields, FuzzTarget& target);
  void datagram(roce::RoceFields& fields, const FuzzTarget& target);
  void go_on(roce::RoceFields& fields, FuzzTarget& target);
  void response(roce::RoceFields& fields, const FuzzTarget& target);
  void harmless_lie(roce::RoceFields& fields, const FuzzTarget& target);
  void deadly_lie(roce::RoceFields& fields, const FuzzTarget& target);
  void address_lie(roce::RoceFields& fields, const FuzzTarget& target);
  void mutate_bytes(roce::Bytes& frame);
  void lie_in_ip(roce::Bytes& frame);
  roce::Bytes random_bytes(std::size_t count);
  [[nodiscard]] std::size_t random_payload();
  std::uint32_t wrong_psn(std::uint32_t psn);
  std::uint32_t wrong_key(std::uint32_t key);

  model::Random random_;
  std::vector<ForeignMemory> foreign_;
  std::deque<roce::Bytes> seen_;
};

/// True when `frame` could be a packet of the real peer of a victim: from its address, to its QPN, with a right ICRC.
[[nodiscard]] bool could_be_peer(std::span<const std::uint8_t> frame, std::span<const FuzzTarget> targets);
/// Makes the sender of the frame somebody that no queue pair is connected to; the rest, ICRC included, stays as right
/// or wrong as it was.
void make_stranger(roce::Bytes& frame);
/// What the attacker says in payload has the top bit of each byte clear, so that no byte of it can be taken for a
/// secret one (FuzzProcess::is_secret); an atomic adds nothing. The ICRC stays as right or wrong as it was.
void make_plain(roce::Bytes& frame);
/// The frame's PSN is the one that its target expected when it was made.
[[nodiscard]] bool has_expected_psn(const FuzzFrame& frame);
/// The frame made for `seen`, made for `now`: QPN, PSN, key and address are carried over where they are those of `seen`
/// or near them.
[[nodiscard]] roce::Bytes rebind(roce::Bytes frame, const FuzzTarget& seen, const FuzzTarget& now);

}  // namespace rnic::testbench
