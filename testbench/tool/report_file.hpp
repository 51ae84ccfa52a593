#pragma once

#include <CLI/CLI.hpp>

#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "testbench/app_runner.hpp"
#include "testbench/endpoint.hpp"
#include "testbench/report/run_report.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

/// --report FILE.html of a command (docs/report.md). Without the option nothing is collected and nothing written.
class ReportFile {
 public:
  /// Says so for `command`, whose options the report lists.
  void add_option(CLI::App& command);
  [[nodiscard]] bool wanted() const { return !path_.empty(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Throws UsageError when the file cannot be written.
  void check() const;
  /// A world made or reset with `options` is collected.
  void observe(WorldOptions& options) {
    std::erase(options.observers, &run_);
    if (wanted()) options.observers.push_back(&run_);
  }

  /// As RunReport::only.
  void only(std::function<bool(unsigned, std::uint8_t)> is_program) { run_.only(std::move(is_program)); }

  /// A figure at the head of the report, in the group of its name.
  void add_figure(const std::string& group, const std::string& name, nlohmann::ordered_json value,
                  const std::string& unit = "");
  /// A bound of goodput, drawn as a line, 10^9 bits per second.
  void add_limit(const std::string& name, double gbps);
  /// "results", "sweep", "wall_clock", and what else the page knows.
  void set(const std::string& key, nlohmann::ordered_json value) { data_[key] = std::move(value); }
  /// That is what set_outcome was told.
  [[nodiscard]] bool good() const { return data_.at("outcome").at("good").get<bool>(); }
  /// How the run ended.
  void set_outcome(bool good, const std::string& text);

  /// Writes the file, if it is wanted; the world's timeline is closed. Throws std::runtime_error when it cannot be
  /// written.
  void write();
  /// Does `work`. When that throws, the report has what there was and why it ended, and the exception goes on; that of
  /// a driver call or a hang names the faults of the scenario that hit.
  template <typename Work>
  auto watch(World& world, Work&& work) {
    try {
      return work();
    } catch (const EndpointError& error) {
      fail(world, error);
    } catch (const Hang& error) {
      fail(world, error);
    } catch (const SimulationTimeout& error) {
      fail(world, error);
    } catch (const std::exception& error) {
      leave(world, error.what());
      throw;
    }
  }

 private:
  template <typename Error>
  [[noreturn]] void fail(World& world, const Error& error) {
    const std::string why = with_faults(world, error.what());
    leave(world, why);
    throw Error(why);
  }
  void leave(World& world, const std::string& why) noexcept;
  [[nodiscard]] nlohmann::ordered_json settings() const;

  const CLI::App* command_ = nullptr;
  std::string path_;
  RunReport run_;
  nlohmann::ordered_json data_, figures_ = nlohmann::ordered_json::array(), limits_ = nlohmann::ordered_json::array();
};

}  // namespace rnic::testbench
