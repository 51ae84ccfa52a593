#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>

#include "driver/generated/host_interface.hpp"
#include "testbench/coverage/point_list.hpp"

namespace rnic::testbench {

/// "remote access error"; of a status that does not exist its number: "unknown status 0x37".
inline std::string cqe_status_text(hw::CqeStatus status) {
  const auto number = static_cast<std::size_t>(status);
  const auto text = point_names::status(number);
  return text.empty() ? fmt::format("unknown status {:#x}", number) : std::string(text);
}

}  // namespace rnic::testbench
