#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <string_view>

#include "tests/driver/nd2_fixture.hpp"

// Calls of the API whose instructions and allocations scripts/driver_cost.sh counts.
//
// usage: driver_cost PATH CALLS    makes CALLS calls of the path, each from the same state
//        driver_cost --allocations says how many times each path asks for memory

using namespace rnic;
using test::FakeDevice;

namespace {

bool g_counting = false;
unsigned long g_allocations = 0;

}  // namespace

void* operator new(std::size_t bytes) {
  if (g_counting && !FakeDevice::inside()) ++g_allocations;
  void* const memory = std::malloc(bytes != 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

constexpr ULONG kDepth = 64;
constexpr ULONG kInlineBytes = 32;
constexpr unsigned kBatch = 16;
/// More than go through the window (docs/driver.md).
constexpr unsigned kManyOutstanding = 16;

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "driver_cost: %s\n", what);
  std::exit(1);
}

void require(bool holds, const char* what) {
  if (!holds) give_up(what);
}

/// The call that is counted.
template <typename Call>
auto counted(Call&& call) {
  g_counting = true;
  const auto answer = call();
  g_counting = false;
  return answer;
}

struct Bench : test::Nd2Fixture {
  Bench() {
    queue = make_queue(2 * kDepth);
    pair = make_pair(queue, kDepth, 4, 64);
    core = nd2::QueuePair::find(pair)->core();
    require(core->connect({}).ok(), "no connection");
    segment = {data.data(), static_cast<ULONG>(data.size()), 7};
  }

  void write() {
    require(counted([&] { return pair->Write(this, &segment, 1, 0x2000, 9, 0); }) == ND_SUCCESS, "Write failed");
  }
  void send_inline() {
    segment.BufferLength = kInlineBytes;
    require(counted([&] { return pair->Send(this, &segment, 1, ND_OP_FLAG_INLINE); }) == ND_SUCCESS, "Send failed");
  }
  void receive() {
    require(counted([&] { return pair->Receive(this, &segment, 1); }) == ND_SUCCESS, "Receive failed");
  }
  void post_quietly(unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      require(pair->Write(this, &segment, 1, 0x2000, 9, 0) == ND_SUCCESS, "Write failed");
  }
  void finish_sends(unsigned count) {
    for (unsigned i = 0; i < count; ++i) device.finish_send(core->qpn());
  }
  void take_quietly() { require(queue->GetResults(results.data(), 1) == 1, "an entry is missing"); }
  void poll(unsigned count) {
    require(counted([&] { return queue->GetResults(results.data(), count); }) == count, "entries are missing");
    require(results[0].Status == ND_SUCCESS && results[0].RequestContext == this, "the wrong entry");
  }
  /// What the device keeps of the past is not looked at here.
  void forget() {
    device.doorbells.clear();
    device.window.clear();
  }

  std::array<std::uint8_t, 64> data{};
  ND2_SGE segment{};
  std::array<ND2_RESULT, kBatch> results{};
};

/// `round` makes one call that is counted (no other call of the same function), and leaves the queues as they were.
struct Path {
  std::function<void(Bench&)> round;
  std::function<void(Bench&)> before = [](Bench&) {};
};

const std::map<std::string, Path, std::less<>> kPaths = {
    {"write", {[](Bench& bench) {
       bench.write();
       require(bench.device.window.size() == 1 && bench.device.doorbells.empty(), "not through the window");
       bench.finish_sends(1);
       bench.take_quietly();
     }}},
    {"write_doorbell",
     {[](Bench& bench) {
        bench.write();
        require(bench.device.window.empty() && bench.device.doorbells.size() == 1, "not by the doorbell");
        bench.finish_sends(1);
        bench.take_quietly();
      },
      [](Bench& bench) { bench.post_quietly(kManyOutstanding); }}},
    {"send_inline", {[](Bench& bench) {
       bench.send_inline();
       require(bench.device.window.size() == 1 && bench.device.doorbells.empty(), "not through the window");
       bench.finish_sends(1);
       bench.take_quietly();
     }}},
    {"receive", {[](Bench& bench) {
       bench.receive();
       bench.device.finish_receive(bench.core->qpn(), 64);
       bench.take_quietly();
     }}},
    {"poll", {[](Bench& bench) {
       bench.post_quietly(1);
       bench.finish_sends(1);
       bench.poll(1);
     }}},
    {"poll_receive", {[](Bench& bench) {
       require(bench.pair->Receive(&bench, &bench.segment, 1) == ND_SUCCESS, "Receive failed");
       bench.device.finish_receive(bench.core->qpn(), 64);
       bench.poll(1);
     }}},
    {"poll_batch", {[](Bench& bench) {
       bench.post_quietly(kBatch);
       bench.finish_sends(kBatch);
       bench.poll(kBatch);
     }}},
};

void run(const Path& path, unsigned long calls) {
  Bench bench;
  path.before(bench);
  g_allocations = 0;
  for (; calls != 0; --calls) {
    bench.forget();
    path.round(bench);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--allocations") {
    for (const auto& [name, path] : kPaths) {
      run(path, 1000);
      std::printf("%s %lu\n", name.c_str(), g_allocations);
    }
    return 0;
  }
  const auto path = argc == 3 ? kPaths.find(std::string_view(argv[1])) : kPaths.end();
  if (path == kPaths.end()) give_up("which path, and how many calls? See the top of driver_cost.cpp");
  run(path->second, std::strtoul(argv[2], nullptr, 10));
  return 0;
}
