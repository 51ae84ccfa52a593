// The Network Direct kernel provider interface over the NIC: windows, completion queues, shared receive queues, and the
// order in which objects end (docs/ndk.md).
#include <catch2/catch.hpp>

#include "tests/system/ndk_world.hpp"

using namespace rnic;
using namespace rnic::test;

namespace {

/// One message from `from` to `to`, whose receive waits by then. Both results are left where they are.
void send(NdkPair& p, ULONG flags = 0) {
  const NDK_SGE to = p.local(p.b, 64), from = p.local(p.a, 32);
  REQUIRE(p.b.qp->Dispatch->NdkReceive(p.b.qp, nullptr, &to, 1) == STATUS_SUCCESS);
  REQUIRE(p.a.qp->Dispatch->NdkSend(p.a.qp, nullptr, &from, 1, flags) == STATUS_SUCCESS);
  CHECK(p.a.status() == STATUS_SUCCESS);
}

/// Notifications that have come to `end` by the time that anything under way is over.
std::size_t notified(NdkEnd& end) {
  end.host.endpoint().device().elapse(100'000);
  return end.notifications.size();
}

/// A Close that is under way: its callback writes its name.
struct Closing {
  std::vector<std::string>* ended;
  std::string name;
  static void done(PVOID context) {
    const auto& self = *static_cast<Closing*>(context);
    self.ended->push_back(self.name);
  }
};

}  // namespace

TEST_CASE("NDK: a window gives its rights over its part of a region, until it is invalidated") {
  with_pair("ndk_window", [](NdkPair& p) {
    NDK_MW* const mw = p.b.host.make<NDK_MW>(
        [&](auto cb, auto ctx, auto out) { return p.b.pd->Dispatch->NdkCreateMw(p.b.pd, cb, ctx, out); });
    NDK_MR* const read_only = p.b.make_mr(false);
    REQUIRE(p.b.register_mr(read_only, p.b.memory, 4096, 0) == STATUS_SUCCESS);
    const auto bind = [&](NDK_MR* mr, std::size_t at, SIZE_T length, ULONG flags) {
      return p.b.qp->Dispatch->NdkBind(p.b.qp, mw, mr, mw, p.b.memory + at, length, flags);
    };
    CHECK(bind(nullptr, 0, 16, NDK_OP_FLAG_ALLOW_REMOTE_READ) == STATUS_INVALID_PARAMETER);
    CHECK(bind(p.mr_b, 0, 16, NDK_OP_FLAG_INLINE) == STATUS_INVALID_PARAMETER);
    CHECK(bind(p.mr_b, 0, 16, NDK_OP_FLAG_ALLOW_LOCAL_WRITE) == STATUS_INVALID_PARAMETER);
    CHECK(bind(p.mr_b, 4096, NdkEnd::kBytes - 4095, NDK_OP_FLAG_ALLOW_REMOTE_READ) == STATUS_ACCESS_VIOLATION);
    // The right to write needs the region's local one.
    CHECK(bind(read_only, 0, 4096, NDK_OP_FLAG_ALLOW_REMOTE_WRITE) == STATUS_ACCESS_VIOLATION);
    REQUIRE(bind(p.mr_b, 4096, 4096, NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_ALLOW_REMOTE_WRITE) == STATUS_SUCCESS);
    const UINT32 token = mw->Dispatch->NdkGetRemoteTokenFromMw(mw);
    const auto bound = p.b.result();
    CHECK(bound.Status == STATUS_SUCCESS);
    CHECK(bound.Type == NdkOperationTypeBind);
    CHECK(bound.RequestContext == mw);
    std::memset(p.a.memory, 0x5A, 4096);
    REQUIRE(p.a.write(p.local(p.a, 4096), address_of(p.b.memory) + 4096, token) == STATUS_SUCCESS);
    const auto written = p.a.result();
    CHECK(written.Status == STATUS_SUCCESS);
    CHECK(written.Type == NdkOperationTypeWrite);
    CHECK(std::memcmp(p.a.memory, p.b.memory + 4096, 4096) == 0);
    CHECK(p.b.memory[4095] == 0x22);
    CHECK(p.b.memory[8192] == 0x22);
    // A registered region is not ended so, and a region under a window not at all (decisions 23).
    CHECK(p.b.invalidate(p.mr_b->Header) == STATUS_INVALID_DEVICE_REQUEST);
    CHECK(p.b.deregister(p.mr_b) == STATUS_DEVICE_BUSY);
    REQUIRE(p.b.invalidate(mw->Header) == STATUS_SUCCESS);
    const auto invalidated = p.b.result();
    CHECK(invalidated.Status == STATUS_SUCCESS);
    CHECK(invalidated.Type == NdkOperationTypeInvalidate);
    // Bound anew with one right, it has another token; the old one is dead.
    REQUIRE(bind(p.mr_b, 4096, 4096, NDK_OP_FLAG_ALLOW_REMOTE_READ) == STATUS_SUCCESS);
    CHECK(p.b.status() == STATUS_SUCCESS);
    CHECK(mw->Dispatch->NdkGetRemoteTokenFromMw(mw) != token);
    REQUIRE(p.a.read(p.local(p.a, 16), address_of(p.b.memory) + 4096, mw->Dispatch->NdkGetRemoteTokenFromMw(mw)) ==
            STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_SUCCESS);
    REQUIRE(p.a.write(p.local(p.a, 16), address_of(p.b.memory) + 4096, mw->Dispatch->NdkGetRemoteTokenFromMw(mw)) ==
            STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_ACCESS_VIOLATION);
    p.b.host.close(mw);
    p.b.host.close(read_only);
  });
}

TEST_CASE("NDK: two arms of a completion queue are one, of the documented kind") {
  with_pair("ndk_arms", [](NdkPair& p) {
    constexpr ULONG kErrors = NDK_CQ_NOTIFY_ERRORS, kAny = NDK_CQ_NOTIFY_ANY, kSolicited = NDK_CQ_NOTIFY_SOLICITED;
    struct Row {
      ULONG first, second, merged;
    };
    // The last one waits for ever.
    for (const Row& row :
         {Row{kAny, kErrors, kAny}, Row{kAny, kAny, kAny}, Row{kAny, kSolicited, kAny}, Row{kErrors, kAny, kAny},
          Row{kErrors, kSolicited, kSolicited}, Row{kSolicited, kAny, kAny}, Row{kSolicited, kErrors, kSolicited},
          Row{kSolicited, kSolicited, kSolicited}, Row{kErrors, kErrors, kErrors}}) {
      INFO("first " << row.first << ", then " << row.second);
      const std::size_t before = notified(p.b);
      p.b.cq->Dispatch->NdkArmCq(p.b.cq, row.first);
      p.b.cq->Dispatch->NdkArmCq(p.b.cq, row.second);
      CHECK(notified(p.b) == before);
      send(p);
      CHECK(notified(p.b) == before + (row.merged == kAny ? 1 : 0));
      CHECK(p.b.status() == STATUS_SUCCESS);
      if (row.merged == kAny) continue;
      send(p, NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT);
      CHECK(notified(p.b) == before + (row.merged == kSolicited ? 1 : 0));
      CHECK(p.b.status() == STATUS_SUCCESS);
    }
    for (const NTSTATUS status : p.b.notifications) CHECK(status == STATUS_SUCCESS);
  });
}

TEST_CASE("NDK: an arm is satisfied by what is newer than the last notification, and by failures") {
  with_pair("ndk_notify", [](NdkPair& p) {
    send(p);
    CHECK(notified(p.b) == 0);
    p.b.cq->Dispatch->NdkArmCq(p.b.cq, NDK_CQ_NOTIFY_ANY);
    CHECK(notified(p.b) == 1);
    // The same entry does not do it twice, whether it has been taken or not.
    p.b.cq->Dispatch->NdkArmCq(p.b.cq, NDK_CQ_NOTIFY_ANY);
    CHECK(notified(p.b) == 1);
    CHECK(p.b.status() == STATUS_SUCCESS);
    CHECK(notified(p.b) == 1);
    send(p);
    CHECK(notified(p.b) == 2);
    CHECK(p.b.status() == STATUS_SUCCESS);
    // What fails is solicited.
    const NDK_SGE to = p.local(p.b, 64);
    REQUIRE(p.b.qp->Dispatch->NdkReceive(p.b.qp, nullptr, &to, 1) == STATUS_SUCCESS);
    p.b.cq->Dispatch->NdkArmCq(p.b.cq, NDK_CQ_NOTIFY_SOLICITED);
    CHECK(notified(p.b) == 2);
    p.b.qp->Dispatch->NdkFlush(p.b.qp);
    CHECK(notified(p.b) == 3);
    CHECK(p.b.status() == STATUS_CANCELLED);
  });
}

TEST_CASE("NDK: a completion queue is resized with what waits in it; both forms of results") {
  with_pair("ndk_resize", [](NdkPair& p) {
    NDK_ADAPTER_INFO info{};
    ULONG size = sizeof info;
    REQUIRE(p.b.a->Dispatch->NdkQueryAdapterInfo(p.b.a, &info, &size) == STATUS_SUCCESS);
    const auto resize = [&](ULONG depth) {
      return p.b.host.finish([&](auto cb, auto ctx) { return p.b.cq->Dispatch->NdkResizeCq(p.b.cq, depth, cb, ctx); });
    };
    CHECK(resize(0) == STATUS_INVALID_PARAMETER);
    CHECK(resize(info.MaxCqDepth + 1) == STATUS_INVALID_PARAMETER);
    for (int i = 0; i < 3; ++i) send(p);
    p.b.host.endpoint().device().elapse(100'000);
    // Below what is in it nothing changes (decisions 28); just that is enough.
    CHECK(resize(2) == STATUS_BUFFER_OVERFLOW);
    CHECK(resize(3) == STATUS_SUCCESS);
    CHECK(resize(128) == STATUS_SUCCESS);
    NDK_RESULT plain[2]{};
    REQUIRE(p.b.cq->Dispatch->NdkGetCqResults(p.b.cq, plain, 2) == 2);
    for (const NDK_RESULT& result : plain) {
      CHECK(result.Status == STATUS_SUCCESS);
      CHECK(result.BytesTransferred == 32);
    }
    const auto last = p.b.result();
    CHECK(last.Type == NdkOperationTypeReceive);
    CHECK(last.BytesTransferred == 32);
    CHECK(last.TypeSpecificCompletionOutput == 0);
    CHECK(p.b.empty());
    CHECK(resize(16) == STATUS_SUCCESS);
    send(p);
    CHECK(p.b.status() == STATUS_SUCCESS);
    CHECK(p.b.cq->Dispatch->NdkControlCqInterruptModeration(p.b.cq, 0x10000, 0) == STATUS_INVALID_PARAMETER);
    CHECK(p.b.cq->Dispatch->NdkControlCqInterruptModeration(p.b.cq, 0, 0) == STATUS_SUCCESS);
  });
}

TEST_CASE("NDK: a shared receive queue tells once when it holds less than its threshold") {
  with_pair("ndk_srq", [](NdkPair& p) {
    const auto create = [&](NDK_SRQ*& srq, ULONG depth, ULONG sge, ULONG threshold) {
      return p.b.host.create(srq, [&](auto cb, auto ctx, auto out) {
        return p.b.pd->Dispatch->NdkCreateSrq(p.b.pd, depth, sge, threshold, NdkEnd::notified, &p.b, nullptr, cb, ctx,
                                              out);
      });
    };
    NDK_SRQ* srq = nullptr;
    CHECK(create(srq, 0, 1, 0) == STATUS_INVALID_PARAMETER);
    CHECK(create(srq, 8, 1, 9) == STATUS_INVALID_PARAMETER);
    CHECK(create(srq, 8, 17, 0) == STATUS_INVALID_PARAMETER);
    CHECK(srq == nullptr);
    const SharedPair shared(p, 0);
    srq = shared.srq;
    NDK_QP* const from = shared.from;
    const auto modify = [&](ULONG depth, ULONG threshold) {
      return p.b.host.finish(
          [&](auto cb, auto ctx) { return srq->Dispatch->NdkModifySrq(srq, depth, threshold, cb, ctx); });
    };
    const NDK_SGE room = p.local(p.b, 64), data = p.local(p.a, 32);
    const auto one_message = [&] {
      REQUIRE(from->Dispatch->NdkSend(from, nullptr, &data, 1, 0) == STATUS_SUCCESS);
      CHECK(p.a.status() == STATUS_SUCCESS);
      const auto got = p.b.result();
      CHECK(got.Status == STATUS_SUCCESS);
      CHECK(got.QPContext == srq);
      CHECK(got.RequestContext == &p);
    };
    for (int i = 0; i < 5; ++i) REQUIRE(srq->Dispatch->NdkSrqReceive(srq, &p, &room, 1) == STATUS_SUCCESS);
    REQUIRE(modify(0, 4) == STATUS_SUCCESS);
    CHECK(notified(p.b) == 0);
    one_message();  // 4 are left
    CHECK(notified(p.b) == 0);
    one_message();
    CHECK(notified(p.b) == 1);
    one_message();
    CHECK(notified(p.b) == 1);
    // Below it already.
    REQUIRE(modify(0, 4) == STATUS_SUCCESS);
    CHECK(notified(p.b) == 2);
    CHECK(p.b.notifications.back() == STATUS_SUCCESS);
    // A depth that holds what is there, and limits.
    REQUIRE(modify(16, 0) == STATUS_SUCCESS);
    for (int i = 0; i < 14; ++i) REQUIRE(srq->Dispatch->NdkSrqReceive(srq, &p, &room, 1) == STATUS_SUCCESS);
    CHECK(srq->Dispatch->NdkSrqReceive(srq, &p, &room, 1) == STATUS_NO_MORE_ENTRIES);
    CHECK(modify(1 << 24, 0) == STATUS_INVALID_PARAMETER);
    one_message();
  });
}

TEST_CASE("NDK: what is closed ends when what needs it has ended, and tells then") {
  with_ndk_endpoints(fresh_world(WorldOptions::from_environment("ndk_close")), [](Endpoint& host, Endpoint&) {
    NdkEnd end(host);
    std::vector<std::string> ended;
    Closing pd{&ended, "pd"}, cq{&ended, "cq"}, qp{&ended, "qp"};
    CHECK(end.pd->Dispatch->NdkClosePd(&end.pd->Header, Closing::done, &pd) == STATUS_PENDING);
    CHECK(end.cq->Dispatch->NdkCloseCq(&end.cq->Header, Closing::done, &cq) == STATUS_PENDING);
    host.device().elapse(1'000'000);
    CHECK(ended.empty());
    CHECK(end.qp->Dispatch->NdkCloseQp(&end.qp->Header, Closing::done, &qp) == STATUS_PENDING);
    CHECK(end.host.wait_until([&] { return ended.size() == 3; }, 10'000'000));
    REQUIRE(!ended.empty());
    CHECK(ended[0] == "qp");
    end.pd = nullptr;
    end.cq = nullptr;
    end.qp = nullptr;
  });
}
