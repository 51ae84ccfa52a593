#include "testbench/verify/vector_workers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>

#include "testbench/interrupt.hpp"
#include "testbench/json_process.hpp"
#include "testbench/verify/frame_check.hpp"
#include "testbench/verify/vector_runner.hpp"

namespace rnic::testbench {
namespace {

/// The vectors with the indexes first, first + step and so on, up to one that stops the simulation.
void run_some(const std::vector<Vector>& vectors, const WorldOptions& options, std::size_t first, std::size_t step,
              const VectorDone& done) {
  World world(options);
  VectorRunner runner(world, options);
  for (std::size_t i = first; i < vectors.size(); i += step) {
    const auto start = std::chrono::steady_clock::now();
    VectorOutcome outcome;
    try {
      outcome = vectors[i].frame.empty() ? runner.run(vectors[i]) : check_frame(vectors[i]);
    } catch (const VectorError& error) {
      outcome.malformed = true;
      outcome.message = error.what();
    }
    outcome.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    done(i, outcome);
    if (outcome.stopped) return;
  }
  world.close_timeline();
}

/// Runs some of the vectors in a process, in another one when that has ended before all of them were run.
class Worker {
 public:
  Worker(const std::vector<Vector>& vectors, const WorldOptions& options, std::size_t first, std::size_t step)
      : vectors_(vectors), options_(options), next_(first), step_(step), process_([this](JsonChannel& parent) {
          work(parent);
        }) {
    process_.start();
  }
  /// Unless it was stopped, it ends by itself: what it writes when it ends is written.
  ~Worker() {
    if (next_ >= vectors_.size()) process_.wait();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Of its next vector.
  VectorOutcome next() {
    process_.start();
    const auto report = process_.child().receive();
    next_ += step_;
    if (!report) return {.message = fmt::format("the process that ran it {}", process_.wait())};
    if (report->contains("no_world")) throw std::runtime_error(report->at("no_world").get<std::string>());
    VectorOutcome outcome{report->at("passed").get<bool>(),
                          report->at("message").get<std::string>(),
                          report->at("simulated_ns").get<std::uint64_t>(),
                          report->at("set_up_ns").get<std::uint64_t>(),
                          report->at("cycles").get<std::uint64_t>(),
                          report->at("failed_ns").get<std::uint64_t>(),
                          report->at("stopped").get<bool>(),
                          report->at("malformed").get<bool>(),
                          report->at("wall_seconds").get<double>()};
    if (outcome.stopped) process_.stop();
    return outcome;
  }

 private:
  void work(JsonChannel& parent) const {
    try {
      run_some(vectors_, options_, next_, step_, [&](std::size_t, const VectorOutcome& outcome) {
        parent.send({{"passed", outcome.passed},
                     {"message", outcome.message},
                     {"simulated_ns", outcome.simulated_ns},
                     {"set_up_ns", outcome.set_up_ns},
                     {"cycles", outcome.cycles},
                     {"failed_ns", outcome.failed_ns},
                     {"stopped", outcome.stopped},
                     {"malformed", outcome.malformed},
                     {"wall_seconds", outcome.wall_seconds}});
      });
    } catch (const std::exception& error) {
      parent.send({{"no_world", error.what()}});
    }
  }

  const std::vector<Vector>& vectors_;
  const WorldOptions& options_;
  std::size_t next_;
  const std::size_t step_;
  JsonProcess process_;
};

}  // namespace

void run_vectors(const std::vector<Vector>& vectors, const WorldOptions& options, unsigned jobs,
                 const VectorDone& done) {
  if (vectors.size() <= 1) return run_some(vectors, options, 0, 1, done);
  catch_interrupts();
  const std::size_t count = std::min<std::size_t>(std::max(1u, jobs), vectors.size());
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::size_t i = 0; i < count; ++i) workers.push_back(std::make_unique<Worker>(vectors, options, i, count));
  for (std::size_t i = 0; i < vectors.size() && !interrupted(); ++i) done(i, workers[i % count]->next());
}

}  // namespace rnic::testbench
