#pragma once

#include <Vadmin_bench.h>

#include <map>
#include <set>

#include "tests/rtl/admin_model.hpp"
#include "tests/rtl/mem_op_model.hpp"
#include "tests/support/rtl_bench.hpp"

namespace rnic::test {

/// Everything around the admin queue: host memory with the rings, the MPT, and the rest of the NIC, which flushes QPs
/// in the error state and takes doorbells. It works on the contexts through a client of the managers, and keeps the
/// model up to date.
class AdminWorld : public Agent {
 public:
  explicit AdminWorld(std::uint64_t seed_value) : bench(seed_value) {
    auto& dut = *bench.dut;
    dut.enable_i = 1;
    dut.restart_i = 0;
    dut.producer_index_i = 0;
    dut.rd_rsp_valid_i = dut.wr_done_i = dut.mpt_rsp_valid_i = 0;
    dut.mem_op_ready_i = dut.mem_op_rsp_valid_i = 0;
    dut.query_done_i = 0;
    for (auto& all : counters)
      for (auto& one : all) one = static_cast<std::uint32_t>(bench.rng());
    dut.drain_ready_i = dut.qp_reset_ready_i = dut.flushing_i = 0;
    dut.nic_acq_valid_i = dut.nic_rel_valid_i = 0;
    command_base = (bench.rng() & ~0xfffULL) | 0x123;  // the low 12 bits do not count
    completion_base = bench.rng() & ~0xfffULL;
    configure(2, true, 5);
    bench.reset();
    bench.add(*this);
    bench.run_until([&] { return dut.ready_o != 0; }, 2000, "ready");
  }

  void configure(unsigned log_depth, bool interrupt, unsigned vector) {
    hw::RegAdminConfig config;
    config.log_depth = static_cast<std::uint8_t>(log_depth);
    config.interrupt_enable = interrupt;
    config.interrupt_vector = static_cast<std::uint8_t>(vector);
    depth = 1u << std::min(log_depth, 8u);
    put(bench.dut->config_i, config);
  }

  // ---- Commands
  // --------------------------------------------------------------------------------------------------------
  void post(const hw::AdminCommand& command) {
    std::array<std::uint8_t, 128> bytes{};
    command.encode(bytes);
    const std::uint64_t at = (command_base & ~0xfffULL) + 128 * (producer % depth);
    for (unsigned i = 0; i < 2; ++i) std::copy_n(bytes.begin() + 64 * i, 64, memory[at + 64 * i].begin());
    ++producer;
  }
  void ring() { bench.dut->producer_index_i = producer; }
  hw::AdminCompletion slot() {
    return hw::AdminCompletion::decode(
        std::span<const std::uint8_t, 64>(memory[(completion_base & ~0xfffULL) + 64 * (consumer % depth)]));
  }
  /// Waits for the next completion.
  hw::AdminCompletion reap(std::uint64_t limit = 20000) {
    const bool phase = (consumer / depth) % 2 == 0;
    bench.run_until([&] { return slot().phase == phase; }, limit, "completion");
    const auto completion = slot();
    ++consumer;
    REQUIRE(completion.consumer_index == consumer);
    return completion;
  }
  hw::AdminCompletion execute(hw::AdminCommand command) {
    command.command_id = static_cast<std::uint16_t>(bench.rng());
    current = command;
    log.clear();
    post(command);
    ring();
    const auto completion = reap();
    REQUIRE(completion.command_id == command.command_id);
    REQUIRE(completion.opcode == command.opcode);
    return completion;
  }

  // ---- The rest of the NIC
  // ---------------------------------------------------------------------------------------------
  struct Op {
    unsigned kind, index;
    std::function<bool()> body;  // looks at and changes send, recv, cq, eq, srq; true: write back
  };
  void nic(unsigned kind, unsigned index, std::function<bool()> body) { ops.push_back({kind, index, std::move(body)}); }
  bool nic_idle() const { return ops.empty() && stage == Stage::kIdle; }
  void settle() {
    bench.run_until([&] { return nic_idle(); }, 1000, "end of the NIC's work");
  }

  void set_error(unsigned qp, bool send_first) {
    auto do_send = [this, qp] {
      const bool write = send.in_use != 0;
      if (write) send.state = static_cast<std::uint8_t>(QpState::kErr);
      if (model.qps.contains(qp)) model.qps[qp].send.state = static_cast<std::uint8_t>(QpState::kErr);
      return write;
    };
    auto do_recv = [this, qp] {
      const bool write = recv.in_use != 0;
      if (write) recv.state = static_cast<std::uint8_t>(QpState::kErr);
      // Nothing of it is in the receive engine; of some, a flush finds that only later.
      if (write && recv.srq && qp > 3) recv.rx_gone = 1;
      if (model.qps.contains(qp))
        model.qps[qp].recv.state = static_cast<std::uint8_t>(QpState::kErr), model.qps[qp].recv.rx_gone = recv.rx_gone;
      return write;
    };
    if (send_first) nic(0, qp, do_send);
    nic(1, qp, do_recv);
    if (!send_first) nic(0, qp, do_send);
  }
  /// An error that the NIC finds by itself, in any state but RESET and ERR.
  void inject_error(unsigned qp) {
    nic(0, qp, [this, qp] {
      if (!send.in_use || send.state == static_cast<std::uint8_t>(QpState::kReset) ||
          send.state == static_cast<std::uint8_t>(QpState::kErr))
        return false;
      errors.insert(qp);
      set_error(qp, bench.chance(0.5));
      return false;
    });
  }
  void flush(unsigned qp, unsigned step) {
    auto advance = [step](std::uint16_t& index, std::uint16_t end) {
      const auto left = static_cast<std::uint16_t>(end - index);
      index = static_cast<std::uint16_t>(index + std::min<unsigned>(step, left));
    };
    nic(0, qp, [this, qp, advance] {
      if (!send.in_use || send.state != static_cast<std::uint8_t>(QpState::kErr)) return false;
      advance(send.retire_idx, send.pi);
      if (model.qps.contains(qp)) model.qps[qp].send.retire_idx = send.retire_idx;
      return true;
    });
    nic(1, qp, [this, qp, advance] {
      if (!recv.in_use || recv.state != static_cast<std::uint8_t>(QpState::kErr)) return false;
      advance(recv.rq_done, recv.rq_pi);
      if (recv.srq) recv.rx_gone = 1;
      if (model.qps.contains(qp)) model.qps[qp].recv.rq_done = recv.rq_done, model.qps[qp].recv.rx_gone = recv.rx_gone;
      return true;
    });
  }
  /// A doorbell through the QP's own UAR, in the states in which a driver rings it.
  void doorbell(unsigned qp, unsigned count) {
    if (!model.qps.contains(qp)) return;
    const unsigned uar = model.qps[qp].send.uar;
    nic(0, qp, [this, qp, uar, count] {
      if (!send.in_use || send.uar != uar || !model.qps.contains(qp)) return false;
      if (send.state < static_cast<std::uint8_t>(QpState::kRts)) return false;
      send.pi = static_cast<std::uint16_t>(send.pi + count);
      model.qps[qp].send.pi = send.pi;
      return true;
    });
    nic(1, qp, [this, qp, uar, count] {
      if (!recv.in_use || recv.uar != uar || !model.qps.contains(qp)) return false;
      if (recv.state == static_cast<std::uint8_t>(QpState::kReset) || recv.srq) return false;
      recv.rq_pi = static_cast<std::uint16_t>(recv.rq_pi + count);
      model.qps[qp].recv.rq_pi = recv.rq_pi;
      return true;
    });
  }
  /// The contexts as the managers have them.
  AdminModel::Qp contexts(unsigned qp) {
    AdminModel::Qp seen;
    nic(0, qp, [&] {
      seen.send = send;
      return false;
    });
    nic(1, qp, [&] {
      seen.recv = recv;
      return false;
    });
    settle();
    return seen;
  }

  void drive() override {
    drive_dma();
    drive_blocks();
    drive_nic();
  }
  void sample() override {
    sample_dma();
    sample_blocks();
    sample_nic();
  }

  Bench<Vadmin_bench> bench;
  AdminModel model;
  hw::AdminCommand current;          // under way
  std::vector<std::string> log;      // what the other blocks were asked for, in order
  std::set<unsigned> errors;         // QPs that inject_error moved to the error state
  std::function<void()> background;  // called when the NIC has nothing to do
  std::map<std::uint32_t, rtl::Mpt> mpt;
  std::map<std::uint32_t, rtl::Path> paths;
  std::array<std::array<std::uint32_t, hw::kQpCounters>, 256> counters;
  std::vector<unsigned> interrupts;
  std::map<std::uint64_t, std::array<std::uint8_t, 64>> memory;
  std::uint64_t command_base = 0, completion_base = 0;
  std::uint16_t producer = 0, consumer = 0, fetched = 0, answered = 0;
  unsigned depth = 1, fetches = 0;
  bool fail_next_read = false;
  double rate = 0.5;
  // The context that the NIC holds.
  rtl::SendCtx send;
  rtl::RecvCtx recv;
  rtl::CqCtx cq;
  rtl::EqCtx eq;
  rtl::SrqCtx srq;

 private:
  enum class Stage { kIdle, kAsking, kWaiting, kHolding, kReleasing };

  bool chance() { return bench.chance(rate); }

  // ---- DMA and interrupts
  // ----------------------------------------------------------------------------------------------
  void drive_dma() {
    auto& dut = *bench.dut;
    dut.command_base_i = command_base;
    dut.completion_base_i = completion_base;
    dut.rd_req_ready_i = chance();
    if (!beats.empty() && !offering && chance()) {
      put(dut.rd_rsp_data_i, beats.front());
      offering = true;
    }
    dut.rd_rsp_valid_i = offering;
    dut.wr_ready_i = !writing && chance();
    dut.wr_done_i = writing && chance();
    if (dut.wr_done_i) writing = false;
    dut.irq_ready_i = chance();
  }
  void sample_dma() {
    auto& dut = *bench.dut;
    if (dut.rd_req_valid_o && dut.rd_req_ready_i) {
      const auto request = get<rtl::DmaRdReq>(dut.rd_req_data_o);
      ++fetches;
      REQUIRE(request.length == 128);
      REQUIRE(request.addr == (command_base & ~0xfffULL) + 128 * (fetched++ % depth));
      for (unsigned i = 0; i < (fail_next_read ? 1 : 2); ++i) {
        rtl::DmaRdRsp beat;
        beat.data = memory[request.addr + 64 * i];
        beat.bytes = fail_next_read ? 0 : 64;
        beat.err = fail_next_read;
        beat.last = fail_next_read || i == 1;
        beats.push_back(beat);
      }
    }
    if (offering && dut.rd_rsp_ready_o) {
      beats.pop_front();
      offering = false;
    }
    if (dut.wr_valid_o && dut.wr_ready_i) {
      const auto write = get<rtl::DmaWr>(dut.wr_data_o);
      REQUIRE(write.length == 64);
      REQUIRE(write.last == 1);
      REQUIRE(write.addr == (completion_base & ~0xfffULL) + 64 * (answered++ % depth));
      memory[write.addr] = write.data;
      writing = true;
    }
    if (dut.irq_valid_o && dut.irq_ready_i) {
      REQUIRE(!writing);  // the completion has left before
      interrupts.push_back(dut.irq_vector_o);
    }
  }

  // ---- Other blocks
  // ----------------------------------------------------------------------------------------------------
  void drive_blocks() {
    auto& dut = *bench.dut;
    dut.mpt_req_ready_i = chance();
    dut.mpt_rsp_valid_i = reading && chance();
    if (dut.mpt_rsp_valid_i) {
      put(dut.mpt_rsp_data_i, read_entry);
      reading = false;
    }
    dut.mem_op_ready_i = !op_busy && chance();
    dut.mem_op_rsp_valid_i = op_busy && bench.chance(0.2);
    if (dut.mem_op_rsp_valid_i) {
      put(dut.mem_op_rsp_data_i, rtl::MemOpRsp{.status = static_cast<std::uint8_t>(memory_operation())});
      op_busy = false;
    }
    dut.drain_ready_i = dut.drain_valid_o && bench.chance(0.1);
    dut.qp_reset_ready_i = dut.qp_reset_valid_o && nic_idle() && bench.chance(0.3);  // what is under way ends before
    dut.qp_error_ready_i = chance();
    dut.query_done_i = dut.query_valid_o && bench.chance(0.2);
    if (dut.query_done_i) {
      std::array<std::uint8_t, 48> raw{};
      for (std::size_t i = 0; i < 12; ++i) {
        auto& one = counters[dut.query_qp_o][(dut.query_upper_o ? 12 : 0) + i];
        std::memcpy(raw.data() + 4 * i, &one, 4);
        if (dut.query_clear_o) one = 0;
      }
      port_from_bytes(dut.query_counts_i, raw);
    }
  }
  void sample_blocks() {
    auto& dut = *bench.dut;
    const auto qp = current.number & 0xff;
    if (dut.query_valid_o) REQUIRE(dut.query_qp_o == qp);
    if (dut.mpt_req_valid_o && dut.mpt_req_ready_i) {
      const std::uint32_t index = dut.mpt_req_index_o;
      REQUIRE(index == current.number >> 8);
      if (dut.mpt_req_write_o) {
        log.emplace_back("mpt");
        mpt[index] = get<rtl::Mpt>(dut.mpt_req_data_o);
      } else {
        reading = true;
        read_entry = mpt[index];
      }
    }
    if (dut.mem_op_valid_o && dut.mem_op_ready_i) {
      mem_op = get<rtl::MemOp>(dut.mem_op_data_o);
      op_busy = true;
    }
    if (dut.sq_wake_valid_o) {
      REQUIRE(dut.sq_wake_qp_o == qp);
      log.emplace_back("wake");
    }
    if (dut.path_wr_valid_o) {
      REQUIRE(dut.path_wr_qp_o == qp);
      log.emplace_back("path");
      paths[qp] = get<rtl::Path>(dut.path_wr_data_o);
    }
    if (dut.drain_valid_o && dut.drain_ready_i) {
      log.emplace_back("drain");
      REQUIRE(model.qps.contains(qp));
      const auto& [s, r] = model.qps[qp];
      CHECK(s.state == static_cast<std::uint8_t>(QpState::kErr));
      CHECK(r.state == static_cast<std::uint8_t>(QpState::kErr));
      CHECK(s.retire_idx == s.pi);
      CHECK(r.rq_done == r.rq_pi);
      CHECK(r.rx_gone == r.srq);
    }
    if (dut.qp_reset_valid_o && dut.qp_reset_ready_i) {
      REQUIRE(dut.qp_reset_qp_o == qp);
      log.emplace_back("reset");
    }
    if (dut.qp_error_valid_o && dut.qp_error_ready_i) {
      const auto error = get<rtl::QpError>(dut.qp_error_data_o);
      REQUIRE(error.qp == qp);
      REQUIRE(error.quiet == 1);
      log.emplace_back("error");
      set_error(qp, bench.chance(0.5));
    }
  }

  MemOpStatus memory_operation() {
    MemOpModel keys;
    for (const auto& [index, entry] : mpt) {
      if (entry.state != static_cast<std::uint8_t>(MptState::kFree)) keys.entries[index] = entry;
    }
    const auto status = keys.apply(mem_op);
    mpt = keys.entries;
    const bool unbind = mem_op.op == static_cast<std::uint8_t>(MemOpCode::kUnbindQp);
    if (unbind) REQUIRE(mem_op.qp == (current.number & 0xff));
    if (!unbind) REQUIRE(mem_op.key == current.number);
    log.emplace_back(unbind ? "unbind" : "destroy");
    return status;
  }

  // ---- Contexts
  // --------------------------------------------------------------------------------------------------------
  void drive_nic() {
    auto& dut = *bench.dut;
    if (stage == Stage::kIdle) {
      if (ops.empty() && background && chance()) background();
      if (!ops.empty() && chance()) {
        op = ops.front();
        ops.pop_front();
        stage = Stage::kAsking;
      }
    }
    if (stage == Stage::kHolding && chance()) {
      stage = Stage::kReleasing;
      dut.nic_rel_write_i = op.body();
      put(dut.nic_send_i, send);
      put(dut.nic_recv_i, recv);
      put(dut.nic_cq_i, cq);
      put(dut.nic_eq_i, eq);
      put(dut.nic_srq_i, srq);
    }
    dut.nic_acq_index_i = static_cast<std::uint8_t>(op.index);
    dut.nic_acq_valid_i = static_cast<std::uint8_t>(stage == Stage::kAsking ? 1u << op.kind : 0);
    dut.nic_rel_valid_i = static_cast<std::uint8_t>(stage == Stage::kReleasing ? 1u << op.kind : 0);
  }
  void sample_nic() {
    auto& dut = *bench.dut;
    if (stage == Stage::kAsking && (dut.nic_acq_ready_o >> op.kind & 1)) {
      stage = Stage::kWaiting;
    } else if (stage == Stage::kWaiting && (dut.nic_ctx_valid_o >> op.kind & 1)) {
      send = get<rtl::SendCtx>(dut.nic_send_o);
      recv = get<rtl::RecvCtx>(dut.nic_recv_o);
      cq = get<rtl::CqCtx>(dut.nic_cq_o);
      eq = get<rtl::EqCtx>(dut.nic_eq_o);
      srq = get<rtl::SrqCtx>(dut.nic_srq_o);
      stage = Stage::kHolding;
    } else if (stage == Stage::kReleasing && (dut.nic_rel_ready_o >> op.kind & 1)) {
      stage = Stage::kIdle;
    }
  }

  std::deque<rtl::DmaRdRsp> beats;
  bool offering = false, writing = false, reading = false, op_busy = false;
  rtl::MemOp mem_op;
  rtl::Mpt read_entry;
  std::deque<Op> ops;
  Op op{};
  Stage stage = Stage::kIdle;
};

}  // namespace rnic::test
