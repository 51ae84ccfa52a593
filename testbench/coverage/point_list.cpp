#include "testbench/coverage/point_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "driver/generated/host_interface.hpp"

namespace rnic::testbench {
namespace {

struct Name {
  std::size_t number;
  std::string_view name;
};

template <typename E>
constexpr std::size_t raw(E value) {
  return static_cast<std::size_t>(value);
}

constexpr std::array kServices = {Name{raw(hw::QpType::kRc), "RC"}, Name{raw(hw::QpType::kUc), "UC"},
                                  Name{raw(hw::QpType::kUd), "UD"}};
constexpr std::array kStates = {Name{raw(hw::QpState::kReset), "RESET"}, Name{raw(hw::QpState::kInit), "INIT"},
                                Name{raw(hw::QpState::kRtr), "RTR"},     Name{raw(hw::QpState::kRts), "RTS"},
                                Name{raw(hw::QpState::kSqd), "SQD"},     Name{raw(hw::QpState::kSqe), "SQE"},
                                Name{raw(hw::QpState::kErr), "ERR"}};
constexpr std::array kRequests = {Name{raw(hw::WqeOpcode::kSend), "SEND"},
                                  Name{raw(hw::WqeOpcode::kSendImmediate), "SEND with immediate"},
                                  Name{raw(hw::WqeOpcode::kSendInvalidate), "SEND with invalidate"},
                                  Name{raw(hw::WqeOpcode::kWrite), "WRITE"},
                                  Name{raw(hw::WqeOpcode::kWriteImmediate), "WRITE with immediate"},
                                  Name{raw(hw::WqeOpcode::kRead), "READ"},
                                  Name{raw(hw::WqeOpcode::kCompareSwap), "compare and swap"},
                                  Name{raw(hw::WqeOpcode::kFetchAdd), "fetch and add"},
                                  Name{raw(hw::WqeOpcode::kBindWindow1), "bind type 1"},
                                  Name{raw(hw::WqeOpcode::kBindWindow2), "bind type 2B"},
                                  Name{raw(hw::WqeOpcode::kLocalInvalidate), "local invalidate"},
                                  Name{raw(hw::WqeOpcode::kFastRegister), "fast register"}};
constexpr std::array kStatuses = {Name{raw(hw::CqeStatus::kSuccess), "success"},
                                  Name{raw(hw::CqeStatus::kLocLenErr), "local length error"},
                                  Name{raw(hw::CqeStatus::kLocQpOpErr), "local QP operation error"},
                                  Name{raw(hw::CqeStatus::kLocProtErr), "local protection error"},
                                  Name{raw(hw::CqeStatus::kWrFlushErr), "flushed"},
                                  Name{raw(hw::CqeStatus::kBadRespErr), "bad response"},
                                  Name{raw(hw::CqeStatus::kRemInvReqErr), "remote invalid request"},
                                  Name{raw(hw::CqeStatus::kRemAccessErr), "remote access error"},
                                  Name{raw(hw::CqeStatus::kRemOpErr), "remote operational error"},
                                  Name{raw(hw::CqeStatus::kRetryExcErr), "retries exhausted"},
                                  Name{raw(hw::CqeStatus::kRnrRetryExcErr), "RNR retries exhausted"},
                                  Name{raw(hw::CqeStatus::kFatalErr), "fatal error"}};
constexpr std::array kEvents = {Name{raw(hw::EqeType::kCompletion), "completion"},
                                Name{raw(hw::EqeType::kCqError), "CQ error"},
                                Name{raw(hw::EqeType::kQpFatal), "QP fatal"},
                                Name{raw(hw::EqeType::kQpRequestError), "QP request error"},
                                Name{raw(hw::EqeType::kQpAccessError), "QP access error"},
                                Name{raw(hw::EqeType::kCommEstablished), "communication established"},
                                Name{raw(hw::EqeType::kSqDrained), "send queue drained"},
                                Name{raw(hw::EqeType::kDeviceFatal), "device fatal"},
                                Name{raw(hw::EqeType::kPortActive), "port active"},
                                Name{raw(hw::EqeType::kPortError), "port error"},
                                Name{raw(hw::EqeType::kSrqError), "SRQ error"},
                                Name{raw(hw::EqeType::kSrqLimit), "SRQ limit"},
                                Name{raw(hw::EqeType::kLastWqeReached), "last WQE reached"}};
/// Clauses of the InfiniBand specification, volume 1.
constexpr std::array<std::pair<std::string_view, std::string_view>, 19> kClauses = {
    {{"9.4", "operations of each transport service"},
     {"9.7.4.1.2", "PSNs of requests, at the responder"},
     {"9.7.5.1.2", "PSNs of responses, at the requester"},
     {"9.7.5.2", "invalid request"},
     {"9.7.5.2.2", "PSN sequence error"},
     {"9.7.5.2.4", "remote access error"},
     {"9.7.5.2.5", "remote operational error"},
     {"9.7.5.2.8", "receiver not ready"},
     {"9.8.2.2.1", "PSNs of unreliable connections"},
     {"9.8.3", "unreliable datagrams"},
     {"10.3.1", "states of a queue pair"},
     {"10.3.1.5", "state SQD: send queue drained"},
     {"10.3.1.6", "state SQE: send queue error"},
     {"10.3.1.7", "error state"},
     {"10.6.7", "memory windows, invalidation"},
     {"10.8.6", "unsignalled completions"},
     {"11.4.2.1", "completions of Receives"},
     {"11.6.2", "completion status"},
     {"11.6.3", "asynchronous events"}}};
/// By number of the operation (InfiniBand specification 9.2.1, table 38).
constexpr std::array<std::string_view, 24> kPackets = {"SEND first",
                                                       "SEND middle",
                                                       "SEND last",
                                                       "SEND last with immediate",
                                                       "SEND only",
                                                       "SEND only with immediate",
                                                       "WRITE first",
                                                       "WRITE middle",
                                                       "WRITE last",
                                                       "WRITE last with immediate",
                                                       "WRITE only",
                                                       "WRITE only with immediate",
                                                       "READ request",
                                                       "READ response first",
                                                       "READ response middle",
                                                       "READ response last",
                                                       "READ response only",
                                                       "acknowledge",
                                                       "atomic acknowledge",
                                                       "compare and swap",
                                                       "fetch and add",
                                                       "",
                                                       "SEND last with invalidate",
                                                       "SEND only with invalidate"};
constexpr std::size_t kUnreliablePackets = 12;  // SEND and WRITE without invalidation

constexpr std::string_view named(const auto& names, std::size_t number) {
  const auto it = std::find_if(names.begin(), names.end(), [&](const Name& name) { return name.number == number; });
  return it == names.end() ? std::string_view{} : it->name;
}

bool is_response(std::size_t operation) { return operation >= 13 && operation <= 18; }
bool is_send(std::string_view request) { return request.starts_with("SEND"); }
bool is_atomic(std::string_view request) { return request == "compare and swap" || request == "fetch and add"; }
bool is_memory(std::string_view request) {
  return request.starts_with("bind") || request == "local invalidate" || request == "fast register";
}
/// 9.4, table 37; binds and the like are of connected queue pairs (10.6.7).
bool has(std::string_view service, std::string_view request) {
  if (service == "RC") return true;
  if (service == "UD") return request == "SEND" || request == "SEND with immediate";
  return request != "SEND with invalidate" && request != "READ" && !is_atomic(request);
}

}  // namespace

namespace point_names {
std::string_view service(std::size_t type) { return named(kServices, type); }
std::string_view state(std::size_t state) { return named(kStates, state); }
std::string_view request(std::size_t wqe_opcode) { return named(kRequests, wqe_opcode); }
std::string_view status(std::size_t status) { return named(kStatuses, status); }
std::string_view packet(std::size_t operation) { return operation < kPackets.size() ? kPackets.at(operation) : ""; }
std::string_view event(std::size_t type) { return named(kEvents, type); }
}  // namespace point_names

const PointList& PointList::get() {
  static const PointList list;
  return list;
}

PointList::PointList() {
  add_requests();
  add_outcomes();
  add_packets();
  add_answers();
  add_events();
  add_transitions();
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325;  // FNV-1a
  for (const auto& point : points_)
    for (const char c : point.name + '\n') hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100'0000'01b3;
  file_ = fmt::format("functional.{:012x}", hash & 0xffff'ffff'ffff);
}

void PointList::add(std::string name, const char* clause) {
  index_.emplace(name, points_.size());
  points_.push_back({std::move(name), clause});
}

std::string_view PointList::clause_subject(std::string_view clause) {
  const auto* const it =
      std::find_if(kClauses.begin(), kClauses.end(), [&](const auto& one) { return one.first == clause; });
  if (it == kClauses.end()) throw std::out_of_range(fmt::format("clause {} has no subject", clause));
  return it->second;
}

std::optional<std::size_t> PointList::find(const std::string& name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? std::nullopt : std::optional(it->second);
}

/// What was asked for and done, by how long and where it is.
void PointList::add_requests() {
  for (const auto& [type, service] : kServices) {
    for (const auto& [opcode, request] : kRequests) {
      if (!has(service, request)) continue;
      const auto prefix = fmt::format("request/{}/{}", service, request);
      if (is_memory(request)) {
        add(prefix, "10.6.7");
        continue;
      }
      if (!is_atomic(request)) add(prefix + "/nothing", "9.4");
      for (const auto* length : {"less than a packet", "a packet", "whole packets", "packets and a rest"}) {
        const std::string_view text = length;
        if ((is_atomic(request) && text != "less than a packet") || (service == "UD" && text.starts_with("packets")) ||
            (service == "UD" && text == "whole packets"))
          continue;
        for (const auto* place : {"aligned to 64", "aligned to 4", "odd"})
          add(fmt::format("{}/{}/{}", prefix, length, place), "9.4");
      }
      if (request != "READ" && !is_atomic(request)) add(prefix + "/less than a packet/inline", "9.4");
    }
  }
}

/// What became of a request that was posted in a state.
void PointList::add_outcomes() {
  for (const auto& [type, service] : kServices) {
    for (const auto& [opcode, request] : kRequests) {
      if (!has(service, request)) continue;
      const auto prefix = fmt::format("outcome/{}/{}", service, request);
      const bool remote = service == "RC" && !is_memory(request);
      for (const auto& [number, status] : kStatuses) {
        const bool by_peer = status.starts_with("remote") || status.find("exhausted") != status.npos;
        const bool by_answer = status == "bad response";
        if ((by_peer && !remote) || (by_answer && !(remote && (request == "READ" || is_atomic(request))))) continue;
        add(fmt::format("{}/RTS/{}", prefix, status), "11.6.2");
      }
      add(prefix + "/RTS/silent", "10.8.6");
      add(prefix + "/SQD/success", "10.3.1.5");
      add(prefix + "/ERR/flushed", "10.3.1.7");
      if (service != "RC") add(prefix + "/SQE/flushed", "10.3.1.6");
    }
  }
}

/// What has come: the packet, its PSN beside the one that is expected, and the state of its queue pair.
void PointList::add_packets() {
  for (std::size_t operation = 0; operation < kPackets.size(); ++operation) {
    const auto packet = kPackets.at(operation);
    if (packet.empty()) continue;
    const auto rc = fmt::format("packet/RC/{}/", packet);
    if (is_response(operation)) {
      for (const auto* state : {"RTS", "SQD"})
        for (const auto* relation : {"oldest", "later", "old", "unsent"})
          add(fmt::format("{}{}/{}", rc, relation, state), "9.7.5.1.2");
    } else {
      for (const auto* state : {"RTR", "RTS", "SQD"})
        for (const auto* relation : {"expected", "duplicate", "ahead"})
          add(fmt::format("{}{}/{}", rc, relation, state), "9.7.4.1.2");
    }
    for (const auto* state : {"RESET", "INIT", "ERR"}) add(fmt::format("{}any/{}", rc, state), "10.3.1");
    if (is_response(operation)) add(rc + "any/RTR", "10.3.1");
    if (operation < kUnreliablePackets) {
      const auto uc = fmt::format("packet/UC/{}/", packet);
      for (const auto* state : {"RTR", "RTS", "SQD", "SQE"})
        for (const auto* relation : {"expected", "other"})
          add(fmt::format("{}{}/{}", uc, relation, state), "9.8.2.2.1");
      for (const auto* state : {"RESET", "INIT", "ERR"}) add(fmt::format("{}any/{}", uc, state), "10.3.1");
    }
    if (packet == "SEND only" || packet == "SEND only with immediate")
      for (const auto& [number, state] : kStates) add(fmt::format("packet/UD/{}/any/{}", packet, state), "9.8.3");
  }
}

/// Refusals by what they refuse, and completions.
void PointList::add_answers() {
  for (const auto* way : {"sent", "received"}) {
    for (const auto* request : {"SEND", "WRITE", "READ", "atomic"}) {
      const std::string_view kind = request;
      if (kind == "SEND" || kind == "WRITE")
        add(fmt::format("NAK/{}/receiver not ready/{}", way, request), "9.7.5.2.8");
      add(fmt::format("NAK/{}/PSN sequence error/{}", way, request), "9.7.5.2.2");
      add(fmt::format("NAK/{}/invalid request/{}", way, request), "9.7.5.2");
      add(fmt::format("NAK/{}/remote access error/{}", way, request), "9.7.5.2.4");
      add(fmt::format("NAK/{}/remote operational error/{}", way, request), "9.7.5.2.5");
    }
  }
  for (const auto& [type, service] : kServices) {
    for (const auto& [number, status] : kStatuses) {
      const bool peers =
          status.starts_with("remote") || status.find("exhausted") != status.npos || status == "bad response";
      if (peers) continue;
      add(fmt::format("receive/{}/{}", service, status), "11.6.2");
    }
    for (const auto* what : {"SEND", "SEND with immediate", "SEND with invalidate", "WRITE with immediate"})
      if (has(service, what)) add(fmt::format("receive/{}/success/{}", service, what), "11.4.2.1");
  }
}

void PointList::add_events() {
  for (const auto& [number, event] : kEvents) add(fmt::format("event/{}", event), "11.6.3");
}

/// 10.3.1, figure 124 and table 91.
void PointList::add_transitions() {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kWays = {{{"RESET", "INIT"},
                                                                                   {"INIT", "INIT"},
                                                                                   {"INIT", "RTR"},
                                                                                   {"RTR", "RTS"},
                                                                                   {"RTS", "RTS"},
                                                                                   {"RTS", "SQD"},
                                                                                   {"SQD", "SQD"},
                                                                                   {"SQD", "RTS"},
                                                                                   {"SQE", "RTS"}}};
  for (const auto& [type, service] : kServices) {
    for (const auto& [from, to] : kWays)
      if (from != "SQE" || service != "RC") add(fmt::format("transition/{}/{} to {}", service, from, to), "10.3.1");
    for (const auto& [number, from] : kStates) {
      if (from == "SQE" && service == "RC") continue;
      for (const auto* to : {"RESET", "ERR"}) add(fmt::format("transition/{}/{} to {}", service, from, to), "10.3.1");
    }
  }
}

}  // namespace rnic::testbench
