// Connectors and listeners of the Network Direct kernel provider interface on two hosts over the NIC (docs/ndk.md).
#include <catch2/catch.hpp>

#include "tests/system/ndk_parties.hpp"

using namespace rnic;
using namespace rnic::test;

namespace {

/// What NdkGetConnectionData says.
struct Said {
  std::string data;
  ULONG inbound{}, outbound{};
  friend bool operator==(const Said&, const Said&) = default;
};
Said said_to(NDK_CONNECTOR* connector) {
  Said said;
  said.data = Parties::data_of(connector, &said.inbound, &said.outbound);
  return said;
}
NTSTATUS nothing_said_to(NDK_CONNECTOR* connector) {
  ULONG size = 0;
  return connector->Dispatch->NdkGetConnectionData(connector, nullptr, nullptr, nullptr, &size);
}

Place local_address(NDK_CONNECTOR* of) {
  return address_by([&](SOCKADDR* to, ULONG* size) { return of->Dispatch->NdkGetLocalAddress(of, to, size); });
}
Place peer_address(NDK_CONNECTOR* of) {
  return address_by([&](SOCKADDR* to, ULONG* size) { return of->Dispatch->NdkGetPeerAddress(of, to, size); });
}
Place local_address(NDK_LISTENER* of) {
  return address_by([&](SOCKADDR* to, ULONG* size) { return of->Dispatch->NdkGetLocalAddress(of, to, size); });
}

/// A Close that is under way.
struct Closing {
  explicit Closing(NdkEnd& of) : end(of) {}
  static void done(PVOID context) {
    auto& self = *static_cast<Closing*>(context);
    ++self.calls;
    self.end.host.endpoint().device().wake();
  }
  NdkEnd& end;
  int calls = 0;
};

}  // namespace

TEST_CASE("NDK: a connection moves messages, and ends on both sides") {
  with_parties("ndk_connect", [](Parties& p) {
    CHECK(p.disconnect(p.a, p.from) == STATUS_CONNECTION_INVALID);
    NDK_CONNECTOR* const to = p.connected();
    CHECK(local_address(p.from) == peer_address(to));
    CHECK(peer_address(p.from) == local_address(to));
    CHECK(peer_address(p.from) == at(1, kPort));
    Regions regions(p);
    regions.exchange();
    // What waits is cancelled on both sides; only the peer is told by its event.
    regions.receive();
    CHECK(p.disconnect(p.a, p.from) == STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_CANCELLED);
    CHECK(p.b.status() == STATUS_CANCELLED);
    CHECK(p.b.host.wait_until([&] { return p.left_b == 1; }, 1'000'000'000));
    CHECK(p.left_a == 0);
    CHECK(p.a.qp->Dispatch->NdkSend(p.a.qp, nullptr, &regions.of_a, 1, 0) == STATUS_CONNECTION_INVALID);
    CHECK(p.disconnect(p.b, to) == STATUS_SUCCESS);
    CHECK(p.disconnect(p.b, to) == STATUS_CONNECTION_INVALID);
  });
}

TEST_CASE("NDK: what each side is told of the other's data and limits, before and after it has answered") {
  with_parties("ndk_connection_data", [](Parties& p) {
    Asked connected(p.a), accepted(p.b), completed(p.a);
    CHECK(nothing_said_to(p.from) == STATUS_CONNECTION_INVALID);
    REQUIRE(p.listen() == STATUS_SUCCESS);
    REQUIRE(p.connect(connected, "may I?", 3, 5) == STATUS_PENDING);
    CHECK(nothing_said_to(p.from) == STATUS_CONNECTION_INVALID);
    // Who has been asked: what the peer wants to send it may take, and the other way round.
    NDK_CONNECTOR* const to = p.request_at_b();
    CHECK(said_to(to) == Said{"may I?", 5, 3});
    CHECK(nothing_said_to(p.from) == STATUS_CONNECTION_INVALID);
    // More than the peer's is the peer's, more than the adapter's is the adapter's; less is less, for both.
    REQUIRE(p.accept(to, accepted, "you may", 1000, 2) == STATUS_PENDING);
    REQUIRE(connected.wait() == STATUS_SUCCESS);
    CHECK(said_to(to) == Said{"may I?", 5, 2});
    CHECK(said_to(p.from) == Said{"you may", 2, 5});
    REQUIRE(p.complete(completed) == STATUS_PENDING);
    REQUIRE(completed.wait() == STATUS_SUCCESS);
    REQUIRE(accepted.wait() == STATUS_SUCCESS);
    CHECK(said_to(to) == Said{"may I?", 5, 2});
    CHECK(said_to(p.from) == Said{"you may", 2, 5});
    // A room that is too small has what fits; none at all is told the size.
    ULONG size = 0;
    CHECK(p.from->Dispatch->NdkGetConnectionData(p.from, nullptr, nullptr, nullptr, &size) == STATUS_SUCCESS);
    CHECK(size >= 7);
    const ULONG whole = size;
    char room[3]{};
    size = sizeof room;
    CHECK(p.from->Dispatch->NdkGetConnectionData(p.from, nullptr, nullptr, room, &size) == STATUS_BUFFER_TOO_SMALL);
    CHECK(std::memcmp(room, "you", 3) == 0);
    CHECK(size == whole);
    size = 1;
    CHECK(p.from->Dispatch->NdkGetConnectionData(p.from, nullptr, nullptr, nullptr, &size) == STATUS_INVALID_PARAMETER);
  });
}

TEST_CASE("NDK: a side that takes no Reads has its peer send none") {
  with_parties("ndk_no_reads", [](Parties& p) {
    Asked connected(p.a), accepted(p.b), completed(p.a);
    REQUIRE(p.listen() == STATUS_SUCCESS);
    REQUIRE(p.connect(connected, "", 0, 1000) == STATUS_PENDING);
    NDK_CONNECTOR* const to = p.request_at_b();
    CHECK(said_to(to) == Said{"", 16, 0});
    REQUIRE(p.accept(to, accepted, "", 1, 16) == STATUS_PENDING);
    REQUIRE(connected.wait() == STATUS_SUCCESS);
    CHECK(said_to(p.from) == Said{"", 0, 1});
    REQUIRE(p.complete(completed) == STATUS_PENDING);
    REQUIRE(completed.wait() == STATUS_SUCCESS);
    REQUIRE(accepted.wait() == STATUS_SUCCESS);
    Regions regions(p);
    // Decisions 5.
    REQUIRE(p.b.read(regions.of_b, address_of(p.a.memory), NdkPair::remote(regions.mr_a)) == STATUS_SUCCESS);
    CHECK(p.b.status() == STATUS_INVALID_DEVICE_REQUEST);
  });
}

TEST_CASE("NDK: connections by IPv6 addresses") {
  with_parties("ndk_ipv6",
               [](Parties& p) {
                 Asked mixed(p.a);
                 // An address of a kind that the other cannot reach.
                 const NTSTATUS refused = p.connect(p.from, p.a.qp, at(0, 0), at(1, kPort, true), mixed, "");
                 CHECK((refused == STATUS_PENDING ? mixed.wait() : refused) == STATUS_NETWORK_UNREACHABLE);
                 NDK_CONNECTOR* const to = p.connected();
                 CHECK(local_address(p.listener) == at(1, kPort, true));
                 CHECK(peer_address(p.from) == at(1, kPort, true));
                 CHECK(local_address(to) == at(1, kPort, true));
                 CHECK(local_address(p.from) == peer_address(to));
                 CHECK(local_address(p.from) == at(0, local_address(p.from).port(), true));
                 // A room for an IPv4 address is too small.
                 Place small = at(0, 0);
                 CHECK(to->Dispatch->NdkGetPeerAddress(to, small.get(), &small.length) == STATUS_BUFFER_TOO_SMALL);
                 CHECK(small.length == sizeof(sockaddr_in6));
                 Regions regions(p);
                 regions.exchange();
                 CHECK(p.disconnect(p.b, to) == STATUS_SUCCESS);
                 CHECK(p.a.host.wait_until([&] { return p.left_a == 1; }, 1'000'000'000));
               },
               {.ipv6 = true});
}

TEST_CASE("NDK: a connection is refused by who rejects it, and where nobody listens; the connector serves again") {
  with_parties("ndk_reject", [](Parties& p) {
    Asked nobody(p.a), refused(p.a), again(p.a), cancelled(p.a);
    CHECK(p.connect(nobody, std::string(57, 'x')) == STATUS_INVALID_PARAMETER);
    REQUIRE(p.connect(nobody, "") == STATUS_PENDING);
    // One at a time.
    CHECK(p.connect(again, "") == STATUS_INVALID_DEVICE_STATE);
    CHECK(nobody.wait() == STATUS_CONNECTION_REFUSED);
    REQUIRE(p.listen() == STATUS_SUCCESS);
    CHECK(p.listen() == STATUS_INVALID_DEVICE_STATE);
    REQUIRE(p.connect(refused, "") == STATUS_PENDING);
    NDK_CONNECTOR* const to = p.request_at_b();
    CHECK(p.b.host.finish([&](auto cb, auto ctx) { return to->Dispatch->NdkReject(to, "no", 2, cb, ctx); }) ==
          STATUS_SUCCESS);
    CHECK(refused.wait() == STATUS_CONNECTION_REFUSED);
    CHECK(Parties::data_of(p.from) == "no");
    // The next attempt has been told nothing yet. Closed meanwhile: the request is cancelled before the object ends.
    REQUIRE(p.connect(cancelled, "") == STATUS_PENDING);
    static_cast<void>(p.request_at_b(2));
    CHECK(nothing_said_to(p.from) == STATUS_CONNECTION_INVALID);
    p.a.host.close(p.from);
    CHECK(cancelled.calls == 1);
    CHECK(cancelled.status == STATUS_CANCELLED);
    p.from = nullptr;
  });
}

TEST_CASE("NDK: who has been asked, and who has been answered, learns that the other has given up") {
  with_parties("ndk_given_up", [](Parties& p) {
    Asked asked(p.a), late(p.b);
    REQUIRE(p.listen() == STATUS_SUCCESS);
    REQUIRE(p.connect(asked, "") == STATUS_PENDING);
    NDK_CONNECTOR* const to = p.request_at_b();
    p.a.host.close(p.from);
    CHECK(asked.status == STATUS_CANCELLED);
    p.b.host.endpoint().device().elapse(1'000'000);
    const NTSTATUS accepted = p.accept(to, late, "");
    CHECK((accepted == STATUS_PENDING ? late.wait() : accepted) == STATUS_CONNECTION_ABORTED);
    // The other way round: accepted, and closed before that was completed.
    // By another queue pair: the first is one of a connection that has not quite ended (12.9.8.3.1).
    p.from = p.make_connector();
    NDK_QP* const second_qp = p.a.make_qp();
    Asked answered(p.a), given_up(p.b), completed(p.a);
    REQUIRE(p.connect(p.from, second_qp, at(0, 0), at(1, kPort), answered, "") == STATUS_PENDING);
    NDK_CONNECTOR* const second = p.request_at_b(2);
    REQUIRE(p.accept(second, given_up, "") == STATUS_PENDING);
    REQUIRE(answered.wait() == STATUS_SUCCESS);
    p.incoming.pop_back();
    p.b.host.close(second);
    CHECK(given_up.status == STATUS_CANCELLED);
    p.a.host.endpoint().device().elapse(1'000'000);
    const NTSTATUS status = p.complete(completed);
    CHECK((status == STATUS_PENDING ? completed.wait() : status) == STATUS_CONNECTION_ABORTED);
    p.a.host.close(p.from);
    p.from = nullptr;
    p.a.host.close(second_qp);
  });
}

TEST_CASE("NDK: addresses that cannot be connected from or to, and one that is taken") {
  with_parties("ndk_addresses", [](Parties& p) {
    const auto status_of = [&](NDK_CONNECTOR* connector, const Place& source, const Place& target) {
      Asked asked(p.a);
      const NTSTATUS status = p.connect(connector, p.a.qp, source, target, asked, "");
      return status == STATUS_PENDING ? asked.wait() : status;
    };
    CHECK(status_of(p.from, at(40, 0), at(1, kPort)) == STATUS_INVALID_ADDRESS);
    Place strange = at(0, 0);
    strange.storage.ss_family = AF_UNIX;
    CHECK(status_of(p.from, strange, at(1, kPort)) == STATUS_INVALID_ADDRESS);
    CHECK(status_of(p.from, at(0, 0), strange) == STATUS_INVALID_ADDRESS);
    // Nobody has it.
    CHECK(status_of(p.from, at(0, 0), at(41, kPort)) == STATUS_HOST_UNREACHABLE);
    CHECK(p.listen(p.listener, at(40, kPort)) == STATUS_INVALID_ADDRESS);
    CHECK(p.listen(p.listener, at(1, 0)) == STATUS_SUCCESS);
    const Place drawn = local_address(p.listener);
    CHECK(drawn == at(1, drawn.port()));
    CHECK(drawn.port() != 0);
    NDK_LISTENER* const second = p.make_listener();
    CHECK(p.listen(second, drawn) == STATUS_SHARING_VIOLATION);
    CHECK(p.listen(second, at(1, kPort)) == STATUS_SUCCESS);
    p.b.host.close(second);
  });
}

TEST_CASE("NDK: a host that says nothing costs a time-out, and the connector serves again") {
  with_parties("ndk_silent_host",
               [](Parties& p) {
                 Asked asked(p.a);
                 REQUIRE(p.connect(asked, "") == STATUS_PENDING);
                 CHECK(asked.wait() == STATUS_IO_TIMEOUT);
                 p.answer();
                 NDK_CONNECTOR* const to = p.connected();
                 Regions regions(p);
                 regions.exchange();
                 // It falls silent again: the connection ends on this side.
                 regions.receive();
                 p.management_b.reset();
                 CHECK(p.disconnect(p.a, p.from) == STATUS_IO_TIMEOUT);
                 CHECK(p.a.status() == STATUS_CANCELLED);
                 CHECK(p.left_a == 0);
                 CHECK(Parties::data_of(to) == "may I?");
               },
               {.answering = false});
}

TEST_CASE("NDK: a peer's consumer that does not answer costs a time-out") {
  with_parties("ndk_silent_consumer", [](Parties& p) {
    REQUIRE(p.listen() == STATUS_SUCCESS);
    Asked connected(p.a), accepted(p.b), completed(p.a);
    REQUIRE(p.connect(connected, "") == STATUS_PENDING);
    NDK_CONNECTOR* const to = p.request_at_b();
    REQUIRE(p.accept(to, accepted, "") == STATUS_PENDING);
    REQUIRE(connected.wait() == STATUS_SUCCESS);
    // Nobody completes.
    CHECK(accepted.wait() == STATUS_IO_TIMEOUT);
    CHECK(p.left_b == 0);
    p.a.host.endpoint().device().elapse(1'000'000);
    const NTSTATUS late = p.complete(completed);
    CHECK((late == STATUS_PENDING ? completed.wait() : late) == STATUS_CONNECTION_ABORTED);
  });
}

TEST_CASE("NDK: both disconnect at the same time") {
  with_parties("ndk_crossing", [](Parties& p) {
    NDK_CONNECTOR* const to = p.connected();
    Regions regions(p);
    regions.receive();
    Asked of_a(p.a), of_b(p.b);
    REQUIRE(p.from->Dispatch->NdkDisconnect(p.from, Asked::done, &of_a) == STATUS_PENDING);
    REQUIRE(to->Dispatch->NdkDisconnect(to, Asked::done, &of_b) == STATUS_PENDING);
    CHECK(of_a.wait() == STATUS_SUCCESS);
    CHECK(of_b.wait() == STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_CANCELLED);
    CHECK(p.b.status() == STATUS_CANCELLED);
    p.a.host.endpoint().device().elapse(1'000'000);
    CHECK((of_a.calls == 1 && of_b.calls == 1));
    // Each has ended it by itself.
    CHECK((p.left_a == 0 && p.left_b == 0));
  });
}

TEST_CASE("NDK: what was deferred ends with the connection, and with the queue pair (decisions 33)") {
  with_parties("ndk_defer_ends", [](Parties& p) {
    static_cast<void>(p.connected());
    Regions regions(p);
    int marks[3]{};
    // There is no Receive for them.
    for (int& mark : marks)
      REQUIRE(p.a.qp->Dispatch->NdkSend(p.a.qp, &mark, &regions.of_a, 1, NDK_OP_FLAG_DEFER) == STATUS_SUCCESS);
    CHECK(p.a.empty());
    CHECK(p.disconnect(p.a, p.from) == STATUS_SUCCESS);
    for (int& mark : marks) {
      const auto got = p.a.result();
      CHECK(got.Status == STATUS_CANCELLED);
      CHECK(got.RequestContext == &mark);
    }
    CHECK(p.a.empty());
  });
  with_pair("ndk_defer_close", [](NdkPair& p) {
    const NDK_SGE from = p.local(p.a, 64);
    for (int i = 0; i < 3; ++i)
      REQUIRE(p.a.qp->Dispatch->NdkSend(p.a.qp, &p, &from, 1, NDK_OP_FLAG_DEFER) == STATUS_SUCCESS);
    p.a.host.close(p.a.qp);
    p.a.qp = nullptr;
    for (int i = 0; i < 3; ++i) {
      const auto got = p.a.result();
      CHECK(got.Status == STATUS_CANCELLED);
      CHECK(got.RequestContext == &p);
    }
    CHECK(p.a.empty());
  });
}

TEST_CASE("NDK: while its events are paused there is no listener, but the address stays its own") {
  with_parties("ndk_pause", [](Parties& p) {
    const auto pause = [&](BOOLEAN paused) { p.listener->Dispatch->NdkControlConnectEvents(p.listener, paused); };
    NDK_CONNECTOR* const other = p.make_connector();
    NDK_QP* const other_qp = p.a.make_qp();
    const auto try_other = [&] {
      Asked asked(p.a);
      REQUIRE(p.connect(other, other_qp, at(0, 0), at(1, kPort), asked, "") == STATUS_PENDING);
      return asked.wait();
    };
    // Before it listens.
    pause(1);
    REQUIRE(p.listen() == STATUS_SUCCESS);
    CHECK(local_address(p.listener) == at(1, kPort));
    CHECK(try_other() == STATUS_CONNECTION_REFUSED);
    CHECK(p.incoming.empty());
    NDK_LISTENER* const second = p.make_listener();
    CHECK(p.listen(second, at(1, kPort)) == STATUS_SHARING_VIOLATION);
    pause(0);
    Asked connected(p.a), accepted(p.b), completed(p.a);
    REQUIRE(p.connect(connected, "") == STATUS_PENDING);
    NDK_CONNECTOR* const to = p.request_at_b();
    // What it has been told of goes on.
    pause(1);
    pause(1);
    REQUIRE(p.accept(to, accepted, "") == STATUS_PENDING);
    REQUIRE(connected.wait() == STATUS_SUCCESS);
    REQUIRE(p.complete(completed) == STATUS_PENDING);
    REQUIRE(completed.wait() == STATUS_SUCCESS);
    REQUIRE(accepted.wait() == STATUS_SUCCESS);
    {
      Regions regions(p);
      regions.exchange();
    }
    CHECK(try_other() == STATUS_CONNECTION_REFUSED);
    CHECK(p.incoming.size() == 1);
    CHECK(p.listen(second, at(1, kPort)) == STATUS_SHARING_VIOLATION);
    pause(0);
    pause(0);
    Asked asked(p.a);
    REQUIRE(p.connect(other, other_qp, at(0, 0), at(1, kPort), asked, "") == STATUS_PENDING);
    static_cast<void>(p.request_at_b(2));
    CHECK(asked.calls == 0);
    p.b.host.close(second);
    p.a.host.close(other);
    p.a.host.close(other_qp);
  });
}

TEST_CASE("NDK: a listener that is closed hears nobody any more, and ends after its connectors") {
  with_parties("ndk_close_listener", [](Parties& p) {
    NDK_CONNECTOR* const other = p.make_connector();
    NDK_QP* const other_qp = p.a.make_qp();
    Asked connected(p.a), accepted(p.b), completed(p.a), waiting(p.a), refused(p.a);
    REQUIRE(p.listen() == STATUS_SUCCESS);
    REQUIRE(p.connect(connected, "") == STATUS_PENDING);
    NDK_CONNECTOR* const to = p.request_at_b();
    REQUIRE(p.connect(other, other_qp, at(0, 0), at(1, kPort), waiting, "") == STATUS_PENDING);
    static_cast<void>(p.request_at_b(2));
    Closing closing(p.b);
    CHECK(p.listener->Dispatch->NdkCloseListener(&p.listener->Header, Closing::done, &closing) == STATUS_PENDING);
    p.listener = nullptr;
    // Both have been told of: one is accepted, the other is refused by its end.
    REQUIRE(p.accept(to, accepted, "") == STATUS_PENDING);
    REQUIRE(connected.wait() == STATUS_SUCCESS);
    REQUIRE(p.complete(completed) == STATUS_PENDING);
    REQUIRE(completed.wait() == STATUS_SUCCESS);
    REQUIRE(accepted.wait() == STATUS_SUCCESS);
    p.b.host.close(p.incoming.back());
    p.incoming.pop_back();
    CHECK(waiting.wait() == STATUS_CONNECTION_REFUSED);
    // New ones are not heard, and the address is not free.
    REQUIRE(p.connect(other, other_qp, at(0, 0), at(1, kPort), refused, "") == STATUS_PENDING);
    CHECK(refused.wait() == STATUS_CONNECTION_REFUSED);
    CHECK(p.incoming.size() == 1);
    NDK_LISTENER* const second = p.make_listener();
    CHECK(p.listen(second, at(1, kPort)) == STATUS_SHARING_VIOLATION);
    CHECK(closing.calls == 0);
    p.b.host.close(to);
    p.incoming.clear();
    CHECK(p.b.host.wait_until([&] { return closing.calls == 1; }, 1'000'000'000));
    CHECK(p.listen(second, at(1, kPort)) == STATUS_SUCCESS);
    p.b.host.close(second);
    p.a.host.close(other);
    p.a.host.close(other_qp);
  });
}

TEST_CASE("NDK: a connector that is closed ends its connection, and calls nobody of its consumer any more") {
  with_parties("ndk_close_connection", [](Parties& p) {
    static_cast<void>(p.connected());
    p.a.host.close(p.from);
    p.from = nullptr;
    CHECK(p.b.host.wait_until([&] { return p.left_b == 1; }, 1'000'000'000));
    CHECK(p.left_a == 0);
  });
}
