// Random work on many queue pairs in both directions, over links that split and reorder completions
// (testbench/traffic). Every byte must arrive, no byte beside it may change, and results come in posting order
// (InfiniBand specification volume 1, 9.5, 10.8.3.3). RNIC_SEED=n replays a failure.
#include <catch2/catch.hpp>

#include <algorithm>

#include "testbench/traffic/traffic.hpp"
#include "tests/system/system_world.hpp"

using namespace rnic;
using namespace rnic::test;
using testbench::Traffic;
using testbench::TrafficOptions;

namespace {

/// All kinds of the mixed work were done, all of it arrived but what the wire lost, and only what the wire repeated
/// came twice.
void check_mix(World& world, const WorldOptions& options, const testbench::MixCounts& mix) {
  CHECK(mix.shared_receives != 0);
  CHECK(mix.send_invalidates != 0);
  CHECK(mix.fast_registrations != 0);
  CHECK(mix.binds != 0);
  CHECK(mix.keys_ended == mix.fast_registrations + mix.binds);
  CHECK(mix.resizes != 0);
  CHECK(mix.unreliable_received != 0);
  CHECK(mix.datagrams_received != 0);
  std::uint64_t copies = 0;
  for (std::size_t host = 0; host < World::kHosts; ++host)
    copies += world.wire().direction(host).faults()[static_cast<std::size_t>(model::WireFault::kDuplicate)];
  CHECK(mix.repeated <= copies);
  if (options.wire.faults[0].drop != 0) return;
  CHECK(mix.unreliable_received == mix.unreliable_sent);
  CHECK(mix.datagrams_received == mix.datagrams_sent);
}

/// Runs `options.requests` of each direction and takes everything down again.
void run(const WorldOptions& world_options, const TrafficOptions& options) {
  INFO("seed " << world_options.seed);
  World& world = fresh_world(world_options);
  std::unique_ptr<Endpoint> a, b;
  std::unique_ptr<Traffic> traffic;
  world.add_app(0, "setup", [&](Host& host) {
    a = std::make_unique<Endpoint>(host);
    b = std::make_unique<Endpoint>(world.host(1));
    traffic = std::make_unique<Traffic>(*a, *b, options, world_options.seed);
  });
  world.run();
  for (std::size_t thread = 0; thread < traffic->threads(); ++thread) {
    world.add_app(thread % 2, "traffic", [&, thread](Host&) { traffic->run(thread); });
  }
  world.run();
  // Recovery would hide what the NICs lose by themselves.
  const bool orderly = std::all_of(world_options.wire.faults.begin(), world_options.wire.faults.end(),
                                   [](const auto& faults) { return faults.drop == 0; });
  if (orderly) {
    world.add_app(0, "counters", [&](Host&) { traffic->check_orderly(); });
    world.run();
  }
  const auto& report = traffic->report();
  for (const auto& text : report.messages) UNSCOPED_INFO(text);
  CHECK(report.wrong == 0);
  CHECK(report.hung == 0);
  CHECK(report.total() >= 2 * options.pairs * options.requests);  // and those that close a row of silent ones
  for (const auto count : report.completed) CHECK(count != 0);
  CHECK(report.receives == report.completed[0] + report.completed[3]);
  CHECK(report.silent != 0);
  CHECK(report.registrations != 0);
  CHECK(report.binds != 0);
  if (options.pairs >= 8) CHECK(report.invalidations != 0);  // of windows; rare in short runs
  if (options.mixes != 0) check_mix(world, world_options, report.mix);
  world.add_app(0, "close", [&](Host&) {
    traffic.reset();
    a.reset();
    b.reset();
  });
  world.run();
  for (std::size_t host = 0; host < World::kHosts; ++host) {
    CHECK(world.host(host).iommu().fault_count() == 0);
    CHECK(world.host(host).memory().used() == 0);
  }
}

TrafficOptions work(std::uint32_t pairs) {
  TrafficOptions options;
  options.pairs = pairs;
  options.pairs_per_thread = 4;
  options.requests = 60;
  options.most_bytes = 9'000;
  options.big_bytes = 60'000;
  return options;
}

}  // namespace

TEST_CASE("random transfers over an orderly link") { run(WorldOptions::from_environment("random_orderly"), work(4)); }

TEST_CASE("random transfers while completions are split and reordered") {
  auto options = WorldOptions::from_environment("random_reordered");
  options.host.root_complex.reorder_probability = 0.5;
  options.host.root_complex.split_probability = 0.5;
  run(options, work(8));
}

TEST_CASE("random transfers over a small and slow PCI Express link") {
  auto options = WorldOptions::from_environment("random_small");
  auto& pcie = options.host.root_complex;
  pcie.config.max_payload = 128;
  pcie.config.max_read_request = 128;
  pcie.read_completion_boundary = 64;
  pcie.read_latency_ns = 1'500;
  pcie.bandwidth_gbytes = 4;
  pcie.reorder_probability = 0.2;
  run(options, work(4));
}

TEST_CASE("random transfers over a wire that loses, repeats, reorders and corrupts") {
  auto options = WorldOptions::from_environment("random_faults");
  for (auto& faults : options.wire.faults) {
    faults.drop = faults.reorder = 0.01;
    faults.duplicate = 0.005;
    faults.corrupt = 0.001;
  }
  options.host.root_complex.reorder_probability = 0.1;
  auto traffic = work(8);
  traffic.connection.ack_timeout = 5;
  run(options, traffic);
}

// Shared receive queues (10.2.9), SEND with invalidate and fast registration (10.6.4, 10.6.5, 9.4.1.1.3), UC (9.8.2)
// and UD (9.8.3), CQ resize (11.2.8.3).
TEST_CASE("mixed work: shared receives, keys that come and go, UC, UD, and completion queues that are resized") {
  for (const bool lossy : {false, true}) {
    auto options = WorldOptions::from_environment(lossy ? "random_mix_lossy" : "random_mix");
    for (auto& faults : options.wire.faults) {
      if (!lossy) continue;
      faults.drop = faults.reorder = faults.duplicate = 0.02;
      faults.corrupt = 0.002;
    }
    auto traffic = work(2);
    traffic.mixes = 2;
    traffic.connection.ack_timeout = 5;
    run(options, traffic);
  }
}

TEST_CASE("what is wrong is seen: a frame that the link loses, although recovery brings it again") {
  const auto options = WorldOptions::from_environment("random_one_lost");
  INFO("seed " << options.seed);
  World& world = fresh_world(options);
  std::unique_ptr<Endpoint> a, b;
  std::unique_ptr<Traffic> traffic;
  world.add_app(0, "setup", [&](Host& host) {
    a = std::make_unique<Endpoint>(host);
    b = std::make_unique<Endpoint>(world.host(1));
    auto few = work(1);
    few.requests = 10;
    traffic = std::make_unique<Traffic>(*a, *b, few, options.seed);
    world.wire().arm(0, {.fault = model::WireFault::kDrop, .match = {}, .nth = 8, .count = 1, .parameters = {}});
  });
  world.run();
  world.add_app(0, "traffic", [&](Host&) { traffic->run(0); });
  world.run();
  CHECK(traffic->report().wrong == 0);
  world.add_app(0, "counters", [&](Host&) { traffic->check_orderly(); });
  world.run();
  CHECK(traffic->report().wrong >= 1);
  world.add_app(0, "close", [&](Host&) {
    traffic.reset();
    a.reset();
    b.reset();
  });
  world.run();
}

TEST_CASE("what is wrong is seen: a byte that changes, and one beside the work") {
  const auto options = WorldOptions::from_environment("random_spoiled");
  INFO("seed " << options.seed);
  for (const bool beside : {false, true}) {
    World& world = fresh_world(options);
    std::unique_ptr<Endpoint> a, b;
    std::unique_ptr<Traffic> traffic;
    world.add_app(0, "setup", [&](Host& host) {
      a = std::make_unique<Endpoint>(host);
      b = std::make_unique<Endpoint>(world.host(1));
      traffic = std::make_unique<Traffic>(*a, *b, work(2), options.seed);
    });
    world.run();
    for (std::size_t thread = 0; thread < traffic->threads(); ++thread) {
      world.add_app(thread % 2, "traffic", [&, thread](Host&) { traffic->run(thread); });
    }
    world.add_app(1, "spoiler", [&](Host& host) {
      auto& arena = traffic->arena(1);
      // The last byte is in use by nobody; the first ones always are.
      if (beside) arena.base()[arena.size() - 1] ^= 1;
      while (!beside && !traffic->stopping() && host.device().now_ns() < 400'000) {
        for (std::size_t i = 0; i < 4096; ++i) arena.base()[i] ^= 1;
        host.device().elapse(1'000);
      }
    });
    world.run();
    CHECK(traffic->report().wrong >= 1);
    CHECK(!traffic->report().messages.empty());
    world.add_app(0, "close", [&](Host&) {
      traffic.reset();
      a.reset();
      b.reset();
    });
    world.run();
  }
}
