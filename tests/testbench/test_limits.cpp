#include <catch2/catch.hpp>
#include <stdexcept>

#include "testbench/limits/limits.hpp"

using namespace rnic::testbench;

// Every expectation is a sum that docs/limits.md explains, done by hand.

TEST_CASE("packets on the wire") {
  // Preamble 8, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4, gap 12: 82.
  CHECK(packet_wire_bytes(4096, 0) == 82 + 4096);
  CHECK(packet_wire_bytes(8, 16) == 82 + 16 + 8);
  CHECK(packet_wire_bytes(8, 16, true) == 102 + 16 + 8);
  CHECK(packet_wire_bytes(5, 0) == 82 + 8);   // three bytes of pad
  CHECK(packet_wire_bytes(0, 0) == 64 + 20);  // 62 bytes are no frame yet
  CHECK(ack_wire_bytes() == 86);
  CHECK(ack_wire_bytes(true) == 106);
  CHECK(read_request_wire_bytes() == 98);
}

TEST_CASE("messages on the wire") {
  CHECK(write_wire_bytes(65536, 4096) == 4194 + 15 * 4178);
  CHECK(write_wire_bytes(65536, 256) == 82 + 16 + 256 + 255 * (82 + 256));
  CHECK(write_wire_bytes(4097, 4096) == 4194 + 82 + 4);
  CHECK(write_wire_bytes(0, 4096) == 98);
  CHECK(read_wire_bytes(65536, 4096) == 2 * 4182 + 14 * 4178);
  CHECK(read_wire_bytes(8, 4096) == 82 + 4 + 8);
}

TEST_CASE("links of PCI Express") {
  CHECK(pcie_gbytes(1, 1) == Approx(0.25));
  CHECK(pcie_gbytes(2, 8) == Approx(4.0));
  CHECK(pcie_gbytes(3, 8) == Approx(7.876923));
  CHECK(pcie_gbytes(4, 16) == Approx(31.507692));
  CHECK(pcie_gbytes(5, 16) == Approx(63.015385));
  CHECK_THROWS_AS(pcie_gbytes(0, 16), std::invalid_argument);
  CHECK_THROWS_AS(pcie_gbytes(6, 16), std::invalid_argument);  // its flits are framed otherwise
}

TEST_CASE("TLPs") {
  CHECK(tlp_bytes(4096, 256, kRequestOverhead) == 4096 + 16 * 24);
  CHECK(tlp_bytes(257, 256, kCompletionOverhead) == 257 + 2 * 20);
  CHECK(fewest_completions(0, 512, 256, 64) == 2);
  CHECK(fewest_completions(32, 512, 256, 64) == 3);  // 224, 256, 32
  CHECK(fewest_completions(96, 160, 256, 64) == 1);
  CHECK(fewest_completions(96, 160, 256, 128) == 1);
  CHECK(fewest_completions(96, 161, 256, 128) == 2);  // 160 to the last multiple of 128
  CHECK(most_completions(0, 512, 64) == 8);
  CHECK(most_completions(32, 512, 64) == 9);
  CHECK(most_completions(60, 4, 64) == 1);
  CHECK(most_completions(60, 5, 64) == 2);
}

TEST_CASE("what bounds a stream of Writes") {
  const LimitWork work;  // 64 KiB, MTU 4096, 32 outstanding
  LimitWorld world;
  auto limit = goodput_limit(world, work);
  CHECK(limit.by == "wire");
  CHECK(limit.gbps == Approx(100 * 65536.0 / 66864));
  CHECK(limit.mmps == Approx(1000 / (8 * 66864 / 100.0)));

  world.pcie_gbytes = 4;  // 256 TLPs of 256 bytes arrive at the memory of the peer
  limit = goodput_limit(world, work);
  CHECK(limit.by == "PCIe to host");
  CHECK(limit.gbps == Approx(8 * 4 * 65536.0 / (65536 + 256 * 24)));

  world.max_read_request = 128;  // completions of 128 bytes, 512 of them, and the WQE
  world.max_payload = 4096;
  limit = goodput_limit(world, work);
  CHECK(limit.by == "PCIe to NIC");
  CHECK(limit.gbps == Approx(8 * 4 * 65536.0 / (65536 + 512 * 20 + 48 * 4116.0 / 4096)));

  world = {};
  world.pcie_latency_ns = 4000;  // 128 reads of 512 bytes, 64 at a time
  limit = goodput_limit(world, work);
  CHECK(limit.by == "PCIe reads");
  CHECK(limit.gbps == Approx(8 * 65536.0 * 64 / (128 * 4000 + (128 * 24 + 65536 + 256 * 20) / 31.5)));
  world.max_read_request = 4096;  // the NIC asks for 512 at most
  CHECK(goodput_limit(world, work).gbps == Approx(limit.gbps));
  world.extended_tags = false;
  CHECK(goodput_limit(world, work).gbps == Approx(limit.gbps / 2));

  world = {};
  world.wire_delay_ns = 1'000'000;  // 32 messages in two milliseconds
  limit = goodput_limit(world, work);
  CHECK(limit.by == "depth");
  CHECK(limit.gbps == Approx(32 * 8 * 65536.0 / (2'000'000 + 1000 + 8 * (66864 + 86 - 24) / 100.0)));
}

TEST_CASE("what bounds both directions at once") {
  LimitWork work;
  work.both_ways = true;
  LimitWorld world;
  // An ACK of the other direction for each 32 messages.
  CHECK(goodput_limit(world, work).gbps == Approx(100 * 65536.0 / (66864 + 86 / 32.0)));
  world.pcie_gbytes = 4;
  // To the host go the peer's data, and for the own ones 128 read requests and the CQE.
  const auto limit = goodput_limit(world, work);
  CHECK(limit.by == "PCIe to host");
  CHECK(limit.gbps == Approx(8 * 4 * 65536.0 / (65536 + 256 * 24 + 128 * 24 + 64 * 280.0 / 256)));
}

TEST_CASE("what bounds small messages") {
  LimitWork work;
  work.message = 8;
  work.qps = 16;
  work.depth = 64;
  work.inline_data = true;
  CHECK(goodput_limit({}, work).by == "wire");
  CHECK(goodput_limit({}, work).mmps == Approx(1000 / (8 * 106 / 100.0)));
  work.both_ways = true;
  CHECK(goodput_limit({}, work).mmps == Approx(1000 / (8 * (106 + 86 / 64.0) / 100)));

  work = {};
  work.kind = LimitKind::kRead;
  work.message = 8;
  work.qps = 16;
  LimitWorld world;
  world.wire_gbps = 50;  // requests of 98 bytes are longer than responses of 94
  CHECK(goodput_limit(world, work).by == "wire");
  CHECK(goodput_limit(world, work).mmps == Approx(1000 / (8 * 98 / 50.0)));
  world.extended_tags = false;
  world.wire_gbps = 100;
  CHECK(goodput_limit(world, work).by == "PCIe reads");
  CHECK(goodput_limit(world, work).mmps == Approx(1000 * 32 / (500 + (24 + 28) / 31.5)));
  work.qps = 1;
  work.read_limit = 2;
  CHECK(goodput_limit(world, work).by == "Read limit");
  CHECK(goodput_limit(world, work).mmps == Approx(1000 * 2 / (500 + 8 * (98 + 94 - 24) / 100.0)));
}

TEST_CASE("what is lost goes again") {
  LimitWork work;
  work.lost = 0.01;
  CHECK(goodput_limit({}, work).gbps == Approx(100 * 65536.0 / (66864 * 1.01)));
}

TEST_CASE("the least latency") {
  LimitWork work;
  work.message = 64;
  LimitWorld world;
  // Posting and completion half a round trip of PCI Express each, the data one; on the wire 162 and 86 bytes, less two
  // gaps.
  CHECK(least_latency_ns(world, work) == Approx(1000 + 17.92));
  world.wire_delay_ns = 250;
  CHECK(least_latency_ns(world, work) == Approx(1500 + 17.92));
  work.inline_data = true;
  CHECK(least_latency_ns(world, work) == Approx(1000 + 17.92));
  work.inline_data = false;
  work.kind = LimitKind::kRead;  // the peer reads its memory; 98 and 150 bytes
  CHECK(least_latency_ns(world, work) == Approx(1500 + 8 * (98 + 150 - 24) / 100.0));
}
