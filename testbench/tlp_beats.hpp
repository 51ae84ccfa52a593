#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rnic::testbench {

/// Cuts the payload of a TLP into the 512-bit beats of the NIC's edge: the byte of address a is in lane a mod 64
/// (rtl/streams.toml). A TLP without payload has one beat.
class BeatCutter {
 public:
  static constexpr std::size_t kLanes = 64;
  static constexpr std::uint8_t kUndefined = 0xbd;

  [[nodiscard]] bool active() const { return active_; }
  [[nodiscard]] bool last() const { return position_ + beat_bytes() >= data_.size(); }
  /// Starts a TLP whose first payload byte has `address`.
  void start(std::uint64_t address, std::vector<std::uint8_t> data);
  /// Writes the valid lanes of the present beat; what the others carry means nothing, and is kUndefined here.
  void write_lanes(std::span<std::uint8_t, kLanes> lanes) const;
  /// To the next beat; after the last the cutter is not active.
  void advance();
  void reset() { active_ = false; }

 private:
  [[nodiscard]] std::size_t beat_bytes() const;

  bool active_ = false;
  std::size_t lane_ = 0;
  std::size_t position_ = 0;
  std::vector<std::uint8_t> data_;
};

/// The inverse: joins the beats of a TLP.
class BeatJoiner {
 public:
  /// True between the first and the last beat of a TLP.
  [[nodiscard]] bool active() const { return active_; }
  /// Starts a TLP of `bytes` payload bytes, the first at `address`.
  void start(std::uint64_t address, std::size_t bytes);
  /// Takes a beat. True: all of the payload is there.
  bool take(std::span<const std::uint8_t, BeatCutter::kLanes> lanes);
  /// The payload; the joiner is ready for the next TLP.
  [[nodiscard]] std::vector<std::uint8_t> finish();
  void reset() { active_ = false; }

 private:
  bool active_ = false;
  std::size_t lane_ = 0;
  std::size_t bytes_ = 0;
  std::vector<std::uint8_t> data_;
};

}  // namespace rnic::testbench
