#include "testbench/verify/vector_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "testbench/verify/vector_names.hpp"
#include "testbench/verify/vector_packets.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;
using Names = VectorReader::Names;
using Reader = VectorReader;

constexpr std::uint32_t kDefer = 1u << 31;  // a flag of NDK, not of NetworkDirect
const Names kOpFlags = {{"SILENT_SUCCESS", ND_OP_FLAG_SILENT_SUCCESS}, {"READ_FENCE", ND_OP_FLAG_READ_FENCE}, {"SOLICIT", ND_OP_FLAG_SEND_AND_SOLICIT_EVENT},
    {"ALLOW_READ", ND_OP_FLAG_ALLOW_READ}, {"ALLOW_WRITE", ND_OP_FLAG_ALLOW_WRITE}, {"INLINE", ND_OP_FLAG_INLINE},
    {"DEFER", kDefer}};
const Names kReceiveFlags = {{"DEFER", kDefer}};
const Names kNotifyTypes = {{"ANY", ND_CQ_NOTIFY_ANY}, {"SOLICITED", ND_CQ_NOTIFY_SOLICITED}, {"ERRORS", ND_CQ_NOTIFY_ERRORS}};
const Names kQpStates = {{"RESET", number_of(hw::QpState::kReset)}, {"INIT", number_of(hw::QpState::kInit)}, {"RTR", number_of(hw::QpState::kRtr)}, {"RTS", number_of(hw::QpState::kRts)},
    {"SQD", number_of(hw::QpState::kSqd)}, {"SQE", number_of(hw::QpState::kSqe)}, {"ERR", number_of(hw::QpState::kErr)}};
const Names kParts = {{"ethernet", number_of(VectorFrame::Part::kEthernet)}, {"ip", number_of(VectorFrame::Part::kIp)}, {"udp", number_of(VectorFrame::Part::kUdp)},
    {"bth", number_of(VectorFrame::Part::kBth)}, {"extended", number_of(VectorFrame::Part::kExtended)}, {"payload", number_of(VectorFrame::Part::kPayload)}};
const Names kQueues = {{"initiator", number_of(VectorQueue::kInitiator)}, {"receive", number_of(VectorQueue::kReceive)}};
const Names kNotifyQueues = {{"initiator", number_of(VectorQueue::kInitiator)}, {"receive", number_of(VectorQueue::kReceive)}, {"shared", number_of(VectorQueue::kShared)}};
const Names kNextStates = {{"INIT", number_of(hw::QpState::kInit)}, {"RTR", number_of(hw::QpState::kRtr)}, {"RTS", number_of(hw::QpState::kRts)}, {"SQD", number_of(hw::QpState::kSqd)},
    {"ERR", number_of(hw::QpState::kErr)}};
const Names kBuffers = {{"valid", 0}, {"null", 1}, {"unmapped", 2}};
const Names kSteps = {{"send", number_of(StepKind::kSend)}, {"receive", number_of(StepKind::kReceive)}, {"write", number_of(StepKind::kWrite)}, {"read", number_of(StepKind::kRead)},
    {"compare_swap", number_of(StepKind::kCompareSwap)}, {"fetch_add", number_of(StepKind::kFetchAdd)}, {"flush", number_of(StepKind::kFlush)},
    {"complete", number_of(StepKind::kComplete)}, {"no_completion", number_of(StepKind::kNoCompletion)}, {"notify", number_of(StepKind::kNotify)},
    {"notified", number_of(StepKind::kNotified)}, {"not_notified", number_of(StepKind::kNotNotified)}, {"memory", number_of(StepKind::kMemory)}, {"store", number_of(StepKind::kStore)},
    {"register", number_of(StepKind::kRegister)}, {"deregister", number_of(StepKind::kDeregister)}, {"wait", number_of(StepKind::kWait)}, {"fault", number_of(StepKind::kFault)},
    {"frame", number_of(StepKind::kFrame)}, {"counter", number_of(StepKind::kCounter)}, {"state", number_of(StepKind::kState)},
    {"bind", number_of(StepKind::kBind)}, {"invalidate", number_of(StepKind::kInvalidate)}, {"release_window", number_of(StepKind::kReleaseWindow)},
    {"modify", number_of(StepKind::kModify)}, {"close", number_of(StepKind::kClose)}, {"ring", number_of(StepKind::kRing)}, {"event", number_of(StepKind::kEvent)},
    {"no_event", number_of(StepKind::kNoEvent)}, {"link", number_of(StepKind::kLink)}, {"resize_cq", number_of(StepKind::kResizeCq)}, {"moderate_cq", number_of(StepKind::kModerateCq)},
    {"modify_srq", number_of(StepKind::kModifySrq)}, {"srq_doorbell", number_of(StepKind::kSrqDoorbell)}, {"fast_register", number_of(StepKind::kFastRegister)}, {"end_registration", number_of(StepKind::kEndRegistration)},
    {"query_adapter", number_of(StepKind::kQueryAdapter)}};
/// Attributes that `modify` takes, and their largest values.
const Names kAttributes = {{"ack_timeout", 31}, {"retry_count", 7}, {"rnr_retry", 7}, {"min_rnr_timer", 31}, {"traffic_class", 255}, {"hop_limit", 255}, {"flow_label", 0xfffff},
    {"pkey", 0xffff}, {"qkey", 0xffffffff}, {"send_psn", 0xffffff}, {"remote_read", 1}, {"remote_write", 1}, {"remote_atomic", 1}};

/// Names that other tables have: counters of the host interface, faults of the wire.
const Names& counter_names() {
  static const Names kNames = [] {
    Names names;
    for (std::size_t i = 0; i < hw::kCounterNames.size(); ++i) names[hw::kCounterNames[i]] = static_cast<std::int64_t>(i);
    return names;
  }();
  return kNames;
}
const Names& fault_names() {
  static const Names kNames = [] {
    Names names;
    for (std::size_t i = 0; i < model::kWireFaults; ++i) names[model::name(static_cast<model::WireFault>(i))] = static_cast<std::int64_t>(i);
    return names;
  }();
  return kNames;
}

VectorPlace read_place(Reader from, bool with_length) {
  VectorPlace place;
  place.region = from.text("region");
  place.offset = from.number<std::int64_t>("offset");
  if (with_length) place.length = from.number<std::uint32_t>("length");
  if (const json* address = from.find("address")) place.address = from.to_number<std::uint64_t>(*address, "address");
  if (const json* token = from.find("token")) {
    if (token->is_string()) {
      if (*token != "other") from.fail("\"token\" must be \"other\" or {\"corrupt\": ...}");
      place.token = TokenChange::kOther;
      place.token_of = from.text("of");
    } else {
      Reader change = from.object("token");
      if (change.find("window") || change.find("stale")) {
        place.token = change.find("window") ? TokenChange::kWindow : TokenChange::kStaleWindow;
        place.token_of = change.text(place.token == TokenChange::kWindow ? "window" : "stale");
      } else {
        place.token = change.name("corrupt", {{"index", 0}, {"tag", 1}}) ? TokenChange::kCorruptTag : TokenChange::kCorruptIndex;
      }
      change.finish();
    }
  }
  from.finish();
  return place;
}

/// Number of a queue pair, from 1 in the file.
std::size_t read_qp(Reader& from, const VectorSetup& setup, const char* key, std::size_t fallback = 0) {
  const auto number = from.number<std::size_t>(key, fallback + 1);
  if (number == 0 || number > setup.queue_pairs) from.fail(fmt::format("\"{}\" is {}; there are {} queue pairs (\"queue_pairs\")", key, number, setup.queue_pairs));
  return number - 1;
}

/// Where a datagram goes: to the queue pair of the same number, as the setup says, unless told otherwise.
void read_datagram(Reader& from, const VectorSetup& setup, VectorStep& to) {
  to.to = {.ipv6 = setup.ipv6, .traffic_class = setup.traffic_class, .hop_limit = setup.hop_limit, .flow_label = setup.flow_label};
  to.to.qp = read_qp(from, setup, "to_qp", to.qp);
  to.to.qpn_xor = from.number<std::uint32_t>("qpn_xor", 0);
  to.to.qkey = from.number<std::uint32_t>("qkey", setup.qkey);
  if (!from.find("address")) return;
  Reader address = from.object("address");
  to.to.ipv6 = address.boolean("ipv6", to.to.ipv6);
  to.to.traffic_class = address.number<std::uint8_t>("traffic_class", to.to.traffic_class);
  to.to.hop_limit = address.number<std::uint8_t>("hop_limit", to.to.hop_limit);
  to.to.flow_label = address.number<std::uint32_t>("flow_label", to.to.flow_label);
  address.finish();
}

std::uint32_t read_flags(Reader& from, VectorStep& to, const Names& names) {
  const json* value = from.find("flags");
  const std::uint32_t flags = from.flags("flags", names);
  if (!value || value->is_number()) return flags;
  to.defer = (flags & kDefer) != 0;
  return flags & ~kDefer;
}

std::int32_t read_status(Reader& from) { return static_cast<std::int32_t>(from.name("returns", kStatuses, ND_SUCCESS)); }

void read_call(Reader& from, VectorStep& to) {
  if (from.find("call")) to.call = static_cast<std::int32_t>(from.name("call", kStatuses));
}

void read_request(Reader& from, const VectorSetup& setup, VectorStep& to) {
  to.qp = read_qp(from, setup, "qp");
  to.context = from.number<std::uint64_t>("context");
  const json& list = from.list(from.need("sge"), "sge");
  for (std::size_t i = 0; i < list.size(); ++i) to.sge.push_back(read_place(from.element(list[i], "sge", i), true));
  to.flags = read_flags(from, to, to.kind == StepKind::kReceive ? kReceiveFlags : kOpFlags);
  const bool atomic = to.kind == StepKind::kCompareSwap || to.kind == StepKind::kFetchAdd;
  if (to.kind == StepKind::kRead || to.kind == StepKind::kWrite || atomic) to.remote = read_place(from.object("remote"), false);
  if (to.kind == StepKind::kFetchAdd) to.swap_add = from.number<std::uint64_t>("add");
  if (to.kind == StepKind::kCompareSwap) {
    to.swap_add = from.number<std::uint64_t>("swap");
    to.compare = from.number<std::uint64_t>("compare");
  }
  if (to.kind == StepKind::kSend || to.kind == StepKind::kWrite) {
    if (const json* immediate = from.find("immediate")) to.immediate = from.to_number<std::uint32_t>(*immediate, "immediate");
  }
  if (to.kind == StepKind::kSend && from.find("invalidate")) {
    to.window = from.text("invalidate");
    if (to.immediate) from.fail("\"immediate\" and \"invalidate\" exclude each other");
  }
  if (to.kind != StepKind::kReceive && setup.type == hw::QpType::kUd) read_datagram(from, setup, to);
  to.status = read_status(from);
}

VectorResult read_result(Reader one, const VectorSetup& setup) {
  VectorResult result;
  result.kind = static_cast<umd::RequestKind>(one.name("type", kRequestKinds));
  result.context = one.number<std::uint64_t>("context");
  const json& status = one.need("status");
  if (status.is_string() && !status.get_ref<const std::string&>().starts_with("ND_")) {
    result.cqe_status = static_cast<hw::CqeStatus>(one.to_name(status, "status", kCqeStatuses));
    if (const json* immediate = one.find("immediate")) result.immediate = one.to_number<std::uint32_t>(*immediate, "immediate");
    if (one.find("invalidated")) result.invalidated = one.text("invalidated");
    if (one.find("source_qp")) result.source_qp = read_qp(one, setup, "source_qp");
  } else {
    result.status = static_cast<std::int32_t>(one.to_name(status, "status", kStatuses));
    using umd::RequestKind;
    if (result.kind == RequestKind::kCompareSwap || result.kind == RequestKind::kFetchAdd || result.kind == RequestKind::kReceiveWrite ||
        result.kind == RequestKind::kFastRegister) {
      one.fail("NetworkDirect has no such \"type\": give the \"status\" of the CQE");
    }
  }
  if (one.find("qp")) result.qp = read_qp(one, setup, "qp");
  if (const json* bytes = one.find("bytes")) result.bytes = one.to_number<std::uint32_t>(*bytes, "bytes");
  one.finish();
  return result;
}

void read_complete(Reader& from, const VectorSetup& setup, VectorStep& to) {
  to.queue = static_cast<VectorQueue>(from.name("queue", kQueues, 0));
  to.within_ns = from.number<std::uint64_t>("within_us", 100) * 1000;
  to.not_before_ns = from.number<std::uint64_t>("not_before_us", 0) * 1000;
  const json& list = from.list(from.need("results"), "results");
  for (std::size_t i = 0; i < list.size(); ++i) to.results.push_back(read_result(from.element(list[i], "results", i), setup));
}

std::uint8_t read_opcode(Reader& from) {
  const json& value = from.need("opcode");
  if (value.is_number()) return from.to_number<std::uint8_t>(value, "opcode");
  const auto opcode = value.is_string() ? opcode_of(value.get_ref<const std::string&>()) : std::nullopt;
  if (!opcode) from.fail(fmt::format("\"opcode\" is {}, which is neither an opcode nor a number", value.dump()));
  return *opcode;
}

/// A whole number modulo 2^24: 0 is the first PSN, -1 the one before it.
std::uint32_t read_psn(Reader& from) { return static_cast<std::uint32_t>(from.number<std::int64_t>("psn")) & 0xffffff; }

void read_fault(Reader& from, const VectorSetup& setup, VectorStep& to) {
  to.rule.fault = static_cast<model::WireFault>(from.name("fault", fault_names()));
  if (from.find("opcode")) to.rule.match.opcode = read_opcode(from);
  if (from.find("psn")) to.rule.match.psn = read_psn(from);
  to.only_qp = from.find("qp") != nullptr;
  to.qp = read_qp(from, setup, "qp");
  to.rule.nth = from.number<std::uint64_t>("nth", 1);
  to.rule.count = from.number<std::uint64_t>("count", 1);
  auto& parameters = to.rule.parameters;
  if (const json* bit = from.find("bit")) parameters.corrupt_bit = from.to_number<std::uint32_t>(*bit, "bit");
  if (const json* bytes = from.find("bytes")) parameters.truncate_bytes = from.to_number<std::uint32_t>(*bytes, "bytes");
  parameters.duplicate_frames = from.number<std::uint32_t>("frames", 0);
  if (to.rule.fault == model::WireFault::kReorder) parameters.reorder_frames = std::max(1u, parameters.duplicate_frames);
  parameters.duplicate_hold_ns = parameters.reorder_hold_ns = from.number<std::uint32_t>("hold_ns", 10'000);
  parameters.delay_ns = from.number<std::uint32_t>("ns", 1'000);
  try {
    model::check(to.rule);
  } catch (const std::invalid_argument& error) {
    from.fail(error.what());
  }
}

void read_frame(Reader& from, const VectorSetup& setup, VectorStep& to) {
  auto& frame = to.frame;
  to.qp = read_qp(from, setup, "qp");
  frame.opcode = read_opcode(from);
  frame.psn = read_psn(from);
  frame.payload = from.number<std::uint32_t>("payload", 0);
  if (frame.payload > 9000) from.fail("\"payload\" is at most 9000");
  if (const json* length = from.find("length")) frame.length = from.to_number<std::uint32_t>(*length, "length");
  if (from.find("remote")) to.remote = read_place(from.object("remote"), false);
  frame.swap_add = from.number<std::uint64_t>("swap_add", 0);
  frame.compare = from.number<std::uint64_t>("compare", 0);
  frame.immediate = from.number<std::uint32_t>("immediate", 0);
  frame.syndrome = from.number<std::uint8_t>("syndrome", 0x1f);
  frame.msn = from.number<std::uint32_t>("msn", 0);
  frame.pkey = from.number<std::uint16_t>("pkey", setup.pkey);
  if (setup.type == hw::QpType::kUd) {
    frame.qkey = from.number<std::uint32_t>("qkey", setup.qkey);
    frame.source_qp = read_qp(from, setup, "source_qp", to.qp);
  }
  frame.qpn_xor = from.number<std::uint32_t>("qpn_xor", 0);
  frame.ack_req = from.boolean("ack_req", true);
  frame.solicited = from.boolean("solicited", false);
  frame.stranger = from.name("from", {{"peer", 0}, {"stranger", 1}}, 0) != 0;
  if (const json* set = from.find("set")) {
    for (std::size_t i = 0; i < from.list(*set, "set").size(); ++i) {
      Reader byte = from.element((*set)[i], "set", i);
      frame.set.push_back({static_cast<VectorFrame::Part>(byte.name("part", kParts)), byte.number<std::size_t>("byte"), byte.number<std::uint8_t>("value")});
      byte.finish();
    }
  }
  const Names right = {{"right", 0}, {"wrong", 1}};
  frame.wrong_icrc = from.name("icrc", right, 0) != 0;
  frame.wrong_checksum = from.name("checksum", right, 0) != 0;
  frame.bad_fcs = from.name("fcs", right, 0) != 0;
  frame.cut = from.number<std::uint32_t>("cut", 0);
  frame.append = from.number<std::uint32_t>("append", 0);
  to.within_ns = from.number<std::uint64_t>("then_us", 3) * 1000;
}

void read_counter(Reader& from, VectorStep& to) {
  to.offset = static_cast<std::uint64_t>(from.name("name", counter_names()));
  to.name = from.text("name");
  to.at_least = from.find("at_least") != nullptr;
  if (to.at_least && from.find("equals")) from.fail("\"equals\" and \"at_least\" exclude each other");
  to.value = from.number<std::uint64_t>(to.at_least ? "at_least" : "equals");
}

/// Hexadecimal digits in pairs, "??" for any byte; spaces do not matter.
std::vector<std::optional<std::uint8_t>> read_bytes(const Reader& from, std::string text) {
  std::erase(text, ' ');
  std::vector<std::optional<std::uint8_t>> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const std::string pair = text.substr(i, 2);
    if (pair == "??") {
      bytes.emplace_back();
      continue;
    }
    if (pair.size() != 2 || pair.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) from.fail("\"bytes\" must be hexadecimal digits in pairs, or ?\?");
    bytes.emplace_back(static_cast<std::uint8_t>(std::stoul(pair, nullptr, 16)));
  }
  return bytes;
}

void read_memory(Reader& from, VectorStep& to) {
  to.name = from.text("region");
  to.offset = from.number<std::uint64_t>("offset");
  if (const json* value = from.find("value")) {
    to.value = from.to_number<std::uint64_t>(*value, "value");
    return;
  }
  if (to.kind == StepKind::kStore) from.fail("\"value\" is missing");
  if (from.find("bytes")) {
    to.bytes = read_bytes(from, from.text("bytes"));
    return;
  }
  to.length = from.number<std::uint64_t>("length");
  if (from.find("equals")) {
    to.equals = read_place(from.object("equals"), false);
    if (from.find("fill")) from.fail("\"equals\" and \"fill\" exclude each other");
  } else {
    to.pattern = from.name("fill", kFills) != 0;
  }
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
  to.within_ns = from.number<std::uint64_t>("within_us", 100) * 1000;
  switch (type) {
    case hw::EqeType::kCqError:
      to.queue = static_cast<VectorQueue>(from.name("queue", kQueues));
      break;
    case hw::EqeType::kQpFatal:
    case hw::EqeType::kQpRequestError:
    case hw::EqeType::kQpAccessError:
      if (from.find("cause")) to.cause = static_cast<hw::CqeStatus>(from.name("cause", kCqeStatuses));
      [[fallthrough]];
    case hw::EqeType::kCommEstablished:
    case hw::EqeType::kSqDrained:
    case hw::EqeType::kLastWqeReached:
      to.qp = read_qp(from, setup, "qp");
      break;
    default:
      break;
  }
}

void read_notify(Reader& from, const VectorSetup& setup, VectorStep& to) {
  to.queue = static_cast<VectorQueue>(from.name("queue", kNotifyQueues, 0));
  if (to.queue != VectorQueue::kShared) to.flags = static_cast<std::uint32_t>(from.name("type", kNotifyTypes));
  else if (!setup.srq) from.fail("the setup has no \"srq\"");
  to.name = from.text("name");
  read_call(from, to);
}

void read_fast_register(Reader& from, VectorStep& to) {
  to.context = from.number<std::uint64_t>("context");
  to.fast_region = from.text("name");
  to.name = from.text("region");
  to.offset = from.number<std::uint64_t>("offset");
  to.length = from.number<std::uint64_t>("length");
  to.size = from.number<std::uint64_t>("pages", 16);
  if (const json* base = from.find("base")) to.value = from.to_number<std::uint64_t>(*base, "base");
  to.remote_access = from.boolean("remote_access", to.remote_access);
  to.flags = from.flags("flags", kAtomicFlags);
  to.status = read_status(from);
}

}  // namespace

VectorStep read_vector_step(VectorReader from, const VectorSetup& setup, std::size_t number) {
  VectorStep to;
  to.kind = static_cast<StepKind>(from.name("do", kSteps));
  to.text = fmt::format("step {} ({})", number, from.text("do"));
  to.host = static_cast<std::size_t>(from.name("host", kHosts));
  switch (to.kind) {
    case StepKind::kSend:
    case StepKind::kReceive:
    case StepKind::kWrite:
    case StepKind::kRead:
    case StepKind::kCompareSwap:
    case StepKind::kFetchAdd:
      read_request(from, setup, to);
      break;
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
      to.status = read_status(from);
      break;
    case StepKind::kReleaseWindow:
      to.window = from.text("window");
      break;
    case StepKind::kFlush:
      to.qp = read_qp(from, setup, "qp");
      to.status = read_status(from);
      break;
    case StepKind::kComplete:
      read_complete(from, setup, to);
      break;
    case StepKind::kNoCompletion:
      to.queue = static_cast<VectorQueue>(from.name("queue", kQueues, 0));
      to.within_ns = from.number<std::uint64_t>("for_us", 20) * 1000;
      break;
    case StepKind::kNotify:
      read_notify(from, setup, to);
      break;
    case StepKind::kNotified:
      to.name = from.text("name");
      to.status = static_cast<std::int32_t>(from.name("status", kStatuses));
      to.within_ns = from.number<std::uint64_t>("within_us", 100) * 1000;
      break;
    case StepKind::kNotNotified:
      to.name = from.text("name");
      to.within_ns = from.number<std::uint64_t>("for_us", 20) * 1000;
      break;
    case StepKind::kMemory:
    case StepKind::kStore:
      read_memory(from, to);
      break;
    case StepKind::kRegister:
      to.size = from.number<std::uint64_t>("size");
      to.flags = from.flags("flags", kRegionFlags);
      to.buffer = static_cast<VectorStep::Buffer>(from.name("buffer", kBuffers));
      [[fallthrough]];
    case StepKind::kDeregister:
      to.name = from.text("region");
      read_call(from, to);
      to.status = read_status(from);
      break;
    case StepKind::kWait:
      to.within_ns = from.number<std::uint64_t>("us") * 1000;
      break;
    case StepKind::kFault:
      read_fault(from, setup, to);
      break;
    case StepKind::kFrame:
      read_frame(from, setup, to);
      break;
    case StepKind::kCounter:
      read_counter(from, to);
      break;
    case StepKind::kState:
      to.value = static_cast<std::uint64_t>(from.name("is", kQpStates));
      to.name = from.text("is");
      to.qp = read_qp(from, setup, "qp");
      break;
    case StepKind::kModify:
      read_modify(from, setup, to);
      break;
    case StepKind::kClose:
    case StepKind::kRing:
      to.qp = read_qp(from, setup, "qp");
      break;
    case StepKind::kEvent:
      read_event(from, setup, to);
      break;
    case StepKind::kNoEvent:
      to.within_ns = from.number<std::uint64_t>("for_us", 20) * 1000;
      break;
    case StepKind::kLink:
      to.link_up = from.name("is", {{"down", 0}, {"up", 1}}) != 0;
      break;
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
    case StepKind::kSrqDoorbell:
      if (!setup.srq) from.fail("the setup has no \"srq\"");
      to.size = from.number<std::uint16_t>("producer");
      break;
    case StepKind::kFastRegister:
      to.qp = read_qp(from, setup, "qp");
      read_fast_register(from, to);
      break;
    case StepKind::kEndRegistration:
      to.qp = read_qp(from, setup, "qp");
      to.context = from.number<std::uint64_t>("context");
      to.fast_region = from.text("name");
      to.status = read_status(from);
      break;
    case StepKind::kQueryAdapter:
      to.value = from.number<std::uint32_t>("version");
      to.status = read_status(from);
      break;
  }
  from.finish();
  return to;
}

}  // namespace rnic::testbench
