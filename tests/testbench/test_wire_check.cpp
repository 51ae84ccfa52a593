// What the checker of the wire says of frames and of conversations. What is right and wrong is written from the
// InfiniBand specification, volume 1, and annex A17; frames are those of Linux Soft-RoCE, and ours of below.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "testbench/wire_check/icrc.hpp"
#include "testbench/wire_check/packet.hpp"
#include "testbench/wire_check/port_check.hpp"

namespace rnic::wire_check {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::vector<Bytes> soft_roce_frames() {
  std::ifstream file(RNIC_SOURCE "/tests/vectors/soft_roce_frames.txt");
  std::vector<Bytes> frames;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::string hex = line.substr(line.rfind(' ') + 1);
    Bytes frame;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
      frame.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
    frames.push_back(std::move(frame));
  }
  return frames;
}

void put(Bytes& bytes, std::uint64_t value, std::size_t count) {
  for (std::size_t i = count; i-- > 0;) bytes.push_back(static_cast<std::uint8_t>(value >> 8 * i));
}

constexpr std::uint64_t kMac = 0x020000000001, kPeerMac = 0x020000000002;
constexpr std::uint32_t kOwn = 0x0a000001, kPeer = 0x0a000002;

/// A frame of IPv4, right in all that is not asked to be otherwise.
struct Build {
  Operation operation = Operation::kSendOnly;
  std::uint32_t psn = 0;
  std::uint32_t dest_qpn = 0x200;
  std::size_t bytes = 8;
  bool ack = false;
  std::uint8_t syndrome = 0x1f;
  std::uint32_t msn = 0;
  std::uint32_t length = 0;  ///< RETH
  std::uint64_t va = 0x1000;
  Service service = Service::kRc;
  bool from_peer = false;
  std::uint8_t pad_byte = 0;
  Tag tag = std::nullopt;

  [[nodiscard]] Bytes frame() const {
    Bytes transport;
    const std::size_t pad = (4 - bytes % 4) % 4;
    put(transport, static_cast<unsigned>(service) << 5 | static_cast<unsigned>(operation), 1);
    put(transport, 0x40 | pad << 4, 1);
    put(transport, 0xffff, 2);
    put(transport, dest_qpn, 4);
    put(transport, (ack ? 0x80000000u : 0u) | psn, 4);
    if (service == Service::kUd) put(transport, 0x100, 8);  // Q_Key 0, its own number
    Packet kind;
    kind.service = service;
    kind.operation = operation;
    if (operation == Operation::kReadRequest || (kind.is_write() && kind.begins())) {
      put(transport, va, 8);
      put(transport, 0x55, 4);
      put(transport, length, 4);
    }
    if (kind.has_aeth()) put(transport, std::uint32_t{syndrome} << 24 | msn, 4);
    const bool payload = kind.is_send() || kind.is_write() || kind.is_read_response();
    if (payload) {
      transport.insert(transport.end(), bytes, 0x7b);
      transport.insert(transport.end(), pad, pad_byte);
    }
    Bytes ip;
    const std::size_t udp = 8 + transport.size() + 4;
    put(ip, 0x45000000 | (20 + udp), 4);
    put(ip, 0x00004000, 4);
    put(ip, 0x40110000, 4);
    put(ip, from_peer ? kPeer : kOwn, 4);
    put(ip, from_peer ? kOwn : kPeer, 4);
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < ip.size(); i += 2) sum += ip[i] << 8 | ip[i + 1];
    while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    ip[10] = static_cast<std::uint8_t>(~sum >> 8);
    ip[11] = static_cast<std::uint8_t>(~sum);
    put(ip, 0xc001, 2);
    put(ip, 4791, 2);
    put(ip, udp, 2);
    put(ip, 0, 2);
    ip.insert(ip.end(), transport.begin(), transport.end());
    put(ip, icrc(ip, false), 4);
    Bytes whole;
    put(whole, from_peer ? kMac : kPeerMac, 6);
    put(whole, from_peer ? kPeerMac : kMac, 6);
    if (tag) put(whole, 0x81000000 | *tag, 4);
    put(whole, 0x0800, 2);
    whole.insert(whole.end(), ip.begin(), ip.end());
    whole.resize(std::max<std::size_t>(whole.size(), 60));
    return whole;
  }
};

/// A NIC with one queue pair, number 0x100, that is connected to number 0x200 of its peer, and what is said of it.
class Bench {
 public:
  static constexpr std::uint32_t kMtu = 256;
  explicit Bench(Service service = Service::kRc, std::uint8_t timeout = 8, std::uint8_t reads = 1,
                 std::uint16_t vlan = 0)
      : check([this](std::uint64_t at, std::size_t bytes) { return Bytes(&memory.at(at), &memory.at(at) + bytes); },
              [this](const std::string& what) { said.push_back(what); }) {
    write(0x108, kMac);
    write(0x88, 0);
    write(0x90, 0x8000);
    write(0x98, 8);
    Bytes create(120);
    create[39] = static_cast<std::uint8_t>(service);
    command(0x40, create);
    modify.resize(120);
    modify[1] = 1;
    modify[3] = reads;
    modify[5] = timeout;
    set(modify, 11, 0x200, 3);
    set(modify, 15, 0xffff, 2);
    set(modify, 23, 0xc001, 2);
    set(modify, 38, vlan, 2);
    for (const std::size_t at : {40, 56}) modify[at + 10] = modify[at + 11] = 0xff;
    modify[52] = modify[68] = 10;
    modify[55] = 1;
    modify[71] = 2;
    set(modify, 72, 0x1fffff, 3);
    for (const std::uint8_t state : {1, 2, 3}) connect(state);
  }

  void move(std::uint8_t state) {
    Bytes only(120);
    only[0] = state;
    set(only, 72, 1, 3);
    command(0x42, only);
  }
  /// To a state of INIT, RTR and RTS, with all attributes.
  void connect(std::uint8_t state) {
    modify[0] = state;
    command(0x42, modify);
  }
  /// Through RESET to RTR, with other PSNs and, maybe, another peer.
  void renew(std::uint32_t receive_psn, std::uint32_t send_psn, std::uint32_t dest_qpn = 0x200) {
    set(modify, 11, dest_qpn, 3);
    set(modify, 8, receive_psn, 3);
    set(modify, 17, send_psn, 3);
    move(0);
    for (const std::uint8_t state : {1, 2}) connect(state);
  }
  void sends(const Build& build) { check.sent(build.frame(), now); }
  void gets(Build build, bool forged = false) {
    build.from_peer = true;
    build.dest_qpn = 0x100;
    check.received(build.frame(), forged, now);
  }
  void acknowledged(std::uint32_t psn, std::uint8_t syndrome = 0x1f) {
    gets({.operation = Operation::kAcknowledge, .psn = psn, .bytes = 0, .syndrome = syndrome});
  }
  void acknowledges(std::uint32_t psn, std::uint32_t msn, std::uint8_t syndrome = 0x1f) {
    sends({.operation = Operation::kAcknowledge, .psn = psn, .bytes = 0, .syndrome = syndrome, .msn = msn});
  }
  /// What was said since the last question; "" for nothing.
  std::string complaint() {
    std::string all;
    for (const auto& what : said) all += what + "\n";
    said.clear();
    return all;
  }

  Picoseconds now = 1'000'000;

 private:
  static void set(Bytes& bytes, std::size_t at, std::uint64_t value, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) bytes[at + i] = static_cast<std::uint8_t>(value >> 8 * i);
  }
  void write(std::uint64_t offset, std::uint64_t value) {
    Bytes data(8);
    set(data, 0, value, 8);
    check.written(offset, data, std::vector<bool>(8, true), now);
  }
  void command(std::uint8_t opcode, const Bytes& body) {
    const std::size_t slot = posted % 256;
    Bytes entry{opcode, 0};
    entry.resize(8);
    set(entry, 2, posted, 2);
    set(entry, 4, 0x100, 4);
    entry.insert(entry.end(), body.begin(), body.end());
    std::copy(entry.begin(), entry.end(), memory.begin() + static_cast<std::ptrdiff_t>(slot * 128));
    ++posted;
    write(0xa0, posted);
    Bytes answer(64);
    set(answer, 2, posted - 1, 2);
    answer[63] = 1;
    std::copy(answer.begin(), answer.end(), memory.begin() + static_cast<std::ptrdiff_t>(0x8000 + slot * 64));
    write(0x1f8, 0);  // of no meaning; the checker reads the answer
  }

  Bytes memory = Bytes(0x10000), modify;
  std::uint64_t posted = 0;
  std::vector<std::string> said;

 public:
  PortCheck check;
};

void says(const std::string& complaint, const std::string& words) {
  INFO("complaint: " << complaint);
  CHECK(complaint.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("frames of Soft-RoCE are whole: lengths, checksums, ICRC (9.2 to 9.6, A17.3)") {
  const auto frames = soft_roce_frames();
  REQUIRE(frames.size() > 15);
  for (const auto& frame : frames) {
    Faults faults;
    const auto packet = read(frame, faults);
    REQUIRE(packet);
    INFO(describe(*packet));
    CHECK(faults.fatal.empty());
  }
}

TEST_CASE("no bit of a frame that the ICRC covers may change, nor one of the IPv4 header (7.8.1, A17.3.3)") {
  const Bytes good = Build{.bytes = 5}.frame();
  Faults none;
  REQUIRE(read(good, none));
  CHECK(none.fatal.empty());
  CHECK(none.other.empty());
  for (std::size_t bit = 8 * 14; bit < 8 * (14 + 20 + 8 + 12 + 8 + 4); ++bit) {
    Bytes bad = good;
    bad[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    Faults faults;
    const auto packet = read(bad, faults);
    INFO("bit " << bit);
    // Without the port and the protocol it is no frame of ours. The UDP checksum, FECN, BECN and the bits beside them
    // are not covered: a receiver may take them.
    const std::size_t byte = bit / 8, udp = 14 + 20, bth = udp + 8;
    const bool uncovered = byte == udp + 6 || byte == udp + 7 || byte == bth + 4;
    CHECK((!packet || (uncovered ? faults.other : faults.fatal).size() > 0));
  }
}

TEST_CASE("a time to live of 0 is the application's affair") {
  auto frame = Build{}.frame();
  // It is the high byte of its word in the header checksum, which is that much more then.
  const std::uint32_t sum = (frame[24] << 8 | frame[25]) + (frame[22] << 8);
  const std::uint32_t checksum = (sum & 0xffff) + (sum >> 16);
  frame[22] = 0;
  frame[24] = static_cast<std::uint8_t>(checksum >> 8);
  frame[25] = static_cast<std::uint8_t>(checksum);
  Faults faults;
  REQUIRE(read(frame, faults));
  CHECK(faults.fatal.empty());
  CHECK(faults.other.empty());
}

TEST_CASE("what no sender does to a frame is told") {
  Bench bench;
  const auto fault = [&](Bytes frame, std::size_t at, std::uint8_t bits) {
    frame[at] ^= bits;
    const Bytes ip(frame.begin() + 14, frame.end() - 4);
    const std::uint32_t crc = icrc(ip, false);
    for (std::size_t i = 0; i < 4; ++i) frame[frame.size() - 4 + i] = static_cast<std::uint8_t>(crc >> (24 - 8 * i));
    bench.check.sent(frame, bench.now);
    return bench.complaint();
  };
  const Bytes good = Build{.bytes = 8}.frame();
  constexpr std::size_t kBth = 14 + 20 + 8;
  says(fault(good, kBth + 1, 0x40), "MigReq 0");
  says(fault(good, kBth + 1, 0x01), "version");
  says(fault(good, kBth + 4, 0x40), "FECN, BECN");
  says(fault(good, kBth + 8, 0x01), "reserved bits");
  says(fault(good, kBth, 0x15 ^ 0x04), "opcode that there is not");
  says(fault(good, kBth + 1, 0x80 | 0x40), "MigReq");
  says(fault(good, 6, 0x40), "MAC address");
  says(fault(good, 34, 0x80), "source port");
  bench.sends({.bytes = 5, .pad_byte = 1});
  says(bench.complaint(), "pad bytes");
  bench.sends({.operation = Operation::kAcknowledge, .bytes = 0, .syndrome = 0x65});
  says(bench.complaint(), "NAK code");
  Bytes raw = good;
  raw[12] = 0x88;
  bench.check.sent(raw, bench.now);
  says(bench.complaint(), "not of RoCEv2");
}

TEST_CASE("a VLAN tag is read, and never has the reserved VID or DEI (802.1Q 9.6)") {
  const auto faults_of = [](const Build& build) {
    Faults faults;
    const auto packet = read(build.frame(), faults);
    REQUIRE(packet);
    CHECK(packet->tag == build.tag);
    CHECK(packet->bytes == build.bytes);
    return faults;
  };
  for (const std::uint16_t tag : {0x0000, 0x6005, 0xeffe}) {
    const auto faults = faults_of({.bytes = 5, .tag = tag});
    CHECK(faults.fatal.empty());
    CHECK(faults.other.empty());
  }
  CHECK(faults_of({.tag = 0x2fff}).fatal.size() == 1);
  CHECK(faults_of({.tag = 0x1005}).other.size() == 1);
  Bytes twice = Build{.tag = 0x0005}.frame();
  const Bytes outer{0x81, 0x00, 0x00, 0x06};
  twice.insert(twice.begin() + 12, outer.begin(), outer.end());
  Faults faults;
  CHECK_FALSE(read(twice, faults));
}

TEST_CASE("all packets of a connected queue pair have the tag of its path, and what comes is of its VLAN") {
  Bench bench(Service::kRc, 8, 1, 0x7005);  // VID 5, with a tag, priority 3
  bench.sends({.psn = 0, .ack = true, .tag = 0x6005});
  CHECK(bench.complaint() == "");
  for (const Tag wrong : {Tag(), Tag(0x6006), Tag(0x4005), Tag(0x6000)}) {
    bench.now += 2 * kGrace;
    Bench other(Service::kRc, 8, 1, 0x7005);
    other.now = bench.now;
    other.sends({.psn = 0, .ack = true, .tag = wrong});
    says(other.complaint(), "VLAN tag");
  }
  Bench untagged;
  untagged.now = 2 * kGrace;
  untagged.sends({.psn = 0, .ack = true, .tag = 0x0000});
  says(untagged.complaint(), "VLAN tag");
  // Another VLAN's packet has not come; the priority may be any.
  bench.gets({.psn = 0, .ack = true, .tag = 0x0006});
  bench.sends({.operation = Operation::kAcknowledge, .psn = 0, .bytes = 0, .msn = 1, .tag = 0x6005});
  says(bench.complaint(), "acknowledge");
  Bench right(Service::kRc, 8, 1, 0x7005);
  right.gets({.psn = 0, .ack = true, .tag = 0x9005});
  right.sends({.operation = Operation::kAcknowledge, .psn = 0, .bytes = 0, .msn = 1, .tag = 0x6005});
  CHECK(right.complaint() == "");
}

TEST_CASE("frames that are not of RoCEv2 come from a queue pair for them, from RTS on (host interface, Ethernet)") {
  Bench bench(Service::kRawPacket);
  Bytes frame(60, 0x11);
  bench.check.sent(frame, bench.now);
  CHECK(bench.complaint().empty());
  frame.resize(4096);
  bench.check.sent(frame, bench.now);
  CHECK(bench.complaint().empty());
  frame.resize(4097);
  bench.check.sent(frame, bench.now);
  says(bench.complaint(), "of 4097 bytes");
  frame.resize(59);
  bench.check.sent(frame, bench.now);
  says(bench.complaint(), "of 59 bytes");
  frame.resize(60);
  bench.move(0);
  bench.now += 1'000'000'000'000;
  bench.check.sent(frame, bench.now);
  says(bench.complaint(), "not of RoCEv2");
}

TEST_CASE("a conversation without loss: nothing to say (9.7.2, 9.7.5.1)") {
  Bench bench;
  bench.sends({.operation = Operation::kSendFirst, .psn = 0, .bytes = 256});
  bench.sends({.operation = Operation::kSendMiddle, .psn = 1, .bytes = 256});
  bench.sends({.operation = Operation::kSendLast, .psn = 2, .bytes = 1, .ack = true});
  bench.sends({.operation = Operation::kWriteOnly, .psn = 3, .bytes = 7, .length = 7});
  bench.acknowledged(3);
  bench.sends({.operation = Operation::kReadRequest, .psn = 4, .bytes = 0, .length = 600});
  for (const auto& [operation, psn, bytes] : {std::tuple{Operation::kReadResponseFirst, 4u, 256u},
                                              {Operation::kReadResponseMiddle, 5u, 256u},
                                              {Operation::kReadResponseLast, 6u, 88u}})
    bench.gets({.operation = operation, .psn = psn, .bytes = bytes});
  bench.sends({.operation = Operation::kSendOnly, .psn = 7, .bytes = 0});
  // And as a responder.
  bench.gets({.operation = Operation::kSendOnly, .psn = 0, .ack = true});
  bench.acknowledges(0, 1);
  bench.gets({.operation = Operation::kReadRequest, .psn = 1, .bytes = 0, .length = 300});
  bench.sends({.operation = Operation::kReadResponseFirst, .psn = 1, .bytes = 256, .msn = 2});
  bench.sends({.operation = Operation::kReadResponseLast, .psn = 2, .bytes = 44, .msn = 2});
  CHECK(bench.complaint().empty());
}

TEST_CASE("PSNs of requests follow each other, and so do the packets of a message (9.7.2, 9.2.1)") {
  Bench bench;
  SECTION("a PSN is left out") {
    bench.sends({.psn = 1});
    says(bench.complaint(), "PSN 0 is left out");
  }
  SECTION("a middle that follows nothing") {
    bench.sends({.operation = Operation::kSendMiddle, .psn = 0, .bytes = 256});
    says(bench.complaint(), "does not follow");
  }
  SECTION("a WRITE inside a SEND") {
    bench.sends({.operation = Operation::kSendFirst, .psn = 0, .bytes = 256});
    bench.sends({.operation = Operation::kWriteLast, .psn = 1, .bytes = 4});
    says(bench.complaint(), "does not follow");
  }
  SECTION("a first packet that is not full") {
    bench.sends({.operation = Operation::kSendFirst, .psn = 0, .bytes = 252});
    says(bench.complaint(), "252 bytes, MTU 256");
  }
  SECTION("a last packet without bytes") {
    bench.sends({.operation = Operation::kSendFirst, .psn = 0, .bytes = 256});
    bench.sends({.operation = Operation::kSendLast, .psn = 1, .bytes = 0});
    says(bench.complaint(), "0 bytes");
  }
  SECTION("a WRITE shorter than it says") {
    bench.sends({.operation = Operation::kWriteOnly, .psn = 0, .bytes = 8, .length = 9});
    says(bench.complaint(), "not as long as it says");
  }
  SECTION("more Reads than agreed") {
    bench.sends({.operation = Operation::kReadRequest, .psn = 0, .bytes = 0, .length = 300});
    CHECK(bench.complaint().empty());
    bench.sends({.operation = Operation::kReadRequest, .psn = 2, .bytes = 0, .length = 300});
    says(bench.complaint(), "more Reads and atomics");
  }
  SECTION("of a queue pair before RTS, and long after its end") {
    bench.move(6);
    bench.sends({.psn = 0});
    CHECK(bench.complaint().empty());  // it may have been on its way
    bench.now += 2 * kGrace;
    bench.sends({.psn = 1});
    says(bench.complaint(), "long after the end");
  }
}

TEST_CASE("what is sent again has a reason (9.7.5.1.4, 9.7.6)") {
  Bench bench;
  for (std::uint32_t psn = 0; psn < 4; ++psn) bench.sends({.psn = psn, .ack = true});
  SECTION("without a reason") {
    bench.sends({.psn = 1});
    says(bench.complaint(), "without a reason");
  }
  SECTION("a NAK, once") {
    bench.acknowledged(1, 0x60);
    for (std::uint32_t psn = 1; psn < 4; ++psn) bench.sends({.psn = psn, .ack = true});
    CHECK(bench.complaint().empty());
    bench.sends({.psn = 1});
    says(bench.complaint(), "without a reason");
  }
  SECTION("a NAK, and a new packet before all are repeated") {
    bench.acknowledged(1, 0x60);
    bench.sends({.psn = 1, .ack = true});
    bench.sends({.psn = 4});
    says(bench.complaint(), "before PSN 2 was sent again");
  }
  SECTION("the time-out, not before its time") {
    bench.now += 900'000'000;
    bench.sends({.psn = 0});
    says(bench.complaint(), "without a reason");
  }
  SECTION("the time-out, in its time") {
    bench.now += 1'050'000'000;  // 4.096 us * 2^8
    bench.sends({.psn = 0});
    CHECK(bench.complaint().empty());
  }
  SECTION("a NAK behind the time-out: two reasons, each once") {
    const bool expired = GENERATE(true, false);
    bench.now += expired ? 1'050'000'000 : 900'000'000;
    bench.acknowledged(0, 0x60);
    for (int i = 0; i < (expired ? 2 : 1); ++i) {
      for (std::uint32_t psn = 0; psn < 4; ++psn) bench.sends({.psn = psn, .ack = true});
    }
    CHECK(bench.complaint().empty());
    bench.sends({.psn = 0});
    says(bench.complaint(), "without a reason");
  }
  SECTION("the time-out of one in front, whose acknowledge the NIC sees later") {
    bench.now += 900'000'000;
    bench.sends({.psn = 4, .ack = true});
    const bool late = GENERATE(true, false);
    bench.acknowledged(3);
    // Until more has passed than may wait in the NIC.
    for (std::size_t bytes = 0; !late && bytes <= kBacklogBytes; bytes += 256)
      bench.check.received(Bytes(256), false, bench.now);
    bench.now += 160'000'000;
    bench.sends({.psn = 4, .ack = true});
    if (!late) {
      says(bench.complaint(), "without a reason");
    } else {
      CHECK(bench.complaint().empty());
      bench.sends({.psn = 4, .ack = true});
      says(bench.complaint(), "without a reason");
    }
  }
  SECTION("receiver not ready: not before its time, then from there on") {
    bench.acknowledged(2, 0x20 | 1);  // 10 us
    bench.now += 8'000'000;
    bench.sends({.psn = 2});
    says(bench.complaint(), "without a reason");
    bench.now += 3'000'000;
    bench.sends({.psn = 2});
    CHECK(bench.complaint().empty());
  }
  SECTION("another packet with the PSN of one before") {
    bench.acknowledged(1, 0x60);
    bench.sends({.psn = 1, .bytes = 12});
    says(bench.complaint(), "another packet");
  }
  SECTION("what is acknowledged, without a reason, and after the time-out: the NIC may have dropped what says so") {
    bench.acknowledged(2);
    bench.sends({.psn = 1, .ack = true});
    says(bench.complaint(), "without a reason");
    bench.now += 1'050'000'000;
    bench.sends({.psn = 1, .ack = true});
    CHECK(bench.complaint().empty());
  }
  SECTION("what is acknowledged need not be repeated") {
    bench.acknowledged(0, 0x60);
    bench.sends({.psn = 0, .ack = true});
    bench.acknowledged(2);
    bench.sends({.psn = 3, .ack = true});
    bench.sends({.psn = 4});
    CHECK(bench.complaint().empty());
  }
  SECTION("what is repeated, is acknowledged while it leaves: begun before, not long after") {
    bench.acknowledged(1, 0x60);
    bench.acknowledged(2);
    bench.acknowledged(3);
    const bool at_once = GENERATE(true, false);
    if (!at_once) bench.now += 2 * kGrace;
    bench.sends({.psn = 3, .ack = true});
    if (at_once)
      CHECK(bench.complaint().empty());
    else
      says(bench.complaint(), "without a reason");
  }
  SECTION("nothing after a NAK that ends the connection (9.9.2.1)") {
    bench.acknowledged(0, 0x62);
    bench.now += 2 * kGrace;
    bench.sends({.psn = 4});
    CHECK(bench.complaint().empty());  // it may have been on its way, on a slow wire
    for (std::uint32_t psn = 5; psn < 5 + kGraceBytes / 256; ++psn)
      bench.sends({.operation = psn == 5 ? Operation::kSendFirst : Operation::kSendMiddle, .psn = psn, .bytes = 256});
    says(bench.complaint(), "ended the connection");
  }
  SECTION(
      "a forgery that was under way when it was made ready: nothing is checked up to RESET, nor of before it later") {
    bench.move(0);
    bench.now += 2 * kGrace;
    bench.gets({.operation = Operation::kSendOnly, .psn = 40, .ack = true}, true);
    bench.renew(40, 70);
    bench.connect(3);
    bench.sends({.psn = 70, .ack = true});
    bench.sends({.psn = 90});  // another incarnation would have left PSNs out
    bench.move(0);
    bench.sends({.psn = 71});
    CHECK(bench.complaint().empty());
    bench.now += 2 * kGrace;
    bench.renew(50, 80);
    bench.now += 1'100'000'000;  // nothing is under way any more
    bench.renew(50, 80);
    bench.connect(3);
    bench.sends({.psn = 80});
    CHECK(bench.complaint().empty());
    bench.sends({.psn = 90});
    says(bench.complaint(), "left out");
  }
  SECTION("a forged answer: nothing is judged any more") {
    bench.gets({.operation = Operation::kAcknowledge, .psn = 3, .bytes = 0}, true);
    bench.sends({.psn = 1});
    CHECK(bench.complaint().empty());
  }
}

TEST_CASE("of a Read whose responses are lost the missing range is asked for again (9.7.5.1.3, decisions 50)") {
  Bench bench;
  bench.sends({.operation = Operation::kReadRequest, .psn = 0, .bytes = 0, .length = 1000});
  bench.gets({.operation = Operation::kReadResponseFirst, .psn = 0, .bytes = 256});
  bench.gets({.operation = Operation::kReadResponseMiddle, .psn = 2, .bytes = 256});
  SECTION("from the first missing byte") {
    bench.sends({.operation = Operation::kReadRequest, .psn = 1, .bytes = 0, .length = 744, .va = 0x1100});
    CHECK(bench.complaint().empty());
  }
  SECTION("from the byte that is missing when it leaves: the late response has come, the one behind it was early") {
    bench.gets({.operation = Operation::kReadResponseMiddle, .psn = 1, .bytes = 256});
    bench.sends({.operation = Operation::kReadRequest, .psn = 2, .bytes = 0, .length = 488, .va = 0x1200});
    CHECK(bench.complaint().empty());
  }
  SECTION("whole") {
    bench.sends({.operation = Operation::kReadRequest, .psn = 0, .bytes = 0, .length = 1000});
    CHECK(bench.complaint().empty());
  }
  SECTION("from behind it") {
    bench.sends({.operation = Operation::kReadRequest, .psn = 2, .bytes = 0, .length = 488, .va = 0x1200});
    says(bench.complaint(), "without a reason");
  }
  SECTION("another length") {
    bench.sends({.operation = Operation::kReadRequest, .psn = 1, .bytes = 0, .length = 743, .va = 0x1100});
    says(bench.complaint(), "another packet");
  }
}

TEST_CASE("of a Read that is to be repeated behind others, what has been answered meanwhile is left out (9.7.5.1.3)") {
  Bench bench(Service::kRc, 0);
  const Build rest{.operation = Operation::kReadRequest, .psn = 2, .bytes = 0, .length = 44, .va = 0x1100};
  bench.sends({.psn = 0});
  bench.sends({.operation = Operation::kReadRequest, .psn = 1, .bytes = 0, .length = 300});
  bench.acknowledged(0, 0x60);
  bench.sends({.psn = 0});
  bench.gets({.operation = Operation::kReadResponseFirst, .psn = 1, .bytes = 256});
  bench.now += 2 * kGrace;
  bench.sends(rest);
  CHECK(bench.complaint().empty());
  bench.sends(rest);
  says(bench.complaint(), "without a reason");
}

TEST_CASE("of a Read whose responses the NIC has dropped: as long as it may be busy with what came before") {
  Bench bench(Service::kRc, 0);
  bench.sends({.operation = Operation::kReadRequest, .psn = 0, .bytes = 0, .length = 300});
  bench.gets({.operation = Operation::kReadResponseFirst, .psn = 0, .bytes = 256});
  bench.gets({.operation = Operation::kReadResponseLast, .psn = 1, .bytes = 44});
  SECTION("few bytes have passed since") {
    bench.now += 4 * kGrace;
    bench.sends({.operation = Operation::kReadRequest, .psn = 0, .bytes = 0, .length = 300});
    CHECK(bench.complaint().empty());
  }
  SECTION("or little time") {
    for (std::size_t bytes = 0; bytes < kBacklogBytes; bytes += 256) bench.check.received(Bytes(256), false, bench.now);
    bench.now += kGrace / 2;
    bench.sends({.operation = Operation::kReadRequest, .psn = 0, .bytes = 0, .length = 300});
    CHECK(bench.complaint().empty());
  }
  SECTION("not when both are over") {
    for (std::size_t bytes = 0; bytes <= kBacklogBytes; bytes += 256)
      bench.check.received(Bytes(256), false, bench.now);
    bench.now += 2 * kGrace;
    bench.sends({.operation = Operation::kReadRequest, .psn = 0, .bytes = 0, .length = 300});
    says(bench.complaint(), "without a reason");
  }
  SECTION("nor long after") {
    bench.now += 2 * kBacklogTime;
    bench.sends({.operation = Operation::kReadRequest, .psn = 0, .bytes = 0, .length = 300});
    says(bench.complaint(), "without a reason");
  }
}

TEST_CASE("an answer that the wire has seen before says again that one in front is missing (9.7.5.1.4)") {
  // The NIC went back to PSN 0 and has dropped what came then; it asks for both Reads again, and the ACK of the SEND's
  // first sending comes before their responses.
  Bench bench(Service::kRc, 0, 2);
  const auto read = [](std::uint32_t psn) {
    return Build{.operation = Operation::kReadRequest, .psn = psn, .bytes = 0, .length = 8};
  };
  const auto answer = [&](std::uint32_t psn) { bench.gets({.operation = Operation::kReadResponseOnly, .psn = psn}); };
  const auto send_all = [&] {
    bench.sends({.psn = 0});
    bench.sends(read(1));
    bench.sends(read(2));
    bench.sends({.psn = 3, .ack = true});
  };
  send_all();
  bench.acknowledged(0, 0x60);
  bench.acknowledged(0);
  answer(1);
  answer(2);
  bench.acknowledged(3);
  bench.now += 2 * kBacklogTime;
  bench.sends({.psn = 0});
  bench.sends(read(1));
  bench.sends(read(2));
  SECTION("an ACK behind both, then the response of the first") {
    bench.acknowledged(3);
    bench.sends({.psn = 3, .ack = true});
    answer(1);
    bench.sends(read(2));
    CHECK(bench.complaint().empty());
  }
  SECTION("the response of the first alone says nothing of the second") {
    answer(1);
    bench.sends(read(2));
    says(bench.complaint(), "without a reason");
  }
}

TEST_CASE("a complaint tells the near past of its queue pair") {
  Bench bench;
  bench.sends({.operation = Operation::kSendFirst, .psn = 0, .bytes = 256});
  for (std::uint32_t psn = 1; psn < 40; ++psn)
    bench.sends({.operation = Operation::kSendMiddle, .psn = psn, .bytes = 256});
  bench.sends({.operation = Operation::kSendLast, .psn = 40, .bytes = 4});
  bench.now += 3'000'000;
  bench.acknowledged(40);
  bench.now += 1'000'000;
  bench.sends({.psn = 42});
  says(bench.complaint(),
       "PSN 41 is left out (9.7.2)\n"
       "    -4000 ns sent RC SEND first to QP 512, PSN 0\n"
       "    -4000 ns sent RC SEND middle to QP 512, PSN 1 to 39\n"
       "    -4000 ns sent RC SEND last to QP 512, PSN 40\n"
       "    -1000 ns came RC acknowledge to QP 256, PSN 40, syndrome 31, MSN 0\n"
       "    0 ns sent RC SEND only to QP 512, PSN 42\n");
}

TEST_CASE("answers answer what came (9.7.5.1, 9.7.5.2, 9.7.7.1)") {
  Bench bench;
  bench.gets({.psn = 0, .ack = true});
  bench.gets({.psn = 1, .ack = true});
  SECTION("an acknowledge ahead of its time") {
    bench.acknowledges(2, 2);
    says(bench.complaint(), "acknowledges what has not come");
  }
  SECTION("a MSN that is too small, or too large") {
    bench.acknowledges(1, 1);
    says(bench.complaint(), "MSN");
    bench.acknowledges(0, 2);
    CHECK(bench.complaint().empty());  // both are executed by now
    bench.acknowledges(0, 3);
    says(bench.complaint(), "MSN");
  }
  SECTION("one NAK a gap") {
    bench.gets({.psn = 3});
    bench.acknowledges(2, 2, 0x60);
    CHECK(bench.complaint().empty());
    bench.gets({.psn = 4});
    bench.acknowledges(2, 2, 0x60);
    says(bench.complaint(), "second NAK");
  }
  SECTION("a NAK that what it asks for has overtaken, and the next gap (9.7.5.2.2)") {
    for (const std::uint32_t psn : {3, 2, 4}) bench.gets({.psn = psn});
    bench.acknowledges(2, 2, 0x60);
    bench.acknowledges(3, 3, 0x60);
    CHECK(bench.complaint().empty());
  }
  SECTION("a NAK where there is no gap") {
    bench.acknowledges(2, 2, 0x60);
    says(bench.complaint(), "nothing behind");
  }
  SECTION("a refusal of what has not come") {
    bench.acknowledges(2, 2, 0x62);
    says(bench.complaint(), "has not come");
  }
  SECTION("nothing after a refusal that ends the connection (9.9.3.1)") {
    bench.acknowledges(1, 1, 0x62);
    CHECK(bench.complaint().empty());
    bench.now += 2 * kGrace;
    bench.acknowledges(0, 1);
    says(bench.complaint(), "ended the connection");
  }
  SECTION("receiver not ready: what came behind was not taken") {
    bench.acknowledges(1, 1, 0x21);
    bench.acknowledges(1, 2);
    says(bench.complaint(), "acknowledges what has not come");
  }
  SECTION("data that nobody has asked for") {
    bench.sends({.operation = Operation::kReadResponseOnly, .psn = 2, .msn = 2});
    says(bench.complaint(), "not been asked");
  }
  SECTION("the data of a Read: as much as was asked for, in order") {
    bench.gets({.operation = Operation::kReadRequest, .psn = 2, .bytes = 0, .length = 600});
    bench.sends({.operation = Operation::kReadResponseFirst, .psn = 2, .bytes = 256, .msn = 3});
    SECTION("a PSN is left out") {
      bench.sends({.operation = Operation::kReadResponseMiddle, .psn = 4, .bytes = 256});
      says(bench.complaint(), "does not follow the response");
    }
    SECTION("too few") {
      bench.sends({.operation = Operation::kReadResponseLast, .psn = 3, .bytes = 256, .msn = 3});
      says(bench.complaint(), "as many responses");
    }
    SECTION("too short") {
      bench.sends({.operation = Operation::kReadResponseMiddle, .psn = 3, .bytes = 256});
      bench.sends({.operation = Operation::kReadResponseLast, .psn = 4, .bytes = 84, .msn = 3});
      says(bench.complaint(), "84 bytes instead of 88");
    }
  }
}

TEST_CASE("what a queue pair had begun may leave when it has begun anew (10.3.1)") {
  Bench bench;
  bench.gets({.psn = 0, .ack = true});
  bench.gets({.operation = Operation::kReadRequest, .psn = 1, .bytes = 0, .length = 600});
  for (std::uint32_t psn = 0; psn < 3; ++psn) bench.sends({.psn = psn});
  SECTION("a refusal, and nothing behind it is the former's") {
    bench.gets({.psn = 4});
    bench.renew(100, 700);
    bench.now += kGrace / 2;
    bench.acknowledges(4, 2, 0x62);
    CHECK(bench.complaint() == "");
    bench.gets({.psn = 100, .ack = true});
    bench.acknowledges(100, 1);
    CHECK(bench.complaint() == "");
    bench.acknowledges(1, 2);
    says(bench.complaint(), "MSN");
  }
  SECTION("an acknowledge and the data of a Read, piece by piece") {
    bench.sends({.operation = Operation::kReadResponseFirst, .psn = 1, .bytes = 256, .msn = 2});
    bench.renew(100, 700);
    bench.sends({.operation = Operation::kReadResponseMiddle, .psn = 2, .bytes = 256});
    bench.connect(3);
    bench.sends({.operation = Operation::kReadResponseLast, .psn = 3, .bytes = 88, .msn = 2});
    CHECK(bench.complaint() == "");
  }
  SECTION("requests, before the new ones") {
    bench.renew(100, 700);
    bench.sends({.psn = 3});
    bench.connect(3);
    bench.sends({.psn = 4});
    bench.sends({.psn = 700});
    CHECK(bench.complaint() == "");
    bench.sends({.psn = 5});
    says(bench.complaint(), "acknowledged long ago");
  }
  SECTION("whose PSN may be that of either") {
    bench.renew(100, 3);
    bench.connect(3);
    bench.sends({.psn = 3});
    SECTION("the former's: the first of the new one follows") {
      bench.sends({.psn = 3, .bytes = 100});
      bench.sends({.psn = 4});
      CHECK(bench.complaint() == "");
      bench.sends({.psn = 6});
      says(bench.complaint(), "PSN 5 is left out");
    }
    SECTION("the new one's: the former has nothing more") {
      bench.now += 2 * kBacklogTime;
      bench.sends({.psn = 4});
      CHECK(bench.complaint() == "");
      bench.sends({.psn = 4});
      says(bench.complaint(), "without a reason");
    }
  }
  SECTION("to its former peer") {
    bench.renew(100, 700, 0x300);
    bench.connect(3);
    bench.acknowledges(0, 1);
    bench.sends({.psn = 700, .dest_qpn = 0x300});
    CHECK(bench.complaint() == "");
  }
  SECTION("not what neither may send") {
    bench.renew(100, 700);
    bench.acknowledges(4, 2, 0x62);
    says(bench.complaint(), "MSN");
    bench.connect(3);
    bench.sends({.psn = 701});
    says(bench.complaint(), "PSN 700 is left out");
  }
  SECTION("not long after") {
    bench.renew(100, 700);
    bench.connect(3);
    bench.now += 2 * kGrace;
    bench.acknowledges(0, 1);
    says(bench.complaint(), "MSN");
    bench.sends({.psn = 3});
    says(bench.complaint(), "acknowledged long ago");
  }
  SECTION("and what came before may have waited for the new one") {
    bench.gets({.psn = 100, .ack = true});
    bench.renew(100, 700);
    bench.acknowledges(100, 1);
    CHECK(bench.complaint() == "");
    bench.acknowledges(101, 2);
    says(bench.complaint(), "acknowledges what has not come");
  }
  SECTION("or have been for the former, which had the same PSNs (9.7.7.1)") {
    bench.gets({.operation = Operation::kSendFirst, .psn = 4, .bytes = 256});
    bench.gets({.operation = Operation::kSendLast, .psn = 5, .ack = true});
    bench.renew(4, 700);
    for (std::uint32_t psn = 4; psn < 7; ++psn) bench.gets({.psn = psn, .ack = true});
    bench.acknowledges(5, 2);
    bench.acknowledges(6, 3);
    CHECK(bench.complaint() == "");
    bench.acknowledges(6, 4);
    says(bench.complaint(), "MSN");
  }
  SECTION("but not for long") {
    bench.gets({.psn = 100, .ack = true});
    bench.now += 2 * kBacklogTime;
    bench.renew(100, 700);
    bench.acknowledges(100, 1);
    says(bench.complaint(), "acknowledges what has not come");
  }
}

TEST_CASE("unreliable services answer nothing, and repeat nothing (9.8.2, 9.8.3)") {
  Bench bench(Service::kUc);
  bench.sends({.psn = 0, .service = Service::kUc});
  CHECK(bench.complaint().empty());
  bench.sends({.psn = 0, .service = Service::kUc});
  says(bench.complaint(), "expected PSN 1");
  bench.sends({.psn = 1, .ack = true, .service = Service::kUc});
  says(bench.complaint(), "AckReq");
}

TEST_CASE("datagrams to the NIC's own station are on no wire: their PSNs are left out (9.8.3, decisions 64)") {
  Bench bench(Service::kUd);
  const auto datagram = [](std::uint32_t psn) { return Build{.psn = psn, .service = Service::kUd}; };
  bench.sends(datagram(0));
  bench.sends(datagram(4));
  CHECK(bench.complaint() == "");
  bench.sends(datagram(3));
  says(bench.complaint(), "expected PSN 5");
  bench.sends(datagram(4));
  bench.sends(datagram(4));
  says(bench.complaint(), "expected PSN 5");
}

}  // namespace rnic::wire_check
