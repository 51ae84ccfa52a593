#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <random>
#include <vector>

#include "tests/server/remote_peer.hpp"

// A program that works on both hosts of a machine, at random, until it is killed.
// usage: server_victim SOCKET0 SOCKET1 SEED. Exit code 3: data came wrong; 4: something did not succeed.

using namespace rnic;
using test::RemotePeer;

namespace {

class Work {
 public:
  Work(std::array<std::string, 2> sockets, unsigned seed) : sockets_(std::move(sockets)), random_(seed) {}

  void step() {
    if (pairs_.empty() || (pairs_.size() < kMostPairs && random_() % 20 == 0)) return open();
    if (random_() % 40 == 0) return close();
    Pair& pair = *pairs_[random_() % pairs_.size()];
    switch (random_() % 5) {
      case 0: return register_something(pair);
      case 1: return move(pair, hw::WqeOpcode::kRead);
      default: return move(pair, hw::WqeOpcode::kWrite);
    }
  }

 private:
  static constexpr std::size_t kMostPairs = 3;
  struct Pair {
    Pair(const std::array<std::string, 2>& sockets, unsigned first)
        : a(sockets[first], first), b(sockets[1 - first], 1 - first) {
      const auto to_a = a.address(), to_b = b.address();
      a.connect(to_b);
      b.connect(to_a);
    }
    RemotePeer a, b;
  };

  void open() { pairs_.push_back(std::make_unique<Pair>(sockets_, static_cast<unsigned>(random_() % 2))); }
  void close() { pairs_.erase(pairs_.begin() + static_cast<std::ptrdiff_t>(random_() % pairs_.size())); }

  void register_something(Pair& pair) {
    std::vector<std::uint8_t> memory(1 + random_() % 20'000);
    const auto region =
        pair.a.context().create_mr({.address = memory.data(), .length = memory.size(), .local_write = true});
    if (!region) throw std::runtime_error("region");
  }

  void move(Pair& pair, hw::WqeOpcode opcode) {
    const auto length = static_cast<std::uint32_t>(1 + random_() % 9'000);
    const auto from = static_cast<std::uint32_t>(random_() % 1'000), to = static_cast<std::uint32_t>(random_() % 1'000);
    for (std::uint32_t i = 0; i < length; ++i) {
      pair.a.memory()[from + i] = static_cast<std::uint8_t>(random_());
      pair.b.memory()[to + i] = static_cast<std::uint8_t>(random_());
    }
    const std::vector<std::uint8_t> expected =
        opcode == hw::WqeOpcode::kWrite ? std::vector(pair.a.memory() + from, pair.a.memory() + from + length)
                                        : std::vector(pair.b.memory() + to, pair.b.memory() + to + length);
    const std::array segments{pair.a.segment(from, length)};
    pair.a.post({.opcode = opcode,
                 .id = 1,
                 .segments = segments,
                 .remote_address = pair.b.address().memory + to,
                 .remote_key = pair.b.address().key});
    const auto completion = random_() % 2 == 0 ? pair.a.poll() : pair.a.wait();
    if (completion.status != hw::CqeStatus::kSuccess) throw std::runtime_error("completion");
    const std::uint8_t* const came = opcode == hw::WqeOpcode::kWrite ? pair.b.memory() + to : pair.a.memory() + from;
    if (std::memcmp(came, expected.data(), length) != 0) std::exit(3);
  }

  const std::array<std::string, 2> sockets_;
  std::mt19937 random_;
  std::vector<std::unique_ptr<Pair>> pairs_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    Work work({argv[1], argv[2]}, static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10)));
    for (;;) work.step();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "server_victim: %s\n", error.what());
    return 4;
  }
}
