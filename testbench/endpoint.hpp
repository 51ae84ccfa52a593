#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "driver/kmd/kernel_device.hpp"
#include "driver/nd2/ndspi.h"
#include "driver/umd/kernel_qp.hpp"
#include "driver/umd/process_context.hpp"
#include "driver/umd/queue_pair.hpp"
#include "testbench/com_ptr.hpp"
#include "testbench/host.hpp"

namespace rnic::testbench {

/// A driver call that a test or tool needs to succeed did not.
class EndpointError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What an application on one host works with: the kernel driver brought up, an adapter, and an overlapped file.
///
/// Host i has MAC 02:00:00:00:00:(i+1), addresses 10.0.0.(i+1) and fd00::(i+1), and any others that queue pairs want
/// (ConnectParameters::subnet). Made and destroyed in a thread of simulated time.
class Endpoint {
 public:
  /// `of_kernel`: the adapter is one of the kernel's own clients, which may do fast registrations. `device`: what the
  /// driver has in place of the host's, with the host's behind it; outlives the endpoint. Throws EndpointError.
  explicit Endpoint(Host& host, const kmd::KernelOptions& options = {}, bool of_kernel = false,
                    Device* device = nullptr);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// Opens the adapter anew, as an application does whose device has failed. Throws EndpointError.
  void reopen();

  [[nodiscard]] Host& host() { return host_; }
  [[nodiscard]] Device& device() { return host_.device(); }
  [[nodiscard]] kmd::KernelDevice& kernel() { return *kernel_; }
  /// Behind the adapter.
  [[nodiscard]] umd::ProcessContext& process();
  /// For all that is open on the host: hands out what has happened; waits as umd::wait_until.
  unsigned take_events() { return kernel_->node().takers().take_events(); }
  bool wait_until(const std::function<bool()>& done, std::uint64_t timeout_ns = kForever);

  /// Places in the tables of the port, which get what they do not have: whoever brings a machine up may. Throw
  /// EndpointError.
  std::uint16_t gid_index(bool ipv6, std::uint8_t subnet = 0, std::uint16_t vlan = 0);
  std::uint16_t pkey_index(std::uint16_t pkey);
  [[nodiscard]] IND2Adapter& adapter() { return *adapter_; }
  [[nodiscard]] HANDLE file() const { return file_; }

  /// A PSN to begin with: random, and near its wrap as often as the host's options say.
  [[nodiscard]] std::uint32_t first_psn();

  struct QpSpec {
    ULONG receive_depth = 16, initiator_depth = 16, receive_sge = 1, initiator_sge = 1, inline_bytes = 0;
    void* context = nullptr;
  };
  /// Throw EndpointError.
  ComPtr<IND2CompletionQueue> create_cq(ULONG depth);
  ComPtr<IND2QueuePair> create_qp(IND2CompletionQueue& receive_cq, IND2CompletionQueue& initiator_cq,
                                  const QpSpec& spec);
  ComPtr<IND2MemoryRegion> create_region();
  /// Registers and waits.
  ComPtr<IND2MemoryRegion> register_memory(const void* pointer, std::size_t bytes, ULONG flags);
  /// Deregisters and waits. Throws EndpointError.
  void deregister(IND2MemoryRegion& region);

  /// Finishes an overlapped call that returned `status`: waits while it is pending. Gives the final status.
  HRESULT finish(IND2Overlapped& object, OVERLAPPED& overlapped, HRESULT status);
  /// An OVERLAPPED with an event of its own; give it back with close_event.
  OVERLAPPED open_event();
  static void close_event(const OVERLAPPED& overlapped);

 private:
  [[nodiscard]] std::string of_host(const char* what) const;

  Host& host_;
  std::unique_ptr<kmd::KernelDevice> kernel_;
  ComPtr<IND2Adapter> adapter_;
  HANDLE file_ = nullptr;
  const bool of_kernel_;
};

/// What two queue pairs agree on.
struct ConnectParameters {
  std::uint32_t mtu = 4096;  ///< Bytes
  bool ipv6 = false;
  std::uint32_t read_limit = 16;  ///< Outstanding Reads and atomics, both directions
  bool remote_read = true, remote_write = true, remote_atomic = true;  ///< What the peer may do, both directions
  std::uint8_t ack_timeout = 8;                                        ///< 4.096 us * 2^n; 0: none. About 1 ms
  std::uint8_t retry_count = 7;                                        ///< Without progress
  std::uint8_t rnr_retry = 6;                                          ///< 7: without end
  std::uint8_t min_rnr_timer = 4;            ///< AETH timer code (InfiniBand specification 9.7.5.2.8): 0.04 ms
  std::optional<std::uint32_t> first_psn{};  ///< Of both sides; otherwise random
  /// Host i is 10.subnet.0.(i+1) or fd00::subnet:(i+1) to this pair. The device takes an address for its own because a
  /// queue pair has it, so that each queue pair may have others.
  std::uint8_t subnet = 0;
};

/// The driver's queue pair behind an object of IND2Adapter::CreateQueuePair.
umd::QueuePair& core_of(IND2QueuePair& qp);

/// How a queue pair of `from` reaches queue pair `dest_qpn` of `to`; the PSNs are left at 0.
umd::QpConnection connection_to(Endpoint& from, Endpoint& to, std::uint32_t dest_qpn,
                                const ConnectParameters& parameters);
/// What a UD queue pair of `at` has instead: its IPv4 address, as its second one the IPv6 address, and its Q_Key.
umd::QpConnection datagram_attributes(Endpoint& at, std::uint32_t qkey, std::uint32_t mtu = 4096);
/// The way to `to` from a queue pair with those.
umd::AddressHandle::Spec address_of(Endpoint& to, bool ipv6);
/// An address of the port of `endpoint`, as ConnectParameters::subnet says. IPv4-mapped, network order.
std::array<std::uint8_t, 16> ip_of(Endpoint& endpoint, bool ipv6, std::uint8_t subnet = 0);
/// MAC address of the port of `endpoint`.
std::uint64_t mac_of(Endpoint& endpoint);

/// Takes two queue pairs (of IND2Adapter::CreateQueuePair) to RTS through the kernel driver, as a connection manager
/// would. Throws EndpointError.
void connect_pair(Endpoint& a, IND2QueuePair& qp_a, Endpoint& b, IND2QueuePair& qp_b,
                  const ConnectParameters& parameters);
/// The same for queue pairs without an API on top.
void connect_pair(Endpoint& a, umd::QueuePair& qp_a, Endpoint& b, umd::QueuePair& qp_b,
                  const ConnectParameters& parameters);

/// Throws EndpointError "<what>: <status>" unless `status` is ND_SUCCESS.
void require_success(HRESULT status, const std::string& what);
/// The same for what a kernel or process call answers: throws EndpointError "<what>: <error>".
void require_success(const Result<void>& result, const std::string& what);
/// The same, and gives the value.
template <typename T>
T require_success(Result<T> result, const std::string& what) {
  if (!result.ok()) require_success(Result<void>(result.error()), what);
  return result.take();
}

}  // namespace rnic::testbench
