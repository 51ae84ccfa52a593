// Operations that NetworkDirect has not, through the queues of a process: immediate data, invalidate, atomics
// (InfiniBand specification volume 1, 9.4.1, 9.4.3, 9.4.5, 9.7.5.1.2). RNIC_SEED=n replays a failure.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "driver/umd/kernel_mr.hpp"
#include "driver/umd/memory_request.hpp"
#include "driver/umd/process_context.hpp"
#include "driver/umd/queue_pair.hpp"
#include "model/random.hpp"
#include "tests/system/system_world.hpp"

using namespace rnic;
using namespace rnic::test;
using hw::CqeStatus;
using hw::WqeOpcode;
using umd::Completion;
using umd::RequestKind;
using umd::Segment;
using umd::SendRequest;

namespace {

constexpr std::size_t kBytes = 64 << 10;
constexpr std::uint8_t kUntouched = 0x5A;
constexpr std::uint64_t kWaitNs = 3'000'000;

template <typename T>
T must(Result<T> result) {
  if (!result.ok()) FAIL(describe(result.error()));
  return result.take();
}
void must(const Result<void>& result) {
  if (!result.ok()) FAIL(describe(result.error()));
}

/// One host's side: a process, memory that its peer may use, queues.
struct Side {
  Side(Endpoint& at, umd::MrSpec rights) : endpoint(at), process(must(umd::ProcessContext::open(at.kernel().node()))) {
    memory = static_cast<std::uint8_t*>(at.host().memory().allocate(kBytes));
    std::memset(memory, kUntouched, kBytes);
    rights.address = memory;
    rights.length = kBytes;
    region = must(process->create_mr(rights));
    cq = must(umd::CompletionQueue::create(process, 1024));
    receive_cq = must(umd::CompletionQueue::create(process, 1024));
  }
  umd::QueuePair& add_qp() {
    qps.push_back(must(umd::QueuePair::create_idle(
        process,
        {.send_cq = cq,
         .receive_cq = receive_cq,
         .capacity = {
             .send_depth = 64, .receive_depth = 64, .send_segments = 4, .receive_segments = 4, .inline_bytes = 200}})));
    return *qps.back();
  }
  [[nodiscard]] std::uint64_t at(std::size_t offset) const { return reinterpret_cast<std::uint64_t>(memory) + offset; }
  [[nodiscard]] Segment segment(std::size_t offset, std::size_t bytes) const {
    return {at(offset), static_cast<std::uint32_t>(bytes), region->key()};
  }
  [[nodiscard]] std::uint64_t word(std::size_t offset) const {
    std::uint64_t value = 0;
    std::memcpy(&value, memory + offset, sizeof value);
    return value;
  }
  void set_word(std::size_t offset, std::uint64_t value) { std::memcpy(memory + offset, &value, sizeof value); }

  /// The next completion of `from`; fails the test when none comes.
  Completion take(umd::CompletionQueue& from) {
    const auto end = endpoint.device().now_ns() + kWaitNs;
    Completion completion;
    while (from.poll({&completion, 1}) == 0) {
      if (endpoint.device().now_ns() >= end) FAIL("no completion");
      endpoint.device().elapse(200);
    }
    return completion;
  }
  Completion sent() { return take(*cq); }
  Completion received() { return take(*receive_cq); }

  Endpoint& endpoint;
  std::shared_ptr<umd::ProcessContext> process;
  std::uint8_t* memory;
  std::unique_ptr<umd::KernelMr> region;
  std::shared_ptr<umd::CompletionQueue> cq, receive_cq;
  std::vector<std::shared_ptr<umd::QueuePair>> qps;
};

constexpr umd::MrSpec kAllRights{
    .local_write = true, .remote_read = true, .remote_write = true, .remote_atomic = true, .window_bind = true};

struct Pair2 {
  Pair2(Endpoint& endpoint_a, Endpoint& endpoint_b, std::size_t pairs = 1, const ConnectParameters& parameters = {},
        const umd::MrSpec& rights = kAllRights)
      : a(endpoint_a, rights), b(endpoint_b, rights) {
    for (std::size_t i = 0; i < pairs; ++i)
      testbench::connect_pair(endpoint_a, a.add_qp(), endpoint_b, b.add_qp(), parameters);
  }
  Side a, b;
};

SendRequest atomic(const Side& to, std::size_t remote, std::size_t id, const Segment& segment, bool add,
                   std::uint64_t value, std::uint64_t compare = 0) {
  return {.opcode = add ? WqeOpcode::kFetchAdd : WqeOpcode::kCompareSwap,
          .id = id,
          .segments = {&segment, 1},
          .remote_address = to.at(remote),
          .remote_key = to.region->key(),
          .swap_add = value,
          .compare = compare};
}

/// Posts one atomic and waits: its status, and what it fetched.
std::pair<CqeStatus, std::uint64_t> do_atomic(Side& from, const Side& to, std::size_t remote, std::size_t local,
                                              bool add, std::uint64_t value, std::uint64_t compare = 0) {
  const Segment segment = from.segment(local, 8);
  must(from.qps[0]->post_send(atomic(to, remote, local, segment, add, value, compare)));
  const auto completion = from.sent();
  CHECK(completion.kind == (add ? RequestKind::kFetchAdd : RequestKind::kCompareSwap));
  if (completion.status == CqeStatus::kSuccess) CHECK(completion.byte_count == 8);
  return {completion.status, from.word(local)};
}

std::uint64_t world_seed(const WorldOptions& options) { return options.seed; }

}  // namespace

TEST_CASE("immediate data and invalidate arrive with the message, whole, for every length") {
  const auto options = WorldOptions::from_environment("operations_immediate");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    model::Random random(world_seed(options));
    ConnectParameters parameters;
    parameters.mtu = 1024;
    parameters.ipv6 = true;
    Pair2 pair(endpoint_a, endpoint_b, 1, parameters);
    std::uint64_t id = 0;
    const std::array<std::pair<Side*, Side*>, 2> directions{{{&pair.a, &pair.b}, {&pair.b, &pair.a}}};
    for (const auto& [from, to] : directions) {
      for (const auto opcode : {WqeOpcode::kSend, WqeOpcode::kSendImmediate, WqeOpcode::kSendInvalidate,
                                WqeOpcode::kWrite, WqeOpcode::kWriteImmediate}) {
        for (const std::size_t length : {0, 1, 3, 4, 8, 61, 200, 1023, 1024, 1025, 2048, 5000}) {
          const bool inlined = length <= 200 && random.chance(0.5);
          INFO("opcode " << static_cast<int>(opcode) << " length " << length << " inline " << inlined);
          const std::size_t source = 100 + random.below(64), target = 20000 + random.below(64),
                            receive = 40000 + random.below(64);
          std::memset(to->memory, kUntouched, kBytes);
          for (std::size_t i = 0; i < length; ++i) from->memory[source + i] = static_cast<std::uint8_t>(random.next());
          const bool is_send =
              opcode == WqeOpcode::kSend || opcode == WqeOpcode::kSendImmediate || opcode == WqeOpcode::kSendInvalidate;
          const bool uses_receive = opcode != WqeOpcode::kWrite;
          const Segment into = to->segment(receive, 6000);
          if (uses_receive) must(to->qps[0]->post_receive({.id = ++id, .segments = {&into, 1}}));
          const Segment data = from->segment(source, length);
          auto immediate = static_cast<std::uint32_t>(random.next());
          std::unique_ptr<umd::KernelMw> window;
          if (opcode == WqeOpcode::kSendInvalidate) {
            window = must(to->process->create_mw({}));
            must(umd::post_bind(*to->qps[0], *window,
                                {.region_key = to->region->key(), .address = to->at(target), .length = 100}, {}));
            CHECK(to->sent().status == CqeStatus::kSuccess);
            immediate = window->key();
          }
          const bool solicited = uses_receive && random.chance(0.5);
          must(from->qps[0]->post_send({.opcode = opcode,
                                        .id = 1000 + id,
                                        .segments = {&data, 1},
                                        .remote_address = to->at(target),
                                        .remote_key = to->region->key(),
                                        .immediate = immediate,
                                        .fence = random.chance(0.3),
                                        .solicited = solicited,
                                        .inline_data = inlined}));
          if (uses_receive) {
            const auto got = to->received();
            CHECK(got.status == CqeStatus::kSuccess);
            CHECK(got.id == id);
            CHECK(got.kind == (is_send ? RequestKind::kReceive : RequestKind::kReceiveWrite));
            CHECK(got.byte_count == length);
            CHECK(got.solicited == solicited);
            CHECK(got.with_immediate == (opcode == WqeOpcode::kSendImmediate || opcode == WqeOpcode::kWriteImmediate));
            CHECK(got.with_invalidate == (opcode == WqeOpcode::kSendInvalidate));
            CHECK(got.immediate == (opcode == WqeOpcode::kSend ? 0 : immediate));
          }
          const auto done = from->sent();
          CHECK(done.status == CqeStatus::kSuccess);
          CHECK(done.id == 1000 + id);
          CHECK(done.kind == (is_send ? RequestKind::kSend : RequestKind::kWrite));
          CHECK(done.byte_count == length);
          CHECK_FALSE(done.with_immediate);
          // The bytes are where they belong, and nowhere else.
          const std::size_t place = is_send ? receive : target;
          CHECK(std::memcmp(to->memory + place, from->memory + source, length) == 0);
          const auto touched = [](std::uint8_t byte) { return byte != kUntouched; };
          CHECK(std::none_of(to->memory, to->memory + place, touched));
          CHECK(std::none_of(to->memory + place + length, to->memory + kBytes, touched));
        }
      }
    }
  });
}

TEST_CASE("a solicited Write, Read or atomic is executed as one that is not (decisions 71)") {
  auto& world = fresh_world(WorldOptions::from_environment("operations_solicited"));
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    Pair2 pair(endpoint_a, endpoint_b);
    pair.a.set_word(0, 5);
    pair.b.set_word(0, 0);
    const Segment data = pair.a.segment(0, 8), result = pair.a.segment(64, 8), fetched = pair.a.segment(128, 8);
    auto write = SendRequest{.opcode = WqeOpcode::kWrite,
                             .id = 1,
                             .segments = {&data, 1},
                             .remote_address = pair.b.at(0),
                             .remote_key = pair.b.region->key()};
    auto add = atomic(pair.b, 0, 2, fetched, true, 3);
    auto read = write;
    read.opcode = WqeOpcode::kRead;
    read.id = 3;
    read.segments = {&result, 1};
    for (auto* request : {&write, &add, &read}) {
      request->solicited = true;
      must(pair.a.qps[0]->post_send(*request));
      const auto done = pair.a.sent();
      CHECK(done.id == request->id);
      CHECK(done.status == CqeStatus::kSuccess);
    }
    CHECK(pair.a.word(128) == 5);
    CHECK(pair.a.word(64) == 8);
  });
}

TEST_CASE("a WRITE with immediate data waits for a Receive before its last packet is executed") {
  auto& world = fresh_world(WorldOptions::from_environment("operations_rnr"));
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    ConnectParameters parameters;
    parameters.mtu = 256;
    parameters.rnr_retry = 7;
    Pair2 pair(endpoint_a, endpoint_b, 1, parameters);
    for (const std::size_t length : {0, 100, 256, 700}) {
      const std::size_t last = length == 0 ? 0 : (length - 1) / 256 * 256;  // offset of the last packet
      std::memset(pair.b.memory, kUntouched, kBytes);
      std::memset(pair.a.memory, 0x11, length);
      const Segment data = pair.a.segment(0, length);
      must(pair.a.qps[0]->post_send({.opcode = WqeOpcode::kWriteImmediate,
                                     .id = length,
                                     .segments = {&data, 1},
                                     .remote_address = pair.b.at(1000),
                                     .remote_key = pair.b.region->key(),
                                     .immediate = 77}));
      endpoint_a.device().elapse(200'000);
      Completion none;
      CHECK(pair.a.cq->poll({&none, 1}) == 0);
      CHECK(pair.b.receive_cq->poll({&none, 1}) == 0);
      CHECK(std::all_of(pair.b.memory + 1000, pair.b.memory + 1000 + last,
                        [](std::uint8_t byte) { return byte == 0x11; }));
      CHECK(std::all_of(pair.b.memory + 1000 + last, pair.b.memory + kBytes,
                        [](std::uint8_t byte) { return byte == kUntouched; }));
      must(pair.b.qps[0]->post_receive({.id = 5, .segments = {}}));
      const auto got = pair.b.received();
      CHECK(got.kind == RequestKind::kReceiveWrite);
      CHECK(got.byte_count == length);
      CHECK(got.immediate == 77);
      CHECK(pair.a.sent().status == CqeStatus::kSuccess);
      CHECK(std::all_of(pair.b.memory + 1000, pair.b.memory + 1000 + length,
                        [](std::uint8_t byte) { return byte == 0x11; }));
    }
  });
}

TEST_CASE("atomics: results, every alignment of the answer, wrap") {
  const auto options = WorldOptions::from_environment("operations_atomics");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    for (const bool ipv6 : {false, true}) {
      model::Random random(world_seed(options));
      ConnectParameters parameters;
      parameters.ipv6 = ipv6;
      Pair2 pair(endpoint_a, endpoint_b, 1, parameters);
      auto& [a, b] = pair;
      for (std::size_t local = 1000; local < 1016; ++local) {
        for (const bool add : {true, false}) {
          const std::size_t remote = 8 * random.below(512);
          const std::uint64_t old = random.chance(0.3) ? ~std::uint64_t{0} - random.below(3) : random.next();
          const std::uint64_t value = random.next(), other = random.next();
          std::memset(a.memory, kUntouched, kBytes);
          std::memset(b.memory, kUntouched, kBytes);
          b.set_word(remote, old);
          const bool equal = random.chance(0.5);
          const auto [status, fetched] = do_atomic(a, b, remote, local, add, value, equal ? old : other);
          CHECK(status == CqeStatus::kSuccess);
          CHECK(fetched == old);
          CHECK(b.word(remote) == (add ? old + value : equal ? value : old));
          // Nothing beside the 8 bytes, on either side.
          const auto clean = [](const Side& side, std::size_t from) {
            return std::all_of(side.memory, side.memory + from, [](std::uint8_t x) { return x == kUntouched; }) &&
                   std::all_of(side.memory + from + 8, side.memory + kBytes,
                               [](std::uint8_t x) { return x == kUntouched; });
          };
          CHECK(clean(a, local));
          CHECK(clean(b, remote));
        }
      }
      // In order with what follows on the same queue pair, without a fence: an atomic, then a Read of the same bytes.
      b.set_word(64, 5);
      const Segment result = a.segment(0, 8), read = a.segment(8, 8);
      must(a.qps[0]->post_send(atomic(b, 64, 0, result, true, 37)));
      must(a.qps[0]->post_send({.opcode = WqeOpcode::kRead,
                                .id = 2,
                                .segments = {&read, 1},
                                .remote_address = b.at(64),
                                .remote_key = b.region->key()}));
      CHECK(a.sent().kind == RequestKind::kFetchAdd);
      CHECK(a.sent().kind == RequestKind::kRead);
      CHECK(a.word(0) == 5);
      CHECK(a.word(8) == 42);
    }
  });
}

TEST_CASE("a SEND or WRITE behind an atomic is executed behind it, without a fence (C9-28)") {
  auto& world = fresh_world(WorldOptions::from_environment("operations_order"));
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    Pair2 pair(endpoint_a, endpoint_b);
    auto& [a, b] = pair;
    std::memset(a.memory, 0x33, kBytes);
    const std::uint64_t written = a.word(0);
    const Segment result = a.segment(8192, 8), value = a.segment(0, 8), data = a.segment(0, 8),
                  read = a.segment(16384, 32768);
    // Behind a Read of many packets the atomics have to wait for their turn.
    for (const bool behind_read : {false, true}) {
      for (int round = 0; round < 4; ++round) {
        b.set_word(64, 1000);
        b.set_word(128, 1000);
        if (behind_read) {
          must(a.qps[0]->post_send({.opcode = WqeOpcode::kRead,
                                    .id = 9,
                                    .segments = {&read, 1},
                                    .remote_address = b.at(4096),
                                    .remote_key = b.region->key()}));
        }
        must(a.qps[0]->post_send(atomic(b, 64, 1, result, true, 7)));
        must(a.qps[0]->post_send({.opcode = WqeOpcode::kWrite,
                                  .id = 2,
                                  .segments = {&value, 1},
                                  .remote_address = b.at(64),
                                  .remote_key = b.region->key()}));
        must(a.qps[0]->post_send(atomic(b, 128, 3, result, true, 7)));
        const Segment buffer = b.segment(128, 8);
        must(b.qps[0]->post_receive({.id = 4, .segments = {&buffer, 1}}));
        must(a.qps[0]->post_send({.opcode = WqeOpcode::kSend, .id = 4, .segments = {&data, 1}}));
        if (behind_read) CHECK(a.sent().status == CqeStatus::kSuccess);
        for (const std::uint64_t id : {1, 2, 3, 4}) {
          const auto completion = a.sent();
          CHECK(completion.id == id);
          CHECK(completion.status == CqeStatus::kSuccess);
        }
        CHECK(b.received().status == CqeStatus::kSuccess);
        CHECK(a.word(8192) == 1000);
        CHECK(b.word(64) == written);
        CHECK(b.word(128) == written);
      }
    }
  });
}

TEST_CASE("atomics that may not be: alignment, rights, keys, ranges, limits") {
  auto& world = fresh_world(WorldOptions::from_environment("operations_refused"));
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    const auto refused = [&](const std::string& what, CqeStatus wanted, const ConnectParameters& parameters,
                             const umd::MrSpec& rights,
                             const std::function<void(SendRequest&, Segment&, Pair2&)>& spoil) {
      for (const bool add : {true, false}) {
        INFO(what << (add ? ", fetch and add" : ", compare and swap"));
        Pair2 pair(endpoint_a, endpoint_b, 1, parameters, rights);
        std::memset(pair.b.memory, 0, kBytes);
        Segment segment = pair.a.segment(0, 8);
        auto request = atomic(pair.b, 128, 1, segment, add, 1, 0);
        spoil(request, segment, pair);
        request.segments = {&segment, 1};
        must(pair.a.qps[0]->post_send(request));
        CHECK(pair.a.sent().status == wanted);
        CHECK(std::all_of(pair.b.memory, pair.b.memory + kBytes, [](std::uint8_t x) { return x == 0; }));
        CHECK(std::all_of(pair.a.memory, pair.a.memory + kBytes, [](std::uint8_t x) { return x == kUntouched; }));
      }
    };
    const auto nothing = [](SendRequest&, Segment&, Pair2&) {};
    for (unsigned shift = 1; shift < 8; ++shift) {
      refused("misaligned by " + std::to_string(shift), CqeStatus::kRemInvReqErr, {}, kAllRights,
              [shift](SendRequest& r, Segment&, Pair2&) { r.remote_address += shift; });
    }
    ConnectParameters no_right;
    no_right.remote_atomic = false;
    refused("queue pair without the right (9.7.4.1.3)", CqeStatus::kRemInvReqErr, no_right, kAllRights, nothing);
    auto no_atomic = kAllRights;
    no_atomic.remote_atomic = false;
    refused("region without the right", CqeStatus::kRemAccessErr, {}, no_atomic, nothing);
    refused("another tag", CqeStatus::kRemAccessErr, {}, kAllRights,
            [](SendRequest& r, Segment&, Pair2&) { r.remote_key ^= 1; });
    refused("no such key", CqeStatus::kRemAccessErr, {}, kAllRights,
            [](SendRequest& r, Segment&, Pair2&) { r.remote_key ^= 0x00ABC000; });
    refused("in front of the region", CqeStatus::kRemAccessErr, {}, kAllRights,
            [](SendRequest& r, Segment&, Pair2& p) { r.remote_address = p.b.at(0) - 8; });
    refused("behind the region", CqeStatus::kRemAccessErr, {}, kAllRights,
            [](SendRequest& r, Segment&, Pair2& p) { r.remote_address = p.b.at(kBytes); });
    refused("answer with a wrong local key", CqeStatus::kLocProtErr, {}, kAllRights,
            [](SendRequest& r, Segment& s, Pair2&) {
              s.key ^= 1;
              r.swap_add = 0;  // it is executed all the same, and must not show
            });
    ConnectParameters no_reads;
    no_reads.read_limit = 0;
    refused("no atomic may be outstanding", CqeStatus::kLocQpOpErr, no_reads, kAllRights, nothing);
    // Only remote_atomic counts, not the rights to read and write.
    ConnectParameters only_atomic;
    only_atomic.remote_read = only_atomic.remote_write = false;
    Pair2 pair(endpoint_a, endpoint_b, 1, only_atomic, {.local_write = true, .remote_atomic = true});
    pair.b.set_word(8, 9);
    CHECK(do_atomic(pair.a, pair.b, 8, 0, true, 1) == std::pair{CqeStatus::kSuccess, std::uint64_t{9}});
    CHECK(pair.b.word(8) == 10);
    // The driver refuses what is no atomic at all.
    const Segment longer = pair.a.segment(0, 16);
    CHECK(pair.a.qps[0]->post_send(atomic(pair.b, 8, 0, longer, true, 1)).error() == Error::kInvalidParameter);
  });
}

namespace {

/// All queue pairs of both hosts add to a few words of both hosts, many at a time, with Reads and Writes between. Each
/// addition counts once.
void add_from_everywhere(const WorldOptions& options, std::size_t pairs, unsigned rounds,
                         const ConnectParameters& parameters) {
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    model::Random random(options.seed);
    Pair2 pair(endpoint_a, endpoint_b, pairs, parameters);
    constexpr std::size_t kWords = 3, kTicket = 512, kResults = 4096, kDeep = 12;
    for (auto* side : {&pair.a, &pair.b}) std::memset(side->memory, 0, kBytes);
    // Words of random additions, and one from which everybody draws tickets: all tickets differ.
    std::array<std::array<std::uint64_t, kWords>, 2> sums{};
    std::array<std::uint64_t, 2> drawn{};
    std::array<std::set<std::uint64_t>, 2> tickets;
    const std::array<std::pair<Side*, Side*>, 2> directions{{{&pair.a, &pair.b}, {&pair.b, &pair.a}}};
    for (unsigned round = 0; round < rounds; ++round) {
      // Each host also adds to its own peer's words over every queue pair; results of request i of pair q at a slot of
      // its own.
      for (std::size_t d = 0; d < 2; ++d) {
        auto& [from, to] = directions[d];
        for (std::size_t q = 0; q < pairs; ++q) {
          for (std::size_t i = 0; i < kDeep; ++i) {
            const std::size_t slot = kResults + 8 * (q * kDeep + i);
            const Segment segment = from->segment(slot, 8);
            SendRequest request;
            if (i % 6 == 5) {
              request = {.opcode = WqeOpcode::kRead,
                         .segments = {&segment, 1},
                         .remote_address = to->at(0),
                         .remote_key = to->region->key()};
            } else if (i % 3 == 0) {
              request = atomic(*to, kTicket, slot, segment, true, 1);
              ++drawn[d];
            } else {
              const std::size_t word = random.below(kWords);
              const auto value = random.next();
              request = atomic(*to, 8 * word, slot, segment, true, value);
              sums[d][word] += value;
            }
            request.id = i % 3 == 0 ? slot : 0;
            request.defer = i + 1 < kDeep;
            must(from->qps[q]->post_send(request));
          }
        }
      }
      for (std::size_t d = 0; d < 2; ++d) {
        auto& [from, to] = directions[d];
        for (std::size_t i = 0; i < pairs * kDeep; ++i) {
          const auto done = from->sent();
          REQUIRE(done.status == CqeStatus::kSuccess);
          if (done.id != 0) CHECK(tickets[d].insert(from->word(done.id)).second);
        }
      }
    }
    for (std::size_t d = 0; d < 2; ++d) {
      const Side& to = *directions[d].second;
      for (std::size_t word = 0; word < kWords; ++word) CHECK(to.word(8 * word) == sums[d][word]);
      CHECK(to.word(kTicket) == drawn[d]);
      CHECK(tickets[d].size() == drawn[d]);
      CHECK(*tickets[d].rbegin() == drawn[d] - 1);
    }
    for (auto* endpoint : {&endpoint_a, &endpoint_b}) CHECK(endpoint->host().iommu().fault_count() == 0);
  });
}

}  // namespace

TEST_CASE("additions from both hosts and many queue pairs: the sums are exact, no two draw the same ticket") {
  auto options = WorldOptions::from_environment("operations_concurrent");
  options.host.root_complex.reorder_probability = 0.3;
  add_from_everywhere(options, 6, 6, {});
  ConnectParameters narrow;
  narrow.read_limit = 1;
  narrow.mtu = 256;
  add_from_everywhere(options, 3, 2, narrow);
}

TEST_CASE("additions over a wire that loses, repeats and reorders: each counts once") {
  auto options = WorldOptions::from_environment("operations_faults");
  for (auto& faults : options.wire.faults) {
    faults.drop = 0.02;
    faults.duplicate = 0.01;
    faults.reorder = 0.02;
  }
  ConnectParameters parameters;
  parameters.ack_timeout = 4;
  add_from_everywhere(options, 4, 8, parameters);
}
