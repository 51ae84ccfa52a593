#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace rnic::testbench {

/// Text files that say what is simulated: of the disk, and remembered, or remembered from then.
class InputFiles {
 public:
  InputFiles() = default;
  /// These, by their names, and no others.
  explicit InputFiles(std::map<std::string, std::string> texts) : texts_(std::move(texts)), closed_(true) {}

  /// Nothing: it cannot be read.
  [[nodiscard]] std::optional<std::string> read(const std::filesystem::path& file);
  /// What was read, by the names that were asked for.
  [[nodiscard]] const std::map<std::string, std::string>& texts() const { return texts_; }

 private:
  std::map<std::string, std::string> texts_;
  bool closed_ = false;
};

}  // namespace rnic::testbench
