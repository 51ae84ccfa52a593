// The fuzzer's frames: what it promises about them, without a NIC.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "testbench/fuzz/frame_fuzzer.hpp"
#include "testbench/fuzz/fuzz_corpus.hpp"

using namespace rnic;
using namespace rnic::testbench;

namespace {

FuzzTarget target(bool ipv6, bool victim, std::uint32_t qpn) {
  FuzzTarget t;
  t.path.ipv6 = ipv6;
  t.path.dest_mac = 0x020000000002;
  t.path.source_mac = 0x020000000001;
  if (ipv6) {
    t.path.source_ip[0] = t.path.dest_ip[0] = 0xfd;
  } else {
    t.path.source_ip[12] = t.path.dest_ip[12] = 10;
  }
  t.path.source_ip[15] = 1;
  t.path.dest_ip[15] = 2;
  t.path.dest_qpn = qpn;
  t.psn = 0xfffff0;
  t.rkey = 0x1234567;
  t.va = 0x200000001234;
  t.bytes = 6000;
  t.mtu = 1024;
  t.victim = victim;
  return t;
}

std::vector<FuzzTarget> targets() {
  return {target(false, false, 0x101), target(true, false, 0x202), target(false, true, 0x303),
          target(true, true, 0x404)};
}

/// What a receiver would check first, written apart from the fuzzer: a right ICRC where the IP header says that the
/// packet ends.
bool right_icrc(const roce::Bytes& frame) {
  if (frame.size() < 14 + 20 + 8 + 12 + 4) return false;
  const auto type = roce::read_big(frame, 12, 2);
  if (type != 0x0800 && type != 0x86DD) return false;
  const std::size_t end = type == 0x0800 ? 14 + roce::read_big(frame, 16, 2) : 54 + roce::read_big(frame, 18, 2);
  if (end > frame.size() || end < 14 + 20 + 8 + 12 + 4) return false;
  const auto crc = roce::icrc(std::span(frame).subspan(14, end - 18));
  return (crc & 0xff) == frame[end - 4] && (crc >> 8 & 0xff) == frame[end - 3] &&
         (crc >> 16 & 0xff) == frame[end - 2] && crc >> 24 == frame[end - 1];
}

}  // namespace

TEST_CASE(
    "no frame of the fuzzer is one that a victim's peer could have sent; most have a right ICRC; opcodes and sizes "
    "vary") {
  const std::uint64_t seed =
      std::getenv("RNIC_SEED") != nullptr ? std::strtoull(std::getenv("RNIC_SEED"), nullptr, 0) : 1;
  INFO("seed " << seed);
  FrameFuzzer fuzzer(seed, "test");
  auto at = targets();
  std::size_t right = 0, small = 0, big = 0, live = 0;
  std::set<std::uint8_t> opcodes;
  constexpr std::size_t kFrames = 30'000;
  for (std::size_t i = 0; i < kFrames; ++i) {
    for (auto& target : at) target.alive = true;
    const auto made = fuzzer.next(at).value();
    live += made.live;
    REQUIRE(!made.bytes.empty());
    REQUIRE(made.bytes.size() <= 14'000);
    if (made.bytes.size() < 1'000) fuzzer.observe(made.bytes);
    right += right_icrc(made.bytes);
    small += made.bytes.size() < 60;
    big += made.bytes.size() > 4'200;
    if (made.bytes.size() < 75) continue;
    const bool ipv6 = roce::read_big(made.bytes, 12, 2) == 0x86DD;
    const std::size_t bth = ipv6 ? 62 : 42;
    opcodes.insert(made.bytes[bth]);
    const auto qpn = roce::read_big(made.bytes, bth + 5, 3);
    const bool to_victim = qpn == (ipv6 ? 0x404 : 0x303);
    const bool from_peer =
        ipv6 ? roce::read_big(made.bytes, 22, 8) == 0xfd00000000000000 && roce::read_big(made.bytes, 30, 8) == 1
             : roce::read_big(made.bytes, 26, 4) == 0x0a000001;
    if (to_victim && from_peer) CHECK_FALSE(right_icrc(made.bytes));
  }
  CHECK(right > kFrames * 2 / 3);
  CHECK(live > kFrames / 3);
  CHECK(right < kFrames * 97 / 100);
  CHECK(small > 0);
  CHECK(big > 0);
  CHECK(opcodes.size() > 200);
}

TEST_CASE("one seed gives the same frames, another seed others") {
  const auto frames = [](std::uint64_t seed) {
    FrameFuzzer fuzzer(seed, "test");
    auto at = targets();
    std::vector<roce::Bytes> list;
    for (int i = 0; i < 200; ++i) {
      for (auto& target : at) target.alive = true;
      list.push_back(fuzzer.next(at).value().bytes);
    }
    return list;
  };
  CHECK(frames(3) == frames(3));
  CHECK(frames(3) != frames(4));
}

TEST_CASE("a frame of the corpus is made for the connections of today") {
  const auto seen = target(false, false, 0x101);
  auto now = target(false, false, 0x7701);
  now.psn = 5;
  now.rkey = 0xABCDEF01;
  now.va = 0x210000000000;
  auto fields = seen.path;
  fields.opcode = 0x0a;
  fields.psn = seen.psn + 2;
  fields.payload = {1, 2, 3};
  fields.ext = roce::reth(seen.va - 1, seen.rkey, 3);
  const auto frame = rebind(roce::roce_frame(fields), seen, now);
  auto expected = now.path;
  expected.opcode = 0x0a;
  expected.psn = 7;
  expected.payload = {1, 2, 3};
  expected.ext = roce::reth(now.va - 1, now.rkey, 3);
  CHECK(frame == roce::roce_frame(expected));

  SECTION("a wrong ICRC stays wrong, a key that was wrong stays as it is") {
    fields.ext = roce::reth(seen.va, seen.rkey ^ 1, 3);
    auto broken = roce::roce_frame(fields);
    broken.back() ^= 1;
    const auto again = rebind(broken, seen, now);
    CHECK_FALSE(right_icrc(again));
    CHECK(roce::read_big(again, 42 + 12 + 8, 4) == (seen.rkey ^ 1));
  }
}

TEST_CASE("a corpus file says the same after it was written and read; a malformed one is refused by name") {
  const auto folder = std::filesystem::temp_directory_path() / ("rnic_corpus_" + std::to_string(std::rand()));
  std::filesystem::create_directory(folder);
  CorpusEntry entry{"a note", 9, {}, {"host 0: something"}};
  FrameFuzzer fuzzer(9, "test");
  auto at = targets();
  for (std::size_t i = 0; i < 5; ++i) entry.frames.push_back({i % 2, fuzzer.next(at).value()});
  const auto first = write_corpus(folder, entry);
  const auto second = write_corpus(folder, entry);
  CHECK(first != second);
  const auto read = read_corpus(folder);
  REQUIRE(read.size() == 2);
  CHECK(read[1].note == entry.note);
  REQUIRE(read[1].frames.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(read[1].frames[i].host == i % 2);
    CHECK(read[1].frames[i].frame.bytes == entry.frames[i].frame.bytes);
    CHECK(read[1].frames[i].frame.bad_fcs == entry.frames[i].frame.bad_fcs);
    CHECK(read[1].frames[i].frame.target.psn == entry.frames[i].frame.target.psn);
    CHECK(read[1].frames[i].frame.target.path.dest_qpn == entry.frames[i].frame.target.path.dest_qpn);
  }
  for (const char* text :
       {"", "{}", R"({"note":"","seed":0,"frames":[{}]})", R"({"note":"","seed":0,"frames":[{"host":2}]})"}) {
    std::ofstream(first) << text;
    CHECK_THROWS_WITH(read_corpus(folder), Catch::Contains(first.filename().string()));
  }
  CHECK_THROWS_AS(read_corpus(folder / "nowhere"), CorpusError);
  std::filesystem::remove_all(folder);
}
