#include "testbench/verify/vector_steps.hpp"

#include <fmt/format.h>

#include <utility>

#include "testbench/verify/vector_names.hpp"
#include "testbench/verify/vector_step_parts.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;
using Names = VectorReader::Names;
using Reader = VectorReader;

const Names kNotifyTypes = {
    {"ANY", ND_CQ_NOTIFY_ANY}, {"SOLICITED", ND_CQ_NOTIFY_SOLICITED}, {"ERRORS", ND_CQ_NOTIFY_ERRORS}};
const Names kQpStates = {{"RESET", number_of(hw::QpState::kReset)}, {"INIT", number_of(hw::QpState::kInit)},
                         {"RTR", number_of(hw::QpState::kRtr)},     {"RTS", number_of(hw::QpState::kRts)},
                         {"SQD", number_of(hw::QpState::kSqd)},     {"SQE", number_of(hw::QpState::kSqe)},
                         {"ERR", number_of(hw::QpState::kErr)}};
const Names kNextStates = {{"INIT", number_of(hw::QpState::kInit)},
                           {"RTR", number_of(hw::QpState::kRtr)},
                           {"RTS", number_of(hw::QpState::kRts)},
                           {"SQD", number_of(hw::QpState::kSqd)},
                           {"ERR", number_of(hw::QpState::kErr)}};
const Names kBuffers = {{"valid", 0}, {"null", 1}, {"unmapped", 2}};
const Names kSteps = {{"send", number_of(StepKind::kSend)},
                      {"receive", number_of(StepKind::kReceive)},
                      {"write", number_of(StepKind::kWrite)},
                      {"read", number_of(StepKind::kRead)},
                      {"compare_swap", number_of(StepKind::kCompareSwap)},
                      {"fetch_add", number_of(StepKind::kFetchAdd)},
                      {"flush", number_of(StepKind::kFlush)},
                      {"complete", number_of(StepKind::kComplete)},
                      {"no_completion", number_of(StepKind::kNoCompletion)},
                      {"notify", number_of(StepKind::kNotify)},
                      {"notified", number_of(StepKind::kNotified)},
                      {"not_notified", number_of(StepKind::kNotNotified)},
                      {"memory", number_of(StepKind::kMemory)},
                      {"untouched", number_of(StepKind::kUntouched)},
                      {"store", number_of(StepKind::kStore)},
                      {"register", number_of(StepKind::kRegister)},
                      {"deregister", number_of(StepKind::kDeregister)},
                      {"wait", number_of(StepKind::kWait)},
                      {"fault", number_of(StepKind::kFault)},
                      {"frame", number_of(StepKind::kFrame)},
                      {"counter", number_of(StepKind::kCounter)},
                      {"state", number_of(StepKind::kState)},
                      {"bind", number_of(StepKind::kBind)},
                      {"invalidate", number_of(StepKind::kInvalidate)},
                      {"release_window", number_of(StepKind::kReleaseWindow)},
                      {"modify", number_of(StepKind::kModify)},
                      {"close", number_of(StepKind::kClose)},
                      {"attach", number_of(StepKind::kAttach)},
                      {"detach", number_of(StepKind::kDetach)},
                      {"ring", number_of(StepKind::kRing)},
                      {"event", number_of(StepKind::kEvent)},
                      {"no_event", number_of(StepKind::kNoEvent)},
                      {"link", number_of(StepKind::kLink)},
                      {"resize_cq", number_of(StepKind::kResizeCq)},
                      {"moderate_cq", number_of(StepKind::kModerateCq)},
                      {"modify_srq", number_of(StepKind::kModifySrq)},
                      {"fast_register", number_of(StepKind::kFastRegister)},
                      {"end_registration", number_of(StepKind::kEndRegistration)},
                      {"query_adapter", number_of(StepKind::kQueryAdapter)},
                      {"reset", number_of(StepKind::kReset)},
                      {"make", number_of(StepKind::kMake)},
                      {"revoke", number_of(StepKind::kRevoke)},
                      {"ring_reads", number_of(StepKind::kRingReads)},
                      {"get_results", number_of(StepKind::kGetResults)},
                      {"query_affinity", number_of(StepKind::kQueryAffinity)},
                      {"query_interface", number_of(StepKind::kQueryInterface)},
                      {"release", number_of(StepKind::kRelease)},
                      {"cancel", number_of(StepKind::kCancel)},
                      {"end_device", number_of(StepKind::kEndDevice)},
                      {"restart_device", number_of(StepKind::kRestartDevice)},
                      {"receive_ethernet", number_of(StepKind::kReceiveEthernet)},
                      {"bind_address", number_of(StepKind::kBindAddress)},
                      {"listen", number_of(StepKind::kListen)},
                      {"get_request", number_of(StepKind::kGetRequest)},
                      {"connect", number_of(StepKind::kConnect)},
                      {"complete_connect", number_of(StepKind::kCompleteConnect)},
                      {"accept", number_of(StepKind::kAccept)},
                      {"reject", number_of(StepKind::kReject)},
                      {"disconnect", number_of(StepKind::kDisconnect)},
                      {"notify_disconnect", number_of(StepKind::kNotifyDisconnect)},
                      {"query_connection", number_of(StepKind::kQueryConnection)},
                      {"admin", number_of(StepKind::kAdmin)},
                      {"spoil_wqe", number_of(StepKind::kSpoilWqe)},
                      {"doorbell", number_of(StepKind::kDoorbell)},
                      {"push_wqe", number_of(StepKind::kPushWqe)},
                      {"enable", number_of(StepKind::kEnable)},
                      {"configure", number_of(StepKind::kConfigure)},
                      {"tlp", number_of(StepKind::kTlp)},
                      {"credits", number_of(StepKind::kCredits)}};
/// Attributes that `modify` takes, and their largest values.
const Names kAttributes = {{"ack_timeout", 31},     {"retry_count", 7},     {"rnr_retry", 7},
                           {"min_rnr_timer", 31},   {"traffic_class", 255}, {"hop_limit", 255},
                           {"flow_label", 0xfffff}, {"vlan", 0xffe},        {"sl", 7},
                           {"pkey", 0xffff},        {"qkey", 0xffffffff},   {"send_psn", 0xffffff},
                           {"remote_read", 1},      {"remote_write", 1},    {"remote_atomic", 1}};

void read_counter(Reader& from, const VectorSetup& setup, VectorStep& to) {
  to.only_qp = from.find("qp") != nullptr;
  if (to.only_qp) to.qp = read_qp(from, setup, "qp");
  static const Names kOfHost = numbered(hw::kCounterNames), kOfQp = numbered(hw::kQpCounterNames);
  to.offset = static_cast<std::uint64_t>(from.name("name", to.only_qp ? kOfQp : kOfHost));
  to.name = from.text("name");
  to.exact = from.find("equals") != nullptr;
  const bool at_least = from.find("at_least") != nullptr;
  if (from.find("at_most")) to.most = from.number<std::uint64_t>("at_most");
  if (to.exact == (at_least || to.most)) from.fail("either \"equals\", or \"at_least\" and \"at_most\" or one of them");
  to.value = to.exact ? from.number<std::uint64_t>("equals") : from.number<std::uint64_t>("at_least", 0);
  to.no_other = from.boolean("no_other", false);
  if (to.no_other && to.only_qp) from.fail("\"no_other\" is of the counters of a NIC");
}

void read_modify(Reader& from, const VectorSetup& setup, VectorStep& to) {
  to.qp = read_qp(from, setup, "qp");
  to.value = static_cast<std::uint64_t>(from.name("to", kNextStates));
  to.notify = from.boolean("notify", false);
  to.status = read_status(from);
  if (!from.find("set")) return;
  if (to.notify) from.fail("\"notify\" and \"set\" exclude each other");
  Reader set = from.object("set");
  for (const auto& [name, most] : kAttributes) {
    const std::string key(name);
    if (!set.find(key.c_str())) continue;
    to.attributes[key] = set.number<std::uint64_t>(key.c_str());
    if (to.attributes[key] > static_cast<std::uint64_t>(most)) set.fail(fmt::format("\"{}\" is at most {}", key, most));
  }
  set.finish();
}

void read_event(Reader& from, const VectorSetup& setup, VectorStep& to) {
  const auto type = static_cast<hw::EqeType>(from.name("type", kEvents));
  to.value = static_cast<std::uint64_t>(type);
  to.within_ns = from.microseconds("within_us", 100);
  switch (type) {
    case hw::EqeType::kCqError: to.queue = static_cast<VectorQueue>(from.name("queue", kQueues)); break;
    case hw::EqeType::kQpFatal:
    case hw::EqeType::kQpRequestError:
    case hw::EqeType::kQpAccessError:
      if (from.find("cause")) to.cause = static_cast<hw::CqeStatus>(from.name("cause", kCqeStatuses));
      [[fallthrough]];
    case hw::EqeType::kCommEstablished:
    case hw::EqeType::kSqDrained:
    case hw::EqeType::kLastWqeReached: to.qp = read_qp(from, setup, "qp"); break;
    default: break;
  }
}

void read_ring_reads(Reader& from, const VectorSetup& setup, VectorStep& to) {
  static const Names kAnswers = [] {
    Names names = kReadFaults;
    names["data"] = -1;
    return names;
  }();
  to.queue = static_cast<VectorQueue>(from.name("queue", kAllQueues, 0));
  if (to.queue != VectorQueue::kShared)
    to.qp = read_qp(from, setup, "qp");
  else if (!setup.srq)
    from.fail("the setup has no \"srq\"");
  const auto answer = from.name("answer", kAnswers);
  if (answer >= 0) to.reads = static_cast<model::PcieFault>(answer);
}

void read_notify(Reader& from, const VectorSetup& setup, VectorStep& to) {
  to.queue = static_cast<VectorQueue>(from.name("queue", kAllQueues, 0));
  if (to.queue != VectorQueue::kShared) {
    const auto& type = from.need("type");
    to.flags = type.is_number() ? from.to_number<std::uint32_t>(type, "type")
                                : static_cast<std::uint32_t>(from.name("type", kNotifyTypes));
  } else if (!setup.srq)
    from.fail("the setup has no \"srq\"");
  to.name = from.text("name");
  read_null(from, to, {{"overlapped", 0}});
  read_call(from, to);
}

void read_unchecked(Reader& from, VectorStep& to) {
  if (!from.find("unchecked")) return;
  if (!to.null.empty()) from.fail("\"null\" and \"unchecked\" exclude each other");
  Reader unchecked = from.object("unchecked");
  to.unchecked = true;
  if (unchecked.find("key_of")) to.key_of = unchecked.text("key_of");
  to.defer = unchecked.boolean("defer", false);
  to.op_flags = to.flags;
  unchecked.finish();
}

}  // namespace

VectorStep read_vector_step(VectorReader from, const VectorSetup& setup, const std::string& place) {
  VectorStep to;
  to.kind = static_cast<StepKind>(from.name("do", kSteps));
  to.text = fmt::format("{} ({})", place, from.text("do"));
  to.host = static_cast<std::size_t>(from.name("host", kHosts));
  switch (to.kind) {
    case StepKind::kSend:
    case StepKind::kReceive:
    case StepKind::kWrite:
    case StepKind::kRead:
    case StepKind::kCompareSwap:
    case StepKind::kFetchAdd: read_request_step(from, setup, to); break;
    case StepKind::kBind:
      to.name = from.text("region");
      to.offset = from.number<std::uint64_t>("offset");
      to.length = from.number<std::uint64_t>("length");
      [[fallthrough]];
    case StepKind::kInvalidate:
      to.context = from.number<std::uint64_t>("context");
      to.qp = read_qp(from, setup, "qp");
      to.window = from.text("window");
      to.flags = from.flags("flags", kOpFlags);
      if (to.kind == StepKind::kBind) {
        read_null(from, to, {{"region", 0}, {"window", 0}});
        read_unchecked(from, to);
      } else {
        read_null(from, to, {{"window", 0}});
      }
      to.status = read_status(from);
      break;
    case StepKind::kReleaseWindow: to.window = from.text("window"); break;
    case StepKind::kFlush:
      to.qp = read_qp(from, setup, "qp");
      to.status = read_status(from);
      break;
    case StepKind::kComplete: read_complete_step(from, setup, to); break;
    case StepKind::kNoCompletion:
      to.queue = static_cast<VectorQueue>(from.name("queue", kQueues, 0));
      to.within_ns = from.microseconds("for_us", 20);
      break;
    case StepKind::kNotify: read_notify(from, setup, to); break;
    case StepKind::kNotified:
      to.name = from.text("name");
      to.status = static_cast<std::int32_t>(from.name("status", kStatuses));
      to.within_ns = from.microseconds("within_us", 100);
      break;
    case StepKind::kNotNotified:
      to.name = from.text("name");
      to.within_ns = from.microseconds("for_us", 20);
      break;
    case StepKind::kMemory:
    case StepKind::kStore: read_memory_step(from, setup, to); break;
    case StepKind::kUntouched:
      to.name = from.text("region");
      to.offset = from.number<std::uint64_t>("offset");
      to.length = from.number<std::uint64_t>("length");
      to.within_ns = from.microseconds("for_us", 20);
      break;
    case StepKind::kRegister:
      to.size = from.number<std::uint64_t>("size");
      to.flags = from.flags("flags", kRegionFlags);
      to.buffer = static_cast<VectorStep::Buffer>(from.name("buffer", kBuffers));
      [[fallthrough]];
    case StepKind::kDeregister:
      to.name = from.text("region");
      read_null(from, to, {{"overlapped", 0}});
      read_call(from, to);
      to.status = read_status(from);
      break;
    case StepKind::kRevoke:
      to.name = from.text("region");
      to.offset = from.number<std::uint64_t>("offset");
      break;
    case StepKind::kRingReads: read_ring_reads(from, setup, to); break;
    case StepKind::kWait: to.within_ns = from.microseconds("us"); break;
    case StepKind::kFault: read_fault_step(from, setup, to); break;
    case StepKind::kFrame: read_frame_step(from, setup, to); break;
    case StepKind::kCounter: read_counter(from, setup, to); break;
    case StepKind::kState:
      to.value = static_cast<std::uint64_t>(from.name("is", kQpStates));
      to.name = from.text("is");
      to.qp = read_qp(from, setup, "qp");
      if (from.find("draining")) to.draining = from.boolean("draining", false);
      break;
    case StepKind::kModify: read_modify(from, setup, to); break;
    case StepKind::kAttach:
    case StepKind::kDetach:
      if (setup.type != hw::QpType::kUd) from.fail("groups are for queue pairs of type UD");
      to.to.group = read_group(from);
      [[fallthrough]];
    case StepKind::kClose: to.status = read_status(from); [[fallthrough]];
    case StepKind::kRing:
    case StepKind::kReset:
    case StepKind::kMake: to.qp = read_qp(from, setup, "qp"); break;
    case StepKind::kEvent: read_event(from, setup, to); break;
    case StepKind::kNoEvent: to.within_ns = from.microseconds("for_us", 20); break;
    case StepKind::kLink: to.link_up = from.name("is", {{"down", 0}, {"up", 1}}) != 0; break;
    case StepKind::kResizeCq:
      to.queue = static_cast<VectorQueue>(from.name("queue", kQueues, 0));
      to.size = from.number<std::uint32_t>("depth");
      to.status = read_status(from);
      break;
    case StepKind::kModerateCq:
      to.queue = static_cast<VectorQueue>(from.name("queue", kQueues, 0));
      to.size = from.number<std::uint16_t>("count");
      to.value = from.number<std::uint16_t>("us");
      break;
    case StepKind::kModifySrq:
      if (!setup.srq) from.fail("the setup has no \"srq\"");
      to.size = from.number<std::uint32_t>("depth", 0);
      to.value = from.number<std::uint32_t>("threshold", 0);
      to.status = read_status(from);
      break;
    case StepKind::kFastRegister:
      to.qp = read_qp(from, setup, "qp");
      read_fast_register_step(from, to);
      break;
    case StepKind::kEndRegistration:
      to.qp = read_qp(from, setup, "qp");
      to.context = from.number<std::uint64_t>("context");
      to.fast_region = from.text("name");
      to.op_flags = read_options(from, to);
      to.status = read_status(from);
      break;
    case StepKind::kEndDevice:
    case StepKind::kRestartDevice: break;
    case StepKind::kReceiveEthernet: read_receive_ethernet_step(from, setup, to); break;
    case StepKind::kQueryAdapter:
    case StepKind::kGetResults:
    case StepKind::kQueryAffinity:
    case StepKind::kQueryInterface:
    case StepKind::kRelease:
    case StepKind::kCancel: read_interface_step(from, setup, to); break;
    case StepKind::kBindAddress:
    case StepKind::kListen:
    case StepKind::kGetRequest:
    case StepKind::kConnect:
    case StepKind::kCompleteConnect:
    case StepKind::kAccept:
    case StepKind::kReject:
    case StepKind::kDisconnect:
    case StepKind::kNotifyDisconnect:
    case StepKind::kQueryConnection: read_connection_step(from, setup, to); break;
    case StepKind::kAdmin: read_admin_step(from, setup, to); break;
    case StepKind::kSpoilWqe: read_spoil_step(from, setup, to); break;
    case StepKind::kDoorbell: read_doorbell_step(from, setup, to); break;
    case StepKind::kPushWqe: read_push_step(from, setup, to); break;
    case StepKind::kEnable: to.enable = from.boolean("is", true); break;
    case StepKind::kConfigure: read_configure_step(from, to); break;
    case StepKind::kTlp: read_tlp_step(from, to); break;
    case StepKind::kCredits: read_credits_step(from, to); break;
  }
  from.finish();
  return to;
}

}  // namespace rnic::testbench
