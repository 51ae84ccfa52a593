#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/wire_direction.hpp"
#include "testbench/verify/vector.hpp"

/// The packets of a vector: how docs/vectors.md names them, and how what was on the wire is held against them.
namespace rnic::testbench {

/// What the queue pairs of each host are called on the wire.
struct PacketNumbers {
  struct QueuePair {
    std::uint32_t qpn = 0, first_psn = 0;  ///< PSN: of its requests
    std::set<std::uint32_t> earlier_qpns;  ///< Before it was made again
  };
  std::array<std::vector<QueuePair>, 2> hosts;

  /// First PSN of the requests that a packet belongs to, from host `from` to queue pair `to` of its peer. Datagrams: to
  /// `by`, who sent it.
  [[nodiscard]] std::uint32_t first_psn(std::size_t from, std::uint8_t opcode, std::size_t to, std::size_t by) const;
};

/// BTH opcode by the name that vectors use ("SendOnly"); nothing for another text.
[[nodiscard]] std::optional<std::uint8_t> opcode_of(std::string_view name);
/// The opcode is sent by a responder: its PSN belongs to the requests of the host that receives it.
[[nodiscard]] bool is_response(std::uint8_t opcode);
/// The opcode is one of the unreliable datagram.
[[nodiscard]] bool is_datagram(std::uint8_t opcode);

/// "A>B Acknowledge psn=2 syndrome=NakPsn lost". Throws VectorError with what is wrong in it, in words.
[[nodiscard]] VectorPacket parse_packet(const std::string& text);

/// A frame as `packets` describes it, with every field that it has.
[[nodiscard]] VectorPacket describe_packet(const model::FrameRecord& frame, const PacketNumbers& numbers);

/// What `expected` says holds for `seen`: direction, opcode, and each field that it names.
[[nodiscard]] bool agrees(const VectorPacket& expected, const VectorPacket& seen);
/// Empty when what was seen is as expected; otherwise what is different, in words.
[[nodiscard]] std::string compare_packets(const PacketPatterns& expected, const std::vector<VectorPacket>& seen);
/// Empty when none of the packets agrees with one that is forbidden; otherwise which, in words.
[[nodiscard]] std::string find_forbidden(const std::vector<VectorPacket>& forbidden,
                                         const std::vector<VectorPacket>& seen);

}  // namespace rnic::testbench
