// Programs in one process in lockstep: the examples (docs/examples.md), and what `rnic lockstep` promises.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/nd2/program_runs.hpp"

using namespace rnic::test;

namespace {

Outcome lockstep(const Words& programs, const Words& options = {}) {
  return run(Words{"lockstep"} + options + programs);
}

/// What programs print, the same in a second run and on two threads: addresses of memory differ between them, and time
/// is simulated.
std::string run_twice(const Words& programs) {
  const auto once = passes(Words{"lockstep"} + programs);
  CHECK(lockstep(programs, {"--threads", "2"}).output == once);
  return once;
}

/// One way over the wire of 100 ns of delay: no message is there sooner, in us.
constexpr double kWire = 0.1;

/// The table of nd_storage, or of ndk_storage, of 200 requests of 8 KiB, always so many under way.
void check_storage(const std::string& output, double depth) {
  const auto row = row_of(output, "client |      bytes   requests  depth   requests/s", 9);
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

TEST_CASE("nd_info in lockstep says what it says elsewhere", "[nd_info]") {
  const auto output = run_twice({"--", "nd_info"});
  CHECK(contains(output, "MaxCallerData                56\n"));
  CHECK(contains(output, "MaxInlineDataSize            224\n"));
  CHECK(run({"exec", "--", std::string(RNIC_EXAMPLES) + "/nd_info"}).output == output);
}

TEST_CASE("nd_ping in lockstep: each ping comes back", "[nd_ping]") {
  const auto output = run_twice(pair_of("nd_ping", {"--size", "5000", "--count", "3"}));
  for (int ping = 1; ping <= 3; ++ping)
    CHECK(contains(output, "client | 5000 bytes from 10.0.0.1: ping " + std::to_string(ping) + ", "));
  const auto row = row_of(output, "client |      bytes      pings  came back       min us", 6);
  CHECK(row[0] == 5000);
  CHECK(row[1] == 3);
  CHECK(row[2] == 3);
  CHECK(row[3] > 2 * kWire);
  CHECK(row[3] <= row[4]);
  CHECK(row[4] <= row[5]);
  // Two ways, each with a message of 5000 bytes, a notification and calls.
  CHECK(row[5] < 30);
}

TEST_CASE("nd_pingpong in lockstep: exact times, by Sends and by spinning on memory", "[nd_pingpong]") {
  const bool write = GENERATE(false, true);
  const auto output =
      run_twice(pair_of("nd_pingpong", write ? Words{"--count", "30", "--write"} : Words{"--count", "30"}));
  const auto row = row_of(output, "client |      bytes     rounds       min us    median us", 7);
  CHECK(row[0] == 8);
  CHECK(row[1] == 30);
  CHECK(row[2] > kWire);
  // Nobody else has the processors or the wire: rounds differ by how their steps meet the clocks.
  CHECK(row[6] < 1.1 * row[2]);
  CHECK(row[6] < 2);
}

TEST_CASE("nd_bandwidth in lockstep fills the wire", "[nd_bandwidth]") {
  const bool write = GENERATE(false, true);
  const auto output =
      run_twice(pair_of("nd_bandwidth", write ? Words{"--count", "100", "--write"} : Words{"--count", "100"}));
  const auto row = row_of(output, "client |  request      bytes   requests           MB/s    requests/ms", 4, 1);
  CHECK(row[0] == 65536);
  CHECK(row[1] == 100);
  // 100 Gbit/s, of which headers take some.
  CHECK(row[2] > 11'000);
  CHECK(row[2] < 12'500);
  CHECK(row[3] * 65.536 == Approx(row[2]).epsilon(0.001));
}

TEST_CASE("nd_connect in lockstep", "[nd_connect]") {
  const auto row =
      row_of(run_twice(pair_of("nd_connect", {"--count", "10"})), "client |  connections    us for each", 3);
  CHECK(row[0] == 10);
  CHECK(row[1] * row[2] == Approx(1e6).epsilon(0.01));
  CHECK(row[2] > 1'000);
}

TEST_CASE("nd_storage in lockstep", "[nd_storage]") {
  const int depth = GENERATE(1, 4);
  check_storage(run_twice(pair_of("nd_storage", {"--count", "200", "--depth", std::to_string(depth)})), depth);
}

TEST_CASE("ndk_storage, a consumer of the kernel's interface, in lockstep", "[ndk_storage]") {
  const int depth = GENERATE(1, 4);
  const Words who_invalidates = GENERATE(Words{}, Words{"--peer"});
  const Words options = Words{"--count", "200", "--depth", std::to_string(depth)} + who_invalidates;
  check_storage(run_twice(pair_of("ndk_storage", options)), depth);
}

// Its memory is that of 20 pages which the server finds by their list, and no more.
TEST_CASE("ndk_storage registers as many pages as a piece has", "[ndk_storage]") {
  const auto row = row_of(passes(Words{"lockstep"} + pair_of("ndk_storage", {"--size", "81000", "--count", "20"})),
                          "client |      bytes   requests  depth   requests/s", 9);
  CHECK(row[0] == 81'000);
  CHECK(row[1] == 20);
}

TEST_CASE("a consumer of the kernel that ends with objects open leaves nobody waiting", "[ndk_storage]") {
  const Words kServer = {"--", "ndk_storage", "server", "10.0.0.1"},
              kClient = {"--", "ndk_storage", "client", "10.0.0.1"};
  // The server finds a request that it does not take, and exits; the client hears of it by its requests.
  const auto first = lockstep(kServer + Words{"--size", "8192"} + kClient + Words{"--size", "4096"});
  INFO(first.output);
  CHECK(first.code == 1);
  CHECK(contains(first.output, "server | a request for another size: --size differs\n"));
  CHECK(contains(first.output, "client | a request: STATUS_CANCELLED\n"));
  // The server waits for a request more than there will be: what it has open goes with it.
  const auto stays = lockstep(kServer + kClient + Words{"--count", "0"});
  CHECK(stays.code == 2);
  CHECK(contains(stays.output, "client | --count is no number from 1 to 10000000\n"));
  CHECK(contains(stays.output, "rnic: the server stays: it is ended\n"));
}

TEST_CASE("nd_register in lockstep", "[nd_register]") {
  const auto rows = rows_of(run_twice({"--", "nd_register", "10.0.0.1", "--count", "5"}), "     bytes     rounds");
  REQUIRE(rows.size() == 4);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    REQUIRE(rows[i].size() == 5);
    CHECK(rows[i][0] == (std::vector<double>{4096, 65536, 1 << 20, 4 << 20})[i]);
    // 50 ns for each page that is pinned.
    CHECK(rows[i][2] > rows[i][0] / 4096 * 0.05);
    // The NIC has been asked: a command of it goes over PCI Express and back.
    CHECK(rows[i][3] > 0.5);
    CHECK(rows[i][2] + rows[i][3] == Approx(1e6 / rows[i][4]).epsilon(0.01));
  }
}

TEST_CASE("a program written for Windows runs in lockstep as it is") {
  const auto outcome = lockstep(pair_of("nd2_program", {}));
  INFO(outcome.output);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.output, "server | got hello, 64 bytes\n"));
  CHECK(contains(outcome.output, "client | got hello yourself, 64 bytes\n"));
  CHECK(contains(outcome.output, "server | the peer has gone\n"));
  CHECK_FALSE(contains(outcome.output, "stays"));
}

TEST_CASE("overlapped operations complete in lockstep for a program that only asks") {
  const auto output = run_twice({"--", "nd2_program", "polls", "10.0.0.1"});
  for (const auto& way : kPolls) CHECK(contains(output, way + ": done\n"));
}

TEST_CASE("two programs of one file have variables of their own") {
  // The first one never listens, so the second one is not started; each file is loaded all the same.
  const auto outcome = lockstep({"--", "lockstep_program", "variables", "--", "lockstep_program", "variables"});
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
  const auto alone = lockstep({"--", "lockstep_program", "words"});
  CHECK(alone.output == "of C++, of C\nthe end of a line is not there");
  const auto two = lockstep({"--", "lockstep_program", "words", "--", "nd_info"});
  CHECK(contains(two.output, "server | of C++, of C\n"));
  CHECK(contains(two.output, "server | the end of a line is not there\n"));
}

TEST_CASE("a program that calls exit has ended, and its peer hears of it") {
  const auto outcome = lockstep({"--", "lockstep_program", "leave", "server", "10.0.0.1",  //
                                 "--", "lockstep_program", "leave", "client", "10.0.0.1"});
  INFO(outcome.output);
  CHECK(outcome.code == 3);
  CHECK(contains(outcome.output, "server | the peer has gone\n"));
  CHECK_FALSE(contains(outcome.output, "stays"));
}

TEST_CASE("wrong use, and programs that do not come to an end") {
  const auto use = [](const Words& words) {
    auto outcome = lockstep(words);
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
  const auto alone = lockstep({"--", "nd_pingpong", "client", "10.0.0.2"});
  CHECK(alone.code == 1);
  CHECK(contains(alone.output, "Connect: ND_CONNECTION_REFUSED\n"));
  const auto nobody = lockstep({"--", "nd_pingpong", "client", "10.0.0.9"});
  CHECK(nobody.code == 1);
  CHECK(contains(nobody.output, "Connect: ND_HOST_UNREACHABLE\n"));
  const auto forever = lockstep({"--", "nd_pingpong", "server", "10.0.0.1"}, {"--limit", "0.5"});
  CHECK(forever.code == 1);
  CHECK(contains(forever.output, "not ended after 500 ms of simulated time: host0/nd_pingpong"));
  CHECK_FALSE(contains(forever.output, "GetConnectionRequest"));
  const auto stays = lockstep({"--", "nd_connect", "server", "10.0.0.1", "--count", "4",  //
                               "--", "nd_connect", "client", "10.0.0.1", "--count", "2"});
  CHECK(stays.code == 143);
  CHECK(contains(stays.output, "rnic: the server stays: it is ended\n"));
}

TEST_CASE("a run in lockstep leaves what others leave") {
  Tool tool;
  CHECK(tool.run(Words{"lockstep", "--pcap", "wire.pcap", "--timeline", "t.json", "--report", "r.html", "--json",
                       "f.json"} +
                 pair_of("nd_pingpong", {"--count", "3"}))
            .code == 0);
  CHECK(tool.left().size() == 4);
}
