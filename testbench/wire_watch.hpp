#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "model/wire.hpp"
#include "testbench/host.hpp"
#include "testbench/wire_check/port_check.hpp"

namespace rnic::testbench {

/// Has each NIC of a world judged by what is on its wire and its link (wire_check::PortCheck). It changes nothing.
class WireWatch {
 public:
  /// `wire`, and the end of it that is the NIC's.
  struct Plug {
    Host& host;
    model::Wire& wire;
    std::size_t end;
  };
  /// Watches from now on, times are counted from `epoch`. Hosts and wires outlive it.
  WireWatch(std::vector<Plug> plugs, model::Picoseconds epoch);
  ~WireWatch();
  WireWatch(const WireWatch&) = delete;
  WireWatch& operator=(const WireWatch&) = delete;

  /// Host `frame.from` has sent it, or somebody in its place.
  void sent(const model::FrameRecord& frame);
  /// What is wrong on the wire of host `index`; the first few in words.
  [[nodiscard]] const std::vector<std::string>& complaints(std::size_t index) const { return ports_.at(index).said; }
  [[nodiscard]] std::uint64_t count(std::size_t index) const { return ports_.at(index).count; }

 private:
  struct Port {
    std::unique_ptr<wire_check::PortCheck> check;
    std::vector<std::string> said;
    std::uint64_t count = 0;
  };

  std::vector<Plug> plugs_;
  model::Picoseconds epoch_;
  std::vector<Port> ports_;
  std::unordered_set<std::size_t> forged_;  ///< Hashes of injected frames
};

}  // namespace rnic::testbench
