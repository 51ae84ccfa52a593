#include "testbench/verify/vector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "driver/nd2/ndspi.h"
#include "testbench/verify/vector_packets.hpp"
#include "testbench/verify/vector_reader.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;
using Names = VectorReader::Names;
using Reader = VectorReader;

const Names kStatuses = {{"ND_SUCCESS", ND_SUCCESS}, {"ND_PENDING", ND_PENDING}, {"ND_TIMEOUT", ND_TIMEOUT}, {"ND_BUFFER_OVERFLOW", ND_BUFFER_OVERFLOW},
    {"ND_DEVICE_BUSY", ND_DEVICE_BUSY}, {"ND_NO_MORE_ENTRIES", ND_NO_MORE_ENTRIES}, {"ND_ACCESS_VIOLATION", ND_ACCESS_VIOLATION},
    {"ND_INVALID_PARAMETER", ND_INVALID_PARAMETER}, {"ND_INVALID_DEVICE_REQUEST", ND_INVALID_DEVICE_REQUEST}, {"ND_DATA_OVERRUN", ND_DATA_OVERRUN},
    {"ND_INSUFFICIENT_RESOURCES", ND_INSUFFICIENT_RESOURCES}, {"ND_IO_TIMEOUT", ND_IO_TIMEOUT}, {"ND_NOT_SUPPORTED", ND_NOT_SUPPORTED},
    {"ND_INTERNAL_ERROR", ND_INTERNAL_ERROR}, {"ND_INVALID_PARAMETER_3", ND_INVALID_PARAMETER_3}, {"ND_INVALID_PARAMETER_4", ND_INVALID_PARAMETER_4},
    {"ND_INVALID_PARAMETER_2", ND_INVALID_PARAMETER_2}, {"ND_INVALID_PARAMETER_6", ND_INVALID_PARAMETER_6}, {"ND_CANCELED", ND_CANCELED}, {"ND_REMOTE_ERROR", ND_REMOTE_ERROR},
    {"ND_INVALID_BUFFER_SIZE", ND_INVALID_BUFFER_SIZE}, {"ND_CONNECTION_INVALID", ND_CONNECTION_INVALID}};
const Names kOpFlags = {{"SILENT_SUCCESS", ND_OP_FLAG_SILENT_SUCCESS}, {"READ_FENCE", ND_OP_FLAG_READ_FENCE}, {"SOLICIT", ND_OP_FLAG_SEND_AND_SOLICIT_EVENT},
    {"ALLOW_READ", ND_OP_FLAG_ALLOW_READ}, {"ALLOW_WRITE", ND_OP_FLAG_ALLOW_WRITE}, {"INLINE", ND_OP_FLAG_INLINE}};
constexpr std::uint32_t kRemoteAtomic = 1u << 31;  // not a flag of NetworkDirect, which has no atomics
const Names kRegionFlags = {{"LOCAL_WRITE", ND_MR_FLAG_ALLOW_LOCAL_WRITE}, {"REMOTE_READ", ND_MR_FLAG_ALLOW_REMOTE_READ}, {"REMOTE_WRITE", ND_MR_FLAG_ALLOW_REMOTE_WRITE}};
const Names kAtomicFlags = {{"LOCAL_WRITE", ND_MR_FLAG_ALLOW_LOCAL_WRITE}, {"REMOTE_READ", ND_MR_FLAG_ALLOW_REMOTE_READ}, {"REMOTE_WRITE", ND_MR_FLAG_ALLOW_REMOTE_WRITE}, {"REMOTE_ATOMIC", kRemoteAtomic}};
const Names kNotifyTypes = {{"ANY", ND_CQ_NOTIFY_ANY}, {"SOLICITED", ND_CQ_NOTIFY_SOLICITED}, {"ERRORS", ND_CQ_NOTIFY_ERRORS}};
template <typename E>
constexpr std::int64_t number_of(E value) { return static_cast<std::int64_t>(value); }
const Names kRequestKinds = {{"Send", number_of(umd::RequestKind::kSend)}, {"Write", number_of(umd::RequestKind::kWrite)}, {"Read", number_of(umd::RequestKind::kRead)},
    {"CompareSwap", number_of(umd::RequestKind::kCompareSwap)}, {"FetchAdd", number_of(umd::RequestKind::kFetchAdd)}, {"Receive", number_of(umd::RequestKind::kReceive)},
    {"ReceiveWrite", number_of(umd::RequestKind::kReceiveWrite)}, {"Bind", number_of(umd::RequestKind::kBind)}, {"Invalidate", number_of(umd::RequestKind::kInvalidate)}};
const Names kCqeStatuses = {{"Success", number_of(hw::CqeStatus::kSuccess)}, {"LocLenErr", number_of(hw::CqeStatus::kLocLenErr)}, {"LocQpOpErr", number_of(hw::CqeStatus::kLocQpOpErr)},
    {"LocProtErr", number_of(hw::CqeStatus::kLocProtErr)}, {"WrFlushErr", number_of(hw::CqeStatus::kWrFlushErr)}, {"BadRespErr", number_of(hw::CqeStatus::kBadRespErr)},
    {"RemInvReqErr", number_of(hw::CqeStatus::kRemInvReqErr)}, {"RemAccessErr", number_of(hw::CqeStatus::kRemAccessErr)}, {"RemOpErr", number_of(hw::CqeStatus::kRemOpErr)},
    {"RetryExcErr", number_of(hw::CqeStatus::kRetryExcErr)}, {"RnrRetryExcErr", number_of(hw::CqeStatus::kRnrRetryExcErr)}, {"FatalErr", number_of(hw::CqeStatus::kFatalErr)}};
const Names kQpStates = {{"RESET", number_of(hw::QpState::kReset)}, {"INIT", number_of(hw::QpState::kInit)}, {"RTR", number_of(hw::QpState::kRtr)}, {"RTS", number_of(hw::QpState::kRts)},
    {"SQD", number_of(hw::QpState::kSqd)}, {"SQE", number_of(hw::QpState::kSqe)}, {"ERR", number_of(hw::QpState::kErr)}};
const Names kParts = {{"ethernet", number_of(VectorFrame::Part::kEthernet)}, {"ip", number_of(VectorFrame::Part::kIp)}, {"udp", number_of(VectorFrame::Part::kUdp)},
    {"bth", number_of(VectorFrame::Part::kBth)}, {"extended", number_of(VectorFrame::Part::kExtended)}, {"payload", number_of(VectorFrame::Part::kPayload)}};
const Names kHosts = {{"A", 0}, {"B", 1}};
const Names kQueues = {{"initiator", 0}, {"receive", 1}};
const Names kFills = {{"zero", 0}, {"pattern", 1}};
const Names kBuffers = {{"valid", 0}, {"null", 1}, {"unmapped", 2}};
const Names kSteps = {{"send", number_of(StepKind::kSend)}, {"receive", number_of(StepKind::kReceive)}, {"write", number_of(StepKind::kWrite)}, {"read", number_of(StepKind::kRead)},
    {"compare_swap", number_of(StepKind::kCompareSwap)}, {"fetch_add", number_of(StepKind::kFetchAdd)}, {"flush", number_of(StepKind::kFlush)},
    {"complete", number_of(StepKind::kComplete)}, {"no_completion", number_of(StepKind::kNoCompletion)}, {"notify", number_of(StepKind::kNotify)},
    {"notified", number_of(StepKind::kNotified)}, {"not_notified", number_of(StepKind::kNotNotified)}, {"memory", number_of(StepKind::kMemory)}, {"store", number_of(StepKind::kStore)},
    {"register", number_of(StepKind::kRegister)}, {"deregister", number_of(StepKind::kDeregister)}, {"wait", number_of(StepKind::kWait)}, {"fault", number_of(StepKind::kFault)},
    {"frame", number_of(StepKind::kFrame)}, {"counter", number_of(StepKind::kCounter)}, {"state", number_of(StepKind::kState)},
    {"bind", number_of(StepKind::kBind)}, {"invalidate", number_of(StepKind::kInvalidate)}, {"release_window", number_of(StepKind::kReleaseWindow)}};

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

void read_regions(Reader& setup, VectorSetup& to) {
  constexpr std::uint32_t kAll = ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE;
  const json* regions = setup.find("regions");
  if (!regions) {
    to.regions = {{0, "a", 65536, kAll, true}, {1, "b", 65536, kAll, false}};
    return;
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < setup.list(*regions, "regions").size(); ++i) {
    Reader from = setup.element((*regions)[i], "regions", i);
    VectorRegion region{static_cast<std::size_t>(from.name("host", kHosts)), from.text("name"), from.number<std::uint64_t>("size"),
                        from.flags("flags", kAtomicFlags), from.name("fill", kFills, 0) != 0};
    region.remote_atomic = (region.flags & kRemoteAtomic) != 0;
    region.flags &= ~kRemoteAtomic;
    if (!names.insert(region.name).second) from.fail(fmt::format("a second region \"{}\"", region.name));
    from.finish();
    to.regions.push_back(std::move(region));
  }
}

VectorSetup read_setup(Reader from) {
  VectorSetup to;
  to.connected = from.boolean("connected", to.connected);
  to.ipv6 = from.boolean("ipv6", to.ipv6);
  to.mtu = from.number<std::uint32_t>("mtu", to.mtu);
  if (to.mtu != 256 && to.mtu != 512 && to.mtu != 1024 && to.mtu != 2048 && to.mtu != 4096) from.fail("\"mtu\" must be 256, 512, 1024, 2048 or 4096");
  to.initiator_depth = from.number<std::uint32_t>("initiator_depth", to.initiator_depth);
  to.receive_depth = from.number<std::uint32_t>("receive_depth", to.receive_depth);
  to.initiator_sge = from.number<std::uint32_t>("initiator_sge", to.initiator_sge);
  to.receive_sge = from.number<std::uint32_t>("receive_sge", to.receive_sge);
  to.inline_size = from.number<std::uint32_t>("inline_size", to.inline_size);
  to.read_limit = from.number<std::uint32_t>("read_limit", to.read_limit);
  to.cq_depth = from.number<std::uint32_t>("cq_depth", to.cq_depth);
  const auto small = [&from](const char* key, std::uint8_t fallback, std::uint8_t most) {
    const auto value = from.number<std::uint8_t>(key, fallback);
    if (value > most) from.fail(fmt::format("\"{}\" is at most {}", key, most));
    return value;
  };
  to.ack_timeout = small("ack_timeout", to.ack_timeout, 31);
  to.retry_count = small("retry_count", to.retry_count, 7);
  to.rnr_retry = small("rnr_retry", to.rnr_retry, 7);
  to.min_rnr_timer = small("min_rnr_timer", to.min_rnr_timer, 31);
  to.remote_read = from.boolean("remote_read", to.remote_read);
  to.remote_write = from.boolean("remote_write", to.remote_write);
  to.remote_atomic = from.boolean("remote_atomic", to.remote_atomic);
  if (const json* psn = from.find("first_psn")) {
    to.first_psn = from.to_number<std::uint32_t>(*psn, "first_psn");
    if (*to.first_psn > 0xffffff) from.fail("\"first_psn\" has 24 bits");
  }
  read_regions(from, to);
  from.finish();
  return to;
}

void read_request(Reader& from, VectorStep& to) {
  to.context = from.number<std::uint64_t>("context");
  const json& list = from.list(from.need("sge"), "sge");
  for (std::size_t i = 0; i < list.size(); ++i) to.sge.push_back(read_place(from.element(list[i], "sge", i), true));
  if (to.kind != StepKind::kReceive) to.flags = from.flags("flags", kOpFlags);
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
  to.status = static_cast<std::int32_t>(from.name("returns", kStatuses, ND_SUCCESS));
}

VectorResult read_result(Reader one) {
  VectorResult result;
  result.kind = static_cast<umd::RequestKind>(one.name("type", kRequestKinds));
  result.context = one.number<std::uint64_t>("context");
  const json& status = one.need("status");
  if (status.is_string() && !status.get_ref<const std::string&>().starts_with("ND_")) {
    result.cqe_status = static_cast<hw::CqeStatus>(one.to_name(status, "status", kCqeStatuses));
    if (const json* immediate = one.find("immediate")) result.immediate = one.to_number<std::uint32_t>(*immediate, "immediate");
    if (one.find("invalidated")) result.invalidated = one.text("invalidated");
  } else {
    result.status = static_cast<std::int32_t>(one.to_name(status, "status", kStatuses));
    using umd::RequestKind;
    if (result.kind == RequestKind::kCompareSwap || result.kind == RequestKind::kFetchAdd || result.kind == RequestKind::kReceiveWrite) one.fail("NetworkDirect has no such \"type\": give the \"status\" of the CQE");
  }
  if (const json* bytes = one.find("bytes")) result.bytes = one.to_number<std::uint32_t>(*bytes, "bytes");
  one.finish();
  return result;
}

void read_complete(Reader& from, VectorStep& to) {
  to.receive_queue = from.name("queue", kQueues, 0) != 0;
  to.within_ns = from.number<std::uint64_t>("within_us", 100) * 1000;
  to.not_before_ns = from.number<std::uint64_t>("not_before_us", 0) * 1000;
  const json& list = from.list(from.need("results"), "results");
  for (std::size_t i = 0; i < list.size(); ++i) to.results.push_back(read_result(from.element(list[i], "results", i)));
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

void read_fault(Reader& from, VectorStep& to) {
  to.rule.fault = static_cast<model::WireFault>(from.name("fault", fault_names()));
  if (from.find("opcode")) to.rule.match.opcode = read_opcode(from);
  if (from.find("psn")) to.rule.match.psn = read_psn(from);
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

void read_frame(Reader& from, VectorStep& to) {
  auto& frame = to.frame;
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
  frame.pkey = from.number<std::uint16_t>("pkey", 0xffff);
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

void read_memory(Reader& from, VectorStep& to) {
  to.name = from.text("region");
  to.offset = from.number<std::uint64_t>("offset");
  if (const json* value = from.find("value")) {
    to.value = from.to_number<std::uint64_t>(*value, "value");
    return;
  }
  if (to.kind == StepKind::kStore) from.fail("\"value\" is missing");
  to.length = from.number<std::uint64_t>("length");
  if (from.find("equals")) {
    to.equals = read_place(from.object("equals"), false);
    if (from.find("fill")) from.fail("\"equals\" and \"fill\" exclude each other");
  } else {
    to.pattern = from.name("fill", kFills) != 0;
  }
}

VectorStep read_step(Reader from, std::size_t number) {
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
      read_request(from, to);
      break;
    case StepKind::kBind:
      to.name = from.text("region");
      to.offset = from.number<std::uint64_t>("offset");
      to.length = from.number<std::uint64_t>("length");
      [[fallthrough]];
    case StepKind::kInvalidate:
      to.context = from.number<std::uint64_t>("context");
      to.window = from.text("window");
      to.flags = from.flags("flags", kOpFlags);
      to.status = static_cast<std::int32_t>(from.name("returns", kStatuses, ND_SUCCESS));
      break;
    case StepKind::kReleaseWindow:
      to.window = from.text("window");
      break;
    case StepKind::kFlush:
      to.status = static_cast<std::int32_t>(from.name("returns", kStatuses, ND_SUCCESS));
      break;
    case StepKind::kComplete:
      read_complete(from, to);
      break;
    case StepKind::kNoCompletion:
      to.receive_queue = from.name("queue", kQueues, 0) != 0;
      to.within_ns = from.number<std::uint64_t>("for_us", 20) * 1000;
      break;
    case StepKind::kNotify:
      to.receive_queue = from.name("queue", kQueues, 0) != 0;
      to.flags = static_cast<std::uint32_t>(from.name("type", kNotifyTypes));
      to.name = from.text("name");
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
      to.status = static_cast<std::int32_t>(from.name("returns", kStatuses, ND_SUCCESS));
      break;
    case StepKind::kWait:
      to.within_ns = from.number<std::uint64_t>("us") * 1000;
      break;
    case StepKind::kFault:
      read_fault(from, to);
      break;
    case StepKind::kFrame:
      read_frame(from, to);
      break;
    case StepKind::kCounter:
      read_counter(from, to);
      break;
    case StepKind::kState:
      to.value = static_cast<std::uint64_t>(from.name("is", kQpStates));
      to.name = from.text("is");
      break;
  }
  from.finish();
  return to;
}

std::vector<VectorPacket> read_packet_list(const Reader& from, const json& list) {
  std::vector<VectorPacket> packets;
  for (const json& packet : from.list(list, "packets")) {
    if (!packet.is_string()) from.fail("\"packets\" must be a list of strings");
    try {
      packets.push_back(parse_packet(packet.get<std::string>()));
    } catch (const VectorError& error) {
      from.fail(error.what());
    }
  }
  return packets;
}

void read_packets(Reader& from, Vector& to) {
  const json* packets = from.find("packets");
  if (!packets) return;
  if (!packets->is_object()) {
    to.packets = read_packet_list(from, *packets);
    return;
  }
  Reader directions = from.object("packets");
  for (const auto& [host, index] : kHosts) {
    const json* list = directions.find(std::string(host).c_str());
    if (!list) continue;
    auto& expected = to.packets_from.at(static_cast<std::size_t>(index)).emplace(read_packet_list(directions, *list));
    for (const auto& packet : expected) {
      if (packet.from != static_cast<std::size_t>(index)) directions.fail(fmt::format("\"{}\" is not a packet of host {}", packet.text, host));
    }
  }
  directions.finish();
}

std::vector<std::uint8_t> read_hex(const Reader& from, const std::string& text) {
  std::vector<std::uint8_t> bytes;
  if (text.size() % 2 || text.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) from.fail("\"frame\" must be hexadecimal digits in pairs");
  for (std::size_t i = 0; i < text.size(); i += 2) bytes.push_back(static_cast<std::uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

/// Every region and window that a step names must exist, so that a typing mistake is found before anything runs. A window exists from its
/// first bind or invalidation on.
void check_regions(const Vector& vector, const Reader& from) {
  std::set<std::string> names, windows;
  for (const auto& region : vector.setup.regions) names.insert(region.name);
  const auto check = [&](const VectorStep& step, const std::string& name) {
    if (!name.empty() && !names.contains(name)) from.fail(fmt::format("{}: no region \"{}\"", step.text, name));
  };
  const auto check_window = [&](const VectorStep& step, const std::string& name) {
    if (!name.empty() && !windows.contains(name)) from.fail(fmt::format("{}: no window \"{}\"", step.text, name));
  };
  for (const auto& step : vector.steps) {
    if (step.kind == StepKind::kRegister) names.insert(step.name);
    if (step.kind == StepKind::kBind) check(step, step.name);
    if (step.kind == StepKind::kBind || step.kind == StepKind::kInvalidate) windows.insert(step.window);
    check_window(step, step.window);
    for (const auto& result : step.results) check_window(step, result.invalidated);
    if (step.kind == StepKind::kMemory || step.kind == StepKind::kStore || step.kind == StepKind::kDeregister) check(step, step.name);
    for (const auto& place : step.sge) check(step, place.region), check(step, place.token_of);
    check(step, step.remote.region);
    const bool of_window = step.remote.token == TokenChange::kWindow || step.remote.token == TokenChange::kStaleWindow;
    if (of_window) check_window(step, step.remote.token_of);
    else check(step, step.remote.token_of);
    if (step.equals) check(step, step.equals->region);
  }
}

}  // namespace

Vector load_vector(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw VectorError(fmt::format("{}: cannot be read", file.string()));
  json root;
  try {
    root = json::parse(in, nullptr, true, true);
  } catch (const json::parse_error& error) {
    throw VectorError(fmt::format("{}: {}", file.string(), error.what()));
  }
  Reader from(root, file.string());
  Vector vector;
  vector.file = file;
  vector.document = from.text("document");
  vector.clause = from.text("clause");
  vector.rule = from.text("rule");
  if (from.find("frame")) {
    vector.frame = read_hex(from, from.text("frame"));
    Reader header = from.object("header");
    for (const auto& [key, value] : from.need("header").items()) vector.header[key] = header.number<std::uint64_t>(key.c_str());
    from.finish();
    return vector;
  }
  const json none = json::object();
  vector.setup = read_setup(from.find("setup") ? from.object("setup") : Reader(none, file.string()));
  const json& steps = from.list(from.need("steps"), "steps");
  if (steps.empty()) from.fail("\"steps\" is empty");
  for (std::size_t i = 0; i < steps.size(); ++i) vector.steps.push_back(read_step(from.element(steps[i], "step", i), i + 1));
  read_packets(from, vector);
  from.finish();
  check_regions(vector, from);
  return vector;
}

std::vector<Vector> load_vectors(const std::vector<std::filesystem::path>& paths) {
  std::vector<std::filesystem::path> files;
  for (const auto& path : paths) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
      const auto before = files.size();
      for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
        if (entry.path().extension() == ".json" && entry.path().filename() != kClauseFile) files.push_back(entry.path());
      }
      std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
      if (files.size() == before) throw VectorError(fmt::format("{}: no vector (*.json) in this folder", path.string()));
    } else {
      files.push_back(path);
    }
  }
  std::vector<Vector> vectors;
  vectors.reserve(files.size());
  for (const auto& file : files) vectors.push_back(load_vector(file));
  return vectors;
}

std::string kind_name(umd::RequestKind kind) {
  for (const auto& [name, value] : kRequestKinds) {
    if (value == number_of(kind)) return std::string(name);
  }
  return fmt::format("kind {}", number_of(kind));
}

std::string cqe_status_name(hw::CqeStatus status) {
  for (const auto& [name, value] : kCqeStatuses) {
    if (value == number_of(status)) return std::string(name);
  }
  return fmt::format("status {}", number_of(status));
}

std::string status_name(std::int32_t status) {
  for (const auto& [name, value] : kStatuses) {
    if (static_cast<std::int32_t>(value) == status) return std::string(name);
  }
  return fmt::format("{:#010x}", static_cast<std::uint32_t>(status));
}

}  // namespace rnic::testbench
