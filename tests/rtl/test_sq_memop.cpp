#include <Vsq_memop.h>

#include "tests/rtl/completion_models.hpp"
#include "tests/rtl/mem_op_server.hpp"

// rtl/sq/sq_memop.sv: each WQE becomes its memory operation, once, in the order in which they came; its queue goes on,
// fails, or is flushed.
using namespace rnic;
using namespace rnic::test;

namespace {

struct Wqe {
  hw::WqeControl control;
  hw::WqeRange range;
  hw::WqeBind bind;
  hw::WqeFastRegister fast;
};

struct World {
  explicit World(std::uint64_t s)
      : bench(s),
        ops(*bench.dut, bench.rng),
        commands([this] { return bench.dut->retire_cmd_valid_o != 0; },
                 [this](bool r) { bench.dut->retire_cmd_ready_i = r; },
                 [this] { return get<rtl::RetireCmd>(bench.dut->retire_cmd_data_o); }, bench.rng),
        monitor([this] { look(); }),
        contexts(1,
                 {[this] { return bench.dut->acq_valid_o; }, [this] { return bench.dut->rel_valid_o; },
                  [this] { return bench.dut->rel_write_o; },
                  [this](unsigned) { return static_cast<unsigned>(bench.dut->acq_index_o); },
                  [this](unsigned) { return get<rtl::SendCtx>(bench.dut->rel_data_o); },
                  [this](std::uint32_t b) { bench.dut->acq_ready_i = static_cast<std::uint8_t>(b); },
                  [this](std::uint32_t b) { bench.dut->ctx_valid_i = static_cast<std::uint8_t>(b); },
                  [this](std::uint32_t b) { bench.dut->rel_ready_i = static_cast<std::uint8_t>(b); },
                  [this](const rtl::SendCtx& c) { put(bench.dut->ctx_data_i, c); }, [this] { bench.dut->eval(); }},
                 bench.rng) {
    bench.add(ops);
    bench.add(commands);
    bench.add(monitor);
    bench.add(contexts);
    contexts.stall_rate = 0.3;
    bench.dut->start_valid_i = 0;
    bench.dut->busy_qp_i = 0;
    bench.reset();
  }
  /// An inline list may be asked for from when its operation has been taken to its answer, and no other's.
  void look_at_list() {
    const auto& dut = *bench.dut;
    const bool runs = dut.list_run_o != 0;
    if (!runs) return;
    REQUIRE((!ops.idle() || dut.mem_op_rsp_valid_i));
    REQUIRE_FALSE(ops.taken.empty());
    const auto& op = ops.taken.back();
    REQUIRE(op.op == raw(rtl::MemOpCode::kFastRegister));
    REQUIRE(op.inline_list == 1);
    const auto& ctx = before.at(op.qp);
    REQUIRE(dut.list_addr_o == (op.qp * 8u | ((ctx.exec_idx << (ctx.log_stride - 6)) & 7)));
    REQUIRE(dut.list_lines_o == (48 + 8 * op.page_count + 63) / 64);
    ++list_cycles;
  }
  void look() {
    look_at_list();
    if (bench.dut->wake_valid_o) wakes.push_back(bench.dut->wake_qp_o);
    if (bench.dut->flush_valid_o) flushes.push_back(bench.dut->flush_qp_o);
    for (std::size_t i = 0; i < events.size(); ++i) events[i] += port_bit(bench.dut->event_o, i);
  }
  /// As the engine does it.
  void start(unsigned qp, const Wqe& wqe) {
    auto& ctx = contexts.contexts[qp];
    ctx = {};
    ctx.in_use = 1;
    ctx.state = raw(hw::QpState::kRts);
    ctx.mem_busy = 1;
    ctx.pd = 0x10000 + qp;
    ctx.exec_idx = ctx.retire_idx = ctx.buf_idx = static_cast<std::uint16_t>(bench.rng());
    ctx.pi = static_cast<std::uint16_t>(ctx.exec_idx + 3);
    ctx.buf_count = 2;
    ctx.log_stride = static_cast<std::uint8_t>(bench.uniform(6, 9));
    ctx.una_psn = ctx.next_psn = static_cast<std::uint32_t>(bench.uniform(0, 3));
    before[qp] = ctx;
    auto& dut = *bench.dut;
    dut.start_qp_i = static_cast<std::uint8_t>(qp);
    dut.start_pd_i = ctx.pd;
    put(dut.start_control_i, wqe.control);
    put(dut.start_second_i, wqe.range);
    if (wqe.control.opcode == raw(hw::WqeOpcode::kFastRegister))
      put(dut.start_third_i, wqe.fast);
    else
      put(dut.start_third_i, wqe.bind);
    dut.start_valid_i = 1;
    bench.tick();
    dut.start_valid_i = 0;
  }
  bool busy(unsigned qp) {
    bench.dut->busy_qp_i = static_cast<std::uint8_t>(qp);
    bench.dut->eval();
    return bench.dut->busy_o != 0;
  }
  void finish(unsigned qp) {
    bench.run_until([&] { return !busy(qp); }, 50'000, "end of the operation");
    bench.run(3);
  }
  Wqe random_wqe() {
    static constexpr std::array kOpcodes = {hw::WqeOpcode::kBindWindow1, hw::WqeOpcode::kBindWindow2,
                                            hw::WqeOpcode::kLocalInvalidate, hw::WqeOpcode::kFastRegister};
    const auto bit = [&] { return static_cast<std::uint8_t>(bench.chance(0.5)); };
    Wqe wqe;
    wqe.control.opcode = raw(kOpcodes[bench.uniform(0, 3)]);
    wqe.control.immediate = static_cast<std::uint32_t>(bench.rng());
    wqe.control.inline_data = wqe.control.opcode == raw(hw::WqeOpcode::kFastRegister) && bit();
    wqe.range = {.va = bench.rng(), .length = bench.rng()};
    wqe.bind.mr_key = static_cast<std::uint32_t>(bench.rng());
    wqe.bind.remote_read = bit(), wqe.bind.remote_write = bit(), wqe.bind.remote_atomic = bit();
    wqe.fast.page_list = bench.rng();
    wqe.fast.first_offset = static_cast<std::uint32_t>(bench.rng());
    wqe.fast.page_count = static_cast<std::uint16_t>(wqe.control.inline_data ? bench.uniform(1, 58) : bench.rng());
    wqe.fast.log_page = static_cast<std::uint8_t>(bench.rng());
    wqe.fast.local_write = bit(), wqe.fast.read_sink = bit(), wqe.fast.remote_read = bit(),
    wqe.fast.remote_write = bit(), wqe.fast.remote_atomic = bit();
    return wqe;
  }
  rtl::MemOp expected(unsigned qp, const Wqe& wqe) const {
    rtl::MemOp op;
    op.qp = static_cast<std::uint8_t>(qp);
    op.pd = 0x10000 + qp;
    op.key = wqe.control.immediate;
    const auto opcode = static_cast<hw::WqeOpcode>(wqe.control.opcode);
    if (opcode == hw::WqeOpcode::kLocalInvalidate) {
      op.op = raw(rtl::MemOpCode::kInvalidate);
      return op;
    }
    op.va = wqe.range.va;
    op.length = wqe.range.length;
    if (opcode == hw::WqeOpcode::kFastRegister) {
      op.op = raw(rtl::MemOpCode::kFastRegister);
      op.page_list = wqe.fast.page_list;
      op.first_offset = wqe.fast.first_offset;
      op.page_count = wqe.fast.page_count;
      op.log_page = wqe.fast.log_page;
      op.local_write = wqe.fast.local_write;
      op.read_sink = wqe.fast.read_sink;
      op.remote_read = wqe.fast.remote_read;
      op.remote_write = wqe.fast.remote_write;
      op.remote_atomic = wqe.fast.remote_atomic;
      op.inline_list = wqe.control.inline_data;
      return op;
    }
    op.op = raw(opcode == hw::WqeOpcode::kBindWindow2 ? rtl::MemOpCode::kBindWindow2 : rtl::MemOpCode::kBindWindow1);
    op.mr_key = wqe.bind.mr_key;
    op.remote_read = wqe.bind.remote_read;
    op.remote_write = wqe.bind.remote_write;
    op.remote_atomic = wqe.bind.remote_atomic;
    return op;
  }

  Bench<Vsq_memop> bench;
  MemOpServer<Vsq_memop> ops;
  Sink<rtl::RetireCmd> commands;
  Monitor monitor;
  ContextModel<rtl::SendCtx> contexts;
  std::map<unsigned, rtl::SendCtx> before;
  std::uint64_t list_cycles = 0;
  std::vector<unsigned> wakes, flushes;
  std::array<std::uint64_t, hw::kCounterNames.size()> events{};
};

}  // namespace

TEST_CASE("sq_memop: operations of many QPs are executed once each, in order, and their queues go on or fail",
          "[rtl]") {
  World w(seed());
  w.commands.rate = 0.4;
  // The status that each operation gets, by its key.
  w.ops.judge = [](const rtl::MemOp& op) { return static_cast<rtl::MemOpStatus>(op.key % 6); };
  for (int round = 0; round < 20; ++round) {
    const auto count = static_cast<unsigned>(round == 0 ? 256 : w.bench.uniform(1, 40));
    std::vector<std::pair<unsigned, Wqe>> started;
    for (unsigned i = 0; i < count; ++i) {
      started.emplace_back((i * 37 + static_cast<unsigned>(round)) % 256, w.random_wqe());
      w.start(started.back().first, started.back().second);
      if (w.bench.chance(0.2)) w.bench.run(w.bench.uniform(1, 30));
    }
    w.finish(started.back().first);
    REQUIRE(w.ops.taken.size() == count);
    REQUIRE(w.commands.items.size() == count);
    REQUIRE(w.wakes.size() == count);
    CHECK(w.flushes.empty());
    for (unsigned i = 0; i < count; ++i) {
      const auto& [qp, wqe] = started[i];
      REQUIRE(w.ops.taken[i] == w.expected(qp, wqe));
      CHECK(w.wakes[i] == qp);
      const auto& was = w.before[qp];
      const auto& is = w.contexts.contexts[qp];
      const auto& command = w.commands.items[i];
      const auto status = static_cast<rtl::MemOpStatus>(wqe.control.immediate % 6);
      CHECK(is.mem_busy == 0);
      CHECK(is.exec_idx == static_cast<std::uint16_t>(was.exec_idx + 1));
      CHECK(is.buf_idx == static_cast<std::uint16_t>(was.buf_idx + 1));
      CHECK(is.buf_count == was.buf_count - 1);
      CHECK(is.next_psn == was.next_psn);
      CHECK(command.qp == qp);
      CHECK(is.fault == (status != rtl::MemOpStatus::kOk));
      CHECK(is.mem_done == (status == rtl::MemOpStatus::kOk));  // nothing is flushed until it has retired
      if (status == rtl::MemOpStatus::kOk) {
        CHECK(command.command == raw(rtl::RetireCommand::kAck));
        CHECK(command.psn == ((was.una_psn - 1) & 0xffffff));
        continue;
      }
      const bool state = status == rtl::MemOpStatus::kBadState || status == rtl::MemOpStatus::kBadRequest;
      CHECK(command.command == raw(rtl::RetireCommand::kFailWqe));
      CHECK(command.wqe_idx == was.exec_idx);
      CHECK(command.status == raw(state ? hw::CqeStatus::kLocQpOpErr : hw::CqeStatus::kLocProtErr));
      CHECK(command.syndrome == raw(status));
      CHECK(is.fault_idx == was.exec_idx);
      CHECK(is.fault_status == command.status);
    }
    w.ops.taken.clear();
    w.commands.items.clear();
    w.wakes.clear();
  }
  CHECK(w.list_cycles > 0);
  CHECK(w.events[raw(hw::Counter::kMemoryOps)] > 0);
  CHECK(w.events[raw(hw::Counter::kMemoryOpsRefused)] > 0);
}

// A flushed request has not been executed (decisions 17): one that has not begun is not, one that made a key valid is
// undone, and one that took access away completes as such.
TEST_CASE("sq_memop: a QP that fails meanwhile executes nothing more, and what it did is undone or completes",
          "[rtl]") {
  World w(seed(2));
  unsigned stood = 0;
  for (int round = 0; round < 300; ++round) {
    const unsigned qp = static_cast<unsigned>(w.bench.uniform(0, 255));
    auto wqe = w.random_wqe();
    if (w.bench.chance(0.3)) wqe.range.length = 0;
    const bool refused = w.bench.chance(0.3);
    w.ops.judge = [&](const rtl::MemOp&) {
      return refused && w.ops.taken.size() == 1 ? rtl::MemOpStatus::kBadRange : rtl::MemOpStatus::kOk;
    };
    w.ops.taken.clear();
    w.start(qp, wqe);
    const auto state = w.bench.chance(0.7) ? hw::QpState::kErr : hw::QpState::kSqe;
    w.bench.run(w.bench.uniform(0, 40));
    auto& ctx = w.contexts.contexts[qp];
    while (!w.contexts.is_free(qp)) w.bench.tick();
    const bool late = !ctx.mem_busy;
    if (!late) {
      ctx.state = raw(state);
      ctx.exec_idx = ctx.pi;
      ctx.buf_count = 0;
    }
    w.finish(qp);
    const auto opcode = static_cast<hw::WqeOpcode>(wqe.control.opcode);
    if (late) {
      REQUIRE(w.commands.items.size() == 1);
      w.commands.items.clear();
      w.wakes.clear();
      continue;
    }
    const bool takes_away =
        opcode == hw::WqeOpcode::kLocalInvalidate || (opcode == hw::WqeOpcode::kBindWindow1 && wqe.range.length == 0);
    const bool stands = takes_away && !refused && !w.ops.taken.empty();
    CHECK(ctx.mem_busy == 0);
    CHECK(ctx.mem_done == stands);
    CHECK(ctx.exec_idx == ctx.pi);
    CHECK(ctx.fault == 0);
    CHECK(w.wakes.empty());
    REQUIRE(w.commands.items.size() == (stands ? 1 : 0));
    REQUIRE(w.flushes.size() == (stands ? 0 : 1));  // the rest is flushed when it has retired
    if (stands) CHECK(w.commands.items[0].command == raw(rtl::RetireCommand::kAck));
    stood += stands;
    w.commands.items.clear();
    w.flushes.clear();
    if (w.ops.taken.empty()) continue;
    CHECK(w.ops.taken[0] == w.expected(qp, wqe));
    const bool undone = !takes_away && !refused;
    REQUIRE(w.ops.taken.size() == (undone ? 2 : 1));
    if (!undone) continue;
    const auto& undo = w.ops.taken[1];
    CHECK(undo.key == wqe.control.immediate);
    CHECK(undo.qp == qp);
    CHECK(undo.pd == 0x10000 + qp);
    CHECK(undo.op ==
          raw(opcode == hw::WqeOpcode::kBindWindow1 ? rtl::MemOpCode::kBindWindow1 : rtl::MemOpCode::kInvalidate));
    CHECK(undo.length == 0);
  }
  CHECK(stood > 20);
}

// Decisions 17: a request that completes as flushed has not been executed. (InfiniBand specification 10.3.1: ERR,
// SQE; 9.9.2.1.)
TEST_CASE("sq_memop: a QP that has failed before its operation begins executes nothing", "[rtl]") {
  World w(seed(4));
  for (const auto opcode : {hw::WqeOpcode::kBindWindow1, hw::WqeOpcode::kBindWindow2, hw::WqeOpcode::kLocalInvalidate,
                            hw::WqeOpcode::kFastRegister}) {
    for (const auto state : {hw::QpState::kErr, hw::QpState::kSqe, hw::QpState::kReset}) {
      auto wqe = w.random_wqe();
      wqe.control.opcode = raw(opcode);
      w.start(9, wqe);
      auto& ctx = w.contexts.contexts[9];
      ctx.state = raw(state);
      const auto before = ctx.exec_idx;
      w.finish(9);
      CHECK(w.ops.taken.empty());
      CHECK(w.commands.items.empty());
      CHECK(w.wakes.empty());
      CHECK(ctx.mem_busy == 0);
      CHECK(ctx.exec_idx == before);
      // There is nothing to flush in RESET.
      CHECK(w.flushes.size() == (state == hw::QpState::kReset ? 0 : 1));
      w.flushes.clear();
      w.ops.taken.clear();
    }
  }
}

TEST_CASE("sq_memop: the context is free while an operation waits", "[rtl]") {
  World w(seed(3));
  w.contexts.stall_rate = 0;
  w.ops.open = false;
  w.start(7, w.random_wqe());
  w.bench.run(50);
  CHECK(w.contexts.idle());
  CHECK(w.busy(7));
  CHECK_FALSE(w.busy(8));
  w.ops.open = true;
  w.finish(7);
  CHECK(w.commands.items.size() == 1);
}
