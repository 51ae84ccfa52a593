// The Network Direct kernel provider interface over the NIC: regions, fast registration, invalidation (docs/ndk.md).
#include <arpa/inet.h>

#include <catch2/catch.hpp>

#include "tests/system/ndk_world.hpp"

using namespace rnic;
using namespace rnic::test;

namespace {

constexpr ULONG kRemoteRead = NDK_OP_FLAG_ALLOW_REMOTE_READ, kRemoteWrite = NDK_OP_FLAG_ALLOW_REMOTE_WRITE;

}  // namespace

TEST_CASE("NDK: what the adapter says of itself") {
  with_ndk_endpoints(fresh_world(WorldOptions::from_environment("ndk_info")), [&](Endpoint& host, Endpoint&) {
    NdkHost ndk(host);
    NDK_ADAPTER* const a = ndk.adapter();
    NDK_ADAPTER_INFO info{};
    ULONG size = 0;
    CHECK(a->Dispatch->NdkQueryAdapterInfo(a, nullptr, &size) == STATUS_BUFFER_TOO_SMALL);
    CHECK(size == sizeof info);
    size = sizeof info - 1;
    CHECK(a->Dispatch->NdkQueryAdapterInfo(a, &info, &size) == STATUS_BUFFER_TOO_SMALL);
    REQUIRE(a->Dispatch->NdkQueryAdapterInfo(a, &info, &size) == STATUS_SUCCESS);
    CHECK(info.FRMRPageCount >= 16);
    CHECK(info.MaxRegistrationSize >= std::size_t{2} << 30);
    CHECK(info.MaxTransferLength == 2U << 30);
    CHECK(info.MaxInitiatorRequestSge == 16);
    CHECK(info.MaxReadRequestSge == 16);
    CHECK(info.MaxInlineDataSize >= 220);
    CHECK(info.MaxInboundReadLimit == 16);
    CHECK(info.MaxOutboundReadLimit == 16);
    CHECK(info.MaxInitiatorQueueDepth >= 8192);
    CHECK(info.MaxReceiveQueueDepth >= 8192);
    CHECK(info.MaxSrqDepth > 0);
    CHECK(info.MaxCallerData == 56);
    CHECK(info.MaxCalleeData == 148);
    CHECK(info.RdmaTechnology == NdkRoCEv2);
    CHECK(info.AdapterFlags == 0x10117);
    CHECK(a->Header.ObjectType == NdkObjectTypeAdapter);
    CHECK(a->Header.Version.Major == 1);
    CHECK(a->Header.Version.Minor == 2);
    NDK_EXTENSION_INTERFACE extension{};
    CHECK(a->Dispatch->NdkQueryExtensionInterface(&a->Header, nullptr, {1, 0}, &extension) == STATUS_NOT_SUPPORTED);
    CHECK(a->Dispatch->NdkCreateSharedEndpoint(a, nullptr, 0, nullptr, nullptr, nullptr) == STATUS_NOT_SUPPORTED);
  });
}

TEST_CASE("NDK: registered regions move data, and refuse what is not theirs") {
  with_pair("ndk_regions", [](NdkPair& p) {
    CHECK(p.a.register_mr(p.mr_a, p.a.memory, 1, 0) == STATUS_INVALID_DEVICE_STATE);
    NDK_MR* const mr = p.b.make_mr(false);
    CHECK(p.b.deregister(mr) == STATUS_INVALID_DEVICE_STATE);
    CHECK(p.b.initialize(mr, 16) == STATUS_INVALID_DEVICE_REQUEST);
    CHECK(p.b.register_mr(mr, p.b.memory, 4096, 0x80) == STATUS_INVALID_PARAMETER);
    CHECK(p.b.register_mr(mr, reinterpret_cast<void*>(4096), 4096, 0) == STATUS_ACCESS_VIOLATION);
    REQUIRE(p.b.register_mr(mr, p.b.memory, 4096, NDK_MR_FLAG_ALLOW_REMOTE_READ) == STATUS_SUCCESS);
    std::memset(p.b.memory, 0x77, 4096);
    REQUIRE(p.a.read(p.local(p.a, 4096), address_of(p.b.memory), NdkPair::remote(mr)) == STATUS_SUCCESS);
    const auto got = p.a.result();
    CHECK(got.Status == STATUS_SUCCESS);
    CHECK(got.Type == NdkOperationTypeRead);
    CHECK(got.ProviderErrorCode == 0);
    CHECK(std::memcmp(p.a.memory, p.b.memory, 4096) == 0);
    REQUIRE(p.b.deregister(mr) == STATUS_SUCCESS);
    CHECK(p.b.deregister(mr) == STATUS_INVALID_DEVICE_STATE);
    CHECK(NdkPair::remote(mr) == 0);
    p.b.host.close(mr);
    // A chain of MDLs is one piece of memory, or refused.
    NDK_MR* const chained = p.b.make_mr(false);
    MDL second = mdl_of(p.b.memory + 5000, 3000), first = mdl_of(p.b.memory + 100, 4900);
    first.Next = &second;
    const auto try_it = [&](SIZE_T length) {
      return p.b.host.finish([&](auto cb, auto ctx) {
        return chained->Dispatch->NdkRegisterMr(chained, &first, length, NDK_MR_FLAG_ALLOW_REMOTE_WRITE, cb, ctx);
      });
    };
    CHECK(try_it(7901) == STATUS_INVALID_PARAMETER);
    second.ByteOffset += 1;
    CHECK(try_it(7900) == STATUS_INVALID_PARAMETER);
    second.ByteOffset -= 1;
    REQUIRE(try_it(7900) == STATUS_SUCCESS);
    REQUIRE(p.a.write(p.local(p.a, 7900), address_of(p.b.memory + 100), NdkPair::remote(chained)) == STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_SUCCESS);
    CHECK(std::memcmp(p.a.memory, p.b.memory + 100, 7900) == 0);
    p.b.host.close(chained);
  });
}

TEST_CASE("NDK: a fast registration of pages that do not follow each other is read and written by the peer") {
  with_pair("ndk_fast", [](NdkPair& p) {
    NDK_MR* const mr = p.b.make_mr(true);
    CHECK(p.b.register_mr(mr, p.b.memory, 4096, 0) == STATUS_INVALID_DEVICE_REQUEST);
    CHECK(p.b.deregister(mr) == STATUS_INVALID_DEVICE_REQUEST);
    CHECK(p.b.fast_register(mr, {4096}, 0, 4096, 0, 0) == STATUS_INVALID_DEVICE_STATE);
    REQUIRE(p.b.initialize(mr, 16) == STATUS_SUCCESS);
    auto lam = p.b.build_lam(p.b.memory, 8 * PAGE_SIZE);
    CHECK(lam->AdapterPageCount == 8);
    CHECK(lam.fbo == 0);
    auto pages = lam.pages();
    for (const auto page : pages) CHECK(page % PAGE_SIZE == 0);
    // Pages 6, 1, 4: what follows each other for the peer does not in memory.
    const std::vector<NDK_LOGICAL_ADDRESS> chosen{pages[6], pages[1], pages[4]};
    constexpr ULONG kFbo = 1000;
    constexpr SIZE_T kLength = 3 * PAGE_SIZE - kFbo;
    constexpr std::uint64_t kBase = 0x7000'0000'0000 + kFbo;
    const UINT32 before = NdkPair::remote(mr);
    REQUIRE(p.b.fast_register(mr, chosen, kFbo, kLength, kBase, kRemoteRead | kRemoteWrite, &p) == STATUS_SUCCESS);
    const UINT32 token = NdkPair::remote(mr);
    CHECK(token != before);
    const auto registered = p.b.result();
    CHECK(registered.Status == STATUS_SUCCESS);
    CHECK(registered.Type == NdkOperationTypeFastRegister);
    CHECK(registered.RequestContext == &p);
    for (std::size_t i = 0; i < kLength; ++i) p.a.memory[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
    REQUIRE(p.a.write(p.local(p.a, kLength), kBase, token) == STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_SUCCESS);
    CHECK(std::memcmp(p.b.memory + 6 * PAGE_SIZE + kFbo, p.a.memory, PAGE_SIZE - kFbo) == 0);
    CHECK(std::memcmp(p.b.memory + 1 * PAGE_SIZE, p.a.memory + PAGE_SIZE - kFbo, PAGE_SIZE) == 0);
    CHECK(std::memcmp(p.b.memory + 4 * PAGE_SIZE, p.a.memory + 2 * PAGE_SIZE - kFbo, PAGE_SIZE) == 0);
    REQUIRE(p.a.read(p.local(p.a, kLength, 32768), kBase, token) == STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_SUCCESS);
    CHECK(std::memcmp(p.a.memory + 32768, p.a.memory, kLength) == 0);
    // In segments of its own side, by the local token and the address that it was registered with.
    CHECK(mr->Dispatch->NdkGetLocalTokenFromMr(mr) == ntohl(token));
    REQUIRE(p.b.invalidate(mr->Header) == STATUS_SUCCESS);
    const auto invalidated = p.b.result();
    CHECK(invalidated.Status == STATUS_SUCCESS);
    CHECK(invalidated.Type == NdkOperationTypeInvalidate);
    // The token is dead.
    REQUIRE(p.a.read(p.local(p.a, 16), kBase, token) == STATUS_SUCCESS);
    const auto refused = p.a.result();
    CHECK(refused.Status == STATUS_ACCESS_VIOLATION);
    CHECK(refused.ProviderErrorCode != 0);
    p.b.release(lam);
    p.b.host.close(mr);
  });
}

TEST_CASE("NDK: every legal and illegal offset, length and base of a fast registration (decisions 22, 39)") {
  with_pair("ndk_fast_parameters", [](NdkPair& p) {
    NDK_MR* const mr = p.b.make_mr(true);
    CHECK(p.b.initialize(mr, 0) == STATUS_INVALID_PARAMETER);
    CHECK(p.b.initialize(mr, 32769) == STATUS_IMPLEMENTATION_LIMIT);
    REQUIRE(p.b.initialize(mr, 4) == STATUS_SUCCESS);
    auto lam = p.b.build_lam(p.b.memory, 8 * PAGE_SIZE);
    const auto all = lam.pages();
    const std::vector<NDK_LOGICAL_ADDRESS> two{all[0], all[1]}, five{all[0], all[1], all[2], all[3], all[4]};
    const auto try_it = [&](const std::vector<NDK_LOGICAL_ADDRESS>& pages, ULONG fbo, SIZE_T length, std::uint64_t base,
                            ULONG flags = kRemoteRead) {
      return p.b.fast_register(mr, pages, fbo, length, base, flags);
    };
    CHECK(try_it(five, 0, 4096, 0) == STATUS_INVALID_PARAMETER);    // more than initialized
    CHECK(try_it({}, 0, 0, 0) == STATUS_INVALID_PARAMETER);         // none
    CHECK(try_it(two, 4096, 1, 4096) == STATUS_INVALID_PARAMETER);  // FBO
    CHECK(try_it(two, 0, 0, 0) == STATUS_INVALID_PARAMETER);        // Length
    CHECK(try_it(two, 0, 8193, 0) == STATUS_INVALID_PARAMETER);
    CHECK(try_it(two, 1, 8192, 4097) == STATUS_INVALID_PARAMETER);
    CHECK(try_it(two, 4095, 4098, 4095) == STATUS_INVALID_PARAMETER);
    CHECK(try_it(two, 1, 100, 0) == STATUS_INVALID_PARAMETER);     // base 0 with an FBO
    CHECK(try_it(two, 1, 100, 4096) == STATUS_INVALID_PARAMETER);  // base is not n pages and the FBO
    CHECK(try_it(two, 0, 100, 4097) == STATUS_INVALID_PARAMETER);
    CHECK(try_it(two, 0, 8192, ~std::uint64_t{0} & ~std::uint64_t{4095}) == STATUS_INVALID_PARAMETER);  // wraps
    CHECK(try_it({all[0] + 8}, 0, 8, 0) == STATUS_INVALID_PARAMETER);  // a page that is none
    CHECK(try_it(two, 0, 100, 0, 0x20) == STATUS_INVALID_PARAMETER);   // half of REMOTE_WRITE
    for (const ULONG flag : {0x4U, 0x40U, 0x100U, 0x400U, 0x80000000U})
      CHECK(try_it(two, 0, 100, 0, flag) == STATUS_INVALID_PARAMETER);
    REQUIRE(p.b.empty());
    struct Case {
      ULONG fbo;
      SIZE_T length;
      std::uint64_t base;
    };
    for (const Case& c : {Case{0, 8192, 0}, Case{0, 1, 0}, Case{0, 8192, 4096}, Case{1, 8191, 1},
                          Case{4095, 4097, 4095}, Case{4095, 1, 8191}, Case{512, 4096, 0xFFFF'FFFF'FFFF'0200}}) {
      INFO("fbo " << c.fbo << ", length " << c.length << ", base " << c.base);
      REQUIRE(try_it(two, c.fbo, c.length, c.base) == STATUS_SUCCESS);
      CHECK(p.b.status() == STATUS_SUCCESS);
      const ULONG bytes = static_cast<ULONG>(c.length);
      std::memset(p.b.memory, static_cast<int>(c.fbo + bytes), 8192);
      p.b.memory[c.fbo] = 0xA5;
      REQUIRE(p.a.read(p.local(p.a, bytes), c.base, NdkPair::remote(mr)) == STATUS_SUCCESS);
      CHECK(p.a.status() == STATUS_SUCCESS);
      CHECK(std::memcmp(p.a.memory, p.b.memory + c.fbo, bytes) == 0);
      REQUIRE(p.b.invalidate(mr->Header) == STATUS_SUCCESS);
      CHECK(p.b.status() == STATUS_SUCCESS);
    }
    // READ_SINK is tolerated, alone and with others.
    REQUIRE(try_it(two, 0, 8192, 0, NDK_OP_FLAG_RDMA_READ_SINK) == STATUS_SUCCESS);
    CHECK(p.b.status() == STATUS_SUCCESS);
    // Valid already: completes with an error (decisions 19), and the queue pair is lost.
    REQUIRE(try_it(two, 0, 8192, 0) == STATUS_SUCCESS);
    CHECK(p.b.status() == STATUS_INVALID_DEVICE_REQUEST);
    CHECK(try_it(two, 0, 8192, 0) == STATUS_SUCCESS);
    CHECK(p.b.status() == STATUS_CANCELLED);
    // Without RemoteAccess no remote right is given (decisions 21); of a queue pair that is not connected nothing is
    // taken.
    NDK_MR* const local = p.a.make_mr(true);
    REQUIRE(p.a.initialize(local, 4, false) == STATUS_SUCCESS);
    auto of_a = p.a.build_lam(p.a.memory, 2 * PAGE_SIZE);
    CHECK(p.a.fast_register(local, of_a.pages(), 0, 8192, 0, kRemoteRead) == STATUS_ACCESS_VIOLATION);
    CHECK(p.a.fast_register(local, of_a.pages(), 0, 8192, 0, kRemoteWrite) == STATUS_ACCESS_VIOLATION);
    NDK_QP* const idle = p.a.make_qp();
    CHECK(idle->Dispatch->NdkFastRegister(idle, nullptr, local, 2, of_a->AdapterPageArray, 0, 8192, nullptr, 0) ==
          STATUS_CONNECTION_INVALID);
    CHECK(idle->Dispatch->NdkInvalidate(idle, nullptr, &local->Header, 0) == STATUS_CONNECTION_INVALID);
    p.a.host.close(idle);
    p.a.release(of_a);
    p.b.release(lam);
    p.a.host.close(local);
    p.b.host.close(mr);
  });
}

TEST_CASE("NDK: SendAndInvalidate ends a registration; the receiver is told which, and registers anew") {
  with_pair("ndk_send_and_invalidate", [](NdkPair& p) {
    NDK_MR* const mr = p.b.make_mr(true);
    REQUIRE(p.b.initialize(mr, 4) == STATUS_SUCCESS);
    auto lam = p.b.build_lam(p.b.memory + 8192, 2 * PAGE_SIZE);
    const std::uint64_t base = address_of(p.b.memory + 8192);
    // More often than the region has page lists: each is given back.
    for (int i = 0; i < 20; ++i) {
      REQUIRE(p.b.fast_register(mr, lam.pages(), 0, 8192, base, kRemoteRead, nullptr) == STATUS_SUCCESS);
      CHECK(p.b.status() == STATUS_SUCCESS);
      const UINT32 token = NdkPair::remote(mr);
      const NDK_SGE to = p.local(p.b, 64), from = p.local(p.a, 32);
      REQUIRE(p.b.qp->Dispatch->NdkReceive(p.b.qp, &p, &to, 1) == STATUS_SUCCESS);
      REQUIRE(p.a.qp->Dispatch->NdkSendAndInvalidate(p.a.qp, nullptr, &from, 1, 0, token) == STATUS_SUCCESS);
      const auto sent = p.a.result();
      CHECK(sent.Status == STATUS_SUCCESS);
      CHECK(sent.Type == NdkOperationTypeSend);
      const auto received = p.b.result();
      CHECK(received.Status == STATUS_SUCCESS);
      CHECK(received.Type == NdkOperationTypeReceiveAndInvalidate);
      CHECK(received.TypeSpecificCompletionOutput == token);
      CHECK(received.BytesTransferred == 32);
      CHECK(received.RequestContext == &p);
    }
    // Too late for the own Invalidate.
    REQUIRE(p.b.invalidate(mr->Header) == STATUS_SUCCESS);
    CHECK(p.b.status() == STATUS_INVALID_DEVICE_REQUEST);
    p.b.release(lam);
    p.b.host.close(mr);
  });
}

TEST_CASE("NDK: a token that the peer may not invalidate ends the connection") {
  with_pair("ndk_bad_invalidate", [](NdkPair& p) {
    const NDK_SGE to = p.local(p.b, 64), from = p.local(p.a, 32);
    REQUIRE(p.b.qp->Dispatch->NdkReceive(p.b.qp, nullptr, &to, 1) == STATUS_SUCCESS);
    REQUIRE(p.a.qp->Dispatch->NdkSendAndInvalidate(p.a.qp, nullptr, &from, 1, 0, NdkPair::remote(p.mr_b)) ==
            STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_ACCESS_VIOLATION);
    CHECK(p.b.status() == STATUS_ACCESS_VIOLATION);
  });
}

TEST_CASE("NDK: a Read with RDMA_READ_LOCAL_INVALIDATE ends the registration of its sink") {
  with_pair("ndk_read_invalidate", [](NdkPair& p) {
    NDK_MR* const source = p.b.make_mr(false);
    REQUIRE(p.b.register_mr(source, p.b.memory, 8192, NDK_MR_FLAG_ALLOW_REMOTE_READ) == STATUS_SUCCESS);
    NDK_MR* const sink = p.a.make_mr(true);
    REQUIRE(p.a.initialize(sink, 4, false) == STATUS_SUCCESS);
    auto lam = p.a.build_lam(p.a.memory + 8192, 2 * PAGE_SIZE);
    constexpr ULONG kInvalidate = NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE;
    const UINT32 from = NdkPair::remote(source);
    for (int i = 0; i < 20; ++i) {
      const bool silent = i % 2 != 0;
      REQUIRE(p.a.fast_register(sink, lam.pages(), 0, 8192, 0x10000,
                                NDK_OP_FLAG_ALLOW_LOCAL_WRITE | (silent ? 1U : 0U)) == STATUS_SUCCESS);
      if (!silent) CHECK(p.a.status() == STATUS_SUCCESS);
      std::memset(p.b.memory, i + 1, 8192);
      const auto to = NdkEnd::sge(0x10000, 8192, p.token(sink));
      REQUIRE(p.a.read(to, address_of(p.b.memory), from, kInvalidate | (silent ? NDK_OP_FLAG_SILENT_SUCCESS : 0), &p) ==
              STATUS_SUCCESS);
      if (silent) {
        CHECK(p.a.empty());
      } else {
        const auto got = p.a.result();
        CHECK(got.Status == STATUS_SUCCESS);
        CHECK(got.Type == NdkOperationTypeRead);
        CHECK(got.RequestContext == &p);
      }
      CHECK(std::memcmp(p.a.memory + 8192, p.b.memory, 8192) == 0);
    }
    CHECK(p.a.empty());
    // One that fails is told of once, and so is one that is flushed behind it.
    REQUIRE(p.a.fast_register(sink, lam.pages(), 0, 8192, 0x10000, NDK_OP_FLAG_ALLOW_LOCAL_WRITE) == STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_SUCCESS);
    const auto to = NdkEnd::sge(0x10000, 8192, p.token(sink));
    REQUIRE(p.a.read(to, address_of(p.b.memory) + 8192, from, kInvalidate, &p) == STATUS_SUCCESS);
    REQUIRE(p.a.read(to, address_of(p.b.memory), from, kInvalidate, &lam) == STATUS_SUCCESS);
    const auto failed = p.a.result();
    CHECK(failed.Status == STATUS_ACCESS_VIOLATION);
    CHECK(failed.Type == NdkOperationTypeRead);
    CHECK(failed.RequestContext == &p);
    const auto flushed = p.a.result();
    CHECK(flushed.Status == STATUS_CANCELLED);
    CHECK(flushed.RequestContext == &lam);
    CHECK(p.a.empty());
    p.a.release(lam);
    p.a.host.close(sink);
    p.b.host.close(source);
  });
}

TEST_CASE("NDK: logical addresses with the privileged token, on the own side and nowhere else") {
  with_pair("ndk_privileged", [](NdkPair& p) {
    UINT32 token = 0;
    p.a.pd->Dispatch->NdkGetPrivilegedMemoryRegionToken(p.a.pd, &token);
    auto lam = p.a.build_lam(p.a.memory + 100, 3 * PAGE_SIZE);
    CHECK(lam.fbo == 100);
    CHECK(lam->AdapterPageCount == 4);
    const auto pages = lam.pages();
    for (std::size_t i = 0; i < 4 * PAGE_SIZE; ++i) p.a.memory[i] = static_cast<std::uint8_t>(i * 13 + i / 256);
    // Segments of pages in any order.
    const NDK_SGE from[]{NdkEnd::sge(pages[2] + 7, 1000, token), NdkEnd::sge(pages[0] + 100, 500, token)};
    const NDK_SGE to = p.local(p.b, 4096);
    REQUIRE(p.b.qp->Dispatch->NdkReceive(p.b.qp, nullptr, &to, 1) == STATUS_SUCCESS);
    REQUIRE(p.a.qp->Dispatch->NdkSend(p.a.qp, nullptr, from, 2, 0) == STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_SUCCESS);
    CHECK(p.b.result().BytesTransferred == 1500);
    CHECK(std::memcmp(p.b.memory, p.a.memory + 2 * PAGE_SIZE + 7, 1000) == 0);
    CHECK(std::memcmp(p.b.memory + 1000, p.a.memory + 100, 500) == 0);
    // To receive into, too.
    const NDK_SGE into = NdkEnd::sge(pages[1], 4096, token), back = p.local(p.b, 4096);
    REQUIRE(p.a.qp->Dispatch->NdkReceive(p.a.qp, nullptr, &into, 1) == STATUS_SUCCESS);
    REQUIRE(p.b.qp->Dispatch->NdkSend(p.b.qp, nullptr, &back, 1, 0) == STATUS_SUCCESS);
    CHECK(p.b.status() == STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_SUCCESS);
    CHECK(std::memcmp(p.a.memory + PAGE_SIZE, p.b.memory, 4096) == 0);
    // The peer can do nothing with it.
    REQUIRE(p.b.read(p.local(p.b, 16), pages[0], htonl(token)) == STATUS_SUCCESS);
    CHECK(p.b.status() == STATUS_ACCESS_VIOLATION);
    p.a.release(lam);
  });
}

TEST_CASE("NDK: a mapping that is released has no addresses any more") {
  with_pair("ndk_released", [](NdkPair& p) {
    UINT32 token = 0;
    p.a.pd->Dispatch->NdkGetPrivilegedMemoryRegionToken(p.a.pd, &token);
    auto lam = p.a.build_lam(p.a.memory, PAGE_SIZE);
    const auto page = lam.pages()[0];
    p.a.release(lam);
    p.a.host.endpoint().device().elapse(100'000);
    const NDK_SGE from = NdkEnd::sge(page, 16, token);
    REQUIRE(p.a.qp->Dispatch->NdkSend(p.a.qp, nullptr, &from, 1, 0) == STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_ACCESS_VIOLATION);
  });
}

TEST_CASE("NDK: deferred requests leave with the next one, and with an inline failure (decisions 33)") {
  with_pair("ndk_defer", [](NdkPair& p) {
    NDK_MR* const first = p.b.make_mr(true);
    NDK_MR* const second = p.b.make_mr(true);
    for (NDK_MR* mr : {first, second}) REQUIRE(p.b.initialize(mr, 4) == STATUS_SUCCESS);
    auto lam = p.b.build_lam(p.b.memory, 2 * PAGE_SIZE);
    constexpr ULONG kDefer = NDK_OP_FLAG_DEFER;
    REQUIRE(p.b.fast_register(first, lam.pages(), 0, 8192, 0, kDefer, first) == STATUS_SUCCESS);
    CHECK(p.b.empty());
    CHECK(p.b.fast_register(second, lam.pages(), 0, 8193, 0, kDefer, second) == STATUS_INVALID_PARAMETER);
    const auto kicked = p.b.result();
    CHECK(kicked.RequestContext == first);
    CHECK(kicked.Status == STATUS_SUCCESS);
    CHECK(p.b.empty());
    REQUIRE(p.b.fast_register(second, lam.pages(), 0, 8192, 0, kDefer, second) == STATUS_SUCCESS);
    REQUIRE(p.b.invalidate(second->Header, kDefer | NDK_OP_FLAG_SILENT_SUCCESS) == STATUS_SUCCESS);
    CHECK(p.b.empty());
    REQUIRE(p.b.invalidate(first->Header, 0, first) == STATUS_SUCCESS);
    CHECK(p.b.result().RequestContext == second);
    CHECK(p.b.result().RequestContext == first);
    CHECK(p.b.empty());
    // A flush cancels them.
    REQUIRE(p.b.fast_register(second, lam.pages(), 0, 8192, 0, kDefer, second) == STATUS_SUCCESS);
    p.b.qp->Dispatch->NdkFlush(p.b.qp);
    CHECK(p.b.result().RequestContext == second);
    p.b.release(lam);
    for (NDK_MR* mr : {first, second}) p.b.host.close(mr);
  });
}
