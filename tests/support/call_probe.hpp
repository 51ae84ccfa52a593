#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "driver/generated/kernel_calls.hpp"

namespace rnic::test {

/// A field of a request, as the table of the calls has it.
struct CallField {
  enum class Kind : std::uint8_t { kNumber, kHandle, kBool, kReserved, kArray, kBytes };
  std::string_view name;
  Kind kind{};
  std::size_t offset{};
  std::size_t bytes{};
  std::uint64_t limit{};
};

struct CallProbe {
  calls::Call call{};
  std::string_view name;
  std::size_t request_bytes{};
  std::size_t answer_bytes{};
  std::span<const CallField> fields;
};

}  // namespace rnic::test
