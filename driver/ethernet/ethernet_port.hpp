#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "driver/kmd/kernel_device.hpp"
#include "driver/umd/completion_queue.hpp"
#include "driver/umd/completion_signal.hpp"
#include "driver/umd/kernel_mr.hpp"
#include "driver/umd/queue_pair.hpp"

/// Ethernet frames that are not RoCEv2, for the network stack of the kernel driver.
namespace rnic::ethernet {

inline constexpr std::size_t kHeaderBytes = hw::kEthHeaderBytes, kMaxFrameBytes = hw::kMaxFrameBytes;

/// Bit of PortGroups for a group address (host_interface.md, Ethernet); `mac` as in PortMac.
[[nodiscard]] unsigned group_bit(std::uint64_t mac);

/// A queue pair of type RawPacket with the memory for its frames. One thread at a time.
class EthernetPort {
 public:
  /// What the NIC vouches for of a frame that has come (host_interface.md, Ethernet).
  struct Checksums {
    bool l3_ok{};  ///< That of the IPv4 header is right
    bool l4_ok{};  ///< That of the TCP or UDP segment is right
  };
  /// Takes a frame that has come, from the destination address to the last byte before the frame check sequence; valid
  /// during the call.
  using Receiver = std::function<void(std::span<const std::uint8_t> frame, Checksums checksums)>;

  /// Errors: those of its parts. Receives frames for the port's own and the broadcast address. Lets time pass.
  /// `kernel` outlives it.
  static Result<std::unique_ptr<EthernetPort>> open(kmd::KernelDevice& kernel, Receiver receiver);
  EthernetPort(const EthernetPort&) = delete;
  EthernetPort& operator=(const EthernetPort&) = delete;
  ~EthernetPort();

  /// What it receives besides: frames to these groups, to all groups, all frames. `qpn` and `enable` are the port's.
  void receive_also(kmd::EthernetReceive what);
  /// Sends a frame of kHeaderBytes to kMaxFrameBytes. `ip_csum`: the NIC puts the checksums of IPv4, TCP and UDP into
  /// it. Errors: kInvalidParameter (its length), kQueueFull (all buffers are under way: poll), kDeviceFailed.
  [[nodiscard]] Result<void> send(std::span<const std::uint8_t> frame, bool ip_csum = false);
  /// Hands over what has come, and takes back the buffers of what has left. Returns whether there was anything.
  bool poll();

  /// For a thread that sleeps while there is nothing to poll: has the next frame that comes or has left end its wait
  /// (Machine::wait), if the last time that it did has been seen. Lets time pass.
  void ask() { signal_->ask(); }
  /// Takes events of the port. Whether there is something to poll, and `ask` is due again. Lets no time pass.
  [[nodiscard]] bool asked_for() {
    process_->take_events();
    return signal_->came();
  }
  /// The device has not failed.
  [[nodiscard]] bool alive() const { return process_->alive(); }

  struct Counters {
    std::uint64_t sent{}, received{};
    std::uint64_t failed{};  ///< Frames whose request or buffer failed
  };
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] std::uint32_t qpn() const { return qp_->qpn(); }

 private:
  static constexpr std::uint32_t kReceives = 256, kSends = 128;
  struct alignas(4096) Buffer {
    std::array<std::uint8_t, kMaxFrameBytes> bytes;
  };

  EthernetPort(kmd::KernelDevice& kernel, Receiver receiver) : kernel_(kernel), receiver_(std::move(receiver)) {}
  Result<void> begin();
  Result<void> post_receive(std::uint64_t number);
  [[nodiscard]] umd::Segment segment(std::uint64_t number, std::size_t bytes);

  kmd::KernelDevice& kernel_;
  Receiver receiver_;
  std::shared_ptr<umd::ProcessContext> process_;
  std::vector<Buffer> buffers_;  ///< Those of receives, then those of sends
  std::unique_ptr<umd::KernelMr> region_;
  std::shared_ptr<umd::CompletionQueue> cq_;
  std::optional<umd::CompletionSignal> signal_;
  std::shared_ptr<umd::QueuePair> qp_;
  std::vector<std::uint64_t> free_;  ///< Buffers for sends
  Counters counters_;
};

}  // namespace rnic::ethernet
