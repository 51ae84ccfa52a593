// Programs in one process in lockstep: the examples (docs/examples.md), and what `rnic lockstep` promises.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "tests/server/tool.hpp"

using rnic::test::contains;
using rnic::test::Outcome;
using rnic::test::Tool;

namespace {

using Words = std::vector<std::string>;

Words pair_of(const std::string& name, const Words& options) {
  Words words;
  for (const char* const role : {"server", "client"}) {
    words.insert(words.end(), {"--", name, role, "10.0.0.1"});
    words.insert(words.end(), options.begin(), options.end());
  }
  return words;
}

Outcome run(Words programs, const Words& options = {}) {
  Words words = {"lockstep"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), programs.begin(), programs.end());
  Tool tool;
  return tool.run(words);
}

/// What programs print, the same in a second run and on two threads: addresses of memory differ between them, and time
/// is simulated.
std::string run_twice(const Words& programs) {
  const auto once = run(programs);
  INFO(once.output);
  CHECK(once.code == 0);
  CHECK(run(programs, {"--threads", "2"}).output == once.output);
  return once.output;
}

/// The numbers of a table's lines, behind the words of `head`.
std::vector<std::vector<double>> rows_of(const std::string& output, const std::string& head, unsigned first = 0) {
  std::vector<std::vector<double>> rows;
  std::istringstream lines(output);
  std::string line;
  while (std::getline(lines, line) && !contains(line, head)) continue;
  while (std::getline(lines, line)) {
    std::istringstream words(contains(line, "| ") ? line.substr(line.find("| ") + 2) : line);
    std::vector<double> row;
    std::string word;
    for (unsigned i = 0; words >> word; ++i)
      if (i >= first) row.push_back(std::strtod(word.c_str(), nullptr));
    rows.push_back(row);
  }
  return rows;
}

/// One way over the wire of 100 ns of delay: no message is there sooner, in us.
constexpr double kWire = 0.1;

/// The table of nd_storage of 200 requests of 8 KiB, always so many under way.
void check_storage(const std::vector<std::vector<double>>& rows, double depth) {
  REQUIRE(rows.size() == 1);
  const auto& row = rows[0];
  REQUIRE(row.size() == 9);
  CHECK(row[0] == 8192);
  CHECK(row[1] == 200);
  CHECK(row[2] == depth);
  CHECK(row[4] == Approx(row[3] * 8192 / 1e6).epsilon(0.001));
  // How long one takes, and how many come to an end (Little's law); at the end fewer are under way.
  CHECK(row[7] * row[3] / 1e6 == Approx(depth).epsilon(0.03));
  CHECK(row[5] > 4 * kWire);
  CHECK(row[5] <= row[6]);
  CHECK(row[6] <= row[8]);
}

}  // namespace

TEST_CASE("nd_info in lockstep says what it says elsewhere") {
  const auto output = run_twice({"--", "nd_info"});
  Tool tool;
  CHECK(tool.run({"exec", "--", std::string(RNIC_EXAMPLES) + "/nd_info"}).output == output);
}

TEST_CASE("nd_pingpong in lockstep: exact times, by Sends and by spinning on memory") {
  const bool write = GENERATE(false, true);
  const auto output =
      run_twice(pair_of("nd_pingpong", write ? Words{"--count", "30", "--write"} : Words{"--count", "30"}));
  const auto rows = rows_of(output, "client |      bytes     rounds       min us    median us");
  REQUIRE(rows.size() == 1);
  REQUIRE(rows[0].size() == 7);
  CHECK(rows[0][0] == 8);
  CHECK(rows[0][1] == 30);
  CHECK(rows[0][2] > kWire);
  // Nobody else has the processors or the wire: rounds differ by how their steps meet the clocks.
  CHECK(rows[0][6] < 1.1 * rows[0][2]);
  CHECK(rows[0][6] < 2);
}

TEST_CASE("nd_bandwidth in lockstep fills the wire") {
  const bool write = GENERATE(false, true);
  const auto output =
      run_twice(pair_of("nd_bandwidth", write ? Words{"--count", "100", "--write"} : Words{"--count", "100"}));
  const auto rows = rows_of(output, "client |  request      bytes   requests           MB/s    requests/ms", 1);
  REQUIRE(rows.size() == 1);
  REQUIRE(rows[0].size() == 4);
  CHECK(rows[0][0] == 65536);
  CHECK(rows[0][1] == 100);
  // 100 Gbit/s, of which headers take some.
  CHECK(rows[0][2] > 11'000);
  CHECK(rows[0][2] < 12'500);
  CHECK(rows[0][3] * 65.536 == Approx(rows[0][2]).epsilon(0.001));
}

TEST_CASE("nd_connect in lockstep") {
  const auto rows =
      rows_of(run_twice(pair_of("nd_connect", {"--count", "10"})), "client |  connections    us for each");
  REQUIRE(rows.size() == 1);
  REQUIRE(rows[0].size() == 3);
  CHECK(rows[0][0] == 10);
  CHECK(rows[0][1] * rows[0][2] == Approx(1e6).epsilon(0.01));
  CHECK(rows[0][2] > 1'000);
}

TEST_CASE("nd_storage in lockstep") {
  const double depth = GENERATE(1, 4);
  const auto output =
      run_twice(pair_of("nd_storage", {"--count", "200", "--depth", std::to_string(static_cast<int>(depth))}));
  check_storage(rows_of(output, "client |      bytes   requests  depth   requests/s"), depth);
}

TEST_CASE("nd_register in lockstep") {
  const auto rows = rows_of(run_twice({"--", "nd_register", "10.0.0.1", "--count", "5"}), "     bytes     rounds");
  REQUIRE(rows.size() == 4);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    REQUIRE(rows[i].size() == 5);
    CHECK(rows[i][0] == (std::vector<double>{4096, 65536, 1 << 20, 4 << 20})[i]);
    // 50 ns for each page that is pinned.
    CHECK(rows[i][2] > rows[i][0] / 4096 * 0.05);
    CHECK(rows[i][2] + rows[i][3] == Approx(1e6 / rows[i][4]).epsilon(0.01));
  }
}

TEST_CASE("a program written for Windows runs in lockstep as it is") {
  const auto outcome = run(pair_of("nd2_program", {}));
  INFO(outcome.output);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.output, "server | got hello, 64 bytes\n"));
  CHECK(contains(outcome.output, "client | got hello yourself, 64 bytes\n"));
  CHECK(contains(outcome.output, "server | the peer has gone\n"));
  CHECK_FALSE(contains(outcome.output, "stays"));
}

TEST_CASE("two programs of one file have variables of their own") {
  // The first one never listens, so the second one is not started; each file is loaded all the same.
  const auto outcome = run({"--", "lockstep_program", "variables", "--", "lockstep_program", "variables"});
  CHECK(outcome.code == 1);
  CHECK(contains(outcome.output, "server | 1\n"));
  CHECK(contains(outcome.output, "rnic: the server has ended before it listened\n"));
  CHECK_FALSE(contains(outcome.output, "client |"));
}

TEST_CASE("a spin lets simulated time pass by what it calls") {
  const auto output = run_twice({"--", "lockstep_program", "spin"});
  for (const char* const name : {"YieldProcessor", "_mm_pause", "SwitchToThread", "Sleep"}) {
    const auto at = output.find(std::string(name) + " ");
    REQUIRE(at != std::string::npos);
    const int us = std::atoi(output.c_str() + at + std::string(name).size());
    CHECK(us >= 2'000);
    CHECK(us < 2'010);
  }
}

TEST_CASE("what programs print comes in whole lines, each behind a name") {
  const auto alone = run({"--", "lockstep_program", "words"});
  CHECK(alone.output == "of C++, of C\nthe end of a line is not there");
  const auto two = run({"--", "lockstep_program", "words", "--", "nd_info"});
  CHECK(contains(two.output, "server | of C++, of C\n"));
  CHECK(contains(two.output, "server | the end of a line is not there\n"));
}

TEST_CASE("a program that calls exit has ended, and its peer hears of it") {
  const auto outcome = run({"--", "lockstep_program", "leave", "server", "10.0.0.1",  //
                            "--", "lockstep_program", "leave", "client", "10.0.0.1"});
  INFO(outcome.output);
  CHECK(outcome.code == 3);
  CHECK(contains(outcome.output, "server | the peer has gone\n"));
  CHECK_FALSE(contains(outcome.output, "stays"));
}

TEST_CASE("wrong use, and programs that do not come to an end") {
  const auto use = [](const Words& words) {
    auto outcome = run(words);
    CHECK(outcome.code == 2);
    return outcome.output;
  };
  CHECK(contains(use({}), "one or two programs"));
  CHECK(contains(use({"--", "nd_info", "--"}), "one or two programs"));
  CHECK(contains(use({"--", "nd_info", "--", "nd_info", "--", "nd_info"}), "one or two programs"));
  CHECK(contains(use({"--", "nd_pong"}), "there is no 'nd_pong.so'"));
  CHECK(contains(use({"--", "/nowhere/nd_info"}), "there is no '/nowhere/nd_info.so'"));
  CHECK(contains(use({"--", "nd_pingpong", "both", "10.0.0.1"}), "role"));
  CHECK(contains(
      use({"--", "nd_pingpong", "server", "10.0.0.1", "--", "nd_pingpong", "client", "10.0.0.1", "--size", "x"}),
      "client | --size"));
  const auto alone = run({"--", "nd_pingpong", "client", "10.0.0.2"});
  CHECK(alone.code == 1);
  CHECK(contains(alone.output, "Connect: status 0xc0000236\n"));  // ND_CONNECTION_REFUSED
  const auto nobody = run({"--", "nd_pingpong", "client", "10.0.0.9"});
  CHECK(nobody.code == 1);
  CHECK(contains(nobody.output, "Connect: status 0xc000023d\n"));  // ND_HOST_UNREACHABLE
  const auto forever = run({"--", "nd_pingpong", "server", "10.0.0.1"}, {"--limit", "0.5"});
  CHECK(forever.code == 1);
  CHECK(contains(forever.output, "not ended after 500 ms of simulated time: host0/nd_pingpong"));
  CHECK_FALSE(contains(forever.output, "GetConnectionRequest"));
  const auto stays = run({"--", "nd_connect", "server", "10.0.0.1", "--count", "4",  //
                          "--", "nd_connect", "client", "10.0.0.1", "--count", "2"});
  CHECK(stays.code == 143);
  CHECK(contains(stays.output, "rnic: the server stays: it is ended\n"));
}

TEST_CASE("a run in lockstep leaves what others leave") {
  Tool tool;
  auto words = pair_of("nd_pingpong", {"--count", "3"});
  words.insert(words.begin(),
               {"lockstep", "--pcap", "wire.pcap", "--timeline", "t.json", "--report", "r.html", "--json", "f.json"});
  CHECK(tool.run(words).code == 0);
  CHECK(tool.left().size() == 4);
}
