#include "tests/rtl/xlate_world.hpp"

// rtl/xlate: every status at its boundary, pages of every size, order, invalidation, drain, prefetch, misses in
// parallel, rate.
using namespace rnic;
using namespace rnic::test;
using World = XlateWorld;

TEST_CASE("xlate: every status at its boundary, the first failing check wins", "[rtl]") {
  World w(seed());
  const auto m = region(0x10000800, 0x3000, 12, 1);
  w.write(5, m);
  auto good = request(5, m, m.va, 1);
  CHECK(w.one(good) == XlateStatus::kOk);

  auto r = good;
  r.key |= 1u << 22;  // index beyond the table
  CHECK(w.one(r) == XlateStatus::kBadIndex);
  r = request(6, m, m.va, 1);  // never written
  CHECK(w.one(r) == XlateStatus::kBadIndex);
  r = good;
  r.key ^= 0x80;
  CHECK(w.one(r) == XlateStatus::kBadTag);
  r.pd = 8, r.va = 0;  // several faults: the tag comes first
  CHECK(w.one(r) == XlateStatus::kBadTag);
  r = good;
  r.pd = 7 | 1u << 23;
  r.access = static_cast<std::uint8_t>(Access::kRemoteWrite);
  CHECK(w.one(r) == XlateStatus::kBadPd);
  r = good;
  r.access = static_cast<std::uint8_t>(Access::kLocalWrite);
  r.va = 0;
  CHECK(w.one(r) == XlateStatus::kBadAccess);

  for (unsigned rights = 0; rights < 16; ++rights) {
    auto rm = m;
    rm.local_write = rights & 1;
    rm.remote_read = rights >> 1 & 1;
    rm.remote_write = rights >> 2 & 1;
    rm.read_sink = rights >> 3;
    w.write(5, rm);
    for (const auto& [access, needs] : {std::pair{Access::kLocalRead, 0u},
                                        {Access::kLocalWrite, 1u},
                                        {Access::kRemoteRead, 2u},
                                        {Access::kRemoteWrite, 4u}}) {
      CHECK(w.one(request(5, m, m.va, 1, access)) ==
            ((rights & needs) == needs ? XlateStatus::kOk : XlateStatus::kBadAccess));
    }
    // decisions 57: data of Reads goes where either right is
    CHECK(w.one(request(5, m, m.va, 1, Access::kLocalSink)) ==
          ((rights & 9u) != 0 ? XlateStatus::kOk : XlateStatus::kBadAccess));
  }

  w.write(5, m);
  const auto range = [&](std::uint64_t va, std::uint64_t length) { return w.one(request(5, m, va, length), va & 1); };
  CHECK(range(m.va, 0x3000) == XlateStatus::kOk);
  CHECK(range(m.va + 0x2fff, 1) == XlateStatus::kOk);
  CHECK(range(m.va + 0x2fff, 2) == XlateStatus::kBadRange);
  CHECK(range(m.va + 0x3000, 1) == XlateStatus::kBadRange);
  CHECK(range(m.va, 0x3001) == XlateStatus::kBadRange);
  CHECK(range(m.va - 1, 1) == XlateStatus::kBadRange);
  CHECK(range(m.va - 1, 0x3001) == XlateStatus::kBadRange);
  CHECK(range(m.va + 1, 0x80000000) == XlateStatus::kBadRange);
  CHECK(range(m.va + (1ull << 48), 1) == XlateStatus::kBadRange);
  CHECK(range(0, 1) == XlateStatus::kBadRange);
  CHECK(range(~0ull, 1) == XlateStatus::kBadRange);
  w.bench.run(10);
  CHECK(w.faults + w.by_status[XlateStatus::kOk] == w.requests);
}

TEST_CASE("xlate: ends of the address space", "[rtl]") {
  World w(seed());
  const auto top = region(~0ull - 0x2fff, 0x3000, 12, 1);  // ends at 2^64
  w.write(1, top);
  CHECK(w.one(request(1, top, top.va, 0x3000)) == XlateStatus::kOk);
  CHECK(w.one(request(1, top, ~0ull, 1)) == XlateStatus::kOk);
  CHECK(w.one(request(1, top, ~0ull, 2)) == XlateStatus::kBadRange);
  CHECK(w.one(request(1, top, top.va, 0x3001)) == XlateStatus::kBadRange);
  CHECK(w.one(request(1, top, top.va + 1, 0x80000000)) == XlateStatus::kBadRange);
  CHECK(w.one(request(1, top, 0, 1)) == XlateStatus::kBadRange);
  const auto zero = region(0, 0x2000, 12, 2);
  w.write(2, zero);
  CHECK(w.one(request(2, zero, 0, 0x2000)) == XlateStatus::kOk);
  CHECK(w.one(request(2, zero, 0x1fff, 2)) == XlateStatus::kBadRange);
  CHECK(w.one(request(2, zero, ~0ull, 2)) == XlateStatus::kBadRange);  // would wrap into it
  auto most = region(1ull << 46, 1ull << 47, 12, 3);                   // the longest region, unaligned
  most.va += 0x123;
  w.write(3, most);
  CHECK(w.one(request(3, most, most.va + (1ull << 47) - 1, 1)) == XlateStatus::kOk);
  CHECK(w.one(request(3, most, most.va + (1ull << 47) - 1, 2)) == XlateStatus::kBadRange);
  CHECK(w.one(request(3, most, most.va + (1ull << 46), 0x80000000)) == XlateStatus::kOk);
  auto round =
      region(~0ull - 0xfff, 0x3000, 12, 4);  // no such region is ever made: what lies beyond the end stays out of reach
  w.write(4, round);
  CHECK(w.one(request(4, round, round.va, 0x1000)) == XlateStatus::kOk);
  CHECK(w.one(request(4, round, round.va, 0x1001)) == XlateStatus::kBadRange);
  CHECK(w.one(request(4, round, 0, 1)) == XlateStatus::kBadRange);
  constexpr std::uint32_t kLast = (1u << hw::kMptIndexBits) - 1;
  CHECK(w.one(request(kLast, most, most.va, 1)) == XlateStatus::kBadIndex);
  w.write(kLast, most);
  CHECK(w.one(request(kLast, most, most.va, 1)) == XlateStatus::kOk);
  CHECK(w.read(kLast) == most);
  CHECK(w.read(3) == most);
  CHECK(w.read(6) == rtl::Mpt{});
}

TEST_CASE("xlate: pages of every size, first and last byte of a page", "[rtl]") {
  World w(seed());
  w.max_latency = 30;
  for (unsigned log = 12; log <= 30; ++log) {
    const std::uint64_t size = 1ull << log;
    const auto m = region((log * 0x100ull << 32) + size / 2 + 5, 40 * size + 3, log, log);
    w.write(log, m);
    for (const std::uint64_t page : {1, 2, 7, 8, 9, 15, 16, 31, 40}) {
      const std::uint64_t at = (m.va & ~(size - 1)) + page * size;
      w.to_ask[0].push_back(request(log, m, at, 1));
      w.to_ask[1].push_back(request(log, m, at - 1, 1));
      w.to_ask[0].push_back(request(log, m, at - 1, 2));
      w.to_ask[1].push_back(request(log, m, at - 100, 200));
      w.to_ask[0].push_back(request(log, m, at, std::min<std::uint64_t>(size / 2, 0x80000000)));
    }
    w.to_ask[0].push_back(request(log, m, m.va, 1));
    w.to_ask[1].push_back(request(log, m, m.va + m.length - 1, 1));
    w.finish();
  }
  CHECK(w.by_status.size() == 1);
}

TEST_CASE("xlate: random regions and accesses on both ports, with regions destroyed, drained and made anew", "[rtl]") {
  World w(seed());
  auto& b = w.bench;
  constexpr std::uint32_t kRegions = 24;
  const auto fresh = [&](std::uint32_t i) {
    const unsigned log = b.chance(0.7) ? 12 : static_cast<unsigned>(b.uniform(12, 30));
    auto m = region(b.chance(0.1) ? 0 : b.uniform(0, ~0ull >> 1), b.uniform(1, 200ull << 12), log, i + 1);
    m.tag = static_cast<std::uint8_t>(b.uniform(0, 255));
    m.local_write = b.chance(0.8);
    m.read_sink = b.chance(0.5);
    m.remote_read = b.chance(0.8);
    m.remote_write = b.chance(0.8);
    m.pd = static_cast<std::uint32_t>(b.uniform(1, 2));
    return m;
  };
  const auto slot = [](std::uint32_t i) { return i * 1365 % (1u << hw::kMptIndexBits); };
  std::array<rtl::Mpt, kRegions> regions;
  for (std::uint32_t i = 0; i < kRegions; ++i) w.write(slot(i), regions[i] = fresh(i));
  const auto some = [&] {
    const auto i = static_cast<std::uint32_t>(b.uniform(0, kRegions - 1));
    const auto& m = regions[i];
    const std::uint64_t at = b.uniform(0, m.length - 1);
    auto r = request(slot(i), m, m.va + at, b.uniform(1, std::min<std::uint64_t>(m.length - at, 1u << 20)),
                     static_cast<Access>(b.uniform(0, 5)));
    if (b.chance(0.03)) r.va += b.uniform(0, 1ull << 20);
    if (b.chance(0.02)) r.key ^= 1u << b.uniform(0, 31);
    if (b.chance(0.02)) r.pd ^= 3;
    if (b.chance(0.02)) r.length = static_cast<std::uint32_t>(b.uniform(1, 1u << 31));
    return r;
  };
  w.ask_rate = 0.5;
  w.ready_rate = {0.9, 0.7};
  w.retire_rate = 0.5;
  int drains = 0;
  for (int round = 0; round < 150; ++round) {
    for (int n = 0; n < 100; ++n) {
      w.to_ask[0].push_back(some());
      w.to_ask[1].push_back(some());
    }
    b.run(b.uniform(1, 300));
    const auto i = static_cast<std::uint32_t>(b.uniform(0, kRegions - 1));
    w.write(slot(i), rtl::Mpt{});
    w.drain();
    ++drains;
    // The driver may now use the page list for something else: nobody reads it any more.
    for (const auto& read : w.reads) REQUIRE(World::list_of(read.first) != regions[i].page_list);
    for (unsigned p = 0; p < 2; ++p) {
      for (const auto& h : w.held[p]) REQUIRE((h.req.key >> 8) != slot(i));
    }
    w.list_end.erase(regions[i].page_list);
    ++w.lists.version[regions[i].page_list];
    w.write(slot(i), regions[i] = fresh(i));
  }
  w.finish();
  CHECK(drains == 150);
  for (const auto status : {XlateStatus::kOk, XlateStatus::kBadIndex, XlateStatus::kBadTag, XlateStatus::kBadPd,
                            XlateStatus::kBadAccess, XlateStatus::kBadRange}) {
    CHECK(w.by_status[status] > 50);
  }
  b.run(100);
  CHECK(w.requests == w.answered[0] + w.answered[1]);
  CHECK(w.faults == w.requests - w.by_status[XlateStatus::kOk]);
  std::printf("xlate: %llu requests, %llu misses, %llu prefetches\n", static_cast<unsigned long long>(w.requests),
              static_cast<unsigned long long>(w.misses), static_cast<unsigned long long>(w.prefetches));
}

TEST_CASE("xlate: an entry rewritten over and over never answers from an old page list", "[rtl]") {
  World w(seed());
  w.min_latency = 1;
  w.max_latency = 40;
  const auto m = region(0x7000, 64 << 12, 12, 1), other = region(0x7000, 64 << 12, 12, 2);
  w.write(9, m);
  w.write(10, other);
  for (int i = 0; i < 1200; ++i) {
    for (int n = 0; n < 3; ++n) {
      w.to_ask[n & 1].push_back(request(9, m, m.va + w.bench.uniform(0, m.length - 1), 1));
      w.to_ask[0].push_back(request(10, other, other.va + w.bench.uniform(0, m.length - 1), 1));
    }
    w.bench.run(w.bench.uniform(0, 12));
    w.write(9, rtl::Mpt{});
    w.drain();
    ++w.lists.version[m.page_list];
    w.write(9, m);
  }
  w.finish();
}

TEST_CASE("xlate: an entry replaced while its lines are under way", "[rtl]") {
  World w(seed());
  w.min_latency = w.max_latency = 50;
  const auto a = region(0x7000, 64 << 12, 12, 1), b = region(0x7000, 64 << 12, 12, 2);
  w.write(9, a);
  for (int i = 0; i < 600; ++i) {
    const auto va = a.va + w.bench.uniform(0, a.length - 1);
    w.to_ask[0].push_back(request(9, a, va, 1));
    w.to_ask[1].push_back(request(9, a, va, 1));
    w.bench.run(w.bench.uniform(1, 80));
    w.write(9, i % 2 ? a : b);  // requests accepted before are answered from the old list, later ones from the new
    w.to_ask[0].push_back(request(9, a, va, 1));
    w.to_ask[1].push_back(request(9, a, va, 1));
  }
  w.finish();
  w.drain();
}

TEST_CASE("xlate: lines of an entry do not come back to life after any number of writes to it", "[rtl]") {
  World w(seed());
  const auto m = region(0x7000, 64 << 12, 12, 1);
  for (int writes = 250; writes <= 260; ++writes) {
    w.write(9, m);
    CHECK(w.one(request(9, m, m.va, 1)) == XlateStatus::kOk);
    w.bench.run(300);
    ++w.lists.version[m.page_list];
    for (int i = 0; i < writes; ++i) w.write(9, m);
    CHECK(w.one(request(9, m, m.va, 1)) == XlateStatus::kOk);
    CHECK(w.one(request(9, m, m.va + (8 << 12), 1)) == XlateStatus::kOk);
  }
}

TEST_CASE(
    "xlate: a request at any moment of the prefetch of its line, answered when the place of the line has been used "
    "again",
    "[rtl]") {
  World w(seed());
  const auto m = region(0x100000, 64 << 12, 12, 1), big = region(0, 1ull << 40, 12, 2);
  w.write(2, big);
  for (std::uint64_t delay = 0; delay < 240; ++delay) {
    w.min_latency = w.max_latency = 30;
    ++w.lists.version[m.page_list];
    w.write(1, m);
    w.ready_rate = {1, 0};
    for (int n = 0; n < 3; ++n) w.to_ask[1].push_back(request(3, m, 0, 1));  // fill the output of port 1
    w.bench.run(10);
    w.to_ask[0].push_back(request(1, m, m.va, 1));
    w.bench.run(delay / 4);
    w.to_ask[1].push_back(request(1, m, m.va + (8 << 12), 1));
    w.bench.run(10);
    for (int n = 0; n < 8; ++n) w.to_ask[0].push_back(request(2, big, w.bench.uniform(0, big.length - 1), 1));
    w.bench.run_until([&] { return w.to_ask[0].empty() && w.asked[0].empty(); }, 1000, "answers of port 0");
    w.ready_rate = {1, 1};
    w.finish(1000);
    w.drain();
  }
}

TEST_CASE("xlate: a page list that cannot be read", "[rtl]") {
  World w(seed());
  const auto m = region(0x100000, 64 << 12, 12, 1);
  w.write(1, m);
  w.bad_lines = {m.page_list + 64};
  CHECK(w.one(request(1, m, m.va, 1)) == XlateStatus::kOk);
  CHECK(w.one(request(1, m, m.va + (8 << 12), 1)) == XlateStatus::kPageListError);
  CHECK(w.one(request(1, m, m.va + (15 << 12), 1), 1) == XlateStatus::kPageListError);
  CHECK(w.one(request(1, m, m.va + (16 << 12), 1)) == XlateStatus::kOk);
  w.bench.run(300);
  w.bad_lines.clear();
  CHECK(w.one(request(1, m, m.va + (8 << 12), 1)) == XlateStatus::kOk);  // a failed line is not kept
  w.drain();
}

TEST_CASE("xlate: a drain waits for the old answers only", "[rtl]") {
  World w(seed());
  const auto m = region(0x100000, 64 << 12, 12, 1);
  w.write(1, m);
  w.drain(10);  // nothing under way
  w.retire_rate = 0;
  for (int i = 0; i < 5; ++i) w.to_ask[i & 1].push_back(request(1, m, m.va, 1));
  w.finish();
  w.bench.dut->drain_valid_i = 1;
  w.bench.run(300);
  CHECK_FALSE(w.drained);
  for (int i = 0; i < 5; ++i) w.to_ask[i & 1].push_back(request(1, m, m.va, 1));
  w.finish();
  // Hand back the old ones; the last of them ends the drain although new ones are held.
  std::array<std::deque<Held>, 2> young;
  const auto old = w.held[0].front().epoch;
  int left = 0;
  for (unsigned p = 0; p < 2; ++p) {
    std::deque<Held> aged;
    for (const auto& h : w.held[p]) (h.epoch == old ? aged : young[p]).push_back(h);
    left += static_cast<int>(aged.size());
    w.held[p] = aged;
  }
  CHECK(left == 5);
  CHECK(young[0].size() + young[1].size() == 5);
  w.retire_rate = 0.2;
  while (!w.held[0].empty() || !w.held[1].empty()) {
    CHECK_FALSE(w.drained);
    w.bench.tick();
  }
  w.held = young;
  w.retire_rate = 0;
  w.bench.run_until([&] { return w.drained; }, 5, "drain");
  w.bench.dut->drain_valid_i = 0;
  w.retire_rate = 1;
  w.bench.run(20);
  w.drain();
}

TEST_CASE("xlate: prefetch stays ahead of a sequential walk and within the page list", "[rtl]") {
  World w(seed());
  w.min_latency = w.max_latency = 100;
  const auto m = region(0x100800, 100 << 12, 12, 1);  // 101 pages, 13 lines
  w.write(1, m);
  for (std::uint64_t at = 0; at < m.length; at += 2048) {
    w.to_ask[0].push_back(request(1, m, m.va + at, 2048));
    w.finish();
    w.bench.run(40);
  }
  CHECK(w.misses == 1);
  CHECK(w.prefetches == 12);
}

TEST_CASE("xlate: rate and latency, misses in parallel, ports apart", "[rtl]") {
  World w(seed());
  w.min_latency = w.max_latency = 125;
  const auto m = region(0x100000, 64 << 12, 12, 1), big = region(0, 1ull << 40, 12, 2);
  w.write(1, m);
  w.write(2, big);
  for (int i = 0; i < 64; ++i) w.one(request(1, m, m.va + (static_cast<std::uint64_t>(i) << 12), 1));
  w.bench.run(300);
  w.one(request(1, m, m.va, 1));
  std::printf("xlate: hit %llu cycles", static_cast<unsigned long long>(w.last_latency));
  CHECK(w.last_latency <= 5);
  auto misses = w.misses;
  for (int i = 0; i < 1000; ++i) {
    for (unsigned p = 0; p < 2; ++p) w.to_ask[p].push_back(request(1, m, m.va + w.bench.uniform(0, m.length - 1), 1));
  }
  auto start = w.bench.cycle;
  w.finish();
  const double hits = 2000.0 / static_cast<double>(w.bench.cycle - start);
  CHECK(w.misses == misses);
  CHECK(hits > 0.95);
  // Misses at random places of a region too large for the TLB.
  for (int i = 0; i < 200; ++i) w.to_ask[1].push_back(request(2, big, w.bench.uniform(0, big.length - 1), 1));
  w.most_reads = 0;
  start = w.bench.cycle;
  const auto before = w.answered[0];
  // Port 0 goes on with its hits meanwhile.
  for (int i = 0; i < 2000; ++i) w.to_ask[0].push_back(request(1, m, m.va + w.bench.uniform(0, m.length - 1), 1));
  w.bench.run(2200);
  CHECK(w.answered[0] - before == 2000);
  w.finish();
  std::printf(
      ", %.2f hits a cycle, a random miss every %.1f cycles at a round trip of 125, at most %zu lines under way\n",
      hits, static_cast<double>(w.bench.cycle - start) / 200, w.most_reads);
  CHECK(w.bench.cycle - start < 200 * 30);
  CHECK(w.most_reads >= 6);
  // A port that does not take its answers holds up only itself, misses or not.
  w.ready_rate = {0, 1};
  for (int i = 0; i < 40; ++i) w.to_ask[0].push_back(request(2, big, w.bench.uniform(0, big.length - 1), 1));
  for (int i = 0; i < 100; ++i) w.to_ask[1].push_back(request(2, big, w.bench.uniform(0, big.length - 1), 1));
  const auto at = w.answered[1];
  w.bench.run_until([&] { return w.answered[1] == at + 100; }, 10000, "answers of port 1");
  w.ready_rate = {1, 1};
  w.finish();
}
