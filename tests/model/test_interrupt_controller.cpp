#include <catch2/catch.hpp>
#include <stdexcept>

#include "model/interrupt_controller.hpp"
#include "testbench/app_runner.hpp"

using rnic::model::InterruptController;
using namespace sc_core;

namespace {

rnic::testbench::AppRunner& runner() {
  static rnic::testbench::AppRunner instance("runner");
  return instance;
}

}  // namespace

TEST_CASE("a signal before the wait counts, several count once") {
  InterruptController controller(4);
  runner().add("wait", [&] {
    controller.signal(InterruptController::data(2));
    controller.signal(InterruptController::data(2));
    const sc_time start = sc_time_stamp();
    CHECK(controller.wait(2, sc_time(1, SC_US)));
    CHECK(sc_time_stamp() == start);
    CHECK_FALSE(controller.wait(2, sc_time(1, SC_US)));
    CHECK(sc_time_stamp() == start + sc_time(1, SC_US));
    CHECK_FALSE(controller.wait(3, SC_ZERO_TIME));
  });
  runner().run(sc_time(1, SC_MS));
  CHECK(controller.count(2) == 2);
}

TEST_CASE("a signal wakes all that wait for its vector at once, and nobody else") {
  InterruptController controller(4);
  int woken = 0;
  const sc_time start = sc_time_stamp();
  for (int i = 0; i < 3; ++i) {
    runner().add("waiter", [&] {
      CHECK(controller.wait(1, sc_time(10, SC_US)));
      CHECK(sc_time_stamp() == start + sc_time(3, SC_US));
      ++woken;
    });
  }
  runner().add("other", [&] { CHECK_FALSE(controller.wait(0, sc_time(10, SC_US))); });
  runner().add("device", [&] {
    wait(sc_time(3, SC_US));
    controller.signal(1);
    wait(sc_time(1, SC_US));
    CHECK_FALSE(controller.take(1));
  });
  runner().run(sc_time(1, SC_MS));
  CHECK(woken == 3);
}

TEST_CASE("messages and waits for vectors that do not exist") {
  InterruptController controller(4);
  controller.signal(4);
  CHECK(controller.spurious() == 1);
  CHECK_THROWS_AS(controller.take(4), std::out_of_range);
  controller.signal(1);
  controller.clear();
  CHECK_FALSE(controller.take(1));
  CHECK(controller.spurious() == 0);
}
