#pragma once

#include <cstdint>
#include <optional>

#include "driver/generated/host_interface.hpp"

namespace rnic::umd {

/// Where the receive WQEs of a queue pair come from: its own ring, or a shared one.
class ReceiveSource {
 public:
  /// Takes note of a CQE: returns the id of its request, or nothing if no such request is outstanding.
  [[nodiscard]] virtual std::optional<std::uint64_t> complete(const hw::Cqe& cqe) = 0;

 protected:
  ~ReceiveSource() = default;
};

}  // namespace rnic::umd
