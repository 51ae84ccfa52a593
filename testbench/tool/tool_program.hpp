#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rnic::testbench {

/// Adds the commands of a program to `tool`. `programs` is what stands behind "--"; the command that is given sets
/// `action`.
using AddCommands = void (*)(CLI::App& tool, const std::vector<std::string>& programs, std::function<int()>& action);

/// The main function of the programs that `rnic` is made of. Exit codes: 0 done, 1 the job failed (data differ, a
/// vector fails, the simulation stops), 2 wrong use, 130 interrupted (result_json.hpp).
int run_tool_program(int argc, char** argv, AddCommands add);

}  // namespace rnic::testbench
