#include <catch2/catch.hpp>

#include <poll.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <thread>

#include "driver/costs.hpp"
#include "driver/kmd/client.hpp"
#include "driver/kmd/event_descriptor.hpp"
#include "driver/kmd/kernel_device.hpp"
#include "driver/kmd/local_node.hpp"
#include "driver/qp_transition.hpp"
#include "tests/driver/fake_device.hpp"

using namespace rnic;
using calls::Handle;
using calls::ObjectKind;
using test::FakeDevice;

// The boundary between process and kernel driver: docs/kernel_calls.md.

namespace {

struct CallFixture {
  explicit CallFixture(const kmd::KernelOptions& options = {.mac = 0x0200'0000'0001, .gids = {kAddress}}) {
    kernel = kmd::KernelDevice::open(device, options).take();
    port = kernel->node().open().take();
    opened = port->call(calls::OpenContext{}).take();
    device.commands.clear();
  }
  static constexpr kmd::Gid kAddress{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 1};

  Handle pd(KernelPort& of) { return of.call(calls::AllocPd{}).take().pd; }
  calls::CreateCq::Answer cq(KernelPort& of, Handle channel = 0) {
    return of.call(calls::CreateCq{.channel = channel, .entries = 16}).take();
  }
  static calls::CreateQp qp_request(Handle pd, Handle cq) {
    return {.pd = pd,
            .send_cq = cq,
            .receive_cq = cq,
            .sq_log_depth = 3,
            .sq_log_stride = 6,
            .rq_log_depth = 3,
            .rq_log_stride = 6};
  }
  static Result<calls::Destroy::Answer> destroy(KernelPort& of, Handle handle, ObjectKind kind) {
    return of.call(calls::Destroy{.object = handle, .kind = static_cast<std::uint8_t>(kind)});
  }
  Result<calls::RegisterMr::Answer> region(KernelPort& of, Handle domain, std::size_t length = 4096) {
    return of.call(calls::RegisterMr{
        .address = address(), .length = length, .iova = address(), .pd = domain, .local_write = 1, .window_bind = 1});
  }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(memory.data()); }
  calls::Status raw(std::span<const std::byte> message, std::size_t room = calls::kMaxAnswerBytes) {
    std::array<std::byte, calls::kMaxAnswerBytes> answer{};
    port->call(message, std::span(answer).first(room));
    calls::AnswerHeader header;
    std::memcpy(&header, answer.data(), sizeof header);
    return header.status;
  }

  FakeDevice device;
  alignas(4096) std::array<std::uint8_t, 16384> memory{};
  std::unique_ptr<kmd::KernelDevice> kernel;
  std::unique_ptr<KernelPort> port;
  calls::OpenContext::Answer opened;
};

}  // namespace

TEST_CASE_METHOD(CallFixture, "a message is refused whose size, version, number, reserved bytes or ranges are wrong") {
  calls::CreateCq request{.entries = 16};
  request.header = {.size = sizeof request, .version = calls::kVersion, .call = calls::Call::kCreateCq};
  const auto send = [&](std::size_t bytes = sizeof request) {
    std::array<std::byte, sizeof request + 8> message{};
    std::memcpy(message.data(), &request, sizeof request);
    return raw(std::span(message).first(bytes));
  };
  REQUIRE(send() == calls::Status::kSuccess);
  SECTION("shorter") { CHECK(send(sizeof request - 1) == calls::Status::kInvalidParameter); }
  SECTION("longer than it says") { CHECK(send(sizeof request + 8) == calls::Status::kInvalidParameter); }
  SECTION("longer, and says so") {
    request.header.size += 8;
    CHECK(send(sizeof request + 8) == calls::Status::kInvalidParameter);
  }
  SECTION("version") {
    ++request.header.version;
    CHECK(send() == calls::Status::kVersionMismatch);
  }
  SECTION("no such call") {
    request.header.call = static_cast<calls::Call>(999);
    CHECK(send() == calls::Status::kNotSupported);
  }
  SECTION("less than a header") { CHECK(send(7) == calls::Status::kInvalidParameter); }
  SECTION("no room for the answer") {
    CHECK(raw(std::as_bytes(std::span(&request, 1)), sizeof(calls::CreateCq::Answer) - 1) ==
          calls::Status::kInvalidParameter);
  }
  SECTION("reserved bytes, ranges, enumerations") {
    auto qp = qp_request(pd(*port), cq(*port).cq);
    CHECK(port->call(qp).ok());
    auto wrong = qp;
    wrong.reserved0[0] = 1;
    CHECK(port->call(wrong).error() == Error::kInvalidParameter);
    wrong = qp;
    wrong.type = 2;
    CHECK(port->call(wrong).error() == Error::kInvalidParameter);
    wrong = qp;
    wrong.sq_log_depth = 16;
    CHECK(port->call(wrong).error() == Error::kInvalidParameter);
    wrong = qp;
    wrong.fast_register = 2;
    CHECK(port->call(wrong).error() == Error::kInvalidParameter);
    CHECK(device.pairs.size() == 1);
  }
}

TEST_CASE_METHOD(CallFixture, "handles belong to one client, and name one kind of object for one time") {
  auto other = kernel->node().open().take();
  REQUIRE(other->call(calls::OpenContext{}).ok());
  const Handle domain = pd(*port);
  const auto queue = cq(*port);
  // Of others, invented, of another kind.
  CHECK(other->call(calls::QueryCq{.cq = queue.cq}).error() == Error::kNotFound);
  CHECK(destroy(*other, queue.cq, ObjectKind::kCq).error() == Error::kNotFound);
  CHECK(other->call(qp_request(pd(*other), queue.cq)).error() == Error::kNotFound);
  CHECK(port->call(calls::QueryCq{.cq = 0}).error() == Error::kNotFound);
  CHECK(port->call(calls::QueryCq{.cq = domain}).error() == Error::kNotFound);
  CHECK(destroy(*port, queue.cq, ObjectKind::kPd).error() == Error::kNotFound);
  CHECK(port->call(calls::QueryCq{.cq = queue.cq}).ok());
  // What is gone does not come back under the same handle.
  std::set<Handle> seen{queue.cq};
  REQUIRE(destroy(*port, queue.cq, ObjectKind::kCq).ok());
  for (int i = 0; i < 1000; ++i) {
    const auto next = cq(*port);
    REQUIRE(seen.insert(next.cq).second);
    REQUIRE(destroy(*port, next.cq, ObjectKind::kCq).ok());
  }
  CHECK(port->call(calls::QueryCq{.cq = queue.cq}).error() == Error::kNotFound);
}

TEST_CASE_METHOD(CallFixture, "what another object needs is not destroyed before it") {
  const Handle domain = pd(*port), channel = port->call(calls::CreateChannel{})->channel;
  const auto queue = cq(*port, channel);
  const auto srq = port->call(calls::CreateSrq{.pd = domain, .log_depth = 3, .log_stride = 6}).take();
  auto request = qp_request(domain, queue.cq);
  request.srq = srq.srq;
  const auto qp = port->call(request).take();
  const auto mr = region(*port, domain).take();
  const auto mw = port->call(calls::CreateMw{.pd = domain, .type = 2}).take();
  const auto end = [&](Handle handle, ObjectKind kind) {
    const auto done = destroy(*port, handle, kind);
    return done ? std::string("done") : std::string(describe(done.error()));
  };
  const std::string busy(describe(Error::kBusy));
  CHECK(end(domain, ObjectKind::kPd) == busy);
  CHECK(end(queue.cq, ObjectKind::kCq) == busy);
  CHECK(end(srq.srq, ObjectKind::kSrq) == busy);
  CHECK(end(channel, ObjectKind::kChannel) == busy);
  CHECK(end(opened.channel, ObjectKind::kChannel) == busy);  // the client's own
  CHECK(end(qp.qp, ObjectKind::kQp) == "done");
  CHECK(end(srq.srq, ObjectKind::kSrq) == "done");
  CHECK(end(queue.cq, ObjectKind::kCq) == "done");
  CHECK(end(channel, ObjectKind::kChannel) == "done");
  CHECK(end(domain, ObjectKind::kPd) == busy);
  CHECK(end(mw.mw, ObjectKind::kMw) == "done");
  CHECK(end(mr.mr, ObjectKind::kMr) == "done");
  CHECK(end(domain, ObjectKind::kPd) == "done");
  CHECK(device.mapped_pages == 0);
}

TEST_CASE_METHOD(CallFixture, "a region that is given up with windows bound to it keeps its protection domain") {
  const auto domain = port->call(calls::AllocPd{}).take();
  const auto mr = region(*port, domain.pd).take();
  device.bound[5] = mr.key >> 8;
  CHECK(destroy(*port, mr.mr, ObjectKind::kMr).error() == Error::kBusy);
  REQUIRE(
      port->call(calls::Destroy{.object = mr.mr, .kind = static_cast<std::uint8_t>(ObjectKind::kMr), .when_unbound = 1})
          .ok());
  CHECK(destroy(*port, mr.mr, ObjectKind::kMr).error() == Error::kNotFound);
  REQUIRE(destroy(*port, domain.pd, ObjectKind::kPd).ok());
  CHECK(device.regions.size() == 1);
  for (int i = 0; i < 3000; ++i) {
    const auto other = kernel->acquire_pd().take();
    REQUIRE((other & 0xFFF) != (domain.number & 0xFFF));
    if (i % 2 == 0) kernel->release_pd(other);
  }
  device.bound.clear();
  const auto window = port->call(calls::CreateMw{.pd = pd(*port), .type = 2}).take();
  REQUIRE(destroy(*port, window.mw, ObjectKind::kMw).ok());
  CHECK(device.regions.empty());
  CHECK(device.mapped_pages == 0);
}

TEST_CASE_METHOD(CallFixture, "a client that goes takes everything with it, in order") {
  const auto live = device.live_allocations();
  auto other = kernel->node().open().take();
  REQUIRE(other->call(calls::OpenContext{}).ok());
  const Handle domain = pd(*other), channel = other->call(calls::CreateChannel{})->channel;
  const auto queue = cq(*other, channel);
  const auto srq = other->call(calls::CreateSrq{.pd = domain, .log_depth = 3, .log_stride = 6}).take();
  for (int i = 0; i < 3; ++i) {
    auto request = qp_request(domain, queue.cq);
    request.srq = i != 0 ? srq.srq : 0;
    REQUIRE(other->call(request).ok());
  }
  const auto mr = region(*other, domain).take();
  const auto mw = other->call(calls::CreateMw{.pd = domain, .type = 2}).take();
  device.bound[mw.key >> 8] = mr.key >> 8;
  device.commands.clear();
  other.reset();
  std::vector<hw::AdminOpcode> order;
  for (const auto& command : device.commands) order.push_back(static_cast<hw::AdminOpcode>(command.opcode));
  using hw::AdminOpcode;
  CHECK(order == std::vector{AdminOpcode::kDestroyQp, AdminOpcode::kDestroyQp, AdminOpcode::kDestroyQp,
                             AdminOpcode::kDestroyMw, AdminOpcode::kDestroyMr, AdminOpcode::kDestroySrq,
                             AdminOpcode::kDestroyCq});
  CHECK(device.mapped_pages == 0);
  CHECK(device.live_allocations() <= live + 1);  // a page of the pool
}

TEST_CASE_METHOD(CallFixture, "who calls a client that has gone is refused, and wakes nobody") {
  auto client = kmd::Client::create(*kernel, true).take();
  client->close();
  calls::ReadEvents request{.channel = 1, .most = 16};
  request.header = {.size = sizeof request, .version = calls::kVersion, .call = calls::Call::kReadEvents};
  calls::ReadEvents::Answer answer;
  const auto seen = device.wake_count();
  client->call(std::as_bytes(std::span(&request, 1)), std::as_writable_bytes(std::span(&answer, 1)));
  CHECK(answer.header.status == calls::Status::kDeviceFailed);
  CHECK(device.wake_count() == seen);
}

TEST_CASE_METHOD(CallFixture, "a client may go while its calls are under way") {
  device.threads = true;
  for (int round = 0; round < 20; ++round) {
    auto client = kmd::Client::create(*kernel, false).take();
    const auto ask = [&](auto request) {
      request.header = {.size = sizeof request, .version = calls::kVersion, .call = decltype(request)::kCall};
      typename decltype(request)::Answer answer;
      client->call(std::as_bytes(std::span(&request, 1)), std::as_writable_bytes(std::span(&answer, 1)));
      return answer;
    };
    ask(calls::OpenContext{});
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (;;) {
          const auto domain = ask(calls::AllocPd{});
          if (domain.header.status != calls::Status::kSuccess) return;
          const auto queue = ask(calls::CreateCq{.entries = 16});
          ask(qp_request(domain.pd, queue.cq));
          ask(calls::Destroy{.object = queue.cq, .kind = static_cast<std::uint8_t>(ObjectKind::kCq)});
          ask(calls::ReadEvents{.channel = 1, .most = 16});
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200 * round));
    client->close();
    for (auto& thread : threads) thread.join();
    REQUIRE(device.pairs.empty());
    REQUIRE(device.completion_queues.empty());
  }
}

TEST_CASE("a client has as many objects as its quota says, and others theirs") {
  CallFixture f({.quota = {2, 2, 2, 2, 2, 2, 2, 3, 2}});
  auto other = f.kernel->node().open().take();
  REQUIRE(other->call(calls::OpenContext{}).ok());
  const Handle domain = f.pd(*f.port);
  f.pd(*f.port);
  CHECK(f.port->call(calls::AllocPd{}).error() == Error::kOutOfResources);
  CHECK(other->call(calls::AllocPd{}).ok());
  for (int i = 0; i < 2; ++i) CHECK(f.port->call(calls::CreateChannel{}).ok());  // and the first one
  CHECK(f.port->call(calls::CreateChannel{}).error() == Error::kOutOfResources);
  const auto mr = f.region(*f.port, domain).take();
  CHECK(f.region(*f.port, domain).ok());
  CHECK(f.region(*f.port, domain).error() == Error::kOutOfResources);
  REQUIRE(CallFixture::destroy(*f.port, mr.mr, ObjectKind::kMr).ok());
  CHECK(f.region(*f.port, domain).ok());
}

TEST_CASE_METHOD(CallFixture, "what is for the kernel's own clients goes by the node, not by the asking (10.2.5)") {
  auto own = kernel->kernel_node().open().take();
  CHECK(opened.kernel == 0);
  CHECK(port->call(calls::OpenContext{}).error() == Error::kInvalidState);  // once
  CHECK(kernel->node().open().take()->call(calls::OpenContext{.kernel_uar = 1}).error() == Error::kNotSupported);
  const auto trusted = own->call(calls::OpenContext{.kernel_uar = 1}).take();
  CHECK(trusted.kernel == 1);
  CHECK(trusted.uar == hw::kKernelUar);
  for (auto* of : {port.get(), own.get()}) {
    const bool may = of == own.get();
    const Handle domain = pd(*of);
    auto request = qp_request(domain, cq(*of).cq);
    request.fast_register = 1;
    CHECK(of->call(request).ok() == may);
    request.fast_register = 0;
    request.general_service = 1;
    request.type = static_cast<std::uint8_t>(hw::QpType::kUd);
    CHECK(of->call(request).ok() == may);
    CHECK(of->call(calls::CreateFastMr{.pd = domain, .max_pages = 4}).ok() == may);
    CHECK(of->call(calls::ReleaseFastMr{.fast_mr = 1}).error() == (may ? Error::kNotFound : Error::kNotSupported));
  }
}

TEST_CASE_METHOD(CallFixture, "an address has a station, if anybody knows it") {
  const auto station = [&](const kmd::Gid& gid) -> std::uint64_t {
    const auto answer = port->call(calls::ResolveGid{.gid = gid});
    if (answer) return answer->mac;
    CHECK(answer.error() == Error::kNotFound);
    return 0;
  };
  const auto ipv4 = [](std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
    return kmd::Gid{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, a, b, c, d};
  };
  // Own addresses; neighbours, as soon as the machine knows them; who is not known.
  CHECK(station(kAddress) == 0x0200'0000'0001);
  CHECK(station(ipv4(10, 0, 0, 77)) == 0);
  REQUIRE(kernel->port_tables().add_neighbour(ipv4(10, 0, 0, 77), 0x0200'0000'0077).ok());
  CHECK(station(ipv4(10, 0, 0, 77)) == 0x0200'0000'0077);
  // Link-local addresses made of a station address (RFC 4291 appendix A), and others.
  CHECK(station(kmd::link_local_gid(0x0A1B'2C3D'4E5F)) == 0x0A1B'2C3D'4E5F);
  CHECK(station({0xFE, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}) == 0);
  CHECK(station({0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFE, 0, 0, 1}) == 0);
  // Groups: the low 23 bits (RFC 1112 6.4), the low 32 bits (RFC 2464 7).
  CHECK(station(ipv4(239, 0x81, 2, 3)) == 0x0100'5E01'0203);
  CHECK(station({0xFF, 0x0E, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xA1, 0xB2, 0xC3, 0xD4}) == 0x3333'A1B2'C3D4);
}

TEST_CASE_METHOD(CallFixture, "own addresses and P_Keys are places in the tables of the port") {
  const auto gid = [&](std::uint16_t index) { return port->call(calls::QueryGid{.index = index}).take(); };
  // The station address 02:00:00:00:00:01 (RFC 4291 appendix A), then what the machine has.
  const kmd::Gid link_local{0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFE, 0, 0, 1};
  CHECK(gid(0).gid == link_local);
  CHECK(gid(0).type == static_cast<std::uint8_t>(calls::GidType::kRoceV2));
  CHECK(gid(1).gid == kAddress);
  CHECK(gid(2).type == static_cast<std::uint8_t>(calls::GidType::kNone));
  CHECK(port->call(calls::QueryPkey{.index = 0})->pkey == 0xFFFF);
  CHECK(port->call(calls::QueryPkey{.index = 1})->pkey == 0);
  CHECK(kernel->port_tables().add_pkey(0x8003).take() == 1);
  CHECK(port->call(calls::QueryPkey{.index = 1})->pkey == 0x8003);
  // Who speaks to a peer with a P_Key: of the same partition, and one of both is a full member (10.9.3).
  const auto index_for = [&](std::uint16_t pkey) { return kernel->port_tables().pkey_index_for(pkey); };
  CHECK(index_for(0xFFFF).take() == 0);
  CHECK(index_for(0x7FFF).take() == 0);
  CHECK(index_for(0x8003).take() == 1);
  CHECK(index_for(0x0003).take() == 1);
  for (const std::uint16_t pkey : {0, 0x8000, 0x8004, 4}) CHECK(index_for(pkey).error() == Error::kNotFound);
  const auto state = port->call(calls::QueryPort{}).take();
  CHECK(state.mac == 0x0200'0000'0001);
  CHECK(state.gids == 2);
  CHECK(state.pkeys == 2);
  REQUIRE(kernel->port_tables().add_pkey(7).ok());
  CHECK(index_for(0x8007).take() == 2);
  CHECK(index_for(7).error() == Error::kNotFound);  // two limited members

  const auto qp = port->call(qp_request(pd(*port), cq(*port).cq)).take();
  const auto move = [&](hw::QpState next, QpAttributes mask, const calls::QpAttributes& attributes) {
    const auto done = port->call(calls::ModifyQp{
        .attributes = attributes, .qp = qp.qp, .mask = mask, .next_state = static_cast<std::uint8_t>(next)});
    return done ? Result<void>() : done.error();
  };
  const auto init = qp_transition(hw::QpState::kReset, hw::QpState::kInit).required;
  const auto rtr = qp_transition(hw::QpState::kInit, hw::QpState::kRtr).required;
  CHECK(move(hw::QpState::kInit, init, {.pkey_index = 3}).error() == Error::kInvalidParameter);
  REQUIRE(move(hw::QpState::kInit, init, {.pkey_index = 1}).ok());
  CHECK(device.pairs.at(qp.qpn).last_modify.pkey == 0x8003);
  calls::QpAttributes to{
      .dest_gid = kAddress, .dest_mac = 2, .dest_qpn = 5, .sgid_index = 1, .hop_limit = 9, .path_mtu = 3};
  auto wrong = to;
  wrong.sgid_index = 2;
  CHECK(move(hw::QpState::kRtr, rtr, wrong).error() == Error::kInvalidParameter);
  wrong = to;
  wrong.sgid_index = 0;  // IPv6 to IPv4
  CHECK(move(hw::QpState::kRtr, rtr, wrong).error() == Error::kInvalidParameter);
  REQUIRE(move(hw::QpState::kRtr, rtr, to).ok());
  const auto& modify = device.pairs.at(qp.qpn).last_modify;
  CHECK(modify.source_ip == kAddress);
  CHECK(modify.ipv6 == 0);
  CHECK(modify.pkey == 0x8003);
  // And they come back as places.
  const auto known = port->call(calls::QueryQp{.qp = qp.qp}).take();
  CHECK(known.state == static_cast<std::uint8_t>(hw::QpState::kRtr));
  CHECK(known.attributes.sgid_index == 1);
  CHECK(known.attributes.pkey_index == 1);
  CHECK(known.attributes.dest_gid == kAddress);
  CHECK(known.attributes.dest_qpn == 5);
  CHECK(known.attributes.hop_limit == 9);
  CHECK(known.attributes.path_mtu == 3);
  REQUIRE(move(hw::QpState::kReset, 0, {}).ok());
  const auto reset = port->call(calls::QueryQp{.qp = qp.qp}).take();
  CHECK(reset.attributes.pkey_index == 0);
  CHECK(reset.attributes.dest_qpn == 0);
}

TEST_CASE_METHOD(CallFixture, "paths from an address of a VLAN have its tag, with the service level as priority") {
  auto& tables = kernel->port_tables();
  CHECK(tables.add_gid(kAddress).take() == 1);
  CHECK(tables.add_gid(kAddress, 5).take() == 2);
  CHECK(tables.add_gid(kAddress, 5).take() == 2);
  CHECK(tables.add_gid(kAddress, 4094).take() == 3);
  CHECK(tables.add_gid(kAddress, 0xFFF).error() == Error::kInvalidParameter);  // IEEE 802.1Q 9.6
  const auto vlan = [&](std::uint16_t index) { return port->call(calls::QueryGid{.index = index})->vlan; };
  CHECK(vlan(1) == 0);
  CHECK(vlan(2) == 5);
  CHECK(vlan(3) == 4094);
  CHECK(port->call(calls::QueryGid{.index = 2})->gid == kAddress);
  const auto qp = port->call(qp_request(pd(*port), cq(*port).cq)).take();
  const auto move = [&](hw::QpState from, hw::QpState next, const calls::QpAttributes& attributes) {
    return port
        ->call(calls::ModifyQp{.attributes = attributes,
                               .qp = qp.qp,
                               .mask = qp_transition(from, next).required,
                               .next_state = static_cast<std::uint8_t>(next)})
        .ok();
  };
  const auto tag = [&](std::uint16_t sgid_index, std::uint8_t sl) {
    REQUIRE(move(hw::QpState::kRtr, hw::QpState::kReset, {}));
    REQUIRE(move(hw::QpState::kReset, hw::QpState::kInit, {}));
    REQUIRE(
        move(hw::QpState::kInit, hw::QpState::kRtr,
             {.dest_gid = kAddress, .dest_mac = 2, .sgid_index = sgid_index, .hop_limit = 9, .sl = sl, .path_mtu = 3}));
    CHECK(port->call(calls::QueryQp{.qp = qp.qp})->attributes.sl == sl);
    const auto& modify = device.pairs.at(qp.qpn).last_modify;
    return std::array<unsigned, 3>{modify.vlan, modify.vlan_id, modify.pcp};
  };
  CHECK(tag(1, 3)[0] == 0);
  CHECK(tag(2, 3) == std::array<unsigned, 3>{1, 5, 3});
  CHECK(tag(3, 7) == std::array<unsigned, 3>{1, 4094, 7});
}

TEST_CASE_METHOD(CallFixture, "a queue pair begins in RESET") {
  const auto qp = port->call(qp_request(pd(*port), cq(*port).cq)).take();
  CHECK(port->call(calls::QueryQp{.qp = qp.qp})->state == static_cast<std::uint8_t>(hw::QpState::kReset));
  CHECK(device.pairs.at(qp.qpn).state == hw::QpState::kReset);
}

TEST_CASE_METHOD(CallFixture, "events go to the channel of their object's client, once for each object and type") {
  auto other = kernel->node().open().take();
  const auto theirs = other->call(calls::OpenContext{}).take();
  const Handle channel = port->call(calls::CreateChannel{})->channel;
  const auto quiet = cq(*port), loud = cq(*port, channel);
  const auto event = [&](hw::EqeType type, std::uint32_t number, std::uint32_t detail = 0) {
    device.write_eqe(0, {.event_type = static_cast<std::uint8_t>(type), .number = number, .detail = detail});
  };
  const auto read = [&](KernelPort& of, Handle from, std::uint32_t most = 16) {
    const auto answer = of.call(calls::ReadEvents{.channel = from, .most = most}).take();
    return std::vector(answer.events.begin(), answer.events.begin() + answer.count);
  };
  for (int i = 0; i < 3; ++i) event(hw::EqeType::kCompletion, loud.cqn);
  event(hw::EqeType::kCqError, loud.cqn);
  event(hw::EqeType::kCompletion, quiet.cqn);
  event(hw::EqeType::kPortError, 1);
  // Whoever reads first takes none of what is another's.
  const auto port_event = read(*other, theirs.channel);
  REQUIRE(port_event.size() == 1);
  CHECK(port_event[0].type == static_cast<std::uint8_t>(hw::EqeType::kPortError));
  CHECK(port_event[0].object == 0);
  CHECK(other->call(calls::ReadEvents{.channel = channel, .most = 16}).error() == Error::kNotFound);
  const auto completion = read(*port, channel);
  REQUIRE(completion.size() == 1);
  CHECK(completion[0].number == loud.cqn);
  CHECK(completion[0].object == loud.cq);
  const auto first = read(*port, opened.channel, 2);
  REQUIRE(first.size() == 2);
  CHECK(first[0].type == static_cast<std::uint8_t>(hw::EqeType::kCqError));
  CHECK(first[1].number == quiet.cqn);
  CHECK(read(*port, opened.channel).size() == 1);  // the port's
  CHECK(read(*port, opened.channel).empty());
  // What waits of an object that goes goes with it.
  event(hw::EqeType::kCompletion, quiet.cqn);
  kernel->dispatch_events();
  REQUIRE(destroy(*port, quiet.cq, ObjectKind::kCq).ok());
  CHECK(read(*port, opened.channel).empty());
}

TEST_CASE_METHOD(CallFixture, "a channel says when its first event comes, and when its last one goes") {
  auto client = kmd::Client::create(*kernel, false).take();
  const auto channel = client->channel(1);
  REQUIRE(channel != nullptr);
  CHECK(client->channel(2) == nullptr);
  std::vector<bool> told;
  channel->listen([&](bool events) { told.push_back(events); });
  CHECK(told == std::vector{false});
  const auto port_event = [&](hw::EqeType type) {
    device.write_eqe(0, {.event_type = static_cast<std::uint8_t>(type), .number = 1});
    kernel->dispatch_events();
  };
  port_event(hw::EqeType::kPortError);
  CHECK(told == std::vector{false, true});
  port_event(hw::EqeType::kPortActive);  // it was readable already
  CHECK(told == std::vector{false, true});
  std::array<calls::Event, 1> events;
  CHECK(channel->take(events) == 1);
  CHECK(told == std::vector{false, true});  // and is
  CHECK(channel->take(events) == 1);
  CHECK(told == std::vector{false, true, false});
  CHECK(channel->take(events) == 0);
  CHECK(told == std::vector{false, true, false});
  port_event(hw::EqeType::kPortError);
  bool late = false;
  channel->listen([&](bool there) { late = there; });
  CHECK(late);  // one was there
  CHECK(told == std::vector{false, true, false, true});
}

TEST_CASE_METHOD(CallFixture, "a channel has a descriptor that can be polled") {
  auto client = kmd::Client::create(*kernel, false).take();
  const auto channel = client->channel(1);
  const auto readable = [](const kmd::EventDescriptor& of) {
    pollfd what{.fd = of.descriptor(), .events = POLLIN, .revents = 0};
    return poll(&what, 1, 0) == 1;
  };
  const auto port_event = [&](hw::EqeType type) {
    device.write_eqe(0, {.event_type = static_cast<std::uint8_t>(type), .number = 1});
    kernel->dispatch_events();
  };
  auto descriptor = kmd::EventDescriptor::open(channel).take();
  CHECK_FALSE(readable(*descriptor));
  port_event(hw::EqeType::kPortError);
  CHECK(readable(*descriptor));
  std::array<calls::Event, 4> events;
  CHECK(channel->take(events) == 1);
  CHECK_FALSE(readable(*descriptor));
  // As long as one is left it stays readable.
  port_event(hw::EqeType::kPortActive);
  port_event(hw::EqeType::kPortError);
  CHECK(channel->take(std::span(events).first(1)) == 1);
  CHECK(readable(*descriptor));
  // Another descriptor finds what is there; without one events wait as before.
  descriptor.reset();
  CHECK(readable(*kmd::EventDescriptor::open(channel).take()));
  CHECK(channel->take(events) == 1);
  // What has the number of one that is gone is not written.
  const auto stranger = kmd::EventDescriptor::open(std::make_shared<kmd::EventChannel>()).take();
  port_event(hw::EqeType::kPortError);
  CHECK_FALSE(readable(*stranger));
  CHECK(channel->take(events) >= 1);
}

TEST_CASE_METHOD(CallFixture, "a port gives descriptors of its channels, each the caller's own") {
  const auto readable = [](int descriptor) {
    pollfd what{.fd = descriptor, .events = POLLIN, .revents = 0};
    return poll(&what, 1, 0) == 1;
  };
  const int first = port->descriptor(opened.channel).take(), second = port->descriptor(opened.channel).take();
  CHECK_FALSE(readable(first));
  device.write_eqe(0, {.event_type = static_cast<std::uint8_t>(hw::EqeType::kPortError), .number = 1});
  kernel->dispatch_events();
  CHECK(readable(first));
  close(first);
  CHECK(readable(second));
  CHECK(port->call(calls::ReadEvents{.channel = opened.channel, .most = 16})->count == 1);
  CHECK_FALSE(readable(second));
  close(second);
  const auto other = port->call(calls::CreateChannel{}).take().channel;
  close(port->descriptor(other).take());
  CHECK(destroy(*port, other, ObjectKind::kChannel).ok());
  CHECK(port->descriptor(other).error() == Error::kNotFound);
}

TEST_CASE_METHOD(CallFixture, "every client hears of the end of the device, once, and calls say so") {
  auto other = kernel->node().open().take();
  const auto theirs = other->call(calls::OpenContext{}).take();
  const auto word = port->map(opened.status).take();
  const auto queue = cq(*port);
  CHECK(*word == 0);
  device.take_away();
  for (auto& [of, channel] : {std::pair(port.get(), opened.channel), std::pair(other.get(), theirs.channel)}) {
    const auto events = of->call(calls::ReadEvents{.channel = channel, .most = 16}).take();
    REQUIRE(events.count == 1);
    CHECK(events.events[0].type == static_cast<std::uint8_t>(hw::EqeType::kDeviceFatal));
    CHECK(of->call(calls::ReadEvents{.channel = channel, .most = 16})->count == 0);
    CHECK(of->call(calls::AllocPd{}).error() == Error::kDeviceFailed);
  }
  CHECK(*word != 0);
  CHECK(destroy(*port, queue.cq, ObjectKind::kCq).ok());
}

TEST_CASE_METHOD(CallFixture, "memory is mapped by its range, inside the region, by its client") {
  auto other = kernel->node().open().take();
  const auto qp = port->call(qp_request(pd(*port), cq(*port).cq)).take();
  auto ring = port->map(qp.send_ring);
  REQUIRE(ring.ok());
  CHECK(ring->get() == device.pointer(device.pairs.at(qp.qpn).create.sq_base));
  CHECK(qp.send_ring.region == qp.retired_record.region);
  CHECK(qp.retired_record.offset >= qp.receive_ring.offset + qp.receive_ring.bytes);
  CHECK(other->map(qp.send_ring).error() == Error::kAccessViolation);
  auto beyond = qp.retired_record;
  beyond.bytes = 4097;
  CHECK(port->map(beyond).error() == Error::kAccessViolation);
  beyond = {.region = qp.send_ring.region, .offset = ~0ULL, .bytes = 2};
  CHECK(port->map(beyond).error() == Error::kAccessViolation);
  // What is mapped stays with who has it; nothing new is mapped of an object that is gone.
  REQUIRE(destroy(*port, qp.qp, ObjectKind::kQp).ok());
  std::memset(ring->get(), 1, qp.send_ring.bytes);
  CHECK(port->map(qp.send_ring).error() == Error::kAccessViolation);
}

TEST_CASE_METHOD(CallFixture,
                 "rings: a change of a completion queue is adopted before the next; shared ones only grow") {
  const auto queue = cq(*port);
  REQUIRE(port->call(calls::ResizeCq{.cq = queue.cq, .entries = 64}).ok());
  CHECK(port->call(calls::ResizeCq{.cq = queue.cq, .entries = 128}).error() == Error::kInvalidState);
  REQUIRE(port->call(calls::AdoptCqRing{.cq = queue.cq}).ok());
  CHECK(port->call(calls::AdoptCqRing{.cq = queue.cq}).error() == Error::kInvalidState);
  const auto srq = port->call(calls::CreateSrq{.pd = pd(*port), .log_depth = 3, .log_stride = 6}).take();
  CHECK(port->call(calls::UseSrqRing{.srq = srq.srq}).error() == Error::kInvalidState);
  CHECK(port->call(calls::PrepareSrqRing{.srq = srq.srq, .log_depth = 3}).error() == Error::kInvalidParameter);
  const auto live = device.live_allocations();
  for (int i = 0; i < 10; ++i) REQUIRE(port->call(calls::PrepareSrqRing{.srq = srq.srq, .log_depth = 5}).ok());
  CHECK(device.live_allocations() == live + 1);
  REQUIRE(port->call(calls::UseSrqRing{.srq = srq.srq}).ok());
  CHECK(port->call(calls::UseSrqRing{.srq = srq.srq}).error() == Error::kInvalidState);
}

TEST_CASE_METHOD(CallFixture, "a region has an address of its own (ibv_reg_mr_iova), and can be registered anew") {
  const auto domain = port->call(calls::AllocPd{}).take(), second = port->call(calls::AllocPd{}).take();
  calls::RegisterMr request{
      .address = address() + 100, .length = 5000, .iova = 0x7000'0064, .pd = domain.pd, .local_write = 1};
  const auto mr = port->call(request).take();
  CHECK(device.regions.at(mr.key).va == 0x7000'0064);
  CHECK(device.mapped_pages == 2);
  request.iova = 0x7000'0065;  // another place in its page
  CHECK(port->call(request).error() == Error::kInvalidParameter);
  request.iova = ~0ULL - 0xF9B;  // round the end
  CHECK(port->call(request).error() == Error::kInvalidParameter);

  const auto again = [&](calls::ReregisterMr change) {
    change.mr = mr.mr;
    return port->call(change);
  };
  CHECK(again({}).error() == Error::kInvalidParameter);
  const auto read_only = again({.change_access = 1, .remote_read = 1}).take();
  CHECK(read_only.key != mr.key);
  REQUIRE(device.regions.size() == 1);
  CHECK(device.regions.at(read_only.key).va == 0x7000'0064);
  CHECK(device.regions.at(read_only.key).local_write == 0);
  CHECK(device.regions.at(read_only.key).remote_read == 1);
  const auto moved = again({.address = address(),
                            .length = 100,
                            .iova = 0x1000,
                            .pd = second.pd,
                            .change_translation = 1,
                            .change_pd = 1})
                         .take();
  CHECK(device.regions.at(moved.key).va == 0x1000);
  CHECK(device.regions.at(moved.key).pd == second.number);
  CHECK(device.regions.at(moved.key).remote_read == 1);
  CHECK(device.mapped_pages == 1);
  CHECK(destroy(*port, domain.pd, ObjectKind::kPd).ok());
  CHECK(destroy(*port, second.pd, ObjectKind::kPd).error() == Error::kBusy);
  // What is refused changes nothing.
  device.bound[9] = moved.key >> 8;
  CHECK(again({.change_access = 1, .local_write = 1}).error() == Error::kBusy);
  CHECK(again({.change_pd = 1}).error() == Error::kNotFound);
  device.unmapped = memory.data() + 4096;
  CHECK(again({.address = address() + 4096, .length = 10, .iova = 0, .change_translation = 1}).error() ==
        Error::kAccessViolation);
  REQUIRE(device.regions.size() == 1);
  CHECK(device.regions.contains(moved.key));
  CHECK(device.mapped_pages == 1);
}

TEST_CASE_METHOD(CallFixture, "memory is that of the process in whose name the client came") {
  const AddressSpace process{.kind = AddressSpace::Kind::kProcess, .process = 4711};
  device.has_processes = true;
  {
    kmd::LocalPort remote(*kernel, kmd::Client::create(*kernel, false, process).take());
    REQUIRE(remote.call(calls::OpenContext{}).ok());
    REQUIRE(
        remote.call(calls::RegisterMr{.address = 0x12345000, .length = 10, .iova = 0x12345000, .pd = pd(remote)}).ok());
    CHECK(device.process_pages.at(4711) == std::set<std::uint64_t>{0x12345000});
  }
  CHECK(device.process_pages.at(4711).empty());
  CHECK(device.mapped_pages == 0);
  device.has_processes = false;
  // A machine that has no other processes says so.
  kmd::LocalPort remote(*kernel, kmd::Client::create(*kernel, false, process).take());
  REQUIRE(remote.call(calls::OpenContext{}).ok());
  CHECK(region(remote, pd(remote)).error() == Error::kNotSupported);
}

TEST_CASE_METHOD(CallFixture, "every call costs its stated time, reading events none") {
  const auto cost = [&](auto request) {
    const auto start = device.now_ns();
    static_cast<void>(port->call(request).ok());
    return device.now_ns() - start;
  };
  CHECK(cost(calls::QueryDevice{}) == cost::kControlCallNs);
  CHECK(cost(calls::AllocPd{}) == cost::kControlCallNs);
  CHECK(cost(calls::QueryCq{.cq = 77}) == cost::kControlCallNs);
  CHECK(cost(calls::CreateCq{.entries = 16}) > cost::kControlCallNs);
  CHECK(cost(calls::ReadEvents{.channel = opened.channel, .most = 16}) == 0);
}
