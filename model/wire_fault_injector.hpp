#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/random.hpp"
#include "model/time.hpp"
#include "model/wire_faults.hpp"

namespace rnic::model {

/// What becomes of one frame.
struct FrameFate {
  /// Wait until so many later frames have passed, at most so long.
  struct Hold {
    std::uint32_t frames{};
    Picoseconds longest{};
  };
  bool dropped{};
  bool bad{};                ///< Arrives with a wrong frame check sequence
  Picoseconds delay{};       ///< It and everything behind it
  std::optional<Hold> hold;  ///< Of the frame
  std::optional<Hold> copy;  ///< There is a copy, and this is its hold (no frames: right behind)
  std::uint8_t faults{};     ///< Bit i: WireFault i hit it
};

/// Decides which faults hit the frames of one direction, and changes their bytes.
class WireFaultInjector {
 public:
  /// `from`: the port that sends. Throws std::invalid_argument when an option is out of range.
  WireFaultInjector(const WireFaultOptions& options, std::uint64_t seed, std::size_t from);

  /// Adds a rule, which counts frames from now on. Throws as the constructor.
  void arm(const WireRule& rule);
  /// False while nothing can happen to any frame.
  [[nodiscard]] bool active() const { return active_; }
  /// The fate of the next frame. `injected`: it is one of Wire::inject.
  [[nodiscard]] FrameFate judge(std::vector<std::uint8_t>& frame, bool injected = false);
  [[nodiscard]] const WireFaultCounts& counts() const { return counts_; }

 private:
  struct Rule {
    WireRule rule;
    Random random;           ///< Its own, as those of the kinds of fault
    std::uint64_t seen = 0;  ///< Frames that matched
  };

  /// A fault of the next frame; no parameters: it does not hit.
  struct Hit {
    const WireFaultParameters* parameters{};
    bool by_chance{};
  };
  [[nodiscard]] std::array<Hit, kWireFaults> hits(const std::vector<std::uint8_t>& frame, bool injected);
  [[nodiscard]] std::uint64_t amount(WireFault fault, const Hit& hit, std::uint64_t least, std::uint64_t most);
  [[nodiscard]] bool corrupt(std::vector<std::uint8_t>& frame, const Hit& hit);
  [[nodiscard]] bool truncate(std::vector<std::uint8_t>& frame, const Hit& hit);
  Random& random(WireFault fault) { return random_[static_cast<std::size_t>(fault)]; }

  WireFaultOptions options_;
  std::uint64_t seed_;
  std::size_t from_;
  std::vector<Rule> rules_;
  std::vector<Random> random_;  ///< By WireFault
  WireFaultCounts counts_{};
  bool active_ = false;
};

}  // namespace rnic::model
