#include <Vhost_interface_probe.h>

#include "tests/generated/host_interface_probe.hpp"
#include "tests/support/rtl_bench.hpp"

// The SystemVerilog package and the C++ header come from the same tables: both must pick the same bits for every field.
using namespace rnic::test;

TEST_CASE("host interface: Verilated structs and C++ accessors agree on random bits", "[rtl]") {
  std::mt19937_64 rng(seed());
  VerilatedContext context;
  Vhost_interface_probe dut(&context);
  std::array<std::uint8_t, kProbeBytes> bytes{};
  for (int round = 0; round < 200; ++round) {
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(rng());
    port_from_bytes(dut.bytes_i, bytes);
    for (std::size_t i = 0; i < kFieldProbes.size(); ++i) {
      dut.field_i = static_cast<SData>(i);
      dut.eval();
      std::vector<std::uint8_t> seen(kProbeBytes);
      port_to_bytes(dut.value_o, seen);
      auto expected = kFieldProbes[i].read(bytes);
      expected.resize(kProbeBytes);
      INFO(kFieldProbes[i].name);
      REQUIRE(seen == expected);
    }
  }
  dut.final();
}
