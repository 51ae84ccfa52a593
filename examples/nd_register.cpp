// Rate and latency of registrations, of buffers of several sizes. One host is enough: nd_register ADDRESS.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>

#include "session.hpp"

using namespace examples;

int main(int count, char* words[]) {
  std::string address;
  std::uint32_t rounds = 100;
  CLI::App program("Registrations a second");
  program.add_option("address", address, "An IPv4 address of this host's adapter")->required();
  program.add_option("--count", rounds, "How often, of each size")
      ->check(CLI::Range(1u, 1'000'000u))
      ->capture_default_str();
  try {
    program.parse(count, words);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : 2;
  }
  require(NdStartup(), "NdStartup");
  {
    Session session(address_of(address, 0), 1);
    std::printf("%10s %10s %16s %18s %16s\n", "bytes", "rounds", "Register us", "Deregister us", "pairs/s");
    for (const std::size_t bytes :
         {std::size_t{4} << 10, std::size_t{64} << 10, std::size_t{1} << 20, std::size_t{4} << 20}) {
      Memory memory = session.allocate(bytes, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
      double registering = 0, ending = 0;
      for (std::uint32_t i = 0; i < rounds; ++i) {
        const double begin = now_us();
        session.finish(memory.region, memory.region->Deregister(session.request()), "Deregister");
        const double between = now_us();
        session.finish(
            memory.region,
            memory.region->Register(memory.bytes.data(), bytes, ND_MR_FLAG_ALLOW_REMOTE_WRITE, session.request()),
            "Register");
        ending += between - begin;
        registering += now_us() - between;
      }
      session.release(memory);
      std::printf("%10zu %10u %16.2f %18.2f %16.1f\n", bytes, rounds, registering / rounds, ending / rounds,
                  rounds * 1e6 / (registering + ending));
    }
  }
  require(NdCleanup(), "NdCleanup");
}
