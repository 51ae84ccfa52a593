#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "testbench/verify/vector.hpp"

namespace rnic::testbench {

/// A JSON object whose keys must all be asked for; messages name the place.
class VectorReader {
 public:
  using json = nlohmann::json;
  using Names = std::map<std::string_view, std::int64_t>;

  VectorReader(const json& value, std::string place) : value_(value), place_(std::move(place)) {
    if (!value.is_object()) fail("must be an object");
  }
  [[noreturn]] void fail(const std::string& message) const {
    throw VectorError(fmt::format("{}: {}", place_, message));
  }

  const json* find(const char* key) {
    known_.insert(key);
    const auto it = value_.find(key);
    return it == value_.end() ? nullptr : &*it;
  }
  const json& need(const char* key) {
    const json* value = find(key);
    if (!value) fail(fmt::format("\"{}\" is missing", key));
    return *value;
  }
  std::string text(const char* key) {
    const json& value = need(key);
    if (!value.is_string() || value.get_ref<const std::string&>().empty())
      fail(fmt::format("\"{}\" must be a non-empty string", key));
    return value.get<std::string>();
  }
  template <typename T>
  T number(const char* key, std::optional<T> fallback = std::nullopt) {
    const json* value = find(key);
    if (!value && fallback) return *fallback;
    if (!value) fail(fmt::format("\"{}\" is missing", key));
    return to_number<T>(*value, key);
  }
  template <typename T>
  T number_up_to(const char* key, T most, T fallback) {
    const T value = number<T>(key, fallback);
    if (value > most) fail(fmt::format("\"{}\" is at most {}", key, most));
    return value;
  }
  /// A time that is said in microseconds, in nanoseconds.
  template <typename... Fallback>
  std::uint64_t microseconds(const char* key, Fallback... fallback) {
    return std::uint64_t{number<std::uint32_t>(key, fallback...)} * 1000;
  }
  template <typename T>
  T to_number(const json& value, const char* key) const {
    const bool negative = value.is_number_integer() && !value.is_number_unsigned() && value.get<std::int64_t>() < 0;
    if (!value.is_number_integer() || (negative && !std::is_signed_v<T>))
      fail(fmt::format("\"{}\" must be a whole number{}", key, std::is_signed_v<T> ? "" : ", not negative"));
    const bool beyond = std::is_signed_v<T> && value.is_number_unsigned() &&
                        value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()};
    const bool fits = std::is_signed_v<T> ? value.get<std::int64_t>() == static_cast<std::int64_t>(value.get<T>())
                                          : value.get<std::uint64_t>() == static_cast<std::uint64_t>(value.get<T>());
    if (beyond || !fits) fail(fmt::format("\"{}\" is too large", key));
    return value.get<T>();
  }
  bool boolean(const char* key, bool fallback) {
    const json* value = find(key);
    if (value && !value->is_boolean()) fail(fmt::format("\"{}\" must be true or false", key));
    return value ? value->get<bool>() : fallback;
  }
  std::int64_t name(const char* key, const Names& names, std::optional<std::int64_t> fallback = std::nullopt) {
    const json* value = find(key);
    if (!value && fallback) return *fallback;
    if (!value) fail(fmt::format("\"{}\" is missing", key));
    return to_name(*value, key, names);
  }
  std::int64_t to_name(const json& value, const char* key, const Names& names) const {
    const auto it = value.is_string() ? names.find(value.get_ref<const std::string&>()) : names.end();
    if (it != names.end()) return it->second;
    std::string all;
    for (const auto& [name, number] : names) all += (all.empty() ? "" : ", ") + std::string(name);
    fail(fmt::format("\"{}\" is {}; known are {}", key, value.dump(), all));
  }
  std::uint32_t flags(const char* key, const Names& names) {
    const json* value = find(key);
    if (!value) return 0;
    if (value->is_number_unsigned()) return to_number<std::uint32_t>(*value, key);
    std::uint32_t all = 0;
    for (const json& flag : list(*value, key)) all |= static_cast<std::uint32_t>(to_name(flag, key, names));
    return all;
  }
  const json& list(const json& value, const char* key) const {
    if (!value.is_array()) fail(fmt::format("\"{}\" must be a list", key));
    return value;
  }
  [[nodiscard]] VectorReader object(const char* key) { return {need(key), fmt::format("{}, {}", place_, key)}; }
  [[nodiscard]] VectorReader element(const json& value, const char* key, std::size_t index) const {
    return {value, fmt::format("{}, {} {}", place_, key, index + 1)};
  }
  void finish() const {
    for (const auto& [key, value] : value_.items()) {
      if (!known_.contains(key)) fail(fmt::format("unknown key \"{}\"", key));
    }
  }

 private:
  const json& value_;
  std::string place_;
  std::set<std::string> known_;
};

/// {"either": [one, another, ...], "clause": "what leaves it open"}: the list, of at least two; the clause goes to
/// `open_by`.
inline const nlohmann::json& read_either(VectorReader& from, std::string& open_by) {
  const auto& list = from.list(from.need("either"), "either");
  if (list.size() < 2) from.fail("\"either\" needs two");
  open_by = from.text("clause");
  return list;
}

}  // namespace rnic::testbench
