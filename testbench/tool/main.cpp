#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include "testbench/tool/tool_commands.hpp"
#include "testbench/tool/tool_files.hpp"

namespace {

using rnic::testbench::kToolCommands;
using rnic::testbench::tool_prefix;

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

/// Letters to add, take out or replace until one word is the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::string row(b.size() + 1, '\0');
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = static_cast<char>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    char diagonal = row[0];
    row[0] = static_cast<char>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const char replaced = static_cast<char>(diagonal + (a[i - 1] == b[j - 1] ? 0 : 1));
      diagonal = row[j];
      row[j] = std::min({replaced, static_cast<char>(row[j] + 1), static_cast<char>(row[j - 1] + 1)});
    }
  }
  return static_cast<std::size_t>(row.back());
}

int unknown(std::string_view word) {
  std::string hint = "rnic --help lists the commands";
  if (word.size() < 32) {
    const auto* const nearest =
        std::min_element(kToolCommands.begin(), kToolCommands.end(),
                         [&](const auto& a, const auto& b) { return distance(word, a.name) < distance(word, b.name); });
    if (distance(word, nearest->name) <= 2) hint = fmt::format("did you mean '{}'? {}", nearest->name, hint);
  }
  fmt::print(stderr, "rnic: there is no command '{}': {}\n", word, hint);
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
    fmt::print(stderr, "rnic: which command? rnic --help lists them\n");
    return 2;
  }
  const auto* const command =
      std::find_if(kToolCommands.begin(), kToolCommands.end(), [&](const auto& one) { return one.name == word; });
  if (command == kToolCommands.end()) return unknown(word);
  const std::string file = program_file(command->program).string();
  execv(file.c_str(), argv);
  if (errno == ENOENT)
    fmt::print(stderr,
               "rnic: '{}' is not built: {} is missing. In the checkout, 'cmake --build --preset release --target "
               "rnic' builds all commands\n",
               word, file);
  else
    fmt::print(stderr, "rnic: cannot run {}: {}\n", file, std::strerror(errno));
  return 2;
}
