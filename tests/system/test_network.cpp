// The kernel driver's own IP stack (driver/ip) on frames of its RawPacket queue pair: ARP (RFC 826), neighbour
// discovery (RFC 4861). RNIC_SEED=n replays a failure.
#include "driver/umd/process_context.hpp"
#include "testbench/network_thread.hpp"
#include "tests/system/unreliable_world.hpp"

using namespace rnic;
using namespace rnic::test;
using testbench::ip_of;
using testbench::mac_of;
using testbench::NetworkThread;

namespace {

/// A host that is on the network.
struct Station {
  explicit Station(Endpoint& at, std::set<ip::Address> settled = {})
      : endpoint(at), thread(at.kernel(), at.host().device(), std::move(settled)) {}
  Result<std::uint64_t> find(const ip::Address& wanted) { return thread.network().find(wanted); }
  [[nodiscard]] Result<std::uint64_t> known(const ip::Address& address) const {
    return endpoint.kernel().port_tables().station(address);
  }
  [[nodiscard]] std::uint64_t now() { return endpoint.device().now_ns(); }

  Endpoint& endpoint;
  NetworkThread thread;
};

/// A search on a thread of its own, of which `await` sees the end; the world goes on for so long, whatever moves in it.
struct Search {
  Search(Station& on, const ip::Address& wanted) {
    sc_core::sc_spawn_options options;
    options.set_stack_size(testbench::kAppStackBytes);
    const auto job = [to = outcome, &on, wanted] {
      const std::uint64_t begin = on.now();
      const auto found = on.find(wanted);
      to->took_ns = on.now() - begin;
      to->found = found;
    };
    sc_core::sc_spawn(job, sc_core::sc_gen_unique_name("search"), &options);
    while (!outcome->found && on.thread.network().searching() == 0) on.endpoint.device().elapse(100);
  }
  Result<std::uint64_t> await(Station& on, std::uint64_t ns) {
    on.endpoint.device().elapse(ns);
    REQUIRE(outcome->found);
    return *outcome->found;
  }

  struct Outcome {
    std::optional<Result<std::uint64_t>> found;
    std::uint64_t took_ns{};
  };
  std::shared_ptr<Outcome> outcome = std::make_shared<Outcome>();
};
constexpr std::uint64_t kThreeQuestionsNs = 3'000'000'000, kLongEnoughNs = 3'100'000'000;

ip::Address nobody(bool ipv6) {
  ip::Address address{};
  address[0] = ipv6 ? 0xFD : 0;
  if (!ipv6) address = ip::mapped(ip::Bytes{10, 0, 0, 77});
  address[15] = 77;
  return address;
}

}  // namespace

TEST_CASE("hosts find each other by ARP and neighbour discovery, with frames of the NIC") {
  auto& world = fresh_world(WorldOptions::from_environment("network"));
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    Station a(endpoint_a), b(endpoint_b);
    for (const bool ipv6 : {false, true}) {
      INFO((ipv6 ? "IPv6" : "IPv4"));
      const auto theirs = ip_of(endpoint_b, ipv6), own = ip_of(endpoint_a, ipv6);
      REQUIRE_FALSE(a.known(theirs).ok());
      const std::uint64_t begin = a.now();
      CHECK(must(a.find(theirs)) == mac_of(endpoint_b));
      // The first question was answered; who was asked knows who asked (RFC 826; RFC 4861 7.2.3).
      CHECK(a.now() - begin < 1'000'000);
      CHECK(must(a.known(theirs)) == mac_of(endpoint_b));
      CHECK(must(b.known(own)) == mac_of(endpoint_a));
      CHECK(must(b.find(own)) == mac_of(endpoint_a));
    }
    // A question and an answer each, all of them by the NICs.
    for (Station* const one : {&a, &b}) {
      CHECK(must(one->endpoint.kernel().counter(Counter::kRxEthernet)) == 2);
      CHECK(must(one->endpoint.kernel().counter(Counter::kTxFrames)) == 2);
      CHECK(one->thread.network().counters().received == 2);
      CHECK(one->thread.network().counters().failed == 0);
    }
  });
}

TEST_CASE("an address that nobody has is asked for three times, a second after each other") {
  auto& world = fresh_world(WorldOptions::from_environment("network_nobody"));
  with_endpoints(
      world,
      [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
        Station a(endpoint_a), b(endpoint_b);
        for (const bool ipv6 : {false, true}) {
          const std::uint64_t before = must(endpoint_a.kernel().counter(Counter::kTxFrames));
          Search search(a, nobody(ipv6));
          CHECK(search.await(a, kLongEnoughNs).error() == Error::kNotFound);
          CHECK(search.outcome->took_ns >= kThreeQuestionsNs);
          CHECK(must(endpoint_a.kernel().counter(Counter::kTxFrames)) - before == 3);
        }
        CHECK(must(endpoint_b.kernel().counter(Counter::kTxFrames)) == 0);
        // A group is nobody who could be asked for.
        CHECK(a.find(ip::kAllNodes).error() == Error::kNotFound);
      },
      20'000'000'000);
}

TEST_CASE("what is said of a settled address changes nothing in the port's tables") {
  auto& world = fresh_world(WorldOptions::from_environment("network_settled"));
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    const auto theirs = ip_of(endpoint_b, false);
    Station a(endpoint_a, {theirs}), b(endpoint_b);
    CHECK(must(a.find(theirs)) == mac_of(endpoint_b));
    CHECK_FALSE(a.known(theirs).ok());
  });
}

TEST_CASE("an own address on a VLAN is not answered for") {
  auto& world = fresh_world(WorldOptions::from_environment("network_vlan"));
  with_endpoints(
      world,
      [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
        must(endpoint_b.kernel().port_tables().add_gid(nobody(false), 5));
        Station a(endpoint_a), b(endpoint_b);
        CHECK(Search(a, nobody(false)).await(a, kLongEnoughNs).error() == Error::kNotFound);
        CHECK(b.thread.network().counters().received == 3);
        CHECK(b.thread.network().counters().sent == 0);
      },
      10'000'000'000);
}

TEST_CASE("who waits for an answer is told of the end of the network, and of the device") {
  const bool removed = GENERATE(false, true);
  INFO((removed ? "device" : "network"));
  auto& world = fresh_world(WorldOptions::from_environment("network_end"));
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint&) {
    Station a(endpoint_a);
    Search search(a, nobody(false));
    CHECK_FALSE(search.outcome->found);
    if (removed) {
      endpoint_a.kernel().fail(*endpoint_a.kernel().life());
    } else {
      a.thread.network().stop();
    }
    CHECK(search.await(a, 100'000).error() == Error::kDeviceFailed);
    CHECK(a.thread.network().searching() == 0);
    CHECK(a.find(nobody(false)).error() == Error::kDeviceFailed);
  });
}
