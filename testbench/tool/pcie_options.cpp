#include "testbench/tool/pcie_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "testbench/limits/limits.hpp"

namespace rnic::testbench {
namespace {

constexpr unsigned kOrdinaryGeneration = 4, kOrdinaryLanes = 16;

CLI::IsMember sizes() { return CLI::IsMember({128u, 256u, 512u, 1024u, 2048u, 4096u}); }

}  // namespace

bool PcieArguments::chosen() const {
  return std::any_of(options.begin(), options.end(), [](const CLI::Option* option) { return option->count() != 0; });
}

void add_pcie_options(CLI::App& command, PcieArguments& arguments, model::RootComplexOptions& to, CLI::Option* drawn) {
  const auto keep = [&](CLI::Option* option, bool is_drawn) {
    option->group("PCI Express of both hosts")->capture_default_str();
    if (is_drawn) option->excludes(drawn);
    arguments.options.push_back(option);
  };
  // The ordinary link has a rounded bandwidth, which figures hold.
  const double ordinary = model::RootComplexOptions{}.bandwidth_gbytes;
  const auto link = [&arguments, &to, ordinary] {
    const bool is_ordinary = arguments.generation == kOrdinaryGeneration && arguments.lanes == kOrdinaryLanes;
    to.bandwidth_gbytes = is_ordinary ? ordinary : pcie_gbytes(arguments.generation, arguments.lanes);
  };
  const auto add_link = [&](const char* name, unsigned& value, const char* text, const CLI::Validator& check) {
    const auto set = [&value, link](const unsigned& given) {
      value = given;
      link();
    };
    keep(command.add_option_function<unsigned>(name, set, text)->check(check)->default_str(std::to_string(value)),
         false);
  };
  add_link("--pcie-gen", arguments.generation, "Generation of the link: 1 to 5", CLI::Range(1u, 5u));
  add_link("--pcie-lanes", arguments.lanes, "Lanes of the link", CLI::IsMember({1u, 2u, 4u, 8u, 16u}));
  keep(command.add_option("--pcie-payload", to.config.max_payload, "Maximum payload of a TLP, bytes")->check(sizes()),
       true);
  keep(command.add_option("--pcie-read-request", to.config.max_read_request, "Maximum read request, bytes")
           ->check(sizes()),
       true);
  keep(command.add_option("--pcie-boundary", to.read_completion_boundary, "Read completion boundary, bytes")
           ->check(CLI::IsMember({64u, 128u})),
       true);
  keep(command
           .add_option_function<unsigned>(
               "--pcie-tags", [&to](const unsigned& bits) { to.config.extended_tags = bits == 8; },
               "Bits of a tag: 8, or 5 without Extended Tag Field Enable")
           ->check(CLI::IsMember({5u, 8u}))
           ->default_str(to.config.extended_tags ? "8" : "5"),
       true);
  keep(
      command.add_option("--pcie-read-ns", to.read_latency_ns, "Round trip of a DMA read")->check(CLI::Range(1.0, 1e6)),
      true);
  keep(command.add_option("--pcie-jitter-ns", to.jitter_ns, "Every TLP takes up to this longer")
           ->check(CLI::Range(0.0, 1e6)),
       true);
}

std::string describe_link(const PcieArguments& arguments, const model::RootComplexOptions& options) {
  return fmt::format("PCI Express {}.0 x{}, {:.4g} GB/s each way", arguments.generation, arguments.lanes,
                     options.bandwidth_gbytes);
}

std::string describe_pcie(const PcieArguments& arguments, const model::RootComplexOptions& options) {
  return fmt::format(
      "{}, payload {}, read request {}, boundary {}, tags of {} bits; read latency {:g} ns, jitter {:g} ns",
      describe_link(arguments, options), options.config.max_payload, options.config.max_read_request,
      options.read_completion_boundary, options.config.extended_tags ? 8 : 5, options.read_latency_ns,
      options.jitter_ns);
}

}  // namespace rnic::testbench
