#include "testbench/tool/verify_junit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "testbench/tool/report.hpp"

namespace rnic::testbench {
namespace {

/// Characters that XML does not have go as '?'.
std::string xml(const std::string& text) {
  static const std::map<char, const char*> kEntities = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\n', "&#10;"}};
  std::string out;
  for (const char c : text) {
    const auto it = kEntities.find(c);
    const bool has = static_cast<unsigned char>(c) >= ' ' || c == '\t';
    out += it != kEntities.end() ? it->second : std::string(1, has ? c : '?');
  }
  return out;
}

/// Viewers take a dot for the border of two packages: "Volume 1, 9_7_5_1_2".
std::string class_name(std::string text) {
  std::replace(text.begin(), text.end(), '.', '_');
  return xml(text);
}

std::string property(const char* name, const std::string& value) {
  return fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", name, xml(value));
}

std::string properties(const VerifyLine& line) {
  const auto& vector = *line.vector;
  const auto& outcome = line.outcome;
  return "    <properties>\n" + property("document", vector.document) + property("clause", vector.clause) +
         property("rule", vector.rule) + property("simulated_ns", std::to_string(outcome.simulated_ns)) +
         property("set_up_ns", std::to_string(outcome.set_up_ns)) + property("cycles", std::to_string(outcome.cycles)) +
         "    </properties>\n";
}

/// How it ended; nothing of one that passed.
std::string result(const VerifyLine& line) {
  const std::string message = xml(line.outcome.message);
  if (line.skipped) return fmt::format("    <skipped message=\"{}\"/>\n", message);
  if (line.malformed()) return fmt::format("    <error type=\"malformed\" message=\"{0}\">{0}</error>\n", message);
  if (!line.failed()) return {};
  const std::string evidence =
      line.evidence.empty()
          ? "run it alone for waves and a capture: rnic verify " + line.vector->file.string()
          : "capture, waves, log and command are in " + std::filesystem::absolute(line.evidence).string();
  return fmt::format("    <failure message=\"{}\">{}&#10;{}</failure>\n", message, message, xml(evidence));
}

}  // namespace

void write_junit(const std::string& path, const std::vector<VerifyLine>& lines,
                 const std::vector<Coverage::Case>& cases, const std::vector<std::filesystem::path>& paths) {
  if (path.empty()) return;
  std::ofstream out(path);
  const auto counts = count(lines);
  const auto open = static_cast<std::size_t>(
      std::count_if(cases.begin(), cases.end(), [](const auto& one) { return !one.failure.empty(); }));
  double seconds = 0;
  for (const auto& line : lines) seconds += line.outcome.wall_seconds;
  out << fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"rnic verify\" tests=\"{}\" failures=\"{}\" "
      "errors=\"{}\" skipped=\"{}\" time=\"{:.6f}\">\n",
      lines.size() + cases.size(), counts.failed + open, counts.malformed, counts.skipped, seconds);
  for (const auto& line : lines) {
    const auto& v = *line.vector;
    const std::string place = line.malformed() ? "malformed" : v.document + ", " + v.clause;
    out << fmt::format("  <testcase classname=\"{}\" name=\"{}\" file=\"{}\" time=\"{:.6f}\">\n", class_name(place),
                       xml(vector_name(v.file, paths)), xml(v.file.string()), line.outcome.wall_seconds)
        << (line.malformed() ? "" : properties(line)) << result(line) << "  </testcase>\n";
  }
  for (const auto& one : cases) {
    out << fmt::format("  <testcase classname=\"{}\" name=\"{}\" time=\"0\"", class_name(one.place),
                       xml(one.statement));
    out << (one.failure.empty() ? "/>\n"
                                : fmt::format(">\n    <failure message=\"{}\"/>\n  </testcase>\n", xml(one.failure)));
  }
  out << "</testsuite>\n";
  out.close();
  if (!out) throw UsageError(fmt::format("--junit: cannot write '{}'", path));
}

}  // namespace rnic::testbench
