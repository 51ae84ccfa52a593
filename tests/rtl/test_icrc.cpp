#include <Vicrc.h>

#include "tests/support/roce_frame.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/common/icrc.sv: the ICRC of random messages against a bitwise CRC; a message every cycle; fixed latency.
using namespace rnic::test;

namespace {
constexpr std::uint64_t kLatency = 4;

struct Beat {
  std::array<std::uint8_t, 64> data{};
  bool last = false;
  unsigned words = 0;
};

std::vector<Beat> beats(const Bytes& message) {
  std::vector<Beat> list;
  for (std::size_t at = 0; at < message.size(); at += 64) {
    Beat beat;
    const auto bytes = std::min<std::size_t>(64, message.size() - at);
    std::copy_n(message.begin() + static_cast<std::ptrdiff_t>(at), bytes, beat.data.begin());
    beat.words = static_cast<unsigned>(bytes / 4);
    beat.last = at + 64 >= message.size();
    list.push_back(beat);
  }
  return list;
}

struct Expected {
  std::uint64_t cycle;
  std::uint32_t crc;
};

/// Plays messages with gaps between beats (probability 1 - rate), checks value and time of each answer.
void play(Bench<Vicrc>& bench, const std::vector<Bytes>& messages, double rate,
          std::vector<std::uint32_t>* answers = nullptr) {
  auto& dut = *bench.dut;
  std::deque<Expected> expected;
  const auto tick = [&](const Beat* beat) {
    dut.in_valid_i = beat != nullptr;
    if (beat) {
      port_from_bytes(dut.in_data_i, beat->data);
      dut.in_last_i = beat->last;
      dut.in_words_i = static_cast<CData>(beat->words);
    }
    dut.clk_i = 0;
    dut.eval();
    const bool due = !expected.empty() && expected.front().cycle == bench.cycle;
    REQUIRE(static_cast<bool>(dut.out_valid_o) == due);
    if (due) {
      REQUIRE(dut.out_crc_o == expected.front().crc);
      if (answers) answers->push_back(dut.out_crc_o);
      expected.pop_front();
    }
    dut.clk_i = 1;
    dut.eval();
    ++bench.cycle;
  };
  for (const auto& message : messages) {
    for (const auto& beat : beats(message)) {
      while (!bench.chance(rate)) tick(nullptr);
      if (beat.last) expected.push_back({bench.cycle + kLatency, icrc(message)});
      tick(&beat);
    }
  }
  for (std::uint64_t i = 0; i <= kLatency; ++i) tick(nullptr);
  REQUIRE(expected.empty());
}

// An IP packet has at least IP header, UDP header and BTH: 10 words with IPv4, 15 with IPv6.
constexpr std::size_t kMinIpv4Words = 10, kMinIpv6Words = 15;

Bytes random_message(Bench<Vicrc>& bench, std::size_t words) {
  Bytes message(4 * words);
  for (auto& byte : message) byte = static_cast<std::uint8_t>(bench.rng());
  const bool ipv6 = words >= kMinIpv6Words && bench.chance(0.5);
  // Without IPv4 options: the block masks what varies at fixed places.
  message[0] = static_cast<std::uint8_t>(ipv6 ? 0x60 | (message[0] & 15) : 0x45);
  return message;
}
}  // namespace

TEST_CASE("icrc: the register starts where eight bytes of ones leave it", "[rtl]") {
  // The CRC-32 check value of "123456789" ties the bitwise reference to the standard.
  std::uint32_t state = ~0u;
  for (const char c : std::string("123456789")) state = crc32_step(state, static_cast<std::uint8_t>(c));
  REQUIRE(~state == 0xCBF43926u);
}

TEST_CASE("icrc: every length, back to back", "[rtl]") {
  Bench<Vicrc> bench(seed());
  bench.dut->in_valid_i = 0;
  bench.reset();
  std::vector<Bytes> messages;
  for (std::size_t words = kMinIpv4Words; words <= 80; ++words) {
    for (int i = 0; i < 4; ++i) messages.push_back(random_message(bench, words));
  }
  play(bench, messages, 1.0);
}

TEST_CASE("icrc: random lengths with gaps; a message with its own ICRC leaves the residue", "[rtl]") {
  Bench<Vicrc> bench(seed(2));
  bench.dut->in_valid_i = 0;
  bench.reset();
  std::vector<Bytes> messages;
  for (int i = 0; i < 400; ++i)
    messages.push_back(random_message(bench, bench.uniform(kMinIpv4Words, bench.chance(0.2) ? 1040 : 40)));
  play(bench, messages, 0.7);

  std::vector<Bytes> complete;
  for (int i = 0; i < 50; ++i) {
    auto message = random_message(bench, bench.uniform(kMinIpv4Words, 100));
    const auto crc = icrc(message);
    for (int k = 0; k < 4; ++k) message.push_back(static_cast<std::uint8_t>(crc >> (8 * k)));
    complete.push_back(std::move(message));
  }
  std::vector<std::uint32_t> answers;
  play(bench, complete, 0.9, &answers);
  for (const auto answer : answers) CHECK(answer == 0x2144DF1Cu);
}
