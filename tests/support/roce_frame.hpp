#pragma once

#include "testbench/roce_frame.hpp"

namespace rnic::test {

using namespace roce;

}  // namespace rnic::test
