#pragma once

#include <Vcompletion.h>

#include "tests/rtl/completion_models.hpp"
#include "tests/rtl/mem_op_server.hpp"

/// The completion block in its surroundings: context managers, host memory behind two write clients, event queue
/// consumer.
namespace rnic::test {

/// Host memory as DMA writes make it, in order per client; a write is visible when its done pulse has been given.
class WriteClient : public Agent {
 public:
  WriteClient(std::function<bool()> valid, std::function<void(bool)> ready, std::function<void(bool)> done,
              std::function<rtl::DmaWr()> read, std::mt19937_64& rng)
      : valid_(std::move(valid)), ready_(std::move(ready)), done_(std::move(done)), read_(std::move(read)), rng_(rng) {}
  void drive() override {
    taking_ = std::uniform_real_distribution<>(0, 1)(rng_) < rate;
    ready_(taking_);
    finishing_ = !queue_.empty() && queue_.front().second == 0;
    done_(finishing_);
  }
  void sample() override {
    if (finishing_) {
      if (on_done) on_done(queue_.front().first);
      queue_.pop_front();
    }
    for (auto& q : queue_)
      if (q.second > 0) --q.second;
    if (valid_() && taking_) {
      ++accepted;
      queue_.push_back({read_(), max_delay ? std::uniform_int_distribution<int>(0, max_delay)(rng_) : 0});
    }
  }
  bool idle() const { return queue_.empty(); }
  double rate = 1;
  int max_delay = 0;
  std::uint64_t accepted = 0;
  std::function<void(const rtl::DmaWr&)> on_done;

 private:
  std::function<bool()> valid_;
  std::function<void(bool)> ready_, done_;
  std::function<rtl::DmaWr()> read_;
  std::mt19937_64& rng_;
  std::deque<std::pair<rtl::DmaWr, int>> queue_;
  bool taking_ = false, finishing_ = false;
};

/// The translation block as the client that unbinds the windows of failed QPs sees it: one operation at a time, and
/// `unbinding_o` from before it is asked until it is answered.
class UnbindServer : public Agent {
 public:
  UnbindServer(Vcompletion& dut, std::mt19937_64& rng) : dut_(dut), rng_(rng) {
    dut.unbind_mem_op_ready_i = dut.unbind_mem_op_rsp_valid_i = 0;
  }
  void drive() override {
    taking_ = !under_way_ && open && std::uniform_real_distribution<>(0, 1)(rng_) < 0.3;
    dut_.unbind_mem_op_ready_i = taking_;
    answering_ = under_way_ && open && --left_ <= 0;
    dut_.unbind_mem_op_rsp_valid_i = answering_;
  }
  void sample() override {
    if (under_way_ || dut_.unbind_mem_op_valid_o) REQUIRE(dut_.unbinding_o);
    if (answering_) under_way_ = false;
    if (taking_ && dut_.unbind_mem_op_valid_o) {
      const auto op = get<rtl::MemOp>(dut_.unbind_mem_op_data_o);
      REQUIRE(op.op == static_cast<std::uint8_t>(rtl::MemOpCode::kUnbindQp));
      taken.push_back(op.qp);
      left_ = std::uniform_int_distribution<int>(1, 60)(rng_);
      under_way_ = true;
    }
  }
  bool idle() const { return !under_way_ && !dut_.unbinding_o; }

  std::vector<unsigned> taken;  ///< QPs
  bool open = true;             ///< Takes and answers

 private:
  Vcompletion& dut_;
  std::mt19937_64& rng_;
  bool taking_ = false, answering_ = false, under_way_ = false;
  int left_ = 0;
};

struct CompletionWorld {
  static constexpr unsigned kEqLog = 8;
  static constexpr std::uint64_t kCqBase = 0x10000000, kCqStep = 0x100000, kEqBase = 0x80000000, kEqStep = 0x10000;

  explicit CompletionWorld(std::uint64_t s);
  Vcompletion& dut() { return *bench.dut; }
  void tick() {
    bench.tick();
    dut().inflight_valid_i = 0;
  }
  void run(int cycles) {
    while (cycles-- > 0) tick();
  }
  /// Runs until nothing has moved for a while.
  void settle(int quiet_cycles = 60);
  void create_cq(unsigned cqn, unsigned log_depth, unsigned eqn);
  void create_eq(unsigned eqn, unsigned vector);
  /// A connected QP with empty queues of 2^log_depth WQEs.
  void create_qp(unsigned index, std::uint32_t qpn, unsigned send_cqn, unsigned recv_cqn, unsigned log_depth = 6);
  /// A WQE whose last packet has just been sent; the send context is updated as the send queue does.
  void sent(unsigned qp, hw::WqeOpcode opcode, bool silent, unsigned packets, std::uint32_t length = 8);
  void post_receives(unsigned qp, unsigned count) {
    auto& c = recv.contexts[qp];
    hw::ReceiveDoorbell d;
    d.qpn = c.qpn;
    d.producer_index = rq_posted[qp] = static_cast<std::uint16_t>(rq_posted[qp] + count);
    rq_doorbells.push(ring(c.uar, d));
  }
  void ring_cq(unsigned cqn, unsigned arm) {
    hw::CqDoorbell d;
    d.cqn = cqn;
    d.consumer_index = cqs[cqn].seen & 0xffffff;
    d.arm = static_cast<std::uint8_t>(arm);
    cq_doorbells.push(ring(cqs[cqn].uar, d));
  }
  /// New entries of a CQ, in ring order.
  std::vector<hw::Cqe> poll(unsigned cqn);
  /// Holds qp_reset until it is answered.
  void reset_qp(unsigned qp);

  struct Ring {
    unsigned log_depth = 0, uar = 0, vector = 0;
    std::uint64_t seen = 0;
  };
  Bench<Vcompletion> bench;
  Source<rtl::RxDone> dones;
  Source<rtl::TxFault> tx_faults;
  Source<rtl::RetireCmd> retire_cmds;
  Source<rtl::QpError> errors;
  Source<unsigned> flushes;
  Source<rtl::Doorbell> rq_doorbells, cq_doorbells, eq_doorbells;
  Sink<rtl::RspCmd> rsps;
  Sink<unsigned> msix;
  WriteClient queue_writes, record_writes;
  MemOpServer<Vcompletion> mem_ops;
  UnbindServer unbinds;
  ContextModel<rtl::SendCtx> send;
  ContextModel<rtl::RecvCtx> recv;
  Monitor monitor;

  std::map<std::uint64_t, hw::Cqe> cq_memory;
  std::map<std::uint64_t, hw::Eqe> eq_memory;
  std::map<unsigned, Ring> cqs, eqs;
  std::array<std::uint16_t, 256> rq_posted{};
  std::deque<hw::Eqe> events;                                    // in the order in which they became visible
  std::deque<std::pair<std::uint64_t, unsigned>> records;        // address, index
  std::array<std::uint64_t, hw::kCounterNames.size()> counts{};  // by counter
  std::array<unsigned, 256> wakes{};
  unsigned eqes_done = 0, cqes_done = 0, invalidations_over = 0;
};

inline CompletionWorld::CompletionWorld(std::uint64_t s)
    : bench(s),
#define RNIC_IN(name, Type)                                                                           \
  name##s([this](bool v) { dut().name##_valid_i = v; }, [this] { return dut().name##_ready_o != 0; }, \
          [this](const Type& x) { put(dut().name##_data_i, x); }, bench.rng)
      dones([this](bool v) { dut().done_valid_i = v; }, [this] { return dut().done_ready_o != 0; },
            [this](const rtl::RxDone& x) { put(dut().done_data_i, x); }, bench.rng),
      RNIC_IN(tx_fault, rtl::TxFault),
      RNIC_IN(retire_cmd, rtl::RetireCmd),
      errors([this](bool v) { dut().qp_error_valid_i = v; }, [this] { return dut().qp_error_ready_o != 0; },
             [this](const rtl::QpError& x) { put(dut().qp_error_data_i, x); }, bench.rng),
      flushes([this](bool v) { dut().flush_req_valid_i = v; }, [this] { return dut().flush_req_ready_o != 0; },
              [this](const unsigned& x) { dut().flush_req_qp_i = static_cast<std::uint8_t>(x); }, bench.rng),
      RNIC_IN(rq_doorbell, rtl::Doorbell),
      RNIC_IN(cq_doorbell, rtl::Doorbell),
      RNIC_IN(eq_doorbell, rtl::Doorbell),
#undef RNIC_IN
      rsps([this] { return dut().rsp_cmd_valid_o != 0; }, [this](bool r) { dut().rsp_cmd_ready_i = r; },
           [this] { return get<rtl::RspCmd>(dut().rsp_cmd_data_o); }, bench.rng),
      msix([this] { return dut().msix_valid_o != 0; }, [this](bool r) { dut().msix_ready_i = r; },
           [this] { return static_cast<unsigned>(dut().msix_vector_o); }, bench.rng),
#define RNIC_BIT(port, bit, on) port = static_cast<std::uint8_t>((port & ~(1u << bit)) | ((on) ? 1u << bit : 0))
      queue_writes([this] { return dut().wr_valid_o & 1; }, [this](bool r) { RNIC_BIT(dut().wr_ready_i, 0, r); },
                   [this](bool d) { RNIC_BIT(dut().wr_done_i, 0, d); },
                   [this] { return get_slice<rtl::DmaWr>(dut().wr_data_o, 0); }, bench.rng),
      record_writes([this] { return (dut().wr_valid_o & 2) != 0; },
                    [this](bool r) { RNIC_BIT(dut().wr_ready_i, 1, r); },
                    [this](bool d) { RNIC_BIT(dut().wr_done_i, 1, d); },
                    [this] { return get_slice<rtl::DmaWr>(dut().wr_data_o, 1); }, bench.rng),
#undef RNIC_BIT
      mem_ops(dut(), bench.rng),
      unbinds(dut(), bench.rng),
#define RNIC_CONTEXT(side, Type)                                                                          \
  {                                                                                                       \
    [this] { return dut().side##_acq_valid_o; }, [this] { return dut().side##_rel_valid_o; },             \
        [this] { return dut().side##_rel_write_o; },                                                      \
        [this](unsigned i) { return static_cast<unsigned>(dut().side##_acq_index_o >> (8 * i) & 0xff); }, \
        [this](unsigned i) { return get_slice<Type>(dut().side##_rel_data_o, i); },                       \
        [this](std::uint32_t b) { dut().side##_acq_ready_i = static_cast<std::uint8_t>(b); },             \
        [this](std::uint32_t b) { dut().side##_ctx_valid_i = static_cast<std::uint8_t>(b); },             \
        [this](std::uint32_t b) { dut().side##_rel_ready_i = static_cast<std::uint8_t>(b); },             \
        [this](const Type& c) { put(dut().side##_ctx_data_i, c); }, [this] { dut().eval(); }              \
  }
      send(2, RNIC_CONTEXT(send, rtl::SendCtx), bench.rng),
      recv(3, RNIC_CONTEXT(recv, rtl::RecvCtx), bench.rng),
#undef RNIC_CONTEXT
      monitor([this] {
        for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += port_bit(dut().event_o, i);
        if (dut().sq_wake_valid_o) ++wakes[dut().sq_wake_qp_o];
        invalidations_over += dut().invalidation_over_o;
      }) {
  for (Agent* a : std::initializer_list<Agent*>{&dones, &tx_faults, &retire_cmds, &errors, &flushes, &rq_doorbells,
                                                &cq_doorbells, &eq_doorbells, &rsps, &msix, &queue_writes,
                                                &record_writes, &mem_ops, &unbinds, &monitor, &send, &recv})
    bench.add(*a);
  queue_writes.on_done = [this](const rtl::DmaWr& w) {
    if (w.addr < kEqBase) {
      cq_memory[w.addr] = written_as<hw::Cqe>(w);
      ++cqes_done;
    } else {
      events.push_back(eq_memory[w.addr] = written_as<hw::Eqe>(w));
      ++eqes_done;
      // The consumer keeps up.
      const auto eqn = static_cast<unsigned>((w.addr - kEqBase) / kEqStep);
      hw::EqDoorbell d;
      d.eqn = eqn;
      d.consumer_index = static_cast<std::uint32_t>(++eqs[eqn].seen & 0xffffff);
      eq_doorbells.push(ring(1, d));
    }
  };
  record_writes.on_done = [this](const rtl::DmaWr& w) {
    records.push_back({w.addr, written_as<hw::RetiredRecord>(w).retired_index});
  };
  // A message never precedes its event.
  msix.on_item = [this](const unsigned&) { REQUIRE(msix.items.size() <= eqes_done); };
  dut().timer_valid_i = dut().begun_valid_i = dut().left_valid_i = 0;
  dut().rx_entered_i = dut().rx_left_i = 0;
  dut().srq_eqe_valid_i = dut().srq_taken_i = dut().srq_refused_i = 0;
  dut().drained_valid_i = dut().established_valid_i = dut().device_eqe_valid_i = 0;
  dut().inflight_valid_i = dut().admin_acq_valid_i = dut().admin_rel_valid_i = dut().qp_reset_valid_i = 0;
  dut().wr_ready_i = dut().wr_done_i = 0;
  bench.reset();
  bench.run_until([&] { return dut().ready_o != 0; }, 2000, "ready");
}

inline void CompletionWorld::settle(int quiet_cycles) {
  for (int quiet = 0; quiet < quiet_cycles; ++quiet) {
    const auto before = cqes_done + eqes_done + records.size() + rsps.items.size() + msix.items.size();
    tick();
    const bool idle = dones.idle() && tx_faults.idle() && retire_cmds.idle() && errors.idle() && flushes.idle() &&
                      rq_doorbells.idle() && cq_doorbells.idle() && eq_doorbells.idle() && mem_ops.idle() &&
                      queue_writes.idle() && record_writes.idle();
    if (!idle || before != cqes_done + eqes_done + records.size() + rsps.items.size() + msix.items.size()) quiet = 0;
  }
}

inline void CompletionWorld::create_cq(unsigned cqn, unsigned log_depth, unsigned eqn) {
  cqs[cqn] = {log_depth, 1 + cqn % 100, 0, 0};
  rtl::CqCtx c;
  c.in_use = 1;
  c.base = kCqBase + kCqStep * cqn;
  c.log_depth = static_cast<std::uint8_t>(log_depth);
  c.eqn = static_cast<std::uint8_t>(eqn);
  c.uar = static_cast<std::uint8_t>(cqs[cqn].uar);
  put(dut().admin_cq_ctx_i, c);
  dut().admin_acq_index_i = static_cast<std::uint8_t>(cqn);
  dut().admin_rel_write_i = 1;
  dut().admin_acq_valid_i = 1;
  tick();
  dut().admin_acq_valid_i = 0;
  run(2);
  dut().admin_rel_valid_i = 1;
  tick();
  dut().admin_rel_valid_i = 0;
}

inline void CompletionWorld::create_eq(unsigned eqn, unsigned vector) {
  eqs[eqn] = {kEqLog, 1, vector, 0};
  rtl::EqCtx c;
  c.in_use = 1;
  c.base = kEqBase + kEqStep * eqn;
  c.log_depth = kEqLog;
  c.msix_vector = static_cast<std::uint8_t>(vector);
  put(dut().admin_eq_ctx_i, c);
  dut().admin_acq_index_i = static_cast<std::uint8_t>(eqn);
  dut().admin_rel_write_i = 1;
  dut().admin_acq_valid_i = 2;
  tick();
  dut().admin_acq_valid_i = 0;
  run(2);
  dut().admin_rel_valid_i = 2;
  tick();
  dut().admin_rel_valid_i = 0;
}

inline void CompletionWorld::create_qp(unsigned index, std::uint32_t qpn, unsigned send_cqn, unsigned recv_cqn,
                                       unsigned log_depth) {
  REQUIRE(send.is_free(index));
  REQUIRE(recv.is_free(index));
  auto& s = send.contexts[index] = {};
  auto& r = recv.contexts[index] = {};
  s.state = r.state = static_cast<std::uint8_t>(hw::QpState::kRts);
  s.in_use = r.in_use = 1;
  s.qpn = r.qpn = qpn;
  s.uar = r.uar = static_cast<std::uint8_t>(1 + index % 100);
  s.cqn = static_cast<std::uint8_t>(send_cqn);
  r.cqn = static_cast<std::uint8_t>(recv_cqn);
  s.log_depth = r.log_depth = static_cast<std::uint8_t>(log_depth);
  s.retired_address = 0x200000000ULL + 8 * index;
  s.next_psn = s.una_psn = s.max_psn = static_cast<std::uint32_t>(bench.uniform(0xfffff0, 0xffffff));
  s.pi = s.exec_idx = s.sent_idx = s.retire_idx = static_cast<std::uint16_t>(bench.uniform(65530, 65535));
  r.rq_pi = r.rq_head = r.rq_done = rq_posted[index] = static_cast<std::uint16_t>(bench.uniform(65530, 65535));
}

inline void CompletionWorld::sent(unsigned qp, hw::WqeOpcode opcode, bool silent, unsigned packets,
                                  std::uint32_t length) {
  auto& c = send.contexts[qp];
  rtl::Inflight f;
  f.qp = static_cast<std::uint8_t>(qp);
  f.wqe_idx = c.exec_idx;
  f.opcode = static_cast<std::uint8_t>(opcode);
  f.silent = silent;
  f.first_psn = c.next_psn;
  f.last_psn = (c.next_psn + packets - 1) & 0xffffff;
  f.length = length;
  put(dut().inflight_data_i, f);
  dut().inflight_valid_i = 1;
  c.next_psn = c.max_psn = (c.next_psn + packets) & 0xffffff;
  c.sent_idx = ++c.exec_idx;
  if (static_cast<std::uint16_t>(c.pi - c.exec_idx) > 0x8000) c.pi = c.exec_idx;
  if (opcode == hw::WqeOpcode::kRead) ++c.rd_outstanding;
  tick();
}

inline std::vector<hw::Cqe> CompletionWorld::poll(unsigned cqn) {
  auto& q = cqs[cqn];
  std::vector<hw::Cqe> out;
  for (;;) {
    const auto slot = q.seen & ((1ULL << q.log_depth) - 1);
    const auto at = cq_memory.find(kCqBase + kCqStep * cqn + slot * 64);
    if (at == cq_memory.end() || at->second.phase == (q.seen >> q.log_depth & 1)) return out;
    out.push_back(at->second);
    ++q.seen;
  }
}

inline void CompletionWorld::reset_qp(unsigned qp) {
  dut().qp_reset_qp_i = static_cast<std::uint8_t>(qp);
  dut().qp_reset_valid_i = 1;
  for (int i = 0;; ++i) {
    REQUIRE(i < 5000);
    dut().eval();
    const bool answered = dut().qp_reset_ready_o;
    tick();
    if (answered) break;
  }
  dut().qp_reset_valid_i = 0;
}

}  // namespace rnic::test
