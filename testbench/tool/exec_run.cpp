#include "testbench/tool/exec_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "testbench/tool/failure_folder.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/terminal.hpp"

namespace rnic::testbench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSignalBase = 128;

bool failed(const RunProgram& program) { return program.process >= 0 && program.code != 0 && !program.ended_by_us; }

/// How a program ended, behind its name.
std::string ending(const RunProgram& program) {
  if (program.process < 0) return "was not started";
  if (program.ended_by_us) return "did not end by itself, and rnic ended it behind the client";
  if (program.code > kSignalBase)
    return fmt::format("was ended by signal {} ({})", program.code - kSignalBase,
                       strsignal(program.code - kSignalBase));
  return fmt::format("ended with exit code {}", program.code);
}

std::string program_name(const RunProgram& program) {
  return program.role.empty() ? "the program" : "the " + program.role;
}

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

bool is_of(const Json& process, const RunProgram& program) {
  if (process.at("process") == program.process) return true;
  const auto& ancestors = process.at("ancestors");
  return std::any_of(ancestors.begin(), ancestors.end(), [&](const Json& one) { return one == program.process; });
}

/// Waits until the machine has taken back what the programs had: only then all of their requests are over.
Json settled_figures(const MachineProcess& machine, const std::vector<RunProgram>& programs) {
  using std::chrono::milliseconds;
  constexpr milliseconds kPatience{2'000}, kLook{10};
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    Json figures = machine.ask("figures");
    const auto& all = figures.at("processes");
    const bool connected = std::any_of(all.begin(), all.end(), [&](const Json& process) {
      return process.at("connected").get<bool>() &&
             std::any_of(programs.begin(), programs.end(), [&](const auto& one) { return is_of(process, one); });
    });
    if (!connected || std::chrono::steady_clock::now() > until) return figures;
    std::this_thread::sleep_for(kLook);
  }
}

std::string microseconds(const Json& ns) {
  constexpr double kNsPerUs = 1000;
  const double us = ns.get<double>() / kNsPerUs;
  return us < kNsPerUs ? fmt::format("{:.3g} us", us) : fmt::format("{:.0f} us", us);
}

std::string simulated(const Json& process) {
  const auto requests = process.at("requests").get<std::uint64_t>();
  const auto succeeded = process.at("succeeded").get<std::uint64_t>();
  std::string of = requests == 1 ? "1 request" : fmt::format("{} requests", requests);
  if (succeeded == 0) return fmt::format("{}, none succeeded", of);
  if (succeeded != requests) of = fmt::format("{} of {}", succeeded, of);
  return fmt::format("goodput {:.3g} Gbit/s, latency median {}, 99 % {} ({}, {} bytes)",
                     process.at("goodput_gbps").get<double>(), microseconds(process.at("latency_median_ns")),
                     microseconds(process.at("latency_p99_ns")), of, process.at("bytes").get<std::uint64_t>());
}

/// Why the first request failed; empty: none did.
std::string diagnosis_of(const std::vector<Json>& processes) {
  const Json* first = nullptr;
  std::size_t count = 0;
  for (const auto& process : processes) {
    for (const auto& one : process.at("diagnoses")) {
      ++count;
      // A Receive that fails makes the request of the peer fail, which says more.
      const auto rank = [](const Json& of) {
        return std::pair(of.at("receive").get<bool>(), of.at("at_ns").get<std::uint64_t>());
      };
      if (first == nullptr || rank(one) < rank(*first)) first = &one;
    }
  }
  if (first == nullptr) return {};
  return first->at("text").get<std::string>() +
         (count > 1 ? fmt::format(" ({} more queue pairs have failed requests.)", count - 1) : "");
}

/// What the kernel driver refused; empty: nothing.
std::string refused_call(const std::vector<Json>& processes) {
  for (const auto& process : processes) {
    for (const auto& one : process.at("refused_calls"))
      return fmt::format("no request failed, but the kernel driver of host{} refused {} of {}: {}",
                         process.at("host").get<unsigned>(), one.at("call").get<std::string>(),
                         process.at("name").get<std::string>(), one.at("error").get<std::string>());
  }
  return {};
}

}  // namespace

int ExecRun::code() const {
  const auto last = std::find_if(programs_.rbegin(), programs_.rend(), failed);
  if (last != programs_.rend()) return last->code;
  return std::any_of(programs_.begin(), programs_.end(), [](const auto& one) { return one.process < 0; }) ? 1 : 0;
}

void ExecRun::print(const MachineProcess& machine, std::FILE* out) const {
  Json figures;
  try {
    figures = settled_figures(machine, programs_);
  } catch (const UsageError&) {
    return;  // the machine has failed, and has said so
  }
  std::vector<Json> ours;
  bool any = false;
  for (const auto& program : programs_) {
    const std::string role = program.role.empty() ? "" : program.role + ": ";
    for (const auto& process : figures.at("processes")) {
      if (!is_of(process, program)) continue;
      ours.push_back(process);
      if (!figures.at("observed").get<bool>()) {
        fmt::print(out, "rnic: {}no figures of the simulated NIC: its machine runs with --no-programs\n", role);
        continue;
      }
      if (process.at("requests").get<std::uint64_t>() == 0) continue;
      fmt::print(out, "rnic: {}simulated: {}\n", role, simulated(process));
      any = any || process.at("succeeded").get<std::uint64_t>() != 0;
    }
  }
  if (any && !machine.simulated_clock())
    fmt::print(out, "rnic: these are figures of the simulated NIC; times that {} are the simulator's speed\n",
               programs_.size() == 1 ? "the program measures itself" : "the programs measure themselves");
  std::string diagnosis = diagnosis_of(ours);
  if (diagnosis.empty() && code() != 0) diagnosis = refused_call(ours);
  if (!diagnosis.empty()) fmt::print(out, "{} diagnosis: {}\n", toned("rnic:", Tone::kBad, fileno(out)), diagnosis);
}

template <typename Of>
Json ExecRun::describe(Of of) const {
  Json run{{"command", command_}, {"command_line", command_text({"--out", "--log"})}, {"programs", Json::array()}};
  for (const auto& program : programs_) {
    Json one{{"role", program.role}, {"host", program.host}, {"command", program.command}};
    one.update(of(program));
    run["programs"].push_back(std::move(one));
  }
  return run;
}

std::string ExecRun::plan() const {
  return text_of(describe([](const RunProgram&) {
    return Json{{"ending", "the simulation failed before it ended"}, {"good", false}};
  }));
}

void ExecRun::tell(const MachineProcess& machine) const {
  Json run = describe([](const RunProgram& program) {
    return Json{{"process", program.process},
                {"code", program.code},
                {"ending", ending(program)},
                {"good", program.process >= 0 && !failed(program)}};
  });
  std::string text;
  for (const auto& program : programs_)
    text += (text.empty() ? "" : "; ") + program_name(program) + " " + ending(program);
  run.update({{"good", code() == 0}, {"text", text}});
  try {
    static_cast<void>(machine.ask("run " + text_of(run)));
  } catch (const UsageError&) {
    // The machine has failed, and has said so.
  }
}

}  // namespace rnic::testbench
