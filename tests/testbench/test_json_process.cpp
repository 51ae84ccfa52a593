// A child process that is given JSON values and answers with some: whatever way it ends, its parent hears of it.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "testbench/json_process.hpp"

using nlohmann::json;
using rnic::testbench::JsonChannel;
using rnic::testbench::JsonProcess;

TEST_CASE("values come in order, of any size, whatever is in them") {
  JsonProcess process([](JsonChannel& parent) {
    while (const auto value = parent.receive()) parent.send({{"got", *value}});
  });
  process.start();
  for (int i = 0; i < 3; ++i) REQUIRE(process.child().send(i));
  for (int i = 0; i < 3; ++i) CHECK(process.child().receive() == json{{"got", i}});
  const std::string text(200'000, '\n');
  REQUIRE(process.child().send(text));
  CHECK(process.child().receive() == json{{"got", text}});
  REQUIRE(process.child().send("\xff is no UTF-8"));
  CHECK(process.child().receive() == json{{"got", "\xef\xbf\xbd is no UTF-8"}});
  CHECK(process.wait() == "has ended with exit code 0");
}

TEST_CASE("a process that ends is told of, and another one can be started") {
  JsonProcess process([](JsonChannel& parent) {
    const json order = parent.receive().value();
    if (order == "throw") throw std::runtime_error("it fails");
    if (order == "die") std::raise(SIGKILL);
    if (order == "leave") _exit(7);
    parent.send(order);
  });
  CHECK(process.wait().empty());
  for (const auto& [order, end] : {std::array<std::string, 2>{"throw", "has ended with exit code 1"},
                                   {"die", "was ended by a signal (Killed)"},
                                   {"leave", "has ended with exit code 7"},
                                   {"answer", "has ended with exit code 0"}}) {
    INFO(order);
    process.start();
    process.start();  // it runs: nothing happens
    REQUIRE(process.child().send(order));
    const auto value = process.child().receive();
    CHECK(value.has_value() == (order == "answer"));
    // A value that nobody takes is no signal for the process that sends it.
    if (order != "answer") CHECK_FALSE(process.child().send(order));
    CHECK(process.wait() == end);
  }
}

TEST_CASE("half a line of a process that has ended is no value") {
  std::array<int, 2> ends{};
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  JsonChannel channel(ends[0]);
  REQUIRE(write(ends[1], "{\"whole\": 1}\n{\"half", 19) == 19);
  close(ends[1]);
  CHECK(channel.receive() == json{{"whole", 1}});
  CHECK_FALSE(channel.receive());
}

TEST_CASE("a process that would never end is stopped") {
  JsonProcess process([](JsonChannel&) {
    for (;;) pause();
  });
  process.start();
  process.stop();
  CHECK(process.wait().empty());
}
