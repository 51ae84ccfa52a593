#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <systemc>
#include <vector>

#include "driver/kmd/port_tables.hpp"
#include "driver/result.hpp"
#include "testbench/ip/host_stack.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

/// A host's IP stack beside its RDMA NIC, at the NIC's port: it hears all that the NIC hears, and sends between the
/// NIC's frames. What it learns goes to the tables of the host's kernel driver.
class HostNetwork {
 public:
  /// Before the simulation has begun, as a module. `plug`: the port of the NIC.
  explicit HostNetwork(World::Plug plug);
  HostNetwork(const HostNetwork&) = delete;
  HostNetwork& operator=(const HostNetwork&) = delete;
  ~HostNetwork();

  /// The host is found by these addresses from now on; `tables` outlives it. What anybody says of `settled` addresses
  /// changes nothing there.
  void begin(std::uint64_t mac, std::vector<kmd::Gid> addresses, std::set<kmd::Gid> settled, kmd::PortTables& tables);

  /// On a thread of simulated time: asks for the address, three times, each a second after the other (RFC 4861 10,
  /// MAX_MULTICAST_SOLICIT, RETRANS_TIMER). Errors: kNotFound (nobody has answered), kDeviceFailed (give_up).
  [[nodiscard]] Result<std::uint64_t> find(const kmd::Gid& wanted);
  /// Calls of find that wait for nothing but an answer from outside, or the time for the next question.
  [[nodiscard]] std::size_t searching() const { return searching_; }
  /// All calls of find end, now and later, and nothing is heard any more: the tables may go.
  void give_up();

 private:
  void serve();

  const World::Plug plug_;
  std::unique_ptr<ip::HostStack> stack_;
  std::deque<ip::Bytes> heard_;  ///< By the port, not yet by the stack
  sc_core::sc_event came_;
  sc_core::sc_event learned_;
  std::size_t searching_ = 0;
  bool over_ = false;
};

}  // namespace rnic::testbench
