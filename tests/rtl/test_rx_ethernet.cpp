#include <Vrx_ethernet.h>

#include <deque>

#include "driver/generated/host_interface.hpp"
#include "testbench/generated/rtl_streams.hpp"
#include "tests/rtl/rx_models.hpp"
#include "tests/support/ip_checksums.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/rx/rx_ethernet.sv between a wire that nothing stops, a front end that says late what each frame was, and a
// receive engine that takes its time: which frames are received, whole and in order (host_interface.md, Ethernet).
using namespace rnic;
using namespace rnic::test;

namespace {
constexpr std::uint64_t kPortMac = 0x525400000001, kOtherMac = 0x525400000002, kBroadcast = 0xffffffffffff;
constexpr std::uint64_t kGroupMac = 0x01005e010203, kGroupMac6 = 0x3333ff000001;

/// Bit of PortGroups, by the polynomial of IEEE 802.3 clause 3.2.9, a bit at a time.
unsigned group_bit(std::uint64_t mac) {
  std::uint32_t crc = 0xffffffff;
  for (int byte = 5; byte >= 0; --byte) {
    for (int bit = 0; bit < 8; ++bit) {
      const bool in = mac >> (8 * byte + bit) & 1;
      const bool out = crc >> 31;
      crc = crc << 1 ^ (in != out ? 0x04c11db7u : 0u);
    }
  }
  return crc >> 26;
}

struct Frame {
  Bytes bytes;
  bool other = true;  ///< What rx_front says
  bool err = false;
};

struct World : Agent {
  explicit World(std::uint64_t value) : bench(value) {
    auto& dut = *bench.dut;
    dut.port_mac_i = kPortMac;
    dut.enable_i = 1;
    dut.eth_rx_valid_i = dut.other_valid_i = 0;
    set({});
    for (Agent* agent : std::initializer_list<Agent*>{&descs, &payload, this}) bench.add(*agent);
    bench.reset();
  }
  void set(rtl::Ethernet value) {
    ethernet = value;
    put(bench.dut->ethernet_i, ethernet);
  }
  Frame frame(std::uint64_t dest, std::size_t size, std::uint64_t source = kOtherMac) {
    Frame made{random_bytes(bench.rng, size)};
    for (std::size_t i = 0; i < 6 && i < size; ++i) made.bytes[i] = static_cast<std::uint8_t>(dest >> (8 * (5 - i)));
    for (std::size_t i = 0; i < 6 && 6 + i < size; ++i)
      made.bytes[6 + i] = static_cast<std::uint8_t>(source >> (8 * (5 - i)));
    return made;
  }
  /// Whether the documents say that it is received.
  [[nodiscard]] bool wanted(const Frame& f) const {
    if (!ethernet.enable || !f.other || f.err || f.bytes.size() < 14) return false;
    std::uint64_t dest = 0, source = 0;
    for (std::size_t i = 0; i < 6; ++i) dest = dest << 8 | f.bytes[i], source = source << 8 | f.bytes[6 + i];
    const bool group = dest >> 40 & 1;
    if (group && source == kPortMac) return false;
    if (dest == kPortMac || dest == kBroadcast || ethernet.promiscuous) return true;
    return group && (ethernet.all_groups || (ethernet.groups >> group_bit(dest) & 1));
  }
  void send(Frame f) {
    if (wanted(f) && f.bytes.size() > hw::kMaxFrameBytes) ++too_long;
    if (wanted(f) && f.bytes.size() <= hw::kMaxFrameBytes) expected.push_back(f.bytes);
    wire.push_back(std::move(f));
  }
  void drive() override {
    auto& dut = *bench.dut;
    ++now;
    dut.eth_rx_valid_i = 0;
    if (!wire.empty() && (bench.chance(wire_rate) || at != 0)) {
      auto& f = wire.front();
      rtl::FrameBeat beat;
      beat.bytes = static_cast<std::uint8_t>(std::min<std::size_t>(64, f.bytes.size() - at));
      for (auto& byte : beat.data) byte = static_cast<std::uint8_t>(bench.rng());
      std::copy_n(f.bytes.begin() + static_cast<std::ptrdiff_t>(at), beat.bytes, beat.data.begin());
      at += 64;
      beat.last = at >= f.bytes.size();
      beat.err = beat.last && f.err;
      dut.eth_rx_valid_i = 1;
      put(dut.eth_rx_data_i, beat);
      if (beat.last) {
        const auto due = std::max(now + bench.uniform(1, 14), verdicts.empty() ? 0 : verdicts.back().due + 1);
        verdicts.push_back({std::min(due, now + 14), f.other});
        wire.pop_front();
        at = 0;
      }
    }
    const bool told = !verdicts.empty() && verdicts.front().due <= now;
    dut.other_valid_i = told;
    dut.other_i = told ? verdicts.front().other : bench.chance(0.5);
    if (told) verdicts.pop_front();
  }
  void sample() override {
    taken += bench.dut->taken_o;
    lost += bench.dut->lost_o;
  }
  void drain() {
    bench.run_until([&] { return wire.empty() && verdicts.empty() && !bench.dut->busy_o; }, 1000000, "all frames");
    bench.run(5);
  }
  /// What has left, frame by frame.
  std::vector<Bytes> received() {
    std::vector<Bytes> frames;
    Bytes bytes;
    for (const auto& beat : payload.items) {
      bytes.insert(bytes.end(), beat.data.begin(), beat.data.begin() + beat.bytes);
      if (!beat.last) continue;
      frames.push_back(std::move(bytes));
      bytes.clear();
    }
    REQUIRE(bytes.empty());
    REQUIRE(frames.size() == descs.items.size());
    for (std::size_t i = 0; i < frames.size(); ++i) {
      rtl::RxDesc want;
      want.opcode = 0x44;  // of the range that BTH opcodes leave to RD (9.2.1, table 38)
      want.dest_qpn = ethernet.qpn;
      want.payload_length = static_cast<std::uint16_t>(frames[i].size());
      const auto sums = IpChecksums::of(frames[i]);
      want.l3_ok = sums.l3_ok;
      want.l4_ok = sums.l4_ok;
      REQUIRE(descs.items[i] == want);
    }
    return frames;
  }

  struct Verdict {
    std::uint64_t due;
    bool other;
  };
  Bench<Vrx_ethernet> bench;
  Sink<rtl::RxDesc> descs{[this] { return bench.dut->desc_valid_o != 0; },
                          [this](bool r) { bench.dut->desc_ready_i = r; },
                          [this] { return get<rtl::RxDesc>(bench.dut->desc_data_o); }, bench.rng};
  Sink<rtl::PayloadBeat> payload{[this] { return bench.dut->payload_valid_o != 0; },
                                 [this](bool r) { bench.dut->payload_ready_i = r; },
                                 [this] { return get<rtl::PayloadBeat>(bench.dut->payload_data_o); }, bench.rng};
  rtl::Ethernet ethernet;
  std::deque<Frame> wire;
  std::deque<Verdict> verdicts;
  std::vector<Bytes> expected;
  double wire_rate = 1.0;
  std::uint64_t now = 0, taken = 0, lost = 0, too_long = 0;
  std::size_t at = 0;
};

rtl::Ethernet to(std::uint32_t qpn) {
  rtl::Ethernet value;
  value.qpn = qpn;
  value.enable = 1;
  return value;
}
}  // namespace

TEST_CASE("rx_ethernet: frames that pass the filter are received, whole and in order", "[rtl]") {
  World w(seed(3));
  auto ethernet = to(0x123456);
  ethernet.groups = 1ull << group_bit(kGroupMac);
  ethernet.all_groups = GENERATE(0, 1);
  ethernet.promiscuous = GENERATE(0, 1);
  w.set(ethernet);
  w.wire_rate = GENERATE(1.0, 0.2);
  w.descs.rate = w.payload.rate = 0.95;
  const std::array dests{kPortMac, kOtherMac, kBroadcast, kGroupMac, kGroupMac6};
  for (int i = 0; i < 1500; ++i) {
    const auto size = w.bench.chance(0.1)   ? w.bench.uniform(1, 60)
                      : w.bench.chance(0.1) ? w.bench.uniform(60, 4100)
                                            : w.bench.uniform(60, 200);
    auto f = w.frame(dests[w.bench.uniform(0, dests.size() - 1)], size, w.bench.chance(0.2) ? kPortMac : kOtherMac);
    f.other = w.bench.chance(0.8);
    f.err = w.bench.chance(0.05);
    w.send(std::move(f));
    if (i % 100 == 99) w.drain();  // the buffer holds what comes at once
  }
  w.drain();
  REQUIRE(w.received() == w.expected);
  REQUIRE(w.taken == w.expected.size());
  REQUIRE(w.lost == w.too_long);
  REQUIRE(!w.expected.empty());
}

TEST_CASE("rx_ethernet: what the checksums of each frame are goes with it", "[rtl]") {
  World w(seed(7));
  auto ethernet = to(0x222222);
  ethernet.promiscuous = 1;
  w.set(ethernet);
  w.wire_rate = GENERATE(1.0, 0.3);
  w.descs.rate = w.payload.rate = 0.9;
  std::size_t l3_ok = 0, l4_ok = 0;
  for (int i = 0; i < 3000; ++i) {
    Frame f{IpChecksums::random_frame(w.bench.rng, w.bench.chance(0.9) ? 130 : 1518)};
    const auto header = w.frame(kOtherMac, 12).bytes;
    std::copy(header.begin(), header.end(), f.bytes.begin());
    f.other = w.bench.chance(0.7);
    f.err = w.bench.chance(0.05);
    if (w.wanted(f)) l3_ok += IpChecksums::of(f.bytes).l3_ok, l4_ok += IpChecksums::of(f.bytes).l4_ok;
    w.send(std::move(f));
    if (i % 100 == 99) w.drain();
  }
  w.drain();
  REQUIRE(w.received() == w.expected);
  CHECK(l3_ok > 200);
  CHECK(l4_ok > 300);
}

TEST_CASE("rx_ethernet: nobody receives while PortEthernet is not enabled", "[rtl]") {
  World w(seed(4));
  auto ethernet = to(5);
  ethernet.enable = 0;
  ethernet.promiscuous = 1;
  w.set(ethernet);
  for (int i = 0; i < 50; ++i) w.send(w.frame(kPortMac, 100));
  w.drain();
  REQUIRE(w.received().empty());
  REQUIRE(w.lost == 0);
}

TEST_CASE("rx_ethernet: the longest frame is received, a longer one is lost and counted", "[rtl]") {
  World w(seed(5));
  w.set(to(5));
  for (std::size_t size : {hw::kMaxFrameBytes + 0u, hw::kMaxFrameBytes + 1u, 9000u, 20000u, 60u, 4032u, 4096u}) {
    w.send(w.frame(kPortMac, size));
  }
  w.drain();
  REQUIRE(w.received() == w.expected);
  REQUIRE(w.lost == 3);
}

TEST_CASE("rx_ethernet: what does not fit is lost whole, and counted", "[rtl]") {
  const auto size = GENERATE(60u, 1514u, 4096u);
  World w(seed(size));
  w.set(to(77));
  w.descs.rate = w.payload.rate = 0;
  for (int i = 0; i < 1000; ++i) w.send(w.frame(kPortMac, size));
  w.bench.run_until([&] { return w.wire.empty() && w.verdicts.empty(); }, 100000, "all frames");
  w.bench.run(100);
  w.descs.rate = w.payload.rate = 1;
  w.drain();
  REQUIRE(w.taken + w.lost == 1000);
  // 64 KiB and 512 frames, and what the registers behind them hold.
  const auto room = std::min<std::size_t>(512, 65536 / ((size + 63) / 64 * 64));
  REQUIRE(w.taken >= room);
  REQUIRE(w.taken <= room + 2);
  const auto got = w.received();
  REQUIRE(std::equal(got.begin(), got.end(), w.expected.begin()));
  // And those that come behind are received again.
  w.expected.clear();
  w.descs.items.clear();
  w.payload.items.clear();
  for (int i = 0; i < 5; ++i) w.send(w.frame(kPortMac, size));
  w.drain();
  REQUIRE(w.received() == w.expected);
}

TEST_CASE("rx_ethernet: a frame that begins while the device is not enabled is ignored", "[rtl]") {
  World w(seed(6));
  w.set(to(1));
  w.bench.dut->enable_i = 0;
  auto& dut = *w.bench.dut;
  rtl::FrameBeat beat;
  for (std::size_t i = 0; i < 6; ++i) beat.data[i] = static_cast<std::uint8_t>(kPortMac >> (8 * (5 - i)));
  beat.bytes = 64;
  for (int line = 0; line < 2; ++line) {
    dut.eth_rx_valid_i = 1;
    beat.last = line == 1;
    put(dut.eth_rx_data_i, beat);
    w.bench.tick(false);
    dut.enable_i = 1;  // in the middle of it
  }
  w.send(w.frame(kPortMac, 300));
  w.drain();
  REQUIRE(w.received() == w.expected);
}
