// Connectors and listeners of the Network Direct kernel provider interface on two hosts over the NIC (docs/ndk.md).
#include <arpa/inet.h>
#include <netinet/in.h>

#include <catch2/catch.hpp>

#include "testbench/management_thread.hpp"
#include "tests/system/ndk_world.hpp"

using namespace rnic;
using namespace rnic::test;
using testbench::ManagementThread;

namespace {

constexpr std::uint16_t kPort = 4420;

sockaddr_in at(unsigned host, std::uint16_t port) {
  sockaddr_in made{};
  made.sin_family = AF_INET;
  made.sin_port = htons(port);
  made.sin_addr.s_addr = htonl(0x0A000001 + host);
  return made;
}

/// A request that is under way.
struct Asked {
  explicit Asked(NdkEnd& end) : host(end.host) {}
  static void done(PVOID context, NTSTATUS status) {
    auto& self = *static_cast<Asked*>(context);
    ++self.calls;
    self.status = status;
    self.host.endpoint().device().wake();
  }
  NTSTATUS wait() {
    REQUIRE(host.wait_until([this] { return calls != 0; }));
    CHECK(calls == 1);
    return status;
  }
  NdkHost& host;
  int calls = 0;
  NTSTATUS status = STATUS_PENDING;
};

/// Host a connects to a listener of host b.
struct Parties {
  Parties(Endpoint& host_a, Endpoint& host_b) : a(host_a), b(host_b) {
    listener = b.host.make<NDK_LISTENER>(
        [&](auto cb, auto ctx, auto out) { return b.a->Dispatch->NdkCreateListener(b.a, asked, this, cb, ctx, out); });
    from = a.host.make<NDK_CONNECTOR>(
        [&](auto cb, auto ctx, auto out) { return a.a->Dispatch->NdkCreateConnector(a.a, cb, ctx, out); });
  }
  ~Parties() {
    a.host.close(from);
    for (NDK_CONNECTOR* connector : incoming) b.host.close(connector);
    b.host.close(listener);
  }
  static void asked(PVOID context, NDK_CONNECTOR* connector) {
    auto& self = *static_cast<Parties*>(context);
    self.incoming.push_back(connector);
    self.b.host.endpoint().device().wake();
  }
  static void left(PVOID context) { ++*static_cast<int*>(context); }

  NTSTATUS listen(std::uint16_t port = kPort) {
    const sockaddr_in address = at(1, port);
    return b.host.finish([&](auto cb, auto ctx) {
      return listener->Dispatch->NdkListen(listener, reinterpret_cast<const SOCKADDR*>(&address), sizeof address, cb,
                                           ctx);
    });
  }
  NTSTATUS connect(Asked& request, const std::string& data, ULONG inbound = 16, ULONG outbound = 16) {
    const sockaddr_in source = at(0, 0), target = at(1, kPort);
    return from->Dispatch->NdkConnect(from, a.qp, reinterpret_cast<const SOCKADDR*>(&source), sizeof source,
                                      reinterpret_cast<const SOCKADDR*>(&target), sizeof target, inbound, outbound,
                                      data.data(), static_cast<ULONG>(data.size()), Asked::done, &request);
  }
  NDK_CONNECTOR* request_at_b() {
    REQUIRE(b.host.wait_until([this] { return !incoming.empty(); }));
    return incoming.back();
  }
  NTSTATUS accept(NDK_CONNECTOR* to, Asked& request, const std::string& data, ULONG inbound = 16, ULONG outbound = 16) {
    return to->Dispatch->NdkAccept(to, b.qp, inbound, outbound, data.data(), static_cast<ULONG>(data.size()), left,
                                   &left_b, Asked::done, &request);
  }
  NTSTATUS complete(Asked& request) {
    return from->Dispatch->NdkCompleteConnect(from, left, &left_a, Asked::done, &request);
  }
  /// Both are connected.
  NDK_CONNECTOR* connected() {
    Asked connect_asked(a), accept_asked(b), complete_asked(a);
    REQUIRE(listen() == STATUS_SUCCESS);
    REQUIRE(connect(connect_asked, "may I?", 3, 5) == STATUS_PENDING);
    NDK_CONNECTOR* const to = request_at_b();
    REQUIRE(accept(to, accept_asked, "you may", 16, 2) == STATUS_PENDING);
    REQUIRE(connect_asked.wait() == STATUS_SUCCESS);
    REQUIRE(complete(complete_asked) == STATUS_PENDING);
    REQUIRE(complete_asked.wait() == STATUS_SUCCESS);
    REQUIRE(accept_asked.wait() == STATUS_SUCCESS);
    return to;
  }
  static std::string data_of(NDK_CONNECTOR* connector, ULONG* inbound = nullptr, ULONG* outbound = nullptr) {
    char room[256]{};
    ULONG size = sizeof room;
    REQUIRE(connector->Dispatch->NdkGetConnectionData(connector, inbound, outbound, room, &size) == STATUS_SUCCESS);
    return room;
  }
  NTSTATUS disconnect(NdkEnd& end, NDK_CONNECTOR* connector) {
    return end.host.finish([&](auto cb, auto ctx) { return connector->Dispatch->NdkDisconnect(connector, cb, ctx); });
  }

  NdkEnd a, b;
  NDK_LISTENER* listener = nullptr;
  NDK_CONNECTOR* from = nullptr;
  std::vector<NDK_CONNECTOR*> incoming;
  int left_a = 0, left_b = 0;
};

void with_parties(const char* name, const std::function<void(Parties&)>& body) {
  auto options = WorldOptions::from_environment(name);
  options.hang_ns = 30'000'000'000;
  with_endpoints(
      fresh_world(options),
      [&](Endpoint& a, Endpoint& b) {
        REQUIRE(a.kernel().port_tables().add_neighbour(testbench::ip_of(b, false), testbench::mac_of(b)).ok());
        REQUIRE(b.kernel().port_tables().add_neighbour(testbench::ip_of(a, false), testbench::mac_of(a)).ok());
        const ManagementThread of_a(a.kernel(), a.host().device()), of_b(b.kernel(), b.host().device());
        Parties parties(a, b);
        body(parties);
      },
      100'000'000'000);
}

}  // namespace

TEST_CASE("NDK: a connection carries data and limits, moves messages, and ends on both sides") {
  with_parties("ndk_connect", [](Parties& p) {
    ULONG size = 0;
    CHECK(p.from->Dispatch->NdkGetConnectionData(p.from, nullptr, nullptr, nullptr, &size) ==
          STATUS_CONNECTION_INVALID);
    CHECK(p.disconnect(p.a, p.from) == STATUS_CONNECTION_INVALID);
    NDK_CONNECTOR* const to = p.connected();
    CHECK(Parties::data_of(to) == "may I?");
    ULONG inbound = 0, outbound = 0;
    CHECK(Parties::data_of(p.from, &inbound, &outbound) == "you may");
    // The smaller of the own wish and of what the peer may send.
    CHECK(inbound == 2);
    CHECK(outbound == 5);
    // A room that is too small has what fits; none at all is told the size.
    CHECK(p.from->Dispatch->NdkGetConnectionData(p.from, nullptr, nullptr, nullptr, &size) == STATUS_SUCCESS);
    CHECK(size >= 7);
    char room[3]{};
    size = sizeof room;
    CHECK(p.from->Dispatch->NdkGetConnectionData(p.from, nullptr, nullptr, room, &size) == STATUS_BUFFER_TOO_SMALL);
    CHECK(std::memcmp(room, "you", 3) == 0);
    sockaddr_in local{}, peer{};
    ULONG bytes = sizeof local;
    CHECK(p.from->Dispatch->NdkGetLocalAddress(p.from, reinterpret_cast<SOCKADDR*>(&local), &bytes) == STATUS_SUCCESS);
    CHECK(to->Dispatch->NdkGetPeerAddress(to, reinterpret_cast<SOCKADDR*>(&peer), &bytes) == STATUS_SUCCESS);
    CHECK(std::memcmp(&local, &peer, sizeof local) == 0);
    // By the starting PSNs of both.
    NDK_MR* const mr_a = p.a.make_mr(false);
    NDK_MR* const mr_b = p.b.make_mr(false);
    REQUIRE(p.a.register_mr(mr_a, p.a.memory, 4096, NDK_MR_FLAG_ALLOW_LOCAL_WRITE) == STATUS_SUCCESS);
    REQUIRE(p.b.register_mr(mr_b, p.b.memory, 4096, NDK_MR_FLAG_ALLOW_LOCAL_WRITE) == STATUS_SUCCESS);
    const NDK_SGE of_a = NdkEnd::sge(address_of(p.a.memory), 64, mr_a->Dispatch->NdkGetLocalTokenFromMr(mr_a));
    const NDK_SGE of_b = NdkEnd::sge(address_of(p.b.memory), 64, mr_b->Dispatch->NdkGetLocalTokenFromMr(mr_b));
    for (auto [sender, receiver, out, in] :
         {std::tuple(&p.a, &p.b, &of_a, &of_b), std::tuple(&p.b, &p.a, &of_b, &of_a)}) {
      REQUIRE(receiver->qp->Dispatch->NdkReceive(receiver->qp, nullptr, in, 1) == STATUS_SUCCESS);
      REQUIRE(sender->qp->Dispatch->NdkSend(sender->qp, nullptr, out, 1, 0) == STATUS_SUCCESS);
      CHECK(sender->status() == STATUS_SUCCESS);
      CHECK(receiver->result().BytesTransferred == 64);
    }
    // What waits is cancelled on both sides; only the peer is told by its event.
    REQUIRE(p.a.qp->Dispatch->NdkReceive(p.a.qp, nullptr, &of_a, 1) == STATUS_SUCCESS);
    REQUIRE(p.b.qp->Dispatch->NdkReceive(p.b.qp, nullptr, &of_b, 1) == STATUS_SUCCESS);
    CHECK(p.disconnect(p.a, p.from) == STATUS_SUCCESS);
    CHECK(p.a.status() == STATUS_CANCELLED);
    CHECK(p.b.status() == STATUS_CANCELLED);
    CHECK(p.b.host.wait_until([&] { return p.left_b == 1; }, 1'000'000'000));
    CHECK(p.left_a == 0);
    CHECK(p.a.qp->Dispatch->NdkSend(p.a.qp, nullptr, &of_a, 1, 0) == STATUS_CONNECTION_INVALID);
    CHECK(p.disconnect(p.b, to) == STATUS_SUCCESS);
    CHECK(p.disconnect(p.b, to) == STATUS_CONNECTION_INVALID);
    p.a.host.close(mr_a);
    p.b.host.close(mr_b);
  });
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
    // Closed while it connects: the request is cancelled before the object ends.
    REQUIRE(p.connect(cancelled, "") == STATUS_PENDING);
    p.a.host.close(p.from);
    CHECK(cancelled.calls == 1);
    CHECK(cancelled.status == STATUS_CANCELLED);
    p.from = p.a.host.make<NDK_CONNECTOR>(
        [&](auto cb, auto ctx, auto out) { return p.a.a->Dispatch->NdkCreateConnector(p.a.a, cb, ctx, out); });
  });
}

TEST_CASE("NDK: a connector that is closed ends its connection, and calls nobody of its consumer any more") {
  with_parties("ndk_close_connection", [](Parties& p) {
    p.connected();
    p.a.host.close(p.from);
    CHECK(p.b.host.wait_until([&] { return p.left_b == 1; }, 1'000'000'000));
    CHECK(p.left_a == 0);
    p.from = p.a.host.make<NDK_CONNECTOR>(
        [&](auto cb, auto ctx, auto out) { return p.a.a->Dispatch->NdkCreateConnector(p.a.a, cb, ctx, out); });
  });
}
