#include "testbench/tool/verify_workers.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <system_error>

#include "testbench/verify/frame_check.hpp"
#include "testbench/verify/vector_runner.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;

/// The vectors with the indexes first, first + step and so on.
void run_some(const std::vector<Vector>& vectors, const WorldOptions& options, std::size_t first, std::size_t step,
              const VectorDone& done) {
  World world(options);
  VectorRunner runner(world, options);
  for (std::size_t i = first; i < vectors.size(); i += step)
    done(i, vectors[i].frame.empty() ? runner.run(vectors[i]) : check_frame(vectors[i]));
  world.close_timeline();
}

/// A child process that runs some of the vectors and reports each with a line of JSON.
class Worker {
 public:
  Worker(const std::vector<Vector>& vectors, const WorldOptions& options, std::size_t first, std::size_t step) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    std::fflush(nullptr);
    child_ = fork();
    if (child_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (child_ == 0) {
      close(ends[0]);
      work(vectors, options, first, step, ends[1]);
    }
    close(ends[1]);
    from_ = fdopen(ends[0], "r");
  }
  ~Worker() {
    if (from_ != nullptr) std::fclose(from_);  // a child that still reports is ended by the closed pipe
    int status = 0;
    if (child_ > 0) waitpid(child_, &status, 0);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// What it reports of its next vector.
  VectorOutcome next() {
    std::string line;
    for (int c = std::fgetc(from_); c != EOF && c != '\n'; c = std::fgetc(from_)) line.push_back(static_cast<char>(c));
    if (line.empty()) throw std::runtime_error("a process that runs vectors has ended early");
    const json report = json::parse(line);
    if (report.contains("malformed")) throw VectorError(report.at("malformed").get<std::string>());
    return {report.at("passed").get<bool>(),
            report.at("message").get<std::string>(),
            report.at("simulated_ns").get<std::uint64_t>(),
            report.at("set_up_ns").get<std::uint64_t>(),
            report.at("cycles").get<std::uint64_t>(),
            report.at("failed_ns").get<std::uint64_t>()};
  }

 private:
  [[noreturn]] static void work(const std::vector<Vector>& vectors, const WorldOptions& options, std::size_t first,
                                std::size_t step, int to) {
    const auto report = [to](const json& value) {
      const std::string line = value.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
      for (std::size_t at = 0; at < line.size();) {
        const ssize_t count = write(to, line.data() + at, line.size() - at);
        if (count <= 0) _exit(1);
        at += static_cast<std::size_t>(count);
      }
    };
    try {
      run_some(vectors, options, first, step, [&](std::size_t, const VectorOutcome& outcome) {
        report({{"passed", outcome.passed},
                {"message", outcome.message},
                {"simulated_ns", outcome.simulated_ns},
                {"set_up_ns", outcome.set_up_ns},
                {"cycles", outcome.cycles},
                {"failed_ns", outcome.failed_ns}});
      });
    } catch (const VectorError& error) {
      report({{"malformed", error.what()}});
    } catch (const std::exception& error) {
      fmt::print(stderr, "rnic: {}\n", error.what());
      _exit(1);
    }
    _exit(0);  // nothing of the parent's may be flushed or torn down twice
  }

  pid_t child_ = -1;
  std::FILE* from_ = nullptr;
};

}  // namespace

void run_vectors(const std::vector<Vector>& vectors, const WorldOptions& options, unsigned jobs,
                 const VectorDone& done) {
  const std::size_t count = std::min<std::size_t>(jobs, vectors.size());
  if (count <= 1) return run_some(vectors, options, 0, 1, done);
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::size_t i = 0; i < count; ++i) workers.push_back(std::make_unique<Worker>(vectors, options, i, count));
  for (std::size_t i = 0; i < vectors.size(); ++i) done(i, workers[i % count]->next());
}

}  // namespace rnic::testbench
