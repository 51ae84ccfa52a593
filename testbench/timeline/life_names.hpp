#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "testbench/timeline/life.hpp"

namespace rnic::testbench {

[[nodiscard]] std::string_view name(Stage stage);
[[nodiscard]] std::string_view name(StallReason reason);
[[nodiscard]] std::string_view name(RxReason reason);
/// A BTH opcode as in table 38 of the InfiniBand specification.
[[nodiscard]] const std::string& opcode_name(std::uint8_t opcode);
/// What a work request does.
[[nodiscard]] std::string_view request_name(const Request& request);
/// "A" of host 0.
[[nodiscard]] std::string host_letter(unsigned host);

}  // namespace rnic::testbench
