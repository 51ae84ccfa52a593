#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "driver/ndk/queue_pair.hpp"
#include "testbench/ndk_host.hpp"
#include "tests/system/dispatch_level.hpp"
#include "tests/system/system_world.hpp"

// Consumers of the Network Direct kernel provider interface, each on a host of its own. Their calls are at
// DISPATCH_LEVEL (tests/system/dispatch_level.hpp).
namespace rnic::test {

/// An adapter whose objects are called at DISPATCH_LEVEL.
class NdkHost : public testbench::NdkHost {
 public:
  explicit NdkHost(Endpoint& endpoint) : testbench::NdkHost(endpoint) { at_dispatch_level(adapter()); }

  template <typename Face, typename Call>
  NTSTATUS create(Face*& made, Call&& call) {
    const NTSTATUS status = testbench::NdkHost::create(made, std::forward<Call>(call));
    at_dispatch_level(made);
    return status;
  }
  template <typename Face, typename Call>
  Face* make(Call&& call) {
    return at_dispatch_level(testbench::NdkHost::make<Face>(std::forward<Call>(call)));
  }
};

/// One end: the objects that a consumer begins with, and memory.
struct NdkEnd {
  static constexpr ULONG kDepth = 16, kCqDepth = 64, kSge = 4, kInline = 64;
  static constexpr std::size_t kBytes = 64 << 10;

  explicit NdkEnd(Endpoint& at)
      : host(at),
        memory(static_cast<std::uint8_t*>(at.host().memory().allocate(kBytes))),
        a(host.adapter()),
        pd(host.make<NDK_PD>([&](auto cb, auto ctx, auto out) { return a->Dispatch->NdkCreatePd(a, cb, ctx, out); })),
        cq(make_cq(kCqDepth)),
        qp(make_qp()) {
    std::memset(memory, 0x11 * (at.host().index() + 1), kBytes);
  }
  ~NdkEnd() {
    if (qp != nullptr) host.close(qp);
    if (cq != nullptr) host.close(cq);
    if (pd != nullptr) host.close(pd);
  }

  static void notified(PVOID context, NTSTATUS status) {
    auto& end = *static_cast<NdkEnd*>(context);
    end.notifications.push_back(status);
    end.host.endpoint().device().wake();
  }
  NDK_CQ* make_cq(ULONG depth) {
    return host.make<NDK_CQ>([&](auto cb, auto ctx, auto out) {
      return a->Dispatch->NdkCreateCq(a, depth, notified, this, nullptr, cb, ctx, out);
    });
  }
  NDK_QP* make_qp(PVOID context = nullptr) {
    return host.make<NDK_QP>([&](auto cb, auto ctx, auto out) {
      return pd->Dispatch->NdkCreateQp(pd, cq, cq, context, kDepth, kDepth, kSge, kSge, kInline, cb, ctx, out);
    });
  }
  NDK_MR* make_mr(bool fast) {
    return host.make<NDK_MR>(
        [&](auto cb, auto ctx, auto out) { return pd->Dispatch->NdkCreateMr(pd, fast, cb, ctx, out); });
  }
  NTSTATUS initialize(NDK_MR* mr, ULONG pages, bool remote = true) {
    return host.finish(
        [&](auto cb, auto ctx) { return mr->Dispatch->NdkInitializeFastRegisterMr(mr, pages, remote, cb, ctx); });
  }
  NTSTATUS register_mr(NDK_MR* mr, void* at, ULONG bytes, ULONG flags) {
    MDL mdl = mdl_of(at, bytes);
    return host.finish([&](auto cb, auto ctx) { return mr->Dispatch->NdkRegisterMr(mr, &mdl, bytes, flags, cb, ctx); });
  }
  NTSTATUS deregister(NDK_MR* mr) {
    return host.finish([&](auto cb, auto ctx) { return mr->Dispatch->NdkDeregisterMr(mr, cb, ctx); });
  }

  /// Pages of memory, as NdkBuildLAM gives them.
  struct Lam {
    std::vector<std::byte> room;
    ULONG fbo{};
    [[nodiscard]] NDK_LOGICAL_ADDRESS_MAPPING* operator->() { return get(); }
    [[nodiscard]] NDK_LOGICAL_ADDRESS_MAPPING* get() {
      return reinterpret_cast<NDK_LOGICAL_ADDRESS_MAPPING*>(room.data());
    }
    [[nodiscard]] std::vector<NDK_LOGICAL_ADDRESS> pages() {
      return {get()->AdapterPageArray, get()->AdapterPageArray + get()->AdapterPageCount};
    }
  };
  Lam build_lam(void* at, ULONG bytes) {
    Lam lam;
    MDL mdl = mdl_of(at, bytes);
    ULONG size = 0;
    REQUIRE(a->Dispatch->NdkBuildLAM(
                a, &mdl, bytes, [](PVOID, NTSTATUS) {}, nullptr, nullptr, &size, &lam.fbo) == STATUS_BUFFER_TOO_SMALL);
    lam.room.resize(size);
    REQUIRE(host.finish([&](auto cb, auto ctx) {
      return a->Dispatch->NdkBuildLAM(a, &mdl, bytes, cb, ctx, lam.get(), &size, &lam.fbo);
    }) == STATUS_SUCCESS);
    return lam;
  }
  void release(Lam& lam) { a->Dispatch->NdkReleaseLAM(a, lam.get()); }

  NTSTATUS fast_register(NDK_MR* mr, const std::vector<NDK_LOGICAL_ADDRESS>& pages, ULONG fbo, SIZE_T length,
                         std::uint64_t base, ULONG flags, PVOID context = nullptr) {
    return qp->Dispatch->NdkFastRegister(qp, context, mr, static_cast<ULONG>(pages.size()), pages.data(), fbo, length,
                                         reinterpret_cast<PVOID>(base), flags);
  }
  static NDK_SGE sge(std::uint64_t at, ULONG length, UINT32 token) {
    NDK_SGE made{};
    made.LogicalAddress = at;
    made.Length = length;
    made.MemoryRegionToken = token;
    return made;
  }
  NTSTATUS invalidate(NDK_OBJECT_HEADER& object, ULONG flags = 0, PVOID context = nullptr) {
    return qp->Dispatch->NdkInvalidate(qp, context, &object, flags);
  }
  NTSTATUS read(const NDK_SGE& to, std::uint64_t from, UINT32 token, ULONG flags = 0, PVOID context = nullptr) {
    return qp->Dispatch->NdkRead(qp, context, &to, 1, from, token, flags);
  }
  NTSTATUS write(const NDK_SGE& from, std::uint64_t to, UINT32 token, ULONG flags = 0, PVOID context = nullptr) {
    return qp->Dispatch->NdkWrite(qp, context, &from, 1, to, token, flags);
  }

  /// The next result. Fails the test if none comes.
  NDK_RESULT_EX result(std::uint64_t limit_ns = 100'000'000) {
    NDK_RESULT_EX got{};
    const std::uint64_t end = host.endpoint().device().now_ns() + limit_ns;
    while (cq->Dispatch->NdkGetCqResultsEx(cq, &got, 1) == 0) {
      if (host.endpoint().device().now_ns() >= end) FAIL("no result");
      host.endpoint().device().elapse(200);
    }
    return got;
  }
  NTSTATUS status() { return result().Status; }
  bool empty() {
    host.endpoint().device().elapse(50'000);
    NDK_RESULT_EX got{};
    return cq->Dispatch->NdkGetCqResultsEx(cq, &got, 1) == 0;
  }

  NdkHost host;
  std::uint8_t* const memory;
  NDK_ADAPTER* const a;
  std::vector<NTSTATUS> notifications;
  NDK_PD* pd = nullptr;
  NDK_CQ* cq = nullptr;
  NDK_QP* qp = nullptr;
};

inline std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

/// Connects the queue pairs of both without a connection manager, as a test that is not about one does.
inline void join(NdkEnd& a, NdkEnd& b) {
  testbench::connect_pair(a.host.endpoint(), *ndk::QueuePair::of(a.qp).core(), b.host.endpoint(),
                          *ndk::QueuePair::of(b.qp).core(), {});
}

/// Two ends that are connected, each with a registered region over all of its memory.
struct NdkPair {
  NdkPair(Endpoint& host_a, Endpoint& host_b) : a(host_a), b(host_b) {
    join(a, b);
    for (auto [end, mr] : {std::pair(&a, &mr_a), std::pair(&b, &mr_b)}) {
      *mr = end->make_mr(false);
      REQUIRE(end->register_mr(*mr, end->memory, NdkEnd::kBytes, NDK_MR_FLAG_ALLOW_LOCAL_WRITE) == STATUS_SUCCESS);
    }
  }
  ~NdkPair() {
    a.host.close(mr_a);
    b.host.close(mr_b);
  }
  UINT32 token(NDK_MR* mr) { return mr->Dispatch->NdkGetLocalTokenFromMr(mr); }
  static UINT32 remote(NDK_MR* mr) { return mr->Dispatch->NdkGetRemoteTokenFromMr(mr); }
  /// A segment of the registered memory.
  NDK_SGE local(NdkEnd& end, ULONG length, std::size_t at = 0) {
    return NdkEnd::sge(address_of(end.memory) + at, length, token(&end == &a ? mr_a : mr_b));
  }
  NdkEnd a, b;
  NDK_MR* mr_a = nullptr;
  NDK_MR* mr_b = nullptr;
};

inline NTSTATUS send(NDK_QP* qp, const NDK_SGE& from, ULONG flags) {
  return qp->Dispatch->NdkSend(qp, nullptr, &from, 1, flags);
}
inline NTSTATUS receive(NDK_QP* qp, const NDK_SGE& to) { return qp->Dispatch->NdkReceive(qp, nullptr, &to, 1); }

/// Two queue pairs more, which are connected, each with `depth` requests. Their context is this.
struct MorePairs {
  MorePairs(NdkPair& p, ULONG depth, NDK_CQ* receives_of_b = nullptr) : pair(p) {
    const auto make = [&](NdkEnd& end, NDK_CQ* receives) {
      return end.host.make<NDK_QP>([&](auto cb, auto ctx, auto out) {
        return end.pd->Dispatch->NdkCreateQp(end.pd, receives, end.cq, this, depth, depth, NdkEnd::kSge, NdkEnd::kSge,
                                             NdkEnd::kInline, cb, ctx, out);
      });
    };
    a = make(p.a, p.a.cq);
    b = make(p.b, receives_of_b != nullptr ? receives_of_b : p.b.cq);
    testbench::connect_pair(p.a.host.endpoint(), *ndk::QueuePair::of(a).core(), p.b.host.endpoint(),
                            *ndk::QueuePair::of(b).core(), {});
  }
  ~MorePairs() {
    pair.a.host.close(a);
    if (b != nullptr) pair.b.host.close(b);
  }
  NdkPair& pair;
  NDK_QP *a = nullptr, *b = nullptr;
};

/// A queue pair of `a` that sends to one of `b` with a shared receive queue, whose context is that; notifications go to
/// `b`.
struct SharedPair {
  SharedPair(NdkPair& p, ULONG threshold) : pair(p) {
    srq = p.b.host.make<NDK_SRQ>([&](auto cb, auto ctx, auto out) {
      return p.b.pd->Dispatch->NdkCreateSrq(p.b.pd, 8, 1, threshold, NdkEnd::notified, &p.b, nullptr, cb, ctx, out);
    });
    from = p.a.make_qp();
    to = p.b.host.make<NDK_QP>([&](auto cb, auto ctx, auto out) {
      return p.b.pd->Dispatch->NdkCreateQpWithSrq(p.b.pd, p.b.cq, p.b.cq, srq, srq, 4, 1, 0, cb, ctx, out);
    });
    testbench::connect_pair(p.a.host.endpoint(), *ndk::QueuePair::of(from).core(), p.b.host.endpoint(),
                            *ndk::QueuePair::of(to).core(), {});
  }
  ~SharedPair() {
    pair.b.host.close(to);
    pair.a.host.close(from);
    pair.b.host.close(srq);
  }
  NdkPair& pair;
  NDK_SRQ* srq = nullptr;
  NDK_QP *from = nullptr, *to = nullptr;
};

/// Runs `body` as with_endpoints does; what the machine does for the drivers is not taken for theirs.
inline void with_ndk_endpoints(World& world, const std::function<void(Endpoint&, Endpoint&)>& body,
                               std::uint64_t limit_ns = 1'000'000'000) {
  world.add_app(0, "test", [&](Host& host) {
    DispatchDevice device_a(host.device()), device_b(world.host(1).device());
    Endpoint a(host, {}, false, &device_a), b(world.host(1), {}, false, &device_b);
    body(a, b);
  });
  world.run(limit_ns);
}

inline void with_pair(const std::string& name, const std::function<void(NdkPair&)>& body) {
  with_ndk_endpoints(fresh_world(WorldOptions::from_environment(name)), [&](Endpoint& host_a, Endpoint& host_b) {
    NdkPair pair(host_a, host_b);
    body(pair);
  });
}

}  // namespace rnic::test
