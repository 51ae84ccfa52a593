#include <Vrx_engine_harness.h>

#include "tests/rtl/rx_protocol_model.hpp"

// rtl/rx/rx_engine.sv with real context managers: random traffic of several QPs, most of it legal, some of it broken in
// every way a packet can be, against a model written from the specification: results, memory, contexts and counters
// must agree.
using namespace rnic;
using namespace rnic::test;
using Dut = Vrx_engine_harness;

namespace {
struct Hooks : Agent {
  Hooks(Bench<Dut>& bench, std::function<void()> on_drive, std::function<void()> on_sample)
      : drive_(std::move(on_drive)), sample_(std::move(on_sample)) {
    bench.add(*this);
  }
  void drive() override { drive_(); }
  void sample() override { sample_(); }
  std::function<void()> drive_, sample_;
};

/// Changes contexts through the second client of a manager.
template <typename Ctx>
struct CtxClient : Agent {
  struct Ports {
    std::function<void(bool, std::uint8_t)> acquire;
    std::function<bool()> accepted, valid;
    std::function<Ctx()> read;
    std::function<void(bool, const Ctx&)> release;
    std::function<bool()> released;
  };
  CtxClient(Bench<Dut>& bench, Ports the_ports) : ports(std::move(the_ports)) { bench.add(*this); }
  void change(std::uint8_t qp, std::function<void(Ctx&)> how) { jobs.push_back({qp, std::move(how)}); }
  bool idle() const { return jobs.empty() && state == 0; }
  void drive() override {
    if (state == 0 && !jobs.empty()) state = 1;
    ports.acquire(state == 1, jobs.empty() ? 0 : jobs.front().first);
    ports.release(state == 3, ctx);
  }
  void sample() override {
    if (state == 1 && ports.accepted()) {
      state = 2;
    } else if (state == 2 && ports.valid()) {
      ctx = ports.read();
      jobs.front().second(ctx);
      state = 3;
    } else if (state == 3 && ports.released()) {
      jobs.pop_front();
      state = 0;
    }
  }
  Ports ports;
  std::deque<std::pair<std::uint8_t, std::function<void(Ctx&)>>> jobs;
  int state = 0;  // idle, acquiring, waiting, releasing
  Ctx ctx;
};

/// What a peer has in mind for the message that it is sending.
struct Intent {
  std::uint64_t left = 0;
  std::uint16_t next_read = 0;
  rtl::RxDesc last_response;
};

struct Bed {
  explicit Bed(std::uint64_t value)
      : bench(value),
        world(bench.rng),
        xlate(bench, world.regions),
        writes(bench),
        reads(bench),
        place(world.regions),
        model(place) {
    for (Agent* agent : std::initializer_list<Agent*>{&descs, &payload, &done}) bench.add(*agent);
    done.on_item = [this](const rtl::RxDone& item) { check(item); };
    bench.reset();
    bench.run_until([&] { return bench.dut->contexts_ready_o != 0; }, 400, "ready");
  }
  std::uint64_t uniform(std::uint64_t low, std::uint64_t high) { return bench.uniform(low, high); }

  // ---- Queue pairs ----
  void create(std::uint8_t qp, hw::QpState recv_state, hw::QpState send_state, std::uint8_t mtu = 0,
              hw::QpType type = hw::QpType::kRc) {
    QpModel m;
    m.recv.qp_type = m.send.qp_type = static_cast<std::uint8_t>(type);
    m.recv.qkey = static_cast<std::uint32_t>(bench.rng());
    const auto qpn = static_cast<std::uint32_t>(uniform(0, 0xffff) << 8 | qp);
    if (mtu == 0) mtu = static_cast<std::uint8_t>(uniform(1, bench.chance(0.2) ? 5 : 3));
    m.recv.state = static_cast<std::uint8_t>(recv_state);
    m.send.state = static_cast<std::uint8_t>(send_state);
    m.recv.in_use = m.send.in_use = 1;
    m.recv.qpn = m.send.qpn = qpn;
    m.recv.pd = m.send.pd = MemoryWorld::kPd;
    m.recv.mtu = m.send.mtu = mtu;
    m.recv.cqn = static_cast<std::uint8_t>(bench.rng());
    m.recv.rq_base = (std::uint64_t{qp} << 32) + 0x1000;
    m.send.sq_base = (std::uint64_t{qp} << 32) + 0x80001000;
    m.recv.log_depth = static_cast<std::uint8_t>(uniform(5, 7));
    m.send.log_depth = static_cast<std::uint8_t>(uniform(6, 8));
    m.recv.log_stride = static_cast<std::uint8_t>(uniform(5, 9));
    m.send.log_stride = static_cast<std::uint8_t>(uniform(6, 9));
    m.recv.max_dest_rd = static_cast<std::uint8_t>(uniform(1, 16));
    m.send.max_rd = 16;
    m.send.retry_count = static_cast<std::uint8_t>(uniform(0, 7));
    m.send.retry_left = static_cast<std::uint8_t>(uniform(0, m.send.retry_count));
    m.send.rnr_retry = static_cast<std::uint8_t>(uniform(0, 7));
    m.send.rnr_left = static_cast<std::uint8_t>(uniform(0, m.send.rnr_retry));
    m.recv.min_rnr_timer = static_cast<std::uint8_t>(uniform(0, 31));
    m.recv.remote_write = !bench.chance(0.1);
    m.recv.remote_read = !bench.chance(0.1);
    m.recv.remote_atomic = !bench.chance(0.1);
    m.recv.rq_pi = m.recv.rq_head = m.recv.rq_done = static_cast<std::uint16_t>(uniform(0xfff0, 0x1000f));
    m.recv.epsn = static_cast<std::uint32_t>(uniform(0xffffc0, 0x1000010) & 0xffffff);
    m.send.next_psn = m.send.una_psn = m.send.max_psn =
        static_cast<std::uint32_t>(uniform(0xffffc0, 0x1000010) & 0xffffff);
    m.path.ipv6 = bench.chance(0.5);
    m.path.dest_qpn = static_cast<std::uint32_t>(uniform(0, 0xffffff));
    m.path.pkey = static_cast<std::uint16_t>(bench.rng() | 1);
    m.path.vlan = bench.chance(0.5);
    m.path.vlan_id = static_cast<std::uint16_t>(bench.chance(0.3) ? 0 : uniform(0, 0xffe));
    m.path.pcp = static_cast<std::uint8_t>(uniform(0, 7));
    for (auto* ip : {&m.path.source_ip, &m.path.dest_ip}) {
      *ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
      for (std::size_t i = m.path.ipv6 ? 0 : 12; i < 16; ++i) (*ip)[i] = static_cast<std::uint8_t>(bench.rng());
    }
    if (srqs != 0 &&
        ((type == hw::QpType::kRc && bench.chance(0.6)) || (type == hw::QpType::kUd && bench.chance(0.5)))) {
      m.recv.srq = 1;
      m.recv.srqn = static_cast<std::uint8_t>(255 - uniform(0, srqs - 1));
    }
    // The second address of a UD queue pair is of the other kind.
    if (type == hw::QpType::kUd) {
      m.path.dest_ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
      if (!m.path.ipv6) m.path.dest_ip[10] = 0xfe;
    }
    model.qps[qp] = m;
    intents[qp] = {};
    intents[qp].next_read = static_cast<std::uint16_t>(uniform(0xfff0, 0x1000f));
    recv.change(qp, [c = m.recv](rtl::RecvCtx& ctx) { ctx = c; });
    send.change(qp, [c = m.send](rtl::SendCtx& ctx) { ctx = c; });
  }

  void create_srq(std::uint8_t number) {
    auto& c = model.srqs[number].ctx;
    c.in_use = 1;
    c.pd = MemoryWorld::kPd;
    c.base = (std::uint64_t{number} << 32) + 0x40001000;
    c.log_depth = static_cast<std::uint8_t>(uniform(4, 7));
    c.log_stride = static_cast<std::uint8_t>(uniform(5, 9));
    c.pi = c.head = static_cast<std::uint16_t>(uniform(0xfff0, 0x1000f));
    c.limit = static_cast<std::uint16_t>(uniform(0, 20));
    srq.change(number, [c](rtl::SrqCtx& ctx) { ctx = c; });
  }
  void post_shared(std::uint8_t number) {
    auto& m = model.srqs[number];
    const std::uint16_t idx = m.ctx.pi++;
    const std::size_t slot = std::size_t{1} << m.ctx.log_stride;
    const auto made = world.wqe(false, uniform(1, 8) * 256, slot, idx, 0, fault_rate);
    m.lists[idx] = made.list;
    store(m.ctx.base + (idx % (1u << m.ctx.log_depth)) * slot, made);
    srq.change(number, [](rtl::SrqCtx& ctx) { ++ctx.pi; });
  }
  void fill_srqs() {
    for (auto& [number, m] : model.srqs) {
      const std::uint64_t room = (1u << m.ctx.log_depth) - static_cast<std::uint16_t>(m.ctx.pi - m.ctx.head);
      for (std::uint64_t i = std::min(room, bench.chance(0.2) ? 0 : uniform(0, 12)); i > 0; --i) post_shared(number);
      m.ctx.limit = static_cast<std::uint16_t>(bench.chance(0.2) ? 0 : uniform(0, 20));
      m.ctx.limit_hit = 0;
      srq.change(number, [limit = m.ctx.limit](rtl::SrqCtx& ctx) { ctx.limit = limit, ctx.limit_hit = 0; });
    }
  }
  /// As a destroyed queue pair is left: everything but in_use is as it was.
  void remove(std::uint8_t qp) {
    auto& m = model.qps[qp];
    m.recv.in_use = m.send.in_use = 0;
    recv.change(qp, [](rtl::RecvCtx& ctx) { ctx.in_use = 0; });
    send.change(qp, [](rtl::SendCtx& ctx) { ctx.in_use = 0; });
  }

  void post_receive(std::uint8_t qp) {
    auto& m = model.qps[qp];
    if (m.recv.srq) return;
    const std::uint16_t idx = m.recv.rq_pi++;
    const std::size_t slot = std::size_t{1} << m.recv.log_stride;
    const bool reliable = m.recv.qp_type == 0;
    const auto made = world.wqe(false, reliable ? uniform(1, 4) * m.mtu() : 8 * m.mtu() + 40, slot, idx, m.recv.qpn,
                                reliable ? fault_rate : 0);
    m.receive_lists[idx] = made.list;
    store(m.recv.rq_base + (idx % (1u << m.recv.log_depth)) * slot, made);
    recv.change(qp, [](rtl::RecvCtx& ctx) { ++ctx.rq_pi; });
  }
  void send_read(std::uint8_t qp, std::uint32_t length, bool atomic = false) {
    auto& m = model.qps[qp];
    const std::uint16_t idx = intents[qp].next_read++;
    const std::size_t slot = std::size_t{1} << m.send.log_stride;
    const auto made = world.wqe(true, length, slot, idx, m.send.qpn, fault_rate, atomic);
    m.read_lists[idx] = made.list;
    store(m.send.sq_base + (idx % (1u << m.send.log_depth)) * slot, made);
    ask(qp, {idx, m.send.next_psn, length, 0, false, atomic});
  }
  /// The Read's request leaves, the first time or again.
  void ask(std::uint8_t qp, AwaitedRead read) {
    auto& m = model.qps[qp];
    read.replayed = m.send.next_psn != m.send.max_psn;
    m.awaited.push_back(read);
    slots[qp * 16u + m.send.rd_tail % 16] = {.wqe_idx = read.wqe_idx,
                                             .first_psn = read.first_psn,
                                             .length = read.length,
                                             .replayed = read.replayed,
                                             .atomic = read.atomic};
    const std::uint32_t left = read.length - read.offset;
    const auto sent = [](rtl::SendCtx& ctx) { ctx.rd_tail = (ctx.rd_tail + 1) % 32, ++ctx.rd_outstanding; };
    sent(m.send);
    send.change(qp, sent);
    advance(qp, std::max<std::uint32_t>(1, (left + m.mtu() - 1) / m.mtu()));
  }
  /// What recovery does: back to a PSN that is not beyond the awaited response; then some of the Reads are sent again.
  void go_back(std::uint8_t qp) {
    auto& m = model.qps[qp];
    auto old = std::move(m.awaited);
    m.awaited.clear();
    const std::uint32_t limit = old.empty() ? m.send.next_psn : old.front().expected(m.mtu());
    std::uint32_t psn =
        (m.send.una_psn + static_cast<std::uint32_t>(uniform(0, (limit - m.send.una_psn) & 0xffffff))) & 0xffffff;
    if (!old.empty() && old.front().offset != 0) psn = limit;
    const auto back = [psn, count = old.size(), told = bench.chance(0.5)](rtl::SendCtx& ctx) {
      ctx.next_psn = ctx.rec_psn = psn;
      ctx.recovering = told;
      ctx.rd_tail = ctx.rd_head;
      ctx.rd_outstanding = static_cast<std::uint8_t>(ctx.rd_outstanding - count);
    };
    back(m.send);
    send.change(qp, back);
    for (const auto& read : old) {
      if (read.offset == 0 && bench.chance(0.1)) break;  // a Read that has begun to arrive always is the first again
      const std::uint32_t begin = read.expected(m.mtu());
      if (begin != m.send.next_psn) advance(qp, (begin - m.send.next_psn) & 0xffffff);
      ask(qp, read);
    }
  }
  /// The send queue has used `packets` PSNs, and their packets have left.
  void advance(std::uint8_t qp, std::uint32_t packets) {
    const auto sent = [packets](rtl::SendCtx& ctx) {
      ctx.next_psn = (ctx.next_psn + packets) & 0xffffff;
      if (((ctx.next_psn - ctx.max_psn) & 0xffffff) < 0x800000) ctx.max_psn = ctx.next_psn;
    };
    sent(model.qps[qp].send);
    model.qps[qp].reach = {.known = 1, .next_psn = model.qps[qp].send.max_psn};
    send.change(qp, sent);
  }
  void store(std::uint64_t addr, const MemoryWorld::Wqe& wqe) {
    host.write(addr, wqe.bytes);
    failing[addr] = wqe.err;
  }
  /// What other blocks do to contexts between two rounds.
  void housekeeping(std::uint8_t qp) {
    auto& m = model.qps[qp];
    if (m.recv.state >= static_cast<std::uint8_t>(hw::QpState::kRtr)) {
      const std::uint64_t room = (1u << m.recv.log_depth) - static_cast<std::uint16_t>(m.recv.rq_pi - m.recv.rq_head);
      for (std::uint64_t i = std::min(room, bench.chance(0.3) ? 0 : uniform(0, 12)); i > 0; --i) post_receive(qp);
      if (bench.chance(0.7)) {
        const auto answered = static_cast<std::uint8_t>(uniform(0, m.recv.rd_inflight));
        const auto repeated = static_cast<std::uint8_t>(uniform(0, m.recv.rp_inflight));
        const auto atomics = static_cast<std::uint8_t>(
            m.recv.atomics_due - std::min<unsigned>(m.recv.atomics_due, m.recv.rd_inflight - answered));
        const auto answer_them = [answered, repeated, atomics](rtl::RecvCtx& ctx) {
          ctx.rd_inflight -= answered, ctx.rp_inflight -= repeated, ctx.atomics_due -= atomics;
        };
        answer_them(m.recv);
        recv.change(qp, answer_them);
      }
      if (m.recv.invalidating && bench.chance(0.7)) {
        const auto invalidated = [](rtl::RecvCtx& ctx) { ctx.invalidating = 0; };
        invalidated(m.recv);
        recv.change(qp, invalidated);
      }
    }
    if (m.recv.qp_type != 0) return;
    if (bench.chance(0.6)) {  // Reads that have arrived retire
      const auto retired = static_cast<std::uint8_t>(m.send.rd_outstanding - m.awaited.size());
      m.send.rd_outstanding -= retired;
      send.change(qp, [retired](rtl::SendCtx& ctx) { ctx.rd_outstanding -= retired; });
    }
    const auto left_before = m.reach;
    const auto first = m.send.una_psn;
    if (bench.chance(0.2)) go_back(qp);
    const bool fill = bench.chance(0.4);
    while (m.send.rd_outstanding < 16 && (fill || bench.chance(0.6)))
      bench.chance(0.15) ? send_read(qp, 8, true) : send_read(qp, static_cast<std::uint32_t>(message_length(m.mtu())));
    advance(qp, static_cast<std::uint32_t>(uniform(0, 8)));
    // Retirement acknowledges nothing beyond the awaited response.
    const auto limit = m.awaited.empty() ? m.send.next_psn : m.awaited.front().expected(m.mtu());
    const auto acked = static_cast<std::uint32_t>(uniform(0, (limit - m.send.una_psn) & 0xffffff));
    m.send.una_psn = (m.send.una_psn + acked) & 0xffffff;
    send.change(qp, [acked](rtl::SendCtx& ctx) { ctx.una_psn = (ctx.una_psn + acked) & 0xffffff; });
    // The payload of the newest may still be under way: what had left has left, and what is acknowledged.
    if (bench.chance(0.4)) {
      const auto since = [first](std::uint32_t psn) { return (psn - first) & 0xffffff; };
      const auto least = std::max(left_before.known ? since(left_before.next_psn) : 0, since(m.send.una_psn));
      const auto most = since(m.reach.next_psn);
      const auto left = static_cast<std::uint32_t>(bench.chance(0.3) ? least : uniform(least, most));
      m.reach = {.known = left_before.known || left != 0, .next_psn = (first + left) & 0xffffff};
    }
  }

  // ---- Packets ----
  rtl::RxDesc header(const QpModel& m) {
    rtl::RxDesc d;
    d.dest_qpn = m.recv.qpn;
    d.pkey = static_cast<std::uint16_t>(m.path.pkey ^ (bench.chance(0.5) && (m.path.pkey & 0x8000) ? 0x8000 : 0));
    if (!(m.path.pkey & 0x8000)) d.pkey |= 0x8000;
    d.ipv6 = m.path.ipv6;
    d.source_ip = m.path.dest_ip;
    d.dest_ip = m.path.source_ip;
    d.qkey = m.recv.qkey;
    d.source_qpn = static_cast<std::uint32_t>(bench.rng() & 0xffffff);
    // In the VLAN of the path; in none: without a tag, or with that of a priority.
    const unsigned vid = m.path.vlan ? m.path.vlan_id : 0;
    d.vlan = vid != 0 || bench.chance(0.5);
    if (d.vlan) d.vlan_tci = static_cast<std::uint16_t>(uniform(0, 15) << 12 | vid);
    d.l3_ok = bench.chance(0.5);
    d.l4_ok = bench.chance(0.5);
    if (m.recv.qp_type == 3) {
      d.vlan = bench.chance(0.5);
      d.vlan_tci = static_cast<std::uint16_t>(d.vlan ? bench.rng() : 0);
      for (auto& byte : d.source_ip) byte = static_cast<std::uint8_t>(bench.rng());
      if (bench.chance(0.5)) {
        d.dest_ip = m.path.dest_ip;
        d.ipv6 ^= 1;
      }
      if (bench.chance(0.2)) {  // a copy of one to a group
        d.multicast = 1;
        for (auto& byte : d.dest_ip) byte = static_cast<std::uint8_t>(bench.rng());
      }
    }
    d.solicited = bench.chance(0.5);
    d.ack_req = bench.chance(0.5);
    d.va = bench.rng();
    d.rkey = static_cast<std::uint32_t>(bench.rng());
    d.dma_length = static_cast<std::uint32_t>(bench.rng());
    d.swap_add = bench.rng();
    d.compare = bench.rng();
    d.immediate = static_cast<std::uint32_t>(bench.rng());
    d.syndrome = static_cast<std::uint8_t>(bench.rng() & 0x1f);
    d.msn = static_cast<std::uint32_t>(bench.rng() & 0xffffff);
    return d;
  }
  std::uint64_t message_length(std::uint32_t mtu) {
    if (bench.chance(0.25)) return uniform(0, 3) * mtu;
    return bench.chance(0.6) ? uniform(1, 100) : uniform(1, 3 * mtu);
  }

  /// The next packet of a legal request, and what it leaves to send.
  rtl::RxDesc request(std::uint8_t qp, std::uint64_t& size, std::uint64_t& left) {
    const auto& m = model.qps[qp];
    auto d = header(m);
    if (m.recv.qp_type == 3) {
      d.opcode = static_cast<std::uint8_t>(uniform(0x64, 0x65));
      d.psn = static_cast<std::uint32_t>(bench.rng() & 0xffffff);
      size = 40 + (bench.chance(0.2) ? 0 : uniform(0, m.mtu()));
      left = 0;
      return d;
    }
    if (m.recv.qp_type == 2) {  // an Ethernet frame: nothing but where it goes and how long it is
      rtl::RxDesc frame;
      frame.opcode = 0x44;
      frame.dest_qpn = m.recv.qpn;
      size = uniform(14, std::min<std::uint64_t>(hw::kMaxFrameBytes, 8 * m.mtu()));
      left = 0;
      return frame;
    }
    d.psn = m.recv.epsn;
    const std::uint64_t mtu = m.mtu();
    bool write = m.recv.msg == 2;
    left = write ? m.recv.remain : std::max<std::uint64_t>(intents[qp].left, 1);
    const bool uc = m.recv.qp_type == 1;
    const bool starts = m.recv.msg == 0 || m.recv.msg == 3 || (uc && bench.chance(0.03));
    if (starts) {
      left = message_length(m.mtu());
      const auto [key, va] = world.range(left, !uc && left && bench.chance(fault_rate));
      d.rkey = key;
      d.va = va;
      d.dma_length = static_cast<std::uint32_t>(left);
      if (!uc && bench.chance(0.15)) {
        d.opcode = 0x0c;
        size = 0;
        return d;
      }
      if (!uc && bench.chance(0.1)) {
        const auto [word_key, word_va] = world.range(16, bench.chance(fault_rate));
        d.opcode = static_cast<std::uint8_t>(uniform(0x13, 0x14));
        d.rkey = word_key;
        d.va = bench.chance(0.95) ? (word_va + 7) & ~std::uint64_t{7} : word_va;
        d.dma_length = 0;  // there is none in an AtomicETH
        size = left = 0;
        return d;
      }
      write = bench.chance(0.5);
    }
    size = std::min(left, mtu);
    left -= size;
    d.opcode = static_cast<std::uint8_t>((write ? 6 : 0) + (starts ? (left ? 0 : 4) : (left ? 1 : 2)));
    if (left == 0 && bench.chance(0.3)) {
      if (uc || write || bench.chance(0.5))
        ++d.opcode;  // with immediate data
      else
        d.opcode = starts ? 0x17 : 0x16;  // with invalidate
    }
    if (uc) d.opcode |= 0x20;
    return d;
  }
  rtl::RxDesc response(std::uint8_t qp, std::uint64_t& size) {
    const auto& m = model.qps[qp];
    if (intents[qp].last_response.opcode != 0 && bench.chance(0.15)) {  // the network says it twice
      size = intents[qp].last_response.payload_length;
      return intents[qp].last_response;
    }
    auto d = header(m);
    size = 0;
    if (!m.awaited.empty() && bench.chance(0.75)) {
      const auto& read = m.awaited.front();
      d.psn = (read.first_psn + read.offset / m.mtu()) & 0xffffff;
      size = std::min(read.length - read.offset, m.mtu());
      const bool last = read.offset + size == read.length;
      const bool starts = read.offset == 0 || (read.replayed && bench.chance(0.5));
      d.opcode = starts ? (last ? 0x10 : 0x0d) : (last ? 0x0f : 0x0e);
      if (read.atomic) d.opcode = 0x12;
      return d;
    }
    d.opcode = 0x11;
    d.psn = (m.send.una_psn - 2 +
             static_cast<std::uint32_t>(uniform(0, ((m.send.max_psn - m.send.una_psn) & 0xffffff) + 3))) &
            0xffffff;
    const std::array syndromes{
        0x1f, 0x00, 0x60, 0x61, 0x20 + static_cast<int>(uniform(0, 31)), static_cast<int>(bench.rng() & 0xff)};
    d.syndrome = static_cast<std::uint8_t>(syndromes[uniform(0, syndromes.size() - 1)]);
    return d;
  }
  void spoil(rtl::RxDesc& d, std::uint64_t& size) {
    if (d.opcode >= 0x60 && bench.chance(0.3)) {
      d.qkey ^= 1u << uniform(0, 31);
      return;
    }
    switch (bench.chance(0.5) ? uniform(0, 2) : uniform(0, 15)) {
      case 0: d.psn = (d.psn + 1) & 0xffffff; break;
      case 1: d.psn = (d.psn - 1) & 0xffffff; break;
      case 2:
        d.psn = static_cast<std::uint32_t>((d.psn + (std::array{0x7fffff, 0x800000, 0x800001, 3}[uniform(0, 3)])) &
                                           0xffffff);
        break;
      case 3:
        if (d.opcode < 0x40) d.opcode = static_cast<std::uint8_t>((d.opcode & 0x60) | uniform(0, 0x1f));
        break;
      case 4: d.opcode = static_cast<std::uint8_t>(uniform(0x20, 0xff)); break;
      case 5: size = bench.chance(0.5) ? size + 1 : size ? size - 1 : 0; break;
      case 6: size = uniform(0, 4096); break;
      case 7:
        if (d.opcode == 0x26) break;
        bench.chance(0.5) ? ++d.dma_length : d.dma_length |= 0x80000000;
        break;
      case 8: d.pkey ^= static_cast<std::uint16_t>(1u << uniform(0, 14)); break;
      case 9: d.dest_qpn ^= 1u << uniform(0, 23); break;
      case 10: (bench.chance(0.5) ? d.source_ip : d.dest_ip)[uniform(12, 15)] ^= 1; break;
      case 11: {  // ends where it must not, or the other way round
        static const std::map<int, int> twins{{0, 4}, {4, 0}, {1, 2},   {2, 1},   {6, 10},  {10, 6},
                                              {7, 8}, {8, 7}, {13, 16}, {16, 13}, {14, 15}, {15, 14}};
        if (twins.contains(d.opcode)) d.opcode = static_cast<std::uint8_t>(twins.at(d.opcode));
        break;
      }
      case 13: d.syndrome = static_cast<std::uint8_t>(bench.rng()); break;
      case 12: d.pkey &= bench.chance(0.5) ? 0x7fff : 0x8000; break;
      case 14:
        if (bench.chance(0.5))
          d.vlan = 1, d.vlan_tci ^= static_cast<std::uint16_t>(1u << uniform(0, 15));
        else
          d.vlan = 0, d.vlan_tci = 0;
        break;
      default:
        if (d.ipv6)
          d.source_ip[uniform(0, 11)] ^= 4;
        else
          d.ipv6 ^= 1;
    }
    size = std::min<std::uint64_t>(size, 4096);
  }
  void packet(std::uint8_t qp) {
    std::uint64_t size = 0, left = 0;
    const bool is_response = bench.chance(model.qps[qp].recv.qp_type == 0 ? 0.4 : 0.02);
    auto d = is_response ? response(qp, size) : request(qp, size, left);
    if (bench.chance(spoil_rate)) {
      spoil(d, size);
      left = 0;
    }
    const bool executed = submit(d, size);
    if (executed && !is_response) intents[qp].left = left;
    if (executed && d.opcode != 0x11 && is_response) intents[qp].last_response = descs_last;
  }
  bool submit(rtl::RxDesc d, std::uint64_t size) {
    d.payload_length = static_cast<std::uint16_t>(size);
    descs_last = d;
    // A request that was held comes again, marked (rx_park); so may what comes of its QP while something waits.
    const auto qp = model.qps.find(static_cast<std::uint8_t>(d.dest_qpn));
    const bool request = d.opcode < 0x0d || d.opcode > 0x12;
    if (request && qp != model.qps.end() && qp->second.recv.parked != 0) d.parked = again.value_or(bench.chance(0.5));
    const Bytes data = random_bytes(bench.rng, size);
    descs.push(d);
    const auto result = model.receive(d, data);
    judged.push_back(result.held);
    if (!result.held) {
      for (const auto& beat : payload_beats(data, bench.rng)) payload.push(beat);
    }
    if (result.done) expected.push_back({meaningful(*result.done), place.placed_bytes});
    ++submitted;
    return result.executed;
  }

  // ---- Results ----
  void check(const rtl::RxDone& got) {
    const auto item = meaningful(got);
    REQUIRE(!expected.empty());
    const auto& [want, bytes] = expected.front();
    const auto shape = [](const rtl::RxDone& d) {
      return std::vector<std::uint64_t>{d.qp,       d.qpn,     d.srq,    d.takes,    d.srqn,
                                        d.wqe_lost, d.wqe_idx, d.action, d.fault,    d.status,
                                        d.overflow, d.bad_wqe, d.psn,    d.syndrome, d.target};
    };
    REQUIRE(shape(item) == shape(want));
    REQUIRE(item == want);
    REQUIRE(writes.done_bytes >= bytes);
    expected.pop_front();
  }
  bool idle() const {
    return descs.idle() && payload.idle() && expected.empty() && recv.idle() && send.idle() && srq.idle() &&
           xlate.idle() && writes.idle() && reads.idle() && reset_step == 0;
  }
  void settle(std::uint64_t limit) {
    bench.run_until([&] { return idle(); }, limit, "end of the traffic");
    bench.run(40);
    REQUIRE(idle());
    REQUIRE(writes.memory.bytes == place.memory.bytes);
    for (std::size_t i = 0; i < model.counters.size(); ++i) {
      INFO("counter " << i);
      REQUIRE(counters[i] == model.counters[i]);
    }
    REQUIRE(qp_counters == model.qp_counters);
    std::uint64_t wanted_limits = 0;
    for (auto& [number, m] : model.srqs) {
      wanted_limits += m.limits;
      srq.change(number, [want = m.ctx](rtl::SrqCtx& ctx) { REQUIRE(ctx == want); });
    }
    REQUIRE(limits == wanted_limits);
    // What has entered has left: packets without a trace too.
    REQUIRE(bench.dut->rx_entered_o == bench.dut->rx_left_o);
    for (auto& [qp, m] : model.qps) {
      recv.change(qp, [want = m.recv](rtl::RecvCtx& ctx) { REQUIRE(ctx == want); });
      send.change(qp, [want = m.send](rtl::SendCtx& ctx) { REQUIRE(ctx == want); });
    }
    bench.run_until([&] { return idle(); }, 10000, "contexts read");
  }
  /// Resets `qp` when the packets pushed so far have been taken: the contexts first, then the engine.
  void reset_qp(std::uint8_t qp) {
    reset_step = 1;
    reset_index = qp;
    reset_after = submitted;
    reset_wait = 0;
  }
  void reset_machine() {
    if (reset_step == 1 && descs.accepted >= reset_after && ++reset_wait == 30) {
      recv.change(reset_index, [](rtl::RecvCtx& ctx) { ctx.state = 0; });
      send.change(reset_index, [](rtl::SendCtx& ctx) { ctx.state = 0; });
      model.qps[reset_index].recv.state = model.qps[reset_index].send.state = 0;
      reset_step = 2;
    } else if (reset_step == 2 && recv.idle() && send.idle()) {
      reset_step = 3;
    } else if (reset_step == 3 && bench.dut->qp_reset_valid_i && bench.dut->qp_reset_ready_o) {
      for (const auto& [item, bytes] : expected) REQUIRE(item.qp != reset_index);
      reset_step = 0;
    }
  }

  Bench<Dut> bench;
  MemoryWorld world;
  XlatePort<Dut> xlate;
  WritePort<Dut> writes;
  ReadPort<Dut> reads;
  PlaceModel place;
  ProtocolModel model;
  CtxClient<rtl::RecvCtx> recv{
      bench,
      {[this](bool v, std::uint8_t i) { bench.dut->test_recv_acq_valid_i = v, bench.dut->test_recv_acq_index_i = i; },
       [this] { return bench.dut->test_recv_acq_ready_o != 0; },
       [this] { return bench.dut->test_recv_ctx_valid_o != 0; },
       [this] { return get<rtl::RecvCtx>(bench.dut->test_recv_ctx_data_o); },
       [this](bool v, const rtl::RecvCtx& c) {
         bench.dut->test_recv_rel_valid_i = v;
         if (v) put(bench.dut->test_recv_rel_data_i, c);
       },
       [this] { return bench.dut->test_recv_rel_ready_o != 0; }}};
  CtxClient<rtl::SendCtx> send{
      bench,
      {[this](bool v, std::uint8_t i) { bench.dut->test_send_acq_valid_i = v, bench.dut->test_send_acq_index_i = i; },
       [this] { return bench.dut->test_send_acq_ready_o != 0; },
       [this] { return bench.dut->test_send_ctx_valid_o != 0; },
       [this] { return get<rtl::SendCtx>(bench.dut->test_send_ctx_data_o); },
       [this](bool v, const rtl::SendCtx& c) {
         bench.dut->test_send_rel_valid_i = v;
         if (v) put(bench.dut->test_send_rel_data_i, c);
       },
       [this] { return bench.dut->test_send_rel_ready_o != 0; }}};
  CtxClient<rtl::SrqCtx> srq{
      bench,
      {[this](bool v, std::uint8_t i) { bench.dut->test_srq_acq_valid_i = v, bench.dut->test_srq_acq_index_i = i; },
       [this] { return bench.dut->test_srq_acq_ready_o != 0; }, [this] { return bench.dut->test_srq_ctx_valid_o != 0; },
       [this] { return get<rtl::SrqCtx>(bench.dut->test_srq_ctx_data_o); },
       [this](bool v, const rtl::SrqCtx& c) {
         bench.dut->test_srq_rel_valid_i = v;
         if (v) put(bench.dut->test_srq_rel_data_i, c);
       },
       [this] { return bench.dut->test_srq_rel_ready_o != 0; }}};
  Source<rtl::RxDesc> descs{[this](bool v) { bench.dut->desc_valid_i = v; },
                            [this] { return bench.dut->desc_ready_o != 0; },
                            [this](const rtl::RxDesc& item) { put(bench.dut->desc_data_i, item); }, bench.rng};
  Source<rtl::PayloadBeat> payload{
      [this](bool v) { bench.dut->payload_valid_i = v; }, [this] { return bench.dut->payload_ready_o != 0; },
      [this](const rtl::PayloadBeat& item) { put(bench.dut->payload_data_i, item); }, bench.rng};
  Sink<rtl::RxDone> done{[this] { return bench.dut->done_valid_o != 0; },
                         [this](bool r) { bench.dut->done_ready_i = r; },
                         [this] { return get<rtl::RxDone>(bench.dut->done_data_o); }, bench.rng};

  // Path table and Read ring (data the cycle after the enable), WQE reads, event counters, other users of the contexts.
  Hooks surroundings{bench,
                     [this] {
                       auto& dut = *bench.dut;
                       if (next_path) put(dut.path_rd_data_i, *next_path);
                       if (next_reach) put(dut.reach_data_i, *next_reach);
                       if (next_slot) put(dut.read_slot_data_i, *next_slot);
                       next_path.reset();
                       next_reach.reset();
                       next_slot.reset();
                       dut.rd_req_ready_i = bench.chance(read_rate);
                       dut.qp_reset_valid_i = reset_step == 3;
                       dut.qp_reset_qp_i = reset_index;
                     },
                     [this] {
                       auto& dut = *bench.dut;
                       if (dut.path_rd_en_o) {
                         const auto qp = model.qps.find(dut.path_rd_qp_o);
                         next_path = qp != model.qps.end() ? qp->second.path : rtl::Path{};
                         next_reach = qp != model.qps.end() ? qp->second.reach : rtl::Reach{};
                       }
                       if (dut.read_slot_en_o) next_slot = slots[dut.read_slot_addr_o];
                       if (dut.rd_req_valid_o && dut.rd_req_ready_i) {
                         const auto request = get<rtl::DmaRdReq>(dut.rd_req_data_o);
                         Bytes data(request.length);
                         for (std::size_t i = 0; i < data.size(); ++i) data[i] = host.read(request.addr + i);
                         reads.push(request.addr, data, failing[request.addr]);
                       }
                       if (dut.judged_valid_o) {
                         REQUIRE(!judged.empty());
                         REQUIRE(judged.front() == (dut.held_o != 0));
                         judged.pop_front();
                       }
                       limits += dut.limit_valid_o;
                       if (dut.limit_valid_o) REQUIRE(model.srqs.contains(dut.limit_srq_o));
                       if (dut.established_valid_o) ++established[dut.established_qp_o];
                       for (std::size_t i = 0; i < counters.size(); ++i) counters[i] += port_bit(dut.event_o, i);
                       for (std::size_t i = 0; i < hw::kQpCounters; ++i) {
                         if (dut.qp_event_o >> i & 1) ++qp_counters[dut.qp_event_qp_o][i];
                       }
                       if (dut.place_fault_o)
                         ++qp_counters[dut.place_fault_qp_o][static_cast<std::size_t>(hw::QpCounter::kPlaceFaults)];
                       if (busy_neighbours && !descs.idle() && bench.chance(0.05)) {
                         auto at = model.qps.begin();
                         std::advance(at, static_cast<long>(uniform(0, model.qps.size() - 1)));
                         const auto qp = at->first;
                         if (bench.chance(0.5)) {
                           ++model.qps[qp].recv.rq_done;
                           recv.change(qp, [](rtl::RecvCtx& ctx) { ++ctx.rq_done; });
                         } else {
                           ++model.qps[qp].send.silent_run;
                           send.change(qp, [](rtl::SendCtx& ctx) { ++ctx.silent_run; });
                         }
                       }
                       reset_machine();
                     }};

  std::map<std::uint8_t, Intent> intents;
  ByteMemory host;
  std::map<std::uint64_t, bool> failing;
  std::array<rtl::ReadSlot, 4096> slots{};
  std::optional<rtl::Path> next_path;
  std::optional<rtl::Reach> next_reach;
  std::optional<rtl::ReadSlot> next_slot;
  std::deque<std::pair<rtl::RxDone, std::uint64_t>> expected;
  std::array<std::uint64_t, hw::kCounterNames.size()> counters{};
  std::map<std::uint8_t, std::array<std::uint64_t, hw::kQpCounters>> qp_counters;
  rtl::RxDesc descs_last;
  std::optional<bool> again;  // whether requests of queue pairs that have some waiting are such; else at random
  std::deque<bool> judged;    // of the packets that have not been checked: whether each must wait
  double fault_rate = 0, spoil_rate = 0, read_rate = 1;
  bool busy_neighbours = true;
  std::uint8_t srqs = 0;  // most QPs are on one of so many: 255, 254, ...
  std::uint64_t limits = 0;
  std::uint64_t submitted = 0;
  std::map<unsigned, unsigned> established;  // pulses, by QP
  int reset_step = 0, reset_wait = 0;
  std::uint8_t reset_index = 0;
  std::uint64_t reset_after = 0;
};
}  // namespace

TEST_CASE("rx_engine: random traffic against the rules of the specification", "[rtl]") {
  Bed bed(seed());
  const std::array<std::uint8_t, 11> live{0, 1, 77, 128, 200, 255, 30, 31, 32, 33, 34};
  const auto type_of = [](std::uint8_t qp) {
    return qp == 34               ? hw::QpType::kRawPacket
           : qp == 30 || qp == 31 ? hw::QpType::kUc
           : qp >= 32 && qp <= 33 ? hw::QpType::kUd
                                  : hw::QpType::kRc;
  };
  bed.srqs = 2;
  for (std::uint8_t i = 0; i < bed.srqs; ++i) bed.create_srq(static_cast<std::uint8_t>(255 - i));
  for (const auto qp : live) bed.create(qp, hw::QpState::kRts, hw::QpState::kRts, 0, type_of(qp));
  bed.create(5, hw::QpState::kRtr, hw::QpState::kRtr);
  bed.create(8, hw::QpState::kSqd, hw::QpState::kSqd);
  bed.create(6, hw::QpState::kErr, hw::QpState::kErr);
  bed.create(7, hw::QpState::kInit, hw::QpState::kInit);
  bed.create(8, hw::QpState::kRts, hw::QpState::kRts);
  bed.remove(8);
  bed.settle(1000);
  for (int round = 0; round < 80; ++round) {
    bed.fault_rate = round % 4 == 0 ? 0 : 0.01;
    bed.spoil_rate = round % 4 == 1 ? 0 : 0.08;
    for (double* rate : {&bed.descs.rate, &bed.payload.rate, &bed.done.rate, &bed.xlate.rate, &bed.writes.rate,
                         &bed.reads.rate, &bed.read_rate})
      *rate = bed.bench.chance(0.6) ? 1.0 : static_cast<double>(bed.uniform(1, 10)) / 10.0;
    bed.xlate.slow = bed.bench.chance(0.3);
    bed.writes.slow = bed.bench.chance(0.3);
    bed.reads.latency = bed.bench.chance(0.5) ? 300 : 10;
    for (const auto qp : live) bed.housekeeping(qp);
    bed.fill_srqs();
    bed.settle(20000);

    const auto any = [&] {
      return bed.bench.chance(0.05) ? static_cast<std::uint8_t>(bed.uniform(5, 8))
                                    : live[bed.uniform(0, live.size() - 1)];
    };
    for (int i = 0; i < 40; ++i) bed.packet(any());
    // One QP is reset in the middle of the traffic of the others.
    const auto victim = live[bed.uniform(0, live.size() - 1)];
    bed.reset_qp(victim);
    for (int i = 0; i < 20; ++i) {
      const auto qp = any();
      if (qp != victim) bed.packet(qp);
    }
    bed.settle(400000);
    // Most of those that have failed are reset now; the others must stay silent for a while.
    for (const auto qp : live) {
      const auto& m = bed.model.qps[qp];
      const bool failed =
          m.requests_killed || m.responses_killed || bed.place.dead(false, qp) || bed.place.dead(true, qp);
      if (qp != victim && !(failed && bed.bench.chance(0.8))) continue;
      if (qp != victim) {
        bed.reset_qp(qp);
        bed.settle(1000);
      }
      bed.place.reset(qp);
      bed.create(qp, hw::QpState::kRts, hw::QpState::kRts, 0, type_of(qp));
    }
    bed.settle(2000);
  }
  for (const auto& [number, m] : bed.model.srqs) {
    std::printf("rx_engine: SRQ %d: %zu WQEs posted, limit hit %llu times\n", number, m.lists.size(),
                static_cast<unsigned long long>(m.limits));
  }
  // The first packet in RTR, once.
  CHECK(bed.established == bed.model.established);
  CHECK(bed.established == std::map<unsigned, unsigned>{{5, 1}});
  CHECK(bed.limits > 0);
  std::printf("rx_engine: %llu packets, %llu bytes placed\n", static_cast<unsigned long long>(bed.submitted),
              static_cast<unsigned long long>(bed.place.placed_bytes));
  for (auto i = static_cast<std::size_t>(hw::Counter::kRxNoQp);
       i <= static_cast<std::size_t>(hw::Counter::kRxPlaceFaults); ++i) {
    std::printf("  %s: %llu\n", std::string(hw::kCounterNames[i]).c_str(),
                static_cast<unsigned long long>(bed.counters[i]));
    // An SRQ fails in a test of its own.
    const bool elsewhere = i == static_cast<std::size_t>(hw::Counter::kRxSrqErrors) ||
                           i == static_cast<std::size_t>(hw::Counter::kRxNoRoom);
    const bool of_responder = elsewhere || i == static_cast<std::size_t>(hw::Counter::kRxAtomics) ||
                              i == static_cast<std::size_t>(hw::Counter::kRxAtomicRepeats);
    if (!of_responder) CHECK(bed.counters[i] > 0);
  }
}

// 9.7.5.1.2: what an ACK says of packets that recovery is about to send again is true of those that have been sent
// again.
TEST_CASE("rx_engine: an ACK of a packet that is still to be sent again", "[rtl]") {
  Bed bed(seed());
  bed.busy_neighbours = false;
  bed.create(3, hw::QpState::kRts, hw::QpState::kRts);
  bed.advance(3, 20);
  const auto back = [psn = (bed.model.qps[3].send.una_psn + 5) & 0xffffff](rtl::SendCtx& ctx) { ctx.next_psn = psn; };
  back(bed.model.qps[3].send);
  bed.send.change(3, back);
  bed.settle(1000);
  for (const std::uint32_t ahead : {0u, 4u, 5u, 12u, 19u, 20u, 0xffffffu, 0xfffffeu}) {
    for (const int syndrome : {0x1f, 0x60, 0x61, 0x2a}) {
      auto d = bed.header(bed.model.qps[3]);
      d.opcode = 0x11;
      d.psn = (bed.model.qps[3].send.una_psn + ahead) & 0xffffff;
      d.syndrome = static_cast<std::uint8_t>(syndrome);
      bed.submit(d, 0);
      bed.settle(2000);
    }
  }
}

TEST_CASE("rx_engine: what answers a packet that has not left answers nothing (9.7.6)", "[rtl]") {
  Bed bed(seed());
  bed.busy_neighbours = false;
  const auto kind = GENERATE(0, 1, 2, 3, 4);
  constexpr std::uint8_t kQp = 3;
  bed.create(kQp, hw::QpState::kRts, hw::QpState::kRts);
  auto& m = bed.model.qps[kQp];
  const auto first = m.send.una_psn;
  bed.advance(kQp, 5);
  if (kind >= 3) bed.send_read(kQp, 8);
  bed.advance(kQp, 10);
  bed.settle(1000);
  const auto answer = [&](std::uint32_t distance) {
    auto d = bed.header(m);
    d.psn = (first + distance) & 0xffffff;
    d.opcode = kind == 3 ? 0x10 : 0x11;
    d.syndrome = std::array{0x1f, 0x60, 0x62, 0x1f, 0x1f}[static_cast<std::size_t>(kind)];
    bed.submit(d, kind == 3 ? 8 : 0);
    bed.settle(2000);
  };
  const auto strays = [&] { return bed.counters[static_cast<std::size_t>(hw::Counter::kRxStrayResponses)]; };
  // ACK, NAK of a lost packet, fatal NAK; response to a Read that has PSN 5, implied NAK of it: nothing of it has left,
  // then one packet too few, then it has.
  const std::uint32_t named = kind == 4 ? 8 : 5;
  m.reach = {};
  answer(named);
  CHECK(strays() == 1);
  m.reach = {.known = 1, .next_psn = (first + named) & 0xffffff};
  answer(named);
  CHECK(strays() == 2);
  m.reach.next_psn = (first + named + 1) & 0xffffff;
  answer(named);
  CHECK(strays() == 2);
}

// Decision 46: a fatal NAK belongs to the request whose PSN it names. In front of it all has been executed: what an
// awaited Read lacks is an implied NAK (9.7.5.1.4).
TEST_CASE("rx_engine: a fatal NAK refuses the awaited Read whose PSNs it names, any of them", "[rtl]") {
  constexpr std::uint8_t kQp = 3;
  constexpr std::uint32_t kPackets = 3, kBehind = 4;
  for (const std::uint32_t arrived : {0u, 1u, 2u}) {
    Bed bed(seed());
    bed.busy_neighbours = false;
    bed.create(kQp, hw::QpState::kRts, hw::QpState::kRts, 1);
    bed.send_read(kQp, kPackets * 256 - 1);
    bed.advance(kQp, kBehind);
    bed.settle(2000);
    auto& m = bed.model.qps[kQp];
    const std::uint32_t first = m.awaited.front().first_psn;
    for (std::uint32_t i = 0; i < arrived; ++i) {
      auto d = bed.header(m);
      d.opcode = i == 0 ? 0x0d : 0x0e;
      d.psn = (first + i) & 0xffffff;
      REQUIRE(bed.submit(d, 256));
      bed.settle(4000);
    }
    for (std::uint32_t named = arrived; named < kPackets + kBehind; ++named) {
      for (const std::uint8_t syndrome : {0x61, 0x62, 0x63}) {
        INFO("of three responses " << arrived << " have arrived, syndrome " << int{syndrome} << " names PSN " << named);
        auto d = bed.header(m);
        d.opcode = 0x11;
        d.psn = (first + named) & 0xffffff;
        d.syndrome = syndrome;
        bed.submit(d, 0);
        REQUIRE(bed.expected.back().first.action ==
                static_cast<std::uint8_t>(named < kPackets ? rtl::RxAction::kNakReceived : rtl::RxAction::kGap));
        bed.settle(4000);
      }
    }
  }
}

TEST_CASE(
    "rx_engine: an RNR NAK of the awaited response answers the Read, a later one says that it is lost (9.7.5.2.8)",
    "[rtl]") {
  constexpr std::uint8_t kQp = 3;
  for (const std::uint32_t arrived : {0u, 1u}) {
    Bed bed(seed());
    bed.busy_neighbours = false;
    bed.create(kQp, hw::QpState::kRts, hw::QpState::kRts, 1);
    bed.send_read(kQp, 3 * 256);
    bed.advance(kQp, 4);
    bed.settle(2000);
    auto& m = bed.model.qps[kQp];
    const std::uint32_t first = m.awaited.front().first_psn;
    if (arrived == 1) {
      auto d = bed.header(m);
      d.opcode = 0x0d;
      d.psn = first;
      REQUIRE(bed.submit(d, 256));
      bed.settle(4000);
    }
    for (const std::uint32_t named : {arrived, 2u, 3u, 6u}) {
      INFO(arrived << " responses have arrived, PSN " << named);
      auto d = bed.header(m);
      d.opcode = 0x11;
      d.psn = (first + named) & 0xffffff;
      d.syndrome = 0x2a;
      bed.submit(d, 0);
      REQUIRE(bed.expected.back().first.action ==
              static_cast<std::uint8_t>(named == arrived ? rtl::RxAction::kNakReceived : rtl::RxAction::kGap));
      bed.settle(4000);
    }
  }
}

TEST_CASE("rx_engine: every opcode with lengths at their limits", "[rtl]") {
  Bed bed(seed());
  bed.busy_neighbours = false;
  int next = 0;
  /// A QP with MTU 256 and room for everything; all are made anew when their numbers run out.
  const auto fresh = [&] {
    if (next == 256) {
      bed.settle(100000);
      for (int qp = 0; qp < 256; ++qp) {
        bed.reset_qp(static_cast<std::uint8_t>(qp));
        bed.settle(2000);
        bed.place.reset(static_cast<std::uint8_t>(qp));
      }
      next = 0;
    }
    const auto qp = static_cast<std::uint8_t>(next++);
    bed.create(qp, hw::QpState::kRts, hw::QpState::kRts, 1);
    auto& m = bed.model.qps[qp];
    m.recv.remote_write = m.recv.remote_read = 1;
    bed.recv.change(qp, [](rtl::RecvCtx& ctx) { ctx.remote_write = ctx.remote_read = 1; });
    return qp;
  };
  const auto request = [&](std::uint8_t qp, int opcode, std::uint64_t size, std::uint32_t dma_length) {
    auto d = bed.header(bed.model.qps[qp]);
    d.opcode = static_cast<std::uint8_t>(opcode);
    d.psn = bed.model.qps[qp].recv.epsn;
    d.rkey = bed.world.good[2].key;
    d.va = bed.world.good[2].va + 100;
    d.dma_length = dma_length;
    bed.submit(d, size);
  };
  const auto response = [&](std::uint8_t qp, int opcode, std::uint64_t size) {
    auto d = bed.header(bed.model.qps[qp]);
    const auto& read = bed.model.qps[qp].awaited.front();
    d.opcode = static_cast<std::uint8_t>(opcode);
    d.psn = (read.first_psn + read.offset / 256) & 0xffffff;
    bed.submit(d, size);
  };
  const auto ready = [&] {
    bed.bench.run_until([&] { return bed.recv.idle() && bed.send.idle(); }, 10000, "contexts written");
  };
  for (const std::uint64_t size : {0, 1, 255, 256, 257}) {
    for (const int send : {0x00, 0x01, 0x02, 0x04}) {
      for (const bool active : {false, true}) {
        const auto qp = fresh();
        bed.post_receive(qp);
        ready();
        if (active) request(qp, 0x00, 256, 0);
        request(qp, send, size, 0);
      }
    }
    for (const std::uint32_t total : {0u, 1u, 255u, 256u, 257u, 512u, 0x80000000u, 0x80000001u}) {
      for (const int write : {0x06, 0x07, 0x08, 0x0a, 0x0c}) {
        auto qp = fresh();
        ready();
        request(qp, write, size, total);
        if (total > 512) continue;
        qp = fresh();
        ready();
        request(qp, 0x06, 256, 256 + total);
        request(qp, write, size, total);
      }
      if (total > 512) continue;
      for (const int opcode : {0x0d, 0x0e, 0x0f, 0x10}) {
        auto qp = fresh();
        bed.send_read(qp, total);
        ready();
        response(qp, opcode, size);
        qp = fresh();
        bed.send_read(qp, 256 + total);
        ready();
        response(qp, total ? 0x0d : 0x10, 256);
        if (total) response(qp, opcode, size);
      }
    }
  }
  bed.settle(100000);
}

// Annex A17: the IP addresses stand for the GIDs. What differs in one bit is for somebody else.
TEST_CASE(
    "rx_engine: a packet reaches its QP with every field of it right, or not at all (9.6.1, 10.2.5, 10.9.3, annex A17)",
    "[rtl]") {
  Bed bed(seed());
  bed.busy_neighbours = false;
  std::uint8_t qp = 40;
  for (const auto type : {hw::QpType::kRc, hw::QpType::kUc, hw::QpType::kUd}) {
    for (const bool ipv6 : {false, true}) {
      ++qp;
      const bool ud = type == hw::QpType::kUd;
      INFO("type " << static_cast<int>(type) << " IPv6 " << ipv6);
      bed.create(qp, hw::QpState::kRts, hw::QpState::kRts, 1, type);
      auto& m = bed.model.qps[qp];
      m.recv.srq = 0;
      m.recv.remote_write = 1;
      bed.recv.change(qp, [](rtl::RecvCtx& ctx) { ctx.srq = 0, ctx.remote_write = 1; });
      m.path.ipv6 = ipv6;
      m.path.pkey = 0x8123;
      m.path.vlan = 0;
      for (auto* ip : {&m.path.source_ip, &m.path.dest_ip}) {
        *ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
        for (std::size_t i = ipv6 ? 0 : 12; i < 16; ++i) (*ip)[i] = static_cast<std::uint8_t>(bed.bench.rng());
      }
      for (int i = 0; i < 8; ++i) bed.post_receive(qp);
      bed.settle(5000);
      const auto packet = [&](const std::function<void(rtl::RxDesc&)>& change) {
        rtl::RxDesc d;
        d.dest_qpn = m.recv.qpn;
        d.pkey = 0x8123;
        d.ipv6 = ipv6;
        d.source_ip = m.path.dest_ip;
        d.dest_ip = m.path.source_ip;
        d.qkey = m.recv.qkey;
        // A WRITE of no bytes, a datagram of no more than its GRH.
        d.opcode = ud ? 0x64 : type == hw::QpType::kUc ? 0x2a : 0x0a;
        d.psn = m.recv.epsn;
        change(d);
        return bed.submit(d, ud ? 40 : 0);
      };
      const auto right = [&] { REQUIRE(packet([](rtl::RxDesc&) {})); };
      const auto wrong = [&](const std::function<void(rtl::RxDesc&)>& change) { REQUIRE_FALSE(packet(change)); };
      right();
      for (std::size_t i = ipv6 ? 0 : 12; i < 16; ++i) {
        const auto bit = static_cast<std::uint8_t>(1u << bed.uniform(0, 7));
        wrong([&](rtl::RxDesc& d) { d.dest_ip[i] ^= bit; });
        if (!ud) wrong([&](rtl::RxDesc& d) { d.source_ip[i] ^= bit; });
      }
      wrong([](rtl::RxDesc& d) { d.ipv6 ^= 1; });
      for (int bit = 0; bit < 24; ++bit) wrong([&](rtl::RxDesc& d) { d.dest_qpn ^= 1u << bit; });
      for (int bit = 0; bit < 15; ++bit)
        wrong([&](rtl::RxDesc& d) { d.pkey ^= static_cast<std::uint16_t>(1u << bit); });
      for (int service = 1; service < 8; ++service)
        wrong([&](rtl::RxDesc& d) { d.opcode ^= static_cast<std::uint8_t>(service << 5); });
      for (int bit = 0; ud && bit < 32; ++bit) wrong([&](rtl::RxDesc& d) { d.qkey ^= 1u << bit; });
      right();
      // 802.1Q 9.6: a tag of VID 0 is a priority, and no VLAN. A datagram may be of any.
      const auto tagged = [&](unsigned tci) {
        return packet([&](rtl::RxDesc& d) { d.vlan = 1, d.vlan_tci = static_cast<std::uint16_t>(tci); });
      };
      for (const unsigned priority : {0x0000u, 0x1000u, 0x6000u, 0xf000u}) {
        REQUIRE(tagged(priority));
        bed.post_receive(qp);
        bed.settle(2000);
      }
      for (int bit = 0; !ud && bit < 12; ++bit) REQUIRE_FALSE(tagged(1u << bit));
      for (const unsigned own : {1u, 0x5a5u, 0xffeu}) {
        bed.settle(20000);
        m.path.vlan = 1, m.path.vlan_id = static_cast<std::uint16_t>(own), m.path.pcp = 3;
        for (const unsigned priority : {0x0000u, 0x1000u, 0x6000u, 0xf000u}) {
          REQUIRE(tagged(priority | own));
          bed.post_receive(qp);
          bed.settle(2000);
        }
        for (int bit = 0; !ud && bit < 12; ++bit) REQUIRE_FALSE(tagged(own ^ 1u << bit));
        if (!ud) REQUIRE_FALSE(tagged(0x6000));
        if (!ud) wrong([](rtl::RxDesc&) {});
      }
      // A priority tag of our own asks for no VLAN; and without a tag the rest of the path says nothing of one.
      for (const bool tag : {true, false}) {
        bed.settle(20000);
        m.path.vlan = tag, m.path.vlan_id = tag ? 0 : 0x5a5;
        right();
        bed.post_receive(qp);
        bed.settle(2000);
        if (!ud) REQUIRE_FALSE(tagged(0x5a5));
      }
      bed.settle(20000);
      m.path.vlan = 0;
      for (int i = 0; i < 4; ++i) bed.post_receive(qp);
      bed.settle(20000);
      // A datagram is for either address of its QP.
      if (ud) {
        bed.settle(20000);
        m.path.dest_ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
        const auto second = [&](rtl::RxDesc& d) { d.dest_ip = m.path.dest_ip, d.ipv6 = 0; };
        REQUIRE(packet(second));
        right();
        for (std::size_t i = 12; i < 16; ++i) wrong([&](rtl::RxDesc& d) { second(d), d.dest_ip[i] ^= 2; });
        // Or for a group that the QP is attached to, whatever its address.
        bed.post_receive(qp);
        bed.settle(20000);
        const auto group = [](rtl::RxDesc& d) { d.multicast = 1, d.dest_ip = {0xff, 0x1e}, d.ipv6 = 1; };
        REQUIRE(packet(group));
        wrong([&](rtl::RxDesc& d) { group(d), d.multicast = 0; });
        wrong([&](rtl::RxDesc& d) { group(d), d.qkey ^= 1; });
        wrong([&](rtl::RxDesc& d) { group(d), d.pkey ^= 1; });
        wrong([&](rtl::RxDesc& d) { group(d), d.dest_qpn = 0xffffff; });
        wrong([&](rtl::RxDesc& d) { second(d), d.ipv6 = 1; });
      }
      // One side at least is a full member (10.9.3), and the base of a P_Key is not 0.
      bed.settle(20000);
      m.path.pkey = 0x0123;
      right();
      wrong([](rtl::RxDesc& d) { d.pkey = 0x0123; });
      bed.settle(20000);
      m.path.pkey = 0x8000;
      wrong([](rtl::RxDesc& d) { d.pkey = 0x8000; });
      bed.settle(20000);
      m.path.pkey = 0x8123;
      // The states that take requests and responses (10.3.1).
      for (const auto state : {hw::QpState::kReset, hw::QpState::kInit, hw::QpState::kRtr, hw::QpState::kRts,
                               hw::QpState::kSqd, hw::QpState::kErr}) {
        INFO("state " << static_cast<int>(state));
        m.recv.state = m.send.state = static_cast<std::uint8_t>(state);
        bed.recv.change(qp, [&](rtl::RecvCtx& ctx) { ctx.state = m.recv.state; });
        bed.send.change(qp, [&](rtl::SendCtx& ctx) { ctx.state = m.send.state; });
        bed.settle(1000);
        const bool works = state == hw::QpState::kRts || state == hw::QpState::kSqd;
        if (!ud) REQUIRE(packet([](rtl::RxDesc&) {}) == (works || state == hw::QpState::kRtr));
        const auto response = [&](rtl::RxDesc& d) {
          d.opcode = 0x11, d.syndrome = 0x1f, d.psn = (m.send.una_psn - 1) & 0xffffff;
        };
        if (type == hw::QpType::kRc) REQUIRE(packet(response) == works);
        bed.settle(20000);
      }
      bed.remove(qp);
      bed.settle(1000);
      wrong([](rtl::RxDesc&) {});
      bed.settle(1000);
    }
  }
}

TEST_CASE("rx_engine: UC, every opcode with lengths at their limits, alone and inside a message (9.8.2.2)", "[rtl]") {
  Bed bed(seed());
  bed.busy_neighbours = false;
  const std::uint8_t qp = 3;
  bed.create(qp, hw::QpState::kRts, hw::QpState::kRts, 1, hw::QpType::kUc);
  auto& m = bed.model.qps[qp];
  m.recv.remote_write = 1;
  bed.recv.change(qp, [](rtl::RecvCtx& ctx) { ctx.remote_write = 1; });
  const auto packet = [&](int opcode, std::uint64_t size, std::uint32_t total) {
    auto d = bed.header(m);
    d.opcode = static_cast<std::uint8_t>(opcode);
    d.psn = m.recv.epsn;
    d.rkey = bed.world.good[2].key;
    d.va = bed.world.good[2].va + 100;
    d.dma_length = total;
    return bed.submit(d, size);
  };
  const auto refill = [&] {
    if (static_cast<std::uint16_t>(m.recv.rq_pi - m.recv.rq_head) >= 4) return;
    bed.settle(100000);
    for (int i = 0; i < 16; ++i) bed.post_receive(qp);
    bed.settle(5000);
  };
  // What is inside a message of the other kind, or of none, drops it; so does a wrong length. A First or Only begins
  // anew.
  for (const int begins : {0, 0x20, 0x26}) {
    for (int opcode = 0x20; opcode < 0x40; ++opcode) {
      const bool known = opcode < 0x2c, write = known && opcode >= 0x26;
      for (const std::uint64_t size : {0, 1, 255, 256, 257}) {
        if (!known && size != 256) continue;
        for (const std::uint32_t total : {0u, 1u, 255u, 256u, 257u, 512u, 0x80000001u}) {
          if (!write && begins != 0x26 && total != 256) continue;
          if (begins == 0x26 && (total >> 31) != 0) continue;
          refill();
          if (begins != 0) packet(begins, 256, 256 + total);
          packet(opcode, size, total);
        }
      }
    }
  }
  bed.settle(100000);
  // A SEND is no longer than 2^31 bytes (9.7.4.1.6).
  for (const auto& [opcode, size] : {std::pair{0x21, 256}, std::pair{0x22, 129}}) {
    const auto far = [](rtl::RecvCtx& ctx) { ctx.msg = 1, ctx.received = 0x7fffff80; };
    far(m.recv);
    bed.recv.change(qp, far);
    bed.settle(1000);
    REQUIRE_FALSE(packet(opcode, static_cast<std::uint64_t>(size), 0));
    bed.settle(1000);
  }
}

TEST_CASE(
    "rx_engine: what RC does not know, lengths beyond 2^31, answers of the wrong kind (9.7.4.1.3, 9.7.4.1.6, 9.7.5.2)",
    "[rtl]") {
  Bed bed(seed());
  bed.busy_neighbours = false;
  std::uint8_t next = 0;
  const auto fresh = [&]() -> QpModel& {
    const auto qp = next++;
    bed.create(qp, hw::QpState::kRts, hw::QpState::kRts, 1);
    const auto allow = [](rtl::RecvCtx& ctx) {
      ctx.remote_write = ctx.remote_read = ctx.remote_atomic = 1, ctx.max_dest_rd = 16;
    };
    allow(bed.model.qps[qp].recv);
    bed.recv.change(qp, allow);
    return bed.model.qps[qp];
  };
  const auto request = [&](QpModel& m, int opcode, std::uint64_t size, std::uint32_t total, std::uint32_t psn) {
    auto d = bed.header(m);
    d.opcode = static_cast<std::uint8_t>(opcode);
    d.psn = psn;
    d.rkey = bed.world.good[2].key;
    d.va = (bed.world.good[2].va + 107) & ~std::uint64_t{7};
    d.dma_length = total;
    return bed.submit(d, size);
  };
  // An opcode that no request has, inside a WRITE and inside a SEND.
  for (const int begins : {0x00, 0x06}) {
    for (const int opcode : {0x15, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f}) {
      auto& m = fresh();
      bed.post_receive(static_cast<std::uint8_t>(next - 1));
      bed.settle(5000);
      REQUIRE(request(m, begins, 256, 1000, m.recv.epsn));
      REQUIRE_FALSE(request(m, opcode, 256, 1000, m.recv.epsn));
      REQUIRE(m.requests_killed);
    }
  }
  for (const auto& [opcode, size] : {std::pair{0x01, 256}, std::pair{0x02, 129}}) {
    auto& m = fresh();
    const auto far = [](rtl::RecvCtx& ctx) { ctx.msg = 1, ctx.received = 0x7fffff81; };
    far(m.recv);
    bed.recv.change(static_cast<std::uint8_t>(next - 1), far);
    bed.settle(1000);
    REQUIRE_FALSE(request(m, opcode, static_cast<std::uint64_t>(size), 0, m.recv.epsn));
    REQUIRE(m.requests_killed);
  }
  // Thirty-two answers wait, most of them of repeated requests: one more that is repeated is as if lost, a new one
  // waits.
  for (const int opcode : {0x0c, 0x13}) {
    auto& m = fresh();
    bed.settle(1000);
    for (int i = 0; i < 15; ++i) REQUIRE(request(m, opcode, 0, 8, m.recv.epsn));
    const std::uint32_t old = m.recv.epsn;
    for (std::uint32_t i = 0; i < 17; ++i) REQUIRE(request(m, opcode, 0, 8, (old - 17 + std::max(2u, i)) & 0xffffff));
    REQUIRE_FALSE(request(m, opcode, 0, 8, (old - 1) & 0xffffff));
    REQUIRE_FALSE(request(m, opcode, 0, 8, m.recv.epsn));
    REQUIRE_FALSE(m.requests_killed);
    bed.settle(20000);
  }
  // What repeats a Read asks only for PSNs that are old (9.7.5.1.4): the whole of it, its end, and not one packet more.
  {
    auto& m = fresh();
    bed.settle(1000);
    REQUIRE(request(m, 0x0c, 0, 1000, m.recv.epsn));
    const std::uint32_t old = (m.recv.epsn - 4) & 0xffffff;
    REQUIRE(request(m, 0x0c, 0, 1024, old));
    REQUIRE_FALSE(request(m, 0x0c, 0, 1025, old));
    REQUIRE(request(m, 0x0c, 0, 232, (old + 3) & 0xffffff));
    REQUIRE_FALSE(request(m, 0x0c, 0, 257, (old + 3) & 0xffffff));
    REQUIRE_FALSE(m.requests_killed);
    bed.settle(20000);
  }
  // What repeats a request has the shape of one: no payload, an atomic at a multiple of 8.
  for (const int opcode : {0x0c, 0x13}) {
    auto& m = fresh();
    bed.settle(1000);
    REQUIRE(request(m, opcode, 0, 8, m.recv.epsn));
    const std::uint32_t old = (m.recv.epsn - 1) & 0xffffff;
    REQUIRE_FALSE(request(m, opcode, 8, 8, old));
    if (opcode == 0x13) {
      auto d = bed.header(m);
      d.opcode = 0x13;
      d.psn = old;
      d.rkey = bed.world.good[2].key;
      d.va = (bed.world.good[2].va & ~std::uint64_t{7}) + 4;
      REQUIRE_FALSE(bed.submit(d, 0));
    }
    REQUIRE(request(m, opcode, 0, 8, old));
    bed.settle(20000);
  }
  // A right that was taken away counts for repeated requests too.
  for (const int opcode : {0x0c, 0x14}) {
    auto& m = fresh();
    bed.settle(1000);
    REQUIRE(request(m, opcode, 0, 8, m.recv.epsn));
    bed.settle(20000);
    const auto forbid = [](rtl::RecvCtx& ctx) { ctx.remote_read = ctx.remote_atomic = 0; };
    forbid(m.recv);
    bed.recv.change(static_cast<std::uint8_t>(next - 1), forbid);
    bed.settle(1000);
    REQUIRE_FALSE(request(m, opcode, 0, 8, (m.recv.epsn - 1) & 0xffffff));
    bed.settle(20000);
  }
  // After a NAK for a gap and the packet that was missing, the next gap has its NAK again.
  {
    auto& m = fresh();
    bed.settle(1000);
    for (int lap = 0; lap < 2; ++lap) {
      for (int i = 0; i < 3; ++i) REQUIRE_FALSE(request(m, 0x0a, 0, 0, (m.recv.epsn + 1) & 0xffffff));
      REQUIRE(request(m, 0x0a, 0, 0, m.recv.epsn));
      bed.settle(20000);
    }
  }
  // 9.5, C9-28: behind an atomic requests wait, without a NAK, and whatever comes behind them; they come again in their
  // order. Duplicates do not wait.
  {
    auto& m = fresh();
    bed.settle(1000);
    for (int lap = 0; lap < 2; ++lap) {
      REQUIRE(request(m, 0x13, 0, 0, m.recv.epsn));
      const std::uint32_t first = m.recv.epsn;
      const auto behind = [&](std::uint32_t i) { return (first + i) & 0xffffff; };
      bed.again = false;
      for (const std::uint32_t i : {0u, 1u, 3u}) REQUIRE_FALSE(request(m, 0x0a, 0, 0, behind(i)));
      REQUIRE_FALSE(request(m, 0x0c, 0, 0, behind(2)));
      REQUIRE_FALSE(request(m, 0x0a, 0, 0, (first - 2) & 0xffffff));
      bed.again = true;
      REQUIRE_FALSE(request(m, 0x0a, 0, 0, behind(0)));
      REQUIRE(m.recv.parked == 4);
      bed.settle(20000);
      const auto answered = [](rtl::RecvCtx& ctx) { ctx.atomics_due = ctx.rd_inflight = 0; };
      answered(m.recv);
      bed.recv.change(static_cast<std::uint8_t>(next - 1), answered);
      bed.settle(1000);
      bed.again = false;
      REQUIRE_FALSE(request(m, 0x0a, 0, 0, behind(4)));
      bed.again = true;
      for (const std::uint32_t i : {0u, 1u}) REQUIRE(request(m, 0x0a, 0, 0, behind(i)));
      REQUIRE_FALSE(request(m, 0x0a, 0, 0, behind(3)));  // what was lost between them shows now
      REQUIRE(request(m, 0x0c, 0, 0, behind(2)));
      REQUIRE_FALSE(request(m, 0x0a, 0, 0, behind(4)));
      REQUIRE(m.recv.parked == 0);
      bed.again = false;
      REQUIRE(request(m, 0x0a, 0, 0, behind(3)));
      bed.again.reset();
      bed.settle(20000);
      bed.recv.change(static_cast<std::uint8_t>(next - 1), answered);
      answered(m.recv);
      bed.settle(1000);
    }
  }
  // 9.9.3.1: nothing behind a refused invalidation is executed, so SENDs and WRITEs wait until it is done, and what
  // comes behind them; a Read that is right behind it does not, the completion block knows by then.
  {
    auto& m = fresh();
    bed.settle(1000);
    const auto invalidated = [](rtl::RecvCtx& ctx) { ctx.invalidating = 0; };
    for (int lap = 0; lap < 2; ++lap) {
      bed.post_receive(static_cast<std::uint8_t>(next - 1));
      bed.post_receive(static_cast<std::uint8_t>(next - 1));
      bed.settle(1000);
      REQUIRE(request(m, 0x17, 0, 0, m.recv.epsn));
      REQUIRE(request(m, 0x0c, 0, 0, m.recv.epsn));
      const std::uint32_t first = m.recv.epsn;
      bed.again = false;
      REQUIRE_FALSE(request(m, 0x0a, 0, 0, first));
      REQUIRE_FALSE(request(m, 0x0c, 0, 0, (first + 1) & 0xffffff));
      REQUIRE_FALSE(request(m, 0x04, 0, 0, (first + 2) & 0xffffff));
      bed.again = true;
      REQUIRE_FALSE(request(m, 0x0a, 0, 0, first));
      REQUIRE(m.recv.parked == 3);
      bed.settle(20000);
      invalidated(m.recv);
      bed.recv.change(static_cast<std::uint8_t>(next - 1), invalidated);
      bed.settle(1000);
      REQUIRE(request(m, 0x0a, 0, 0, first));
      REQUIRE(request(m, 0x0c, 0, 0, (first + 1) & 0xffffff));
      REQUIRE(request(m, 0x04, 0, 0, (first + 2) & 0xffffff));
      REQUIRE(m.recv.parked == 0);
      bed.again.reset();
      bed.settle(20000);
      const auto answered = [](rtl::RecvCtx& ctx) { ctx.rd_inflight = 0; };
      answered(m.recv);
      bed.recv.change(static_cast<std::uint8_t>(next - 1), answered);
      bed.settle(1000);
    }
  }
  // An atomic is answered by an atomic ACK, a Read of 8 bytes is not.
  for (const bool atomic : {false, true}) {
    auto& m = fresh();
    bed.send_read(static_cast<std::uint8_t>(next - 1), 8, atomic);
    bed.settle(5000);
    auto d = bed.header(m);
    d.opcode = atomic ? 0x10 : 0x12;
    d.psn = m.awaited.front().first_psn;
    REQUIRE_FALSE(bed.submit(d, 8));
    REQUIRE(m.responses_killed);
    bed.settle(20000);
  }
  // Settled point 44: the AETH of an answer that carries data is an ACK, or the answer is bad.
  for (const int opcode : {0x0d, 0x0e, 0x0f, 0x10, 0x12}) {
    for (int kind = 0; kind < 8; ++kind) {
      const bool atomic = opcode == 0x12, longer = opcode == 0x0d || opcode == 0x0e || opcode == 0x0f;
      auto& m = fresh();
      bed.send_read(static_cast<std::uint8_t>(next - 1), longer ? (opcode == 0x0e ? 768 : 512) : 8, atomic);
      bed.settle(5000);
      auto d = bed.header(m);
      d.psn = m.awaited.front().first_psn;
      if (opcode == 0x0e || opcode == 0x0f) {
        d.opcode = 0x0d;
        d.syndrome = 0;
        REQUIRE(bed.submit(d, 256));
        d.psn = (d.psn + 1) & 0xffffff;
      }
      d.opcode = static_cast<std::uint8_t>(opcode);
      d.syndrome = static_cast<std::uint8_t>(kind << 5 | 2);
      REQUIRE(bed.submit(d, longer ? 256 : 8) == (kind == 0 || opcode == 0x0e));
      bed.settle(20000);
    }
  }
  // Reserved syndromes say nothing (table 46).
  auto& m = fresh();
  bed.advance(static_cast<std::uint8_t>(next - 1), 8);
  bed.settle(5000);
  for (int kind = 2; kind < 8; ++kind) {
    if (kind == 3) continue;
    auto d = bed.header(m);
    d.opcode = 0x11;
    d.psn = m.send.una_psn;
    d.syndrome = static_cast<std::uint8_t>(kind << 5 | 0x1f);
    REQUIRE_FALSE(bed.submit(d, 0));
  }
  bed.settle(20000);
}

// A slot that was rung for and not written, or written over before its answer came, places nothing.
TEST_CASE("rx_engine: a scatter list is that of its own WQE, and needs local write alone (10.6.3.4)", "[rtl]") {
  Bed bed(seed());
  bed.busy_neighbours = false;
  std::uint8_t next = 0;
  const auto fresh = [&]() -> QpModel& {
    bed.create(next, hw::QpState::kRts, hw::QpState::kRts, 1);
    auto& m = bed.model.qps[next++];
    m.recv.log_stride = m.send.log_stride = 9;
    bed.recv.change(static_cast<std::uint8_t>(next - 1), [](rtl::RecvCtx& ctx) { ctx.log_stride = 9; });
    bed.send.change(static_cast<std::uint8_t>(next - 1), [](rtl::SendCtx& ctx) { ctx.log_stride = 9; });
    return m;
  };
  const auto edit = [&]<typename Segment>(std::uint64_t at, const std::function<void(Segment&)>& change) {
    std::array<std::uint8_t, 16> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = bed.host.read(at + i);
    auto segment = Segment::decode(bytes);
    change(segment);
    segment.encode(bytes);
    bed.host.write(at, bytes);
  };
  // ---- Reads and atomics: the answer finds another WQE in the send ring ----
  const std::vector<std::function<void(hw::WqeControl&)>> wrong_reads = {
      [](hw::WqeControl&) {},  // as it should be
      [](hw::WqeControl& c) { ++c.wqe_index; },
      [](hw::WqeControl& c) { c.wqe_index ^= 0x8000; },
      [](hw::WqeControl& c) { c.qpn ^= 1; },
      [](hw::WqeControl& c) { c.qpn ^= 0x800000; },
      [](hw::WqeControl& c) { c.opcode = 0; },
      [](hw::WqeControl& c) { c.opcode = 1; },
      [](hw::WqeControl& c) { c.inline_data = 1; },
      [](hw::WqeControl& c) { c.size = 1; },
      [](hw::WqeControl& c) { c.size = 2 + 17; },
      [](hw::WqeControl& c) { c.size = 33; },
  };
  for (std::size_t kind = 0; kind < wrong_reads.size(); ++kind) {
    INFO("Read, kind " << kind);
    auto& m = fresh();
    const auto qp = static_cast<std::uint8_t>(next - 1);
    const std::uint16_t idx = bed.intents[qp].next_read;
    bed.send_read(qp, 100);
    edit.operator()<hw::WqeControl>(m.send.sq_base + (idx % (1u << m.send.log_depth)) * 512, wrong_reads[kind]);
    if (kind != 0) m.read_lists[idx] = {.bad = true, .tag = {}, .entries = {}};
    bed.settle(5000);
    auto d = bed.header(m);
    d.opcode = 0x10;
    d.psn = m.awaited.front().first_psn;
    REQUIRE(bed.submit(d, 100));
    REQUIRE((bed.expected.back().first.bad_wqe == 1) == (kind != 0));
    bed.settle(20000);
  }
  // ---- Receives ----
  const std::vector<std::function<void(hw::WqeReceive&)>> wrong_receives = {
      [](hw::WqeReceive&) {},
      [](hw::WqeReceive& r) { ++r.wqe_index; },
      [](hw::WqeReceive& r) { r.wqe_index ^= 0x8000; },
      [](hw::WqeReceive& r) { r.sge_count = 17; },
      [](hw::WqeReceive& r) { r.sge_count = 31; },
      [](hw::WqeReceive& r) { r.sge_count = 0x21; },
      [](hw::WqeReceive& r) { r.sge_count = 0xff; },
  };
  const auto send = [&](QpModel& m, int opcode, std::uint64_t size, std::uint32_t key, std::uint64_t va) {
    auto d = bed.header(m);
    d.opcode = static_cast<std::uint8_t>(opcode);
    d.psn = m.recv.epsn;
    d.rkey = key;
    d.va = va;
    d.dma_length = static_cast<std::uint32_t>(size);
    return bed.submit(d, size);
  };
  for (std::size_t kind = 0; kind < wrong_receives.size(); ++kind) {
    INFO("Receive, kind " << kind);
    auto& m = fresh();
    const std::uint16_t idx = m.recv.rq_pi;
    bed.post_receive(static_cast<std::uint8_t>(next - 1));
    edit.operator()<hw::WqeReceive>(m.recv.rq_base + (idx % (1u << m.recv.log_depth)) * 512, wrong_receives[kind]);
    if (kind != 0) m.receive_lists[idx] = {.bad = true, .tag = {}, .entries = {}};
    bed.settle(5000);
    REQUIRE(send(m, 0x04, 100, 0, 0));
    REQUIRE((bed.expected.back().first.bad_wqe == 1) == (kind != 0));
    bed.settle(20000);
  }
  // ---- One data segment more than the slot holds ----
  for (const std::uint8_t log_stride : {5, 6, 7, 8}) {
    INFO("slots of " << (1u << log_stride) << " bytes");
    auto& m = fresh();
    const auto shorter = [=](rtl::RecvCtx& ctx) { ctx.log_stride = log_stride; };
    shorter(m.recv);
    bed.recv.change(static_cast<std::uint8_t>(next - 1), shorter);
    bed.settle(1000);
    const std::uint16_t idx = m.recv.rq_pi;
    bed.post_receive(static_cast<std::uint8_t>(next - 1));
    edit.operator()<hw::WqeReceive>(
        m.recv.rq_base + ((idx % (1ull << m.recv.log_depth)) << log_stride),
        [=](hw::WqeReceive& r) { r.sge_count = static_cast<std::uint8_t>((1u << log_stride) / 16); });
    m.receive_lists[idx] = {.bad = true, .tag = {}, .entries = {}};
    bed.settle(5000);
    REQUIRE(send(m, 0x04, 100, 0, 0));
    REQUIRE(bed.expected.back().first.bad_wqe == 1);
    bed.settle(20000);
  }
  /// A SEND to the newest queue pair, whose Receive has one segment of that key.
  const auto send_into = [&](QpModel& m, std::uint32_t key) {
    const std::uint16_t idx = m.recv.rq_pi;
    bed.post_receive(static_cast<std::uint8_t>(next - 1));
    const std::uint64_t slot = m.recv.rq_base + (idx % (1u << m.recv.log_depth)) * 512;
    const hw::WqeData entry{.va = 0x3210, .length = 200, .lkey = key};
    m.receive_lists[idx].entries = {entry};
    edit.operator()<hw::WqeReceive>(slot, [](hw::WqeReceive& r) { r.sge_count = 1; });
    edit.operator()<hw::WqeData>(slot + 16, [&](hw::WqeData& data) { data = entry; });
    bed.settle(5000);
    return send(m, 0x04, 100, 0, 0);
  };
  // ---- A region without remote rights takes Receives, and no WRITE ----
  bed.world.regions.add({.key = 103 << 8,
                         .pd = MemoryWorld::kPd,
                         .va = 0,
                         .length = 1u << 20,
                         .remote_read = false,
                         .remote_write = false,
                         .remote_atomic = false});
  auto& m = fresh();
  m.recv.remote_write = 1;
  bed.recv.change(static_cast<std::uint8_t>(next - 1), [](rtl::RecvCtx& ctx) { ctx.remote_write = 1; });
  REQUIRE(send_into(m, 103 << 8));
  REQUIRE(bed.expected.back().first.fault == 0);
  bed.settle(20000);
  send(m, 0x0a, 100, 103 << 8, 0x3210);
  REQUIRE(bed.expected.back().first.status == static_cast<std::uint8_t>(rtl::XlateStatus::kBadAccess));
  bed.settle(20000);
  // ---- A sink of Reads takes no Receive (decisions 57) ----
  bed.world.regions.add({.key = 104 << 8,
                         .pd = MemoryWorld::kPd,
                         .va = 0,
                         .length = 1u << 20,
                         .local_write = false,
                         .read_sink = true,
                         .remote_read = false,
                         .remote_write = false,
                         .remote_atomic = false});
  auto& other = fresh();
  REQUIRE(send_into(other, 104 << 8));
  REQUIRE(bed.expected.back().first.status == static_cast<std::uint8_t>(rtl::XlateStatus::kBadAccess));
  bed.settle(20000);
}

// Architecture, Shared receive queues: the tag of a WQE says which Receive it is. Of one that cannot be read, or is
// another one, nobody knows it.
TEST_CASE("rx_engine: a shared Receive that is not the one expected is lost", "[rtl]") {
  constexpr std::uint8_t kSrq = 255;
  struct Kind {
    const char* name;
    std::function<void(hw::WqeReceive&)> change;
    bool unreadable, lost;
  };
  const std::vector<Kind> kinds = {
      {"too many segments", [](hw::WqeReceive& r) { r.sge_count = 17; }, false, false},
      {"the next index", [](hw::WqeReceive& r) { ++r.wqe_index; }, false, true},
      {"the index of another round", [](hw::WqeReceive& r) { r.wqe_index ^= 0x8000; }, false, true},
      {"unreadable", [](hw::WqeReceive&) {}, true, true},
  };
  Bed bed(seed());
  bed.busy_neighbours = false;
  bed.create_srq(kSrq);
  std::uint8_t qp = 0;
  for (const auto& kind : kinds) {
    INFO(kind.name);
    bed.create(qp, hw::QpState::kRts, hw::QpState::kRts, 1);
    auto& m = bed.model.qps[qp];
    const auto shares = [](rtl::RecvCtx& ctx) { ctx.srq = 1, ctx.srqn = kSrq; };
    shares(m.recv);
    bed.recv.change(qp, shares);
    auto& shared = bed.model.srqs[kSrq];
    const std::uint16_t idx = shared.ctx.pi;
    bed.post_shared(kSrq);
    const std::uint64_t slot =
        shared.ctx.base + (std::uint64_t{idx % (1u << shared.ctx.log_depth)} << shared.ctx.log_stride);
    std::array<std::uint8_t, 16> header{};
    for (std::size_t i = 0; i < header.size(); ++i) header[i] = bed.host.read(slot + i);
    auto receive = hw::WqeReceive::decode(header);
    kind.change(receive);
    receive.encode(header);
    bed.host.write(slot, header);
    bed.failing[slot] = kind.unreadable;
    shared.lists[idx] = {.bad = true, .unread = kind.unreadable, .lost = kind.lost, .tag = receive.tag, .entries = {}};
    bed.settle(2000);
    auto d = bed.header(m);
    d.opcode = 0x04;
    d.psn = m.recv.epsn;
    bed.submit(d, 100);
    REQUIRE(bed.expected.back().first.bad_wqe == 1);
    REQUIRE((bed.expected.back().first.wqe_lost == 1) == kind.lost);
    bed.settle(20000);
    ++qp;
  }
}

TEST_CASE(
    "rx_engine: what a peer of UC or UD does wrong drops its message, and its receive WQEs serve the next (9.9.3, "
    "class D)",
    "[rtl]") {
  Bed bed(seed());
  bed.busy_neighbours = false;
  for (int round = 0; round < 60; ++round) {
    const bool ud = round % 2 != 0;
    const auto qp = static_cast<std::uint8_t>(round);
    bed.create(qp, hw::QpState::kRts, hw::QpState::kRts, 1, ud ? hw::QpType::kUd : hw::QpType::kUc);
    auto& m = bed.model.qps[qp];
    m.recv.remote_write = 1;
    bed.recv.change(qp, [](rtl::RecvCtx& ctx) { ctx.remote_write = 1; });
    for (int i = 0; i < 8; ++i) bed.post_receive(qp);
    bed.settle(5000);
    // The first receive is too short for what comes, or the key is wrong.
    const bool write = !ud && bed.bench.chance(0.5);
    const auto first = m.recv.rq_head;
    if (!write) {
      hw::WqeData entry{.va = bed.world.good[3].va + 5000, .length = 100, .lkey = bed.world.good[3].key};
      m.receive_lists[first].entries = {entry};
      const std::size_t slot = std::size_t{1} << m.recv.log_stride;
      Bytes bytes(slot);
      hw::WqeReceive{.sge_count = 1, .wqe_index = first}.encode(std::span<std::uint8_t, 16>(bytes.data(), 16));
      entry.encode(std::span<std::uint8_t, 16>(bytes.data() + 16, 16));
      bed.host.write(m.recv.rq_base + (first % (1u << m.recv.log_depth)) * slot, bytes);
    }
    const auto message = [&](std::uint64_t size, bool broken) {
      auto d = bed.header(m);
      d.opcode = ud ? 0x64 : write ? 0x2b : 0x24;
      d.psn = m.recv.epsn;
      d.rkey = bed.world.good[2].key + broken;
      d.va = bed.world.good[2].va + 100;
      d.dma_length = static_cast<std::uint32_t>(size);
      return bed.submit(d, size);
    };
    REQUIRE(message(200, true));
    REQUIRE(bed.expected.back().first.action == static_cast<std::uint8_t>(rtl::RxAction::kGiveBack));
    for (int i = 0; i < 4; ++i)
      REQUIRE(message(50, false));  // checked before the receives are back: they are dropped with it
    bed.settle(20000);
    REQUIRE(bed.expected.empty());
    const auto give_back = [first](rtl::RecvCtx& ctx) {
      ctx.rq_head = first;
      ctx.msg = 0;
      ctx.take ^= 1;
    };
    give_back(m.recv);
    bed.recv.change(qp, give_back);
    bed.settle(1000);
    for (int i = 0; i < 4; ++i) {
      REQUIRE(message(60, false));
      REQUIRE(bed.expected.back().first.action == static_cast<std::uint8_t>(rtl::RxAction::kReceiveDone));
    }
    bed.settle(20000);
    // A fault of our own fails the queue pair.
    if (!write) {
      m.receive_lists[m.recv.rq_head].bad = m.receive_lists[m.recv.rq_head].unread = true;
      const std::size_t slot = std::size_t{1} << m.recv.log_stride;
      bed.failing[m.recv.rq_base + (m.recv.rq_head % (1u << m.recv.log_depth)) * slot] = true;
      REQUIRE(message(60, false));
      REQUIRE(bed.expected.back().first.action == static_cast<std::uint8_t>(rtl::RxAction::kNak));
      bed.settle(20000);
    }
  }
}

TEST_CASE("rx_engine: a Read response to what is no Read answers nothing, whatever its ring has left (9.7.6)",
          "[rtl]") {
  constexpr std::uint8_t kQp = 3;
  for (const std::uint8_t opcode : {0x10, 0x12}) {  // Read response Only, atomic acknowledge
    Bed bed(seed());
    bed.busy_neighbours = false;
    bed.create(kQp, hw::QpState::kRts, hw::QpState::kRts);
    auto& m = bed.model.qps[kQp];
    const auto first = m.send.next_psn;
    for (std::size_t i = 0; i < 16; ++i)
      bed.slots[kQp * 16u + i] = {.wqe_idx = 7, .first_psn = first, .length = 8, .atomic = opcode == 0x12};
    bed.advance(kQp, 5);
    bed.settle(1000);
    auto d = bed.header(m);
    d.opcode = opcode;
    d.psn = first;
    REQUIRE_FALSE(bed.submit(d, 8));
    bed.settle(2000);
    CHECK(bed.counters[static_cast<std::size_t>(hw::Counter::kRxStrayResponses)] == 1);
  }
}

TEST_CASE("rx_engine: sixteen Reads outstanding, all awaited or all arrived", "[rtl]") {
  Bed bed(seed());
  bed.busy_neighbours = false;
  bed.create(9, hw::QpState::kRts, hw::QpState::kRts);
  const auto answer = [&](std::uint32_t psn) {
    auto d = bed.header(bed.model.qps[9]);
    d.opcode = 0x10;
    d.psn = psn;
    return bed.submit(d, 8);
  };
  for (int lap = 0; lap < 3; ++lap) {
    const std::uint32_t first = bed.model.qps[9].send.next_psn;
    for (int i = 0; i < 16; ++i) bed.send_read(9, 8);
    bed.settle(2000);
    for (std::uint32_t i = 0; i < 16; ++i) REQUIRE(answer((first + i) & 0xffffff));
    bed.settle(5000);
    // Nothing is awaited, though 16 are outstanding and the ring indexes are as if all were: duplicates answer nothing.
    for (std::uint32_t i = 0; i < 16; ++i) REQUIRE(!answer((first + i) & 0xffffff));
    bed.settle(5000);
    bed.model.qps[9].send.rd_outstanding = 0;
    bed.send.change(9, [](rtl::SendCtx& ctx) { ctx.rd_outstanding = 0; });
    bed.settle(2000);
  }
}

TEST_CASE(
    "rx_engine: QPs on one SRQ take its WQEs in the order of their messages; its protection domain counts (InfiniBand "
    "10.2.9.1)",
    "[rtl]") {
  Bed bed(seed());
  bed.busy_neighbours = false;
  bed.create_srq(3);
  auto& srq = bed.model.srqs[3];
  for (std::uint8_t qp = 10; qp < 18; ++qp) {
    bed.create(qp, hw::QpState::kRts, hw::QpState::kRts, 1);
    const auto join = [](rtl::RecvCtx& ctx) {
      ctx.srq = 1, ctx.srqn = 3, ctx.pd = MemoryWorld::kPd + 1, ctx.remote_write = 1;
    };
    join(bed.model.qps[qp].recv);
    bed.recv.change(qp, join);
  }
  srq.ctx.log_depth = 3;
  bed.srq.change(3, [](rtl::SrqCtx& ctx) { ctx.log_depth = 3; });
  const auto send = [&](std::uint8_t qp, std::uint8_t opcode, std::size_t size) {
    auto d = bed.header(bed.model.qps[qp]);
    d.opcode = opcode;
    d.psn = bed.model.qps[qp].recv.epsn;
    d.dma_length = 0;
    return bed.submit(d, size);
  };
  bed.settle(2000);
  CHECK(!send(10, 0x04, 8));  // RNR: nothing is posted
  bed.settle(2000);
  for (int lap = 0; lap < 20; ++lap) {
    // As many as the ring holds: the messages of all QPs are under way at once, each with its own WQE.
    for (int i = 0; i < 8; ++i) {
      auto& c = srq.ctx;
      const std::size_t slot = std::size_t{1} << c.log_stride;
      const auto made = bed.world.wqe(false, 600, slot, c.pi, 0, 0);
      srq.lists[c.pi] = made.list;
      bed.store(c.base + (c.pi % 8u) * slot, made);
      ++c.pi;
      bed.srq.change(3, [](rtl::SrqCtx& ctx) { ++ctx.pi; });
    }
    bed.settle(2000);
    for (std::uint8_t qp = 10; qp < 18; ++qp) REQUIRE(send(qp, 0x00, 256));
    for (std::uint8_t qp = 17; qp >= 10; --qp) REQUIRE(send(qp, 0x01, 256));
    for (std::uint8_t qp = 10; qp < 18; ++qp) REQUIRE(send(qp, 0x02, 88));
    CHECK(!send(11, 0x00, 256));
    CHECK(!send(11, 0x0b, 0));
    bed.settle(20000);
  }
  // A WQE for nothing but its tag: a SEND of zero bytes, a WRITE with immediate data.
  for (int i = 0; i < 2; ++i) bed.post_shared(3);
  bed.settle(2000);
  REQUIRE(send(12, 0x04, 0));
  REQUIRE(send(13, 0x0b, 0));
  bed.settle(2000);
  // Duplicates take nothing.
  bed.post_shared(3);
  bed.settle(2000);
  auto again = bed.header(bed.model.qps[12]);
  again.opcode = 0x04;
  again.psn = (bed.model.qps[12].recv.epsn - 1) & 0xffffff;
  bed.submit(again, 0);
  bed.settle(2000);
  CHECK(static_cast<std::uint16_t>(srq.ctx.pi - srq.ctx.head) == 1);
  // A datagram takes one as well. When that is too short, it fails, and the queue pair goes on (9.9.3, class E).
  bed.create(18, hw::QpState::kRts, hw::QpState::kRts, 1, hw::QpType::kUd);
  const auto join = [](rtl::RecvCtx& ctx) { ctx.srq = 1, ctx.srqn = 3, ctx.pd = MemoryWorld::kPd + 1; };
  join(bed.model.qps[18].recv);
  bed.recv.change(18, join);
  bed.settle(2000);
  REQUIRE(send(18, 0x64, 40));
  for (const std::size_t size : {296, 250, 60}) {
    auto& c = srq.ctx;
    const std::size_t slot = std::size_t{1} << c.log_stride;
    auto made = bed.world.wqe(false, 296, slot, c.pi, 0, 0);
    if (size == 250) {
      // A hundred bytes: the only entry of the list.
      const hw::WqeData entry{.va = bed.world.good[3].va + 5000, .length = 100, .lkey = bed.world.good[3].key};
      made.list.entries = {entry};
      auto head = hw::WqeReceive::decode(std::span<const std::uint8_t, 16>(made.bytes.data(), 16));
      head.sge_count = 1;
      head.encode(std::span<std::uint8_t, 16>(made.bytes.data(), 16));
      entry.encode(std::span<std::uint8_t, 16>(made.bytes.data() + 16, 16));
    }
    srq.lists[c.pi] = made.list;
    bed.store(c.base + (c.pi % 8u) * slot, made);
    ++c.pi;
    bed.srq.change(3, [](rtl::SrqCtx& ctx) { ++ctx.pi; });
    bed.settle(2000);
    REQUIRE(send(18, 0x64, size));
    bed.settle(2000);
  }
  CHECK(!bed.place.dead(false, 18));
  CHECK(bed.place.faults == 1);
  // In error, it gives nothing to anybody.
  srq.ctx.error = 1;
  bed.srq.change(3, [](rtl::SrqCtx& ctx) { ctx.error = 1; });
  bed.settle(2000);
  CHECK(!send(14, 0x04, 8));
  CHECK(bed.model.qps[14].requests_killed);
  CHECK(!send(18, 0x64, 48));
  CHECK(bed.model.qps[18].requests_killed);
  bed.settle(2000);
}

TEST_CASE("rx_engine: rates and latency", "[rtl]") {
  Bed bed(seed());
  bed.busy_neighbours = false;
  bed.reads.latency = 125;  // a PCIe round trip of 500 ns
  for (std::uint8_t qp = 0; qp < 16; ++qp) {
    bed.create(qp, hw::QpState::kRts, hw::QpState::kRts, 5);
    // Slots with one or two data segments.
    auto& m = bed.model.qps[qp];
    m.recv.remote_write = 1;
    m.recv.log_stride = 5;
    m.send.log_stride = 6;
    bed.recv.change(qp, [](rtl::RecvCtx& ctx) { ctx.remote_write = 1, ctx.log_stride = 5; });
    bed.send.change(qp, [](rtl::SendCtx& ctx) { ctx.log_stride = 6; });
    for (int i = 0; i < 16; ++i) bed.post_receive(qp);
    for (int i = 0; i < 16; ++i) bed.send_read(qp, 8);
  }
  bed.settle(20000);
  const auto run = [&](const char* what, std::uint8_t opcode, std::size_t size, int packets) {
    for (int i = 0; i < packets; ++i) {
      const std::uint8_t qp = static_cast<std::uint8_t>(i % 16);
      auto d = bed.header(bed.model.qps[qp]);
      d.opcode = opcode;
      d.psn = opcode == 0x10 ? bed.model.qps[qp].awaited.front().first_psn : bed.model.qps[qp].recv.epsn;
      d.rkey = bed.world.good[5].key;
      d.va = (bed.world.good[5].va & ~std::uint64_t{0xfff}) + 8192 + 40;
      d.dma_length = static_cast<std::uint32_t>(size);
      REQUIRE(bed.submit(d, size));
    }
    const auto start = bed.bench.cycle;
    bed.bench.run_until([&] { return bed.expected.empty(); }, 100000, "all packets");
    const double cycles = static_cast<double>(bed.bench.cycle - start) / packets;
    std::printf("rx_engine: %s: %.1f cycles\n", what, cycles);
    bed.settle(1000);
    return cycles;
  };
  CHECK(run("8-byte WRITE, each", 0x0a, 8, 400) <= 9);
  CHECK(run("8-byte SEND, each", 0x04, 8, 250) <= 10);
  CHECK(run("8-byte Read response, each", 0x10, 8, 250) <= 10);
  CHECK(run("4096-byte WRITE, each", 0x0a, 4096, 100) <= 69);
  CHECK(run("one 8-byte WRITE, packet to rx_done", 0x0a, 8, 1) <= 45);
}

// A frame of 256 bytes of payload takes 342 byte times of the wire, 6.8 cycles at 100 Gb/s; one without payload 1.7
// cycles.
TEST_CASE("rx_engine: keeps up with the wire at path MTU 256, whatever comes behind what", "[rtl]") {
  Bed bed(seed());
  constexpr std::uint32_t kMtu = 256;
  constexpr std::uint8_t kQps = 4;
  bed.busy_neighbours = false;
  bed.reads.latency = 125;
  bed.xlate.rate = bed.writes.rate = bed.descs.rate = bed.payload.rate = bed.done.rate = 1;
  for (std::uint8_t qp = 0; qp < kQps; ++qp) {
    bed.create(qp, hw::QpState::kRts, hw::QpState::kRts, 5);
    auto& m = bed.model.qps[qp];
    m.recv.remote_write = m.recv.mtu = m.send.mtu = 1;
    bed.recv.change(qp, [](rtl::RecvCtx& ctx) { ctx.remote_write = ctx.mtu = 1; });
    bed.send.change(qp, [](rtl::SendCtx& ctx) { ctx.mtu = 1; });
    bed.advance(qp, 100);
  }
  bed.settle(20000);
  const auto ack = [&](std::uint8_t qp) {
    auto d = bed.header(bed.model.qps[qp]);
    d.opcode = 0x11;
    d.psn = (bed.model.qps[qp].send.una_psn - 1) & 0xffffff;
    d.syndrome = 0x1f;
    REQUIRE(bed.submit(d, 0));
  };
  const auto write = [&](std::uint8_t qp, std::uint64_t size) {
    auto d = bed.header(bed.model.qps[qp]);
    d.opcode = 0x0a;
    d.psn = bed.model.qps[qp].recv.epsn;
    d.rkey = bed.world.good[5].key;
    d.va = (bed.world.good[5].va & ~std::uint64_t{0xfff}) + 8192 + 40;
    d.dma_length = static_cast<std::uint32_t>(size);
    REQUIRE(bed.submit(d, size));
  };
  // The packets of a Write of 16, and those of a Read of 16 that has been sent.
  const auto part_of_write = [&](std::uint8_t qp, int i) {
    auto d = bed.header(bed.model.qps[qp]);
    d.opcode = i == 0 ? 0x06 : i == 15 ? 0x08 : 0x07;
    d.psn = bed.model.qps[qp].recv.epsn;
    d.rkey = bed.world.good[5].key;
    d.va = (bed.world.good[5].va & ~std::uint64_t{0xfff}) + 8192 + 40;
    d.dma_length = 16 * kMtu;
    REQUIRE(bed.submit(d, kMtu));
  };
  const auto part_of_read = [&](std::uint8_t qp, int i) {
    auto& m = bed.model.qps[qp];
    auto d = bed.header(m);
    d.opcode = i == 0 ? 0x0d : i == 15 ? 0x0f : 0x0e;
    d.syndrome = 0x1f;
    d.psn = (m.awaited.front().first_psn + static_cast<std::uint32_t>(i)) & 0xffffff;
    REQUIRE(bed.submit(d, kMtu));
  };
  const auto run = [&](const char* what, int packets, const std::function<void(int)>& packet) {
    for (std::uint8_t qp = 0; qp < kQps; ++qp) {
      auto& m = bed.model.qps[qp];
      bed.send.change(qp, [retired = m.send.rd_outstanding](rtl::SendCtx& ctx) { ctx.rd_outstanding -= retired; });
      m.send.rd_outstanding = 0;
      while (m.awaited.size() < 16) bed.send_read(qp, 16 * kMtu);
    }
    bed.bench.run(3000);
    bed.settle(20000);
    for (int i = 0; i < packets; ++i) packet(i);
    const auto start = bed.bench.cycle;
    bed.bench.run_until([&] { return bed.descs.idle(); }, 100000, "all packets in");
    const double cycles = static_cast<double>(bed.bench.cycle - start) / packets;
    std::printf("rx_engine: %s: %.2f cycles a packet\n", what, cycles);
    bed.bench.run_until([&] { return bed.expected.empty(); }, 100000, "all packets out");
    bed.settle(1000);
    return cycles;
  };
  const auto one = [](int) { return std::uint8_t{0}; };
  const auto many = [](int i) { return static_cast<std::uint8_t>(i % kQps); };
  for (const bool single : {true, false}) {
    const auto qp_of = [&](int i) { return single ? one(i) : many(i); };
    const auto step_of = [&](int i) { return single ? i % 16 : i / kQps % 16; };
    std::printf("%s\n", single ? "one queue pair" : "four queue pairs in turn");
    CHECK(run("ACKs", 240, [&](int i) { ack(qp_of(i)); }) <= 4.0);
    CHECK(run("8-byte WRITEs", 240, [&](int i) { write(qp_of(i), 8); }) <= 4.0);
    CHECK(run("256-byte packets of WRITEs", 256, [&](int i) { part_of_write(qp_of(i), step_of(i)); }) <= 6.5);
    CHECK(run("256-byte packets of Reads", 192, [&](int i) { part_of_read(qp_of(i), step_of(i)); }) <= 6.5);
    // Wire: (6.8 + 1.7) cycles for two.
    CHECK(run("WRITE packets and ACKs in turn", 512,
              [&](int i) { i % 2 == 0 ? part_of_write(qp_of(i / 2), step_of(i / 2)) : ack(qp_of(i / 2)); }) <= 4.2);
    CHECK(run("packets of WRITEs and Reads in turn", 384, [&](int i) {
            i % 2 == 0 ? part_of_write(qp_of(i / 2), step_of(i / 2)) : part_of_read(qp_of(i / 2), step_of(i / 2));
          }) <= 6.5);
  }
  // Who asks for the context of a QP gets it in the midst of its packets, and soon.
  for (int i = 0; i < 600; ++i) ack(0);
  bed.bench.run(50);
  for (int i = 0; i < 20; ++i) {
    ++bed.model.qps[0].send.silent_run;
    bed.send.change(0, [](rtl::SendCtx& ctx) { ++ctx.silent_run; });
    bed.bench.run_until([&] { return bed.send.idle(); }, 40, "the context, while packets of the QP come in");
  }
  REQUIRE_FALSE(bed.descs.idle());
  bed.settle(10000);
}
