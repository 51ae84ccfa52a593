#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>

#include "testbench/traffic/cell_history.hpp"
#include "testbench/traffic/share_lane.hpp"

namespace rnic::testbench {

/// Places of one host that the queue pairs of several CellLanes write: cells of 8 bytes, and records of many. Each word
/// says which Write wrote it, and what its place in the record is.
class SharedCells {
 public:
  static constexpr std::size_t kWord = 8;
  /// Words of each place.
  static constexpr std::array<std::size_t, 6> kWords = {1, 1, 1, 1, 40, 500};
  static constexpr std::size_t kPlaces = kWords.size();

  /// `host`: whose memory it is. Throws EndpointError.
  explicit SharedCells(MixSide& host);

  [[nodiscard]] std::span<std::uint8_t> place(std::size_t number) const { return places_[number]; }
  [[nodiscard]] std::uint32_t key() const { return host_.key(); }
  [[nodiscard]] CellHistory& history(std::size_t number) { return histories_[number]; }
  /// A version that is new, and what is written then.
  [[nodiscard]] std::uint64_t new_version() { return ++versions_; }
  static void fill(std::span<std::uint8_t> record, std::uint64_t version);
  /// What a read found: nothing, or what is wrong with it. `posted`, `moment`: as CellHistory::read has them.
  [[nodiscard]] std::optional<std::string> judge(std::size_t place, std::span<const std::uint8_t> found,
                                                 std::uint64_t posted, std::uint64_t moment);

 private:
  MixSide& host_;
  std::array<std::span<std::uint8_t>, kPlaces> places_;
  std::deque<CellHistory> histories_;
  std::uint64_t versions_ = 0;
};

/// Writes and Reads of the cells; each Read may find only what it may (CellHistory), word by word.
class CellLane final : public ShareLane {
 public:
  CellLane(const Spec& spec, SharedCells& cells, MomentClock& clock, const TrafficOptions& options, std::uint64_t seed,
           TrafficReport& report)
      : ShareLane(spec, 0, 0, clock, options, seed, report), cells_(cells), options_(options) {}

  /// The processor of the cells' host looks at one.
  void look();

 private:
  void next(bool last) override;
  void write(std::size_t place);
  void read(std::size_t place);
  void plant(std::size_t place, std::uint64_t version);

  SharedCells& cells_;
  const TrafficOptions& options_;
};

}  // namespace rnic::testbench
