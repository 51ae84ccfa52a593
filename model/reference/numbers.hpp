#pragma once

#include <cstdint>

/// Numbers of docs/host_interface.md and of the specifications that it names.
namespace rnic::reference {

enum class QpType : std::uint8_t { Rc = 0, Uc = 1, RawPacket = 2, Ud = 3 };
enum class QpState : std::uint8_t { Reset, Init, Rtr, Rts, Sqd, Sqe, Err };

namespace wqe {
enum : std::uint8_t {
  Send = 0,
  Write = 1,
  Read = 2,
  CompareSwap = 3,
  FetchAdd = 4,
  BindWindow1 = 5,
  LocalInvalidate = 6,
  FastRegister = 8,
  SendImmediate = 0x10,
  WriteImmediate = 0x11,
  SendInvalidate = 0x20,
  BindWindow2 = 0x45
};
}

namespace cqe {
enum : std::uint8_t { Receive = 0x80, ReceiveWrite = 0x81, Flush = 0xff };
}

enum class Status : std::uint8_t {
  Success = 0,
  LocLenErr = 1,
  LocQpOpErr = 2,
  LocProtErr = 4,
  WrFlushErr = 5,
  BadRespErr = 7,
  RemInvReqErr = 9,
  RemAccessErr = 0xa,
  RemOpErr = 0xb,
  RetryExcErr = 0xc,
  RnrRetryExcErr = 0xd,
  FatalErr = 0x13
};

enum class Event : std::uint8_t {
  Completion = 1,
  CqError = 2,
  QpFatal = 3,
  QpRequestError = 0x12,
  QpAccessError = 0x13,
  CommEstablished = 0x14,
  SqDrained = 0x15,
  DeviceFatal = 0x18,
  PortActive = 0x19,
  PortError = 0x1a,
  SrqError = 0x1e,
  SrqLimit = 0x1f,
  LastWqeReached = 0x20
};

enum class Arm : std::uint8_t { None, Errors, Solicited, Any };

enum class AdminStatus : std::uint8_t {
  Success,
  BadOpcode,
  BadParameter,
  BadNumber,
  Exists,
  BadState,
  InUse,
  TooSmall,
  NoGroup,
  NotAttached
};

enum class MptType : std::uint8_t { Region, Window1, Window2, FastRegion };
enum class Xlate : std::uint8_t { Ok, BadIndex, BadTag, BadPd, BadAccess, BadRange, PageListError, BadState, BadQp };
enum class MemOp : std::uint8_t { Ok, BadKey, BadAccess, BadRange, BadState, BadRequest };

/// Bits of attr_mask of ModifyQp.
namespace attr {
enum : std::uint32_t {
  State = 1,
  CurState = 2,
  SqdNotify = 4,
  AccessFlags = 8,
  PkeyIndex = 0x10,
  Port = 0x20,
  Qkey = 0x40,
  Av = 0x80,
  PathMtu = 0x100,
  Timeout = 0x200,
  RetryCnt = 0x400,
  RnrRetry = 0x800,
  RqPsn = 0x1000,
  MaxRdAtomic = 0x2000,
  MinRnrTimer = 0x8000,
  SqPsn = 0x10000,
  MaxDestRdAtomic = 0x20000,
  DestQpn = 0x100000
};
}

/// Low five bits of a BTH opcode (InfiniBand specification 9.2.1, table 38).
namespace op {
enum : std::uint8_t {
  SendFirst,
  SendMiddle,
  SendLast,
  SendLastImmediate,
  SendOnly,
  SendOnlyImmediate,
  WriteFirst,
  WriteMiddle,
  WriteLast,
  WriteLastImmediate,
  WriteOnly,
  WriteOnlyImmediate,
  ReadRequest,
  ReadResponseFirst,
  ReadResponseMiddle,
  ReadResponseLast,
  ReadResponseOnly,
  Acknowledge,
  AtomicAcknowledge,
  CompareSwap,
  FetchAdd,
  Reserved15,
  SendLastInvalidate,
  SendOnlyInvalidate
};
}
inline constexpr std::uint8_t kCongestionNotification = 0x81;  ///< RoCEv2 CNP (annex A17.9.3)

/// AETH syndromes (tables 45, 46).
namespace aeth {
enum : std::uint8_t {
  NoCredit = 0x1f,
  Rnr = 0x20,
  NakPsn = 0x60,
  NakInvalidRequest = 0x61,
  NakRemoteAccess = 0x62,
  NakRemoteOperational = 0x63
};
}

inline constexpr unsigned kLogKeys = 15, kKeys = 1 << kLogKeys;
inline constexpr unsigned kQps = 256, kCqs = 256, kSrqs = 256, kEqs = 32, kUars = 128, kVectors = 32;
inline constexpr unsigned kMaxSge = 16, kMaxInline = 224, kMaxReads = 16, kSqWindow = 64, kGroups = 16;
inline constexpr std::uint32_t kListLines = 1024, kMaxRegionLines = 8;
inline constexpr std::uint32_t kMaxFastPages = 32768, kMulticastQpn = 0xffffff;
inline constexpr std::uint32_t kMaxMessage = 0x80000000;
inline constexpr std::size_t kEthernetHeader = 14, kMaxFrame = 4096;  // of a RawPacket queue pair

/// Counters of the NIC.
enum class Count : std::uint8_t {
  TxFrames,
  TxRequests,
  TxReadResponses,
  TxAcks,
  TxNaks,
  TxRnrNaks,
  TxDropped,
  RxFrames,
  RxRoce,
  RxNotRoce,
  RxMalformed,
  RxBadIcrc,
  RxOverflow,
  RxCongestion,
  RxNoQp,
  RxBadState,
  RxBadPeer,
  RxBadQkey,
  RxBrokenMessages,
  RxDuplicate,
  RxPsnError,
  RxInvalidRequest,
  RxForbidden,
  RxNoRoom,
  RxSrqErrors,
  RxRnr,
  RxHeld,
  RxAcks,
  RxNaks,
  RxGaps,
  RxReadResponses,
  RxStrayResponses,
  RxBadResponses,
  RxAtomics,
  RxAtomicRepeats,
  RxPlaceFaults,
  XlateRequests,
  XlateFaults,
  TlbMisses,
  TlbPrefetches,
  DmaReads,
  DmaWrites,
  DmaReadErrors,
  DmaReadTimeouts,
  HostUnsupported,
  SendDoorbells,
  ReceiveDoorbells,
  CqDoorbells,
  DoorbellsRefused,
  WindowWqes,
  WindowFallbacks,
  WqeFetches,
  WqeErrors,
  MemoryOps,
  MemoryOpsRefused,
  FenceStalls,
  ReadLimitStalls,
  WindowStalls,
  CreditStalls,
  SequenceRetries,
  AckTimeouts,
  RnrRetries,
  RetriesExhausted,
  Cqes,
  FlushedWqes,
  CqOverruns,
  Eqes,
  EqOverruns,
  MsixMessages,
  RetiredRecords,
  AdminCommands,
  MulticastCopies,
  LoopLost,
  RxEthernet,
  RxEthernetLost
};
inline constexpr unsigned kCounters = 75;

/// Counters of a queue pair.
enum class QpCount : std::uint8_t {
  BadPeer,
  BadQkey,
  BadState,
  Duplicates,
  PsnErrors,
  Held,
  InvalidRequests,
  Forbidden,
  NoReceive,
  BrokenMessages,
  PlaceFaults,
  NoRoom,
  NaksSent,
  RnrNaksSent,
  NaksReceived,
  RnrNaksReceived,
  Gaps,
  StrayResponses,
  SequenceRetries,
  AckTimeouts,
  RetriesExhausted,
  SendFaults,
  BadResponses,
  SrqErrors
};
inline constexpr unsigned kQpCounters = 24;

}  // namespace rnic::reference
