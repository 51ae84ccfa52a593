#include <catch2/catch.hpp>
#include <stdexcept>

#include "model/pcie.hpp"

using namespace rnic::model;

TEST_CASE("byte count and lower address follow the byte enables (base specification 2.3.1.1)") {
  // One dword: first byte enables -> offset, count, as the table lists them.
  const struct {
    std::uint8_t be;
    unsigned offset, count;
  } table[] = {{0b1001, 0, 4}, {0b1101, 0, 4}, {0b0101, 0, 3}, {0b0111, 0, 3}, {0b1010, 1, 3},
               {0b1110, 1, 3}, {0b0011, 0, 2}, {0b0110, 1, 2}, {0b1100, 2, 2}, {0b0001, 0, 1},
               {0b0010, 1, 1}, {0b0100, 2, 1}, {0b1000, 3, 1}, {0b0000, 0, 1}};
  for (const auto& row : table) {
    const auto range = enabled_range(0x100, 1, row.be, 0);
    CHECK(range.address == 0x100 + row.offset);
    CHECK(range.length == row.count);
  }
  const auto range = enabled_range(0x100, 4, 0b1000, 0b0011);
  CHECK(range.address == 0x103);
  CHECK(range.length == 16 - 3 - 2);
}

TEST_CASE("covering dwords are the inverse of the enabled range") {
  for (std::uint64_t address = 0x40; address < 0x48; ++address) {
    for (std::uint32_t length = 1; length < 40; ++length) {
      const auto dwords = covering_dwords(address, length);
      const auto range = enabled_range(dwords.address, dwords.length_dw, dwords.first_be, dwords.last_be);
      CHECK(range.address == address);
      CHECK(range.length == length);
      for (std::size_t i = 0; i < std::size_t{dwords.length_dw} * 4; ++i) {
        const std::uint64_t at = dwords.address + i;
        CHECK(byte_enabled(i, dwords.length_dw, dwords.first_be, dwords.last_be) ==
              (at >= address && at < address + length));
      }
    }
  }
}

TEST_CASE("size codes") {
  CHECK(size_code(128) == 0);
  CHECK(size_code(256) == 1);
  CHECK(size_code(4096) == 5);
  CHECK_THROWS_AS(size_code(64), std::invalid_argument);
  CHECK_THROWS_AS(size_code(8192), std::invalid_argument);
  CHECK_THROWS_AS(size_code(384), std::invalid_argument);
}
