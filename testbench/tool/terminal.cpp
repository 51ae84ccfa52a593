#include "testbench/tool/terminal.hpp"

#include <fmt/color.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace rnic::testbench {
namespace {

bool has_colours(int descriptor) {
  const char* const refused = std::getenv("NO_COLOR");
  const char* const kind = std::getenv("TERM");
  return isatty(descriptor) != 0 && (refused == nullptr || *refused == 0) && kind != nullptr &&
         std::string_view(kind) != "dumb";
}

}  // namespace

std::string toned(const std::string& word, Tone tone, int descriptor) {
  if (!has_colours(descriptor)) return word;
  const auto colour = tone == Tone::kGood ? fmt::terminal_color::green : fmt::terminal_color::red;
  return fmt::format(fmt::fg(colour) | fmt::emphasis::bold, "{}", word);
}

void print_error(const std::string& text) {
  fmt::print(stderr, "{} {}\n", toned("rnic:", Tone::kBad, STDERR_FILENO), text);
}

std::string counted(std::size_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace rnic::testbench
