#include <Vdma_read.h>

#include <set>

#include "tests/support/dma_host.hpp"

// rtl/pcie/dma_read.sv: every byte of every request once and in order, legal TLPs, errors, time-outs, independence of
// clients, rate. Built with -GClients=6 -GPayload=5, as in the NIC; reads time out after 3000 cycles.
using namespace rnic;
using namespace rnic::test;

namespace {
constexpr int kClients = 6, kPayload = kClients - 1;
constexpr std::uint64_t kTimeout = 3000;

struct Request {
  std::uint64_t addr = 0;
  std::uint32_t length = 0, issued = 0, received = 0;
  bool failed = false;
};

/// All ports of the block but the completions: clients on one side, a checker of TLPs on the other.
struct Clients : Agent {
  explicit Clients(Bench<Vdma_read>& b, bool extended = true) : bench(b), completer(b), tags(extended ? 256 : 32) {
    bench.dut->ext_tag_i = extended;
    bench.add(*this);
    bench.add(completer);
    ready_rate.fill(1.0);
    bench.dut->max_lines_i = 8;
    bench.dut->timeout_i = kTimeout;
    bench.dut->timeout_disable_i = 0;
    bench.dut->sent_i = 0;
    bench.dut->rd_req_valid_i = bench.dut->rd_rsp_ready_i = bench.dut->dma_cpl_valid_i = 0;
    bench.reset();
  }
  void ask(int client, std::uint64_t low, std::uint32_t length) {
    const std::uint64_t addr = (static_cast<std::uint64_t>(client) << 60) + (sequence++ << 16) + low;
    to_ask[client].push_back({addr, length, 0, 0, false});
  }
  void drive() override {
    std::uint32_t valid = 0, ready = 0;
    for (int c = 0; c < kClients; ++c) {
      if (!offering[c] && !to_ask[c].empty() && bench.chance(ask_rate)) {
        offering[c] = true;
        rtl::DmaRdReq r{to_ask[c].front().addr, static_cast<std::uint16_t>(to_ask[c].front().length)};
        put_slice(bench.dut->rd_req_data_i, static_cast<std::size_t>(c), r);
      }
      valid |= static_cast<std::uint32_t>(offering[c]) << c;
      ready |= static_cast<std::uint32_t>(bench.chance(ready_rate[c])) << c;
    }
    bench.dut->rd_req_valid_i = valid;
    bench.dut->rd_rsp_ready_i = ready;
    bench.dut->tlp_ready_i = bench.chance(tlp_rate);
    bench.dut->sent_i = !sent.empty();
    if (!sent.empty()) {
      bench.dut->sent_slot_i = sent.front().first & 63;
      completer.request(sent.front().first, sent.front().second);
      sent.pop_front();
    }
  }
  void sample() override {
    auto& dut = *bench.dut;
    errors += dut.event_error_o;
    timeouts += dut.event_timeout_o;
    for (int c = 0; c < kClients; ++c) {
      if (offering[c] && (dut.rd_req_ready_o >> c & 1)) {
        asked[c].push_back(to_ask[c].front());
        to_ask[c].pop_front();
        offering[c] = false;
      }
      if (dut.rd_rsp_valid_o >> c & 1) beat(c, (dut.rd_rsp_ready_i >> c & 1) != 0);
    }
    if (dut.tlp_valid_o && dut.tlp_ready_i) tlp(get<rtl::DmaReqHdr>(dut.tlp_hdr_o));
  }
  void tlp(const rtl::DmaReqHdr& h) {
    const auto range = check_request(h, 64u * bench.dut->max_lines_i);
    REQUIRE(h.tlp_type == static_cast<std::uint8_t>(rtl::TlpType::kMemRead));
    const int c = static_cast<int>(range.addr >> 60);
    auto it = std::find_if(asked[c].begin(), asked[c].end(), [](const Request& r) { return r.issued < r.length; });
    REQUIRE(it != asked[c].end());
    REQUIRE(range.addr == it->addr + it->issued);
    REQUIRE(h.tag < tags);
    it->issued += range.bytes;
    REQUIRE(it->issued <= it->length);
    if (it->issued < it->length) REQUIRE((it->addr + it->issued) % 64 == 0);
    sent.push_back({h.tag, range});
    ++tlps;
    last_client = c;
  }
  void beat(int c, bool taken) {
    const auto b = get_slice<rtl::DmaRdRsp>(bench.dut->rd_rsp_data_o, static_cast<std::size_t>(c));
    if (held[c].second) REQUIRE(held[c].first == b);
    held[c] = {b, !taken};
    if (!taken) return;
    REQUIRE(!asked[c].empty());
    auto& r = asked[c].front();
    REQUIRE(r.issued == r.length);
    REQUIRE(b.err == r.failed);
    if (r.failed) {
      REQUIRE(b.last == 1);
      REQUIRE(b.bytes == 0);
    } else {
      const std::uint64_t at = r.addr + r.received;
      REQUIRE(b.offset == (r.received == 0 ? r.addr % 64 : 0));
      REQUIRE(b.bytes == std::min<std::uint64_t>(64 - at % 64, r.length - r.received));
      for (unsigned i = 0; i < b.bytes; ++i) REQUIRE(b.data[b.offset + i] == completer.memory.read(at + i));
      r.received += b.bytes;
      REQUIRE(b.last == (r.received == r.length));
    }
    ++beats[c];
    if (b.last) {
      asked[c].pop_front();
      ++done[c];
    }
  }
  bool idle() const {
    for (int c = 0; c < kClients; ++c) {
      if (!to_ask[c].empty() || !asked[c].empty()) return false;
    }
    return true;
  }
  /// Marks the request of a TLP as one that must fail.
  void fail(const TlpRange& range) {
    for (auto& r : asked[range.addr >> 60]) {
      if (range.addr >= r.addr && range.addr < r.addr + r.length) r.failed = true;
    }
  }

  Bench<Vdma_read>& bench;
  DmaCompleter<Vdma_read> completer;
  std::array<std::deque<Request>, kClients> to_ask, asked;
  std::array<bool, kClients> offering{};
  std::array<double, kClients> ready_rate{};
  std::array<std::uint64_t, kClients> done{}, beats{};
  std::array<std::pair<rtl::DmaRdRsp, bool>, kClients> held{};
  std::deque<std::pair<std::uint16_t, TlpRange>> sent;
  double ask_rate = 1.0, tlp_rate = 1.0;
  std::uint64_t sequence = 1, tlps = 0, errors = 0, timeouts = 0;
  int last_client = -1;
  unsigned tags;
};

std::uint32_t any_length(Bench<Vdma_read>& bench) {
  switch (bench.uniform(0, 3)) {
    case 0: return static_cast<std::uint32_t>(bench.uniform(1, 9));
    case 1: return static_cast<std::uint32_t>(bench.uniform(1, 300));
    case 2: return static_cast<std::uint32_t>(bench.uniform(1, 4096));
    default: return 4096;
  }
}
}  // namespace

TEST_CASE("dma_read: random requests, split and reordered completions", "[rtl]") {
  for (const unsigned lines : {8u, 2u, 4u}) {
    Bench<Vdma_read> bench(seed(lines));
    Clients clients(bench);
    bench.dut->max_lines_i = static_cast<std::uint8_t>(lines);
    clients.ask_rate = 0.5;
    clients.tlp_rate = 0.8;
    clients.completer.rate = 0.9;
    clients.completer.rcb = lines == 4 ? 128 : 64;
    clients.ready_rate = {1.0, 0.5, 0.9, 0.2, 0.7, 0.9};
    for (int i = 0; i < 400; ++i) {
      for (int c = 0; c < kClients; ++c) clients.ask(c, bench.uniform(0, 8191), any_length(bench));
    }
    bench.run_until([&] { return clients.idle(); }, 400000, "end of all requests");
    for (auto done : clients.done) CHECK(done == 400);
    CHECK(clients.errors + clients.timeouts == 0);
  }
}

TEST_CASE("dma_read: every small length at every offset", "[rtl]") {
  Bench<Vdma_read> bench(seed());
  Clients clients(bench);
  for (std::uint32_t offset = 0; offset < 8; ++offset) {
    for (std::uint32_t length = 1; length <= 12; ++length) {
      clients.ask(1, 64 + offset, length);
      clients.ask(2, 4096 - 8 + offset, length);   // across 4 KiB
      clients.ask(kPayload, 56 + offset, length);  // across a line
    }
  }
  bench.run_until([&] { return clients.idle(); }, 20000, "end of all requests");
}

TEST_CASE("dma_read: broken completions and time-outs fail their request and no other", "[rtl]") {
  const bool extended = GENERATE(true, false);
  Bench<Vdma_read> bench(seed());
  Clients clients(bench, extended);
  clients.completer.late_by = kTimeout * 3 / 2;
  clients.ask_rate = 0.3;
  clients.completer.quarantine = 16 * kTimeout;
  std::map<Fault, int> seen;
  clients.completer.choose_fault = [&](const TlpRange& range) {
    if (!bench.chance(0.04)) return Fault::kNone;
    const auto fault = static_cast<Fault>(bench.uniform(1, static_cast<std::uint64_t>(Fault::kLate)));
    ++seen[fault];
    clients.fail(range);
    return fault;
  };
  for (int i = 0; i < 1000; ++i) {
    for (int c = 0; c < kClients; ++c) clients.ask(c, bench.uniform(0, 8191), any_length(bench));
  }
  std::uint64_t next_stray = 100;
  bench.run_until(
      [&] {
        if (bench.cycle > next_stray) {
          const auto tag = static_cast<std::uint16_t>(bench.uniform(0, 1023));
          if (!clients.completer.uses(tag) && tag > 255) clients.completer.stray(tag);
          next_stray = bench.cycle + 50;
        }
        return clients.idle();
      },
      3000000, "end of all requests");
  for (int f = 1; f <= static_cast<int>(Fault::kLate); ++f) CHECK(seen[static_cast<Fault>(f)] > 10);
  CHECK(clients.timeouts == static_cast<std::uint64_t>(seen[Fault::kDrop] + seen[Fault::kLate]));
  CHECK(clients.errors > 100);
}

TEST_CASE("dma_read: a read just within the time-out is good, one just beyond is not", "[rtl]") {
  Bench<Vdma_read> bench(seed());
  Clients clients(bench);
  clients.completer.min_latency = clients.completer.max_latency = kTimeout - 5;
  clients.ask(0, 0, 64);
  bench.run_until([&] { return clients.idle(); }, kTimeout + 100, "answer");
  CHECK(clients.timeouts == 0);
  clients.completer.choose_fault = [&](const TlpRange& range) {
    clients.fail(range);
    return Fault::kLate;
  };
  clients.completer.late_by = 200;
  clients.ask(0, 0, 64);
  bench.run_until([&] { return clients.idle(); }, kTimeout + 200, "time-out");
  CHECK(clients.timeouts == 1);
  bench.run(400);
  clients.completer.choose_fault = nullptr;
  for (int i = 0; i < 300; ++i) clients.ask(1, 0, 64);
  bench.run_until([&] { return clients.idle(); }, 100000, "later reads");
}

TEST_CASE("dma_read: no read times out while that is disabled, and after it each has the rest of its time (7.5.3.16)",
          "[rtl]") {
  Bench<Vdma_read> bench(seed());
  Clients clients(bench);
  auto& dut = *bench.dut;
  const auto lose = [&](const TlpRange& range) {
    clients.fail(range);
    return Fault::kDrop;
  };
  clients.completer.choose_fault = lose;
  dut.timeout_disable_i = 1;
  for (int c = 0; c < kClients; ++c) clients.ask(c, 0, 64);
  bench.run(10 * kTimeout);
  CHECK(clients.timeouts == 0);
  CHECK(dut.pending_o);
  // Nor those that are overdue by a new range.
  dut.timeout_disable_i = 0;
  bench.run(1500);
  dut.timeout_disable_i = 1;
  dut.timeout_i = 1000;
  bench.run(5000);
  CHECK(clients.timeouts == 0);
  dut.timeout_i = kTimeout;
  // They have waited half of their time while it counted.
  dut.timeout_disable_i = 0;
  auto start = bench.cycle;
  bench.run_until([&] { return clients.timeouts != 0; }, kTimeout, "the first time-out");
  CHECK(bench.cycle - start > kTimeout - 1500 - 20);
  bench.run_until([&] { return clients.idle(); }, 300, "the others");
  CHECK(clients.timeouts == kClients);
  CHECK_FALSE(dut.pending_o);
  // An answer that takes longer than the time-out is good.
  dut.timeout_disable_i = 1;
  clients.completer.late_by = 5 * kTimeout;
  clients.completer.choose_fault = [&](const TlpRange&) { return Fault::kLate; };
  for (int c = 0; c < kClients; ++c) clients.ask(c, bench.uniform(0, 8191), any_length(bench));
  bench.run_until([&] { return clients.idle(); }, 7 * kTimeout, "late answers");
  CHECK(clients.timeouts == kClients);
  CHECK(clients.errors == 0);
}

TEST_CASE("dma_read: none times out while that is disabled, also while tags are parked (7.5.3.16)", "[rtl]") {
  Bench<Vdma_read> bench(seed());
  Clients clients(bench, false);
  auto& dut = *bench.dut;
  clients.completer.choose_fault = [&](const TlpRange& range) {
    clients.fail(range);
    return Fault::kDrop;
  };
  clients.ask(0, 0, 64);
  bench.run_until([&] { return clients.timeouts == 1; }, 2 * kTimeout, "the first, whose tag is parked then");
  clients.ask(1, 0, 64);
  bench.run(1500);
  dut.timeout_disable_i = 1;
  dut.timeout_i = 1000;
  bench.run(5000);
  CHECK(clients.timeouts == 1);
  dut.timeout_i = kTimeout;
  dut.timeout_disable_i = 0;
  bench.run_until([&] { return clients.timeouts == 2; }, kTimeout, "the second");
  // Reads that left at different times end at different times, whatever was looked at meanwhile.
  clients.ask(2, 0, 64);
  bench.run(kTimeout / 2);
  clients.ask(3, 0, 64);
  bench.run_until([&] { return clients.timeouts == 3; }, kTimeout, "the third");
  const auto third = bench.cycle;
  bench.run_until([&] { return clients.timeouts == 4; }, kTimeout, "the fourth");
  CHECK(bench.cycle - third > kTimeout / 2 - 200);
  CHECK(bench.cycle - third < kTimeout / 2 + 200);
}

TEST_CASE("dma_read: what may still come is not taken to be lost while time-outs are disabled", "[rtl]") {
  Bench<Vdma_read> bench(seed());
  Clients clients(bench, false);
  clients.completer.choose_fault = [&](const TlpRange& range) {
    clients.fail(range);
    return Fault::kDrop;
  };
  for (int c = 0; c < kClients; ++c) {
    for (int i = 0; i < 8; ++i) clients.ask(c, 0, 64);
  }
  bench.run_until([&] { return clients.timeouts == 32; }, 3 * kTimeout, "time-outs of all tags");
  bench.dut->timeout_disable_i = 1;
  const auto before = clients.tlps;
  bench.run(40 * kTimeout);
  CHECK(clients.tlps == before);
  clients.completer.choose_fault = nullptr;
  clients.completer.quarantine = 16 * kTimeout;
  bench.dut->timeout_disable_i = 0;
  bench.run_until([&] { return clients.idle(); }, 20 * kTimeout, "the others");
}

TEST_CASE("dma_read: 64 lost reads cost no more than their time, late completions are told apart", "[rtl]") {
  Bench<Vdma_read> bench(seed());
  Clients clients(bench);
  clients.completer.late_by = 4 * kTimeout;
  clients.completer.choose_fault = [&](const TlpRange& range) {
    clients.fail(range);
    return Fault::kLate;
  };
  for (int i = 0; i < 40; ++i) {
    for (int c = 0; c < kClients; ++c) clients.ask(c, 0, 64);
  }
  bench.run_until([&] { return clients.timeouts == 40 * kClients; }, 6 * kTimeout, "time-outs");
  clients.completer.choose_fault = nullptr;
  for (int i = 0; i < 400; ++i) clients.ask(i % kClients, bench.uniform(0, 8191), any_length(bench));
  bench.run_until([&] { return clients.idle(); }, 100000, "later reads");
  CHECK(clients.timeouts == 40 * kClients);
}

TEST_CASE("dma_read: without extended tags a tag has five bits, and 32 reads are under way at once (2.2.6.2)",
          "[rtl]") {
  Bench<Vdma_read> bench(seed());
  Clients clients(bench, false);
  clients.completer.min_latency = clients.completer.max_latency = 400;
  std::set<unsigned> used;
  std::size_t most = 0;
  clients.completer.choose_fault = [&](const TlpRange&) { return Fault::kNone; };
  for (int i = 0; i < 300; ++i) {
    for (int c = 0; c < kClients; ++c) clients.ask(c, bench.uniform(0, 8191), any_length(bench));
  }
  bench.run_until(
      [&] {
        for (unsigned tag = 0; tag < 32; ++tag) {
          if (clients.completer.uses(static_cast<std::uint16_t>(tag))) used.insert(tag);
        }
        std::size_t now = 0;
        for (unsigned tag = 0; tag < 32; ++tag) now += clients.completer.uses(static_cast<std::uint16_t>(tag));
        most = std::max(most, now);
        return clients.idle();
      },
      400000, "end of all requests");
  CHECK(used.size() == 32);
  CHECK(most == 32);
  CHECK(clients.errors + clients.timeouts == 0);
  // Every tag lost: each is in quarantine until its late completion has come.
  clients.completer.late_by = 4 * kTimeout;
  clients.completer.choose_fault = [&](const TlpRange& range) {
    clients.fail(range);
    return Fault::kLate;
  };
  for (int c = 0; c < kClients; ++c) {
    for (int i = 0; i < 8; ++i) clients.ask(c, 0, 64);
  }
  bench.run_until([&] { return clients.timeouts == 32; }, 3 * kTimeout, "time-outs");
  clients.completer.choose_fault = nullptr;
  bench.run_until([&] { return clients.idle(); }, 40 * kTimeout, "the others");
  for (int i = 0; i < 400; ++i) clients.ask(i % kClients, bench.uniform(0, 8191), any_length(bench));
  bench.run_until([&] { return clients.idle(); }, 100000, "later reads");
}

TEST_CASE("dma_read: a client has tags that the others cannot take, of 64 and of 32", "[rtl]") {
  const bool extended = GENERATE(true, false);
  CAPTURE(extended);
  for (int late = 0; late < kClients; ++late) {
    Bench<Vdma_read> bench(seed());
    Clients clients(bench, extended);
    clients.completer.min_latency = clients.completer.max_latency = 2000;
    for (int i = 0; i < 40; ++i) {
      for (int c = 0; c < kClients; ++c)
        if (c != late) clients.ask(c, 0, 512);
    }
    bench.run(500);
    clients.ask(late, 0, 64);
    bench.run_until([&] { return !clients.asked[late].empty() && clients.asked[late].front().issued == 64; }, 50,
                    "the read of who comes late");
    bench.run_until([&] { return clients.idle(); }, 100000, "all reads");
  }
}

TEST_CASE("dma_read: clients that take nothing hold up nobody", "[rtl]") {
  Bench<Vdma_read> bench(seed());
  Clients clients(bench);
  clients.ready_rate = {0, 1.0, 0, 0, 0, 0};
  for (int i = 0; i < 200; ++i) {
    for (int c = 0; c < kClients; ++c) clients.ask(c, bench.uniform(0, 8191), 4096);
  }
  bench.run_until([&] { return clients.done[1] == 200; }, 60000, "requests of the client that takes its data");
  CHECK(clients.done[kPayload] == 0);
  clients.ready_rate.fill(1.0);
  bench.run_until([&] { return clients.idle(); }, 200000, "the others");
}

TEST_CASE("dma_read: rate, latency, fair shares", "[rtl]") {
  {
    Bench<Vdma_read> bench(seed());
    Clients clients(bench);
    clients.completer.min_latency = clients.completer.max_latency = 0;
    bench.run(100);
    const auto start = bench.cycle;
    clients.ask(0, 0, 64);
    bench.run_until([&] { return clients.tlps == 1; }, 100, "TLP");
    const auto asked = bench.cycle;
    bench.run_until([&] { return clients.completer.beats == 1; }, 100, "completion");
    const auto completed = bench.cycle;
    bench.run_until([&] { return clients.done[0] == 1; }, 100, "data");
    std::printf("dma_read: request to TLP %llu cycles, completion to data %llu cycles\n",
                static_cast<unsigned long long>(asked - start - 1),
                static_cast<unsigned long long>(bench.cycle - completed));
    CHECK(asked - start - 1 <= 2);
    CHECK(bench.cycle - completed <= 5);
  }
  for (const std::uint64_t latency : {125, 250}) {
    Bench<Vdma_read> bench(seed());
    Clients clients(bench);
    clients.completer.shuffle = false;
    clients.completer.min_latency = clients.completer.max_latency = latency;
    for (int i = 0; i < 300; ++i) clients.ask(kPayload, 0, 4096);
    bench.run_until([&] { return clients.done[kPayload] == 50; }, 60000, "start");
    const auto start = bench.cycle;
    bench.run_until([&] { return clients.done[kPayload] == 250; }, 60000, "end");
    const double rate = 200.0 * 64 / static_cast<double>(bench.cycle - start);
    std::printf("dma_read: payload client, 4 KiB requests, round trip %llu cycles: %.3f lines a cycle\n",
                static_cast<unsigned long long>(latency), rate);
    CHECK(rate > (latency == 125 ? 0.98 : 0.95));
  }
  {
    Bench<Vdma_read> bench(seed());
    Clients clients(bench);
    clients.completer.shuffle = false;
    for (int i = 0; i < 1500; ++i) {
      for (int c = 0; c < kClients; ++c) clients.ask(c, 0, 64);
    }
    bench.run_until([&] { return clients.done[0] == 1000; }, 60000, "requests");
    for (auto done : clients.done) CHECK(done > 900);
    std::printf("dma_read: six clients, 64-byte requests: %.2f requests a cycle\n",
                1000.0 * kClients / static_cast<double>(bench.cycle));
  }
}
