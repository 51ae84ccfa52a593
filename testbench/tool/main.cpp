#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "testbench/tool/nearest_word.hpp"
#include "testbench/tool/terminal.hpp"
#include "testbench/tool/tool_commands.hpp"
#include "testbench/tool/tool_files.hpp"

namespace {

using namespace rnic::testbench;

std::filesystem::path program_file(std::string_view program) { return tool_prefix() / "libexec/rnic" / program; }

void print_help() {
  fmt::print(
      "RDMA NIC: two cycle-accurate NICs, driven by the real driver\nUsage: rnic [OPTIONS] COMMAND\n\nOptions:\n");
  for (const auto& [option, text] : {std::pair{"-h,--help", "Print this help message and exit"},
                                     std::pair{"--version", "Display program version information and exit"}})
    fmt::print("  {:<12}{}\n", option, text);
  fmt::print("\nCommands (rnic COMMAND --help shows the options of one):\n");
  for (const auto& command : kToolCommands) {
    const bool built = std::filesystem::exists(program_file(command.program));
    fmt::print("  {:<12}{}{}\n", command.name, command.summary, built ? "" : " (not built)");
  }
}

const ToolCommand* find_command(std::string_view name) {
  const auto* const found =
      std::find_if(kToolCommands.begin(), kToolCommands.end(), [&](const auto& one) { return one.name == name; });
  return found == kToolCommands.end() ? nullptr : found;
}

/// The command whose program runs the command line. What describes a command is known to the program that has it.
const ToolCommand* command_of(int argc, char** argv) {
  const std::string_view word = argv[1];
  if (word == "man" && argc > 2) {
    if (const auto* const described = find_command(argv[2])) return described;
  }
  if (word == "complete") {  // -- COMMAND WORDS, from a shell (command_completion.hpp)
    const auto* const completed = argc > 4 ? find_command(argv[3]) : nullptr;
    return completed != nullptr ? completed : kToolCommands.begin();
  }
  return find_command(word);
}

int unknown(const std::string& word) {
  std::vector<std::string> names;
  for (const auto& command : kToolCommands) names.emplace_back(command.name);
  const std::string nearest = nearest_word(word, names);
  print_error(fmt::format("there is no command '{}': {}rnic --help lists the commands", word,
                          nearest.empty() ? "" : fmt::format("did you mean '{}'? ", nearest)));
  return 2;
}

}  // namespace

/// The tool `rnic`: replaces itself by the program that has the command.
int main(int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "";
  if (word == "--help" || word == "-h") {
    print_help();
    return 0;
  }
  if (word == "--version") {
    fmt::print("rnic {}\n", RNIC_VERSION);
    return 0;
  }
  if (word.empty()) {
    print_error("which command? rnic --help lists them");
    return 2;
  }
  const auto* const command = command_of(argc, argv);
  if (command == nullptr) return unknown(argv[1]);
  const std::string file = program_file(command->program).string();
  execv(file.c_str(), argv);
  if (errno == ENOENT)
    print_error(
        fmt::format("'{}' is not built: {} is missing. In the checkout, 'cmake --build --preset release --target "
                    "rnic' builds all commands",
                    command->name, file));
  else
    print_error(fmt::format("cannot run {}: {}", file, std::strerror(errno)));
  return 2;
}
