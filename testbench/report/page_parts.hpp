#pragma once

#include <string_view>

/// Files of this folder and D3, as the build puts them into the program (embed.cmake).
namespace rnic::testbench {

extern const std::string_view kPageHtml, kPageCss, kPageJs, kPageD3;

}  // namespace rnic::testbench
