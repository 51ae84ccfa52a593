#include "testbench/verify/vector_packets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "model/bth.hpp"
#include "testbench/roce_frame.hpp"

namespace rnic::testbench {
namespace {

/// InfiniBand specification 9.2.1, table 38.
const std::map<std::string_view, std::uint8_t>& opcodes() {
  static const std::map<std::string_view, std::uint8_t> kOpcodes = {{"SendFirst", 0x00},
                                                                    {"SendMiddle", 0x01},
                                                                    {"SendLast", 0x02},
                                                                    {"SendLastImmediate", 0x03},
                                                                    {"SendOnly", 0x04},
                                                                    {"SendOnlyImmediate", 0x05},
                                                                    {"WriteFirst", 0x06},
                                                                    {"WriteMiddle", 0x07},
                                                                    {"WriteLast", 0x08},
                                                                    {"WriteLastImmediate", 0x09},
                                                                    {"WriteOnly", 0x0a},
                                                                    {"WriteOnlyImmediate", 0x0b},
                                                                    {"ReadRequest", 0x0c},
                                                                    {"ReadResponseFirst", 0x0d},
                                                                    {"ReadResponseMiddle", 0x0e},
                                                                    {"ReadResponseLast", 0x0f},
                                                                    {"ReadResponseOnly", 0x10},
                                                                    {"Acknowledge", 0x11},
                                                                    {"AtomicAcknowledge", 0x12},
                                                                    {"CompareSwap", 0x13},
                                                                    {"FetchAdd", 0x14},
                                                                    {"SendLastInvalidate", 0x16},
                                                                    {"SendOnlyInvalidate", 0x17},
                                                                    {"UcSendFirst", 0x20},
                                                                    {"UcSendMiddle", 0x21},
                                                                    {"UcSendLast", 0x22},
                                                                    {"UcSendLastImmediate", 0x23},
                                                                    {"UcSendOnly", 0x24},
                                                                    {"UcSendOnlyImmediate", 0x25},
                                                                    {"UcWriteFirst", 0x26},
                                                                    {"UcWriteMiddle", 0x27},
                                                                    {"UcWriteLast", 0x28},
                                                                    {"UcWriteLastImmediate", 0x29},
                                                                    {"UcWriteOnly", 0x2a},
                                                                    {"UcWriteOnlyImmediate", 0x2b},
                                                                    {"UdSendOnly", 0x64},
                                                                    {"UdSendOnlyImmediate", 0x65}};
  return kOpcodes;
}

/// Credits of an ACK whose responder does not count.
constexpr std::uint64_t kNotCounted = ~std::uint64_t{0};
/// "Ack" in a vector: an ACK with whatever credits.
constexpr std::uint64_t kAnyAck = 0x100;

/// AETH syndromes (9.7.5.2, table 44).
const std::map<std::string_view, std::uint64_t>& syndromes() {
  static const std::map<std::string_view, std::uint64_t> kSyndromes = {{"Ack", kAnyAck},
                                                                       {"NakPsn", 0x60},
                                                                       {"NakInvalidRequest", 0x61},
                                                                       {"NakRemoteAccess", 0x62},
                                                                       {"NakRemoteOperational", 0x63}};
  return kSyndromes;
}

std::string opcode_name(std::uint8_t opcode) {
  for (const auto& [name, value] : opcodes()) {
    if (value == opcode) return std::string(name);
  }
  return fmt::format("opcode={:#04x}", opcode);
}

/// The unreliable connection has the SENDs and WRITEs of the reliable one, with 0x20 in front.
std::uint8_t as_reliable(std::uint8_t opcode) { return opcode >= 0x20 && opcode <= 0x2b ? opcode - 0x20 : opcode; }
bool has_reth(std::uint8_t opcode) { return opcode == 0x06 || opcode == 0x0a || opcode == 0x0b || opcode == 0x0c; }
bool has_atomic_eth(std::uint8_t opcode) { return opcode == 0x13 || opcode == 0x14; }
bool has_aeth(std::uint8_t opcode) { return opcode == 0x0d || (opcode >= 0x0f && opcode <= 0x12); }

/// Where the ImmDt or IETH is among the extended headers; nothing if there is none.
std::optional<std::size_t> immediate_at(std::uint8_t opcode) {
  if (opcode == 0x0b) return 16;
  if (opcode == 0x65) return 8;
  if (opcode == 0x03 || opcode == 0x05 || opcode == 0x09 || opcode == 0x16 || opcode == 0x17) return 0;
  return std::nullopt;
}

std::uint64_t parse_value(const std::string& key, const std::string& value) {
  if (key == "syndrome") {
    if (const auto it = syndromes().find(value); it != syndromes().end()) return it->second;
  }
  if (key == "credits" && value == "none") return kNotCounted;
  if (key == "psn" && value.starts_with("-")) return (0 - parse_value(key, value.substr(1))) & roce::kPsnMask;
  std::uint64_t number = 0;
  const bool hexadecimal = value.starts_with("0x");
  const char* const first = value.data() + (hexadecimal ? 2 : 0);
  const auto [end, error] = std::from_chars(first, value.data() + value.size(), number, hexadecimal ? 16 : 10);
  if (error != std::errc() || end != value.data() + value.size())
    throw VectorError(fmt::format("\"{}\" of \"{}\" is no number", value, key));
  return number;
}

/// Number of the queue pair with that QPN, from 1; 0 if there is none.
std::size_t number_of(const std::vector<PacketNumbers::QueuePair>& qps, std::uint32_t qpn) {
  const auto it = std::find_if(qps.begin(), qps.end(),
                               [&](const auto& qp) { return qp.qpn == qpn || qp.earlier_qpns.contains(qpn); });
  return it == qps.end() ? 0 : static_cast<std::size_t>(it - qps.begin()) + 1;
}

std::string join(const std::vector<VectorPacket>& list) {
  std::string all;
  for (const auto& packet : list) all.append(all.empty() ? "" : ", ").append(packet.text);
  return all.empty() ? "none" : all;
}

}  // namespace

std::optional<std::uint8_t> opcode_of(std::string_view name) {
  const auto it = opcodes().find(name);
  return it == opcodes().end() ? std::nullopt : std::optional(it->second);
}

bool is_response(std::uint8_t opcode) { return opcode >= 0x0d && opcode <= 0x12; }

bool is_datagram(std::uint8_t opcode) { return opcode >> 5 == 3; }

std::uint32_t PacketNumbers::first_psn(std::size_t from, std::uint8_t opcode, std::size_t to, std::size_t by) const {
  if (is_datagram(opcode)) return hosts[from].at(by).first_psn;
  return hosts[is_response(opcode) ? 1 - from : from].at(to).first_psn;
}

VectorPacket parse_packet(const std::string& text) {
  static constexpr std::array<std::string_view, 30> kKeys = {
      "opcode",        "psn",       "bytes",      "ack_req",     "solicited", "length",       "syndrome",  "credits",
      "msn",           "immediate", "pad",        "qp",          "pkey",      "qkey",         "source_qp", "ipv6",
      "traffic_class", "hop_limit", "flow_label", "source_port", "dest_port", "udp_checksum", "mig_req",   "tver",
      "fecn",          "becn",      "tag",        "vlan",        "pcp",       "dei"};
  std::istringstream words(text);
  std::string direction, word;
  VectorPacket packet;
  packet.text = text;
  words >> direction;
  if (direction != "A>B" && direction != "B>A")
    throw VectorError(fmt::format("packet \"{}\" does not begin with A>B or B>A", text));
  packet.from = direction == "B>A";
  while (words >> word) {
    const auto equals = word.find('=');
    if (word == "lost") {
      packet.lost = true;
    } else if (equals == std::string::npos) {
      const auto opcode = opcode_of(word);
      if (!opcode) throw VectorError(fmt::format("packet \"{}\": no opcode \"{}\"", text, word));
      packet.fields["opcode"] = *opcode;
    } else {
      const std::string key = word.substr(0, equals), value = word.substr(equals + 1);
      if (key == "rkey") {
        packet.rkey_of = value;
        continue;
      }
      if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end())
        throw VectorError(fmt::format("packet \"{}\": no field \"{}\"", text, key));
      packet.fields[key] = parse_value(key, value);
    }
  }
  if (!packet.fields.contains("opcode")) throw VectorError(fmt::format("packet \"{}\" has no opcode", text));
  return packet;
}

VectorPacket describe_packet(const model::FrameRecord& frame, const PacketNumbers& numbers) {
  VectorPacket packet;
  packet.from = frame.from;
  packet.lost = (frame.faults & 1u << static_cast<unsigned>(model::WireFault::kDrop)) != 0;
  packet.text = frame.from == 0 ? "A>B" : "B>A";
  const auto roce = model::find_roce_packet(frame.bytes);
  if (!roce) {
    packet.text += " (no RoCEv2)";
    return packet;
  }
  const std::span<const std::uint8_t> bytes = frame.bytes;
  const std::size_t ip = roce::ethernet_bytes(bytes);
  const bool ipv6 = bytes[ip] >> 4 == 6;
  const std::size_t udp = ip + (ipv6 ? 40 : 4u * (bytes[ip] & 15u)), bth = udp + roce::kUdpBytes,
                    ext = bth + roce::kBthBytes;
  const std::uint8_t opcode = as_reliable(roce->opcode);
  auto& fields = packet.fields;
  fields["opcode"] = roce->opcode;
  const bool tagged = ip != roce::kEthernetBytes;
  const std::uint64_t tci = tagged ? roce::read_big(bytes, 14, 2) : 0;
  fields["tag"] = tagged;
  fields["vlan"] = tci & 0xfff;
  fields["pcp"] = tci >> 13;
  fields["dei"] = tci >> 12 & 1;
  fields["ipv6"] = ipv6;
  fields["traffic_class"] = ipv6 ? roce::read_big(bytes, ip, 2) >> 4 & 0xff : bytes[ip + 1];
  fields["hop_limit"] = bytes[ip + (ipv6 ? 7 : 8)];
  if (ipv6) fields["flow_label"] = roce::read_big(bytes, ip + 1, 3) & 0xfffff;
  fields["source_port"] = roce::read_big(bytes, udp, 2);
  fields["dest_port"] = roce::read_big(bytes, udp + 2, 2);
  fields["udp_checksum"] = roce::read_big(bytes, udp + 6, 2);
  fields["mig_req"] = bytes[bth + 1] >> 6 & 1u;
  fields["tver"] = bytes[bth + 1] & 15u;
  fields["fecn"] = bytes[bth + 4] >> 7;
  fields["becn"] = bytes[bth + 4] >> 6 & 1u;
  fields["ack_req"] = bytes[bth + 8] >> 7;
  fields["solicited"] = bytes[bth + 1] >> 7;
  fields["pad"] = bytes[bth + 1] >> 4 & 3u;
  fields["pkey"] = roce::read_big(bytes, bth + 2, 2);
  fields["qp"] = number_of(numbers.hosts[1 - frame.from], roce->dest_qpn);
  const auto extended = static_cast<std::size_t>(std::max(0, roce::extended_bytes(roce->opcode)));
  const std::size_t overhead = roce::kUdpBytes + roce::kBthBytes + extended + fields["pad"] + roce::kIcrcBytes,
                    total = roce::read_big(bytes, udp + 4, 2);
  fields["bytes"] = total > overhead ? total - overhead : 0;
  std::size_t by = 0;
  if (bytes.size() >= ext + extended) {
    if (has_reth(opcode)) fields["length"] = roce::read_big(bytes, ext + 12, 4);
    if (has_reth(opcode) || has_atomic_eth(opcode)) fields["rkey"] = roce::read_big(bytes, ext + 8, 4);
    if (opcode == 0x16 || opcode == 0x17) fields["rkey"] = roce::read_big(bytes, ext, 4);
    if (const auto at = immediate_at(opcode)) fields["immediate"] = roce::read_big(bytes, ext + *at, 4);
    if (has_aeth(opcode)) {
      fields["syndrome"] = bytes[ext];
      fields["msn"] = roce::read_big(bytes, ext + 1, 3);
      if (bytes[ext] <= roce::kNoCredits)
        fields["credits"] = bytes[ext] == roce::kNoCredits ? kNotCounted : roce::kCredits[bytes[ext]];
    }
    if (is_datagram(opcode)) {
      fields["qkey"] = roce::read_big(bytes, ext, 4);
      by = number_of(numbers.hosts[frame.from], static_cast<std::uint32_t>(roce::read_big(bytes, ext + 5, 3)));
      fields["source_qp"] = by;
    }
  }
  const auto index = [](std::size_t number) { return number == 0 ? 0 : number - 1; };
  fields["psn"] =
      (roce->psn - numbers.first_psn(frame.from, roce->opcode, index(fields["qp"]), index(by))) & roce::kPsnMask;
  packet.text.append(" ").append(opcode_name(roce->opcode));
  for (const char* const key : {"psn", "bytes", "length", "msn"}) {
    if (const auto it = fields.find(key); it != fields.end()) packet.text += fmt::format(" {}={}", key, it->second);
  }
  for (const char* const key : {"syndrome", "immediate", "qkey"}) {
    if (const auto it = fields.find(key); it != fields.end()) packet.text += fmt::format(" {}={:#x}", key, it->second);
  }
  if (tagged) packet.text += fmt::format(" vlan={} pcp={}", fields["vlan"], fields["pcp"]);
  if (numbers.hosts[0].size() > 1) packet.text += fmt::format(" qp={}", fields["qp"]);
  if (packet.lost) packet.text += " lost";
  return packet;
}

bool agrees(const VectorPacket& expected, const VectorPacket& seen) {
  return expected.from == seen.from && (!expected.lost || seen.lost) &&
         std::all_of(expected.fields.begin(), expected.fields.end(), [&](const auto& field) {
           const auto it = seen.fields.find(field.first);
           if (it != seen.fields.end() && field.first == "syndrome" && field.second == kAnyAck)
             return it->second <= roce::kNoCredits;
           return it != seen.fields.end() && it->second == field.second;
         });
}

namespace {

/// The fields in which `seen` is another one, as far as its text does not say them.
std::string difference(const VectorPacket& expected, const VectorPacket& seen) {
  std::string text;
  for (const auto& [key, value] : expected.fields) {
    const auto it = seen.fields.find(key);
    if (key == "opcode" || it == seen.fields.end() || it->second == value ||
        seen.text.find(" " + key + "=") != std::string::npos)
      continue;
    text += fmt::format(" {}={:#x}", key, it->second);
  }
  return text;
}

std::string describe(const PacketPattern& pattern) {
  if (pattern.kind == PacketPattern::Kind::kPacket) return pattern.packet.text;
  std::string all;
  for (const auto& list : pattern.lists) {
    std::string one;
    for (const auto& item : list) one.append(one.empty() ? "" : ", ").append(describe(item));
    const char* const between = pattern.kind == PacketPattern::Kind::kEither ? " or " : " mixed with ";
    all.append(all.empty() ? "" : between).append(list.empty() ? "nothing" : list.size() > 1 ? "(" + one + ")" : one);
  }
  return "[" + all + (pattern.open_by.empty() ? "" : "; open by " + pattern.open_by) + "]";
}

/// What may still come. A list that is matched packet by packet: each packet turns a rest into the rests behind it,
/// none if it does not fit.
using Rests = std::vector<PacketPatterns>;

bool may_be_over(const PacketPatterns& rest) {
  return std::all_of(rest.begin(), rest.end(), [](const PacketPattern& one) {
    if (one.kind == PacketPattern::Kind::kEither) return std::any_of(one.lists.begin(), one.lists.end(), may_be_over);
    return one.kind == PacketPattern::Kind::kMixed && std::all_of(one.lists.begin(), one.lists.end(), may_be_over);
  });
}

Rests behind(const PacketPatterns& rest, const VectorPacket& seen);

/// The rests when the first item of `rest` takes the packet.
Rests behind_first(const PacketPatterns& rest, const VectorPacket& seen) {
  const auto& first = rest.front();
  const auto then = [&](PacketPatterns head) {
    head.insert(head.end(), rest.begin() + 1, rest.end());
    return head;
  };
  Rests all;
  if (first.kind == PacketPattern::Kind::kPacket) {
    if (agrees(first.packet, seen)) all.push_back(then({}));
    return all;
  }
  for (std::size_t i = 0; i < first.lists.size(); ++i) {
    for (auto& left : behind(first.lists[i], seen)) {
      if (first.kind == PacketPattern::Kind::kEither) {
        all.push_back(then(std::move(left)));
        continue;
      }
      PacketPattern mixed = first;
      mixed.lists[i] = std::move(left);
      all.push_back(then({std::move(mixed)}));
    }
  }
  return all;
}

Rests behind(const PacketPatterns& rest, const VectorPacket& seen) {
  if (rest.empty()) return {};
  Rests all = behind_first(rest, seen);
  if (may_be_over({rest.front()})) {
    for (auto& later : behind({rest.begin() + 1, rest.end()}, seen)) all.push_back(std::move(later));
  }
  return all;
}

/// The packets that may come first, in words, and the field in which `seen` differs from the only one.
std::string expected_first(const Rests& rests) {
  std::string all;
  for (const auto& rest : rests) {
    const std::string one = rest.empty() ? "the end" : describe(rest.front());
    if (all.find(one) == std::string::npos) all.append(all.empty() ? "" : " or ").append(one);
  }
  return all;
}

}  // namespace

std::string compare_packets(const PacketPatterns& expected, const std::vector<VectorPacket>& seen) {
  Rests rests{expected};
  for (std::size_t at = 0; at < seen.size(); ++at) {
    Rests next;
    for (const auto& rest : rests) {
      for (auto& one : behind(rest, seen[at])) next.push_back(std::move(one));
    }
    if (next.empty()) {
      const bool one = rests.size() == 1 && !rests[0].empty() && rests[0][0].kind == PacketPattern::Kind::kPacket;
      return fmt::format("packets: packet {} is {}{}, expected {}; all: {}", at + 1, seen[at].text,
                         one ? difference(rests[0][0].packet, seen[at]) : "", expected_first(rests), join(seen));
    }
    rests = std::move(next);
  }
  if (std::any_of(rests.begin(), rests.end(), may_be_over)) return {};
  return fmt::format("packets: {} packets, then expected {}; all: {}", seen.size(), expected_first(rests), join(seen));
}

std::string find_forbidden(const std::vector<VectorPacket>& forbidden, const std::vector<VectorPacket>& seen) {
  for (const auto& packet : forbidden) {
    const auto it = std::find_if(seen.begin(), seen.end(), [&](const auto& one) { return agrees(packet, one); });
    if (it != seen.end())
      return fmt::format("packets: packet {} is {}, which no_packets forbids ({}); all: {}", it - seen.begin() + 1,
                         it->text, packet.text, join(seen));
  }
  return {};
}

}  // namespace rnic::testbench
