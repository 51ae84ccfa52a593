#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "testbench/traffic/share_lane.hpp"
#include "testbench/traffic/word_history.hpp"

namespace rnic::testbench {

/// Words of one host on which the queue pairs of several AtomicLanes work.
class AtomicWords {
 public:
  static constexpr std::size_t kWords = 6, kSwapWords = 2;  ///< The first kSwapWords are never added to

  /// `host`: whose memory it is. Throws EndpointError.
  explicit AtomicWords(MixSide& host);

  [[nodiscard]] std::uint64_t address(std::size_t word) const {
    return reinterpret_cast<std::uint64_t>(words_.data()) + word * sizeof(std::uint64_t);
  }
  [[nodiscard]] std::uint32_t key() const { return host_.key(); }
  [[nodiscard]] WordHistory& history(std::size_t word) { return histories_[word]; }
  /// The newest value that anybody has found or left there, as far as is known.
  [[nodiscard]] std::uint64_t& guess(std::size_t word) { return guesses_[word]; }
  /// What the processor sees there, and has written there, which no atomic notices.
  [[nodiscard]] std::uint64_t load(std::size_t word) const;
  void store(std::size_t word, std::uint64_t value);
  /// With nothing under way: nothing, or what is wrong with a word.
  [[nodiscard]] std::optional<std::string> check_end() const;

 private:
  MixSide& host_;
  std::span<std::uint8_t> words_;
  std::deque<WordHistory> histories_;
  std::array<std::uint64_t, kWords> guesses_{};
};

/// FETCH_ADD, CMP_SWAP, and Reads of the words; one order of all lanes must explain what each of them found.
class AtomicLane final : public ShareLane {
 public:
  AtomicLane(const Spec& spec, AtomicWords& words, MomentClock& clock, const TrafficOptions& options,
             std::uint64_t seed, TrafficReport& report)
      : ShareLane(spec, 0, 0, clock, options, seed, report), words_(words), options_(options) {}

 private:
  enum class What : std::uint8_t { kAdd, kSwap, kRead };

  void next(bool last) override;
  void done(What what, std::size_t word, const umd::SendRequest& send, std::uint64_t number, std::uint64_t found,
            std::uint64_t posted, std::uint64_t completed);

  AtomicWords& words_;
  const TrafficOptions& options_;
};

}  // namespace rnic::testbench
