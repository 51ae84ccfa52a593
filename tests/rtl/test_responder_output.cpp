#include <Vresponder_output_harness.h>

#include <algorithm>
#include <map>
#include <optional>

#include "driver/generated/host_interface.hpp"
#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/credits.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/rsp/responder_output.sv with its contexts: Read responses, ACKs and NAKs of each QP in order, MSNs, faults,
// reset.
using namespace rnic::test;
using namespace rnic::hw;
namespace rtl = rnic::rtl;

namespace {
constexpr std::uint32_t kPsnMask = 0xffffff;

/// A command as given, with the MSN that its answer carries.
struct Given {
  rtl::RspCmd command;
  std::uint32_t msn = 0;
  bool ended = false;  // a repeated Read has PSNs of it: nothing more of it need come, once that one is known
};

/// Checks what comes out for one QP against the commands that went in. Which ACKs coalesce depends on time; everything
/// else is fixed.
struct Monitor {
  rtl::RecvCtx setup;
  std::uint32_t psn = 0, msn = 0;  // of the next command
  std::deque<Given> given;         // not yet covered by an answer
  std::uint32_t sent = 0;          // bytes of the Read at the front that have been answered
  bool closed = false;             // a fatal NAK was seen
  std::optional<rtl::TxFault> fault;
  std::uint64_t acks = 0, naks = 0, responses = 0, atomics = 0;
  std::uint64_t useless = 0;                       // responses of ended answers
  std::uint64_t memory = 0;                        // the 8 bytes that the atomics of this QP work on
  std::map<std::uint32_t, std::uint64_t> results;  // of the atomics answered, by PSN

  static bool is(const Given& g, rtl::RspCommand command) {
    return g.command.command == static_cast<std::uint8_t>(command);
  }

  void take(const rtl::TxDesc& desc, std::deque<rtl::SgPiece>& pieces) {
    INFO("QP " << int{desc.qp} << " opcode " << int{desc.opcode} << " psn " << desc.psn << " syndrome "
               << int{desc.syndrome});
    REQUIRE(desc.responder == 1);
    const bool ack = desc.opcode == static_cast<std::uint8_t>(RcOpcode::kAcknowledge);
    const bool of_fault = ack && fault && desc.psn == fault->psn && desc.syndrome >= 0x61;
    REQUIRE((!closed || of_fault));
    rtl::TxDesc expected;
    expected.qp = desc.qp;
    expected.responder = 1;
    expected.opcode = desc.opcode;
    expected.psn = desc.psn;
    if (!ack) {
      response(desc, expected, pieces);
    } else if (of_fault) {
      expected.syndrome =
          static_cast<std::uint8_t>(fault->status == 0 || fault->status == 6 ? AethSyndrome::kNakRemoteOperational
                                                                             : AethSyndrome::kNakRemoteAccess);
      expected.msn = desc.msn;
      expected.turned = !fault->atomic;  // it passes what the send path drops
      expected.quiet = closed;           // and is counted once
      fault.reset();
      closed = true;
      ++naks;
    } else {
      acknowledge(desc, expected);
    }
    REQUIRE(desc == expected);
  }

  /// ACK with the credits of a queue pair that has receive WQEs of its own; with an SRQ it must not count (9.7.7.2).
  std::uint8_t ack_syndrome() const {
    return setup.srq ? kNoCredits : credit_code(static_cast<std::uint16_t>(setup.rq_pi - setup.rq_done));
  }
  static bool in_ring(const Given& g) { return is(g, rtl::RspCommand::kRead) || is(g, rtl::RspCommand::kAtomic); }

  /// Read response (InfiniBand specification 9.7.5.1): the oldest Read not answered; whatever precedes it is thereby
  /// acknowledged.
  void response(const rtl::TxDesc& desc, rtl::TxDesc& expected, std::deque<rtl::SgPiece>& pieces) {
    auto next = std::find_if(given.begin(), given.end(), in_ring);
    REQUIRE(next != given.end());
    // What is on its way of an answer that has been ended may come, and then the next one.
    const auto is_next = [&] {
      const bool starts = desc.opcode == static_cast<std::uint8_t>(RcOpcode::kReadResponseFirst) ||
                          desc.opcode == static_cast<std::uint8_t>(RcOpcode::kReadResponseOnly);
      return desc.psn == ((next->command.psn + sent / (128u << setup.mtu)) & kPsnMask) &&
             desc.quiet == !next->command.msg_last && starts == (sent == 0);
    };
    while (next->ended && !is_next()) {
      next = next->command.msg_last ? given.erase(given.begin(), next + 1) : given.erase(next);
      next = std::find_if(next, given.end(), in_ring);
      REQUIRE(next != given.end());
      sent = 0;
    }
    useless += next->ended;
    if (is(*next, rtl::RspCommand::kAtomic) && !next->command.msg_last) {
      // A repeated one: it says nothing of what is due before it.
      const Given repeated = *next;
      given.erase(next);
      atomic(repeated, expected, pieces);
      return;
    }
    // What is due before a repeated Read stays due.
    const bool repeated = !next->command.msg_last;
    const auto at = repeated ? next : given.erase(given.begin(), next);
    const auto& [read, read_msn, ended] = *at;
    if (is(*at, rtl::RspCommand::kAtomic)) {
      const Given once = given.front();
      given.pop_front();
      atomic(once, expected, pieces);
      return;
    }
    const std::uint32_t mtu = 128u << setup.mtu, left = read.length - sent;
    const bool first = sent == 0, last = left <= mtu;
    expected.opcode =
        static_cast<std::uint8_t>(first ? (last ? RcOpcode::kReadResponseOnly : RcOpcode::kReadResponseFirst)
                                        : (last ? RcOpcode::kReadResponseLast : RcOpcode::kReadResponseMiddle));
    expected.psn = (read.psn + sent / mtu) & kPsnMask;
    expected.payload_length = static_cast<std::uint16_t>(std::min(left, mtu));
    if (first || last) {
      expected.syndrome = ack_syndrome();
      expected.msn = read_msn;
    }
    expected.quiet = repeated;  // if its memory is gone, nobody hears of it
    if (expected.payload_length > 0) {
      rtl::SgPiece piece;
      piece.last = 1;
      piece.key = read.key;
      piece.va = read.va + sent;
      piece.length = expected.payload_length;
      piece.pd = setup.pd;
      piece.access = static_cast<std::uint8_t>(rtl::Access::kRemoteRead);
      pieces.push_back(piece);
    }
    ++responses;
    sent += mtu;
    if (last) {
      given.erase(at);
      sent = 0;
    }
  }

  /// Atomic ACK (9.4.5, 9.7.5.1.2): the value before; a repeated one gets what the first got, and is not executed.
  void atomic(const Given& what, rtl::TxDesc& expected, std::deque<rtl::SgPiece>& pieces) {
    const auto& [op, msn_then, ended] = what;
    std::uint64_t value = 0;
    if (op.msg_last) {
      value = results[op.psn] = memory;
      if (op.fetch_add)
        memory += op.swap_add;
      else if (memory == op.compare)
        memory = op.swap_add;
    } else {
      REQUIRE(results.count(op.psn));
      value = results[op.psn];
    }
    expected.opcode = static_cast<std::uint8_t>(RcOpcode::kAtomicAcknowledge);
    expected.psn = op.psn;
    expected.payload_length = 8;
    expected.syndrome = ack_syndrome();
    expected.msn = msn_then;
    rtl::SgPiece piece;
    piece.inline_data = piece.last = 1;
    piece.length = 8;
    for (std::size_t i = 0; i < 8; ++i) piece.data[i] = static_cast<std::uint8_t>(value >> (8 * (7 - i)));
    pieces.push_back(piece);
    ++atomics;
  }

  void acknowledge(const rtl::TxDesc& desc, rtl::TxDesc& expected) {
    bool asked = false;
    while (true) {
      REQUIRE_FALSE(given.empty());
      const Given g = given.front();
      // A Read that comes before must have been answered, or ended.
      REQUIRE((g.ended || !in_ring(g)));
      given.pop_front();
      if (g.ended) {
        sent = 0;
        continue;
      }
      asked |= g.command.ack_req || is(g, rtl::RspCommand::kNak);
      const bool nak = desc.syndrome != ack_syndrome();
      if (g.command.psn != desc.psn || is(g, rtl::RspCommand::kNak) != nak) continue;
      expected.syndrome = nak ? g.command.syndrome : ack_syndrome();
      expected.msn = g.msn;
      closed = nak && g.command.syndrome >= 0x61;
      ++(nak ? naks : acks);
      break;
    }
    REQUIRE(asked);  // no ACK that nobody asked for
  }

  static bool apart(const Given& g, std::uint32_t first, std::uint32_t last) {
    return ((g.command.last_psn - first) & 0x800000) != 0 || ((last - g.command.psn) & 0x800000) != 0;
  }
  /// A repeated answer that has not begun, with any of these PSNs: its packets could not be told from those of another
  /// repetition.
  bool ambiguous(std::uint32_t first, std::uint32_t last) const {
    bool oldest = true;
    for (const auto& g : given) {
      if (!in_ring(g)) continue;
      if (is(g, rtl::RspCommand::kRead) && !g.command.msg_last && !(oldest && sent != 0) && !apart(g, first, last))
        return true;
      oldest = false;
    }
    return false;
  }
  /// A Read of these PSNs is repeated: what is left of older answers with any of them is not wanted any more.
  void end(std::uint32_t first, std::uint32_t last) {
    for (auto& g : given) {
      if (is(g, rtl::RspCommand::kRead)) g.ended |= !apart(g, first, last);
    }
  }

  /// Nothing may be owed: a Read, an ACK that was asked for, a NAK.
  bool settled() const {
    if (closed) return true;
    for (const auto& g : given) {
      if (!g.ended && (g.command.ack_req || !is(g, rtl::RspCommand::kExecuted))) return false;
    }
    return true;
  }
  std::size_t reads() const {
    return static_cast<std::size_t>(
        std::count_if(given.begin(), given.end(), [](const Given& g) { return in_ring(g); }));
  }
};

class Rig {
 public:
  using Model = Vresponder_output_harness;
  explicit Rig(std::uint64_t seed_value)
      : bench(seed_value),
        commands([&](bool v) { bench.dut->cmd_valid_i = v; }, [&] { return bench.dut->cmd_ready_o != 0; },
                 [&](const rtl::RspCmd& c) { put(bench.dut->cmd_data_i, c); }, bench.rng),
        faults([&](bool v) { bench.dut->tx_fault_valid_i = v; }, [&] { return bench.dut->tx_fault_ready_o != 0; },
               [&](const rtl::TxFault& f) { put(bench.dut->tx_fault_data_i, f); }, bench.rng),
        descs([&] { return bench.dut->desc_valid_o != 0; }, [&](bool r) { bench.dut->desc_ready_i = r; },
              [&] { return get<rtl::TxDesc>(bench.dut->desc_data_o); }, bench.rng),
        pieces([&] { return bench.dut->piece_valid_o != 0; }, [&](bool r) { bench.dut->piece_ready_i = r; },
               [&] { return get<rtl::SgPiece>(bench.dut->piece_data_o); }, bench.rng) {
    auto& dut = *bench.dut;
    dut.host_acq_valid_i = dut.host_rel_valid_i = dut.qp_reset_valid_i = 0;
    dut.cmd_valid_i = dut.tx_fault_valid_i = dut.desc_ready_i = dut.piece_ready_i = 0;
    dut.atomic_fault_ready_i = dut.wr_done_i = 0;
    memory.rig = this;
    bench.add(memory);
    bench.add(xlate_reqs);
    bench.add(xlate_rsps);
    bench.add(read_reqs);
    bench.add(read_rsps);
    bench.add(write_reqs);
    descs.on_item = [&](const rtl::TxDesc& desc) {
      if (!desc_count++) first_desc = bench.cycle;
      last_desc = bench.cycle;
      REQUIRE(monitors.count(desc.qp) == 1);
      if (on_desc) on_desc(desc);
      monitors[desc.qp].take(desc, expected_pieces_);
      match();
    };
    pieces.on_item = [&](const rtl::SgPiece&) { match(); };
    bench.add(commands);
    bench.add(faults);
    bench.add(descs);
    bench.add(pieces);
    bench.reset();
    bench.run_until([&] { return dut.contexts_ready_o != 0; }, 300, "contexts ready");
  }

  void set_up(int qp, const std::function<void(rtl::RecvCtx&)>& adjust = {}) {
    // As the admin queue does: contexts first, then the reset; packets made before may still leave.
    change(qp, [](rtl::RecvCtx& ctx) { ctx = {}; });
    reset_qp(qp);
    auto& monitor = monitors[qp];
    monitor = {};
    history[qp].clear();
    memory.words[qp] = monitor.memory = bench.rng();
    auto& ctx = monitor.setup;
    ctx.state = static_cast<std::uint8_t>(QpState::kRts);
    ctx.in_use = 1;
    ctx.qpn = static_cast<std::uint32_t>(qp);
    ctx.pd = static_cast<std::uint32_t>(bench.uniform(0, kPsnMask));
    ctx.mtu = static_cast<std::uint8_t>(bench.uniform(1, 5));
    ctx.epsn = 0x123456;
    // Some receive WQEs, around a number that has a code of its own; those that messages under way have taken count.
    const std::uint32_t around =
        kCredits[bench.uniform(0, kCredits.size() - 1)] + static_cast<std::uint32_t>(bench.uniform(0, 2));
    ctx.rq_done = static_cast<std::uint16_t>(bench.rng());
    ctx.rq_pi = static_cast<std::uint16_t>(ctx.rq_done + std::clamp(around, 1u, 32769u) - 1);
    ctx.rq_head = static_cast<std::uint16_t>(ctx.rq_done + bench.uniform(0, 1));
    ctx.srq = bench.chance(0.1);
    if (adjust) adjust(ctx);
    monitor.psn = static_cast<std::uint32_t>(bench.uniform(0xfffff0, kPsnMask));
    change(qp, [&](rtl::RecvCtx& held) { held = ctx; });
  }
  void change(int qp, const std::function<void(rtl::RecvCtx&)>& action) {
    auto& dut = *bench.dut;
    dut.host_acq_index_i = static_cast<std::uint8_t>(qp);
    dut.host_acq_valid_i = 1;
    wait([&] { return dut.host_acq_ready_o != 0; });
    dut.host_acq_valid_i = 0;
    rtl::RecvCtx ctx;
    wait([&] {
      if (dut.host_ctx_valid_o) ctx = get<rtl::RecvCtx>(dut.host_ctx_data_o);
      return dut.host_ctx_valid_o != 0;
    });
    action(ctx);
    put(dut.host_rel_data_i, ctx);
    dut.host_rel_valid_i = 1;
    wait([&] { return dut.host_rel_ready_o != 0; });
    dut.host_rel_valid_i = 0;
  }
  void reset_qp(int qp) {
    auto& dut = *bench.dut;
    dut.qp_reset_qp_i = static_cast<std::uint8_t>(qp);
    dut.qp_reset_valid_i = 1;
    wait([&] { return dut.qp_reset_ready_o != 0; });
    dut.qp_reset_valid_i = 0;
  }

  void give(int qp, rtl::RspCommand command, const std::function<void(rtl::RspCmd&)>& adjust) {
    auto& monitor = monitors.at(qp);
    Given given;
    auto& c = given.command;
    c.qp = static_cast<std::uint8_t>(qp);
    c.command = static_cast<std::uint8_t>(command);
    c.psn = monitor.psn;
    adjust(c);
    if (command == rtl::RspCommand::kAtomic) {
      if (c.msg_last) {
        monitor.msn = (monitor.msn + 1) & kPsnMask;
        monitor.psn = (monitor.psn + 1) & kPsnMask;
      }
    } else if (command == rtl::RspCommand::kRead && !c.msg_last) {
      // Repeated: it has been counted.
    } else if (command == rtl::RspCommand::kRead) {
      monitor.msn = (monitor.msn + 1) & kPsnMask;
      monitor.psn = (c.last_psn + 1) & kPsnMask;
    } else if (command == rtl::RspCommand::kExecuted) {
      monitor.msn = (monitor.msn + c.msg_last) & kPsnMask;
      monitor.psn = (monitor.psn + 1) & kPsnMask;
    }
    given.msn = monitor.msn;
    monitor.given.push_back(given);
    commands.push(c);
  }
  void executed(int qp, bool ack, bool last) {
    give(qp, rtl::RspCommand::kExecuted, [&](rtl::RspCmd& c) {
      c.ack_req = ack;
      c.msg_last = last;
    });
  }
  /// A Read; or, as the receive side asks for a duplicate, one from the PSN `repeat` on again. False: no room.
  bool read(int qp, std::uint32_t length, std::optional<std::uint32_t> repeat = {}) {
    bool room = true;
    change(qp, [&](rtl::RecvCtx& ctx) {
      room = ctx.rd_inflight + ctx.rp_inflight < 2 * kMaxReadsOutstanding && ctx.rp_inflight < 31;
      if (room) ++(repeat ? ctx.rp_inflight : ctx.rd_inflight);
    });
    if (!room) return false;
    const std::uint32_t mtu = 128u << monitors.at(qp).setup.mtu;
    rtl::RspCmd given;
    give(qp, rtl::RspCommand::kRead, [&](rtl::RspCmd& c) {
      c.va = bench.rng();
      c.key = static_cast<std::uint32_t>(bench.rng());
      c.length = length;
      c.msg_last = !repeat;
      c.ack_req = 1;
      if (repeat) c.psn = *repeat;
      c.last_psn = (c.psn + std::max(1u, (length + mtu - 1) / mtu) - 1) & kPsnMask;
      if (repeat)
        monitors.at(qp).end(c.psn, c.last_psn);
      else
        history[qp].push_back({c.psn, length});
    });
    return true;
  }
  /// One of the last Reads of the QP again, whole or from any packet on.
  bool repeat_read(int qp, std::size_t ago, std::uint32_t from = 0) {
    const auto& reads = history[qp];
    if (ago >= reads.size()) return false;
    const auto [psn, length] = reads[reads.size() - 1 - ago];
    const std::uint32_t mtu = 128u << monitors.at(qp).setup.mtu;
    from = std::min(from, length == 0 ? 0 : (length - 1) / mtu);
    const std::uint32_t last = (psn + std::max(1u, (length + mtu - 1) / mtu) - 1) & kPsnMask;
    return !monitors.at(qp).ambiguous((psn + from) & kPsnMask, last) &&
           read(qp, length - from * mtu, (psn + from) & kPsnMask);
  }
  /// An atomic on the 8 bytes of the QP; or, as the receive side asks for a duplicate, the one of `repeat` again.
  void atomic(int qp, std::optional<std::uint32_t> repeat = {}) {
    change(qp, [repeat](rtl::RecvCtx& ctx) {
      ++(repeat ? ctx.rp_inflight : ctx.rd_inflight);
      if (!repeat) ++ctx.atomics_due;
    });
    give(qp, rtl::RspCommand::kAtomic, [&](rtl::RspCmd& c) {
      c.va = 64 * static_cast<std::uint64_t>(qp) + 8 * (static_cast<std::uint64_t>(qp) % 8);
      c.key = 0;
      c.fetch_add = bench.chance(0.5);
      c.swap_add = bench.rng();
      c.last_psn = c.psn;
      c.compare = bench.chance(0.5) ? monitors.at(qp).memory : bench.rng();
      c.msg_last = !repeat;
      c.ack_req = 1;
      if (repeat) c.psn = *repeat;
    });
  }
  void nak(int qp, std::uint8_t syndrome) {
    give(qp, rtl::RspCommand::kNak, [&](rtl::RspCmd& c) { c.syndrome = syndrome; });
  }
  /// An executed request of the PSN `behind` before the next once more, as the receive side has it acknowledged.
  /// `answered`: with an ACK of its own.
  void duplicate(int qp, bool answered, std::uint32_t behind = 1) {
    auto& monitor = monitors.at(qp);
    rtl::RspCmd c;
    c.qp = static_cast<std::uint8_t>(qp);
    c.command = static_cast<std::uint8_t>(rtl::RspCommand::kExecuted);
    c.psn = (monitor.psn - behind) & kPsnMask;
    c.ack_req = 1;
    if (answered) monitor.given.push_back({c, monitor.msn});
    commands.push(c);
  }
  std::uint32_t random_length(int qp) {
    const std::uint32_t mtu = 128u << monitors.at(qp).setup.mtu;
    switch (bench.uniform(0, 2)) {
      case 0: return static_cast<std::uint32_t>(bench.uniform(0, 2));
      case 1: return static_cast<std::uint32_t>(mtu * bench.uniform(1, 4) + bench.uniform(0, 2) - 1);
      default: return static_cast<std::uint32_t>(bench.uniform(0, 5 * mtu));
    }
  }
  bool settled() const {
    if (!commands.idle() || !faults.idle() || !expected_pieces_.empty() || !pieces.items.empty()) return false;
    for (const auto& [qp, monitor] : monitors) {
      if (!monitor.settled()) return false;
    }
    return true;
  }
  void finish() {
    bench.run_until([&] { return settled(); }, 100000, "answers");
    bench.run(100);
  }
  void rates(double output) { descs.rate = pieces.rate = output; }

  Bench<Model> bench;
  std::map<int, Monitor> monitors;
  std::map<int, std::deque<std::pair<std::uint32_t, std::uint32_t>>> history;  // Reads of a QP: first PSN, bytes
  Source<rtl::RspCmd> commands;
  Source<rtl::TxFault> faults;
  Sink<rtl::TxDesc> descs;
  Sink<rtl::SgPiece> pieces;
  std::uint64_t desc_count = 0, first_desc = 0, last_desc = 0;

  /// Translation and memory of the atomics: QP n has its 8 bytes at 64 n + 8 (n mod 8), DMA address the same.
  struct Memory : Agent {
    Rig* rig = nullptr;
    std::map<int, std::uint64_t> words;
    std::uint64_t write_at = 0, latency = 30;
    std::pair<int, std::uint64_t> written;
    std::uint64_t hold = 0;  // until this cycle reads are not answered
    void drive() override { rig->bench.dut->wr_done_i = write_at && rig->bench.cycle >= write_at; }
    void sample() override {
      auto& r = *rig;
      if (r.bench.dut->wr_done_i) {
        words[written.first] = written.second;
        write_at = 0;
      }
      if (!r.xlate_reqs.items.empty()) {
        const auto req = r.xlate_reqs.items.front();
        r.xlate_reqs.items.pop_front();
        REQUIRE(req.access == static_cast<std::uint8_t>(rtl::Access::kRemoteAtomic));
        REQUIRE(req.pd == r.monitors.at(req.qp).setup.pd);
        REQUIRE(req.va / 64 == req.qp);
        rtl::XlateRsp rsp;
        rsp.addr = req.va;
        rsp.contiguous = 8;
        r.xlate_rsps.push(rsp);
      }
      if (!r.read_reqs.items.empty() && r.bench.cycle >= hold && r.bench.chance(1.0 / static_cast<double>(latency))) {
        const auto req = r.read_reqs.items.front();
        r.read_reqs.items.pop_front();
        rtl::DmaRdRsp rsp;
        rsp.offset = static_cast<std::uint8_t>(req.addr % 64);
        rsp.bytes = 8;
        rsp.last = 1;
        for (std::size_t i = 0; i < 8; ++i)
          rsp.data[req.addr % 64 + i] = static_cast<std::uint8_t>(words[static_cast<int>(req.addr / 64)] >> (8 * i));
        r.read_rsps.push(rsp);
      }
      if (!r.write_reqs.items.empty()) {
        const auto wr = r.write_reqs.items.front();
        r.write_reqs.items.pop_front();
        std::uint64_t value = 0;
        for (std::size_t i = 8; i-- > 0;) value = value << 8 | wr.data[wr.addr % 64 + i];
        written = {static_cast<int>(wr.addr / 64), value};
        write_at = r.bench.cycle + r.bench.uniform(1, 10);
      }
    }
  };
  Memory memory;
  Sink<rtl::XlateReq> xlate_reqs{[this] { return bench.dut->xlate_req_valid_o != 0; },
                                 [this](bool r) { bench.dut->xlate_req_ready_i = r; },
                                 [this] { return get<rtl::XlateReq>(bench.dut->xlate_req_data_o); }, bench.rng, 0.5};
  Source<rtl::XlateRsp> xlate_rsps{
      [this](bool v) { bench.dut->xlate_rsp_valid_i = v; }, [this] { return bench.dut->xlate_rsp_ready_o != 0; },
      [this](const rtl::XlateRsp& r) { put(bench.dut->xlate_rsp_data_i, r); }, bench.rng, 0.5};
  Sink<rtl::DmaRdReq> read_reqs{[this] { return bench.dut->rd_req_valid_o != 0; },
                                [this](bool r) { bench.dut->rd_req_ready_i = r; },
                                [this] { return get<rtl::DmaRdReq>(bench.dut->rd_req_data_o); }, bench.rng, 0.5};
  Source<rtl::DmaRdRsp> read_rsps{[this](bool v) { bench.dut->rd_rsp_valid_i = v; },
                                  [this] { return bench.dut->rd_rsp_ready_o != 0; },
                                  [this](const rtl::DmaRdRsp& r) { put(bench.dut->rd_rsp_data_i, r); }, bench.rng};
  Sink<rtl::DmaWr> write_reqs{[this] { return bench.dut->wr_valid_o != 0; },
                              [this](bool r) { bench.dut->wr_ready_i = r; },
                              [this] { return get<rtl::DmaWr>(bench.dut->wr_data_o); }, bench.rng, 0.5};
  std::function<void(const rtl::TxDesc&)> on_desc;

 private:
  struct Watch : Agent {
    std::function<bool()> done;
    bool seen = false;
    void drive() override {}
    void sample() override { seen = seen || (done && done()); }
  };
  /// Ticks until `done` holds before an edge.
  void wait(const std::function<bool()>& done) {
    if (!added_) bench.add(watch_);
    added_ = true;
    watch_.done = done;
    watch_.seen = false;
    bench.run_until([&] { return watch_.seen; }, 50000, "handshake");
    watch_.done = {};
  }
  void match() {
    while (!expected_pieces_.empty() && !pieces.items.empty()) {
      REQUIRE(pieces.items.front() == expected_pieces_.front());
      pieces.items.pop_front();
      expected_pieces_.pop_front();
    }
  }
  std::deque<rtl::SgPiece> expected_pieces_;
  Watch watch_;
  bool added_ = false;
};

}  // namespace

TEST_CASE("responder_output: random commands of many QPs are answered in order", "[rtl]") {
  const auto rate = GENERATE(1.0, 0.3);
  Rig rig(seed(static_cast<std::uint64_t>(rate * 10)));
  std::vector<int> qps = {0, 1, 2, 17, 100, 128, 254, 255};
  for (const int qp : qps) rig.set_up(qp);
  rig.rates(rate);
  for (int i = 0; i < 4000; ++i) {
    const int qp = qps[rig.bench.uniform(0, qps.size() - 1)];
    const auto dice = rig.bench.uniform(0, 99);
    // A Read stays in the ring of the block until it has been answered; the receive side never lets in more than 16.
    if (dice < 20 && rig.monitors[qp].reads() < kMaxReadsOutstanding)
      rig.read(qp, rig.random_length(qp));
    else if (dice < 30 && rig.monitors[qp].reads() < kMaxReadsOutstanding)
      rig.atomic(qp);
    else if (dice < 35)
      rig.nak(qp, static_cast<std::uint8_t>(rig.bench.chance(0.5) ? 0x60 : 0x20 + rig.bench.uniform(0, 31)));
    else if (dice < 45)
      rig.repeat_read(qp, rig.bench.uniform(0, 5), static_cast<std::uint32_t>(rig.bench.uniform(0, 6)));
    else
      rig.executed(qp, rig.bench.chance(0.3), rig.bench.chance(0.5));
    // After a NAK the requester sends the same PSN again, once it knows.
    if (dice >= 30 && dice < 35) rig.finish();
    if (rig.bench.chance(0.3)) rig.bench.run(rig.bench.uniform(0, 40));
  }
  rig.finish();
  for (const int qp : qps) {
    const auto& monitor = rig.monitors[qp];
    CHECK(monitor.acks > 5);
    CHECK(monitor.naks > 5);
    CHECK(monitor.responses > 50);
    CHECK(monitor.atomics > 10);
    CHECK(rig.memory.words[qp] == monitor.memory);
    rig.change(qp, [&](rtl::RecvCtx& ctx) {
      CHECK(ctx == monitor.setup);  // the counts of Reads are back to 0, all else untouched
    });
  }
}

TEST_CASE("responder_output: descriptors go while their pieces wait, and none is lost", "[rtl]") {
  Rig rig(seed(31));
  constexpr int kQps = 20;
  for (int qp = 0; qp < kQps; ++qp) rig.set_up(qp);
  for (int round = 0; round < 30; ++round) {
    rig.descs.rate = 1;
    rig.pieces.rate = 0;
    for (int qp = 0; qp < kQps; ++qp) {
      for (int i = 0; i < 2; ++i) rig.read(qp, static_cast<std::uint32_t>(rig.bench.uniform(1, 64)));
    }
    rig.bench.run(400);
    for (auto n = rig.bench.uniform(0, 10); n > 0; --n) {
      rig.pieces.rate = rig.pieces.rate == 0 ? 1 : 0;
      rig.bench.run(rig.bench.uniform(1, 30));
    }
    rig.rates(1);
    rig.finish();
  }
}

TEST_CASE("responder_output: ACKs coalesce while the QP waits, and none is sent without being asked for", "[rtl]") {
  Rig rig(seed(2));
  rig.set_up(7);
  for (int i = 0; i < 20; ++i) rig.executed(7, false, true);
  rig.bench.run(200);
  CHECK(rig.desc_count == 0);
  rig.rates(0);
  for (int i = 0; i < 200; ++i) rig.executed(7, true, true);
  rig.bench.run(1000);
  rig.rates(1);
  rig.finish();
  CHECK(rig.desc_count >= 1);
  CHECK(rig.desc_count <= 20);  // the output queue's worth, and one
}

TEST_CASE("responder_output: an ACK waits for the Reads before it, and a Read response replaces an older ACK",
          "[rtl]") {
  Rig rig(seed(3));
  rig.set_up(7, [](rtl::RecvCtx& ctx) { ctx.mtu = 1; });
  rig.rates(0);
  for (int i = 0; i < 40; ++i) rig.executed(7, true, true);  // fills the output queue
  rig.bench.run(600);
  rig.executed(7, true, true);
  rig.read(7, 5000);
  rig.executed(7, true, true);
  rig.read(7, 0);
  rig.bench.run(100);
  rig.rates(1);
  rig.finish();
  const auto& monitor = rig.monitors[7];
  CHECK(monitor.responses == 21);
  CHECK(monitor.acks <= 20);
}

TEST_CASE("responder_output: a fatal NAK is the last word of a QP until qp_reset", "[rtl]") {
  Rig rig(seed(4));
  rig.set_up(9);
  rig.set_up(10);
  for (int round = 0; round < 6; ++round) {
    rig.executed(9, true, true);
    rig.read(9, 3000);
    // The error state comes with the NAK; what was executed before is answered all the same.
    rig.nak(9, static_cast<std::uint8_t>(0x61 + round % 3));
    rig.change(9, [](rtl::RecvCtx& ctx) { ctx.state = static_cast<std::uint8_t>(QpState::kErr); });
    rig.finish();
    CHECK(rig.monitors[9].closed);
    CHECK(rig.monitors[9].naks == 1);
    rig.executed(9, true, true);
    rig.read(9, 10);
    rig.nak(9, 0x61);
    rig.executed(10, true, true);
    rig.faults.push({.qp = 9, .responder = 1, .psn = rig.monitors[9].psn, .wqe_idx = 0, .status = 2, .atomic = 1});
    rig.bench.run(100);
    rig.finish();
    CHECK(rig.monitors[9].naks == 1);
    rig.set_up(9);
  }
}

TEST_CASE("responder_output: a failed response drops the Reads left and sends its NAK", "[rtl]") {
  for (std::uint8_t status = 0; status <= 6; ++status) {
    Rig rig(seed(5));
    rig.set_up(20, [](rtl::RecvCtx& ctx) { ctx.mtu = 1; });
    rig.set_up(21);
    rig.rates(0.3);
    std::optional<rtl::TxFault> fault;
    rig.on_desc = [&](const rtl::TxDesc& desc) {
      if (fault || desc.qp != 20 || desc.payload_length == 0 || rig.monitors[20].responses < 10) return;
      fault = rtl::TxFault{.qp = desc.qp, .responder = 1, .psn = desc.psn, .wqe_idx = 0, .status = status};
    };
    for (int i = 0; i < 8; ++i) rig.read(20, 1000);
    rig.read(21, 4000);
    rig.executed(20, true, true);
    rig.bench.run_until([&] { return fault.has_value(); }, 10000, "a response");
    rtl::TxFault foreign = *fault;
    foreign.responder = 0;  // a request packet's: no business of this block
    rig.faults.push(foreign);
    rig.monitors[20].fault = fault;
    rig.faults.push(*fault);
    rig.bench.run_until([&] { return rig.monitors[20].closed; }, 10000, "NAK");
    rig.finish();
    CHECK(rig.monitors[20].naks == 1);
    CHECK(rig.monitors[20].responses < 32);
    CHECK(rig.monitors[21].settled());
  }
}

TEST_CASE("responder_output: the NAK of a failed response takes the place of a later request's, which had been made",
          "[rtl]") {
  // 9.7.5.1.2: responses come in the order of the requests. The send path drops what is behind a packet that failed.
  Rig rig(seed(24));
  rig.set_up(20, [](rtl::RecvCtx& ctx) { ctx.mtu = 1; });
  rig.read(20, 2000);
  rig.nak(20, 0x62);
  std::uint32_t psn = 0;
  rig.on_desc = [&](const rtl::TxDesc& desc) {
    if (rig.monitors[20].responses == 3 && desc.payload_length != 0) psn = desc.psn;
  };
  rig.bench.run_until([&] { return rig.monitors[20].closed; }, 10000, "the NAK of the later request");
  CHECK(rig.monitors[20].responses == 8);
  const rtl::TxFault fault{.qp = 20, .responder = 1, .psn = psn, .wqe_idx = 0, .status = 0};
  rig.monitors[20].fault = fault;
  rig.faults.push(fault);
  rig.bench.run_until([&] { return rig.monitors[20].naks == 2; }, 1000, "the NAK of the Read");
  rig.bench.run(100);
  CHECK(rig.monitors[20].naks == 2);
}

TEST_CASE("responder_output: the NAK of an atomic that failed is dropped behind a response that fails", "[rtl]") {
  Rig rig(seed(25));
  rig.set_up(20);
  rig.memory.hold = rig.bench.cycle + 20000;
  rtl::TxFault fault{.qp = 20, .responder = 1, .psn = rig.monitors[20].psn, .wqe_idx = 0, .status = 0, .atomic = 1};
  rig.atomic(20);
  rig.bench.run(200);
  rig.monitors[20].fault = fault;
  rig.faults.push(fault);
  rig.bench.run_until([&] { return rig.monitors[20].naks == 1; }, 1000, "the NAK of the atomic");
}

TEST_CASE("responder_output: a QP in the error state for no request of its peer is silent (10.3.1.7)", "[rtl]") {
  for (const bool fails : {false, true}) {
    Rig rig(seed(6));
    rig.set_up(20, [](rtl::RecvCtx& ctx) { ctx.mtu = 1; });
    rig.set_up(21);
    rig.rates(0.3);
    std::optional<rtl::TxDesc> newest;
    unsigned responses = 0;
    rig.on_desc = [&](const rtl::TxDesc& desc) {
      if (desc.qp != 20) return;
      newest = desc;
      ++responses;
    };
    for (int i = 0; i < 8; ++i) rig.read(20, 1000);
    rig.executed(20, true, true);
    rig.bench.run_until([&] { return responses == 10; }, 10000, "responses");
    rig.change(20, [](rtl::RecvCtx& ctx) {
      ctx.state = static_cast<std::uint8_t>(QpState::kErr);
      ctx.silent = 1;
    });
    rig.bench.run(50);  // what had been made
    const unsigned before = responses;
    CHECK(before < 32);
    if (fails) {
      rig.faults.push({.qp = 20, .responder = 1, .psn = newest->psn, .wqe_idx = 0, .status = 2});
      rig.bench.run_until([&] { return rig.faults.idle(); }, 1000, "the failure taken");
    }
    rig.read(21, 4000);
    rig.bench.run_until([&] { return rig.monitors[21].settled(); }, 5000, "the other QP's answers");
    rig.bench.run(300);
    CHECK(responses == before);
  }
}

TEST_CASE("responder_output: a repeated Read is answered in its turn, and says so to the send path", "[rtl]") {
  Rig rig(seed(15));
  rig.set_up(7, [](rtl::RecvCtx& ctx) { ctx.mtu = 1; });
  auto& monitor = rig.monitors[7];
  for (int round = 0; round < 20; ++round) {
    rig.read(7, 700);
    rig.finish();
    rig.executed(7, true, true);
    rig.repeat_read(7, 0, 2);  // the last packet alone
    rig.finish();
    rig.repeat_read(7, 0);
    if (round % 3) rig.executed(7, round % 2, true);
    rig.finish();
  }
  CHECK(monitor.responses == 20 * (3 + 1 + 3));
  CHECK(monitor.useless == 0);
  rig.change(7, [&](rtl::RecvCtx& ctx) { CHECK(ctx == monitor.setup); });
}

// 9.7.5.1.3: the requester has gone back to the first response that it misses; what is left of the older answer is for
// nothing.
TEST_CASE("responder_output: a repeated Read ends the answers under way that have PSNs of it", "[rtl]") {
  constexpr std::uint64_t kOnTheirWay = 20;  // in the output queue, and the packet that is being made
  Rig rig(seed(16));
  for (const int qp : {7, 8}) rig.set_up(qp, [](rtl::RecvCtx& ctx) { ctx.mtu = 1; });
  auto& monitor = rig.monitors[7];
  SECTION("the one that is under way, again and again") {
    rig.read(7, 256 * 1000);
    std::uint64_t wanted = 0;
    for (std::uint32_t from = 60; from < 1000; from += 60) {
      const auto before = monitor.responses;
      rig.bench.run_until([&] { return monitor.responses >= before + 70; }, 10000, "responses");
      const auto at = monitor.responses;
      rig.repeat_read(7, 0, from);
      rig.bench.run_until([&] { return monitor.responses > at + kOnTheirWay; }, 10000, "the new answer");
      wanted = 1000 - from;
    }
    const auto before = monitor.responses;
    rig.finish();
    CHECK(monitor.responses - before <= wanted);
    CHECK(monitor.useless <= 16 * 90);
    CHECK(monitor.responses < 16 * 90 + 100);
  }
  SECTION("before a wire that stands still: little of it is made into packets") {
    constexpr std::uint64_t kWait = 8192 / 4096;
    rig.set_up(9, [](rtl::RecvCtx& ctx) { ctx.mtu = 5; });
    const auto& large = rig.monitors[9];
    rig.read(9, 4096 * 200);
    rig.bench.run_until([&] { return large.responses >= 20; }, 10000, "responses");
    rig.rates(0);
    rig.bench.run(2000);
    const auto at = large.responses;
    rig.repeat_read(9, 0, 100);
    rig.bench.run(200);
    rig.rates(1);
    rig.finish();
    CHECK(large.responses - at <= kWait + 100 + 2);
    CHECK(large.responses - at >= kWait + 100);
  }
  SECTION("sixteen that wait, all repeated") {
    for (std::uint32_t i = 0; i < kMaxReadsOutstanding; ++i) rig.read(7, 256 * 50);
    rig.read(8, 256 * 50);
    rig.bench.run_until([&] { return monitor.responses >= 20; }, 10000, "responses");
    const auto at = monitor.responses;
    REQUIRE(rig.repeat_read(7, kMaxReadsOutstanding - 1, 10));
    for (std::uint32_t i = kMaxReadsOutstanding - 1; i-- > 0;) {
      while (!rig.repeat_read(7, i)) rig.bench.run(50);
    }
    rig.finish();
    CHECK(monitor.useless < at + 4 * kOnTheirWay);
    CHECK(monitor.responses - monitor.useless == at + 40 + 50 * (kMaxReadsOutstanding - 1));
    CHECK(rig.monitors[8].responses == 50);
  }
  SECTION("not those behind it, nor atomics, nor the ACK that is due") {
    rig.read(7, 256 * 50);
    rig.atomic(7);
    rig.read(7, 256 * 50);
    rig.executed(7, true, true);
    rig.bench.run_until([&] { return monitor.responses >= 10; }, 10000, "responses");
    rig.repeat_read(7, 1, 5);
    rig.finish();
    CHECK(monitor.atomics == 1);
    CHECK(monitor.responses - monitor.useless >= 50 + 45);
    CHECK(monitor.responses <= 10 + kOnTheirWay + 50 + 45);
    CHECK(monitor.acks == 1);
  }
  SECTION("not an atomic that a peer includes in what it asks for again") {
    const auto first = monitor.psn;
    rig.memory.hold = rig.bench.cycle + 2000;
    rig.atomic(7);  // keeps what follows waiting
    rig.read(7, 256 * 4);
    rig.atomic(7);
    rig.read(7, 256 * 4);
    REQUIRE(rig.read(7, 256 * 10, first));
    rig.finish();
    CHECK(monitor.atomics == 2);
    CHECK(monitor.useless == 0);
    CHECK(monitor.responses == 10);
  }
  rig.change(7, [&](rtl::RecvCtx& ctx) { CHECK(ctx == monitor.setup); });
}

TEST_CASE("responder_output: a repeated atomic gets the saved result, in its turn", "[rtl]") {
  Rig rig(seed(9));
  rig.set_up(5);
  rig.set_up(6);
  for (int round = 0; round < 30; ++round) {
    std::vector<std::uint32_t> psns;
    for (int i = 0; i < 8; ++i) {
      psns.push_back(rig.monitors[5].psn);
      rig.atomic(5);
    }
    // Some wait to be executed while they are asked for again.
    for (int i = 4; i < 8; ++i) rig.atomic(5, psns[static_cast<std::size_t>(i)]);
    rig.read(5, 700);
    rig.atomic(6);
    rig.finish();
    CHECK(rig.memory.words[5] == rig.monitors[5].memory);
    for (int i = 0; i < 8; ++i) rig.atomic(5, psns[static_cast<std::size_t>(i)]);
    rig.finish();
    CHECK(rig.memory.words[5] == rig.monitors[5].memory);
  }
  CHECK(rig.monitors[5].atomics == 30 * 20);
  rig.change(5,
             [&](rtl::RecvCtx& ctx) { CHECK((ctx.rd_inflight == 0 && ctx.rp_inflight == 0 && ctx.atomics_due == 0)); });
}

// A repeated Read or atomic is older than what is due (9.7.5.1.3): the ACK or NAK comes all the same, behind it.
TEST_CASE("responder_output: a repeated atomic leaves the ACK or NAK that is due", "[rtl]") {
  Rig rig(seed(11));
  for (const bool nak : {false, true}) {
    rig.set_up(5);
    const auto first = rig.monitors[5].psn;
    rig.atomic(5);
    rig.finish();
    rig.memory.hold = rig.bench.cycle + 500;
    rig.atomic(5);  // keeps what follows waiting
    if (nak)
      rig.nak(5, 0x60);
    else
      rig.executed(5, true, true);
    rig.atomic(5, first);
    rig.finish();
    CHECK(rig.monitors[5].naks == (nak ? 1u : 0u));
    CHECK(rig.monitors[5].acks == (nak ? 0u : 1u));
    CHECK(rig.monitors[5].atomics == 3);
  }
}

// 9.7.5.1.2: the NAK of the next PSN says the same as an ACK of the one before it, and more.
TEST_CASE("responder_output: an ACK of what precedes a NAK does not take its place", "[rtl]") {
  Rig rig(seed(12));
  rig.set_up(5);
  rig.memory.hold = rig.bench.cycle + 500;
  rig.atomic(5);
  rig.executed(5, true, true);
  rig.nak(5, 0x60);
  rig.duplicate(5, false);
  rig.finish();
  CHECK(rig.monitors[5].naks == 1);
  CHECK(rig.monitors[5].acks == 0);
}

// 9.7.5.2.2, 9.7.5.2.8: while a NAK or RNR NAK is outstanding duplicates are acknowledged as always, and no second NAK
// is sent.
TEST_CASE("responder_output: a duplicate behind a NAK that has left gets an ACK, and the NAK does not come again",
          "[rtl]") {
  Rig rig(seed(16));
  for (const std::uint8_t syndrome : {0x60, 0x2a}) {
    for (const bool busy : {false, true}) {
      rig.set_up(5);
      auto& monitor = rig.monitors[5];
      for (int i = 0; i < 3; ++i) rig.executed(5, false, true);
      rig.nak(5, syndrome);
      rig.finish();
      REQUIRE(monitor.naks == 1);
      // A repeated Read in between takes turns of its own.
      if (busy) rig.read(5, 3000, (monitor.psn - 3) & kPsnMask);
      for (const std::uint32_t behind : {1u, 3u}) {
        rig.duplicate(5, true, behind);
        rig.finish();
      }
      CHECK(monitor.naks == 1);
      CHECK(monitor.acks == 2);
      // The expected PSN, then the next gap: that is another NAK.
      rig.executed(5, true, true);
      rig.finish();
      rig.nak(5, syndrome);
      rig.finish();
      CHECK(monitor.naks == 2);
      CHECK(monitor.acks == 3);
    }
  }
}

// Duplicates come at any time: before the NAK's turn, in it, behind it. It leaves once, and each duplicate is
// acknowledged by it or behind it.
TEST_CASE("responder_output: a duplicate at any time around a NAK costs the NAK no second turn", "[rtl]") {
  Rig rig(seed(17));
  for (std::uint64_t wait = 0; wait < 24; ++wait) {
    rig.set_up(5);
    std::uint64_t naks = 0, acks = 0;
    rig.on_desc = [&](const rtl::TxDesc& desc) {
      if (desc.opcode != static_cast<std::uint8_t>(RcOpcode::kAcknowledge)) return;
      const bool nak = desc.syndrome == 0x60;
      ++(nak ? naks : acks);
      REQUIRE((nak || naks == 1));  // an ACK only behind the NAK
      if (!nak) rig.monitors[5].given.push_back({{.qp = 5, .psn = desc.psn, .ack_req = 1}, rig.monitors[5].msn});
    };
    rig.executed(5, false, true);
    if (wait % 2) rig.read(5, 3000);
    rig.nak(5, 0x60);
    rig.bench.run(wait / 2);
    for (int i = 0; i < 3; ++i) rig.duplicate(5, false);
    rig.finish();
    CHECK(naks == 1);
    CHECK(acks <= 3);
    rig.on_desc = {};
  }
}

TEST_CASE("responder_output: an atomic that waits for memory holds up nobody but its own QP", "[rtl]") {
  Rig rig(seed(10));
  for (const int qp : {1, 2, 3}) rig.set_up(qp);
  rig.memory.hold = rig.bench.cycle + 20000;
  rig.atomic(1);
  rig.executed(1, true, true);
  rig.atomic(2);
  rig.bench.run(200);
  for (int i = 0; i < 5; ++i) {
    rig.read(3, 5000);
    rig.executed(3, true, true);
  }
  rig.bench.run_until([&] { return rig.monitors[3].settled(); }, 5000, "the other QP's answers");
  CHECK_FALSE(rig.monitors[1].settled());
  CHECK(rig.monitors[1].acks == 0);
  rig.finish();
  CHECK(rig.monitors[1].atomics == 1);
  CHECK(rig.monitors[2].atomics == 1);
}

TEST_CASE("responder_output: nothing is sent for a QP that is not connected", "[rtl]") {
  Rig rig(seed(6));
  rig.set_up(3, [](rtl::RecvCtx& ctx) { ctx.state = static_cast<std::uint8_t>(QpState::kInit); });
  rig.set_up(4, [](rtl::RecvCtx& ctx) { ctx.in_use = 0; });
  for (const int qp : {3, 4}) {
    rig.executed(qp, true, true);
    rig.read(qp, 3000);
    rig.executed(qp, true, true);
  }
  rig.bench.run(300);
  CHECK(rig.desc_count == 0);
}

TEST_CASE("responder_output: qp_reset forgets a QP in the midst of its answers", "[rtl]") {
  Rig rig(seed(7));
  rig.set_up(30);
  for (int round = 0; round < 40; ++round) {
    rig.rates(round % 2 ? 0.2 : 1.0);
    rig.set_up(31);  // MSN 0 again; what is left of the old life would not be expected
    for (int i = 0; i < 6; ++i) {
      if (rig.bench.chance(0.3)) rig.atomic(31);
      rig.read(31, rig.random_length(31));
      rig.executed(31, true, true);
      rig.executed(30, true, true);
    }
    rig.bench.run_until([&] { return rig.commands.idle(); }, 1000, "commands taken");
    rig.bench.run(rig.bench.uniform(0, 60));
  }
  rig.finish();
}

TEST_CASE("responder_output: what is asked for while a QP is being forgotten is forgotten, too", "[rtl]") {
  Rig rig(seed(14));
  rig.set_up(30);
  for (int round = 0; round < 12; ++round) {
    rig.set_up(31);
    // An atomic that waits for memory holds up the reset. The commands that come meanwhile are taken.
    rig.memory.hold = rig.bench.cycle + 1500;
    rig.atomic(31);
    rig.bench.run(100);
    auto& dut = *rig.bench.dut;
    dut.qp_reset_qp_i = 31;
    dut.qp_reset_valid_i = 1;
    rig.bench.run(rig.bench.uniform(0, 4));
    rig.read(31, rig.random_length(31));
    rig.executed(31, true, true);
    rig.nak(31, static_cast<std::uint8_t>(AethSyndrome::kNakPsn));
    rig.executed(30, true, true);
    rig.bench.run_until([&] { return rig.commands.idle() && rig.monitors[30].settled(); }, 500, "commands taken");
    rig.bench.run(100);
    const auto sent = rig.desc_count;
    rig.reset_qp(31);
    CHECK(rig.bench.cycle >= rig.memory.hold);
    rig.bench.run(200);
    CHECK(rig.desc_count == sent);
    // The next life begins as any other.
    auto& monitor = rig.monitors[31];
    monitor.given.clear();
    monitor.msn = 0;
    rig.change(31, [](rtl::RecvCtx& ctx) { ctx.rd_inflight = ctx.atomics_due = 0; });
    rig.executed(31, true, true);
    rig.read(31, 100);
    rig.bench.run_until([&] { return rig.monitors[31].settled() && rig.monitors[31].given.empty(); }, 2000,
                        "answers of the next life");
  }
  rig.finish();
}

TEST_CASE("responder_output: latency and rate", "[rtl]") {
  Rig rig(seed(8));
  for (int qp = 0; qp < 16; ++qp) rig.set_up(qp, [](rtl::RecvCtx& ctx) { ctx.mtu = 3; });
  const auto start = rig.bench.cycle;
  rig.executed(0, true, true);
  rig.finish();
  std::printf("command to ACK descriptor: %llu cycles\n", static_cast<unsigned long long>(rig.first_desc - start));
  CHECK(rig.first_desc - start <= 12);
  rig.desc_count = 0;
  rig.read(1, 65536);
  rig.finish();
  std::printf("cycles per response packet of one Read: %.2f\n",
              static_cast<double>(rig.last_desc - rig.first_desc) / 63);
  CHECK(rig.last_desc - rig.first_desc <= 63 * 8);
  rig.desc_count = 0;
  for (int i = 0; i < 20; ++i) {
    for (int qp = 0; qp < 16; ++qp) rig.executed(qp, true, true);
  }
  rig.finish();
  std::printf("cycles per ACK, 16 QPs: %.2f (%llu ACKs)\n",
              static_cast<double>(rig.last_desc - rig.first_desc) / static_cast<double>(rig.desc_count - 1),
              static_cast<unsigned long long>(rig.desc_count));
  CHECK(rig.last_desc - rig.first_desc <= rig.desc_count * 8);
}
