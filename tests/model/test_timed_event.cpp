// Among what is due at the same time: events in the order of their construction, then, when all that follows from them
// has happened, threads in the order in which they went to sleep (model/timed_event.hpp). Nothing else that is pending
// may matter.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/random.hpp"
#include "model/timed_event.hpp"
#include "testbench/app_runner.hpp"

using namespace rnic::model;

namespace {

rnic::testbench::AppRunner& runner() {
  static rnic::testbench::AppRunner instance("runner");
  return instance;
}

void run() { runner().run(sc_core::sc_time(100, sc_core::SC_MS)); }

/// An event, and what follows from it.
class Listener {
 public:
  explicit Listener(std::function<void()> body) {
    sc_core::sc_spawn_options options;
    options.spawn_method();
    options.dont_initialize();
    options.set_sensitivity(&timed.event());
    method_ = sc_core::sc_spawn(std::move(body), sc_core::sc_gen_unique_name("listener"), &options);
  }
  ~Listener() { method_.kill(); }

  TimedEvent timed;

 private:
  sc_core::sc_process_handle method_;
};

using Log = std::vector<std::pair<std::string, Picoseconds>>;

}  // namespace

TEST_CASE("Events that are due together happen in the order of their construction") {
  std::vector<int> log;
  Listener first([&log] { log.push_back(1); });
  Listener second([&log] { log.push_back(2); });
  Listener third([&log] { log.push_back(3); });
  runner().add("test", [&] {
    const Picoseconds start = now_ps(), together = start + 1000;
    third.timed.notify_at(together);
    first.timed.notify_at(together);
    wait_until(start + 400);
    second.timed.notify_at(together);
    wait_until(together + 1);
  });
  run();
  CHECK(log == std::vector{1, 2, 3});
}

TEST_CASE("Any notifications: each event at the earliest time it was told since it last happened") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    Random random(seed, "timed events");
    constexpr std::size_t kEvents = 12;
    std::vector<std::pair<Picoseconds, std::size_t>> log, expected;
    std::vector<std::unique_ptr<Listener>> events;
    for (std::size_t i = 0; i < kEvents; ++i) {
      events.push_back(std::make_unique<Listener>([&log, i] { log.emplace_back(now_ps(), i); }));
    }
    runner().add("test", [&] {
      const Picoseconds start = now_ps();
      std::vector<std::optional<Picoseconds>> due(kEvents);
      const auto happen = [&](Picoseconds now) {
        std::vector<std::pair<Picoseconds, std::size_t>> past;
        for (std::size_t i = 0; i < kEvents; ++i) {
          if (due[i] && *due[i] <= now) past.emplace_back(*std::exchange(due[i], std::nullopt), i);
        }
        std::sort(past.begin(), past.end());
        expected.insert(expected.end(), past.begin(), past.end());
      };
      // What is due in steps of 100 ps meets often; what the test does lies between.
      for (Picoseconds now = start + 50; now < start + 5000; now += 100 * (1 + random.below(3))) {
        wait_until(now);
        happen(now);
        for (std::uint64_t many = random.below(8); many > 0; --many) {
          const std::size_t i = random.below(kEvents);
          if (random.below(8) == 0) {
            events[i]->timed.cancel();
            due[i].reset();
            continue;
          }
          const Picoseconds time = now + 50 + 100 * random.below(6);
          events[i]->timed.notify_at(time);
          due[i] = due[i] ? std::min(*due[i], time) : time;
        }
      }
      wait_until(start + 10'000);
      happen(start + 10'000);
    });
    run();
    REQUIRE(expected.size() > 30);
    CHECK(log == expected);
  }
}

TEST_CASE("Threads wake when all that follows from events of their time has happened") {
  std::vector<std::string> log;
  Listener early([&log] { log.emplace_back("constructed first, notified last"); });
  Listener late([&] {
    log.emplace_back("event");
    early.timed.notify_at(now_ps());
  });
  runner().add("test", [&] {
    const Picoseconds time = now_ps() + 1000;
    late.timed.notify_at(time);
    wait_until(time);
    log.emplace_back("thread");
  });
  run();
  CHECK(log == std::vector<std::string>{"event", "constructed first, notified last", "thread"});
}

namespace {

/// Three threads that go to sleep in the order 3, 2, 1, twice, each time until the same time: numbers as they wake.
/// `spawn` starts a thread.
std::vector<int> waking_order(const std::function<void(int, std::function<void()>)>& spawn) {
  std::vector<int> log;
  for (const int number : {1, 2, 3}) {
    spawn(number, [&log, number] {
      const Picoseconds start = now_ps();
      for (const Picoseconds time : {Picoseconds{1000}, Picoseconds{2000}}) {
        wait_until(start + time - 100 * static_cast<Picoseconds>(number));
        wait_until(start + time);
        log.push_back(number);
      }
    });
  }
  run();
  return log;
}

}  // namespace

TEST_CASE("Threads wake in the order of their ranks, whenever they went to sleep") {
  // Applications have ranks, in the order in which they were added.
  const auto spawn = [](int number, std::function<void()> body) {
    runner().add("thread " + std::to_string(number), std::move(body));
  };
  CHECK(waking_order(spawn) == std::vector{1, 2, 3, 1, 2, 3});
}

TEST_CASE("Threads of one rank wake in the order in which they went to sleep") {
  std::vector<std::function<void()>> bodies;
  const auto spawn = [&](int number, std::function<void()> body) {
    bodies.push_back(std::move(body));
    if (number != 3) return;
    runner().add("spawns", [&bodies] {
      for (const auto& one : bodies) sc_core::sc_spawn([&one] { one(); });
      wait_until(now_ps() + 3000);
    });
  };
  CHECK(waking_order(spawn) == std::vector{3, 2, 1, 3, 2, 1});
}

TEST_CASE("A sleep ends with the event it waits for, and its time means nothing any more") {
  sc_core::sc_event event;
  Log log;
  Picoseconds start{};
  runner().add("sleeper", [&] {
    start = now_ps();
    wait_until(start + 1000, event);
    log.emplace_back("event", now_ps());
    wait_until(start + 3000, event);
    log.emplace_back("time", now_ps());
    wait_until(start + 3000);
    wait_until(start + 10, event);
    log.emplace_back("past", now_ps());
  });
  runner().add("waker", [&] {
    wait_until(start + 500);
    event.notify();
  });
  run();
  CHECK(log == Log{{"event", start + 500}, {"time", start + 3000}, {"past", start + 3000}});
}

TEST_CASE("A thread that is killed asleep, and an event that is gone, are forgotten") {
  Picoseconds start{}, woken{};
  auto gone = std::make_unique<Listener>([] { FAIL("It is gone"); });
  runner().add("test", [&] {
    start = now_ps();
    sc_core::sc_spawn_options options;
    auto victim = sc_core::sc_spawn(
        [&] {
          wait_until(start + 1000);
          FAIL("It was killed");
        },
        sc_core::sc_gen_unique_name("victim"), &options);
    gone->timed.notify_at(start + 1000);
    wait_until(start + 500);
    victim.kill();
    gone.reset();
    wait_until(start + 2000);
    woken = now_ps();
  });
  run();
  CHECK(woken == start + 2000);
}

TEST_CASE("Times beyond the end of time are the end of time") {
  runner().add("test", [] {
    CHECK(time_in(5) == now_ps() + 5);
    CHECK(time_in(~Picoseconds{0}) == ~Picoseconds{0});
  });
  run();
}
