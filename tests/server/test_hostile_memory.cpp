#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>

#include "driver/remote/attach.hpp"
#include "driver/umd/protection_domain.hpp"
#include "tests/server/child_peer.hpp"
#include "tests/server/remote_peer.hpp"
#include "tests/server/server_process.hpp"
#include "tests/server/silent_memory.hpp"

using namespace rnic;
using test::ChildPeer;
using test::RemotePeer;
using test::ServerProcess;
using Clock = std::chrono::steady_clock;

// What a process does with its own memory is nobody else's harm: docs/server.md, Application memory.

namespace {

constexpr std::size_t kBytes = std::size_t{64} << 10;
constexpr std::uintptr_t kPlace = 0x6000'0000'0000;

std::string hex(std::uint64_t number) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%llx", static_cast<unsigned long long>(number));
  return text.data();
}

ChildPeer::Memory own_pages() {
  void* const at = mmap(reinterpret_cast<void*>(kPlace), kBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (at == MAP_FAILED) return {};
  std::memset(at, 'c', kBytes);
  return {static_cast<std::uint8_t*>(at), kBytes};
}

/// What is open stays open in the program that comes.
int become_successor() {
  for (int i = 3; i < 256; ++i) static_cast<void>(fcntl(i, F_SETFD, 0));
  execl(RNIC_SUCCESSOR, RNIC_SUCCESSOR, hex(kPlace).c_str(), hex(kBytes).c_str(), "4", static_cast<char*>(nullptr));
  return 91;
}

hw::CqeStatus move(RemotePeer& peer, hw::WqeOpcode opcode, const RemotePeer::Address& to, std::uint32_t length) {
  const std::array segments{peer.segment(0, length)};
  peer.post({.opcode = opcode, .id = 1, .segments = segments, .remote_address = to.memory, .remote_key = to.key});
  return peer.wait().status;
}

/// How long others wait, at most, for something small of the machine, as long as this is there.
class Bystander {
 public:
  explicit Bystander(const std::string& socket)
      : node_(remote::attach(socket).take()), context_(umd::ProcessContext::open(*node_).take()), thread_([this] {
          while (!stop_) {
            const auto begin = Clock::now();
            if (!context_->alloc_pd()) wrong_ = true;
            const Clock::duration took = Clock::now() - begin;
            if (took > longest_.load()) longest_ = took;
          }
        }) {}
  ~Bystander() { end(); }
  void end() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] Clock::duration longest() const { return longest_; }
  [[nodiscard]] bool wrong() const { return wrong_; }

 private:
  const std::shared_ptr<DeviceNode> node_;
  const std::shared_ptr<umd::ProcessContext> context_;
  std::atomic<bool> stop_{}, wrong_{};
  std::atomic<Clock::duration> longest_{};
  std::thread thread_;
};

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

TEST_CASE("the NIC writes nothing into the program that takes the place of the one that has registered memory") {
  ServerProcess server({"--nic", "model"});
  RemotePeer writer(server.socket(1), 1);
  ChildPeer child(server.socket(0), writer, own_pages,
                  [](RemotePeer&, const ChildPeer::Memory&) { return become_successor(); });
  CHECK(move(writer, hw::WqeOpcode::kWrite, child.address(), 4096) == hw::CqeStatus::kSuccess);
  child.begin();
  // What is on its way when the old program ends may still succeed.
  auto status = hw::CqeStatus::kSuccess;
  for (int i = 0; i < 20'000 && status == hw::CqeStatus::kSuccess; ++i)
    status = move(writer, hw::WqeOpcode::kWrite, child.address(), 4096);
  CHECK(status != hw::CqeStatus::kSuccess);
  CHECK(child.end() == 0);
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE("memory that never answers fails the request, and holds nobody up for long") {
  ServerProcess server({"--nic", "model"});
  for (const auto opcode : {hw::WqeOpcode::kRead, hw::WqeOpcode::kWrite}) {
    CAPTURE(static_cast<int>(opcode));
    RemotePeer peer(server.socket(1), 1);
    ChildPeer child(server.socket(0), peer, own_pages, [](RemotePeer&, const ChildPeer::Memory& memory) {
      if (const int refused = test::silence(memory.at, memory.bytes); refused != 0) return refused;
      for (;;) pause();
    });
    CHECK(move(peer, opcode, child.address(), 4096) == hw::CqeStatus::kSuccess);
    Bystander bystander(server.socket(0));
    child.begin();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    if (kill(child.process(), 0) != 0) {
      WARN("this user may not keep the kernel waiting (userfaultfd)");
      return;
    }
    // One write may be under way; those behind it find nobody.
    auto status = hw::CqeStatus::kSuccess;
    for (int i = 0; i < 3 && status == hw::CqeStatus::kSuccess; ++i) status = move(peer, opcode, child.address(), 4096);
    CHECK(status != hw::CqeStatus::kSuccess);
    bystander.end();
    CHECK_FALSE(bystander.wrong());
    CHECK(seconds(bystander.longest()) < 6);
  }
  CHECK(server.end(SIGTERM) == 0);
}

TEST_CASE("a registration of much memory lets others have their turn") {
  ServerProcess server({"--nic", "model"});
  constexpr std::size_t kMuch = (std::size_t{4} << 30) - 4096;
  void* const memory = mmap(nullptr, kMuch, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  const auto node = remote::attach(server.socket(0)).take();
  const auto context = umd::ProcessContext::open(*node).take();
  const auto domain = context->alloc_pd();
  Bystander bystander(server.socket(0));
  const auto begin = Clock::now();
  for (int i = 0; i < 2; ++i) {
    auto region = context->create_mr({.address = memory, .length = kMuch});
    REQUIRE(region.ok());
    region->reset();
  }
  const auto each = (Clock::now() - begin) / 2;
  bystander.end();
  CAPTURE(seconds(each), seconds(bystander.longest()));
  CHECK_FALSE(bystander.wrong());
  CHECK(bystander.longest() < each / 4);
  munmap(memory, kMuch);
  CHECK(server.end(SIGTERM) == 0);
}
