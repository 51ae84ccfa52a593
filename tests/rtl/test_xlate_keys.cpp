#include "tests/rtl/xlate_world.hpp"

// rtl/xlate: windows and fast-register regions as accesses see them, and memory operations under traffic.
using namespace rnic;
using namespace rnic::test;
using World = XlateWorld;

namespace {
constexpr std::uint32_t kRegion = 100, kWindow = 200, kFast = 300;
constexpr unsigned kAdmin = 2;

rtl::Mpt allocated(MptType type) {
  rtl::Mpt m;
  m.mpt_type = static_cast<std::uint8_t>(type);
  m.state = static_cast<std::uint8_t>(MptState::kInvalid);
  m.tag = 1;
  m.pd = 7;
  m.max_pages = type == MptType::kFastRegion ? 300 : 0;
  m.remote_ok = m.window_bind = type == MptType::kFastRegion;
  return m;
}
rtl::MemOp operation(MemOpCode code, std::uint32_t key, unsigned qp = 3) {
  rtl::MemOp op;
  op.op = static_cast<std::uint8_t>(code);
  op.key = key;
  op.qp = static_cast<std::uint8_t>(qp);
  op.pd = 7;
  return op;
}
/// A region with local write alone that windows may be bound to, 64 pages.
rtl::Mpt bindable(std::uint64_t list = 1) {
  auto m = region(0x10000800, (64 << 12) - 0x900, 12, list);
  m.local_write = m.window_bind = 1;
  return m;
}
rtl::MemOp bind(MemOpCode code, std::uint32_t key, std::uint64_t va, std::uint64_t length) {
  auto op = operation(code, key);
  op.mr_key = kRegion << 8 | 0x5a;
  op.va = va;
  op.length = length;
  op.remote_read = op.remote_write = op.remote_atomic = 1;
  return op;
}
rtl::XlateReq access(std::uint32_t key, std::uint64_t va, std::uint64_t length, Access wanted, unsigned qp = 3) {
  rtl::XlateReq r;
  r.key = key;
  r.va = va;
  r.length = static_cast<std::uint32_t>(length);
  r.pd = 7;
  r.access = static_cast<std::uint8_t>(wanted);
  r.qp = static_cast<std::uint8_t>(qp);
  return r;
}
using S = XlateStatus;
}  // namespace

TEST_CASE("xlate: what a window opens (InfiniBand specification 10.6.7, decisions 17 to 21)", "[rtl]") {
  World w(seed());
  const auto type = GENERATE(MptType::kWindow1, MptType::kWindow2);
  const auto code = type == MptType::kWindow1 ? MemOpCode::kBindWindow1 : MemOpCode::kBindWindow2;
  const auto mr = bindable();
  w.write(kRegion, mr);
  w.write(kWindow, allocated(type));
  const std::uint32_t key = kWindow << 8 | 0x77;
  // Allocated only: neither its first key nor the one of a bind to come.
  CHECK(w.one(access(kWindow << 8 | 1, mr.va, 1, Access::kRemoteRead)) == S::kBadState);
  CHECK(w.one(access(key, mr.va, 1, Access::kRemoteRead)) == S::kBadTag);
  const std::uint64_t va = mr.va + 9 * 4096 + 5, length = 30 * 4096;
  REQUIRE(w.operate(bind(code, key, va, length)) == MemOpStatus::kOk);
  for (unsigned port = 0; port < 2; ++port) {
    for (const auto wanted : {Access::kRemoteRead, Access::kRemoteWrite, Access::kRemoteAtomic}) {
      CHECK(w.one(access(key, va, length, wanted), port) == S::kOk);
      CHECK(w.one(access(key, va + length - 1, 1, wanted), port) == S::kOk);
      CHECK(w.one(access(key, va - 1, 2, wanted), port) == S::kBadRange);
      CHECK(w.one(access(key, va + length - 1, 2, wanted), port) == S::kBadRange);
      CHECK(w.one(access(key, ~0ull, 2, wanted), port) == S::kBadRange);
      // The region itself has no remote right, and the window gives it none.
      CHECK(w.one(access(kRegion << 8 | 0x5a, va, 1, wanted), port) == S::kBadAccess);
      CHECK(w.one(access(key, va, 1, wanted, 4), port) == (type == MptType::kWindow2 ? S::kBadQp : S::kOk));
    }
    for (const auto wanted : {Access::kLocalRead, Access::kLocalWrite})
      CHECK(w.one(access(key, va, 1, wanted), port) == S::kBadAccess);
    for (const unsigned odd : {5u, 6u, 7u})
      CHECK(w.one(access(key, va, 1, static_cast<Access>(odd)), port) == S::kBadAccess);
    auto other = access(key, va, 1, Access::kRemoteRead);
    other.pd = 8;
    CHECK(w.one(other, port) == S::kBadPd);
    for (std::uint64_t at = va; at < va + length; at += 2048)
      CHECK(w.one(access(key, at, 1, Access::kRemoteRead), port) == S::kOk);
  }
  // The region is busy as long as the window is bound (decisions 23).
  CHECK(w.operate(operation(MemOpCode::kDestroy, kRegion << 8 | 0x5a), kAdmin) == MemOpStatus::kBadState);
  if (type == MptType::kWindow1) {
    auto nothing = operation(code, kWindow << 8 | 0x78);
    REQUIRE(w.operate(nothing) == MemOpStatus::kOk);
    CHECK(w.one(access(kWindow << 8 | 0x78, va, 1, Access::kRemoteRead)) == S::kBadState);
    CHECK(w.one(access(key, va, 1, Access::kRemoteRead)) == S::kBadTag);
  } else {
    REQUIRE(
        w.operate(operation(GENERATE(MemOpCode::kInvalidate, MemOpCode::kInvalidateRemote, MemOpCode::kUnbindQp), key),
                  1) == MemOpStatus::kOk);
    CHECK(w.one(access(key, va, 1, Access::kRemoteRead)) == S::kBadState);
  }
  // Rights are those of each bind; none at all is legal.
  for (unsigned rights = 0; rights < 8; ++rights) {
    auto op = bind(code, kWindow << 8 | (0x80 + rights), va, length);
    op.remote_read = rights & 1;
    op.remote_write = rights >> 1 & 1;
    op.remote_atomic = rights >> 2;
    REQUIRE(w.operate(op) == MemOpStatus::kOk);
    for (const auto& [wanted, needs] :
         {std::pair{Access::kRemoteRead, 1u}, {Access::kRemoteWrite, 2u}, {Access::kRemoteAtomic, 4u}}) {
      CHECK(w.one(access(op.key, va, 1, wanted)) == (rights & needs ? S::kOk : S::kBadAccess));
    }
    if (type == MptType::kWindow2) REQUIRE(w.operate(operation(MemOpCode::kInvalidate, op.key)) == MemOpStatus::kOk);
  }
  auto destroy = operation(MemOpCode::kDestroy, kWindow << 8);
  destroy.mpt_type = static_cast<std::uint8_t>(type);
  REQUIRE(w.operate(destroy, kAdmin) == MemOpStatus::kOk);
  CHECK(w.one(access(kWindow << 8 | 0x87, va, 1, Access::kRemoteRead)) == S::kBadIndex);
  CHECK(w.operate(operation(MemOpCode::kDestroy, kRegion << 8 | 0x5a), kAdmin) == MemOpStatus::kOk);
  w.drain();
}

TEST_CASE(
    "xlate: a fast-register region serves its domain until it is invalidated, each time with its own page list "
    "(decisions 16 to 20)",
    "[rtl]") {
  World w(seed());
  w.write(kFast, allocated(MptType::kFastRegion));
  CHECK(w.one(access(kFast << 8 | 1, 0x7000, 1, Access::kLocalRead)) == S::kBadState);
  for (std::uint32_t round = 0; round < 40; ++round) {
    auto op = operation(MemOpCode::kFastRegister, kFast << 8 | (2 + round));
    op.log_page = static_cast<std::uint8_t>(round % 3 == 2 ? 16 : 12);
    op.page_count = 256;
    op.first_offset = round % 2 ? 0x123 : 0;
    op.va = (round == 4 ? 0 : 0x7'0000'0000) + op.first_offset;
    op.length = (256ull << op.log_page) - op.first_offset;
    op.page_list = (2ull << 40) + 8 * round;  // at any word of a line
    op.local_write = op.remote_read = 1;
    REQUIRE(w.operate(op) == MemOpStatus::kOk);
    for (unsigned port = 0; port < 2; ++port) {
      CHECK(w.one(access(op.key, op.va, 1, Access::kLocalRead), port) == S::kOk);
      CHECK(w.one(access(op.key, op.va, 1, Access::kRemoteRead, 99), port) == S::kOk);  // any QP
      CHECK(w.one(access(op.key, op.va, 1, Access::kRemoteWrite), port) == S::kBadAccess);
      CHECK(w.one(access(op.key, op.va + op.length - 1, 1, Access::kLocalWrite), port) == S::kOk);
      CHECK(w.one(access(op.key, op.va + op.length - 1, 2, Access::kLocalWrite), port) == S::kBadRange);
      CHECK(w.one(access(op.key - 1, op.va, 1, Access::kLocalRead), port) == S::kBadTag);
    }
    for (std::uint64_t page = 0; page < 256; page += 5)
      w.to_ask[page & 1].push_back(
          access(op.key, op.va + op.first_offset + (page << op.log_page) / 2, 1, Access::kLocalRead));
    w.finish();
    REQUIRE(w.operate(operation(round % 2 ? MemOpCode::kInvalidate : MemOpCode::kInvalidateRemote, op.key),
                      round % 2) == MemOpStatus::kOk);
    CHECK(w.one(access(op.key, op.va, 1, Access::kLocalRead)) == S::kBadState);
  }
}

TEST_CASE(
    "xlate: the page list of an inline fast registration is on chip: its region and windows read nothing of the host",
    "[rtl]") {
  World w(seed());
  auto fmr = allocated(MptType::kFastRegion);
  fmr.list_line = 40;
  fmr.list_lines = 8;
  w.write(kFast, fmr);
  // A neighbour whose list is in host memory, and one whose lines are the next ones.
  const auto mr = bindable();
  w.write(kRegion, mr);
  auto next = fmr;
  next.list_line = 48;
  w.write(kFast + 1, next);
  w.write(kWindow, allocated(MptType::kWindow2));
  const auto inline_op = [&](std::uint32_t index, std::uint32_t round, std::uint32_t pages) {
    auto op = operation(MemOpCode::kFastRegister, index << 8 | (2 + round));
    op.log_page = static_cast<std::uint8_t>(round % 3 == 2 ? 16 : 12);
    op.page_count = pages;
    op.first_offset = round % 2 ? 0x123 : 0;
    op.va = 0x7'0000'0000 + op.first_offset;
    op.length = (std::uint64_t{pages} << op.log_page) - op.first_offset;
    op.local_write = op.remote_read = 1;
    op.inline_list = 1;
    return op;
  };
  auto neighbour = inline_op(kFast + 1, 1, 58);
  REQUIRE(w.operate(neighbour) == MemOpStatus::kOk);
  for (std::uint32_t round = 0; round < 60; ++round) {
    const std::uint32_t pages = round < 58 ? round + 1 : 58;
    const auto op = inline_op(kFast, round, pages);
    REQUIRE(w.operate(op) == MemOpStatus::kOk);
    const auto reads = w.most_reads;
    for (unsigned port = 0; port < 2; ++port) {
      CHECK(w.one(access(op.key, op.va, 1, Access::kLocalRead), port) == S::kOk);
      CHECK(w.last_latency < 20);
      CHECK(w.one(access(op.key, op.va + op.length - 1, 1, Access::kLocalWrite), port) == S::kOk);
      CHECK(w.one(access(op.key, op.va + op.length - 1, 2, Access::kLocalWrite), port) == S::kBadRange);
      CHECK(w.one(access(op.key - 1, op.va, 1, Access::kLocalRead), port) == S::kBadTag);
    }
    CHECK(w.most_reads == reads);
    if (round == 0) CHECK(w.most_reads + w.misses + w.prefetches == 0);
    // Beside lines that come from the host, in any order.
    for (std::uint64_t page = 0; page < pages; ++page) {
      w.to_ask[page & 1].push_back(
          access(op.key, op.va + (op.first_offset ? 0 : 7) + (page << op.log_page), 1, Access::kRemoteRead));
      w.to_ask[page & 1].push_back(access(kRegion << 8 | 0x5a, mr.va + 4096 * page, 1, Access::kLocalRead));
      w.to_ask[page & 1].push_back(access(neighbour.key, neighbour.va + 4096 * page, 1, Access::kLocalRead));
    }
    w.finish();
    if (pages > 8) {
      auto open = bind(MemOpCode::kBindWindow2, kWindow << 8 | (2 + round), op.va + (3ull << op.log_page), 1);
      open.mr_key = op.key;
      open.length = (std::uint64_t{pages - 3} << op.log_page) - op.first_offset;
      REQUIRE(w.operate(open) == MemOpStatus::kOk);
      for (std::uint64_t page = 0; page < pages - 4; ++page)
        w.to_ask[page & 1].push_back(access(open.key, open.va + (page << op.log_page), 1, Access::kRemoteRead));
      w.finish();
      CHECK(w.operate(operation(MemOpCode::kInvalidate, op.key)) == MemOpStatus::kBadState);  // its lines stay
      REQUIRE(w.operate(operation(MemOpCode::kInvalidate, open.key)) == MemOpStatus::kOk);
    }
    REQUIRE(w.operate(operation(round % 2 ? MemOpCode::kInvalidate : MemOpCode::kInvalidateRemote, op.key),
                      round % 2) == MemOpStatus::kOk);
    CHECK(w.one(access(op.key, op.va, 1, Access::kLocalRead)) == S::kBadState);
  }
}

TEST_CASE("xlate: lines on chip do not wait for those that are on their way from the host", "[rtl]") {
  World w(seed());
  w.min_latency = w.max_latency = 5000;
  auto fmr = allocated(MptType::kFastRegion);
  fmr.list_line = hw::kListLines - 1;
  fmr.list_lines = 1;
  w.write(kFast, fmr);
  const auto mr = bindable();
  w.write(kRegion, mr);
  auto op = operation(MemOpCode::kFastRegister, kFast << 8 | 2);
  op.log_page = 12;
  op.page_count = 2;
  op.va = 0x5000;
  op.length = 8192;
  op.inline_list = 1;
  REQUIRE(w.operate(op) == MemOpStatus::kOk);
  w.to_ask[0].push_back(access(kRegion << 8 | 0x5a, mr.va, 1, Access::kLocalRead));
  w.bench.run(50);
  REQUIRE_FALSE(w.reads.empty());
  const auto before = w.answered[1];
  w.to_ask[1].push_back(access(op.key, 0x5000, 1, Access::kLocalRead));
  w.to_ask[1].push_back(access(op.key, 0x6000, 1, Access::kLocalRead));
  w.bench.run_until([&] { return w.answered[1] == before + 2; }, 60, "answers of the other port");
  w.finish();
  // Nor do they fail with one that could not be read.
  w.min_latency = w.max_latency = 50;
  for (const std::uint64_t line : {2, 3}) w.bad_lines.insert(mr.page_list + line * 64);  // and the one fetched ahead
  CHECK(w.one(access(kRegion << 8 | 0x5a, mr.va + 20 * 4096, 1, Access::kLocalRead)) == S::kPageListError);
  w.bench.run(200);
  REQUIRE(w.operate(operation(MemOpCode::kInvalidate, op.key)) == MemOpStatus::kOk);
  ++op.key;
  REQUIRE(w.operate(op) == MemOpStatus::kOk);
  CHECK(w.one(access(op.key, 0x5000, 1, Access::kLocalRead)) == S::kOk);
}

TEST_CASE(
    "xlate: drains of an operation and of the admin queue that begin together take turns, each waits for what was "
    "granted before it",
    "[rtl]") {
  World w(seed());
  auto& b = w.bench;
  const auto other = bindable(3);
  w.write(kRegion, other);
  w.write(kFast, allocated(MptType::kFastRegion));
  // The operation drains some cycles after it was taken: the admin queue's drain begins before, with it and after it.
  constexpr unsigned kMost = 30;
  for (unsigned step = 0; step < 2 * kMost; ++step) {
    auto op = operation(MemOpCode::kFastRegister, kFast << 8 | (2 + step));
    op.log_page = 12;
    op.page_count = 256;
    op.va = 0x7'0000'0000;
    op.length = 256ull << 12;
    op.page_list = 2ull << 40;
    op.local_write = 1;
    REQUIRE(w.operate(op) == MemOpStatus::kOk);
    w.retire_rate = 0;
    for (unsigned i = 0; i < 6; ++i) {
      w.to_ask[i & 1].push_back(access(op.key, op.va + b.uniform(0, op.length - 1), 1, Access::kLocalRead));
      w.to_ask[i & 1].push_back(
          access(kRegion << 8 | other.tag, other.va + b.uniform(0, other.length - 1), 1, Access::kLocalRead));
    }
    b.run(b.uniform(20, 300));
    w.retire_rate = 0.1;
    b.dut->mem_op_rsp_ready_i = 0;
    w.begin(0, operation(MemOpCode::kInvalidate, op.key));
    b.run(step < kMost ? step : 2 * kMost - 1 - step);
    w.drain();
    b.dut->mem_op_rsp_ready_i = 15;
    REQUIRE(w.end(0) == MemOpStatus::kOk);
    w.retire_rate = 1;
    w.finish();
    CHECK(w.one(access(op.key, op.va, 1, Access::kLocalRead)) == S::kBadState);
  }
}

TEST_CASE("xlate: an invalidation waits for what is under way under its key, and nobody waits for the invalidation",
          "[rtl]") {
  World w(seed());
  const auto mr = bindable(), other = bindable(3);
  w.write(kRegion, mr);
  w.write(kRegion + 1, other);
  w.write(kWindow, allocated(MptType::kWindow2));
  const std::uint32_t key = kWindow << 8 | 0x77;
  REQUIRE(w.operate(bind(MemOpCode::kBindWindow2, key, mr.va, 4096)) == MemOpStatus::kOk);
  w.retire_rate = 0;
  for (unsigned p = 0; p < 2; ++p) w.to_ask[p].push_back(access(key, mr.va, 64, Access::kRemoteRead));
  w.finish();
  REQUIRE(w.held[0].size() + w.held[1].size() == 2);
  w.begin(0, operation(MemOpCode::kInvalidate, key));
  w.bench.run(200);
  CHECK(w.op_answered == 0);
  // The key opens nothing any more; translations of others go on, and their DMA is not waited for.
  w.to_ask[0].push_back(access(key, mr.va, 64, Access::kRemoteRead));
  for (int i = 0; i < 50; ++i)
    w.to_ask[i & 1].push_back(
        access((kRegion + 1) << 8 | 0x5a, other.va + static_cast<std::uint64_t>(i) * 999, 1, Access::kLocalRead));
  w.finish();
  CHECK(w.by_status[S::kBadState] == 1);
  CHECK(w.op_answered == 0);
  const auto is_young = [&](const Held& h) { return h.req.key != key; };
  std::array<std::deque<Held>, 2> young;
  for (unsigned p = 0; p < 2; ++p) {
    std::copy_if(w.held[p].begin(), w.held[p].end(), std::back_inserter(young[p]), is_young);
    std::erase_if(w.held[p], is_young);
  }
  w.retire_rate = 1;
  CHECK(w.end(0, 20) == MemOpStatus::kOk);
  // The young ones end one drain of the admin queue and one of another operation, which take turns.
  w.held = young;
  w.retire_rate = 0;
  w.bench.dut->drain_valid_i = 1;
  w.begin(1, operation(MemOpCode::kDestroy, (kRegion + 1) << 8 | 0x5a));
  w.bench.run(200);
  CHECK_FALSE(w.drained);
  CHECK(w.op_answered == 0);
  w.retire_rate = 1;
  bool drained = false;
  w.bench.run_until(
      [&] {
        drained |= w.drained;
        if (drained) w.bench.dut->drain_valid_i = 0;
        return w.op_answered != 0;
      },
      500, "answer");
  CHECK(drained);
  w.end(1, 1);
  w.bench.dut->drain_valid_i = 0;
  w.drain();
}

TEST_CASE("xlate: a bind does not drop the cached page list of its region", "[rtl]") {
  World w(seed());
  const auto mr = bindable();
  w.write(kRegion, mr);
  w.write(kWindow, allocated(MptType::kWindow2));
  for (std::uint64_t page = 0; page < 60; ++page)
    w.one(access(kRegion << 8 | 0x5a, mr.va + page * 4096, 1, Access::kLocalRead));
  w.bench.run(300);
  const auto misses = w.misses;
  REQUIRE(w.operate(bind(MemOpCode::kBindWindow2, kWindow << 8 | 0x77, mr.va, 4096)) == MemOpStatus::kOk);
  REQUIRE(w.operate(operation(MemOpCode::kInvalidate, kWindow << 8 | 0x77)) == MemOpStatus::kOk);
  for (std::uint64_t page = 0; page < 60; ++page)
    CHECK(w.one(access(kRegion << 8 | 0x5a, mr.va + page * 4096, 1, Access::kLocalRead)) == S::kOk);
  CHECK(w.misses == misses);
}

TEST_CASE("xlate: random memory operations under random traffic on both ports", "[rtl]") {
  World w(seed());
  auto& b = w.bench;
  MemOpMaker maker(b.rng);
  for (std::uint32_t n = 0; n < MemOpMaker::kEntries; ++n) w.write(MemOpMaker::index(n), maker.fresh(n));
  const auto some = [&] {
    const auto index = MemOpMaker::index(static_cast<std::uint32_t>(b.uniform(0, MemOpMaker::kEntries - 1)));
    const auto& m = w.mpt[index];
    const std::uint64_t size = m.length ? m.length : 1, at = b.uniform(0, size - 1);
    auto r = access(index << 8 | m.tag, m.va + at, b.uniform(1, std::min<std::uint64_t>(size - at, 1u << 20)),
                    static_cast<Access>(b.uniform(0, 4)), m.qp);
    r.pd = m.pd;
    if (MemOpModel::is_window(m) && r.access < 2 && b.chance(0.9))
      r.access = static_cast<std::uint8_t>(b.uniform(2, 4));
    if (b.chance(0.03)) r.va += b.uniform(0, 1ull << 20);
    if (b.chance(0.02)) r.key ^= 1u << b.uniform(0, 31);
    if (b.chance(0.02)) r.pd ^= 3;
    if (b.chance(0.1)) r.qp = static_cast<std::uint8_t>(b.uniform(0, 2));
    if (b.chance(0.02)) r.length = static_cast<std::uint32_t>(b.uniform(1, 1u << 31));
    return r;
  };
  w.ask_rate = 0.5;
  w.ready_rate = {0.9, 0.7};
  w.retire_rate = 0.3;
  std::map<std::pair<int, int>, unsigned> outcomes;
  for (int round = 0; round < 4000; ++round) {
    for (unsigned p = 0; p < 2; ++p) {
      while (w.to_ask[p].size() < 20) w.to_ask[p].push_back(some());
    }
    if (b.chance(0.3)) b.run(b.uniform(1, 60));
    auto op = maker.next(w.keys());
    const auto target = w.mpt[(op.key >> 8) & kIndexMask];
    if (op.op <= static_cast<std::uint8_t>(MemOpCode::kBindWindow2) ||
        op.op == static_cast<std::uint8_t>(MemOpCode::kFastRegister)) {
      if ((op.key & 255) == target.tag) op.key ^= 1;  // the driver takes another tag each time
    }
    unsigned client = static_cast<unsigned>(b.uniform(0, 1));
    if (b.chance(0.04)) op = maker.make(MemOpCode::kDestroy, w.keys()), client = kAdmin;
    if (b.chance(0.02))
      op = operation(MemOpCode::kUnbindQp, 0, static_cast<unsigned>(b.uniform(0, 2))), client = kAdmin;
    ++outcomes[{op.op, int(w.operate(op, client))}];
    for (std::uint32_t n = 0; n < MemOpMaker::kEntries; ++n) {
      const auto index = MemOpMaker::index(n);
      if (w.mpt[index].state != static_cast<std::uint8_t>(MptState::kFree)) continue;
      w.drain();
      ++w.lists.version[std::uint64_t{n + 1} << 40];
      w.write(index, maker.fresh(n));
    }
    if (round % 100 == 0) {
      for (std::uint32_t n = 0; n < MemOpMaker::kEntries; ++n)
        REQUIRE(w.read(MemOpMaker::index(n)) == w.mpt[MemOpMaker::index(n)]);
    }
  }
  w.finish();
  for (int code = 0; code <= static_cast<int>(MemOpCode::kUnbindQp); ++code) CHECK(outcomes[{code, 0}] > 10);
  for (const auto status :
       {S::kOk, S::kBadIndex, S::kBadTag, S::kBadState, S::kBadPd, S::kBadQp, S::kBadAccess, S::kBadRange}) {
    INFO("status " << int(status));
    CHECK(w.by_status[status] > 50);
  }
  std::printf("xlate: %llu requests, %llu granted, beside 4000 memory operations\n",
              static_cast<unsigned long long>(w.requests), static_cast<unsigned long long>(w.by_status[S::kOk]));
}
