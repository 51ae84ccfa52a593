#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/nic_link.hpp"

namespace rnic::model {

inline constexpr std::size_t kBeatBytes = 64;
/// Smallest frame, less the frame check sequence (IEEE 802.3 clause 4.2.3.3: 64 bytes with it).
inline constexpr std::size_t kMinFrameBytes = 60;
inline constexpr std::size_t kPreambleBytes = 8;
inline constexpr std::size_t kFcsBytes = 4;
inline constexpr std::size_t kInterFrameGapBytes = 12;

/// Part of an Ethernet frame, without preamble and frame check sequence.
struct FrameBeat {
  std::array<std::uint8_t, kBeatBytes> data{};
  std::uint8_t bytes{};  ///< 1 to 64; less than 64 only with last
  bool last{};
  bool err{};  ///< With last: bad frame check sequence
};

/// Cuts a frame (without frame check sequence) into its beats and gives each to `take`. `bad`: with a wrong frame check
/// sequence.
template <typename Take>
void for_each_beat(std::span<const std::uint8_t> frame, bool bad, Take take) {
  for (std::size_t done = 0; done < frame.size(); done += kBeatBytes) {
    FrameBeat beat;
    const auto part = frame.subspan(done, std::min(kBeatBytes, frame.size() - done));
    std::copy(part.begin(), part.end(), beat.data.begin());
    beat.bytes = static_cast<std::uint8_t>(part.size());
    beat.last = done + part.size() == frame.size();
    beat.err = beat.last && bad;
    take(beat);
  }
}

/// An Ethernet port as the NIC sees it. A NIC calls it at each of its clock edges, in simulated time; nothing here
/// waits.
class EthernetLink : public NicLink {
 public:
  /// False while the transmit buffer is full; transmit must then not be called.
  [[nodiscard]] virtual bool can_transmit() const = 0;
  virtual void transmit(const FrameBeat& beat) = 0;
  /// From this time on can_transmit is true, in picoseconds.
  [[nodiscard]] virtual std::uint64_t transmits_from() const = 0;
  /// All beats of a frame at once, of a NIC that has no beats of its own; as transmit.
  virtual void transmit_frame(std::span<const std::uint8_t> frame) = 0;
  /// Takes the next beat that has arrived. False: there is none yet.
  virtual bool receive(FrameBeat& beat) = 0;
  /// Takes the rest of the oldest frame when it has arrived whole, for a NIC that has no beats of its own. `bad`: with
  /// a wrong frame check sequence. False: there is none yet.
  virtual bool receive_frame(std::vector<std::uint8_t>& bytes, bool& bad) = 0;
  /// As next_arrival, for the last beat of a frame.
  [[nodiscard]] virtual std::optional<std::uint64_t> next_frame() const = 0;
  /// What the MAC reports of the link.
  [[nodiscard]] virtual bool link_up() const = 0;
};

}  // namespace rnic::model
