#include <Vrnr_timer.h>

#include <array>
#include <catch2/catch.hpp>
#include <cmath>

// rtl/completion/rnr_timer.sv: InfiniBand specification 9.7.5.2.8, table 45.
TEST_CASE("rnr_timer: never shorter than the table says, at most a unit longer", "[rtl]") {
  constexpr std::array<double, 32> kMilliseconds = {655.36, 0.01,  0.02,  0.03,   0.04,   0.06,   0.08,   0.12,
                                                    0.16,   0.24,  0.32,  0.48,   0.64,   0.96,   1.28,   1.92,
                                                    2.56,   3.84,  5.12,  7.68,   10.24,  15.36,  20.48,  30.72,
                                                    40.96,  61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};
  constexpr double kUnitMs = 1024 * 4e-6;  // 1024 cycles of 4 ns
  VerilatedContext context;
  Vrnr_timer dut(&context);
  for (unsigned code = 0; code < 32; ++code) {
    dut.code_i = static_cast<CData>(code);
    dut.eval();
    CAPTURE(code);
    CHECK(dut.units_o == static_cast<unsigned>(std::ceil(kMilliseconds[code] / kUnitMs - 1e-9)));
  }
  dut.final();
}
