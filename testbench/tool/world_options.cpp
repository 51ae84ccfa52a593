#include "testbench/tool/world_options.hpp"

namespace rnic::testbench {

void add_world_options(CLI::App& command, WorldOptions& options) {
  command.add_option("--seed", options.seed, "Seed of everything random")->capture_default_str();
  command.add_option("--link-gbps", options.wire.rate_gbps, "Rate of the wire, 10^9 bits per second")->check(CLI::Range(0.1, 400.0))->capture_default_str();
  command.add_option("--link-delay-ns", options.wire.delay_ns, "Delay of the wire")->check(CLI::Range(0.0, 1e9))->capture_default_str();
  command.add_option("--pcie-read-ns", options.host.root_complex.read_latency_ns, "Round trip of a DMA read")->check(CLI::Range(1.0, 1e6))->capture_default_str();
}

}  // namespace rnic::testbench
