#include "testbench/verify/vector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "driver/nd2/ndspi.h"

namespace rnic::testbench {
namespace {

using nlohmann::json;
using Names = std::map<std::string_view, std::int64_t>;

const Names kStatuses = {{"ND_SUCCESS", ND_SUCCESS}, {"ND_PENDING", ND_PENDING}, {"ND_TIMEOUT", ND_TIMEOUT}, {"ND_BUFFER_OVERFLOW", ND_BUFFER_OVERFLOW},
    {"ND_DEVICE_BUSY", ND_DEVICE_BUSY}, {"ND_NO_MORE_ENTRIES", ND_NO_MORE_ENTRIES}, {"ND_ACCESS_VIOLATION", ND_ACCESS_VIOLATION},
    {"ND_INVALID_PARAMETER", ND_INVALID_PARAMETER}, {"ND_INVALID_DEVICE_REQUEST", ND_INVALID_DEVICE_REQUEST}, {"ND_DATA_OVERRUN", ND_DATA_OVERRUN},
    {"ND_INSUFFICIENT_RESOURCES", ND_INSUFFICIENT_RESOURCES}, {"ND_IO_TIMEOUT", ND_IO_TIMEOUT}, {"ND_NOT_SUPPORTED", ND_NOT_SUPPORTED},
    {"ND_INTERNAL_ERROR", ND_INTERNAL_ERROR}, {"ND_INVALID_PARAMETER_3", ND_INVALID_PARAMETER_3}, {"ND_INVALID_PARAMETER_4", ND_INVALID_PARAMETER_4},
    {"ND_INVALID_PARAMETER_6", ND_INVALID_PARAMETER_6}, {"ND_CANCELED", ND_CANCELED}, {"ND_REMOTE_ERROR", ND_REMOTE_ERROR},
    {"ND_INVALID_BUFFER_SIZE", ND_INVALID_BUFFER_SIZE}, {"ND_CONNECTION_INVALID", ND_CONNECTION_INVALID}};
const Names kOpFlags = {{"SILENT_SUCCESS", ND_OP_FLAG_SILENT_SUCCESS}, {"READ_FENCE", ND_OP_FLAG_READ_FENCE}, {"SOLICIT", ND_OP_FLAG_SEND_AND_SOLICIT_EVENT},
    {"ALLOW_READ", ND_OP_FLAG_ALLOW_READ}, {"ALLOW_WRITE", ND_OP_FLAG_ALLOW_WRITE}, {"INLINE", ND_OP_FLAG_INLINE}};
const Names kRegionFlags = {{"LOCAL_WRITE", ND_MR_FLAG_ALLOW_LOCAL_WRITE}, {"REMOTE_READ", ND_MR_FLAG_ALLOW_REMOTE_READ}, {"REMOTE_WRITE", ND_MR_FLAG_ALLOW_REMOTE_WRITE}};
const Names kNotifyTypes = {{"ANY", ND_CQ_NOTIFY_ANY}, {"SOLICITED", ND_CQ_NOTIFY_SOLICITED}, {"ERRORS", ND_CQ_NOTIFY_ERRORS}};
const Names kRequestTypes = {{"Receive", Nd2RequestTypeReceive}, {"Send", Nd2RequestTypeSend}, {"Read", Nd2RequestTypeRead}, {"Write", Nd2RequestTypeWrite}};
const Names kHosts = {{"A", 0}, {"B", 1}};
const Names kQueues = {{"initiator", 0}, {"receive", 1}};
const Names kFills = {{"zero", 0}, {"pattern", 1}};
const Names kBuffers = {{"valid", 0}, {"null", 1}, {"unmapped", 2}};
const Names kSteps = {{"send", 0}, {"receive", 1}, {"write", 2}, {"read", 3}, {"flush", 4}, {"complete", 5}, {"no_completion", 6}, {"notify", 7},
    {"notified", 8}, {"not_notified", 9}, {"memory", 10}, {"register", 11}, {"deregister", 12}, {"wait", 13}};

/// A JSON object whose keys must all be asked for; messages name the place.
class Reader {
 public:
  Reader(const json& value, std::string place) : value_(value), place_(std::move(place)) {
    if (!value.is_object()) fail("must be an object");
  }
  [[noreturn]] void fail(const std::string& message) const { throw VectorError(fmt::format("{}: {}", place_, message)); }

  const json* find(const char* key) {
    known_.insert(key);
    const auto it = value_.find(key);
    return it == value_.end() ? nullptr : &*it;
  }
  const json& need(const char* key) {
    const json* value = find(key);
    if (!value) fail(fmt::format("\"{}\" is missing", key));
    return *value;
  }
  std::string text(const char* key) {
    const json& value = need(key);
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) fail(fmt::format("\"{}\" must be a non-empty string", key));
    return value.get<std::string>();
  }
  template <typename T>
  T number(const char* key, std::optional<T> fallback = std::nullopt) {
    const json* value = find(key);
    if (!value && fallback) return *fallback;
    if (!value) fail(fmt::format("\"{}\" is missing", key));
    return to_number<T>(*value, key);
  }
  template <typename T>
  T to_number(const json& value, const char* key) const {
    const bool negative = value.is_number_integer() && !value.is_number_unsigned() && value.get<std::int64_t>() < 0;
    if (!value.is_number_integer() || (negative && !std::is_signed_v<T>)) fail(fmt::format("\"{}\" must be a whole number{}", key, std::is_signed_v<T> ? "" : ", not negative"));
    const bool fits = std::is_signed_v<T> ? value.get<std::int64_t>() == static_cast<std::int64_t>(value.get<T>()) : value.get<std::uint64_t>() == static_cast<std::uint64_t>(value.get<T>());
    if (!fits) fail(fmt::format("\"{}\" is too large", key));
    return value.get<T>();
  }
  bool boolean(const char* key, bool fallback) {
    const json* value = find(key);
    if (value && !value->is_boolean()) fail(fmt::format("\"{}\" must be true or false", key));
    return value ? value->get<bool>() : fallback;
  }
  std::int64_t name(const char* key, const Names& names, std::optional<std::int64_t> fallback = std::nullopt) {
    const json* value = find(key);
    if (!value && fallback) return *fallback;
    if (!value) fail(fmt::format("\"{}\" is missing", key));
    return to_name(*value, key, names);
  }
  std::int64_t to_name(const json& value, const char* key, const Names& names) const {
    const auto it = value.is_string() ? names.find(value.get_ref<const std::string&>()) : names.end();
    if (it != names.end()) return it->second;
    std::string all;
    for (const auto& [name, number] : names) all += (all.empty() ? "" : ", ") + std::string(name);
    fail(fmt::format("\"{}\" is {}; known are {}", key, value.dump(), all));
  }
  std::uint32_t flags(const char* key, const Names& names) {
    const json* value = find(key);
    if (!value) return 0;
    if (value->is_number_unsigned()) return to_number<std::uint32_t>(*value, key);
    std::uint32_t all = 0;
    for (const json& flag : list(*value, key)) all |= static_cast<std::uint32_t>(to_name(flag, key, names));
    return all;
  }
  const json& list(const json& value, const char* key) const {
    if (!value.is_array()) fail(fmt::format("\"{}\" must be a list", key));
    return value;
  }
  Reader object(const char* key) { return {need(key), fmt::format("{}, {}", place_, key)}; }
  Reader element(const json& value, const char* key, std::size_t index) const { return {value, fmt::format("{}, {} {}", place_, key, index + 1)}; }
  void finish() const {
    for (const auto& [key, value] : value_.items()) {
      if (!known_.contains(key)) fail(fmt::format("unknown key \"{}\"", key));
    }
  }

 private:
  const json& value_;
  std::string place_;
  std::set<std::string> known_;
};

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
      place.token = change.name("corrupt", {{"index", 0}, {"tag", 1}}) ? TokenChange::kCorruptTag : TokenChange::kCorruptIndex;
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
                        from.flags("flags", kRegionFlags), from.name("fill", kFills, 0) != 0};
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
  read_regions(from, to);
  from.finish();
  return to;
}

void read_request(Reader& from, VectorStep& to) {
  to.context = from.number<std::uint64_t>("context");
  const json& list = from.list(from.need("sge"), "sge");
  for (std::size_t i = 0; i < list.size(); ++i) to.sge.push_back(read_place(from.element(list[i], "sge", i), true));
  if (to.kind != StepKind::kReceive) to.flags = from.flags("flags", kOpFlags);
  if (to.kind == StepKind::kRead || to.kind == StepKind::kWrite) to.remote = read_place(from.object("remote"), false);
  to.status = static_cast<std::int32_t>(from.name("returns", kStatuses, ND_SUCCESS));
}

void read_complete(Reader& from, VectorStep& to) {
  to.receive_queue = from.name("queue", kQueues, 0) != 0;
  to.within_ns = from.number<std::uint64_t>("within_us", 100) * 1000;
  const json& list = from.list(from.need("results"), "results");
  for (std::size_t i = 0; i < list.size(); ++i) {
    Reader one = from.element(list[i], "results", i);
    VectorResult result{static_cast<std::uint32_t>(one.name("type", kRequestTypes)), one.number<std::uint64_t>("context"),
                        static_cast<std::int32_t>(one.name("status", kStatuses)), std::nullopt};
    if (const json* bytes = one.find("bytes")) result.bytes = one.to_number<std::uint32_t>(*bytes, "bytes");
    one.finish();
    to.results.push_back(result);
  }
}

void read_memory(Reader& from, VectorStep& to) {
  to.name = from.text("region");
  to.offset = from.number<std::uint64_t>("offset");
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
      read_request(from, to);
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
  }
  from.finish();
  return to;
}

std::vector<std::uint8_t> read_hex(const Reader& from, const std::string& text) {
  std::vector<std::uint8_t> bytes;
  if (text.size() % 2 || text.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) from.fail("\"frame\" must be hexadecimal digits in pairs");
  for (std::size_t i = 0; i < text.size(); i += 2) bytes.push_back(static_cast<std::uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

/// Every region that a step names must exist, so that a typing mistake is found before anything runs.
void check_regions(const Vector& vector, const Reader& from) {
  std::set<std::string> names;
  for (const auto& region : vector.setup.regions) names.insert(region.name);
  const auto check = [&](const VectorStep& step, const std::string& name) {
    if (!name.empty() && !names.contains(name)) from.fail(fmt::format("{}: no region \"{}\"", step.text, name));
  };
  for (const auto& step : vector.steps) {
    if (step.kind == StepKind::kRegister) names.insert(step.name);
    if (step.kind == StepKind::kMemory || step.kind == StepKind::kDeregister) check(step, step.name);
    for (const auto& place : step.sge) check(step, place.region), check(step, place.token_of);
    check(step, step.remote.region);
    check(step, step.remote.token_of);
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
  if (const json* packets = from.find("packets")) {
    vector.packets.emplace();
    for (const json& packet : from.list(*packets, "packets")) {
      if (!packet.is_string()) from.fail("\"packets\" must be a list of strings");
      vector.packets->push_back(packet.get<std::string>());
    }
  }
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
        if (entry.path().extension() == ".json") files.push_back(entry.path());
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

std::string status_name(std::int32_t status) {
  for (const auto& [name, value] : kStatuses) {
    if (static_cast<std::int32_t>(value) == status) return std::string(name);
  }
  return fmt::format("{:#010x}", static_cast<std::uint32_t>(status));
}

}  // namespace rnic::testbench
