// The ends of what the device has: queues of one entry and of 32 Ki, every event queue with its MSI-X vector, one
// completion queue for many queue pairs, and the order of a flush (InfiniBand specification volume
// 1, 10.2.6, 10.3.1, 10.8.3, 11.4.2; decisions 1, 26, 29). RNIC_SEED=n replays a failure.
#include <map>

#include "driver/umd/shared_receive_queue.hpp"
#include "tests/system/unreliable_world.hpp"

using namespace rnic;
using namespace rnic::test;
using umd::Completion;
using umd::SendRequest;

namespace {

/// A completion queue with exactly so many entries, a power of two; CompletionQueue::create grants more than it is
/// asked for.
std::shared_ptr<umd::CompletionQueue> exact_cq(UnreliableSide& side, std::uint32_t entries) {
  auto kernel_cq = must(side.process->create_cq(entries));
  auto cq = std::make_shared<umd::CompletionQueue>(side.process, std::move(kernel_cq));
  REQUIRE(cq->depth() == entries);
  return cq;
}

struct Queues {
  std::shared_ptr<umd::CompletionQueue> send_cq, receive_cq;
  std::uint32_t send_depth = 4, receive_depth = 4;
  std::shared_ptr<umd::SharedReceiveQueue> shared{};
};
std::shared_ptr<umd::QueuePair> make_qp(UnreliableSide& side, const Queues& queues) {
  return must(umd::QueuePair::create_idle(side.process, {.send_cq = queues.send_cq,
                                                         .receive_cq = queues.receive_cq,
                                                         .shared_receives = queues.shared,
                                                         .capacity = {.send_depth = queues.send_depth,
                                                                      .receive_depth = queues.receive_depth,
                                                                      .send_segments = 1,
                                                                      .receive_segments = 1,
                                                                      .inline_bytes = 16}}));
}
/// Numbers that come with an inline message.
umd::Segment inline_words(const std::uint32_t (&words)[2]) {
  return {reinterpret_cast<std::uint64_t>(words), sizeof words, 0};
}

void experiment(const std::string& name, const std::function<void(Endpoint&, Endpoint&)>& body,
                std::uint64_t limit_ns = 1'000'000'000) {
  auto options = WorldOptions::from_environment("extremes_" + name);
  INFO(name << ", seed " << options.seed);
  with_endpoints(fresh_world(options), body, limit_ns);
}

}  // namespace

TEST_CASE("queues of one entry: send, receive, shared receive and completion queues, round and round (decisions 29)") {
  experiment("one", [](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UnreliableSide a(endpoint_a), b(endpoint_b);
    const auto srq = must(umd::SharedReceiveQueue::create(b.process, 1, 1));
    const Queues at_a{exact_cq(a, 1), exact_cq(a, 1), 1, 1};
    const Queues own{exact_cq(b, 1), exact_cq(b, 1), 1, 1}, shared{own.send_cq, exact_cq(b, 1), 1, 1, srq};
    for (const auto* at_b : {&own, &shared}) {
      const auto from = make_qp(a, at_a), to = make_qp(b, *at_b);
      testbench::connect_pair(endpoint_a, *from, endpoint_b, *to, {});
      const auto receive = [&](std::uint64_t id) {
        const auto place = b.segment(64 * (id % 8), 8);
        const umd::ReceiveRequest request{.id = id, .segments = {&place, 1}};
        return at_b->shared ? srq->post(request) : to->post_receive(request);
      };
      for (std::uint32_t i = 0; i < 70; ++i) {
        must(receive(i));
        CHECK(receive(999).error() == Error::kQueueFull);
        const std::uint32_t words[] = {i, ~i};
        const auto payload = inline_words(words);
        SendRequest request{.opcode = WqeOpcode::kSend, .id = i, .segments = {&payload, 1}, .inline_data = true};
        must(from->post_send(request));
        if (i == 0) CHECK(from->post_send(request).error() == Error::kQueueFull);
        const auto sent = a.take(*at_a.send_cq), got = b.take(*at_b->receive_cq);
        REQUIRE((sent.id == i && sent.status == CqeStatus::kSuccess));
        REQUIRE((got.id == i && got.status == CqeStatus::kSuccess && got.byte_count == 8));
        REQUIRE(std::memcmp(b.memory + 64 * (i % 8), words, 8) == 0);
      }
    }
    CHECK(a.counter(Counter::kCqOverruns) + b.counter(Counter::kCqOverruns) == 0);
  });
}

// What 32 Ki entries cost in cycles decides how they are used here: a flush is cheap, and so are messages of eight
// queue pairs side by side.
TEST_CASE(
    "send and receive queues of 32 Ki: filled to the last entry, flushed in order, and on from there (decisions 29)") {
  experiment("most", [](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    constexpr std::uint32_t kDepth = 1u << hw::kMaxLogQueueDepth, kQkey = 0x77, kDatagrams = 100;
    UnreliableSide a(endpoint_a), b(endpoint_b);
    // Completion queues that are exactly full at the end.
    const auto send_cq = exact_cq(a, kDepth), receive_cq = exact_cq(a, kDepth);
    const auto qp = must(umd::QueuePair::create_idle(a.process, {.send_cq = send_cq,
                                                                 .receive_cq = receive_cq,
                                                                 .type = QpType::kUd,
                                                                 .capacity = {.send_depth = kDepth,
                                                                              .receive_depth = kDepth,
                                                                              .send_segments = 1,
                                                                              .receive_segments = 1,
                                                                              .inline_bytes = 0}}));
    must(qp->connect(testbench::datagram_attributes(endpoint_a, kQkey)));
    auto& peer = b.add_datagram_qp(kQkey);
    const auto to_b = umd::AddressHandle::create(testbench::address_of(endpoint_b, false)).take(),
               to_a = umd::AddressHandle::create(testbench::address_of(endpoint_a, false)).take();
    const auto datagram = [](const umd::AddressHandle& to, std::uint32_t qpn, const umd::Segment& segment,
                             std::uint64_t id) {
      return SendRequest{.opcode = WqeOpcode::kSend,
                         .id = id,
                         .segments = {&segment, 1},
                         .address = &to,
                         .dest_qpn = qpn,
                         .qkey = kQkey,
                         .defer = true};
    };
    std::vector<Completion> batch(256);
    /// The completions with numbers from `first` up to `last`.
    const auto take_all = [&](umd::CompletionQueue& cq, std::uint32_t first, std::uint32_t last, CqeStatus status) {
      for (int idle = 0; first < last;) {
        REQUIRE(++idle < 1000);
        const auto got = cq.poll(std::span(batch).first(std::min<std::size_t>(batch.size(), last - first)));
        for (std::size_t k = 0; k < got; ++k, ++first) REQUIRE((batch[k].id == first && batch[k].status == status));
        if (got != 0)
          idle = 0;
        else
          endpoint_a.device().elapse(50'000);
      }
    };
    // The first request has a wrong key: the others are flushed behind it (SQE), and the queue goes on where it stands.
    auto segment = a.segment(0, 16);
    for (std::uint32_t i = 0; i < kDepth; ++i) {
      segment.key = a.region->key() ^ (i == 0 ? 1 : 0);
      must(qp->post_send(datagram(to_b, peer.qpn(), segment, i)));
    }
    CHECK(qp->post_send(datagram(to_b, peer.qpn(), segment, 0)).error() == Error::kQueueFull);
    qp->ring_deferred();
    take_all(*send_cq, 0, 1, CqeStatus::kLocProtErr);
    take_all(*send_cq, 1, kDepth, CqeStatus::kWrFlushErr);
    must(qp->resume());
    segment.key = a.region->key();
    for (std::uint32_t i = 0; i < kDatagrams; ++i) b.post_receive(peer, i, 0, 100);
    for (std::uint32_t i = 0; i < kDatagrams; ++i) must(qp->post_send(datagram(to_b, peer.qpn(), segment, kDepth + i)));
    qp->ring_deferred();
    take_all(*send_cq, kDepth, kDepth + kDatagrams, CqeStatus::kSuccess);
    for (std::uint32_t i = 0; i < kDatagrams; ++i) {
      const auto got = b.received();
      REQUIRE((got.id == i && got.status == CqeStatus::kSuccess));
    }
    CHECK(must(qp->kernel_qp().query()).sq_retired == kDepth + kDatagrams);
    // Receives: some are used, the rest is flushed behind them.
    const auto place = a.segment(4096, 100);
    const umd::Segment* receive = &place;
    for (std::uint32_t i = 0; i < kDepth; ++i)
      must(qp->post_receive({.id = i, .segments = {receive, 1}, .defer = true}));
    CHECK(qp->post_receive({.id = 0, .segments = {receive, 1}}).error() == Error::kQueueFull);
    qp->ring_deferred();
    const auto word = b.segment(0, 8);
    for (std::uint32_t i = 0; i < 50; ++i) must(peer.post_send(datagram(to_a, qp->qpn(), word, i)));
    peer.ring_deferred();
    take_all(*receive_cq, 0, 50, CqeStatus::kSuccess);
    must(qp->flush());
    endpoint_a.device().elapse(2'000'000);
    take_all(*receive_cq, 50, kDepth, CqeStatus::kWrFlushErr);
    CHECK(a.counter(Counter::kCqOverruns) == 0);
  });
}

TEST_CASE(
    "a shared receive queue of 32 Ki: filled to the last entry, taken by eight queue pairs beyond the end of the ring "
    "(10.2.9)") {
  experiment("most_shared", [](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    constexpr std::uint32_t kDepth = 1u << hw::kMaxLogQueueDepth, kQps = 8, kEach = kDepth / kQps;
    UnreliableSide a(endpoint_a), b(endpoint_b);
    const auto srq = must(umd::SharedReceiveQueue::create(b.process, kDepth, 1));
    const auto receive_cq = exact_cq(b, kDepth);
    std::vector<std::shared_ptr<umd::QueuePair>> from, to;
    for (std::uint32_t q = 0; q < kQps; ++q) {
      from.push_back(make_qp(a, {a.cq, a.receive_cq, kEach, 4}));
      to.push_back(make_qp(b, {b.cq, receive_cq, 4, 4, srq}));
      testbench::connect_pair(endpoint_a, *from[q], endpoint_b, *to[q], {});
    }
    std::uint32_t posted = 0, taken = 0;
    std::vector<Completion> batch(256);
    for (const std::uint32_t each : {kEach, 16u}) {
      for (std::uint32_t i = 0; i < each * kQps; ++i, ++posted) must(srq->post({.id = posted, .defer = true}));
      if (each == kEach) CHECK(srq->post({.id = 0}).error() == Error::kQueueFull);
      srq->ring_deferred();
      // The last of each says that all are done.
      for (const auto& qp : from) {
        for (std::uint32_t i = 0; i < each; ++i)
          must(qp->post_send({.opcode = WqeOpcode::kSend, .id = i, .silent = i + 1 != each, .defer = true}));
      }
      for (const auto& qp : from) qp->ring_deferred();
      for (std::uint32_t q = 0; q < kQps; ++q) {
        Completion done;
        REQUIRE(a.poll(*a.cq, done, 100'000'000));
        REQUIRE((done.id == each - 1 && done.status == CqeStatus::kSuccess));
      }
      endpoint_a.device().elapse(10'000);
      CHECK(must(srq->kernel_srq().query()).head == static_cast<std::uint16_t>(posted));
      // Each exactly once: taken in order, and none of these messages has more than one packet.
      while (taken < posted) {
        const auto got = receive_cq->poll(batch);
        REQUIRE(got != 0);
        for (std::size_t k = 0; k < got; ++k, ++taken)
          REQUIRE((batch[k].id == taken && batch[k].status == CqeStatus::kSuccess && batch[k].byte_count == 0));
      }
    }
    CHECK(b.counter(Counter::kCqOverruns) == 0);
  });
}

TEST_CASE("every event queue signals its own MSI-X vector, and no other (11.4.2.2)") {
  auto options = WorldOptions::from_environment("extremes_vectors");
  World& world = fresh_world(options);
  world.add_app(0, "test", [&](Host& host) {
    Endpoint endpoint_a(host, {.event_queues = hw::kMsixVectors}), endpoint_b(world.host(1));
    UnreliableSide a(endpoint_a), b(endpoint_b);
    auto& interrupts = host.interrupts();
    // Completion queues are spread over the event queues in turn; a first few were made for `a`.
    std::vector<std::shared_ptr<umd::CompletionQueue>> cqs;
    std::vector<std::shared_ptr<umd::QueuePair>> from, to;
    for (std::uint32_t i = 0; i < hw::kMsixVectors; ++i) {
      cqs.push_back(must(umd::CompletionQueue::create(a.process, 16)));
      from.push_back(make_qp(a, {cqs[i], cqs[i]}));
      to.push_back(make_qp(b, {b.cq, b.receive_cq}));
      testbench::connect_pair(endpoint_a, *from[i], endpoint_b, *to[i], {});
    }
    const auto counts = [&] {
      std::vector<std::uint64_t> all;
      for (std::uint32_t v = 0; v < hw::kMsixVectors; ++v) all.push_back(interrupts.count(v));
      return all;
    };
    std::map<std::uint32_t, std::uint32_t> vector_of;
    const auto write = [&](std::uint32_t i) { must(from[i]->post_send({.opcode = WqeOpcode::kWrite, .id = i})); };
    for (int lap = 0; lap < 2; ++lap) {
      for (std::uint32_t i = 0; i < cqs.size(); ++i) {
        const auto before = counts();
        cqs[i]->arm(hw::CqArm::kAny);
        write(i);
        REQUIRE(a.take(*cqs[i]).status == CqeStatus::kSuccess);
        endpoint_a.device().elapse(5'000);
        CHECK(endpoint_a.take_events() == 1);
        const auto after = counts();
        std::vector<std::uint32_t> fired;
        for (std::uint32_t v = 0; v < after.size(); ++v) {
          for (auto n = before[v]; n < after[v]; ++n) fired.push_back(v);
        }
        REQUIRE(fired.size() == 1);
        if (lap == 0) vector_of[i] = fired[0];
        CHECK(vector_of[i] == fired[0]);
      }
      // Each has another.
      std::map<std::uint32_t, int> used;
      for (const auto& [cq, vector] : vector_of) ++used[vector];
      CHECK(used.size() == hw::kMsixVectors);
    }
    // All at once: one event of each.
    const auto before = counts();
    for (const auto& cq : cqs) cq->arm(hw::CqArm::kAny);
    for (std::uint32_t i = 0; i < cqs.size(); ++i) write(i);
    for (auto& cq : cqs) CHECK(a.take(*cq).status == CqeStatus::kSuccess);
    endpoint_a.device().elapse(20'000);
    CHECK(endpoint_a.take_events() == hw::kMsixVectors);
    const auto after = counts();
    for (std::uint32_t v = 0; v < hw::kMsixVectors; ++v) CHECK(after[v] == before[v] + 1);
    CHECK(interrupts.spurious() == 0);
  });
  world.run();
}

TEST_CASE(
    "one completion queue for both queues of 64 queue pairs: nothing is lost, each queue in its order (10.8.5, "
    "decisions 1)") {
  experiment("shared_cq", [](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    constexpr std::uint32_t kQps = 64, kMessages = 12, kWindow = 4;
    UnreliableSide a(endpoint_a), b(endpoint_b);
    UnreliableSide* sides[] = {&a, &b};
    std::shared_ptr<umd::CompletionQueue> cqs[2];
    std::vector<std::shared_ptr<umd::QueuePair>> qps[2];
    std::map<std::uint32_t, std::uint32_t> number[2];
    // It has room for what can be outstanding, to the entry.
    for (std::size_t s = 0; s < 2; ++s) cqs[s] = exact_cq(*sides[s], 2 * kQps * kWindow);
    for (std::uint32_t q = 0; q < kQps; ++q) {
      for (std::size_t s = 0; s < 2; ++s) {
        qps[s].push_back(make_qp(*sides[s], {cqs[s], cqs[s], kWindow, kWindow}));
        number[s][qps[s][q]->qpn()] = q;
      }
      testbench::connect_pair(endpoint_a, *qps[0][q], endpoint_b, *qps[1][q], {});
    }
    struct Progress {
      std::uint32_t received_posted = 0, sent_posted = 0, sent = 0, received = 0;
    };
    std::vector<Progress> at[2] = {std::vector<Progress>(kQps), std::vector<Progress>(kQps)};
    const auto slot = [](std::uint32_t q, std::uint32_t i) { return (q * kWindow + i % kWindow) * 16; };
    const auto post_receive = [&](std::size_t s, std::uint32_t q) {
      auto& i = at[s][q].received_posted;
      sides[s]->post_receive(*qps[s][q], i, slot(q, i), 8);
      ++i;
    };
    const auto post_send = [&](std::size_t s, std::uint32_t q) {
      auto& i = at[s][q].sent_posted;
      if (i == kMessages) return;
      const std::uint32_t words[] = {q, i};
      const auto payload = inline_words(words);
      must(qps[s][q]->post_send({.opcode = WqeOpcode::kSend, .id = i, .segments = {&payload, 1}, .inline_data = true}));
      ++i;
    };
    for (std::size_t s = 0; s < 2; ++s) {
      for (std::uint32_t q = 0; q < kQps; ++q) {
        for (std::uint32_t i = 0; i < kWindow; ++i) post_receive(s, q);
      }
    }
    for (std::uint32_t q = 0; q < kQps; ++q) {
      for (std::uint32_t i = 0; i < kWindow; ++i) post_send(0, q), post_send(1, q);
    }
    std::uint32_t left = 2 * 2 * kQps * kMessages;
    std::vector<Completion> batch(64);
    for (int idle = 0; left != 0;) {
      REQUIRE(++idle < 1000);
      for (std::size_t s = 0; s < 2; ++s) {
        const auto got = cqs[s]->poll(batch);
        if (got != 0) idle = 0;
        for (std::size_t k = 0; k < got; ++k, --left) {
          const auto& c = batch[k];
          const auto q = number[s].at(c.qpn);
          REQUIRE(c.status == CqeStatus::kSuccess);
          if (c.kind == umd::RequestKind::kReceive) {
            REQUIRE(c.id == at[s][q].received++);
            const std::uint32_t words[] = {q, static_cast<std::uint32_t>(c.id)};
            REQUIRE(std::memcmp(sides[s]->memory + slot(q, static_cast<std::uint32_t>(c.id)), words, 8) == 0);
            if (at[s][q].received_posted < kMessages) post_receive(s, q);
          } else {
            REQUIRE(c.id == at[s][q].sent++);
            post_send(s, q);
          }
        }
      }
      endpoint_a.device().elapse(200);
    }
    for (auto* side : sides) {
      CHECK(side->quiet());
      CHECK(side->counter(Counter::kCqOverruns) == 0);
    }
  });
}

TEST_CASE(
    "a completion queue that is full keeps what it has; one more, and its queue pairs fail (10.2.6.3, decisions 26)") {
  experiment("overrun", [](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    constexpr std::uint32_t kEntries = 64, kQps = 8;
    UnreliableSide a(endpoint_a), b(endpoint_b);
    const auto cq = exact_cq(a, kEntries);
    std::vector<std::shared_ptr<umd::QueuePair>> from, to;
    for (std::uint32_t q = 0; q < kQps; ++q) {
      from.push_back(make_qp(a, {cq, a.receive_cq, 32, 4}));
      to.push_back(make_qp(b, {b.cq, b.receive_cq}));
      testbench::connect_pair(endpoint_a, *from[q], endpoint_b, *to[q], {});
    }
    std::uint32_t posted = 0;
    for (; posted < kEntries; ++posted)
      must(from[posted % kQps]->post_send({.opcode = WqeOpcode::kWrite, .id = posted}));
    endpoint_a.device().elapse(50'000);
    CHECK(a.counter(Counter::kCqOverruns) == 0);
    CHECK(a.counter(Counter::kCqes) == kEntries);
    must(from[0]->post_send({.opcode = WqeOpcode::kWrite, .id = posted}));
    endpoint_a.device().elapse(50'000);
    endpoint_a.take_events();
    CHECK(a.counter(Counter::kCqOverruns) == 1);
    CHECK(must(cq->kernel_cq().query()).overrun == 1);
    CHECK(must(from[0]->kernel_qp().query()).state == static_cast<std::uint8_t>(hw::QpState::kErr));
    CHECK(from[0]->failed());
    // decisions 55: so do all others of that CQ, though they need no entry there.
    for (const auto& qp : from)
      CHECK(must(qp->kernel_qp().query()).state == static_cast<std::uint8_t>(hw::QpState::kErr));
    // What was there can still be read.
    std::map<std::uint32_t, std::uint64_t> next;
    for (std::uint32_t i = 0; i < kEntries; ++i) {
      const auto done = a.take(*cq);
      REQUIRE(done.status == CqeStatus::kSuccess);
      const auto found = next.find(done.qpn);
      if (found != next.end()) CHECK(done.id == found->second);
      next[done.qpn] = done.id + kQps;
    }
    Completion none;
    CHECK(!a.poll(*cq, none, 10'000));
  });
}

TEST_CASE("a flush completes both queues in posting order, behind the request in error (10.3.1, 10.8.3.1)") {
  experiment("flush", [](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    constexpr std::uint32_t kSends = 60, kReceives = 50, kBad = 21;  // more than a turn of the flush takes
    UnreliableSide a(endpoint_a), b(endpoint_b);
    const auto cq = must(umd::CompletionQueue::create(a.process, 256));
    const auto bad = make_qp(a, {cq, cq, 128, 128}), neighbour = make_qp(a, {cq, cq, 128, 128});
    const auto to = make_qp(b, {b.cq, b.receive_cq}), to_neighbour = make_qp(b, {b.cq, b.receive_cq});
    testbench::connect_pair(endpoint_a, *bad, endpoint_b, *to, {});
    testbench::connect_pair(endpoint_a, *neighbour, endpoint_b, *to_neighbour, {});
    for (std::uint32_t i = 0; i < kReceives; ++i) a.post_receive(*bad, 1000 + i, 0, 64);
    auto segment = a.segment(0, 700);
    for (std::uint32_t i = 0; i < kSends; ++i) {
      segment.key = a.region->key() ^ (i == kBad ? 1 : 0);
      // Silent ones say nothing when they succeed, and do when they are flushed (decisions 2).
      must(bad->post_send({.opcode = WqeOpcode::kWrite,
                           .id = i,
                           .segments = {&segment, 1},
                           .remote_address = b.at(0),
                           .remote_key = b.region->key(),
                           .silent = i % 3 == 1,
                           .defer = true}));
      segment.key = a.region->key();
      must(neighbour->post_send({.opcode = WqeOpcode::kWrite,
                                 .id = i,
                                 .segments = {&segment, 1},
                                 .remote_address = b.at(0),
                                 .remote_key = b.region->key(),
                                 .defer = true}));
    }
    bad->ring_deferred();
    neighbour->ring_deferred();
    std::uint32_t send = 0, receive = 0, others = 0;
    for (std::uint32_t total = 0; send < kSends || receive < kReceives || others < kSends; ++total) {
      REQUIRE(total < 2 * kSends + kReceives);
      const auto c = a.take(*cq);
      if (c.qpn == neighbour->qpn()) {
        REQUIRE((c.status == CqeStatus::kSuccess && c.id == others));
        ++others;
      } else if (c.kind == umd::RequestKind::kReceive) {
        REQUIRE((c.status == CqeStatus::kWrFlushErr && c.id == 1000 + receive));
        ++receive;
      } else {
        while (send < kBad && send % 3 == 1) ++send;
        REQUIRE(c.id == send);
        CHECK(c.status == (send < kBad    ? CqeStatus::kSuccess
                           : send == kBad ? CqeStatus::kLocProtErr
                                          : CqeStatus::kWrFlushErr));
        ++send;
      }
    }
    // What is posted later is flushed as well, behind the rest (decisions 8).
    must(bad->post_send({.opcode = WqeOpcode::kWrite, .id = 500, .silent = true}));
    a.post_receive(*bad, 600, 0, 64);
    must(bad->post_send({.opcode = WqeOpcode::kWrite, .id = 501}));
    std::vector<std::uint64_t> sends;
    for (int i = 0; i < 3; ++i) {
      const auto c = a.take(*cq);
      CHECK(c.status == CqeStatus::kWrFlushErr);
      if (c.kind == umd::RequestKind::kReceive)
        CHECK(c.id == 600);
      else
        sends.push_back(c.id);
    }
    CHECK(sends == std::vector<std::uint64_t>{500, 501});
    CHECK(a.quiet());
  });
}
