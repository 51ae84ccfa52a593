#include "model/root_complex_options.hpp"

#include <stdexcept>

namespace rnic::model {
namespace {

void require(bool ok, const char* what) {
  if (!ok) throw std::invalid_argument(what);
}

}  // namespace

void check(const RootComplexOptions& options) {
  require(options.read_latency_ns >= 0, "read_latency_ns is negative");
  require(options.bandwidth_gbytes > 0, "bandwidth_gbytes is not positive");
  require(options.read_completion_boundary == 64 || options.read_completion_boundary == 128,
          "read_completion_boundary is neither 64 nor 128");
  require(options.reorder_window_ns >= 0, "reorder_window_ns is negative");
  require(options.pass_probability >= 0 && options.pass_probability <= 1, "pass_probability is no probability");
  require(options.jitter_ns >= 0, "jitter_ns is negative");
  require(options.mmio_timeout_ns > 0, "mmio_timeout_ns is not positive");
  check(options.credits, options.config.max_payload);
  check(options.faults);
  static_cast<void>(size_code(options.config.max_payload));
  static_cast<void>(size_code(options.config.max_read_request));
}

}  // namespace rnic::model
