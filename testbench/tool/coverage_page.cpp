#include "testbench/tool/coverage_page.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "testbench/report/page_parts.hpp"

namespace rnic::testbench {
namespace {

std::string html_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string sum_row(const std::string& name, const ReachedPoints::Sum& sum) {
  const std::size_t possible = sum.points - sum.excluded;
  std::string share = "none";
  if (possible != 0) {
    const double percent = 100.0 * static_cast<double>(sum.reached) / static_cast<double>(possible);
    share = fmt::format("<progress max=\"100\" value=\"{:.1f}\" aria-label=\"reached\"></progress> {:.1f} %", percent,
                        percent);
  }
  return fmt::format(
      "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
      html_escaped(name), sum.points, sum.excluded, sum.reached, sum.in_unit_tests, sum.holes(), share);
}

/// Sums, and behind each name its holes and what is excluded.
std::string sums_part(const char* id, const char* title, const char* note, const char* column,
                      const std::map<std::string, ReachedPoints::Sum>& sums,
                      const std::map<std::string, std::vector<const ReachedPoint*>>& left) {
  std::string text = fmt::format(
      "<section id=\"{}\"><h2>{}</h2><p class=\"note\">{}</p>\n<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>"
      "<th scope=\"col\">{}</th><th scope=\"col\">points</th><th scope=\"col\">excluded</th><th "
      "scope=\"col\">reached</th><th scope=\"col\">of those only in unit tests</th><th "
      "scope=\"col\">holes</th><th scope=\"col\">of the "
      "possible</th></tr></thead><tbody>\n",
      id, title, note, column);
  ReachedPoints::Sum all;
  for (const auto& [name, sum] : sums) {
    text += sum_row(name, sum);
    all.add(sum);
  }
  text += sum_row("all", all) + "</tbody></table></div>\n";
  for (const auto& [name, points] : left) {
    text += fmt::format("<details><summary>{}: {}</summary><ul>\n", html_escaped(name), points.size());
    for (const auto* point : points) {
      text += fmt::format("<li><code>{}</code>{}</li>\n", html_escaped(point->name),
                          point->excluded.empty() ? "" : ": impossible, " + html_escaped(point->excluded));
    }
    text += "</ul></details>\n";
  }
  return text + "</section>\n";
}

}  // namespace

std::string coverage_page(const ReachedPoints& reached) {
  std::map<std::string, std::vector<const ReachedPoint*>> clauses, blocks;
  ReachedPoints::Sum all;
  for (const auto& point : reached.points()) {
    all.add(point);
    if (!point.reached) (point.rtl ? blocks[point.place] : clauses[clause_of(point)]).push_back(&point);
  }
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light "
      "dark\">\n<title>rnic coverage</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{}\ndetails ul {{ margin: "
      "4px 0 8px; "
      "overflow-wrap: anywhere; }}\n</style>\n</head>\n<body>\n<header><div class=\"wrap\"><p class=\"kind\">rnic "
      "coverage</p><h1>Cover points</h1><p id=\"outcome\"><span class=\"mark {}\">{}</span>{} of {} points reached, {} "
      "excluded with a reason, {} holes</p><nav aria-label=\"Parts of this page\"><a href=\"#clauses\">By clause</a> "
      "<a "
      "href=\"#blocks\">By block</a></nav></div></header>\n<main class=\"wrap\">\n",
      kPageCss, all.holes() == 0 ? "good" : "bad", all.holes() == 0 ? "closed" : "open", all.reached, all.points,
      all.excluded, all.holes());
  page += sums_part("clauses", "By clause", "What hosts and wires saw, of any NIC. Below: points that no run reached.",
                    "group (clause: its subject)", reached.by_clause(), clauses);
  page +=
      sums_part("blocks", "By block",
                reached.has_rtl() ? "Cover points of the RTL by instance: queues full and empty, arbitration, stalls, "
                                    "events at the same time on a context. Below: points that no run reached."
                                  : "No RTL with cover points has run (preset coverage).",
                "instance", reached.by_block(), blocks);
  return page +
         "</main>\n<footer><div class=\"wrap\"><p>What the points are: "
         "<code>docs/coverage.md</code>.</p></div></footer>\n"
         "</body>\n</html>\n";
}

}  // namespace rnic::testbench
