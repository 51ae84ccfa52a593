#include "testbench/coverage/reached_points.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <toml++/toml.h>
#include <unordered_map>

#include "testbench/coverage/point_list.hpp"

namespace rnic::testbench {
namespace {

constexpr const char* kNic = "Vrnic_top.";  // models of unit tests have other names
constexpr const char* kFunctional = "functional.";

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

/// Place of `part`, which may be none, in that of an instance, which may be the top.
std::string dotted(const std::string& place, const std::string& part) {
  return place.empty() || part.empty() ? place + part : place + '.' + part;
}

/// What the columns of a table of points (cmake/coverage_verilator.py) say of one.
struct Row {
  bool cover_point = false;        // and no line, branch or bit
  bool placed = false;             // it names its instance
  std::string source;              // of the module that it is in
  std::vector<std::string> place;  // instances from the top's, which is left out, inwards: "u_a", "gen_b[1]"
  std::string point;               // of a cover point: "Both 0 1" (a, b)
};

/// ".rnic_top.u_a.gen_b_Both__BRA__1__KET__.gen_Both__BRA__0__KET__.Both": instance u_a, point "Both 0 1".
Row row_of(const std::string& line) {
  const auto columns = split(line, '\t');
  Row row;
  if (columns.size() < 5) return row;
  row.cover_point = columns[0] == "v_user";
  row.source = columns[1].substr(columns[1].rfind("rtl/") == std::string::npos ? 0 : columns[1].rfind("rtl/"));
  auto parts = split(columns[4], '.');
  row.placed = parts.size() > 1;
  std::string point, numbers;
  if (row.cover_point) {
    point = parts.back();
    parts.pop_back();
  }
  for (std::size_t i = 2; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    const auto from = part.find("__BRA__");
    const std::string name = part.substr(0, from);
    const std::string number = from == part.npos ? "" : part.substr(from + 7, part.find("__KET__") - from - 7);
    if (row.cover_point && (name == "gen_" + point || name == "gen_b_" + point)) {
      numbers = " " + number + numbers;
    } else if (name != "gen_point") {
      row.place.push_back(number.empty() ? name : name + "[" + number + "]");
    }
  }
  row.point = point + numbers;
  return row;
}

/// Place of an instance as a name has it.
std::string joined(const std::vector<std::string>& place) { return fmt::format("{}", fmt::join(place, ".")); }

/// The rows of the table that belongs to a file of hits, and the hits, a byte a row.
std::pair<std::vector<Row>, std::string> read_table(const std::filesystem::path& path) {
  auto table = path;
  table.replace_extension(".points");
  if (!std::filesystem::exists(table))
    throw CoverageError(fmt::format("'{}' is missing: it names the points of '{}' (docs/coverage.md)", table.string(),
                                    path.filename().string()));
  std::string hits = read_file(path);
  auto lines = split(read_file(table), '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  if (lines.size() != hits.size())
    throw CoverageError(fmt::format("'{}' does not belong to '{}'", table.string(), path.string()));
  std::vector<Row> rows;
  rows.reserve(lines.size());
  for (const auto& line : lines) rows.push_back(row_of(line));
  return {std::move(rows), std::move(hits)};
}

/// What files of hits say of the whole NIC.
struct Nic {
  std::map<std::string, ReachedPoint> points;              // by name
  std::map<std::string, std::set<std::string>> places_of;  // instances, by the source of their module
};

/// Adds the points of a model of the whole NIC.
void read_nic(const std::filesystem::path& path, Nic& nic) {
  const auto [rows, hits] = read_table(path);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const std::string place = joined(row.place);
    if (!row.cover_point) {
      nic.places_of[row.source].insert(place);
      continue;
    }
    const std::string name = fmt::format("rtl/{}/{}", place, row.point);
    ReachedPoint& at = nic.points[name];
    at.name = name;
    at.place = place;
    at.rtl = true;
    at.reached = at.reached || hits[i] != 0;
  }
}

/// Notes what the model of a unit test has reached inside blocks of the NIC.
void read_unit_test(const std::filesystem::path& path, Nic& nic) {
  const auto [rows, hits] = read_table(path);
  if (!std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.placed; }))
    throw CoverageError(fmt::format("'{}' has points of no instance: Verilate it with --flatten", path.string()));
  std::map<std::string, std::string> source_of;  // of the module of an instance
  for (const auto& row : rows)
    if (!row.cover_point) source_of[joined(row.place)] = row.source;
  // The outermost block around it that stands in the NIC once; a FIFO or an arbiter of its own says nothing of places.
  const auto place_in_nic = [&](const Row& row) -> std::string {
    std::string outer;
    for (std::size_t depth = 0;; ++depth) {
      const auto source = source_of.find(outer);
      const auto places = source == source_of.end() ? nic.places_of.end() : nic.places_of.find(source->second);
      if (places != nic.places_of.end() && places->second.size() == 1)
        return dotted(*places->second.begin(),
                      joined({row.place.begin() + static_cast<std::ptrdiff_t>(depth), row.place.end()}));
      if (depth == row.place.size()) return {};
      outer = dotted(outer, row.place[depth]);
    }
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].cover_point || hits[i] == 0) continue;
    const auto at = nic.points.find(fmt::format("rtl/{}/{}", place_in_nic(rows[i]), rows[i].point));
    if (at == nic.points.end() || at->second.reached) continue;
    at->second.reached = at->second.in_unit_test = true;
  }
}

}  // namespace

std::string clause_of(const ReachedPoint& point) {
  return fmt::format("{} ({}: {})", point.name.substr(0, point.name.find('/')), point.place,
                     PointList::clause_subject(point.place));
}

ReachedPoints::ReachedPoints(const std::vector<std::filesystem::path>& folders) {
  std::vector<std::filesystem::path> unit_tests;
  Nic nic;
  bool anything = false;
  for (const auto& folder : folders) {
    if (!std::filesystem::is_directory(folder))
      throw CoverageError(fmt::format("there is no folder '{}'", folder.string()));
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".hits") continue;
      anything = true;
      const std::string name = entry.path().filename().string();
      if (name.starts_with(kNic)) {
        read_nic(entry.path(), nic);
      } else if (!name.starts_with(kFunctional)) {
        unit_tests.push_back(entry.path());
      }
    }
  }
  if (!anything)
    throw CoverageError(fmt::format("'{}' holds no coverage: run something with RNIC_COVERAGE={}",
                                    folders.front().string(), folders.front().string()));
  read_functional(folders);
  has_rtl_ = !nic.points.empty();
  for (const auto& path : unit_tests) read_unit_test(path, nic);
  for (auto& [name, point] : nic.points) points_.push_back(std::move(point));
  std::sort(points_.begin(), points_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
}

void ReachedPoints::read_functional(const std::vector<std::filesystem::path>& folders) {
  const auto& list = PointList::get();
  for (const auto& point : list.points())
    points_.push_back({.name = point.name, .place = point.clause, .excluded = {}});
  for (const auto& folder : folders) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const auto name = entry.path().filename().string();
      if (!name.starts_with(kFunctional) || entry.path().extension() != ".hits") continue;
      const std::string hits = read_file(entry.path());
      if (name != list.file() + ".hits" || hits.size() != points_.size())
        throw CoverageError(fmt::format("'{}' is of another version of rnic", entry.path().string()));
      for (std::size_t i = 0; i < hits.size(); ++i) points_[i].reached = points_[i].reached || hits[i] != 0;
    }
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
    in_unit_tests += point.in_unit_test;
  } else if (!point.excluded.empty()) {
    ++excluded;
  }
}

void ReachedPoints::Sum::add(const Sum& other) {
  points += other.points;
  reached += other.reached;
  excluded += other.excluded;
  in_unit_tests += other.in_unit_tests;
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
