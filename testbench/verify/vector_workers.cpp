#include "testbench/verify/vector_workers.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "testbench/verify/frame_check.hpp"
#include "testbench/verify/vector_runner.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;

/// The vectors with the indexes first, first + step and so on, up to one that stops the simulation.
void run_some(const std::vector<Vector>& vectors, const WorldOptions& options, std::size_t first, std::size_t step,
              const VectorDone& done) {
  World world(options);
  VectorRunner runner(world, options);
  for (std::size_t i = first; i < vectors.size(); i += step) {
    const VectorOutcome outcome = vectors[i].frame.empty() ? runner.run(vectors[i]) : check_frame(vectors[i]);
    done(i, outcome);
    if (outcome.stopped) return;
  }
  world.close_timeline();
}

/// A child process that runs some of the vectors and reports each with a line of JSON; another one, when it has ended
/// before all of them were run.
class Worker {
 public:
  Worker(const std::vector<Vector>& vectors, const WorldOptions& options, std::size_t first, std::size_t step)
      : vectors_(vectors), options_(options), next_(first), step_(step) {
    start();
  }
  ~Worker() { end(next_ < vectors_.size()); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Of its next vector.
  VectorOutcome next() {
    if (child_ < 0) start();
    std::string line;
    for (int c = std::fgetc(from_); c != EOF && c != '\n'; c = std::fgetc(from_)) line.push_back(static_cast<char>(c));
    next_ += step_;
    const json report = json::parse(line, nullptr, false);
    // Nothing, or half a line.
    if (!report.is_object()) return {.message = fmt::format("the process that ran it {}", end(false))};
    if (report.contains("malformed")) throw VectorError(report.at("malformed").get<std::string>());
    if (report.contains("no_world")) throw std::runtime_error(report.at("no_world").get<std::string>());
    VectorOutcome outcome{report.at("passed").get<bool>(),
                          report.at("message").get<std::string>(),
                          report.at("simulated_ns").get<std::uint64_t>(),
                          report.at("set_up_ns").get<std::uint64_t>(),
                          report.at("cycles").get<std::uint64_t>(),
                          report.at("failed_ns").get<std::uint64_t>(),
                          report.at("stopped").get<bool>()};
    if (outcome.stopped) end(true);
    return outcome;
  }

 private:
  void start() {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    std::fflush(nullptr);
    child_ = fork();
    if (child_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(ends[0]);
      work(ends[1]);
    }
    close(ends[1]);
    from_ = fdopen(ends[0], "r");
  }
  /// How it has ended, in words. `now`: it has nothing more to say, and may be unable to end by itself.
  std::string end(bool now) {
    if (child_ < 0) return {};
    std::fclose(std::exchange(from_, nullptr));
    if (now) kill(child_, SIGKILL);
    int status = 0;
    waitpid(std::exchange(child_, -1), &status, 0);
    return WIFSIGNALED(status) ? fmt::format("was ended by a signal ({})", strsignal(WTERMSIG(status)))
                               : fmt::format("has ended with exit code {}", WEXITSTATUS(status));
  }

  [[noreturn]] void work(int to) const {
    const auto report = [to](const json& value) {
      const std::string line = value.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
      for (std::size_t at = 0; at < line.size();) {
        const ssize_t count = write(to, line.data() + at, line.size() - at);
        if (count <= 0) _exit(1);
        at += static_cast<std::size_t>(count);
      }
    };
    try {
      run_some(vectors_, options_, next_, step_, [&](std::size_t, const VectorOutcome& outcome) {
        report({{"passed", outcome.passed},
                {"message", outcome.message},
                {"simulated_ns", outcome.simulated_ns},
                {"set_up_ns", outcome.set_up_ns},
                {"cycles", outcome.cycles},
                {"failed_ns", outcome.failed_ns},
                {"stopped", outcome.stopped}});
      });
    } catch (const VectorError& error) {
      report({{"malformed", error.what()}});
    } catch (const std::exception& error) {
      report({{"no_world", error.what()}});
    }
    _exit(0);  // nothing of the parent's may be flushed or torn down twice
  }

  const std::vector<Vector>& vectors_;
  const WorldOptions& options_;
  std::size_t next_;
  const std::size_t step_;
  pid_t child_ = -1;
  std::FILE* from_ = nullptr;
};

}  // namespace

void run_vectors(const std::vector<Vector>& vectors, const WorldOptions& options, unsigned jobs,
                 const VectorDone& done) {
  if (vectors.size() <= 1) return run_some(vectors, options, 0, 1, done);
  const std::size_t count = std::min<std::size_t>(std::max(1u, jobs), vectors.size());
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::size_t i = 0; i < count; ++i) workers.push_back(std::make_unique<Worker>(vectors, options, i, count));
  for (std::size_t i = 0; i < vectors.size(); ++i) done(i, workers[i % count]->next());
}

}  // namespace rnic::testbench
