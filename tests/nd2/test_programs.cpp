#include <catch2/catch.hpp>

#include <csignal>

#include "tests/server/tool.hpp"

using rnic::test::contains;
using rnic::test::Tool;

// Programs of NetworkDirect in processes of their own: docs/nd2.md.

TEST_CASE("a program finds the adapter of its host, with the limits that it shows") {
  Tool tool;
  const auto outcome = tool.run({"exec", "--host", "1", "--", RNIC_PROGRAM, "info"});
  INFO(outcome.output);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.output, "address 10.0.0.2\n"));
  CHECK(contains(outcome.output, "address fe80::ff:fe00:2\n"));
  CHECK(contains(outcome.output, "caller 56 callee 148 sge 16 inline 224 reads 16 16 depth 32768 32768"));
  CHECK(contains(outcome.output, "flags 0x10101\n"));
  CHECK(contains(outcome.output, "left 0\n"));
  CHECK_FALSE(contains(outcome.output, "stays"));
}

TEST_CASE("a program with no machine has no adapters") {
  Tool tool;
  const auto alone = tool.run({"exec", "--", "env", "-u", "RNIC_HOST", RNIC_PROGRAM, "info"});
  CHECK(alone.code == 3);
  CHECK(contains(alone.output, "no addresses"));
  const auto lost = tool.run({"exec", "--", "env", "RNIC_HOST=/nowhere", RNIC_PROGRAM, "info"});
  CHECK(lost.code == 3);
  CHECK(contains(lost.output, "librnic_nd2: host /nowhere: "));
}

TEST_CASE("two programs connect, exchange messages, wait by events and ports, and part") {
  Tool tool;
  const auto outcome =
      tool.run({"exec", "--pair", "--", RNIC_PROGRAM, "server", "10.0.0.1", "--", RNIC_PROGRAM, "client", "10.0.0.1"});
  INFO(outcome.output);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.output, "got hello, 64 bytes\n"));
  CHECK(contains(outcome.output, "got hello yourself, 64 bytes\n"));
  CHECK(contains(outcome.output, "the peer has gone\n"));
  CHECK_FALSE(contains(outcome.output, "stays"));
}
