#pragma once

#include <cstdint>
#include <span>

namespace rnic::cm {

/// Where a connection is (12.9). Names are those of the specification's state diagrams; DREQ Rcvd is passed through in
/// no time, because the answer to a DREQ does not wait for the consumer.
enum class State : std::uint8_t {
  kIdle,            ///< Nothing is under way; it may be used for a connection, or again
  kReqSent,         ///< Active: REP awaited
  kMraReqReceived,  ///< Active: the peer has asked for more time
  kRepReceived,     ///< Active: the consumer is asked
  kMraRepSent,      ///< Active: and we have asked for more time
  kReqReceived,     ///< Passive: the consumer is asked
  kMraReqSent,      ///< Passive: and we have asked for more time
  kRepSent,         ///< Passive: RTU awaited
  kMraRepReceived,  ///< Passive: the peer has asked for more time
  kEstablished,
  kDreqSent,      ///< DREP awaited
  kTimeWait,      ///< Over; what is late of it is known as such
  kSidrReqSent,   ///< Datagram service: answer awaited (12.11)
  kSidrReceived,  ///< The consumer is asked
};
inline constexpr unsigned kStates = 14;

/// What may happen to it: a message of the peer, a timer, a wish of the consumer.
enum class Input : std::uint8_t {
  // Messages.
  kReq,     ///< Again, for this connection
  kMraReq,  ///< About our REQ
  kMraRep,  ///< About our REP
  kRej,
  kRep,
  kRtu,
  kDreq,
  kDrep,
  kLap,
  kSidrReq,  ///< Again
  kSidrRep,  ///< With success
  kSidrRefused,
  // Timers.
  kTimeout,       ///< No answer; retries are left
  kRetriesOver,   ///< No answer to any
  kTimeWaitOver,  ///< Nothing of it can come any more
  // Wishes.
  kConnect,
  kAsk,  ///< Which queue pair serves (SIDR)
  kAccept,
  kReject,
  kReady,  ///< The queue pair of the active side is in RTS
  kDisconnect,
  kDestroy,         ///< The consumer gives it up
  kCommEstablished  ///< The queue pair has had a packet of the peer
};
inline constexpr unsigned kInputs = 23;

/// What follows.
enum class Action : std::uint32_t {
  kNone = 0,
  kSendReq = 1 << 0,
  kSendMraReq = 1 << 1,  ///< We need more time for the REQ
  kSendMraRep = 1 << 2,
  kSendRej = 1 << 3,         ///< With the consumer's reason and data
  kSendRejTimeout = 1 << 4,  ///< Reason: time-out
  kSendRep = 1 << 5,
  kSendRtu = 1 << 6,
  kSendDreq = 1 << 7,
  kSendDrep = 1 << 8,
  kSendApr = 1 << 9,  ///< Alternate paths are not supported
  kSendSidrReq = 1 << 10,
  kSendSidrRep = 1 << 11,
  kSendSidrRejected = 1 << 12,
  kRepeat = 1 << 13,  ///< The last message once more
  kAwait = 1 << 14,   ///< Its answer, with all retries
  kWaitOn = 1 << 15,  ///< As long as the peer has asked for
  kStop = 1 << 16,    ///< The timer
  kLinger = 1 << 17,  ///< The timer of TimeWait
  kTell = 1 << 18,    ///< The consumer
};
constexpr Action operator|(Action a, Action b) {
  return static_cast<Action>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
constexpr bool has(Action actions, Action one) {
  return (static_cast<std::uint32_t>(actions) & static_cast<std::uint32_t>(one)) != 0;
}

/// One line of the table.
struct Rule {
  State state{};
  Input input{};
  State next{};
  Action actions{};
};

/// All of them; what has none is dropped and counted (a message), without meaning (a timer), or refused (a wish).
[[nodiscard]] std::span<const Rule> rules();
/// The line for it, or null.
[[nodiscard]] const Rule* find_rule(State state, Input input);

}  // namespace rnic::cm
