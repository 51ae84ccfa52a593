#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <functional>
#include <systemc>

#include "testbench/tool/commands.hpp"
#include "testbench/tool/exec_command.hpp"
#include "testbench/tool/failure_folder.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/verilated_nic.hpp"
#include "testbench/verify/vector.hpp"

/// The tool `rnic`. Exit codes: 0 done, 1 the job failed (data differ, a vector fails, the simulation stops), 2 wrong
/// use.
int main(int argc, char** argv) {
  using namespace rnic::testbench;
  remember_command_line(argc, argv);
  sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
  auto programs = take_programs(argc, argv);
  CLI::App tool("RDMA NIC: two cycle-accurate NICs, driven by the real driver", "rnic");
  tool.set_version_flag("--version", "rnic " RNIC_VERSION);
  tool.require_subcommand(1);
  std::function<int()> action;
  add_copy_command(tool, action);
  add_verify_command(tool, action);
  add_bench_command(tool, action);
  add_soak_command(tool, action);
  add_fuzz_command(tool, action);
  add_compare_command(tool, action);
  add_coverage_command(tool, action);
  add_serve_command(tool, action);
  add_replay_command(tool, action);
  add_ps_command(tool, action);
  add_stat_command(tool, action);
  add_exec_command(tool, programs, action);
  add_lockstep_command(tool, programs, action);
  add_linux_command(tool, std::move(programs), action);
  try {
    tool.parse(argc, argv);
    return action();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return tool.exit(error);
    fmt::print(stderr, "rnic: {}\n", error.what());
    return 2;
  } catch (const UsageError& error) {
    fmt::print(stderr, "rnic: {}\n", error.what());
    return 2;
  } catch (const NoSuchScope& error) {
    fmt::print(stderr, "rnic: --trace-scope: {}\n", error.what());
    return 2;
  } catch (const VectorError& error) {
    fmt::print(stderr, "rnic: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "rnic: {}\n", error.what());
    return 1;
  }
}
