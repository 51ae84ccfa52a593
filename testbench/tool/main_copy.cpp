#include "testbench/tool/commands.hpp"
#include "testbench/tool/tool_program.hpp"

/// libexec/rnic/rnic-copy: the main job of `rnic`.
int main(int argc, char** argv) {
  using namespace rnic::testbench;
  return run_tool_program(
      argc, argv, [](CLI::App& tool, const auto&, std::function<int()>& action) { add_copy_command(tool, action); });
}
