#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace rnic::testbench {

/// How numbers are spread, in bounded memory whatever their count: exact below 2^(step_bits + 1), above that in
/// 2^step_bits steps of each power of two. With 5 bits a quantile is off by 1.6 % at most, with 8 by 0.2 %. Least and
/// most are exact.
class Sketch {
 public:
  /// For latencies of requests, whose percentiles several pages and commands print.
  static constexpr unsigned kLatencyStepBits = 8;

  explicit Sketch(unsigned step_bits = 5) : step_bits_(step_bits) {}

  /// Numbers from `from` to below `to` were counted `count` times.
  struct Bucket {
    std::uint64_t from{}, to{}, count{};
  };

  void add(std::uint64_t value);
  /// All that `other` has.
  void add(const Sketch& other);
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::uint64_t least() const { return count_ == 0 ? 0 : least_; }
  [[nodiscard]] std::uint64_t most() const { return most_; }
  [[nodiscard]] std::uint64_t sum() const { return sum_; }
  /// By nearest rank; 0 when there is none. `permille` is 1 to 1000.
  [[nodiscard]] std::uint64_t quantile(std::uint64_t permille) const;
  /// Those that are not empty, in rising order.
  [[nodiscard]] std::vector<Bucket> buckets() const;

 private:
  [[nodiscard]] std::uint64_t steps() const { return std::uint64_t{1} << step_bits_; }  ///< Of a power of two
  [[nodiscard]] std::size_t index_of(std::uint64_t value) const;
  [[nodiscard]] Bucket bounds(std::size_t index) const;

  unsigned step_bits_;
  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0, sum_ = 0, least_ = std::numeric_limits<std::uint64_t>::max(), most_ = 0;
};

}  // namespace rnic::testbench
