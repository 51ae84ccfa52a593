#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace rnic::testbench {

/// What a command line can go on with, read from the definitions of the commands. All of this works for a CLI::App with
/// any part of the commands.
struct Completion {
  struct Candidate {
    std::string word, description;
  };
  /// What the shell completes itself, beside the candidates.
  enum class Shell { kNothing, kFiles, kFolders, kCommands };

  std::vector<Candidate> candidates;
  Shell shell = Shell::kNothing;

  /// As the scripts of completion_script read it: a line "WORD<TAB>DESCRIPTION" for each candidate, and a line
  /// ":files",
  /// ":folders" or ":commands".
  [[nodiscard]] std::string text() const;
};

/// `words` are those behind the program's name up to the cursor; the last, which may be empty, is completed. "--nic="
/// and its value may be one word, or three as bash cuts them.
[[nodiscard]] Completion complete(const CLI::App& tool, const std::vector<std::string>& words);

/// bash, zsh, fish.
[[nodiscard]] const std::vector<std::string>& completion_shells();
/// A script for one of them that completes the command `program` with what `PROGRAM complete -- WORDS` prints.
[[nodiscard]] std::string completion_script(const std::string& shell, const std::string& program);

/// What to print for a command line that `tool` does not take: the error's text, or what is more to the point, and the
/// command or option that was meant. `words` are those behind the program's name.
[[nodiscard]] std::string explain(const CLI::App& tool, const CLI::ParseError& error,
                                  const std::vector<std::string>& words);

}  // namespace rnic::testbench
