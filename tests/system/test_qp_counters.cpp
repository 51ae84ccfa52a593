// Counters of a queue pair (QueryQpCounters): each is provoked, counts for the queue pair concerned, and for no other.
// RNIC_SEED=n replays a failure.
#include <map>

#include "testbench/roce_frame.hpp"
#include "tests/system/unreliable_world.hpp"

using namespace rnic;
using namespace rnic::test;
using hw::QpCounter;
using model::WireFault;

namespace {

using Counts = std::map<QpCounter, std::uint32_t>;

/// Pairs of queue pairs between two hosts, and a pair to which nothing happens.
struct Lab {
  Lab(World& of, Endpoint& end_a, Endpoint& end_b) : world(of), a(end_a), b(end_b), bystander(*this, QpType::kRc) {}

  struct Pair {
    Pair(Lab& lab, QpType type, ConnectParameters parameters = {1024}) : a(lab.a.add_qp(type)), b(lab.b.add_qp(type)) {
      parameters.first_psn = 0x700;
      testbench::connect_pair(lab.a.endpoint, a, lab.b.endpoint, b, parameters);
    }
    umd::QueuePair& a;
    umd::QueuePair& b;
  };

  void fault(std::size_t from, WireFault what, std::uint8_t opcode, std::uint64_t count = 1) {
    model::WireRule rule;
    rule.fault = what;
    rule.match.opcode = opcode;
    rule.count = count;
    world.wire().arm(from, rule);
  }
  /// What happened since the last look, and nothing else: the counters are cleared by each.
  void expect(umd::QueuePair& qp, const Counts& wanted) {
    const auto seen = must(qp.kernel_qp().counters(true));
    for (std::size_t i = 0; i < hw::kQpCounters; ++i) {
      const auto found = wanted.find(static_cast<QpCounter>(i));
      INFO("counter " << i);
      CHECK(seen.counts[i] == (found == wanted.end() ? 0 : found->second));
    }
  }
  umd::SendRequest request(WqeOpcode opcode, const umd::Segment& segment) {
    return {.opcode = opcode,
            .id = 1,
            .segments = {&segment, 1},
            .remote_address = b.at(1024),
            .remote_key = b.region->key(),
            .swap_add = 1};
  }
  CqeStatus run(Pair& pair, WqeOpcode opcode, std::size_t bytes) {
    const auto segment = a.segment(0, bytes);
    must(pair.a.post_send(request(opcode, segment)));
    umd::Completion done;
    REQUIRE(a.poll(*a.cq, done, 20'000'000));
    return done.status;
  }
  /// A frame from `from` to `to`, as their peer would send it.
  roce::RoceFields frame(Endpoint& from, Endpoint& to, std::uint32_t dest_qpn, std::uint8_t opcode) {
    return packet_between(from, to, opcode, dest_qpn, 0x700);
  }
  void inject(std::size_t from, const roce::RoceFields& fields) {
    world.wire().inject(from, roce::roce_frame(fields));
    a.endpoint.device().elapse(5'000);
  }

  World& world;
  UnreliableSide a, b;
  Pair bystander;
};

void experiment(const std::string& name, const std::function<void(Lab&)>& body) {
  auto options = WorldOptions::from_environment("qp_counters_" + name);
  INFO(name << ", seed " << options.seed);
  World& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& a, Endpoint& b) {
    Lab lab(world, a, b);
    body(lab);
    for (auto* qp : {&lab.bystander.a, &lab.bystander.b}) lab.expect(*qp, {});
  });
}

constexpr std::uint8_t kWriteMiddle = 0x07, kWriteOnly = 0x0a, kReadResponseMiddle = 0x0e, kReadResponseOnly = 0x10;

}  // namespace

TEST_CASE("what is lost, repeated or not ready counts for both ends of its connection") {
  experiment("loss", [](Lab& lab) {
    Lab::Pair pair(lab, QpType::kRc);
    lab.fault(0, WireFault::kDrop, kWriteMiddle);
    CHECK(lab.run(pair, WqeOpcode::kWrite, 3000) == CqeStatus::kSuccess);
    lab.expect(pair.a, {{QpCounter::kNaksReceived, 1}, {QpCounter::kSequenceRetries, 1}});
    lab.expect(pair.b, {{QpCounter::kPsnErrors, 1}, {QpCounter::kNaksSent, 1}});
    lab.fault(0, WireFault::kDuplicate, kWriteOnly);
    CHECK(lab.run(pair, WqeOpcode::kWrite, 10) == CqeStatus::kSuccess);
    lab.a.endpoint.device().elapse(20'000);
    lab.expect(pair.a, {});
    lab.expect(pair.b, {{QpCounter::kDuplicates, 1}});
    lab.fault(0, WireFault::kDrop, kWriteOnly);
    CHECK(lab.run(pair, WqeOpcode::kWrite, 10) == CqeStatus::kSuccess);
    lab.expect(pair.a, {{QpCounter::kAckTimeouts, 1}});
    lab.expect(pair.b, {});
    lab.fault(1, WireFault::kDrop, kReadResponseMiddle);
    CHECK(lab.run(pair, WqeOpcode::kRead, 3000) == CqeStatus::kSuccess);
    const auto after_gap = must(pair.a.kernel_qp().counters(true));
    CHECK(after_gap[QpCounter::kGaps] == 1);
    CHECK(after_gap[QpCounter::kSequenceRetries] == 1);
    lab.expect(pair.b, {{QpCounter::kDuplicates, 1}});
    lab.fault(1, WireFault::kDuplicate, kReadResponseOnly);
    CHECK(lab.run(pair, WqeOpcode::kRead, 10) == CqeStatus::kSuccess);
    lab.a.endpoint.device().elapse(20'000);
    lab.expect(pair.a, {{QpCounter::kStrayResponses, 1}});
    // RNR: as often as the receiver said so.
    const auto segment = lab.a.segment(0, 100);
    must(pair.a.post_send(lab.request(WqeOpcode::kSend, segment)));
    lab.a.endpoint.device().elapse(150'000);
    lab.b.post_receive(pair.b, 1, 0, 200);
    CHECK(lab.a.sent().status == CqeStatus::kSuccess);
    const auto b = must(pair.b.kernel_qp().counters(true));
    CHECK(b[QpCounter::kNoReceive] >= 2);
    CHECK(b[QpCounter::kRnrNaksSent] == b[QpCounter::kNoReceive]);
    lab.expect(pair.a, {{QpCounter::kRnrNaksReceived, b[QpCounter::kNoReceive]}});
    // A Write that comes before the atomic in front of it is executed waits, and nobody repeats anything (9.7.5.2.2).
    const auto word = lab.a.segment(64, 8);
    const auto atomics = must(lab.b.process->create_mr(
        {.address = lab.b.memory, .length = 4096, .local_write = true, .remote_atomic = true}));
    auto atomic = lab.request(WqeOpcode::kFetchAdd, word);
    atomic.remote_key = atomics->key();
    must(pair.a.post_send(atomic));
    CHECK(lab.run(pair, WqeOpcode::kWrite, 10) == CqeStatus::kSuccess);  // the atomic's completion
    CHECK(lab.a.sent().status == CqeStatus::kSuccess);
    lab.expect(pair.b, {{QpCounter::kHeld, 1}});
    lab.expect(pair.a, {});
  });
}

TEST_CASE("what a stranger sends counts for the queue pair that it names (9.6.1)") {
  experiment("strangers", [](Lab& lab) {
    Lab::Pair pair(lab, QpType::kRc);
    auto& datagrams = lab.b.add_datagram_qp(0x1234);
    auto& from = lab.a.endpoint;
    auto& to = lab.b.endpoint;
    auto good = lab.frame(from, to, pair.b.qpn(), kWriteOnly);
    good.ext = roce::reth(lab.b.at(0), lab.b.region->key(), 0);
    auto f = good;
    f.source_ip[15] ^= 1;
    lab.inject(0, f);
    f = good;
    f.pkey = 0x1234;
    lab.inject(0, f);
    lab.expect(pair.b, {{QpCounter::kBadPeer, 2}});
    f = good;
    f.opcode = 0x2a;  // of UC
    lab.inject(0, f);
    lab.expect(pair.b, {{QpCounter::kBadState, 1}});
    f = good;
    f.dest_qpn ^= 0x100;  // nobody's: counts for nobody
    lab.inject(0, f);
    lab.expect(pair.b, {});
    auto d = lab.frame(from, to, datagrams.qpn(), 0x64);
    d.ext = {0, 0, 0x12, 0x35, 0, 0, 0, 9};
    lab.inject(0, d);
    lab.expect(datagrams, {{QpCounter::kBadQkey, 1}});
    d.ext[3] = 0x34;
    lab.inject(0, d);
    lab.expect(datagrams, {{QpCounter::kNoReceive, 1}});
    // Right, but for its length: that is the end of the queue pair, and what follows finds it so.
    f = good;
    f.ext = roce::reth(lab.b.at(0), lab.b.region->key(), 5);
    lab.inject(0, f);
    lab.inject(0, good);
    lab.expect(pair.b, {{QpCounter::kInvalidRequests, 1}, {QpCounter::kNaksSent, 1}, {QpCounter::kBadState, 1}});
    lab.expect(pair.a, {{QpCounter::kStrayResponses, 1}});  // it had sent nothing
  });
}

TEST_CASE("faults count at the end where they are, the answer at the other") {
  experiment("faults", [](Lab& lab) {
    Lab::Pair access(lab, QpType::kRc);
    auto segment = lab.a.segment(0, 100);
    auto request = lab.request(WqeOpcode::kWrite, segment);
    request.remote_key ^= 1;
    must(access.a.post_send(request));
    CHECK(lab.a.sent().status == CqeStatus::kRemAccessErr);
    lab.expect(access.b, {{QpCounter::kPlaceFaults, 1}, {QpCounter::kNaksSent, 1}});
    lab.expect(access.a, {{QpCounter::kNaksReceived, 1}});

    ConnectParameters closed{1024};
    closed.remote_write = false;
    Lab::Pair forbidden(lab, QpType::kRc, closed);
    CHECK(lab.run(forbidden, WqeOpcode::kWrite, 10) == CqeStatus::kRemInvReqErr);
    lab.expect(forbidden.b, {{QpCounter::kForbidden, 1}, {QpCounter::kNaksSent, 1}});

    Lab::Pair local(lab, QpType::kRc);
    segment.key ^= 1;
    must(local.a.post_send(lab.request(WqeOpcode::kWrite, segment)));
    CHECK(lab.a.sent().status == CqeStatus::kLocProtErr);
    lab.expect(local.a, {{QpCounter::kSendFaults, 1}});
    lab.expect(local.b, {});

    Lab::Pair liar(lab, QpType::kRc);
    lab.fault(1, WireFault::kDrop, kReadResponseOnly);
    const auto place = lab.a.segment(0, 100);
    must(liar.a.post_send(lab.request(WqeOpcode::kRead, place)));
    lab.a.endpoint.device().elapse(5'000);
    auto lie = lab.frame(lab.b.endpoint, lab.a.endpoint, liar.a.qpn(), kReadResponseOnly);
    lie.ext = roce::aeth(0x1f, 1);
    lie.payload.resize(50);
    lab.inject(1, lie);
    CHECK(lab.a.sent().status == CqeStatus::kBadRespErr);
    lab.expect(liar.a, {{QpCounter::kBadResponses, 1}});

    ConnectParameters hasty{1024};
    hasty.retry_count = 1;
    hasty.ack_timeout = 3;
    Lab::Pair dead(lab, QpType::kRc, hasty);
    lab.fault(0, WireFault::kDrop, kWriteOnly, 2);
    CHECK(lab.run(dead, WqeOpcode::kWrite, 10) == CqeStatus::kRetryExcErr);
    lab.expect(dead.a, {{QpCounter::kAckTimeouts, 1}, {QpCounter::kRetriesExhausted, 1}});

    Lab::Pair broken(lab, QpType::kUc);
    lab.fault(0, WireFault::kDrop, 0x27);  // Middle of a UC Write
    CHECK(lab.run(broken, WqeOpcode::kWrite, 3000) == CqeStatus::kSuccess);
    lab.a.endpoint.device().elapse(5'000);
    lab.expect(broken.b, {{QpCounter::kBrokenMessages, 1}});
  });
}

TEST_CASE("the counters stay through a reset, and begin at zero with a new queue pair") {
  experiment("life", [](Lab& lab) {
    auto& qp = lab.b.add_datagram_qp(0x1234);
    auto d = lab.frame(lab.a.endpoint, lab.b.endpoint, qp.qpn(), 0x64);
    d.ext = {0, 0, 0x12, 0x34, 0, 0, 0, 9};
    for (int i = 0; i < 3; ++i) lab.inject(0, d);
    const auto count = [&](umd::QueuePair& of) { return must(of.kernel_qp().counters())[QpCounter::kNoReceive]; };
    CHECK(count(qp) == 3);
    CHECK(count(qp) == 3);  // a look changes nothing
    must(qp.kernel_qp().to_reset());
    CHECK(count(qp) == 3);
    // With all queue pairs made, every number is used again.
    const auto index = qp.qpn() & 0xFF;
    lab.b.qps.pop_back();
    bool met = false;
    for (int i = 0; i < 254 && !met; ++i) {
      auto& next = lab.b.add_qp(QpType::kUd);
      met = (next.qpn() & 0xFF) == index;
      if (met) lab.expect(next, {});
    }
    CHECK(met);
  });
}
