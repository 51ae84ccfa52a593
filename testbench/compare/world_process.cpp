#include "testbench/compare/world_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "testbench/verify/vector.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;

std::optional<std::string> read_line(std::FILE* from) {
  char* text = nullptr;
  std::size_t room = 0;
  const ssize_t count = getline(&text, &room, from);
  std::optional<std::string> line;
  if (count > 0) line.emplace(text, static_cast<std::size_t>(count));
  std::free(text);
  return line;
}

void write_line(std::FILE* to, const json& value) {
  const std::string line = value.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
  std::fwrite(line.data(), 1, line.size(), to);
  std::fflush(to);
}

/// What comes of a program that nothing has come of.
json failed(const char* sort, const char* text) {
  return {{"failures", json::array({failure_entry(sort, text)})}, {"batches", json::array()}};
}

struct Pipe {
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  }
  std::array<int, 2> ends{};
};

}  // namespace

void WorldProcess::start() {
  const Pipe programs, outcomes;
  std::fflush(nullptr);
  child_ = fork();
  if (child_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child_ == 0) {
    close(programs.ends[1]);
    close(outcomes.ends[0]);
    work(programs.ends[0], outcomes.ends[1]);
  }
  close(programs.ends[0]);
  close(outcomes.ends[1]);
  to_ = fdopen(programs.ends[1], "w");
  from_ = fdopen(outcomes.ends[0], "r");
}

void WorldProcess::stop() {
  if (child_ < 0) return;
  // It has nothing to lose. Its pipe does not end by being closed here: children that were started later have it too.
  kill(child_, SIGKILL);
  std::fclose(std::exchange(to_, nullptr));
  std::fclose(std::exchange(from_, nullptr));
  int status = 0;
  waitpid(std::exchange(child_, -1), &status, 0);
}

void WorldProcess::work(int from, int to) const {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::FILE* const programs = fdopen(from, "r");
  std::FILE* const outcomes = fdopen(to, "w");
  try {
    World world(options_);
    ProgramRunner runner(world, options_, planted_);
    while (const auto line = read_line(programs)) {
      const json request = json::parse(*line);
      json outcome;
      try {
        outcome = runner.run(RandomProgram::from_json(request.at("program")), request.at("details").get<bool>());
      } catch (const VectorError& error) {
        outcome = failed("malformed", error.what());
        outcome["malformed"] = true;
      }
      write_line(outcomes, outcome);
      if (outcome.contains("stopped")) break;
    }
  } catch (const std::exception& error) {
    write_line(outcomes, failed("no world", error.what()));
  }
  _exit(0);  // nothing of the parent's may be flushed or torn down twice
}

void WorldProcess::give(const RandomProgram& program, bool with_details) {
  if (child_ < 0) start();
  write_line(to_, {{"program", program.to_json()}, {"details", with_details}});
}

json WorldProcess::take() {
  const auto line = read_line(from_);
  json outcome = line ? json::parse(*line, nullptr, false) : json();
  if (!outcome.is_object()) {
    outcome = failed("ended", "the process of this world has ended");
    outcome["stopped"] = "ended";
  }
  if (outcome.contains("stopped")) stop();
  return outcome;
}

}  // namespace rnic::testbench
