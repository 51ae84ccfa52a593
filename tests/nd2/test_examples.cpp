// The examples in two processes through `rnic exec` (docs/examples.md).
#include <catch2/catch.hpp>

#include <string>

#include "tests/nd2/program_runs.hpp"

using namespace rnic::test;

namespace {

std::string example(const std::string& name) { return std::string(RNIC_EXAMPLES) + "/" + name; }

/// Both sides of an example with the same options; what they print.
std::string run_pair(const std::string& name, const Words& options) {
  return passes(Words{"exec", "--pair"} + pair_of(example(name), options));
}

}  // namespace

TEST_CASE("nd_info says what the adapter can") {
  const auto output = passes({"exec", "--", example("nd_info")});
  CHECK(contains(output, "10.0.0.1\n"));
  CHECK(contains(output, "MaxCallerData                56\n"));
  CHECK(contains(output, "flags                        in-order-dma cq-resize loopback\n"));
}

TEST_CASE("nd_ping has each ping back") {
  const auto output = run_pair("nd_ping", {"--size", "5000", "--count", "3"});
  for (int ping = 1; ping <= 3; ++ping)
    CHECK(contains(output, "client | 5000 bytes from 10.0.0.1: ping " + std::to_string(ping) + ", "));
  const auto row = row_of(output, "client |      bytes      pings  came back       min us", 6);
  CHECK(row[0] == 5000);
  CHECK(row[1] == 3);
  CHECK(row[2] == 3);
  CHECK(row[3] > 0.2);
  CHECK(row[3] <= row[4]);
  CHECK(row[4] <= row[5]);
}

TEST_CASE("nd_pingpong measures Sends, and Writes by spinning on memory") {
  const Words way = GENERATE(Words{}, Words{"--write"});
  const auto numbers = row_of(run_pair("nd_pingpong", Words{"--size", "64", "--count", "30"} + way),
                              "client |      bytes     rounds       min us    median us", 7);
  CHECK(numbers[0] == 64);
  CHECK(numbers[1] == 30);
  // Shortest, median, 99 %, longest.
  CHECK(numbers[2] > 0.1);
  CHECK(numbers[2] <= numbers[3]);
  CHECK(numbers[3] <= numbers[5]);
  CHECK(numbers[5] <= numbers[6]);
}

TEST_CASE("nd_bandwidth reads and writes through a window") {
  const Words way = GENERATE(Words{}, Words{"--write"});
  const auto numbers = row_of(run_pair("nd_bandwidth", Words{"--size", "16384", "--count", "40"} + way),
                              "client |  request      bytes   requests           MB/s    requests/ms", 4, 1);
  CHECK(numbers[1] == 40);
  // No faster than the wire of 100 Gbit/s.
  CHECK(numbers[2] > 1);
  CHECK(numbers[2] < 12'500);
}

TEST_CASE("nd_connect counts connections") {
  const auto numbers = row_of(run_pair("nd_connect", {"--count", "10"}), "client |  connections    us for each", 3);
  CHECK(numbers[0] == 10);
  CHECK(numbers[2] > 1);
}

TEST_CASE("nd_storage opens memory for as long as a request takes") {
  const auto numbers = row_of(run_pair("nd_storage", {"--size", "4096", "--count", "40", "--depth", "4"}),
                              "client |      bytes   requests  depth   requests/s", 9);
  CHECK(numbers[0] == 4096);
  CHECK(numbers[1] == 40);
  CHECK(numbers[2] == 4);
  CHECK(numbers[4] == Approx(numbers[3] * 4096 / 1e6).epsilon(0.02));
  // Shortest, median, 99 %: at least a way there, a Read, and a way back.
  CHECK(numbers[5] > 1);
  CHECK(numbers[5] <= numbers[6]);
  CHECK(numbers[6] <= numbers[8]);
}

TEST_CASE("nd_register measures four sizes") {
  const auto output = passes({"exec", "--", example("nd_register"), "10.0.0.1", "--count", "5"});
  for (const char* const bytes : {"      4096 ", "     65536 ", "   1048576 ", "   4194304 "})
    CHECK(contains(output, bytes));
}

TEST_CASE("wrong words and a machine that is not there are told of") {
  const auto words = run({"exec", "--", example("nd_pingpong"), "both", "10.0.0.1"});
  CHECK(words.code == 2);
  CHECK(contains(words.output, "role"));
  const auto rounds = run({"exec", "--", example("nd_register"), "10.0.0.1", "--count", "0"});
  CHECK(rounds.code == 2);
  CHECK(contains(rounds.output, "--count"));
  const auto server = run({"exec", "--", example("nd_storage"), "client", "10.0.0.2"});
  CHECK(server.code == 1);
  CHECK(contains(server.output, "Connect: ND_CONNECTION_REFUSED\n"));
  const auto nobody = run({"exec", "--", example("nd_bandwidth"), "client", "10.0.0.9"});
  CHECK(nobody.code == 1);
  CHECK(contains(nobody.output, "Connect: ND_HOST_UNREACHABLE\n"));
  const auto address = run({"exec", "--", example("nd_register"), "nowhere"});
  CHECK(address.code == 1);
  CHECK(contains(address.output, "nowhere is no IPv4 address"));
  const auto alone = run({"exec", "--", "env", "-u", "RNIC_HOST", example("nd_info")});
  CHECK(alone.code == 1);
  CHECK(contains(alone.output, "no adapter"));
}
