#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace rnic::testbench {

/// Files of coverage that cannot be read, or say what cannot be. The message is one line.
class CoverageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One cover point in all runs of some folders.
struct ReachedPoint {
  std::string name;   ///< Of the RTL: "rtl/INSTANCE/POINT NUMBERS"
  std::string place;  ///< Clause, or instance of the RTL
  bool rtl = false;
  bool reached = false;       ///< By anything
  bool in_unit_test = false;  ///< Reached in the unit test of the block that it is in, and by no whole NIC
  std::string excluded;       ///< Why nothing can reach it, or empty
};

/// Cover points and what reached them: those that hosts and wires show (PointList), and those of the RTL (assert.svh)
/// where a program that has them has run. Points of the RTL are those of the whole NIC. The unit test of a block that
/// stands in the NIC once reaches those inside it as well: there its neighbours may do all that its ports allow.
class ReachedPoints {
 public:
  /// Merges what these folders hold (RNIC_COVERAGE). Throws CoverageError: a folder is missing, holds nothing, a file
  /// of another version, or one of RTL points without its table.
  explicit ReachedPoints(const std::vector<std::filesystem::path>& folders);

  /// Takes out what cannot be: [[excluded]] with points (names, with * and ?) and reason. Throws CoverageError: the
  /// file cannot be read or is wrong.
  void exclude(const std::filesystem::path& file);

  /// Sorted by name.
  [[nodiscard]] const std::vector<ReachedPoint>& points() const { return points_; }
  /// Points that are reached though they are excluded.
  [[nodiscard]] std::vector<std::string> impossible() const;
  /// Names of `file`, a line each, that are not reached, or that there are not (with what is wrong). Points of the RTL
  /// are left out when no RTL with cover points has run. Throws CoverageError: it cannot be read.
  [[nodiscard]] std::vector<std::string> opened(const std::filesystem::path& file) const;

  struct Sum {
    std::size_t points = 0, reached = 0, excluded = 0;
    std::size_t in_unit_tests = 0;  ///< Of those reached: by no whole NIC
    [[nodiscard]] std::size_t holes() const { return points - reached - excluded; }
    void add(const ReachedPoint& point);
    void add(const Sum& other);
  };
  /// By group of points (the first part of the name) and clause; by instance of the RTL.
  [[nodiscard]] std::map<std::string, Sum> by_clause() const;
  [[nodiscard]] std::map<std::string, Sum> by_block() const;
  [[nodiscard]] bool has_rtl() const { return has_rtl_; }

 private:
  void read_functional(const std::vector<std::filesystem::path>& folders);
  std::vector<ReachedPoint> points_;
  bool has_rtl_ = false;
};

/// Group and clause of a point of hosts and wires, as by_clause has them: "NAK (9.7.5.2.2: PSN sequence error)".
[[nodiscard]] std::string clause_of(const ReachedPoint& point);

}  // namespace rnic::testbench
