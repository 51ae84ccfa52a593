#include <Vdma_req_mux.h>

#include "tests/support/rtl_bench.hpp"
#include "testbench/generated/rtl_streams.hpp"

// rtl/pcie/dma_req_mux.sv: TLPs of reads and writes whole and in the order of their kind, nothing passed without need;
// while the link has no non-posted credits no read begins and writes go on. Built with -GWrClients=2.
using namespace rnic;
using namespace rnic::test;

namespace {

struct WriteTlp {
  std::uint64_t number;
  unsigned beats;
  std::uint8_t done;  ///< Clients whose request it ends
};

/// Both engines and the link.
struct Mux : Agent {
  explicit Mux(std::uint64_t s) : bench(s) {
    auto& d = *bench.dut;
    d.open_i = 1;
    d.np_hold_i = d.wr_valid_i = d.rd_valid_i = d.dma_req_ready_i = 0;
    bench.reset();
    bench.add(*this);
  }
  void drive() override {
    auto& d = *bench.dut;
    if (!wr_offered && !writes.empty() && bench.chance(wr_rate)) {
      wr_offered = true;
      const auto& tlp = writes.front();
      put(d.wr_hdr_i, header(true, tlp.number, tlp.beats));
      std::array<std::uint8_t, 64> data;
      data.fill(static_cast<std::uint8_t>(tlp.number * 16 + wr_beat));
      port_from_bytes(d.wr_data_i, data);
      d.wr_last_i = wr_beat + 1 == tlp.beats;
      d.wr_done_i = d.wr_last_i ? tlp.done : 0;
    }
    d.wr_valid_i = wr_offered;
    if (!rd_offered && reads_left != 0 && bench.chance(rd_rate)) {
      rd_offered = true;
      put(d.rd_hdr_i, header(false, reads_in, 1));
    }
    d.rd_valid_i = rd_offered;
    if (hold_rate != 0 && bench.chance(hold_rate)) d.np_hold_i = !d.np_hold_i;
    if (open_rate != 0 && bench.chance(open_rate)) d.open_i = !d.open_i;
    d.dma_req_ready_i = bench.chance(ready_rate);
  }
  static rtl::DmaReqHdr header(bool write, std::uint64_t number, unsigned beats) {
    rtl::DmaReqHdr h{};
    h.tlp_type = static_cast<std::uint8_t>(write ? rtl::TlpType::kMemWrite : rtl::TlpType::kMemRead);
    h.addr = number << 12;
    h.length_dw = static_cast<std::uint16_t>(16 * beats);
    h.tag = static_cast<std::uint16_t>(write ? 0 : number % 1024);
    return h;
  }
  void sample() override {
    auto& d = *bench.dut;
    done[0] += d.wr_done_o & 1;
    done[1] += d.wr_done_o >> 1 & 1;
    if (d.wr_valid_i && d.wr_ready_o) {
      wr_offered = false;
      if (d.wr_last_i) {
        under_way.push_back(writes.front());
        order_in.push_back(true);
        writes.pop_front();
        wr_beat = 0;
        ++writes_in;
      } else {
        ++wr_beat;
      }
    }
    if (d.rd_valid_i && d.rd_ready_o) {
      rd_offered = false;
      in_front.push_back(writes_in);
      order_in.push_back(false);
      ++reads_in;
      --reads_left;
    }
    const bool valid = d.dma_req_valid_o != 0;
    // What is offered stays (ports, Rules of a stream), and so does open_i's and np_hold_i's part in it.
    if (waiting) REQUIRE(valid);
    REQUIRE((valid && d.dma_req_ready_i && d.dma_req_last_o) == (d.wr_sent_o || d.rd_sent_o));
    if (!d.np_hold_i) late_reads = 0;
    if (valid) {
      const auto h = get<rtl::DmaReqHdr>(d.dma_req_hdr_o);
      const bool read = h.tlp_type == static_cast<std::uint8_t>(rtl::TlpType::kMemRead);
      if (!waiting && beat == 0) REQUIRE(d.open_i);
      if (!waiting && read) REQUIRE_FALSE(d.np_hold_i);
      if (d.dma_req_ready_i) read ? leave_read(h) : leave_write(h);
    }
    waiting = valid && !d.dma_req_ready_i;
  }
  void leave_read(const rtl::DmaReqHdr& h) {
    auto& d = *bench.dut;
    REQUIRE(beat == 0);
    REQUIRE(d.rd_sent_o);
    REQUIRE_FALSE(d.wr_sent_o);
    REQUIRE(d.rd_sent_tag_o == h.tag);
    REQUIRE(h == header(false, reads_out, 1));
    REQUIRE(writes_out >= in_front.front());  // 2.4.1, B2: a read passes no write in front of it
    in_front.pop_front();
    if (d.np_hold_i) REQUIRE(++late_reads == 1);
    ++reads_out;
    order_out.push_back(false);
  }
  void leave_write(const rtl::DmaReqHdr& h) {
    auto& d = *bench.dut;
    const auto& tlp = under_way.empty() ? writes.front() : under_way.front();
    REQUIRE(h == header(true, tlp.number, tlp.beats));
    std::array<std::uint8_t, 64> data;
    port_to_bytes(d.dma_req_data_o, data);
    for (const auto byte : data) REQUIRE(byte == static_cast<std::uint8_t>(tlp.number * 16 + beat));
    REQUIRE(d.wr_sent_o == (beat + 1 == tlp.beats));
    REQUIRE_FALSE(d.rd_sent_o);
    if (++beat < tlp.beats) return;
    beat = 0;
    owed[0] += tlp.done & 1;
    owed[1] += tlp.done >> 1 & 1;
    under_way.pop_front();
    ++writes_out;
    order_out.push_back(true);
  }
  void fill(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      writes.push_back(
          {next++, static_cast<unsigned>(bench.uniform(1, 4)), static_cast<std::uint8_t>(bench.uniform(0, 3))});
    }
    reads_left += count;
  }
  bool idle() const { return writes.empty() && reads_left == 0 && under_way.empty() && in_front.empty(); }

  Bench<Vdma_req_mux> bench;
  std::deque<WriteTlp> writes, under_way;
  std::deque<std::uint64_t> in_front;     ///< Of each read inside: writes that went in before it
  std::vector<bool> order_in, order_out;  ///< True: a write
  std::array<std::uint64_t, 2> done{}, owed{};
  std::uint64_t next = 0, writes_in = 0, writes_out = 0, reads_in = 0, reads_out = 0, reads_left = 0;
  unsigned wr_beat = 0, beat = 0, late_reads = 0;
  bool wr_offered = false, rd_offered = false, waiting = false;
  double wr_rate = 0.7, rd_rate = 0.7, ready_rate = 0.7, hold_rate = 0, open_rate = 0;
};

}  // namespace

TEST_CASE("dma_req_mux: with credits for both nothing is passed, each TLP whole and once", "[rtl]") {
  Mux mux(seed());
  mux.open_rate = 0.02;
  mux.fill(3000);
  mux.bench.run_until([&] { return mux.idle(); }, 100'000, "all TLPs");
  mux.bench.run(2);
  CHECK(mux.order_out == mux.order_in);
  CHECK(mux.done == mux.owed);
}

TEST_CASE("dma_req_mux: non-posted credits come and go: reads wait, writes pass them, nothing else changes", "[rtl]") {
  for (const double hold : {0.5, 0.1, 0.01}) {
    for (const double ready : {1.0, 0.7, 0.2}) {
      Mux mux(seed());
      mux.hold_rate = hold;
      mux.ready_rate = ready;
      mux.open_rate = hold == 0.1 ? 0.02 : 0;
      mux.fill(2000);
      mux.bench.run_until([&] { return mux.idle(); }, 200'000, "all TLPs");
      mux.bench.run(2);
      CHECK(mux.order_out != mux.order_in);
      CHECK(mux.order_out.size() == 4000);
      CHECK(mux.done == mux.owed);
    }
  }
}

TEST_CASE("dma_req_mux: while non-posted credits are missing every write leaves, and one read at most", "[rtl]") {
  for (int round = 0; round < 50; ++round) {
    Mux mux(seed() + static_cast<std::uint64_t>(round));
    auto& d = *mux.bench.dut;
    mux.wr_rate = round % 2 ? 1 : 0.3;
    mux.rd_rate = 1;
    mux.ready_rate = round % 3 ? 1 : 0.5;
    mux.fill(200);
    mux.bench.run(mux.bench.uniform(1, 60));
    d.np_hold_i = 1;
    const auto reads = mux.reads_out;
    const bool offered = mux.waiting;
    mux.bench.run_until([&] { return mux.writes_out == 200; }, 5000, "the writes");
    CHECK(mux.reads_out <= reads + (offered ? 1 : 0));
    mux.bench.run(100);
    CHECK(mux.reads_out <= reads + (offered ? 1 : 0));
    CHECK_FALSE(d.dma_req_valid_o);
    d.np_hold_i = 0;
    mux.bench.run_until([&] { return mux.idle(); }, 5000, "the reads");
  }
}

TEST_CASE("dma_req_mux: reads that were set aside leave before any other TLP, at once", "[rtl]") {
  Mux mux(seed());
  auto& d = *mux.bench.dut;
  mux.wr_rate = mux.rd_rate = mux.ready_rate = 1;
  mux.fill(400);
  for (int round = 0; round < 20; ++round) {
    d.np_hold_i = 1;
    mux.bench.run(20);
    d.np_hold_i = 0;
    const auto reads = mux.reads_out;
    mux.bench.run_until([&] { return mux.reads_out != reads; }, 6, "a read");  // a write of four beats is ended first
    mux.bench.run(mux.bench.uniform(0, 5));
  }
}
