#pragma once

#include <cstdint>
#include <optional>

namespace rnic::umd {

/// Where the receive WQEs of a queue pair come from: its own ring, or a shared one.
class ReceiveSource {
 public:
  /// Takes note of a CQE with this `wqe_index`: returns the id of its request, or nothing if no such request is
  /// outstanding.
  [[nodiscard]] virtual std::optional<std::uint64_t> complete(std::uint16_t index) = 0;

 protected:
  ~ReceiveSource() = default;
};

}  // namespace rnic::umd
