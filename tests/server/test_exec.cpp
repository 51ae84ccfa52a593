#include <catch2/catch.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/server/server_process.hpp"
#include "tests/server/tool.hpp"

using rnic::test::contains;
using rnic::test::Outcome;
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

TEST_CASE("a program has simulated time, however it asks: docs/simulated_clock.md") {
  Tool tool;
  const auto outcome = tool.run({"exec", "--clock", "simulated", "--", RNIC_CLOCK_READER});
  INFO(outcome.output);
  CHECK(outcome.code == 0);
  // It notices the time outside.
  const auto outside = tool.run({"exec", "--clock", "wall", "--", RNIC_CLOCK_READER});
  CHECK(contains(outside.output, "what a program computes takes no simulated time"));
  const auto unknown = tool.run({"exec", "--clock", "sundial", "--", "true"});
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.output, "--clock"));
}

TEST_CASE("who only reads the time of a machine is none of its processes, and goes on when it ends") {
  ServerProcess server;
  Tool tool;
  const std::string ends =
      "import os, signal, subprocess, sys, time\n"
      "machine = os.path.dirname(os.environ['RNIC_HOST'])\n"
      "plain = {name: value for name, value in os.environ.items() if name != 'LD_PRELOAD'}\n"
      "print(subprocess.run([sys.argv[1], 'ps', '--dir', machine], env=plain, capture_output=True, text=True).stdout)\n"
      "os.kill(int(sys.argv[2]), signal.SIGTERM)\n"
      "begin = time.monotonic()\n"
      "while time.monotonic() < begin + 0.05: time.sleep(0.01)\n"
      "print('well')\n";
  const auto outcome = tool.run({"exec", "--dir", server.folder() + "/run", "--clock", "simulated", "--", "python3",
                                 "-c", ends, rnic::test::tool_path(), std::to_string(server.process())});
  CHECK(contains(outcome.output, "well"));
  CHECK_FALSE(contains(outcome.output, "python3"));
  CHECK(outcome.code == 0);
  CHECK(server.end(SIGTERM) == 0);
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

namespace {

/// What the report page of a run has.
nlohmann::json report_of(const std::string& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  const std::string page = text.str(), begin = "<script type=\"application/json\" id=\"report\">";
  const std::size_t from = page.find(begin) + begin.size();
  return nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from), nullptr, false);
}

/// A pair of server_writing in `mode`, on a machine of these NICs.
Outcome write_in(Tool& tool, const std::string& mode, const std::string& nic = "rtl") {
  return tool.run({"exec", "--nic", nic, "--pair", "--out", mode, "--", RNIC_WRITING, "server", mode, "port", "--",
                   RNIC_WRITING, "client", mode, "port"});
}

/// The text behind `start`, up to the end of its line.
std::string line_with(const std::string& output, const std::string& start) {
  const std::size_t at = output.find(start);
  return at == std::string::npos ? "" : output.substr(at + start.size(), output.find('\n', at) - at - start.size());
}

}  // namespace

TEST_CASE("behind a program stands what the simulated NIC did, on standard error, and only if it posted requests") {
  Tool tool;
  const std::string nic = GENERATE(as<std::string>{}, "rtl", "model", "rtl,model", "model,rtl");
  const auto good = write_in(tool, "good", nic);
  INFO(good.output);
  CHECK(good.code == 0);
  const std::string line = line_with(good.output, "rnic: client: simulated: ");
  CHECK(contains(line, " Gbit/s, latency median "));
  CHECK(contains(line, "(1 request, 8192 bytes)"));
  CHECK(contains(good.output, "the simulator's speed"));
  CHECK_FALSE(contains(good.output, "rnic: server: simulated"));
  CHECK_FALSE(contains(good.output, "diagnosis"));
  const auto report = report_of(tool.folder() + "/good/report.html");
  REQUIRE(report.is_object());
  CHECK(report["outcome"]["good"] == true);
  CHECK(report["outcome"]["text"] == "the server ended with exit code 0; the client ended with exit code 0");
  const std::string command = report["command_line"];
  CHECK(command.starts_with("rnic exec --nic " + nic + " --pair -- /"));
  CHECK(command.ends_with("client good port"));
  CHECK(contains(report["title"].get<std::string>(), "server_writing"));
  REQUIRE(report["processes"].size() == 2);
  const auto& client = report["processes"][1];
  CHECK(client["objects"]["queue pairs"] == 1);
  CHECK(client["objects"]["memory regions"] == 1);
  REQUIRE(client["queue_pairs"].size() == 1);
  CHECK(client["queue_pairs"][0]["requests"][0]["kind"] == "Write");
  CHECK(client["queue_pairs"][0]["bytes"] == 8192);
  // Less than the wire has, and not the speed of the simulator.
  CHECK(client["queue_pairs"][0]["goodput_gbps"].get<double>() > 1);
  CHECK(client["queue_pairs"][0]["goodput_gbps"].get<double>() < 100);
  for (const auto& kind : report["run"]["requests"]) CHECK(kind["kind"] == "Write");
  const auto none = tool.run({"exec", "--", "sh", "-c", "echo out; echo error >&2"});
  CHECK(none.output == "out\nerror\n");
}

TEST_CASE("a request that is refused has a diagnosis, and the run has failed") {
  struct Case {
    const char* mode;
    const char* status;
    std::vector<std::string> says;
  };
  const std::vector<std::string> remote{"the NIC of host0 refused it with NAK remote access error (AETH syndrome 0x62)",
                                        "9.7.4.1.5", "of the capture at", "RC_ACKNOWLEDGE"};
  const std::vector<Case> all{{"rights", "IBV_WC_REM_ACCESS_ERR", {"without remote write access"}},
                              {"range", "IBV_WC_REM_ACCESS_ERR", {"so the range is not inside"}},
                              {"key", "IBV_WC_REM_ACCESS_ERR", {"has registered a memory region with this R_Key"}},
                              {"window", "IBV_WC_REM_ACCESS_ERR", {"its memory window (type 2) is not bound"}},
                              {"freed", "IBV_WC_REM_ACCESS_ERR", {"its memory window had been deallocated"}},
                              {"local", "IBV_WC_LOC_PROT_ERR", {"its own NIC refused it", "10.6.3"}}};
  Tool tool;
  const std::string nic = GENERATE(as<std::string>{}, "rtl", "model", "rtl,model", "model,rtl");
  for (const auto& [mode, status, says] : all) {
    // What is wrong with a key does not depend on the NIC.
    if (nic != "rtl" && std::string(mode) != "rights" && std::string(mode) != "local") continue;
    const auto outcome = write_in(tool, mode, nic);
    INFO(nic << ", " << mode << ": " << outcome.output);
    CHECK(outcome.code == 1);
    const std::string diagnosis = line_with(outcome.output, "rnic: diagnosis: ");
    CHECK(contains(diagnosis, "server_writing on host1"));
    CHECK(contains(diagnosis, status));
    for (const auto& part : says) CHECK(contains(diagnosis, part));
    for (const auto& part : remote) CHECK(contains(diagnosis, part) == (std::string(mode) != "local"));
    const auto report = report_of(tool.folder() + "/" + mode + "/report.html");
    REQUIRE(report.is_object());
    CHECK(report["outcome"]["good"] == false);
    CHECK(contains(report["outcome"]["text"].get<std::string>(), "the client ended with exit code 1"));
    CHECK(report["processes"][1]["diagnoses"][0]["text"] == diagnosis);
    CHECK(report["processes"][1]["queue_pairs"][0]["requests"][0]["failed"] == 1);
  }
}

TEST_CASE("a kernel call that is refused is the diagnosis of a program that fails without a failed request") {
  Tool tool;
  const auto outcome = write_in(tool, "call");
  INFO(outcome.output);
  CHECK(outcome.code == 3);
  const std::string diagnosis = line_with(outcome.output, "rnic: diagnosis: ");
  CHECK(contains(diagnosis, "no request failed, but the kernel driver of host1 refused "));
  CHECK(contains(diagnosis, "register_mr of server_writing: "));
}

TEST_CASE("the report of a simulation that fails has the title and the command of rnic exec") {
  Tool tool;
  // The kernel driver's first reads of its admin queue are answered with Completer Abort, so the machine cannot begin.
  std::ofstream(tool.folder() + "/f.json") << R"({"pcie": {"a": {"completer_abort": 1}}})";
  const auto outcome = tool.run({"exec", "--faults", "f.json", "--report", "r.html", "--", "true", "argument"});
  INFO(outcome.output);
  CHECK(outcome.code == 2);
  const auto report = report_of(tool.folder() + "/r.html");
  REQUIRE(report.is_object());
  CHECK(report["title"] == "rnic exec: true");
  CHECK(report["command"] == "exec");
  CHECK(report["command_line"] == "rnic exec --faults f.json -- true argument");
  CHECK(report["outcome"]["good"] == false);
  REQUIRE(report["programs"].size() == 1);
  CHECK(report["programs"][0]["good"] == false);
}

TEST_CASE("a machine that runs has figures and diagnosis, or says that it has none") {
  const bool follows = GENERATE(true, false);
  ServerProcess server(follows ? std::vector<std::string>{} : std::vector<std::string>{"--no-programs"});
  Tool tool;
  const auto run = [&](const std::string& mode) {
    return tool.run({"exec", "--dir", server.folder() + "/run", "--pair", "--", RNIC_WRITING, "server", mode, "port",
                     "--", RNIC_WRITING, "client", mode, "port"});
  };
  const auto good = run("good"), refused = run("rights");
  INFO(good.output << refused.output);
  CHECK(contains(good.output, "(1 request, 8192 bytes)") == follows);
  CHECK(contains(refused.output, "rnic: diagnosis: ") == follows);
  CHECK(contains(good.output, "rnic: client: no figures of the simulated NIC") == !follows);
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE("a server that does not end by itself is no failure when its client has succeeded") {
  Tool tool;
  const std::string server =
      "import socket, time\n"
      "s = socket.socket()\n"
      "s.bind(('127.0.0.1', 0))\n"
      "s.listen()\n"
      "time.sleep(100)\n";
  const auto outcome = tool.run({"exec", "--pair", "--", "python3", "-c", server, "--", "true"});
  INFO(outcome.output);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.output, "the client has ended and the server has not: rnic ends the server"));
  const auto report = report_of(tool.folder() + "/rnic_pair_1/report.html");
  CHECK(report["outcome"]["good"] == true);
}

TEST_CASE("an address without a GRH gives Linux's error and one hint, which can be switched off") {
  Tool tool;
  const std::string program =
      "import ctypes\n"
      "v = ctypes.CDLL('libibverbs.so.1', use_errno=True)\n"
      "p = ctypes.c_void_p\n"
      "for f in (v.ibv_get_device_list, v.ibv_open_device, v.ibv_alloc_pd, v.ibv_create_ah): f.restype = p\n"
      "pd = p(v.ibv_alloc_pd(p(v.ibv_open_device(p(ctypes.cast(v.ibv_get_device_list(None), "
      "ctypes.POINTER(p))[0])))))\n"
      "ah = (ctypes.c_uint8 * 32)()\n"
      "ah[30] = 1\n"  // port_num of ibv_ah_attr; is_global in front of it is 0
      "for i in range(2): print(v.ibv_create_ah(pd, ah), ctypes.get_errno(), flush=True)\n";
  const std::string runtime = RNIC_SANITIZER_RUNTIME;
  const auto run = [&](const std::string& hints) {
    std::vector<std::string> words{"exec", "--", "env", "RNIC_HINTS=" + hints};
    if (!runtime.empty()) words.insert(words.end(), {"LD_PRELOAD=" + runtime, "ASAN_OPTIONS=detect_leaks=0"});
    words.insert(words.end(), {"python3", "-c", program});
    return tool.run(words);
  };
  const auto outcome = run("1");
  INFO(outcome.output);
  const std::size_t first = outcome.output.find("rnic: hint: ");
  CHECK(first != std::string::npos);
  CHECK(outcome.output.find("rnic: hint: ", first + 1) == std::string::npos);
  CHECK(contains(outcome.output, "None 22\nNone 22\n"));
  CHECK(run("0").output == "None 22\nNone 22\n");
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
