#include "driver/cm/state_table.hpp"

#include <array>

namespace rnic::cm {
namespace {

using S = State;
using I = Input;
using A = Action;

constexpr A kOverAndTell = A::kStop | A::kLinger | A::kTell;

// docs/connection_manager.md has the same as a page, with the reason of what the specification leaves open.
constexpr Rule kRules[] = {
    // Nothing is under way.
    {S::kIdle, I::kConnect, S::kReqSent, A::kSendReq | A::kAwait},
    {S::kIdle, I::kAsk, S::kSidrReqSent, A::kSendSidrReq | A::kAwait},
    {S::kIdle, I::kDestroy, S::kIdle, A::kNone},

    // Active side: REQ has left.
    {S::kReqSent, I::kMraReq, S::kMraReqReceived, A::kWaitOn},
    {S::kReqSent, I::kRej, S::kIdle, A::kStop | A::kTell},
    {S::kReqSent, I::kRep, S::kRepReceived, A::kStop | A::kTell},
    {S::kReqSent, I::kTimeout, S::kReqSent, A::kRepeat},
    {S::kReqSent, I::kRetriesOver, S::kIdle, A::kSendRejTimeout | A::kStop | A::kTell},
    {S::kReqSent, I::kDestroy, S::kTimeWait, A::kSendRejTimeout | A::kStop | A::kLinger},

    {S::kMraReqReceived, I::kMraReq, S::kMraReqReceived, A::kWaitOn},
    {S::kMraReqReceived, I::kRej, S::kIdle, A::kStop | A::kTell},
    {S::kMraReqReceived, I::kRep, S::kRepReceived, A::kStop | A::kTell},
    {S::kMraReqReceived, I::kTimeout, S::kReqSent, A::kRepeat},
    {S::kMraReqReceived, I::kRetriesOver, S::kIdle, A::kSendRejTimeout | A::kStop | A::kTell},
    {S::kMraReqReceived, I::kDestroy, S::kTimeWait, A::kSendRejTimeout | A::kStop | A::kLinger},

    // Active side: REP has come.
    {S::kRepReceived, I::kRep, S::kMraRepSent, A::kSendMraRep},
    {S::kRepReceived, I::kRej, S::kTimeWait, kOverAndTell},
    {S::kRepReceived, I::kReady, S::kEstablished, A::kSendRtu},
    {S::kRepReceived, I::kReject, S::kTimeWait, A::kSendRej | A::kLinger},
    {S::kRepReceived, I::kDestroy, S::kTimeWait, A::kSendRej | A::kLinger},

    {S::kMraRepSent, I::kRep, S::kMraRepSent, A::kSendMraRep},
    {S::kMraRepSent, I::kRej, S::kTimeWait, kOverAndTell},
    {S::kMraRepSent, I::kReady, S::kEstablished, A::kSendRtu},
    {S::kMraRepSent, I::kReject, S::kTimeWait, A::kSendRej | A::kLinger},
    {S::kMraRepSent, I::kDestroy, S::kTimeWait, A::kSendRej | A::kLinger},

    // Passive side: REQ has come.
    {S::kReqReceived, I::kReq, S::kMraReqSent, A::kSendMraReq},
    {S::kReqReceived, I::kRej, S::kIdle, A::kTell},
    {S::kReqReceived, I::kAccept, S::kRepSent, A::kSendRep | A::kAwait},
    {S::kReqReceived, I::kReject, S::kTimeWait, A::kSendRej | A::kLinger},
    {S::kReqReceived, I::kDestroy, S::kTimeWait, A::kSendRej | A::kLinger},

    {S::kMraReqSent, I::kReq, S::kMraReqSent, A::kSendMraReq},
    {S::kMraReqSent, I::kRej, S::kIdle, A::kTell},
    {S::kMraReqSent, I::kAccept, S::kRepSent, A::kSendRep | A::kAwait},
    {S::kMraReqSent, I::kReject, S::kTimeWait, A::kSendRej | A::kLinger},
    {S::kMraReqSent, I::kDestroy, S::kTimeWait, A::kSendRej | A::kLinger},

    // Passive side: REP has left.
    {S::kRepSent, I::kReq, S::kRepSent, A::kRepeat},
    {S::kRepSent, I::kMraRep, S::kMraRepReceived, A::kWaitOn},
    {S::kRepSent, I::kRej, S::kTimeWait, kOverAndTell},
    {S::kRepSent, I::kRtu, S::kEstablished, A::kStop | A::kTell},
    {S::kRepSent, I::kCommEstablished, S::kEstablished, A::kStop | A::kTell},
    {S::kRepSent, I::kDreq, S::kTimeWait, A::kSendDrep | kOverAndTell},
    {S::kRepSent, I::kTimeout, S::kRepSent, A::kRepeat},
    {S::kRepSent, I::kRetriesOver, S::kTimeWait, A::kSendRejTimeout | kOverAndTell},
    {S::kRepSent, I::kReject, S::kTimeWait, A::kSendRej | A::kStop | A::kLinger},
    {S::kRepSent, I::kDestroy, S::kTimeWait, A::kSendRej | A::kStop | A::kLinger},

    {S::kMraRepReceived, I::kReq, S::kMraRepReceived, A::kRepeat},
    {S::kMraRepReceived, I::kMraRep, S::kMraRepReceived, A::kWaitOn},
    {S::kMraRepReceived, I::kRej, S::kTimeWait, kOverAndTell},
    {S::kMraRepReceived, I::kRtu, S::kEstablished, A::kStop | A::kTell},
    {S::kMraRepReceived, I::kCommEstablished, S::kEstablished, A::kStop | A::kTell},
    {S::kMraRepReceived, I::kDreq, S::kTimeWait, A::kSendDrep | kOverAndTell},
    {S::kMraRepReceived, I::kTimeout, S::kRepSent, A::kRepeat},
    {S::kMraRepReceived, I::kRetriesOver, S::kTimeWait, A::kSendRejTimeout | kOverAndTell},
    {S::kMraRepReceived, I::kReject, S::kTimeWait, A::kSendRej | A::kStop | A::kLinger},
    {S::kMraRepReceived, I::kDestroy, S::kTimeWait, A::kSendRej | A::kStop | A::kLinger},

    // Both sides. A REP means that the RTU was lost; only the active side can get one.
    {S::kEstablished, I::kRep, S::kEstablished, A::kSendRtu},
    {S::kEstablished, I::kRtu, S::kEstablished, A::kNone},
    {S::kEstablished, I::kCommEstablished, S::kEstablished, A::kNone},
    {S::kEstablished, I::kRej, S::kTimeWait, kOverAndTell},
    {S::kEstablished, I::kDreq, S::kTimeWait, A::kSendDrep | kOverAndTell},
    {S::kEstablished, I::kLap, S::kEstablished, A::kSendApr},
    {S::kEstablished, I::kDisconnect, S::kDreqSent, A::kSendDreq | A::kAwait},
    {S::kEstablished, I::kDestroy, S::kDreqSent, A::kSendDreq | A::kAwait},

    // Disconnection; both may ask for it at the same time.
    {S::kDreqSent, I::kDrep, S::kTimeWait, kOverAndTell},
    {S::kDreqSent, I::kDreq, S::kTimeWait, A::kSendDrep | kOverAndTell},
    {S::kDreqSent, I::kRej, S::kTimeWait, kOverAndTell},
    {S::kDreqSent, I::kTimeout, S::kDreqSent, A::kRepeat},
    {S::kDreqSent, I::kRetriesOver, S::kTimeWait, kOverAndTell},
    {S::kDreqSent, I::kDisconnect, S::kDreqSent, A::kNone},
    {S::kDreqSent, I::kDestroy, S::kDreqSent, A::kNone},

    {S::kTimeWait, I::kReq, S::kTimeWait, A::kRepeat | A::kLinger},
    {S::kTimeWait, I::kSidrReq, S::kTimeWait, A::kRepeat | A::kLinger},
    {S::kTimeWait, I::kRep, S::kTimeWait, A::kRepeat},
    {S::kTimeWait, I::kDreq, S::kTimeWait, A::kSendDrep},
    {S::kTimeWait, I::kTimeWaitOver, S::kIdle, A::kTell},
    {S::kTimeWait, I::kDisconnect, S::kTimeWait, A::kNone},
    {S::kTimeWait, I::kDestroy, S::kTimeWait, A::kNone},

    // Datagram services.
    {S::kSidrReqSent, I::kSidrRep, S::kIdle, A::kStop | A::kTell},
    {S::kSidrReqSent, I::kSidrRefused, S::kIdle, A::kStop | A::kTell},
    {S::kSidrReqSent, I::kTimeout, S::kSidrReqSent, A::kRepeat},
    {S::kSidrReqSent, I::kRetriesOver, S::kIdle, A::kStop | A::kTell},
    {S::kSidrReqSent, I::kDestroy, S::kIdle, A::kStop},

    {S::kSidrReceived, I::kAccept, S::kTimeWait, A::kSendSidrRep | A::kLinger},
    {S::kSidrReceived, I::kReject, S::kTimeWait, A::kSendSidrRejected | A::kLinger},
    {S::kSidrReceived, I::kDestroy, S::kTimeWait, A::kSendSidrRejected | A::kLinger},
    {S::kSidrReceived, I::kSidrReq, S::kSidrReceived, A::kNone},
};

constexpr std::uint8_t kNoRule = 0xFF;
static_assert(std::size(kRules) < kNoRule);

constexpr auto kPlaces = [] {
  std::array<std::array<std::uint8_t, kInputs>, kStates> places{};
  for (auto& row : places) row.fill(kNoRule);
  for (std::size_t i = 0; i < std::size(kRules); ++i)
    places[static_cast<std::size_t>(kRules[i].state)][static_cast<std::size_t>(kRules[i].input)] =
        static_cast<std::uint8_t>(i);
  return places;
}();

}  // namespace

std::span<const Rule> rules() { return kRules; }

const Rule* find_rule(State state, Input input) {
  const auto place = kPlaces[static_cast<std::size_t>(state)][static_cast<std::size_t>(input)];
  return place == kNoRule ? nullptr : &kRules[place];
}

}  // namespace rnic::cm
