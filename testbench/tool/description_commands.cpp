#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "testbench/tool/command_completion.hpp"
#include "testbench/tool/command_manual.hpp"
#include "testbench/tool/commands.hpp"
#include "testbench/tool/tool_commands.hpp"

namespace rnic::testbench {
namespace {

/// Through `man` where a person looks at it.
void show_page(const std::string& page) {
  std::FILE* const viewer = isatty(STDOUT_FILENO) != 0 ? popen("man -l - 2> /dev/null", "w") : nullptr;
  if (viewer != nullptr) {
    std::fwrite(page.data(), 1, page.size(), viewer);
    if (pclose(viewer) == 0) return;
  }
  std::fwrite(page.data(), 1, page.size(), stdout);
}

/// All commands of the tool, of this program and of others, with nothing but their summaries.
std::unique_ptr<CLI::App> all_commands(const CLI::App& tool) {
  auto all = std::make_unique<CLI::App>(tool.get_description(), tool.get_name());
  all->set_version_flag("--version", RNIC_VERSION);
  for (const auto& command : kToolCommands)
    all->add_subcommand(std::string(command.name), std::string(command.summary));
  return all;
}

/// `name`: of a command of this program; "": of all.
int run_man(const CLI::App& tool, const std::string& name) {
  show_page(name.empty() ? man_page(*all_commands(tool), nullptr, RNIC_VERSION)
                         : man_page(tool, tool.get_subcommand(name), RNIC_VERSION));
  return 0;
}

}  // namespace

CLI::App* add_command(CLI::App& tool, std::string_view name, std::string_view details) {
  const auto* const known = std::find_if(kToolCommands.begin(), kToolCommands.end(),
                                         [&](const ToolCommand& command) { return command.name == name; });
  return tool.add_subcommand(std::string(name), std::string(known->summary) + std::string(details));
}

bool answer_completion(const CLI::App& tool, int argc, const char* const argv[]) {
  if (argc < 3 || std::string(argv[1]) != "complete" || std::string(argv[2]) != "--") return false;
  const std::vector<std::string> words(argv + 3, argv + argc);
  fmt::print("{}", (words.size() > 1 ? complete(tool, words) : complete(*all_commands(tool), words)).text());
  return true;
}

void add_description_commands(CLI::App& tool, std::function<int()>& action) {
  auto shell = std::make_shared<std::string>();
  auto* completion = add_command(tool, "completion", ": source <(rnic completion bash)");
  completion->add_option("shell", *shell, "The shell")->required()->check(CLI::IsMember(completion_shells()));
  completion->callback([shell, &tool, &action] {
    action = [shell, &tool] {
      fmt::print("{}", completion_script(*shell, tool.get_name()));
      return 0;
    };
  });
  auto page = std::make_shared<std::string>();
  auto* man = add_command(tool, "man", "; where the output is no terminal, print its groff source");
  std::vector<std::string> names;
  for (const auto& command : kToolCommands) names.emplace_back(command.name);
  man->add_option("command", *page, "The command")->check(CLI::IsMember(names));
  man->callback([page, &tool, &action] { action = [page, &tool] { return run_man(tool, *page); }; });
}

}  // namespace rnic::testbench
