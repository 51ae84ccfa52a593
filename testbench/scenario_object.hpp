#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rnic::testbench {

/// A JSON object of a scenario file. Every key must be asked for before `finish`; messages name the place as "file:
/// wire.both.drop". Everything throws ScenarioError.
class ScenarioObject {
 public:
  ScenarioObject(const nlohmann::json& value, std::string place);

  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail(const char* key, const std::string& message) const;
  [[nodiscard]] bool has(const char* key) const { return value_.contains(key); }

  // Each leaves `to` as it is when there is no such key.
  void number(const char* key, double& to, double least, double most);
  void number(const char* key, std::uint32_t& to, std::uint32_t least, std::uint32_t most = ~std::uint32_t{0});
  void number(const char* key, std::uint64_t& to, std::uint64_t least, std::uint64_t most = ~std::uint64_t{0});
  /// As number; hexadecimal text ("0x200000000000") too, because JSON has no such numbers.
  void address(const char* key, std::optional<std::uint64_t>& to);
  void boolean(const char* key, bool& to);
  void probability(const char* key, double& to) { number(key, to, 0, 1); }
  template <typename T>
  void optional_number(const char* key, std::optional<T>& to, T least, T most) {
    if (!has(key)) return;
    T value{};
    number(key, value, least, most);
    to = value;
  }
  /// Index of the text at `key` in `names`; empty when there is no such key.
  [[nodiscard]] std::optional<std::size_t> choice(const char* key, const std::vector<std::string>& names);

  [[nodiscard]] std::optional<ScenarioObject> object(const char* key);
  [[nodiscard]] std::vector<ScenarioObject> objects(const char* key);
  /// The value at `key`, whatever it is; null when there is none.
  [[nodiscard]] const nlohmann::json* find(const char* key);
  [[nodiscard]] std::string place(const std::string& key) const;

  /// Throws when a key was not asked for.
  void finish() const;

 private:
  const nlohmann::json& value_;
  std::string place_;
  std::set<std::string> known_;
};

}  // namespace rnic::testbench
