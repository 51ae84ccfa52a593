#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace rnic::testbench {

inline const nlohmann::json kNoMember = nlohmann::json::object();

/// A member of an outcome (ProgramRunner) or of a part of it; an empty object: there is none.
[[nodiscard]] inline const nlohmann::json& member(const nlohmann::json& of, const std::string& key) {
  const auto it = of.find(key);
  return it == of.end() ? kNoMember : *it;
}

[[nodiscard]] inline std::string shown(const nlohmann::json& value) {
  return value.is_null() || value == kNoMember ? "nothing" : value.dump();
}

/// The sort of the failure of requests that have not ended in the time in which all retries of a request do. The batch
/// in which that was so is the last.
inline constexpr std::string_view kNotEnded = "requests have not ended";

/// The sort of a failure that ends a run begins so; what of its text does not change with times and counts follows.
inline constexpr std::string_view kRunEnded = "the run ended: ";

/// A failure of an outcome. `sort`: what has failed, without numbers; `text`: in words.
[[nodiscard]] inline nlohmann::json failure_entry(const std::string& sort, const std::string& text) {
  return {{"sort", sort}, {"text", text}};
}

}  // namespace rnic::testbench
