#include "testbench/worker_thread.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

using rnic::testbench::WorkerThread;

TEST_CASE("a job is done once for each start, with what was written before it, and what it wrote is there after join") {
  std::uint64_t asked = 0, seen = 0, runs = 0;
  WorkerThread worker([&] {
    seen = asked;
    ++runs;
  });
  for (std::uint64_t i = 1; i <= 100'000; ++i) {
    asked = i;
    worker.start();
    if (i % 7 == 0) std::this_thread::yield();
    worker.join();
    REQUIRE(seen == i);
    REQUIRE(runs == i);
  }
  worker.join();
  CHECK(runs == 100'000);
}

TEST_CASE("jobs of one thread never overlap, with far more threads than cores") {
  constexpr std::size_t kThreads = 32;
  std::vector<std::uint64_t> runs(kThreads);
  std::vector<std::atomic<int>> inside(kThreads);
  std::atomic<int> overlaps{0};
  std::vector<std::unique_ptr<WorkerThread>> workers;
  for (std::size_t i = 0; i < kThreads; ++i)
    workers.push_back(std::make_unique<WorkerThread>([&, i] {
      if (inside[i]++ != 0) ++overlaps;
      ++runs[i];
      --inside[i];
    }));
  for (int round = 0; round < 500; ++round) {
    for (auto& worker : workers) worker->start();
    for (auto& worker : workers) worker->join();
  }
  CHECK(overlaps == 0);
  CHECK(runs == std::vector<std::uint64_t>(kThreads, 500));
}

TEST_CASE("a job that its thread has not begun is done by whoever joins") {
  // The thread sleeps after it has looked for so long without work; a thread that sleeps takes far longer to begin than
  // to ask for its work back, so of many jobs some are done here.
  std::vector<std::thread::id> by;
  WorkerThread worker([&] { by.push_back(std::this_thread::get_id()); });
  const auto done_here = [&] { return std::count(by.begin(), by.end(), std::this_thread::get_id()); };
  for (int i = 0; i < 1000 && done_here() == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    worker.start();
    worker.join();
  }
  CHECK(done_here() > 0);
}

TEST_CASE("a worker ends with a job that was started and not joined") {
  bool done = false;
  {
    WorkerThread worker([&] { done = true; });
    worker.start();
  }
  CHECK(done);
}
