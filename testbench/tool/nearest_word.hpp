#pragma once

#include <string>
#include <vector>

namespace rnic::testbench {

/// The one of `names` that a user who typed `word` most likely meant; "" if none is near.
[[nodiscard]] std::string nearest_word(const std::string& word, const std::vector<std::string>& names);

}  // namespace rnic::testbench
