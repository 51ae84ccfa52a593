#include <catch2/catch.hpp>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "model/config_space.hpp"

using rnic::model::ConfigSpace;
using rnic::model::FunctionDescription;
using rnic::model::PcieConfig;

// PCI Express base specification, chapter 7.5 and 7.7.2; power management of 5.3 and 7.5.2.

namespace {

FunctionDescription description() {
  return {.vendor = 0x1234,
          .device = 0x524E,
          .class_code = 0x02'00'00,
          .bar0_bytes = 512 << 10,
          .msix_vectors = 32,
          .msix_table = 0x400,
          .msix_pending = 0x600,
          .max_payload_supported = 256};
}

constexpr std::size_t kCommand = 4, kStatus = 6, kBar0 = 0x10;

/// Where the capability with this number is, as software looks for it.
std::size_t find(const ConfigSpace& space, std::uint32_t id) {
  REQUIRE((space.read(kStatus, 2) & 0x10) != 0);
  std::size_t at = space.read(0x34, 1);
  for (unsigned steps = 0; at != 0; at = space.read(at + 1, 1)) {
    REQUIRE(at % 4 == 0);
    REQUIRE(at >= 0x40);
    REQUIRE(++steps < 48);
    if (space.read(at, 1) == id) return at;
  }
  FAIL("no capability " << id);
  return 0;
}

}  // namespace

TEST_CASE("the header says what the function is") {
  const ConfigSpace space(description());
  CHECK(space.read(0, 4) == 0x524E'1234);
  CHECK(space.read(kCommand, 2) == 0);
  CHECK(space.read(8, 4) == 0x0200'0000);
  CHECK(space.read(0x0E, 1) == 0);            // type 0, one function
  CHECK(space.read(0x2C, 4) == 0x524E'1234);  // subsystem
  CHECK(space.read(0x3D, 1) == 0);            // no INTx
  for (std::size_t bar = 1; bar < 6; ++bar) CHECK(space.read(kBar0 + 4 * bar, 4) == 0);
  CHECK(space.read(0x30, 4) == 0);  // no expansion ROM
}

TEST_CASE("a BAR is sized and placed") {
  ConfigSpace space(description());
  space.write(kBar0, 0xFFFF'FFFF, 4);
  CHECK(space.read(kBar0, 4) == 0xFFF8'0000);  // 32-bit memory, not prefetchable, 512 KiB
  space.write(kBar0, 0xFEA8'1234, 4);
  CHECK(space.bar0() == 0xFEA8'0000);
  space.write(kBar0 + 2, 0x1008, 2);
  CHECK(space.bar0() == 0x1008'0000);
  space.write(kBar0 + 4, 0xFFFF'FFFF, 4);
  CHECK(space.read(kBar0 + 4, 4) == 0);
  space.write(0x30, 0xFFFF'FFFF, 4);
  CHECK(space.read(0x30, 4) == 0);
}

TEST_CASE("what is read-only stays") {
  ConfigSpace space(description());
  std::vector<std::uint32_t> before;
  for (std::size_t at = 0; at < ConfigSpace::kBytes; at += 4) before.push_back(space.read(at, 4));
  for (const std::size_t at : {0x00u, 0x08u, 0x2Cu, 0x34u, 0x40u, 0x64u, 0x84u, 0xA4u, 0xA8u}) {
    INFO(at);
    space.write(at, ~before[at / 4], 4);
    CHECK(space.read(at, 4) == before[at / 4]);
  }
  space.write(kCommand, 0xFFFF, 2);
  CHECK(space.read(kCommand, 2) == 0x0546);
  CHECK(space.read(kStatus, 2) == 0x10);
}

TEST_CASE("nothing is outside of the 256 bytes") {
  ConfigSpace space(description());
  CHECK(space.read(252, 4) == 0);
  CHECK_THROWS_AS(space.read(253, 4), std::out_of_range);
  CHECK_THROWS_AS(space.write(256, 0, 1), std::out_of_range);
  CHECK_THROWS_AS(space.read(~std::size_t{0}, 1), std::out_of_range);
  CHECK_THROWS_AS(space.read(0, 8), std::out_of_range);
}

TEST_CASE("command bits gate DMA and memory requests") {
  ConfigSpace space(description());
  CHECK_FALSE(space.config().bus_master);
  CHECK_FALSE(space.memory_enabled());
  space.write(kCommand, 2, 2);
  CHECK(space.memory_enabled());
  CHECK_FALSE(space.config().bus_master);
  space.write(kCommand, 6, 2);
  CHECK(space.config().bus_master);
  space.write(kCommand, 0, 1);
  CHECK_FALSE(space.config().bus_master);
  CHECK_FALSE(space.memory_enabled());
}

TEST_CASE("MSI-X is where the host interface says") {
  ConfigSpace space(description());
  const std::size_t msix = find(space, 0x11);
  CHECK(space.read(msix + 2, 2) == 31);
  CHECK(space.read(msix + 4, 4) == 0x400);
  CHECK(space.read(msix + 8, 4) == 0x600);
  CHECK_FALSE(space.config().msix_enable);
  space.write(msix + 2, 0xC000, 2);
  CHECK(space.read(msix + 2, 2) == 0xC01F);
  CHECK(space.config().msix_enable);
  CHECK(space.config().msix_mask);
  space.write(msix + 3, 0x80, 1);
  CHECK(space.config().msix_enable);
  CHECK_FALSE(space.config().msix_mask);
}

TEST_CASE("device control says what the NIC may send") {
  ConfigSpace space(description());
  const std::size_t express = find(space, 0x10);
  CHECK(space.read(express + 2, 2) == 0x92);  // version 2, root complex integrated endpoint
  CHECK((space.read(express + 4, 4) & 7) == 1);
  const PcieConfig at_first = space.config();
  CHECK(at_first.max_payload == 128);
  CHECK(at_first.max_read_request == 512);
  CHECK_FALSE(at_first.extended_tags);
  CHECK_FALSE(at_first.completion_timeout_disable);
  space.write(express + 8, 1 << 5 | 1 << 8 | 5 << 12, 2);
  CHECK(space.config().max_payload == 256);
  CHECK(space.config().max_read_request == 4096);
  CHECK(space.config().extended_tags);
  space.write(express + 0x28, 0x16, 2);
  CHECK(space.read(express + 0x28, 2) == 0x16);
  CHECK(space.config().completion_timeout_disable);

  CHECK((space.read(express + 10, 2) & 0x20) == 0);
  space.set_transactions_pending(true);
  CHECK((space.read(express + 10, 2) & 0x20) != 0);
}

TEST_CASE("a function level reset is asked for by a bit that reads 0, and leaves the maximum payload") {
  ConfigSpace space(description());
  const std::size_t express = find(space, 0x10);
  CHECK((space.read(express + 4, 4) & 1u << 28) != 0);
  space.write(kCommand, 6, 2);
  space.write(kBar0, 0xFEA8'0000, 4);
  space.write(express + 8, 1 << 5 | 1 << 8, 2);
  CHECK_FALSE(space.take_reset_request());
  space.write(express + 8, space.read(express + 8, 2) | 0x8000, 2);
  CHECK((space.read(express + 8, 2) & 0x8000) == 0);
  CHECK(space.take_reset_request());
  CHECK_FALSE(space.take_reset_request());
  space.reset_function();
  CHECK(space.read(kCommand, 2) == 0);
  CHECK(space.bar0() == 0);
  CHECK(space.config().max_payload == 256);
  CHECK_FALSE(space.config().extended_tags);
  space.reset();
  CHECK(space.config().max_payload == 128);
}

TEST_CASE("in D3hot the function neither masters the bus nor answers memory requests, and loses nothing") {
  ConfigSpace space(description());
  const std::size_t power = find(space, 1);
  CHECK((space.read(power + 2, 2) & 0xFE07) == 3);  // version 3, no D1, D2 and PME
  CHECK((space.read(power + 4, 2) & 8) != 0);       // no soft reset
  space.write(kCommand, 6, 2);
  space.write(power + 4, 3, 2);
  CHECK((space.read(power + 4, 2) & 3) == 3);
  CHECK_FALSE(space.config().bus_master);
  CHECK_FALSE(space.memory_enabled());
  space.write(power + 4, 1, 2);  // not there: nothing happens
  CHECK((space.read(power + 4, 2) & 3) == 3);
  space.write(power + 4, 0, 2);
  CHECK(space.config().bus_master);
  CHECK(space.memory_enabled());
}

TEST_CASE("a description out of range is refused") {
  auto wrong = description();
  wrong.bar0_bytes = 3000;
  CHECK_THROWS_AS(ConfigSpace(wrong), std::invalid_argument);
  wrong = description();
  wrong.msix_vectors = 2049;
  CHECK_THROWS_AS(ConfigSpace(wrong), std::invalid_argument);
  wrong = description();
  wrong.max_payload_supported = 8192;
  CHECK_THROWS_AS(ConfigSpace(wrong), std::invalid_argument);
  wrong = description();
  wrong.msix_table = 0x404;
  CHECK_THROWS_AS(ConfigSpace(wrong), std::invalid_argument);
}
