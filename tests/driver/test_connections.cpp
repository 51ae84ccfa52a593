// Kernel calls for connections (docs/connection_manager.md): two kernel drivers on fake devices, and a wire between
// their connection managers.
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>

#include "driver/gsi/agent.hpp"
#include "driver/kmd/connection_service.hpp"
#include "tests/driver/driver_fixture.hpp"

using namespace rnic;
using namespace rnic::test;
using calls::ConnectionEvent;
using calls::ObjectKind;

namespace {

constexpr std::uint16_t kTcp = 0x0106, kUdp = 0x0111, kPort = 7174;

kmd::Gid gid_of(std::uint8_t host) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, host}; }

template <std::size_t Room>
std::uint8_t put(std::array<std::uint8_t, Room>& to, const std::string& text) {
  std::copy(text.begin(), text.end(), to.begin());
  return static_cast<std::uint8_t>(text.size());
}

/// How many queue pair numbers a host has.
struct Numbers {
  std::uint8_t log_max_qp = hw::kQpIndexBits;
  unsigned tag_bits = 24 - hw::kQpIndexBits;
};

/// A kernel driver, and one process on it with a channel and a queue pair.
struct Side {
  Side(std::uint8_t number, std::uint8_t peer, const Numbers& numbers) : device(number) {
    device.capabilities.log_max_qp = numbers.log_max_qp;
    kernel =
        kmd::KernelDevice::open(
            device, {.mac = 0x0200'0000'0000ULL + number, .gids = {gid_of(number)}, .qp_tag_bits = numbers.tag_bits})
            .take();
    REQUIRE(kernel->port_tables().add_neighbour(gid_of(peer), 0x0200'0000'0000ULL + peer).ok());
    kernel->connections().attach(true);
    open();
  }
  void open() {
    process = umd::ProcessContext::open(kernel->node()).take();
    channel = process->call(calls::CreateChannel{}).take().channel;
    cq = umd::CompletionQueue::create(process, 16).take();
    for (auto& qp : qps) qp = make_qp(hw::QpType::kRc);
    datagram = make_qp(hw::QpType::kUd);
  }
  std::shared_ptr<umd::QueuePair> make_qp(hw::QpType type) {
    return umd::QueuePair::create_idle(process,
                                       {.send_cq = cq, .receive_cq = cq, .type = type, .capacity = {4, 4, 1, 1, 0}})
        .take();
  }
  calls::Handle endpoint(std::uint16_t space = kTcp) {
    return process->call(calls::CreateEndpoint{.channel = channel, .port_space = space}).take().endpoint;
  }
  calls::Handle listener(std::uint16_t space = kTcp, std::uint32_t backlog = 0) {
    const auto made = endpoint(space);
    REQUIRE(process->call(calls::BindEndpoint{.endpoint = made, .port = kPort}).ok());
    REQUIRE(process->call(calls::Listen{.endpoint = made, .backlog = backlog}).ok());
    return made;
  }
  /// Of which endpoint the channel has something; 0: none.
  calls::Handle announced() {
    const auto read = process->call(calls::ReadEvents{.channel = channel, .most = 1}).take();
    if (read.count == 0) return 0;
    CHECK(read.events[0].type == static_cast<std::uint8_t>(calls::KernelEvent::kConnection));
    return read.events[0].object;
  }
  calls::TakeConnectionEvent::Answer event(calls::Handle of) {
    return process->call(calls::TakeConnectionEvent{.endpoint = of}).take();
  }
  /// The only event that waits, of `of`.
  calls::TakeConnectionEvent::Answer only_event(calls::Handle of, ConnectionEvent type) {
    CHECK(announced() == of);
    const auto taken = event(of);
    CHECK(taken.type == static_cast<std::uint8_t>(type));
    CHECK(announced() == 0);
    return taken;
  }
  void resolve(calls::Handle of, std::uint8_t peer) {
    REQUIRE(process->call(calls::ResolveAddress{.remote = gid_of(peer), .endpoint = of, .remote_port = kPort}).ok());
    only_event(of, ConnectionEvent::kAddressResolved);
    REQUIRE(process->call(calls::ResolveRoute{.endpoint = of}).ok());
    only_event(of, ConnectionEvent::kRouteResolved);
  }
  calls::ConnectionTerms terms(std::size_t which = 0) const {
    return {.qp = qps[which]->kernel_qp().handle(),
            .receive_psn = 0x123,
            .responder_resources = 4,
            .initiator_depth = 2,
            .retry_count = 7,
            .rnr_retry = 7};
  }
  Result<void> connect(calls::Handle of, const std::string& text = "", std::size_t which = 0) {
    calls::Connect call{.terms = terms(which), .endpoint = of};
    call.data_length = put(call.data, text);
    const auto done = process->call(call);
    return done ? Result<void>() : done.error();
  }
  Result<void> accept(calls::Handle of, const std::string& text = "", std::size_t which = 0) {
    calls::Accept call{.terms = terms(which), .endpoint = of};
    call.data_length = put(call.data, text);
    const auto done = process->call(call);
    return done ? Result<void>() : done.error();
  }
  template <typename Call>
  Result<void> say(const Call& call) {
    const auto done = process->call(call);
    return done ? Result<void>() : done.error();
  }
  calls::QueryEndpoint::Answer query(calls::Handle of) {
    return process->call(calls::QueryEndpoint{.endpoint = of}).take();
  }

  FakeDevice device;
  std::unique_ptr<kmd::KernelDevice> kernel;
  std::shared_ptr<umd::ProcessContext> process;
  calls::Handle channel{};
  std::shared_ptr<umd::CompletionQueue> cq;
  std::array<std::shared_ptr<umd::QueuePair>, 2> qps;
  std::shared_ptr<umd::QueuePair> datagram;
};

struct Two {
  explicit Two(const Numbers& numbers = {}) : a{1, 2, numbers}, b{2, 1, numbers} {}
  void run() {
    for (bool any = true; any;) {
      any = false;
      for (Side* side : {&a, &b}) {
        Side& other = side == &a ? b : a;
        while (const auto next = side->kernel->connections().next_outgoing()) {
          any = true;
          auto& to = next->remote == next->local ? *side : other;
          to.kernel->connections().receive(next->remote, next->local, next->mad);
        }
      }
    }
  }
  void pass(std::uint64_t ns) {
    for (std::uint64_t passed = 0; passed < ns; passed += 10'000'000) {
      for (Side* side : {&a, &b}) {
        side->device.elapse(10'000'000);
        side->kernel->connections().run_timers();
      }
      run();
    }
  }
  /// A connection of both sides' first queue pairs: client and server.
  std::pair<calls::Handle, calls::Handle> connect(calls::Handle listener, std::size_t which = 0) {
    const auto client = a.endpoint();
    a.resolve(client, 2);
    REQUIRE(a.connect(client, "", which).ok());
    run();
    const auto server = b.only_event(listener, ConnectionEvent::kConnectRequest).incoming;
    REQUIRE(b.accept(server, "", which).ok());
    run();
    a.only_event(client, ConnectionEvent::kConnectResponse);
    REQUIRE(a.say(calls::Establish{.endpoint = client}).ok());
    run();
    b.only_event(server, ConnectionEvent::kEstablished);
    return {client, server};
  }
  Side a, b;
};

}  // namespace

TEST_CASE("two processes connect by kernel calls, and each learns what it needs of the other") {
  Two two;
  auto& [a, b] = two;
  const auto listener = b.listener();
  const auto client = a.endpoint();
  a.resolve(client, 2);
  CHECK(a.query(client).remote_mac == 0x0200'0000'0002);
  CHECK(a.query(client).local == gid_of(1));
  CHECK(a.query(client).sgid_index == 1);
  REQUIRE(a.connect(client, "hello").ok());
  two.run();
  const auto asked = b.only_event(listener, ConnectionEvent::kConnectRequest);
  CHECK(std::string(asked.data.begin(), asked.data.begin() + 5) == "hello");
  CHECK(asked.data_length == 56);
  const auto server = asked.incoming;
  const auto known = b.query(server);
  CHECK(known.remote == gid_of(1));
  CHECK(known.remote_mac == 0x0200'0000'0001);
  CHECK(known.local_port == kPort);
  CHECK(known.remote_port == a.query(client).local_port);
  CHECK(known.remote_qpn == a.qps[0]->qpn());
  CHECK(known.send_psn == 0x123);
  CHECK(known.path_mtu == 3);
  CHECK(known.responder_resources == 4);
  REQUIRE(b.accept(server, "come in").ok());
  two.run();
  const auto answer = a.only_event(client, ConnectionEvent::kConnectResponse);
  CHECK(answer.data_length == 196);
  CHECK(a.query(client).remote_qpn == b.qps[0]->qpn());
  REQUIRE(a.say(calls::Establish{.endpoint = client}).ok());
  two.run();
  b.only_event(server, ConnectionEvent::kEstablished);
  REQUIRE(b.say(calls::Disconnect{.endpoint = server}).ok());
  two.run();
  a.only_event(client, ConnectionEvent::kDisconnected);
  b.only_event(server, ConnectionEvent::kDisconnected);
  two.pass(200'000'000);
  a.only_event(client, ConnectionEvent::kTimeWaitExit);
  b.only_event(server, ConnectionEvent::kTimeWaitExit);
}

TEST_CASE("a packet of the peer stands for a lost RTU") {
  Two two;
  auto& [a, b] = two;
  const auto listener = b.listener();
  const auto client = a.endpoint();
  a.resolve(client, 2);
  REQUIRE(a.connect(client).ok());
  two.run();
  const auto server = b.only_event(listener, ConnectionEvent::kConnectRequest).incoming;
  REQUIRE(b.accept(server).ok());
  b.device.write_eqe(
      0, {.event_type = static_cast<std::uint8_t>(hw::EqeType::kCommEstablished), .number = b.qps[0]->qpn()});
  b.kernel->dispatch_events();
  b.only_event(server, ConnectionEvent::kEstablished);
}

TEST_CASE("no queue pair gets the number of one that is gone and whose connection is in TimeWait") {
  // Eight queue pairs at a time, two of them reserved: 18 numbers. Five connections of each host are in TimeWait.
  Two two({.log_max_qp = 3, .tag_bits = 2});
  auto& [a, b] = two;
  const auto listener = b.listener();
  for (auto* side : {&a, &b}) side->qps[1].reset();
  std::map<std::uint32_t, unsigned> times;
  for (unsigned i = 0; i < 300; ++i) {
    const auto [client, server] = two.connect(listener);
    ++times[a.qps[0]->qpn()];
    REQUIRE(a.say(calls::Disconnect{.endpoint = client}).ok());
    two.run();
    for (auto& [side, end] : {std::pair(&a, client), std::pair(&b, server)}) {
      CHECK(side->event(end).type == static_cast<std::uint8_t>(ConnectionEvent::kDisconnected));
      REQUIRE(side->say(calls::Destroy{.object = end, .kind = static_cast<std::uint8_t>(ObjectKind::kEndpoint)}).ok());
      CHECK(side->kernel->connections().remembers(side->qps[0]->qpn()));
      side->qps[0].reset();
      side->qps[0] = side->make_qp(hw::QpType::kRc);
      REQUIRE(side->qps[0] != nullptr);
      CHECK_FALSE(side->kernel->connections().remembers(side->qps[0]->qpn()));
    }
    two.pass(30'000'000);
  }
  // All numbers but that of the datagrams' queue pair and those of its index.
  CHECK(times.size() >= 12);
}

TEST_CASE("no queue pair gets the number of a multicast group's members") {
  // One index is free, 255: its tag 0xFFFF makes QPN 0xFFFFFF.
  FakeDevice device;
  auto kernel = kmd::KernelDevice::open(device).take();
  auto process = umd::ProcessContext::open(kernel->node()).take();
  auto cq = umd::CompletionQueue::create(process, 16).take();
  const umd::QueuePair::Spec spec{.send_cq = cq, .receive_cq = cq, .capacity = {1, 1, 1, 1, 0}};
  std::vector<std::shared_ptr<umd::QueuePair>> others;
  std::shared_ptr<umd::QueuePair> last;
  while (auto made = umd::QueuePair::create_idle(process, spec)) {
    auto& to = (made.value()->qpn() & 0xFF) == 0xFF ? last : others.emplace_back();
    to = made.take();
  }
  REQUIRE(last != nullptr);
  std::set<std::uint32_t> seen;
  for (unsigned i = 0; i < 2 * 0x10000; ++i) {
    last.reset();
    last = umd::QueuePair::create_idle(process, spec).take();
    seen.insert(last->qpn());
  }
  CHECK(seen.size() > 0xD000);
  CHECK_FALSE(seen.contains(kMulticastQpn));
}

TEST_CASE("refusals of calls") {
  Two two;
  auto& [a, b] = two;
  const auto end = a.endpoint();
  CHECK(a.say(calls::CreateEndpoint{.channel = 0xDEAD, .port_space = kTcp}).error() == Error::kNotFound);
  CHECK(a.say(calls::CreateEndpoint{.channel = a.channel, .port_space = 6}).error() == Error::kInvalidParameter);
  CHECK(a.connect(end).error() == Error::kInvalidState);  // nothing is resolved
  CHECK(a.say(calls::ResolveRoute{.endpoint = end}).error() == Error::kInvalidState);
  CHECK(a.say(calls::ResolveAddress{.remote = {0xFF, 2}, .endpoint = end, .remote_port = 1}).error() ==
        Error::kInvalidParameter);
  CHECK(a.say(calls::ResolveAddress{.local = gid_of(9), .remote = gid_of(2), .endpoint = end}).error() ==
        Error::kNotFound);
  CHECK(a.say(calls::Listen{.endpoint = end}).error() == Error::kInvalidState);
  CHECK(a.say(calls::BindEndpoint{.address = gid_of(2), .endpoint = end, .port = 1}).error() == Error::kNotFound);
  CHECK(a.say(calls::Establish{.endpoint = end}).error() == Error::kInvalidState);
  CHECK(a.say(calls::Disconnect{.endpoint = end}).error() == Error::kInvalidState);
  CHECK(a.say(calls::Reject{.endpoint = end}).error() == Error::kInvalidState);
  CHECK(a.accept(end).error() == Error::kInvalidState);
  // Nobody knows the address: the event says so.
  REQUIRE(a.say(calls::ResolveAddress{.remote = gid_of(77), .endpoint = end, .remote_port = 1}).ok());
  a.only_event(end, ConnectionEvent::kAddressError);
  CHECK(a.connect(end).error() == Error::kInvalidState);
  a.resolve(end, 2);
  CHECK(a.connect(end, std::string(57, 'x')).error() == Error::kInvalidParameter);
  calls::Connect wrong{.terms = a.terms(), .endpoint = end};
  wrong.terms.qp = a.datagram->kernel_qp().handle();
  CHECK(a.say(wrong).error() == Error::kInvalidParameter);
  wrong.terms.qp = 0x777;
  CHECK(a.say(wrong).error() == Error::kNotFound);
  // One connection a queue pair at a time.
  REQUIRE(a.connect(end).ok());
  const auto other = a.endpoint();
  a.resolve(other, 2);
  CHECK(a.connect(other).error() == Error::kBusy);
  // The channel stays as long as endpoints use it.
  CHECK(a.say(calls::Destroy{.object = a.channel, .kind = static_cast<std::uint8_t>(ObjectKind::kChannel)}).error() ==
        Error::kBusy);
  const auto first = a.listener();
  CHECK(a.say(calls::BindEndpoint{.endpoint = a.endpoint(), .port = kPort}).error() == Error::kExists);
  CHECK(a.say(calls::Destroy{.object = first, .kind = static_cast<std::uint8_t>(ObjectKind::kEndpoint)}).ok());
  CHECK(a.say(calls::BindEndpoint{.endpoint = a.endpoint(), .port = kPort}).ok());
  // A host without an agent has no connections.
  a.kernel->connections().attach(false);
  CHECK(a.say(calls::CreateEndpoint{.channel = a.channel, .port_space = kTcp}).error() == Error::kNotSupported);
}

TEST_CASE("endpoints belong to their client: others do not find them, and they end with it") {
  Two two;
  auto& [a, b] = two;
  const auto listener = b.listener();
  const auto [client, server] = two.connect(listener);
  const auto stranger = umd::ProcessContext::open(a.kernel->node()).take();
  CHECK(stranger->call(calls::Disconnect{.endpoint = client}).error() == Error::kNotFound);
  CHECK(stranger->call(calls::TakeConnectionEvent{.endpoint = client}).error() == Error::kNotFound);
  // The client dies; its peer is told.
  for (auto& qp : a.qps) qp.reset();
  a.datagram.reset();
  a.cq.reset();
  a.process.reset();
  two.run();
  b.only_event(server, ConnectionEvent::kDisconnected);
  // Requests that nobody has taken are refused when their listener dies.
  a.open();
  const auto again = a.endpoint();
  a.resolve(again, 2);
  REQUIRE(a.connect(again).ok());
  two.run();
  for (auto& qp : b.qps) qp.reset();
  b.datagram.reset();
  b.cq.reset();
  b.process.reset();
  two.run();
  CHECK(a.only_event(again, ConnectionEvent::kRejected).reason == 28);
  // Who has refused remembers it as long as the request may be asked again.
  two.pass(7'000'000'000);
  CHECK(b.kernel->connections().endpoints() == 0);
  CHECK(a.kernel->connections().endpoints() == 1);
}

TEST_CASE("events go to the channel of the endpoint, and to another when it moves") {
  Two two;
  auto& [a, b] = two;
  const auto end = a.endpoint();
  const auto next = a.process->call(calls::CreateChannel{}).take().channel;
  REQUIRE(a.say(calls::ResolveAddress{.remote = gid_of(2), .endpoint = end, .remote_port = 1}).ok());
  REQUIRE(a.say(calls::MoveEndpoint{.endpoint = end, .channel = next}).ok());
  CHECK(a.announced() == 0);
  const auto read = a.process->call(calls::ReadEvents{.channel = next, .most = 4}).take();
  REQUIRE(read.count == 1);
  CHECK(read.events[0].object == end);
  CHECK(a.event(end).type == static_cast<std::uint8_t>(ConnectionEvent::kAddressResolved));
  CHECK(a.event(end).type == static_cast<std::uint8_t>(ConnectionEvent::kNone));
}

TEST_CASE("a client that may have no more endpoints finds its request when it may") {
  FakeDevice device(9);
  auto kernel =
      kmd::KernelDevice::open(
          device, {.mac = 0x0200'0000'0001, .gids = {gid_of(1)}, .quota = {99, 99, 99, 99, 99, 99, 99, 99, 2}})
          .take();
  auto& service = kernel->connections();
  service.attach(true);
  const auto process = umd::ProcessContext::open(kernel->node()).take();
  const auto make = [&] { return process->call(calls::CreateEndpoint{.port_space = kTcp}); };
  const auto listener = make().take().endpoint;
  const auto other = make().take().endpoint;
  CHECK(make().error() == Error::kOutOfResources);
  REQUIRE(process->call(calls::BindEndpoint{.endpoint = listener, .port = kPort}).ok());
  REQUIRE(process->call(calls::Listen{.endpoint = listener}).ok());
  // Somebody of the kernel's asks.
  const auto peer = service.create().take();
  REQUIRE(service.connect(peer, {.local = gid_of(1), .remote = gid_of(1), .remote_port = kPort, .qpn = 5}, false).ok());
  while (const auto next = service.next_outgoing()) service.receive(next->remote, next->local, next->mad);
  CHECK(process->call(calls::TakeConnectionEvent{.endpoint = listener}).error() == Error::kOutOfResources);
  REQUIRE(
      process->call(calls::Destroy{.object = other, .kind = static_cast<std::uint8_t>(ObjectKind::kEndpoint)}).ok());
  const auto taken = process->call(calls::TakeConnectionEvent{.endpoint = listener}).take();
  CHECK(taken.type == static_cast<std::uint8_t>(ConnectionEvent::kConnectRequest));
  CHECK(taken.incoming != 0);
  service.destroy(peer);
}

TEST_CASE("datagram services by kernel calls") {
  Two two;
  auto& [a, b] = two;
  const auto listener = b.listener(kUdp);
  const auto client = a.endpoint(kUdp);
  a.resolve(client, 2);
  calls::Connect ask{.terms = a.terms(), .endpoint = client};
  ask.terms.qp = a.datagram->kernel_qp().handle();
  ask.data_length = put(ask.data, std::string(180, 'y'));
  REQUIRE(a.say(ask).ok());
  two.run();
  const auto asked = b.only_event(listener, ConnectionEvent::kConnectRequest);
  CHECK(asked.datagram == 1);
  CHECK(asked.data_length == 180);
  calls::Accept accept{.terms = b.terms(), .endpoint = asked.incoming};
  accept.terms.qkey = 0x01234567;
  CHECK(b.say(accept).error() == Error::kInvalidParameter);  // a connected queue pair serves no datagrams
  accept.terms.qp = b.datagram->kernel_qp().handle();
  REQUIRE(b.say(accept).ok());
  two.run();
  a.only_event(client, ConnectionEvent::kEstablished);
  CHECK(a.query(client).remote_qpn == b.datagram->qpn());
  CHECK(a.query(client).qkey == 0x01234567);
}

TEST_CASE("a device that fails ends the connections of its host") {
  Two two;
  auto& [a, b] = two;
  const auto [client, server] = two.connect(b.listener());
  b.kernel->connections().lose_device();
  const auto told = b.only_event(server, ConnectionEvent::kDeviceRemoved);
  CHECK(told.incoming == 0);
  CHECK(b.query(server).state == 0);
  REQUIRE(a.say(calls::Disconnect{.endpoint = client}).ok());
}

TEST_CASE("the agent has QP1, and gives it back") {
  FakeDevice device(5);
  auto kernel = kmd::KernelDevice::open(device, {.mac = 0x0200'0000'0001, .gids = {gid_of(1)}}).take();
  const std::size_t before = device.mapped_pages;
  {
    const auto agent = gsi::Agent::open(*kernel).take();
    REQUIRE(device.pairs.contains(1));
    CHECK(device.pairs.at(1).state == hw::QpState::kRts);
    CHECK(device.pairs.at(1).last_modify.qkey == 0x80010000);
    CHECK(device.pairs.at(1).rq_producer == 256);
    CHECK(gsi::Agent::open(*kernel).error() == Error::kExists);
  }
  CHECK(device.pairs.empty());
  CHECK(device.mapped_pages == before);
  CHECK(gsi::Agent::open(*kernel).ok());
}
