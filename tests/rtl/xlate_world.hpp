#pragma once

#include <Vxlate.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tests/rtl/mem_op_model.hpp"
#include "tests/support/rtl_bench.hpp"

/// rtl/xlate with both translation ports, the page lists, and what hands back the epochs of DMA.
namespace rnic::test {

using rtl::Access;
using rtl::XlateStatus;

using Wide = unsigned __int128;

constexpr std::uint32_t kIndexMask = (1u << hw::kMptIndexBits) - 1;

/// Page lists in host memory: entry values are a hash of address and version, aligned to the largest page.
struct PageLists {
  std::map<std::uint64_t, std::uint64_t> version;  ///< By list
  static std::uint64_t entry(std::uint64_t addr, std::uint64_t v) {
    std::uint64_t x = (addr ^ v << 50) * 0x9E3779B97F4A7C15ull;
    x ^= x >> 31;
    return (x * 0xBF58476D1CE4E5B9ull) & ~((1ull << 30) - 1);
  }
};

struct Expected {
  rtl::XlateReq req;
  rtl::Mpt mpt;
  std::uint64_t version = 0, accepted = 0;
  std::optional<rtl::Mpt>
      next;  ///< What a memory operation that is under way makes of the entry: it may decide already
};

inline XlateStatus check(const rtl::XlateReq& r, const rtl::Mpt& m) {
  const auto type = static_cast<MptType>(m.mpt_type);
  const auto access = static_cast<Access>(r.access);
  const bool window = type == MptType::kWindow1 || type == MptType::kWindow2;
  if ((r.key >> 8) > kIndexMask || m.state == static_cast<int>(MptState::kFree)) return XlateStatus::kBadIndex;
  if ((r.key & 255) != m.tag) return XlateStatus::kBadTag;
  if (m.state != static_cast<int>(MptState::kValid)) return XlateStatus::kBadState;
  if (r.pd != m.pd) return XlateStatus::kBadPd;
  if (type == MptType::kWindow2 && r.qp != m.qp) return XlateStatus::kBadQp;
  const bool local = access == Access::kLocalRead || access == Access::kLocalWrite || access == Access::kLocalSink;
  if (window && local) return XlateStatus::kBadAccess;
  if (access > Access::kLocalSink) return XlateStatus::kBadAccess;
  if (access == Access::kRemoteAtomic && !m.remote_atomic) return XlateStatus::kBadAccess;
  if (access == Access::kLocalWrite && !m.local_write) return XlateStatus::kBadAccess;
  if (access == Access::kLocalSink && !m.local_write && !m.read_sink) return XlateStatus::kBadAccess;  // decisions 57
  if (access == Access::kRemoteRead && !m.remote_read) return XlateStatus::kBadAccess;
  if (access == Access::kRemoteWrite && !m.remote_write) return XlateStatus::kBadAccess;
  const Wide end = Wide(r.va) + r.length;
  if (r.va < m.va || end > Wide(m.va) + m.length || end > Wide(1) << 64) return XlateStatus::kBadRange;
  return XlateStatus::kOk;
}
inline std::uint64_t page_of(const rtl::XlateReq& r, const rtl::Mpt& m) {
  return (r.va >> m.log_page) - (m.va >> m.log_page);
}

/// An Ok answer that has not been handed back.
struct Held {
  rtl::XlateReq req;
  std::uint64_t accepted = 0;
  std::uint8_t epoch = 0;
};

struct XlateWorld : Agent {
  explicit XlateWorld(std::uint64_t s) : bench(s) {
    auto& d = *bench.dut;
    d.req_valid_i = d.rsp_ready_i = d.retire_valid_i = d.mpt_req_valid_i = d.drain_valid_i = d.rd_rsp_valid_i = 0;
    d.rd_req_ready_i = d.mem_op_valid_i = d.mem_list_valid_i = 0;
    d.mem_op_rsp_ready_i = 15;
    bench.reset();
    bench.add(*this);
    bench.run_until([&] { return d.ready_o != 0; }, 1000, "ready");
  }
  void drive() override {
    auto& d = *bench.dut;
    std::uint32_t valid = 0, ready = 0, retire = 0, epochs = 0;
    for (unsigned p = 0; p < 2; ++p) {
      if (!offering[p] && !to_ask[p].empty() && bench.chance(ask_rate)) {
        put_slice(d.req_data_i, p, to_ask[p].front());
        offering[p] = true;
      }
      valid |= static_cast<std::uint32_t>(offering[p]) << p;
      ready |= static_cast<std::uint32_t>(bench.chance(ready_rate[p])) << p;
      if (!held[p].empty() && bench.chance(retire_rate)) {
        const auto at = bench.uniform(0, held[p].size() - 1);
        epochs |= static_cast<std::uint32_t>(held[p][at].epoch) << p;
        held[p].erase(held[p].begin() + static_cast<std::ptrdiff_t>(at));
        retire |= 1u << p;
      }
    }
    d.req_valid_i = valid;
    d.rsp_ready_i = ready;
    d.retire_valid_i = retire;
    d.retire_epoch_i = epochs;
    d.rd_req_ready_i = bench.chance(0.8);
    // Lines come back in order, each once its time has come.
    if (!line_offered && !reads.empty() && reads.front().second <= bench.cycle && bench.chance(0.9)) {
      const std::uint64_t addr = reads.front().first;
      const bool failed = bad_lines.count(addr) != 0;
      rtl::DmaRdRsp r;
      r.bytes = failed ? 0 : 64;
      r.err = failed;
      r.last = 1;
      for (unsigned i = 0; i < 8; ++i) {
        const std::uint64_t e = PageLists::entry(addr + 8 * i, lists.version[list_of(addr)]);
        std::memcpy(r.data.data() + 8 * i, &e, 8);
      }
      put(d.rd_rsp_data_i, r);
      line_offered = true;
    }
    d.rd_rsp_valid_i = line_offered;
    if (!list_offered && list_of_op && bench.chance(0.5)) {
      list_line = InlineList::line(*list_of_op, lines_taken, bench.rng);
      put(d.mem_list_data_i, list_line);
      list_offered = true;
    }
    d.mem_list_valid_i = list_offered;
  }
  void sample() override {
    auto& d = *bench.dut;
    const auto event = [&](hw::Counter c) { return port_bit(d.event_o, static_cast<std::size_t>(c)); };
    misses += event(hw::Counter::kTlbMisses);
    prefetches += event(hw::Counter::kTlbPrefetches);
    faults += event(hw::Counter::kXlateFaults);
    requests += event(hw::Counter::kXlateRequests);
    for (unsigned p = 0; p < 2; ++p) {
      if (offering[p] && (d.req_ready_o >> p & 1)) {
        const auto& r = to_ask[p].front();
        const auto& m = mpt[(r.key >> 8) & kIndexMask];
        asked[p].push_back({r, m, lists.version[list_of(m.page_list)], bench.cycle, {}});
        if (const auto change = changes.find((r.key >> 8) & kIndexMask); change != changes.end())
          asked[p].back().next = change->second;
        to_ask[p].pop_front();
        offering[p] = false;
      }
      if (d.rsp_valid_o >> p & 1) answer(p, (d.rsp_ready_i >> p & 1) != 0);
    }
    if (d.rd_req_valid_o && d.rd_req_ready_i) {
      const auto r = get<rtl::DmaRdReq>(d.rd_req_data_o);
      REQUIRE(r.length == 64);
      REQUIRE(r.addr % 64 == 0);
      const auto end = list_end.find(list_of(r.addr));
      REQUIRE(end != list_end.end());
      REQUIRE(r.addr < end->second);
      reads.push_back({r.addr, bench.cycle + bench.uniform(min_latency, max_latency)});
      most_reads = std::max(most_reads, reads.size());
    }
    if (list_offered && d.mem_list_ready_o) {
      list_offered = false;
      chip[chip_line + lines_taken++] = list_line;
    }
    if (line_offered && d.rd_rsp_ready_o) {
      reads.pop_front();
      line_offered = false;
    }
  }
  void answer(unsigned p, bool taken) {
    const auto a = get_slice<rtl::XlateRsp>(bench.dut->rsp_data_o, p);
    if (waiting[p].second) REQUIRE(waiting[p].first == a);
    waiting[p] = {a, !taken};
    if (!taken) return;
    REQUIRE(!asked[p].empty());
    const auto e = asked[p].front();
    asked[p].pop_front();
    last_latency = bench.cycle - e.accepted;
    ++answered[p];
    const auto status = static_cast<XlateStatus>(a.status);
    ++by_status[status];
    if (!e.next || !agrees(a, e.req, *e.next, lists.version[list_of(e.next->page_list)])) {
      INFO("status " << int(a.status) << " key " << e.req.key << " va " << e.req.va << " length " << e.req.length
                     << " access " << int(e.req.access));
      REQUIRE(agrees(a, e.req, e.mpt, e.version));
    }
    if (status == XlateStatus::kOk) held[p].push_back({e.req, e.accepted, a.epoch});
  }
  /// Whether this is the answer that this entry gives.
  bool agrees(const rtl::XlateRsp& a, const rtl::XlateReq& req, const rtl::Mpt& m, std::uint64_t list_version) const {
    auto status = check(req, m);
    const std::uint64_t slot = m.page_list + 8 * page_of(req, m);
    if (status == XlateStatus::kOk && !m.on_chip && bad_lines.count(slot & ~63ull))
      status = XlateStatus::kPageListError;
    if (a.status != static_cast<std::uint8_t>(status)) return false;
    if (status != XlateStatus::kOk) return true;
    const std::uint64_t size = 1ull << m.log_page, in_page = req.va & (size - 1);
    return a.addr == ((m.on_chip ? on_chip(slot) : PageLists::entry(slot, list_version)) | in_page) &&
           a.contiguous == std::min<std::uint64_t>(req.length, size - in_page);
  }
  /// A page address in the lines on chip. What is granted through a list is answered before the list changes.
  std::uint64_t on_chip(std::uint64_t slot) const {
    const auto found = chip.find(static_cast<std::uint32_t>(slot / 64));
    if (found == chip.end()) return ~0ull;
    std::uint64_t page{};
    std::memcpy(&page, found->second.data.data() + slot % 64, 8);
    return page;
  }
  /// Writes an MPT entry and waits until it has been taken.
  void write(std::uint32_t index, const rtl::Mpt& m) {
    auto& d = *bench.dut;
    d.mpt_req_valid_i = 1;
    d.mpt_req_write_i = 1;
    d.mpt_req_index_i = static_cast<std::uint16_t>(index);
    put(d.mpt_req_data_i, m);
    for (int i = 0;; ++i) {
      REQUIRE(i < 10);
      bench.tick();
      if (taken_before_edge()) break;
    }
    d.mpt_req_valid_i = 0;
    mpt[index] = m;
    if (MemOpModel::is_valid(m)) list_end[list_of(m.page_list)] = end_of_list(m);
  }
  static std::uint64_t end_of_list(const rtl::Mpt& m) {
    const Wide last = Wide(m.va) + m.length - 1;
    return m.page_list + 8 * (static_cast<std::uint64_t>(last >> m.log_page) - (m.va >> m.log_page) + 1);
  }

  // ---- Memory operations
  // -----------------------------------------------------------------------------------------------
  MemOpModel keys() const {
    MemOpModel model;
    for (const auto& [index, e] : mpt) {
      if (e.state != static_cast<std::uint8_t>(MptState::kFree)) model.entries[index] = e;
    }
    return model;
  }
  /// Offers an operation; what it changes may be seen from now on.
  void begin(unsigned client, const rtl::MemOp& op) {
    auto model = keys();
    expected_status = model.apply(op);
    for (const auto& [index, e] : mpt) {
      if (model.at(index) != e) changes[index] = model.at(index);
    }
    for (const auto& [index, e] : changes) {
      if (MemOpModel::is(e, MptType::kFastRegion) && MemOpModel::is_valid(e) && !e.on_chip)
        list_end[list_of(e.page_list)] = end_of_list(e);
    }
    // Requests on their way may meet the entry before the operation or after it.
    put_slice(bench.dut->mem_op_data_i, client, op);
    bench.dut->mem_op_valid_i = static_cast<std::uint8_t>(1u << client);
    bench.run_until([&] { return (op_taken >> client & 1) != 0; }, 20000, "acceptance of a memory operation");
    bench.dut->mem_op_valid_i = 0;
    lines_taken = 0;
    list_of_op.reset();
    if (op.op == static_cast<std::uint8_t>(MemOpCode::kFastRegister) && op.inline_list) {
      list_of_op = op;
      chip_line = model.at(op.key >> 8).list_line;
    }
  }
  /// Waits for the answer. From then on nothing is granted by what was taken away, and no DMA of it is under way.
  MemOpStatus end(unsigned client, std::uint64_t limit = 50000) {
    bench.run_until([&] { return (op_answered >> client & 1) != 0; }, limit, "answer of a memory operation");
    REQUIRE(op_answered == 1u << client);
    REQUIRE(int(op_status) == int(expected_status));
    if (list_of_op && op_status == MemOpStatus::kOk) REQUIRE(lines_taken == InlineList::lines(*list_of_op));
    if (list_of_op && op_status != MemOpStatus::kOk && InlineList::aligned(*list_of_op)) REQUIRE(lines_taken == 0);
    list_of_op.reset();
    list_offered = false;
    for (const auto& [index, e] : changes) {
      const auto old = mpt[index];
      mpt[index] = e;
      const bool taken_away = MemOpModel::is_valid(old) && (!MemOpModel::is_valid(e) || e.tag != old.tag);
      for (unsigned p = 0; p < 2; ++p) {
        // What would have been granted has been answered and handed back, or meets the new entry.
        for (auto& a : asked[p]) {
          if (taken_away && ((a.req.key >> 8) & kIndexMask) == index && check(a.req, old) == XlateStatus::kOk)
            a.mpt = e, a.next.reset();
        }
        for (const auto& h : held[p]) REQUIRE_FALSE((taken_away && h.req.key == (index << 8 | old.tag)));
      }
      if (!taken_away || !MemOpModel::is(old, MptType::kFastRegion) || old.on_chip) continue;
      // The page list belongs to the driver again.
      for (const auto& read : reads) REQUIRE(list_of(read.first) != list_of(old.page_list));
      list_end.erase(list_of(old.page_list));
      ++lists.version[list_of(old.page_list)];
    }
    changes.clear();
    return op_status;
  }
  MemOpStatus operate(const rtl::MemOp& op, unsigned client = 0) {
    begin(client, op);
    return end(client);
  }
  rtl::Mpt read(std::uint32_t index) {
    auto& d = *bench.dut;
    d.mpt_req_valid_i = 1;
    d.mpt_req_write_i = 0;
    d.mpt_req_index_i = static_cast<std::uint16_t>(index);
    do bench.tick();
    while (!taken_before_edge());
    d.mpt_req_valid_i = 0;
    d.clk_i = 0;
    d.eval();
    for (int i = 0; !d.mpt_rsp_valid_o; ++i) {
      REQUIRE(i < 10);
      bench.tick();
      d.clk_i = 0;
      d.eval();
    }
    return get<rtl::Mpt>(d.mpt_rsp_data_o);
  }
  /// Whether the administrative access was accepted at the edge just passed.
  bool taken_before_edge() { return admin_taken; }
  /// Drains: when it is over, what was accepted before and grants access has been answered and handed back.
  void drain(std::uint64_t limit = 20000) {
    const auto start = bench.cycle;
    bench.dut->drain_valid_i = 1;
    bench.run_until([&] { return drained; }, limit, "drain");
    bench.dut->drain_valid_i = 0;
    for (unsigned p = 0; p < 2; ++p) {
      for (const auto& e : asked[p]) REQUIRE((e.accepted >= start || check(e.req, e.mpt) != XlateStatus::kOk));
      for (const auto& h : held[p]) REQUIRE(h.accepted >= start);
    }
    bench.tick();
  }
  bool idle() const { return to_ask[0].empty() && to_ask[1].empty() && asked[0].empty() && asked[1].empty(); }
  void finish(std::uint64_t limit = 200000) {
    bench.run_until([&] { return idle(); }, limit, "all answers");
  }
  XlateStatus one(const rtl::XlateReq& r, unsigned port = 0) {
    const auto counts = by_status;
    to_ask[port].push_back(r);
    finish(1000);
    for (const auto& [status, n] : by_status) {
      const auto it = counts.find(status);
      if (it == counts.end() || it->second != n) return status;
    }
    return XlateStatus::kOk;
  }
  /// Lists start at multiples of 2^40.
  static std::uint64_t list_of(std::uint64_t addr) { return addr >> 40 << 40; }

  struct Watch : Agent {
    explicit Watch(XlateWorld& w) : world(w) { w.bench.add(*this); }
    void drive() override {}
    void sample() override {
      world.admin_taken = world.bench.dut->mpt_req_valid_i && world.bench.dut->mpt_req_ready_o;
      world.drained = world.bench.dut->drain_ready_o != 0;
      world.op_taken = world.bench.dut->mem_op_valid_i & world.bench.dut->mem_op_ready_o;
      world.op_answered = world.bench.dut->mem_op_rsp_valid_o;
      world.op_status = static_cast<MemOpStatus>(get<rtl::MemOpRsp>(world.bench.dut->mem_op_rsp_data_o).status);
    }
    XlateWorld& world;
  };

  Bench<Vxlate> bench;
  Watch watch{*this};
  PageLists lists;
  std::map<std::uint32_t, rtl::Mpt> mpt;
  std::map<std::uint64_t, std::uint64_t> list_end;
  std::set<std::uint64_t> bad_lines;
  std::array<std::deque<rtl::XlateReq>, 2> to_ask;
  std::array<std::deque<Expected>, 2> asked;
  std::array<std::deque<Held>, 2> held;
  std::array<std::pair<rtl::XlateRsp, bool>, 2> waiting{};
  std::array<bool, 2> offering{};
  std::array<double, 2> ready_rate{1.0, 1.0};
  std::array<std::uint64_t, 2> answered{};
  std::deque<std::pair<std::uint64_t, std::uint64_t>> reads;  ///< Address, time
  std::map<XlateStatus, std::uint64_t> by_status;
  std::map<std::uint32_t, rtl::Mpt> changes;  ///< What the memory operation under way does to entries
  MemOpStatus expected_status{}, op_status{};
  std::optional<rtl::MemOp> list_of_op;        ///< The operation under way, when its page list comes with it
  std::map<std::uint32_t, rtl::MemList> chip;  ///< Lines on chip
  rtl::MemList list_line;
  std::uint32_t chip_line = 0, lines_taken = 0;
  bool list_offered = false;
  unsigned op_taken = 0, op_answered = 0;
  bool line_offered = false, admin_taken = false, drained = false;
  double ask_rate = 1.0, retire_rate = 1.0;
  std::uint64_t min_latency = 20, max_latency = 200, misses = 0, prefetches = 0, faults = 0, requests = 0,
                last_latency = 0;
  std::size_t most_reads = 0;
};

inline rtl::Mpt region(std::uint64_t va, std::uint64_t length, unsigned log_page, std::uint64_t list) {
  rtl::Mpt m;
  m.state = static_cast<std::uint8_t>(MptState::kValid);
  m.tag = 0x5a;
  m.pd = 7;
  m.log_page = static_cast<std::uint8_t>(log_page);
  m.va = va;
  m.length = length;
  m.page_list = list << 40;
  return m;
}
inline rtl::XlateReq request(std::uint32_t index, const rtl::Mpt& m, std::uint64_t va, std::uint64_t length,
                             Access access = Access::kLocalRead) {
  rtl::XlateReq r;
  r.key = index << 8 | m.tag;
  r.va = va;
  r.length = static_cast<std::uint32_t>(length);
  r.pd = m.pd;
  r.access = static_cast<std::uint8_t>(access);
  return r;
}

}  // namespace rnic::test
