#pragma once

#include <array>
#include <cstdint>
#include <string_view>

/// What the specification leaves open, and `rnic compare` therefore does not hold against either NIC. All of it is
/// here; docs/compare.md has the same table.
namespace rnic::testbench {

enum class Freedom : std::uint8_t {
  kTimes,
  kCompletionOrder,
  kAcknowledges,
  kRepeats,
  kBehindError,
  kFailedMemory,
  kSharedReceives,
  kLostAnswer,
  kWindowEnds,
  kWindowElsewhere,
  kReadMsn,
  kRingReads,
  kRefusedPsn,
  kDroppedBehind,
  kOwnCopies,
  kTwoFaults,
  kNumbers,
  kAckRequest,
  kCounters,
};

struct FreedomEntry {
  Freedom freedom;
  std::string_view name;     ///< What is not compared
  std::string_view instead;  ///< What of it is compared all the same
  std::string_view clause;   ///< What leaves it open
};

inline constexpr std::array<FreedomEntry, 19> kFreedoms = {{
    {Freedom::kTimes, "when anything happens", "that it has happened before all is at rest",
     "no clause sets times but those of time-outs"},
    {Freedom::kCompletionOrder, "the order of completions and events of different queue pairs, queues, objects",
     "the order within one queue of one queue pair, and within one object", "IB 10.8.3"},
    {Freedom::kAcknowledges, "which ACKs are sent, and their credits",
     "the newest MSN of each PSN that both acknowledge (one of its MSNs, where a frame that is repeated asks for no "
     "ACK), and each NAK",
     "IB 9.7.5.1.2, 9.7.7.2"},
    {Freedom::kRepeats, "what is sent again, and how often; with faults of the wire all responses",
     "the first sending of each PSN", "IB 9.7.5.1.3, 9.9.2; decisions 50"},
    {Freedom::kBehindError, "how many packets had left when the sender learnt of an error",
     "those that both sent: one list begins with the other", "IB 9.9.2.2"},
    {Freedom::kFailedMemory,
     "memory of a request that failed in the middle, or was flushed behind one that was not refused",
     "all other memory, also that of requests behind a refused one", "IB 10.8.3, 9.9.3"},
    {Freedom::kSharedReceives,
     "how many Receives of a shared queue a queue pair had taken when it failed, and gives back flushed",
     "that none of them is a success, and the event behind the last; where they differ, completions, events "
     "and states to the end of that batch, but for which Receives messages find",
     "IB 10.2.9.3, 11.6.3.4"},
    {Freedom::kLostAnswer,
     "whether a request whose answer the wire has lost is answered again, when one behind it is refused meanwhile",
     "the requests in front of it, and that both responders end in the error state; where they differ, what other "
     "queue pairs do to the end of that batch",
     "IB 9.9.3, 10.3.1.7: in the error state no request is answered"},
    {Freedom::kWindowEnds,
     "whether a Read through a window is answered whose queue pair refuses a request behind it before its data have "
     "been read",
     "as of the one above", "decisions 18, 56, 76"},
    {Freedom::kWindowElsewhere, "when a window can be bound elsewhere whose queue pair is failing",
     "binds elsewhere in batches in which that queue pair lives, or has failed before: programs have no others",
     "decisions 56: no order between what two queue pairs do"},
    {Freedom::kReadMsn, "whether the MSN of the NAK of a Read counts that Read, and what is behind it",
     "the NAK, and the MSN of each other", "IB 9.7.7.1: a Read may count when it has been validated"},
    {Freedom::kRingReads,
     "which WQEs one DMA read brings, and whether one that was written to a UAR's window, or used before, is read "
     "again",
     "that no request behaves otherwise whose ring cannot be read when it is posted, without a window",
     "host_interface.md, UarWqeWindow; own"},
    {Freedom::kRefusedPsn, "whether a request that its own NIC refuses takes PSNs of an unreliable queue pair",
     "the packets behind it, but for their PSNs", "IB 9.8.2.1, 9.8.3"},
    {Freedom::kDroppedBehind,
     "whether messages of UC and UD that are under way behind one that its responder drops are dropped with it",
     "those of the next batch: programs have nothing behind such a message", "IB 9.8.2, unreliable"},
    {Freedom::kOwnCopies,
     "whether a datagram to a group comes to the sender's own port while an earlier one is on its way there",
     "those that come one at a time: programs wait behind each", "host_interface.md, LoopLost; IB 9.8.3, unreliable"},
    {Freedom::kTwoFaults, "which of two faults of one Receive is told",
     "each of them alone: programs give a Receive one fault",
     "IB 9.7.4.1, 9.9.3: no order among the checks of a Receive"},
    {Freedom::kNumbers, "QPNs, key values, UDP source ports that follow from QPNs",
     "which queue pair, region or window they name", "decisions 16"},
    {Freedom::kAckRequest, "the AckReq bit", "that what was asked for is acknowledged: its request ends", "IB 9.7.3.1"},
    {Freedom::kCounters, "counters of what is free above, and of what only hardware has",
     "all others; those of repairs and refusals as long as nothing fails and no frame is lost",
     "host_interface.md, counters"},
}};

}  // namespace rnic::testbench
