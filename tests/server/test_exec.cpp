#include <catch2/catch.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/server/server_process.hpp"
#include "tests/server/tool.hpp"

using rnic::test::contains;
using rnic::test::ServerProcess;
using rnic::test::Tool;

// rnic exec, as a user calls it: docs/server.md.

TEST_CASE("a program runs on a machine of its own, and its exit code is that of rnic exec") {
  Tool tool;
  const auto outcome =
      tool.run({"exec", "--host", "1", "--", "sh", "-c", "test -S $RNIC_HOST && echo on $RNIC_HOST; exit 7"});
  CHECK(outcome.code == 7);
  CHECK(contains(outcome.output, "/host1"));
  CHECK(tool.left().empty());
  CHECK(tool.run({"exec", "--", "true"}).code == 0);
  CHECK(tool.run({"exec", "--", "sh", "-c", "kill -SEGV $$"}).code == 128 + SIGSEGV);
  CHECK(tool.run({"exec", "--hosts", "3", "--host", "2", "--", "true"}).code == 0);
  CHECK(tool.left().empty());
}

TEST_CASE("what cannot be run is said") {
  Tool tool;
  const auto missing = tool.run({"exec", "--", "/no/such/program"});
  CHECK(missing.code == 127);
  CHECK(contains(missing.output, "/no/such/program: No such file"));
  CHECK(tool.run({"exec"}).code == 2);
  CHECK(tool.run({"exec", "--"}).code == 2);
  CHECK(contains(tool.run({"exec", "--host", "2", "--", "true"}).output, "no host 2"));
  const auto unknown = tool.run({"exec", "--no-such-option", "--", "true"});
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.output, "--no-such-option"));
  CHECK(tool.run({"exec", "--dir", tool.folder(), "--", "true"}).code == 2);
  CHECK(tool.run({"exec", "--pair", "--", "true"}).code == 2);
  CHECK(tool.run({"exec", "--pair", "--", "true", "--"}).code == 2);
  std::ofstream(tool.folder() + "/m.toml") << "sede = 1\n";
  const auto file = tool.run({"exec", "m.toml", "--", "true"});
  CHECK(file.code == 2);
  CHECK(contains(file.output, "m.toml:1: sede: there is no such key"));
}

TEST_CASE("a program runs on a machine that is named, and leaves it running") {
  ServerProcess server;
  Tool tool;
  for (int i = 0; i < 2; ++i) {
    const auto outcome = tool.run({"exec", "--dir", server.folder() + "/run", "--", "sh", "-c", "echo $RNIC_HOST"});
    CHECK(outcome.code == 0);
    CHECK(outcome.output == server.socket(0) + "\n");
  }
  CHECK(tool.run({"exec", "--dir", server.folder() + "/run", "--seed", "3", "--", "true"}).code == 2);
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE("the second program of a pair begins when the first one listens") {
  Tool tool;
  const std::string server =
      "import socket, time\n"
      "time.sleep(0.2)\n"
      "s = socket.socket()\n"
      "s.bind(('127.0.0.1', 0))\n"
      "open('port', 'w').write(str(s.getsockname()[1]))\n"
      "s.listen()\n"
      "c, _ = s.accept()\n"
      "print('got', c.recv(10).decode(), flush=True)\n";
  const std::string client =
      "import socket, os\n"
      "s = socket.create_connection(('127.0.0.1', int(open('port').read())))\n"
      "s.send(b'word')\n"
      "print('sent on', os.environ['RNIC_HOST'][-5:])\n"
      "raise SystemExit(5)\n";
  const auto outcome = tool.run({"exec", "--pair", "--", "python3", "-c", server, "--", "python3", "-c", client});
  CHECK(outcome.code == 5);
  CHECK(contains(outcome.output, "server | got word\n"));
  CHECK(contains(outcome.output, "client | sent on host1\n"));
  CHECK(contains(outcome.output, "are in rnic_pair_1\n"));
  for (const char* file : {"wire.pcap", "timeline.json", "report.html", "figures.json", "server.log", "client.log"})
    CHECK(std::filesystem::exists(tool.folder() + "/rnic_pair_1/" + file));
  const auto again = tool.run({"exec", "--pair", "--", "false", "--", "true"});
  CHECK(again.code == 1);
  CHECK(contains(again.output, "the server has ended before it listened"));
  CHECK(std::filesystem::exists(tool.folder() + "/rnic_pair_2"));
}

TEST_CASE("the second program of a pair begins when the first one waits for connections of librdmacm") {
  Tool tool;
  // It waits for its client for less long than a server that listens nowhere is given.
  const std::string server =
      "import ctypes, os, pathlib, struct, time\n"
      "cm = ctypes.CDLL('librdmacm.so.1')\n"
      "cm.rdma_create_event_channel.restype = ctypes.c_void_p\n"
      "made = ctypes.c_void_p()\n"
      "channel = ctypes.c_void_p(cm.rdma_create_event_channel())\n"
      "assert cm.rdma_create_id(channel, ctypes.byref(made), None, 0x0106) == 0\n"
      "address = struct.pack('=H', 2) + struct.pack('>H', 7000) + bytes(12)\n"
      "assert cm.rdma_bind_addr(made, address) == 0\n"
      "time.sleep(0.2)\n"
      "open('ready', 'w').close()\n"
      "assert cm.rdma_listen(made, 1) == 0\n"
      "end = time.monotonic() + 10\n"
      "while not os.path.exists('client') and time.monotonic() < end: time.sleep(0.02)\n"
      "raise SystemExit(0 if os.path.exists('client') else 3)\n";
  const std::string runtime = RNIC_SANITIZER_RUNTIME;
  std::vector<std::string> words{"exec", "--pair", "--"};
  if (!runtime.empty()) words.insert(words.end(), {"env", "LD_PRELOAD=" + runtime, "ASAN_OPTIONS=detect_leaks=0"});
  words.insert(words.end(), {"python3", "-c", server, "--", "python3", "-c",
                             "import os; open('client', 'w').close(); raise SystemExit(not os.path.exists('ready'))"});
  const auto outcome = tool.run(words);
  INFO(outcome.output);
  CHECK(outcome.code == 0);
}
