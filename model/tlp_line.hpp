#pragma once

#include <cmath>
#include <cstddef>

#include "model/pcie.hpp"
#include "model/time.hpp"

namespace rnic::model {

/// One direction of a PCI Express link: TLPs one after the other at its bandwidth.
class TlpLine {
 public:
  explicit TlpLine(double bandwidth_gbytes) : ps_per_byte_(1000.0 / bandwidth_gbytes) {}

  /// Sends a TLP that is ready at `ready`; returns when its last byte has left.
  Picoseconds send(Picoseconds ready, std::size_t payload_bytes) {
    const Picoseconds start = ready > free_at_ ? ready : free_at_;
    free_at_ = start + duration(payload_bytes + kTlpOverheadBytes);
    return free_at_;
  }
  [[nodiscard]] Picoseconds free_at() const { return free_at_; }
  [[nodiscard]] Picoseconds duration(std::size_t bytes) const {
    return static_cast<Picoseconds>(std::ceil(static_cast<double>(bytes) * ps_per_byte_));
  }

 private:
  double ps_per_byte_;
  Picoseconds free_at_ = 0;
};

}  // namespace rnic::model
