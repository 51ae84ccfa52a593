#include "testbench/compare/packet_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "testbench/roce_frame.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;

constexpr std::uint8_t kAcknowledge = 0x11;
constexpr std::uint32_t kHalf = 0x800000;
/// Fields of a packet that its sender has no choice about, besides those in its text.
constexpr std::array<const char*, 16> kFixed = {
    "pad",  "solicited",    "pkey",      "mig_req",       "tver", "fecn", "becn", "dest_port",
    "ipv6", "udp_checksum", "hop_limit", "traffic_class", "tag",  "vlan", "pcp",  "dei"};

struct Parts {
  std::size_t ext = 0, ext_bytes = 0, payload = 0;
};

Parts parts_of(const model::FrameRecord& frame, std::uint64_t opcode, std::uint64_t payload_bytes) {
  const std::span<const std::uint8_t> bytes = frame.bytes;
  const std::size_t ip = roce::ethernet_bytes(bytes), header = bytes[ip] >> 4 == 6 ? 40 : 4u * (bytes[ip] & 15u);
  Parts parts;
  parts.ext = ip + header + roce::kUdpBytes + roce::kBthBytes;
  parts.ext_bytes = static_cast<std::size_t>(std::max(0, roce::extended_bytes(static_cast<std::uint8_t>(opcode))));
  parts.payload = parts.ext + parts.ext_bytes;
  if (parts.payload + payload_bytes > bytes.size()) parts.payload = 0;
  return parts;
}

bool has_reth(std::uint64_t opcode) {
  const auto reliable = opcode >= 0x20 && opcode <= 0x2b ? opcode - 0x20 : opcode;
  return reliable == 0x06 || (reliable >= 0x0a && reliable <= 0x0c) || reliable == 0x13 || reliable == 0x14;
}

/// Who sends it to whom ("A 1": host A to queue pair 1 of host B).
std::string way(std::size_t from, std::uint64_t qp) { return fmt::format("{} {}", from == 0 ? 'A' : 'B', qp); }

}  // namespace

std::uint64_t hash_of(const std::uint8_t* bytes, std::size_t count) {
  std::uint64_t hash = 0xcbf29ce484222325 + count;
  std::size_t i = 0;
  for (std::uint64_t word = 0; i + sizeof word <= count; i += sizeof word) {
    std::memcpy(&word, bytes + i, sizeof word);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  for (; i < count; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  hash = (hash ^ hash >> 31) * 0x94d049bb133111eb;
  return hash ^ hash >> 30;
}

json PacketRecord::of(const std::vector<model::FrameRecord>& frames) {
  json to = json::object();
  for (const auto& frame : frames) {
    if (!frame.injected) add(frame, to);
  }
  return to;
}

void PacketRecord::add(const model::FrameRecord& frame, json& to) {
  const VectorPacket packet = describe_packet(frame, session_.numbers());
  const auto it = packet.fields.find("opcode");
  if (it == packet.fields.end()) {
    const auto& bytes = frame.bytes;
    to[way(frame.from, 0)]["requests"].push_back(
        fmt::format("{} bytes={} data={:#x}", packet.text, bytes.size(), hash_of(bytes.data(), bytes.size())));
    return;
  }
  const auto& fields = packet.fields;
  const auto opcode = static_cast<std::uint8_t>(it->second);
  const std::uint64_t psn = fields.at("psn"), bytes = fields.at("bytes"), qp = fields.at("qp");
  json& entry = to[way(frame.from, qp)];
  const Parts parts = parts_of(frame, opcode, bytes);
  const bool response = is_response(opcode);
  if (response && fields.contains("syndrome")) {
    const std::uint64_t syndrome = fields.at("syndrome");
    const std::string name = std::to_string(psn);
    if (syndrome >> 5 == 0) entry["msns"][name].push_back(fields.at("msn"));
    if (syndrome >> 5 == 1) entry["rnr"][name] = syndrome;
    if (opcode == kAcknowledge && syndrome >> 5 <= 1) return;
  }
  std::string text = fmt::format("{:#04x} psn={} bytes={}", opcode, psn, bytes);
  for (const char* const key : kFixed) text += fmt::format(" {}={:#x}", key, fields.at(key));
  for (const char* const key : {"length", "immediate", "qkey", "source_qp", "flow_label"}) {
    const auto field = fields.find(key);
    // The place of immediate data has the key of a SEND with invalidate, and keys go by their names.
    if (field == fields.end() || (std::string_view(key) == "immediate" && fields.contains("rkey"))) continue;
    text += fmt::format(" {}={}", key, field->second);
  }
  if (response) {
    if (fields.contains("syndrome") && fields.at("syndrome") >> 5 != 0) {
      text += fmt::format(" syndrome={:#x}", fields.at("syndrome"));
      const auto& reads = reads_[1 - frame.from][static_cast<std::size_t>(qp)];
      const bool of_read = std::any_of(reads.begin(), reads.end(), [&](const auto& read) {
        return ((static_cast<std::uint32_t>(psn) - read.first) & roce::kPsnMask) < read.second;
      });
      if (!of_read) text += fmt::format(" msn={}", fields.at("msn"));  // Freedom::kReadMsn
    }
  } else {
    if (const auto key = fields.find("rkey"); key != fields.end())
      text += " rkey=" + session_.name_of_key(static_cast<std::uint32_t>(key->second));
    if (has_reth(opcode) && parts.ext + 8 <= frame.bytes.size())
      text += fmt::format(" va={:#x}", roce::read_big(frame.bytes, parts.ext, 8));
    if (parts.ext_bytes == 28) text += fmt::format(" operands={:#x}", hash_of(&frame.bytes[parts.ext + 12], 16));
  }
  if (parts.payload != 0 && bytes != 0)
    text += fmt::format(" data={:#x}", hash_of(&frame.bytes[parts.payload], static_cast<std::size_t>(bytes)));
  if (response) {
    entry["answers"].push_back(text);
    return;
  }
  if (!is_datagram(opcode)) {
    auto& next = next_[frame.from][static_cast<std::size_t>(qp)];
    if (((static_cast<std::uint32_t>(psn) - next) & roce::kPsnMask) >= kHalf) return;  // sent before
    std::uint32_t psns = 1;
    if (opcode == 0x0c) {
      const std::uint64_t length = fields.contains("length") ? fields.at("length") : 0;
      const std::uint64_t mtu = session_.mtu(frame.from);
      if (length > mtu) psns += static_cast<std::uint32_t>((length - 1) / mtu);
      reads_[frame.from][static_cast<std::size_t>(qp)].emplace_back(static_cast<std::uint32_t>(psn), psns);
    }
    next = (static_cast<std::uint32_t>(psn) + psns) & roce::kPsnMask;
  }
  entry["requests"].push_back(text);
}

}  // namespace rnic::testbench
