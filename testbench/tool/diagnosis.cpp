#include "testbench/tool/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <list>
#include <optional>
#include <type_traits>

#include "driver/generated/host_interface.hpp"
#include "model/time.hpp"
#include "testbench/timeline/life_names.hpp"

namespace rnic::testbench {
namespace {

using Status = hw::CqeStatus;

/// BTH opcodes of a reliable connection (InfiniBand specification 9.2.1, table 38).
constexpr std::uint8_t kFirstWrite = 0x06, kLastWrite = 0x0b, kReadRequest = 0x0c;

std::string host_name(const MachineServer& server, unsigned host) {
  for (const auto& one : server.hosts()) {
    if (one->host().index() == host) return one->host().basename();
  }
  return fmt::format("host{}", host);
}

const HostServer* find_host(const MachineServer& server, unsigned host) {
  const auto& all = server.hosts();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one->host().index() == host; });
  return found == all.end() ? nullptr : found->get();
}

/// The event counter that counts such a refusal (docs/host_interface.md).
std::string_view counter_of(RxReason reason) {
  switch (reason) {
    case RxReason::kNone: return "RxPlaceFaults";
    case RxReason::kNoQp: return "RxNoQp";
    case RxReason::kBadState: return "RxBadState";
    case RxReason::kBadPeer: return "RxBadPeer";
    case RxReason::kBadQkey: return "RxBadQkey";
    case RxReason::kBroken: return "RxBrokenMessages";
    case RxReason::kInvalid: return "RxInvalidRequest";
    case RxReason::kForbidden: return "RxForbidden";
    case RxReason::kRnr: return "RxRnr";
    default: return {};
  }
}

std::string_view reason_text(RxReason reason) {
  switch (reason) {
    case RxReason::kNone: return "it may not access the memory";
    case RxReason::kNoQp: return "it has no such queue pair";
    case RxReason::kBadState: return "the queue pair is in a state that takes no requests";
    case RxReason::kBadPeer: return "the queue pair is connected to another peer";
    case RxReason::kBadQkey: return "the Q_Key is another one";
    case RxReason::kBroken: return "its packets do not make a message";
    case RxReason::kInvalid: return "the request is invalid";
    case RxReason::kForbidden: return "the memory may not be used";
    case RxReason::kRnr: return "no Receive was posted";
    default: return {};
  }
}

/// A status that the peer decides, with the clause that says so.
std::string_view clause_of(const FailedRequest& request) {
  switch (static_cast<Status>(request.status)) {
    case Status::kRemAccessErr:
      return "9.7.4.1.5 (the responder validates R_Key, access rights, range and protection domain)";
    case Status::kRemInvReqErr:
      return "9.7.4.1 (the responder validates opcode, sequence and length of each request packet)";
    case Status::kRemOpErr: return "9.7.4.1.7 (the responder failed while it executed the request)";
    case Status::kRetryExcErr: return "9.7.6.1.3 (time-out of a request, retry count)";
    case Status::kRnrRetryExcErr: return "9.7.5.2.8 (RNR NAK, its timer and retry count)";
    case Status::kLocProtErr: return "10.6.3 (access rights of memory regions)";
    case Status::kBadRespErr: return "9.7.6.1 (which responses a requester accepts)";
    default: return {};
  }
}

std::string syndrome_name(std::uint8_t syndrome) {
  constexpr unsigned kKind = 5;
  constexpr std::uint8_t kRnr = 1;
  if ((syndrome >> kKind & 3U) == kRnr) return "RNR NAK";
  switch (syndrome) {
    case 0x61: return "NAK invalid request";
    case 0x62: return "NAK remote access error";
    case 0x63: return "NAK remote operational error";
    default: return "NAK";
  }
}

/// A region or a window, and whose it is.
template <typename Record>
struct Owned {
  const ProcessRecord* process;
  const Record* object;
};

/// The newest of `all` (of a process) that `has` the key.
template <typename Record, typename Has>
std::optional<Owned<Record>> find_newest(const HostServer& host, std::list<Record> ProcessRecord::*all,
                                         const Has& has) {
  std::optional<Owned<Record>> found;
  for (const auto& process : host.book().all()) {
    for (const auto& object : (*process).*all) {
      if (has(object)) found = Owned<Record>{process.get(), &object};
    }
  }
  return found;
}

std::pair<const ProcessRecord*, const QueuePairRecord*> find_pair(const HostServer& host, std::uint32_t qpn) {
  for (const auto& process : host.book().all()) {
    for (const auto& pair : process->queue_pairs) {
      if (pair.qpn == qpn) return {process.get(), &pair};
    }
  }
  return {nullptr, nullptr};
}

/// Why the queue pair `qpn` cannot use the object at all; empty: it could.
template <typename Record>
std::string explain_owner(const Owned<Record>& owned, const HostServer& host, const Refusal& refusal,
                          const std::string& what) {
  const std::uint64_t refused_ps = refusal.packet.sent_ns * model::kPicosecondsPerNanosecond;
  const auto [process, pair] = find_pair(host, refusal.qpn);
  const bool is_window = std::is_same_v<Record, WindowRecord>;
  if (owned.object->gone_ps && *owned.object->gone_ps <= refused_ps)
    return fmt::format("its {} had been {}", what, is_window ? "deallocated" : "deregistered");
  if (process != owned.process) return fmt::format("its {} belongs to another process than the queue pair", what);
  if (pair->client != owned.object->client || pair->pd != owned.object->pd)
    return fmt::format("its {} is in another protection domain than the queue pair", what);
  return {};
}

/// The same of an R_Key of no region; binds are work requests, so the machine does not know the last one.
std::string explain_window(const HostServer& host, const Refusal& refusal, const std::string& host_name) {
  const auto window =
      find_newest(host, &ProcessRecord::windows, [&](const WindowRecord& one) { return one.has(refusal.rkey); });
  if (!window) return fmt::format("no process on {} has registered a memory region with this R_Key", host_name);
  if (auto text = explain_owner(*window, host, refusal, "memory window"); !text.empty()) return text;
  const bool of_one = window->object->type == hw::MptType::kWindow2;
  return fmt::format(
      "its memory window (type {}) is not bound with this R_Key, or its last bind does not allow the range or the "
      "access{}",
      of_one ? 2 : 1, of_one ? ", or was posted to another queue pair" : "");
}

/// What is wrong with the R_Key of a refused request; empty: its packet has none.
std::string explain_key(const Refusal& refusal, const MachineServer& server) {
  const HostServer* const host = find_host(server, refusal.host);
  const std::uint8_t opcode = refusal.packet.opcode;
  const bool write = opcode >= kFirstWrite && opcode <= kLastWrite, read = opcode == kReadRequest;
  const bool atomic = opcode > kLastResponse;
  if (host == nullptr || (refusal.rkey == 0 && refusal.va == 0) || !(write || read || atomic)) return {};
  const std::uint64_t bytes = atomic ? sizeof(std::uint64_t) : refusal.asked;
  const std::string asks = fmt::format("R_Key {:#x} for {} bytes at {:#x}: ", refusal.rkey, bytes, refusal.va);
  const auto owner =
      find_newest(*host, &ProcessRecord::regions, [&](const RegionRecord& one) { return one.key == refusal.rkey; });
  if (!owner) return asks + explain_window(*host, refusal, host_name(server, refusal.host));
  if (const auto text = explain_owner(*owner, *host, refusal, "memory region"); !text.empty()) return asks + text;
  const RegionRecord& region = *owner->object;
  const std::string_view right = write ? "remote write" : read ? "remote read" : "remote atomics";
  if (!(write ? region.remote_write : read ? region.remote_read : region.remote_atomic))
    return asks + fmt::format("its memory region was registered without {} access", right);
  if (refusal.va < region.iova || bytes > region.length || refusal.va - region.iova > region.length - bytes)
    return asks + fmt::format("its memory region has {} bytes at {:#x}, so the range is not inside", region.length,
                              region.iova);
  if (atomic && refusal.va % sizeof(std::uint64_t) != 0)
    return asks + "the address of an atomic is not a multiple of 8";
  return asks + fmt::format("its memory region allows {}, so the access flags of the queue pair do not", right);
}

std::string what_happened(const FailedRequest& request, const std::string& peer) {
  const auto status = static_cast<Status>(request.status);
  if (status == Status::kLocProtErr) return "its own NIC refused it: L_Key, range or access rights of a local buffer";
  if (status == Status::kLocLenErr)
    return request.receive ? "the message is longer than the buffers of the Receive" : "its own NIC refused its length";
  if (status == Status::kLocQpOpErr) return "its own NIC refused it: the work request is malformed";
  if (request.receive) return "its own NIC completed it so";
  if (status == Status::kRetryExcErr) {
    std::string text =
        fmt::format("no answer, {} packets sent again, then the retry count was exhausted", request.repeated);
    if (!request.refusal) return text + "; no packet of it was accepted by another NIC";
    return text + fmt::format("; the NIC of {} dropped its packets: {} (counter {})", peer,
                              reason_text(request.refusal->reason), counter_of(request.refusal->reason));
  }
  if (!request.answer && !request.refusal) return "no other NIC has refused it";
  std::string text = fmt::format("the NIC of {} refused it", peer);
  if (request.answer)
    text += fmt::format(" with {} (AETH syndrome {:#04x})", syndrome_name(request.answer->syndrome),
                        request.answer->syndrome);
  if (request.refusal)
    text += fmt::format(": {} (counter {})", reason_text(request.refusal->reason), counter_of(request.refusal->reason));
  return text;
}

/// As Wireshark shows the times of a capture.
std::string in_seconds(std::uint64_t ns) {
  constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;
  return fmt::format("{}.{:09} s", ns / kNanosecondsPerSecond, ns % kNanosecondsPerSecond);
}

std::string where_to_look(const FailedRequest& request) {
  std::string text;
  const auto add = [&](const char* what, const PacketMark& packet) {
    if (packet.frame == 0) return;
    text += fmt::format("{}frame {} of the capture at {} ({}, {}, PSN {})", text.empty() ? "See " : " and ",
                        packet.frame, in_seconds(packet.sent_ns), what, opcode_name(packet.opcode), packet.psn);
  };
  if (request.refusal) add("the request", request.refusal->packet);
  if (request.answer) add("the answer", request.answer->packet);
  if (text.empty()) text = fmt::format("See {} of the timeline", in_seconds(request.ended_ns));
  return text;
}

}  // namespace

std::string_view status_name(std::uint8_t status) {
  switch (static_cast<Status>(status)) {
    case Status::kSuccess: return "success";
    case Status::kLocLenErr: return "local length error (IBV_WC_LOC_LEN_ERR)";
    case Status::kLocQpOpErr: return "local QP operation error (IBV_WC_LOC_QP_OP_ERR)";
    case Status::kLocProtErr: return "local protection error (IBV_WC_LOC_PROT_ERR)";
    case Status::kWrFlushErr: return "flushed (IBV_WC_WR_FLUSH_ERR)";
    case Status::kBadRespErr: return "bad response error (IBV_WC_BAD_RESP_ERR)";
    case Status::kRemInvReqErr: return "remote invalid request error (IBV_WC_REM_INV_REQ_ERR)";
    case Status::kRemAccessErr: return "remote access error (IBV_WC_REM_ACCESS_ERR)";
    case Status::kRemOpErr: return "remote operation error (IBV_WC_REM_OP_ERR)";
    case Status::kRetryExcErr: return "transport retry counter exceeded (IBV_WC_RETRY_EXC_ERR)";
    case Status::kRnrRetryExcErr: return "RNR retry counter exceeded (IBV_WC_RNR_RETRY_EXC_ERR)";
    case Status::kFatalErr: return "fatal error (IBV_WC_FATAL_ERR)";
  }
  return "unknown status";
}

std::string diagnose(const FailedRequest& request, const std::string& name, unsigned host, std::uint32_t qpn,
                     const MachineServer& server) {
  const std::string what = request.kind == "request" ? "work request" : request.kind;
  std::string text = fmt::format("{} {} of {} on {} (QP {:#x}{}", what, request.wqe, name, host_name(server, host), qpn,
                                 request.bytes == 0 ? "" : fmt::format(", {} bytes", request.bytes));
  text += fmt::format(") failed with {}: ", status_name(request.status));
  const std::string peer = request.refusal ? host_name(server, request.refusal->host) : "the peer";
  text += what_happened(request, peer) + ".";
  if (request.refusal) {
    if (const std::string key = explain_key(*request.refusal, server); !key.empty()) text += " " + key + ".";
  }
  if (const auto clause = clause_of(request); !clause.empty())
    text += fmt::format(" InfiniBand specification {}.", clause);
  return text + " " + where_to_look(request) + ".";
}

}  // namespace rnic::testbench
