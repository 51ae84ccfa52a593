#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "testbench/compare/program.hpp"

namespace rnic::testbench {

/// Where two worlds disagree about a program.
struct Difference {
  std::string kind;  ///< "failures", "completions", "events", "states", "psns", "memory", "packets", "counters"
  std::size_t batch = 0;
  std::string place;         ///< What of it: "A initiator 1", region and block, counter
  std::string sort;          ///< What is alike wherever the same thing differs: without hosts, queue pairs, numbers
  std::string text;          ///< Both, in words
  std::string region{};      ///< memory
  std::uint64_t offset = 0;  ///< memory: of the first block that differs

  /// The same thing differs, elsewhere perhaps.
  [[nodiscard]] bool is_like(const Difference& other) const { return kind == other.kind && sort == other.sort; }
};

/// The first difference of two outcomes (ProgramRunner) that no freedom (freedoms.hpp) allows; nothing when they agree.
[[nodiscard]] std::optional<Difference> find_difference(const RandomProgram& program, const nlohmann::json& first,
                                                        const nlohmann::json& second);

}  // namespace rnic::testbench
