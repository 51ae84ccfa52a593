#include <Vdma_write.h>

#include "tests/support/dma_host.hpp"

// rtl/pcie/dma_write.sv: every byte once, legal TLPs, a request never interleaved with another, done with its last
// beat, full rate. Built with -GClients=6, as in the NIC.
using namespace rnic;
using namespace rnic::test;

namespace {
constexpr int kClients = 6;

struct Request {
  std::uint64_t addr = 0;
  std::uint32_t length = 0;
  std::vector<std::array<std::uint8_t, 64>> lines;
};

struct Clients : Agent {
  explicit Clients(Bench<Vdma_write>& b) : bench(b) {
    bench.add(*this);
    bench.dut->max_lines_i = 4;
    bench.dut->wr_valid_i = 0;
    bench.dut->tlp_ready_i = 0;
    bench.reset();
    bench.tick();
  }
  void ask(int client, std::uint64_t low, std::uint32_t length) {
    Request r{(static_cast<std::uint64_t>(client) << 60) + (sequence++ << 16) + low, length, {}};
    for (std::uint64_t at = r.addr & ~63ull; at < r.addr + length; at += 64) {
      r.lines.emplace_back();
      for (auto& byte : r.lines.back()) byte = static_cast<std::uint8_t>(bench.uniform(0, 255));
    }
    to_send[client].push_back(r);
  }
  void drive() override {
    std::uint32_t valid = 0;
    for (int c = 0; c < kClients; ++c) {
      if (!offering[c] && !to_send[c].empty() && bench.chance(rate)) {
        const auto& r = to_send[c].front();
        rtl::DmaWr w{r.addr, static_cast<std::uint16_t>(r.length), r.lines[line[c]], line[c] + 1 == r.lines.size()};
        put_slice(bench.dut->wr_data_i, static_cast<std::size_t>(c), w);
        offering[c] = true;
      }
      valid |= static_cast<std::uint32_t>(offering[c]) << c;
    }
    bench.dut->wr_valid_i = valid;
    bench.dut->tlp_ready_i = bench.chance(tlp_rate);
  }
  void sample() override {
    auto& dut = *bench.dut;
    for (int c = 0; c < kClients; ++c) {
      if (!offering[c] || !(dut.wr_ready_o >> c & 1)) continue;
      offering[c] = false;
      if (++line[c] == to_send[c].front().lines.size()) {
        line[c] = 0;
        sent[c].push_back(to_send[c].front());
        to_send[c].pop_front();
      }
    }
    if (dut.tlp_valid_o && dut.tlp_ready_i) beat();
  }
  /// A beat at the output: bytes by byte enables, against the request under way.
  void beat() {
    auto& dut = *bench.dut;
    const auto h = get<rtl::DmaReqHdr>(dut.tlp_hdr_o);
    REQUIRE(h.tlp_type == static_cast<std::uint8_t>(rtl::TlpType::kMemWrite));
    const auto range = check_request(h, 64u * dut.max_lines_i);
    if (tlp_beats == 0) {
      tlp_hdr = h;
      const int c = static_cast<int>(range.addr >> 60);
      if (written == 0) current = c;
      REQUIRE(c == current);
      ++tlps;
    }
    REQUIRE(h == tlp_hdr);
    const auto& r = !sent[current].empty() ? sent[current].front() : to_send[current].front();
    if (tlp_beats == 0) REQUIRE(range.addr == r.addr + written);
    const std::uint64_t base = (range.addr & ~63ull) + 64 * tlp_beats++;
    const auto& expect = r.lines[(base - (r.addr & ~63ull)) / 64];
    std::array<std::uint8_t, 64> data;
    port_to_bytes(dut.tlp_data_o, data);
    for (std::uint64_t a = std::max(base, range.addr); a < std::min(base + 64, range.addr + range.bytes);
         ++a, ++written) {
      REQUIRE(data[a - base] == expect[a - base]);
    }
    REQUIRE(dut.tlp_last_o == (base + 64 >= range.addr + range.bytes));
    const bool end = written == r.length;
    REQUIRE(dut.tlp_done_o == (end ? 1u << current : 0u));
    if (dut.tlp_last_o) tlp_beats = 0;
    ++beats;
    if (end) {
      REQUIRE(dut.tlp_last_o == 1);
      sent[current].pop_front();
      ++done[current];
      written = 0;
    }
  }
  bool idle() const {
    for (int c = 0; c < kClients; ++c) {
      if (!to_send[c].empty() || !sent[c].empty()) return false;
    }
    return true;
  }

  Bench<Vdma_write>& bench;
  std::array<std::deque<Request>, kClients> to_send, sent;
  std::array<bool, kClients> offering{};
  std::array<std::size_t, kClients> line{};
  std::array<std::uint64_t, kClients> done{};
  rtl::DmaReqHdr tlp_hdr;
  std::uint64_t sequence = 1, tlps = 0, beats = 0, tlp_beats = 0;
  std::uint32_t written = 0;
  int current = 0;
  double rate = 1.0, tlp_rate = 1.0;
};
}  // namespace

TEST_CASE("dma_write: random requests at every maximum payload", "[rtl]") {
  for (const unsigned lines : {2u, 4u, 8u, 16u, 32u, 64u}) {
    Bench<Vdma_write> bench(seed(lines));
    Clients clients(bench);
    bench.dut->max_lines_i = static_cast<std::uint8_t>(lines);
    bench.run(2);
    clients.rate = lines == 4 ? 0.6 : 0.95;
    clients.tlp_rate = lines == 2 ? 0.7 : 0.95;
    for (int i = 0; i < 150; ++i) {
      for (int c = 0; c < kClients; ++c) {
        clients.ask(c, bench.uniform(0, 8191),
                    static_cast<std::uint32_t>(bench.uniform(1, bench.chance(0.5) ? 200 : 4096)));
      }
    }
    bench.run_until([&] { return clients.idle(); }, 60000, "end of all requests");
    for (auto done : clients.done) CHECK(done == 150);
  }
}

TEST_CASE("dma_write: every small length at every offset", "[rtl]") {
  Bench<Vdma_write> bench(seed());
  Clients clients(bench);
  for (std::uint32_t offset = 0; offset < 8; ++offset) {
    for (std::uint32_t length = 1; length <= 12; ++length) {
      clients.ask(0, 64 + offset, length);
      clients.ask(1, 4096 - 8 + offset, length);  // across 4 KiB
      clients.ask(2, 248 + offset, length);       // across a maximum payload
    }
  }
  bench.run_until([&] { return clients.idle(); }, 5000, "end of all requests");
}

TEST_CASE("dma_write: a line a cycle, clients in turn", "[rtl]") {
  Bench<Vdma_write> bench(seed());
  Clients clients(bench);
  for (int i = 0; i < 20; ++i) {
    for (int c = 0; c < kClients; ++c) clients.ask(c, 0, 4096);
  }
  bench.run_until([&] { return clients.beats == 1; }, 10, "first beat");
  const auto start = bench.cycle;
  bench.run_until([&] { return clients.idle(); }, 20 * kClients * 64 + 20, "end of all requests");
  CHECK(bench.cycle - start == 20 * kClients * 64 - 1);
  CHECK(clients.tlps == 20 * kClients * 16);
  for (int i = 0; i < 100; ++i) {
    for (int c = 0; c < kClients; ++c) clients.ask(c, 0, 64);
  }
  bench.run_until([&] { return clients.done[0] == 70; }, 1000, "single lines");
  for (auto done : clients.done) CHECK(done >= 69);
}
