#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "driver/costs.hpp"
#include "model/random.hpp"
#include "tests/system/unreliable_world.hpp"

using namespace rnic;
using namespace rnic::test;
using model::PcieAccess;
using model::PcieFault;

// A fault of PCI Express at the n-th TLP of a kind, on either host, from bring-up to tear-down (base specification
// 2.3.2, 2.7.2, 2.8): the world neither hangs nor stops, no request succeeds without its data, what is not hit goes on,
// and the devices come back with a new adapter. A posted write that is lost on its way (2.4.1: nobody answers it) can
// be known to the machine alone: what it carried is not there, and what it should have started does not start. A sample
// by seed; RNIC_SWEEP=number takes so many points.

namespace {

constexpr std::size_t kBytes = 6'000;
constexpr int kRounds = 3;
constexpr std::uint32_t kLongestRead = 512;
constexpr std::uint64_t kLimitNs = 2'000'000;

struct Point {
  PcieFault fault;
  PcieAccess access;
  std::uint64_t nth;
  std::size_t host;
  std::uint32_t after_bytes;  ///< Of a read: so much of it is right
};

/// A posted write is lost.
bool is_silent(const Point& point) {
  return point.access == PcieAccess::kDmaWrite || point.access == PcieAccess::kHostWrite;
}

std::string describe(const Point& point) {
  return fmt::format("{} at {} {} of host {}, after {} bytes", name(point.fault), name(point.access), point.nth,
                     point.host, point.after_bytes);
}

/// Each kind of fault with a place that a run of this size reaches, mostly.
Point draw(model::Random& random) {
  struct Kind {
    PcieFault fault;
    PcieAccess access;
    std::uint64_t last;
  };
  static constexpr std::array kKinds{
      Kind{PcieFault::kTimeout, PcieAccess::kDmaRead, 200},
      Kind{PcieFault::kUnsupportedRequest, PcieAccess::kDmaRead, 200},
      Kind{PcieFault::kCompleterAbort, PcieAccess::kDmaRead, 200},
      Kind{PcieFault::kPoisoned, PcieAccess::kDmaRead, 200},
      Kind{PcieFault::kLate, PcieAccess::kDmaRead, 200},
      Kind{PcieFault::kWrongBoundary, PcieAccess::kDmaRead, 200},
      Kind{PcieFault::kWrongByteCount, PcieAccess::kDmaRead, 200},
      Kind{PcieFault::kWrongLowerAddress, PcieAccess::kDmaRead, 200},
      Kind{PcieFault::kTooMuchData, PcieAccess::kDmaRead, 200},
      Kind{PcieFault::kTooLittleData, PcieAccess::kDmaRead, 200},
      Kind{PcieFault::kUnknownTag, PcieAccess::kDmaRead, 200},
      Kind{PcieFault::kUnmap, PcieAccess::kDmaRead, 200},
      Kind{PcieFault::kUnmap, PcieAccess::kDmaWrite, 150},
      Kind{PcieFault::kTimeout, PcieAccess::kHostRead, 40},
      Kind{PcieFault::kUnsupportedRequest, PcieAccess::kHostRead, 40},
      Kind{PcieFault::kCompleterAbort, PcieAccess::kHostRead, 40},
      Kind{PcieFault::kPoisoned, PcieAccess::kHostWrite, 100},
  };
  const auto& kind = kKinds[random.below(kKinds.size())];
  Point point{kind.fault, kind.access, 1 + random.below(kind.last), random.below(2), 0};
  if (kind.access == PcieAccess::kDmaRead && kind.fault != PcieFault::kUnmap && random.chance(0.5))
    point.after_bytes = static_cast<std::uint32_t>(random.below(kLongestRead));
  return point;
}

/// Memory of a pair: half of it is written to the peer, half read from it.
struct Buffers {
  Buffers(Endpoint& a, Endpoint& b) : hosts{&a.host(), &b.host()} {
    for (std::size_t i = 0; i < 2; ++i) {
      memory[i] = static_cast<std::uint8_t*>(hosts[i]->memory().allocate(2 * kBytes));
      for (std::size_t at = 0; at < 2 * kBytes; ++at) memory[i][at] = value(i, at);
    }
  }
  ~Buffers() {
    for (std::size_t i = 0; i < 2; ++i) hosts[i]->memory().release(memory[i]);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  static std::uint8_t value(std::size_t host, std::size_t at) {
    return static_cast<std::uint8_t>((host + 1) * 31 + at * 7 + (at >> 8));
  }
  std::array<Host*, 2> hosts;
  std::array<std::uint8_t*, 2> memory{};
};

/// A pair of queue pairs at work from host 0. An error of a call or a request ends it; a success without its data fails
/// the test.
class Work {
 public:
  Work(Endpoint& a, Endpoint& b, bool data_may_miss = false) : a_(a), buffers_(a, b), data_may_miss_(data_may_miss) {
    constexpr ULONG kAll = ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE;
    regions_[0] = a.register_memory(buffers_.memory[0], 2 * kBytes, kAll);
    regions_[1] = b.register_memory(buffers_.memory[1], 2 * kBytes, kAll);
    pair_.emplace(a, b, PairSpec{});
  }

  /// One Write of the first half, one Read into the second. False: it has failed.
  bool go_on() {
    if (failed_) return false;
    auto* here = buffers_.memory[0];
    auto* there = buffers_.memory[1];
    std::memset(there, 0, kBytes);
    std::memset(here + kBytes, 0, kBytes);
    const auto remote = reinterpret_cast<std::uint64_t>(there);
    const UINT32 token = regions_[1]->GetRemoteToken();
    const ND2_SGE from{here, kBytes, regions_[0]->GetLocalToken()};
    const ND2_SGE to{here + kBytes, kBytes, regions_[0]->GetLocalToken()};
    auto& qp = *pair_->ends[0].qp;
    const bool posted = qp.Write(nullptr, &from, 1, remote, token, 0) == ND_SUCCESS &&
                        qp.Read(nullptr, &to, 1, remote + kBytes, token, 0) == ND_SUCCESS;
    ND2_RESULT result{};
    for (int i = 0; posted && i < 2; ++i) {
      if (!take_result(a_, *pair_->ends[0].initiator_cq, result, kLimitNs)) {
        told_nothing_ = true;
        return !(failed_ = true);
      }
      if (result.Status != ND_SUCCESS) return !(failed_ = true);
      if (i == 0) check(there, 0, 0, "a Write succeeded");
      if (i == 1) check(here + kBytes, 1, kBytes, "a Read succeeded");
    }
    failed_ = !posted;
    return posted;
  }
  /// A request ended without a completion.
  [[nodiscard]] bool told_nothing() const { return told_nothing_; }

 private:
  void check(const std::uint8_t* memory, std::size_t host, std::size_t from, const char* what) const {
    for (std::size_t i = 0; i < kBytes; ++i) {
      if (!data_may_miss_ && memory[i] != Buffers::value(host, from + i))
        FAIL(what << ", and byte " << i << " is not there");
    }
  }

  Endpoint& a_;
  Buffers buffers_;
  const bool data_may_miss_;
  std::array<ComPtr<IND2MemoryRegion>, 2> regions_;
  std::optional<Pair> pair_;
  bool failed_ = false, told_nothing_ = false;
};

const kmd::KernelOptions kQuick{.completion_timeout = hw::CompletionTimeoutRange::kA1};

/// Two pairs of queue pairs at work while the fault comes. What it hits may fail, with a reason.
void meet(World& world, bool silent) {
  try {
    Endpoint a(world.host(0), kQuick);
    Endpoint b(world.host(1), kQuick);
    std::array<std::optional<Work>, 2> work;
    for (auto& one : work) one.emplace(a, b, silent);
    for (int round = 0; round < kRounds; ++round) {
      for (auto& one : work) one->go_on();
    }
    const bool devices_live = a.kernel().usable(*a.kernel().life()) && b.kernel().usable(*b.kernel().life());
    if (devices_live && !silent) {
      CHECK((work[0]->go_on() || work[1]->go_on()));  // the neighbour of what was hit
      for (auto& one : work) CHECK_FALSE(one->told_nothing());
    }
  } catch (const testbench::EndpointError& error) {
    UNSCOPED_INFO("ended by: " << error.what());
  }
}

/// With a device that has met its fault, and a driver that is loaded again. Empty: all is well.
std::string come_back(World& world) {
  try {
    Endpoint a(world.host(0), kQuick);
    Endpoint b(world.host(1), kQuick);
    Work work(a, b);
    return work.go_on() ? "" : "a request fails";
  } catch (const testbench::EndpointError& error) {
    return error.what();
  }
}

std::uint64_t hits(World& world, std::size_t host) {
  const auto& counts = world.host(host).root_complex().faults();
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

}  // namespace

TEST_CASE("a fault at any TLP of PCI Express: no hang, no false success, the neighbour lives, the device comes back") {
  const char* const points = std::getenv("RNIC_SWEEP");
  const int count = points != nullptr ? std::atoi(points) : 12;
  const WorldOptions base = WorldOptions::from_environment("pcie_sweep");
  std::printf("seed %llu (replay: RNIC_SEED)\n", static_cast<unsigned long long>(base.seed));
  model::Random random(base.seed, "sweep");
  for (int i = 0; i < count; ++i) {
    const Point point = draw(random);
    std::printf("point %d: %s\n", i, describe(point).c_str());
    INFO("seed " << base.seed << ", point " << i << ": " << describe(point));
    WorldOptions options = base;
    options.pcie_faults[point.host].emplace();
    options.pcie_faults[point.host]->rules.push_back(
        {.fault = point.fault, .match = {.access = point.access}, .nth = point.nth, .after_bytes = point.after_bytes});
    // What waits for the answer to a write that was lost sees that when the driver looks after its device (kHealthNs).
    if (point.access == PcieAccess::kHostWrite) options.hang_ns = 3 * cost::kHealthNs;
    World& world = fresh_world(options);
    // An address register that was never written is 0, and nothing tells the NIC.
    if (point.access == PcieAccess::kHostWrite) world.declare(testbench::Violation::kIommuFault);
    world.add_app(0, "meets it", [&](Host&) { meet(world, is_silent(point)); });
    try {
      world.run();
      // A fault that has not come yet may come now; it does not come again.
      std::string trouble = "not tried";
      for (std::uint64_t before = ~std::uint64_t{0}; before != hits(world, point.host);) {
        before = hits(world, point.host);
        world.add_app(0, "comes back", [&](Host&) { trouble = come_back(world); });
        world.run();
      }
      CHECK(trouble.empty());
    } catch (const std::exception& error) {
      FAIL_CHECK(error.what());
    }
  }
}

TEST_CASE("an answer that comes late, or with a completion that is wrong, fails its request and nothing else (2.3.2)") {
  // Payload of a Write of queue pair 0; queue pair 1 works beside it, and after it, on the same tags.
  using enum PcieFault;
  constexpr std::uint64_t kLateNs = 120'000;
  constexpr std::uint32_t kLength = 1024;
  const auto options = WorldOptions::from_environment("pcie_sweep_wrong");
  const bool extended_tags = GENERATE(true, false);
  INFO("seed " << options.seed << ", extended tags " << extended_tags);
  WorldOptions changed = options;
  changed.host.root_complex.config.extended_tags = extended_tags;
  World& world = fresh_world(changed);
  world.add_app(0, "test", [&](Host& host) {
    Endpoint endpoint_a(host, kQuick), endpoint_b(world.host(1));
    UnreliableSide a(endpoint_a), b(endpoint_b);
    auto& root = host.root_complex();
    for (std::size_t i = 0; i < UnreliableSide::kBytes; ++i) a.memory[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
    const auto connected = [&]() -> umd::QueuePair& {
      auto& here = a.add_qp(QpType::kRc);
      auto& there = b.add_qp(QpType::kRc);
      testbench::connect_pair(endpoint_a, here, endpoint_b, there, {});
      return here;
    };
    auto& neighbour = connected();
    const auto post = [&](umd::QueuePair& qp, std::uint64_t id, std::size_t offset, std::uint32_t bytes) {
      const auto from = a.segment(offset, bytes);
      std::memset(b.memory + offset, UnreliableSide::kUntouched, bytes);
      must(qp.post_send({.opcode = WqeOpcode::kWrite,
                         .id = id,
                         .segments = {&from, 1},
                         .remote_address = b.at(offset),
                         .remote_key = b.region->key()}));
    };
    /// So many Writes of the neighbour, right.
    const auto works = [&](int count) {
      for (int i = 0; i < count; ++i) {
        const std::size_t offset = 64 << 10 | static_cast<std::size_t>(i % 16) << 12;
        post(neighbour, 100, offset, 3000);
        const auto done = a.sent();
        REQUIRE(done.id == 100);
        REQUIRE(done.status == CqeStatus::kSuccess);
        REQUIRE(std::memcmp(a.memory + offset, b.memory + offset, 3000) == 0);
      }
    };
    works(5);
    std::uint64_t timeouts = a.counter(Counter::kDmaReadTimeouts), errors = a.counter(Counter::kDmaReadErrors);
    for (const auto fault :
         {kLate, kWrongBoundary, kWrongByteCount, kWrongLowerAddress, kTooMuchData, kTooLittleData, kUnknownTag}) {
      for (const std::uint32_t after : {0U, 300U}) {
        INFO(name(fault) << " after " << after);
        auto& qp = connected();
        model::PcieRule rule{.fault = fault, .match = {.address = a.at(0)}, .after_bytes = after, .late_ns = kLateNs};
        root.arm(rule);
        post(qp, 1, 0, kLength);
        umd::Completion done = a.sent();
        CHECK(done.id == 1);
        CHECK(done.status == CqeStatus::kFatalErr);
        CHECK(b.untouched(0, kLength));
        works(10);
        // Counted, once: as a time-out, or as a read that ended in an error.
        const std::uint64_t now_timeouts = a.counter(Counter::kDmaReadTimeouts);
        const std::uint64_t now_errors = a.counter(Counter::kDmaReadErrors);
        CHECK(now_errors + now_timeouts == errors + timeouts + 1);
        if (fault == kLate) CHECK(now_timeouts == timeouts + 1);
        if (fault != kLate && fault != kTooLittleData && fault != kUnknownTag) CHECK(now_timeouts == timeouts);
        errors = now_errors;
        timeouts = now_timeouts;
        if (fault == kLate) endpoint_a.device().elapse(kLateNs);  // by now they have come
        works(10);
        CHECK(b.untouched(0, kLength));
        CHECK(a.quiet());
      }
    }
    CHECK(a.counter(Counter::kDmaReadErrors) == errors);
    // What comes in its time is only slow.
    auto& qp = connected();
    root.arm({.fault = kLate, .match = {.address = a.at(0)}, .late_ns = 20'000});
    post(qp, 1, 0, kLength);
    CHECK(a.sent().status == CqeStatus::kSuccess);
    CHECK(std::memcmp(a.memory, b.memory, kLength) == 0);
    CHECK(root.outstanding_reads() == 0);
  });
  world.run();
}
