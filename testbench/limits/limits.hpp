#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

/// What wire and PCI Express allow at most, from the bytes that must cross them: docs/limits.md works it out. Nothing
/// here knows how the NIC is made, but for NicLimits.
namespace rnic::testbench {

enum class LimitKind : std::uint8_t { kWrite, kRead };

/// Bytes that one packet of RoCEv2 takes on the wire, preamble, frame check sequence and gap included: with `payload`
/// bytes and extended headers (RETH 16, AETH 4) of `extended` bytes.
[[nodiscard]] std::uint64_t packet_wire_bytes(std::uint64_t payload, std::uint64_t extended, bool ipv6 = false);
/// All packets of an RDMA Write of `message` bytes: RETH in the first.
[[nodiscard]] std::uint64_t write_wire_bytes(std::uint64_t message, std::uint32_t mtu, bool ipv6 = false);
/// All responses of an RDMA Read of `message` bytes: AETH in the first and the last.
[[nodiscard]] std::uint64_t read_wire_bytes(std::uint64_t message, std::uint32_t mtu, bool ipv6 = false);
/// An ACK; a Read request.
[[nodiscard]] std::uint64_t ack_wire_bytes(bool ipv6 = false);
[[nodiscard]] std::uint64_t read_request_wire_bytes(bool ipv6 = false);

/// Bandwidth of each direction of a link after its line code, 10^9 bytes per second: 8b/10b of generations 1 and 2,
/// 128b/130b of 3 to 5. Throws std::invalid_argument for another generation; `lanes` is not judged.
[[nodiscard]] double pcie_gbytes(unsigned generation, unsigned lanes);

/// Bytes of a TLP besides its payload: framing and sequence number, header, LCRC.
inline constexpr std::uint64_t kRequestOverhead = 24;     ///< Of a memory request with an address of 64 bits
inline constexpr std::uint64_t kCompletionOverhead = 20;  ///< Of a completion
/// Link bytes of `bytes` in TLPs of at most `most` bytes, each with `overhead`.
[[nodiscard]] std::uint64_t tlp_bytes(std::uint64_t bytes, std::uint64_t most, std::uint64_t overhead);
/// The least and the most completions that `bytes` (at least 1) from address `offset` on may come in: cut at the last
/// read completion boundary that the maximum payload reaches, or at each (base specification 2.3.1.1).
[[nodiscard]] std::uint64_t fewest_completions(std::uint64_t offset, std::uint64_t bytes, std::uint64_t max_payload,
                                               std::uint64_t boundary);
[[nodiscard]] std::uint64_t most_completions(std::uint64_t offset, std::uint64_t bytes, std::uint64_t boundary);

/// Two like machines and the wire between them.
struct LimitWorld {
  double wire_gbps = 100;
  double wire_delay_ns = 0;
  double pcie_gbytes = 31.5;
  double pcie_latency_ns = 500;  ///< Of a DMA read, there and back; half of it is one way of any TLP
  std::uint64_t max_payload = 256;
  std::uint64_t max_read_request = 512;
  bool extended_tags = true;
};

/// What of the NIC and its interface bounds any run, whatever is inside.
struct NicLimits {
  static constexpr std::uint64_t kTags = 64;          ///< DMA reads at a time; 32 with tags of 5 bits
  static constexpr std::uint64_t kLongestRead = 512;  ///< Bytes of one DMA read at most
  static constexpr std::uint64_t kWqeBytes = 48;      ///< Control, remote and data segment
  static constexpr std::uint64_t kCqeBytes = 64;
};

/// Messages of one kind and size over reliable connections.
struct LimitWork {
  LimitKind kind = LimitKind::kWrite;
  std::uint64_t message = 65536;  ///< Bytes, at least 1
  std::uint32_t mtu = 4096;
  bool ipv6 = false;
  bool both_ways = false;         ///< The peer does the same at once
  bool inline_data = false;       ///< Of Writes: the data stand in the WQE
  std::uint64_t qps = 1;          ///< Queue pairs of each requester
  std::uint64_t depth = 32;       ///< Messages outstanding on each
  std::uint64_t read_limit = 16;  ///< Reads of each on their way
  double lost = 0;                ///< Packets with data that are lost, of each that is needed
};

/// Of one direction.
struct Limit {
  double gbps = 0;      ///< Payload, 10^9 bits per second
  double mmps = 0;      ///< Messages per microsecond
  std::string_view by;  ///< What sets it: "wire", "PCIe to NIC", "PCIe to host", "PCIe reads", "depth", "Read limit"
};

/// No run of `work` in `world` moves more, counted from its first posting to its last completion.
[[nodiscard]] Limit goodput_limit(const LimitWorld& world, const LimitWork& work);
/// No message takes less from its posting to its completion, nanoseconds.
[[nodiscard]] double least_latency_ns(const LimitWorld& world, const LimitWork& work);

}  // namespace rnic::testbench
