// The Network Direct kernel provider interface: what calls refuse at once, and what flags of requests mean
// (NDKPI "NDK_FN_*", docs/ndk.md).
#include <catch2/catch.hpp>

#include <utility>

#include "tests/system/ndk_world.hpp"

using namespace rnic;
using namespace rnic::test;

namespace {

constexpr ULONG kInvalidateSink = NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE;

/// For calls that must not pend.
void never(PVOID, NTSTATUS) { FAIL("called back"); }
void never_made(PVOID, NTSTATUS, NDK_OBJECT_HEADER*) { FAIL("called back"); }

NDK_ADAPTER_INFO info_of(NDK_ADAPTER* a) {
  NDK_ADAPTER_INFO info{};
  ULONG size = sizeof info;
  REQUIRE(a->Dispatch->NdkQueryAdapterInfo(a, &info, &size) == STATUS_SUCCESS);
  return info;
}

}  // namespace

TEST_CASE("NDK: a queue has at most what the adapter says, and as much as that") {
  with_ndk_endpoints(fresh_world(WorldOptions::from_environment("ndk_limits")), [](Endpoint& host, Endpoint&) {
    NdkEnd end(host);
    const NDK_ADAPTER_INFO info = info_of(end.a);
    struct Limits {
      ULONG receives, requests, receive_sge, request_sge, inline_bytes;
    };
    const Limits most{info.MaxReceiveQueueDepth, info.MaxInitiatorQueueDepth, info.MaxReceiveRequestSge,
                      info.MaxInitiatorRequestSge, info.MaxInlineDataSize};
    for (ULONG Limits::*one :
         {&Limits::receives, &Limits::requests, &Limits::receive_sge, &Limits::request_sge, &Limits::inline_bytes}) {
      Limits more{1, 1, 1, 1, 0};
      more.*one = most.*one + 1;
      CHECK(end.pd->Dispatch->NdkCreateQp(end.pd, end.cq, end.cq, nullptr, more.receives, more.requests,
                                          more.receive_sge, more.request_sge, more.inline_bytes, never_made, nullptr,
                                          nullptr) == STATUS_INVALID_PARAMETER);
    }
    NDK_QP* const qp = end.host.make<NDK_QP>([&](auto cb, auto ctx, auto out) {
      return end.pd->Dispatch->NdkCreateQp(end.pd, end.cq, end.cq, nullptr, most.receives, most.requests, 1, 1, 0, cb,
                                           ctx, out);
    });
    end.host.close(qp);
    const auto create_cq = [&](ULONG depth) {
      return end.a->Dispatch->NdkCreateCq(end.a, depth, nullptr, nullptr, nullptr, never_made, nullptr, nullptr);
    };
    CHECK(create_cq(0) == STATUS_INVALID_PARAMETER);
    CHECK(create_cq(info.MaxCqDepth + 1) == STATUS_INVALID_PARAMETER);
    end.host.close(end.make_cq(info.MaxCqDepth));
    const auto resize = [&](ULONG depth) { return end.cq->Dispatch->NdkResizeCq(end.cq, depth, never, nullptr); };
    CHECK(resize(0) == STATUS_INVALID_PARAMETER);
    CHECK(resize(info.MaxCqDepth + 1) == STATUS_INVALID_PARAMETER);
    const auto create_srq = [&](ULONG depth) {
      return end.pd->Dispatch->NdkCreateSrq(end.pd, depth, 1, 0, nullptr, nullptr, nullptr, never_made, nullptr,
                                            nullptr);
    };
    CHECK(create_srq(0) == STATUS_INVALID_PARAMETER);
    CHECK(create_srq(info.MaxSrqDepth + 1) == STATUS_INVALID_PARAMETER);
    CHECK(end.pd->Dispatch->NdkCreateSrq(end.pd, 8, info.MaxReceiveRequestSge + 1, 0, nullptr, nullptr, nullptr,
                                         never_made, nullptr, nullptr) == STATUS_INVALID_PARAMETER);
    CHECK(end.pd->Dispatch->NdkCreateSrq(end.pd, 8, 1, 9, nullptr, nullptr, nullptr, never_made, nullptr, nullptr) ==
          STATUS_INVALID_PARAMETER);
    NDK_SRQ* const srq = end.host.make<NDK_SRQ>([&](auto cb, auto ctx, auto out) {
      return end.pd->Dispatch->NdkCreateSrq(end.pd, 8, 1, 0, nullptr, nullptr, nullptr, cb, ctx, out);
    });
    CHECK(srq->Dispatch->NdkModifySrq(srq, info.MaxSrqDepth + 1, 0, never, nullptr) == STATUS_INVALID_PARAMETER);
    CHECK(srq->Dispatch->NdkModifySrq(srq, 0, info.MaxSrqDepth + 1, never, nullptr) == STATUS_INVALID_PARAMETER);
    CHECK(srq->Dispatch->NdkSrqReceive(srq, nullptr, nullptr, 1) == STATUS_INVALID_PARAMETER);
    end.host.close(srq);
    NDK_MR* const fast = end.make_mr(true);
    CHECK(fast->Dispatch->NdkInitializeFastRegisterMr(fast, 0, false, never, nullptr) == STATUS_INVALID_PARAMETER);
    end.host.close(fast);
    CHECK(end.a->Dispatch->NdkCreateListener(end.a, nullptr, nullptr, never_made, nullptr, nullptr) ==
          STATUS_INVALID_PARAMETER);
    // No bytes are no memory.
    NDK_MR* const mr = end.make_mr(false);
    MDL mdl = mdl_of(end.memory, 4096);
    CHECK(mr->Dispatch->NdkRegisterMr(mr, &mdl, 0, 0, never, nullptr) == STATUS_INVALID_PARAMETER);
    CHECK(mr->Dispatch->NdkRegisterMr(mr, nullptr, 4096, 0, never, nullptr) == STATUS_INVALID_PARAMETER);
    end.host.close(mr);
  });
}

TEST_CASE("NDK: a request has the flags of its kind, and all that it needs, before the connection is looked at") {
  with_ndk_endpoints(fresh_world(WorldOptions::from_environment("ndk_flags")), [](Endpoint& host, Endpoint&) {
    NdkEnd end(host);
    NDK_MR* const fast = end.make_mr(true);
    NDK_MR* const plain = end.make_mr(false);
    NDK_MW* const mw = end.host.make<NDK_MW>(
        [&](auto cb, auto ctx, auto out) { return end.pd->Dispatch->NdkCreateMw(end.pd, cb, ctx, out); });
    const NDK_QP_DISPATCH& call = *end.qp->Dispatch;
    NDK_QP* const qp = end.qp;
    const NDK_SGE sge = NdkEnd::sge(address_of(end.memory), 8, 0);
    const NDK_LOGICAL_ADDRESS page = 4096;
    constexpr ULONG kCommon = NDK_OP_FLAG_SILENT_SUCCESS | NDK_OP_FLAG_READ_FENCE | NDK_OP_FLAG_DEFER;
    constexpr ULONG kSend = kCommon | NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT | NDK_OP_FLAG_INLINE;
    for (unsigned bit = 0; bit < 32; ++bit) {
      const ULONG flag = 1U << bit;
      INFO("flag " << flag);
      const auto expected = [&](ULONG known) {
        return (flag & known) != 0 ? STATUS_CONNECTION_INVALID : STATUS_INVALID_PARAMETER;
      };
      CHECK(call.NdkSend(qp, nullptr, &sge, 1, flag) == expected(kSend));
      CHECK(call.NdkSendAndInvalidate(qp, nullptr, &sge, 1, flag, 0) == expected(kSend));
      CHECK(call.NdkWrite(qp, nullptr, &sge, 1, 0, 0, flag) == expected(kCommon | NDK_OP_FLAG_INLINE));
      CHECK(call.NdkRead(qp, nullptr, &sge, 1, 0, 0, flag) == expected(kCommon | kInvalidateSink));
      CHECK(call.NdkInvalidate(qp, nullptr, &mw->Header, flag) == expected(kCommon));
    }
    for (const auto refused :
         {call.NdkSend(qp, nullptr, nullptr, 1, 0), call.NdkWrite(qp, nullptr, nullptr, 1, 0, 0, 0),
          call.NdkRead(qp, nullptr, nullptr, 1, 0, 0, 0), call.NdkReceive(qp, nullptr, nullptr, 1),
          call.NdkBind(qp, nullptr, nullptr, mw, end.memory, 8, 0),
          call.NdkBind(qp, nullptr, plain, nullptr, end.memory, 8, 0),
          call.NdkFastRegister(qp, nullptr, nullptr, 1, &page, 0, 8, nullptr, 0),
          call.NdkFastRegister(qp, nullptr, fast, 1, nullptr, 0, 8, nullptr, 0),
          call.NdkInvalidate(qp, nullptr, nullptr, 0)})
      CHECK(refused == STATUS_INVALID_PARAMETER);
    CHECK(call.NdkBind(qp, nullptr, plain, mw, end.memory, 8, 0) == STATUS_CONNECTION_INVALID);
    CHECK(call.NdkFastRegister(qp, nullptr, plain, 1, &page, 0, 8, nullptr, 0) == STATUS_INVALID_DEVICE_REQUEST);
    CHECK(call.NdkInvalidate(qp, nullptr, &plain->Header, 0) == STATUS_INVALID_DEVICE_REQUEST);
    CHECK(call.NdkInvalidate(qp, nullptr, &end.cq->Header, 0) == STATUS_INVALID_DEVICE_REQUEST);
    end.host.close(mw);
    end.host.close(fast);
    end.host.close(plain);
  });
}

TEST_CASE("NDK: what a result says of bytes, and what has none") {
  with_pair("ndk_results", [](NdkPair& p) {
    REQUIRE(receive(p.b.qp, p.local(p.b, 64)) == STATUS_SUCCESS);
    REQUIRE(send(p.a.qp, p.local(p.a, 32), 0) == STATUS_SUCCESS);
    CHECK(p.a.result().BytesTransferred == 0);
    CHECK(p.b.result().BytesTransferred == 32);
    // Silent: nothing at all.
    REQUIRE(receive(p.b.qp, p.local(p.b, 64)) == STATUS_SUCCESS);
    REQUIRE(send(p.a.qp, p.local(p.a, 16), NDK_OP_FLAG_SILENT_SUCCESS) == STATUS_SUCCESS);
    CHECK(p.b.result().BytesTransferred == 16);
    CHECK(p.a.empty());
    // Too long for its Receive: the receiver is not told how long.
    REQUIRE(receive(p.b.qp, p.local(p.b, 16)) == STATUS_SUCCESS);
    REQUIRE(send(p.a.qp, p.local(p.a, 32), 0) == STATUS_SUCCESS);
    const auto failed = p.b.result();
    CHECK(failed.Status == STATUS_BUFFER_OVERFLOW);
    CHECK(failed.BytesTransferred == 0);
    CHECK(failed.ProviderErrorCode != 0);
    CHECK(p.a.status() == STATUS_DATA_OVERRUN);
  });
}

TEST_CASE("NDK: a request of too many segments, or of too many bytes, is refused and does no harm") {
  with_pair("ndk_too_much", [](NdkPair& p) {
    std::vector<NDK_SGE> many(17, p.local(p.a, 1));
    CHECK(p.a.qp->Dispatch->NdkSend(p.a.qp, nullptr, many.data(), 17, 0) == STATUS_DATA_OVERRUN);
    CHECK(p.a.qp->Dispatch->NdkReceive(p.a.qp, nullptr, many.data(), 17) == STATUS_DATA_OVERRUN);
    // The number is validated before the list is read.
    const auto* const nothing = reinterpret_cast<const NDK_SGE*>(16);
    for (const ULONG flags : {ULONG{0}, ULONG{NDK_OP_FLAG_INLINE}})
      CHECK(p.a.qp->Dispatch->NdkSend(p.a.qp, nullptr, nothing, 0xFFFFFFFF, flags) == STATUS_DATA_OVERRUN);
    CHECK(p.a.qp->Dispatch->NdkReceive(p.a.qp, nullptr, nothing, 0xFFFFFFFF) == STATUS_DATA_OVERRUN);
    CHECK(send(p.a.qp, p.local(p.a, 0x80000001), 0) == STATUS_BUFFER_OVERFLOW);
    CHECK(send(p.a.qp, p.local(p.a, NdkEnd::kInline + 200), NDK_OP_FLAG_INLINE) == STATUS_BUFFER_OVERFLOW);
    REQUIRE(receive(p.b.qp, p.local(p.b, 64)) == STATUS_SUCCESS);
    REQUIRE(send(p.a.qp, p.local(p.a, 32), 0) == STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_SUCCESS);
    CHECK(p.b.status() == STATUS_SUCCESS);
  });
}

TEST_CASE("NDK: the threshold that a shared receive queue is made with holds when it has once been reached") {
  with_pair("ndk_srq_threshold", [](NdkPair& p) {
    const SharedPair shared(p, 2);
    NDK_SRQ* const srq = shared.srq;
    NDK_QP* const from = shared.from;
    const NDK_SGE room = p.local(p.b, 64);
    const auto notified = [&] {
      p.b.host.endpoint().device().elapse(100'000);
      return p.b.notifications.size();
    };
    const auto post = [&] { REQUIRE(srq->Dispatch->NdkSrqReceive(srq, nullptr, &room, 1) == STATUS_SUCCESS); };
    const auto take = [&] {
      REQUIRE(send(from, p.local(p.a, 8), 0) == STATUS_SUCCESS);
      CHECK(p.a.status() == STATUS_SUCCESS);
      CHECK(p.b.status() == STATUS_SUCCESS);
    };
    const auto modify = [&](ULONG depth, ULONG threshold) {
      return p.b.host.finish(
          [&](auto cb, auto ctx) { return srq->Dispatch->NdkModifySrq(srq, depth, threshold, cb, ctx); });
    };
    CHECK(notified() == 0);
    post();
    CHECK(notified() == 0);
    post();
    post();
    CHECK(notified() == 0);
    take();
    CHECK(notified() == 0);  // 2 are left
    take();
    CHECK(notified() == 1);
    // One that is set holds though the depth is changed behind it.
    for (int i = 0; i < 4; ++i) post();
    REQUIRE(modify(0, 5) == STATUS_SUCCESS);
    REQUIRE(modify(16, 0) == STATUS_SUCCESS);
    CHECK(notified() == 1);
    take();
    CHECK(notified() == 2);
  });
}

TEST_CASE("NDK: inline data are of the moment of the call, and what is deferred waits for the next request") {
  with_pair("ndk_inline", [](NdkPair& p) {
    for (int i = 0; i < 2; ++i) REQUIRE(receive(p.b.qp, p.local(p.b, 64, 64 * i)) == STATUS_SUCCESS);
    std::memset(p.a.memory, 'x', 32);
    REQUIRE(send(p.a.qp, p.local(p.a, 32), NDK_OP_FLAG_INLINE | NDK_OP_FLAG_DEFER) == STATUS_SUCCESS);
    std::memset(p.a.memory, 'y', 32);
    CHECK(p.b.empty());
    REQUIRE(send(p.a.qp, p.local(p.a, 32), 0) == STATUS_SUCCESS);
    for (int i = 0; i < 2; ++i) {
      CHECK(p.a.status() == STATUS_SUCCESS);
      CHECK(p.b.status() == STATUS_SUCCESS);
    }
    CHECK(p.b.memory[0] == 'x');
    CHECK(p.b.memory[31] == 'x');
    CHECK(p.b.memory[64] == 'y');
  });
}

TEST_CASE("NDK: READ_FENCE has a request wait for the Reads before it") {
  with_pair("ndk_fence", [](NdkPair& p) {
    NDK_MR* const open = p.b.make_mr(false);
    REQUIRE(p.b.register_mr(open, p.b.memory, NdkEnd::kBytes,
                            NDK_MR_FLAG_ALLOW_REMOTE_READ | NDK_MR_FLAG_ALLOW_REMOTE_WRITE) == STATUS_SUCCESS);
    const UINT32 token = NdkPair::remote(open);
    constexpr ULONG kBytes = 16 << 10;
    const std::uint64_t far = address_of(p.b.memory);
    // What the Read brings is what the Write takes back.
    std::memset(p.b.memory, 'r', kBytes);
    REQUIRE(p.a.read(p.local(p.a, kBytes), far, token) == STATUS_SUCCESS);
    REQUIRE(p.a.write(p.local(p.a, 64, kBytes - 64), far + kBytes, token, NDK_OP_FLAG_READ_FENCE) == STATUS_SUCCESS);
    for (int i = 0; i < 2; ++i) CHECK(p.a.status() == STATUS_SUCCESS);
    for (int i = 0; i < 64; ++i) REQUIRE(p.b.memory[kBytes + i] == 'r');
    // And an invalidation that waits leaves the Read its sink.
    NDK_MR* const sink = p.a.make_mr(true);
    REQUIRE(p.a.initialize(sink, 8, false) == STATUS_SUCCESS);
    auto lam = p.a.build_lam(p.a.memory, kBytes);
    REQUIRE(p.a.fast_register(sink, lam.pages(), 0, kBytes, 0x10000, NDK_OP_FLAG_ALLOW_LOCAL_WRITE) == STATUS_SUCCESS);
    REQUIRE(p.a.read(NdkEnd::sge(0x10000, kBytes, p.token(sink)), far, token) == STATUS_SUCCESS);
    REQUIRE(p.a.invalidate(sink->Header, NDK_OP_FLAG_READ_FENCE) == STATUS_SUCCESS);
    for (int i = 0; i < 3; ++i) CHECK(p.a.status() == STATUS_SUCCESS);
    // A sink needs no more than its own right (decisions 57).
    REQUIRE(p.a.fast_register(sink, lam.pages(), 0, kBytes, 0x10000, NDK_OP_FLAG_RDMA_READ_SINK) == STATUS_SUCCESS);
    REQUIRE(p.a.read(NdkEnd::sge(0x10000, kBytes, p.token(sink)), far, token) == STATUS_SUCCESS);
    for (int i = 0; i < 2; ++i) CHECK(p.a.status() == STATUS_SUCCESS);
    p.a.release(lam);
    p.a.host.close(sink);
    p.b.host.close(open);
  });
}

TEST_CASE("NDK: as many Reads that invalidate as the queue is deep, each whole or not at all") {
  with_pair("ndk_read_invalidate_room", [](NdkPair& p) {
    NDK_MR* const open = p.b.make_mr(false);
    REQUIRE(p.b.register_mr(open, p.b.memory, 4096, NDK_MR_FLAG_ALLOW_REMOTE_READ) == STATUS_SUCCESS);
    const auto read = [&](NDK_QP* qp, const NDK_SGE& to, ULONG flags) {
      return qp->Dispatch->NdkRead(qp, &p, &to, 1, address_of(p.b.memory), NdkPair::remote(open), flags);
    };
    // All that are refused, because the token is no registration's; a completion queue has room for two entries of
    // each.
    constexpr ULONG kDepth = 24;
    NDK_CQ* const before = std::exchange(p.a.cq, p.a.make_cq(kDepth));
    {
      MorePairs pairs(p, kDepth);
      for (ULONG i = 0; i < kDepth; ++i) {
        const ULONG defer = i + 1 < kDepth ? NDK_OP_FLAG_DEFER : 0;
        REQUIRE(read(pairs.a, NdkEnd::sge(0x1000, 64, 0xFFFFFF00), kInvalidateSink | defer) == STATUS_SUCCESS);
      }
      p.a.host.endpoint().device().elapse(1'000'000);
      CHECK(p.a.status() == STATUS_ACCESS_VIOLATION);
      for (ULONG i = 1; i < kDepth; ++i) CHECK(p.a.status() == STATUS_CANCELLED);
      CHECK(p.a.empty());
    }
    p.a.host.close(std::exchange(p.a.cq, before));
    // With one place left there is none of it.
    MorePairs pairs(p, 8);
    for (ULONG i = 0; i < 15; ++i)
      REQUIRE(read(pairs.a, p.local(p.a, 8), NDK_OP_FLAG_DEFER | NDK_OP_FLAG_SILENT_SUCCESS) == STATUS_SUCCESS);
    p.a.memory[4096] = 'k';
    CHECK(read(pairs.a, p.local(p.a, 8, 4096), kInvalidateSink) == STATUS_NO_MORE_ENTRIES);
    CHECK(p.a.empty());
    CHECK(p.a.memory[4096] == 'k');
    p.b.host.close(open);
  });
}

TEST_CASE("NDK: results of a queue pair that has been closed are still its own") {
  with_pair("ndk_closed_results", [](NdkPair& p) {
    NDK_CQ* const receives = p.b.make_cq(8);
    MorePairs pairs(p, 8, receives);
    REQUIRE(receive(pairs.b, p.local(p.b, 64)) == STATUS_SUCCESS);
    REQUIRE(send(pairs.a, p.local(p.a, 32), 0) == STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_SUCCESS);
    p.b.host.endpoint().device().elapse(100'000);
    p.b.host.close(std::exchange(pairs.b, nullptr));
    CHECK(p.b.empty());  // of its requests there is nothing more
    const MorePairs others(p, 8);
    NDK_RESULT_EX got{};
    REQUIRE(receives->Dispatch->NdkGetCqResultsEx(receives, &got, 1) == 1);
    CHECK(got.Status == STATUS_SUCCESS);
    CHECK(got.QPContext == &pairs);
    CHECK(got.BytesTransferred == 32);
    p.b.host.close(receives);
  });
}

TEST_CASE("NDK: moderation has notifications wait for as many entries, or as long, as is said") {
  with_pair("ndk_moderation", [](NdkPair& p) {
    const auto moderate = [&](ULONG interval_us, ULONG count) {
      return p.b.cq->Dispatch->NdkControlCqInterruptModeration(p.b.cq, interval_us, count);
    };
    const auto message = [&] {
      REQUIRE(receive(p.b.qp, p.local(p.b, 64)) == STATUS_SUCCESS);
      REQUIRE(send(p.a.qp, p.local(p.a, 32), NDK_OP_FLAG_SILENT_SUCCESS) == STATUS_SUCCESS);
      p.b.host.endpoint().device().elapse(50'000);
    };
    CHECK(moderate(0x10000, 0) == STATUS_INVALID_PARAMETER);
    CHECK(moderate(0, 0x10000) == STATUS_INVALID_PARAMETER);
    REQUIRE(moderate(2'000, 3) == STATUS_SUCCESS);
    p.b.host.endpoint().device().elapse(50'000);
    p.b.cq->Dispatch->NdkArmCq(p.b.cq, NDK_CQ_NOTIFY_ANY);
    message();
    message();
    CHECK(p.b.notifications.empty());
    message();
    CHECK(p.b.notifications.size() == 1);
    for (int i = 0; i < 3; ++i) CHECK(p.b.status() == STATUS_SUCCESS);
    // Fewer: when the time is over.
    p.b.cq->Dispatch->NdkArmCq(p.b.cq, NDK_CQ_NOTIFY_ANY);
    message();
    CHECK(p.b.notifications.size() == 1);
    p.b.host.endpoint().device().elapse(2'500'000);
    CHECK(p.b.notifications.size() == 2);
    CHECK(p.b.status() == STATUS_SUCCESS);
  });
}
