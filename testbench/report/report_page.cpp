#include "testbench/report/report_page.hpp"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "testbench/report/page_parts.hpp"

namespace rnic::testbench {

std::string json_for_html(const nlohmann::ordered_json& value) {
  const std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  std::string out;
  // In JSON it stands in strings alone.
  for (const char c : text) c == '<' ? out.append("\\u003c") : out.append(1, c);
  return out;
}

std::string report_page(const nlohmann::ordered_json& report) {
  const std::string data = json_for_html(report);
  const std::array<std::pair<std::string_view, std::string_view>, 4> parts = {
      {{"{{css}}", kPageCss}, {"{{d3}}", kPageD3}, {"{{data}}", data}, {"{{js}}", kPageJs}}};
  std::string_view left = kPageHtml;
  std::string page;
  for (const auto& [mark, text] : parts) {
    const std::size_t at = left.find(mark);
    if (at == std::string_view::npos) throw std::logic_error(fmt::format("the page has no place for {}", mark));
    page.append(left.substr(0, at)).append(text);
    left.remove_prefix(at + mark.size());
  }
  return page.append(left);
}

void write_report_page(const std::filesystem::path& path, const nlohmann::ordered_json& report) {
  std::ofstream out(path, std::ios::binary);
  out << report_page(report);
  out.close();
  if (!out) throw std::runtime_error(fmt::format("cannot write report '{}'", path.string()));
}

}  // namespace rnic::testbench
