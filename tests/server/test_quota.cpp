#include <catch2/catch.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "driver/remote/attach.hpp"
#include "driver/umd/kernel_mw.hpp"
#include "driver/umd/kernel_srq.hpp"
#include "tests/server/remote_peer.hpp"
#include "tests/server/server_process.hpp"
#include "tests/server/tool.hpp"

using namespace rnic;
using test::RemotePeer;
using test::ServerProcess;
using test::Tool;

// What a process may have on a host: docs/machine_file.md, [quota].

namespace {

/// As much of it as there is.
template <typename T, typename Make>
std::vector<T> all_of(Make&& make) {
  std::vector<T> all;
  for (;;) {
    auto one = make();
    if (!one) return all;
    all.push_back(one.take());
  }
}

/// Connects and does as much as a program does.
int work(const std::string& socket) {
  RemotePeer a(socket, 0), b(socket, 0);
  const auto to_a = a.address(), to_b = b.address();
  a.connect(to_b);
  b.connect(to_a);
  a.memory()[0] = 77;
  const std::array segments{a.segment(0, 1)};
  a.post({.opcode = hw::WqeOpcode::kWrite,
          .id = 1,
          .segments = segments,
          .remote_address = to_b.memory,
          .remote_key = to_b.key});
  return a.poll().status == hw::CqeStatus::kSuccess && b.memory()[0] == 77 ? 0 : 1;
}

}  // namespace

TEST_CASE("a process that takes all that it may have leaves something for others") {
  ServerProcess server;
  const auto node = remote::attach(server.socket(0)).take();
  const auto contexts = all_of<std::shared_ptr<umd::ProcessContext>>([&] { return umd::ProcessContext::open(*node); });
  REQUIRE(contexts.size() > 1);
  umd::ProcessContext& context = *contexts[0];
  const auto cqs =
      all_of<std::shared_ptr<umd::CompletionQueue>>([&] { return umd::CompletionQueue::create(contexts[0], 16); });
  REQUIRE_FALSE(cqs.empty());
  umd::QueuePair::Spec spec;
  spec.send_cq = spec.receive_cq = cqs[0];
  spec.capacity = {.send_depth = 8, .receive_depth = 8, .send_segments = 1, .receive_segments = 1};
  const auto qps = all_of<std::shared_ptr<umd::QueuePair>>([&] { return umd::QueuePair::create(contexts[0], spec); });
  const auto srqs =
      all_of<std::unique_ptr<umd::KernelSrq>>([&] { return context.create_srq({.log_depth = 4, .log_stride = 6}); });
  std::vector<std::uint8_t> memory(4096);
  const auto regions = all_of<std::unique_ptr<umd::KernelMr>>(
      [&] { return context.create_mr({.address = memory.data(), .length = 1}); });
  const auto windows =
      all_of<std::unique_ptr<umd::KernelMw>>([&] { return context.create_mw({.type = hw::MptType::kWindow1}); });
  CHECK(qps.size() > 16);
  CHECK(cqs.size() > 16);
  CHECK(srqs.size() > 16);
  CHECK(regions.size() > 1000);
  CHECK(windows.size() > 1000);
  // Another process has what it needs.
  CHECK(test::exit_of(test::in_child([&] { return work(server.socket(0)); })) == 0);
}

TEST_CASE("a machine file says what a process may have, and rnic ps what it has") {
  Tool tool;
  std::ofstream(tool.folder() + "/m.toml") << "[quota]\nqueue_pairs = 3\npinned_mb = 1\nrings_mb = 1\nopens = 2\n";
  ServerProcess server({tool.folder() + "/m.toml"});
  RemotePeer peer(server.socket(0), 0);
  auto& context = peer.context();
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  std::vector<std::uint8_t> memory(kMiB);
  CHECK(context.create_mr({.address = memory.data(), .length = kMiB}).error() == Error::kOutOfMemory);
  const auto region = context.create_mr({.address = memory.data(), .length = kMiB / 2});
  REQUIRE(region.ok());
  CHECK(context.create_cq(1U << 14).error() == Error::kOutOfMemory);
  // Another connection of the process has what is left.
  RemotePeer second(server.socket(0), 0);
  CHECK(second.context().create_mr({.address = memory.data(), .length = kMiB / 2}).error() == Error::kOutOfMemory);
  CHECK(umd::ProcessContext::open(second.node()).error() == Error::kOutOfResources);
  umd::QueuePair::Spec spec;
  const auto cq = umd::CompletionQueue::create(second.context().shared_from_this(), 16).take();
  spec.send_cq = spec.receive_cq = cq;
  spec.capacity = {.send_depth = 8, .receive_depth = 8, .send_segments = 1, .receive_segments = 1};
  const auto third = umd::QueuePair::create(second.context().shared_from_this(), spec);
  REQUIRE(third.ok());
  CHECK(umd::QueuePair::create(second.context().shared_from_this(), spec).error() == Error::kOutOfResources);
  const auto outcome = tool.run({"ps", "--json", "--dir", server.folder() + "/run"});
  REQUIRE(outcome.code == 0);
  const auto processes = nlohmann::json::parse(outcome.output)["results"]["hosts"][0]["processes"];
  REQUIRE(processes.size() == 2);
  const auto pages = [](const void* at, std::size_t length) {
    const auto first = reinterpret_cast<std::uintptr_t>(at) / 4096;
    return (reinterpret_cast<std::uintptr_t>(at) + length - 1) / 4096 - first + 1;
  };
  const std::size_t pinned = pages(memory.data(), kMiB / 2) + pages(peer.memory(), RemotePeer::kBytes) +
                             pages(second.memory(), RemotePeer::kBytes);
  for (const auto& process : processes) {
    CHECK(process["pinned_bytes"] == pinned * 4096);
    CHECK(process["ring_bytes"] > 3 * 4096);
    CHECK(process["multicast_groups"] == 0);
  }
  CHECK(test::contains(tool.run({"ps", "--dir", server.folder() + "/run"}).output, "pinned MiB"));
}

TEST_CASE("a process has no more queue pairs in a multicast group than the machine file says, and 16 otherwise") {
  const std::array<std::uint8_t, 16> group{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 239, 0, 0, 1};
  const std::array<std::uint8_t, 16> other{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 239, 0, 0, 2};
  Tool tool;
  std::ofstream(tool.folder() + "/m.toml") << "[quota]\ngroup_members = 3\n";
  for (const bool said : {true, false}) {
    ServerProcess server(said ? std::vector{tool.folder() + "/m.toml"} : std::vector<std::string>{});
    const std::size_t members = said ? 3 : 16;
    // Two connections of the process, by turns.
    RemotePeer first(server.socket(0), 0), second(server.socket(0), 0);
    std::vector<std::shared_ptr<umd::QueuePair>> qps;
    for (std::size_t i = 0; i <= members; ++i) {
      auto& peer = i % 2 == 0 ? first : second;
      umd::QueuePair::Spec spec;
      spec.send_cq = spec.receive_cq = umd::CompletionQueue::create(peer.context().shared_from_this(), 16).take();
      spec.type = hw::QpType::kUd;
      spec.capacity = {.send_depth = 1, .receive_depth = 1, .send_segments = 1, .receive_segments = 1};
      qps.push_back(umd::QueuePair::create_idle(peer.context().shared_from_this(), spec).take());
    }
    for (std::size_t i = 0; i < members; ++i) CHECK(qps[i]->attach_multicast(group).ok());
    CHECK(qps[members]->attach_multicast(group).error() == Error::kOutOfResources);  // ENOMEM of the verbs
    CHECK(qps[0]->attach_multicast(group).error() == Error::kExists);
    CHECK(qps[members]->attach_multicast(other).ok());
    CHECK(test::exit_of(test::in_child([&] { return work(server.socket(0)); })) == 0);
    CHECK(qps[1]->detach_multicast(group).ok());
    CHECK(qps[members]->attach_multicast(group).ok());
  }
}

TEST_CASE("a process has no more than 16 connections, and others have theirs") {
  ServerProcess server;
  std::vector<std::shared_ptr<DeviceNode>> nodes;
  for (int i = 0; i < 16; ++i) nodes.push_back(remote::attach(server.socket(0)).take());
  CHECK(remote::attach(server.socket(0)).error() == Error::kDeviceNotFound);
  CHECK(remote::attach(server.socket(1)).ok());
  CHECK(test::exit_of(test::in_child([&] { return work(server.socket(0)); })) == 0);
  nodes.pop_back();
  Result<std::shared_ptr<DeviceNode>> again = Error::kDeviceNotFound;
  for (int i = 0; i < 100 && !again; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // that the other is gone the machine hears in its time
    again = remote::attach(server.socket(0));
  }
  CHECK(again.ok());
}

TEST_CASE("the ports have the MTU that the machine file says") {
  Tool tool;
  std::ofstream(tool.folder() + "/m.toml") << "mtu = 512\n";
  ServerProcess server({tool.folder() + "/m.toml"});
  RemotePeer peer(server.socket(0), 0);
  CHECK(peer.context().limits().max_mtu == 2);
  umd::QpConnection c;
  c.path.sgid_index = 1;
  c.path.dest_gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 2};
  c.path.dest_mac = 0x0200'0000'0002;
  c.path_mtu = 3;
  CHECK(peer.qp().connect(c).error() == Error::kInvalidParameter);
  c.path_mtu = 2;
  CHECK(peer.qp().connect(c).ok());
}
