#include "testbench/scenario_object.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "testbench/scenario.hpp"

namespace rnic::testbench {

using nlohmann::json;

ScenarioObject::ScenarioObject(const json& value, std::string place) : value_(value), place_(std::move(place)) {
  if (!value.is_object()) fail("must be an object");
}

void ScenarioObject::fail(const std::string& message) const {
  throw ScenarioError(place_ + (place_.ends_with(": ") ? "" : ": ") + message);
}
void ScenarioObject::fail(const char* key, const std::string& message) const {
  throw ScenarioError(fmt::format("{}: {}", place(key), message));
}

std::string ScenarioObject::place(const std::string& key) const {
  return place_ + (place_.ends_with(": ") ? "" : ".") + key;
}

const json* ScenarioObject::find(const char* key) {
  known_.insert(key);
  const auto found = value_.find(key);
  return found == value_.end() ? nullptr : &*found;
}

void ScenarioObject::number(const char* key, double& to, double least, double most) {
  const json* value = find(key);
  if (!value) return;
  if (!value->is_number()) fail(key, "must be a number");
  const double number = value->get<double>();
  if (!(number >= least && number <= most))
    fail(key, fmt::format("is {}, which is not from {} to {}", number, least, most));
  to = number;
}

void ScenarioObject::number(const char* key, std::uint64_t& to, std::uint64_t least, std::uint64_t most) {
  const json* value = find(key);
  if (!value) return;
  if (!value->is_number_unsigned()) fail(key, "must be a whole number, not negative");
  if (value->get<std::uint64_t>() < least) fail(key, fmt::format("must be at least {}", least));
  if (value->get<std::uint64_t>() > most) fail(key, fmt::format("must be at most {}", most));
  to = value->get<std::uint64_t>();
}

void ScenarioObject::number(const char* key, std::uint32_t& to, std::uint32_t least, std::uint32_t most) {
  std::uint64_t wide = to;
  number(key, wide, least, most);
  to = static_cast<std::uint32_t>(wide);
}

void ScenarioObject::address(const char* key, std::optional<std::uint64_t>& to) {
  const json* value = find(key);
  if (!value) return;
  if (value->is_number_unsigned()) {
    to = value->get<std::uint64_t>();
    return;
  }
  const std::string text = value->is_string() ? value->get<std::string>() : "";
  constexpr std::size_t kDigits = 16;
  const bool hex = text.starts_with("0x") && text.size() > 2 && text.size() <= 2 + kDigits &&
                   text.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string::npos;
  if (!hex) fail(key, "must be an address: a number, or text as \"0x2000\"");
  to = std::strtoull(text.c_str(), nullptr, 16);
}

void ScenarioObject::boolean(const char* key, bool& to) {
  const json* value = find(key);
  if (!value) return;
  if (!value->is_boolean()) fail(key, "must be true or false");
  to = value->get<bool>();
}

std::optional<std::size_t> ScenarioObject::choice(const char* key, const std::vector<std::string>& names) {
  const json* value = find(key);
  if (!value) return std::nullopt;
  const auto found =
      value->is_string() ? std::find(names.begin(), names.end(), value->get<std::string>()) : names.end();
  if (found == names.end()) fail(key, fmt::format("is {}; known are {}", value->dump(), fmt::join(names, ", ")));
  return static_cast<std::size_t>(found - names.begin());
}

std::optional<ScenarioObject> ScenarioObject::object(const char* key) {
  const json* value = find(key);
  if (!value) return std::nullopt;
  return ScenarioObject(*value, place(key));
}

std::vector<ScenarioObject> ScenarioObject::objects(const char* key) {
  const json* value = find(key);
  std::vector<ScenarioObject> all;
  if (!value) return all;
  if (!value->is_array()) fail(key, "must be a list of objects");
  for (std::size_t i = 0; i < value->size(); ++i) all.emplace_back((*value)[i], fmt::format("{}[{}]", place(key), i));
  return all;
}

void ScenarioObject::finish() const {
  for (const auto& [key, value] : value_.items()) {
    if (!known_.contains(key)) fail(key.c_str(), "unknown key");
  }
}

}  // namespace rnic::testbench
