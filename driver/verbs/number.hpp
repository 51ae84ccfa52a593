#pragma once

#include <cstring>
#include <type_traits>

namespace rnic::verbs {

/// The number in an enumeration of verbs.h, which a program may have set to anything.
template <typename Enumeration>
[[nodiscard]] inline int number_of(const Enumeration& of) {
  static_assert(std::is_enum_v<Enumeration> && sizeof(Enumeration) == sizeof(int));
  int number;
  std::memcpy(&number, &of, sizeof number);
  return number;
}

}  // namespace rnic::verbs
