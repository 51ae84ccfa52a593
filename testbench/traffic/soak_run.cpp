#include "testbench/traffic/soak_run.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <memory>

#include "testbench/endpoint.hpp"
#include "testbench/interrupt.hpp"
#include "testbench/side_by_side.hpp"
#include "testbench/traffic/traffic.hpp"

namespace rnic::testbench {
namespace {

/// The streams watch for hangs themselves, so the run as a whole has no limit but what a clock can count.
constexpr std::uint64_t kNoLimitNs = std::numeric_limits<std::uint64_t>::max() / 4'000;
constexpr std::uint64_t kClockNs = 10'000;

}  // namespace

SoakReport run_soak(World& world, const SoakOptions& options, std::uint64_t seed,
                    const std::function<void(std::uint64_t)>& progress) {
  world.declare(Violation::kIommuFault);  // counted below
  std::array<std::unique_ptr<Endpoint>, 2> endpoints;
  std::unique_ptr<Traffic> traffic;
  SoakReport report;
  world.add_app(0, "setup", [&](Host&) {
    side_by_side({[&] { endpoints[0] = std::make_unique<Endpoint>(world.host(0)); },
                  [&] { endpoints[1] = std::make_unique<Endpoint>(world.host(1)); }});
    traffic = std::make_unique<Traffic>(*endpoints[0], *endpoints[1], options.traffic, seed);
  });
  world.run(kNoLimitNs);

  const std::uint64_t start = world.host(0).nic().cycles();
  for (std::size_t thread = 0; thread < traffic->threads(); ++thread) {
    world.add_app(thread % 2, fmt::format("traffic{}", thread), [&, thread](Host&) { traffic->run(thread); });
  }
  world.add_app(0, "clock", [&](Host& host) {
    while (!traffic->stopping() && !interrupted() && host.nic().cycles() - start < options.cycles) {
      host.device().elapse(kClockNs);
      if (progress) progress(host.nic().cycles() - start);
    }
    report.interrupted = interrupted() && host.nic().cycles() - start < options.cycles;
    traffic->stop();
  });
  world.run(kNoLimitNs);

  const std::uint64_t cycles = world.host(0).nic().cycles() - start;
  if (options.orderly && traffic->report().hung == 0) {
    world.add_app(0, "counters", [&](Host&) { traffic->check_orderly(); });
    world.run(kNoLimitNs);
  }
  report.traffic = traffic->report();
  report.set_up_cycles = start;
  report.cycles = cycles;
  for (std::size_t host = 0; host < 2; ++host) report.iommu_faults += world.host(host).iommu().fault_count();
  if (report.iommu_faults != 0) {
    ++report.traffic.wrong;
    report.traffic.note(fmt::format("{} DMA accesses to memory that is not mapped", report.iommu_faults));
  }
  std::uint64_t copies = 0;
  for (std::size_t host = 0; host < 2; ++host)
    copies += world.wire().direction(host).faults()[static_cast<std::size_t>(model::WireFault::kDuplicate)];
  if (report.traffic.mix.repeated > copies) {
    ++report.traffic.wrong;
    report.traffic.note(
        fmt::format("{} messages came twice, and the wire repeated {} frames", report.traffic.mix.repeated, copies));
  }
  if (!report.good()) return report;  // what is stuck may never come down
  const std::uint64_t end = world.host(0).nic().cycles();
  world.add_app(0, "close", [&](Host&) {
    traffic.reset();
    side_by_side({[&] { endpoints[0].reset(); }, [&] { endpoints[1].reset(); }});
  });
  world.run(kNoLimitNs);
  report.tear_down_cycles = world.host(0).nic().cycles() - end;
  return report;
}

}  // namespace rnic::testbench
