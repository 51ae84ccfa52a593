#include "testbench/tool/report_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "testbench/report/report_page.hpp"
#include "testbench/tool/failure_folder.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/terminal.hpp"

namespace rnic::testbench {
namespace {

/// Options that change nothing of what is simulated; the defaults of some are those of the machine.
constexpr std::array<std::string_view, 20> kNoSettings = {
    "--help",         "--report",      "--json",       "--timeline", "--timeline-window", "--pcap", "--trace",
    "--trace-window", "--trace-scope", "--trace-mark", "--failures", "--threads",         "--jobs", "--junit",
    "--log",          "--dir",         "--quiet",      "--ready-fd", "--no-programs",     "--exec"};

}  // namespace

void ReportFile::add_option(CLI::App& command) {
  command_ = &command;
  command.add_option("--report", path_, "Write a page about the run to this HTML file (docs/report.md)")
      ->type_name("FILE");
}

void ReportFile::check() const { check_writable(path_, "--report"); }

void ReportFile::add_figure(const std::string& group, const std::string& name, nlohmann::ordered_json value,
                            const std::string& unit) {
  figures_.push_back({{"group", group}, {"name", name}, {"value", std::move(value)}, {"unit", unit}});
}

void ReportFile::add_limit(const std::string& name, double gbps) {
  limits_.push_back({{"name", name}, {"gbps", gbps}});
}

void ReportFile::set_outcome(bool good, const std::string& text) {
  data_["outcome"] = {{"good", good}, {"text", text}};
}

/// Every option with the value that it had.
nlohmann::ordered_json ReportFile::settings() const {
  auto all = nlohmann::ordered_json::array();
  for (const CLI::Option* option : command_->get_options()) {
    const std::string name = option->get_name();
    if (std::find(kNoSettings.begin(), kNoSettings.end(), name) != kNoSettings.end()) continue;
    const bool given = option->count() != 0;
    std::string value = given ? CLI::detail::join(option->results(), " ") : option->get_default_str();
    if (option->get_items_expected_max() == 0) value = given ? "yes" : "no";
    if (value.empty()) continue;
    all.push_back({{"name", name}, {"value", value}, {"given", given}, {"text", option->get_description()}});
  }
  return all;
}

void ReportFile::write() {
  if (!wanted()) return;
  nlohmann::ordered_json page = {{"command", command_->get_name()}, {"version", RNIC_VERSION}};
  page["command_line"] = command_text();
  page["figures"] = figures_;
  page["limits"] = limits_;
  page["settings"] = settings();
  page.update(data_);
  page["run"] = run_.json();
  write_report_page(path_, page);
}

void ReportFile::leave(World& world, const std::string& why) noexcept {
  if (!wanted()) return;
  try {
    world.close_timeline();
    set_outcome(false, why);
    write();
  } catch (const std::exception& error) {
    print_error(error.what());
  }
}

}  // namespace rnic::testbench
