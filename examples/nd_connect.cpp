// Rate of connections: each with a queue pair and a connector of its own, ended before the next one begins.
#include <cstdio>

#include "session.hpp"

using namespace examples;

int main(int count, char* words[]) {
  const Arguments arguments = read_arguments(count, words, "Connections a second", {.count = 100}, "");
  require(NdStartup(), "NdStartup");
  const sockaddr_in server = server_address(arguments);
  const sockaddr_in own = arguments.server ? server : client_address(arguments);
  {
    Session session(own, 4);
    if (arguments.server) session.listen(server);
    const double begin = now_us();
    for (std::uint32_t i = 0; i < arguments.count; ++i) {
      session.begin();
      // Each side tells the number of the connection.
      const Greeting told{.address = i, .token = arguments.server};
      const Greeting heard = arguments.server ? session.accept(told) : session.connect(own, server, told);
      if (heard.address != i || heard.token == told.token) fail("the peer has told something else");
      session.disconnect();
    }
    const double us = now_us() - begin;
    if (!arguments.server) {
      std::printf("%12s %14s %16s\n", "connections", "us for each", "connections/s");
      std::printf("%12u %14.1f %16.1f\n", arguments.count, us / arguments.count, arguments.count * 1e6 / us);
    }
  }
  require(NdCleanup(), "NdCleanup");
}
