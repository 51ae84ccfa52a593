#include "testbench/verify/vector_packets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "model/bth.hpp"
#include "testbench/roce_frame.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint32_t kPsnMask = 0xffffff;
constexpr std::size_t kEthernet = 14, kUdp = 8, kBth = 12, kIcrc = 4;

/// InfiniBand specification 9.2.1, table 38: the opcodes of the reliable connection.
const std::map<std::string_view, std::uint8_t>& opcodes() {
  static const std::map<std::string_view, std::uint8_t> kOpcodes = {
      {"SendFirst", 0x00}, {"SendMiddle", 0x01}, {"SendLast", 0x02}, {"SendLastImmediate", 0x03}, {"SendOnly", 0x04}, {"SendOnlyImmediate", 0x05},
      {"WriteFirst", 0x06}, {"WriteMiddle", 0x07}, {"WriteLast", 0x08}, {"WriteLastImmediate", 0x09}, {"WriteOnly", 0x0a}, {"WriteOnlyImmediate", 0x0b},
      {"ReadRequest", 0x0c}, {"ReadResponseFirst", 0x0d}, {"ReadResponseMiddle", 0x0e}, {"ReadResponseLast", 0x0f}, {"ReadResponseOnly", 0x10},
      {"Acknowledge", 0x11}, {"AtomicAcknowledge", 0x12}, {"CompareSwap", 0x13}, {"FetchAdd", 0x14}, {"SendLastInvalidate", 0x16}, {"SendOnlyInvalidate", 0x17}};
  return kOpcodes;
}

/// Receive WQEs that the credit codes of an ACK stand for (9.7.7.2.2, table 46); the last one says that nobody counts.
constexpr std::uint64_t kNotCounted = ~std::uint64_t{0};
constexpr std::array<std::uint64_t, 32> kCredits = {0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
                                                    256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, kNotCounted};
/// "Ack" in a vector: an ACK with whatever credits.
constexpr std::uint64_t kAnyAck = 0x100;

/// AETH syndromes (9.7.5.2, table 44).
const std::map<std::string_view, std::uint64_t>& syndromes() {
  static const std::map<std::string_view, std::uint64_t> kSyndromes = {
      {"Ack", kAnyAck}, {"NakPsn", 0x60}, {"NakInvalidRequest", 0x61}, {"NakRemoteAccess", 0x62}, {"NakRemoteOperational", 0x63}};
  return kSyndromes;
}

std::string opcode_name(std::uint8_t opcode) {
  for (const auto& [name, value] : opcodes()) {
    if (value == opcode) return std::string(name);
  }
  return fmt::format("opcode={:#04x}", opcode);
}

bool has_reth(std::uint8_t opcode) { return opcode == 0x06 || opcode == 0x0a || opcode == 0x0b || opcode == 0x0c; }
bool has_aeth(std::uint8_t opcode) { return opcode == 0x0d || (opcode >= 0x0f && opcode <= 0x12); }

/// Where the ImmDt or IETH is among the extended headers; nothing if there is none.
std::optional<std::size_t> immediate_at(std::uint8_t opcode) {
  if (opcode == 0x0b) return 16;
  if (opcode == 0x03 || opcode == 0x05 || opcode == 0x09 || opcode == 0x16 || opcode == 0x17) return 0;
  return std::nullopt;
}

std::uint64_t parse_value(const std::string& key, const std::string& value) {
  if (key == "syndrome") {
    if (const auto it = syndromes().find(value); it != syndromes().end()) return it->second;
  }
  if (key == "credits" && value == "none") return kNotCounted;
  if (key == "psn" && value.starts_with("-")) return (0 - parse_value(key, value.substr(1))) & kPsnMask;
  std::uint64_t number = 0;
  const bool hexadecimal = value.starts_with("0x");
  const char* const first = value.data() + (hexadecimal ? 2 : 0);
  const auto [end, error] = std::from_chars(first, value.data() + value.size(), number, hexadecimal ? 16 : 10);
  if (error != std::errc() || end != value.data() + value.size()) throw VectorError(fmt::format("\"{}\" of \"{}\" is no number", value, key));
  return number;
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

VectorPacket parse_packet(const std::string& text) {
  static constexpr std::array<std::string_view, 11> kKeys = {"opcode", "psn", "bytes", "ack_req", "solicited", "length", "syndrome", "credits", "msn", "immediate", "pad"};
  std::istringstream words(text);
  std::string direction, word;
  VectorPacket packet;
  packet.text = text;
  words >> direction;
  if (direction != "A>B" && direction != "B>A") throw VectorError(fmt::format("packet \"{}\" does not begin with A>B or B>A", text));
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
      if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) throw VectorError(fmt::format("packet \"{}\": no field \"{}\"", text, key));
      packet.fields[key] = parse_value(key, value);
    }
  }
  if (!packet.fields.contains("opcode")) throw VectorError(fmt::format("packet \"{}\" has no opcode", text));
  return packet;
}

VectorPacket describe_packet(const model::FrameRecord& frame, const FirstPsns& first_psns) {
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
  const std::size_t udp = kEthernet + (bytes[12] == 0x86 ? 40 : 4u * (bytes[kEthernet] & 15u)), bth = udp + kUdp, ext = bth + kBth;
  auto& fields = packet.fields;
  fields["opcode"] = roce->opcode;
  fields["psn"] = (roce->psn - first_psns[is_response(roce->opcode) ? 1 - frame.from : frame.from]) & kPsnMask;
  fields["ack_req"] = bytes[bth + 8] >> 7;
  fields["solicited"] = bytes[bth + 1] >> 7;
  fields["pad"] = bytes[bth + 1] >> 4 & 3u;
  const auto extended = static_cast<std::size_t>(std::max(0, roce::extended_bytes(roce->opcode)));
  const std::size_t overhead = kUdp + kBth + extended + fields["pad"] + kIcrc, total = roce::read_big(bytes, udp + 4, 2);
  fields["bytes"] = total > overhead ? total - overhead : 0;
  if (bytes.size() >= ext + extended) {
    if (has_reth(roce->opcode)) fields["length"] = roce::read_big(bytes, ext + 12, 4);
    if (const auto at = immediate_at(roce->opcode)) fields["immediate"] = roce::read_big(bytes, ext + *at, 4);
    if (has_aeth(roce->opcode)) {
      fields["syndrome"] = bytes[ext];
      fields["msn"] = roce::read_big(bytes, ext + 1, 3);
      if (bytes[ext] < kCredits.size()) fields["credits"] = kCredits[bytes[ext]];
    }
  }
  packet.text.append(" ").append(opcode_name(roce->opcode));
  for (const char* const key : {"psn", "bytes", "length", "msn"}) {
    if (const auto it = fields.find(key); it != fields.end()) packet.text += fmt::format(" {}={}", key, it->second);
  }
  for (const char* const key : {"syndrome", "immediate"}) {
    if (const auto it = fields.find(key); it != fields.end()) packet.text += fmt::format(" {}={:#x}", key, it->second);
  }
  if (packet.lost) packet.text += " lost";
  return packet;
}

bool agrees(const VectorPacket& expected, const VectorPacket& seen) {
  return expected.from == seen.from && (!expected.lost || seen.lost) && std::all_of(expected.fields.begin(), expected.fields.end(), [&](const auto& field) {
           const auto it = seen.fields.find(field.first);
           if (it != seen.fields.end() && field.first == "syndrome" && field.second == kAnyAck) return it->second < kCredits.size();
           return it != seen.fields.end() && it->second == field.second;
         });
}

std::string compare_packets(const std::vector<VectorPacket>& expected, const std::vector<VectorPacket>& seen) {
  const auto both = std::min(expected.size(), seen.size());
  std::size_t at = 0;
  while (at < both && agrees(expected[at], seen[at])) ++at;
  if (at == expected.size() && at == seen.size()) return {};
  const std::string where = at < both ? fmt::format("packet {} is {}, expected {}", at + 1, seen[at].text, expected[at].text)
                                      : fmt::format("{} packets, expected {}", seen.size(), expected.size());
  return fmt::format("packets: {}; all: {}", where, join(seen));
}

}  // namespace rnic::testbench
