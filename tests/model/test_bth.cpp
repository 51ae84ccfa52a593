#include <catch2/catch.hpp>
#include <algorithm>
#include <set>

#include "model/bth.hpp"
#include "tests/support/roce_frame.hpp"

using namespace rnic;
using namespace rnic::model;

namespace {

test::Bytes frame(bool ipv6, std::uint8_t traffic_class = 0) {
  test::RoceFields f;
  f.ipv6 = ipv6;
  f.traffic_class = traffic_class;
  f.opcode = 0x8;
  f.dest_qpn = 0x123456;
  f.psn = 0xABCDEF;
  f.payload.assign(100, 7);
  return test::roce_frame(f);
}

}  // namespace

TEST_CASE("the base transport header is found behind IPv4 and IPv6") {
  for (const bool ipv6 : {false, true}) {
    const auto packet = find_roce_packet(frame(ipv6));
    REQUIRE(packet);
    CHECK(packet->opcode == 8);
    CHECK(packet->dest_qpn == 0x123456);
    CHECK(packet->psn == 0xABCDEF);
  }
}

TEST_CASE("IPv4 options move the base transport header") {
  auto bytes = frame(false);
  bytes[14] = 0x46;
  bytes.insert(bytes.begin() + 34, {1, 1, 1, 1});
  CHECK(find_roce_packet(bytes)->psn == 0xABCDEF);
}

TEST_CASE("what is no RoCEv2 packet, or cut off before its end, is none") {
  for (const bool ipv6 : {false, true}) {
    const auto good = frame(ipv6);
    const std::size_t bth_end = (ipv6 ? 62 : 42) + 12;
    for (std::size_t size = 0; size <= good.size(); ++size) {
      CHECK(find_roce_packet(std::span(good).first(size)).has_value() == (size >= bth_end));
    }
    auto other_port = good;
    other_port[ipv6 ? 57u : 37u] ^= 1;
    CHECK_FALSE(find_roce_packet(other_port));
    auto tcp = good;
    tcp[ipv6 ? 20u : 23u] = 6;
    CHECK_FALSE(find_roce_packet(tcp));
    auto arp = good;
    arp[13] = 6;
    CHECK_FALSE(find_roce_packet(arp));
    auto wrong_version = good;
    wrong_version[14] ^= 0x10;
    CHECK_FALSE(find_roce_packet(wrong_version));
  }
}

TEST_CASE("a VLAN tag is behind the addresses, and there is one at most (802.1Q 9)") {
  for (const bool ipv6 : {false, true}) {
    auto tagged = frame(ipv6);
    const test::Bytes tag{0x81, 0x00, 0x20, 0x05};
    tagged.insert(tagged.begin() + 12, tag.begin(), tag.end());
    REQUIRE(find_roce_packet(tagged));
    CHECK(find_roce_packet(tagged)->psn == 0xABCDEF);
    for (std::size_t size = 0; size < 40; ++size) CHECK_FALSE(find_roce_packet(std::span(tagged).first(size)));
    auto marked = tagged;
    REQUIRE(mark_congestion(marked, false));
    auto untagged = frame(ipv6);
    REQUIRE(mark_congestion(untagged, false));
    CHECK(std::equal(marked.begin() + 16, marked.end(), untagged.begin() + 12, untagged.end()));
    tagged.insert(tagged.begin() + 12, tag.begin(), tag.end());
    CHECK_FALSE(find_roce_packet(tagged));
  }
}

TEST_CASE("opcode names are those of table 38 (9.2.1)") {
  CHECK(opcode_by_name("RC_SEND_FIRST") == 0x00);
  CHECK(opcode_by_name("RC_RDMA_WRITE_ONLY") == 0x0A);
  CHECK(opcode_by_name("RC_RDMA_READ_RESPONSE_MIDDLE") == 0x0E);
  CHECK(opcode_by_name("RC_FETCH_ADD") == 0x14);
  CHECK(opcode_by_name("UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE") == 0x2B);
  CHECK(opcode_by_name("UD_SEND_ONLY") == 0x64);
  CHECK_FALSE(opcode_by_name("SEND_ONLY"));
  CHECK_FALSE(opcode_by_name(""));
  std::set<std::uint8_t> numbers;
  for (const auto& name : opcode_names()) numbers.insert(opcode_by_name(name).value());
  CHECK(numbers.size() == opcode_names().size());
}

TEST_CASE("a congestion mark sets CE, keeps the header checksum right, and changes nothing that the ICRC covers") {
  for (const bool ipv6 : {false, true}) {
    for (const std::uint8_t before : {0x00, 0x01, 0xA2, 0xFF}) {
      auto bytes = frame(ipv6, before);
      REQUIRE(mark_congestion(bytes, false));
      CHECK(bytes == frame(ipv6, before | 3));
    }
    auto not_capable = frame(ipv6, 0xFC);
    CHECK_FALSE(mark_congestion(not_capable, true));
    CHECK(not_capable == frame(ipv6, 0xFC));
    auto capable = frame(ipv6, 0xFE);
    CHECK(mark_congestion(capable, true));
    CHECK(capable == frame(ipv6, 0xFF));
  }
  test::Bytes arp(60);
  CHECK_FALSE(mark_congestion(arp, false));
}
