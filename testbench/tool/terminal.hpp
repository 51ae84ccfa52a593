#pragma once

#include <string>

namespace rnic::testbench {

/// Of a word for a person.
enum class Tone { kGood, kBad };

/// `word` in green or red, if `descriptor` (standard output, or error) is a terminal that has colours and the
/// environment does not have NO_COLOR (https://no-color.org); else as it is.
[[nodiscard]] std::string toned(const std::string& word, Tone tone, int descriptor = 1);

/// "rnic: TEXT" on standard error.
void print_error(const std::string& text);

/// "1 file", "2 files".
[[nodiscard]] std::string counted(std::size_t count, const std::string& what);

}  // namespace rnic::testbench
