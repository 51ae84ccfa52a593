// The Network Direct kernel provider interface: calls of connectors and listeners that are refused, and what ends a
// connection besides a Disconnect (docs/ndk.md).
#include <catch2/catch.hpp>

#include <utility>

#include "tests/system/ndk_parties.hpp"

using namespace rnic;
using namespace rnic::test;

namespace {

/// For calls that must not pend.
void never(PVOID, NTSTATUS) { FAIL("called back"); }

/// b has heard of the end, by its event and by its Receive.
void ended_at_b(Parties& p) {
  CHECK(p.b.host.wait_until([&] { return p.left_b == 1; }, 1'000'000'000));
  CHECK(p.b.status() == STATUS_CANCELLED);
}

}  // namespace

TEST_CASE("NDK: calls of connectors and listeners want their arguments") {
  with_parties("ndk_connection_arguments", [](Parties& p) {
    const Place source = at(0, 0), target = at(1, kPort);
    const auto connect = [&](NDK_QP* qp, const void* data, ULONG length, NDK_FN_REQUEST_COMPLETION completion) {
      return p.from->Dispatch->NdkConnect(p.from, qp, source.get(), source.length, target.get(), target.length, 1, 1,
                                          data, length, completion, nullptr);
    };
    CHECK(connect(nullptr, "", 0, never) == STATUS_INVALID_PARAMETER);
    CHECK(connect(p.a.qp, nullptr, 3, never) == STATUS_INVALID_PARAMETER);
    CHECK(connect(p.a.qp, "", 0, nullptr) == STATUS_INVALID_PARAMETER);
    Place room;
    room.length = sizeof room.storage;
    CHECK(p.from->Dispatch->NdkGetLocalAddress(p.from, room.get(), &room.length) == STATUS_CONNECTION_INVALID);
    CHECK(p.from->Dispatch->NdkGetPeerAddress(p.from, room.get(), &room.length) == STATUS_CONNECTION_INVALID);
    CHECK(p.listener->Dispatch->NdkGetLocalAddress(p.listener, room.get(), &room.length) ==
          STATUS_INVALID_DEVICE_STATE);
    CHECK(p.listen(p.listener, Place{}) == STATUS_INVALID_ADDRESS);
    for (const bool ipv6 : {false, true}) {
      Place cut = at(1, kPort, ipv6);
      --cut.length;
      CHECK(p.listen(p.listener, cut) == STATUS_INVALID_ADDRESS);
    }
    CHECK(p.listener->Dispatch->NdkListen(p.listener, target.get(), target.length, nullptr, nullptr) ==
          STATUS_INVALID_PARAMETER);
    REQUIRE(p.listen() == STATUS_SUCCESS);
    Asked asked(p.a), accepted(p.b), completed(p.a);
    REQUIRE(p.connect(asked, "may I?") == STATUS_PENDING);
    NDK_CONNECTOR* const to = p.request_at_b();
    const std::string much(149, 'x');
    const auto accept = [&](NDK_QP* qp, const void* data, ULONG length, NDK_FN_REQUEST_COMPLETION completion) {
      return to->Dispatch->NdkAccept(to, qp, 1, 1, data, length, nullptr, nullptr, completion, nullptr);
    };
    CHECK(accept(p.b.qp, much.data(), 149, never) == STATUS_INVALID_PARAMETER);
    CHECK(accept(p.b.qp, nullptr, 1, never) == STATUS_INVALID_PARAMETER);
    CHECK(accept(nullptr, "", 0, never) == STATUS_INVALID_PARAMETER);
    CHECK(accept(p.b.qp, "", 0, nullptr) == STATUS_INVALID_PARAMETER);
    CHECK(to->Dispatch->NdkReject(to, much.data(), 149, never, nullptr) == STATUS_INVALID_PARAMETER);
    CHECK(to->Dispatch->NdkReject(to, nullptr, 1, never, nullptr) == STATUS_INVALID_PARAMETER);
    CHECK(to->Dispatch->NdkReject(to, "", 0, nullptr, nullptr) == STATUS_INVALID_PARAMETER);
    REQUIRE(p.accept(to, accepted, "you may") == STATUS_PENDING);
    REQUIRE(asked.wait() == STATUS_SUCCESS);
    // No more is written than there is room for.
    char data[8] = "???????";
    ULONG size = 4;
    CHECK(p.from->Dispatch->NdkGetConnectionData(p.from, nullptr, nullptr, data, &size) == STATUS_BUFFER_TOO_SMALL);
    CHECK(std::string(data) == "you ???");
    CHECK(size == 196);  // what the message has room for (12.6.8)
    CHECK(p.from->Dispatch->NdkCompleteConnect(p.from, nullptr, nullptr, nullptr, nullptr) == STATUS_INVALID_PARAMETER);
    REQUIRE(p.complete(completed) == STATUS_PENDING);
    CHECK(completed.wait() == STATUS_SUCCESS);
    CHECK(accepted.wait() == STATUS_SUCCESS);
    CHECK(p.from->Dispatch->NdkDisconnect(p.from, nullptr, nullptr) == STATUS_INVALID_PARAMETER);
  });
}

TEST_CASE("NDK: a listener may be at every address of its host") {
  with_parties("ndk_any_address", [](Parties& p) {
    Place any = at(1, kPort);
    reinterpret_cast<sockaddr_in&>(any.storage).sin_addr.s_addr = INADDR_ANY;
    REQUIRE(p.listen(p.listener, any) == STATUS_SUCCESS);
    Asked asked(p.a);
    REQUIRE(p.connect(asked, "") == STATUS_PENDING);
    static_cast<void>(p.request_at_b());
    p.a.host.close(std::exchange(p.from, nullptr));
    CHECK(asked.status == STATUS_CANCELLED);
  });
}

TEST_CASE("NDK: a Send that finds no Receive for long ends in a time-out (decisions 13)") {
  with_parties("ndk_no_receive", [](Parties& p) {
    const Regions regions(p);
    static_cast<void>(p.connected());
    REQUIRE(send(p.a.qp, regions.of_a, 0) == STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_IO_TIMEOUT);
  });
}

TEST_CASE("NDK: who has asked may refuse the answer") {
  with_parties("ndk_answer_refused", [](Parties& p) {
    Asked asked(p.a), accepted(p.b);
    REQUIRE(p.listen() == STATUS_SUCCESS);
    REQUIRE(p.connect(asked, "") == STATUS_PENDING);
    REQUIRE(p.accept(p.request_at_b(), accepted, "") == STATUS_PENDING);
    REQUIRE(asked.wait() == STATUS_SUCCESS);
    CHECK(p.a.host.finish([&](auto cb, auto ctx) { return p.from->Dispatch->NdkReject(p.from, "no", 2, cb, ctx); }) ==
          STATUS_SUCCESS);
    CHECK(accepted.wait() == STATUS_CONNECTION_ABORTED);
    CHECK(p.left_b == 0);
  });
}

TEST_CASE("NDK: a queue pair has one connection") {
  with_parties("ndk_one_connection", [](Parties& p) {
    static_cast<void>(p.connected());
    NDK_CONNECTOR* const other = p.make_connector();
    NDK_QP* const other_qp = p.a.make_qp();
    Asked asked(p.a), accepted(p.b);
    REQUIRE(p.connect(other, other_qp, at(0, 0), at(1, kPort), asked, "") == STATUS_PENDING);
    REQUIRE(p.accept(p.request_at_b(2), accepted, "") == STATUS_PENDING);
    CHECK(accepted.wait() == STATUS_CONNECTION_INVALID);
    p.a.host.close(other);
    p.a.host.close(other_qp);
  });
}

TEST_CASE("NDK: a connection ends with its queue pair's flush, with a request that fails, and with its connector") {
  with_parties("ndk_ends", [](Parties& p) {
    const Regions regions(p);
    static_cast<void>(p.connected());
    REQUIRE(receive(p.b.qp, regions.of_b) == STATUS_SUCCESS);
    SECTION("flush") {
      p.a.qp->Dispatch->NdkFlush(p.a.qp);
      ended_at_b(p);
      CHECK(p.left_a == 1);
    }
    SECTION("a request that fails by itself") {
      NDK_SGE wrong = regions.of_a;
      wrong.MemoryRegionToken ^= 0x5500;
      REQUIRE(send(p.a.qp, wrong, 0) == STATUS_SUCCESS);
      CHECK(p.a.status() == STATUS_ACCESS_VIOLATION);
      ended_at_b(p);
      CHECK(p.left_a == 1);
    }
    SECTION("close") {
      REQUIRE(receive(p.a.qp, regions.of_a) == STATUS_SUCCESS);
      p.a.host.close(std::exchange(p.from, nullptr));
      CHECK(p.a.status() == STATUS_CANCELLED);
      ended_at_b(p);
      CHECK(p.left_a == 0);
      CHECK(send(p.a.qp, regions.of_a, 0) == STATUS_CONNECTION_INVALID);
    }
  });
}

TEST_CASE("NDK: a Send waits for a Receive of the peer's shared queue for as long as it takes (decisions 13)") {
  with_parties("ndk_late_receive", [](Parties& p) {
    const Regions regions(p);
    NDK_SRQ* srq = nullptr;
    REQUIRE(p.b.host.create(srq, [&](auto cb, auto ctx, auto out) {
      return p.b.pd->Dispatch->NdkCreateSrq(p.b.pd, 8, 1, 0, nullptr, nullptr, nullptr, cb, ctx, out);
    }) == STATUS_SUCCESS);
    NDK_QP* const plain = std::exchange(p.b.qp, p.b.host.make<NDK_QP>([&](auto cb, auto ctx, auto out) {
      return p.b.pd->Dispatch->NdkCreateQpWithSrq(p.b.pd, p.b.cq, p.b.cq, srq, nullptr, 4, 1, 0, cb, ctx, out);
    }));
    NDK_CONNECTOR* const to = p.connected();
    REQUIRE(send(p.a.qp, regions.of_a, 0) == STATUS_SUCCESS);
    p.a.host.endpoint().device().elapse(20'000'000);
    REQUIRE(srq->Dispatch->NdkSrqReceive(srq, nullptr, &regions.of_b, 1) == STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_SUCCESS);
    CHECK(p.b.status() == STATUS_SUCCESS);
    CHECK(p.disconnect(p.b, to) == STATUS_SUCCESS);
    p.b.host.close(std::exchange(p.incoming.back(), nullptr));
    p.incoming.pop_back();
    p.b.host.close(std::exchange(p.b.qp, plain));
    p.b.host.close(srq);
  });
}
