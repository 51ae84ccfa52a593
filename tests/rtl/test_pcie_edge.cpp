#include <Vpcie_edge.h>

#include <bit>

#include "driver/generated/host_interface.hpp"
#include "tests/support/dma_host.hpp"

// rtl/pcie/pcie_edge.sv: decoding of host requests and their completions; order of DMA reads and writes; bus master
// enable; counters. Built with -GRdClients=3 -GWrClients=2; reads time out after 3000 cycles.
using namespace rnic;
using namespace rnic::test;

namespace {
constexpr int kRd = 3, kWr = 2;

/// A TLP of the host: header and payload bytes, which start at `addr`.
struct HostTlp {
  rtl::HostReqHdr hdr;
  std::vector<std::uint8_t> bytes;
};
struct HostBeat {
  rtl::HostReqHdr hdr;
  std::array<std::uint8_t, 64> data{};
  bool last = false;
};
/// A beat of a completion.
struct HostCpl {
  rtl::HostCplHdr hdr;
  std::array<std::uint8_t, 64> data{};
  bool last = true;
  bool operator==(const HostCpl&) const = default;
};

struct Edge {
  explicit Edge(std::uint64_t s)
      : bench(s),
        host([&](bool v) { bench.dut->host_req_valid_i = v; }, [&] { return bench.dut->host_req_ready_o != 0; },
             [&](const HostBeat& b) {
               put(bench.dut->host_req_hdr_i, b.hdr);
               port_from_bytes(bench.dut->host_req_data_i, b.data);
               bench.dut->host_req_last_i = b.last;
             },
             bench.rng),
        cpl([&] { return bench.dut->host_cpl_valid_o != 0; }, [&](bool r) { bench.dut->host_cpl_ready_i = r; },
            [&] {
              HostCpl c{get<rtl::HostCplHdr>(bench.dut->host_cpl_hdr_o), {}, bench.dut->host_cpl_last_o != 0};
              port_to_bytes(bench.dut->host_cpl_data_o, c.data);
              return c;
            },
            bench.rng),
        reg([&] { return bench.dut->reg_req_valid_o != 0; }, [&](bool r) { bench.dut->reg_req_ready_i = r; },
            [&] { return get<rtl::RegReq>(bench.dut->reg_req_data_o); }, bench.rng),
        uar([&] { return bench.dut->uar_req_valid_o != 0; }, [&](bool r) { bench.dut->uar_req_ready_i = r; },
            [&] { return get<rtl::UarReq>(bench.dut->uar_req_data_o); }, bench.rng) {
    auto& d = *bench.dut;
    d.cfg_max_payload_i = 1;
    d.completion_timeout_i = 3000;
    d.cfg_max_read_req_i = 2;
    d.cfg_bus_master_i = d.enable_i = 1;
    d.cfg_ext_tag_i = 1;
    d.cfg_cpl_timeout_disable_i = 0;
    d.dma_req_np_hold_i = 0;
    d.host_req_valid_i = d.dma_cpl_valid_i = d.reg_rsp_valid_i = d.rd_req_valid_i = d.rd_rsp_ready_i = d.wr_valid_i =
        d.dma_req_ready_i = 0;
    d.moved_i = 0;
    bench.reset();
    bench.add(levels);
    bench.add(host);
    bench.add(cpl);
    bench.add(reg);
    bench.add(uar);
  }
  void send(const HostTlp& t) {
    const std::uint64_t from = t.hdr.addr, to = from + std::max<std::size_t>(t.bytes.size(), 1);
    for (std::uint64_t line = from & ~63ull; line < to; line += 64) {
      HostBeat b{t.hdr, {}, line + 64 >= to};
      for (unsigned i = 0; i < 64; ++i) {
        const std::uint64_t at = line + i;
        b.data[i] = at >= from && at - from < t.bytes.size() ? t.bytes[at - from]
                                                             : static_cast<std::uint8_t>(bench.uniform(0, 255));
      }
      host.push(b);
    }
  }
  bool event(unsigned counter) const { return port_bit(bench.dut->event_o, counter); }

  /// Tells the rooms that a setting has changed, as nic_rest does.
  struct Levels : Agent {
    explicit Levels(Bench<Vpcie_edge>& b) : bench(b) {}
    void drive() override {
      auto& d = *bench.dut;
      const std::array<unsigned, 6> now{d.cfg_max_payload_i, d.cfg_max_read_req_i, d.cfg_bus_master_i,
                                        d.enable_i,          d.cfg_ext_tag_i,      d.cfg_cpl_timeout_disable_i};
      d.moved_i = now != seen;
      seen = now;
    }
    void sample() override {}
    Bench<Vpcie_edge>& bench;
    std::array<unsigned, 6> seen{};
  };

  Bench<Vpcie_edge> bench;
  Levels levels{bench};
  Source<HostBeat> host;
  Sink<HostCpl> cpl;
  Sink<rtl::RegReq> reg;
  Sink<rtl::UarReq> uar;
};

/// Answers register reads, in order and after a random time, with the hash of their address.
struct Registers : Agent {
  explicit Registers(Edge& e) : edge(e) { edge.bench.add(*this); }
  static std::uint64_t value(std::uint64_t addr) { return (addr + 1) * 0x9E3779B97F4A7C15ull; }
  void drive() override {
    while (seen < edge.reg.items.size()) {
      const auto& r = edge.reg.items[seen++];
      if (!r.write) waiting.push_back(r.addr);
    }
    edge.bench.dut->reg_rsp_valid_i = !waiting.empty() && edge.bench.chance(rate);
    if (edge.bench.dut->reg_rsp_valid_i) {
      edge.bench.dut->reg_rsp_data_i = value(waiting.front());
      waiting.pop_front();
    }
  }
  void sample() override { unsupported += edge.event(static_cast<unsigned>(hw::Counter::kHostUnsupported)); }
  Edge& edge;
  std::deque<std::uint64_t> waiting;
  std::size_t seen = 0;
  double rate = 0.3;
  std::uint64_t unsupported = 0;
};

unsigned lowest(unsigned be) {
  unsigned n = 0;
  while (n < 3 && !(be >> n & 1)) ++n;
  return be ? n : 0;
}
unsigned highest(unsigned be) {
  unsigned n = 3;
  while (n > 0 && !(be >> n & 1)) --n;
  return n;
}
}  // namespace

TEST_CASE("pcie_edge: host requests go where the contract says, completions are exact", "[rtl]") {
  Edge edge(seed());
  Registers registers(edge);
  auto& bench = edge.bench;
  edge.host.rate = 0.8;
  edge.cpl.rate = edge.reg.rate = edge.uar.rate = 0.6;
  std::deque<rtl::RegReq> reg;
  std::deque<rtl::UarReq> uar;
  std::deque<HostCpl> cpl;
  std::uint64_t unsupported = 0;
  for (int n = 0; n < 9000; ++n) {
    HostTlp t;
    auto& h = t.hdr;
    const std::uint64_t page = bench.chance(0.4)   ? 0
                               : bench.chance(0.9) ? bench.uniform(1, 127)
                                                   : bench.uniform(128, 1u << 20);
    const std::uint64_t near = bench.uniform(0, 9);
    const std::uint64_t offset = near < 4   ? 0x780 + 16 * bench.uniform(0, 31)
                                 : near < 6 ? 8 * bench.uniform(0, 6)
                                            : 4 * bench.uniform(0, 1023);
    h.addr = page * 4096 + offset;
    h.tlp_type = static_cast<std::uint8_t>(bench.chance(0.9) ? bench.uniform(0, 1) : bench.uniform(2, 3));
    h.poisoned = bench.chance(0.05);
    constexpr std::array<unsigned, 8> kLengths = {1, 2, 2, 4, 4, 8, 16, 16};
    const auto most = static_cast<unsigned>((4096 - h.addr % 4096) / 4);
    h.length_dw = static_cast<std::uint16_t>(std::min(
        most, bench.chance(0.8) ? kLengths[bench.uniform(0, 7)] : static_cast<unsigned>(bench.uniform(1, 200))));
    h.first_be = static_cast<std::uint8_t>(bench.chance(0.7) ? 15 : bench.uniform(0, 15));
    h.last_be = static_cast<std::uint8_t>(h.length_dw == 1    ? (bench.chance(0.05) ? 15 : 0)
                                          : bench.chance(0.8) ? 15
                                                              : bench.uniform(0, 15));
    h.tag = static_cast<std::uint16_t>(bench.uniform(0, 1023));
    h.requester = static_cast<std::uint16_t>(bench.uniform(0, 65535));
    h.tc = static_cast<std::uint8_t>(bench.uniform(0, 7));
    h.attr = static_cast<std::uint8_t>(bench.uniform(0, 7));
    const bool read = h.tlp_type == 0, write = h.tlp_type == 1, other = h.tlp_type == 2;
    if (!read && !other) {
      t.bytes.resize(4u * h.length_dw);
      for (auto& b : t.bytes) b = static_cast<std::uint8_t>(bench.uniform(0, 255));
    }
    edge.send(t);

    const bool page0 = h.addr < 4096, in_uar = !page0 && h.addr < 128 * 4096;
    const bool one = h.length_dw == 1 && h.last_be == 0;
    const bool two = h.length_dw == 2 && h.addr % 8 == 0 && h.first_be && h.last_be;
    const auto in_page = h.addr % 4096;
    const bool in_window = in_page >= 0x800 && in_page < 0x900;
    const bool word = two && h.first_be == 15 && h.last_be == 15 && (in_page < 0x28 || in_window);
    // What a processor's write combining may make of a line: 16, 32 or 64 bytes, naturally aligned.
    const bool piece = (h.length_dw == 4 || h.length_dw == 8 || h.length_dw == 16) &&
                       h.addr % (4u * h.length_dw) == 0 && in_window && h.first_be == 15 && h.last_be == 15;
    HostCpl c;
    c.hdr.tag = h.tag;
    c.hdr.requester = h.requester;
    c.hdr.tc = h.tc;  // 2.2.9, in each part and with an error too
    c.hdr.attr = h.attr;
    const unsigned end_be = h.length_dw == 1 ? h.first_be : h.last_be;
    c.hdr.byte_count = static_cast<std::uint16_t>(4u * h.length_dw - lowest(h.first_be) - (3 - highest(end_be)));
    c.hdr.lower_addr = (h.addr & 0x7c) + lowest(h.first_be);
    if (page0 && (one || two) && (read || (write && !h.poisoned))) {
      rtl::RegReq r;
      r.write = write;
      r.addr = h.addr & 0xff8;
      r.be = static_cast<std::uint8_t>(h.addr % 8 ? h.first_be << 4 : h.first_be | h.last_be << 4);
      std::array<std::uint8_t, 8> raw{};
      for (std::size_t i = 0; i < t.bytes.size(); ++i) raw[h.addr % 8 + i] = t.bytes[i];
      std::memcpy(&r.data, raw.data(), 8);
      if (!(write && r.be == 0)) reg.push_back(r);
      if (read) {
        c.hdr.length_dw = h.length_dw;
        const std::uint64_t value = Registers::value(r.addr);
        std::memcpy(c.data.data() + (r.addr & 63), &value, 8);
        cpl.push_back(c);
      }
    } else if (in_uar && read) {
      for (std::uint32_t left = c.hdr.byte_count, dwords = h.length_dw; dwords > 0;) {
        // To a multiple of 128 bytes, the boundary of an endpoint (2.3.1.1), in one beat or two.
        const std::uint32_t now = std::min(dwords, 32u - c.hdr.lower_addr / 4),
                            bytes = 4 * now - (c.hdr.lower_addr & 3);
        c.hdr.byte_count = static_cast<std::uint16_t>(left);
        c.hdr.length_dw = static_cast<std::uint16_t>(now);
        c.last = c.hdr.lower_addr / 4 % 16 + now <= 16;
        cpl.push_back(c);
        if (!c.last) cpl.push_back({c.hdr, {}, true});
        left -= std::min(left, bytes);
        dwords -= now;
        c.hdr.lower_addr = 0;
      }
    } else if (in_uar && write && !h.poisoned && (word || piece)) {
      rtl::UarReq u;
      u.uar = static_cast<std::uint8_t>(page);
      u.addr = h.addr & 0xfff;
      u.log_words = static_cast<std::uint8_t>(std::bit_width(h.length_dw / 2u) - 1);
      std::copy(t.bytes.begin(), t.bytes.end(), u.data.begin() + h.addr % 64);
      uar.push_back(u);
    } else {
      ++unsupported;
      if (other) c.hdr.byte_count = 4, c.hdr.lower_addr = 0;
      c.hdr.status = static_cast<std::uint8_t>(rtl::CplStatus::kUnsupportedRequest);
      if (read || other) cpl.push_back(c);
    }
  }
  bench.run_until(
      [&] { return edge.host.idle() && edge.cpl.items.size() == cpl.size() && edge.reg.items.size() == reg.size(); },
      200000, "end of all requests");
  bench.run(50);
  CHECK(registers.unsupported == unsupported);
  REQUIRE(edge.reg.items.size() == reg.size());
  for (std::size_t i = 0; i < reg.size(); ++i) {
    auto got = edge.reg.items[i];
    REQUIRE(got.write == reg[i].write);
    REQUIRE(got.addr == reg[i].addr);
    REQUIRE(got.be == reg[i].be);
    for (int b = 0; reg[i].write && b < 8; ++b) {
      if (reg[i].be >> b & 1) REQUIRE((got.data >> (8 * b) & 255) == (reg[i].data >> (8 * b) & 255));
    }
  }
  REQUIRE(edge.uar.items.size() == uar.size());
  REQUIRE(uar.size() > 150);
  for (std::size_t i = 0; i < uar.size(); ++i) {
    auto got = edge.uar.items[i];
    for (unsigned b = 0; b < 64; ++b) {
      if (b < uar[i].addr % 64 || b >= uar[i].addr % 64 + (8u << uar[i].log_words)) got.data[b] = 0;
    }
    REQUIRE(got == uar[i]);
  }
  REQUIRE(edge.cpl.items.size() == cpl.size());
  for (std::size_t i = 0; i < cpl.size(); ++i) {
    const auto& got = edge.cpl.items[i];
    REQUIRE(got.hdr == cpl[i].hdr);
    REQUIRE(got.last == cpl[i].last);
    const bool second = i > 0 && !cpl[i - 1].last;
    const unsigned begin = cpl[i].hdr.lower_addr & 60, from = second ? 0 : begin;
    const unsigned end = second ? begin + 4u * cpl[i].hdr.length_dw - 64 : begin + 4u * cpl[i].hdr.length_dw;
    for (unsigned b = from; b < std::min(end, 64u); ++b) REQUIRE(got.data[b] == cpl[i].data[b]);
  }
}

namespace {
/// One read client and one write client in use; a host that keeps memory, and the log of what left.
struct Dma : Agent {
  explicit Dma(Edge& e) : edge(e), completer(e.bench) {
    edge.bench.add(*this);
    edge.bench.add(completer);
  }
  void drive() override {
    auto& d = *edge.bench.dut;
    if (!reads.empty()) put_slice(d.rd_req_data_i, 1, reads.front());
    if (!writes.empty()) put_slice(d.wr_data_i, 1, writes.front());
    d.rd_req_valid_i = reads.empty() ? 0 : 2;
    d.wr_valid_i = writes.empty() ? 0 : 2;
    d.rd_rsp_ready_i = (1u << kRd) - 1;
    // What is offered stays until it is taken (ports, Rules of a stream).
    if (held) REQUIRE(d.dma_req_valid_o);
    d.dma_req_ready_i = edge.bench.chance(ready_rate);
  }
  void sample() override {
    auto& d = *edge.bench.dut;
    if (!reads.empty() && (d.rd_req_ready_o & 2)) reads.pop_front();
    if (!writes.empty() && (d.wr_ready_o & 2)) writes.pop_front();
    REQUIRE((d.wr_done_o & 1) == 0);
    done += d.wr_done_o >> 1 & 1;
    REQUIRE(done <= requests_gone);
    events_rd += edge.event(static_cast<unsigned>(hw::Counter::kDmaReads));
    events_wr += edge.event(static_cast<unsigned>(hw::Counter::kDmaWrites));
    offered += d.dma_req_valid_o;
    if (d.rd_rsp_valid_o) {
      REQUIRE(d.rd_rsp_valid_o == 2);
      answers.push_back(get_slice<rtl::DmaRdRsp>(d.rd_rsp_data_o, 1));
    }
    held = d.dma_req_valid_o && !d.dma_req_ready_i;
    if (!d.dma_req_valid_o || !d.dma_req_ready_i) return;
    const auto h = get<rtl::DmaReqHdr>(d.dma_req_hdr_o);
    const bool read = h.tlp_type == static_cast<std::uint8_t>(rtl::TlpType::kMemRead);
    const auto range = check_request(h, read ? most_read : 256);
    if (read) {
      REQUIRE(d.dma_req_last_o == 1);
      completer.request(h.tag, range);
      ++rd_tlps;
      return;
    }
    std::array<std::uint8_t, 64> data;
    port_to_bytes(d.dma_req_data_o, data);
    const std::uint64_t base = (range.addr & ~63ull) + 64 * beat++;
    for (std::uint64_t a = std::max(base, range.addr); a < std::min(base + 64, range.addr + range.bytes); ++a)
      completer.memory.write(a, data[a - base]);
    if (d.dma_req_last_o) {
      beat = 0;
      bytes_gone += range.bytes;
      if (bytes_gone == lengths.front()) {
        lengths.pop_front();
        bytes_gone = 0;
        ++requests_gone;
      }
      ++wr_tlps;
    }
  }
  std::uint32_t most_read = 512;  ///< Bytes that a read may ask for
  void write(std::uint64_t addr, std::uint32_t length, std::uint8_t fill) {
    lengths.push_back(length);
    for (std::uint64_t line = addr & ~63ull; line < addr + length; line += 64) {
      rtl::DmaWr w{addr, static_cast<std::uint16_t>(length), {}, line + 64 >= addr + length};
      w.data.fill(fill);
      writes.push_back(w);
    }
  }
  void read(std::uint64_t addr, std::uint32_t length) { reads.push_back({addr, static_cast<std::uint16_t>(length)}); }

  Edge& edge;
  DmaCompleter<Vpcie_edge> completer;
  std::deque<rtl::DmaRdReq> reads;
  std::deque<rtl::DmaWr> writes;
  std::deque<rtl::DmaRdRsp> answers;
  std::deque<std::uint32_t> lengths;
  std::uint64_t bytes_gone = 0, requests_gone = 0;
  std::uint64_t done = 0, rd_tlps = 0, wr_tlps = 0, events_rd = 0, events_wr = 0, beat = 0, offered = 0;
  double ready_rate = 1.0;
  bool held = false;
};
}  // namespace

TEST_CASE("pcie_edge: a read asked for after wr_done sees the write", "[rtl]") {
  Edge edge(seed());
  Dma dma(edge);
  auto& bench = edge.bench;
  dma.completer.min_latency = dma.completer.max_latency = 1;
  dma.ready_rate = 0.5;
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t addr = 0x10000 + bench.uniform(0, 4095);
    const auto length = static_cast<std::uint32_t>(bench.uniform(1, 600));
    dma.write(addr, length, static_cast<std::uint8_t>(i));
    const auto done = dma.done + 1;
    bench.run_until([&] { return dma.done == done; }, 1000, "wr_done");
    dma.read(addr, length);
    bench.run_until([&] { return !dma.answers.empty() && dma.answers.back().last; }, 1000, "data");
    std::uint32_t got = 0;
    for (const auto& b : dma.answers) {
      for (unsigned k = b.offset; k < b.offset + b.bytes; ++k, ++got)
        REQUIRE(b.data[k] == static_cast<std::uint8_t>(i));
    }
    REQUIRE(got == length);
    dma.answers.clear();
  }
  bench.run(2);
  CHECK(dma.events_rd == dma.rd_tlps);
  CHECK(dma.events_wr == dma.wr_tlps);
}

TEST_CASE("pcie_edge: reads are cut as Max_Read_Request_Size says, reserved values are the least (7.5.3.4)", "[rtl]") {
  Edge edge(seed());
  Dma dma(edge);
  auto& bench = edge.bench;
  // The engine never asks for more than 512 bytes.
  constexpr std::array<std::uint32_t, 8> kMost = {128, 256, 512, 512, 512, 512, 128, 128};
  for (unsigned value = 0; value < kMost.size(); ++value) {
    INFO("value " << value);
    bench.dut->cfg_max_read_req_i = static_cast<CData>(value);
    bench.run(4);
    dma.most_read = kMost.at(value);
    const auto before = dma.rd_tlps;
    dma.read(0x10000, 1024);
    bench.run_until([&] { return !dma.answers.empty() && dma.answers.back().last; }, 1000, "data");
    CHECK(dma.rd_tlps - before == 1024 / dma.most_read);
    dma.answers.clear();
  }
}

TEST_CASE("pcie_edge: nothing leaves while bus mastering is off", "[rtl]") {
  Edge edge(seed());
  Dma dma(edge);
  auto& bench = edge.bench;
  bench.dut->cfg_bus_master_i = 0;
  dma.write(0x2000, 1024, 7);
  dma.read(0x2000, 1024);
  bench.run(200);
  CHECK(dma.offered == 0);
  CHECK_FALSE(bench.dut->pending_o);
  bench.run(4000);  // longer than a completion time-out
  bench.dut->cfg_bus_master_i = 1;
  bench.run_until([&] { return dma.done == 1 && !dma.answers.empty() && dma.answers.back().last; }, 1000,
                  "write and read");
  CHECK(dma.answers.back().err == 0);
  CHECK_FALSE(bench.dut->pending_o);
  for (int i = 0; i < 200; ++i) dma.write(0x4000, 1024, 9);
  dma.ready_rate = 0.5;
  for (int i = 0; i < 200; ++i) {
    bench.run(bench.uniform(1, 9));
    bench.dut->cfg_bus_master_i = 0;
    const auto before = dma.wr_tlps;
    bench.run(40);
    CHECK(dma.wr_tlps <= before + 1);
    CHECK_FALSE(bench.dut->dma_req_valid_o);
    bench.dut->cfg_bus_master_i = 1;
  }
  bench.run_until([&] { return dma.done == 201; }, 10000, "all writes");
}

TEST_CASE("pcie_edge: without non-posted credits reads wait, writes and interrupts pass them (2.4.1, A3)", "[rtl]") {
  Edge edge(seed());
  Registers registers(edge);
  Dma dma(edge);
  auto& bench = edge.bench;
  dma.completer.min_latency = dma.completer.max_latency = 1;
  HostTlp read;
  read.hdr.length_dw = 2;
  read.hdr.first_be = read.hdr.last_be = 15;
  for (int round = 0; round < 40; ++round) {
    dma.ready_rate = round % 2 ? 1.0 : 0.4;
    for (int i = 0; i < 40; ++i) dma.read(0x100000 + 4096u * static_cast<unsigned>(i), 600);
    bench.run(bench.uniform(1, 60));
    bench.dut->dma_req_np_hold_i = 1;
    const auto reads = dma.rd_tlps;
    const auto offered = dma.held ? 1u : 0u;
    const auto done = dma.done;
    for (int i = 0; i < 20; ++i) dma.write(0x4000, 600, 9);
    edge.send(read);
    const auto answers = edge.cpl.items.size();
    bench.run_until([&] { return dma.done == done + 20 && edge.cpl.items.size() == answers + 1; }, 1000,
                    "writes and completions past the reads");
    if (round == 0) bench.run(8000);  // several time-outs, which do not count for what has not left
    CHECK(dma.rd_tlps <= reads + offered);
    bench.dut->dma_req_np_hold_i = 0;
    const auto wanted = static_cast<std::size_t>(round + 1) * 40;
    bench.run_until(
        [&] {
          std::size_t ended = 0;
          for (const auto& answer : dma.answers) ended += answer.last;
          return ended == wanted;
        },
        8000, "reads");
  }
  for (const auto& answer : dma.answers) REQUIRE(answer.err == 0);
}

TEST_CASE("pcie_edge: a read times out unless Completion Timeout Disable is set (2.8, 7.5.3.16)", "[rtl]") {
  Edge edge(seed());
  Dma dma(edge);
  auto& bench = edge.bench;
  dma.completer.choose_fault = [](const TlpRange&) { return Fault::kDrop; };
  bench.dut->cfg_cpl_timeout_disable_i = 1;
  dma.read(0x2000, 64);
  bench.run(20'000);  // several time-outs
  CHECK(dma.rd_tlps == 1);
  CHECK(dma.answers.empty());
  bench.dut->cfg_cpl_timeout_disable_i = 0;
  bench.run_until([&] { return !dma.answers.empty(); }, 3300, "time-out");
  CHECK(dma.answers.back().err == 1);
}

TEST_CASE("pcie_edge: a read that waited long for its way out counts from there: answered, or timed out (2.8)",
          "[rtl]") {
  Edge edge(seed());
  Dma dma(edge);
  auto& bench = edge.bench;
  for (const bool lost : {false, true}) {
    dma.completer.choose_fault = [lost](const TlpRange&) { return lost ? Fault::kDrop : Fault::kNone; };
    dma.ready_rate = 0;
    dma.read(0x2000, 64);
    bench.run(200);
    CHECK(dma.answers.empty());
    dma.ready_rate = 1;
    bench.run_until([&] { return !dma.answers.empty(); }, 3300, "answer");
    CHECK(dma.answers.back().err == lost);
    dma.answers.clear();
  }
}

TEST_CASE("pcie_edge: what was switched off and read back touches memory no more (host interface, Quiescing)",
          "[rtl]") {
  Edge edge(seed());
  Registers registers(edge);
  Dma dma(edge);
  auto& bench = edge.bench;
  HostTlp read;
  read.hdr.length_dw = 2;
  read.hdr.first_be = read.hdr.last_be = 15;
  for (int i = 0; i < 300; ++i) dma.write(0x4000, 1024, 9);
  unsigned waited = 0;
  for (int i = 0; i < 100; ++i) {
    dma.ready_rate = 0.2;
    bench.run(bench.uniform(1, 9));
    bench.dut->enable_i = 0;
    const auto before = edge.cpl.items.size();
    edge.send(read);
    bench.run_until(
        [&] {
          if (edge.cpl.items.size() > before) return true;
          waited += bench.dut->dma_req_valid_o != 0;
          return false;
        },
        2000, "completion");
    CHECK_FALSE(bench.dut->dma_req_valid_o);
    bench.dut->enable_i = 1;
  }
  CHECK(waited > 100);
  dma.ready_rate = 1;
  bench.run_until([&] { return dma.done == 300; }, 10000, "all writes");
}

TEST_CASE("pcie_edge: posted requests pass reads whose completions can't leave, one for each tag (2.4.1)", "[rtl]") {
  Edge edge(seed());
  Registers registers(edge);
  registers.rate = 1;
  auto& bench = edge.bench;
  edge.cpl.rate = 0;
  HostTlp read, doorbell;
  read.hdr.length_dw = 2;
  read.hdr.first_be = read.hdr.last_be = 15;
  for (unsigned tag = 0; tag < 1024; ++tag) {
    read.hdr.addr = tag % 2 ? 0x10 : 0x1000;
    read.hdr.tag = static_cast<std::uint16_t>(tag);
    edge.send(read);
  }
  doorbell.hdr.tlp_type = static_cast<std::uint8_t>(rtl::TlpType::kMemWrite);
  doorbell.hdr.addr = 0x1000;
  doorbell.hdr.length_dw = 2;
  doorbell.hdr.first_be = doorbell.hdr.last_be = 15;
  doorbell.bytes.assign(8, 1);
  edge.send(doorbell);
  bench.run_until([&] { return !edge.uar.items.empty(); }, 20000, "doorbell");
  CHECK(edge.cpl.items.empty());
  edge.cpl.rate = 1;
  bench.run_until([&] { return edge.cpl.items.size() == 1024; }, 5000, "completions");
  for (unsigned tag = 0; tag < 1024; ++tag) REQUIRE(edge.cpl.items[tag].hdr.tag == tag);
}

TEST_CASE("pcie_edge: reads of two requesters beyond one for each tag wait, and none is lost", "[rtl]") {
  Edge edge(seed());
  Registers registers(edge);
  registers.rate = 0.9;
  auto& bench = edge.bench;
  edge.cpl.rate = 0;
  constexpr unsigned kReads = 1200, kTags = 1024;
  HostTlp read;
  read.hdr.length_dw = 2;
  read.hdr.first_be = read.hdr.last_be = 15;
  const auto hdr_of = [&](unsigned n) {
    auto hdr = read.hdr;
    hdr.addr = n % 512 * 8;
    hdr.requester = static_cast<std::uint16_t>(n % 2);
    hdr.tag = static_cast<std::uint16_t>(n / 2);
    return hdr;
  };
  for (unsigned n = 0; n < kReads; ++n) edge.send({hdr_of(n), {}});
  bench.run(4 * kReads);
  // One more is in the queue's output, two are on their way to the link.
  CHECK(edge.host.accepted == kTags + 3);
  CHECK(registers.waiting.empty());
  CHECK(edge.reg.items.size() == kTags + 3);
  edge.cpl.rate = 0.7;
  bench.run_until([&] { return edge.cpl.items.size() == kReads; }, 4 * kReads, "completions");
  for (unsigned n = 0; n < kReads; ++n) {
    const auto& got = edge.cpl.items[n];
    REQUIRE(got.hdr.requester == hdr_of(n).requester);
    REQUIRE(got.hdr.tag == hdr_of(n).tag);
    const std::uint64_t value = Registers::value(hdr_of(n).addr);
    REQUIRE(std::memcmp(got.data.data() + hdr_of(n).addr % 64, &value, 8) == 0);
  }
}

TEST_CASE("pcie_edge: latency of doorbells and DMA", "[rtl]") {
  Edge edge(seed());
  Dma dma(edge);
  auto& bench = edge.bench;
  HostTlp t;
  t.hdr.tlp_type = static_cast<std::uint8_t>(rtl::TlpType::kMemWrite);
  t.hdr.addr = 0x1000;
  t.hdr.length_dw = 2;
  t.hdr.first_be = t.hdr.last_be = 15;
  t.bytes.assign(8, 1);
  bench.run(100);
  auto start = bench.cycle;
  edge.send(t);
  bench.run_until([&] { return !edge.uar.items.empty(); }, 20, "uar_req");
  const auto doorbell = bench.cycle - start - 1;
  start = bench.cycle;
  dma.write(0x1000, 64, 1);
  bench.run_until([&] { return dma.wr_tlps == 1; }, 20, "write TLP");
  const auto write = bench.cycle - start - 1;
  start = bench.cycle;
  dma.read(0x1000, 64);
  bench.run_until([&] { return dma.rd_tlps == 1; }, 20, "read TLP");
  const auto read = bench.cycle - start - 1;
  CHECK(bench.dut->pending_o);  // Transactions Pending (7.5.3.5)
  std::printf("pcie_edge: host_req to uar_req %d, wr to dma_req %d, rd_req to dma_req %d cycles\n",
              static_cast<int>(doorbell), static_cast<int>(write), static_cast<int>(read));
  CHECK(doorbell <= 1);
  CHECK(write <= 2);
  CHECK(read <= 3);
}
