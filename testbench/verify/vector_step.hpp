#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "driver/generated/host_interface.hpp"
#include "driver/nd2/ndtypes.h"
#include "driver/umd/kernel_qp.hpp"
#include "driver/umd/request.hpp"
#include "model/pcie_faults.hpp"
#include "model/wire_faults.hpp"

/// Steps of test vectors in memory, as docs/vectors.md describes them.
namespace rnic::testbench {

/// How the token of a place differs from the token of its region.
enum class TokenChange : std::uint8_t {
  kNone,
  kCorruptIndex,
  kCorruptHighIndex,  ///< The highest bit of the index: no table is so long
  kCorruptTag,
  kOther,
  kWindow,
  kStaleWindow,
  kCurrentWindow
};

/// A key with its index or its tag changed (InfiniBand specification 10.6.3: 24 bits and 8); the same for the others.
constexpr std::uint32_t corrupted(std::uint32_t key, TokenChange change) {
  if (change == TokenChange::kCorruptIndex) return key ^ 0x00155500;
  if (change == TokenChange::kCorruptHighIndex) return key ^ 0x80000000;
  return change == TokenChange::kCorruptTag ? key ^ 0x00000001 : key;
}

/// Bytes of a region: an SGE, or the remote side of a Read or Write.
struct VectorPlace {
  std::string region;
  std::int64_t offset = 0;
  std::uint32_t length = 0;
  TokenChange token = TokenChange::kNone;
  std::string token_of;  ///< kOther: region whose token is used; k*Window: window, its newest token, the
                         ///< one before
  std::optional<std::uint64_t> address;  ///< Replaces the region's address
};

/// A completion: as NetworkDirect reports it, or, with `cqe_statuses`, as the NIC does.
struct VectorResult {
  umd::RequestKind kind{};
  std::uint64_t context = 0;
  std::vector<std::int32_t> statuses;       ///< Any of these
  std::vector<hw::CqeStatus> cqe_statuses;  ///< Instead
  std::string open_by;                      ///< Clause that leaves several statuses open
  std::optional<std::uint32_t> bytes;
  std::optional<std::uint32_t> immediate;  ///< With cqe_statuses only
  std::string invalidated;        ///< With cqe_statuses only: window or region whose token the message has invalidated
  std::optional<std::size_t> qp;  ///< Whose request it was
  std::optional<std::size_t> source_qp;  ///< With cqe_statuses only: the peer's queue pair that sent the datagram
  /// With cqe_statuses only: whether the datagram had a VLAN tag, its VID, and its priority.
  std::optional<bool> tag;
  std::optional<std::uint16_t> vlan;
  std::optional<std::uint8_t> sl;
  std::optional<bool> l3_ok, l4_ok;      ///< With cqe_statuses only: the checksums of an Ethernet frame
  std::optional<std::uint8_t> syndrome;  ///< With cqe_statuses only
};

/// A multicast group.
struct VectorGroup {
  std::array<std::uint8_t, 16> gid{};  ///< IPv4 groups IPv4-mapped
  std::uint64_t mac{};                 ///< The MAC address that belongs to it
  bool ipv6{};
};

/// Where a datagram goes.
struct VectorAddress {
  std::size_t qp = 0;         ///< Of the peer
  std::uint32_t qpn_xor = 0;  ///< Inverts bits of its QPN
  std::uint32_t qkey = 0;
  bool ipv6 = false;
  std::uint8_t traffic_class = 0, hop_limit = 64;
  std::uint32_t flow_label = 0;
  std::uint16_t vlan = 0;  ///< VID of the VLAN that it is sent from; 0: none
  std::uint8_t sl = 0;
  std::optional<VectorGroup> group{};  ///< Instead of the peer. kAttach, kDetach: this one
};

/// A frame made by hand.
struct VectorFrame {
  enum class Part : std::uint8_t { kEthernet, kIp, kUdp, kBth, kExtended, kPayload };
  struct Byte {
    Part part{};
    std::size_t at = 0;
    std::uint8_t value = 0;
  };
  std::uint8_t opcode = 0;
  std::uint32_t psn = 0;                ///< Counted from the first one of the requests that it belongs to, modulo 2^24
  std::uint32_t payload = 0;            ///< Bytes
  std::optional<std::uint32_t> length;  ///< Of the RETH; otherwise that of the payload
  std::uint64_t swap_add = 0, compare = 0;
  std::uint32_t immediate = 0, msn = 0;
  std::uint8_t syndrome = 0x1f;  ///< Of the AETH; an ACK whose sender does not count its receive WQEs
  std::uint16_t pkey = 0xffff;
  std::uint32_t qpn_xor = 0;
  bool ack_req = true, solicited = false, stranger = false;
  bool ipv6 = false;                 ///< With those of the addresses of both hosts
  std::uint32_t qkey = 0;            ///< Of the DETH
  std::size_t source_qp = 0;         ///< Of the DETH: a queue pair of the sender
  std::optional<VectorGroup> group;  ///< To it, instead of to a queue pair
  std::optional<std::uint16_t> tci;  ///< PCP, DEI and VID of its VLAN tag
  std::vector<Byte> set;
  struct Insertion {
    Part part{};
    std::size_t at = 0;
    std::vector<std::uint8_t> bytes;
  };
  std::vector<std::uint8_t> bytes;  ///< The whole frame, but for `append`, instead of all other fields
  std::vector<Insertion> insert;    ///< After `set`, by the places before. Then ICRC and checksum are right
  bool wrong_icrc = false, wrong_checksum = false, bad_fcs = false;
  std::uint32_t cut = 0, append = 0;  ///< Bytes
};

/// Which Ethernet frames a host receives (registers PortEthernet, PortGroups).
struct VectorEthernet {
  bool enable = true, all_groups = false, promiscuous = false;
  std::uint64_t groups = 0;
};

enum class StepKind : std::uint8_t {
  kSend,
  kReceive,
  kWrite,
  kRead,
  kCompareSwap,
  kFetchAdd,
  kFlush,
  kComplete,
  kNoCompletion,
  kNotify,
  kNotified,
  kNotNotified,
  kMemory,
  kUntouched,
  kStore,
  kRegister,
  kDeregister,
  kWait,
  kFault,
  kFrame,
  kCounter,
  kState,
  kBind,
  kInvalidate,
  kReleaseWindow,
  kModify,
  kClose,
  kAttach,
  kDetach,
  kRing,
  kEvent,
  kNoEvent,
  kLink,
  kResizeCq,
  kModerateCq,
  kModifySrq,
  kFastRegister,
  kEndRegistration,
  kQueryAdapter,
  kReset,
  kMake,
  kRevoke,
  kRingReads,
  kGetResults,
  kQueryAffinity,
  kQueryInterface,
  kRelease,
  kCancel,
  kEndDevice,
  kRestartDevice,
  kReceiveEthernet,
  kBindAddress,
  kListen,
  kGetRequest,
  kConnect,
  kCompleteConnect,
  kAccept,
  kReject,
  kDisconnect,
  kNotifyDisconnect,
  kQueryConnection,
  kAdmin,
  kSpoilWqe,
  kDoorbell,
  kPushWqe,
  kEnable,
  kConfigure,
  kTlp,
  kCredits,
};

/// Steps about connectors and listeners.
struct VectorConnection {
  enum class Address : std::uint8_t { kPeer, kOwn, kAny, kLoopback, kNobody, kForeign, kNoFamily };
  enum class What : std::uint8_t { kPrivateData, kReadLimits, kLocalAddress, kPeerAddress };
  std::string object;     ///< Name of the connector or listener
  std::string connector;  ///< kGetRequest: whose the request will be
  bool is_listener = false;
  Address address{};
  std::uint16_t port = 0;
  bool short_address = false;  ///< One byte less than the family needs
  std::uint32_t backlog = 0, inbound = 4, outbound = 4;
  std::string data;
  bool bad_data = false;  ///< A pointer to nothing
  What what{};
  std::optional<std::uint32_t> room;  ///< kQueryConnection: bytes that the caller has
};

/// The object of NetworkDirect that a step is about.
enum class VectorObject : std::uint8_t {
  kAdapter,
  kQueuePair,
  kInitiatorQueue,
  kReceiveQueue,
  kSharedQueue,
  kRegion,
  kWindow,
  kConnector,
  kListener,
  kProtectionDomain,  ///< That of a region
  kMemory             ///< Of a region: where the NIC finds it
};

/// A number in an admin command or a doorbell: as it stands, or that of an object of the host.
struct VectorNumber {
  enum class Free : std::uint8_t { kNothing, kQueuePair, kQueue, kSharedQueue, kEventQueue, kKey };
  std::uint64_t value = 0;  ///< Or what the number is exclusive-or'd with
  std::optional<VectorObject> of;
  Free free{};  ///< One that nothing has
  std::size_t qp = 0;
  std::string name;  ///< kRegion, kProtectionDomain, kMemory: of the region
};

/// A command on the admin queue as the host interface has it, past the driver's checks.
struct VectorCommand {
  std::size_t body = 0;  ///< In hw::kAdminBodies
  VectorNumber number;
  std::map<std::string, VectorNumber> fields;  ///< That are otherwise than in a right command
  hw::AdminStatus status{};
  std::vector<std::optional<std::uint8_t>> result;  ///< The first bytes of what a command that succeeds answers
};

/// A write to a doorbell register, or pieces of a WQE for a WQE window, past the driver.
struct VectorUarWrite {
  /// The UAR page: that of the host's process, the kernel driver's, or one that nobody has.
  enum class Page : std::uint8_t { kOwn, kKernel, kOther };
  struct Piece {
    std::uint32_t at = 0, bytes = 0;  ///< 8, 16, 32 or 64
  };
  Page page{};
  std::size_t word = 0;                        ///< kDoorbell: in hw::kDoorbellWords
  std::map<std::string, VectorNumber> fields;  ///< The others are 0
  bool line = false;                           ///< Written as the line of 64 bytes that has the register
  std::vector<Piece> pieces;                   ///< kPushWqe, in this order
};

/// A TLP of the host to BAR0, of any form (PCI Express 2.2).
struct VectorTlp {
  enum class Kind : std::uint8_t { kWrite, kRead, kOther };
  Kind kind{};
  bool registers = true;     ///< Page 0; otherwise VectorUarWrite::page
  std::uint64_t at = 0;      ///< From the begin of the page, a multiple of 4
  std::uint16_t dwords = 1;  ///< Of its payload, or asked for
  std::uint8_t first_be = 0xf, last_be = 0;
  bool poisoned = false;                            ///< kWrite
  std::vector<std::uint8_t> write;                  ///< kWrite: its payload
  bool refused = false;                             ///< kRead, kOther: the completion is Unsupported Request
  std::vector<std::optional<std::uint8_t>> answer;  ///< kRead: the payload of its completion
};

/// The queue of a host that a step is about.
enum class VectorQueue : std::uint8_t { kInitiator, kReceive, kShared };

struct VectorStep {
  StepKind kind = StepKind::kWait;
  std::string text;  ///< What the file calls it, for messages: "step 3 (send)"
  std::size_t host = 0;
  std::size_t qp = 0;  ///< Queue pair of the host, from 0
  std::uint64_t context = 0;
  std::vector<VectorPlace> sge;
  VectorPlace remote;
  std::uint32_t flags = 0;           ///< ND_OP_FLAG_*, ND_MR_FLAG_* or ND_CQ_NOTIFY_*
  std::int32_t status = 0;           ///< What the call returns, or what the notification ends with
  std::optional<std::int32_t> call;  ///< What an overlapped call returns by itself
  bool defer = false;                ///< Requests: without the doorbell
  bool ip_csum = false;              ///< kSend: the NIC puts checksums into the frame
  VectorQueue queue = VectorQueue::kInitiator;
  VectorAddress to;  ///< kSend of a datagram; kAttach, kDetach: the group
  std::vector<VectorResult> results;
  std::uint64_t within_ns = 0, not_before_ns = 0;
  std::string name;         ///< Notification, or region
  std::string fast_region;  ///< kFastRegister, kEndRegistration
  std::string window;       ///< kBind, kInvalidate, kReleaseWindow
  std::string invalidate;   ///< kSend: window or region of the peer whose token it invalidates
  std::uint64_t offset = 0, length = 0, size = 0;
  std::optional<VectorPlace> equals;
  std::string open_by;  ///< kMemory: the clause that leaves several contents open
  std::set<bool>
      fills;  ///< kMemory: all bytes are zero (false) or the pattern (true). Any of these, `equals` and `payload_of`
  struct Payload {
    std::size_t qp = 0;
    std::uint32_t psn = 0;
    std::uint64_t byte = 0;
  };
  std::optional<Payload> payload_of;  ///< kMemory: of a hand-made frame
  /// kMemory: what stands there; any byte where there is none. kStore: what is written
  std::vector<std::optional<std::uint8_t>> bytes;
  VectorEthernet ethernet;  ///< kReceiveEthernet
  /// What kStore writes.
  [[nodiscard]] std::vector<std::uint8_t> stored() const {
    std::vector<std::uint8_t> known;
    for (const auto& byte : bytes) known.push_back(byte.value_or(0));
    for (unsigned i = 0; value && i < sizeof *value; ++i) known.push_back(static_cast<std::uint8_t>(*value >> 8 * i));
    return known;
  }
  /// kMemory, kStore: 8 bytes. kCounter: how often. kState, kModify: hw::QpState. kEvent: hw::EqeType. kFastRegister:
  /// virtual address. kModerateCq: time in us. kModifySrq: threshold. kQueryAdapter: version
  std::optional<std::uint64_t> value;
  std::optional<hw::CqeStatus> cause;               ///< kEvent
  std::map<std::string, std::uint64_t> attributes;  ///< kModify
  bool notify = false;                              ///< kModify: the end of the drain is an event
  std::optional<bool> draining;                     ///< kState: of SQD
  bool link_up = true;                              ///< kLink
  bool enable = true;                               ///< kEnable
  std::map<std::string, bool> settings;             ///< kConfigure
  std::vector<std::uint8_t> withheld;               ///< kCredits: model::CreditKind, each
  bool to_nic = false;                              ///< kCredits: of TLPs that go to the NIC, not to the host
  bool exact = true;  ///< kCounter: `value` times; otherwise at least so often, and at most `most` times
  std::optional<std::uint64_t> most;        ///< kCounter
  bool no_other = false;                    ///< kCounter: no counter of trouble that no step of the host names
  bool only_qp = false;                     ///< kFault: frames to `qp` alone. kCounter: one of `qp`
  bool remote_access = true;                ///< kFastRegister: the region may be registered with remote rights
  std::uint64_t swap_add = 0, compare = 0;  ///< Atomics
  std::optional<std::uint32_t> immediate;
  model::WireRule rule;                   ///< kFault; its PSN counts as that of VectorFrame
  VectorFrame frame;                      ///< kFrame; `remote` is what its RETH or AtomicETH names
  std::optional<model::PcieFault> reads;  ///< kRingReads: what each meets; nothing: it brings the data
  enum class Buffer : std::uint8_t { kValid, kNull, kUnmapped } buffer = Buffer::kValid;
  VectorObject object{};                  ///< kQueryInterface, kRelease, kCancel; its name or number as in other steps
  IID interface {};                       ///< kQueryInterface
  bool unchecked = false;                 ///< kBind: not through NetworkDirect
  std::string key_of;                     ///< kBind, unchecked: the window whose key is given for the region's; or none
  std::string null;                       ///< The argument that is a null pointer; none if empty
  std::optional<std::uint32_t> null_sge;  ///< Requests: entries of a list that is a null pointer
  VectorConnection connection;
  VectorCommand command;                                      ///< kAdmin
  std::vector<std::pair<std::uint32_t, std::uint8_t>> spoil;  ///< kSpoilWqe: bytes of the WQE and what they become
  VectorUarWrite uar_write;                                   ///< kDoorbell, kPushWqe; the page: kTlp
  VectorTlp tlp;                                              ///< kTlp
  std::uint32_t op_flags = 0;          ///< kFastRegister, kEndRegistration, kBind unchecked: ND_OP_FLAG_*
  std::optional<std::uint64_t> needs;  ///< kQueryAdapter: the size that comes back
  struct Range {
    std::uint64_t least = 0, most = ~std::uint64_t{0};
  };
  std::map<std::string, Range> fields;  ///< kQueryAdapter: of ND2_ADAPTER_INFO
};

}  // namespace rnic::testbench
