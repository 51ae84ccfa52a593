#include "driver/qp_transition.hpp"

namespace rnic {
namespace {

using hw::QpAttr;
using hw::QpState;

constexpr QpAttributes kInit = attributes(QpAttr::kPkeyIndex, QpAttr::kPort, QpAttr::kAccessFlags);
constexpr QpAttributes kRunning = attributes(QpAttr::kCurState, QpAttr::kAccessFlags, QpAttr::kMinRnrTimer);
constexpr QpAttributes kDrained =
    attributes(QpAttr::kPort, QpAttr::kAv, QpAttr::kTimeout, QpAttr::kRetryCnt, QpAttr::kRnrRetry, QpAttr::kMaxRdAtomic,
               QpAttr::kMaxDestRdAtomic, QpAttr::kAccessFlags, QpAttr::kPkeyIndex, QpAttr::kMinRnrTimer);

/// What only RC has, and what UD has not either.
constexpr QpAttributes kReliable = attributes(QpAttr::kTimeout, QpAttr::kRetryCnt, QpAttr::kRnrRetry,
                                              QpAttr::kMaxRdAtomic, QpAttr::kMaxDestRdAtomic, QpAttr::kMinRnrTimer);
constexpr QpAttributes kConnected = kReliable | attributes(QpAttr::kAccessFlags, QpAttr::kDestQpn, QpAttr::kRqPsn);

/// All that RawPacket has.
constexpr QpAttributes kRaw = attributes(QpAttr::kPort, QpAttr::kCurState, QpAttr::kSqdNotify);

QpTransition to_rts(QpState from) {
  switch (from) {
    case QpState::kRtr:
      return {true,
              attributes(QpAttr::kTimeout, QpAttr::kRetryCnt, QpAttr::kRnrRetry, QpAttr::kSqPsn, QpAttr::kMaxRdAtomic),
              kRunning};
    case QpState::kRts:
    case QpState::kSqd: return {true, 0, kRunning};
    case QpState::kSqe: return {true, 0, attributes(QpAttr::kCurState, QpAttr::kAccessFlags)};
    default: return {};
  }
}

QpTransition of_rc(QpState from, QpState to) {
  switch (to) {
    case QpState::kReset:
    case QpState::kErr: return {true, 0, 0};
    case QpState::kInit:
      if (from == QpState::kReset) return {true, kInit, 0};
      return {from == QpState::kInit, 0, kInit};
    case QpState::kRtr:
      return {from == QpState::kInit,
              attributes(QpAttr::kAv, QpAttr::kPathMtu, QpAttr::kDestQpn, QpAttr::kRqPsn, QpAttr::kMaxDestRdAtomic,
                         QpAttr::kMinRnrTimer),
              attributes(QpAttr::kAccessFlags, QpAttr::kPkeyIndex)};
    case QpState::kRts: return to_rts(from);
    case QpState::kSqd:
      if (from == QpState::kSqd) return {true, 0, kDrained};
      return {from == QpState::kRts, 0, attribute(QpAttr::kSqdNotify)};
    default: return {};
  }
}

}  // namespace

QpTransition qp_transition(QpState from, QpState to, hw::QpType type) {
  auto transition = of_rc(from, to);
  if (type == hw::QpType::kRc) return transition;
  if (type == hw::QpType::kRawPacket) {
    transition.required &= kRaw;
    transition.optional &= to == QpState::kSqd ? kRaw & ~attribute(QpAttr::kPort) : kRaw;
    return transition;
  }
  const bool ud = type == hw::QpType::kUd;
  transition.required &= ~(ud ? kConnected : kReliable);
  transition.optional &= ~(ud ? kConnected : kReliable);
  if (!ud || !transition.legal || to == QpState::kReset || to == QpState::kErr) return transition;
  if (to == QpState::kSqd) transition.optional &= ~attributes(QpAttr::kAv, QpAttr::kPort);
  if (from == QpState::kReset)
    transition.required |= attribute(QpAttr::kQkey);
  else if (to != QpState::kSqd || from == QpState::kSqd)
    transition.optional |= attribute(QpAttr::kQkey);
  return transition;
}

}  // namespace rnic
