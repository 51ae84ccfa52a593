#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <toml++/toml.h>
#include <vector>

namespace rnic::testbench {

/// A machine file that cannot be read or is wrong. The message is one line that names the file, the line in it, and the
/// key.
class MachineFileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A table of a machine file. Every key must be asked for before `finish`. Everything throws MachineFileError.
class TomlTable {
 public:
  /// `file` is for messages, `name` that of the table with a dot behind it, or empty.
  TomlTable(const toml::table& table, std::string file, std::string name)
      : table_(table), file_(std::move(file)), name_(std::move(name)) {}

  // Each leaves `to` as it is when there is no such key.
  void number(std::string_view key, double& to, double least, double most);
  void number(std::string_view key, std::uint64_t& to, std::uint64_t least, std::uint64_t most);
  void boolean(std::string_view key, bool& to);
  /// As number; one of these.
  void one_of(std::string_view key, std::uint64_t& to, const std::vector<std::uint64_t>& values);
  [[nodiscard]] std::optional<std::string> text(std::string_view key);
  [[nodiscard]] std::optional<std::vector<std::string>> texts(std::string_view key);
  [[nodiscard]] std::optional<TomlTable> table(std::string_view key);
  [[nodiscard]] std::vector<TomlTable> tables(std::string_view key);

  /// Throws when a key was not asked for.
  void finish() const;
  [[noreturn]] void fail(std::string_view key, const std::string& what) const;

 private:
  [[nodiscard]] const toml::node* find(std::string_view key);

  const toml::table& table_;
  std::string file_;
  std::string name_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace rnic::testbench
