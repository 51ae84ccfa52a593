#include <catch2/catch.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "testbench/server/event_log_reader.hpp"
#include "testbench/wave_views.hpp"
#include "tests/server/recording.hpp"

using namespace rnic;
using test::contains;
using test::Peers;
using test::Recording;
using test::RemotePeer;
using test::ServerProcess;
using test::text_of;
using test::Tool;

// A run of programs, once more from its event log: docs/event_log.md.

namespace {

pid_t start_victim(const ServerProcess& server, unsigned seed) {
  const std::string first = server.socket(0), second = server.socket(1), number = std::to_string(seed);
  const pid_t child = fork();
  if (child != 0) return child;
  execl(RNIC_VICTIM, RNIC_VICTIM, first.c_str(), second.c_str(), number.c_str(), static_cast<char*>(nullptr));
  _exit(127);
}

}  // namespace

TEST_CASE("a run of programs is run once more, to the picosecond and the byte") {
  Recording run;
  {
    Peers peers(run.server());
    peers.work();
    // Registers are read for who looks, too.
    CHECK(run.tool().run({"stat", "--dir", run.server().folder() + "/run"}).code == 0);
    CHECK(run.tool().run({"ps", "--dir", run.server().folder() + "/run"}).code == 0);
    peers.work();
  }
  run.check();
  CHECK(run.replay({"--threads", "2"}).code == 0);
  CHECK((text_of(run.at("wire.pcap")) == text_of(run.at("again.pcap"))));
  const auto waves = run.at("waves.fst");
  CHECK(run.replay({"--trace", waves, "--trace-scope", "rnic_top.u_send_side:2", "--report", run.at("r.html")}).code ==
        0);
  CHECK(testbench::traced_signals(waves) > 10);
  CHECK(std::filesystem::file_size(run.at("r.html")) > 10'000);
}

TEST_CASE("programs that still work when the machine ends belong to the run") {
  Recording run;
  Peers peers(run.server());
  peers.work();
  const std::array segments{peers.a.segment(0, 50'000)};
  const auto to = peers.b.address();
  peers.a.post({.opcode = hw::WqeOpcode::kWrite,
                .id = 9,
                .segments = segments,
                .remote_address = to.memory,
                .remote_key = to.key});
  run.check();
}

TEST_CASE("several programs on each host, of which some are killed, on two threads, are run once more") {
  Recording run({"--threads", "2"});
  {
    Peers one(run.server(), 0, 1), two(run.server(), 1, 0), three(run.server(), 0, 1);
    std::vector<pid_t> victims;
    for (unsigned i = 0; i < 3; ++i) victims.push_back(start_victim(run.server(), 17 + i));
    for (const pid_t victim : victims) {
      one.work();
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
      kill(victim, SIGKILL);
      CHECK(test::exit_of(victim) == 128 + SIGKILL);
      two.work();
    }
    three.work();
  }
  run.check({"--threads", "1"});
}

TEST_CASE("faults on the wire and a machine file belong to the run, and the files may be gone") {
  Tool files;
  const std::string machine = files.folder() + "/m.toml", faults = files.folder() + "/faults.json";
  std::ofstream(machine) << "seed = 5\n[wire]\nrate_gbps = 25\ndelay_ns = 700\n[pcie]\njitter_ns = 50\nreorder = 0.3\n";
  std::ofstream(faults) << R"({"wire": {"a_to_b": {"drop": 0.05}, "b_to_a": {"drop": 0.05}}})";
  Recording run({machine, "--faults", faults, "--hosts", "3"});
  std::filesystem::remove(machine);
  std::filesystem::remove(faults);
  {
    Peers first(run.server(), 0, 1), second(run.server(), 2, 0);
    for (int i = 0; i < 3; ++i) {
      first.work();
      second.work();
    }
  }
  run.check();
}

TEST_CASE("memory that a process has given up is not there in the replay") {
  Recording run;
  constexpr std::size_t kPage = 4096;
  auto* const page =
      static_cast<std::uint8_t*>(mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  {
    Peers peers(run.server());
    peers.work();
    const auto region = peers.a.context().create_mr({.address = page, .length = kPage, .local_write = true}).take();
    munmap(page, kPage);
    CHECK(peers.a.context().create_mr({.address = page, .length = kPage}).error() == Error::kAccessViolation);
    const std::array gone{
        umd::Segment{.address = reinterpret_cast<std::uint64_t>(page), .length = 100, .key = region->key()}};
    CHECK(peers.move(hw::WqeOpcode::kWrite, gone) != hw::CqeStatus::kSuccess);
  }
  run.check();
}

TEST_CASE("the log of a machine that was killed is replayed to its end") {
  Recording run;
  Peers peers(run.server());
  peers.work();
  CHECK(run.server().end(SIGKILL) == 128 + SIGKILL);
  const auto outcome = run.replay();
  CAPTURE(outcome.output);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.output, "where the log ends: its machine was killed"));
  // Of the file of the machine that was killed there is what it had flushed.
  const std::string wire = text_of(run.at("wire.pcap")), again = text_of(run.at("again.pcap"));
  CHECK(again.size() > 40'000);
  CHECK((again.compare(0, wire.size(), wire) == 0));
  const std::string whole = run.log().bytes();
  run.log().append_piece({1, 0x80, 0xC0, 0xCA, 0xF3, 0x84, 0xA3, 0x04, 0, 1});
  CHECK(contains(run.replay().output, "a long time passes, which no machine writes"));
  // The log of a machine that failed, where this one does not.
  run.log().write(whole);
  run.log().append_piece({8, 5, 3, 'w', 'h', 'y'});
  const auto well = run.replay();
  CAPTURE(well.output);
  CHECK(well.code == 1);
  CHECK(contains(well.output, ": the simulation fails: why"));
  // What was cut off anywhere goes as far as it goes.
  for (const std::size_t part : {2u, 3u, 5u, 9u}) {
    run.log().write(whole.substr(0, whole.size() / part + 3));
    const auto shorter = run.replay();
    CAPTURE(part, shorter.output);
    CHECK(shorter.code == 0);
    CHECK(contains(shorter.output, "where the log ends: "));
    const std::string less = text_of(run.at("again.pcap"));
    CHECK((less.size() <= again.size() && again.compare(0, less.size(), less) == 0));
  }
}

TEST_CASE("a run that is not that of the log is an error, with its time and its event") {
  Recording run;
  {
    Peers peers(run.server());
    std::memcpy(peers.a.memory(), "a word to be found in the log", 29);
    const std::array segments{peers.a.segment(0, 29)};
    CHECK(peers.move(hw::WqeOpcode::kWrite, segments) == hw::CqeStatus::kSuccess);
  }
  CHECK(run.server().end(SIGTERM) == 0);
  const std::string whole = run.log().bytes();
  const auto refused = [&](const std::string& what) {
    const auto outcome = run.replay();
    CAPTURE(outcome.output);
    CHECK(outcome.code == 1);
    CHECK(contains(outcome.output, "it is not the run of the log: at "));
    CHECK(contains(outcome.output, " ps "));
    CHECK(contains(outcome.output, "; the log has, as event "));
    CHECK(contains(outcome.output, what));
  };
  // The sender reads something else, and host 1 stores it.
  REQUIRE(run.log().change("a word to be found in the log", "a word to be found in the fog"));
  refused("host1 writes 32 bytes of a process");
  refused(", with other content");
  run.log().write(whole);
  auto header = testbench::EventLogReader(run.log().path()).header();
  header.arguments = {"--link-delay-ns", "777"};
  run.log().set_header(header);
  refused("host");
  header.arguments = {"--seed", "2"};
  header.build = "another";
  run.log().set_header(header);
  refused("(the log is of another build, ");
  CHECK(run.replay().code == 1);
}

TEST_CASE("a log that lies is an error like any other") {
  Recording run;
  {
    Peers peers(run.server());
    peers.work();
  }
  CHECK(run.server().end(SIGTERM) == 0);
  const std::string whole = run.log().bytes();
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    const auto at = random();
    const auto mask = static_cast<std::uint8_t>(1u << random() % 8);
    run.log().write(whole);
    run.log().spoil(at, mask);
    const auto outcome = run.replay();
    CAPTURE(at, mask, outcome.code, outcome.output);
    // Bytes that the run does not hang on, of memory, may be what they are.
    CHECK((outcome.code == 0 || outcome.code == 1));
    if (outcome.code == 1) CHECK(contains(outcome.output, "rnic: "));
  }
}

TEST_CASE("what cannot be replayed is said") {
  Recording run;
  CHECK(run.server().end(SIGTERM) == 0);
  CHECK(run.replay().code == 0);
  const auto says = [&](int code, const std::string& what) {
    const auto outcome = run.replay();
    CAPTURE(outcome.output);
    CHECK(outcome.code == code);
    CHECK(contains(outcome.output, what));
  };
  const auto header = testbench::EventLogReader(run.log().path()).header();
  // What is whole by its checksums, and written by no machine.
  run.log().write_piece(header, {17, 1, 0, 0, 1, 0, 1});
  says(1, "it is not the run of the log");
  auto other = header;
  other.arguments = {"--no-such-option"};
  run.log().set_header(other);
  says(2, "the machine of the event log cannot be had again");
  other.arguments = {"no_such_file.toml"};
  run.log().set_header(other);
  says(2, "no_such_file.toml: cannot be read");
  std::string bytes = run.log().bytes();
  bytes[20] = '?';
  run.log().write(bytes);
  says(2, "damaged");
  run.log().write("soup");
  says(2, "is no event log");
  CHECK(run.tool().run({"replay"}).code == 2);
  CHECK(run.tool().run({"replay", "/no/such/log"}).code == 2);
  const auto unwritten = run.tool().run({"serve", "--log", "/no/such/folder/log"});
  CHECK(unwritten.code == 2);
  CHECK(contains(unwritten.output, "--log: /no/such/folder/log: cannot be written"));
}
