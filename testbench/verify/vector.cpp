#include "testbench/verify/vector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "testbench/verify/vector_names.hpp"
#include "testbench/verify/vector_packets.hpp"
#include "testbench/verify/vector_reader.hpp"
#include "testbench/verify/vector_steps.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;
using Reader = VectorReader;

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
    region.other_domain = from.name("domain", {{"own", 0}, {"other", 1}}, 0) != 0;
    if (!names.insert(region.name).second) from.fail(fmt::format("a second region \"{}\"", region.name));
    from.finish();
    to.regions.push_back(std::move(region));
  }
}

void read_srq(Reader from, VectorSetup& to) {
  VectorSrq& srq = to.srq.emplace();
  srq.depth = from.number<std::uint32_t>("depth", srq.depth);
  srq.sge = from.number<std::uint32_t>("sge", srq.sge);
  srq.threshold = from.number<std::uint32_t>("threshold", srq.threshold);
  from.finish();
}

void read_type(Reader& from, VectorSetup& to) {
  enum Type : std::int64_t { kRc, kUc, kUd, kQp1 };
  const auto type = from.name("type", {{"RC", kRc}, {"UC", kUc}, {"UD", kUd}, {"QP1", kQp1}}, kRc);
  to.type = type == kRc ? hw::QpType::kRc : type == kUc ? hw::QpType::kUc : hw::QpType::kUd;
  to.general_service = type == kQp1;
  if (to.general_service) to.qkey = kmd::kGeneralServiceQkey;
  to.fast_register = from.boolean("fast_register", to.fast_register);
  to.queue_pairs = from.number<std::size_t>("queue_pairs", to.queue_pairs);
  if (to.queue_pairs == 0 || to.queue_pairs > 8) from.fail("\"queue_pairs\" is 1 to 8");
  if (to.general_service && to.queue_pairs != 1) from.fail("there is one QP1");
  if (from.find("srq")) read_srq(from.object("srq"), to);
  if (to.srq && (to.type != hw::QpType::kRc || to.fast_register)) from.fail("\"srq\" is for queue pairs of type RC without \"fast_register\"");
}

VectorSetup read_setup(Reader from) {
  VectorSetup to;
  read_type(from, to);
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
  to.pkey = from.number<std::uint16_t>("pkey", to.pkey);
  to.traffic_class = from.number<std::uint8_t>("traffic_class", to.traffic_class);
  to.hop_limit = from.number<std::uint8_t>("hop_limit", to.hop_limit);
  to.flow_label = from.number<std::uint32_t>("flow_label", to.flow_label);
  to.qkey = from.number<std::uint32_t>("qkey", to.qkey);
  read_regions(from, to);
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
    if (step.kind == StepKind::kBind || step.kind == StepKind::kFastRegister) check(step, step.name);
    if (step.kind == StepKind::kFastRegister) names.insert(step.fast_region);
    if (step.kind == StepKind::kEndRegistration) check(step, step.fast_region);
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
  const auto check_packets = [&](const std::optional<std::vector<VectorPacket>>& packets) {
    for (const auto& packet : packets.value_or(std::vector<VectorPacket>{})) {
      if (packet.rkey_of.empty() || names.contains(packet.rkey_of) || windows.contains(packet.rkey_of)) continue;
      from.fail(fmt::format("packet \"{}\": no region or window \"{}\"", packet.text, packet.rkey_of));
    }
  };
  check_packets(vector.packets);
  for (const auto& packets : vector.packets_from) check_packets(packets);
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
  for (std::size_t i = 0; i < steps.size(); ++i) vector.steps.push_back(read_vector_step(from.element(steps[i], "step", i), vector.setup, i + 1));
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

std::string event_name(hw::EqeType type) {
  for (const auto& [name, value] : kEvents) {
    if (value == number_of(type)) return std::string(name);
  }
  return fmt::format("event {}", number_of(type));
}

std::string status_name(std::int32_t status) {
  for (const auto& [name, value] : kStatuses) {
    if (static_cast<std::int32_t>(value) == status) return std::string(name);
  }
  return fmt::format("{:#010x}", static_cast<std::uint32_t>(status));
}

}  // namespace rnic::testbench
