#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>

#include "driver/ethernet/ethernet_port.hpp"
#include "driver/ip/host_stack.hpp"
#include "driver/kmd/kernel_device.hpp"

namespace rnic::ip {

/// A thread of the kernel driver that is found on the port's network by the own addresses of the port, and finds others
/// there (HostStack), with frames of its own RawPacket queue pair. What it learns goes to the tables of the port. It
/// has no part in VLANs: neither their frames nor own addresses on them.
class Network {
 public:
  /// What anybody says of `settled` addresses changes nothing in the tables. Errors: those of EthernetPort::open. Lets
  /// time pass. `kernel` outlives it.
  static Result<std::unique_ptr<Network>> open(kmd::KernelDevice& kernel, std::set<Address> settled);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  /// Nobody is in run() or find() any more.
  ~Network() = default;

  /// Works until stop(), or until the device fails. On a thread of its own; lets time pass.
  void run();
  /// From any thread; run() returns soon, and so does every find(), now and later.
  void stop();
  [[nodiscard]] bool running() const { return running_; }

  /// From any thread: the station of an address. One that is not known is asked for three times, each a second after
  /// the other (RFC 4861 10, MAX_MULTICAST_SOLICIT, RETRANS_TIMER). Errors: kNotFound (nobody has answered, or the port
  /// has no address that could ask), kDeviceFailed (also: stopped). Lets time pass.
  [[nodiscard]] Result<std::uint64_t> find(const Address& wanted);
  /// Calls of find() that wait for nothing but an answer from the network, or the time for the next question.
  [[nodiscard]] std::size_t searching() const { return searching_; }

  [[nodiscard]] const ethernet::EthernetPort::Counters& counters() const { return port_->counters(); }

 private:
  Network(kmd::KernelDevice& kernel, std::set<Address> settled);
  Result<void> begin();
  void learned(const Address& address, std::uint64_t mac);
  bool send_frames();
  /// Errors as of find(), and kNotFound: there is none yet.
  Result<std::uint64_t> await_station(const Address& wanted, std::uint64_t until_ns);

  kmd::KernelDevice& kernel_;
  const std::set<Address> settled_;
  std::mutex mutex_;  ///< Guards the stack and what it sends
  HostStack stack_;
  std::deque<Bytes> outgoing_;
  std::unique_ptr<ethernet::EthernetPort> port_;
  std::atomic<std::size_t> searching_ = 0;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> running_ = false;
};

}  // namespace rnic::ip
