#include <Vrsp_atomic.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "driver/generated/host_interface.hpp"
#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/rsp/rsp_atomic.sv: atomics of many QPs against one memory; saved results; faults; reset. InfiniBand
// specification 9.4.5, 9.7.5.1.2.
using namespace rnic::test;
using namespace rnic::rtl;

namespace {

// Bits 3:0 of a key: status of its translation; bit 4: the DMA read fails.
std::uint8_t status_of(std::uint32_t key) { return key & 15; }
bool read_fails(std::uint32_t key) { return key & 16; }
constexpr std::uint64_t kFailing = 1ull << 62;

struct Answer {
  bool found = false;
  std::uint64_t value = 0;
  bool operator==(const Answer&) const = default;
};

struct World : Agent {
  explicit World(std::uint64_t seed_value) : bench(seed_value) {
    auto& dut = *bench.dut;
    dut.op_valid_i = dut.answer_en_i = dut.fault_ready_i = dut.xlate_req_ready_i = dut.xlate_rsp_valid_i =
        dut.rd_req_ready_i = 0;
    dut.rd_rsp_valid_i = dut.wr_ready_i = dut.wr_done_i = dut.forget_valid_i = dut.clear_valid_i = 0;
    bench.reset();
    for (int qp = 0; qp < 256; ++qp) clear(qp);
    bench.add(*this);
    bench.add(xlate);
    bench.add(reads);
    bench.add(writes);
    bench.add(faults);
    xlate.on_item = [this](const XlateReq& req) {
      REQUIRE(running);
      REQUIRE(req.key == running->key);
      REQUIRE(req.va == running->va);
      REQUIRE(req.length == 8);
      REQUIRE(req.pd == running->pd);
      REQUIRE(req.access == static_cast<std::uint8_t>(Access::kRemoteAtomic));
      REQUIRE(req.qp == running->qp);
    };
    writes.on_item = [this](const DmaWr& wr) {
      REQUIRE(wr.length == 8);
      REQUIRE(wr.last == 1);
      std::uint64_t value = 0;
      for (int i = 7; i >= 0; --i) value = value << 8 | wr.data[wr.addr % 64 + static_cast<std::size_t>(i)];
      write_due = {wr.addr, value};
      write_at = bench.cycle + bench.uniform(1, latency);
    };
    faults.on_item = [this](const TxFault& fault) {
      got_faults.push_back(fault);
      busy.erase(fault.qp);
      running.reset();
    };
  }

  /// What the block works on next, in the order given.
  void begin_next() {
    if (running || given.empty()) return;
    running = given.front();
    given.pop_front();
  }

  void give(AtomicOp op) {
    REQUIRE(busy.insert(op.qp).second);
    given.push_back(op);
    to_give.push_back(op);
  }

  void drive() override {
    auto& dut = *bench.dut;
    dut.op_valid_i = !to_give.empty();
    if (!to_give.empty()) {
      put(dut.op_data_i, to_give.front());
      to_give.pop_front();
    }
    begin_next();
    dut.xlate_rsp_valid_i = answer_at != 0 && bench.cycle >= answer_at;
    if (dut.xlate_rsp_valid_i) put(dut.xlate_rsp_data_i, answer);
    dut.rd_rsp_valid_i = data_at != 0 && bench.cycle >= data_at;
    if (dut.rd_rsp_valid_i) put(dut.rd_rsp_data_i, data);
    dut.wr_done_i = write_at != 0 && bench.cycle >= write_at;
    dut.answer_en_i = reading.has_value();
    if (reading) dut.answer_qp_i = *reading;
  }

  void sample() override {
    auto& dut = *bench.dut;
    if (pending_answer) {
      const Answer got{dut.answer_found_o != 0, dut.answer_value_o};
      const auto wanted = expected[*pending_answer];
      REQUIRE(got.found == wanted.found);
      if (got.found) REQUIRE(got.value == wanted.value);
      busy.erase(*pending_answer);
      ++answered;
      pending_answer.reset();
    }
    if (reading) pending_answer = std::exchange(reading, {});
    if (dut.xlate_rsp_valid_i && dut.xlate_rsp_ready_o) answer_at = 0;
    if (dut.rd_rsp_valid_i && dut.rd_rsp_ready_o) data_at = 0;
    if (dut.wr_done_i) {
      memory[write_due.first] = write_due.second;
      write_at = 0;
    }
    if (!xlate.items.empty()) {
      const auto req = xlate.items.front();
      xlate.items.pop_front();
      answer = {};
      answer.status = status_of(req.key);
      answer.addr = req.va | (read_fails(req.key) ? kFailing : 0);
      answer.contiguous = 8;
      answer.epoch = bench.chance(0.5);
      if (answer.status == 0) epochs.push_back(answer.epoch);
      answer_at = bench.cycle + bench.uniform(1, latency);
    }
    if (!reads.items.empty()) {
      const auto req = reads.items.front();
      reads.items.pop_front();
      // What was written before must have left: a later read cannot pass it.
      REQUIRE(write_at == 0);
      REQUIRE(req.length == 8);
      data = {};
      for (auto& b : data.data) b = static_cast<std::uint8_t>(bench.rng());
      data.last = 1;
      if (req.addr & kFailing) {
        data.err = 1;
      } else {
        data.offset = static_cast<std::uint8_t>(req.addr % 64);
        data.bytes = 8;
        for (std::size_t i = 0; i < 8; ++i)
          data.data[req.addr % 64 + i] = static_cast<std::uint8_t>(memory[req.addr] >> (8 * i));
      }
      data_at = bench.cycle + bench.uniform(1, latency);
    }
    if (dut.xlate_retire_valid_o) {
      REQUIRE_FALSE(epochs.empty());
      REQUIRE(dut.xlate_retire_epoch_o == epochs.front());
      epochs.pop_front();
    }
    executed += port_bit(dut.event_o, static_cast<std::size_t>(rnic::hw::Counter::kRxAtomics));
    repeated += port_bit(dut.event_o, static_cast<std::size_t>(rnic::hw::Counter::kRxAtomicRepeats));
    if (dut.done_valid_o) finish(dut.done_qp_o);
  }

  /// The reference: operations one after the other, on its own memory; results of the last 16 of each QP.
  void finish(std::uint8_t qp) {
    REQUIRE(running);
    REQUIRE(running->qp == qp);
    auto& results = saved[qp];
    if (running->repeated) {
      const auto found =
          std::find_if(results.rbegin(), results.rend(), [&](const auto& r) { return r.first == running->psn; });
      expected[qp] = found == results.rend() ? Answer{} : Answer{true, found->second};
    } else {
      auto& word = shadow[running->va];
      expected[qp] = {true, word};
      results.push_back({running->psn, word});
      if (results.size() > 16) results.pop_front();
      if (running->fetch_add)
        word += running->swap_add;
      else if (word == running->compare)
        word = running->swap_add;
    }
    running.reset();
    reading = qp;
  }

  void clear(int qp) {
    auto& dut = *bench.dut;
    dut.clear_qp_i = static_cast<std::uint8_t>(qp);
    dut.clear_valid_i = 1;
    for (bool ready = false; !ready;) {
      dut.eval();
      ready = dut.clear_ready_o;
      bench.tick();
    }
    dut.clear_valid_i = 0;
    saved[static_cast<std::uint8_t>(qp)].clear();
  }

  /// As qp_reset does: what has not begun is dropped, what has begun ends, then results are thrown away.
  void forget(std::uint8_t qp) {
    auto& dut = *bench.dut;
    dut.forget_qp_i = qp;
    dut.forget_valid_i = 1;
    dut.eval();
    // Dropped unless it has begun: the reference must not run it.
    const auto waiting = std::find_if(given.begin(), given.end(), [qp](const AtomicOp& op) { return op.qp == qp; });
    if (waiting != given.end()) {
      given.erase(waiting);
      busy.erase(qp);
    }
    bench.run_until([&] { return !dut.forget_busy_o; }, 2000, "forgotten");
    if (running && running->qp == qp) {
      running.reset();
      busy.erase(qp);
    }
    bench.run(3);
    clear(qp);
    dut.forget_valid_i = 0;
  }

  bool idle() const { return busy.empty() && given.empty() && to_give.empty() && !running; }
  void drain() {
    bench.run_until([&] { return idle(); }, 1000000, "operations done");
    CHECK(epochs.empty());
    for (const auto& [at, value] : shadow) REQUIRE(memory[at] == value);
  }

  AtomicOp random_op(std::uint8_t qp) {
    AtomicOp op;
    op.qp = qp;
    op.psn = next_psn[qp]++ & 0xffffff;
    op.pd = static_cast<std::uint32_t>(bench.uniform(0, 0xffffff));
    op.key = static_cast<std::uint32_t>(bench.rng()) & ~0x1fu;
    op.va = 0x10000 + 8 * bench.uniform(0, 11);
    op.fetch_add = bench.chance(0.5);
    op.swap_add = bench.rng();
    // Half of the comparisons succeed, if nobody comes between.
    op.compare = bench.chance(0.5) ? shadow[op.va] : bench.rng();
    return op;
  }

  Bench<Vrsp_atomic> bench;
  Sink<XlateReq> xlate{[this] { return bench.dut->xlate_req_valid_o != 0; },
                       [this](bool r) { bench.dut->xlate_req_ready_i = r; },
                       [this] { return get<XlateReq>(bench.dut->xlate_req_data_o); }, bench.rng};
  Sink<DmaRdReq> reads{[this] { return bench.dut->rd_req_valid_o != 0; },
                       [this](bool r) { bench.dut->rd_req_ready_i = r; },
                       [this] { return get<DmaRdReq>(bench.dut->rd_req_data_o); }, bench.rng};
  Sink<DmaWr> writes{[this] { return bench.dut->wr_valid_o != 0; }, [this](bool r) { bench.dut->wr_ready_i = r; },
                     [this] { return get<DmaWr>(bench.dut->wr_data_o); }, bench.rng};
  Sink<TxFault> faults{[this] { return bench.dut->fault_valid_o != 0; },
                       [this](bool r) { bench.dut->fault_ready_i = r; },
                       [this] { return get<TxFault>(bench.dut->fault_data_o); }, bench.rng};
  std::uint64_t latency = 20, executed = 0, repeated = 0, answered = 0;
  std::map<std::uint64_t, std::uint64_t> memory, shadow;
  std::map<std::uint8_t, std::deque<std::pair<std::uint32_t, std::uint64_t>>> saved;
  std::map<std::uint8_t, Answer> expected;
  std::map<std::uint8_t, std::uint32_t> next_psn;
  std::set<std::uint8_t> busy;
  std::deque<AtomicOp> given, to_give;
  std::optional<AtomicOp> running;
  std::deque<TxFault> got_faults;
  std::deque<std::uint8_t> epochs;
  XlateRsp answer;
  DmaRdRsp data;
  std::pair<std::uint64_t, std::uint64_t> write_due;
  std::uint64_t answer_at = 0, data_at = 0, write_at = 0;
  std::optional<std::uint8_t> reading, pending_answer;
};

}  // namespace

TEST_CASE("rsp_atomic: random atomics of many QPs, in their order, each one whole", "[rtl]") {
  const auto rate = GENERATE(1.0, 0.3);
  World w(seed(static_cast<std::uint64_t>(10 * rate)));
  w.xlate.rate = w.reads.rate = w.writes.rate = w.faults.rate = rate;
  for (auto& [at, value] : w.shadow) w.memory[at] = value = w.bench.rng();
  for (int i = 0; i < 3000; ++i) {
    const auto qp = static_cast<std::uint8_t>(w.bench.uniform(0, 9) * 28);
    if (!w.busy.count(qp)) w.give(w.random_op(qp));
    w.bench.run(w.bench.uniform(0, w.bench.chance(0.1) ? 200 : 10));
  }
  w.drain();
  CHECK(w.executed > 400);
  CHECK(w.executed == w.answered);
}

TEST_CASE("rsp_atomic: a repeated operation gets its old result and changes nothing; the last 16 of a QP are kept",
          "[rtl]") {
  World w(seed(2));
  for (const std::uint8_t qp : {std::uint8_t{0}, std::uint8_t{7}, std::uint8_t{255}}) {
    // PSNs that wrap, with gaps as Reads and Writes between make them.
    w.next_psn[qp] = 0xfffff0;
    std::vector<AtomicOp> done;
    for (int i = 0; i < 60; ++i) {
      w.next_psn[qp] += static_cast<std::uint32_t>(w.bench.uniform(0, 5));
      done.push_back(w.random_op(qp));
      w.give(done.back());
      w.drain();
      for (std::size_t back = 1; back <= 20 && back <= done.size(); ++back) {
        auto op = done[done.size() - back];
        op.repeated = 1;
        w.give(op);
        w.drain();
        CHECK(w.expected[qp].found == (back <= 16));
      }
    }
    auto unknown = done.back();
    unknown.psn ^= 0x800000;
    unknown.repeated = 1;
    w.give(unknown);
    w.drain();
    CHECK_FALSE(w.expected[qp].found);
  }
  CHECK(w.executed == 180);
  CHECK(w.repeated > 3000);
}

// A QP that uses few atomics between many other packets meets a PSN again while the result of the one before is still
// kept.
TEST_CASE("rsp_atomic: of two results of one PSN the newer one is given", "[rtl]") {
  World w(seed(6));
  for (int round = 0; round < 24; ++round) {
    auto op = w.random_op(9);
    op.fetch_add = 1;
    op.psn = round % 3 ? static_cast<std::uint32_t>(0x1000 + round) : 0x777;
    w.give(op);
    w.drain();
    if (round % 3) continue;
    op.repeated = 1;
    w.give(op);
    w.drain();
    CHECK(w.expected[9].found);
  }
}

TEST_CASE("rsp_atomic: a refused translation and a failed read are faults of that QP only, and nothing is written",
          "[rtl]") {
  World w(seed(3));
  w.faults.rate = 0.3;
  for (unsigned kind = 1; kind <= 16; ++kind) {
    auto bad = w.random_op(3), good = w.random_op(4);
    bad.key |= kind;
    const auto psn = bad.psn;
    w.give(bad);
    w.give(good);
    w.drain();
    REQUIRE(w.got_faults.size() == 1);
    CHECK(w.got_faults.front() == TxFault{.qp = 3,
                                          .responder = 1,
                                          .psn = psn,
                                          .wqe_idx = 0,
                                          .status = static_cast<std::uint8_t>(kind & 15),
                                          .atomic = 1});
    w.got_faults.clear();
    // It left no result.
    bad.repeated = 1;
    w.give(bad);
    w.drain();
    CHECK_FALSE(w.expected[3].found);
  }
}

TEST_CASE("rsp_atomic: a QP that is forgotten drops what has not begun, and its results", "[rtl]") {
  World w(seed(4));
  for (int round = 0; round < 200; ++round) {
    w.latency = w.bench.uniform(1, 60);
    for (const std::uint8_t qp : {std::uint8_t{1}, std::uint8_t{2}, std::uint8_t{3}}) w.give(w.random_op(qp));
    w.bench.run(w.bench.uniform(4, 120));
    w.forget(2);
    w.drain();
    auto old = w.random_op(2);
    --w.next_psn[2];
    old.psn = (w.next_psn[2] - 1) & 0xffffff;
    old.repeated = 1;
    w.give(old);
    w.drain();
    CHECK_FALSE(w.expected[2].found);
  }
}

// What a life before has left in the memory of the results is none of the next one's, in whichever place it is.
TEST_CASE("rsp_atomic: no result of a life before is given, however many there were", "[rtl]") {
  constexpr std::uint8_t kQp = 5;
  World w(seed(7));
  for (std::size_t before = 1; before <= 40; ++before) {
    std::vector<AtomicOp> done;
    for (std::size_t i = 0; i < before; ++i) {
      done.push_back(w.random_op(kQp));
      w.give(done.back());
      w.drain();
    }
    w.forget(kQp);
    for (auto op : done) {
      op.repeated = 1;
      w.give(op);
      w.drain();
      CHECK_FALSE(w.expected[kQp].found);
    }
  }
}

TEST_CASE("rsp_atomic: cycles of an atomic beside its memory", "[rtl]") {
  World w(seed(5));
  w.latency = 1;
  const auto from = w.bench.cycle;
  for (int qp = 0; qp < 200; ++qp) {
    auto op = w.random_op(static_cast<std::uint8_t>(qp));
    op.fetch_add = 1;
    w.give(op);
  }
  w.drain();
  std::printf("cycles per atomic, memory at once: %.1f\n", static_cast<double>(w.bench.cycle - from) / 200);
  CHECK(w.bench.cycle - from <= 200 * 16);
}

// Its room is clocked for eight cycles behind what shows at its ports (docs/architecture.md, Rest): a search is longer.
TEST_CASE("rsp_atomic: it says that it works while it looks for a result, and not while it waits for memory", "[rtl]") {
  World w(seed(7));
  std::vector<AtomicOp> done;
  for (int i = 0; i < 16; ++i) {
    done.push_back(w.random_op(3));
    w.give(done.back());
    while (!w.busy.empty()) {
      w.bench.run(1);
      REQUIRE_FALSE(w.bench.dut->busy_o);
    }
  }
  auto oldest = done.front();
  oldest.repeated = 1;
  w.give(oldest);
  int silent = 0, longest = 0;
  while (!w.bench.dut->done_valid_o) {
    w.bench.run(1);
    silent = w.bench.dut->busy_o || w.bench.dut->op_valid_i ? 0 : silent + 1;
    longest = std::max(longest, silent);
  }
  CHECK(longest < 8);
  w.drain();
  CHECK(w.expected[3].found);
}
