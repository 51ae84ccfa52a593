#include "testbench/tool/command_completion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <stdexcept>

#include "testbench/tool/command_manual.hpp"
#include "testbench/tool/nearest_word.hpp"

namespace rnic::testbench {
namespace {

/// Options of this command are passed on to a machine by those that take more than their own.
constexpr const char* kMachineCommand = "serve";

std::vector<const CLI::App*> shown_commands(const CLI::App& tool) {
  return tool.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); });
}

std::vector<const CLI::Option*> shown_options(const CLI::App& command) {
  return command.get_options([](const CLI::Option* one) { return !one->get_group().empty(); });
}

const CLI::App* find_command(const CLI::App& tool, const std::string& name) {
  for (const auto* one : tool.get_subcommands({}))
    if (one->check_name(name)) return one;
  return nullptr;
}

/// The command, and for one that passes options on to a machine also the command that takes them.
std::vector<const CLI::App*> takers(const CLI::App& tool, const CLI::App& command) {
  std::vector<const CLI::App*> all{&command};
  const auto* const machine = command.get_allow_extras() ? find_command(tool, kMachineCommand) : nullptr;
  if (machine != nullptr) all.push_back(machine);
  return all;
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const auto& one : option.get_lnames()) names.push_back("--" + one);
  for (const auto& one : option.get_snames()) names.push_back("-" + one);
  return names;
}

const CLI::Option* find_option(const std::vector<const CLI::App*>& commands, const std::string& name) {
  for (const auto* command : commands)
    for (const auto* option : command->get_options({}))
      if (name.size() > 1 && name.front() == '-' && option->check_name(name)) return option;
  return nullptr;
}

bool takes_value(const CLI::Option* option) { return option != nullptr && option->get_items_expected_max() != 0; }

/// Those of CLI::IsMember, which stand in the type's name as "UINT:{256,512}" or "{rtl->0,model->1}".
std::vector<std::string> members(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  std::vector<std::string> values;
  for (auto& one : CLI::detail::split(type.substr(open + 1, close - open - 1), ','))
    values.push_back(one.substr(0, one.find("->")));
  return values;
}

Completion::Shell shell_of(const std::string& type) {
  if (type.starts_with("FOLDER")) return Completion::Shell::kFolders;
  constexpr std::array kFiles = {"FILE", "PATH", "LOG", "MACHINE"};
  const bool file = std::any_of(kFiles.begin(), kFiles.end(), [&](const char* one) { return type.starts_with(one); });
  return file ? Completion::Shell::kFiles : Completion::Shell::kNothing;
}

/// The first sentence of a description, short enough for a line beside the word.
std::string brief(const std::string& text) {
  constexpr std::size_t kMost = 72;
  const auto end = std::min({text.find("; "), text.find(". "), text.find(": "), text.size()});
  return end <= kMost ? text.substr(0, end) : text.substr(0, text.rfind(' ', kMost)) + " ...";
}

void add_matching(Completion& to, const std::string& start, const std::string& word, const std::string& description) {
  if (word.starts_with(start)) to.candidates.push_back({word, description});
}

Completion complete_value(const CLI::Option& option, const std::string& start, const std::string& before = "") {
  Completion completion;
  for (const auto& one : members(option)) {
    if (one.starts_with(start)) completion.candidates.push_back({before + one, ""});
  }
  if (completion.candidates.empty()) completion.shell = shell_of(option.get_type_name());
  return completion;
}

std::string meant(const std::string& name) { return name.empty() ? "" : fmt::format("; did you mean '{}'?", name); }

constexpr const char* kBash = R"(# bash completion of @PROGRAM@: source <(@PROGRAM@ completion bash)
_@PROGRAM@_complete() {
  local line current=${COMP_WORDS[COMP_CWORD]}
  [[ $current == "=" ]] && current=
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files) compopt -o filenames 2> /dev/null; mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$current") ;;
      :folders) compopt -o filenames 2> /dev/null; mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$current") ;;
      :commands) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -c -- "$current") ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <("${COMP_WORDS[0]/#\~/$HOME}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
}
complete -F _@PROGRAM@_complete @PROGRAM@
)";

constexpr const char* kZsh = R"(#compdef @PROGRAM@
# zsh completion of @PROGRAM@: source <(@PROGRAM@ completion zsh), or as the file _@PROGRAM@ in a folder of $fpath
_@PROGRAM@() {
  local line
  local -a candidates
  for line in "${(@f)$(${~words[1]} complete -- "${(@)words[2,CURRENT]}" 2> /dev/null)}"; do
    case $line in
      :files) _files ;;
      :folders) _files -/ ;;
      :commands) _command_names -e ;;
      ?*) candidates+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
    esac
  done
  (( ${#candidates} )) && _describe '@PROGRAM@' candidates
}
if [[ ${funcstack[1]} == _@PROGRAM@ ]]; then _@PROGRAM@ "$@"; else compdef _@PROGRAM@ @PROGRAM@; fi
)";

constexpr const char* kFish = R"(# fish completion of @PROGRAM@: @PROGRAM@ completion fish | source
function __@PROGRAM@_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] complete -- $words[2..-1] 2> /dev/null)
        switch $line
            case :files
                __fish_complete_path (commandline -ct)
            case :folders
                __fish_complete_directories (commandline -ct)
            case :commands
                __fish_complete_command
            case '*'
                echo $line
        end
    end
end
complete -c @PROGRAM@ -f -a '(__@PROGRAM@_complete)'
)";

}  // namespace

std::string Completion::text() const {
  std::string lines;
  for (const auto& one : candidates) lines += one.word + '\t' + one.description + '\n';
  switch (shell) {
    case Shell::kNothing: break;
    case Shell::kFiles: lines += ":files\n"; break;
    case Shell::kFolders: lines += ":folders\n"; break;
    case Shell::kCommands: lines += ":commands\n"; break;
  }
  return lines;
}

Completion complete(const CLI::App& tool, const std::vector<std::string>& words) {
  Completion completion;
  if (words.empty()) return completion;
  std::string current = words.back();
  const auto* const command = words.size() == 1 ? nullptr : find_command(tool, words.front());
  if (command == nullptr) {
    if (words.size() != 1) return completion;
    for (const auto* one : shown_commands(tool))
      add_matching(completion, current, one->get_name(), brief(one->get_description()));
    if (current.starts_with("-")) {
      for (const auto* option : shown_options(tool))
        for (const auto& name : names_of(*option))
          add_matching(completion, current, name, brief(option->get_description()));
    }
    return completion;
  }
  const std::vector<std::string> before(words.begin() + 1, words.end() - 1);
  const auto dashes = std::find(before.rbegin(), before.rend(), "--");
  if (dashes != before.rend()) {
    completion.shell = dashes == before.rbegin() ? Completion::Shell::kCommands : Completion::Shell::kFiles;
    return completion;
  }
  const auto commands = takers(tool, *command);
  // The option whose value is completed: "--nic rtl", "--nic = rtl" (bash), "--nic=rtl".
  std::size_t at = before.size();
  if (current == "=") {
    current.clear();
  } else if (at != 0 && before[at - 1] == "=") {
    --at;
  }
  if (at != 0) {
    const auto* const option = find_option(commands, before[at - 1]);
    if (takes_value(option)) return complete_value(*option, current);
  }
  if (const auto equals = current.find('='); current.starts_with("--") && equals != std::string::npos) {
    const auto* const option = find_option(commands, current.substr(0, equals));
    if (!takes_value(option)) return completion;
    return complete_value(*option, current.substr(equals + 1), current.substr(0, equals + 1));
  }
  for (const auto* one : commands) {
    for (const auto* option : shown_options(*one)) {
      if (option->get_positional()) {
        if (current.starts_with("-")) continue;
        const Completion value = complete_value(*option, current);
        completion.candidates.insert(completion.candidates.end(), value.candidates.begin(), value.candidates.end());
        completion.shell = value.shell;
      } else if (current.starts_with("-") || current.empty()) {
        const auto names = names_of(*option);
        if (!names.empty()) add_matching(completion, current, names.front(), brief(option->get_description()));
      }
    }
  }
  return completion;
}

const std::vector<std::string>& completion_shells() {
  static const std::vector<std::string> shells = {"bash", "zsh", "fish"};
  return shells;
}

std::string completion_script(const std::string& shell, const std::string& program) {
  static const std::map<std::string, const char*> scripts = {{"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}};
  const auto found = scripts.find(shell);
  if (found == scripts.end()) throw std::invalid_argument("no completion for the shell " + shell);
  return CLI::detail::find_and_replace(found->second, "@PROGRAM@", program);
}

std::string explain(const CLI::App& tool, const CLI::ParseError& error, const std::vector<std::string>& words) {
  const std::string program = tool.get_name();
  const auto* const command = words.empty() ? nullptr : find_command(tool, words.front());
  if (command == nullptr) return error.what();
  const std::string help = fmt::format(" ({} {} --help)", program, command->get_name());
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    std::vector<std::string> names;
    const auto commands = takers(tool, *command);
    for (const auto* one : commands)
      for (const auto* option : shown_options(*one))
        for (const auto& name : names_of(*option)) names.push_back(name);
    for (auto it = words.begin() + 1; it != words.end(); ++it) {
      const std::string name = it->substr(0, it->find('='));
      if (!name.starts_with("--") || name == "--" || find_option(commands, name) != nullptr) continue;
      return fmt::format("{}: there is no option {}{}{}", command->get_name(), name, meant(nearest_word(name, names)),
                         help);
    }
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    for (const auto* option : command->get_options({})) {
      if (!option->get_required() || option->count() != 0 || !option->get_positional()) continue;
      return fmt::format("{0}: {1} is missing: {2} {0} {1}", command->get_name(), value_name(*option), program);
    }
  }
  if (const std::string text = error.what(); text.ends_with(" missing") && text.starts_with("-")) {
    const auto* const option = find_option(takers(tool, *command), text.substr(0, text.find(':')));
    if (option != nullptr)
      return fmt::format("{}: {} needs a value, {}{}", command->get_name(), option->get_name(), value_name(*option),
                         help);
  }
  return error.what();
}

}  // namespace rnic::testbench
