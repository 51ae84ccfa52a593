#include "testbench/tool/commands.hpp"
#include "testbench/tool/tool_program.hpp"

/// libexec/rnic/rnic-check: the commands of `rnic` that check and measure the NIC.
int main(int argc, char** argv) {
  using namespace rnic::testbench;
  return run_tool_program(argc, argv, [](CLI::App& tool, const auto&, std::function<int()>& action) {
    add_verify_command(tool, action);
    add_bench_command(tool, action);
    add_soak_command(tool, action);
    add_fuzz_command(tool, action);
    add_compare_command(tool, action);
    add_coverage_command(tool, action);
  });
}
