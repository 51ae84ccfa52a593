#pragma once

#include <cstdint>
#include <span>

#include "driver/generated/host_interface.hpp"

/// InfiniBand specification volume 1, table "QP state transition properties" (11.2.5.2), without alternate paths,
/// and 10.3.1: what each transition must be given, and what it may be given. Of UD, Av and PathMtu are this device's:
/// its own addresses and the port's MTU.
namespace rnic::test {

struct TransitionRow {
  hw::QpState from, to;
  std::uint32_t required, optional;
};

constexpr std::uint32_t operator|(hw::QpAttr a, hw::QpAttr b) {
  return static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b);
}
constexpr std::uint32_t operator|(std::uint32_t a, hw::QpAttr b) { return a | static_cast<std::uint32_t>(b); }

inline std::span<const TransitionRow> transition_rows(hw::QpType type = hw::QpType::kRc) {
  using A = hw::QpAttr;
  using S = hw::QpState;
  static constexpr TransitionRow kRows[] = {
      {S::kReset, S::kInit, A::kPkeyIndex | A::kPort | A::kAccessFlags, 0},
      {S::kInit, S::kInit, 0, A::kPkeyIndex | A::kPort | A::kAccessFlags},
      {S::kInit, S::kRtr, A::kAv | A::kPathMtu | A::kDestQpn | A::kRqPsn | A::kMaxDestRdAtomic | A::kMinRnrTimer,
       A::kAccessFlags | A::kPkeyIndex},
      {S::kRtr, S::kRts, A::kTimeout | A::kRetryCnt | A::kRnrRetry | A::kSqPsn | A::kMaxRdAtomic,
       A::kCurState | A::kAccessFlags | A::kMinRnrTimer},
      {S::kRts, S::kRts, 0, A::kCurState | A::kAccessFlags | A::kMinRnrTimer},
      {S::kRts, S::kSqd, 0, static_cast<std::uint32_t>(A::kSqdNotify)},
      {S::kSqd, S::kRts, 0, A::kCurState | A::kAccessFlags | A::kMinRnrTimer},
      {S::kSqd, S::kSqd, 0,
       A::kPort | A::kAv | A::kTimeout | A::kRetryCnt | A::kRnrRetry | A::kMaxRdAtomic | A::kMaxDestRdAtomic |
           A::kAccessFlags | A::kPkeyIndex | A::kMinRnrTimer},
      {S::kSqe, S::kRts, 0, A::kCurState | A::kAccessFlags},
  };
  static constexpr TransitionRow kUc[] = {
      {S::kReset, S::kInit, A::kPkeyIndex | A::kPort | A::kAccessFlags, 0},
      {S::kInit, S::kInit, 0, A::kPkeyIndex | A::kPort | A::kAccessFlags},
      {S::kInit, S::kRtr, A::kAv | A::kPathMtu | A::kDestQpn | A::kRqPsn, A::kAccessFlags | A::kPkeyIndex},
      {S::kRtr, S::kRts, static_cast<std::uint32_t>(A::kSqPsn), A::kCurState | A::kAccessFlags},
      {S::kRts, S::kRts, 0, A::kCurState | A::kAccessFlags},
      {S::kRts, S::kSqd, 0, static_cast<std::uint32_t>(A::kSqdNotify)},
      {S::kSqd, S::kRts, 0, A::kCurState | A::kAccessFlags},
      {S::kSqd, S::kSqd, 0, A::kPort | A::kAv | A::kAccessFlags | A::kPkeyIndex},
      {S::kSqe, S::kRts, 0, A::kCurState | A::kAccessFlags},
  };
  static constexpr TransitionRow kUd[] = {
      {S::kReset, S::kInit, A::kPkeyIndex | A::kPort | A::kQkey, 0},
      {S::kInit, S::kInit, 0, A::kPkeyIndex | A::kPort | A::kQkey},
      {S::kInit, S::kRtr, A::kAv | A::kPathMtu, A::kPkeyIndex | A::kQkey},
      {S::kRtr, S::kRts, static_cast<std::uint32_t>(A::kSqPsn), A::kCurState | A::kQkey},
      {S::kRts, S::kRts, 0, A::kCurState | A::kQkey},
      {S::kRts, S::kSqd, 0, static_cast<std::uint32_t>(A::kSqdNotify)},
      {S::kSqd, S::kRts, 0, A::kCurState | A::kQkey},
      {S::kSqd, S::kSqd, 0, A::kPkeyIndex | A::kQkey},
      {S::kSqe, S::kRts, 0, A::kCurState | A::kQkey},
  };
  // Of this device (host_interface.md, Ethernet).
  static constexpr auto kPort = static_cast<std::uint32_t>(A::kPort),
                        kCurState = static_cast<std::uint32_t>(A::kCurState);
  static constexpr TransitionRow kRawPacket[] = {
      {S::kReset, S::kInit, kPort, 0},  {S::kInit, S::kInit, 0, kPort},
      {S::kInit, S::kRtr, 0, 0},        {S::kRtr, S::kRts, 0, kCurState},
      {S::kRts, S::kRts, 0, kCurState}, {S::kRts, S::kSqd, 0, static_cast<std::uint32_t>(A::kSqdNotify)},
      {S::kSqd, S::kRts, 0, kCurState}, {S::kSqd, S::kSqd, 0, 0},
      {S::kSqe, S::kRts, 0, kCurState},
  };
  if (type == hw::QpType::kRawPacket) return kRawPacket;
  if (type == hw::QpType::kUc) return kUc;
  if (type == hw::QpType::kUd) return kUd;
  return kRows;
}

/// The row of a transition; one to RESET or ERR is legal from everywhere and takes nothing. Null: not legal.
inline const TransitionRow* transition_row(unsigned from, unsigned to, hw::QpType type = hw::QpType::kRc) {
  static constexpr TransitionRow kAlways{};
  if (to == static_cast<unsigned>(hw::QpState::kReset) || to == static_cast<unsigned>(hw::QpState::kErr))
    return &kAlways;
  for (const auto& row : transition_rows(type)) {
    if (static_cast<unsigned>(row.from) == from && static_cast<unsigned>(row.to) == to) return &row;
  }
  return nullptr;
}

}  // namespace rnic::test
