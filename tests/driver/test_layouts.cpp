#include <catch2/catch.hpp>

#include <random>

#include "tests/generated/host_interface_probe.hpp"
#include "tests/generated/rtl_streams_probe.hpp"

using namespace rnic;
using namespace rnic::test;

// The tables say which bits a field is; here they are picked one by one. What the codecs do word by word must be the
// same for every layout of the host interface and every stream. That the SystemVerilog picks the same bits is for
// rtl/host_interface_probe to say.

namespace {

std::vector<std::uint8_t> random_bytes(std::size_t count, std::mt19937_64& rng) {
  std::vector<std::uint8_t> bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(rng());
  return bytes;
}

/// Bit `at` of a layout: counted from bit 0 of the first byte, or, `big`, from bit 0 of the last.
bool bit_of(std::span<const std::uint8_t> layout, std::size_t at, bool big) {
  const std::uint8_t byte = big ? layout[layout.size() - 1 - at / 8] : layout[at / 8];
  return (byte >> at % 8 & 1) != 0;
}

void check_fields(std::span<const FieldProbe> probes) {
  std::mt19937_64 rng(1);
  for (const auto& probe : probes) {
    for (int round = 0; round < 20; ++round) {
      const auto bytes = random_bytes(probe.layout_bytes, rng);
      std::vector<std::uint8_t> expected(std::max<std::size_t>(8, (probe.width + 7) / 8));
      for (std::size_t i = 0; i < probe.width; ++i) {
        if (bit_of(bytes, probe.offset + i, probe.big)) expected[i / 8] |= static_cast<std::uint8_t>(1U << i % 8);
      }
      INFO(probe.name);
      REQUIRE(probe.read(bytes) == expected);
    }
  }
}

/// Decoding loses no bit of a field, so encoding must bring all of them back, and zeros where no field is.
void check_layouts(std::span<const LayoutProbe> probes) {
  std::mt19937_64 rng(2);
  for (const auto& probe : probes) {
    for (int round = 0; round < 20; ++round) {
      auto bytes = random_bytes((probe.bits + 7) / 8, rng);
      const auto recoded = probe.recode(bytes);
      if (const std::size_t left = probe.bits % 8; left != 0) {
        (probe.big ? bytes.front() : bytes.back()) &= static_cast<std::uint8_t>((1U << left) - 1);
      }
      INFO(probe.name);
      REQUIRE(recoded == bytes);
    }
  }
}

// The compiler can work a layout out, by other code than the program's.
constexpr hw::SendDoorbell kDoorbell{.qpn = 0x123456, .producer_index = 0x789A};
static_assert(hw::SendDoorbell::from_word(kDoorbell.word()) == kDoorbell);

constexpr std::array<std::uint8_t, hw::WqeAddress::kBytes> kEncoded = [] {
  hw::WqeAddress address;
  address.dest_ip = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  address.dest_mac = 0x0A0B0C0D0E0F;
  address.qkey = 0x80010203;
  std::array<std::uint8_t, hw::WqeAddress::kBytes> bytes{};
  address.encode(bytes);
  return bytes;
}();
static_assert(kEncoded[0] == 1 && kEncoded[15] == 16 && kEncoded[16] == 0x0F && kEncoded[21] == 0x0A);
static_assert(kEncoded[28] == 0x03 && kEncoded[31] == 0x80);

}  // namespace

TEST_CASE("layouts: every field of the host interface and of the streams is the bits that the tables give it") {
  check_fields(kFieldProbes);
  check_fields(kStreamFieldProbes);
}

TEST_CASE("layouts: what is decoded and encoded again has every bit of every field where it was") {
  check_layouts(kLayoutProbes);
  check_layouts(kStreamLayoutProbes);
}

TEST_CASE("layouts: the program encodes as the compiler does") {
  const auto bytes = kEncoded;
  std::array<std::uint8_t, hw::WqeAddress::kBytes> again{};
  hw::WqeAddress::decode(bytes).encode(again);
  CHECK(again == kEncoded);
}

TEST_CASE("layouts: a value that is too large for its field leaves its neighbours alone") {
  const hw::WqeControl control{.silent = 0xFE, .fence = 0, .qpn = 0xFF123456, .size = 0};
  std::array<std::uint8_t, hw::WqeControl::kBytes> bytes{};
  control.encode(bytes);
  const auto decoded = hw::WqeControl::decode(bytes);
  CHECK(decoded == hw::WqeControl{.silent = 0, .fence = 0, .qpn = 0x123456, .size = 0});
}
