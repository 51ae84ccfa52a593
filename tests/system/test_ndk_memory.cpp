// The Network Direct kernel provider interface: rights and ranges of regions, windows and mappings, and what becomes of
// the page lists of fast registrations (docs/ndk.md).
#include <catch2/catch.hpp>

#include "tests/system/ndk_world.hpp"

using namespace rnic;
using namespace rnic::test;

TEST_CASE("NDK: the rights of a registered region are those that it was registered with") {
  with_pair("ndk_rights", [](NdkPair& p) {
    constexpr ULONG kRemoteBit = NDK_MR_FLAG_ALLOW_REMOTE_WRITE & ~NDK_MR_FLAG_ALLOW_LOCAL_WRITE;
    NDK_MR* const source = p.a.make_mr(false);
    REQUIRE(p.a.register_mr(source, p.a.memory, 4096, NDK_MR_FLAG_ALLOW_REMOTE_READ) == STATUS_SUCCESS);
    struct Row {
      ULONG flags;
      bool read, written, received, sink;  // by the peer, by the peer, a Receive, an own Read
    };
    for (const Row& row :
         {Row{0, false, false, false, false}, Row{NDK_MR_FLAG_ALLOW_LOCAL_WRITE, false, false, true, true},
          Row{NDK_MR_FLAG_ALLOW_REMOTE_READ, true, false, false, false},
          Row{NDK_MR_FLAG_ALLOW_REMOTE_WRITE, false, true, true, true}, Row{kRemoteBit, false, true, true, true},
          Row{NDK_MR_FLAG_RDMA_READ_SINK, false, false, false, true}}) {
      INFO("flags " << row.flags);
      NDK_MR* const mr = p.b.make_mr(false);
      REQUIRE(p.b.register_mr(mr, p.b.memory, 4096, row.flags) == STATUS_SUCCESS);
      const NDK_SGE in = NdkEnd::sge(address_of(p.b.memory), 64, p.token(mr)), from = p.local(p.a, 64);
      const std::uint64_t there = address_of(p.b.memory);
      const auto expected = [](bool may) { return may ? STATUS_SUCCESS : STATUS_ACCESS_VIOLATION; };
      // What is refused ends the queue pair.
      {
        const MorePairs pairs(p, 8);
        REQUIRE(pairs.a->Dispatch->NdkRead(pairs.a, nullptr, &from, 1, there, NdkPair::remote(mr), 0) ==
                STATUS_SUCCESS);
        CHECK(p.a.status() == expected(row.read));
      }
      {
        const MorePairs pairs(p, 8);
        REQUIRE(pairs.a->Dispatch->NdkWrite(pairs.a, nullptr, &from, 1, there, NdkPair::remote(mr), 0) ==
                STATUS_SUCCESS);
        CHECK(p.a.status() == expected(row.written));
      }
      {
        const MorePairs pairs(p, 8);
        REQUIRE(receive(pairs.b, in) == STATUS_SUCCESS);
        REQUIRE(send(pairs.a, from, NDK_OP_FLAG_SILENT_SUCCESS) == STATUS_SUCCESS);
        CHECK(p.b.status() == expected(row.received));
        if (!row.received) CHECK(FAILED(p.a.status()));
      }
      {
        const MorePairs pairs(p, 8);
        REQUIRE(pairs.b->Dispatch->NdkRead(pairs.b, nullptr, &in, 1, address_of(p.a.memory), NdkPair::remote(source),
                                           0) == STATUS_SUCCESS);
        CHECK(p.b.status() == expected(row.sink));
      }
      p.b.host.close(mr);
    }
    p.a.host.close(source);
  });
}

TEST_CASE("NDK: windows lie in their region, registered or fast; under one it stays") {
  with_pair("ndk_window_ranges", [](NdkPair& p) {
    NDK_MW* const mw = p.b.host.make<NDK_MW>(
        [&](auto cb, auto ctx, auto out) { return p.b.pd->Dispatch->NdkCreateMw(p.b.pd, cb, ctx, out); });
    const auto bind = [&](NDK_MR* mr, std::uint64_t at, SIZE_T length, ULONG flags = NDK_OP_FLAG_ALLOW_REMOTE_READ) {
      return p.b.qp->Dispatch->NdkBind(p.b.qp, nullptr, mr, mw, reinterpret_cast<const void*>(at), length, flags);
    };
    const std::uint64_t first = address_of(p.b.memory);
    CHECK(bind(p.mr_b, first - 1, 16) == STATUS_ACCESS_VIOLATION);
    CHECK(bind(p.mr_b, first - 4096, 16) == STATUS_ACCESS_VIOLATION);
    CHECK(bind(p.mr_b, first + NdkEnd::kBytes + 1, 16) == STATUS_ACCESS_VIOLATION);
    CHECK(bind(p.mr_b, first + NdkEnd::kBytes - 15, 16) == STATUS_ACCESS_VIOLATION);
    // One right does not bring the other.
    for (const bool writes : {false, true}) {
      const MorePairs pairs(p, 8);
      const NDK_SGE here = p.local(p.a, 16);
      REQUIRE(pairs.b->Dispatch->NdkBind(pairs.b, nullptr, p.mr_b, mw, p.b.memory, 16,
                                         writes ? NDK_OP_FLAG_ALLOW_REMOTE_WRITE : NDK_OP_FLAG_ALLOW_REMOTE_READ) ==
              STATUS_SUCCESS);
      CHECK(p.b.status() == STATUS_SUCCESS);
      CHECK(p.b.deregister(p.mr_b) == STATUS_DEVICE_BUSY);
      const UINT32 token = mw->Dispatch->NdkGetRemoteTokenFromMw(mw);
      const auto access = [&](bool write) {
        REQUIRE((write ? pairs.a->Dispatch->NdkWrite(pairs.a, nullptr, &here, 1, first, token, 0)
                       : pairs.a->Dispatch->NdkRead(pairs.a, nullptr, &here, 1, first, token, 0)) == STATUS_SUCCESS);
        return p.a.status();
      };
      CHECK(access(writes) == STATUS_SUCCESS);
      CHECK(access(!writes) == STATUS_ACCESS_VIOLATION);
    }
    // The end of the queue pair that has bound it has unbound it (decisions 56).
    // A fast registration has the range that it was registered with.
    NDK_MR* const fast = p.b.make_mr(true);
    REQUIRE(p.b.initialize(fast, 4) == STATUS_SUCCESS);
    CHECK(bind(fast, 0, 0) == STATUS_ACCESS_VIOLATION);
    auto lam = p.b.build_lam(p.b.memory, PAGE_SIZE);
    REQUIRE(p.b.fast_register(fast, lam.pages(), 0, 100, 0x5000, NDK_OP_FLAG_ALLOW_REMOTE_READ) == STATUS_SUCCESS);
    CHECK(p.b.status() == STATUS_SUCCESS);
    CHECK(bind(fast, 0x5000, 101) == STATUS_ACCESS_VIOLATION);
    CHECK(bind(fast, first, 16) == STATUS_ACCESS_VIOLATION);
    CHECK(bind(fast, 0x5000, 100, NDK_OP_FLAG_ALLOW_REMOTE_WRITE) == STATUS_ACCESS_VIOLATION);
    CHECK(bind(fast, 0x5000, 100) == STATUS_SUCCESS);
    CHECK(p.b.status() == STATUS_SUCCESS);
    // Through another queue pair it is not to be invalidated, and stays bound (decisions 53).
    {
      const MorePairs pairs(p, 8);
      REQUIRE(pairs.b->Dispatch->NdkInvalidate(pairs.b, nullptr, &mw->Header, 0) == STATUS_SUCCESS);
      CHECK(p.b.status() == STATUS_INVALID_DEVICE_REQUEST);
    }
    REQUIRE(p.b.invalidate(mw->Header) == STATUS_SUCCESS);
    CHECK(p.b.status() == STATUS_SUCCESS);
    p.b.release(lam);
    p.b.host.close(fast);
    // As it was before it was refused.
    CHECK(p.b.deregister(p.mr_b) == STATUS_SUCCESS);
    CHECK(bind(p.mr_b, first, 16) == STATUS_ACCESS_VIOLATION);
    // One that is not bound is not, and neither is that of another domain.
    NDK_PD* const other = p.b.host.make<NDK_PD>(
        [&](auto cb, auto ctx, auto out) { return p.b.a->Dispatch->NdkCreatePd(p.b.a, cb, ctx, out); });
    NDK_MW* const foreign = p.b.host.make<NDK_MW>(
        [&](auto cb, auto ctx, auto out) { return other->Dispatch->NdkCreateMw(other, cb, ctx, out); });
    for (NDK_MW* const wrong : {mw, foreign}) {
      const MorePairs pairs(p, 8);
      REQUIRE(pairs.b->Dispatch->NdkInvalidate(pairs.b, nullptr, &wrong->Header, 0) == STATUS_SUCCESS);
      CHECK(p.b.status() == STATUS_INVALID_DEVICE_REQUEST);
    }
    p.b.host.close(foreign);
    p.b.host.close(other);
    p.b.host.close(mw);
  });
}

TEST_CASE("NDK: a Read that is to invalidate what is no registration fails as an invalidation does") {
  with_pair("ndk_read_invalidates_region", [](NdkPair& p) {
    NDK_MR* const open = p.b.make_mr(false);
    REQUIRE(p.b.register_mr(open, p.b.memory, 4096, NDK_MR_FLAG_ALLOW_REMOTE_READ) == STATUS_SUCCESS);
    REQUIRE(p.a.read(p.local(p.a, 64), address_of(p.b.memory), NdkPair::remote(open),
                     NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE, &p) == STATUS_SUCCESS);
    const auto got = p.a.result();
    CHECK(got.Status == STATUS_INVALID_DEVICE_REQUEST);
    CHECK(got.Type == NdkOperationTypeRead);
    CHECK(got.RequestContext == &p);
    CHECK(p.a.empty());
    p.b.host.close(open);
  });
}

TEST_CASE("NDK: page lists of registrations that did not come to be, or that ended silently, are used again") {
  with_pair("ndk_page_lists", [](NdkPair& p) {
    NDK_MR* const mr = p.a.make_mr(true);
    REQUIRE(p.a.initialize(mr, 4, false) == STATUS_SUCCESS);
    auto lam = p.a.build_lam(p.a.memory + 8192, 2 * PAGE_SIZE);
    const auto enter = [&](NDK_QP* qp, ULONG flags) {
      return qp->Dispatch->NdkFastRegister(qp, nullptr, mr, 2, lam->AdapterPageArray, 0, 8192, nullptr, flags);
    };
    constexpr ULONG kQuiet = NDK_OP_FLAG_SILENT_SUCCESS;
    // Registered and invalidated without a word, many times over.
    for (int i = 0; i < 20; ++i) {
      REQUIRE(enter(p.a.qp, kQuiet) == STATUS_SUCCESS);
      REQUIRE(p.a.invalidate(mr->Header, kQuiet) == STATUS_SUCCESS);
      p.a.host.endpoint().device().elapse(20'000);
    }
    // Not posted, because the queue is full.
    {
      MorePairs pairs(p, 8);
      const NDK_SGE none = p.local(p.a, 0);
      for (int i = 0; i < 16; ++i)
        REQUIRE(pairs.a->Dispatch->NdkWrite(pairs.a, nullptr, &none, 1, 0, 0, NDK_OP_FLAG_DEFER | kQuiet) ==
                STATUS_SUCCESS);
      for (int i = 0; i < 20; ++i) REQUIRE(enter(pairs.a, 0) == STATUS_NO_MORE_ENTRIES);
      CHECK(p.a.empty());
    }
    // Posted to a queue pair that has been flushed.
    {
      MorePairs pairs(p, 8);
      pairs.a->Dispatch->NdkFlush(pairs.a);
      p.a.host.endpoint().device().elapse(100'000);
      for (int i = 0; i < 20; ++i) {
        REQUIRE(enter(pairs.a, 0) == STATUS_SUCCESS);
        CHECK(p.a.status() == STATUS_CANCELLED);
      }
    }
    REQUIRE(enter(p.a.qp, 0) == STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_SUCCESS);
    p.a.release(lam);
    p.a.host.close(mr);
  });
}

TEST_CASE("NDK: a mapping is open in domains that are made behind it, and no farther than it is long") {
  with_pair("ndk_mapping", [](NdkPair& p) {
    UINT32 token = 0;
    p.a.pd->Dispatch->NdkGetPrivilegedMemoryRegionToken(p.a.pd, &token);
    auto lam = p.a.build_lam(p.a.memory, 2 * PAGE_SIZE);
    const auto pages = lam.pages();
    NDK_PD* const second = p.a.host.make<NDK_PD>(
        [&](auto cb, auto ctx, auto out) { return p.a.a->Dispatch->NdkCreatePd(p.a.a, cb, ctx, out); });
    NDK_PD* const first = std::exchange(p.a.pd, second);
    {
      MorePairs pairs(p, 8);
      REQUIRE(receive(pairs.b, p.local(p.b, 4096)) == STATUS_SUCCESS);
      REQUIRE(send(pairs.a, NdkEnd::sge(pages[1], 4096, token), 0) == STATUS_SUCCESS);
      CHECK(p.a.status() == STATUS_SUCCESS);
      CHECK(p.b.result().BytesTransferred == 4096);
    }
    p.a.pd = first;
    p.a.host.close(second);
    REQUIRE(send(p.a.qp, NdkEnd::sge(pages[1], PAGE_SIZE + 1, token), 0) == STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_ACCESS_VIOLATION);
    p.a.release(lam);
  });
}
