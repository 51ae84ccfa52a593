// Everything that borrows the contexts of queue pairs at the same time, on a few queue pairs: requests of both sides,
// requests about keys, doorbells that say nothing new, queries, SQD, packets that come twice and packets of strangers,
// writes that wait for the credits of the link, and the end of the queue pair in the midst of it. Whatever comes
// together: every request completes once, in the order of posting, and none as a success behind one that was flushed
// (InfiniBand specification 10.3.1, 10.8.3.3, 11.2.5.3). RNIC_SEED=n replays a failure.
#include <deque>
#include <memory>
#include <random>

#include "driver/umd/memory_request.hpp"
#include "tests/system/unreliable_world.hpp"

using namespace rnic;
using namespace rnic::test;
using hw::QpState;

namespace {

// The last pair is of UC: nothing that it takes is answered.
constexpr std::size_t kPairs = 4, kUnreliable = 3, kSource = 64 << 10, kBufferBytes = 2048, kReceives = 16;
constexpr std::uint32_t kDepth = 16;
/// Kinds of requests, drawn: below kRead are Writes, behind it Sends, from kMemory on those about keys.
constexpr std::size_t kRead = 2, kMemory = 6;

/// What goes on: everything; Reads of the peers, and queries; queries, and requests of host A now and then; SENDs that
/// host A has no credits to write, and gets them.
enum class Stage { kAll, kReads, kFew, kHeld };

std::uint8_t pattern(std::size_t at) { return static_cast<std::uint8_t>((at * 13 + at / 251) | 1); }

/// One end of a pair.
struct End {
  struct Sent {
    std::uint64_t id = 0;
    bool write = false, send = false;
    std::size_t offset = 0, bytes = 0;
  };
  std::shared_ptr<umd::QueuePair> qp;
  std::size_t buffers = 0;  ///< Of its receives, in the memory of its side
  std::deque<Sent> sends;
  std::deque<std::uint64_t> receives;
  std::uint16_t sent = 0, received = 0;  ///< Posted since its creation
  bool sends_flushed = false, receives_flushed = false;
  unsigned sends_done = 0, receives_done = 0;  ///< SENDs that the peer has acknowledged; Receives with a message
  std::unique_ptr<umd::KernelMw> window1, window2;
  bool bound = false;
  [[nodiscard]] bool unreliable() const { return qp->type() == hw::QpType::kUc; }
};

/// Host A is the one at which everything happens; its queue pairs are connected with those of host B.
struct Lab {
  Lab(World& of, Endpoint& end_a, Endpoint& end_b, std::uint64_t seed)
      : world(of),
        a(end_a),
        b(end_b),
        windows(must(a.process->create_mr(
            {.address = a.memory, .length = UnreliableSide::kBytes, .local_write = true, .window_bind = true}))),
        random(seed) {
    for (std::size_t i = 0; i < kSource; ++i) a.memory[i] = pattern(i), b.memory[kSource + i] = pattern(kSource + i);
  }

  [[nodiscard]] std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random() % limit); }
  UnreliableSide& side(std::size_t host) { return host == 0 ? a : b; }
  End& some(std::size_t host) { return ends[host][below(kPairs)]; }
  /// A part of what one side has and the other gets.
  static std::size_t source(std::size_t host) { return host * kSource; }

  void open() {
    std::memset(a.memory + kSource, UnreliableSide::kUntouched, kSource);
    std::memset(b.memory, UnreliableSide::kUntouched, kSource);
    for (std::size_t i = 0; i < kPairs; ++i) {
      for (std::size_t host = 0; host < 2; ++host) {
        auto& end = ends[host][i];
        end = {};
        end.buffers = 2 * kSource + i * kReceives * kBufferBytes;
        end.qp = must(umd::QueuePair::create_idle(side(host).process,
                                                  {.send_cq = side(host).cq,
                                                   .receive_cq = side(host).receive_cq,
                                                   .type = i == kUnreliable ? hw::QpType::kUc : hw::QpType::kRc,
                                                   .capacity = {.send_depth = kDepth,
                                                                .receive_depth = kReceives,
                                                                .send_segments = 4,
                                                                .receive_segments = 4,
                                                                .inline_bytes = 64},
                                                   .context = &end}));
      }
      ends[0][i].window1 = must(a.process->create_mw({.type = hw::MptType::kWindow1}));
      ends[0][i].window2 = must(a.process->create_mw({.type = hw::MptType::kWindow2}));
      testbench::connect_pair(
          a.endpoint, *ends[0][i].qp, b.endpoint, *ends[1][i].qp,
          {.mtu = 1024, .read_limit = 8, .ack_timeout = 4, .retry_count = 7, .rnr_retry = 7, .min_rnr_timer = 1});
    }
  }

  // ---- Requests -----------------------------------------------------------------------------------------------------
  void post_receive(std::size_t host, End& end) {
    if (end.receives.size() == kReceives) return;
    const std::size_t at = end.buffers + end.received % kReceives * kBufferBytes;
    const auto segment = side(host).segment(at, kBufferBytes);
    must(end.qp->post_receive({.id = at, .segments = {&segment, 1}}));
    end.receives.push_back(at);
    ++end.received;
  }
  /// `defer`: it is not rung for yet, so that it will be fetched.
  void post_send(std::size_t host, End& end, std::size_t kind, bool defer) {
    if (!end.qp->has_room(1)) return;
    if (end.unreliable() && (kind == kRead || kind >= kMemory)) kind = kRead + 1;
    const bool is_write = (kind < kRead), is_send = (kind > kRead && kind < kMemory);
    End::Sent request{.id = next_id++, .write = is_write, .send = is_send};
    if (kind >= kMemory) {
      post_memory(end, {.id = request.id, .defer = defer});
    } else {
      request.bytes = 1 + below(below(2) == 0 ? 64 : kBufferBytes);
      request.offset = source(kind == kRead ? 1 - host : host) + below(kSource - request.bytes);
      const auto segment = side(host).segment(request.offset, request.bytes);
      auto& peer = side(1 - host);
      must(end.qp->post_send({.opcode = is_write  ? WqeOpcode::kWrite
                                        : is_send ? WqeOpcode::kSendImmediate
                                                  : WqeOpcode::kRead,
                              .id = request.id,
                              .segments = {&segment, 1},
                              .remote_address = peer.at(request.offset),
                              .remote_key = peer.region->key(),
                              .immediate = static_cast<std::uint32_t>(request.offset),
                              .defer = defer}));
    }
    end.sends.push_back(request);
    ++end.sent;
  }
  void post_memory(End& end, const umd::MemoryOptions& options) {
    const umd::WindowRange range{.region_key = windows->key(), .address = a.at(0), .length = 4096, .remote_read = true};
    if (below(2) == 0) return must(umd::post_bind(*end.qp, *end.window1, range, options));
    end.bound = !end.bound;
    if (end.bound) return must(umd::post_bind(*end.qp, *end.window2, range, options));
    must(umd::post_invalidate(*end.qp, end.window2->key(), options));
  }

  // ---- Completions --------------------------------------------------------------------------------------------------
  static void judge(CqeStatus status, bool& flushed) {
    CHECK((status == CqeStatus::kSuccess || status == CqeStatus::kWrFlushErr));
    if (flushed) CHECK(status == CqeStatus::kWrFlushErr);
    flushed = status != CqeStatus::kSuccess;
  }
  void take(std::size_t host) {
    umd::Completion completion;
    while (side(host).cq->poll({&completion, 1}) != 0) {
      auto& end = *static_cast<End*>(completion.qp_context);
      REQUIRE(!end.sends.empty());
      const auto request = end.sends.front();
      end.sends.pop_front();
      CHECK(completion.id == request.id);
      judge(completion.status, end.sends_flushed);
      if (completion.status != CqeStatus::kSuccess) continue;
      if (request.write && !end.unreliable()) check_bytes(1 - host, request.offset, request);
      end.sends_done += request.send;
    }
    while (side(host).receive_cq->poll({&completion, 1}) != 0) {
      auto& end = *static_cast<End*>(completion.qp_context);
      REQUIRE(!end.receives.empty());
      CHECK(completion.id == end.receives.front());
      end.receives.pop_front();
      judge(completion.status, end.receives_flushed);
      if (completion.status != CqeStatus::kSuccess) continue;
      ++end.receives_done;
      check_bytes(host, completion.id, {.offset = completion.immediate, .bytes = completion.byte_count});
    }
  }
  void check_bytes(std::size_t host, std::size_t at, const End::Sent& request) {
    bool same = true;
    for (std::size_t i = 0; i < request.bytes; ++i) same &= side(host).memory[at + i] == pattern(request.offset + i);
    CHECK(same);
  }
  [[nodiscard]] bool all_sent(std::size_t host) const {
    return std::all_of(ends[host].begin(), ends[host].end(), [](const End& end) { return end.sends.empty(); });
  }
  [[nodiscard]] bool all_taken() {
    for (auto& host : ends)
      for (auto& end : host)
        if (!end.sends.empty() || !end.receives.empty()) return false;
    return true;
  }

  // ---- What goes on at the same time --------------------------------------------------------------------------------
  void work(std::size_t host) {
    take(host);
    if (stage == Stage::kReads) {
      if (host == 1) post_send(1, some(1), kRead, false);
      return pass(host, 300 + below(1'000));
    }
    if (stage == Stage::kFew) return host == 0 ? request() : receive(1);
    if (stage == Stage::kHeld) return host == 1 ? burst() : below(2) == 0 ? receive(0) : request();
    for (std::size_t i = 1 + below(4); i-- > 0;) post_receive(host, some(host));
    auto& end = some(host);
    const bool defer = below(2) == 0;
    for (std::size_t i = 1 + below(3); i-- > 0;) post_send(host, end, below(host == 0 ? 10 : kMemory), defer);
    if (defer) end.qp->ring_deferred();
    pass(host, 50 + below(400));
  }
  /// Of one queue pair, or of all of them, whose doorbells are then one behind the other.
  void request() {
    if (below(2) == 0) {
      auto& end = some(0);
      post_send(0, end, below(10), below(2) == 0);
      end.qp->ring_deferred();
    } else {
      for (auto& end : ends[0]) post_send(0, end, below(10), true);
      for (auto& end : ends[0]) end.qp->ring_deferred();
    }
    pass(0, 100 + below(600));
  }
  void receive(std::size_t host) {
    for (auto& end : ends[host]) post_receive(host, end);
    pass(host, 200 + below(400));
  }
  /// Small ones that nothing is answered to.
  void burst() {
    auto& end = ends[1][kUnreliable];
    for (std::size_t i = below(kReceives); i-- > 0;) post_send(1, end, kRead + 1, true);
    end.qp->ring_deferred();
    pass(1, 200 + below(600));
  }
  void credits() {
    auto& link = side(0).endpoint.host().root_complex();
    model::CreditKinds kinds;
    kinds.set(model::CreditKind::kPosted, stage == Stage::kHeld);
    link.hold(model::PcieWay::kToHost, kinds);
    pass(0, 200 + below(600));
    link.hold(model::PcieWay::kToHost, {});
    pass(0, 300 + below(900));
  }
  /// An index that the device knows moves nothing (host interface, "Doorbells").
  void ring() {
    if (stage != Stage::kAll) return pass(0, 300);
    for (std::size_t i = 1 + below(4); i-- > 0;) {
      const auto& end = some(0);
      const auto qpn = end.qp->qpn();
      if (below(2) == 0) {
        a.process->ring(hw::uar::kSendDoorbell, hw::SendDoorbell{.qpn = qpn, .producer_index = end.sent}.word());
      } else {
        a.process->ring(hw::uar::kReceiveDoorbell,
                        hw::ReceiveDoorbell{.qpn = qpn, .producer_index = end.received}.word());
      }
    }
    pass(0, 20 + below(200));
  }
  void query() {
    std::array<kmd::AdminQueue::Command, 8> commands;
    for (auto& command : commands) command = {.opcode = hw::AdminOpcode::kQueryQp, .number = some(0).qp->qpn()};
    std::vector<Result<kmd::AdminQueue::Reply>> answers(commands.size(), Error::kTimeout);
    a.endpoint.kernel().admin().execute(commands, answers);
    for (const auto& answer : answers) {
      REQUIRE(answer.ok());
      const auto state = hw::AdminQpState::decode(*answer);
      const auto is = static_cast<QpState>(state.state);
      CHECK((is == QpState::kRts || is == QpState::kSqd || is == QpState::kErr));
      CHECK(static_cast<std::uint16_t>(state.sq_producer - state.sq_retired) <= kDepth);
      CHECK(((state.una_psn - state.sq_psn) & 0xffffff) != 1);
    }
  }
  /// To nobody: the queue pair with that place has another number.
  void stray() {
    if (stage != Stage::kAll) return pass(1, 300);
    static constexpr std::array<std::uint8_t, 4> kOpcodes = {0x04, 0x11, 0x11, 0x10};
    for (std::size_t i = 1 + below(3); i-- > 0;) {
      auto f = packet_between(b.endpoint, a.endpoint, kOpcodes[below(kOpcodes.size())], some(0).qp->qpn() ^ 0x800000,
                              static_cast<std::uint32_t>(random() & 0xffffff));
      if (f.opcode != 0x04) f.ext = roce::aeth(0x1f, 1);
      if (f.opcode != 0x11) f.payload.assign(8, 0xee);
      world.wire().inject(1, roce::roce_frame(f));
    }
    pass(1, 20 + below(300));
  }
  void pass(std::size_t host, std::uint64_t ns) { side(host).endpoint.device().elapse(ns); }

  World& world;
  UnreliableSide a, b;
  std::unique_ptr<umd::KernelMr> windows;
  std::array<std::array<End, kPairs>, 2> ends;
  std::mt19937_64 random;
  std::uint64_t next_id = 1;
  Stage stage = Stage::kAll;
};

/// An application that does `step` again and again while there is work.
struct Crew {
  void add(World& world, std::size_t host, const std::string& name, std::function<void(Lab&)> step) {
    const std::size_t place = busy.size();
    busy.push_back(false);
    world.add_app(host, name, [this, place, step = std::move(step)](Host& at) {
      while (!over) {
        busy[place] = working;
        if (working) {
          step(*lab);
        } else {
          at.device().elapse(300);
        }
      }
    });
  }
  void stop() {
    working = false;
    while (std::find(busy.begin(), busy.end(), true) != busy.end()) lab->pass(0, 300);
  }
  Lab* lab = nullptr;
  bool working = false, over = false;
  std::vector<bool> busy;
};

/// The queue pairs work, and go through SQD; in most rounds they are then ended, one after the other.
void round(Lab& lab, Crew& crew) {
  lab.open();
  crew.working = true;
  lab.pass(0, 5'000 + lab.below(10'000));
  lab.stage = Stage::kReads;
  lab.pass(0, 3'000);
  lab.stage = Stage::kFew;
  lab.pass(0, 30'000);
  lab.stage = Stage::kAll;
  for (auto& end : lab.ends[0]) {
    if (lab.below(3) != 0) continue;
    must(end.qp->drain(false));
    lab.pass(0, lab.below(3'000));
    must(end.qp->resume());
  }
  const bool ends = lab.below(5) != 0;
  if (ends) {
    if (lab.below(2) == 0) lab.stage = Stage::kHeld;
    for (auto& end : lab.ends[0]) {
      must(end.qp->kernel_qp().to_error());
      lab.pass(0, lab.below(6'000));
    }
    lab.stage = Stage::kAll;
  }
  lab.pass(0, 4'000);
  crew.stop();
  for (int i = 0; i < 50; ++i) lab.ring();
  for (auto& end : lab.ends[1])
    if (ends) must(end.qp->kernel_qp().to_error());
  const auto limit = lab.world.now_ns() + 20'000'000;
  const auto done = [&] {
    for (std::size_t host = 0; host < 2; ++host) lab.take(host);
    return ends ? lab.all_taken() : lab.all_sent(0) && lab.all_sent(1);
  };
  while (!done() && lab.world.now_ns() < limit) {
    if (!ends)
      for (std::size_t host = 0; host < 2; ++host)
        for (auto& end : lab.ends[host]) lab.post_receive(host, end);
    lab.pass(0, 2'000);
  }
  CHECK(done());
  for (auto& host : lab.ends) {
    for (auto& end : host) {
      CHECK(end.sends_flushed <= ends);
      must(end.qp->close());
    }
  }
  for (std::size_t host = 0; host < 2; ++host) lab.take(host);
  CHECK(lab.all_taken());
  // What has been acknowledged has been received (9.7.5.1).
  for (std::size_t i = 0; i < kUnreliable; ++i)
    for (std::size_t host = 0; host < 2; ++host)
      CHECK(lab.ends[host][i].sends_done <= lab.ends[1 - host][i].receives_done);
}

}  // namespace

TEST_CASE("whatever comes together at a queue pair, each of its requests completes once and in order (10.8.3.3)") {
  auto options = WorldOptions::from_environment("context_pairs");
  INFO("seed " << options.seed);
  for (auto& faults : options.wire.faults) faults.duplicate = 0.2, faults.drop = 0.01;
  World& world = fresh_world(options);
  Crew crew;
  world.add_app(0, "test", [&](Host& host) {
    Endpoint end_a(host);
    Endpoint end_b(world.host(1));
    Lab lab(world, end_a, end_b, options.seed);
    crew.lab = &lab;
    for (int i = 0; i < 40; ++i) round(lab, crew);
    crew.over = true;
    lab.pass(0, 100'000);
  });
  crew.add(world, 0, "work", [](Lab& lab) { lab.work(0); });
  crew.add(world, 1, "peers", [](Lab& lab) { lab.work(1); });
  crew.add(world, 0, "doorbells", [](Lab& lab) { lab.ring(); });
  crew.add(world, 0, "queries", [](Lab& lab) { lab.query(); });
  crew.add(world, 0, "credits", [](Lab& lab) { lab.credits(); });
  crew.add(world, 1, "strangers", [](Lab& lab) { lab.stray(); });
  world.run();
}

TEST_CASE("queries of one queue pair while another fetches its requests tell its state (11.2.5.3)") {
  const auto options = WorldOptions::from_environment("context_pairs_query");
  INFO("seed " << options.seed);
  World& world = fresh_world(options);
  world.add_app(0, "test", [&](Host& host) {
    struct Answers final : kmd::AdminQueue::Later {
      void on_answer(const Result<kmd::AdminQueue::Reply>& answer) override {
        REQUIRE(answer.ok());
        const auto state = hw::AdminQpState::decode(*answer);
        CHECK(static_cast<QpState>(state.state) == QpState::kRts);
        CHECK(state.sq_producer == 0);
        ++count;
      }
      unsigned count = 0;
    };
    Endpoint end_a(host);
    Endpoint end_b(world.host(1));
    Lab lab(world, end_a, end_b, options.seed);
    lab.open();
    auto& asked = lab.ends[0][0];
    auto& admin = end_a.kernel().admin();
    // Commands and WQEs are read from memory in about the same time, so WQEs come in the midst of the queries; and
    // doorbells that say nothing new.
    constexpr unsigned kRounds = 600, kQueries = 12, kDoorbells = 40;
    for (unsigned round = 0; round < kRounds; ++round) {
      for (auto& end : lab.ends[0])
        if (&end != &asked) lab.post_send(0, end, 0, true);
      const auto answers = std::make_shared<Answers>();
      for (unsigned i = 0; i < kQueries; ++i)
        must(
            admin.execute_later({.opcode = hw::AdminOpcode::kQueryQp, .number = asked.qp->qpn(), .body = {}}, answers));
      for (auto& end : lab.ends[0]) {
        lab.pass(0, lab.below(100));
        end.qp->ring_deferred();
      }
      lab.pass(0, 300 + lab.below(200));
      for (unsigned i = 0; i < kDoorbells; ++i) {
        const auto& end = lab.some(0);
        lab.a.process->ring(hw::uar::kSendDoorbell,
                            hw::SendDoorbell{.qpn = end.qp->qpn(), .producer_index = end.sent}.word());
        lab.pass(0, 4 * lab.below(8));
      }
      for (int i = 0; i < 100 && !(answers->count == kQueries && lab.all_sent(0)); ++i) {
        lab.pass(0, 200);
        admin.tell();
        lab.take(0);
      }
      CHECK(answers->count == kQueries);
      CHECK(lab.all_sent(0));
    }
    for (auto& side : lab.ends)
      for (auto& end : side) must(end.qp->close());
  });
  world.run();
}
