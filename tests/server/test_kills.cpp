#include <catch2/catch.hpp>

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "driver/remote/attach.hpp"
#include "driver/umd/kernel_srq.hpp"
#include "driver/umd/protection_domain.hpp"
#include "tests/server/remote_peer.hpp"
#include "tests/server/server_process.hpp"
#include "tests/server/tool.hpp"

using namespace rnic;
using test::RemotePeer;
using test::ServerProcess;
using test::Tool;

// Programs that are killed at any instant give back what they had, and disturb nobody.

namespace {

/// How many of each kind a process can have on a host, when nobody else has any.
struct Room {
  std::size_t contexts, queue_pairs, completion_queues, shared_queues, regions, domains;
  bool operator==(const Room&) const = default;
};

template <typename Make>
std::size_t count_of(Make make, std::size_t most) {
  std::vector<decltype(make().take())> all;
  while (all.size() < most) {
    auto one = make();
    if (!one) break;
    all.push_back(one.take());
  }
  return all.size();
}

Room room_of(const std::string& socket) {
  const auto node = remote::attach(socket).take();
  const auto context = umd::ProcessContext::open(*node).take();
  const auto cq = umd::CompletionQueue::create(context, 4).take();
  umd::QueuePair::Spec spec;
  spec.send_cq = spec.receive_cq = cq;
  spec.capacity = {.send_depth = 1, .receive_depth = 1, .send_segments = 1, .receive_segments = 1};
  constexpr std::size_t kAll = 1 << 20, kSomeRegions = 2'000;
  std::array<std::uint8_t, 64> memory{};
  return {
      .contexts = count_of([&] { return umd::ProcessContext::open(*node); }, kAll),
      .queue_pairs = count_of([&] { return umd::QueuePair::create(context, spec); }, kAll),
      .completion_queues = count_of([&] { return context->create_cq(4); }, kAll),
      .shared_queues = count_of([&] { return context->create_srq({.log_depth = 2, .log_stride = 6}); }, kAll),
      .regions = count_of([&] { return context->create_mr({.address = memory.data(), .length = 64}); }, kSomeRegions),
      .domains = count_of([&] { return context->alloc_pd(); }, kAll)};
}

/// What the machine's process has of the system.
struct Held {
  std::size_t descriptors, mappings, processes;
  bool operator==(const Held&) const = default;
};

std::size_t lines_of(const std::string& file, const std::string& only = "") {
  std::ifstream in(file);
  std::size_t lines = 0;
  for (std::string line; std::getline(in, line);) lines += line.find(only) != std::string::npos ? 1 : 0;
  return lines;
}

/// Descendants, those that have ended and nobody has asked for among them.
std::size_t descendants_of(pid_t process) {
  const std::string folder = "/proc/" + std::to_string(process);
  std::size_t all = 0;
  std::ifstream in(folder + "/task/" + std::to_string(process) + "/children");
  for (pid_t child = 0; in >> child;) all += 1 + descendants_of(child);
  return all;
}

Held held_by(pid_t machine) {
  return {.descriptors = test::descriptors_of(machine),
          .mappings = lines_of("/proc/" + std::to_string(machine) + "/maps", "memfd:"),
          .processes = descendants_of(machine)};
}

/// When those that have gone have been missed.
Held settled(pid_t machine, const Held& wanted) {
  Held now = held_by(machine);
  for (int i = 0; i < 500 && now != wanted; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    now = held_by(machine);
  }
  return now;
}

pid_t start_victim(const ServerProcess& server, unsigned seed) {
  const std::string first = server.socket(0), second = server.socket(1), number = std::to_string(seed);
  const pid_t child = fork();
  if (child != 0) return child;
  execl(RNIC_VICTIM, RNIC_VICTIM, first.c_str(), second.c_str(), number.c_str(), static_cast<char*>(nullptr));
  _exit(127);
}

/// Works all the time, and looks at every byte.
class Bystander {
 public:
  Bystander(const ServerProcess& server, unsigned from)
      : a_(server.socket(from), from), b_(server.socket(1 - from), 1 - from) {
    const auto to_a = a_.address(), to_b = b_.address();
    a_.connect(to_b);
    b_.connect(to_a);
    thread_ = std::thread([this] { work(); });
  }
  ~Bystander() { end(); }
  void end() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] unsigned done() const { return done_; }
  [[nodiscard]] bool wrong() const { return wrong_; }

 private:
  void work() {
    try {
      for (unsigned round = 1; !stop_ && !wrong_; ++round) {
        constexpr std::uint32_t kLength = 5'000;
        for (std::uint32_t i = 0; i < kLength; ++i) a_.memory()[i] = static_cast<std::uint8_t>(round * 31 + i * 7);
        const std::array segments{a_.segment(0, kLength)};
        a_.post({.opcode = hw::WqeOpcode::kWrite,
                 .id = round,
                 .segments = segments,
                 .remote_address = b_.address().memory + 3,
                 .remote_key = b_.address().key});
        const auto completion = a_.poll();
        wrong_ = completion.status != hw::CqeStatus::kSuccess || completion.id != round ||
                 std::memcmp(a_.memory(), b_.memory() + 3, kLength) != 0;
        ++done_;
      }
    } catch (const std::runtime_error&) {
      wrong_ = true;
    }
  }

  RemotePeer a_, b_;
  std::thread thread_;
  std::atomic<bool> stop_ = false, wrong_ = false;
  std::atomic<unsigned> done_ = 0;
};

}  // namespace

TEST_CASE("processes that are killed at random give everything back, and others do not notice") {
  const auto from_environment = [](const char* name, unsigned otherwise) {
    const char* const text = std::getenv(name);
    return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : otherwise;
  };
  const unsigned kills = from_environment("RNIC_KILLS", 40), seed = from_environment("RNIC_SEED", 1);
  CAPTURE(kills, seed);
  // A process may have all that there is, so that nothing can be missing unseen.
  Tool tool;
  std::ofstream(tool.folder() + "/m.toml") << "[quota]\nopens = 1000\nqueue_pairs = 1000\ncompletion_queues = 1000\n"
                                              "shared_receive_queues = 1000\nmemory_regions = 100000\n"
                                              "protection_domains = 10000\n";
  ServerProcess server({tool.folder() + "/m.toml"});
  const std::array before{room_of(server.socket(0)), room_of(server.socket(1))};
  const Held alone = settled(server.process(), {});
  CHECK(before[0].queue_pairs > 200);
  CHECK(before[0].regions == 2'000);
  {
    Bystander one(server, 0), two(server, 1);
    std::mt19937 random(seed);
    for (unsigned killed = 0; killed < kills;) {
      std::vector<pid_t> victims;
      for (unsigned i = 0; i < 2; ++i) victims.push_back(start_victim(server, static_cast<unsigned>(random())));
      for (const pid_t victim : victims) {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
        kill(victim, SIGKILL);
        CHECK(test::exit_of(victim) == 128 + SIGKILL);
        ++killed;
      }
    }
    one.end();
    two.end();
    CHECK_FALSE(one.wrong());
    CHECK_FALSE(two.wrong());
    CHECK(one.done() > 0);
    CHECK(two.done() > 0);
  }
  for (unsigned host = 0; host < 2; ++host) {
    const Room after = room_of(server.socket(host));
    CAPTURE(host, after.contexts, after.queue_pairs, after.completion_queues, after.shared_queues, after.regions,
            after.domains);
    CHECK(after == before[host]);
  }
  const Held now = settled(server.process(), alone);
  CAPTURE(alone.descriptors, now.descriptors, alone.mappings, now.mappings, alone.processes, now.processes);
  CHECK(now == alone);
  CHECK(server.end(SIGTERM) == 0);
}
