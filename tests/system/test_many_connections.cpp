// Many connections in a row while the wire loses one of ten messages of the connection manager, and nothing else: every
// one ends as it should, and nothing is left of any (docs/connection_manager.md, What holds; InfiniBand specification
// volume 1, 12.9). RNIC_CONNECTIONS=number: so many instead of some hundreds;
// RNIC_NIC=model: on the reference NIC.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/bth.hpp"
#include "model/random.hpp"
#include "tests/system/connection_world.hpp"

using namespace rnic;
using namespace rnic::test;

namespace {

constexpr std::uint16_t kReasonNoListener = 8, kReasonConsumer = 28;
constexpr std::uint64_t kShortestLookNs = 20'000, kLongestLookNs = 20'000'000;
/// The longest that a round may take: sixteen times no answer to each of three messages.
constexpr std::uint64_t kRoundNs = 30'000'000'000;
constexpr std::uint8_t kRefusal[] = {'n', 'o'};
constexpr double kLoss = 0.1;
constexpr unsigned kEnough = 300;  ///< Rounds in which everything that is drawn comes up

/// How a round goes.
enum class Way { kWhole, kServerRefuses, kServerLeaves, kNobodyListens, kClientLeaves };
enum class Ending { kByClient, kByServer, kByBoth };

struct Plan {
  Way way{};
  Ending ending{};
  bool ipv6{};
};

Plan draw(model::Random& random) {
  const auto percent = random.below(100);
  const Way way = percent < 76   ? Way::kWhole
                  : percent < 86 ? Way::kServerRefuses
                  : percent < 90 ? Way::kServerLeaves
                  : percent < 94 ? Way::kNobodyListens
                                 : Way::kClientLeaves;
  return {way, static_cast<Ending>(random.below(3)), random.below(2) == 1};
}

/// One connection from its making to its end, or the attempt. The server is asked once, whatever is lost.
class Round {
 public:
  Round(Process& client, Process& server, calls::Handle listener, const Plan& plan)
      : client_(client), server_(server), listener_(listener), plan_(plan) {}

  /// Returns what the client was told last.
  ConnectionEvent run() {
    qp_ = client_.make_qp();
    from_ = client_.endpoint();
    const std::uint16_t port = plan_.way == Way::kNobodyListens ? kPort + 1 : kPort;
    client_.resolve(from_, server_, plan_.ipv6, port);
    client_.connect(from_, *qp_, 0x111111);
    if (plan_.way == Way::kClientLeaves) {
      // The request is on its way, or has come.
      client_.host.device().elapse(kShortestLookNs);
      client_.end(from_);
      client_over_ = true;
    }
    follow();
    if (plan_.way != Way::kClientLeaves) client_.end(from_);
    for (const auto& side : sides_) server_.end(side.first);
    return told_;
  }

 private:
  struct Side {
    std::shared_ptr<umd::QueuePair> qp;
    bool over{};
  };

  void follow() {
    Device& device = client_.host.device();
    const std::uint64_t end = device.now_ns() + kRoundNs;
    std::uint64_t look = kShortestLookNs, quiet = 0;
    // A client that has gone leaves a request behind, or none: the wire is empty when it was quiet for so long.
    while (!over() || (plan_.way == Way::kClientLeaves && quiet < kShortestLookNs)) {
      REQUIRE(device.now_ns() < end);
      bool heard = false;
      while (const auto event = client_.poll()) heard = take_of_client(*event) || heard;
      while (const auto event = server_.poll()) heard = take_of_server(*event) || heard;
      look = heard ? kShortestLookNs : std::min(2 * look, kLongestLookNs);
      quiet = heard ? 0 : quiet + look;
      device.elapse(look);
    }
  }
  [[nodiscard]] bool over() const {
    return client_over_ && std::all_of(sides_.begin(), sides_.end(), [](const auto& side) { return side.second.over; });
  }
  void disconnect(Process& process, calls::Handle endpoint) {
    must(process.process->call(calls::Disconnect{.endpoint = endpoint}));
  }
  bool take_of_client(const Process::Heard& heard) {
    const auto type = static_cast<ConnectionEvent>(heard.second.type);
    if (type == ConnectionEvent::kNone) return false;
    REQUIRE(heard.first == from_);
    if (type == ConnectionEvent::kTimeWaitExit) return true;
    told_ = type;
    if (type == ConnectionEvent::kConnectResponse) {
      client_.make_ready(from_, *qp_, 0x111111);
      must(client_.process->call(calls::Establish{.endpoint = from_}));
      if (plan_.ending != Ending::kByServer) disconnect(client_, from_);
      return true;
    }
    if (type == ConnectionEvent::kRejected) {
      CHECK(heard.second.reason == (plan_.way == Way::kNobodyListens ? kReasonNoListener : kReasonConsumer));
      if (plan_.way == Way::kServerRefuses) CHECK(std::equal(kRefusal, kRefusal + 2, heard.second.data.begin()));
    } else {
      REQUIRE(type == ConnectionEvent::kDisconnected);
    }
    client_over_ = true;
    return true;
  }
  bool take_of_server(const Process::Heard& heard) {
    const auto type = static_cast<ConnectionEvent>(heard.second.type);
    if (type == ConnectionEvent::kNone) return false;
    if (heard.first == listener_) {
      REQUIRE(type == ConnectionEvent::kConnectRequest);
      REQUIRE_FALSE(std::exchange(asked_, true));
      answer(heard.second.incoming);
      return true;
    }
    const auto found = sides_.find(heard.first);
    REQUIRE(found != sides_.end());
    switch (type) {
      case ConnectionEvent::kEstablished:
        if (plan_.ending != Ending::kByClient) disconnect(server_, heard.first);
        break;
      case ConnectionEvent::kDisconnected:
      case ConnectionEvent::kRejected: found->second.over = true; break;
      default: REQUIRE(type == ConnectionEvent::kTimeWaitExit);
    }
    return true;
  }
  void answer(calls::Handle incoming) {
    Side side;
    switch (plan_.way) {
      case Way::kServerRefuses: {
        calls::Reject no{.endpoint = incoming, .data_length = sizeof kRefusal};
        std::copy(std::begin(kRefusal), std::end(kRefusal), no.data.begin());
        must(server_.process->call(no));
        side.over = true;
        break;
      }
      case Way::kServerLeaves: server_.end(incoming); return;
      default:
        side.qp = server_.make_qp();
        server_.make_ready(incoming, *side.qp, 0x222222);
        // Who has gone may have said so already.
        const auto accepted =
            server_.process->call(calls::Accept{.terms = Process::terms(*side.qp, 0x222222), .endpoint = incoming});
        side.over = !accepted;
        if (plan_.way == Way::kWhole) must(accepted ? Result<void>() : accepted.error());
    }
    sides_.emplace(incoming, std::move(side));
  }

  Process& client_;
  Process& server_;
  const calls::Handle listener_;
  const Plan plan_;
  std::shared_ptr<umd::QueuePair> qp_;
  calls::Handle from_{};
  std::map<calls::Handle, Side> sides_;
  bool client_over_ = false;
  bool asked_ = false;
  ConnectionEvent told_ = ConnectionEvent::kNone;
};

/// What a host has given out.
struct Held {
  kmd::KernelDevice::Held device;
  cm::Manager::Held connections;
  std::size_t pages{};  ///< Of memory that the device reaches
  bool operator==(const Held&) const = default;

  static Held of(Endpoint& host) {
    return {host.kernel().held(), host.kernel().connections().held(), host.host().iommu().mapped_pages()};
  }
};

unsigned wanted() {
  const char* const text = std::getenv("RNIC_CONNECTIONS");
  return text == nullptr ? kEnough : static_cast<unsigned>(std::stoul(text));
}

}  // namespace

TEST_CASE("one message of ten lost: every connection ends as it should, and nothing is left of any") {
  auto options = WorldOptions::from_environment("many_connections");
  options.hang_ns = kRoundNs;
  model::WireRule lose{.fault = model::WireFault::kDrop, .match = {.dest_qpn = 1}, .count = model::WireRule::kAll};
  lose.probability = kLoss;
  for (auto& direction : options.wire.faults) direction.rules = {lose};
  const unsigned rounds = wanted();
  model::Random random(options.seed, "rounds");
  std::uint64_t messages = 0, lost = 0;
  const auto counts = [&](const model::FrameRecord& frame) {
    const auto packet = model::find_roce_packet(frame.bytes);
    if (!packet || packet->dest_qpn != 1) {
      CHECK(frame.faults == 0);
      return;
    }
    ++messages;
    lost += frame.faults != 0;
  };
  const auto body = [&](Endpoint& host_a, Endpoint& host_b) {
    Process a(host_a), b(host_b);
    const calls::Handle listeners[] = {a.listener(), b.listener()};
    const auto run_some = [&](unsigned count) {
      std::map<Way, unsigned> seen;
      for (unsigned i = 0; i < count; ++i) {
        const Plan plan = draw(random);
        const bool to_b = random.below(2) == 1;
        INFO("round " << i << ", way " << static_cast<int>(plan.way) << ", ending " << static_cast<int>(plan.ending)
                      << (plan.ipv6 ? ", IPv6" : ", IPv4") << (to_b ? ", to B" : ", to A"));
        const auto told = Round(to_b ? a : b, to_b ? b : a, listeners[to_b], plan).run();
        const auto due = plan.way == Way::kWhole          ? ConnectionEvent::kDisconnected
                         : plan.way == Way::kClientLeaves ? ConnectionEvent::kNone
                                                          : ConnectionEvent::kRejected;
        CHECK(told == due);
        ++seen[plan.way];
      }
      host_a.device().elapse(kRoundNs);  // what was given up ends, and TimeWait
      return seen;
    };
    run_some(30);
    const Held before[] = {Held::of(host_a), Held::of(host_b)};
    const auto seen = run_some(rounds);
    if (rounds >= kEnough) CHECK(seen.size() == 5);
    CHECK(Held::of(host_a) == before[0]);
    CHECK(Held::of(host_b) == before[1]);
    for (auto* const host : {&host_a, &host_b}) {
      const auto counters = host->kernel().connections().counters();
      CHECK(counters.malformed == 0);
      CHECK(counters.no_memory == 0);
      if (rounds >= kEnough) CHECK(counters.repeated > 0);
    }
  };
  World& world = fresh_world(options);
  world.observe_frames(counts);
  with_management(world, body, 40'000'000'000ULL * (rounds + 100));
  world.observe_frames({});
  const double share = static_cast<double>(lost) / static_cast<double>(messages);
  std::printf("%u rounds, %llu messages, %.1f %% of them lost, %.0f s of simulated time\n", rounds,
              static_cast<unsigned long long>(messages), share * 100, static_cast<double>(world.now_ns()) * 1e-9);
  // Five standard deviations.
  const double spread = 5 * std::sqrt(kLoss * (1 - kLoss) / static_cast<double>(messages));
  CHECK(share > kLoss - spread);
  CHECK(share < kLoss + spread);
}
