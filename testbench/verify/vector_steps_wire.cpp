// The steps of a vector about the wire: faults and hand-made frames.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "testbench/verify/vector_names.hpp"
#include "testbench/verify/vector_packets.hpp"
#include "testbench/verify/vector_step_parts.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;
using Names = VectorReader::Names;
using Reader = VectorReader;

const Names kParts = {
    {"ethernet", number_of(VectorFrame::Part::kEthernet)}, {"ip", number_of(VectorFrame::Part::kIp)},
    {"udp", number_of(VectorFrame::Part::kUdp)},           {"bth", number_of(VectorFrame::Part::kBth)},
    {"extended", number_of(VectorFrame::Part::kExtended)}, {"payload", number_of(VectorFrame::Part::kPayload)}};
const Names& fault_names() {
  static const Names kNames = [] {
    Names names;
    for (std::size_t i = 0; i < model::kWireFaults; ++i)
      names[model::name(static_cast<model::WireFault>(i))] = static_cast<std::int64_t>(i);
    return names;
  }();
  return kNames;
}

constexpr std::size_t kLongestFrame = 9000;

std::uint8_t read_opcode(Reader& from) {
  const json& value = from.need("opcode");
  if (value.is_number()) return from.to_number<std::uint8_t>(value, "opcode");
  const auto opcode = value.is_string() ? opcode_of(value.get_ref<const std::string&>()) : std::nullopt;
  if (!opcode) from.fail(fmt::format("\"opcode\" is {}, which is neither an opcode nor a number", value.dump()));
  return *opcode;
}

/// The VLAN tag, or "none"; unless told otherwise that of the sender's packets.
void read_tag(Reader& from, const VectorHostSetup& sender, VectorFrame& to) {
  const auto tci_of = [](unsigned pcp, unsigned dei, unsigned vid) {
    return static_cast<std::uint16_t>(pcp << 13 | dei << 12 | vid);
  };
  if (sender.vlan != 0) to.tci = tci_of(sender.sl, 0, sender.vlan);
  const json* const tag = from.find("tag");
  if (tag == nullptr) return;
  to.tci.reset();
  if (tag->is_string() && *tag == "none") return;
  Reader fields = from.object("tag");
  const auto vid = fields.number_up_to<std::uint16_t>("vlan", kReservedVid, 0);
  const auto pcp = fields.number_up_to<std::uint8_t>("pcp", kHighestPriority, 0);
  to.tci = tci_of(pcp, fields.boolean("dei", false), vid);
  fields.finish();
}

}  // namespace

void read_fault_step(Reader& from, const VectorSetup& setup, VectorStep& to) {
  to.rule.fault = static_cast<model::WireFault>(from.name("fault", fault_names()));
  if (from.find("opcode")) to.rule.match.opcode = read_opcode(from);
  if (from.find("psn")) to.rule.match.psn = read_psn(from);
  to.rule.match.spare_injected = !from.boolean("hand_made", true);
  to.only_qp = from.find("qp") != nullptr;
  to.qp = read_qp(from, setup, "qp");
  to.rule.nth = from.number<std::uint64_t>("nth", 1);
  to.rule.count = from.number<std::uint64_t>("count", 1);
  auto& parameters = to.rule.parameters;
  if (const json* bit = from.find("bit")) parameters.corrupt_bit = from.to_number<std::uint32_t>(*bit, "bit");
  if (const json* bytes = from.find("bytes"))
    parameters.truncate_bytes = from.to_number<std::uint32_t>(*bytes, "bytes");
  parameters.duplicate_frames = from.number<std::uint32_t>("frames", 0);
  if (to.rule.fault == model::WireFault::kReorder)
    parameters.reorder_frames = std::max(1u, parameters.duplicate_frames);
  parameters.duplicate_hold_ns = parameters.reorder_hold_ns = from.number<std::uint32_t>("hold_ns", 10'000);
  parameters.delay_ns = from.number<std::uint32_t>("ns", 1'000);
  try {
    model::check(to.rule);
  } catch (const std::invalid_argument& error) {
    from.fail(error.what());
  }
}

void read_frame_step(Reader& from, const VectorSetup& setup, VectorStep& to) {
  auto& frame = to.frame;
  const Names right = {{"right", 0}, {"wrong", 1}};
  frame.bad_fcs = from.name("fcs", right, 0) != 0;
  to.within_ns = from.microseconds("then_us", 3);
  if (from.find("bytes")) {
    frame.bytes = read_known_bytes(from, "bytes");
    if (frame.bytes.empty() || frame.bytes.size() > kLongestFrame)
      from.fail(fmt::format("\"bytes\" of a frame are 1 to {}", kLongestFrame));
    frame.append = from.number<std::uint32_t>("append", 0);
    return;
  }
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
  frame.pkey = from.number<std::uint16_t>("pkey", setup.hosts[1 - to.host].pkey);
  if (setup.type == hw::QpType::kUd) {
    frame.qkey = from.number<std::uint32_t>("qkey", setup.hosts[to.host].qkey);
    frame.source_qp = read_qp(from, setup, "source_qp", to.qp);
  }
  frame.qpn_xor = from.number<std::uint32_t>("qpn_xor", 0);
  frame.ack_req = from.boolean("ack_req", true);
  frame.solicited = from.boolean("solicited", false);
  frame.ipv6 = from.boolean("ipv6", setup.ipv6);
  if (from.find("group")) {
    frame.group = read_group(from);
    if (frame.group->ipv6 != frame.ipv6) from.fail("\"group\" is of another IP version than the frame");
  }
  read_tag(from, setup.hosts[1 - to.host], frame);
  frame.stranger = from.name("from", {{"peer", 0}, {"stranger", 1}}, 0) != 0;
  if (const json* set = from.find("set")) {
    for (std::size_t i = 0; i < from.list(*set, "set").size(); ++i) {
      Reader byte = from.element((*set)[i], "set", i);
      frame.set.push_back({static_cast<VectorFrame::Part>(byte.name("part", kParts)), byte.number<std::size_t>("byte"),
                           byte.number<std::uint8_t>("value")});
      byte.finish();
    }
  }
  if (const json* insert = from.find("insert")) {
    for (std::size_t i = 0; i < from.list(*insert, "insert").size(); ++i) {
      Reader more = from.element((*insert)[i], "insert", i);
      VectorFrame::Insertion insertion{
          static_cast<VectorFrame::Part>(more.name("part", kParts)), more.number<std::size_t>("byte"), {}};
      insertion.bytes = read_known_bytes(more, "bytes");
      frame.insert.push_back(std::move(insertion));
      more.finish();
    }
  }
  frame.wrong_icrc = from.name("icrc", right, 0) != 0;
  frame.wrong_checksum = from.name("checksum", right, 0) != 0;
  frame.cut = from.number<std::uint32_t>("cut", 0);
  frame.append = from.number<std::uint32_t>("append", 0);
}

void read_receive_ethernet_step(Reader& from, const VectorSetup& setup, VectorStep& to) {
  to.qp = read_qp(from, setup, "qp");
  to.ethernet.enable = from.boolean("enable", true);
  to.ethernet.all_groups = from.boolean("all_groups", false);
  to.ethernet.promiscuous = from.boolean("promiscuous", false);
  to.frame.qpn_xor = from.number<std::uint32_t>("qpn_xor", 0);
  if (from.find("groups") == nullptr) return;
  for (const json& bit : from.list(from.need("groups"), "groups")) {
    const auto number = from.to_number<std::uint32_t>(bit, "groups");
    if (number > 63) from.fail("\"groups\" are bits of PortGroups, 0 to 63");
    to.ethernet.groups |= std::uint64_t{1} << number;
  }
}
}  // namespace rnic::testbench
