#include "testbench/tool/commands.hpp"
#include "testbench/tool/tool_program.hpp"

/// libexec/rnic/rnic-machine: the commands of `rnic` that run programs on simulated hosts.
int main(int argc, char** argv) {
  using namespace rnic::testbench;
  return run_tool_program(argc, argv, [](CLI::App& tool, const auto& programs, std::function<int()>& action) {
    add_exec_command(tool, programs, action);
    add_lockstep_command(tool, programs, action);
    add_linux_command(tool, programs, action);
    add_serve_command(tool, action);
    add_replay_command(tool, action);
    add_ps_command(tool, action);
    add_stat_command(tool, action);
  });
}
