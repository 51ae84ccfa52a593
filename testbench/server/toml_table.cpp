#include "testbench/server/toml_table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rnic::testbench {

const toml::node* TomlTable::find(std::string_view key) {
  known_.emplace(key);
  return table_.get(key);
}

void TomlTable::fail(std::string_view key, const std::string& what) const {
  const toml::node* const node = table_.get(key);
  const auto line = (node != nullptr ? node->source() : table_.source()).begin.line;
  throw MachineFileError(fmt::format("{}:{}: {}{}: {}", file_, line, name_, key, what));
}

void TomlTable::number(std::string_view key, double& to, double least, double most) {
  const toml::node* const node = find(key);
  if (node == nullptr) return;
  const auto value = node->is_number() ? node->value<double>() : std::nullopt;
  if (!value) fail(key, "is no number");
  if (!(*value >= least && *value <= most))
    fail(key, fmt::format("is {}, which is not from {} to {}", *value, least, most));
  to = *value;
}

void TomlTable::number(std::string_view key, std::uint64_t& to, std::uint64_t least, std::uint64_t most) {
  const toml::node* const node = find(key);
  if (node == nullptr) return;
  const auto value = node->is_integer() ? node->value<std::int64_t>() : std::nullopt;
  if (!value) fail(key, "is no whole number");
  if (*value < 0 || static_cast<std::uint64_t>(*value) < least || static_cast<std::uint64_t>(*value) > most)
    fail(key, fmt::format("is {}, which is not from {} to {}", *value, least, most));
  to = static_cast<std::uint64_t>(*value);
}

void TomlTable::one_of(std::string_view key, std::uint64_t& to, const std::vector<std::uint64_t>& values) {
  std::uint64_t value = to;
  number(key, value, 0, ~std::uint64_t{0});
  if (value != to && std::find(values.begin(), values.end(), value) == values.end())
    fail(key, fmt::format("is {}, which is none of {}", value, fmt::join(values, ", ")));
  to = value;
}

void TomlTable::boolean(std::string_view key, bool& to) {
  const toml::node* const node = find(key);
  if (node == nullptr) return;
  if (!node->is_boolean()) fail(key, "is not true or false");
  to = *node->value<bool>();
}

std::optional<std::string> TomlTable::text(std::string_view key) {
  const toml::node* const node = find(key);
  if (node == nullptr) return {};
  if (!node->is_string()) fail(key, "is no text");
  return node->value<std::string>();
}

std::optional<std::vector<std::string>> TomlTable::texts(std::string_view key) {
  const toml::node* const node = find(key);
  if (node == nullptr) return {};
  const toml::array* const array = node->as_array();
  if (array == nullptr) fail(key, "is no list");
  std::vector<std::string> all;
  for (const auto& one : *array) {
    if (!one.is_string()) fail(key, "has something in it that is no text");
    all.push_back(*one.value<std::string>());
  }
  return all;
}

std::optional<TomlTable> TomlTable::table(std::string_view key) {
  const toml::node* const node = find(key);
  if (node == nullptr) return {};
  if (!node->is_table()) fail(key, "is no table");
  return TomlTable(*node->as_table(), file_, fmt::format("{}{}.", name_, key));
}

std::vector<TomlTable> TomlTable::tables(std::string_view key) {
  const toml::node* const node = find(key);
  std::vector<TomlTable> all;
  if (node == nullptr) return all;
  const toml::array* const array = node->as_array();
  if (array == nullptr) fail(key, fmt::format("is no list of tables: write [[{}]]", key));
  for (const auto& one : *array) {
    if (!one.is_table()) fail(key, fmt::format("is no list of tables: write [[{}]]", key));
    all.emplace_back(*one.as_table(), file_, fmt::format("{}{}[{}].", name_, key, all.size()));
  }
  return all;
}

void TomlTable::finish() const {
  for (const auto& [key, node] : table_) {
    if (!known_.contains(key.str())) fail(key.str(), "there is no such key");
  }
}

}  // namespace rnic::testbench
