#include "testbench/tool/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>

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

struct Owner {
  const ProcessRecord* process;
  const RegionRecord* region;
};

/// The newest region of a host that has this key.
std::optional<Owner> find_region(const HostServer& host, std::uint32_t key) {
  std::optional<Owner> found;
  for (const auto& process : host.book().all()) {
    for (const auto& region : process->regions) {
      if (region.key == key) found = Owner{process.get(), &region};
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

/// What is wrong with the R_Key of a refused request; empty: its packet has none.
std::string explain_key(const Refusal& refusal, const MachineServer& server) {
  const HostServer* const host = find_host(server, refusal.host);
  const std::uint8_t opcode = refusal.packet.opcode;
  const bool write = opcode >= kFirstWrite && opcode <= kLastWrite, read = opcode == kReadRequest;
  const bool atomic = opcode > kLastResponse;
  if (host == nullptr || (refusal.rkey == 0 && refusal.va == 0) || !(write || read || atomic)) return {};
  const std::uint64_t bytes = atomic ? sizeof(std::uint64_t) : refusal.asked;
  const std::string asks = fmt::format("R_Key {:#x} for {} bytes at {:#x}: ", refusal.rkey, bytes, refusal.va);
  const auto owner = find_region(*host, refusal.rkey);
  if (!owner)
    return asks + "no process on " + host_name(server, refusal.host) +
           " has registered a memory region with this R_Key";
  const RegionRecord& region = *owner->region;
  const std::uint64_t refused_ps = refusal.packet.sent_ns * model::kPicosecondsPerNanosecond;
  const auto [process, pair] = find_pair(*host, refusal.qpn);
  if (region.gone_ps && *region.gone_ps <= refused_ps) return asks + "its memory region had been deregistered";
  if (process != owner->process) return asks + "its memory region belongs to another process than the queue pair";
  if (pair->client != region.client || pair->pd != region.pd)
    return asks + "its memory region is in another protection domain than the queue pair";
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
