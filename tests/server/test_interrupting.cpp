#include <catch2/catch.hpp>

#include <csignal>
#include <string>

#include "tests/server/server_process.hpp"
#include "tests/server/tool.hpp"

using rnic::test::ServerProcess;
using rnic::test::Tool;

// Programs whose threads are cancelled and interrupted (docs/verbs.md, Threads and signals). What they do is in
// interrupting.cpp.

TEST_CASE("a call is a cancellation point, and interrupted, only where it is one on Linux") {
  ServerProcess server({"--nic", "model"});
  Tool tool;
  for (const char* way : {"cancelled_calls", "cancelled_waits", "cancelled_pollers", "interrupted_waits",
                          "handler_posts", "closes_descriptors", "ends_late"}) {
    const auto outcome = tool.run({"exec", "--dir", server.folder() + "/run", "--", RNIC_INTERRUPTING, way});
    CAPTURE(way, outcome.output);
    CHECK(outcome.code == 0);
  }
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE("the libraries can be unloaded") {
  ServerProcess server({"--nic", "model"});
  Tool tool;
  for (const char* library : {"libibverbs.so.1", "librdmacm.so.1"}) {
    const auto outcome = tool.run({"exec", "--dir", server.folder() + "/run", "--", RNIC_UNLOADING, library});
    CAPTURE(library, outcome.output);
    CHECK(outcome.code == 0);
  }
  CHECK(server.end(SIGTERM) == 0);
}
