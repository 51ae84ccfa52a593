#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace rnic::testbench {

inline const nlohmann::json kNothing = nlohmann::json::object();

/// A member of an outcome (ProgramRunner) or of a part of it; an empty object: there is none.
[[nodiscard]] inline const nlohmann::json& member(const nlohmann::json& of, const std::string& key) {
  const auto it = of.find(key);
  return it == of.end() ? kNothing : *it;
}

[[nodiscard]] inline std::string shown(const nlohmann::json& value) {
  return value.is_null() || value == kNothing ? "nothing" : value.dump();
}

}  // namespace rnic::testbench
