#include <catch2/catch.hpp>

#include <csignal>
#include <fstream>

#include "tests/nd2/program_runs.hpp"

using namespace rnic::test;

// Programs of NetworkDirect in processes of their own: docs/nd2.md.

TEST_CASE("a program finds the adapter of its host, with the limits that it shows") {
  const auto output = passes({"exec", "--host", "1", "--", RNIC_PROGRAM, "info"});
  CHECK(contains(output, "address 10.0.0.2\n"));
  CHECK(contains(output, "address fe80::ff:fe00:2\n"));
  CHECK(contains(output, "caller 56 callee 148 sge 16 inline 224 reads 16 16 depth 32768 32768"));
  CHECK(contains(output, "flags 0x10101\n"));
  CHECK(contains(output, "left 0\n"));
}

TEST_CASE("a program registers 2 GiB") {
  const auto output = passes({"exec", "--", RNIC_PROGRAM, "large", "10.0.0.1"});
  CHECK(contains(output, "registered 2147483648 bytes\n"));
  CHECK(contains(output, "left 0\n"));
}

TEST_CASE("overlapped operations complete for a program that only asks") {
  const auto output = passes({"exec", "--nic", "model", "--", RNIC_PROGRAM, "polls", "10.0.0.1"});
  for (const auto& way : kPolls) CHECK(contains(output, way + ": done\n"));
  CHECK(contains(output, "left 0\n"));
}

TEST_CASE("a program with no machine has no adapters") {
  const auto alone = run({"exec", "--", "env", "-u", "RNIC_HOST", RNIC_PROGRAM, "info"});
  CHECK(alone.code == 3);
  CHECK(contains(alone.output, "no addresses"));
  const auto lost = run({"exec", "--", "env", "RNIC_HOST=/nowhere", RNIC_PROGRAM, "info"});
  CHECK(lost.code == 3);
  CHECK(contains(lost.output, "librnic_nd2: host /nowhere: "));
}

TEST_CASE("two programs connect, exchange messages, wait by events and ports, and part") {
  const auto output =
      passes({"exec", "--pair", "--", RNIC_PROGRAM, "server", "10.0.0.1", "--", RNIC_PROGRAM, "client", "10.0.0.1"});
  CHECK(contains(output, "got hello, 64 bytes\n"));
  CHECK(contains(output, "got hello yourself, 64 bytes\n"));
  CHECK(contains(output, "the peer has gone\n"));
}

TEST_CASE("eight threads on one adapter: each connects, sends and parts; and eight on one completion queue") {
  const auto each = passes({"exec", "--", RNIC_STRESS, "threads", "10.0.0.1", "3"});
  CHECK(contains(each, "24 connections\n"));
  const auto shared = passes({"exec", "--", RNIC_STRESS, "queue", "10.0.0.1", "20"});
  CHECK(contains(shared, "320 results\n"));
}

// RNIC_CONNECTIONS=number: so many instead of some hundreds.
TEST_CASE("connections that come and go on one pair of hosts, eight under way at any time: none fails") {
  const char* const wanted = std::getenv("RNIC_CONNECTIONS");
  const std::string count = wanted != nullptr ? wanted : "500";
  const auto output = passes(Words{"exec", "--nic", "model", "--pair"} +
                             Words{"--", RNIC_CONNECTIONS_PROGRAM, "server", "10.0.0.1", count} +
                             Words{"--", RNIC_CONNECTIONS_PROGRAM, "client", "10.0.0.1", count});
  CHECK(contains(output, count + " connections\n"));
}

TEST_CASE("a program unmaps a buffer that is registered: requests fail, and Deregister takes the region back") {
  const auto output = passes({"exec", "--nic", "model", "--", RNIC_STRESS, "unmapped", "10.0.0.1", "0"});
  CHECK(contains(output, "a Send of it: 0xc00000e5\n"));  // ND_INTERNAL_ERROR
}

TEST_CASE("a program has 16 Ki regions, or as many as the machine file allows") {
  Tool tool;
  const std::string file = tool.folder() + "/m.toml";
  std::ofstream(file) << "[quota]\nmemory_regions = 100\n";
  const auto output = passes({"exec", "--", RNIC_STRESS, "regions", "10.0.0.1", "20000"});
  CHECK(contains(output, "16384 regions, then 0xc000009a\n"));
  const auto said = passes({"exec", file, "--", RNIC_STRESS, "regions", "10.0.0.1", "20000"});
  CHECK(contains(said, "100 regions, then 0xc000009a\n"));
}
