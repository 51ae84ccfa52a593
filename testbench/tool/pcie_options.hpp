#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "model/root_complex_options.hpp"

namespace rnic::testbench {

/// The PCI Express of both hosts, as the command line says it.
struct PcieArguments {
  unsigned generation = 4;
  unsigned lanes = 16;
  std::vector<const CLI::Option*> options;  ///< That say something of it

  /// Something was said.
  [[nodiscard]] bool chosen() const;
};

/// --pcie-gen, -lanes, -payload, -read-request, -boundary, -tags, -read-ns, -jitter-ns. Each writes to `to` when the
/// command line is read. `drawn` (--world) excludes those that it draws.
void add_pcie_options(CLI::App& command, PcieArguments& arguments, model::RootComplexOptions& to, CLI::Option* drawn);

/// "PCI Express 4.0 x16, 31.5 GB/s each way"; and the rest behind it, "payload 256, ...".
[[nodiscard]] std::string describe_link(const PcieArguments& arguments, const model::RootComplexOptions& options);
[[nodiscard]] std::string describe_pcie(const PcieArguments& arguments, const model::RootComplexOptions& options);

}  // namespace rnic::testbench
