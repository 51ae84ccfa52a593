#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "testbench/app_runner.hpp"

using namespace rnic::testbench;
using namespace sc_core;
using Catch::Matchers::Contains;

namespace {

AppRunner& runner() {
  static AppRunner instance("runner");
  return instance;
}

/// Says when its scope was unwound.
struct Witness {
  explicit Witness(bool& unwound) : flag(unwound) {}
  ~Witness() { flag = sc_is_unwinding(); }
  bool& flag;
};

}  // namespace

TEST_CASE("applications run side by side in simulated time and start in the order they were added") {
  std::vector<std::string> log;
  for (const char* name : {"a", "b"}) {
    runner().add(name, [&log, name] {
      for (int i = 0; i < 3; ++i) {
        log.push_back(name + std::to_string(i));
        wait(sc_time(10, SC_NS));
      }
    });
  }
  const sc_time start = sc_time_stamp();
  runner().run(sc_time(1, SC_US));
  CHECK(sc_time_stamp() - start == sc_time(30, SC_NS));
  CHECK(log == std::vector<std::string>{"a0", "b0", "a1", "b1", "a2", "b2"});
  runner().run(sc_time(1, SC_US));  // nothing to run
  CHECK(log.size() == 6);
}

TEST_CASE("the first exception comes out of run; the others are unwound") {
  bool unwound = false;
  runner().add("waits", [&] {
    const Witness witness(unwound);
    wait(sc_time(1, SC_SEC));
    FAIL("was not stopped");
  });
  runner().add("throws", [] {
    wait(sc_time(5, SC_NS));
    throw std::runtime_error("broken");
  });
  CHECK_THROWS_WITH(runner().run(sc_time(1, SC_US)), "broken");
  CHECK(unwound);
}

TEST_CASE("time is limited, and the message names who has not ended") {
  bool unwound = false;
  runner().add("quick", [] {});
  runner().add("slow", [&] {
    const Witness witness(unwound);
    wait(sc_time(1, SC_SEC));
  });
  runner().add("deaf", [] {
    sc_event never;
    wait(never);
  });
  const sc_time start = sc_time_stamp();
  CHECK_THROWS_WITH(runner().run(sc_time(7, SC_US)), Contains("7 us") && Contains("slow, deaf") && !Contains("quick"));
  CHECK(sc_time_stamp() - start == sc_time(7, SC_US));
  CHECK(unwound);
}

TEST_CASE("a run after a failed one starts clean; time can pass without applications") {
  int ran = 0;
  runner().add("fine", [&] { ++ran; });
  runner().run(sc_time(1, SC_US));
  CHECK(ran == 1);
  const sc_time start = sc_time_stamp();
  runner().idle(sc_time(3, SC_US));
  CHECK(sc_time_stamp() - start == sc_time(3, SC_US));
  CHECK(ran == 1);
}
