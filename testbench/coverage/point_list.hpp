#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rnic::testbench {

/// Something that a run can show: its name (parts with '/' between them, the first is the group) and the clause that it
/// is about.
struct FunctionalPoint {
  std::string name;
  const char* clause;
};

/// The cover points that hosts and wires show, of any NIC (docs/coverage.md). The list is the same in each program of
/// one version.
class PointList {
 public:
  [[nodiscard]] static const PointList& get();

  [[nodiscard]] const std::vector<FunctionalPoint>& points() const { return points_; }
  /// Nothing: there is no such point.
  [[nodiscard]] std::optional<std::size_t> find(const std::string& name) const;
  /// What a clause of a point is about, in a few words. Throws std::out_of_range: no point is about it.
  [[nodiscard]] static std::string_view clause_subject(std::string_view clause);
  /// Name of the file of a folder that holds which are reached, without ".hits"; another list has another.
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  PointList();
  void add(std::string name, const char* clause);
  void add_requests();
  void add_outcomes();
  void add_packets();
  void add_answers();
  void add_events();
  void add_transitions();

  std::vector<FunctionalPoint> points_;
  std::unordered_map<std::string, std::size_t> index_;
  std::string file_;
};

/// Names of what the parts of a point can be, as numbers of docs/host_interface.md and of opcodes have them. Empty:
/// there is none of that number.
namespace point_names {
[[nodiscard]] std::string_view service(std::size_t type);
[[nodiscard]] std::string_view state(std::size_t state);
[[nodiscard]] std::string_view request(std::size_t wqe_opcode);
[[nodiscard]] std::string_view status(std::size_t status);
[[nodiscard]] std::string_view packet(std::size_t operation);
[[nodiscard]] std::string_view event(std::size_t type);
}  // namespace point_names

}  // namespace rnic::testbench
