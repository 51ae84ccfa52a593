#include "testbench/drawn_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/random.hpp"

namespace rnic::testbench {
namespace {

template <typename T, std::size_t N>
T one_of(model::Random& random, const std::array<T, N>& values) {
  return values[random.below(N)];
}

/// From 0 to 1, in thousandths.
double fraction(model::Random& random) { return static_cast<double>(random.below(1001)) / 1000; }

HostOptions draw_host(model::Random& random, HostOptions host) {
  constexpr std::array<std::size_t, 6> kSizes{128, 256, 512, 1024, 2048, 4096};
  constexpr std::array<unsigned, 6> kAddressBits{36, 39, 46, 48, 52, 57};
  auto& root = host.root_complex;
  root.config.max_payload = one_of(random, kSizes);
  root.config.max_read_request = one_of(random, kSizes);
  root.config.extended_tags = random.chance(0.75);
  root.read_completion_boundary = random.chance(0.5) ? 64 : 128;
  root.read_latency_ns = 100 + 1900 * fraction(random);
  root.jitter_ns = random.chance(0.5) ? 0 : 200 * fraction(random);
  root.reorder_probability = random.chance(0.5) ? 0 : fraction(random);
  root.reorder_window_ns = 1000 * fraction(random);
  root.pass_probability = random.chance(0.5) ? 0 : fraction(random);
  root.split_probability = random.chance(0.5) ? 0 : fraction(random);
  host.iova_bits = one_of(random, kAddressBits);
  host.write_combining_split = random.chance(0.5) ? 0 : fraction(random);
  host.nic.clock_ppm = 400 * fraction(random) - 200;
  host.nic.clock_phase = random.below(host.nic.clock_period);
  host.psn_near_wrap = 0.25;
  return host;
}

/// Credits of the NIC's TLPs, each kind finite or not: so many that a NIC is seldom held up for long, so few that it
/// is.
void draw_credits(model::Random& random, model::RootComplexOptions& root) {
  using enum model::CreditKind;
  const auto units = static_cast<std::uint32_t>(root.config.max_payload / model::kCreditBytes);
  auto& credits = root.credits;
  credits.return_ns = 20 + 180 * fraction(random);
  const auto draw = [&](model::CreditKind kind, std::uint32_t least, std::uint32_t most, std::uint32_t data) {
    const auto headers = static_cast<std::uint32_t>(least + random.below(most - least + 1));
    const auto share = static_cast<std::uint32_t>(1 + random.below(2));
    if (!random.chance(0.5)) return;
    credits.of(kind).headers = headers;
    if (data != 0) credits.of(kind).data = std::max(data, headers * data / share);
  };
  draw(kPosted, 24, 64, units);
  draw(kNonPosted, 4, 64, 0);
  draw(kCompletion, 1, 16, model::kNicCompletionBytes / model::kCreditBytes);
}

std::string describe(std::size_t index, const HostOptions& host) {
  const auto& root = host.root_complex;
  const auto count = [&](model::CreditKind kind) {
    const auto& headers = root.credits.of(kind).headers;
    return headers ? fmt::format("{}", *headers) : std::string("no end");
  };
  return fmt::format(
      "host {}: payload {}, read request {}, boundary {}, tags of {} bits, device addresses of {} bits; read latency "
      "{:.0f} ns, jitter {:.0f} ns, late {:.2f} by up to {:.0f} ns, passed {:.2f}, cut {:.2f}, bursts in pieces "
      "{:.2f}; "
      "clock {:+.1f} ppm, phase {} ps; credits of posted {}, non-posted {}, completions {}, back after {:.0f} ns",
      static_cast<char>('A' + index), root.config.max_payload, root.config.max_read_request,
      root.read_completion_boundary, root.config.extended_tags ? 8 : 5, host.iova_bits, root.read_latency_ns,
      root.jitter_ns, root.reorder_probability, root.reorder_window_ns, root.pass_probability, root.split_probability,
      host.write_combining_split, host.nic.clock_ppm, host.nic.clock_phase, count(model::CreditKind::kPosted),
      count(model::CreditKind::kNonPosted), count(model::CreditKind::kCompletion), root.credits.return_ns);
}

/// Each step of the code doubles the time-out.
std::uint8_t timeout_shift(double rate_gbps) {
  constexpr double kFullRate = 100;
  return static_cast<std::uint8_t>(std::ceil(std::log2(std::max(1.0, kFullRate / rate_gbps))));
}

}  // namespace

DrawnWorld draw_world(std::uint64_t seed, const WorldOptions& base) {
  constexpr std::array<std::uint32_t, 5> kMtus{256, 512, 1024, 2048, 4096};
  constexpr std::array<double, 7> kRates{10, 25, 40, 50, 100, 200, 400};
  model::Random random(seed, "world");
  DrawnWorld world;
  world.options = base;
  world.mtu = one_of(random, kMtus);
  auto& wire = world.options.wire;
  wire.rate_gbps = one_of(random, kRates);
  wire.delay_ns = random.chance(0.5) ? 50 * fraction(random) : 5000 * fraction(random);
  wire.jitter_ns = random.chance(0.5) ? 0 : 500 * fraction(random);
  world.timeout_shift = timeout_shift(wire.rate_gbps);
  world.text.push_back(fmt::format("world {}: wire of {} Gb/s, delay {:.1f} ns, jitter {:.1f} ns; path MTU {}", seed,
                                   wire.rate_gbps, wire.delay_ns, wire.jitter_ns, *world.mtu));
  for (std::size_t i = 0; i < base.hosts; ++i) {
    auto& host = world.options.each_host.at(i).emplace(draw_host(random, base.host));
    // From a generator of their own: what else is drawn does not depend on it.
    model::Random own(seed, fmt::format("world/credits/{}", i));
    draw_credits(own, host.root_complex);
    world.text.push_back(describe(i, host));
  }
  return world;
}

}  // namespace rnic::testbench
