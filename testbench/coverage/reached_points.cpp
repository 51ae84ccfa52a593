#include "testbench/coverage/reached_points.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <toml++/toml.h>
#include <unordered_map>

#include "testbench/coverage/point_list.hpp"

namespace rnic::testbench {
namespace {

constexpr const char* kNic = "Vrnic_top.";  // points of the unit tests' models have other names

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw CoverageError(fmt::format("cannot read '{}'", path.string()));
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (std::size_t to = text.find(at); to != text.npos; to = text.find(at, from)) {
    parts.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  parts.push_back(text.substr(from));
  return parts;
}

/// ".rnic_top.u_a.gen_b_Both__BRA__1__KET__.gen_Both__BRA__0__KET__.Both": instance u_a, point "Both 0 1" (a, b).
std::pair<std::string, std::string> place_and_point(const std::string& path) {
  std::string place, numbers;
  const auto parts = split(path, '.');
  const std::string& point = parts.back();
  const auto number = [](const std::string& part) {
    const auto from = part.find("__BRA__");
    return from == part.npos ? std::string() : part.substr(from + 7, part.find("__KET__") - from - 7);
  };
  for (std::size_t i = 2; i + 1 < parts.size(); ++i) {
    const std::string& part = parts[i];
    const std::string name = part.substr(0, part.find("__BRA__"));
    if (name == "gen_" + point || name == "gen_b_" + point) {
      numbers = " " + number(part) + numbers;
    } else if (name != "gen_point") {
      if (!place.empty()) place += '.';
      place += name;
      if (const auto index = number(part); !index.empty()) place += "[" + index + "]";
    }
  }
  return {place, point + numbers};
}

}  // namespace

std::string clause_of(const ReachedPoint& point) {
  return fmt::format("{} ({})", point.name.substr(0, point.name.find('/')), point.place);
}

ReachedPoints::ReachedPoints(const std::vector<std::filesystem::path>& folders) {
  std::map<std::string, ReachedPoint> rtl;
  bool anything = false;
  for (const auto& folder : folders) {
    if (!std::filesystem::is_directory(folder))
      throw CoverageError(fmt::format("there is no folder '{}'", folder.string()));
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".hits") continue;
      anything = true;
      if (entry.path().filename().string().starts_with(kNic)) read_rtl(entry.path(), rtl);
    }
  }
  if (!anything)
    throw CoverageError(fmt::format("'{}' holds no coverage: run something with RNIC_COVERAGE={}",
                                    folders.front().string(), folders.front().string()));
  read_functional(folders);
  has_rtl_ = !rtl.empty();
  for (auto& [name, point] : rtl) points_.push_back(std::move(point));
  std::sort(points_.begin(), points_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
}

void ReachedPoints::read_functional(const std::vector<std::filesystem::path>& folders) {
  const auto& list = PointList::get();
  for (const auto& point : list.points()) points_.push_back({point.name, point.clause, false, false, {}});
  for (const auto& folder : folders) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const auto name = entry.path().filename().string();
      if (!name.starts_with("functional.") || entry.path().extension() != ".hits") continue;
      const std::string hits = read_file(entry.path());
      if (name != list.file() + ".hits" || hits.size() != points_.size())
        throw CoverageError(fmt::format("'{}' is of another version of rnic", entry.path().string()));
      for (std::size_t i = 0; i < hits.size(); ++i) points_[i].reached = points_[i].reached || hits[i] != 0;
    }
  }
}

void ReachedPoints::read_rtl(const std::filesystem::path& path, std::map<std::string, ReachedPoint>& points) {
  auto table = path;
  table.replace_extension(".points");
  if (!std::filesystem::exists(table))
    throw CoverageError(fmt::format("'{}' is missing: it names the points of '{}' (docs/coverage.md)", table.string(),
                                    path.filename().string()));
  const std::string hits = read_file(path);
  auto lines = split(read_file(table), '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  if (lines.size() != hits.size())
    throw CoverageError(fmt::format("'{}' does not belong to '{}'", table.string(), path.string()));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto columns = split(lines[i], '\t');
    if (columns.size() < 5 || columns[0] != "v_user") continue;
    const auto [place, point] = place_and_point(columns[4]);
    ReachedPoint& at = points[fmt::format("rtl/{}/{}", place, point)];
    at.name = fmt::format("rtl/{}/{}", place, point);
    at.place = place;
    at.rtl = true;
    at.reached = at.reached || hits[i] != 0;
  }
}

void ReachedPoints::exclude(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  const auto wrong = [&](const std::string& what) { return CoverageError(fmt::format("{}: {}", file.string(), what)); };
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw wrong(fmt::format("line {}: {}", error.source().begin.line, error.description()));
  }
  if (table.empty()) return;
  const auto* entries = table["excluded"].as_array();
  if (entries == nullptr || table.size() != 1) throw wrong("wants [[excluded]] and nothing else");
  for (const auto& node : *entries) {
    const auto* entry = node.as_table();
    const auto* names = entry == nullptr ? nullptr : (*entry)["points"].as_array();
    const auto reason = entry == nullptr ? std::string() : (*entry)["reason"].value_or(std::string());
    if (names == nullptr || reason.empty() || entry->size() != 2)
      throw wrong(fmt::format("line {}: an entry has points and reason, and nothing else", node.source().begin.line));
    for (const auto& name : *names) {
      const auto pattern = name.value_or(std::string());
      bool used = false;
      for (auto& point : points_) {
        if (fnmatch(pattern.c_str(), point.name.c_str(), 0) != 0) continue;
        used = true;
        point.excluded = reason;
      }
      if (!used && (has_rtl_ || !pattern.starts_with("rtl/")))
        throw wrong(fmt::format("no point is like '{}'", pattern));
    }
  }
}

std::vector<std::string> ReachedPoints::impossible() const {
  std::vector<std::string> names;
  for (const auto& point : points_)
    if (point.reached && !point.excluded.empty()) names.push_back(point.name);
  return names;
}

std::vector<std::string> ReachedPoints::opened(const std::filesystem::path& file) const {
  std::unordered_map<std::string, bool> reached;
  for (const auto& point : points_) reached.emplace(point.name, point.reached);
  std::vector<std::string> names;
  for (const auto& name : split(read_file(file), '\n')) {
    if (name.empty() || (!has_rtl_ && name.starts_with("rtl/"))) continue;
    const auto it = reached.find(name);
    if (it == reached.end()) {
      names.push_back(name + " (there is no such point)");
    } else if (!it->second) {
      names.push_back(name);
    }
  }
  return names;
}

void ReachedPoints::Sum::add(const ReachedPoint& point) {
  ++points;
  if (point.reached) {
    ++reached;
  } else if (!point.excluded.empty()) {
    ++excluded;
  }
}

std::map<std::string, ReachedPoints::Sum> ReachedPoints::by_clause() const {
  std::map<std::string, Sum> sums;
  for (const auto& point : points_)
    if (!point.rtl) sums[clause_of(point)].add(point);
  return sums;
}

std::map<std::string, ReachedPoints::Sum> ReachedPoints::by_block() const {
  std::map<std::string, Sum> sums;
  for (const auto& point : points_)
    if (point.rtl) sums[point.place].add(point);
  return sums;
}

}  // namespace rnic::testbench
