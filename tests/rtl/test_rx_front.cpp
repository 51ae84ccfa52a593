#include <Vrx_front.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include "driver/generated/host_interface.hpp"
#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/roce_frame.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/rx/rx_front.sv: which frames become packets, with which fields and payload. The judge below reads frames from the
// specification.
using namespace rnic::test;
using namespace rnic::rtl;
using rnic::hw::Counter;

namespace {
constexpr std::uint64_t kPortMac = 0x525400000001;
constexpr std::size_t kMaxPayload = 4096;
constexpr auto kAcknowledge = static_cast<std::uint8_t>(rnic::hw::RcOpcode::kAcknowledge);
constexpr auto kAtomicAcknowledge = static_cast<std::uint8_t>(rnic::hw::RcOpcode::kAtomicAcknowledge);

enum class Verdict { kGood, kNotRoce, kMalformed, kBadIcrc, kCongestion };

struct Packet {
  RxDesc desc;
  Bytes payload;
};
struct Judgement {
  Verdict verdict = Verdict::kNotRoce;
  Packet packet;
};

/// The MAC address of the group to which the IP packet at `ip` goes (RFC 1112 6.4, RFC 2464 7); 0: to none.
std::uint64_t group_mac(const Bytes& f, std::size_t ip, bool v6) {
  if (v6) return f[ip + 24] == 0xff ? 0x333300000000 | read_big(f, ip + 36, 4) : 0;
  return f[ip + 16] >> 4 == 0xe ? 0x01005e000000 | (read_big(f, ip + 16, 4) & 0x7fffff) : 0;
}

/// Bytes of payload that a packet of this opcode may have. An AtomicAckETH counts as payload; what a request or a Read
/// response has too much is for a queue pair to judge.
std::pair<std::size_t, std::size_t> payload_bounds(std::uint8_t opcode) {
  if (opcode == kCongestionNotification) return {0, 0};       // annex A17.9.3
  if (opcode == kAcknowledge) return {0, 0};                  // decisions 48
  if (opcode == kAtomicAcknowledge) return {8, kMaxPayload};  // 9.3.5.3
  return {0, kMaxPayload};
}

/// What becomes of a frame (annex A17, chapter 9), the buffer aside.
Judgement judge(Bytes f, bool err, std::uint64_t port_mac = kPortMac) {
  Judgement j;
  const auto real = f.size();
  f.resize(std::max<std::size_t>(real, 128));  // fields that are not there read as zero
  const auto dest = read_big(f, 0, 6);
  // One tag (IEEE 802.1Q 9): what is behind a second one, or one of another EtherType, is nobody's IP header.
  const bool tagged = read_big(f, 12, 2) == kVlan;
  const std::size_t ip = tagged ? 18 : 14;
  const auto tci = static_cast<std::uint16_t>(tagged ? read_big(f, 14, 2) : 0);
  const auto ethertype = read_big(f, ip - 2, 2);
  if (ethertype != 0x0800 && ethertype != 0x86DD) return j;
  const bool v6 = ethertype == 0x86DD;
  const bool to_group = dest != 0 && dest == group_mac(f, ip, v6);
  if (dest != port_mac && !to_group) return j;
  const std::size_t udp = ip + (v6 ? 40 : 20), bth = udp + 8;
  if (f[v6 ? ip + 6 : ip + 9] != 17 || read_big(f, udp + 2, 2) != 4791) return j;

  j.verdict = Verdict::kMalformed;
  const auto total = v6 ? 40 + read_big(f, ip + 4, 2) : read_big(f, ip + 2, 2);
  if (err || real < ip + total || total % 4 != 0) return j;
  if ((tci & 0xfff) == 0xfff) return j;  // 802.1Q 9.6: reserved
  if (f[ip] >> 4 != (v6 ? 6 : 4)) return j;
  if (!v6 &&
      ((f[ip] & 15) != 5 || (read_big(f, ip + 6, 2) & 0x3fff) != 0 || ipv4_checksum(std::span(f).subspan(ip)) != 0))
    return j;
  if (read_big(f, udp + 4, 2) + (v6 ? 40 : 20) != total) return j;
  const auto pad = static_cast<std::size_t>(f[bth + 1] >> 4 & 3);
  const int ext = extended_bytes(f[bth]);
  if (ext < 0 || (f[bth + 1] & 15) != 0) return j;
  const auto start = bth + 12 + static_cast<std::size_t>(ext);
  if (ip + total < start + pad + 4) return j;
  const auto length = ip + total - start - pad - 4;
  const auto [least, most] = payload_bounds(f[bth]);
  if (length < least || length > most) return j;

  j.verdict = Verdict::kBadIcrc;
  const auto crc_at = ip + total - 4;
  const auto crc = icrc(std::span(f).subspan(ip, total - 4));
  for (std::size_t i = 0; i < 4; ++i) {
    if (f[crc_at + i] != static_cast<std::uint8_t>(crc >> (8 * i))) return j;
  }
  // Annex A17.9.3: for the sender's congestion control, not for a queue pair's transport.
  j.verdict = f[bth] == kCongestionNotification ? Verdict::kCongestion : Verdict::kGood;
  if (j.verdict == Verdict::kCongestion) return j;
  auto& d = j.packet.desc;
  d.opcode = f[bth];
  d.solicited = f[bth + 1] >> 7;
  d.ack_req = f[bth + 8] >> 7;
  d.pkey = static_cast<std::uint16_t>(read_big(f, bth + 2, 2));
  d.dest_qpn = static_cast<std::uint32_t>(read_big(f, bth + 5, 3));
  d.psn = static_cast<std::uint32_t>(read_big(f, bth + 9, 3));
  d.multicast = to_group && (d.opcode == 0x64 || d.opcode == 0x65) && d.dest_qpn == 0xffffff;
  d.payload_length = static_cast<std::uint16_t>(length);
  const auto operation = d.opcode & 0x1f;
  if (d.opcode < 0x40 && (operation == 0x06 || operation == 0x0a || operation == 0x0b || d.opcode == 0x0c)) {
    d.va = read_big(f, bth + 12, 8);
    d.rkey = static_cast<std::uint32_t>(read_big(f, bth + 20, 4));
    d.dma_length = static_cast<std::uint32_t>(read_big(f, bth + 24, 4));
  }
  if (d.opcode == 0x64 || d.opcode == 0x65) {
    d.qkey = static_cast<std::uint32_t>(read_big(f, bth + 12, 4));
    d.source_qpn = static_cast<std::uint32_t>(read_big(f, bth + 17, 3));
    if (d.opcode == 0x65) d.immediate = static_cast<std::uint32_t>(read_big(f, bth + 20, 4));
  }
  if (d.opcode == 0x13 || d.opcode == 0x14) {
    d.va = read_big(f, bth + 12, 8);
    d.rkey = static_cast<std::uint32_t>(read_big(f, bth + 20, 4));
    d.swap_add = read_big(f, bth + 24, 8);
    d.compare = read_big(f, bth + 32, 8);
  }
  // RC and UC: with immediate data; RC: with invalidate. It is the last extended header.
  if (d.opcode < 0x40 && (operation == 0x03 || operation == 0x05 || operation == 0x09 || operation == 0x0b ||
                          operation == 0x16 || operation == 0x17)) {
    d.immediate = static_cast<std::uint32_t>(read_big(f, start - 4, 4));
  }
  if (d.opcode == 0x0d || (d.opcode >= 0x0f && d.opcode <= 0x12)) {
    d.syndrome = f[bth + 12];
    d.msn = static_cast<std::uint32_t>(read_big(f, bth + 13, 3));
  }
  d.ipv6 = v6;
  d.vlan = tagged;
  d.vlan_tci = tci;
  const auto header = f.begin() + static_cast<std::ptrdiff_t>(ip);
  if (v6) {
    std::copy_n(header + 8, 16, d.source_ip.begin());
    std::copy_n(header + 24, 16, d.dest_ip.begin());
  } else {
    for (auto* a : {&d.source_ip, &d.dest_ip}) (*a)[10] = (*a)[11] = 0xff;
    std::copy_n(header + 12, 4, d.source_ip.begin() + 12);
    std::copy_n(header + 16, 4, d.dest_ip.begin() + 12);
  }
  auto& payload = j.packet.payload;
  if (d.opcode == 0x64 || d.opcode == 0x65) {
    // A17.4.5.1: the IPv6 header, or 20 bytes that mean nothing (here zero) and the IPv4 header.
    payload.assign(v6 ? 0 : 20, 0);
    payload.insert(payload.end(), header, header + (v6 ? 40 : 20));
    d.payload_length = static_cast<std::uint16_t>(length + 40);
  }
  payload.insert(payload.end(), f.begin() + static_cast<std::ptrdiff_t>(start),
                 f.begin() + static_cast<std::ptrdiff_t>(start + length));
  return j;
}

struct Frame {
  Bytes bytes;
  bool err = false;
};

/// The block, a wire into it, and sinks that check what comes out against the judge.
struct Front : Agent {
  explicit Front(std::uint64_t seed_value) : bench(seed_value) {
    auto& dut = *bench.dut;
    dut.port_mac_i = kPortMac;
    dut.enable_i = 1;
    dut.eth_rx_valid_i = dut.desc_ready_i = dut.payload_ready_i = 0;
    bench.reset();
    bench.add(*this);
    bench.add(descs);
    bench.add(payloads);
  }

  /// Queues a frame and what is expected of it.
  Verdict send(Bytes bytes, bool err = false) {
    auto j = judge(bytes, err, port_mac);
    ++sent;
    ++verdicts[static_cast<std::size_t>(j.verdict)];
    if (j.verdict == Verdict::kGood) expected.push_back(std::move(j.packet));
    queue.push_back({std::move(bytes), err});
    return j.verdict;
  }

  void drive() override {
    auto& dut = *bench.dut;
    dut.eth_rx_valid_i = !queue.empty() && bench.chance(rate);
    FrameBeat beat;
    for (auto& b : beat.data) b = static_cast<std::uint8_t>(bench.rng());  // noise in unused lanes
    if (dut.eth_rx_valid_i) {
      const auto& frame = queue.front();
      const auto bytes = std::min<std::size_t>(64, frame.bytes.size() - at);
      std::copy_n(frame.bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes, beat.data.begin());
      beat.bytes = static_cast<std::uint8_t>(bytes);
      beat.last = at + 64 >= frame.bytes.size();
      beat.err = beat.last && frame.err;
      at += 64;
      if (beat.last) {
        queue.pop_front();
        at = 0;
      }
    }
    put(dut.eth_rx_data_i, beat);
  }
  void sample() override {
    for (std::size_t i = 0; i < counters.size(); ++i) counters[i] += port_bit(bench.dut->event_o, i);
  }

  std::uint64_t count(Counter c) const { return counters[static_cast<std::size_t>(c)]; }
  std::uint64_t& judged(Verdict v) { return verdicts[static_cast<std::size_t>(v)]; }

  /// Takes packets as they come and compares.
  void check() {
    bench.run_until([&] { return queue.empty(); }, 4000000, "frames in");
    bench.run_until([&] { return descs.items.size() == expected.size(); }, 400000, "packets out");
    bench.run(3000);
    compare();
    CHECK(count(Counter::kRxFrames) == sent);
    CHECK(count(Counter::kRxRoce) == judged(Verdict::kGood));
    CHECK(count(Counter::kRxNotRoce) == judged(Verdict::kNotRoce));
    CHECK(count(Counter::kRxMalformed) == judged(Verdict::kMalformed));
    CHECK(count(Counter::kRxBadIcrc) == judged(Verdict::kBadIcrc));
    CHECK(count(Counter::kRxCongestion) == judged(Verdict::kCongestion));
    CHECK(count(Counter::kRxOverflow) == 0);
  }
  void compare() {
    REQUIRE(descs.items.size() == expected.size());
    for (const auto& packet : expected) {
      REQUIRE(descs.items.front() == packet.desc);
      descs.items.pop_front();
      REQUIRE(take_payload(packet.payload.size()) == packet.payload);
    }
    REQUIRE(payloads.items.empty());
    expected.clear();
  }
  Bytes take_payload(std::size_t length) {
    Bytes got;
    while (length > 0) {
      REQUIRE_FALSE(payloads.items.empty());
      const auto beat = payloads.items.front();
      payloads.items.pop_front();
      REQUIRE(beat.err == 0);
      REQUIRE(beat.bytes == std::min<std::size_t>(64, length - got.size()));
      got.insert(got.end(), beat.data.begin(), beat.data.begin() + beat.bytes);
      REQUIRE(static_cast<bool>(beat.last) == (got.size() == length));
      if (beat.last) break;
    }
    return got;
  }

  Bench<Vrx_front> bench;
  Sink<RxDesc> descs{[this] { return bench.dut->desc_valid_o != 0; }, [this](bool r) { bench.dut->desc_ready_i = r; },
                     [this] { return get<RxDesc>(bench.dut->desc_data_o); }, bench.rng};
  Sink<PayloadBeat> payloads{[this] { return bench.dut->payload_valid_o != 0; },
                             [this](bool r) { bench.dut->payload_ready_i = r; },
                             [this] { return get<PayloadBeat>(bench.dut->payload_data_o); }, bench.rng};
  double rate = 1;
  std::uint64_t port_mac = kPortMac, sent = 0;
  std::deque<Frame> queue;
  std::size_t at = 0;
  std::deque<Packet> expected;
  std::array<std::uint64_t, 5> verdicts{};
  std::array<std::uint64_t, rnic::hw::kCounterNames.size()> counters{};
};

std::vector<std::uint8_t> known_opcodes() {
  std::vector<std::uint8_t> list;
  for (int opcode = 0; opcode < 256; ++opcode) {
    if (extended_bytes(static_cast<std::uint8_t>(opcode)) >= 0) list.push_back(static_cast<std::uint8_t>(opcode));
  }
  return list;
}

/// To a group and its MAC.
void to_group(RoceFields& f) {
  if (f.ipv6) {
    f.dest_ip[0] = 0xff;
  } else {
    f.dest_ip[12] = static_cast<std::uint8_t>(0xe0 | (f.dest_ip[12] & 15));
  }
  std::uint64_t last = 0;
  for (std::size_t i = 12; i < 16; ++i) last = last << 8 | f.dest_ip[i];
  f.dest_mac = f.ipv6 ? 0x333300000000 | last : 0x01005e000000 | (last & 0x7fffff);
}

/// PCP, DEI and VID of a tag; the reserved VID is another test's.
std::uint16_t random_tci(Front& t) {
  const auto vid = t.bench.chance(0.2) ? 0 : t.bench.uniform(0, 0xffe);
  return static_cast<std::uint16_t>(t.bench.uniform(0, 15) << 12 | vid);
}

RoceFields random_fields(Front& t, std::size_t max_payload) {
  static const auto opcodes = known_opcodes();
  RoceFields f;
  f.ipv6 = t.bench.chance(0.5);
  f.dest_mac = t.port_mac;
  f.source_mac = t.bench.uniform(0, 0xffffffffffff);
  for (auto& b : f.source_ip) b = static_cast<std::uint8_t>(t.bench.rng());
  for (auto& b : f.dest_ip) b = static_cast<std::uint8_t>(t.bench.rng());
  if (t.bench.chance(0.3)) to_group(f);
  f.traffic_class = static_cast<std::uint8_t>(t.bench.rng());
  f.hop_limit = static_cast<std::uint8_t>(t.bench.rng());
  f.flow_label = static_cast<std::uint32_t>(t.bench.uniform(0, 0xfffff));
  f.udp_source_port = static_cast<std::uint16_t>(t.bench.rng());
  f.pkey = static_cast<std::uint16_t>(t.bench.rng());
  f.opcode = opcodes[t.bench.uniform(0, opcodes.size() - 1)];
  f.solicited = t.bench.chance(0.5);
  f.ack_req = t.bench.chance(0.5);
  f.dest_qpn = static_cast<std::uint32_t>(t.bench.chance(0.2) ? 0xffffff : t.bench.uniform(0, 0xffffff));
  f.psn = static_cast<std::uint32_t>(t.bench.uniform(0, 0xffffff));
  f.ext.resize(static_cast<std::size_t>(extended_bytes(f.opcode)));
  for (auto& b : f.ext) b = static_cast<std::uint8_t>(t.bench.rng());
  f.payload.resize(
      t.bench.chance(0.2)
          ? 0
          : t.bench.uniform(0, t.bench.chance(0.7) ? std::min<std::size_t>(max_payload, 200) : max_payload));
  const auto [least, most] = payload_bounds(f.opcode);
  f.payload.resize(std::clamp(f.payload.size(), least, most));
  for (auto& b : f.payload) b = static_cast<std::uint8_t>(t.bench.rng());
  f.migreq = t.bench.chance(0.5);
  if (t.bench.chance(0.5)) f.vlan_tci = random_tci(t);
  return f;
}

/// Ethernet padding, or a trailer that switches leave behind.
Bytes padded(Front& t, Bytes frame) {
  if (frame.size() < 60) frame.resize(60);
  if (t.bench.chance(0.2))
    frame.resize(frame.size() + t.bench.uniform(1, 80), static_cast<std::uint8_t>(t.bench.rng()));
  return frame;
}

/// A tag in front of what follows the addresses.
void insert_tag(Bytes& frame, std::uint16_t ethertype, std::uint16_t tci) {
  Bytes tag;
  append_big(tag, ethertype, 2);
  append_big(tag, tci, 2);
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
}

/// A frame with one thing wrong (or, now and then, right all the same).
Frame mutilated(Front& t) {
  auto& bench = t.bench;
  auto f = random_fields(t, 600);
  // By broadcast it is not for us either (RFC 1122 3.3.6).
  f.dest_mac = bench.chance(0.95) ? t.port_mac : 0xffffffffffff;
  const std::size_t ip = f.vlan_tci ? 18 : 14, udp = ip + (f.ipv6 ? 40 : 20), bth = udp + 8;
  Frame result;
  auto& b = result.bytes;
  const auto kind = bench.uniform(0, 20);
  if (kind == 0) f.payload.resize(bench.uniform(kMaxPayload - 2, kMaxPayload + (bench.chance(0.7) ? 2 : 200)));
  if (kind == 1) f.ext.resize(bench.uniform(0, f.ext.size()) / 4 * 4);
  if (kind == 1) f.payload.clear();
  b = roce_frame(f);
  switch (kind) {
    case 2: b.resize(bench.uniform(1, b.size() - 1)); break;  // cut anywhere
    case 3: b[bench.uniform(0, b.size() - 1)] ^= static_cast<std::uint8_t>(1u << bench.uniform(0, 7)); break;
    case 4: result.err = true; break;
    case 5:
      b[bth] = static_cast<std::uint8_t>(bench.rng());
      repair(b);
      break;  // another opcode
    case 6:
      b[bth + 1] ^= static_cast<std::uint8_t>(bench.uniform(1, 3) << 4);
      repair(b);
      break;  // pad count
    case 7:
      b[bth + 1] |= static_cast<std::uint8_t>(bench.uniform(1, 15));
      repair(b);
      break;  // BTH version
    case 8:
      b[udp + 2 + bench.uniform(0, 1)] ^= static_cast<std::uint8_t>(1u << bench.uniform(0, 7));
      repair(b);
      break;  // port
    case 9:
      b[udp + 4 + bench.uniform(0, 1)] ^= static_cast<std::uint8_t>(1u << bench.uniform(0, 7));
      repair(b);
      break;  // UDP length
    case 10:  // IP length and UDP length, together: the frame is longer or shorter than both say
    {
      const auto delta = static_cast<int>(bench.uniform(0, 160)) - 80;
      const std::size_t ip_at = ip + (f.ipv6 ? 4 : 2);
      for (const auto field : {ip_at, udp + 4}) {
        const auto value = static_cast<std::uint16_t>(static_cast<int>(read_big(b, field, 2)) + delta);
        b[field] = static_cast<std::uint8_t>(value >> 8);
        b[field + 1] = static_cast<std::uint8_t>(value);
      }
      repair(b);
      break;
    }
    case 11:
      b[ip] ^= static_cast<std::uint8_t>(1u << bench.uniform(0, 7));
      repair(b);
      break;  // version, header length
    case 12:
      if (!f.ipv6) {
        b[ip + 6] ^= static_cast<std::uint8_t>(1u << bench.uniform(0, 7));
        repair(b);
      }
      break;  // flags, fragment offset
    case 13:
      if (!f.ipv6) {
        b[ip + 7] ^= static_cast<std::uint8_t>(1u << bench.uniform(0, 7));
        repair(b);
      }
      break;
    case 14:
      if (!f.ipv6) {
        b[ip + 10 + bench.uniform(0, 1)] ^= static_cast<std::uint8_t>(1u << bench.uniform(0, 7));
      }
      break;  // header checksum
    case 15: b[bench.uniform(0, ip - 1)] ^= static_cast<std::uint8_t>(1u << bench.uniform(0, 7)); break;  // Ethernet
    case 16:
      b[ip + (f.ipv6 ? 6 : 9)] = static_cast<std::uint8_t>(bench.rng());
      repair(b);
      break;  // protocol
    case 17:  // nothing but noise
      b.resize(bench.uniform(1, 700));
      for (auto& byte : b) byte = static_cast<std::uint8_t>(bench.rng());
      break;
    case 18: insert_tag(b, bench.chance(0.5) ? kVlan : 0x88a8, random_tci(t)); break;  // one more tag, or another kind
    case 19:
      if (f.vlan_tci) b[12 + bench.uniform(0, 1)] ^= static_cast<std::uint8_t>(1u << bench.uniform(0, 7));
      break;
    case 20:  // the reserved VID
      if (f.vlan_tci) b[14] |= 0x0f, b[15] = 0xff;
      break;
    default: break;
  }
  if (bench.chance(0.3)) b = padded(t, b);
  return result;
}

struct Capture {
  bool ipv6 = false;
  unsigned opcode = 0;
  Bytes frame;
};
std::vector<Capture> captures() {
  std::ifstream file("tests/vectors/soft_roce_frames.txt");
  if (!file) file.open(std::string(RNIC_SOURCE_DIR) + "/tests/vectors/soft_roce_frames.txt");
  std::vector<Capture> list;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string version, opcode, length, hex;
    words >> version >> opcode >> length >> hex;
    list.push_back(
        {version == "IPv6", static_cast<unsigned>(std::stoul(opcode.substr(3), nullptr, 16)), from_hex(hex)});
  }
  return list;
}
}  // namespace

TEST_CASE("rx_front: frames of Linux Soft-RoCE", "[rtl]") {
  Front t(seed());
  const auto list = captures();
  REQUIRE(list.size() == 17);
  for (const auto& capture : list) {
    t.port_mac = read_big(capture.frame, 0, 6);
    t.bench.dut->port_mac_i = t.port_mac;
    REQUIRE(t.send(capture.frame) == Verdict::kGood);
    t.bench.run_until([&] { return t.descs.items.size() == 1; }, 200, "packet");
    t.bench.run(100);
    const auto& d = t.descs.items.front();
    CHECK(d.opcode == capture.opcode);
    CHECK(d.ipv6 == capture.ipv6);
    CHECK(d.pkey == 0xffff);
    // Whole frame, headers and ICRC off.
    const unsigned grh = d.opcode >= 0x60 ? 40 : 0;
    CHECK((d.payload_length - grh + 3u) / 4 * 4 + 14u + (capture.ipv6 ? 40u : 20u) + 8 + 12 +
              static_cast<unsigned>(extended_bytes(d.opcode)) + 4 ==
          capture.frame.size());
    t.compare();
  }
  // By hand from the capture: SEND Only of 16 bytes and WRITE First of 1024.
  CHECK(judge(list[2].frame, false).packet.desc.dest_qpn == 0x14);
  CHECK(judge(list[2].frame, false).packet.desc.psn == 0x537a2e);
  CHECK(judge(list[3].frame, false).packet.desc.va == 0x000055d7a6513388);
  CHECK(judge(list[3].frame, false).packet.desc.rkey == 0x0000051b);
  CHECK(judge(list[3].frame, false).packet.desc.dma_length == 0x1388);
  // FETCH & ADD of 1, and its answer.
  const auto with_opcode = [&](unsigned opcode) {
    return *std::find_if(list.begin(), list.end(), [&](const Capture& c) { return c.opcode == opcode; });
  };
  const auto add = judge(with_opcode(0x14).frame, false).packet.desc;
  CHECK(add.va == 0x0000563891208000);
  CHECK(add.rkey == 0x8f2);
  CHECK(add.swap_add == 1);
  CHECK(add.compare == 0);
  const auto answer = with_opcode(0x12).frame;
  CHECK(judge(answer, false, read_big(answer, 0, 6)).packet.payload == from_hex("dffadebdcd70943c"));
}

TEST_CASE("rx_front: any flipped bit that the ICRC covers drops the frame, any other does not harm", "[rtl]") {
  Front t(seed(2));
  std::uint64_t dropped = 0;
  for (const auto& capture : captures()) {
    if (capture.frame.size() > 140) continue;
    t.port_mac = read_big(capture.frame, 0, 6);
    t.bench.dut->port_mac_i = t.port_mac;
    for (std::size_t bit = 0; bit < 8 * capture.frame.size(); ++bit) {
      auto frame = capture.frame;
      frame[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
      const auto verdict = t.send(frame);
      if (verdict != Verdict::kGood) ++dropped;
      // What may change without notice: source MAC, and the fields that routers change (IPv4: they break the header
      // checksum instead).
      const auto byte = bit / 8;
      const bool free =
          (byte >= 6 && byte < 12) || (capture.ipv6 ? (byte == 14 && bit % 8 < 4) || (byte >= 15 && byte <= 17) ||
                                                          byte == 21 || byte == 60 || byte == 61 || byte == 66
                                                    : byte == 40 || byte == 41 || byte == 46);
      REQUIRE((verdict == Verdict::kGood) == free);
    }
    t.check();
  }
  CHECK(dropped > 5000);
}

TEST_CASE("rx_front: random packets of every opcode", "[rtl]") {
  Front t(seed(3));
  for (const double rate : {1.0, 0.6}) {
    t.rate = rate;
    t.descs.rate = t.payloads.rate = 0.9;
    for (int i = 0; i < 400; ++i) {
      const auto fields = random_fields(t, kMaxPayload);
      REQUIRE(t.send(padded(t, roce_frame(fields))) ==
              (fields.opcode == kCongestionNotification ? Verdict::kCongestion : Verdict::kGood));
    }
    t.check();
  }
}

TEST_CASE("rx_front: a group has the MAC address of its own, and a frame that differs in a bit of it is not for us",
          "[rtl]") {
  Front t(seed(9));
  unsigned groups = 0;
  for (int i = 0; i < 3000; ++i) {
    auto f = random_fields(t, 100);
    to_group(f);
    if (t.bench.chance(0.5)) f.opcode = 0x64, f.ext.resize(8), f.dest_qpn = 0xffffff;
    const auto right = roce_frame(f);
    groups += judge(right, false).packet.desc.multicast;
    if (t.bench.chance(0.3)) f.dest_mac ^= std::uint64_t{1} << t.bench.uniform(0, 47);
    if (t.bench.chance(0.3)) f.dest_ip[f.ipv6 ? 0 : 12] ^= static_cast<std::uint8_t>(1u << t.bench.uniform(0, 7));
    if (t.bench.chance(0.1)) f.dest_mac = kPortMac;
    t.send(padded(t, roce_frame(f)));
  }
  t.check();
  CHECK(groups > 500);
  CHECK(t.judged(Verdict::kNotRoce) > 500);
}

TEST_CASE("rx_front: a tag is one of 0x8100, with any priority and any VID but the reserved one", "[rtl]") {
  Front t(seed(11));
  for (const bool ipv6 : {false, true}) {
    auto f = random_fields(t, 100);
    f.ipv6 = ipv6;
    f.dest_mac = t.port_mac;
    f.opcode = 0x04;
    f.ext.clear();
    f.vlan_tci.reset();
    const auto untagged = roce_frame(f);
    for (unsigned vid = 0; vid < 0x1000; vid += vid < 4 || vid > 0xff8 ? 1 : 61) {
      for (unsigned priority = 0; priority < 16; ++priority) {
        auto frame = untagged;
        insert_tag(frame, kVlan, static_cast<std::uint16_t>(priority << 12 | vid));
        CHECK(t.send(padded(t, frame)) == (vid == 0xfff ? Verdict::kMalformed : Verdict::kGood));
      }
    }
    for (const std::uint16_t ethertype : std::array<std::uint16_t, 4>{0x88a8, 0x9100, 0x8101, 0x0081}) {
      auto frame = untagged;
      insert_tag(frame, ethertype, 5);
      CHECK(t.send(padded(t, frame)) == Verdict::kNotRoce);
      insert_tag(frame, kVlan, 6);
      CHECK(t.send(padded(t, frame)) == Verdict::kNotRoce);
    }
    auto twice = untagged;
    insert_tag(twice, kVlan, 5);
    insert_tag(twice, kVlan, 6);
    CHECK(t.send(padded(t, twice)) == Verdict::kNotRoce);
    t.check();
  }
}

TEST_CASE("rx_front: frames that end anywhere in their headers, with a tag and without", "[rtl]") {
  Front t(seed(12));
  for (const bool tagged : {false, true}) {
    auto f = random_fields(t, 300);
    f.payload.resize(300);
    f.opcode = 0x04;
    f.ext.clear();
    f.vlan_tci.reset();
    if (tagged) f.vlan_tci = 0x2005;
    const auto frame = roce_frame(f);
    for (std::size_t bytes = 1; bytes <= frame.size(); ++bytes) {
      t.send(Bytes(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(bytes)));
      t.send(frame);
    }
    t.check();
  }
}

TEST_CASE("rx_front: mutilated frames never disturb their neighbours", "[rtl]") {
  Front t(seed(4));
  for (const double rate : {1.0, 0.5}) {
    t.rate = rate;
    for (int i = 0; i < 3000; ++i) {
      auto bad = mutilated(t);
      t.send(std::move(bad.bytes), bad.err);
      if (t.bench.chance(0.5)) t.send(padded(t, roce_frame(random_fields(t, 300))));
    }
    t.check();
  }
  for (const auto n : t.verdicts) CHECK(n > 50);
  // Oversized: far more bytes than any packet has, in front of a good frame.
  auto huge = roce_frame(random_fields(t, 300));
  huge.resize(20000, 0x55);
  t.send(huge);
  auto f = random_fields(t, 0);
  f.payload.resize(9000);
  t.send(roce_frame(f));
  t.send(roce_frame(random_fields(t, 300)));
  t.check();
}

TEST_CASE("rx_front: a congestion notification is counted as one and goes no further", "[rtl]") {
  Front t(seed(8));
  for (const bool ipv6 : {false, true}) {
    RoceFields f;
    f.ipv6 = ipv6;
    f.dest_mac = t.port_mac;
    f.opcode = kCongestionNotification;
    f.dest_qpn = 0x12;
    f.ext.resize(16);
    CHECK(t.send(padded(t, roce_frame(f))) == Verdict::kCongestion);
    // Too short and too long: not what annex A17.9.3 describes.
    for (const std::size_t bytes : {0u, 12u, 20u}) {
      f.ext.resize(bytes);
      CHECK(t.send(padded(t, roce_frame(f))) == Verdict::kMalformed);
    }
    f.ext.resize(16);
    auto broken = roce_frame(f);
    broken.back() ^= 1;
    CHECK(t.send(broken) == Verdict::kBadIcrc);
    t.check();
  }
  CHECK(t.count(Counter::kRxCongestion) == 2);
}

TEST_CASE("rx_front: an acknowledge packet has its AETH and nothing behind it, an atomic one all of its AtomicAckETH",
          "[rtl]") {
  Front t(seed(10));
  for (const bool ipv6 : {false, true}) {
    RoceFields f;
    f.ipv6 = ipv6;
    f.dest_mac = t.port_mac;
    f.dest_qpn = 0x12;
    f.ext.resize(4);
    const auto verdict = [&](std::uint8_t opcode, std::size_t payload) {
      f.opcode = opcode;
      f.payload.assign(payload, 0x5a);
      return t.send(padded(t, roce_frame(f)));
    };
    // ACK, RNR NAK, NAK sequence error, NAK remote access error
    for (const std::uint8_t syndrome : std::array<std::uint8_t, 4>{0x1f, 0x20, 0x60, 0x62}) {
      f.ext[0] = syndrome;
      CHECK(verdict(kAcknowledge, 0) == Verdict::kGood);
      for (const std::size_t bytes : {1u, 3u, 4u, 8u, 64u, 4096u})
        CHECK(verdict(kAcknowledge, bytes) == Verdict::kMalformed);
    }
    for (const std::size_t bytes : {0u, 1u, 4u, 7u}) CHECK(verdict(kAtomicAcknowledge, bytes) == Verdict::kMalformed);
    for (const std::size_t bytes : {8u, 12u, 256u}) CHECK(verdict(kAtomicAcknowledge, bytes) == Verdict::kGood);
    // Without an AETH
    f.ext.clear();
    CHECK(verdict(kAcknowledge, 0) == Verdict::kMalformed);
    t.check();
  }
}

TEST_CASE("rx_front: nothing comes in while disabled, and enabling waits for a new frame", "[rtl]") {
  Front t(seed(5));
  t.bench.dut->enable_i = 0;
  auto f = random_fields(t, 0);
  f.payload.resize(1000);
  t.queue.push_back({roce_frame(f), false});
  t.bench.run(5);
  t.bench.dut->enable_i = 1;
  t.send(roce_frame(random_fields(t, 300)));
  t.check();
}

TEST_CASE("rx_front: overflow drops whole frames, and the buffer is as large as promised", "[rtl]") {
  Front t(seed(6));
  // Small packets: descriptors run out first. Large packets: payload does.
  for (const std::size_t payload : {std::size_t{8}, std::size_t{4096}, std::size_t{0}}) {
    t.descs.rate = t.payloads.rate = 0;
    const auto overflow_before = t.count(Counter::kRxOverflow), roce_before = t.count(Counter::kRxRoce);
    const std::size_t fits = payload == 4096 ? 128 * 1024 / payload : 2048;
    const std::size_t frames = fits + 40;
    std::vector<Packet> packets;
    for (std::size_t i = 0; i < frames; ++i) {
      auto f = random_fields(t, 0);
      const auto takes = [&](std::uint8_t opcode) {
        const auto [least, most] = payload_bounds(opcode);
        return opcode < 0x60 && payload >= least && payload <= most;  // that of a datagram is longer by its GRH
      };
      while (!takes(f.opcode)) f = random_fields(t, 0);
      f.payload.resize(payload);
      for (auto& b : f.payload) b = static_cast<std::uint8_t>(t.bench.rng());
      const auto frame = roce_frame(f);
      packets.push_back(judge(frame, false).packet);
      t.queue.push_back({frame, false});
    }
    t.bench.run_until([&] { return t.queue.empty(); }, 1000000, "frames in");
    t.bench.run(20);
    const auto kept = t.count(Counter::kRxRoce) - roce_before;
    CHECK(kept >= fits);
    CHECK(kept + t.count(Counter::kRxOverflow) - overflow_before == frames);
    CHECK(kept < frames);
    // Once there is room again, so it goes on.
    t.descs.rate = t.payloads.rate = 1;
    t.bench.run(30000);
    REQUIRE(t.descs.items.size() == kept);
    t.expected.assign(packets.begin(), packets.begin() + static_cast<std::ptrdiff_t>(kept));
    t.compare();
    t.expected.clear();
    const auto frame = roce_frame(random_fields(t, 300));
    t.send(frame);
    t.bench.run(200);
    t.compare();
  }
}

TEST_CASE("rx_front: latency, and a small packet in every cycle", "[rtl]") {
  Front t(seed(7));
  auto f = random_fields(t, 0);
  f.ipv6 = false;
  f.opcode = 0x11;
  f.ext = aeth(0x1f, 1);
  f.payload.clear();
  f.vlan_tci.reset();
  const auto frame = roce_frame(f);
  REQUIRE(frame.size() == 62);
  t.send(frame);
  auto from = t.bench.cycle;
  t.bench.run_until([&] { return t.bench.dut->desc_valid_o != 0; }, 50, "packet");
  std::printf("last beat of a frame to its descriptor: %d cycles\n", static_cast<int>(t.bench.cycle - from));
  CHECK(t.bench.cycle - from <= 12);
  t.bench.run(10);
  t.compare();
  constexpr int kPackets = 500;
  for (int i = 0; i < kPackets; ++i) t.send(frame);
  from = t.bench.cycle;
  t.bench.run_until([&] { return t.descs.items.size() == kPackets; }, 20000, "packets");
  std::printf("ACKs: %.2f cycles a packet\n", static_cast<double>(t.bench.cycle - from) / kPackets);
  CHECK(t.bench.cycle - from <= kPackets + 20);
  t.check();
}
