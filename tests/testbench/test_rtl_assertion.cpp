#include <catch2/catch.hpp>
#include <filesystem>

#include "echo_nic.hpp"
#include "testbench/world.hpp"

using namespace rnic;
using namespace rnic::test;
using testbench::Host;

TEST_CASE("an RTL assertion that fails stops the simulation, with traces and captures written") {
  const auto directory = std::filesystem::temp_directory_path();
  testbench::WorldOptions options;
  options.trace_path = (directory / "rnic_test_rtl_assertion.fst").string();
  options.capture_path = (directory / "rnic_test_rtl_assertion.pcap").string();
  testbench::World world(options);
  world.add_app(1, "fails", [](Host& host) {
    host.device().write64(kSend, 100);
    host.device().elapse(1'000);
    host.device().write64(kFail, 1);
    host.device().elapse(1'000);
    FAIL("the simulation went on");
  });
  CHECK_THROWS_WITH(world.run(), Catch::Matchers::Contains("host1.nic") && Catch::Matchers::Contains("assertion"));
  for (const char* suffix : {".host1.fst", ".pcap"}) {
    const std::string file = (directory / "rnic_test_rtl_assertion").string() + suffix;
    CHECK(std::filesystem::file_size(file) > 100);
    std::filesystem::remove(file);
  }
  std::filesystem::remove(options.trace_path);
}
