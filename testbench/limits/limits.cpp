#include "testbench/limits/limits.hpp"

#include <algorithm>
#include <stdexcept>

namespace rnic::testbench {
namespace {

// IEEE 802.3 clauses 3.1.1, 4.2.3.3, 4.4.2; RFC 791, 8200, 768; InfiniBand specification 9.2 to 9.5, annex A17.
constexpr std::uint64_t kPreamble = 8, kFcs = 4, kGap = 12, kMinFrame = 64;
constexpr std::uint64_t kEthernet = 14, kIpv4 = 20, kIpv6 = 40, kUdp = 8, kBth = 12, kReth = 16, kAeth = 4, kIcrc = 4;

std::uint64_t pieces(std::uint64_t bytes, std::uint64_t most) { return (bytes + most - 1) / most; }

/// Calls `packet(payload, first, last)` for each packet of a message; one of no bytes has one.
template <typename Packet>
void for_each_packet(std::uint64_t message, std::uint32_t mtu, Packet packet) {
  const std::uint64_t count = std::max<std::uint64_t>(1, pieces(message, mtu));
  for (std::uint64_t i = 0; i < count; ++i)
    packet(std::min<std::uint64_t>(mtu, message - i * mtu), i == 0, i + 1 == count);
}

/// Link bytes of one message, each way of each host.
struct Pcie {
  double requester_to_nic = 0, requester_to_host = 0, responder_to_nic = 0, responder_to_host = 0;
};

/// A NIC places each packet by itself.
std::uint64_t placed(const LimitWorld& world, const LimitWork& work) {
  std::uint64_t bytes = 0;
  for_each_packet(work.message, work.mtu, [&](std::uint64_t payload, bool, bool) {
    bytes += tlp_bytes(payload, world.max_payload, kRequestOverhead);
  });
  return bytes;
}

std::uint64_t read_chunk(const LimitWorld& world) { return std::min(world.max_read_request, NicLimits::kLongestRead); }

/// What is read from memory comes in completions; each read is a request.
std::uint64_t completed(const LimitWorld& world, const LimitWork& work) {
  return tlp_bytes(work.message, std::min(world.max_payload, read_chunk(world)), kCompletionOverhead);
}
std::uint64_t asked(const LimitWorld& world, const LimitWork& work) {
  return pieces(work.message, read_chunk(world)) * kRequestOverhead;
}

/// WQEs and CQEs may share TLPs; doorbells may stand for any number of WQEs.
Pcie pcie_bytes(const LimitWorld& world, const LimitWork& work) {
  const auto share = [](std::uint64_t bytes, std::uint64_t most, std::uint64_t overhead) {
    return static_cast<double>(bytes) * static_cast<double>(most + overhead) / static_cast<double>(most);
  };
  Pcie pcie;
  const std::uint64_t wqe = NicLimits::kWqeBytes + (work.inline_data ? work.message : 0);
  pcie.requester_to_nic = share(wqe, world.max_payload, kCompletionOverhead);
  pcie.requester_to_host = share(NicLimits::kCqeBytes, world.max_payload, kRequestOverhead);
  if (work.kind == LimitKind::kRead) {
    pcie.requester_to_host += static_cast<double>(placed(world, work));
    pcie.responder_to_nic = static_cast<double>(completed(world, work));
    pcie.responder_to_host = static_cast<double>(asked(world, work));
    return pcie;
  }
  pcie.responder_to_host = static_cast<double>(placed(world, work));
  if (work.inline_data) return pcie;
  pcie.requester_to_nic += static_cast<double>(completed(world, work));
  pcie.requester_to_host += static_cast<double>(asked(world, work));
  return pcie;
}

struct WireBytes {
  double forward = 0;  ///< From the requester
  double back = 0;
};

/// An ACK may stand for as many messages as are outstanding, and no more.
WireBytes wire_bytes(const LimitWork& work) {
  const double again = 1 + work.lost;
  if (work.kind == LimitKind::kRead)
    return {static_cast<double>(read_request_wire_bytes(work.ipv6)),
            static_cast<double>(read_wire_bytes(work.message, work.mtu, work.ipv6)) * again};
  return {static_cast<double>(write_wire_bytes(work.message, work.mtu, work.ipv6)) * again,
          static_cast<double>(ack_wire_bytes(work.ipv6)) / static_cast<double>(work.depth)};
}

/// A tag is taken from the request to the last completion.
double reads_ns(const LimitWorld& world, const LimitWork& work) {
  if (work.inline_data && work.kind == LimitKind::kWrite) return 0;
  const std::uint64_t reads = pieces(work.message, read_chunk(world));
  const auto on_link = static_cast<double>(asked(world, work) + completed(world, work)) / world.pcie_gbytes;
  const auto tags = static_cast<double>(world.extended_tags ? NicLimits::kTags : NicLimits::kTags / 2);
  return (static_cast<double>(reads) * world.pcie_latency_ns + on_link) / tags;
}

/// From the first bit of a message on the wire to the last of its answer at the requester. The last frame of each way
/// needs no gap behind it.
double round_trip_ns(const LimitWorld& world, const LimitWork& work) {
  const std::uint64_t there = work.kind == LimitKind::kRead ? read_request_wire_bytes(work.ipv6)
                                                            : write_wire_bytes(work.message, work.mtu, work.ipv6);
  const std::uint64_t back =
      work.kind == LimitKind::kRead ? read_wire_bytes(work.message, work.mtu, work.ipv6) : ack_wire_bytes(work.ipv6);
  const double memory = work.kind == LimitKind::kRead ? world.pcie_latency_ns : 0;
  return 2 * world.wire_delay_ns + memory + 8.0 * static_cast<double>(there + back - 2 * kGap) / world.wire_gbps;
}

}  // namespace

std::uint64_t packet_wire_bytes(std::uint64_t payload, std::uint64_t extended, bool ipv6) {
  const std::uint64_t headers = kEthernet + (ipv6 ? kIpv6 : kIpv4) + kUdp + kBth + extended;
  const std::uint64_t frame = headers + (payload + 3) / 4 * 4 + kIcrc + kFcs;
  return kPreamble + std::max(kMinFrame, frame) + kGap;
}

std::uint64_t write_wire_bytes(std::uint64_t message, std::uint32_t mtu, bool ipv6) {
  std::uint64_t bytes = 0;
  for_each_packet(message, mtu, [&](std::uint64_t payload, bool first, bool) {
    bytes += packet_wire_bytes(payload, first ? kReth : 0, ipv6);
  });
  return bytes;
}

std::uint64_t read_wire_bytes(std::uint64_t message, std::uint32_t mtu, bool ipv6) {
  std::uint64_t bytes = 0;
  for_each_packet(message, mtu, [&](std::uint64_t payload, bool first, bool last) {
    bytes += packet_wire_bytes(payload, first || last ? kAeth : 0, ipv6);
  });
  return bytes;
}

std::uint64_t ack_wire_bytes(bool ipv6) { return packet_wire_bytes(0, kAeth, ipv6); }
std::uint64_t read_request_wire_bytes(bool ipv6) { return packet_wire_bytes(0, kReth, ipv6); }

double pcie_gbytes(unsigned generation, unsigned lanes) {
  if (generation < 1 || generation > 5) throw std::invalid_argument("PCI Express generation is not 1 to 5");
  constexpr double kGigatransfers[] = {2.5, 5, 8, 16, 32};
  const double code = generation < 3 ? 8.0 / 10 : 128.0 / 130;
  return kGigatransfers[generation - 1] * code / 8 * lanes;
}

std::uint64_t tlp_bytes(std::uint64_t bytes, std::uint64_t most, std::uint64_t overhead) {
  return bytes + pieces(bytes, most) * overhead;
}

std::uint64_t fewest_completions(std::uint64_t offset, std::uint64_t bytes, std::uint64_t max_payload,
                                 std::uint64_t boundary) {
  return pieces(offset % boundary + bytes, max_payload);
}

std::uint64_t most_completions(std::uint64_t offset, std::uint64_t bytes, std::uint64_t boundary) {
  return pieces(offset % boundary + bytes, boundary);
}

double least_latency_ns(const LimitWorld& world, const LimitWork& work) {
  // Posting to the NIC and completion to the host are half a round trip each; the data of a Write are read between.
  const bool reads = work.kind == LimitKind::kWrite && !work.inline_data;
  return world.pcie_latency_ns * (reads ? 2 : 1) + round_trip_ns(world, work);
}

Limit goodput_limit(const LimitWorld& world, const LimitWork& work) {
  const Pcie pcie = pcie_bytes(world, work);
  WireBytes wire = wire_bytes(work);
  double to_nic = std::max(pcie.requester_to_nic, pcie.responder_to_nic);
  double to_host = std::max(pcie.requester_to_host, pcie.responder_to_host);
  if (work.both_ways) {
    wire.forward = wire.back = wire.forward + wire.back;
    to_nic = pcie.requester_to_nic + pcie.responder_to_nic;
    to_host = pcie.requester_to_host + pcie.responder_to_host;
  }
  const auto window = static_cast<double>(work.qps * work.depth);
  const auto most_reads = static_cast<double>(work.qps * work.read_limit);
  struct Bound {
    std::string_view by;
    double ns;  ///< Of each message
  };
  const Bound bounds[] = {{"wire", 8 * std::max(wire.forward, wire.back) / world.wire_gbps},
                          {"PCIe to NIC", to_nic / world.pcie_gbytes},
                          {"PCIe to host", to_host / world.pcie_gbytes},
                          {"PCIe reads", reads_ns(world, work)},
                          {"depth", least_latency_ns(world, work) / window},
                          {"Read limit", work.kind == LimitKind::kRead ? round_trip_ns(world, work) / most_reads : 0}};
  const auto& slowest = *std::max_element(std::begin(bounds), std::end(bounds),
                                          [](const Bound& a, const Bound& b) { return a.ns < b.ns; });
  return {8.0 * static_cast<double>(work.message) / slowest.ns, 1000 / slowest.ns, slowest.by};
}

}  // namespace rnic::testbench
