// The host's side of the NIC: what a host writes and reads does not wait for the NIC's own requests to leave (PCI
// Express base specification 2.4.1), nobody loses events to another process; tags, write combining, completion
// time-outs, traffic classes and attributes are as the host has them. RNIC_SEED=n replays a failure.
#include "tests/system/unreliable_world.hpp"

using namespace rnic;
using namespace rnic::test;
using umd::SendRequest;

namespace {

void experiment(const std::string& name, const std::function<void(World&, Endpoint&, Endpoint&)>& body,
                const std::function<void(WorldOptions&)>& change = {}) {
  auto options = WorldOptions::from_environment("host_port_" + name);
  if (change) change(options);
  INFO(name << ", seed " << options.seed);
  World& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& a, Endpoint& b) { body(world, a, b); });
}

/// Queue pairs of two processes, connected one to one.
struct Pairs {
  Pairs(UnreliableSide& here, UnreliableSide& there, unsigned count,
        const testbench::ConnectParameters& parameters = {})
      : a(here), b(there) {
    for (unsigned i = 0; i < count; ++i) {
      auto& from = a.add_qp(QpType::kRc);
      auto& to = b.add_qp(QpType::kRc);
      testbench::connect_pair(a.endpoint, from, b.endpoint, to, parameters);
      qps.push_back(&from);
    }
  }
  /// A write of 32 bytes with its data, to a place of its own.
  void post(unsigned i, std::uint64_t id, bool defer = false) {
    std::array<std::uint64_t, 4> words{id, ~id, i, id * 3};
    const umd::Segment segment{reinterpret_cast<std::uint64_t>(words.data()), sizeof words, 0};
    must(qps[i]->post_send({.opcode = WqeOpcode::kWrite,
                            .id = id,
                            .segments = {&segment, 1},
                            .remote_address = b.at(place(id)),
                            .remote_key = b.region->key(),
                            .inline_data = true,
                            .defer = defer}));
    ++posted;
  }
  [[nodiscard]] static std::size_t place(std::uint64_t id) { return 32 * (id % (UnreliableSide::kBytes / 32)); }
  /// All that was posted completes, and is where it belongs.
  void finish() {
    for (; taken < posted; ++taken) {
      const auto done = a.sent();
      REQUIRE(done.status == CqeStatus::kSuccess);
      std::array<std::uint64_t, 4> words{};
      std::memcpy(words.data(), b.memory + place(done.id), sizeof words);
      REQUIRE((words[0] == done.id && words[1] == ~done.id && words[3] == done.id * 3));
    }
  }
  UnreliableSide &a, &b;
  std::vector<umd::QueuePair*> qps;
  std::uint64_t posted = 0, taken = 0;
};

struct EventCounter final : EventSink {
  void on_event(const hw::Eqe&) override { ++events; }
  unsigned events = 0;
};

}  // namespace

TEST_CASE("registers answer and doorbells are taken while none of the NIC's requests leave (2.4.1)") {
  const bool bus_master = GENERATE(true, false);
  experiment(bus_master ? "held" : "bus_master", [&](World& world, Endpoint& endpoint_a, Endpoint& endpoint_b) {
    constexpr unsigned kPairs = 64;
    constexpr std::uint64_t kAnswerNs = 1500;  // 500 of them are the way to the NIC and back
    UnreliableSide a(endpoint_a), b(endpoint_b);
    Pairs pairs(a, b, kPairs);
    auto& root = world.host(0).root_complex();
    auto& device = endpoint_a.device();
    /// The answer of a register comes behind everything that was written before, which has had time to be worked off.
    const auto answers = [&](const char* behind) {
      device.elapse(10'000);
      const auto start = device.now_ns();
      CHECK(hw::RegIdentity::from_word(device.read64(hw::reg::kIdentity)).magic == hw::kDeviceMagic);
      INFO("behind " << behind << ": " << device.now_ns() - start << " ns");
      CHECK(device.now_ns() - start < kAnswerNs);
    };
    std::uint64_t id = 0;
    for (int round = 0; round < 3; ++round) {
      // Twice two requests a queue pair, in mid-traffic; acknowledged, and no CQE can leave.
      for (unsigned i = 0; i < 2 * kPairs; ++i) pairs.post(i % kPairs, id++);
      if (round == 1) device.elapse(1000);
      if (bus_master) {
        root.hold(model::PcieWay::kToHost, {model::CreditKind::kPosted, model::CreditKind::kNonPosted});
      } else {
        auto config = root.options().config;
        config.bus_master = false;
        root.set_config(config);
      }
      for (unsigned i = 0; i < 2 * kPairs; ++i) {
        pairs.post(i % kPairs, id++);
        if (i % 16 == 0) answers("window writes");
      }
      device.elapse(30'000);
      answers("requests that have been acknowledged");
      for (unsigned i = 0; i < kPairs; ++i) {
        a.process->ring(
            hw::uar::kSendDoorbell,
            hw::SendDoorbell{.qpn = pairs.qps[i]->qpn(), .producer_index = static_cast<std::uint16_t>(4 * round + 4)}
                .word());
        a.post_receive(*pairs.qps[i], i, 0, 64);
      }
      answers("send and receive doorbells");
      for (int i = 0; i < 100; ++i) a.cq->arm(hw::CqArm::kAny), a.receive_cq->arm(hw::CqArm::kAny);
      answers("completion queue doorbells");
      // What it consumed last, once more: nothing.
      if (round == 0) {
        device.write64(hw::kKernelUar * hw::kUarPageBytes + hw::uar::kEqDoorbell,
                       hw::EqDoorbell{.eqn = 0, .consumer_index = 0}.word());
      }
      answers("an event queue doorbell");
      device.elapse(100'000);
      answers("100 us");
      CHECK(must(endpoint_a.kernel().counter(Counter::kSendDoorbells)) > 0);
      if (bus_master) {
        root.hold(model::PcieWay::kToHost, {});
      } else {
        auto config = root.options().config;
        config.bus_master = true;
        root.set_config(config);
      }
      pairs.finish();
      endpoint_a.take_events();
    }
    CHECK(a.counter(Counter::kCqOverruns) + a.counter(Counter::kEqOverruns) + a.counter(Counter::kDoorbellsRefused) ==
          0);
  });
}

TEST_CASE("a device that is switched off at work touches no memory and begins no frame, until it is on again") {
  experiment("switched_off", [&](World& world, Endpoint& endpoint_a, Endpoint& endpoint_b) {
    constexpr unsigned kPairs = 16;
    UnreliableSide a(endpoint_a), b(endpoint_b);
    Pairs pairs(a, b, kPairs, {.ack_timeout = 4});  // 66 us: ACKs that come meanwhile are lost
    auto& device = endpoint_a.device();
    const auto& root = world.host(0).root_complex().statistics();
    const auto& sent = world.wire().statistics(0);
    const auto quiet = [&] { return hw::RegDeviceStatus::from_word(device.read64(hw::reg::kDeviceStatus)).quiet != 0; };
    const auto enable = [&](bool on) {
      device.write64(hw::reg::kDeviceControl, hw::RegDeviceControl{.enable = on}.word());
      CHECK(hw::RegDeviceControl::from_word(device.read64(hw::reg::kDeviceControl)).enable == on);
    };
    std::uint64_t id = 0;
    for (int round = 0; round < 8; ++round) {
      a.cq->arm(hw::CqArm::kAny);
      for (unsigned i = 0; i < 4 * kPairs; ++i) pairs.post(i % kPairs, id++);
      device.elapse(static_cast<std::uint64_t>(300 * round));
      enable(false);
      const auto before = root;
      device.elapse(2000);  // the frame that had begun has ended
      const auto frames = sent.frames;
      CHECK(quiet());
      // As long as nobody gives up on an answer.
      device.elapse(20'000);
      CHECK(root.dma_reads == before.dma_reads);
      CHECK(root.dma_writes == before.dma_writes);
      CHECK(root.interrupts == before.interrupts);
      CHECK(sent.frames == frames);
      CHECK(quiet());
      enable(true);
      // Doorbells that had not been taken are lost.
      for (const auto* qp : pairs.qps) {
        const auto posted = static_cast<std::uint16_t>(4 * (round + 1));
        a.process->ring(hw::uar::kSendDoorbell, hw::SendDoorbell{.qpn = qp->qpn(), .producer_index = posted}.word());
      }
      pairs.finish();
      endpoint_a.take_events();
    }
  });
}

TEST_CASE("a process that asks for events without end, and takes none, costs no other process one") {
  experiment("flood", [](World&, Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UnreliableSide sleeper(endpoint_a), flooder(endpoint_a), b(endpoint_b);
    Pairs quiet(sleeper, b, 1), loud(flooder, b, 1);
    auto for_sleeper = std::make_shared<EventCounter>(), for_flooder = std::make_shared<EventCounter>();
    sleeper.process->events().subscribe(EventTable::Of::kCq, sleeper.cq->cqn(), for_sleeper);
    flooder.process->events().subscribe(EventTable::Of::kCq, flooder.cq->cqn(), for_flooder);
    sleeper.cq->arm(hw::CqArm::kAny);
    // More entries than an event queue has, each with an arm of its own; meanwhile nobody takes events.
    std::uint64_t id = 0;
    for (int round = 0; round < 90; ++round) {
      for (int i = 0; i < 60; ++i) {
        loud.post(0, id++);
        flooder.cq->arm(hw::CqArm::kAny);
        flooder.cq->arm(hw::CqArm::kAny);
      }
      for (unsigned left = 60; left != 0;) {
        std::array<umd::Completion, 16> some;
        for (int i = 0; i < 40; ++i) flooder.cq->arm(hw::CqArm::kAny);
        const std::size_t got = flooder.cq->poll(some);
        left -= static_cast<unsigned>(got);
        if (got == 0) endpoint_a.device().elapse(500);
      }
    }
    quiet.post(0, 1);
    quiet.finish();
    endpoint_a.device().elapse(20'000);
    endpoint_a.take_events();
    CHECK(for_sleeper->events == 1);
    CHECK(for_flooder->events >= 1);
    CHECK(sleeper.counter(Counter::kEqOverruns) == 0);
    // What the flooder asked for last comes when its event before has been taken.
    const auto before = for_flooder->events;
    endpoint_a.device().elapse(20'000);
    endpoint_a.take_events();
    CHECK(for_flooder->events == before + 1);
    // And as always for the sleeper.
    for (std::uint64_t i = 2; i < 12; ++i) {
      sleeper.cq->arm(hw::CqArm::kAny);
      quiet.post(0, i);
      quiet.finish();
      endpoint_a.device().elapse(5000);
      endpoint_a.take_events();
      CHECK(for_sleeper->events == i);
    }
  });
}

TEST_CASE(
    "a completion that is withheld ends in an error near the middle of its range, and never while Completion Timeout "
    "Disable is set (2.8, 7.5.3.16)") {
  const auto options = WorldOptions::from_environment("host_port_timeout");
  INFO("seed " << options.seed);
  World& world = fresh_world(options);
  world.add_app(0, "test", [&](Host& host) {
    // Range A: 50 us to 100 us. In the middle half of it, with the time that the host needs to see it.
    constexpr std::uint64_t kFromNs = 62'500, kToNs = 87'500 + 2500, kFarNs = 500'000;
    Endpoint endpoint_a(host, {.completion_timeout = hw::CompletionTimeoutRange::kA1});
    Endpoint endpoint_b(world.host(1));
    UnreliableSide a(endpoint_a), b(endpoint_b);
    Pairs pairs(a, b, 3);
    auto& root = host.root_complex();
    auto& device = endpoint_a.device();
    const auto disable = [&](bool on) {
      auto config = root.options().config;
      config.completion_timeout_disable = on;
      root.set_config(config);
    };
    const auto post = [&](unsigned i, std::size_t offset) {
      const auto from = a.segment(offset, 64);
      must(pairs.qps[i]->post_send({.opcode = WqeOpcode::kWrite,
                                    .id = i,
                                    .segments = {&from, 1},
                                    .remote_address = b.at(offset),
                                    .remote_key = b.region->key()}));
    };
    /// A Write whose payload never comes; returns when it has been asked for.
    const auto withhold = [&](unsigned i) {
      model::PcieRule rule;
      rule.fault = model::PcieFault::kTimeout;
      rule.match.address = a.at(0);
      root.arm(rule);
      const auto before = root.statistics().last_withheld;
      post(i, 0);
      for (int steps = 0; root.statistics().last_withheld == before; ++steps) {
        REQUIRE(steps < 1000);
        device.elapse(100);
      }
      return device.now_ns();
    };
    const auto ends_in_error = [&](unsigned i, std::uint64_t since) {
      const auto done = a.sent();
      CHECK(done.id == i);
      CHECK(done.status == CqeStatus::kFatalErr);
      CHECK(device.now_ns() - since > kFromNs);
      CHECK(device.now_ns() - since < kToNs);
    };
    const auto quiet = [&] { return hw::RegDeviceStatus::from_word(device.read64(hw::reg::kDeviceStatus)).quiet != 0; };

    ends_in_error(0, withhold(0));
    CHECK(a.counter(Counter::kDmaReadTimeouts) == 1);

    disable(true);
    withhold(1);
    umd::Completion completion;
    CHECK_FALSE(a.poll(*a.cq, completion, kFarNs));
    CHECK_FALSE(quiet());
    CHECK(a.counter(Counter::kDmaReadTimeouts) == 1);
    must(umd::CompletionQueue::create(a.process, 16));  // other readers go on

    disable(false);
    ends_in_error(1, device.now_ns());
    CHECK(a.counter(Counter::kDmaReadTimeouts) == 2);
    post(2, 4096);
    const auto other = a.sent();
    CHECK(other.id == 2);
    CHECK(other.status == CqeStatus::kSuccess);
    CHECK(quiet());
  });
  world.run();
}

TEST_CASE("every part of a completion has traffic class and attributes of its request (2.2.9)") {
  // The root complex of the test bench refuses any other, here and behind every register that is read.
  experiment("handling", [](World& world, Endpoint& endpoint_a, Endpoint&) {
    const auto process = must(umd::ProcessContext::open(endpoint_a.kernel().node()));
    auto& root = world.host(0).root_complex();
    struct Row {
      model::TlpKind kind;
      std::uint64_t address;
      std::uint16_t length_dw;
      model::CompletionStatus status;
    };
    const std::uint64_t uar = std::uint64_t{process->uar()} * hw::kUarPageBytes;
    const Row rows[] = {{model::TlpKind::kMemoryRead, hw::reg::kIdentity, 2, model::CompletionStatus::kSuccess},
                        {model::TlpKind::kMemoryRead, uar + 40, 200, model::CompletionStatus::kSuccess},  // in parts
                        {model::TlpKind::kMemoryRead, 0, 4, model::CompletionStatus::kUnsupportedRequest},
                        {model::TlpKind::kOther, 0, 1, model::CompletionStatus::kUnsupportedRequest}};
    for (const auto& row : rows) {
      for (unsigned bits = 0; bits < 64; ++bits) {
        model::HostRequest tlp;
        tlp.kind = row.kind;
        tlp.address = row.address;
        tlp.length_dw = row.length_dw;
        tlp.first_be = 0xF;
        tlp.last_be = row.length_dw == 1 ? 0 : 0xF;
        tlp.handling = {static_cast<std::uint8_t>(bits & 7), static_cast<std::uint8_t>(bits >> 3)};
        const auto completion = root.request(tlp);
        REQUIRE(completion.has_value());
        CHECK(completion->status == row.status);
        CHECK(completion->handling == tlp.handling);
      }
    }
  });
}

TEST_CASE("without Extended Tag Field Enable reads have tags of five bits (2.2.6.2)") {
  // The root complex of the test bench refuses any other.
  experiment(
      "tags",
      [](World&, Endpoint& endpoint_a, Endpoint& endpoint_b) {
        UnreliableSide a(endpoint_a), b(endpoint_b);
        Pairs pairs(a, b, 4);
        constexpr std::uint32_t kBytes = 60'000;
        for (std::size_t i = 0; i < UnreliableSide::kBytes; ++i)
          a.memory[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
        for (unsigned i = 0; i < 4; ++i) {
          const auto from = a.segment(kBytes * i, kBytes);
          must(pairs.qps[i]->post_send({.opcode = WqeOpcode::kWrite,
                                        .id = i,
                                        .segments = {&from, 1},
                                        .remote_address = b.at(kBytes * i),
                                        .remote_key = b.region->key()}));
        }
        for (int i = 0; i < 4; ++i) CHECK(a.sent().status == CqeStatus::kSuccess);
        CHECK(std::memcmp(a.memory, b.memory, 4 * kBytes) == 0);
      },
      [](WorldOptions& options) { options.host.root_complex.config.extended_tags = false; });
}

TEST_CASE("a WQE may come through the window in aligned pieces of 8 to 64 bytes, as write combining leaves them") {
  experiment("pieces", [](World& world, Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UnreliableSide a(endpoint_a), b(endpoint_b);
    Pairs pairs(a, b, 1);
    auto& qp = *pairs.qps[0];
    auto& root = world.host(0).root_complex();
    const auto push = [&](std::span<const std::uint8_t> wqe, const std::function<std::size_t(std::size_t)>& most) {
      for (std::size_t at = 0; at < wqe.size();) {
        std::size_t bytes = most(at);
        while (at % bytes != 0) bytes /= 2;
        model::HostRequest tlp{model::TlpKind::kMemoryWrite,
                               false,
                               a.process->uar() * hw::kUarPageBytes + hw::uar::kWqeWindow + at,
                               static_cast<std::uint16_t>(bytes / 4),
                               0xF,
                               0xF,
                               0,
                               0,
                               {}};
        tlp.data.assign(wqe.begin() + static_cast<std::ptrdiff_t>(at),
                        wqe.begin() + static_cast<std::ptrdiff_t>(at + bytes));
        root.post(std::move(tlp));
        at += bytes;
      }
    };
    const std::array<std::function<std::size_t(std::size_t)>, 6> shapes = {
        [](std::size_t) { return 8; },
        [](std::size_t) { return 16; },
        [](std::size_t) { return 32; },
        [](std::size_t) { return 64; },
        [](std::size_t at) { return at % 64 == 0 ? 32 : 16; },
        [](std::size_t at) { return at % 32 == 0 ? 16 : 8; }};
    const auto before = a.counter(Counter::kWindowWqes);
    const auto stride = std::size_t{1} << umd::SendQueue::log_stride_for(4, 128, QpType::kRc);
    for (std::uint64_t id = 0; id < shapes.size(); ++id) {
      pairs.post(0, id, true);
      const auto* slot = qp.kernel_qp().send_ring() + stride * id;
      const std::size_t bytes = std::size_t{slot[7]} * 16;  // wqe_control.size
      push({slot, (bytes + 63) / 64 * 64}, shapes[id]);
      pairs.finish();
    }
    CHECK(a.counter(Counter::kWindowWqes) - before == shapes.size());
    CHECK(a.counter(Counter::kHostUnsupported) == 0);
  });
}
