#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace rnic::testbench {

/// What stands for the value of an option: "FILE"; of values that can be listed, "256|512".
[[nodiscard]] std::string value_name(const CLI::Option& option);
/// Its description, with range, default, environment, and the options that it needs or excludes.
[[nodiscard]] std::string described(const CLI::Option& option);

/// --help in these words: "--qps UINT  Queue pairs [1 to 128; default: 1]". Commands take it over from the tool that
/// they are added to.
class HelpFormatter : public CLI::Formatter {
 public:
  [[nodiscard]] std::string make_option_name(const CLI::Option* option, bool positional) const override;
  [[nodiscard]] std::string make_option_opts(const CLI::Option* option) const override;
  [[nodiscard]] std::string make_option_desc(const CLI::Option* option) const override;
};

/// A page of the manual, section 1, as input for groff or `man -l`, made of the definitions: of `command`, one of
/// `tool`, or with null of the tool and its commands. `version`: of the program, for the foot of the page.
[[nodiscard]] std::string man_page(const CLI::App& tool, const CLI::App* command, const std::string& version);

}  // namespace rnic::testbench
