#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "testbench/scenario.hpp"

using namespace rnic;
using testbench::load_scenario;
using testbench::parse_scenario;
using testbench::ScenarioError;
using testbench::WorldOptions;

namespace {

WorldOptions parse(const std::string& text) {
  WorldOptions options;
  parse_scenario(text, "file.json", options);
  return options;
}

/// The message of a scenario that is refused: one line that starts with the file.
std::string refused(const std::string& text) {
  WorldOptions options;
  options.wire.faults[0].drop = 0.5;
  try {
    parse_scenario(text, "file.json", options);
  } catch (const ScenarioError& error) {
    const std::string message = error.what();
    CHECK(message.starts_with("file.json: "));
    CHECK(message.find('\n') == std::string::npos);
    CHECK(options.wire.faults[0].drop == 0.5);  // nothing is half done
    return message;
  }
  FAIL("accepted: " << text);
  return {};
}

}  // namespace

TEST_CASE("every key of a scenario file reaches its option") {
  WorldOptions options;
  load_scenario(std::filesystem::path(RNIC_SOURCE) / "tests/testbench/scenarios/everything.json", options);
  CHECK(options.hang_ns == 5'000'000);
  const auto& a = options.wire.faults[0];
  const auto& b = options.wire.faults[1];
  CHECK(a.drop == 0.02);
  CHECK(b.drop == 0.01);
  for (const auto* both : {&a, &b}) {
    CHECK(both->duplicate == 0.005);
    CHECK(both->parameters.duplicate_frames == 2);
    CHECK(both->parameters.duplicate_hold_ns == 3000);
    CHECK(both->reorder == 0.01);
    CHECK(both->parameters.reorder_frames == 4);
    CHECK(both->parameters.reorder_hold_ns == 20'000);
    CHECK(both->corrupt == 0.001);
    CHECK(both->parameters.corrupt_bits == 3);
    CHECK(both->parameters.corrupt_bad_fcs);
  }
  CHECK(a.delay == 0.1);
  CHECK(a.parameters.delay_ns == 700);
  CHECK(a.truncate == 0.1);
  CHECK(a.parameters.truncate_bytes == 80);
  CHECK_FALSE(a.parameters.truncate_bad_fcs);
  CHECK(a.ecn == 0.5);
  CHECK(a.parameters.only_ect);
  CHECK(b.delay == 0);
  REQUIRE(b.rules.size() == 1);
  CHECK(b.rules[0].fault == model::WireFault::kDrop);
  CHECK(b.rules[0].match.opcode == 0x04);
  CHECK(b.rules[0].nth == 3);
  CHECK(b.rules[0].count == 1);
  REQUIRE(a.rules.size() == 3);
  CHECK(a.rules[1].fault == model::WireFault::kCorrupt);
  CHECK(a.rules[1].match.opcode == 17);
  CHECK(a.rules[1].match.dest_qpn == 5);
  CHECK(a.rules[1].match.psn == 0xFFFFFF);
  CHECK(a.rules[1].nth == 2);
  CHECK(a.rules[1].count == 7);
  CHECK(a.rules[1].parameters.corrupt_bit == 400);
  CHECK(a.rules[2].fault == model::WireFault::kReorder);
  CHECK(a.rules[2].parameters.reorder_frames == 9);
  CHECK(a.rules[2].parameters.reorder_hold_ns == 50);

  CHECK(options.host.root_complex.reorder_probability == 0.1);
  CHECK(options.host.root_complex.reorder_window_ns == 300);
  CHECK(options.host.root_complex.split_probability == 0.2);
  REQUIRE(options.pcie_faults[0]);
  REQUIRE(options.pcie_faults[1]);
  for (const auto& host : {options.pcie_faults[0], options.pcie_faults[1]}) {
    CHECK(host->timeout == 0.001);
    CHECK(host->poisoned == 0.002);
    CHECK(host->partial == 0.5);
  }
  CHECK(options.pcie_faults[0]->rules.empty());
  const auto& pcie = *options.pcie_faults[1];
  CHECK(pcie.unsupported_request == 0.003);
  CHECK(pcie.completer_abort == 0.004);
  CHECK(pcie.host_read_timeout == 0.005);
  CHECK(pcie.host_write_poisoned == 0.006);
  CHECK(pcie.back_pressure == 0.25);
  CHECK(pcie.back_pressure_ns == 90);
  REQUIRE(pcie.stalls.size() == 1);
  CHECK(pcie.stalls[0].at_ns == 1000);
  CHECK(pcie.stalls[0].for_ns == 200);
  REQUIRE(pcie.rules.size() == 3);
  CHECK(pcie.rules[0].fault == model::PcieFault::kCompleterAbort);
  CHECK(pcie.rules[0].match.access == model::PcieAccess::kDmaRead);
  CHECK(pcie.rules[0].match.min_bytes == 256);
  CHECK(pcie.rules[0].nth == 5);
  CHECK(pcie.rules[0].after_bytes == 64);
  CHECK(pcie.rules[1].fault == model::PcieFault::kUnmap);
  CHECK(pcie.rules[1].match.access == model::PcieAccess::kDmaWrite);
  CHECK(pcie.rules[1].match.address == 0x2000'0000'1000);
  CHECK(pcie.rules[1].nth == 2);
  CHECK(pcie.rules[2].match.address == 4096);
  CHECK(pcie.rules[2].at_ns == 12345);
}

TEST_CASE("a rule with a chance has no end, unless it says one") {
  const auto options = parse(R"({"wire": {"both": {"rules": [
      {"fault": "drop", "qpn": 1, "probability": 0.1}, {"fault": "drop", "probability": 0.5, "count": 9}]}}})");
  const auto& rules = options.wire.faults[1].rules;
  REQUIRE(rules.size() == 2);
  CHECK(rules[0].match.dest_qpn == 1);
  CHECK(rules[0].probability == 0.1);
  CHECK(rules[0].count == model::WireRule::kAll);
  CHECK(rules[1].probability == 0.5);
  CHECK(rules[1].count == 9);
}

TEST_CASE("an empty scenario changes nothing") {
  const auto options = parse("{}");
  CHECK(options.hang_ns == WorldOptions{}.hang_ns);
  CHECK(options.wire.faults[0].drop == 0);
  CHECK_FALSE(options.pcie_faults[0]);
}

TEST_CASE("wrong files are refused, each with the place of the fault") {
  const struct {
    const char* text;
    const char* message;
  } rows[] = {
      {"", "no JSON"},
      {"{", "no JSON"},
      {"[]", "file.json: must be an object"},
      {R"({"wires": {}})", "file.json: wires: unknown key"},
      {R"({"hang_ns": -1})", "file.json: hang_ns: must be a whole number, not negative"},
      {R"({"hang_ns": 1000000000001})", "file.json: hang_ns: must be at most 1000000000000"},
      {R"({"wire": 1})", "file.json: wire: must be an object"},
      {R"({"wire": {"a_to_a": {}}})", "file.json: wire.a_to_a: unknown key"},
      {R"({"wire": {"both": {"drop": 1.5}}})", "file.json: wire.both.drop: is 1.5, which is not from 0 to 1"},
      {R"({"wire": {"both": {"drop": "often"}}})", "file.json: wire.both.drop: must be a number"},
      {R"({"wire": {"both": {"drop": {"probability": 0.1, "bits": 1}}}})",
       "file.json: wire.both.drop.bits: unknown key"},
      {R"({"wire": {"both": {"corrupt": {"fcs": "none"}}}})",
       "file.json: wire.both.corrupt.fcs: is \"none\"; known are good, bad"},
      {R"({"wire": {"both": {"corrupt": {"bits": 0}}}})", "file.json: wire.both.corrupt.bits: must be at least 1"},
      {R"({"wire": {"both": {"corrupt": {"bits": 5000}}}})", "file.json: wire.both.corrupt.bits: must be at most 1024"},
      {R"({"wire": {"both": {"rules": {}}}})", "file.json: wire.both.rules: must be a list"},
      {R"({"wire": {"both": {"rules": [{}]}}})", "file.json: wire.both.rules[0].fault: is missing"},
      {R"({"wire": {"both": {"rules": [{"fault": "drop"}, {"fault": "lose"}]}}})",
       "file.json: wire.both.rules[1].fault: is \"lose\"; known are drop, duplicate"},
      {R"({"wire": {"both": {"rules": [{"fault": "drop", "opcode": "SEND"}]}}})",
       "rules[0].opcode: is \"SEND\"; known are numbers from 0 to 255, RC_SEND_FIRST"},
      {R"({"wire": {"both": {"rules": [{"fault": "drop", "opcode": 256}]}}})", "rules[0].opcode: is 256"},
      {R"({"wire": {"both": {"rules": [{"fault": "drop", "psn": 16777216}]}}})",
       "rules[0].psn: must be at most 16777215"},
      {R"({"wire": {"both": {"rules": [{"fault": "drop", "nth": 0}]}}})", "rules[0].nth: must be at least 1"},
      {R"({"wire": {"both": {"rules": [{"fault": "drop", "probability": 2}]}}})", "rules[0].probability: is 2"},
      {R"({"wire": {"both": {"rules": [{"fault": "drop", "frames": 1}]}}})", "rules[0].frames: unknown key"},
      {R"({"pcie": {"c": {}}})", "file.json: pcie.c: unknown key"},
      {R"({"pcie": {"a": {"timeout": 2}}})", "file.json: pcie.a.timeout: is 2"},
      {R"({"pcie": {"a": {"back_pressure": {"stalls": [{"at_ns": 1}]}}}})",
       "file.json: pcie.a.back_pressure.stalls[0]: needs at_ns and for_ns"},
      {R"({"pcie": {"a": {"rules": [{"fault": "timeout", "on": "dma_write"}]}}})",
       "file.json: pcie.a.rules[0]: timeout does not happen to a dma_write"},
      {R"({"pcie": {"a": {"rules": [{"fault": "unmap", "at_ns": 5}]}}})",
       "file.json: pcie.a.rules[0]: at_ns is for unmap with an address"},
      {R"({"pcie": {"a": {"rules": [{"fault": "unmap", "address": "12"}]}}})",
       "file.json: pcie.a.rules[0].address: must be an address"},
      {R"({"pcie": {"a": {"rules": [{"fault": "unmap", "address": "0x12345678123456789"}]}}})", "must be an address"},
      {R"({"pcie": {"a": {"rules": [{"fault": "unmap", "on": "tuesday"}]}}})",
       "file.json: pcie.a.rules[0].on: is \"tuesday\"; known are dma_read, dma_write, host_read, host_write"},
  };
  for (const auto& row : rows) {
    INFO(row.text);
    CHECK_THAT(refused(row.text), Catch::Matchers::Contains(row.message));
  }
}

TEST_CASE("a file that cannot be read is named") {
  WorldOptions options;
  CHECK_THROWS_WITH(load_scenario("/nonexistent/x.json", options), Catch::Matchers::Contains("'/nonexistent/x.json'"));
  CHECK_THROWS_AS(load_scenario(std::filesystem::temp_directory_path(), options), ScenarioError);
}

TEST_CASE("the examples of the documentation are right") {
  std::ifstream file(std::filesystem::path(RNIC_SOURCE) / "docs/scenarios.md");
  int examples = 0;
  std::string text;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line == "```json") {
      inside = true;
      text.clear();
    } else if (inside && line == "```") {
      inside = false;
      ++examples;
      parse(text);
    } else {
      text += line + '\n';
    }
  }
  CHECK(examples > 0);
}
