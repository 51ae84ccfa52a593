#include "testbench/compare/world_process.hpp"

#include <exception>

#include "testbench/compare/outcome.hpp"
#include "testbench/verify/vector.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;

/// What comes of a program that nothing has come of.
json failed(const char* sort, const char* text) {
  return {{"failures", json::array({failure_entry(sort, text)})}, {"batches", json::array()}};
}

}  // namespace

void WorldProcess::work(JsonChannel& parent) const {
  try {
    World world(options_);
    ProgramRunner runner(world, options_, planted_);
    while (const auto request = parent.receive()) {
      json outcome;
      try {
        outcome = runner.run(RandomProgram::from_json(request->at("program")), request->at("details").get<bool>());
      } catch (const VectorError& error) {
        outcome = failed("malformed", error.what());
        outcome["malformed"] = true;
      }
      parent.send(outcome);
      if (outcome.contains("stopped")) break;
    }
  } catch (const std::exception& error) {
    parent.send(failed("no world", error.what()));
  }
}

void WorldProcess::give(const RandomProgram& program, bool with_details) {
  process_.start();
  process_.child().send({{"program", program.to_json()}, {"details", with_details}});
}

json WorldProcess::take() {
  auto outcome = process_.child().receive();
  if (!outcome) {
    outcome = failed("ended", "the process of this world has ended");
    (*outcome)["stopped"] = "ended";
  }
  if (outcome->contains("stopped")) process_.stop();
  return *std::move(outcome);
}

}  // namespace rnic::testbench
