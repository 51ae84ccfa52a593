#include "testbench/tool/command_manual.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

namespace rnic::testbench {
namespace {

/// `text` as groff prints it. A hyphen is one that can be copied, and no line begins with a control character.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (out.empty() && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + roff(text) + "\\fR"; }

std::string usage(const CLI::App& tool, const CLI::App& command) {
  std::string line = bold(tool.get_name() + " " + command.get_name()) + " [" + italic("OPTIONS") + "]";
  for (const auto* option : command.get_options({})) {
    if (!option->get_positional() || option->get_group().empty()) continue;
    std::string value = italic(value_name(*option));
    if (option->get_expected_max() > 1) value += "...";
    line += option->get_required() ? " " + value : " [" + value + "]";
  }
  return line + "\n";
}

std::string option_entry(const CLI::Option& option) {
  std::string names;
  const auto add = [&](const std::string& name) { names += (names.empty() ? "" : ", ") + bold(name); };
  for (const auto& name : option.get_snames()) add("-" + name);
  for (const auto& name : option.get_lnames()) add("--" + name);
  if (option.get_positional()) names = italic(value_name(option));
  if (!option.get_positional() && option.get_items_expected_max() != 0) names += " " + italic(value_name(option));
  return ".TP\n" + names + "\n" + roff(described(option)) + "\n";
}

std::string options_of(const CLI::App& command) {
  std::string text;
  std::vector<std::string> groups = command.get_groups();
  for (const auto& group : groups) {
    if (group.empty()) continue;
    std::string entries;
    for (const auto* option : command.get_options([&](const CLI::Option* one) { return one->get_group() == group; }))
      entries += option_entry(*option);
    if (!entries.empty()) text += (group == "Options" ? ".SH OPTIONS\n" : ".SS " + roff(group) + "\n") + entries;
  }
  return text;
}

constexpr const char* kEnd = R"(.SH EXIT STATUS
.TP
0
The job is done, and everything was as it should be.
.TP
1
The job failed: data differ, a vector fails, the simulation stops.
.TP
2
Wrong use: a file, an option or a malformed vector.
.TP
77
Something is missing on this machine that Debian has.
.TP
130
Interrupted by the user. copy, verify, bench, soak, fuzz and compare report what was done by then.
.PP
exec, lockstep and linux end with the exit status of the program that they run.
.SH ENVIRONMENT
.TP
\fBNO_COLOR\fR
If it is not empty, nothing is printed in colours.
)";

}  // namespace

std::string value_name(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto open = type.find('{');
  if (open == std::string::npos || !type.ends_with('}')) {
    // CLI::Range adds itself: "UINT:UINT in [1 - 128]".
    const auto range = type.find(" in [");
    return range == std::string::npos ? type : type.substr(0, type.rfind(':', range));
  }
  std::string values = type.substr(open + 1, type.size() - open - 2);
  std::replace(values.begin(), values.end(), ',', '|');
  return values;
}

std::string described(const CLI::Option& option) {
  std::string text = option.get_description(), more;
  const auto add = [&more](const std::string& part) { more += (more.empty() ? "" : "; ") + part; };
  const std::string type = option.get_type_name();
  const auto open = type.find(" in ["), between = type.find(" - ", open), close = type.find(']', between);
  if (open != std::string::npos && close != std::string::npos) {
    constexpr std::size_t kBefore = 5, kBetween = 3;
    add(fmt::format("{} to {}", type.substr(open + kBefore, between - open - kBefore),
                    type.substr(between + kBetween, close - between - kBetween)));
  }
  const bool flag = option.get_items_expected_max() == 0;
  if (const auto value = option.get_default_str(); !flag && !value.empty()) add("default: " + value);
  if (const auto name = option.get_envname(); !name.empty()) add("environment: " + name);
  const auto list = [](const std::set<CLI::Option*>& others) {
    std::set<std::string> names;
    for (const auto* other : others) names.insert(other->get_name());
    return fmt::format("{}", fmt::join(names, ", "));
  };
  if (!option.get_needs().empty()) add("with " + list(option.get_needs()));
  if (!option.get_excludes().empty()) add("not with " + list(option.get_excludes()));
  return more.empty() ? text : fmt::format("{} [{}]", text, more);
}

std::string HelpFormatter::make_option_name(const CLI::Option* option, bool positional) const {
  return positional ? value_name(*option) : CLI::Formatter::make_option_name(option, false);
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  std::string text;
  if (!option->get_positional() && option->get_items_expected_max() != 0) text = " " + value_name(*option);
  return option->get_expected_max() == CLI::detail::expected_max_vector_size ? text + " ..." : text;
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const { return described(*option); }

std::string man_page(const CLI::App& tool, const CLI::App* command, const std::string& version) {
  const std::string name = command == nullptr ? tool.get_name() : tool.get_name() + "-" + command->get_name();
  std::string description = command == nullptr ? tool.get_description() : command->get_description();
  const auto end =
      std::min({description.find(": "), description.find("; "), description.find(". "), description.size()});
  std::string page = fmt::format(".TH \"{}\" 1 \"\" \"{} {}\" \"{}\"\n.nh\n.ad l\n", roff(upper(name)), tool.get_name(),
                                 version, tool.get_name());
  page += ".SH NAME\n" + roff(name) + " \\- " + roff(description.substr(0, end)) + "\n.SH SYNOPSIS\n";
  std::string others;
  const auto commands = tool.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); });
  if (command != nullptr) {
    page += usage(tool, *command) + ".SH DESCRIPTION\n" + roff(description) + ".\n" + options_of(*command);
    others = bold(tool.get_name()) + "(1)";
  } else {
    page += bold(name) + " " + italic("COMMAND") + " [" + italic("OPTIONS") + "]\n.SH DESCRIPTION\n" +
            roff(description) + ".\n.SH COMMANDS\n";
    for (const auto* one : commands) {
      page += ".TP\n" + bold(one->get_name()) + "\n" + roff(one->get_description()) + ".\n";
      others += (others.empty() ? "" : ",\n") + bold(name + "-" + one->get_name()) + "(1)";
    }
    page += options_of(tool);
  }
  return page + kEnd + ".SH SEE ALSO\n" + others + "\n";
}

}  // namespace rnic::testbench
