#include "testbench/tool/tool_program.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <string_view>
#include <systemc>

#include "testbench/tool/command_completion.hpp"
#include "testbench/tool/command_manual.hpp"
#include "testbench/tool/commands.hpp"
#include "testbench/tool/failure_folder.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/terminal.hpp"
#include "testbench/verilated_nic.hpp"
#include "testbench/verify/vector_error.hpp"

namespace rnic::testbench {
namespace {

/// Of a command that runs programs, what stands behind "--"; `argc` ends in front of it.
std::vector<std::string> take_programs(int& argc, const char* const argv[]) {
  constexpr std::array<std::string_view, 3> kCommands = {"exec", "lockstep", "linux"};
  if (argc < 2 || std::find(kCommands.begin(), kCommands.end(), argv[1]) == kCommands.end()) return {};
  const auto* const end = argv + argc;
  const auto* const dashes = std::find(argv, end, std::string_view("--"));
  argc = static_cast<int>(dashes - argv);
  return dashes == end ? std::vector<std::string>() : std::vector<std::string>(dashes + 1, end);
}

}  // namespace

int run_tool_program(int argc, char** argv, AddCommands add) {
  remember_command_line(argc, argv);
  sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
  const auto programs = take_programs(argc, argv);
  CLI::App tool("RDMA NIC: two cycle-accurate NICs, driven by the real driver", "rnic");
  tool.require_subcommand(1);
  tool.formatter(std::make_shared<HelpFormatter>());
  std::function<int()> action;
  add(tool, programs, action);
  add_description_commands(tool, action);
  if (answer_completion(tool, argc, argv)) return 0;
  try {
    tool.parse(argc, argv);
    return action();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return tool.exit(error);
    print_error(explain(tool, error, std::vector<std::string>(argv + 1, argv + argc)));
    return 2;
  } catch (const UsageError& error) {
    print_error(error.what());
    return 2;
  } catch (const NoSuchScope& error) {
    print_error(fmt::format("--trace-scope: {}", error.what()));
    return 2;
  } catch (const VectorError& error) {
    print_error(error.what());
    return 2;
  } catch (const std::exception& error) {
    print_error(error.what());
    return 1;
  }
}

}  // namespace rnic::testbench
