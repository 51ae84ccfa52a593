#include "testbench/scenario.hpp"

#include <fmt/format.h>

#include <utility>

#include "model/bth.hpp"
#include "testbench/scenario_object.hpp"

namespace rnic::testbench {
namespace {

using model::PcieFault;
using model::WireFault;

constexpr double kLongestNs = 1e12;
constexpr std::uint32_t kMost24 = (1u << 24) - 1;

template <typename Kind>
std::vector<std::string> names_of(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.emplace_back(model::name(static_cast<Kind>(i)));
  return names;
}

/// Options know rules that no single key shows; their words are good enough.
template <typename Options>
void check_options(const Options& options, const ScenarioObject& from) {
  try {
    model::check(options);
  } catch (const std::invalid_argument& error) {
    from.fail(error.what());
  }
}

// ---- Wire
// --------------------------------------------------------------------------------------------------------------

void read_fcs(ScenarioObject& from, bool& bad) {
  if (const auto choice = from.choice("fcs", {"good", "bad"})) bad = *choice == 1;
}

/// What one kind of fault does, from the keys that belong to it.
void read_wire_parameters(ScenarioObject& from, WireFault fault, model::WireFaultParameters& to) {
  constexpr std::uint32_t kMostBits = 1024;
  switch (fault) {
    case WireFault::kReorder:
      from.number("frames", to.reorder_frames, 1);
      from.number("hold_ns", to.reorder_hold_ns, 1, kLongestNs);
      break;
    case WireFault::kDuplicate:
      from.number("frames", to.duplicate_frames, 0);
      from.number("hold_ns", to.duplicate_hold_ns, 1, kLongestNs);
      break;
    case WireFault::kCorrupt:
      from.number("bits", to.corrupt_bits, 1, kMostBits);
      from.optional_number<std::uint32_t>("bit", to.corrupt_bit, 0, ~std::uint32_t{0});
      read_fcs(from, to.corrupt_bad_fcs);
      break;
    case WireFault::kDelay: from.number("ns", to.delay_ns, 0, kLongestNs); break;
    case WireFault::kTruncate:
      from.optional_number<std::uint32_t>("bytes", to.truncate_bytes, 1, ~std::uint32_t{0});
      read_fcs(from, to.truncate_bad_fcs);
      break;
    case WireFault::kEcn: from.boolean("only_ect", to.only_ect); break;
    case WireFault::kDrop: break;
  }
}

void read_opcode(ScenarioObject& from, std::optional<std::uint8_t>& to) {
  const nlohmann::json* value = from.find("opcode");
  if (!value) return;
  if (value->is_string()) to = model::opcode_by_name(value->get<std::string>());
  if (value->is_number_unsigned() && value->get<std::uint64_t>() <= 0xFF) to = value->get<std::uint8_t>();
  if (!to)
    from.fail("opcode", fmt::format("is {}; known are numbers from 0 to 255, {}", value->dump(),
                                    fmt::join(model::opcode_names(), ", ")));
}

model::WireRule read_wire_rule(ScenarioObject& from) {
  model::WireRule rule;
  const auto fault = from.choice("fault", names_of<WireFault>(model::kWireFaults));
  if (!fault) from.fail("fault", "is missing");
  rule.fault = static_cast<WireFault>(*fault);
  read_opcode(from, rule.match.opcode);
  from.optional_number<std::uint32_t>("qpn", rule.match.dest_qpn, 0, kMost24);
  from.optional_number<std::uint32_t>("psn", rule.match.psn, 0, kMost24);
  from.number("nth", rule.nth, 1);
  if (from.has("probability")) rule.count = model::WireRule::kAll;
  from.number("count", rule.count, 1);
  from.probability("probability", rule.probability);
  read_wire_parameters(from, rule.fault, rule.parameters);
  from.finish();
  return rule;
}

void read_direction(ScenarioObject& from, model::WireFaultOptions& to) {
  double* const chances[] = {&to.drop, &to.duplicate, &to.reorder, &to.corrupt, &to.delay, &to.truncate, &to.ecn};
  for (std::size_t i = 0; i < model::kWireFaults; ++i) {
    const auto fault = static_cast<WireFault>(i);
    const nlohmann::json* value = from.find(model::name(fault));
    if (!value) continue;
    if (!value->is_object()) {
      from.probability(model::name(fault), *chances[i]);
      continue;
    }
    ScenarioObject kind(*value, from.place(model::name(fault)));
    kind.probability("probability", *chances[i]);
    read_wire_parameters(kind, fault, to.parameters);
    kind.finish();
  }
  for (auto& rule : from.objects("rules")) to.rules.push_back(read_wire_rule(rule));
  from.finish();
  check_options(to, from);
}

void read_wire(ScenarioObject from, model::WireOptions& to) {
  for (const auto& [key, directions] :
       {std::pair{"both", std::vector<std::size_t>{0, 1}}, {"a_to_b", {0}}, {"b_to_a", {1}}}) {
    for (const std::size_t direction : directions) {
      if (auto object = from.object(key)) read_direction(*object, to.faults[direction]);
    }
  }
  from.finish();
}

// ---- PCI Express
// -------------------------------------------------------------------------------------------------------

model::PcieRule read_pcie_rule(ScenarioObject& from) {
  model::PcieRule rule;
  const auto fault = from.choice("fault", names_of<PcieFault>(model::kPcieFaults));
  if (!fault) from.fail("fault", "is missing");
  rule.fault = static_cast<PcieFault>(*fault);
  const auto access = from.choice("on", names_of<model::PcieAccess>(model::kPcieAccesses));
  if (access) rule.match.access = static_cast<model::PcieAccess>(*access);
  from.number("min_bytes", rule.match.min_bytes, 0);
  from.address("address", rule.match.address);
  from.number("bytes", rule.match.bytes, 1);
  from.number("nth", rule.nth, 1);
  from.number("count", rule.count, 1);
  from.number("after_bytes", rule.after_bytes, 0);
  from.number("late_ns", rule.late_ns, 1, kLongestNs);
  from.optional_number<double>("at_ns", rule.at_ns, 0, kLongestNs);
  from.finish();
  check_options(rule, from);
  return rule;
}

void read_back_pressure(ScenarioObject& from, model::PcieFaultOptions& to) {
  from.probability("probability", to.back_pressure);
  from.number("ns", to.back_pressure_ns, 0, kLongestNs);
  for (auto& window : from.objects("stalls")) {
    model::PcieFaultOptions::Window stall;
    if (!window.has("at_ns") || !window.has("for_ns")) window.fail("needs at_ns and for_ns");
    window.number("at_ns", stall.at_ns, 0, kLongestNs);
    window.number("for_ns", stall.for_ns, 0, kLongestNs);
    window.finish();
    to.stalls.push_back(stall);
  }
  from.finish();
}

void read_host(ScenarioObject& from, model::PcieFaultOptions& to) {
  from.probability("timeout", to.timeout);
  from.probability("unsupported_request", to.unsupported_request);
  from.probability("completer_abort", to.completer_abort);
  from.probability("poisoned", to.poisoned);
  from.probability("partial", to.partial);
  from.probability("host_read_timeout", to.host_read_timeout);
  from.probability("host_write_poisoned", to.host_write_poisoned);
  if (auto object = from.object("back_pressure")) read_back_pressure(*object, to);
  for (auto& rule : from.objects("rules")) to.rules.push_back(read_pcie_rule(rule));
  from.finish();
  check_options(to, from);
}

void read_pcie(ScenarioObject from, WorldOptions& to) {
  auto& root_complex = to.host.root_complex;
  from.probability("reorder", root_complex.reorder_probability);
  from.number("reorder_window_ns", root_complex.reorder_window_ns, 0, kLongestNs);
  from.probability("split", root_complex.split_probability);
  for (const auto& [key, hosts] : {std::pair{"both", std::vector<std::size_t>{0, 1}}, {"a", {0}}, {"b", {1}}}) {
    for (const std::size_t host : hosts) {
      auto object = from.object(key);
      if (!object) continue;
      auto& faults = to.pcie_faults[host];
      if (!faults) faults = root_complex.faults;
      read_host(*object, *faults);
    }
  }
  from.finish();
}

}  // namespace

void parse_scenario(const std::string& text, const std::string& name, WorldOptions& options) {
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw ScenarioError(fmt::format("{}: no JSON (byte {})", name, error.byte));
  }
  WorldOptions changed = options;
  ScenarioObject root(json, name + ": ");
  root.number("hang_ns", changed.hang_ns, 0, static_cast<std::uint64_t>(kLongestNs));
  if (auto wire = root.object("wire")) read_wire(std::move(*wire), changed.wire);
  if (auto pcie = root.object("pcie")) read_pcie(std::move(*pcie), changed);
  root.finish();
  options = changed;
}

void load_scenario(const std::filesystem::path& file, WorldOptions& options) {
  InputFiles files;
  load_scenario(file, options, files);
}

void load_scenario(const std::filesystem::path& file, WorldOptions& options, InputFiles& files) {
  const auto text = files.read(file);
  if (!text) throw ScenarioError(fmt::format("cannot read scenario '{}'", file.string()));
  parse_scenario(*text, file.string(), options);
}

}  // namespace rnic::testbench
