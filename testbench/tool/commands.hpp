#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace rnic::testbench {

/// A command of kToolCommands; `details` follow its summary.
CLI::App* add_command(CLI::App& tool, std::string_view name, std::string_view details = {});

/// Adds one command to the tool: its options, and in `action` what runs when it was given. The action returns the exit
/// code; it throws UsageError or VectorError for what the user did wrong (exit code 2).
void add_copy_command(CLI::App& tool, std::function<int()>& action);
void add_verify_command(CLI::App& tool, std::function<int()>& action);
void add_bench_command(CLI::App& tool, std::function<int()>& action);
void add_soak_command(CLI::App& tool, std::function<int()>& action);
void add_fuzz_command(CLI::App& tool, std::function<int()>& action);
void add_compare_command(CLI::App& tool, std::function<int()>& action);
void add_coverage_command(CLI::App& tool, std::function<int()>& action);
/// `programs` are those that stand behind "--".
void add_exec_command(CLI::App& tool, std::vector<std::string> programs, std::function<int()>& action);
/// The same.
void add_lockstep_command(CLI::App& tool, std::vector<std::string> programs, std::function<int()>& action);
void add_linux_command(CLI::App& tool, std::vector<std::string> program, std::function<int()>& action);
void add_serve_command(CLI::App& tool, std::function<int()>& action);
void add_replay_command(CLI::App& tool, std::function<int()>& action);
void add_stat_command(CLI::App& tool, std::function<int()>& action);
void add_ps_command(CLI::App& tool, std::function<int()>& action);
/// `completion` and `man`: every program has them, and `rnic` asks the one that has the command in question. `tool`
/// outlives `action`.
void add_description_commands(CLI::App& tool, std::function<int()>& action);
/// Answers `rnic complete -- WORDS`, the question of the scripts that `completion` prints. False: it is not that.
[[nodiscard]] bool answer_completion(const CLI::App& tool, int argc, const char* const argv[]);

}  // namespace rnic::testbench
