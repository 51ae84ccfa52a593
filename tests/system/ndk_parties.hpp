#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "testbench/management_thread.hpp"
#include "tests/system/ndk_world.hpp"

// Consumers of the Network Direct kernel provider interface on two hosts, which connect.
namespace rnic::test {

inline constexpr std::uint16_t kPort = 4420;

/// An address of a port.
struct Place {
  sockaddr_storage storage{};
  ULONG length{};
  [[nodiscard]] const SOCKADDR* get() const { return reinterpret_cast<const SOCKADDR*>(&storage); }
  [[nodiscard]] SOCKADDR* get() { return reinterpret_cast<SOCKADDR*>(&storage); }
  [[nodiscard]] std::uint16_t port() const {
    return ntohs(storage.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(storage).sin6_port
                                               : reinterpret_cast<const sockaddr_in&>(storage).sin_port);
  }
  friend bool operator==(const Place& a, const Place& b) {
    return a.length == b.length && std::memcmp(&a.storage, &b.storage, a.length) == 0;
  }
};

/// Of a host, as Endpoint says; its IPv6 address is the link-local one, by which requests come
/// (docs/connection_manager.md).
inline Place at(unsigned host, std::uint16_t port, bool ipv6 = false) {
  Place made;
  if (ipv6) {
    auto& in = reinterpret_cast<sockaddr_in6&>(made.storage);
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    const auto gid = kmd::link_local_gid(0x0200'0000'0001 + host);
    std::copy(gid.begin(), gid.end(), in.sin6_addr.s6_addr);
    made.length = sizeof in;
  } else {
    auto& in = reinterpret_cast<sockaddr_in&>(made.storage);
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    in.sin_addr.s_addr = htonl(0x0A000001 + host);
    made.length = sizeof in;
  }
  return made;
}

/// What `get`, with room for an address and its size, gives; it must succeed.
template <typename Get>
Place address_by(Get&& get) {
  Place got;
  got.length = sizeof got.storage;
  REQUIRE(get(got.get(), &got.length) == STATUS_SUCCESS);
  return got;
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
  /// `answering`: host b has a connection manager.
  Parties(Endpoint& host_a, Endpoint& host_b, bool with_ipv6 = false, bool answering = true)
      : a(host_a), b(host_b), ipv6(with_ipv6) {
    management_a.emplace(host_a.kernel(), host_a.host().device());
    if (answering) answer();
    listener = make_listener();
    from = make_connector();
  }
  ~Parties() {
    if (from != nullptr) a.host.close(from);
    for (NDK_CONNECTOR* connector : incoming) b.host.close(connector);
    if (listener != nullptr) b.host.close(listener);
  }
  void answer() { management_b.emplace(b.host.endpoint().kernel(), b.host.endpoint().host().device()); }
  NDK_LISTENER* make_listener() {
    return b.host.make<NDK_LISTENER>(
        [&](auto cb, auto ctx, auto out) { return b.a->Dispatch->NdkCreateListener(b.a, asked, this, cb, ctx, out); });
  }
  NDK_CONNECTOR* make_connector() {
    return a.host.make<NDK_CONNECTOR>(
        [&](auto cb, auto ctx, auto out) { return a.a->Dispatch->NdkCreateConnector(a.a, cb, ctx, out); });
  }
  static void asked(PVOID context, NDK_CONNECTOR* connector) {
    auto& self = *static_cast<Parties*>(context);
    self.incoming.push_back(at_dispatch_level(connector));
    self.b.host.endpoint().device().wake();
  }
  static void left(PVOID context) { ++*static_cast<int*>(context); }

  NTSTATUS listen(NDK_LISTENER* with, const Place& address) {
    return b.host.finish(
        [&](auto cb, auto ctx) { return with->Dispatch->NdkListen(with, address.get(), address.length, cb, ctx); });
  }
  NTSTATUS listen() { return listen(listener, at(1, kPort, ipv6)); }
  NTSTATUS connect(NDK_CONNECTOR* connector, NDK_QP* qp, const Place& source, const Place& target, Asked& request,
                   const std::string& data, ULONG inbound = 16, ULONG outbound = 16) {
    return connector->Dispatch->NdkConnect(connector, qp, source.get(), source.length, target.get(), target.length,
                                           inbound, outbound, data.data(), static_cast<ULONG>(data.size()), Asked::done,
                                           &request);
  }
  NTSTATUS connect(Asked& request, const std::string& data, ULONG inbound = 16, ULONG outbound = 16) {
    return connect(from, a.qp, at(0, 0, ipv6), at(1, kPort, ipv6), request, data, inbound, outbound);
  }
  /// The newest request, if `count` have come.
  NDK_CONNECTOR* request_at_b(std::size_t count = 1) {
    REQUIRE(b.host.wait_until([&] { return incoming.size() >= count; }));
    return incoming.back();
  }
  NTSTATUS accept(NDK_CONNECTOR* to, Asked& request, const std::string& data, ULONG inbound = 16, ULONG outbound = 16) {
    return to->Dispatch->NdkAccept(to, b.qp, inbound, outbound, data.data(), static_cast<ULONG>(data.size()), left,
                                   &left_b, Asked::done, &request);
  }
  NTSTATUS complete(Asked& request) {
    return from->Dispatch->NdkCompleteConnect(from, left, &left_a, Asked::done, &request);
  }
  /// Both are connected. The connector of b.
  NDK_CONNECTOR* connected() {
    Asked connect_asked(a), accept_asked(b), complete_asked(a);
    REQUIRE(listen() == STATUS_SUCCESS);
    REQUIRE(connect(connect_asked, "may I?") == STATUS_PENDING);
    NDK_CONNECTOR* const to = request_at_b();
    REQUIRE(accept(to, accept_asked, "you may") == STATUS_PENDING);
    REQUIRE(connect_asked.wait() == STATUS_SUCCESS);
    REQUIRE(complete(complete_asked) == STATUS_PENDING);
    REQUIRE(complete_asked.wait() == STATUS_SUCCESS);
    REQUIRE(accept_asked.wait() == STATUS_SUCCESS);
    return to;
  }
  /// What the peer has said, up to its first zero byte.
  static std::string data_of(NDK_CONNECTOR* connector, ULONG* inbound = nullptr, ULONG* outbound = nullptr) {
    char room[256]{};
    ULONG size = sizeof room;
    REQUIRE(connector->Dispatch->NdkGetConnectionData(connector, inbound, outbound, room, &size) == STATUS_SUCCESS);
    return room;
  }
  NTSTATUS disconnect(NdkEnd& end, NDK_CONNECTOR* connector) {
    return end.host.finish([&](auto cb, auto ctx) { return connector->Dispatch->NdkDisconnect(connector, cb, ctx); });
  }

  std::optional<testbench::ManagementThread> management_a, management_b;
  NdkEnd a, b;
  const bool ipv6;
  NDK_LISTENER* listener = nullptr;
  NDK_CONNECTOR* from = nullptr;
  std::vector<NDK_CONNECTOR*> incoming;
  int left_a = 0, left_b = 0;
};

/// A registered region over the first page of the memory of each end, and segments of it.
struct Regions {
  explicit Regions(Parties& parties) : p(parties) {
    for (auto [end, mr] : {std::pair(&p.a, &mr_a), std::pair(&p.b, &mr_b)}) {
      *mr = end->make_mr(false);
      REQUIRE(end->register_mr(*mr, end->memory, 4096, NDK_MR_FLAG_ALLOW_LOCAL_WRITE) == STATUS_SUCCESS);
    }
    of_a = NdkEnd::sge(address_of(p.a.memory), 64, mr_a->Dispatch->NdkGetLocalTokenFromMr(mr_a));
    of_b = NdkEnd::sge(address_of(p.b.memory), 64, mr_b->Dispatch->NdkGetLocalTokenFromMr(mr_b));
  }
  Regions(const Regions&) = delete;
  Regions& operator=(const Regions&) = delete;
  ~Regions() {
    p.a.host.close(mr_a);
    p.b.host.close(mr_b);
  }
  /// A Receive of each.
  void receive() {
    REQUIRE(p.a.qp->Dispatch->NdkReceive(p.a.qp, nullptr, &of_a, 1) == STATUS_SUCCESS);
    REQUIRE(p.b.qp->Dispatch->NdkReceive(p.b.qp, nullptr, &of_b, 1) == STATUS_SUCCESS);
  }
  /// A message each way.
  void exchange() {
    receive();
    for (auto [sender, receiver, out] : {std::tuple(&p.a, &p.b, &of_a), std::tuple(&p.b, &p.a, &of_b)}) {
      REQUIRE(sender->qp->Dispatch->NdkSend(sender->qp, nullptr, out, 1, 0) == STATUS_SUCCESS);
      CHECK(sender->status() == STATUS_SUCCESS);
      const auto got = receiver->result();
      CHECK(got.Status == STATUS_SUCCESS);
      CHECK(got.BytesTransferred == 64);
    }
  }

  Parties& p;
  NDK_MR* mr_a = nullptr;
  NDK_MR* mr_b = nullptr;
  NDK_SGE of_a{}, of_b{};
};

struct PartyOptions {
  bool ipv6 = false;
  bool answering = true;  ///< Host b has a connection manager
};

/// Two parties that find each other.
inline void with_parties(const char* name, const std::function<void(Parties&)>& body, const PartyOptions& party = {}) {
  auto options = WorldOptions::from_environment(name);
  options.hang_ns = 30'000'000'000;
  with_ndk_endpoints(
      fresh_world(options),
      [&](Endpoint& a, Endpoint& b) {
        REQUIRE(a.kernel().port_tables().add_neighbour(testbench::ip_of(b, false), testbench::mac_of(b)).ok());
        REQUIRE(b.kernel().port_tables().add_neighbour(testbench::ip_of(a, false), testbench::mac_of(a)).ok());
        Parties parties(a, b, party.ipv6, party.answering);
        body(parties);
      },
      200'000'000'000);
}

}  // namespace rnic::test
