#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "testbench/verify/vector.hpp"

/// On what a vector can run, by what it contains (docs/vectors.md, Grades).
namespace rnic::testbench {

enum class VectorGrade : std::uint8_t {
  kVerbs,  ///< Any device of libibverbs
  kWire,   ///< Such a device whose frames somebody makes, spoils or reads
  kNic,    ///< This NIC: its registers, counters and driver, NetworkDirect
};
inline constexpr std::array<std::string_view, 3> kGradeNames{"verbs", "wire", "nic"};

struct VectorGrading {
  VectorGrade grade = VectorGrade::kVerbs;
  /// What the vector does, without what it looks at: packets, counters, causes of events.
  VectorGrade doing = VectorGrade::kVerbs;
  std::string reason;  ///< The first part of the vector that needs the grade: "step 3 (frame)"; empty: kVerbs
};

/// The highest grade that any part of the vector needs.
[[nodiscard]] VectorGrading grade_of(const Vector& vector);

}  // namespace rnic::testbench
