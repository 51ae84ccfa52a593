#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace rnic::testbench {

/// The page that shows `report` (docs/report.md says what is in it): one HTML file with all that it needs, D3 and its
/// licence included. It asks no network for anything.
[[nodiscard]] std::string report_page(const nlohmann::ordered_json& report);
/// Throws std::runtime_error when the file cannot be written.
void write_report_page(const std::filesystem::path& path, const nlohmann::ordered_json& report);

/// `text` as a JSON text that can stand in a script element of HTML: nothing in it ends the element.
[[nodiscard]] std::string json_for_html(const nlohmann::ordered_json& value);

}  // namespace rnic::testbench
