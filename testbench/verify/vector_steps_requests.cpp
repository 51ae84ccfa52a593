// The steps of a vector about requests, their completions, and memory.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <utility>

#include "testbench/verify/vector_names.hpp"
#include "testbench/verify/vector_step_parts.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;
using Names = VectorReader::Names;
using Reader = VectorReader;

const Names kReceiveFlags = {{"DEFER", kDefer}};

/// Where a datagram goes: to the queue pair of the same number, as the setup says, unless told otherwise.
void read_datagram(Reader& from, const VectorSetup& setup, VectorStep& to) {
  const auto& own = setup.hosts.at(to.host);
  to.to = {.ipv6 = setup.ipv6,
           .traffic_class = own.traffic_class,
           .hop_limit = own.hop_limit,
           .flow_label = own.flow_label,
           .vlan = own.vlan,
           .sl = own.sl};
  to.to.qp = read_qp(from, setup, "to_qp", to.qp);
  to.to.qpn_xor = from.number<std::uint32_t>("qpn_xor", 0);
  to.to.qkey = from.number<std::uint32_t>("qkey", setup.hosts[1 - to.host].qkey);
  if (!from.find("address")) return;
  Reader address = from.object("address");
  to.to.ipv6 = address.boolean("ipv6", to.to.ipv6);
  to.to.traffic_class = address.number<std::uint8_t>("traffic_class", to.to.traffic_class);
  to.to.hop_limit = address.number<std::uint8_t>("hop_limit", to.to.hop_limit);
  to.to.flow_label = address.number<std::uint32_t>("flow_label", to.to.flow_label);
  to.to.vlan = address.number_up_to<std::uint16_t>("vlan", kHighestVid, to.to.vlan);
  to.to.sl = address.number_up_to<std::uint8_t>("sl", kHighestPriority, to.to.sl);
  if (address.find("group")) {
    to.to.group = read_group(address);
    to.to.ipv6 = to.to.group->ipv6;
  }
  address.finish();
}

std::uint32_t read_flags(Reader& from, VectorStep& to, const Names& names) {
  const json* value = from.find("flags");
  const std::uint32_t flags = from.flags("flags", names);
  if (!value || value->is_number()) return flags;
  to.defer = (flags & kDefer) != 0;
  return flags & ~kDefer;
}

/// What bytes are: those of a place, of a hand-made frame, or a fill.
void read_expectation(Reader& from, const VectorSetup& setup, VectorStep& to) {
  if ((from.find("equals") != nullptr) + (from.find("payload_of") != nullptr) + (from.find("fill") != nullptr) > 1)
    from.fail("\"equals\", \"payload_of\" and \"fill\" exclude each other");
  if (from.find("equals")) {
    to.equals = read_place(from.object("equals"), false);
  } else if (from.find("payload_of")) {
    Reader payload = from.object("payload_of");
    auto& of = to.payload_of.emplace(VectorStep::Payload{});
    of.psn = read_psn(payload);
    of.qp = read_qp(payload, setup, "qp");
    of.byte = payload.number<std::uint64_t>("byte", 0);
    payload.finish();
  } else {
    to.fills.insert(from.name("fill", kFills) != 0);
  }
}

/// "AnyError": all but success and the flush behind another error.
void add_any_error(VectorResult& to) {
  for (const auto& [name, value] : kCqeStatuses) {
    const auto status = static_cast<hw::CqeStatus>(value);
    if (status != hw::CqeStatus::kSuccess && status != hw::CqeStatus::kWrFlushErr) to.cqe_statuses.push_back(status);
  }
}

VectorResult read_result(Reader one, const VectorSetup& setup) {
  VectorResult result;
  result.kind = static_cast<umd::RequestKind>(one.name("type", kRequestKinds));
  result.context = one.number<std::uint64_t>("context");
  json list = json::array({one.need("status")});
  if (one.need("status").is_object()) {
    Reader open = one.object("status");
    list = read_either(open, result.open_by);
    open.finish();
  }
  const auto of_networkdirect = [](const json& name) {
    return name.is_string() && name.get_ref<const std::string&>().starts_with("ND_");
  };
  for (const json& name : list) {
    if (of_networkdirect(name))
      result.statuses.push_back(static_cast<std::int32_t>(one.to_name(name, "status", kStatuses)));
    else if (name == "AnyError")
      add_any_error(result);
    else
      result.cqe_statuses.push_back(static_cast<hw::CqeStatus>(one.to_name(name, "status", kCqeStatuses)));
  }
  if (!result.statuses.empty() && !result.cqe_statuses.empty())
    one.fail("\"status\" mixes those of NetworkDirect and of CQEs");
  if (!result.cqe_statuses.empty()) {
    if (const json* immediate = one.find("immediate"))
      result.immediate = one.to_number<std::uint32_t>(*immediate, "immediate");
    if (one.find("invalidated")) result.invalidated = one.text("invalidated");
    if (one.find("source_qp")) result.source_qp = read_qp(one, setup, "source_qp");
    if (one.find("tag")) result.tag = one.boolean("tag", false);
    if (one.find("vlan")) result.vlan = one.number_up_to<std::uint16_t>("vlan", kHighestVid, 0);
    if (one.find("sl")) result.sl = one.number_up_to<std::uint8_t>("sl", kHighestPriority, 0);
    if (one.find("l3_ok")) result.l3_ok = one.boolean("l3_ok", false);
    if (one.find("l4_ok")) result.l4_ok = one.boolean("l4_ok", false);
    if (one.find("syndrome")) result.syndrome = one.number<std::uint8_t>("syndrome");
  } else {
    using umd::RequestKind;
    if (result.kind == RequestKind::kCompareSwap || result.kind == RequestKind::kFetchAdd ||
        result.kind == RequestKind::kReceiveWrite || result.kind == RequestKind::kFastRegister) {
      one.fail("NetworkDirect has no such \"type\": give the \"status\" of the CQE");
    }
  }
  if (one.find("qp")) result.qp = read_qp(one, setup, "qp");
  if (const json* bytes = one.find("bytes")) result.bytes = one.to_number<std::uint32_t>(*bytes, "bytes");
  one.finish();
  return result;
}

}  // namespace

VectorGroup read_group(Reader& from) {
  VectorGroup group;
  const std::string text = from.text("group");
  auto& gid = group.gid;
  group.ipv6 = inet_pton(AF_INET6, text.c_str(), gid.data()) == 1;
  if (!group.ipv6) {
    gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    if (inet_pton(AF_INET, text.c_str(), gid.data() + 12) != 1)
      from.fail(fmt::format("\"group\": \"{}\" is no address", text));
  }
  // RFC 2464 7, RFC 1112 6.4.
  std::uint64_t last = 0;
  for (std::size_t i = 12; i < gid.size(); ++i) last = last << 8 | gid[i];
  group.mac = group.ipv6 ? 0x3333'0000'0000 | last : 0x0100'5E00'0000 | (last & 0x7F'FFFF);
  return group;
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
      if (change.find("window")) {
        place.token = TokenChange::kWindow;
        place.token_of = change.text("window");
      } else if (change.find("stale")) {
        place.token = TokenChange::kStaleWindow;
        place.token_of = change.text("stale");
      } else if (change.find("current")) {
        place.token = TokenChange::kCurrentWindow;
        place.token_of = change.text("current");
      } else {
        place.token =
            static_cast<TokenChange>(change.name("corrupt", {{"index", number_of(TokenChange::kCorruptIndex)},
                                                             {"high_index", number_of(TokenChange::kCorruptHighIndex)},
                                                             {"tag", number_of(TokenChange::kCorruptTag)}}));
      }
      change.finish();
    }
  }
  from.finish();
  return place;
}

std::size_t read_qp(Reader& from, const VectorSetup& setup, const char* key, std::size_t fallback) {
  const auto number = from.number<std::size_t>(key, fallback + 1);
  if (number == 0 || number > setup.queue_pairs)
    from.fail(fmt::format("\"{}\" is {}; there are {} queue pairs (\"queue_pairs\")", key, number, setup.queue_pairs));
  return number - 1;
}

std::uint32_t read_psn(Reader& from) { return static_cast<std::uint32_t>(from.number<std::int64_t>("psn")) & 0xffffff; }

std::int32_t read_status(Reader& from) {
  return static_cast<std::int32_t>(from.name("returns", kStatuses, ND_SUCCESS));
}

void read_call(Reader& from, VectorStep& to) {
  if (from.find("call")) to.call = static_cast<std::int32_t>(from.name("call", kStatuses));
}

std::vector<std::optional<std::uint8_t>> read_pattern_bytes(const Reader& from, std::string text) {
  std::erase(text, ' ');
  std::vector<std::optional<std::uint8_t>> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const std::string pair = text.substr(i, 2);
    if (pair == "??") {
      bytes.emplace_back();
      continue;
    }
    if (pair.size() != 2 || pair.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
      from.fail("\"bytes\" must be hexadecimal digits in pairs, or ?\?");
    bytes.emplace_back(static_cast<std::uint8_t>(std::stoul(pair, nullptr, 16)));
  }
  return bytes;
}

std::vector<std::uint8_t> read_known_bytes(Reader& from, const char* key) {
  std::vector<std::uint8_t> bytes;
  for (const auto& byte : read_pattern_bytes(from, from.text(key))) {
    if (!byte) from.fail(fmt::format("\"{}\" here are all known", key));
    bytes.push_back(*byte);
  }
  return bytes;
}

void read_request_step(Reader& from, const VectorSetup& setup, VectorStep& to) {
  to.qp = read_qp(from, setup, "qp");
  to.context = from.number<std::uint64_t>("context");
  if (from.need("sge").is_object()) {
    Reader null = from.object("sge");
    to.null_sge = null.number<std::uint32_t>("null");
    null.finish();
  } else {
    const json& list = from.list(from.need("sge"), "sge");
    for (std::size_t i = 0; i < list.size(); ++i) to.sge.push_back(read_place(from.element(list[i], "sge", i), true));
  }
  to.flags = read_flags(from, to, to.kind == StepKind::kReceive ? kReceiveFlags : kOpFlags);
  const bool atomic = to.kind == StepKind::kCompareSwap || to.kind == StepKind::kFetchAdd;
  if (to.kind == StepKind::kRead || to.kind == StepKind::kWrite || atomic)
    to.remote = read_place(from.object("remote"), false);
  if (to.kind == StepKind::kFetchAdd) to.swap_add = from.number<std::uint64_t>("add");
  if (to.kind == StepKind::kCompareSwap) {
    to.swap_add = from.number<std::uint64_t>("swap");
    to.compare = from.number<std::uint64_t>("compare");
  }
  if (to.kind == StepKind::kSend || to.kind == StepKind::kWrite) {
    if (const json* immediate = from.find("immediate"))
      to.immediate = from.to_number<std::uint32_t>(*immediate, "immediate");
  }
  if (to.kind == StepKind::kSend && from.find("invalidate")) {
    to.invalidate = from.text("invalidate");
    if (to.immediate) from.fail("\"immediate\" and \"invalidate\" exclude each other");
  }
  if (to.kind == StepKind::kSend) to.ip_csum = from.boolean("ip_csum", false);
  if (to.kind != StepKind::kReceive && setup.type == hw::QpType::kUd) read_datagram(from, setup, to);
  to.status = read_status(from);
}

void read_complete_step(Reader& from, const VectorSetup& setup, VectorStep& to) {
  to.queue = static_cast<VectorQueue>(from.name("queue", kQueues, 0));
  to.within_ns = from.microseconds("within_us", 100);
  to.not_before_ns = from.microseconds("not_before_us", 0);
  read_results(from, setup, to);
}

void read_results(Reader& from, const VectorSetup& setup, VectorStep& to) {
  const json& list = from.list(from.need("results"), "results");
  for (std::size_t i = 0; i < list.size(); ++i)
    to.results.push_back(read_result(from.element(list[i], "results", i), setup));
}

std::uint32_t read_options(Reader& from, VectorStep& to) {
  const std::uint32_t options = from.flags(
      "options",
      {{"SILENT_SUCCESS", ND_OP_FLAG_SILENT_SUCCESS}, {"READ_FENCE", ND_OP_FLAG_READ_FENCE}, {"DEFER", kDefer}});
  to.defer = (options & kDefer) != 0;
  return options & ~kDefer;
}

void read_fast_register_step(Reader& from, VectorStep& to) {
  to.context = from.number<std::uint64_t>("context");
  to.fast_region = from.text("name");
  to.name = from.text("region");
  to.offset = from.number<std::uint64_t>("offset");
  to.length = from.number<std::uint64_t>("length");
  to.size = from.number<std::uint64_t>("pages", 16);
  if (const json* base = from.find("base")) to.value = from.to_number<std::uint64_t>(*base, "base");
  to.remote_access = from.boolean("remote_access", to.remote_access);
  to.flags = from.flags("flags", kAtomicFlags);
  to.op_flags = read_options(from, to);
  to.status = read_status(from);
}

void read_memory_step(Reader& from, const VectorSetup& setup, VectorStep& to) {
  to.name = from.text("region");
  to.offset = from.number<std::uint64_t>("offset");
  if (const json* value = from.find("value")) {
    to.value = from.to_number<std::uint64_t>(*value, "value");
    return;
  }
  if (from.find("bytes")) {
    to.bytes = read_pattern_bytes(from, from.text("bytes"));
    const bool known = std::all_of(to.bytes.begin(), to.bytes.end(), [](const auto& byte) { return byte.has_value(); });
    if (to.kind == StepKind::kStore && !known) from.fail("\"bytes\" that are stored are all known");
    return;
  }
  if (to.kind == StepKind::kStore) from.fail("\"value\" or \"bytes\" is missing");
  to.length = from.number<std::uint64_t>("length");
  if (!from.find("either")) return read_expectation(from, setup, to);
  const json& open = read_either(from, to.open_by);
  for (std::size_t i = 0; i < open.size(); ++i) {
    Reader one = from.element(open[i], "either", i);
    if ((one.find("equals") && to.equals) || (one.find("payload_of") && to.payload_of))
      one.fail("a second one of its kind");
    read_expectation(one, setup, to);
    one.finish();
  }
}

}  // namespace rnic::testbench
