// Connections of NetworkDirect, as its documents describe them: the same cases for two hosts in lockstep, and for a
// program on a machine.
#include "driver/win32/windows.h"
#include "tests/nd2/side.hpp"

namespace rnic::test {
namespace {

constexpr auto kAlreadyBound = static_cast<HRESULT>(0xC0000238);
constexpr auto kBadNetworkName = static_cast<HRESULT>(0xC00000CC);

void carries_data_limits_and_addresses(Sides& sides) {
  auto [pair_a, pair_b, a, b] = connect(sides, {.caller_data = "may I?",
                                                .callee_data = "you may",
                                                .inbound_a = 3,
                                                .outbound_a = 1000,
                                                .inbound_b = 5,
                                                .outbound_b = 2});
  CHECK(data_of(*b) == "may I?");
  CHECK(data_of(*a) == "you may");
  // What the peer offers: its outbound is our inbound. a asks for more than there is, and gets all.
  ULONG in = 0, out = 0;
  REQUIRE(b->GetReadLimits(&in, &out) == ND_SUCCESS);
  CHECK(in == 16);
  CHECK(out == 3);
  REQUIRE(a->GetReadLimits(&in, &out) == ND_SUCCESS);
  CHECK(in == 2);
  CHECK(out == 5);
  sockaddr_in local_a{}, peer_a{}, local_b{}, peer_b{};
  for (auto [connector, local, peer] : {std::tuple(&*a, &local_a, &peer_a), std::tuple(&*b, &local_b, &peer_b)}) {
    ULONG bytes = sizeof *local - 1;
    CHECK(connector->GetLocalAddress(reinterpret_cast<sockaddr*>(local), &bytes) == ND_BUFFER_OVERFLOW);
    CHECK(bytes == sizeof *local);
    CHECK(local->sin_family == 0);
    REQUIRE(connector->GetLocalAddress(reinterpret_cast<sockaddr*>(local), &bytes) == ND_SUCCESS);
    REQUIRE(connector->GetPeerAddress(reinterpret_cast<sockaddr*>(peer), &bytes) == ND_SUCCESS);
  }
  CHECK(std::memcmp(&local_a, &peer_b, sizeof local_a) == 0);
  CHECK(std::memcmp(&local_b, &peer_a, sizeof local_b) == 0);
  CHECK(ntohs(local_a.sin_port) >= 49152);
  // GetPrivateData alone copies what fits.
  std::array<char, 8> part{};
  ULONG bytes = 3;
  CHECK(b->GetPrivateData(part.data(), &bytes) == ND_BUFFER_OVERFLOW);
  CHECK(bytes == 56);
  CHECK(std::string(part.data()) == "may");
  CHECK(a->GetPrivateData(part.data(), &(bytes = 3)) == ND_BUFFER_OVERFLOW);
  CHECK(bytes == 148);
}

/// A Send waits for the peer's Receive, or for one of its shared queue (decisions 13).
void a_late_receive(Sides& sides) {
  Side &a = sides.a, &b = sides.b;
  auto [pair_a, pair_b, from, to] = connect(sides);
  REQUIRE(a.send(*pair_a) == ND_SUCCESS);
  umd::wait_until(
      b.node, [] { return false; }, 20'000'000);
  REQUIRE(b.receive(*pair_b) == ND_SUCCESS);
  CHECK(a.result().Status == ND_SUCCESS);
  CHECK(b.result().Status == ND_SUCCESS);

  ComPtr<IND2SharedReceiveQueue> shared;
  REQUIRE(b.adapter->CreateSharedReceiveQueue(IID_IND2SharedReceiveQueue, b.file, 8, 1, 0, 0, 0, shared.put()) ==
          ND_SUCCESS);
  Connected made{a.make_pair(), {}, a.make_connector(), b.make_connector(false)};
  REQUIRE(b.adapter->CreateQueuePairWithSrq(IID_IND2QueuePair, b.cq.get(), b.cq.get(), shared.get(), nullptr, 8, 1, 0,
                                            made.pair_b.put()) == ND_SUCCESS);
  join(sides, made);
  REQUIRE(a.send(*made.pair_a) == ND_SUCCESS);
  umd::wait_until(
      b.node, [] { return false; }, 20'000'000);
  const auto room = b.sge();
  REQUIRE(shared->Receive(nullptr, &room, 1) == ND_SUCCESS);
  CHECK(a.result().Status == ND_SUCCESS);
  CHECK(b.result().Status == ND_SUCCESS);
}

void moves_data_and_ends(Sides& sides) {
  auto [pair_a, pair_b, a, b] = connect(sides);
  REQUIRE(sides.b.receive(*pair_b, 1) == ND_SUCCESS);
  REQUIRE(sides.b.receive(*pair_b, 2) == ND_SUCCESS);
  REQUIRE(sides.a.receive(*pair_a, 3) == ND_SUCCESS);
  std::memcpy(sides.a.memory.data(), "through the NIC", 16);
  REQUIRE(sides.a.send(*pair_a, 4) == ND_SUCCESS);
  CHECK(sides.a.result().Status == ND_SUCCESS);
  const auto got = sides.b.result();
  CHECK(got.Status == ND_SUCCESS);
  CHECK(got.BytesTransferred == 64);
  CHECK(std::memcmp(sides.b.memory.data(), "through the NIC", 16) == 0);
  Overlapped told_a(sides.a.node), told_b(sides.b.node), told_again(sides.b.node), ended(sides.a.node),
      ended_b(sides.b.node);
  REQUIRE(a->NotifyDisconnect(&told_a) == ND_PENDING);
  REQUIRE(b->NotifyDisconnect(&told_b) == ND_PENDING);
  REQUIRE(b->NotifyDisconnect(&told_again) == ND_PENDING);
  CHECK(b->GetOverlappedResult(&told_b, FALSE) == ND_PENDING);
  REQUIRE(finish(*a, ended, a->Disconnect(&ended)) == ND_SUCCESS);
  CHECK(a->GetOverlappedResult(&told_a, TRUE) == ND_SUCCESS);
  CHECK(b->GetOverlappedResult(&told_b, TRUE) == ND_SUCCESS);
  CHECK(b->GetOverlappedResult(&told_again, TRUE) == ND_SUCCESS);
  // Both sides are flushed (decisions 10), and posting afterwards is as decisions 8 say.
  CHECK(sides.a.result().Status == ND_CANCELED);
  const auto flushed = sides.b.result();
  CHECK(flushed.Status == ND_CANCELED);
  CHECK(reinterpret_cast<std::intptr_t>(flushed.RequestContext) == 2);
  CHECK(sides.a.send(*pair_a) == ND_CONNECTION_INVALID);
  CHECK(sides.a.receive(*pair_a) == ND_SUCCESS);
  CHECK(sides.a.result().Status == ND_CANCELED);
  CHECK(sides.b.send(*pair_b) == ND_SUCCESS);
  CHECK(sides.b.result().Status == ND_CANCELED);
  // Told at once, now that it is over; and the other side's Disconnect succeeds.
  CHECK(finish(*b, told_b, b->NotifyDisconnect(&told_b)) == ND_SUCCESS);
  CHECK(finish(*b, ended_b, b->Disconnect(&ended_b)) == ND_SUCCESS);
  CHECK(sides.b.send(*pair_b) == ND_CONNECTION_INVALID);
  CHECK(b->Disconnect(&ended_b) == ND_CONNECTION_INVALID);
  CHECK(a->Disconnect(&ended) == ND_CONNECTION_INVALID);
}

/// Nobody waits for anything: polls find the flushed Receive.
void polls_see_the_end(Sides& sides) {
  auto [pair_a, pair_b, a, b] = connect(sides);
  REQUIRE(sides.b.receive(*pair_b) == ND_SUCCESS);
  Overlapped ended(sides.a.node);
  REQUIRE(finish(*a, ended, a->Disconnect(&ended)) == ND_SUCCESS);
  CHECK(sides.b.result().Status == ND_CANCELED);
}

void refuses(Sides& sides) {
  Side &a = sides.a, &b = sides.b;
  const auto pair_a = a.make_pair(), pair_b = b.make_pair();
  const auto from = a.make_connector();
  Overlapped asked(a.node), incoming(b.node), accepted(b.node);
  const auto port = next_port();
  // Nobody listens.
  CHECK(finish(*from, asked, ask(a, *from, *pair_a, b.address, port, asked)) == ND_CONNECTION_REFUSED);
  // The queue pair is nobody's again.
  const auto rival = a.make_connector();
  CHECK(finish(*rival, asked, ask(a, *rival, *pair_a, b.address, port, asked)) == ND_CONNECTION_REFUSED);
  // Refused by the application, with its reasons; the same connector may try again.
  {
    const auto listener = b.make_listener(port);
    const auto to = b.make_connector(false);
    REQUIRE(listener->GetConnectionRequest(to.get(), &incoming) == ND_PENDING);
    REQUIRE(ask(a, *from, *pair_a, b.address, port, asked) == ND_PENDING);
    REQUIRE(listener->GetOverlappedResult(&incoming, TRUE) == ND_SUCCESS);
    const std::string too_much(149, 'x');
    CHECK(to->Reject(too_much.data(), 149) == ND_INVALID_BUFFER_SIZE);
    CHECK(to->Reject(reinterpret_cast<void*>(16), 8) == ND_ACCESS_VIOLATION);
    CHECK(to->Reject("not today", 10) == ND_SUCCESS);
    // As a new one.
    ULONG bytes = 0;
    CHECK(to->GetPrivateData(nullptr, &bytes) == ND_CONNECTION_INVALID);
    CHECK(to->GetReadLimits(nullptr, nullptr) == ND_CONNECTION_INVALID);
    CHECK(from->GetOverlappedResult(&asked, TRUE) == ND_CONNECTION_REFUSED);
    CHECK(data_of(*from) == "not today");
    CHECK(to->Reject(nullptr, 0) == ND_CONNECTION_INVALID);
  }
  // The one who asked refuses the answer.
  {
    const auto listener = b.make_listener(port);
    const auto to = b.make_connector(false);
    REQUIRE(listener->GetConnectionRequest(to.get(), &incoming) == ND_PENDING);
    REQUIRE(ask(a, *from, *pair_a, b.address, port, asked) == ND_PENDING);
    REQUIRE(listener->GetOverlappedResult(&incoming, TRUE) == ND_SUCCESS);
    REQUIRE(to->Accept(pair_b.get(), 1, 1, nullptr, 0, &accepted) == ND_PENDING);
    REQUIRE(from->GetOverlappedResult(&asked, TRUE) == ND_SUCCESS);
    CHECK(from->Reject("changed my mind", 16) == ND_SUCCESS);
    CHECK(to->GetOverlappedResult(&accepted, TRUE) == ND_CONNECTION_REFUSED);
    CHECK(b.send(*pair_b) == ND_CONNECTION_INVALID);
  }
}

void a_listener_that_goes_or_is_full_refuses(Sides& sides) {
  Side &a = sides.a, &b = sides.b;
  const auto port = next_port();
  auto listener = b.make_listener(port, 1);
  const auto first = a.make_pair(), second = a.make_pair();
  const auto from = a.make_connector(), other = a.make_connector();
  Overlapped asked(a.node), asked_too(a.node);
  REQUIRE(ask(a, *from, *first, b.address, port, asked) == ND_PENDING);
  // It has come before the second one, which finds no room.
  CHECK(finish(*other, asked_too, ask(a, *other, *second, b.address, port, asked_too)) == ND_CONNECTION_REFUSED);
  CHECK(from->GetOverlappedResult(&asked, FALSE) == ND_PENDING);
  listener.reset();
  CHECK(from->GetOverlappedResult(&asked, TRUE) == ND_CONNECTION_REFUSED);
}

void ports_and_addresses(Sides& sides) {
  Side& b = sides.b;
  const auto port = next_port();
  const auto listener = b.make_listener(port);
  ComPtr<IND2Listener> other;
  REQUIRE(b.adapter->CreateListener(IID_IND2Listener, b.file, other.put()) == ND_SUCCESS);
  const auto connector = b.make_connector(false);
  const auto taken = ipv4(b.address, port), own = ipv4(b.address, 0), any = ipv4("0.0.0.0", 0),
             nobody = ipv4("192.0.2.1", 0);
  sockaddr_in local{};
  auto* const to = reinterpret_cast<sockaddr*>(&local);
  ULONG bytes = sizeof local;
  CHECK(other->Listen(0) == ND_INVALID_DEVICE_STATE);
  CHECK(other->GetLocalAddress(to, &bytes) == ND_INVALID_DEVICE_STATE);
  CHECK(connector->GetLocalAddress(to, &bytes) == ND_CONNECTION_INVALID);
  CHECK(other->Bind(generic(taken), sizeof taken) == ND_SHARING_VIOLATION);
  CHECK(connector->Bind(generic(taken), sizeof taken) == ND_SHARING_VIOLATION);
  CHECK(other->Bind(generic(nobody), sizeof nobody) == ND_INVALID_ADDRESS);
  CHECK(connector->Bind(generic(nobody), sizeof nobody) == ND_INVALID_ADDRESS);
  CHECK(other->Bind(nullptr, sizeof own) == ND_INVALID_PARAMETER_1);
  CHECK(other->Bind(generic(own), 8) == ND_INVALID_PARAMETER_2);
  sockaddr_in strange = own;
  strange.sin_family = AF_UNIX;
  CHECK(other->Bind(generic(strange), sizeof strange) == ND_INVALID_ADDRESS);
  Overlapped waits(b.node);
  const auto unused = b.make_connector(false);
  CHECK(other->GetConnectionRequest(unused.get(), &waits) == ND_INVALID_DEVICE_STATE);
  REQUIRE(other->Bind(generic(any), sizeof any) == ND_SUCCESS);
  CHECK(other->GetConnectionRequest(unused.get(), &waits) == ND_INVALID_DEVICE_STATE);
  REQUIRE(connector->Bind(generic(own), sizeof own) == ND_SUCCESS);
  CHECK(other->Bind(generic(own), sizeof own) == kAlreadyBound);
  CHECK(connector->Bind(generic(own), sizeof own) == kAlreadyBound);
  REQUIRE(other->Listen(0) == ND_SUCCESS);
  CHECK(FAILED(other->Listen(0)));
  REQUIRE(other->GetLocalAddress(to, &bytes) == ND_SUCCESS);
  CHECK(local.sin_addr.s_addr == INADDR_ANY);
  CHECK(ntohs(local.sin_port) >= 49152);
  CHECK(listener->GetLocalAddress(nullptr, &bytes) == ND_BUFFER_OVERFLOW);
  CHECK(listener->GetLocalAddress(to, nullptr) == ND_INVALID_PARAMETER_2);
}

void connect_errors(Sides& sides) {
  Side& a = sides.a;
  const auto pair = a.make_pair(), of_b = sides.b.make_pair();
  const auto connector = a.make_connector();
  Overlapped asked(a.node);
  const auto port = next_port();
  const std::string too_much(57, 'x');
  const auto to = ipv4(sides.b.address, port);
  // The connector stays usable.
  CHECK(ask(a, *connector, *pair, sides.b.address, port, asked, {.caller_data = too_much}) == ND_INVALID_BUFFER_SIZE);
  CHECK(ask(a, *connector, *pair, "0.0.0.0", port, asked) == kBadNetworkName);
  CHECK(ask(a, *connector, *pair, "10.0.0.77", port, asked) == ND_HOST_UNREACHABLE);
  CHECK(ask(a, *connector, *pair, "224.0.0.1", port, asked) == ND_INVALID_ADDRESS);
  CHECK(connector->Connect(pair.get(), generic(to), sizeof to, 1, 1, reinterpret_cast<void*>(16), 8, &asked) ==
        ND_ACCESS_VIOLATION);
  CHECK(connector->Connect(nullptr, generic(to), sizeof to, 1, 1, nullptr, 0, &asked) == ND_INVALID_PARAMETER_1);
  CHECK(connector->Connect(of_b.get(), generic(to), sizeof to, 1, 1, nullptr, 0, &asked) == ND_INVALID_PARAMETER_1);
  CHECK(connector->Connect(pair.get(), nullptr, sizeof to, 1, 1, nullptr, 0, &asked) == ND_INVALID_PARAMETER_2);
  CHECK(connector->Connect(pair.get(), generic(to), 8, 1, 1, nullptr, 0, &asked) == ND_INVALID_PARAMETER_3);
  CHECK(connector->Connect(pair.get(), generic(to), sizeof to, 1, 1, nullptr, 0, nullptr) == ND_INVALID_PARAMETER);
  sockaddr_in6 to6{};
  to6.sin6_family = AF_INET6;
  to6.sin6_port = htons(port);
  to6.sin6_addr.s6_addr[0] = 0xFD;
  to6.sin6_addr.s6_addr[15] = 1;
  // A connector that is bound to an IPv4 address.
  CHECK(connector->Connect(pair.get(), reinterpret_cast<sockaddr*>(&to6), sizeof to6, 1, 1, nullptr, 0, &asked) ==
        ND_NETWORK_UNREACHABLE);
  CHECK(asked.status() == 0);
  CHECK(finish(*connector, asked, ask(a, *connector, *pair, sides.b.address, port, asked)) == ND_CONNECTION_REFUSED);
}

/// Calls that make no sense where the connector is.
void states(Sides& sides) {
  Side &a = sides.a, &b = sides.b;
  const auto fresh = a.make_connector();
  const auto pair = a.make_pair();
  Overlapped request(a.node), on_b(b.node);
  ULONG in = 0, out = 0, bytes = sizeof(sockaddr_in);
  sockaddr_in address{};
  CHECK(fresh->CompleteConnect(&request) == ND_CONNECTION_INVALID);
  CHECK(fresh->Accept(pair.get(), 1, 1, nullptr, 0, &request) == ND_CONNECTION_INVALID);
  CHECK(fresh->Reject(nullptr, 0) == ND_CONNECTION_INVALID);
  CHECK(fresh->Disconnect(&request) == ND_CONNECTION_INVALID);
  CHECK(fresh->NotifyDisconnect(&request) == ND_CONNECTION_INVALID);
  CHECK(fresh->GetReadLimits(&in, &out) == ND_CONNECTION_INVALID);
  CHECK(fresh->GetPrivateData(nullptr, &bytes) == ND_CONNECTION_INVALID);
  CHECK(fresh->GetPeerAddress(reinterpret_cast<sockaddr*>(&address), &bytes) == ND_CONNECTION_INVALID);
  const auto port = next_port();
  const auto listener = b.make_listener(port);
  const auto to = b.make_connector(false), other = b.make_connector(false);
  CHECK(listener->GetConnectionRequest(nullptr, &on_b) == ND_INVALID_PARAMETER_1);
  CHECK(listener->GetConnectionRequest(fresh.get(), &on_b) == ND_INVALID_PARAMETER_1);
  REQUIRE(listener->GetConnectionRequest(to.get(), &on_b) == ND_PENDING);
  Overlapped second(b.node);
  CHECK(listener->GetConnectionRequest(to.get(), &second) == ND_CONNECTION_ACTIVE);
  const auto bound = b.make_connector();
  CHECK(listener->GetConnectionRequest(bound.get(), &second) == ND_CONNECTION_ACTIVE);
  REQUIRE(ask(a, *fresh, *pair, b.address, port, request) == ND_PENDING);
  Overlapped again(a.node);
  CHECK(ask(a, *fresh, *pair, b.address, port, again) == ND_CONNECTION_ACTIVE);
  const auto rival = a.make_connector();
  CHECK(ask(a, *rival, *pair, b.address, port, again) == ND_CONNECTION_ACTIVE);
  REQUIRE(listener->GetOverlappedResult(&on_b, TRUE) == ND_SUCCESS);
  const auto pair_b = b.make_pair();
  const std::string too_much(149, 'x');
  CHECK(to->Accept(pair_b.get(), 1, 1, too_much.data(), 149, &on_b) == ND_INVALID_BUFFER_SIZE);
  CHECK(to->Accept(pair_b.get(), 1, 1, reinterpret_cast<void*>(16), 8, &on_b) == ND_ACCESS_VIOLATION);
  CHECK(to->Accept(pair.get(), 1, 1, nullptr, 0, &on_b) == ND_INVALID_PARAMETER_1);
  CHECK(b.send(*pair_b) == ND_CONNECTION_INVALID);
  REQUIRE(to->Accept(pair_b.get(), 1, 1, nullptr, 0, &on_b) == ND_PENDING);
  CHECK(to->Accept(pair_b.get(), 1, 1, nullptr, 0, &second) == ND_CONNECTION_ACTIVE);
  CHECK(to->NotifyDisconnect(&second) == ND_CONNECTION_INVALID);
  REQUIRE(fresh->GetOverlappedResult(&request, TRUE) == ND_SUCCESS);
  CHECK(a.send(*pair) == ND_CONNECTION_INVALID);
  REQUIRE(finish(*fresh, again, fresh->CompleteConnect(&again)) == ND_SUCCESS);
  CHECK(fresh->CompleteConnect(&again) == ND_CONNECTION_INVALID);
  REQUIRE(to->GetOverlappedResult(&on_b, TRUE) == ND_SUCCESS);
  CHECK(ask(a, *fresh, *pair, b.address, port, again) == ND_CONNECTION_ACTIVE);
  // The one that wanted the queue pair, too, has taken nothing of it: its end is that of the connection.
  REQUIRE(to->NotifyDisconnect(&second) == ND_PENDING);
  REQUIRE(pair->Flush() == ND_SUCCESS);
  CHECK(to->GetOverlappedResult(&second, TRUE) == ND_SUCCESS);
}

/// Who asked first has the first request, and one that has waited since before anybody asked comes all the same.
void requests_in_their_order(Sides& sides) {
  Side &a = sides.a, &b = sides.b;
  const auto port = next_port();
  const auto listener = b.make_listener(port);
  const auto first = b.make_connector(false), second = b.make_connector(false);
  const auto pair = a.make_pair(), other_pair = a.make_pair();
  const auto from = a.make_connector(), other = a.make_connector();
  Overlapped asked(a.node), asked_too(a.node), waits(b.node), waits_too(b.node);
  REQUIRE(listener->GetConnectionRequest(first.get(), &waits) == ND_PENDING);
  REQUIRE(listener->GetConnectionRequest(second.get(), &waits_too) == ND_PENDING);
  REQUIRE(ask(a, *from, *pair, b.address, port, asked) == ND_PENDING);
  REQUIRE(listener->GetOverlappedResult(&waits, TRUE) == ND_SUCCESS);
  CHECK(waits_too.status() == ND_PENDING);
  REQUIRE(listener->CancelOverlappedRequests() == ND_SUCCESS);
  CHECK(waits_too.status() == ND_CANCELED);
  // The client has heard that something waits, and does not want it yet.
  REQUIRE(ask(a, *other, *other_pair, b.address, port, asked_too) == ND_PENDING);
  umd::wait_until(
      b.node, [] { return false; }, 20'000'000);
  CHECK(listener->GetOverlappedResult(&waits_too, FALSE) == ND_CANCELED);
  REQUIRE(listener->GetConnectionRequest(second.get(), &waits_too) == ND_PENDING);
  CHECK(listener->GetOverlappedResult(&waits_too, TRUE) == ND_SUCCESS);
}

/// 127.0.0.1 is the host's own address, to bind to and to connect to.
void loopback(Sides& sides) {
  Side& a = sides.a;
  const auto port = next_port();
  const auto own = ipv4("127.0.0.1", port), any_port = ipv4("127.0.0.1", 0);
  ComPtr<IND2Listener> listener;
  REQUIRE(a.adapter->CreateListener(IID_IND2Listener, a.file, listener.put()) == ND_SUCCESS);
  REQUIRE(listener->Bind(generic(own), sizeof own) == ND_SUCCESS);
  REQUIRE(listener->Listen(0) == ND_SUCCESS);
  const auto from = a.make_connector(false), to = a.make_connector(false);
  REQUIRE(from->Bind(generic(any_port), sizeof any_port) == ND_SUCCESS);
  sockaddr_in local{};
  ULONG bytes = sizeof local;
  const auto here = ipv4(a.address, port);
  REQUIRE(listener->GetLocalAddress(reinterpret_cast<sockaddr*>(&local), &bytes) == ND_SUCCESS);
  CHECK(std::memcmp(&local, &here, sizeof here) == 0);
  REQUIRE(from->GetLocalAddress(reinterpret_cast<sockaddr*>(&local), &bytes) == ND_SUCCESS);
  CHECK(local.sin_addr.s_addr == here.sin_addr.s_addr);
  const auto pair = a.make_pair();
  Overlapped asked(a.node), waits(a.node);
  REQUIRE(listener->GetConnectionRequest(to.get(), &waits) == ND_PENDING);
  REQUIRE(ask(a, *from, *pair, "127.0.0.1", port, asked) == ND_PENDING);
  CHECK(listener->GetOverlappedResult(&waits, TRUE) == ND_SUCCESS);
}

/// Read limits count: with none on one side its Reads are no requests for the device (decisions 5).
void read_limits_hold(Sides& sides) {
  auto [pair_a, pair_b, a, b] = connect(sides, {.inbound_a = 2, .outbound_a = 0, .inbound_b = 4, .outbound_b = 8});
  const auto to_b = sides.b.sge(), to_a = sides.a.sge();
  for (int i = 0; i < 4; ++i) {
    REQUIRE(pair_b->Read(nullptr, &to_b, 1, reinterpret_cast<std::uintptr_t>(sides.a.memory.data()),
                         sides.a.region->GetRemoteToken(), 0) == ND_SUCCESS);
  }
  for (int i = 0; i < 4; ++i) CHECK(sides.b.result().Status == ND_SUCCESS);
  REQUIRE(pair_a->Read(nullptr, &to_a, 1, reinterpret_cast<std::uintptr_t>(sides.b.memory.data()),
                       sides.b.region->GetRemoteToken(), 0) == ND_SUCCESS);
  CHECK(sides.a.result().Status == ND_INVALID_DEVICE_REQUEST);
}

void a_failure_ends_the_connection(Sides& sides) {
  auto [pair_a, pair_b, a, b] = connect(sides);
  Overlapped told_a(sides.a.node), told_b(sides.b.node);
  REQUIRE(a->NotifyDisconnect(&told_a) == ND_PENDING);
  REQUIRE(b->NotifyDisconnect(&told_b) == ND_PENDING);
  REQUIRE(sides.b.receive(*pair_b) == ND_SUCCESS);
  const auto from = sides.a.sge();
  REQUIRE(pair_a->Write(nullptr, &from, 1, reinterpret_cast<std::uintptr_t>(sides.b.memory.data()), 0x12345678, 0) ==
          ND_SUCCESS);
  CHECK(sides.a.result().Status == ND_ACCESS_VIOLATION);
  CHECK(b->GetOverlappedResult(&told_b, TRUE) == ND_SUCCESS);
  CHECK(a->GetOverlappedResult(&told_a, TRUE) == ND_SUCCESS);
  CHECK(sides.b.result().Status == ND_CANCELED);
  CHECK(sides.a.send(*pair_a) == ND_SUCCESS);
  CHECK(sides.a.result().Status == ND_CANCELED);
}

/// The peer's queue pair is well, and knows nothing of it; it is told when the client looks for more.
void a_local_failure_ends_the_connection(Sides& sides) {
  auto [pair_a, pair_b, a, b] = connect(sides);
  Overlapped told(sides.b.node);
  REQUIRE(b->NotifyDisconnect(&told) == ND_PENDING);
  REQUIRE(sides.b.receive(*pair_b) == ND_SUCCESS);
  auto from = sides.a.sge();
  from.MemoryRegionToken ^= 0x5500;
  REQUIRE(pair_a->Send(nullptr, &from, 1, 0) == ND_SUCCESS);
  CHECK(sides.a.result().Status == ND_ACCESS_VIOLATION);
  ND2_RESULT more{};
  CHECK(sides.a.cq->GetResults(&more, 1) == 0);
  CHECK(b->GetOverlappedResult(&told, TRUE) == ND_SUCCESS);
  CHECK(sides.b.result().Status == ND_CANCELED);
}

/// A fault of each kind of request, at side a: the result that it has there.
struct Fault {
  const char* name;
  std::function<void(Sides&, Connected&)> cause;
  ND2_REQUEST_TYPE type;
  HRESULT status;
};

HRESULT read_from_b(Sides& sides, Connected& made, UINT32 local_token, UINT32 remote_token) {
  auto to = sides.a.sge();
  to.MemoryRegionToken = local_token;
  return made.pair_a->Read(nullptr, &to, 1, reinterpret_cast<std::uintptr_t>(sides.b.memory.data()), remote_token, 0);
}

HRESULT write_to_b(Sides& sides, Connected& made, UINT32 local_token) {
  auto from = sides.a.sge();
  from.MemoryRegionToken = local_token;
  return made.pair_a->Write(nullptr, &from, 1, reinterpret_cast<std::uintptr_t>(sides.b.memory.data()),
                            sides.b.region->GetRemoteToken(), 0);
}

std::vector<Fault> faults(ComPtr<IND2MemoryWindow>& window) {
  constexpr UINT32 kWrong = 0x5500;
  return {
      {"a Receive that is too short",
       [](Sides& s, Connected& made) {
         const auto to = s.a.sge(8);
         REQUIRE(made.pair_a->Receive(nullptr, &to, 1) == ND_SUCCESS);
         REQUIRE(s.b.send(*made.pair_b) == ND_SUCCESS);
       },
       Nd2RequestTypeReceive, ND_BUFFER_OVERFLOW},
      {"a Bind of a window that is bound",
       [&window](Sides& s, Connected& made) {
         REQUIRE(s.a.adapter->CreateMemoryWindow(IID_IND2MemoryWindow, reinterpret_cast<void**>(window.put())) ==
                 ND_SUCCESS);
         for (int i = 0; i < 2; ++i) {
           REQUIRE(made.pair_a->Bind(nullptr, s.a.region.get(), window.get(), s.a.memory.data(), 64,
                                     ND_OP_FLAG_ALLOW_READ) == ND_SUCCESS);
         }
         CHECK(s.a.result().Status == ND_SUCCESS);
       },
       Nd2RequestTypeBind, ND_INVALID_DEVICE_REQUEST},
      {"an Invalidate of a window that is not bound",
       [&window](Sides& s, Connected& made) {
         REQUIRE(s.a.adapter->CreateMemoryWindow(IID_IND2MemoryWindow, reinterpret_cast<void**>(window.put())) ==
                 ND_SUCCESS);
         REQUIRE(made.pair_a->Invalidate(nullptr, window.get(), 0) == ND_SUCCESS);
       },
       Nd2RequestTypeInvalidate, ND_INVALID_DEVICE_REQUEST},
      {"a Read into nothing",
       [](Sides& s, Connected& made) {
         REQUIRE(read_from_b(s, made, s.a.region->GetLocalToken() ^ kWrong, s.b.region->GetRemoteToken()) ==
                 ND_SUCCESS);
       },
       Nd2RequestTypeRead, ND_ACCESS_VIOLATION},
      {"a Read that the peer refuses",
       [](Sides& s, Connected& made) {
         REQUIRE(read_from_b(s, made, s.a.region->GetLocalToken(), 0x12345678) == ND_SUCCESS);
       },
       Nd2RequestTypeRead, ND_ACCESS_VIOLATION},
      {"a Write of nothing",
       [](Sides& s, Connected& made) {
         REQUIRE(write_to_b(s, made, s.a.region->GetLocalToken() ^ kWrong) == ND_SUCCESS);
       },
       Nd2RequestTypeWrite, ND_ACCESS_VIOLATION},
      {"a Send of nothing",
       [](Sides& s, Connected& made) {
         auto from = s.a.sge();
         from.MemoryRegionToken ^= kWrong;
         REQUIRE(made.pair_a->Send(nullptr, &from, 1, 0) == ND_SUCCESS);
       },
       Nd2RequestTypeSend, ND_ACCESS_VIOLATION},
  };
}

/// Both sides are notified, and what the peer has posted is canceled.
void every_fault_ends_the_connection(Sides& sides) {
  ComPtr<IND2MemoryWindow> window;
  for (const Fault& fault : faults(window)) {
    INFO(fault.name);
    auto made = connect(sides);
    Overlapped told_a(sides.a.node), told_b(sides.b.node);
    REQUIRE(made.a->NotifyDisconnect(&told_a) == ND_PENDING);
    REQUIRE(made.b->NotifyDisconnect(&told_b) == ND_PENDING);
    REQUIRE(sides.b.receive(*made.pair_b, 7) == ND_SUCCESS);
    fault.cause(sides, made);
    const auto failed = sides.a.result();
    CHECK(failed.RequestType == fault.type);
    CHECK(failed.Status == fault.status);
    ND2_RESULT more{};
    CHECK(sides.a.cq->GetResults(&more, 1) == 0);
    CHECK(made.b->GetOverlappedResult(&told_b, TRUE) == ND_SUCCESS);
    CHECK(made.a->GetOverlappedResult(&told_a, TRUE) == ND_SUCCESS);
    // Its Send has failed, too, where that of the peer found no room.
    bool canceled = false;
    for (int left = fault.type == Nd2RequestTypeReceive ? 2 : 1; left != 0; --left) {
      const auto result = sides.b.result();
      CHECK(result.Status == (result.RequestType == Nd2RequestTypeSend ? ND_DATA_OVERRUN : ND_CANCELED));
      canceled = canceled || result.RequestType == Nd2RequestTypeReceive;
    }
    CHECK(canceled);
    CHECK(sides.b.receive(*made.pair_b) == ND_SUCCESS);
    CHECK(sides.b.result().Status == ND_CANCELED);
    window.reset();
  }
}

void a_flush_tells_the_peer(Sides& sides) {
  auto [pair_a, pair_b, a, b] = connect(sides);
  Overlapped told(sides.b.node), ended(sides.a.node);
  REQUIRE(b->NotifyDisconnect(&told) == ND_PENDING);
  REQUIRE(sides.a.receive(*pair_a) == ND_SUCCESS);
  REQUIRE(sides.b.receive(*pair_b) == ND_SUCCESS);
  REQUIRE(pair_a->Flush() == ND_SUCCESS);
  CHECK(sides.a.result().Status == ND_CANCELED);
  CHECK(b->GetOverlappedResult(&told, TRUE) == ND_SUCCESS);
  CHECK(sides.b.result().Status == ND_CANCELED);
  CHECK(finish(*a, ended, a->Disconnect(&ended)) == ND_SUCCESS);
}

/// Whatever goes first, the peer hears of it.
void releases_tell_the_peer(Sides& sides) {
  for (const bool queue_pair_first : {false, true}) {
    auto [pair_a, pair_b, a, b] = connect(sides);
    Overlapped told(sides.b.node);
    REQUIRE(b->NotifyDisconnect(&told) == ND_PENDING);
    REQUIRE(sides.a.receive(*pair_a) == ND_SUCCESS);
    REQUIRE(sides.b.receive(*pair_b) == ND_SUCCESS);
    if (queue_pair_first)
      pair_a.reset();
    else
      a.reset();
    CHECK(sides.a.result().Status == ND_CANCELED);
    CHECK(b->GetOverlappedResult(&told, TRUE) == ND_SUCCESS);
    CHECK(sides.b.result().Status == ND_CANCELED);
  }
}

void cancels(Sides& sides) {
  Side &a = sides.a, &b = sides.b;
  const auto port = next_port();
  const auto listener = b.make_listener(port);
  const auto to = b.make_connector(false), other = b.make_connector(false);
  Overlapped first(b.node), second(b.node), asked(a.node), accepted(b.node);
  // Those that wait for requests, in the order in which they came to the port.
  const HANDLE port_handle = nd2::create_completion_port(b.node);
  const auto completions = nd2::find_handle_as<nd2::CompletionPort>(port_handle);
  REQUIRE(nd2::find_handle_as<nd2::OverlappedFile>(b.file)->bind(completions, 7));
  REQUIRE(listener->GetConnectionRequest(to.get(), &first) == ND_PENDING);
  REQUIRE(listener->GetConnectionRequest(other.get(), &second) == ND_PENDING);
  CHECK(listener->CancelOverlappedRequests() == ND_SUCCESS);
  for (const OVERLAPPED* request : {&first, &second}) {
    const auto packet = completions->try_take();
    REQUIRE(packet);
    CHECK(packet->overlapped == request);
    CHECK(packet->status == ND_CANCELED);
    CHECK(packet->key == 7);
  }
  CHECK_FALSE(completions->try_take());
  nd2::close_handle(port_handle);
  // A Connect that is given up: the peer's Accept finds nobody (decisions 35).
  const auto pair_a = a.make_pair(), pair_b = b.make_pair();
  auto from = a.make_connector();
  REQUIRE(listener->GetConnectionRequest(to.get(), &first) == ND_PENDING);
  REQUIRE(ask(a, *from, *pair_a, b.address, port, asked) == ND_PENDING);
  REQUIRE(listener->GetOverlappedResult(&first, TRUE) == ND_SUCCESS);
  CHECK(from->CancelOverlappedRequests() == ND_SUCCESS);
  CHECK(asked.status() == ND_CANCELED);
  CHECK(from->CompleteConnect(&asked) == ND_CONNECTION_INVALID);
  CHECK(ask(a, *from, *pair_a, b.address, port, asked) == ND_CONNECTION_INVALID);
  HRESULT late = ND_PENDING;
  umd::wait_until(
      b.node, [] { return false; }, 20'000'000);
  late = finish(*to, accepted, to->Accept(pair_b.get(), 1, 1, nullptr, 0, &accepted));
  CHECK(late == ND_CONNECTION_REFUSED);
  CHECK(to->Reject(nullptr, 0) == ND_CONNECTION_ABORTED);
  // A NotifyDisconnect alone; the connection stays.
  auto made = connect(sides);
  Overlapped told(a.node);
  REQUIRE(made.a->NotifyDisconnect(&told) == ND_PENDING);
  CHECK(made.a->CancelOverlappedRequests() == ND_SUCCESS);
  CHECK(told.status() == ND_CANCELED);
  REQUIRE(b.receive(*made.pair_b) == ND_SUCCESS);
  REQUIRE(a.send(*made.pair_a) == ND_SUCCESS);
  CHECK(a.result().Status == ND_SUCCESS);
  CHECK(b.result().Status == ND_SUCCESS);
}

/// Everything goes while it is waited for, in another order each time; blocks of requests are not touched afterwards.
/// CancelIoEx: one request, or all of the file; what has been cancelled is final when it returns.
void cancels_by_the_file(Sides& sides) {
  Side &a = sides.a, &b = sides.b;
  const auto port = next_port();
  const auto listener = b.make_listener(port);
  const auto to = b.make_connector(false), other = b.make_connector(false);
  Overlapped first(b.node), second(b.node), never(b.node), asked(a.node), told(a.node);
  REQUIRE(listener->GetConnectionRequest(to.get(), &first) == ND_PENDING);
  REQUIRE(listener->GetConnectionRequest(other.get(), &second) == ND_PENDING);
  CHECK(CancelIoEx(a.file, &second) == FALSE);
  CHECK(GetLastError() == ERROR_NOT_FOUND);
  CHECK(CancelIoEx(b.file, &never) == FALSE);
  CHECK(CancelIoEx(b.file, &second) == TRUE);
  CHECK(second.status() == ND_CANCELED);
  CHECK(first.status() == ND_PENDING);
  // The one that is left gets the request, whose Connect is then given up.
  const auto pair_a = a.make_pair();
  const auto from = a.make_connector();
  REQUIRE(ask(a, *from, *pair_a, b.address, port, asked) == ND_PENDING);
  REQUIRE(listener->GetOverlappedResult(&first, TRUE) == ND_SUCCESS);
  CHECK(CancelIoEx(a.file, &never) == FALSE);
  CHECK(asked.status() == ND_PENDING);
  CHECK(CancelIoEx(a.file, &asked) == TRUE);
  CHECK(asked.status() == ND_CANCELED);
  CHECK(CancelIoEx(a.file, &asked) == FALSE);
  CHECK(ask(a, *from, *pair_a, b.address, port, asked) == ND_CONNECTION_INVALID);
  // All of a file, of whatever objects. The connection stays.
  auto made = connect(sides);
  REQUIRE(made.a->NotifyDisconnect(&told) == ND_PENDING);
  REQUIRE(listener->GetConnectionRequest(other.get(), &second) == ND_PENDING);
  CHECK(CancelIoEx(b.file, nullptr) == TRUE);
  CHECK(second.status() == ND_CANCELED);
  if (a.file != b.file) CHECK(told.status() == ND_PENDING);
  CHECK(CancelIoEx(a.file, nullptr) == TRUE);
  CHECK(told.status() == ND_CANCELED);
  CHECK(CancelIoEx(a.file, nullptr) == FALSE);
  CHECK(GetLastError() == ERROR_NOT_FOUND);
  REQUIRE(b.receive(*made.pair_b) == ND_SUCCESS);
  REQUIRE(a.send(*made.pair_a) == ND_SUCCESS);
  CHECK(a.result().Status == ND_SUCCESS);
  CHECK(b.result().Status == ND_SUCCESS);
}

void releases_in_any_order(Sides& sides) {
  Side &a = sides.a, &b = sides.b;
  for (unsigned order = 0; order < 6; ++order) {
    const auto port = next_port();
    auto listener = b.make_listener(port);
    auto to = b.make_connector(false), from = a.make_connector();
    auto pair = a.make_pair();
    Overlapped waits(b.node), asked(a.node), unanswered(b.node);
    const auto other = b.make_connector(false);
    REQUIRE(listener->GetConnectionRequest(to.get(), &waits) == ND_PENDING);
    REQUIRE(ask(a, *from, *pair, b.address, port, asked) == ND_PENDING);
    if (order >= 3) REQUIRE(listener->GetOverlappedResult(&waits, TRUE) == ND_SUCCESS);
    REQUIRE(listener->GetConnectionRequest(other.get(), &unanswered) == ND_PENDING);
    const auto drop = [&](unsigned which) {
      if (which == 0) listener.reset();
      if (which == 1) from.reset();
      if (which == 2) to.reset();
      if (which == 3) pair.reset();
    };
    for (unsigned i = 0; i < 4; ++i) drop((order + i) % 4);
    CHECK(asked.status() == ND_CANCELED);
    CHECK(unanswered.status() == ND_CANCELED);
    if (order < 3) CHECK(waits.status() == ND_CANCELED);
  }
}

void com_rules(Sides& sides) {
  Side& a = sides.a;
  void* object = &object;
  CHECK(a.adapter->CreateConnector(IID_IND2Listener, a.file, &object) == E_NOINTERFACE);
  CHECK(object == nullptr);
  object = &object;
  CHECK(a.adapter->CreateListener(IID_IND2Listener, nullptr, &object) == ND_INVALID_HANDLE);
  CHECK(object == nullptr);
  CHECK(a.adapter->CreateConnector(IID_IND2Connector, a.file, nullptr) == E_POINTER);
  const auto connector = a.make_connector(false);
  for (const auto& iid : {IID_IND2Connector, IID_IND2Overlapped, IID_IUnknown}) {
    REQUIRE(connector->QueryInterface(iid, &object) == S_OK);
    CHECK(static_cast<IUnknown*>(object)->Release() == 1);
  }
  CHECK(connector->QueryInterface(IID_IND2Listener, &object) == E_NOINTERFACE);
  CHECK(object == nullptr);
  auto listener = a.make_listener(next_port());
  listener->AddRef();
  CHECK(listener->Release() == 1);
}

}  // namespace

const std::vector<Case>& connection_cases() {
  static const std::vector<Case> cases{
      {"private data, read limits, addresses", carries_data_limits_and_addresses},
      {"data, disconnect, flush of both sides", moves_data_and_ends},
      {"a Receive that comes late", a_late_receive},
      {"a peer's disconnect is seen by polls", polls_see_the_end},
      {"refusals of both sides", refuses},
      {"a listener that goes, or is full", a_listener_that_goes_or_is_full_refuses},
      {"ports and addresses", ports_and_addresses},
      {"errors of Connect", connect_errors},
      {"calls in states in which they make no sense", states},
      {"read limits hold", read_limits_hold},
      {"a queue pair that fails ends its connection", a_failure_ends_the_connection},
      {"so does one that has failed by itself", a_local_failure_ends_the_connection},
      {"a fault of each kind of request ends the connection", every_fault_ends_the_connection},
      {"Flush tells the peer", a_flush_tells_the_peer},
      {"requests in their order", requests_in_their_order},
      {"the loopback address", loopback},
      {"releases tell the peer", releases_tell_the_peer},
      {"cancelled requests", cancels},
      {"requests cancelled by the file", cancels_by_the_file},
      {"objects released in any order", releases_in_any_order},
      {"COM rules", com_rules}};
  return cases;
}

}  // namespace rnic::test
