// The life of queue pairs on the NIC: SQD, attributes, asynchronous events, the end of queue pairs in the midst of
// their work. InfiniBand specification volume 1: 10.3.1 (states), 11.2.5.2 (attributes), 11.6.3 (asynchronous events).
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "driver/nd2/completion_queue.hpp"
#include "model/bth.hpp"
#include "tests/system/system_world.hpp"

using namespace rnic;
using namespace rnic::test;
using hw::EqeType;
using hw::QpState;
using model::WireFault;

namespace {

constexpr ULONG kRights = ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE;
constexpr std::size_t kBytes = 256 << 10;
constexpr std::uint8_t kWriteMiddle = 7;

struct Sink final : EventSink {
  void on_event(const hw::Eqe& eqe) override { events.push_back(eqe); }
  [[nodiscard]] std::size_t count(EqeType type) const {
    std::size_t n = 0;
    for (const auto& event : events) n += event.event_type == static_cast<std::uint8_t>(type);
    return n;
  }
  std::vector<hw::Eqe> events;
};

struct Side {
  Endpoint* endpoint{};
  std::uint8_t* memory{};
  ComPtr<IND2MemoryRegion> region;
  ComPtr<IND2CompletionQueue> cq;
  ComPtr<IND2QueuePair> qp;
  std::shared_ptr<Sink> sink = std::make_shared<Sink>();
};

/// A queue pair on each host, not connected, with memory and a sink for its events in place of the driver's.
struct Lab {
  Lab(World& of, Endpoint& a, Endpoint& b, ULONG depth = 16) : world(of) {
    Endpoint* endpoints[] = {&a, &b};
    for (std::size_t i = 0; i < 2; ++i) {
      auto& side = sides[i];
      side.endpoint = endpoints[i];
      side.memory = static_cast<std::uint8_t*>(side.endpoint->host().memory().allocate(kBytes));
      for (std::size_t k = 0; k < kBytes; ++k) side.memory[k] = static_cast<std::uint8_t>(k * 13 + k / 512 + 77 * i);
      side.region = side.endpoint->register_memory(side.memory, kBytes, kRights);
      side.cq = side.endpoint->create_cq(4 * depth);
      side.qp = side.endpoint->create_qp(*side.cq, *side.cq, {depth, depth, 2, 2, 0, nullptr});
      side.endpoint->process().events().subscribe(EventTable::Of::kQp, core(i).qpn(), side.sink);
    }
  }
  umd::QueuePair& core(std::size_t i) { return testbench::core_of(*sides[i].qp); }
  umd::QpConnection connection(std::size_t from) {
    auto c = connection_to(*sides[from].endpoint, *sides[1 - from].endpoint, core(1 - from).qpn(), {1024});
    c.send_psn = 0x100 + 0x1000 * static_cast<std::uint32_t>(from);
    c.receive_psn = 0x100 + 0x1000 * static_cast<std::uint32_t>(1 - from);
    return c;
  }
  void connect() {
    for (std::size_t i = 0; i < 2; ++i) REQUIRE(core(i).to_ready(connection(i)).ok());
    for (std::size_t i = 0; i < 2; ++i) REQUIRE(core(i).to_connected(connection(i)).ok());
  }
  void write(std::size_t offset, std::size_t bytes, bool bad_token = false) {
    const ND2_SGE sge{sides[0].memory + offset, static_cast<ULONG>(bytes), sides[0].region->GetLocalToken()};
    const UINT32 token = sides[1].region->GetRemoteToken() ^ (bad_token ? 0x01000000U : 0U);
    REQUIRE(sides[0].qp->Write(nullptr, &sge, 1, reinterpret_cast<UINT64>(sides[1].memory + offset), token, 0) ==
            ND_SUCCESS);
  }
  void read(std::size_t bytes) {
    const ND2_SGE sge{sides[0].memory, static_cast<ULONG>(bytes), sides[0].region->GetLocalToken()};
    REQUIRE(sides[0].qp->Read(nullptr, &sge, 1, reinterpret_cast<UINT64>(sides[1].memory),
                              sides[1].region->GetRemoteToken(), 0) == ND_SUCCESS);
  }
  HRESULT result(std::size_t side = 0) {
    ND2_RESULT result{};
    REQUIRE(take_result(*sides[side].endpoint, *sides[side].cq, result, 5'000'000));
    return result.Status;
  }
  void pass(std::uint64_t ns) { sides[0].endpoint->device().elapse(ns); }
  void dispatch() {
    for (auto& side : sides) side.endpoint->take_events();
  }

  World& world;
  Side sides[2];
};

/// A run with `rules` for the PCI Express of host 0, whose NIC waits 75 us for a completion.
void with_pcie_faults(const std::vector<model::PcieRule>& rules,
                      const std::function<void(World&, Endpoint&, Endpoint&)>& body) {
  auto options = WorldOptions::from_environment("life_pcie");
  INFO("seed " << options.seed);
  model::PcieFaultOptions faults;
  faults.rules = rules;
  options.pcie_faults[0] = faults;
  World& world = fresh_world(options);
  world.add_app(0, "test", [&](Host& host) {
    Endpoint a(host, {.completion_timeout = hw::CompletionTimeoutRange::kA1});
    Endpoint b(world.host(1));
    body(world, a, b);
  });
  world.run();
}

void experiment(const std::string& name, const std::function<void(World&, Endpoint&, Endpoint&)>& body) {
  auto options = WorldOptions::from_environment("life_" + name);
  options.wire.delay_ns = 1'000;
  INFO(name << ", seed " << options.seed);
  World& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& a, Endpoint& b) { body(world, a, b); });
}

}  // namespace

TEST_CASE("SQD: what was started ends, lost packets and all; then the event; attributes; then on (10.3.1)") {
  experiment("sqd", [](World& world, Endpoint& a, Endpoint& b) {
    std::mt19937_64 random(WorldOptions::from_environment("").seed);
    for (int round = 0; round < 6; ++round) {
      Lab lab(world, a, b);
      lab.connect();
      auto& sink = *lab.sides[0].sink;
      const bool notify = round != 5;
      if (round % 2 == 0) {
        model::WireRule rule;
        rule.fault = WireFault::kDrop;
        rule.match.opcode = kWriteMiddle;
        rule.nth = 1 + random() % 40;
        world.wire().arm(0, rule);
      }
      constexpr std::size_t kWrites = 8, kLength = 16 << 10;
      for (std::size_t i = 0; i < kWrites; ++i) lab.write(i * kLength, kLength);
      lab.pass(random() % 12'000);
      REQUIRE(lab.core(0).drain(notify).ok());
      // Posted after the start of the drain: must wait.
      lab.write(kWrites * kLength, 64);
      lab.pass(2'000'000);
      lab.dispatch();
      CHECK(sink.count(EqeType::kSqDrained) == (notify ? 1 : 0));
      auto state = lab.core(0).kernel_qp().query();
      REQUIRE(state.ok());
      CHECK(state->state == static_cast<std::uint8_t>(QpState::kSqd));
      CHECK(state->sq_draining == 0);
      CHECK(state->sq_retired == state->sq_executed);
      CHECK(state->sq_producer == kWrites + 1);
      CHECK(state->sq_retired <= kWrites);
      const std::size_t done = state->sq_retired;
      ND2_RESULT results[16];
      CHECK(lab.sides[0].cq->GetResults(results, 16) == done);
      CHECK(std::memcmp(lab.sides[0].memory, lab.sides[1].memory, done * kLength) == 0);
      if (done < kWrites)
        CHECK(std::memcmp(lab.sides[0].memory + done * kLength, lab.sides[1].memory + done * kLength, 64) != 0);

      umd::QpConnection changed = lab.connection(0);
      changed.ack_timeout = 9;
      changed.retry_count = 3;
      changed.path.traffic_class = 0x20;
      auto& kernel_qp = lab.core(0).kernel_qp();
      CHECK(
          kernel_qp
              .modify(QpState::kSqd, attributes(hw::QpAttr::kTimeout, hw::QpAttr::kRetryCnt, hw::QpAttr::kAv), changed)
              .ok());
      CHECK(kernel_qp.modify(QpState::kSqd, attribute(hw::QpAttr::kSqPsn), changed).error() ==
            Error::kInvalidParameter);
      REQUIRE(lab.core(0).resume().ok());
      for (std::size_t i = done; i < kWrites + 1; ++i) CHECK(lab.result() == ND_SUCCESS);
      CHECK(std::memcmp(lab.sides[0].memory, lab.sides[1].memory, kWrites * kLength + 64) == 0);
      lab.dispatch();
      CHECK(sink.events.size() == (notify ? 1 : 0));
    }
  });
}

TEST_CASE("an empty queue is drained at once; its end in SQD flushes what never started") {
  experiment("sqd_empty", [](World& world, Endpoint& a, Endpoint& b) {
    Lab lab(world, a, b);
    lab.connect();
    REQUIRE(lab.core(0).drain(true).ok());
    lab.pass(20'000);
    lab.dispatch();
    REQUIRE(lab.sides[0].sink->count(EqeType::kSqDrained) == 1);
    CHECK(lab.sides[0].sink->events[0].number == lab.core(0).qpn());
    lab.write(0, 64);
    lab.pass(20'000);
    // The responder side goes on in SQD.
    const ND2_SGE sge{lab.sides[1].memory, 4096, lab.sides[1].region->GetLocalToken()};
    REQUIRE(lab.sides[1].qp->Write(nullptr, &sge, 1, reinterpret_cast<UINT64>(lab.sides[0].memory),
                                   lab.sides[0].region->GetRemoteToken(), 0) == ND_SUCCESS);
    CHECK(lab.result(1) == ND_SUCCESS);
    CHECK(std::memcmp(lab.sides[0].memory, lab.sides[1].memory, 4096) == 0);
    REQUIRE(lab.core(0).flush().ok());
    CHECK(lab.result() == ND_CANCELED);
  });
}

TEST_CASE("the first packet in RTR is an event, and only the first (11.6.3.1)") {
  experiment("established", [](World& world, Endpoint& a, Endpoint& b) {
    Lab lab(world, a, b);
    REQUIRE(lab.core(1).to_ready(lab.connection(1)).ok());
    REQUIRE(lab.core(0).connect(lab.connection(0)).ok());
    for (int i = 0; i < 3; ++i) {
      lab.write(0, 5000);
      CHECK(lab.result() == ND_SUCCESS);
    }
    lab.dispatch();
    REQUIRE(lab.sides[1].sink->events.size() == 1);
    CHECK(lab.sides[1].sink->count(EqeType::kCommEstablished) == 1);
    CHECK(lab.sides[1].sink->events[0].number == lab.core(1).qpn());
    REQUIRE(lab.core(1).to_connected(lab.connection(1)).ok());
    lab.write(0, 64);
    CHECK(lab.result() == ND_SUCCESS);
    lab.dispatch();
    CHECK(lab.sides[1].sink->events.size() == 1);
    CHECK(lab.sides[0].sink->events.empty());
  });
}

TEST_CASE("events of the responder: access error, request error; of the requester: the queue pair failed (11.6.3.2)") {
  experiment("errors", [](World& world, Endpoint& a, Endpoint& b) {
    for (const bool access : {false, true}) {
      Lab lab(world, a, b);
      auto inbound = lab.connection(1);
      inbound.inbound_reads = 0;  // one Read is one too many: NAK invalid request
      REQUIRE(lab.core(1).connect(inbound).ok());
      REQUIRE(lab.core(0).connect(lab.connection(0)).ok());
      if (access)
        lab.write(0, 64, true);
      else
        lab.read(64);
      CHECK(lab.result() == (access ? ND_ACCESS_VIOLATION : ND_REMOTE_ERROR));
      lab.pass(20'000);
      lab.dispatch();
      const auto type = access ? EqeType::kQpAccessError : EqeType::kQpRequestError;
      REQUIRE(lab.sides[1].sink->events.size() == 1);
      CHECK(lab.sides[1].sink->count(type) == 1);
      CHECK(lab.sides[0].sink->events.empty());  // its completion has told it
    }
  });
}

TEST_CASE("the link goes down and comes up: an event each time, and the transport recovers (11.6.3.3)") {
  experiment("link", [](World& world, Endpoint& a, Endpoint& b) {
    Lab lab(world, a, b);
    lab.connect();
    auto port = std::make_shared<Sink>();
    for (auto* endpoint : {&a, &b}) endpoint->process().events().subscribe_device(port);
    CHECK(a.kernel().link_up());
    lab.write(0, 32 << 10);
    lab.pass(3'000);
    world.wire().set_link(false);
    lab.pass(100'000);
    CHECK_FALSE(a.kernel().link_up());
    lab.dispatch();
    CHECK(port->events.size() == 2);
    CHECK(port->count(EqeType::kPortError) == 2);
    world.wire().set_link(true);
    CHECK(lab.result() == ND_SUCCESS);
    CHECK(std::memcmp(lab.sides[0].memory, lab.sides[1].memory, 32 << 10) == 0);
    CHECK(a.kernel().link_up());
    lab.dispatch();
    CHECK(port->events.size() == 4);
    CHECK(port->count(EqeType::kPortActive) == 2);
    for (const auto& event : port->events) CHECK(event.number == 1);
  });
}

TEST_CASE("queue pairs that end in the midst of their work leave no DMA behind (C10-..: 11.2.5.4)") {
  experiment("destroy", [](World& world, Endpoint& a, Endpoint& b) {
    std::mt19937_64 random(WorldOptions::from_environment("").seed);
    for (int round = 0; round < 40; ++round) {
      INFO("round " << round);
      Lab lab(world, a, b, 32);
      lab.connect();
      const std::size_t reads = random() % 8;
      for (std::size_t i = 0; i < 24; ++i) {
        if (random() % 24 < reads)
          lab.read(1 + random() % 20'000);
        else
          lab.write(0, 1 + random() % 20'000);
      }
      lab.pass(random() % 25'000);
      // When the destroy has completed, the rings are given back, and then the memory: a DMA that is late hits the
      // IOMMU.
      const std::size_t first = random() % 2;
      for (const std::size_t i : {first, 1 - first}) {
        REQUIRE(lab.core(i).close().ok());
        lab.sides[i].qp = {};
        lab.sides[i].cq = {};
        auto& region = *lab.sides[i].region;
        lab.sides[i].endpoint->deregister(region);
        lab.pass(random() % 3'000);
      }
      lab.pass(30'000);
      CHECK(a.host().iommu().fault_count() == 0);
      CHECK(b.host().iommu().fault_count() == 0);
    }
  });
}

TEST_CASE(
    "a read completion that never comes fails its request, in time, and nothing hangs (PCI Express base specification "
    "2.8)") {
  // The 20,000 bytes are read in TLPs of at most 4 KiB: one of the payload is never answered.
  model::PcieRule rule;
  rule.fault = model::PcieFault::kTimeout;
  rule.match.access = model::PcieAccess::kDmaRead;
  rule.match.min_bytes = 400;
  rule.nth = 7;
  with_pcie_faults({rule}, [](World& world, Endpoint& a, Endpoint& b) {
    Lab lab(world, a, b);
    lab.connect();
    lab.write(0, 64);
    CHECK(lab.result() == ND_SUCCESS);
    lab.write(0, 60'000);
    lab.write(0, 64);
    const auto start = a.device().now_ns();
    CHECK(lab.result() == ND_INTERNAL_ERROR);     // IBV_WC_FATAL_ERR
    CHECK(a.device().now_ns() - start > 50'000);  // range A, 7.5.3.16
    CHECK(a.device().now_ns() - start < 110'000);
    CHECK(lab.result() == ND_CANCELED);
    lab.dispatch();
    CHECK(lab.sides[0].sink->events.empty());  // the completion has told it
    CHECK(a.kernel().counter(hw::Counter::kDmaReadTimeouts).take() == 1);
    // Others go on.
    Lab other(world, a, b);
    other.connect();
    other.write(0, 60'000);
    CHECK(other.result() == ND_SUCCESS);
    CHECK(std::memcmp(other.sides[0].memory, other.sides[1].memory, 60'000) == 0);
  });
}

TEST_CASE("a completion queue is resized again and again among traffic (decisions 28)") {
  experiment("resize", [](World& world, Endpoint& a, Endpoint& b) {
    std::mt19937_64 random(WorldOptions::from_environment("").seed);
    Lab lab(world, a, b, 32);
    lab.connect();
    std::size_t posted = 0, finished = 0, resizes = 0, refused = 0;
    constexpr std::size_t kWrites = 600;
    ND2_RESULT results[64];
    while (finished < kWrites) {
      for (auto n = random() % 8; n > 0 && posted < kWrites && posted - finished < 30; --n, ++posted) {
        const ND2_SGE sge{lab.sides[0].memory, static_cast<ULONG>(random() % 300),
                          lab.sides[0].region->GetLocalToken()};
        REQUIRE(lab.sides[0].qp->Write(reinterpret_cast<void*>(posted + 1), &sge, 1,
                                       reinterpret_cast<UINT64>(lab.sides[1].memory),
                                       lab.sides[1].region->GetRemoteToken(), 0) == ND_SUCCESS);
      }
      lab.pass(random() % 3'000);
      if (random() % 3 == 0) {
        // At least as many as may come while it is under way.
        const HRESULT status = lab.sides[0].cq->Resize(static_cast<ULONG>(posted - finished + 1 + random() % 100));
        REQUIRE(status == ND_SUCCESS);
        ++resizes;
      }
      if (random() % 10 == 0 && finished + 4 < posted) {
        lab.pass(100'000);  // all are there
        REQUIRE(lab.sides[0].cq->Resize(1) == ND_BUFFER_OVERFLOW);
        ++refused;
      }
      const ULONG got = lab.sides[0].cq->GetResults(results, static_cast<ULONG>(random() % 64));
      for (ULONG i = 0; i < got; ++i) {
        REQUIRE(results[i].Status == ND_SUCCESS);
        REQUIRE(results[i].RequestContext == reinterpret_cast<void*>(++finished));
      }
    }
    CHECK(resizes > 20);
    CHECK(refused > 0);
    CHECK(a.kernel().counter(hw::Counter::kCqOverruns).take() == 0);
    CHECK(a.host().iommu().fault_count() == 0);
  });
}

TEST_CASE("moderation: one event for several entries, or after the time") {
  experiment("moderation", [](World& world, Endpoint& a, Endpoint& b) {
    Lab lab(world, a, b);
    lab.connect();
    auto& core = *lab.sides[0].cq.get();
    auto& queue = *static_cast<nd2::CompletionQueue&>(core).core();
    auto sink = std::make_shared<Sink>();
    a.process().events().subscribe(EventTable::Of::kCq, queue.cqn(), sink);
    REQUIRE(queue.moderate(4, 50).ok());
    const auto eqes = [&] {
      lab.dispatch();
      return sink->events.size();
    };
    queue.arm(hw::CqArm::kAny);
    for (int i = 0; i < 3; ++i) lab.write(0, 64);
    lab.pass(20'000);
    CHECK(eqes() == 0);
    lab.write(0, 64);
    lab.pass(20'000);
    CHECK(eqes() == 1);
    queue.arm(hw::CqArm::kAny);
    lab.write(0, 64);
    lab.pass(30'000);
    CHECK(eqes() == 1);
    lab.pass(40'000);
    CHECK(eqes() == 2);
  });
}
