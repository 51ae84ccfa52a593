#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

#include "driver/ip/host_stack.hpp"

using namespace rnic::ip;

// ARP: RFC 826. Neighbour discovery: RFC 4861. Echo: RFC 792, RFC 4443. The frames of the peer are Linux 6.1's.

namespace {

constexpr std::uint64_t kOwnMac = 0x0200'0000'0001, kPeerMac = 0x0200'0000'0101;

Bytes hex(const std::string& text) {
  Bytes bytes;
  std::string digits;
  for (const char c : text) {
    if (c != ' ') digits += c;
  }
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(digits.substr(i, 2), nullptr, 16)));
  return bytes;
}

Address ipv6(const std::string& text) {
  Address address{};
  const Bytes bytes = hex(text);
  std::copy(bytes.begin(), bytes.end(), address.begin());
  return address;
}

const Address kOwn4 = mapped(Bytes{10, 0, 0, 1}), kPeer4 = mapped(Bytes{10, 0, 0, 2});
const Address kOwn6 = ipv6("fe80 0000 0000 0000 0000 00ff fe00 0001");
const Address kPeer6 = ipv6("fe80 0000 0000 0000 0000 00ff fe00 0101");
const Address kOwnGlobal = ipv6("2001 0db8 0000 0000 0000 0000 0000 0001");

/// Who has 10.0.0.1? Tell 10.0.0.2; with the padding of the cable.
const std::string kArpAsks =
    "ffffffffffff 020000000101 0806 0001 0800 06 04 0001 020000000101 0a000002 000000000000 0a000001"
    "000000000000000000000000000000000000";
/// For fe80::ff:fe00:1, with its source link-layer address.
const std::string kSolicits =
    "3333ff000001 020000000101 86dd 60000000 0020 3a ff fe80000000000000000000fffe000101"
    "ff0200000000000000000001ff000001 87 00 7a99 00000000 fe80000000000000000000fffe000001 01 01 020000000101";
/// From ::, for fe80::ff:fe00:101: the peer looks whether somebody has its address; with a nonce option.
const std::string kLooksForDoubles =
    "3333ff000101 020000000101 86dd 60000000 0020 3a ff 00000000000000000000000000000000"
    "ff0200000000000000000001ff000101 87 00 2343 00000000 fe80000000000000000000fffe000101 0e01 794bc1ef0e9e";
const std::string kEcho4 =
    "020000000001 020000000101 0800 45 00 0054 8825 4000 40 01 9e81 0a000002 0a000001"
    "08 00 ce81 007b 0000 fc022d00"
    "00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000";
const std::string kEcho6 =
    "020000000001 020000000101 86dd 6006707f 0040 3a 40 fe80000000000000000000fffe000101 "
    "fe80000000000000000000fffe000001"
    "80 00 f9c1 007c 0000 3d434c00"
    "00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000";

struct Listening {
  std::vector<Bytes> sent;
  std::vector<std::pair<Address, std::uint64_t>> learned;
  HostStack stack{kOwnMac,
                  {kOwn6, kOwn4, kOwnGlobal},
                  {[this](const Bytes& frame) { sent.push_back(frame); },
                   [this](const Address& address, std::uint64_t mac) { learned.emplace_back(address, mac); }}};

  void hear(const std::string& frame) { stack.hear(hex(frame)); }
  void hear_changed(const std::string& frame, std::size_t at, std::uint8_t to) {
    Bytes bytes = hex(frame);
    REQUIRE(bytes.at(at) != to);
    bytes[at] = to;
    stack.hear(bytes);
  }
};

/// The same frame, with a right checksum of its ICMPv6 message.
Bytes repaired(Bytes frame) {
  const Bytes message(frame.begin() + 54, frame.end());
  Address from{}, to{};
  std::copy_n(frame.begin() + 22, 16, from.begin());
  std::copy_n(frame.begin() + 38, 16, to.begin());
  Bytes whole = icmpv6_frame(0, 0, from, to, message);
  std::copy_n(whole.begin() + 56, 2, frame.begin() + 56);
  return frame;
}

Bytes changed(const std::string& frame, std::size_t at, const std::string& to) {
  Bytes bytes = hex(frame);
  const Bytes more = hex(to);
  std::copy(more.begin(), more.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  return repaired(bytes);
}

}  // namespace

TEST_CASE("the checksum is that of the example of RFC 1071") {
  CHECK(internet_checksum(hex("0001f203f4f5f6f7")) == 0x220D);
  CHECK(internet_checksum(hex("0001f203f4f5f6f7220d")) == 0);
  CHECK(internet_checksum(hex("ff")) == 0x00FF);
}

TEST_CASE("groups of addresses, and their stations") {
  CHECK(solicited_node(kOwnGlobal) == ipv6("ff02 0000 0000 0000 0000 0001 ff00 0001"));
  // RFC 4291 2.7.1: 4037::01:800:200e:8c6c.
  CHECK(solicited_node(ipv6("4037 0000 0000 0000 0001 0800 200e 8c6c")) ==
        ipv6("ff02 0000 0000 0000 0000 0001 ff0e 8c6c"));
  CHECK(group_mac(ipv6("ff02 0000 0000 0000 0000 0001 ff0e 8c6c")) == 0x3333'FF0E'8C6C);
}

TEST_CASE_METHOD(Listening, "an ARP request for an own address is answered, and who asks is known") {
  hear(kArpAsks);
  REQUIRE(sent.size() == 1);
  CHECK(sent[0] ==
        hex("020000000101 020000000001 0806 0001 0800 06 04 0002 020000000001 0a000001 020000000101 0a000002"));
  CHECK(learned == std::vector{std::pair{kPeer4, kPeerMac}});
  hear(kArpAsks);
  CHECK(sent.size() == 2);
  CHECK(learned.size() == 1);
}

TEST_CASE_METHOD(Listening, "an ARP request for another address is not answered, and nobody is known for it") {
  hear_changed(kArpAsks, 41, 3);
  CHECK(sent.empty());
  CHECK(learned.empty());
  // Who is known is heard all the same (RFC 826, the merge flag).
  hear(kArpAsks);
  Bytes moved = hex(kArpAsks);
  moved[41] = 3;
  moved[27] = 0x77;
  stack.hear(moved);
  CHECK(learned.back() == std::pair{kPeer4, std::uint64_t{0x0200'0000'0177}});
}

TEST_CASE_METHOD(Listening, "an ARP probe is answered, and 0.0.0.0 is nobody's address (RFC 5227)") {
  Bytes probe = hex(kArpAsks);
  std::fill_n(probe.begin() + 28, 4, std::uint8_t{0});
  stack.hear(probe);
  CHECK(sent.size() == 1);
  CHECK(learned.empty());
}

TEST_CASE_METHOD(Listening, "ARP that is malformed, or for another station, is not heard") {
  const Bytes whole = hex(kArpAsks);
  for (std::size_t length = 0; length < 42; ++length) stack.hear(View(whole).first(length));
  for (const std::size_t at : {15U, 16U, 18U, 19U}) hear_changed(kArpAsks, at, 0x55);
  hear_changed(kArpAsks, 0, 0x02);
  CHECK(sent.empty());
  CHECK(learned.empty());
}

TEST_CASE_METHOD(Listening, "nobody takes an own address, and no group is a station") {
  Bytes taken = hex(kArpAsks);
  taken[31] = 1;
  stack.hear(taken);
  Bytes group = hex(kArpAsks);
  group[22] = 0x01;
  stack.hear(group);
  CHECK(learned.empty());
}

TEST_CASE_METHOD(Listening, "the station of an IPv4 address is asked for") {
  CHECK_FALSE(stack.station(kPeer4));
  CHECK(stack.ask(kPeer4));
  REQUIRE(sent.size() == 1);
  CHECK(sent[0] ==
        hex("ffffffffffff 020000000001 0806 0001 0800 06 04 0001 020000000001 0a000001 000000000000 0a000002"));
  hear("020000000001 020000000101 0806 0001 0800 06 04 0002 020000000101 0a000002 020000000001 0a000001");
  CHECK(stack.station(kPeer4) == kPeerMac);
  CHECK(learned == std::vector{std::pair{kPeer4, kPeerMac}});
  CHECK(sent.size() == 1);
}

TEST_CASE_METHOD(Listening, "a neighbour solicitation for an own address is answered (RFC 4861 7.2.4)") {
  hear(kSolicits);
  REQUIRE(sent.size() == 1);
  // Solicited and Override; the checksum by hand.
  CHECK(sent[0] == hex("020000000101 020000000001 86dd 60000000 0020 3a ff fe80000000000000000000fffe000001"
                       "fe80000000000000000000fffe000101 88 00 1a1d 60000000 fe80000000000000000000fffe000001 02 01"
                       "020000000001"));
  CHECK(learned == std::vector{std::pair{kPeer6, kPeerMac}});
}

TEST_CASE_METHOD(Listening, "who looks whether it may have an own address is told by all nodes' group") {
  hear(kLooksForDoubles);
  CHECK(sent.empty());
  Bytes mine = hex(kLooksForDoubles);
  mine[4] = mine[52] = mine[76] = 0;
  stack.hear(repaired(mine));
  REQUIRE(sent.size() == 1);
  CHECK(View(sent[0]).first(6).back() == 0x01);
  CHECK(number_at(sent[0], 0, 6) == 0x3333'0000'0001);
  CHECK(number_at(sent[0], 58, 4) == 0x2000'0000);  // Override alone
  CHECK(learned.empty());
}

TEST_CASE_METHOD(Listening, "a neighbour solicitation that is not valid is not heard (RFC 4861 7.1.1)") {
  const Bytes whole = hex(kSolicits);
  for (std::size_t length = 0; length < whole.size(); ++length) stack.hear(View(whole).first(length));
  hear_changed(kSolicits, 21, 254);                          // it came from another link
  hear_changed(kSolicits, 57, 0x98);                         // checksum
  stack.hear(changed(kSolicits, 55, "01"));                  // code
  stack.hear(changed(kSolicits, 62, "ff02"));                // about a group
  stack.hear(changed(kSolicits, 79, "00"));                  // an option without length
  stack.hear(changed(kSolicits, 79, "02"));                  // an option that is longer than the packet
  stack.hear(changed(kSolicits, 22, std::string(32, '0')));  // from nobody, with the option that says who
  stack.hear(changed(kSolicits, 77, "02"));                  // for another address
  CHECK(sent.empty());
  CHECK(learned.empty());
}

TEST_CASE_METHOD(Listening, "the station of an IPv6 address is asked for, and only an answer is taken") {
  const std::string answer =
      "020000000001 020000000101 86dd 60000000 0020 3a ff fe80000000000000000000fffe000101"
      "fe80000000000000000000fffe000001 88 00 0000 60000000 fe80000000000000000000fffe000101 02 01 020000000101";
  stack.hear(repaired(hex(answer)));
  CHECK(learned.empty());
  CHECK(stack.ask(kPeer6));
  REQUIRE(sent.size() == 1);
  CHECK(sent[0] == repaired(hex("3333ff000101 020000000001 86dd 60000000 0020 3a ff fe80000000000000000000fffe000001"
                                "ff0200000000000000000001ff000101 87 00 0000 00000000"
                                "fe80000000000000000000fffe000101 01 01 020000000001")));
  hear(answer);  // its checksum is wrong
  CHECK(learned.empty());
  stack.hear(repaired(hex(answer)));
  CHECK(learned == std::vector{std::pair{kPeer6, kPeerMac}});
  // Without Override nothing changes (7.2.5), with it the station is another one.
  Bytes later = hex(answer);
  later[85] = 0x99;
  later[58] = 0x40;
  stack.hear(repaired(later));
  CHECK(learned.size() == 1);
  later[58] = 0x60;
  stack.hear(repaired(later));
  CHECK(learned.back() == std::pair{kPeer6, std::uint64_t{0x0200'0000'0199}});
}

TEST_CASE_METHOD(Listening, "who is asked for is asked from an address of the same scope") {
  CHECK(stack.ask(ipv6("2001 0db8 0000 0000 0000 0000 0000 0009")));
  CHECK(View(sent.back()).subspan(22, 2)[0] == 0x20);
  HostStack without(kOwnMac, {kOwn6}, {[&](const Bytes& frame) { sent.push_back(frame); }, {}});
  CHECK_FALSE(without.ask(kPeer4));
  CHECK_FALSE(without.ask(ipv6("ff02 0000 0000 0000 0000 0000 0000 0001")));
  CHECK(sent.size() == 1);
}

TEST_CASE_METHOD(Listening, "an echo request is answered") {
  hear(kEcho4);
  REQUIRE(sent.size() == 1);
  Bytes reply = hex(kEcho4);
  CHECK(sent[0].size() == reply.size());
  CHECK(number_at(sent[0], 0, 6) == kPeerMac);
  CHECK(internet_checksum(View(sent[0]).subspan(14, 20)) == 0);
  CHECK(internet_checksum(View(sent[0]).subspan(34)) == 0);
  CHECK(sent[0][34] == 0);
  CHECK(number_at(sent[0], 26, 8) == 0x0A00'0001'0A00'0002);
  CHECK(std::equal(reply.begin() + 38, reply.end(), sent[0].begin() + 38));
  hear(kEcho6);
  REQUIRE(sent.size() == 2);
  reply = hex(kEcho6);
  CHECK(sent[1].size() == reply.size());
  CHECK(sent[1][54] == 129);
  CHECK(icmpv6_checksum(kOwn6, kPeer6, View(sent[1]).subspan(54)) == 0);
  CHECK(std::equal(reply.begin() + 58, reply.end(), sent[1].begin() + 58));
}

TEST_CASE_METHOD(Listening, "an echo request that is wrong, in pieces, or for another is not answered") {
  const Bytes whole = hex(kEcho4), whole6 = hex(kEcho6);
  for (std::size_t length = 0; length < whole.size(); ++length) stack.hear(View(whole).first(length));
  for (std::size_t length = 0; length < whole6.size(); ++length) stack.hear(View(whole6).first(length));
  hear_changed(kEcho4, 22, 63);  // header checksum
  hear_changed(kEcho4, 60, 1);   // checksum of the message
  hear_changed(kEcho6, 80, 1);
  hear_changed(kEcho4, 5, 9);      // station
  hear_changed(kEcho4, 12, 0x88);  // EtherType
  // More fragments, with the checksum that goes with it.
  Bytes piece = hex(kEcho4);
  piece[20] = 0x20;
  piece[24] = 0xBE;
  CHECK(internet_checksum(View(piece).subspan(14, 20)) == 0);
  stack.hear(piece);
  CHECK(sent.empty());
}
