#include "testbench/tool/verify_junit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "testbench/tool/report.hpp"

namespace rnic::testbench {
namespace {

std::string xml(const std::string& text) {
  static const std::map<char, const char*> kEntities = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
  std::string out;
  for (const char c : text) {
    const auto it = kEntities.find(c);
    out += it == kEntities.end() ? std::string(1, c) : it->second;
  }
  return out;
}

}  // namespace

void write_junit(const std::string& path, const std::vector<VerifyLine>& lines,
                 const std::vector<Coverage::Case>& cases) {
  if (path.empty()) return;
  std::ofstream out(path);
  const auto failed =
      std::count_if(lines.begin(), lines.end(), [](const VerifyLine& line) { return !line.outcome.passed; }) +
      std::count_if(cases.begin(), cases.end(), [](const auto& one) { return !one.failure.empty(); });
  out << fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"rnic verify\" tests=\"{}\" failures=\"{}\">\n",
      lines.size() + cases.size(), failed);
  const auto end = [](bool passed, const std::string& message) {
    return passed ? "/>\n" : fmt::format(">\n    <failure message=\"{}\"/>\n  </testcase>\n", xml(message));
  };
  for (const auto& line : lines) {
    const auto& v = *line.vector;
    out << fmt::format("  <testcase classname=\"{}\" name=\"{}\" time=\"{:.9f}\"", xml(v.document + ", " + v.clause),
                       xml(v.file.string()), static_cast<double>(line.outcome.simulated_ns) * 1e-9);
    out << (line.skipped ? fmt::format(">\n    <skipped message=\"{}\"/>\n  </testcase>\n", xml(line.outcome.message))
                         : end(line.outcome.passed, line.outcome.message));
  }
  for (const auto& one : cases)
    out << fmt::format("  <testcase classname=\"{}\" name=\"{}\"", xml(one.place), xml(one.statement))
        << end(one.failure.empty(), one.failure);
  out << "</testsuite>\n";
  out.close();
  if (!out) throw UsageError(fmt::format("--junit: cannot write '{}'", path));
}

}  // namespace rnic::testbench
