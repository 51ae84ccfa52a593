#pragma once

#include <string>
#include <vector>

#include "tests/server/tool_process.hpp"

namespace rnic::test {

struct Outcome {
  int code;
  std::string output;  ///< Of both kinds
};

/// Runs the tool in a folder of its own, in which no machine of the user's runs.
class Tool {
 public:
  [[nodiscard]] const std::string& folder() const { return folder_.path(); }
  Outcome run(std::vector<std::string> arguments);
  /// What is left in the folder beside the output.
  [[nodiscard]] std::vector<std::string> left() const;

 private:
  OwnFolder folder_;
};

[[nodiscard]] inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace rnic::test
