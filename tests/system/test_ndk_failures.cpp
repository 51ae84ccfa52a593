// What consumers of the Network Direct kernel provider interface are told when a completion queue is overrun, when a
// shared receive queue fails, and when the device does (docs/ndk.md).
#include <catch2/catch.hpp>

#include "driver/ndk/shared_receive_queue.hpp"
#include "tests/system/ndk_parties.hpp"

using namespace rnic;
using namespace rnic::test;

namespace {

/// Notifications of one object.
struct Notified {
  static void told(PVOID context, NTSTATUS status) { static_cast<Notified*>(context)->all.push_back(status); }
  std::vector<NTSTATUS> all;
};

NDK_CQ* make_cq(NdkEnd& end, ULONG depth, Notified& notified) {
  return end.host.make<NDK_CQ>([&](auto cb, auto ctx, auto out) {
    return end.a->Dispatch->NdkCreateCq(end.a, depth, Notified::told, &notified, nullptr, cb, ctx, out);
  });
}

/// Reads results until none has come for some time.
std::vector<NDK_RESULT_EX> results_of(NdkEnd& end, NDK_CQ* cq) {
  std::vector<NDK_RESULT_EX> all;
  NDK_RESULT_EX got{};
  for (int quiet = 0; quiet < 100; ++quiet) {
    for (; cq->Dispatch->NdkGetCqResultsEx(cq, &got, 1) != 0; quiet = 0) all.push_back(got);
    end.host.endpoint().device().elapse(1'000);
  }
  return all;
}

void settle(NdkEnd& end) { end.host.endpoint().device().elapse(200'000); }

void connect(NdkPair& p, NDK_QP* a, NDK_QP* b) {
  testbench::connect_pair(p.a.host.endpoint(), *ndk::QueuePair::of(a).core(), p.b.host.endpoint(),
                          *ndk::QueuePair::of(b).core(), {});
}

}  // namespace

TEST_CASE("NDK: a completion queue that is overrun says so, keeps what it has, and is the end of its queue pairs") {
  with_pair("ndk_overrun", [](NdkPair& p) {
    constexpr ULONG kRequests = 64;
    Notified notified;
    NDK_CQ* const small = make_cq(p.b, 4, notified);
    const auto make_qp = [&](NdkEnd& end, NDK_CQ* receive_cq) {
      return end.host.make<NDK_QP>([&](auto cb, auto ctx, auto out) {
        return end.pd->Dispatch->NdkCreateQp(end.pd, receive_cq, end.cq, nullptr, kRequests, kRequests, 1, 1, 0, cb,
                                             ctx, out);
      });
    };
    NDK_QP* const from = make_qp(p.a, p.a.cq);
    NDK_QP* const to = make_qp(p.b, small);
    NDK_QP* const other_from = make_qp(p.a, p.a.cq);
    NDK_QP* const other_to = make_qp(p.b, small);
    connect(p, from, to);
    connect(p, other_from, other_to);
    const NDK_SGE room = p.local(p.b, 64), data = p.local(p.a, 16);
    for (ULONG i = 0; i < kRequests; ++i) REQUIRE(to->Dispatch->NdkReceive(to, nullptr, &room, 1) == STATUS_SUCCESS);
    REQUIRE(other_to->Dispatch->NdkReceive(other_to, nullptr, &room, 1) == STATUS_SUCCESS);
    // Full by what was asked for is no overrun.
    std::size_t sent = 0;
    const auto send = [&] {
      REQUIRE(from->Dispatch->NdkSend(from, nullptr, &data, 1, 0) == STATUS_SUCCESS);
      ++sent;
      return p.a.status();
    };
    while (sent < 4) CHECK(send() == STATUS_SUCCESS);
    settle(p.b);
    CHECK(notified.all.empty());
    small->Dispatch->NdkArmCq(small, NDK_CQ_NOTIFY_ERRORS);
    settle(p.b);
    CHECK(notified.all.empty());
    while (notified.all.empty() && sent < kRequests && send() == STATUS_SUCCESS) settle(p.b);
    settle(p.b);
    CHECK(notified.all == std::vector<NTSTATUS>{STATUS_BUFFER_OVERFLOW});
    // What was written is true, and nothing more comes (decisions 26, 55).
    const auto got = results_of(p.b, small);
    CHECK(got.size() >= 4);
    CHECK(got.size() < kRequests);
    for (const NDK_RESULT_EX& result : got) CHECK(result.Status == STATUS_SUCCESS);
    REQUIRE(other_from->Dispatch->NdkSend(other_from, nullptr, &data, 1, 0) == STATUS_SUCCESS);
    CHECK(p.a.status() != STATUS_SUCCESS);
    CHECK(results_of(p.b, small).empty());
    small->Dispatch->NdkArmCq(small, NDK_CQ_NOTIFY_ANY);
    settle(p.b);
    CHECK(notified.all == std::vector<NTSTATUS>{STATUS_BUFFER_OVERFLOW, STATUS_BUFFER_OVERFLOW});
    CHECK(p.b.host.finish([&](auto cb, auto ctx) { return small->Dispatch->NdkResizeCq(small, 64, cb, ctx); }) ==
          STATUS_BUFFER_OVERFLOW);
    // Others have nothing to do with it.
    REQUIRE(p.b.qp->Dispatch->NdkReceive(p.b.qp, nullptr, &room, 1) == STATUS_SUCCESS);
    REQUIRE(p.a.qp->Dispatch->NdkSend(p.a.qp, &p, &data, 1, 0) == STATUS_SUCCESS);
    NDK_RESULT_EX result = p.a.result();
    while (result.RequestContext != &p) result = p.a.result();
    CHECK(result.Status == STATUS_SUCCESS);
    CHECK(p.b.status() == STATUS_SUCCESS);
    for (auto [end, qp] :
         {std::pair(&p.a, from), std::pair(&p.b, to), std::pair(&p.a, other_from), std::pair(&p.b, other_to)})
      end->host.close(qp);
    p.b.host.close(small);
  });
}

TEST_CASE("NDK: a shared receive queue that cannot be read says so, and is the end of who needs it") {
  with_pair("ndk_srq_error", [](NdkPair& p) {
    Notified notified;
    NDK_SRQ* const srq = p.b.host.make<NDK_SRQ>([&](auto cb, auto ctx, auto out) {
      return p.b.pd->Dispatch->NdkCreateSrq(p.b.pd, 8, 1, 0, Notified::told, &notified, nullptr, cb, ctx, out);
    });
    NDK_QP* const from = p.a.make_qp();
    NDK_QP* const to = p.b.host.make<NDK_QP>([&](auto cb, auto ctx, auto out) {
      return p.b.pd->Dispatch->NdkCreateQpWithSrq(p.b.pd, p.b.cq, p.b.cq, srq, nullptr, 4, 1, 0, cb, ctx, out);
    });
    connect(p, from, to);
    const NDK_SGE room = p.local(p.b, 64), data = p.local(p.a, 16);
    REQUIRE(srq->Dispatch->NdkSrqReceive(srq, nullptr, &room, 1) == STATUS_SUCCESS);
    REQUIRE(from->Dispatch->NdkSend(from, nullptr, &data, 1, 0) == STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_SUCCESS);
    CHECK(p.b.status() == STATUS_SUCCESS);
    CHECK(notified.all.empty());
    // A Receive that the device was told of and that nobody has written.
    const auto& core = ndk::SharedReceiveQueue::of(srq).core();
    core->process()->ring(hw::uar::kSrqDoorbell, hw::SrqDoorbell{.srqn = core->srqn(), .producer_index = 2}.word());
    REQUIRE(from->Dispatch->NdkSend(from, nullptr, &data, 1, 0) == STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_REMOTE_RESOURCES);
    settle(p.b);
    CHECK(notified.all == std::vector<NTSTATUS>{STATUS_INTERNAL_ERROR});
    CHECK(p.b.empty());
    // Others have nothing to do with it.
    REQUIRE(p.b.qp->Dispatch->NdkReceive(p.b.qp, nullptr, &room, 1) == STATUS_SUCCESS);
    REQUIRE(p.a.qp->Dispatch->NdkSend(p.a.qp, nullptr, &data, 1, 0) == STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_SUCCESS);
    CHECK(p.b.status() == STATUS_SUCCESS);
    p.b.host.close(to);
    p.a.host.close(from);
    p.b.host.close(srq);
  });
}

TEST_CASE("NDK: a device that fails ends everything that is under way, once, and everything can be closed") {
  with_parties("ndk_device_fails", [](Parties& p) {
    NDK_CONNECTOR* const to = p.connected();
    NdkEnd& end = p.b;
    Notified of_cq, of_srq;
    NDK_CQ* const cq = make_cq(end, 8, of_cq);
    NDK_SRQ* const srq = end.host.make<NDK_SRQ>([&](auto cb, auto ctx, auto out) {
      return end.pd->Dispatch->NdkCreateSrq(end.pd, 8, 1, 0, Notified::told, &of_srq, nullptr, cb, ctx, out);
    });
    NDK_MR* const mr = end.make_mr(false);
    NDK_MR* const registering = end.make_mr(false);
    NDK_MR* const fast = end.make_mr(true);
    REQUIRE(end.register_mr(mr, end.memory, 4096, NDK_MR_FLAG_ALLOW_LOCAL_WRITE) == STATUS_SUCCESS);
    REQUIRE(end.initialize(fast, 4) == STATUS_SUCCESS);
    auto lam = end.build_lam(end.memory, 2 * PAGE_SIZE);
    NDK_MW* const mw = end.host.make<NDK_MW>(
        [&](auto cb, auto ctx, auto out) { return end.pd->Dispatch->NdkCreateMw(end.pd, cb, ctx, out); });
    NDK_CONNECTOR* const asking = end.host.make<NDK_CONNECTOR>(
        [&](auto cb, auto ctx, auto out) { return end.a->Dispatch->NdkCreateConnector(end.a, cb, ctx, out); });
    NDK_QP* const asking_qp = end.make_qp();
    const NDK_SGE room = NdkEnd::sge(address_of(end.memory), 64, mr->Dispatch->NdkGetLocalTokenFromMr(mr));
    REQUIRE(end.qp->Dispatch->NdkReceive(end.qp, nullptr, &room, 1) == STATUS_SUCCESS);
    cq->Dispatch->NdkArmCq(cq, NDK_CQ_NOTIFY_ANY);
    // Under way, or about to be.
    Asked connect(end), resize(end), registered(end), deregistered(end), initialized(end), disconnect(end);
    REQUIRE(p.connect(asking, asking_qp, at(1, 0), at(0, 9), connect, "") == STATUS_PENDING);
    end.host.endpoint().device().elapse(2'000);
    MDL mdl = mdl_of(end.memory, 4096);
    REQUIRE(cq->Dispatch->NdkResizeCq(cq, 100, Asked::done, &resize) == STATUS_PENDING);
    REQUIRE(registering->Dispatch->NdkRegisterMr(registering, &mdl, 4096, 0, Asked::done, &registered) ==
            STATUS_PENDING);
    REQUIRE(mr->Dispatch->NdkDeregisterMr(mr, Asked::done, &deregistered) == STATUS_PENDING);
    REQUIRE(fast->Dispatch->NdkInitializeFastRegisterMr(fast, 8, 1, Asked::done, &initialized) == STATUS_PENDING);
    NDK_PD* unmade = nullptr;
    auto& kernel = end.host.endpoint().kernel();
    kernel.fail(*kernel.life());
    CHECK(resize.wait() == STATUS_DEVICE_REMOVED);
    CHECK(registered.wait() == STATUS_DEVICE_REMOVED);
    CHECK(deregistered.wait() == STATUS_SUCCESS);  // decisions 58
    CHECK(initialized.wait() == STATUS_DEVICE_REMOVED);
    CHECK(connect.wait() == STATUS_DEVICE_REMOVED);
    CHECK(end.host.create(unmade, [&](auto cb, auto ctx, auto out) {
      return end.a->Dispatch->NdkCreatePd(end.a, cb, ctx, out);
    }) == STATUS_DEVICE_REMOVED);
    settle(end);
    CHECK(of_cq.all == std::vector<NTSTATUS>{STATUS_INTERNAL_ERROR});
    CHECK(of_srq.all == std::vector<NTSTATUS>{STATUS_INTERNAL_ERROR});
    CHECK(p.left_b == 1);
    cq->Dispatch->NdkArmCq(cq, NDK_CQ_NOTIFY_ANY);
    settle(end);
    CHECK(of_cq.all == std::vector<NTSTATUS>{STATUS_INTERNAL_ERROR, STATUS_INTERNAL_ERROR});
    // No request is taken, and no results come.
    CHECK(end.qp->Dispatch->NdkSend(end.qp, nullptr, &room, 1, 0) == STATUS_DEVICE_REMOVED);
    CHECK(end.qp->Dispatch->NdkReceive(end.qp, nullptr, &room, 1) == STATUS_DEVICE_REMOVED);
    CHECK(srq->Dispatch->NdkSrqReceive(srq, nullptr, &room, 1) == STATUS_DEVICE_REMOVED);
    CHECK(end.qp->Dispatch->NdkBind(end.qp, nullptr, registering, mw, end.memory, 16, 0) != STATUS_SUCCESS);
    CHECK(end.fast_register(fast, lam.pages(), 0, 4096, 0, 0) == STATUS_DEVICE_REMOVED);
    CHECK(end.invalidate(mw->Header) == STATUS_DEVICE_REMOVED);
    end.qp->Dispatch->NdkFlush(end.qp);
    CHECK(results_of(end, end.cq).empty());
    CHECK(to->Dispatch->NdkDisconnect(to, Asked::done, &disconnect) == STATUS_PENDING);
    CHECK(disconnect.wait() == STATUS_SUCCESS);
    for (const Asked* asked : {&connect, &resize, &registered, &deregistered, &initialized, &disconnect})
      CHECK(asked->calls == 1);
    // Nothing is begun any more.
    Asked again(end);
    REQUIRE(p.connect(asking, asking_qp, at(1, 0), at(0, 9), again, "") == STATUS_PENDING);
    CHECK(again.wait() == STATUS_DEVICE_REMOVED);
    NDK_LISTENER* const deaf = p.make_listener();
    CHECK(p.listen(deaf, at(1, 4421)) == STATUS_DEVICE_REMOVED);
    end.host.close(deaf);
    end.release(lam);
    end.host.close(asking);
    end.host.close(asking_qp);
    end.host.close(mw);
    end.host.close(fast);
    end.host.close(registering);
    end.host.close(mr);
    end.host.close(srq);
    end.host.close(cq);
  });
}

TEST_CASE("NDK: a command that the device never answers is its end for who is there; who opens it anew has a new one") {
  auto& world = fresh_world(WorldOptions::from_environment("ndk_lost_command"));
  world.add_app(0, "test", [&](Host& host) {
    DispatchDevice device(host.device());
    Endpoint endpoint(host, {.completion_timeout = hw::CompletionTimeoutRange::kA1}, false, &device);
    const auto resize = [](NdkEnd& end, NDK_CQ* cq) {
      return end.host.finish([&](auto cb, auto ctx) { return cq->Dispatch->NdkResizeCq(cq, 100, cb, ctx); });
    };
    for (int life = 0; life < 2; ++life) {
      NdkEnd end(endpoint);
      Notified notified;
      NDK_CQ* const cq = make_cq(end, 8, notified);
      CHECK(resize(end, cq) == STATUS_SUCCESS);
      cq->Dispatch->NdkArmCq(cq, NDK_CQ_NOTIFY_ANY);
      // The device's next read of memory is of the command, and nothing comes back.
      model::PcieRule rule;
      rule.fault = model::PcieFault::kTimeout;
      rule.match.access = model::PcieAccess::kDmaRead;
      world.host(0).root_complex().arm(rule);
      CHECK(resize(end, cq) == STATUS_DEVICE_REMOVED);
      settle(end);
      CHECK(notified.all == std::vector<NTSTATUS>{STATUS_INTERNAL_ERROR});
      end.host.close(cq);
    }
  });
  world.run(2'000'000'000);
  CHECK(world.host(0).iommu().mapped_pages() == 0);
}
