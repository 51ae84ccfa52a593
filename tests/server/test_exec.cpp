#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/server/server_process.hpp"

using rnic::test::ServerProcess;

// rnic exec, as a user calls it: docs/server.md.

namespace {

struct Outcome {
  int code;
  std::string output;  ///< Of both kinds
};

/// Runs the tool in a folder of its own, in which no machine of the user's runs.
class Tool {
 public:
  Tool() {
    std::string name = (std::filesystem::temp_directory_path() / "rnic_test_exec.XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder");
    folder_ = name;
  }
  ~Tool() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  [[nodiscard]] const std::string& folder() const { return folder_; }
  Outcome run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), RNIC_TOOL);
    const std::string log = folder_ + "/output";
    const pid_t child = fork();
    if (child == 0) {
      std::vector<char*> argv;
      for (auto& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      const int to = open(log.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
      dup2(to, STDOUT_FILENO);
      dup2(to, STDERR_FILENO);
      setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
      setenv("TMPDIR", folder_.c_str(), 1);
      if (chdir(folder_.c_str()) == 0) execv(argv[0], argv.data());
      _exit(126);
    }
    const int code = rnic::test::exit_of(child);
    std::ifstream in(log);
    std::ostringstream text;
    text << in.rdbuf();
    return {code, text.str()};
  }
  /// What is left in the folder beside the output.
  [[nodiscard]] std::vector<std::string> left() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (entry.path().filename() != "output") names.push_back(entry.path().filename().string());
    }
    return names;
  }

 private:
  std::string folder_;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

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
