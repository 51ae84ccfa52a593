// NetworkDirect connectors and listeners on two hosts over the NIC, in lockstep (docs/nd2.md).
#include <optional>

#include "driver/kmd/connection_service.hpp"
#include "testbench/management_thread.hpp"
#include "tests/nd2/side.hpp"
#include "tests/system/system_world.hpp"

using namespace rnic;
using namespace rnic::test;
using testbench::ManagementThread;

namespace {

/// Both hosts with their agents, each with the other as its neighbour.
void with_hosts(const char* name, const std::function<void(Endpoint&, Endpoint&)>& body) {
  with_endpoints(
      fresh_world([&] {
        auto options = WorldOptions::from_environment(name);
        options.hang_ns = 30'000'000'000;  // who gets no answer asks again and again
        return options;
      }()),
      [&](Endpoint& a, Endpoint& b) {
        for (const bool ipv6 : {false, true}) {
          REQUIRE(a.kernel().port_tables().add_neighbour(testbench::ip_of(b, ipv6), testbench::mac_of(b)).ok());
          REQUIRE(b.kernel().port_tables().add_neighbour(testbench::ip_of(a, ipv6), testbench::mac_of(a)).ok());
        }
        body(a, b);
      },
      100'000'000'000);
}

}  // namespace

TEST_CASE("connections of NetworkDirect on two hosts") {
  for (const Case& one : connection_cases()) {
    DYNAMIC_SECTION(one.name) {
      with_hosts("nd2_connections", [&](Endpoint& a, Endpoint& b) {
        const ManagementThread of_a(a.kernel(), a.host().device()), of_b(b.kernel(), b.host().device());
        {
          Side side_a(a.kernel().node(), &a.adapter(), "10.0.0.1"), side_b(b.kernel().node(), &b.adapter(), "10.0.0.2");
          Sides sides{side_a, side_b};
          one.run(sides);
        }
        // Nothing is left when TimeWait is over.
        a.device().elapse(20'000'000'000);
        CHECK(a.kernel().connections().endpoints() == 0);
        CHECK(b.kernel().connections().endpoints() == 0);
      });
    }
  }
}

TEST_CASE("a peer that has gone answers nobody") {
  with_hosts("nd2_silence", [&](Endpoint& a, Endpoint& b) {
    std::optional<ManagementThread> of_a(std::in_place, a.kernel(), a.host().device());
    std::optional<ManagementThread> of_b(std::in_place, b.kernel(), b.host().device());
    Side side_a(a.kernel().node(), &a.adapter(), "10.0.0.1"), side_b(b.kernel().node(), &b.adapter(), "10.0.0.2");
    const auto pair_a = side_a.make_pair(), pair_b = side_b.make_pair();
    const auto from = side_a.make_connector(), to = side_b.make_connector(false);
    const auto port = next_port();
    const auto listener = side_b.make_listener(port);
    Overlapped asked(side_a.node), incoming(side_b.node), accepted(side_b.node);
    // Accept, and nobody completes the connection.
    REQUIRE(listener->GetConnectionRequest(to.get(), &incoming) == ND_PENDING);
    REQUIRE(ask(side_a, *from, *pair_a, side_b.address, port, asked) == ND_PENDING);
    REQUIRE(listener->GetOverlappedResult(&incoming, TRUE) == ND_SUCCESS);
    SECTION("Accept") {
      of_a.reset();
      REQUIRE(to->Accept(pair_b.get(), 1, 1, nullptr, 0, &accepted) == ND_PENDING);
      CHECK(to->GetOverlappedResult(&accepted, TRUE) == ND_IO_TIMEOUT);
      CHECK(side_b.send(*pair_b) == ND_CONNECTION_INVALID);
    }
    SECTION("Connect") {
      of_b.reset();
      const auto other = side_a.make_connector();
      const auto other_pair = side_a.make_pair();
      Overlapped unheard(side_a.node);
      REQUIRE(ask(side_a, *other, *other_pair, side_b.address, port, unheard) == ND_PENDING);
      CHECK(other->GetOverlappedResult(&unheard, TRUE) == ND_IO_TIMEOUT);
    }
  });
}

TEST_CASE("a device that fails ends what pends on connectors and listeners") {
  with_hosts("nd2_removal", [&](Endpoint& a, Endpoint& b) {
    const ManagementThread of_a(a.kernel(), a.host().device()), of_b(b.kernel(), b.host().device());
    Side side_a(a.kernel().node(), &a.adapter(), "10.0.0.1"), side_b(b.kernel().node(), &b.adapter(), "10.0.0.2");
    Sides sides{side_a, side_b};
    auto made = connect(sides);
    const auto listener = side_a.make_listener(next_port());
    const auto to = side_a.make_connector(false), fresh = side_a.make_connector(false);
    Overlapped told(side_a.node), waits(side_a.node), other(side_a.node);
    REQUIRE(made.a->NotifyDisconnect(&told) == ND_PENDING);
    REQUIRE(listener->GetConnectionRequest(to.get(), &waits) == ND_PENDING);
    a.kernel().fail(*a.kernel().life());
    CHECK(made.a->GetOverlappedResult(&told, TRUE) == ND_DEVICE_REMOVED);
    CHECK(listener->GetOverlappedResult(&waits, TRUE) == ND_DEVICE_REMOVED);
    CHECK(made.a->Disconnect(&other) == ND_DEVICE_REMOVED);
    CHECK(made.a->NotifyDisconnect(&other) == ND_DEVICE_REMOVED);
    CHECK(listener->GetConnectionRequest(fresh.get(), &other) == ND_DEVICE_REMOVED);
    CHECK(listener->Listen(0) == ND_DEVICE_REMOVED);
    const auto own = ipv4("10.0.0.1", 0);
    CHECK(fresh->Bind(generic(own), sizeof own) == ND_DEVICE_REMOVED);
    ComPtr<IND2Connector> none;
    CHECK(side_a.adapter->CreateConnector(IID_IND2Connector, side_a.file, none.put()) == ND_DEVICE_REMOVED);
  });
}
