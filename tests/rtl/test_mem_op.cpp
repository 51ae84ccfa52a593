#include <Vmem_op.h>

#include <algorithm>
#include <array>
#include <set>

#include "tests/rtl/mem_op_model.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/xlate/mem_op.sv: every operation and every status against the model, the drain, sweeps with other work between,
// the order of writes.
using namespace rnic;
using namespace rnic::test;

namespace {
constexpr unsigned kClients = 4;
constexpr unsigned kAdmin = 2, kFailed = 3;
constexpr std::uint32_t kLast = MemOpModel::kIndexes - 1;

struct Done {
  rtl::MemOp op;
  MemOpStatus status{};
  unsigned client = 0;
  std::uint64_t began = 0, ended = 0,
                drained = 0;  // drained: cycle of the last end of a drain before the answer, 0: none
};

/// The protection table, the drain and three clients. The model is brought up to date when an operation is answered; a
/// sweep's windows when they go.
struct World : Agent {
  explicit World(std::uint64_t s) : bench(s), maker(bench.rng) {
    auto& d = *bench.dut;
    d.op_valid_i = d.rsp_ready_i = d.mpt_req_ready_i = d.mpt_rsp_valid_i = d.drain_ready_i = d.mem_list_valid_i = 0;
    bench.reset();
    bench.add(*this);
    bench.run_until([&] { return d.ready_o != 0; }, 4000, "ready");
  }

  void drive() override {
    auto& d = *bench.dut;
    if (refill) refill();
    std::uint32_t valid = 0;
    for (unsigned c = 0; c < kClients; ++c) {
      if (!offering[c] && !busy[c] && !todo[c].empty() && bench.chance(rate)) {
        put_slice(d.op_data_i, c, todo[c].front());
        offering[c] = true;
      }
      valid |= static_cast<std::uint32_t>(offering[c]) << c;
    }
    d.op_valid_i = static_cast<std::uint8_t>(valid);
    d.rsp_ready_i = static_cast<std::uint8_t>(bench.uniform(0, 15));
    d.mpt_req_ready_i = bench.chance(rate);
    d.mpt_rsp_valid_i = reading && bench.chance(rate);
    if (d.mpt_rsp_valid_i) {
      put(d.mpt_rsp_data_i, read_entry);
      reading = false;
    }
    d.drain_ready_i = d.drain_valid_o && bench.chance(0.05);
    // Lines come when they can, to nobody who has not asked for them: an operation without a list must not take any.
    if (!list_offered && running() == 1 && bench.chance(rate)) {
      put(d.mem_list_data_i, InlineList::line(running_op(), lines_taken, bench.rng));
      list_offered = true;
    }
    d.mem_list_valid_i = list_offered;
  }
  void sample() override {
    auto& d = *bench.dut;
    for (unsigned c = 0; c < kClients; ++c) {
      if (offering[c] && (d.op_ready_o >> c & 1)) {
        busy[c] = true;
        offering[c] = false;
        current[c] = {todo[c].front(), {}, c, bench.cycle, 0, 0};
        todo[c].pop_front();
        order.push_back(c);
        REQUIRE(running() <= 1);
        REQUIRE(std::count_if(current.begin(), current.end(), [&](const Done& x) { return sweep_of(x); }) <= 1);
      }
    }
    if (d.mpt_req_valid_o && d.mpt_req_ready_i) access();
    const bool line_taken = list_offered && d.mem_list_ready_o;
    REQUIRE((d.list_wr_valid_o != 0) == line_taken);
    if (line_taken) {
      REQUIRE(running() == 1);
      REQUIRE(last_write < current_of_running().began);  // the entry comes after its list
      list_offered = false;
      ++lines_taken;
      REQUIRE(d.list_wr_line_o < hw::kListLines);
      chip[d.list_wr_line_o] = get<rtl::MemList>(d.list_wr_data_o);
    }
    if (d.drain_valid_o && d.drain_ready_i) {
      ++drains;
      last_drain = bench.cycle;
    }
    for (unsigned c = 0; c < kClients; ++c) {
      if (!(d.rsp_valid_o >> c & 1)) continue;
      REQUIRE(busy[c]);
      if (!(d.rsp_ready_i >> c & 1)) continue;
      current[c].status = static_cast<MemOpStatus>(get<rtl::MemOpRsp>(d.rsp_data_o).status);
      current[c].ended = bench.cycle;
      current[c].drained = last_drain > current[c].began ? last_drain : 0;
      busy[c] = false;
      finish(current[c]);
      if (!sweeps(current[c])) {
        lines_taken = 0;
        list_offered = false;
      }
    }
  }
  static bool sweeps(const Done& done) { return done.op.op == static_cast<std::uint8_t>(MemOpCode::kUnbindQp); }
  bool sweep_of(const Done& done) const { return busy[done.client] && sweeps(done); }
  /// The sweep that is under way.
  const Done* sweep() const {
    const auto found = std::find_if(current.begin(), current.end(), [&](const Done& x) { return sweep_of(x); });
    return found == current.end() ? nullptr : &*found;
  }
  /// Operations under way, but for a sweep.
  unsigned running() const {
    unsigned n = 0;
    for (unsigned c = 0; c < kClients; ++c) n += busy[c] && !sweeps(current[c]);
    return n;
  }
  Done& current_of_running() {
    return *std::find_if(current.begin(), current.end(), [&](const Done& x) { return busy[x.client] && !sweeps(x); });
  }
  const rtl::MemOp& running_op() { return current_of_running().op; }
  void access() {
    auto& d = *bench.dut;
    const std::uint32_t index = d.mpt_req_index_o;
    if (!d.mpt_req_write_o) {
      reading = true;
      read_entry = table.contains(index) ? table[index] : rtl::Mpt{};
      return;
    }
    const auto before = table.contains(index) ? table[index] : rtl::Mpt{};
    const auto after = get<rtl::Mpt>(d.mpt_req_data_o);
    // Only the count of windows changes without the cached page list being dropped, and only that.
    auto counted = before;
    counted.bound = after.bound;
    REQUIRE((d.mpt_req_keep_o != 0) == (before.bound != after.bound));
    if (d.mpt_req_keep_o) REQUIRE(counted == after);
    // What a sweep unbinds while nothing else is under way.
    if (!d.mpt_req_keep_o && running() == 0) {
      REQUIRE(sweep() != nullptr);
      auto& e = model.entries.at(index);
      REQUIRE(MemOpModel::is(e, MptType::kWindow2));
      REQUIRE(MemOpModel::is_valid(e));
      REQUIRE(e.qp == sweep()->op.qp);
      model.unbind(e);
      ++swept;
    }
    last_write = bench.cycle;
    table[index] = after;
    if (after == rtl::Mpt{}) table.erase(index);
  }
  /// The lines of an inline list: all of them when it is used, none when it is refused for anything but its pages.
  void check_list(const Done& done, MemOpStatus expected) {
    const bool listed = done.op.op == static_cast<std::uint8_t>(MemOpCode::kFastRegister) && done.op.inline_list;
    if (!listed || expected != MemOpStatus::kOk) {
      if (!listed || InlineList::aligned(done.op)) REQUIRE(lines_taken == 0);
      return;
    }
    REQUIRE(lines_taken == InlineList::lines(done.op));
    const auto& e = model.entries.at(done.op.key >> 8);
    for (std::uint32_t i = 0; i < done.op.page_count; ++i) {
      std::uint64_t page{};
      std::memcpy(&page, chip.at(e.list_line + (i + 6) / 8).data.data() + 8 * ((i + 6) % 8), 8);
      REQUIRE(page == InlineList::page(done.op, i));
    }
    ++lists;
  }
  void finish(Done done) {
    const auto before = model.at(done.op.key >> 8);
    if (sweeps(done)) {
      for (const auto& [index, e] : model.entries)
        REQUIRE_FALSE((MemOpModel::is(e, MptType::kWindow2) && MemOpModel::is_valid(e) && e.qp == done.op.qp));
      REQUIRE(done.status == MemOpStatus::kOk);
      if (swept) REQUIRE(done.drained > last_write);
      swept = 0;
    } else {
      const auto expected = model.apply(done.op);
      INFO("operation " << int(done.op.op) << " on " << (done.op.key >> 8) << " of client " << done.client);
      REQUIRE(int(done.status) == int(expected));
      check_list(done, expected);
      // Access was taken away: it drained after the last write.
      if (expected == MemOpStatus::kOk && MemOpModel::is_valid(before)) REQUIRE(done.drained > last_write);
      if (expected != MemOpStatus::kOk || !MemOpModel::is_valid(before)) REQUIRE(done.drained == 0);
    }
    if (sweep() == nullptr) REQUIRE(table == model.entries);
    ++statuses[{done.op.op, int(done.status)}];
    results.push_back(done);
  }
  /// Puts an entry into the table, as the admin queue does.
  void set(std::uint32_t index, const rtl::Mpt& e) { table[index] = model.entries[index] = e; }

  MemOpStatus one(const rtl::MemOp& op, unsigned client = 0) {
    const auto count = results.size();
    todo[client].push_back(op);
    bench.run_until([&] { return results.size() > count; }, 20000, "answer");
    return results.back().status;
  }
  bool idle() const {
    for (unsigned c = 0; c < kClients; ++c) {
      if (!todo[c].empty() || busy[c] || offering[c]) return false;
    }
    return true;
  }

  Bench<Vmem_op> bench;
  MemOpMaker maker;
  MemOpModel model;
  std::map<std::uint32_t, rtl::Mpt> table;
  std::array<std::deque<rtl::MemOp>, kClients> todo;
  std::array<bool, kClients> offering{}, busy{};
  std::array<Done, kClients> current;
  std::vector<unsigned> order;
  std::vector<Done> results;
  std::map<std::pair<int, int>, unsigned> statuses;  ///< By operation and status
  std::function<void()> refill;
  rtl::Mpt read_entry;
  std::map<std::uint32_t, rtl::MemList> chip;  ///< Lines on chip
  bool reading = false, list_offered = false;
  std::uint32_t lines_taken = 0;
  unsigned lists = 0;  ///< Inline lists that were registered
  unsigned swept = 0, drains = 0;
  std::uint64_t last_drain = 0, last_write = 0;
  double rate = 0.6;
};

rtl::MemOp operation(MemOpCode code, std::uint32_t key, unsigned qp = 0) {
  rtl::MemOp op;
  op.op = static_cast<std::uint8_t>(code);
  op.key = key;
  op.qp = static_cast<std::uint8_t>(qp);
  op.pd = 7;
  return op;
}
rtl::Mpt entry(MptType type, MptState state) {
  rtl::Mpt e;
  e.mpt_type = static_cast<std::uint8_t>(type);
  e.state = static_cast<std::uint8_t>(state);
  e.tag = 0x11;
  e.pd = 7;
  return e;
}
rtl::Mpt region() {
  auto e = entry(MptType::kRegion, MptState::kValid);
  e.log_page = 12;
  e.va = 0x10000800;
  e.length = 0x5000;
  e.page_list = 1ull << 40;
  e.local_write = e.window_bind = 1;
  return e;
}
rtl::MemOp bind(MemOpCode code, std::uint32_t window_key, std::uint32_t mr, const rtl::Mpt& to, unsigned qp = 0) {
  auto op = operation(code, window_key, qp);
  op.mr_key = mr << 8 | to.tag;
  op.va = to.va + 0x1000;
  op.length = 0x2000;
  op.remote_read = 1;
  return op;
}
rtl::MemOp fast(std::uint32_t key) {
  auto op = operation(MemOpCode::kFastRegister, key);
  op.va = 0x7000'0123;
  op.first_offset = 0x123;
  op.log_page = 12;
  op.page_count = 4;
  op.length = 4 * 4096 - 0x123;
  op.page_list = (2ull << 40) + 8;
  op.local_write = op.remote_write = 1;
  return op;
}
}  // namespace

TEST_CASE("mem_op: a type 2B window, from bind to invalidate (InfiniBand specification 10.6.7.2, decisions 17 to 23)",
          "[rtl]") {
  World w(seed());
  const auto mr = region();
  w.set(5, mr);
  w.set(900, entry(MptType::kWindow2, MptState::kInvalid));
  const auto good = bind(MemOpCode::kBindWindow2, 900 << 8 | 0x22, 5, mr, 3);
  const auto refused = [&](auto change, MemOpStatus status) {
    auto op = good;
    change(op);
    CHECK(w.one(op) == status);
  };
  using S = MemOpStatus;
  refused([](auto& op) { op.key |= 1u << 22; }, S::kBadKey);
  refused([](auto& op) { op.key += 256; }, S::kBadKey);  // free entry
  refused([](auto& op) { op.pd = 8; }, S::kBadKey);
  refused([](auto& op) { op.key = 5 << 8 | 0x22; }, S::kBadRequest);  // a region is no window
  refused([](auto& op) { op.op = int(MemOpCode::kBindWindow1); }, S::kBadRequest);
  refused([](auto& op) { op.mr_key ^= 1; }, S::kBadKey);  // decisions 14
  refused([](auto& op) { op.mr_key += 256; }, S::kBadKey);
  refused([](auto& op) { op.mr_key |= 1u << 31; }, S::kBadKey);
  refused([](auto& op) { op.mr_key = 900 << 8 | 0x11; }, S::kBadKey);  // a window on a window
  refused([](auto& op) { op.va = 0x100007ff; }, S::kBadRange);
  refused([](auto& op) { op.length = 0x4001; }, S::kBadRange);
  refused([](auto& op) { op.length = ~0ull; }, S::kBadRange);
  refused([](auto& op) { op.length = std::uint64_t{0} - op.va; }, S::kBadRange);
  CHECK(w.drains == 0);
  CHECK(w.one(good) == S::kOk);
  CHECK(w.table[5].bound == 1);
  CHECK(w.table[900].page_list == (1ull << 40) + 8);
  refused([](auto&) {}, S::kBadState);                                          // decisions 19
  CHECK(w.one(operation(MemOpCode::kDestroy, 5 << 8 | 0x11)) == S::kBadState);  // decisions 23
  auto inv = operation(MemOpCode::kInvalidate, 900 << 8 | 0x22, 3);
  inv.key ^= 0x33;
  CHECK(w.one(inv) == S::kBadKey);
  inv.key ^= 0x33;
  inv.qp = 4;
  CHECK(w.one(inv) == S::kBadAccess);
  inv.qp = 3;
  inv.pd = 1;
  CHECK(w.one(inv) == S::kBadKey);
  inv.pd = 7;
  CHECK(w.drains == 0);
  CHECK(w.one(inv) == S::kOk);
  CHECK(w.drains == 1);
  CHECK(w.one(inv) == S::kBadState);  // decisions 18
  CHECK(w.one(operation(MemOpCode::kInvalidateRemote, 900 << 8 | 0x22, 3)) == S::kBadState);
  refused([](auto& op) { op.length = 0; }, S::kOk);  // a window onto nothing
  CHECK(w.one(operation(MemOpCode::kInvalidateRemote, 900 << 8 | 0x22, 3), 1) == S::kOk);

  // A region that ends at 2^64: what begins at 0 does not lie behind it.
  auto top = mr;
  top.va = std::uint64_t{0} - top.length;
  w.set(5, top);
  refused([](auto& op) { op.va = 0, op.length = 0; }, S::kBadRange);
  refused([](auto& op) { op.va = 0, op.length = 1; }, S::kBadRange);
  refused([&](auto& op) { op.va = top.va, op.length = top.length + 1; }, S::kBadRange);
  refused([&](auto& op) { op.va = top.va, op.length = top.length; }, S::kOk);
  CHECK(w.one(operation(MemOpCode::kInvalidate, 900 << 8 | 0x22, 3)) == S::kOk);

  auto plain = mr;
  plain.local_write = 0;
  w.set(5, plain);
  refused([](auto& op) { op.remote_write = 1; }, S::kBadAccess);  // decisions 21
  refused([](auto& op) { op.remote_atomic = 1; }, S::kBadAccess);
  refused([](auto& op) { op.remote_read = 0; }, S::kOk);  // decisions 19: no right at all
  CHECK(w.one(operation(MemOpCode::kInvalidate, 900 << 8 | 0x22, 3)) == S::kOk);
  plain.window_bind = 0;
  w.set(5, plain);
  refused([](auto&) {}, S::kBadAccess);
  plain.window_bind = 1;
  plain.pd = 8;
  w.set(5, plain);
  refused([](auto&) {}, S::kBadKey);
}

TEST_CASE(
    "mem_op: a type 1 window is bound again and unbound by a bind of nothing (InfiniBand specification 10.6.7.2.1)",
    "[rtl]") {
  World w(seed());
  const auto mr = region();
  w.set(5, mr);
  w.set(6, mr);
  w.set(20, entry(MptType::kWindow1, MptState::kInvalid));
  CHECK(w.one(bind(MemOpCode::kBindWindow1, 20 << 8 | 1, 5, mr)) == MemOpStatus::kOk);
  CHECK(w.drains == 0);
  CHECK(w.one(bind(MemOpCode::kBindWindow1, 20 << 8 | 2, 6, mr)) == MemOpStatus::kOk);
  CHECK(w.drains == 1);  // nothing goes through the old key any more
  CHECK(w.table[5].bound == 0);
  CHECK(w.table[6].bound == 1);
  CHECK(w.one(bind(MemOpCode::kBindWindow1, 20 << 8 | 3, 6, mr)) == MemOpStatus::kOk);
  CHECK(w.table[6].bound == 1);
  CHECK(w.one(operation(MemOpCode::kInvalidate, 20 << 8 | 3)) == MemOpStatus::kBadRequest);
  CHECK(w.one(operation(MemOpCode::kUnbindQp, 0), kAdmin) == MemOpStatus::kOk);  // it belongs to no QP
  CHECK(w.table[6].bound == 1);
  auto nothing = bind(MemOpCode::kBindWindow1, 20 << 8 | 4, 0, {});
  nothing.length = 0;
  CHECK(w.one(nothing) == MemOpStatus::kOk);
  CHECK(w.table[6].bound == 0);
  CHECK(w.table[20].state == static_cast<std::uint8_t>(MptState::kInvalid));
  CHECK(w.one(nothing) == MemOpStatus::kOk);
}

TEST_CASE("mem_op: fast registration (NDK FastRegister, decisions 16, 19, 21, 22, 39)", "[rtl]") {
  World w(seed());
  auto fmr = entry(MptType::kFastRegion, MptState::kInvalid);
  fmr.max_pages = 4;
  fmr.remote_ok = 1;
  w.set(33, fmr);
  const auto good = fast(33 << 8 | 0x44);
  const auto refused = [&](auto change, MemOpStatus status) {
    auto op = good;
    change(op);
    CHECK(w.one(op) == status);
  };
  using S = MemOpStatus;
  refused([](auto& op) { op.page_count = 5; }, S::kBadRequest);
  refused([](auto& op) { op.page_count = 0; }, S::kBadRequest);
  refused([](auto& op) { op.page_count = 4 + (1 << 16); }, S::kBadRequest);
  refused([](auto& op) { op.log_page = 11; }, S::kBadRequest);
  refused([](auto& op) { op.log_page = 31; }, S::kBadRequest);
  refused([](auto& op) { op.log_page = 12 + 32; }, S::kBadRequest);
  refused([](auto& op) { op.page_list += 4; }, S::kBadRequest);
  refused([](auto& op) { op.first_offset = 0x124; }, S::kBadRequest);
  refused([](auto& op) { op.first_offset += 0x1000; }, S::kBadRequest);
  refused([](auto& op) { op.va += 1; }, S::kBadRequest);
  refused([](auto& op) { op.local_write = 0; }, S::kBadRequest);
  refused([](auto& op) { ++op.length; }, S::kBadRange);
  refused([](auto& op) { op.length = 0; }, S::kBadRange);
  refused([](auto& op) { op.length = 1ull << 48 | 1; }, S::kBadRange);
  refused([](auto& op) { op.va = ~0xfffull | 0x123; }, S::kBadRange);
  refused([](auto& op) { op.pd = 1; }, S::kBadKey);
  CHECK(w.one(operation(MemOpCode::kInvalidate, 33 << 8 | 0x11)) == S::kBadState);
  CHECK(w.one(good) == S::kOk);
  CHECK(w.drains == 0);
  refused([](auto&) {}, S::kBadState);
  CHECK(w.one(operation(MemOpCode::kInvalidate, 33 << 8 | 0x11)) == S::kBadKey);  // the old tag
  CHECK(w.one(operation(MemOpCode::kInvalidateRemote, 33 << 8 | 0x44), 1) == S::kOk);
  CHECK(w.drains == 1);
  refused([](auto& op) { op.va = 0, op.first_offset = 0; }, S::kOk);
  CHECK(w.one(operation(MemOpCode::kInvalidate, 33 << 8 | 0x44)) == S::kOk);
  refused([](auto& op) { op.remote_write = 0; }, S::kOk);
  CHECK(w.one(operation(MemOpCode::kInvalidateRemote, 33 << 8 | 0x44), 1) == S::kBadAccess);  // no remote key
  CHECK(w.one(operation(MemOpCode::kInvalidate, 33 << 8 | 0x44)) == S::kOk);
  fmr.remote_ok = 0;
  w.set(33, fmr);
  refused([](auto&) {}, S::kBadAccess);
  refused([](auto& op) { op.remote_write = 0; }, S::kOk);
  auto destroy = operation(MemOpCode::kDestroy, 33 << 8 | 0x99);  // the tag does not count
  CHECK(w.one(destroy) == S::kBadKey);
  destroy.mpt_type = static_cast<std::uint8_t>(MptType::kFastRegion);
  CHECK(w.one(destroy) == S::kOk);
  CHECK(w.drains == 4);
}

TEST_CASE(
    "mem_op: the list of an inline fast registration is put on chip before its entry is written (NDK FastRegister)",
    "[rtl]") {
  World w(seed());
  auto fmr = entry(MptType::kFastRegion, MptState::kInvalid);
  fmr.max_pages = 100;
  fmr.list_line = hw::kListLines - 8;
  fmr.list_lines = 8;
  fmr.window_bind = 1;
  w.set(33, fmr);
  w.set(900, entry(MptType::kWindow2, MptState::kInvalid));
  auto good = fast(33 << 8 | 0x44);
  good.inline_list = 1;
  good.page_list = 0;
  good.remote_write = 0;
  const auto refused = [&](auto change, MemOpStatus status) {
    auto op = good;
    change(op);
    CHECK(w.one(op) == status);
  };
  using S = MemOpStatus;
  const auto sized = [](rtl::MemOp& op, std::uint32_t pages) {
    op.page_count = pages;
    op.length = pages * 4096ull - 0x123;
  };
  refused([&](auto& op) { sized(op, 59); }, S::kBadRequest);  // more than its lines hold
  refused([](auto& op) { op.page_count = 0; }, S::kBadRequest);
  refused([](auto& op) { op.page_list = 8; }, S::kBadRequest);
  refused([](auto& op) { op.first_offset = 0x124; }, S::kBadRequest);
  refused([](auto& op) { ++op.length; }, S::kBadRange);
  // Every page must be aligned, whatever its place, and to the size of the pages. What lies behind the list is not
  // looked at.
  for (std::uint32_t place = 1; place <= 58; ++place) {
    refused(
        [&](auto& op) {
          sized(op, 58);
          op.mr_key = place | (place % 12) << 8;
        },
        S::kBadRequest);
  }
  refused(
      [&](auto& op) {
        op.log_page = 16;
        op.first_offset = 0x123;
        op.va = 0x7000'0123;
        op.mr_key = 3 | 15 << 8;
      },
      S::kBadRequest);
  CHECK(w.lists == 0);
  CHECK(w.table[33] == fmr);
  for (const std::uint32_t pages : {1u, 2u, 3u, 10u, 11u, 57u, 58u}) {
    auto op = good;
    sized(op, pages);
    REQUIRE(w.one(op) == S::kOk);
    CHECK(w.table[33].on_chip == 1);
    CHECK(w.table[33].page_list == (hw::kListLines - 8) * 64 + 48);
    refused([](auto&) {}, S::kBadState);
    // A window has its part of the same list.
    if (pages > 3) {
      auto window = bind(MemOpCode::kBindWindow2, 900 << 8 | 9, 33, w.table[33]);
      window.va = op.va + 0x2000;
      REQUIRE(w.one(window) == S::kOk);
      CHECK(w.table[900].on_chip == 1);
      CHECK(w.table[900].page_list == w.table[33].page_list + 16);
      REQUIRE(w.one(operation(MemOpCode::kInvalidate, 900 << 8 | 9)) == S::kOk);
    }
    REQUIRE(w.one(operation(MemOpCode::kInvalidate, 33 << 8 | 0x44)) == S::kOk);
  }
  CHECK(w.lists == 7);
  // By pointer again, and then a region that has no lines.
  REQUIRE(w.one(fast(33 << 8 | 0x45)) == (fmr.remote_ok ? S::kOk : S::kBadAccess));
  refused([](auto& op) { op.inline_list = 0, op.page_list = 64; }, S::kOk);
  CHECK(w.table[33].on_chip == 0);
  REQUIRE(w.one(operation(MemOpCode::kInvalidate, 33 << 8 | 0x44)) == S::kOk);
  fmr.list_lines = 0;
  w.set(33, fmr);
  refused([](auto&) {}, S::kBadRequest);
  refused([](auto& op) { op.page_count = 1, op.length = 1; }, S::kBadRequest);
}

TEST_CASE(
    "mem_op: windows of a QP are unbound, everywhere in the table; others stay, and others work meanwhile (decisions "
    "23)",
    "[rtl]") {
  World w(seed());
  w.rate = 1;
  const auto mr = region();
  w.set(5, mr);
  std::vector<std::uint32_t> indexes = {0, 1, 15, 16, 2047, 2048, 16383, 16384, kLast - 16, kLast - 1, kLast};
  for (int i = 0; i < 60; ++i) indexes.push_back(static_cast<std::uint32_t>(w.bench.uniform(17, kLast - 17)));
  std::set<std::uint32_t> own, others;
  for (const auto index : indexes) {
    if (index == 5 || own.contains(index) || others.contains(index)) continue;
    const unsigned qp = (own.size() + others.size()) % 3 == 2 ? 255 : 254;
    w.set(index, entry(MptType::kWindow2, MptState::kInvalid));
    REQUIRE(w.one(bind(MemOpCode::kBindWindow2, index << 8 | 9, 5, mr, qp)) == MemOpStatus::kOk);
    (qp == 254 ? own : others).insert(index);
  }
  CHECK(w.table[5].bound == own.size() + others.size());
  const auto drains = w.drains;
  w.todo[kAdmin].push_back(operation(MemOpCode::kUnbindQp, 0, 254));
  // A client that asks without end: every one of its operations goes between.
  w.set(7, entry(MptType::kFastRegion, MptState::kInvalid));
  unsigned asked = 0;
  w.refill = [&] {
    if (w.todo[0].empty() && (w.busy[kAdmin] || w.offering[kAdmin]))
      w.todo[0].push_back(operation(MemOpCode::kInvalidate, 7 << 8)), ++asked;
  };
  w.bench.run_until([&] { return w.idle(); }, 20000, "end of the sweep");
  const auto& sweep = *std::find_if(w.results.begin(), w.results.end(), World::sweeps);
  std::printf("mem_op: %zu windows unbound in %llu cycles, %u operations between\n", own.size(),
              static_cast<unsigned long long>(sweep.ended - sweep.began), asked);
  CHECK(asked > 20);
  CHECK(w.drains == drains + 1);
  CHECK(w.table[5].bound == others.size());
  for (const auto index : own) CHECK(w.table[index].state == static_cast<std::uint8_t>(MptState::kInvalid));
  for (const auto index : others) CHECK(w.table[index].state == static_cast<std::uint8_t>(MptState::kValid));
  w.refill = nullptr;
  const auto start = w.bench.cycle;
  CHECK(w.one(operation(MemOpCode::kUnbindQp, 0, 254), kAdmin) == MemOpStatus::kOk);  // none left: no drain
  CHECK(w.drains == drains + 1);
  CHECK(w.bench.cycle - start < 30);  // the table is not walked for a queue pair that has bound nothing since
}

TEST_CASE("mem_op: a search ends at once for a queue pair without windows, and goes on behind the first row", "[rtl]") {
  World w(seed());
  w.rate = 1;
  const auto mr = region();
  w.set(5, mr);
  const auto start = w.bench.cycle;
  for (unsigned qp = 0; qp < 256; ++qp)
    REQUIRE(w.one(operation(MemOpCode::kUnbindQp, 0, qp), kAdmin) == MemOpStatus::kOk);
  CHECK(w.bench.cycle - start < 256 * 30);
  // Several in the first row, in the last, and between.
  for (const std::uint32_t index : {0u, 1u, 15u, 16u, 3000u, kLast}) {
    w.set(index, entry(MptType::kWindow2, MptState::kInvalid));
    REQUIRE(w.one(bind(MemOpCode::kBindWindow2, index << 8 | 9, 5, mr, 77)) == MemOpStatus::kOk);
  }
  REQUIRE(w.one(operation(MemOpCode::kUnbindQp, 0, 77), kAdmin) == MemOpStatus::kOk);
  CHECK(w.table[5].bound == 0);
}

TEST_CASE("mem_op: of two searches for windows the second waits for the first, and work goes on (decisions 56)",
          "[rtl]") {
  World w(seed());
  w.rate = 1;
  const auto mr = region();
  w.set(5, mr);
  for (std::uint32_t index = 100; index < 160; ++index) {
    w.set(index * 97, entry(MptType::kWindow2, MptState::kInvalid));
    const auto op = bind(MemOpCode::kBindWindow2, index * 97 << 8 | 9, 5, mr, index % 3);
    REQUIRE(w.one(op) == MemOpStatus::kOk);
  }
  const auto drains = w.drains;
  w.todo[kFailed].push_back(operation(MemOpCode::kUnbindQp, 0, 1));
  w.todo[kAdmin].push_back(operation(MemOpCode::kUnbindQp, 0, 2));
  w.todo[kFailed].push_back(operation(MemOpCode::kUnbindQp, 0, 0));
  w.set(7, entry(MptType::kFastRegion, MptState::kInvalid));
  unsigned asked = 0;
  w.refill = [&] {
    if (w.todo[0].empty() && w.sweep() != nullptr)
      w.todo[0].push_back(operation(MemOpCode::kInvalidate, 7 << 8)), ++asked;
  };
  w.bench.run_until([&] { return w.idle(); }, 20000, "end of the searches");
  CHECK(w.drains == drains + 3);
  CHECK(asked > 20);
  CHECK(w.table[5].bound == 0);
  CHECK(w.one(operation(MemOpCode::kDestroy, 5 << 8 | 0x11), kAdmin) == MemOpStatus::kOk);
}

TEST_CASE("mem_op: while all four clients ask without end each has its turn, searches too", "[rtl]") {
  World w(seed());
  w.rate = 1;
  constexpr unsigned kQps = 10;
  const auto mr = region();
  w.set(5, mr);
  for (std::uint32_t index = 100; index < 140; ++index) {
    w.set(index * 97, entry(MptType::kWindow2, MptState::kInvalid));
    REQUIRE(w.one(bind(MemOpCode::kBindWindow2, index * 97 << 8 | 9, 5, mr, index % kQps)) == MemOpStatus::kOk);
  }
  // Of every queue pair twice: the second finds nothing.
  for (unsigned i = 0; i < 2 * kQps; ++i) w.todo[kFailed].push_back(operation(MemOpCode::kUnbindQp, 0, i / 2));
  for (std::uint32_t c = 0; c < kFailed; ++c) w.set(7 + c, entry(MptType::kFastRegion, MptState::kInvalid));
  w.refill = [&] {
    for (unsigned c = 0; c < kFailed; ++c) {
      if (w.todo[c].empty()) w.todo[c].push_back(operation(MemOpCode::kInvalidate, (7 + c) << 8));
    }
  };
  w.order.clear();
  w.bench.run_until([&] { return w.todo[kFailed].empty() && !w.busy[kFailed]; }, 100000, "end of the searches");
  CHECK(w.table[5].bound == 0);
  // Between two operations of one, each of the others has one at most.
  std::array<unsigned, kClients> passed{};
  for (const auto client : w.order) {
    passed[client] = 0;
    for (unsigned c = 0; c < kFailed; ++c) REQUIRE((c == client || ++passed[c] < kClients));
  }
  for (unsigned c = 0; c < kClients; ++c) CHECK(std::count(w.order.begin(), w.order.end(), c) >= 2 * kQps);
}

TEST_CASE("mem_op: random operations of three clients agree with the model", "[rtl]") {
  World w(seed());
  for (std::uint32_t n = 0; n < MemOpMaker::kEntries; ++n) w.set(MemOpMaker::index(n), w.maker.fresh(n));
  // Clients 0 and 1 never bind on a QP that is being swept: the admin queue sees to that. Operations are made when they
  // can be offered, so that most of them fit.
  unsigned sweeping = ~0u;
  const auto binds = [](const rtl::MemOp& op) { return op.op == static_cast<std::uint8_t>(MemOpCode::kBindWindow2); };
  w.refill = [&] {
    for (unsigned c = 0; c < 2; ++c) {
      if (w.busy[c] || w.offering[c] || !w.todo[c].empty() || w.bench.chance(0.5)) continue;
      auto op = w.maker.next(w.model);
      if (binds(op) && op.qp == sweeping) continue;
      w.todo[c].push_back(op);
    }
    if (w.busy[kAdmin] || w.offering[kAdmin] || !w.todo[kAdmin].empty()) return;
    sweeping = ~0u;
    if (w.running() == 0 && w.bench.chance(0.3)) {
      for (std::uint32_t n = 0; n < MemOpMaker::kEntries; ++n) {
        const auto index = MemOpMaker::index(n);
        if (!w.model.entries.contains(index)) w.set(index, w.maker.fresh(n));
      }
    }
    if (w.bench.chance(0.003)) {
      auto op = operation(MemOpCode::kUnbindQp, 0, static_cast<unsigned>(w.bench.uniform(0, 2)));
      for (unsigned c = 0; c < 2; ++c) {
        if (!w.busy[c] && w.todo[c].empty()) continue;
        const auto& other = w.busy[c] ? w.current[c].op : w.todo[c].front();
        if (binds(other) && other.qp == op.qp) return;
      }
      sweeping = op.qp;
      w.todo[kAdmin].push_back(op);
    } else if (w.bench.chance(0.02)) {
      w.todo[kAdmin].push_back(w.maker.make(MemOpCode::kDestroy, w.model));
    }
  };
  w.bench.run_until([&] { return w.results.size() >= 12000; }, 3'000'000, "operations");
  using C = MemOpCode;
  for (const auto code : {C::kBindWindow1, C::kBindWindow2, C::kInvalidate, C::kInvalidateRemote, C::kFastRegister,
                          C::kDestroy, C::kUnbindQp}) {
    CHECK(w.statuses[{int(code), 0}] > 20);
  }
  for (const auto code : {C::kBindWindow1, C::kBindWindow2, C::kFastRegister}) {
    for (int status = 1; status <= 5; ++status) {
      if (code == C::kBindWindow1 && status == int(MemOpStatus::kBadState)) continue;
      INFO("operation " << int(code) << " status " << status);
      CHECK(w.statuses[{int(code), status}] > 5);
    }
  }
  CHECK(w.lists > 50);
  CHECK(w.statuses[{int(C::kDestroy), int(MemOpStatus::kBadState)}] > 5);
  CHECK(w.statuses[{int(C::kInvalidateRemote), int(MemOpStatus::kBadAccess)}] > 5);
}
