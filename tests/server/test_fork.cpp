#include <catch2/catch.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tests/server/server_process.hpp"
#include "tests/server/tool.hpp"

using rnic::test::ServerProcess;
using rnic::test::Tool;

// Programs that fork: ibv_fork_init(3), docs/verbs.md. What they do is in forking.cpp.

namespace {

struct Forking {
  ServerProcess server;
  Tool tool;

  std::size_t processes() {
    const auto outcome = tool.run({"ps", "--json", "--dir", server.folder() + "/run"});
    INFO(outcome.output);
    REQUIRE(outcome.code == 0);
    return nlohmann::json::parse(outcome.output)["results"]["hosts"][0]["processes"].size();
  }
};

}  // namespace

TEST_CASE_METHOD(Forking, "parent and child each have what is theirs") {
  for (const char* way : {"children_open", "child_opens_found_device", "child_destroys", "child_misuses",
                          "child_writes_memory", "child_executes", "child_is_killed", "threads_work"}) {
    const auto outcome = tool.run({"exec", "--dir", server.folder() + "/run", "--", RNIC_FORKING, way});
    CAPTURE(way, outcome.output);
    CHECK(outcome.code == 0);
  }
  CHECK(processes() == 0);
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE_METHOD(Forking, "a child does not keep the connection of a parent that has become another program") {
  const std::string line =
      rnic::test::tool_path() + " exec --dir " + server.folder() + "/run -- " + RNIC_FORKING + " parent_executes";
  FILE* const program = popen(line.c_str(), "r");
  REQUIRE(program != nullptr);
  int parent = 0, child = 0;
  REQUIRE(fscanf(program, "%d %d", &parent, &child) == 2);
  for (int i = 0; i < 100 && processes() != 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(kill(parent, 0) == 0);
  CHECK(kill(child, 0) == 0);
  CHECK(processes() == 0);
  kill(child, SIGKILL);
  kill(parent, SIGKILL);
  pclose(program);
  CHECK(server.end(SIGTERM) == 0);
}
