#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

#include "testbench/input_files.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

/// A scenario file that cannot be read or is wrong. The message is one line that names the file and the key.
class ScenarioError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Adds the faults of a scenario file (docs/scenarios.md) to `options`, which stay as they are where the file says
/// nothing. Throws ScenarioError; `options` are then unchanged.
void load_scenario(const std::filesystem::path& file, WorldOptions& options);
/// The same with the file from `files`.
void load_scenario(const std::filesystem::path& file, WorldOptions& options, InputFiles& files);
/// The same from text; `name` stands for the file in messages.
void parse_scenario(const std::string& text, const std::string& name, WorldOptions& options);

}  // namespace rnic::testbench
