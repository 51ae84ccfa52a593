// The reference NIC by itself: what the specifications say of its parts. What it does as a whole the vectors say.
#include <catch2/catch.hpp>
#include <random>

#include "model/reference/crc.hpp"
#include "model/reference/nic.hpp"
#include "model/reference/packet.hpp"

using namespace rnic::reference;

namespace {

Address ipv4(std::uint8_t last) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last}; }

Packet write_of(std::size_t bytes) {
  Packet packet;
  packet.path = {.source_mac = 0x020000000001,
                 .dest_mac = 0x020000000002,
                 .tag = {},
                 .source = ipv4(1),
                 .dest = ipv4(2),
                 .hop_limit = 64,
                 .source_port = 0xc000};
  packet.opcode = op::WriteOnlyImmediate;
  packet.ack_request = true;
  packet.pkey = 0xffff;
  packet.dest_qpn = 0x123456;
  packet.psn = 0xabcdef;
  packet.va = 0x1122334455667788;
  packet.rkey = 0x99aabbcc;
  packet.length = static_cast<std::uint32_t>(bytes);
  packet.immediate = 0xdeadbeef;
  for (std::size_t i = 0; i < bytes; ++i) packet.payload.push_back(static_cast<std::uint8_t>(i + 1));
  return packet;
}

/// What leaves the NIC for the host is thrown away; a read is answered with `data`.
void let_leave(Nic& nic) {
  while (!nic.pcie.out.empty()) {
    const DmaTlp tlp = nic.pcie.out.front();
    nic.pcie.out.pop_front();
    nic.pcie.left(tlp);
  }
}

Settings ordinary() {
  Settings settings;
  settings.max_payload = 256;
  settings.max_read_request = 512;
  settings.bus_master = settings.extended_tags = settings.msix_enable = true;
  return settings;
}

}  // namespace

TEST_CASE("the CRC is that of Ethernet, over eight bytes of ones in front") {
  // Where nothing is masked, it is the CRC-32 of the bytes: 0xffffffffffffffff and an IPv4 header that is all ones
  // where routers may change it. Any change elsewhere changes it.
  const Bytes frame = build(write_of(8));
  const std::size_t end = frame.size() - 4;
  const std::uint32_t crc = invariant_crc(frame, 14, end);
  CHECK(little(frame, end, 4) == crc);
  for (std::size_t byte = 14; byte < end; ++byte) {
    Bytes other = frame;
    other[byte] ^= 0x10;
    const std::size_t ip = byte - 14;
    const bool variant = ip == 1 || ip == 8 || ip == 10 || ip == 11 || ip == 26 || ip == 27 || ip == 32;
    CHECK((invariant_crc(other, 14, end) == crc) == variant);
  }
}

TEST_CASE("the checksum of a right IPv4 header is 0") {
  // RFC 1071's way, on a header of RFC 791 form with a checksum worked out by hand.
  const Bytes header = {0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7};
  CHECK(ipv4_checksum(header, 0) == 0);
}

TEST_CASE("a packet that was built is read as it was") {
  for (const bool ipv6 : {false, true}) {
    for (const std::size_t bytes : {0u, 1u, 2u, 3u, 4u, 255u, 4096u}) {
      Packet packet = write_of(bytes);
      packet.path.ipv6 = ipv6;
      packet.path.flow_label = ipv6 ? 0x12345 : 0;
      if (ipv6) packet.path.source[0] = packet.path.dest[0] = 0xfd;
      const Bytes frame = build(packet);
      Packet read;
      REQUIRE(parse(frame, packet.path.dest_mac, read) == Verdict::Good);
      CHECK(read.opcode == packet.opcode);
      CHECK(read.ack_request);
      CHECK(read.psn == packet.psn);
      CHECK(read.dest_qpn == packet.dest_qpn);
      CHECK(read.va == packet.va);
      CHECK(read.rkey == packet.rkey);
      CHECK(read.length == packet.length);
      CHECK(read.immediate == packet.immediate);
      CHECK(read.payload == packet.payload);
      CHECK(read.path.source == packet.path.source);
      CHECK(read.path.flow_label == packet.path.flow_label);
      CHECK(read.grh.size() == 40);
    }
  }
}

TEST_CASE("frames for others, of other kinds, or damaged are no packets") {
  const Packet packet = write_of(8);
  const Bytes frame = build(packet);
  Packet read;
  CHECK(parse(frame, 0x020000000003, read) == Verdict::NotRoce);
  const auto with = [&](std::size_t byte, std::uint8_t value) {
    Bytes other = frame;
    other[byte] = value;
    return parse(other, packet.path.dest_mac, read);
  };
  CHECK(with(12, 0x07) == Verdict::NotRoce);        // EtherType
  CHECK(with(14, 0x46) == Verdict::Malformed);      // header length
  CHECK(with(14 + 20 + 3, 0) == Verdict::NotRoce);  // UDP port
  CHECK(with(frame.size() - 1, 0x5a) == Verdict::BadIcrc);
  CHECK(parse(Bytes(frame.begin(), frame.begin() + 60), packet.path.dest_mac, read) == Verdict::Malformed);
}

TEST_CASE("credit codes are those of table 46") {
  CHECK(credits_of(0) == 0);
  CHECK(credits_of(4) == 4);
  CHECK(credits_of(5) == 6);
  CHECK(credits_of(29) == 24576);
  CHECK(credits_of(30) == 32768);
  CHECK(credit_code(5) == 4);
  CHECK(credit_code(32767) == 29);
  CHECK(credit_code(65535) == 30);
}

TEST_CASE("RNR timers are those of table 45") {
  CHECK(rnr_time(0) == 655'360 * kMicrosecond);
  CHECK(rnr_time(1) == 10 * kMicrosecond);
  CHECK(rnr_time(5) == 60 * kMicrosecond);
  CHECK(rnr_time(31) == 491'520 * kMicrosecond);
}

TEST_CASE("groups have the MAC addresses of RFC 1112 and RFC 2464") {
  Address group = ipv4(3);
  group[12] = 239;
  group[13] = 0x81;
  CHECK(multicast_mac(group) == 0x01005e010003);
  CHECK_FALSE(multicast_mac(ipv4(1)));
  Address group6{};
  group6[0] = 0xff;
  group6[15] = 9;
  CHECK(multicast_mac(group6) == 0x333300000009);
}

TEST_CASE("DMA is cut at 4 KiB and at the sizes of configuration space") {
  Nic nic;
  nic.configure(ordinary());
  nic.pcie.write(0x1000 - 6, Bytes(600, 1));
  std::size_t bytes = 0;
  for (const DmaTlp& tlp : nic.pcie.out) {
    CHECK(tlp.data.size() <= 256);
    CHECK(tlp.address / 4096 == (tlp.address + tlp.data.size() - 1) / 4096);
    bytes += tlp.data.size();
  }
  CHECK(bytes == 604);  // two bytes of the first dword, and two of the last, are not enabled
  CHECK(nic.pcie.out.front().first_be == 0xc);
  let_leave(nic);
  CHECK(nic.quiet());
}

TEST_CASE("a read without an answer ends when its time is over") {
  Nic nic;
  nic.configure(ordinary());
  nic.pcie.timeout_range = 1;
  const auto read = nic.pcie.begin(0x2000, 64);
  let_leave(nic);
  nic.run(74 * kMicrosecond);
  CHECK(read->missing == 1);
  nic.run(76 * kMicrosecond);
  CHECK(read->missing == 0);
  CHECK(read->failed);
  CHECK(nic.counter(static_cast<std::size_t>(Count::DmaReadTimeouts)) == 1);
}

TEST_CASE("an access is judged by key, domain, right and range, in this order") {
  Nic nic;
  nic.configure(ordinary());
  Key region;
  region.valid = true;
  region.pd = 5;
  region.va = 0x10000;
  region.length = 0x1000;
  region.log_page = 12;
  region.rights.remote_read = true;
  REQUIRE(nic.memory.create(0x77 << 8 | 9, region) == AdminStatus::Success);
  CHECK(nic.memory.create(0x77 << 8 | 1, region) == AdminStatus::Exists);
  const Access good{0x77 << 8 | 9, 0x10000, 0x1000, 5, 2, Right::RemoteRead};
  CHECK(nic.memory.check(good) == Xlate::Ok);
  const auto with = [&](auto change) {
    Access access = good;
    change(access);
    return nic.memory.check(access);
  };
  CHECK(with([](Access& a) { a.key += 256; }) == Xlate::BadIndex);
  CHECK(with([](Access& a) { a.key += 1; }) == Xlate::BadTag);
  CHECK(with([](Access& a) { a.pd = 6; }) == Xlate::BadPd);
  CHECK(with([](Access& a) { a.right = Right::RemoteWrite; }) == Xlate::BadAccess);
  CHECK(with([](Access& a) { a.bytes += 1; }) == Xlate::BadRange);
  CHECK(with([](Access& a) { a.va -= 1; }) == Xlate::BadRange);
  CHECK(with([](Access& a) { a.bytes = ~std::uint64_t{0}; }) == Xlate::BadRange);
}

TEST_CASE("host accesses that the NIC has not are Unsupported Requests") {
  Nic nic;
  nic.configure(ordinary());
  using Kind = HostRequest::Kind;
  const auto identity = nic.host_request({Kind::Read, false, 8, 1, 0xf, 0, {}});
  REQUIRE(identity);
  CHECK(little(identity->data, 0, 4) == 1380862275);
  const auto three = nic.host_request({Kind::Read, false, 8, 3, 0xf, 0xf, {}});
  REQUIRE(three);
  CHECK(three->unsupported);
  CHECK_FALSE(nic.host_request({Kind::Write, true, 0x10, 1, 0xf, 0, Bytes(4, 1)}));
  CHECK_FALSE(nic.enabled());
  CHECK(nic.counter(static_cast<std::size_t>(Count::HostUnsupported)) == 2);
}
