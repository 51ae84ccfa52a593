#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "testbench/coverage/point_list.hpp"
#include "testbench/wire_check/admin_watch.hpp"
#include "testbench/wire_check/packet.hpp"

namespace rnic::testbench {

/// Which points (PointList) one host and its wire show: what the driver posts and commands, what the NIC writes to
/// completion and event queues, what it sends and gets. It only looks. Where a queue pair goes by itself (errors) it
/// takes from completions and events, as InfiniBand specification 10.3.1 has it.
class HostCoverage {
 public:
  /// `reach` is told the index of each point that is reached, more than once.
  HostCoverage(wire_check::ReadMemory memory, std::function<void(std::size_t)> reach);

  /// The processor writes to BAR0, all bytes enabled.
  void written(std::uint64_t offset, std::span<const std::uint8_t> data, const std::vector<bool>& enabled);
  /// The NIC has written to a DMA address.
  void stored(std::uint64_t address, std::span<const std::uint8_t> data);
  /// It has sent this frame, has got that one (without frame check sequence).
  void sent(wire_check::Frame frame);
  void received(wire_check::Frame frame);

 private:
  struct Posted {
    std::uint16_t index{};
    std::uint8_t opcode{};
    std::string state;  ///< Of its queue pair
    std::string shape;  ///< Length and alignment; empty: it has none
    bool silent{};
  };
  /// A request packet that has passed, by its PSN.
  struct Passed {
    std::uint32_t psn{}, span = 1;
    wire_check::Operation operation{};
  };
  struct QueuePair {
    std::uint8_t type{}, state{};
    std::uint32_t mtu = 4096;
    std::uint64_t ring{};
    std::uint32_t depth{}, stride{};
    std::uint16_t producer{};
    std::deque<Posted> posted;
    std::uint32_t expected{};          ///< PSN of the next request
    std::uint32_t oldest{}, unsent{};  ///< PSNs of the requester: not acknowledged, not sent yet
    std::deque<Passed> asked, asking;  ///< Requests that have come, that have been sent; the newest
    std::uint32_t peer{};
  };
  struct Ring {
    std::uint64_t bytes{};
    bool events{};
  };

  void reach(const std::string& point);
  void commanded(const wire_check::AdminCommand& command);
  void modify(QueuePair& qp, const wire_check::AdminCommand& command);
  void fail(QueuePair& qp, std::uint8_t state);
  void posts(std::uint32_t qpn, std::uint16_t producer);
  [[nodiscard]] Posted read_wqe(const QueuePair& qp, std::uint16_t index);
  void completed(std::span<const std::uint8_t> entry);
  void retired(QueuePair& qp, std::uint16_t index, std::size_t status, bool with_entry);
  void outcome(const QueuePair& qp, const Posted& request, std::string_view what, bool done);
  void happened(std::span<const std::uint8_t> entry);
  void came(QueuePair& qp, const wire_check::Packet& packet);
  [[nodiscard]] std::string relation(QueuePair& qp, const wire_check::Packet& packet);
  void refused(const char* way, const std::deque<Passed>& among, const wire_check::Packet& packet);

  wire_check::ReadMemory memory_;
  std::function<void(std::size_t)> reach_;
  wire_check::AdminWatch admin_;
  std::map<std::uint32_t, QueuePair> queue_pairs_;  ///< By number
  std::map<std::uint64_t, Ring> rings_;             ///< Completion and event queues, by DMA address
};

}  // namespace rnic::testbench
