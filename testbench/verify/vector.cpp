#include "testbench/verify/vector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "driver/nd2/status_name.hpp"
#include "testbench/verify/statement_list.hpp"
#include "testbench/verify/vector_names.hpp"
#include "testbench/verify/vector_packets.hpp"
#include "testbench/verify/vector_reader.hpp"
#include "testbench/verify/vector_setup.hpp"
#include "testbench/verify/vector_steps.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;
using Reader = VectorReader;

/// Of a frame vector: what the receive front end tells of a packet.
constexpr const char* kHeaderFields[] = {"opcode",   "solicited",      "ack_req",   "pkey",     "dest_qpn",
                                         "psn",      "payload_length", "va",        "rkey",     "dma_length",
                                         "swap_add", "compare",        "immediate", "syndrome", "msn",
                                         "qkey",     "source_qpn",     "ipv6",      "vlan",     "vlan_tci"};

VectorPacket read_packet(const Reader& from, const json& packet) {
  if (!packet.is_string()) from.fail("\"packets\" must be a list of strings, {\"either\": ...} and {\"mixed\": ...}");
  try {
    return parse_packet(packet.get<std::string>());
  } catch (const VectorError& error) {
    from.fail(error.what());
  }
}

PacketPatterns read_packet_list(const Reader& from, const json& list);

/// A packet; one of several lists ({"either": [...], "clause": ...}, whose lists of one packet may be that packet
/// alone); or several lists at once ({"mixed": [...]}).
PacketPattern read_pattern(const Reader& from, const json& value, std::size_t index) {
  if (!value.is_object()) return {PacketPattern::Kind::kPacket, read_packet(from, value), {}, {}};
  Reader one = from.element(value, "packets", index);
  const bool either = one.find("either") != nullptr;
  PacketPattern pattern{either ? PacketPattern::Kind::kEither : PacketPattern::Kind::kMixed, {}, {}, {}};
  const json& lists = either ? read_either(one, pattern.open_by) : one.list(one.need("mixed"), "mixed");
  for (const json& list : lists) {
    pattern.lists.push_back(list.is_array() ? read_packet_list(one, list) : PacketPatterns{read_pattern(one, list, 0)});
  }
  if (pattern.lists.size() < 2) one.fail("\"mixed\" needs two lists");
  one.finish();
  return pattern;
}

PacketPatterns read_packet_list(const Reader& from, const json& list) {
  PacketPatterns patterns;
  for (const json& packet : from.list(list, "packets")) patterns.push_back(read_pattern(from, packet, patterns.size()));
  return patterns;
}

/// Calls `each` for every packet that may be expected.
template <typename F>
void for_each_packet(const PacketPatterns& patterns, const F& each) {
  for (const auto& pattern : patterns) {
    if (pattern.kind == PacketPattern::Kind::kPacket) each(pattern.packet);
    for (const auto& list : pattern.lists) for_each_packet(list, each);
  }
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
    for_each_packet(expected, [&, of = index, name = host](const VectorPacket& packet) {
      if (packet.from != static_cast<std::size_t>(of))
        directions.fail(fmt::format("\"{}\" is not a packet of host {}", packet.text, name));
    });
  }
  directions.finish();
}

/// So that a typing mistake does not run for hours.
constexpr std::uint32_t kMostRounds = 10'000;

/// A step; or {"repeat": ROUNDS, "steps": [...]}, which is those steps so many times.
void read_step(const Reader& from, const json& value, std::size_t index, Vector& to) {
  Reader one = from.element(value, "step", index);
  if (!one.find("repeat")) {
    to.steps.push_back(read_vector_step(one, to.setup, fmt::format("step {}", index + 1)));
    return;
  }
  const auto rounds = one.number<std::uint32_t>("repeat");
  if (rounds == 0 || rounds > kMostRounds) one.fail(fmt::format("\"repeat\" is from 1 to {}", kMostRounds));
  const json& steps = one.list(one.need("steps"), "steps");
  if (steps.empty()) one.fail("\"steps\" is empty");
  one.finish();
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    for (std::size_t i = 0; i < steps.size(); ++i)
      to.steps.push_back(read_vector_step(one.element(steps[i], "step", i), to.setup,
                                          fmt::format("step {}, round {}, step {}", index + 1, round, i + 1)));
  }
}

std::vector<std::uint8_t> read_hex(const Reader& from, const std::string& text) {
  std::vector<std::uint8_t> bytes;
  if (text.size() % 2 || text.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
    from.fail("\"frame\" must be hexadecimal digits in pairs");
  for (std::size_t i = 0; i < text.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

/// Every region and window that a step names must exist, so that a typing mistake is found before anything runs. A
/// window exists from its first bind or invalidation on.
void check_regions(const Vector& vector, const Reader& from) {
  std::set<std::string> names, windows;
  for (const auto& region : vector.setup.regions) names.insert(region.name);
  const auto check = [&](const VectorStep& step, const std::string& name) {
    if (!name.empty() && !names.contains(name)) from.fail(fmt::format("{}: no region \"{}\"", step.text, name));
  };
  const auto check_window = [&](const VectorStep& step, const std::string& name) {
    if (!name.empty() && !windows.contains(name)) from.fail(fmt::format("{}: no window \"{}\"", step.text, name));
  };
  const auto check_either = [&](const VectorStep& step, const std::string& name) {
    if (!windows.contains(name)) check(step, name);
  };
  const auto check_place = [&](const VectorStep& step, const VectorPlace& place) {
    check(step, place.region);
    if (place.token == TokenChange::kWindow || place.token == TokenChange::kStaleWindow ||
        place.token == TokenChange::kCurrentWindow)
      check_window(step, place.token_of);
    else
      check(step, place.token_of);
  };
  for (const auto& step : vector.steps) {
    if (step.kind == StepKind::kRegister) names.insert(step.name);
    if (step.kind == StepKind::kBind || step.kind == StepKind::kFastRegister) check(step, step.name);
    if (step.kind == StepKind::kFastRegister) names.insert(step.fast_region);
    if (step.kind == StepKind::kEndRegistration) check(step, step.fast_region);
    if (step.kind == StepKind::kBind || step.kind == StepKind::kInvalidate) windows.insert(step.window);
    check_window(step, step.window);
    check(step, step.command.number.name);
    for (const auto& [key, number] : step.command.fields) check(step, number.name);
    for (const auto& result : step.results) check_either(step, result.invalidated);
    check_either(step, step.invalidate);
    if (step.kind == StepKind::kMemory || step.kind == StepKind::kUntouched || step.kind == StepKind::kStore ||
        step.kind == StepKind::kDeregister || step.kind == StepKind::kRevoke || step.object == VectorObject::kRegion)
      check(step, step.name);
    for (const auto& place : step.sge) check_place(step, place);
    check_place(step, step.remote);
    if (step.equals) check(step, step.equals->region);
  }
  const auto check_packet = [&](const VectorPacket& packet) {
    if (packet.rkey_of.empty() || names.contains(packet.rkey_of) || windows.contains(packet.rkey_of)) return;
    from.fail(fmt::format("packet \"{}\": no region or window \"{}\"", packet.text, packet.rkey_of));
  };
  if (vector.packets) for_each_packet(*vector.packets, check_packet);
  for (const auto& packets : vector.packets_from) {
    if (packets) for_each_packet(*packets, check_packet);
  }
  for (const auto& packet : vector.no_packets) check_packet(packet);
}

}  // namespace

Vector load_vector(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw VectorError(fmt::format("{}: cannot be read", file.string()));
  return parse_vector({std::istreambuf_iterator<char>(in), {}}, file);
}

Vector parse_vector(const std::string& text, const std::filesystem::path& file) {
  json root;
  try {
    root = json::parse(text, nullptr, true, true);
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
    for (const char* const name : kHeaderFields) {
      if (header.find(name)) vector.header[name] = header.number<std::uint64_t>(name);
    }
    header.finish();
    from.finish();
    return vector;
  }
  const json none = json::object();
  vector.setup = read_vector_setup(from.find("setup") ? from.object("setup") : Reader(none, file.string()));
  const json& steps = from.list(from.need("steps"), "steps");
  if (steps.empty()) from.fail("\"steps\" is empty");
  for (std::size_t i = 0; i < steps.size(); ++i) read_step(from, steps[i], i, vector);
  read_packets(from, vector);
  if (const json* none_of = from.find("no_packets")) {
    for (const json& packet : from.list(*none_of, "no_packets")) vector.no_packets.push_back(read_packet(from, packet));
  }
  from.finish();
  check_regions(vector, from);
  return vector;
}

std::vector<std::filesystem::path> vector_files(const std::vector<std::filesystem::path>& paths) {
  std::vector<std::filesystem::path> files;
  for (const auto& path : paths) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
      const auto before = files.size();
      for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
        if (entry.path().extension() == ".json" && entry.path().filename() != kClauseFile &&
            entry.path().filename() != kStatementFile)
          files.push_back(entry.path());
      }
      std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
      if (files.size() == before)
        throw VectorError(fmt::format("{}: no vector (*.json) in this folder", path.string()));
    } else {
      files.push_back(path);
    }
  }
  return files;
}

std::vector<Vector> load_vectors(const std::vector<std::filesystem::path>& paths) {
  const auto files = vector_files(paths);
  std::vector<Vector> vectors;
  vectors.reserve(files.size());
  for (const auto& file : files) vectors.push_back(load_vector(file));
  return vectors;
}

namespace {

/// FNV-1a with a last mixing, so that numbers of similar texts are far apart.
std::uint64_t pattern_number(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3;
  hash = (hash ^ hash >> 31) * 0x94d049bb133111eb;
  return hash ^ hash >> 30;
}

}  // namespace

std::uint64_t region_pattern(std::size_t host, const std::string& region) {
  return pattern_number(fmt::format("region {} {}", host, region));
}

std::uint64_t payload_pattern(std::size_t sender, std::size_t qp, std::uint32_t psn) {
  return pattern_number(fmt::format("frame {} {} {}", sender, qp, psn));
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

std::string event_name(hw::EqeType type) {
  for (const auto& [name, value] : kEvents) {
    if (value == number_of(type)) return std::string(name);
  }
  return fmt::format("event {}", number_of(type));
}

std::string status_name(std::int32_t status) { return nd2::status_name(status); }

}  // namespace rnic::testbench
