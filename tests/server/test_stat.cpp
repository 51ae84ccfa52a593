#include <catch2/catch.hpp>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "driver/remote/attach.hpp"
#include "driver/remote/descriptor.hpp"
#include "tests/server/raw_peer.hpp"
#include "tests/server/remote_peer.hpp"
#include "tests/server/server_process.hpp"
#include "tests/server/tool.hpp"

using namespace rnic;
using test::contains;
using test::RawPeer;
using test::RemotePeer;
using test::ServerProcess;
using test::Tool;

// rnic ps and rnic stat: docs/server.md.

namespace {

struct Looked {
  ServerProcess server;
  Tool tool;
  nlohmann::json ask(const std::string& command) {
    const auto outcome = tool.run({command, "--json", "--dir", server.folder() + "/run"});
    INFO(outcome.output);
    REQUIRE(outcome.code == 0);
    return nlohmann::json::parse(outcome.output)["results"];
  }
};

}  // namespace

TEST_CASE_METHOD(Looked, "rnic ps counts what each process has, and what it gives back") {
  CHECK(ask("ps")["hosts"][1]["processes"].empty());
  {
    RemotePeer a(server.socket(1), 1), b(server.socket(1), 1);
    const auto region = a.context().create_mr({.address = a.memory(), .length = 10}).take();
    const auto processes = ask("ps")["hosts"][1]["processes"];
    REQUIRE(processes.size() == 2);
    for (const auto& process : processes) {
      CHECK(process["process"] == getpid());
      CHECK(process["name"] == "test_server");
      CHECK(process["clients"] == 1);
      CHECK(process["queue_pairs"] == 1);
      CHECK(process["completion_queues"] == 1);
      CHECK(process["protection_domains"] == 1);
      CHECK(process["channels"] == 1);
    }
    CHECK(processes[0]["memory_regions"] == 2);
    CHECK(processes[1]["memory_regions"] == 1);
    CHECK(ask("ps")["hosts"][0]["processes"].empty());
  }
  CHECK(ask("ps")["hosts"][1]["processes"].empty());
  CHECK(contains(tool.run({"ps", "--dir", server.folder() + "/run"}).output, "no process"));
}

TEST_CASE_METHOD(Looked, "rnic stat has the counters of NICs and queue pairs") {
  RemotePeer a(server.socket(0), 0), b(server.socket(1), 1);
  const auto to_a = a.address(), to_b = b.address();
  a.connect(to_b);
  b.connect(to_a);
  const std::array segments{a.segment(0, 8)};
  // A key that opens nothing: the peer refuses it.
  a.post(
      {.opcode = hw::WqeOpcode::kWrite, .id = 1, .segments = segments, .remote_address = to_b.memory, .remote_key = 1});
  CHECK(a.poll().status != hw::CqeStatus::kSuccess);
  const auto answer = ask("stat");
  CHECK(answer["hosts"][0]["counters"]["TxFrames"] == 1);
  CHECK(answer["hosts"][1]["counters"]["TxFrames"] == 1);
  CHECK_FALSE(answer["hosts"][0]["counters"].contains("RxBadIcrc"));
  const auto pair = answer["hosts"][1]["processes"][0]["pairs"][0];
  CHECK(pair["qpn"] == b.qp().qpn());
  CHECK(pair["type"] == "RC");
  CHECK(pair["counters"]["NaksSent"] == 1);
  CHECK(answer["hosts"][0]["processes"][0]["pairs"][0]["state"] == "ERR");
  const auto text = tool.run({"stat", "--dir", server.folder() + "/run"});
  CHECK(text.code == 0);
  CHECK(contains(text.output, "NaksReceived"));
  CHECK(tool.run({"stat"}).code == 2);
}

TEST_CASE_METHOD(Looked, "an overseer that asks something else is not heard") {
  for (const std::string question : {"", "p", "status\n", "ps ps ps ps ps ps ps ps ps\n"}) {
    CAPTURE(question);
    const remote::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (server.folder() + "/run/control").copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(send(socket.get(), question.data(), question.size(), 0) == static_cast<ssize_t>(question.size()));
    shutdown(socket.get(), SHUT_WR);
    char byte{};
    CHECK(recv(socket.get(), &byte, 1, 0) <= 0);
  }
  CHECK(ask("ps")["hosts"].size() == 2);
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE_METHOD(Looked, "who says nothing at the control socket keeps nobody else from it") {
  std::vector<std::unique_ptr<RawPeer>> silent;
  for (int i = 0; i < 50; ++i) {
    silent.push_back(std::make_unique<RawPeer>(server.folder() + "/run/control"));
    if (i % 16 == 0) CHECK(ask("ps")["hosts"].size() == 2);
  }
  CHECK(ask("ps")["hosts"].size() == 2);
  // Those that have waited longest have made room.
  CHECK(silent.front()->ended());
}

TEST_CASE_METHOD(Looked, "an answer longer than a socket holds comes whole, when it is read at last") {
  // A connection is some 300 bytes of it.
  std::vector<pid_t> children;
  constexpr int kProcesses = 64, kEach = 16;
  for (int i = 0; i < kProcesses; ++i) {
    children.push_back(test::in_child([&]() -> int {
      std::vector<std::shared_ptr<DeviceNode>> nodes;
      for (int n = 0; n < kEach; ++n) nodes.push_back(remote::attach(server.socket(0)).take());
      for (;;) pause();
    }));
  }
  std::size_t there = 0;
  for (int i = 0; i < 500 && there != kProcesses * kEach; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    there = ask("ps")["hosts"][0]["processes"].size();
  }
  REQUIRE(there == kProcesses * kEach);
  RawPeer slow(server.folder() + "/run/control");
  REQUIRE(remote::send_all(slow.socket(), std::as_bytes(std::span("ps\n", 3))));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  CHECK(ask("ps")["hosts"].size() == 2);
  std::string text;
  std::array<char, 4096> piece;
  for (ssize_t got = 0; (got = read(slow.socket(), piece.data(), piece.size())) > 0;)
    text.append(piece.data(), static_cast<std::size_t>(got));
  CHECK(text.size() > 250'000);
  const auto answer = nlohmann::json::parse(text, nullptr, false);
  REQUIRE_FALSE(answer.is_discarded());
  CHECK(answer["hosts"][0]["processes"].size() == kProcesses * kEach);
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    test::exit_of(child);
  }
}
