// Flow control of PCI Express: each kind of TLP has credits of its own (base specification 2.6.1), and what must pass a
// TLP without credits passes it (2.4.1, table 2-40). Each TEST_CASE below is a row and a column of that table, at the
// NIC of host A, under real traffic. What a request of the NIC needs a read for waits for it; posted requests and
// completions of which that is not so leave. RNIC_SEED=n replays a failure.
//
//            passes:  posted          read, with data           completion
//   posted            A2 no           A3, A4 yes                A5 may
//   read, with data   B2, C2 no       B3 to C4 may              B5, C5 may
//   completion        D2 no           D3, D4 yes                D5 may; of one read no
//
// The NIC has no non-posted request with data (row C and column 4 to the host are empty); the host's are those of the
// kind kOther. "May" is for both sides to choose: the tests say what this NIC does, where its ports promise it.
#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "model/random.hpp"
#include "tests/system/unreliable_world.hpp"

using namespace rnic;
using namespace rnic::test;
using model::CreditKind;
using model::CreditKinds;
using model::PcieWay;
using testbench::Violation;

namespace {

constexpr std::size_t kSlot = 2048, kSlots = 64, kSources = kSlot * kSlots;
constexpr unsigned kPairs = 8;
/// What leaves at once has left by then, through both NICs and back.
constexpr std::uint64_t kBound = 30'000;

constexpr CreditKinds none() { return {}; }

/// Counts what passes the ports of host A's NIC.
struct Tap {
  explicit Tap(model::RootComplex& at) : root(at) {
    root.set_tlp_tap([this](const model::TlpSeen& tlp) {
      ++count[tlp.way == PcieWay::kToHost][static_cast<std::size_t>(tlp.kind)];
      if (on_tlp) on_tlp(tlp);
    });
  }
  ~Tap() { root.set_tlp_tap({}); }
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;
  [[nodiscard]] std::uint64_t up(CreditKind kind) const { return count[1][static_cast<std::size_t>(kind)]; }
  [[nodiscard]] std::uint64_t down(CreditKind kind) const { return count[0][static_cast<std::size_t>(kind)]; }
  model::RootComplex& root;
  std::array<std::array<std::uint64_t, model::kCreditKinds>, 2> count{};
  std::function<void(const model::TlpSeen&)> on_tlp;
};

/// How a WQE gets to the NIC: whole through the window, with its data or without, or by a doorbell.
enum class Way : std::uint8_t { kWindow, kInline, kFetched };

struct Operation {
  WqeOpcode opcode{};
  bool of_a{};
  std::size_t bytes{};
  std::size_t slot{};
};

/// Two hosts at work; `world.host(0)` is A.
struct Scene {
  Scene(World& w, Endpoint& endpoint_a, Endpoint& endpoint_b)
      : world(w), a(endpoint_a), b(endpoint_b), root(w.host(0).root_complex()), tap(root) {
    for (unsigned i = 0; i < kPairs; ++i) {
      auto& from = a.add_qp(QpType::kRc);
      auto& to = b.add_qp(QpType::kRc);
      testbench::connect_pair(endpoint_a, from, endpoint_b, to, {.ack_timeout = 12});  // 16 ms: nobody gives up
    }
    // Page lists are known, and what has been posted once goes on as it will.
    for (int round = 0; round < 4; ++round) {
      for (unsigned i = 0; i < kPairs; ++i) {
        write(a, i, kSlot);
        write(b, i, kSlot);
        read(a, i, kSlot);
        read(b, i, kSlot);
        send(a, i, kSlot);
        send(b, i, kSlot);
      }
      finish();
    }
    settle();
  }
  ~Scene() { root.hold(PcieWay::kToHost, none()), root.hold(PcieWay::kToNic, none()); }

  UnreliableSide& peer(const UnreliableSide& of) { return &of == &a ? b : a; }
  Device& device() { return a.endpoint.device(); }
  void settle() { device().elapse(20'000); }
  std::uint64_t now() { return device().now_ns(); }

  /// True when `done` comes true within `limit_ns`.
  bool within(std::uint64_t limit_ns, const std::function<bool()>& done) {
    const auto end = now() + limit_ns;
    while (!done()) {
      if (now() >= end) return false;
      device().elapse(100);
    }
    return true;
  }

  std::uint64_t begin(UnreliableSide& from, WqeOpcode opcode, std::size_t bytes) {
    const std::uint64_t id = next++;
    const Operation operation{opcode, &from == &a, bytes, id % kSlots};
    REQUIRE(under_way.size() < kSlots);
    auto& to = peer(from);
    auto& source = opcode == WqeOpcode::kRead ? to : from;
    auto& target = opcode == WqeOpcode::kRead ? from : to;
    for (std::size_t i = 0; i < bytes; ++i) {
      source.memory[kSources + operation.slot * kSlot + i] = value(id, i);
      target.memory[operation.slot * kSlot + i] = UnreliableSide::kUntouched;
    }
    under_way.emplace(id, operation);
    return id;
  }
  static std::uint8_t value(std::uint64_t id, std::size_t i) {
    return static_cast<std::uint8_t>(id * 37 + i * 3 + i / 256 + 1);
  }
  void post(UnreliableSide& from, unsigned pair, std::uint64_t id, Way way = Way::kWindow) {
    const auto& operation = under_way.at(id);
    auto& to = peer(from);
    const bool is_read = operation.opcode == WqeOpcode::kRead;
    const auto own = from.segment((is_read ? 0 : kSources) + operation.slot * kSlot, operation.bytes);
    umd::SendRequest send{
        .opcode = operation.opcode, .id = id, .segments = {&own, 1}, .inline_data = way == Way::kInline};
    if (operation.opcode != WqeOpcode::kSend) {
      send.remote_address = to.at((is_read ? kSources : 0) + operation.slot * kSlot);
      send.remote_key = to.region->key();
    }
    send.defer = way == Way::kFetched;
    must(from.qps[pair]->post_send(send));
    if (send.defer) from.qps[pair]->ring_deferred();
  }
  /// Its WQE is read from memory, before anything else.
  std::uint64_t write_fetched(UnreliableSide& from, unsigned pair) {
    const auto id = begin(from, WqeOpcode::kWrite, 1000);
    post(from, pair, id, Way::kFetched);
    return id;
  }
  /// Needs no read of `from`: the WQE and its data come through the window.
  std::uint64_t write_inline(UnreliableSide& from, unsigned pair) {
    const auto id = begin(from, WqeOpcode::kWrite, 32);
    post(from, pair, id, Way::kInline);
    return id;
  }
  std::uint64_t write(UnreliableSide& from, unsigned pair, std::size_t bytes) {
    const auto id = begin(from, WqeOpcode::kWrite, bytes);
    post(from, pair, id);
    return id;
  }
  std::uint64_t read(UnreliableSide& from, unsigned pair, std::size_t bytes) {
    const auto id = begin(from, WqeOpcode::kRead, bytes);
    post(from, pair, id);
    return id;
  }
  std::uint64_t send(UnreliableSide& from, unsigned pair, std::size_t bytes) {
    const auto id = begin(from, WqeOpcode::kSend, bytes);
    auto& to = peer(from);
    to.post_receive(*to.qps[pair], id, under_way.at(id).slot * kSlot, kSlot);
    received[id] = false;
    post(from, pair, id);
    return id;
  }

  /// Takes what has completed, right or the test fails.
  void collect() {
    for (auto* side : {&a, &b}) {
      umd::Completion completion;
      while (side->cq->poll({&completion, 1}) != 0) {
        REQUIRE(completion.status == CqeStatus::kSuccess);
        const auto at = under_way.find(completion.id);
        REQUIRE(at != under_way.end());
        REQUIRE(at->second.of_a == (side == &a));
        if (at->second.opcode == WqeOpcode::kSend) {
          sent[completion.id] = true;
        } else {
          check(at->first, at->second);
          under_way.erase(at);
        }
      }
      while (side->receive_cq->poll({&completion, 1}) != 0) {
        REQUIRE(completion.status == CqeStatus::kSuccess);
        REQUIRE(received.contains(completion.id));
        check(completion.id, under_way.at(completion.id));
        received[completion.id] = true;
      }
    }
    std::erase_if(sent, [&](const auto& entry) {
      if (!received.at(entry.first)) return false;
      received.erase(entry.first);
      under_way.erase(entry.first);
      return true;
    });
  }
  bool arrived(std::uint64_t id, const Operation& operation) {
    auto& from = operation.of_a ? a : b;
    auto& target = operation.opcode == WqeOpcode::kRead ? from : peer(from);
    for (std::size_t i = 0; i < operation.bytes; ++i) {
      if (target.memory[operation.slot * kSlot + i] != value(id, i)) return false;
    }
    return true;
  }
  void check(std::uint64_t id, const Operation& operation) {
    INFO("operation " << id << ", " << operation.bytes << " bytes, of host " << (operation.of_a ? 'A' : 'B'));
    REQUIRE(arrived(id, operation));
  }
  bool is_done(std::uint64_t id) {
    collect();
    return !under_way.contains(id);
  }
  bool all_done() {
    collect();
    return under_way.empty();
  }
  /// With credits for everything: all that was posted completes right, and nothing was repaired.
  void finish() {
    root.hold(PcieWay::kToHost, none());
    root.hold(PcieWay::kToNic, none());
    CHECK(within(500'000, [&] { return all_done(); }));
    for (auto* side : {&a, &b}) {
      for (const auto which : {Counter::kSequenceRetries, Counter::kAckTimeouts, Counter::kRnrRetries,
                               Counter::kRxDuplicate, Counter::kRxPsnError, Counter::kRxOverflow,
                               Counter::kDmaReadErrors, Counter::kDmaReadTimeouts, Counter::kCqOverruns}) {
        INFO("counter " << static_cast<unsigned>(which) << " of host " << (side == &a ? 'A' : 'B'));
        CHECK(side->counter(which) == 0);
      }
    }
  }

  World& world;
  UnreliableSide a, b;
  model::RootComplex& root;
  Tap tap;
  std::uint64_t next = 0;
  std::map<std::uint64_t, Operation> under_way;
  std::map<std::uint64_t, bool> sent, received;
};

/// A thread of host A beside the test, which does `body` each time that it is asked to.
struct Helper {
  void run(Host& host, const std::function<void()>& body) {
    while (!over) {
      if (asked != done) {
        body();
        ++done;
      }
      host.device().elapse(50);
    }
  }
  void ask() { ++asked; }
  [[nodiscard]] bool ready() const { return asked == done; }
  unsigned asked = 0, done = 0;
  bool over = false;
};

struct Helpers {
  Helper reader, admin;
};

/// `body` with two helpers: one reads a register, one has the admin queue create and destroy an object.
void experiment(const std::string& name, const std::function<void(Scene&, Helpers&)>& body,
                const std::function<void(WorldOptions&)>& change = {}) {
  auto options = WorldOptions::from_environment("flow_control_" + name);
  if (change) change(options);
  INFO(name << ", seed " << options.seed);
  World& world = fresh_world(options);
  Helpers helpers;
  std::optional<Scene> scene;
  world.add_app(0, "test", [&](Host& host) {
    struct Over {
      Helpers& helpers;
      ~Over() { helpers.reader.over = helpers.admin.over = true; }
    } over{helpers};
    Endpoint endpoint_a(host);
    Endpoint endpoint_b(world.host(1));
    struct Gone {
      std::optional<Scene>& scene;
      ~Gone() { scene.reset(); }
    } gone{scene};
    scene.emplace(world, endpoint_a, endpoint_b);
    body(*scene, helpers);
    scene->finish();
    CHECK(scene->within(100'000, [&] { return helpers.reader.ready() && helpers.admin.ready(); }));
    helpers.reader.over = helpers.admin.over = true;
  });
  world.add_app(0, "reader", [&](Host& host) {
    helpers.reader.run(host, [&] {
      CHECK(hw::RegIdentity::from_word(host.device().read64(hw::reg::kIdentity)).magic == hw::kDeviceMagic);
    });
  });
  world.add_app(0, "admin",
                [&](Host& host) { helpers.admin.run(host, [&] { CHECK(scene->a.process->create_cq(16).ok()); }); });
  world.run();
}

/// An arm of the CQ of A, and what it should bring with the next entry: EQE and interrupt.
struct Event final : EventSink {
  void on_event(const hw::Eqe&) override { ++events; }
  unsigned events = 0;
};

}  // namespace

// ---- To the host ----------------------------------------------------------------------------------------------------

TEST_CASE("A3, A4 to the host: CQEs, EQEs, interrupts and payload leave while reads have no credits") {
  experiment("a3", [](Scene& scene, Helpers&) {
    auto& a = scene.a;
    auto& b = scene.b;
    auto& root = scene.root;
    auto sink = std::make_shared<Event>();
    a.process->events().subscribe(EventTable::Of::kCq, a.cq->cqn(), sink);
    for (int round = 0; round < 4; ++round) {
      // The first answers for entries of before (decisions 27).
      for (int i = 0; i < 2; ++i) {
        a.cq->arm(hw::CqArm::kAny);
        scene.settle();
        a.endpoint.take_events();
      }
      scene.settle();
      root.hold(PcieWay::kToHost, {CreditKind::kNonPosted});
      const auto reads = scene.tap.up(CreditKind::kNonPosted);
      const auto interrupts = root.statistics().interrupts;
      const auto events = sink->events;
      // A WQE that is fetched from memory, its queue pair 0: the read that waits.
      const auto waits = scene.write_fetched(a, 0);
      scene.device().elapse(2000);
      // What needs no read of A.
      std::vector<std::uint64_t> go_on;
      for (unsigned i = 1; i < kPairs; ++i) go_on.push_back(scene.write_inline(a, i));
      for (unsigned i = 1; i < kPairs; ++i) go_on.push_back(scene.write(b, i, 2000));
      CHECK(scene.within(
          kBound, [&] { return std::all_of(go_on.begin(), go_on.end(), [&](auto id) { return scene.is_done(id); }); }));
      CHECK(scene.within(kBound, [&] { return root.statistics().interrupts > interrupts; }));
      a.endpoint.take_events();
      CHECK(sink->events > events);
      CHECK_FALSE(scene.is_done(waits));
      CHECK(scene.tap.up(CreditKind::kNonPosted) <= reads + 1);
      scene.finish();
    }
  });
}

TEST_CASE("A3 to the host: payload of the peer, and CQEs of what was sent before, pass reads of payload that wait") {
  experiment(
      "a3_payload",
      [](Scene& scene, Helpers&) {
        auto& root = scene.root;
        for (int round = 0; round < 4; ++round) {
          // Their frames have left when reads have no credits any more, their ACKs have not come.
          const auto frames = scene.world.wire().statistics(0).frames;
          std::vector<std::uint64_t> before;
          for (unsigned i = 0; i < 4; ++i) before.push_back(scene.write(scene.a, i, 1000));
          REQUIRE(scene.within(kBound, [&] { return scene.world.wire().statistics(0).frames >= frames + 4; }));
          root.hold(PcieWay::kToHost, {CreditKind::kNonPosted});
          const auto reads = scene.tap.up(CreditKind::kNonPosted);
          // Payload that is not there keeps the send path.
          const auto waits = scene.write(scene.a, 7, 2000);
          std::vector<std::uint64_t> of_peer;
          for (unsigned i = 0; i < kPairs; ++i) of_peer.push_back(scene.write(scene.b, i, 2000));
          CHECK(scene.within(2 * kBound, [&] {
            return std::all_of(before.begin(), before.end(), [&](auto id) { return scene.is_done(id); });
          }));
          CHECK(scene.within(2 * kBound, [&] {
            return std::all_of(of_peer.begin(), of_peer.end(),
                               [&](auto id) { return scene.is_done(id) || scene.arrived(id, scene.under_way.at(id)); });
          }));
          CHECK_FALSE(scene.is_done(waits));
          CHECK(scene.tap.up(CreditKind::kNonPosted) <= reads + 1);
          scene.finish();
        }
      },
      [](WorldOptions& options) { options.wire.delay_ns = 4000; });
}

TEST_CASE("A3 to the host: posted requests pass reads that were about to leave when credits ended") {
  experiment("a3_traffic", [](Scene& scene, Helpers& helpers) {
    model::Random random(scene.world.options().seed, "flow_control/a3_traffic");
    for (int round = 0; round < 40; ++round) {
      std::vector<std::uint64_t> of_peer;
      const auto last = scene.tap.up(CreditKind::kNonPosted) + 1 + random.below(kPairs * kSlot / 512);
      scene.tap.on_tlp = [&](const model::TlpSeen&) {
        if (scene.tap.up(CreditKind::kNonPosted) == last) scene.root.hold(PcieWay::kToHost, {CreditKind::kNonPosted});
      };
      for (unsigned i = 0; i < kPairs; ++i) scene.write(scene.a, i, kSlot);
      REQUIRE(scene.within(kBound, [&] { return scene.root.holds_back(); }));
      scene.tap.on_tlp = {};
      for (unsigned i = 0; i < kPairs; ++i) of_peer.push_back(scene.write(scene.b, i, kSlot));
      helpers.reader.ask();
      CHECK(scene.within(kBound, [&] {
        return std::all_of(of_peer.begin(), of_peer.end(),
                           [&](auto id) { return scene.is_done(id) || scene.arrived(id, scene.under_way.at(id)); });
      }));
      CHECK(helpers.reader.ready());
      CHECK(scene.tap.up(CreditKind::kNonPosted) <= last + 1);
      scene.finish();
    }
  });
}

TEST_CASE("A3 to the host: payload of the peer is placed while a page list of the send path waits to be read") {
  experiment("a3_pages", [](Scene& scene, Helpers&) {
    constexpr std::size_t kCold = 64 << 10;
    auto& a = scene.a;
    for (int round = 0; round < 4; ++round) {
      auto* memory = static_cast<std::uint8_t*>(a.endpoint.host().memory().allocate(kCold));
      std::memset(memory, 7, kCold);
      const auto cold = must(a.process->create_mr({.address = memory, .length = kCold}));
      scene.settle();
      scene.root.hold(PcieWay::kToHost, {CreditKind::kNonPosted});
      const auto id = scene.begin(a, WqeOpcode::kWrite, 0);
      const umd::Segment from{reinterpret_cast<std::uint64_t>(memory), 1000, cold->key()};
      must(a.qps[7]->post_send({.opcode = WqeOpcode::kWrite,
                                .id = id,
                                .segments = {&from, 1},
                                .remote_address = scene.b.at(scene.under_way.at(id).slot * kSlot),
                                .remote_key = scene.b.region->key()}));
      scene.device().elapse(3000);
      std::vector<std::uint64_t> of_peer;
      for (unsigned i = 0; i < kPairs; ++i) of_peer.push_back(scene.write(scene.b, i, 2000));
      CHECK(scene.within(kBound, [&] {
        return std::all_of(of_peer.begin(), of_peer.end(), [&](auto number) {
          return scene.is_done(number) || scene.arrived(number, scene.under_way.at(number));
        });
      }));
      CHECK_FALSE(scene.is_done(id));
      scene.finish();
    }
  });
}

TEST_CASE("A3 to the host: an admin command that has been read is answered while reads have no credits") {
  experiment("a3_admin", [](Scene& scene, Helpers& helpers) {
    for (int round = 0; round < 4; ++round) {
      bool armed = true;
      // The last read of a command is known when it has been seen once: so many are let go.
      std::uint64_t reads = scene.tap.up(CreditKind::kNonPosted);
      helpers.admin.ask();
      REQUIRE(scene.within(kBound, [&] { return helpers.admin.ready(); }));
      const std::uint64_t whole = scene.tap.up(CreditKind::kNonPosted) - reads;
      REQUIRE(whole > 0);
      reads = scene.tap.up(CreditKind::kNonPosted);
      scene.tap.on_tlp = [&](const model::TlpSeen& tlp) {
        if (!armed || tlp.way != PcieWay::kToHost || tlp.kind != CreditKind::kNonPosted) return;
        if (scene.tap.up(CreditKind::kNonPosted) - reads != whole) return;
        armed = false;
        scene.root.hold(PcieWay::kToHost, {CreditKind::kNonPosted});
      };
      helpers.admin.ask();
      CHECK(scene.within(kBound, [&] { return !armed && helpers.admin.ready(); }));
      scene.tap.on_tlp = {};
      scene.finish();
    }
  });
}

TEST_CASE("B2 to the host: no read leaves behind a write that has no credits; the order is that of the table after") {
  experiment("b2", [](Scene& scene, Helpers& helpers) {
    for (int round = 0; round < 4; ++round) {
      scene.root.hold(PcieWay::kToHost, {CreditKind::kPosted});
      const auto writes = scene.tap.up(CreditKind::kPosted);
      for (unsigned i = 0; i < 4; ++i) scene.write_inline(scene.a, i);
      for (unsigned i = 0; i < 4; ++i) scene.write(scene.b, i, 500);
      scene.device().elapse(kBound);  // by now a write waits at the port
      const auto reads = scene.tap.up(CreditKind::kNonPosted);
      std::vector<CreditKind> order;
      for (unsigned i = 4; i < kPairs; ++i) scene.write(scene.a, i, 500);
      helpers.reader.ask();  // D3: a completion, which the port does not order behind what has not left
      CHECK(scene.within(2000, [&] { return helpers.reader.ready(); }));
      scene.device().elapse(kBound);
      CHECK(scene.tap.up(CreditKind::kPosted) <= writes + 1);
      CHECK(scene.tap.up(CreditKind::kNonPosted) == reads);
      scene.tap.on_tlp = [&](const model::TlpSeen& tlp) {
        if (tlp.way == PcieWay::kToHost) order.push_back(tlp.kind);
      };
      scene.root.hold(PcieWay::kToHost, none());
      scene.device().elapse(1000);
      scene.tap.on_tlp = {};
      REQUIRE_FALSE(order.empty());
      CHECK(order.front() == CreditKind::kPosted);
      scene.finish();
    }
  });
}

TEST_CASE("A2 to the host: a CQE leaves behind the payload that it is for, whatever waited for credits") {
  // Payload, then its CQE: the receiver of a Send looks as soon as the entry is there (Scene::collect).
  experiment("a2", [](Scene& scene, Helpers&) {
    model::Random random(scene.world.options().seed, "flow_control/a2");
    for (int round = 0; round < 12; ++round) {
      for (unsigned i = 0; i < kPairs; ++i) scene.send(scene.b, i, 1 + random.below(kSlot));
      for (int step = 0; step < 20; ++step) {
        scene.root.hold(PcieWay::kToHost, random.chance(0.5) ? CreditKinds{CreditKind::kPosted} : CreditKinds{});
        scene.device().elapse(50 + random.below(1500));
        scene.collect();
      }
      scene.finish();
    }
  });
}

TEST_CASE("D2 to the host: the answer that the device is off does not pass a write that had begun") {
  experiment("d2", [](Scene& scene, Helpers& helpers) {
    for (int round = 0; round < 4; ++round) {
      scene.root.hold(PcieWay::kToHost, {CreditKind::kPosted});
      std::vector<std::uint64_t> ids;
      for (unsigned i = 0; i < 4; ++i) ids.push_back(scene.write_inline(scene.a, i));
      scene.device().elapse(kBound);
      const auto writes = scene.tap.up(CreditKind::kPosted);
      scene.device().write64(hw::reg::kDeviceControl, hw::RegDeviceControl{.enable = false}.word());
      helpers.reader.ask();
      scene.device().elapse(kBound);
      CHECK_FALSE(helpers.reader.ready());
      std::vector<CreditKind> order;
      scene.tap.on_tlp = [&](const model::TlpSeen& tlp) {
        if (tlp.way == PcieWay::kToHost) order.push_back(tlp.kind);
      };
      scene.root.hold(PcieWay::kToHost, none());
      CHECK(scene.within(2000, [&] { return helpers.reader.ready(); }));
      scene.tap.on_tlp = {};
      CHECK(order == std::vector<CreditKind>{CreditKind::kPosted, CreditKind::kCompletion});
      CHECK(scene.tap.up(CreditKind::kPosted) == writes + 1);
      scene.device().write64(hw::reg::kDeviceControl, hw::RegDeviceControl{.enable = true}.word());
      scene.finish();
    }
  });
}

TEST_CASE("D3, D4 to the host: registers answer while reads have no credits") {
  experiment("d3", [](Scene& scene, Helpers& helpers) {
    for (int round = 0; round < 4; ++round) {
      scene.root.hold(PcieWay::kToHost, {CreditKind::kNonPosted});
      for (unsigned i = 0; i < kPairs; ++i) scene.write(scene.a, i, 1500);
      for (unsigned i = 0; i < kPairs; ++i) scene.read(scene.b, i, 1500);
      for (int n = 0; n < 20; ++n) {
        helpers.reader.ask();
        CHECK(scene.within(1500, [&] { return helpers.reader.ready(); }));
        scene.device().elapse(500);
      }
      CHECK_FALSE(scene.all_done());
      scene.finish();
    }
  });
}

TEST_CASE("A5, B5 to the host: all of the NIC's work goes on while its completions have no credits") {
  experiment("a5", [](Scene& scene, Helpers& helpers) {
    for (int round = 0; round < 4; ++round) {
      scene.root.hold(PcieWay::kToHost, {CreditKind::kCompletion});
      helpers.reader.ask();
      scene.device().elapse(3000);
      for (unsigned i = 0; i < kPairs; ++i) {
        scene.write(scene.a, i, 1500);
        scene.write(scene.b, i, 1500);
        scene.read(scene.a, i, 1500);
        scene.read(scene.b, i, 1500);
        scene.send(scene.a, i, 1500);
        scene.send(scene.b, i, 1500);
      }
      helpers.admin.ask();
      CHECK(scene.within(2 * kBound, [&] { return scene.all_done() && helpers.admin.ready(); }));
      CHECK_FALSE(helpers.reader.ready());
      scene.finish();
    }
  });
}

TEST_CASE("D5 to the host: completions that waited for credits come in the order of their reads, each in its parts") {
  // The root complex refuses a completion that does not continue its read.
  experiment("d5", [](Scene& scene, Helpers& helpers) {
    const std::uint64_t uar = std::uint64_t{scene.a.process->uar()} * hw::kUarPageBytes;
    model::Random random(scene.world.options().seed, "flow_control/d5");
    for (int round = 0; round < 30; ++round) {
      helpers.reader.ask();
      scene.root.hold(PcieWay::kToHost, {});
      sc_core::sc_spawn([&root = scene.root, &random] {
        for (int i = 0; i < 20; ++i) {
          root.hold(PcieWay::kToHost, random.chance(0.6) ? CreditKinds{CreditKind::kCompletion} : CreditKinds{});
          sc_core::wait(static_cast<double>(1 + random.below(100)), sc_core::SC_NS);
        }
        root.hold(PcieWay::kToHost, {});
      });
      model::HostRequest tlp;
      tlp.kind = model::TlpKind::kMemoryRead;
      tlp.address = uar + 4 * random.below(64);
      tlp.length_dw = static_cast<std::uint16_t>(2 + random.below(300));
      tlp.first_be = tlp.last_be = 0xF;
      const auto completion = scene.root.request(tlp);
      REQUIRE(completion.has_value());
      CHECK(completion->data == std::vector<std::uint8_t>(std::size_t{tlp.length_dw} * 4));
      scene.device().elapse(3000);
    }
  });
}

// ---- To the NIC -----------------------------------------------------------------------------------------------------

TEST_CASE(
    "A3, A4, D3, D4 to the NIC: doorbells and DMA completions are taken while as many host reads as there are "
    "tags wait for their completions to leave") {
  const auto kind = GENERATE(model::TlpKind::kMemoryRead, model::TlpKind::kOther);
  experiment("tags", [&](Scene& scene, Helpers&) {
    scene.world.declare(Violation::kUnexpectedCompletion);
    scene.root.hold(PcieWay::kToHost, {CreditKind::kCompletion});
    const auto before = scene.tap.down(CreditKind::kNonPosted);
    constexpr std::uint16_t kFirst = 32, kTags = 1024;  // the others are those of the model's own reads
    for (std::uint16_t tag = kFirst; tag < kTags; ++tag) {
      model::HostRequest tlp;
      tlp.kind = kind;
      tlp.address = kind == model::TlpKind::kMemoryRead ? hw::reg::kIdentity : 0;
      tlp.length_dw = 1;
      tlp.first_be = 0xF;
      tlp.tag = tag;
      scene.root.post(tlp);
    }
    CHECK(scene.within(kBound, [&] { return scene.tap.down(CreditKind::kNonPosted) == before + kTags - kFirst; }));
    const auto completions = scene.tap.up(CreditKind::kCompletion);
    for (unsigned i = 0; i < kPairs; ++i) {
      scene.write_inline(scene.a, i);
      scene.write(scene.a, i, 1500);
      scene.read(scene.a, i, 1500);
      scene.send(scene.b, i, 1500);
    }
    CHECK(scene.within(2 * kBound, [&] { return scene.all_done(); }));
    CHECK(scene.tap.up(CreditKind::kCompletion) == completions);
    scene.root.hold(PcieWay::kToHost, none());
    CHECK(scene.within(kBound, [&] { return scene.tap.up(CreditKind::kCompletion) == completions + kTags - kFirst; }));
  });
}

TEST_CASE("A3, A4, D3, D4 to the NIC: its work goes on while host reads have no credits") {
  experiment("down_np", [](Scene& scene, Helpers& helpers) {
    for (int round = 0; round < 4; ++round) {
      scene.root.hold(PcieWay::kToNic, {CreditKind::kNonPosted});
      helpers.reader.ask();
      for (unsigned i = 0; i < kPairs; ++i) {
        scene.write(scene.a, i, 1500);
        scene.read(scene.b, i, 1500);
        scene.send(scene.a, i, 1500);
      }
      CHECK(scene.within(2 * kBound, [&] { return scene.all_done(); }));
      CHECK_FALSE(helpers.reader.ready());
      scene.finish();
    }
  });
}

TEST_CASE(
    "A5, B5 to the NIC: doorbells are taken, registers answer, and what needs no read goes on while DMA "
    "completions have no credits") {
  experiment("down_cpl", [](Scene& scene, Helpers& helpers) {
    for (int round = 0; round < 4; ++round) {
      scene.root.hold(PcieWay::kToNic, {CreditKind::kCompletion});
      const auto completions = scene.tap.down(CreditKind::kCompletion);
      std::vector<std::uint64_t> go_on;
      for (unsigned i = 0; i < kPairs; ++i) go_on.push_back(scene.write_inline(scene.a, i));
      for (unsigned i = 0; i < kPairs; ++i) go_on.push_back(scene.write(scene.b, i, 1500));
      CHECK(scene.within(
          kBound, [&] { return std::all_of(go_on.begin(), go_on.end(), [&](auto id) { return scene.is_done(id); }); }));
      for (unsigned i = 0; i < kPairs; ++i) scene.read(scene.b, i, 1500);
      for (int n = 0; n < 10; ++n) {
        for (unsigned i = 0; i < kPairs; ++i) {
          if (n < 3) scene.write(scene.a, i, 1500);
        }
        helpers.reader.ask();  // behind the doorbells
        CHECK(scene.within(1500, [&] { return helpers.reader.ready(); }));
        scene.device().elapse(1000);
      }
      CHECK(scene.tap.down(CreditKind::kCompletion) == completions);
      CHECK_FALSE(scene.all_done());
      scene.finish();
    }
  });
}

TEST_CASE("A2, B2, D2 to the NIC: nothing passes a doorbell without credits, and what the NIC has begun goes on") {
  experiment("down_p", [](Scene& scene, Helpers& helpers) {
    for (int round = 0; round < 4; ++round) {
      std::vector<std::uint64_t> of_peer;
      scene.root.hold(PcieWay::kToNic, {CreditKind::kPosted});
      for (unsigned i = 0; i < kPairs; ++i) of_peer.push_back(scene.write(scene.b, i, 1500));
      CHECK(scene.within(kBound, [&] {
        return std::all_of(of_peer.begin(), of_peer.end(), [&](auto id) { return scene.is_done(id); });
      }));
      const auto taken = scene.tap.down(CreditKind::kPosted);
      const auto mine = scene.write(scene.a, 0, 1500);
      helpers.reader.ask();
      scene.device().elapse(kBound);
      CHECK_FALSE(helpers.reader.ready());
      CHECK_FALSE(scene.is_done(mine));
      CHECK(scene.tap.down(CreditKind::kPosted) == taken);
      std::vector<CreditKind> order;
      scene.tap.on_tlp = [&](const model::TlpSeen& tlp) {
        if (tlp.way == PcieWay::kToNic) order.push_back(tlp.kind);
      };
      scene.root.hold(PcieWay::kToNic, none());
      CHECK(scene.within(kBound, [&] { return helpers.reader.ready(); }));
      scene.tap.on_tlp = {};
      REQUIRE_FALSE(order.empty());
      CHECK(order.front() == CreditKind::kPosted);
      scene.finish();
    }
  });
}

// ---- Together -------------------------------------------------------------------------------------------------------

TEST_CASE("kinds without credits, alone and together, both ways, at random: nothing is lost, nothing is repaired") {
  experiment("together", [](Scene& scene, Helpers& helpers) {
    model::Random random(scene.world.options().seed, "flow_control/together");
    constexpr std::array kKinds{CreditKind::kPosted, CreditKind::kNonPosted, CreditKind::kCompletion};
    const auto draw = [&] {
      CreditKinds kinds;
      for (const auto kind : kKinds) kinds.set(kind, random.chance(0.35));
      return kinds;
    };
    for (int round = 0; round < 25; ++round) {
      for (int step = 0; step < 12; ++step) {
        const auto up = draw(), down = random.chance(0.5) ? draw() : CreditKinds{};
        scene.root.hold(PcieWay::kToHost, up);
        scene.root.hold(PcieWay::kToNic, down);
        const auto before = scene.tap.count;
        // Few enough for the receive buffer of a NIC that cannot write.
        for (int n = 0; n < 3 && scene.under_way.size() < kSlots / 2; ++n) {
          const auto pair = static_cast<unsigned>(random.below(kPairs));
          const std::size_t bytes = 1 + random.below(random.chance(0.3) ? kSlot : 300);
          auto& from = random.chance(0.5) ? scene.a : scene.b;
          switch (random.below(4)) {
            case 0: scene.write(from, pair, bytes); break;
            case 1: scene.read(from, pair, bytes); break;
            case 2:
              // A receive whose doorbell waits for credits is not there yet.
              if (&from == &scene.b && down.has(CreditKind::kPosted)) break;
              scene.send(from, pair, bytes);
              break;
            default: scene.write_inline(from, pair);
          }
        }
        if (helpers.reader.ready()) helpers.reader.ask();
        if (helpers.admin.ready() && random.chance(0.2)) helpers.admin.ask();
        scene.device().elapse(200 + random.below(4000));
        scene.collect();
        // One TLP of a kind may have begun.
        for (const auto kind : kKinds) {
          const auto index = static_cast<std::size_t>(kind);
          if (up.has(kind)) CHECK(scene.tap.count[1][index] <= before[1][index] + 1);
        }
      }
      scene.finish();
    }
  });
}

TEST_CASE("few credits that take long to come back cost time, and nothing else") {
  const bool both = GENERATE(false, true);
  experiment(
      both ? "few_all" : "few_reads",
      [](Scene& scene, Helpers& helpers) {
        for (int round = 0; round < 3; ++round) {
          for (unsigned i = 0; i < kPairs; ++i) {
            scene.write(scene.a, i, 2000);
            scene.read(scene.a, i, 2000);
            scene.send(scene.b, i, 1000);
          }
          helpers.admin.ask();
          helpers.reader.ask();
          scene.finish();
        }
      },
      [&](WorldOptions& options) {
        auto& credits = options.host.root_complex.credits;
        credits.return_ns = 300;
        credits.of(CreditKind::kNonPosted) = {1, {}};
        if (!both) return;
        credits.of(CreditKind::kPosted) = {4, 32};
        credits.of(CreditKind::kCompletion) = {1, 8};
      });
}
