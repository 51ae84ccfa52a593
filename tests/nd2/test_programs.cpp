#include <catch2/catch.hpp>

#include <csignal>
#include <fstream>

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

TEST_CASE("a program registers 2 GiB") {
  Tool tool;
  const auto outcome = tool.run({"exec", "--", RNIC_PROGRAM, "large", "10.0.0.1"});
  INFO(outcome.output);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.output, "registered 2147483648 bytes\n"));
  CHECK(contains(outcome.output, "left 0\n"));
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

TEST_CASE("eight threads on one adapter: each connects, sends and parts; and eight on one completion queue") {
  Tool tool;
  const auto each = tool.run({"exec", "--", RNIC_STRESS, "threads", "10.0.0.1", "3"});
  INFO(each.output);
  CHECK(each.code == 0);
  CHECK(contains(each.output, "24 connections\n"));
  CHECK_FALSE(contains(each.output, "stays"));
  const auto shared = tool.run({"exec", "--", RNIC_STRESS, "queue", "10.0.0.1", "20"});
  INFO(shared.output);
  CHECK(shared.code == 0);
  CHECK(contains(shared.output, "320 results\n"));
  CHECK_FALSE(contains(shared.output, "stays"));
}

TEST_CASE("a program has 16 Ki regions, or as many as the machine file allows") {
  Tool tool;
  const std::string file = tool.folder() + "/m.toml";
  std::ofstream(file) << "[quota]\nmemory_regions = 100\n";
  const auto without = tool.run({"exec", "--", RNIC_STRESS, "regions", "10.0.0.1", "20000"});
  const auto with = tool.run({"exec", file, "--", RNIC_STRESS, "regions", "10.0.0.1", "20000"});
  for (const auto& [outcome, said] :
       {std::pair(without, "16384 regions, then 0xc000009a\n"), std::pair(with, "100 regions, then 0xc000009a\n")}) {
    INFO(outcome.output);
    CHECK(outcome.code == 0);
    CHECK(contains(outcome.output, said));
    CHECK_FALSE(contains(outcome.output, "stays"));
  }
}
