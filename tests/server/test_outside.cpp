#include <catch2/catch.hpp>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "driver/kernel_calls/kernel_port.hpp"
#include "driver/remote/descriptor.hpp"
#include "testbench/roce_frame.hpp"
#include "tests/server/remote_peer.hpp"
#include "tests/server/server_process.hpp"
#include "tests/server/tool.hpp"
#include "tests/server/tool_process.hpp"

using namespace rnic;
using namespace std::chrono_literals;
using remote::Descriptor;
using test::RemotePeer;
using test::ServerProcess;
using test::Tool;

// Ports that are wired to a socket of the system: docs/machine_file.md, docs/server.md.

namespace {

using Bytes = std::vector<std::uint8_t>;

/// Who has 10.0.0.1? Tell 10.0.0.9.
const Bytes kArpAsks{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2, 0,  0, 0, 0, 9, 8, 6, 0, 1, 8, 0,  6, 4, 0,
                     1,    2,    0,    0,    0,    0,    9, 10, 0, 0, 9, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1};

/// A folder with a machine file; the machine's sockets and the test's own are in it.
struct Outside {
  explicit Outside(const std::string& text, const std::vector<std::string>& options = {}) {
    std::ofstream(file()) << text;
    std::vector arguments{file()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    server.emplace(arguments);
  }

  [[nodiscard]] std::string file() const { return tool.folder() + "/m.toml"; }
  [[nodiscard]] std::string path(const std::string& name) const { return tool.folder() + "/" + name; }
  nlohmann::json counters(std::size_t socket = 0) {
    const auto outcome = tool.run({"stat", "--json", "--dir", server->folder() + "/run"});
    INFO(outcome.output);
    REQUIRE(outcome.code == 0);
    return nlohmann::json::parse(outcome.output)["results"]["sockets"][socket]["counters"];
  }
  /// Until the counter is so high.
  void await(const std::string& counter, std::uint64_t least) {
    for (int i = 0; i < 100 && counters()[counter] < least; ++i) std::this_thread::sleep_for(50ms);
    CHECK(counters()[counter] == least);
  }

  Tool tool;
  std::optional<ServerProcess> server;
};

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Descriptor datagram_socket(const std::string& own) {
  Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto address = address_of(own);
  unlink(own.c_str());
  REQUIRE(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  const timeval patience{20, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  return socket;
}

/// False: it could not be sent. For threads beside that of the test, which alone may check.
[[nodiscard]] bool try_send_to(const Descriptor& socket, const std::string& path, const Bytes& frame) {
  const auto address = address_of(path);
  return sendto(socket.get(), frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr*>(&address),
                sizeof address) == static_cast<ssize_t>(frame.size());
}

void send_to(const Descriptor& socket, const std::string& path, const Bytes& frame) {
  CHECK(try_send_to(socket, path, frame));
}

Bytes receive(const Descriptor& socket) {
  Bytes frame(16384);
  const ssize_t got = recv(socket.get(), frame.data(), frame.size(), 0);
  frame.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return frame;
}

/// All bytes, or none.
Bytes receive_exactly(const Descriptor& socket, std::size_t bytes) {
  Bytes all(bytes);
  if (recv(socket.get(), all.data(), bytes, MSG_WAITALL) != static_cast<ssize_t>(bytes)) all.clear();
  return all;
}

void send_in_stream(const Descriptor& socket, const Bytes& frame) {
  Bytes bytes{0, 0, static_cast<std::uint8_t>(frame.size() >> 8), static_cast<std::uint8_t>(frame.size())};
  bytes.insert(bytes.end(), frame.begin(), frame.end());
  // In two pieces, as a stream may bring it.
  CHECK(send(socket.get(), bytes.data(), 7, MSG_NOSIGNAL) == 7);
  std::this_thread::sleep_for(20ms);
  CHECK(send(socket.get(), bytes.data() + 7, bytes.size() - 7, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()) - 7);
}

bool is_arp_answer(const Bytes& frame) {
  // Of the smallest size of a frame: padded, and without frame check sequence.
  return frame.size() == 60 && frame[5] == 9 && frame[11] == 1 && frame[13] == 6 && frame[21] == 2;
}

[[nodiscard]] bool say_who_is(const Descriptor& socket, const std::string& path, const Bytes& question) {
  Bytes answer(question.begin(), question.begin() + 42);
  std::copy_n(question.begin() + 22, 10, answer.begin() + 32);  // target: who asked
  std::copy_n(question.begin() + 6, 6, answer.begin());
  const Bytes own{2, 0, 0, 0, 0, 9};
  std::copy(own.begin(), own.end(), answer.begin() + 6);
  std::copy(own.begin(), own.end(), answer.begin() + 22);
  std::copy_n(question.begin() + 38, 4, answer.begin() + 28);
  answer[21] = 2;
  return try_send_to(socket, path, answer);
}

calls::ResolveGid resolve(std::uint8_t last) {
  calls::ResolveGid call;
  call.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, last};
  return call;
}

const std::string kDatagram = "[[socket]]\ndatagram = \"./port\"\npeer = \"./peer\"\n";

}  // namespace

TEST_CASE("a host is found at a datagram socket, and what is no frame for it is dropped and counted") {
  Outside outside(kDatagram);
  const auto peer = datagram_socket(outside.path("peer"));
  send_to(peer, outside.path("port"), kArpAsks);
  CHECK(is_arp_answer(receive(peer)));
  send_to(peer, outside.path("port"), Bytes(13, 0xFF));
  send_to(peer, outside.path("port"), Bytes(9019, 0xFF));
  Bytes foreign = kArpAsks;
  foreign[0] = 2;
  send_to(peer, outside.path("port"), foreign);
  send_to(peer, outside.path("port"), Bytes(9018, 0xFF));
  outside.await("frames_in", 2);
  outside.await("too_short", 1);
  outside.await("too_long", 1);
  outside.await("foreign", 1);
  outside.await("frames_out", 1);
  CHECK(outside.server->end(SIGTERM) == 0);
  CHECK_FALSE(std::filesystem::exists(outside.path("port")));
}

TEST_CASE("a peer that is missing, goes and comes again does not hold the machine up") {
  Outside outside(kDatagram);
  {
    const auto other = datagram_socket(outside.path("other"));
    send_to(other, outside.path("port"), kArpAsks);
    outside.await("lost", 1);
  }
  for (int i = 0; i < 2; ++i) {
    const auto peer = datagram_socket(outside.path("peer"));
    send_to(peer, outside.path("port"), kArpAsks);
    CHECK(is_arp_answer(receive(peer)));
  }
  CHECK(outside.server->end(SIGTERM) == 0);
}

TEST_CASE("frames behind their lengths in a stream, from who comes") {
  Outside outside("[[socket]]\nlisten = \"./port\"\n");
  const auto connect_to = [&] {
    Descriptor peer(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto address = address_of(outside.path("port"));
    REQUIRE(connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    const timeval patience{20, 0};
    setsockopt(peer.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return peer;
  };
  for (int i = 0; i < 2; ++i) {
    const auto peer = connect_to();
    send_in_stream(peer, kArpAsks);
    CHECK(receive_exactly(peer, 4) == Bytes{0, 0, 0, 60});
    CHECK(is_arp_answer(receive_exactly(peer, 60)));
  }
  {
    // Who comes while there is a peer waits until that has gone.
    auto first = connect_to();
    send_in_stream(first, kArpAsks);
    CHECK(receive_exactly(first, 64).size() == 64);
    const auto second = connect_to();
    send_in_stream(second, kArpAsks);
    std::this_thread::sleep_for(100ms);
    CHECK(outside.counters()["frames_in"] == 3);
    first = Descriptor();
    CHECK(receive_exactly(second, 64).size() == 64);
  }
  // What no stream of frames has in it ends the connection, and nothing else.
  {
    const auto peer = connect_to();
    const Bytes nonsense(8, 0xFF);
    CHECK(send(peer.get(), nonsense.data(), nonsense.size(), MSG_NOSIGNAL) == 8);
    CHECK(receive(peer).empty());
  }
  const auto peer = connect_to();
  send_in_stream(peer, kArpAsks);
  CHECK(receive_exactly(peer, 64).size() == 64);
  CHECK(outside.server->end(SIGTERM) == 0);
}

TEST_CASE("a machine looks for who listens until it is there, and when it has gone") {
  Outside outside("[[socket]]\nconnect = \"./peer\"\n");
  for (int i = 0; i < 2; ++i) {
    const Descriptor listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto address = address_of(outside.path("peer"));
    unlink(outside.path("peer").c_str());
    REQUIRE(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(listen(listener.get(), 1) == 0);
    const Descriptor peer(accept(listener.get(), nullptr, nullptr));
    REQUIRE(peer);
    send_in_stream(peer, kArpAsks);
    CHECK(receive_exactly(peer, 64).size() == 64);
  }
  CHECK(outside.server->end(SIGTERM) == 0);
}

TEST_CASE("the station of an address outside is asked for, and an address that nobody has is not found") {
  Outside outside(kDatagram);
  const auto peer = datagram_socket(outside.path("peer"));
  RemotePeer program(outside.server->socket(0), 0);
  bool answered = false;
  std::thread answering([&] { answered = say_who_is(peer, outside.path("port"), receive(peer)); });
  const auto found = program.context().port().call(resolve(9));
  answering.join();
  CHECK(answered);
  REQUIRE(found.ok());
  CHECK(found->mac == 0x0200'0000'0009);
  // It is known now.
  CHECK(program.context().port().call(resolve(9)).ok());
  CHECK(outside.counters()["frames_out"] == 1);
  // Three questions, a second each, of the time outside.
  const auto begin = std::chrono::steady_clock::now();
  const auto missing = program.context().port().call(resolve(8));
  const auto took = std::chrono::steady_clock::now() - begin;
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error() == Error::kNotFound);
  CHECK(took >= 2900ms);
  CHECK(took < 20s);
  for (int i = 0; i < 3; ++i) CHECK(receive(peer).size() == 60);
}

TEST_CASE("what a process has rung is there before what somebody outside has sent since") {
  // A program posts a Receive, then tells its peer, which sends: however late the machine looks, it finds them so.
  Outside outside(kDatagram);
  const auto peer = datagram_socket(outside.path("peer"));
  RemotePeer program(outside.server->socket(0), 0);
  program.connect({.host = 8, .qpn = 0x99, .key = 0, .memory = 0});
  roce::RoceFields sent;
  sent.dest_mac = 0x0200'0000'0001;
  sent.source_mac = 0x0200'0000'0009;
  sent.dest_ip = resolve(1).gid;
  sent.source_ip = resolve(9).gid;
  sent.opcode = 0x04;  // SEND Only
  sent.ack_req = true;
  sent.dest_qpn = program.qp().qpn();
  sent.payload = Bytes(8, 0x5A);
  for (std::uint32_t i = 0; i < 40; ++i) {
    REQUIRE(kill(outside.server->process(), SIGSTOP) == 0);
    program.post_receive(i, 0, 64);
    sent.psn = 0x1000 + i;
    send_to(peer, outside.path("port"), roce::roce_frame(sent));
    REQUIRE(kill(outside.server->process(), SIGCONT) == 0);
    const Bytes answer = receive(peer);
    const std::size_t aeth = roce::kEthernetBytes + 20 + roce::kUdpBytes + roce::kBthBytes;
    REQUIRE(answer.size() > aeth + 4);
    INFO("message " << i);
    REQUIRE((answer[aeth] >> 5) == 0);  // an ACK; 1 would be a NAK for want of a Receive
    REQUIRE(program.poll().id == i);
  }
  CHECK(outside.server->end(SIGTERM) == 0);
}

TEST_CASE("a call that waits for an answer from outside keeps no other one waiting") {
  Outside outside(kDatagram);
  RemotePeer program(outside.server->socket(0), 0);
  bool found = true;
  std::thread searching([&] { found = program.context().port().call(resolve(8)).ok(); });
  std::this_thread::sleep_for(300ms);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(program.context().port().call(calls::QueryPort{}).ok());
  CHECK(std::chrono::steady_clock::now() - begin < 1s);
  searching.join();
  CHECK_FALSE(found);
  CHECK(std::chrono::steady_clock::now() - begin < 20s);
}

TEST_CASE("a frame from outside is in the event log, and comes in again in a replay") {
  const test::OwnFolder folder;
  const std::string log = folder.path() + "/run.rnic", wire = folder.path() + "/wire.pcap",
                    again = folder.path() + "/again.pcap";
  {
    Outside outside(kDatagram, {"--log", log, "--pcap", wire});
    const auto peer = datagram_socket(outside.path("peer"));
    send_to(peer, outside.path("port"), kArpAsks);
    CHECK(is_arp_answer(receive(peer)));
    RemotePeer program(outside.server->socket(0), 0);
    bool answered = false;
    std::thread answering([&] { answered = say_who_is(peer, outside.path("port"), receive(peer)); });
    CHECK(program.context().port().call(resolve(7)).ok());
    answering.join();
    CHECK(answered);
    CHECK(outside.server->end(SIGTERM) == 0);
  }
  Tool tool;
  const auto outcome = tool.run({"replay", log, "--pcap", again});
  INFO(outcome.output);
  CHECK(outcome.code == 0);
  const auto bytes_of = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  CHECK(bytes_of(wire).size() > 4 * 60);
  CHECK(bytes_of(wire) == bytes_of(again));
}

TEST_CASE("a machine that ends while it asks tells who waits") {
  Outside outside(kDatagram);
  RemotePeer program(outside.server->socket(0), 0);
  int code = -1;
  std::thread ending([&] {
    std::this_thread::sleep_for(500ms);
    code = outside.server->end(SIGTERM);
  });
  const auto missing = program.context().port().call(resolve(8));
  ending.join();
  CHECK(code == 0);
  CHECK_FALSE(missing.ok());
}

TEST_CASE("two hosts and a socket hang on a switch, and each host is found") {
  Outside outside("hosts = 2\n" + kDatagram);
  const auto peer = datagram_socket(outside.path("peer"));
  for (const std::uint8_t host : {1, 2}) {
    Bytes asks = kArpAsks;
    asks[41] = host;
    send_to(peer, outside.path("port"), asks);
    const Bytes answer = receive(peer);
    REQUIRE(answer.size() == 60);
    CHECK(answer[11] == host);
  }
  CHECK(outside.server->end(SIGTERM) == 0);
}

TEST_CASE("simulated time goes as the time outside does while nothing is under way") {
  Outside outside(kDatagram);
  const auto now = [&] {
    const auto outcome = outside.tool.run({"stat", "--json", "--dir", outside.server->folder() + "/run"});
    return nlohmann::json::parse(outcome.output)["results"]["simulated_ns"].get<std::int64_t>();
  };
  const auto outer = std::chrono::steady_clock::now();
  const std::int64_t first = now();
  std::this_thread::sleep_for(1s);
  const std::int64_t passed = now() - first;
  const std::chrono::nanoseconds most = std::chrono::steady_clock::now() - outer;
  CHECK(passed >= 900'000'000);
  CHECK(passed <= most.count());
}

TEST_CASE("a socket that cannot be had is an error of the machine") {
  Tool tool;
  std::ofstream(tool.folder() + "/m.toml") << "[[socket]]\nlisten = \"./nowhere/port\"\n";
  const auto outcome = tool.run({"serve", "m.toml", "--dir", tool.folder() + "/run"});
  CHECK(outcome.code != 0);
  CHECK(test::contains(outcome.output, "a port cannot have its socket at nowhere/port: No such file or directory"));
}
