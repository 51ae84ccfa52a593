// The examples in two processes through `rnic exec` (docs/examples.md).
#include <catch2/catch.hpp>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "tests/server/tool.hpp"

using rnic::test::contains;
using rnic::test::Tool;

namespace {

std::string example(const std::string& name) { return std::string(RNIC_EXAMPLES) + "/" + name; }

/// Both sides of an example with the same options; what they print.
std::string run_pair(const std::string& name, const std::vector<std::string>& options) {
  std::vector<std::string> words = {"exec", "--pair"};
  for (const char* const role : {"server", "client"}) {
    words.insert(words.end(), {"--", example(name), role, "10.0.0.1"});
    words.insert(words.end(), options.begin(), options.end());
  }
  Tool tool;
  const auto outcome = tool.run(words);
  INFO(outcome.output);
  CHECK(outcome.code == 0);
  return outcome.output;
}

/// Numbers of the last line of the table that the client prints, from column `first` on.
std::vector<double> numbers_of(const std::string& output, unsigned first) {
  std::istringstream lines(output);
  std::vector<double> numbers;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("client |", 0) != 0) continue;
    numbers.clear();
    std::istringstream words(line.substr(8));
    std::string word;
    for (unsigned i = 0; words >> word; ++i) {
      if (i >= first) numbers.push_back(std::strtod(word.c_str(), nullptr));
    }
  }
  return numbers;
}

}  // namespace

TEST_CASE("nd_info says what the adapter can") {
  Tool tool;
  const auto outcome = tool.run({"exec", "--", example("nd_info")});
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.output, "10.0.0.1\n"));
  CHECK(contains(outcome.output, "MaxCallerData                56\n"));
  CHECK(contains(outcome.output, "flags                        in-order-dma cq-resize loopback\n"));
}

TEST_CASE("nd_pingpong measures Sends, and Writes by spinning on memory") {
  const std::vector<std::string> way = GENERATE(std::vector<std::string>{}, std::vector<std::string>{"--write"});
  std::vector<std::string> options = {"--size", "64", "--count", "30"};
  options.insert(options.end(), way.begin(), way.end());
  const auto numbers = numbers_of(run_pair("nd_pingpong", options), 0);
  REQUIRE(numbers.size() == 7);
  CHECK(numbers[0] == 64);
  CHECK(numbers[1] == 30);
  // Shortest, median, 99 %, longest.
  CHECK(numbers[2] > 0.1);
  CHECK(numbers[2] <= numbers[3]);
  CHECK(numbers[3] <= numbers[5]);
  CHECK(numbers[5] <= numbers[6]);
}

TEST_CASE("nd_bandwidth reads and writes through a window") {
  const std::vector<std::string> way = GENERATE(std::vector<std::string>{}, std::vector<std::string>{"--write"});
  std::vector<std::string> options = {"--size", "16384", "--count", "40"};
  options.insert(options.end(), way.begin(), way.end());
  const auto numbers = numbers_of(run_pair("nd_bandwidth", options), 1);
  REQUIRE(numbers.size() == 4);
  CHECK(numbers[1] == 40);
  // No faster than the wire of 100 Gbit/s.
  CHECK(numbers[2] > 1);
  CHECK(numbers[2] < 12'500);
}

TEST_CASE("nd_connect counts connections") {
  const auto numbers = numbers_of(run_pair("nd_connect", {"--count", "10"}), 0);
  REQUIRE(numbers.size() == 3);
  CHECK(numbers[0] == 10);
  CHECK(numbers[2] > 1);
}

TEST_CASE("nd_storage opens memory for as long as a request takes") {
  const auto numbers = numbers_of(run_pair("nd_storage", {"--size", "4096", "--count", "40", "--depth", "4"}), 0);
  REQUIRE(numbers.size() == 9);
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
  Tool tool;
  const auto outcome = tool.run({"exec", "--", example("nd_register"), "10.0.0.1", "--count", "5"});
  INFO(outcome.output);
  CHECK(outcome.code == 0);
  for (const char* const bytes : {"      4096 ", "     65536 ", "   1048576 ", "   4194304 "})
    CHECK(contains(outcome.output, bytes));
}

TEST_CASE("wrong words and a machine that is not there are told of") {
  Tool tool;
  const auto words = tool.run({"exec", "--", example("nd_pingpong"), "both", "10.0.0.1"});
  CHECK(words.code == 2);
  CHECK(contains(words.output, "role"));
  const auto rounds = tool.run({"exec", "--", example("nd_register"), "10.0.0.1", "--count", "0"});
  CHECK(rounds.code == 2);
  CHECK(contains(rounds.output, "--count"));
  const auto server = tool.run({"exec", "--", example("nd_storage"), "client", "10.0.0.2"});
  CHECK(server.code == 1);
  CHECK(contains(server.output, "Connect: status 0xc0000236\n"));  // ND_CONNECTION_REFUSED
  const auto nobody = tool.run({"exec", "--", example("nd_bandwidth"), "client", "10.0.0.9"});
  CHECK(nobody.code == 1);
  CHECK(contains(nobody.output, "Connect: status 0xc000023d\n"));  // ND_HOST_UNREACHABLE
  const auto address = tool.run({"exec", "--", example("nd_register"), "nowhere"});
  CHECK(address.code == 1);
  CHECK(contains(address.output, "nowhere is no IPv4 address"));
  const auto alone = tool.run({"exec", "--", "env", "-u", "RNIC_HOST", example("nd_info")});
  CHECK(alone.code == 1);
  CHECK(contains(alone.output, "no adapter"));
}
