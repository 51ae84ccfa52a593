// What the documentation of the Network Direct kernel provider interface allows at DISPATCH_LEVEL, which is every
// function but NdkQueryAdapterInfo: no call takes memory or waits for anybody (docs/ndk.md). All calls of all tests of
// the interface are held to it; here is each function of each table, and what else is under way meanwhile.
#include <catch2/catch.hpp>
#include <memory>
#include <mutex>

#include "tests/system/ndk_parties.hpp"

using namespace rnic;
using namespace rnic::test;

namespace {

/// Does `body` at DISPATCH_LEVEL. What of it may not be done there.
template <typename Body>
std::string judged(Body&& body) {
  const DispatchLevel level;
  body();
  return level.broken() != nullptr ? level.broken() : "";
}

/// The next results of `end`, by their contexts, until none has come for some time.
std::vector<NDK_RESULT_EX> results_of(NdkEnd& end) {
  std::vector<NDK_RESULT_EX> all;
  for (int quiet = 0; quiet < 100; ++quiet) {
    NDK_RESULT_EX got{};
    while (end.cq->Dispatch->NdkGetCqResultsEx(end.cq, &got, 1) != 0) {
      all.push_back(got);
      quiet = 0;
    }
    end.host.endpoint().device().elapse(1'000);
  }
  return all;
}

PVOID number(std::size_t i) { return reinterpret_cast<PVOID>(i); }

/// No object has an extension.
template <typename Object>
void query_extension(Object* object) {
  NDK_EXTENSION_INTERFACE extension{};
  CHECK(object->Dispatch->NdkQueryExtensionInterface(&object->Header, nullptr, {1, 0}, &extension) ==
        STATUS_NOT_SUPPORTED);
}

/// What is not about connections: each kind of object, and each of its functions.
void use_objects(NdkEnd& end) {
  NDK_MR* const mr = end.make_mr(false);
  NDK_MR* const fast = end.make_mr(true);
  REQUIRE(end.register_mr(mr, end.memory, 4096, NDK_MR_FLAG_ALLOW_LOCAL_WRITE) == STATUS_SUCCESS);
  REQUIRE(end.initialize(fast, 4) == STATUS_SUCCESS);
  UINT32 privileged = 0;
  end.pd->Dispatch->NdkGetPrivilegedMemoryRegionToken(end.pd, &privileged);
  NDK_MW* const mw = end.host.make<NDK_MW>(
      [&](auto cb, auto ctx, auto out) { return end.pd->Dispatch->NdkCreateMw(end.pd, cb, ctx, out); });
  NDK_SRQ* const srq = end.host.make<NDK_SRQ>([&](auto cb, auto ctx, auto out) {
    return end.pd->Dispatch->NdkCreateSrq(end.pd, 4, 1, 2, NdkEnd::notified, &end, nullptr, cb, ctx, out);
  });
  NDK_QP* const shared = end.host.make<NDK_QP>([&](auto cb, auto ctx, auto out) {
    return end.pd->Dispatch->NdkCreateQpWithSrq(end.pd, end.cq, end.cq, srq, nullptr, 4, 1, 0, cb, ctx, out);
  });
  const NDK_SGE room = NdkEnd::sge(address_of(end.memory), 64, mr->Dispatch->NdkGetLocalTokenFromMr(mr));
  // The third reaches the threshold, the fifth is one too many.
  for (int i = 0; i < 4; ++i) CHECK(srq->Dispatch->NdkSrqReceive(srq, nullptr, &room, 1) == STATUS_SUCCESS);
  CHECK(srq->Dispatch->NdkSrqReceive(srq, nullptr, &room, 1) == STATUS_NO_MORE_ENTRIES);
  CHECK(end.host.finish([&](auto cb, auto ctx) { return srq->Dispatch->NdkModifySrq(srq, 32, 2, cb, ctx); }) ==
        STATUS_SUCCESS);
  CHECK(end.host.finish([&](auto cb, auto ctx) { return end.cq->Dispatch->NdkResizeCq(end.cq, 128, cb, ctx); }) ==
        STATUS_SUCCESS);
  CHECK(end.cq->Dispatch->NdkControlCqInterruptModeration(end.cq, 10, 2) == STATUS_SUCCESS);
  CHECK(end.cq->Dispatch->NdkControlCqInterruptModeration(end.cq, 0, 0) == STATUS_SUCCESS);
  NDK_RESULT plain{};
  CHECK(end.cq->Dispatch->NdkGetCqResults(end.cq, &plain, 1) == 0);
  CHECK(end.a->Dispatch->NdkCreateSharedEndpoint(end.a, nullptr, 0, nullptr, nullptr, nullptr) == STATUS_NOT_SUPPORTED);
  query_extension(end.pd);
  query_extension(end.cq);
  query_extension(end.qp);
  query_extension(mr);
  query_extension(mw);
  query_extension(srq);
  NDK_EXTENSION_INTERFACE extension{};
  CHECK(end.a->Dispatch->NdkQueryExtensionInterface(&end.a->Header, nullptr, {1, 0}, &extension) ==
        STATUS_NOT_SUPPORTED);
  CHECK(end.deregister(mr) == STATUS_SUCCESS);
  end.host.close(shared);
  end.host.close(srq);
  end.host.close(mw);
  end.host.close(fast);
  end.host.close(mr);
}

/// Every request of a connected pair, more often than a ring or a region has places; and one too many.
void use_queue_pairs(NdkEnd& a, NdkEnd& b) {
  NDK_MR* const mr_a = a.make_mr(false);
  NDK_MR* const mr_b = b.make_mr(false);
  for (auto [end, mr] : {std::pair(&a, mr_a), std::pair(&b, mr_b)})
    REQUIRE(end->register_mr(mr, end->memory, 8192, NDK_MR_FLAG_ALLOW_LOCAL_WRITE) == STATUS_SUCCESS);
  const NDK_SGE of_a = NdkEnd::sge(address_of(a.memory), 64, mr_a->Dispatch->NdkGetLocalTokenFromMr(mr_a));
  const NDK_SGE of_b = NdkEnd::sge(address_of(b.memory), 64, mr_b->Dispatch->NdkGetLocalTokenFromMr(mr_b));
  NDK_MW* const mw =
      b.host.make<NDK_MW>([&](auto cb, auto ctx, auto out) { return b.pd->Dispatch->NdkCreateMw(b.pd, cb, ctx, out); });
  NDK_MR* const fast = b.make_mr(true);
  REQUIRE(b.initialize(fast, 4) == STATUS_SUCCESS);
  auto lam = b.build_lam(b.memory, 2 * PAGE_SIZE);
  const auto pages = lam.pages();
  const auto receive = [&] { return b.qp->Dispatch->NdkReceive(b.qp, nullptr, &of_b, 1); };
  for (int i = 0; i < 40; ++i) {
    b.cq->Dispatch->NdkArmCq(b.cq, NDK_CQ_NOTIFY_ANY);
    REQUIRE(receive() == STATUS_SUCCESS);
    REQUIRE(a.qp->Dispatch->NdkSend(a.qp, nullptr, &of_a, 1, NDK_OP_FLAG_INLINE) == STATUS_SUCCESS);
    CHECK(a.status() == STATUS_SUCCESS);
    CHECK(b.status() == STATUS_SUCCESS);
    REQUIRE(b.qp->Dispatch->NdkBind(b.qp, nullptr, mr_b, mw, b.memory, 4096, NDK_OP_FLAG_ALLOW_REMOTE_READ) ==
            STATUS_SUCCESS);
    CHECK(b.status() == STATUS_SUCCESS);
    REQUIRE(a.read(of_a, address_of(b.memory), mw->Dispatch->NdkGetRemoteTokenFromMw(mw)) == STATUS_SUCCESS);
    CHECK(a.status() == STATUS_SUCCESS);
    REQUIRE(b.invalidate(mw->Header) == STATUS_SUCCESS);
    CHECK(b.status() == STATUS_SUCCESS);
    REQUIRE(b.fast_register(fast, pages, 0, 8192, 0, NDK_OP_FLAG_ALLOW_REMOTE_WRITE) == STATUS_SUCCESS);
    CHECK(b.status() == STATUS_SUCCESS);
    const UINT32 token = fast->Dispatch->NdkGetRemoteTokenFromMr(fast);
    REQUIRE(a.write(of_a, 0, token) == STATUS_SUCCESS);
    CHECK(a.status() == STATUS_SUCCESS);
    REQUIRE(receive() == STATUS_SUCCESS);
    REQUIRE(a.qp->Dispatch->NdkSendAndInvalidate(a.qp, nullptr, &of_a, 1, 0, token) == STATUS_SUCCESS);
    CHECK(a.status() == STATUS_SUCCESS);
    CHECK(b.result().Type == NdkOperationTypeReceiveAndInvalidate);
  }
  for (ULONG i = 0; i < NdkEnd::kDepth; ++i) REQUIRE(receive() == STATUS_SUCCESS);
  CHECK(receive() == STATUS_NO_MORE_ENTRIES);
  b.qp->Dispatch->NdkFlush(b.qp);
  CHECK(results_of(b).size() == NdkEnd::kDepth);
  b.release(lam);
  b.host.close(fast);
  b.host.close(mw);
  b.host.close(mr_b);
  a.host.close(mr_a);
}

}  // namespace

TEST_CASE("DISPATCH_LEVEL: what may not be done there is seen") {
  // Where the compiler can leave neither out.
  static void* volatile kept = nullptr;
  CHECK(judged([] {
          kept = ::operator new(1);
          ::operator delete(kept);
        }) == "operator new");
  CHECK(judged([] {
          kept = std::malloc(1);
          std::free(kept);
        }) == "malloc");
  CHECK(judged([] {
          std::mutex mutex;
          const std::lock_guard lock(mutex);
        }) == "a mutex");
  CHECK(judged([] {
          try {
            throw 1;
          } catch (int) {
          }
        }) == "throw");
  CHECK(judged([] {}).empty());
  with_ndk_endpoints(fresh_world(WorldOptions::from_environment("ndk_dispatch_hooks")), [](Endpoint& end, Endpoint&) {
    DispatchDevice device(end.device());
    CHECK(judged([&] { static_cast<void>(device.wait(device.wake_count(), 1)); }) == "Device::wake_count");
    CHECK(judged([&] { static_cast<void>(device.wait(0, 1)); }) == "Device::wait");
    CHECK(judged([&] { static_cast<void>(device.read64(0)); }) == "Device::read64");
    CHECK(judged([&] { static_cast<void>(device.map_pages(&device, 1, true).ok()); }) == "Device::map_pages");
    CHECK(judged([&] { device.elapse(100); }).empty());
    CHECK(judged([&] {
            for (int i = 0; i < 3; ++i) device.elapse(100);
          }) == "Device::elapse");
    CHECK(judged([&] { device.wake(); }).empty());
  });
}

TEST_CASE("NDK: every function of every table neither takes memory nor waits at DISPATCH_LEVEL") {
  with_parties("ndk_dispatch_all", [](Parties& p) {
    use_objects(p.a);
    NDK_CONNECTOR* const to = p.connected();
    CHECK(Parties::data_of(p.from) == "you may");
    CHECK(address_by([&](auto room, auto size) { return p.from->Dispatch->NdkGetPeerAddress(p.from, room, size); }) ==
          at(1, kPort));
    CHECK(address_by([&](auto room, auto size) { return p.from->Dispatch->NdkGetLocalAddress(p.from, room, size); }) ==
          address_by([&](auto room, auto size) { return to->Dispatch->NdkGetPeerAddress(to, room, size); }));
    CHECK(address_by([&](auto room, auto size) {
            return p.listener->Dispatch->NdkGetLocalAddress(p.listener, room, size);
          }) == at(1, kPort));
    use_queue_pairs(p.a, p.b);
    Asked rejected(p.a);
    CHECK(to->Dispatch->NdkReject(to, nullptr, 0, Asked::done, &rejected) != STATUS_PENDING);
    CHECK(p.from->Dispatch->NdkConnectWithSharedEndpoint(p.from, p.a.qp, nullptr, nullptr, 0, 0, 0, nullptr, 0,
                                                         Asked::done, &rejected) == STATUS_NOT_SUPPORTED);
    static_cast<void>(p.disconnect(p.a, p.from));
    p.listener->Dispatch->NdkControlConnectEvents(p.listener, 1);
    query_extension(p.from);
    query_extension(p.listener);
  });
  CHECK(never_raised() == std::vector<std::string>{});
}

TEST_CASE("NDK: more calls than the driver has places for at a time are refused, and the next is not") {
  with_ndk_endpoints(fresh_world(WorldOptions::from_environment("ndk_dispatch_places")), [](Endpoint& host, Endpoint&) {
    NdkEnd end(host);
    struct Made {
      NdkEnd& end;
      std::vector<NDK_CONNECTOR*> connectors;
      static void created(PVOID context, NTSTATUS, NDK_OBJECT_HEADER* object) {
        auto& self = *static_cast<Made*>(context);
        self.connectors.push_back(at_dispatch_level(reinterpret_cast<NDK_CONNECTOR*>(object)));
        self.end.host.endpoint().device().wake();
      }
    } made{end, {}};
    const auto create = [&] { return end.a->Dispatch->NdkCreateConnector(end.a, Made::created, &made, nullptr); };
    std::size_t pending = 0;
    NTSTATUS refused = STATUS_PENDING;
    while (pending < 1000 && (refused = create()) == STATUS_PENDING) ++pending;
    CHECK(refused == STATUS_INSUFFICIENT_RESOURCES);
    CHECK(pending >= 100);
    REQUIRE(end.host.wait_until([&] { return made.connectors.size() == pending; }, 1'000'000'000));
    CHECK(create() == STATUS_PENDING);
    REQUIRE(end.host.wait_until([&] { return made.connectors.size() == pending + 1; }, 1'000'000'000));
    for (NDK_CONNECTOR* connector : made.connectors) end.host.close(connector);
  });
}

TEST_CASE(
    "NDK: Receives that are posted while an unconnected queue pair is flushed wait for nobody, and none is lost") {
  with_ndk_endpoints(fresh_world(WorldOptions::from_environment("ndk_dispatch_flush")), [](Endpoint& host, Endpoint&) {
    NdkEnd end(host);
    const NDK_SGE room = NdkEnd::sge(address_of(end.memory), 64, 0);
    std::vector<int> seen;
    const auto reap = [&] {
      for (const NDK_RESULT_EX& result : results_of(end)) {
        CHECK(result.Status == STATUS_CANCELLED);
        ++seen[reinterpret_cast<std::size_t>(result.RequestContext)];
      }
    };
    const auto post = [&] {
      if (end.qp->Dispatch->NdkReceive(end.qp, number(seen.size()), &room, 1) == STATUS_SUCCESS) seen.push_back(0);
    };
    for (int round = 0; round < 5; ++round) {
      for (int i = 0; i < 3; ++i) post();
      end.qp->Dispatch->NdkFlush(end.qp);
      // In front of the flush, into it and behind it.
      for (int i = 0; i < 12; ++i) {
        end.host.endpoint().device().elapse(300);
        post();
      }
      reap();
    }
    end.qp->Dispatch->NdkFlush(end.qp);
    reap();
    CHECK(seen.size() >= 5 * 12);
    for (const int count : seen) CHECK(count == 1);
  });
}

TEST_CASE("NDK: Receives that are posted while a shared receive queue grows wait for nobody, and none is lost") {
  with_pair("ndk_dispatch_modify", [](NdkPair& p) {
    const SharedPair shared(p, 0);
    NDK_SRQ* const srq = shared.srq;
    NDK_QP* const from = shared.from;
    std::size_t posted = 0, taken = 0;
    const auto post = [&] {
      const NDK_SGE room = p.local(p.b, 64, 64 * (posted % 512));
      if (srq->Dispatch->NdkSrqReceive(srq, number(posted), &room, 1) == STATUS_SUCCESS) ++posted;
    };
    const auto message = [&] {
      const NDK_SGE data = p.local(p.a, 32);
      std::memset(p.a.memory, static_cast<int>(taken + 1), 32);
      REQUIRE(from->Dispatch->NdkSend(from, nullptr, &data, 1, 0) == STATUS_SUCCESS);
      CHECK(p.a.status() == STATUS_SUCCESS);
      const auto got = p.b.result();
      CHECK(got.Status == STATUS_SUCCESS);
      CHECK(got.RequestContext == number(taken));
      CHECK(std::memcmp(p.b.memory + 64 * (taken % 512), p.a.memory, 32) == 0);
      ++taken;
    };
    for (const ULONG depth : {16U, 64U, 256U}) {
      for (int i = 0; i < 3; ++i) post();
      message();
      Asked modified(p.b);
      REQUIRE(srq->Dispatch->NdkModifySrq(srq, depth, 0, Asked::done, &modified) == STATUS_PENDING);
      const std::size_t before = posted;
      while (modified.calls == 0 && posted - before < 5) {
        post();
        p.b.host.endpoint().device().elapse(300);
      }
      CHECK(posted > before);
      CHECK(modified.wait() == STATUS_SUCCESS);
      while (taken < posted) message();
    }
  });
}
