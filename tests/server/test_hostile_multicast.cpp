#include <catch2/catch.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "driver/remote/attach.hpp"
#include "driver/umd/address_handle.hpp"
#include "driver/umd/queue_pair.hpp"
#include "tests/server/server_process.hpp"

using namespace rnic;
using test::ServerProcess;

// A process that is in a multicast group with all queue pairs that it may have, and one that sends to the group without
// a pause, cost others no more than the copies of one datagram: docs/architecture.md, Who waits for whom.

namespace {

constexpr std::uint32_t kQkey = 0x1234;
constexpr std::uint32_t kDepth = 512;
// In simulated time. Each takes some microseconds; but while the victim waits for a processor the flood goes on.
constexpr std::uint64_t kLongestNs = 1'000'000;
constexpr std::size_t kMembers = 120, kSenders = 4, kBatch = 32;

using Gid = std::array<std::uint8_t, 16>;

template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(std::string(describe(result.error())));
  return result.take();
}
void must(const Result<void>& result) {
  if (!result) throw std::runtime_error(std::string(describe(result.error())));
}

/// 239.0.0.`number`.
Gid group(std::uint8_t number) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 239, 0, 0, number}; }

/// A program on a host, with a completion queue.
struct Program {
  explicit Program(const std::string& socket) : node(must(remote::attach(socket))) {}
  [[nodiscard]] std::shared_ptr<umd::QueuePair> datagram_qp(std::uint32_t depth) const {
    umd::QueuePair::Spec spec;
    spec.send_cq = spec.receive_cq = cq;
    spec.type = hw::QpType::kUd;
    spec.capacity = {.send_depth = depth, .receive_depth = 1, .send_segments = 1, .receive_segments = 1};
    return must(umd::QueuePair::create_idle(context, spec));
  }

  std::shared_ptr<DeviceNode> node;
  std::shared_ptr<umd::ProcessContext> context = must(umd::ProcessContext::open(*node));
  std::shared_ptr<umd::CompletionQueue> cq = must(umd::CompletionQueue::create(context, 4 * kDepth));
};

/// What the processes of a test know of each other; all of them see it.
struct Shared {
  std::atomic<std::size_t> members;
  std::atomic<std::uint64_t> sent;
  std::atomic<std::uint8_t> to;  ///< The group
};

/// A child that is killed with this.
class Child {
 public:
  explicit Child(const std::function<int()>& body) : process_(test::in_child(body)) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    kill(process_, SIGKILL);
    test::exit_of(process_);
  }
  [[nodiscard]] bool gone() const {
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid != 0;
  }

 private:
  const pid_t process_;
};

int join(const std::string& socket, Shared& shared) {
  const Program program(socket);
  std::vector<std::shared_ptr<umd::QueuePair>> qps;
  for (std::size_t i = 0; i < kMembers; ++i) {
    qps.push_back(program.datagram_qp(1));
    must(qps.back()->attach_multicast(group(1)));
    ++shared.members;
  }
  for (;;) pause();
}

/// Empty datagrams, and always many of them posted.
int flood(const std::string& socket, Shared& shared) {
  const Program program(socket);
  std::vector<std::shared_ptr<umd::QueuePair>> qps;
  umd::QpConnection attributes;
  attributes.path.sgid_index = 1;
  attributes.path.hop_limit = 1;
  attributes.qkey = kQkey;
  for (std::size_t i = 0; i < kSenders; ++i) {
    qps.push_back(program.datagram_qp(kDepth));
    must(qps.back()->connect(attributes));
  }
  std::array<std::size_t, kSenders> posted{};
  std::array<umd::Completion, 16> completions{};
  for (;;) {
    const std::uint8_t number = shared.to;
    const auto to = must(umd::AddressHandle::create(
        {.dest_ip = group(number), .dest_mac = std::uint64_t{0x0100'5E00'0000} | number, .hop_limit = 1}));
    for (std::size_t i = 0; i < kSenders; ++i) {
      for (; posted[i] + kBatch <= kDepth - kBatch; posted[i] += kBatch) {
        for (std::size_t k = 1; k <= kBatch; ++k)
          must(qps[i]->post_send({.opcode = hw::WqeOpcode::kSend,
                                  .id = i,
                                  .address = &to,
                                  .dest_qpn = 0xFF'FFFF,
                                  .qkey = kQkey,
                                  .silent = k != kBatch,
                                  .defer = k != kBatch}));
      }
    }
    const std::size_t came = program.cq->poll(completions);
    for (std::size_t i = 0; i < came; ++i) {
      if (completions[i].status != hw::CqeStatus::kSuccess) return 1;
      posted[completions[i].id] -= kBatch;
      shared.sent += kBatch;
    }
  }
}

}  // namespace

TEST_CASE("a flood of datagrams to a group does not hold up what another process creates and destroys") {
  const test::OwnFolder folder;
  const std::string file = folder.path() + "/m.toml";
  std::ofstream(file) << "[quota]\ngroup_members = " << kMembers << "\n";
  ServerProcess server({file});
  void* const pages = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  Shared& shared = *new (pages) Shared{};
  // Nobody is in group 2.
  shared.to = 2;
  const Child members([&] { return join(server.socket(0), shared); });
  const auto wait = [](const Child& on, auto&& until) {
    while (!until() && !on.gone()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    REQUIRE(until());
  };
  wait(members, [&] { return shared.members == kMembers; });
  const Child flooder([&] { return flood(server.socket(1), shared); });
  const Program victim(server.socket(0));
  Machine& machine = victim.node->machine();
  for (const std::uint8_t to : {2, 1}) {
    CAPTURE(static_cast<unsigned>(to));
    shared.to = to;
    // What was posted for the other group has gone.
    const std::uint64_t before = shared.sent;
    wait(flooder, [&] { return shared.sent >= before + 2 * kSenders * kDepth; });
    std::uint64_t longest = 0;
    for (int i = 0; i < 5; ++i) {
      const std::uint64_t begin = machine.device_ns();
      const auto qp = victim.datagram_qp(1);
      const std::uint64_t created = machine.device_ns();
      REQUIRE(qp->close().ok());
      longest = std::max({longest, created - begin, machine.device_ns() - created});
    }
    CHECK(longest < kLongestNs);
    const std::uint64_t then = shared.sent;
    wait(flooder, [&] { return shared.sent > then; });
  }
  munmap(pages, 4096);
}
