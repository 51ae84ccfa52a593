#include "testbench/side_by_side.hpp"

#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "testbench/app_runner.hpp"

using namespace rnic::testbench;
using namespace sc_core;

namespace {

AppRunner& runner() {
  static AppRunner instance("runner");
  return instance;
}

void nanoseconds(int count) { wait(sc_time(count, SC_NS)); }

}  // namespace

TEST_CASE("tasks run beside each other, begin in their order, and all have ended when the call returns") {
  std::vector<std::string> log;
  runner().add("app", [&] {
    std::vector<std::function<void()>> tasks;
    for (int i = 0; i < 4; ++i) {
      tasks.emplace_back([&log, i] {
        log.push_back("begin " + std::to_string(i));
        nanoseconds(40 - 10 * i);
        log.push_back("end " + std::to_string(i));
      });
    }
    const sc_time start = sc_time_stamp();
    side_by_side(tasks);
    CHECK(sc_time_stamp() - start == sc_time(40, SC_NS));
    CHECK(log ==
          std::vector<std::string>{"begin 0", "begin 1", "begin 2", "begin 3", "end 3", "end 2", "end 1", "end 0"});
  });
  runner().run(sc_time(1, SC_US));
}

TEST_CASE("no more of them run at a time than asked for") {
  int running = 0, most = 0, ended = 0;
  runner().add("app", [&] {
    const std::function<void()> task = [&] {
      most = std::max(most, ++running);
      nanoseconds(10);
      --running, ++ended;
    };
    side_by_side(std::vector(10, task), 3);
  });
  runner().run(sc_time(1, SC_US));
  CHECK(most == 3);
  CHECK(ended == 10);
}

TEST_CASE("the first failure comes out after those under way have ended; the rest does not begin") {
  int ended = 0;
  runner().add("app", [&] {
    const std::function<void()> slow = [&] { nanoseconds(50), ++ended; };
    const std::function<void()> fails = [&] {
      nanoseconds(10);
      throw std::runtime_error("broken");
    };
    CHECK_THROWS_WITH(side_by_side({slow, fails, slow, slow, slow}, 3), "broken");
    CHECK(ended == 2);
  });
  runner().run(sc_time(1, SC_US));
}

TEST_CASE("tasks may have tasks of their own") {
  int ended = 0;
  runner().add("app", [&] {
    const std::function<void()> inner = [&] { nanoseconds(10), ++ended; };
    const std::function<void()> outer = [&] { side_by_side({inner, inner}); };
    const sc_time start = sc_time_stamp();
    side_by_side({outer, outer});
    CHECK(sc_time_stamp() - start == sc_time(10, SC_NS));
  });
  runner().run(sc_time(1, SC_US));
  CHECK(ended == 4);
}

TEST_CASE("where no time can pass they run one by one") {
  std::vector<int> log;
  side_by_side({[&] { log.push_back(1); }, [&] { log.push_back(2); }});
  CHECK(log == std::vector{1, 2});
}

// SystemC 2.3.4 does not tell AddressSanitizer whose stack is in use when a thread has ended: frames of this caller
// that an exception has left count as such no more, and what comes to lie there is reported.
#ifndef __SANITIZE_ADDRESS__
TEST_CASE("a caller that is unwound takes its tasks along") {
  int unwound = 0;
  struct Witness {
    int& count;
    ~Witness() { count += sc_is_unwinding() ? 1 : 0; }
  };
  runner().add("app", [&] {
    const std::function<void()> waits = [&] {
      const Witness witness{unwound};
      wait(sc_time(1, SC_SEC));
      FAIL("was not stopped");
    };
    side_by_side({waits, waits});
  });
  runner().add("throws", [] {
    nanoseconds(5);
    throw std::runtime_error("broken");
  });
  CHECK_THROWS_WITH(runner().run(sc_time(1, SC_US)), "broken");
  CHECK(unwound == 2);
}
#endif
